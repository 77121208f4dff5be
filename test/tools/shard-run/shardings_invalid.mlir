// RUN: sed 's/SHARDING/[{"z"}]/; s/OTHER/2/' %s | not shard-run - 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: sed 's/SHARDING/[{"z"}]/; s/OTHER/2/' %s | not shard-run --engine=pjrt - 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: sed 's/SHARDING/[{"x"}, {}]/; s/OTHER/2/' %s | not shard-run - 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: sed 's/SHARDING/[{"x", "x"}]/; s/OTHER/2/' %s | not shard-run --engine=pjrt - 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: sed 's/@mesh, SHARDING/@absent, [{"x"}]/; s/OTHER/2/' %s | not shard-run - 2>&1 | FileCheck %s --check-prefix=MESH
// RUN: sed 's/SHARDING/[{}], unreduced={"x"}/; s/OTHER/2/' %s | not shard-run - 2>&1 | FileCheck %s --check-prefix=UNREDUCED
// RUN: sed 's/SHARDING/[{}], unreduced={"x"}/; s/OTHER/2/' %s | not shard-run --engine=pjrt - 2>&1 | FileCheck %s --check-prefix=UNREDUCED
// RUN: sed 's/SHARDING/[{"x"}]/; s/OTHER/4/' %s | not shard-run -n 2 --engine=pjrt - 2>&1 | FileCheck %s --check-prefix=MESHES
// RUN: sed 's/SHARDING/[{"x"}]/; s/OTHER/2/' %s | not shard-run -n 3 --engine=pjrt - 2>&1 | FileCheck %s --check-prefix=COUNT

// AXIS: <stdin>:[[# @LINE + 18]]:74: error: 'func.func' op argument 0: dim 0: unknown axis "z": the mesh has "x"
// AXIS-NOT: error:
// RANK: <stdin>:[[# @LINE + 16]]:1: error: 'func.func' op argument 0: the sharding has 2 dimensions, but the tensor has 1
// RANK-NOT: error:
// TWICE: <stdin>:[[# @LINE + 14]]:79: error: 'func.func' op argument 0: dim 0: axis "x" is used twice
// TWICE-NOT: error:
// MESH: <stdin>:[[# @LINE + 12]]:65: error: 'func.func' op argument 0: unknown mesh @absent: the module has @mesh
// MESH-NOT: error:
// UNREDUCED: <stdin>:[[# @LINE + 10]]:1: error: argument 0 is unreduced along "x": a function's arguments and results have no pending reduction
// UNREDUCED: shard-run: error: the program cannot be run as it is sharded
// MESHES: shard-run: error: the program is for 4 ranks, not 2: its meshes are @mesh of 2 (<["x"=2]>), @other of 4 (<["x"=4]>)
// MESHES-NOT: error:
// COUNT: shard-run: error: the program is for 2 ranks, not 3: its mesh is @mesh of 2 (<["x"=2]>)
// COUNT-NOT: error:

sdy.mesh @mesh = <["x"=2]>
sdy.mesh @other = <["x"=OTHER]>

func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, SHARDING>}) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
