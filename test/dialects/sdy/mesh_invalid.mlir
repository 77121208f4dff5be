// RUN: shard-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{mesh axis "y" has size 0}}
sdy.mesh @no_devices = <["x"=2, "y"=0]>

// -----

// expected-error @+1 {{mesh axis "x" is given 2 times}}
sdy.mesh @twice = <["x"=2, "x"=3]>

// -----

// expected-error @+1 {{device id -2 is negative}}
sdy.mesh @negative = <["x"=2], device_ids=[-2, 0]>

// -----

// expected-error @+1 {{the axes make 6 devices, but 4 device ids are given}}
sdy.mesh @too_few = <["x"=2, "y"=3], device_ids=[3, 2, 1, 0]>

// -----

// expected-error @+1 {{'sdy.mesh' op device ids have to be 0 to 3, together with those of the other meshes of the program, but 0 is not among them}}
sdy.mesh @not_from_zero = <["x"=3], device_ids=[1, 2, 3]>

// -----

// expected-error @+1 {{device id 1 is given 2 times}}
sdy.mesh @the_same_twice = <["x"=2], device_ids=[1, 1]>

// -----

sdy.mesh @training = <["x"=2, "y"=2]>
// expected-error @+1 {{but 4 is not among them}}
sdy.mesh @serving = <["x"=3], device_ids=[6, 5, 3]>

// -----

// expected-error @+1 {{a mesh without axes must have at most one device id, but 3 are given}}
sdy.mesh @no_axes = <[], device_ids=[2, 1, 0]>

// -----

func.func @elsewhere() {
  // expected-error @+1 {{'sdy.mesh' op must be directly in a 'builtin.module', got 'func.func'}}
  "sdy.mesh"() {sym_name = "mesh", mesh = #sdy.mesh<["x"=2]>} : () -> ()
  return
}

// -----

// expected-error @+1 {{attribute 'mesh' must be a #sdy.mesh, got "x"}}
"sdy.mesh"() {sym_name = "mesh", mesh = "x"} : () -> ()

// -----

// expected-error @+1 {{requires an attribute 'mesh', a #sdy.mesh}}
"sdy.mesh"() {sym_name = "mesh"} : () -> ()

// -----

// expected-error @+1 {{requires a string attribute 'sym_name'}}
"sdy.mesh"() {mesh = #sdy.mesh<["x"=2]>} : () -> ()

// -----

// expected-error @+1 {{attribute 'sym_visibility' must be one of}}
"sdy.mesh"() {sym_name = "mesh", sym_visibility = "hidden", mesh = #sdy.mesh<["x"=2]>} : () -> ()

// -----

// expected-note @+1 {{see existing symbol definition here}}
sdy.mesh @mesh = <["x"=2]>
// expected-error @+1 {{redefinition of symbol named 'mesh'}}
sdy.mesh @mesh = <["x"=4]>
