// RUN: shard-opt %s --split-input-file --verify-diagnostics --load %S/Inputs/passes.py --fail-on-module

// expected-error @unknown {{this module is not good enough}}
// expected-note @below {{look at this}}
func.func @f() {
  return
}

// -----

func.func @g() {
  // expected-error-re @+1 {{custom op 'retrun' is {{[a-z]+}}}}
  retrun
}

// -----

func.func @h() -> i32 {
  // expected-error @below {{use of undeclared SSA value name}}
  return %undefined : i32
}
