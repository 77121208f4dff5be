// RUN: shard-opt %s | FileCheck %s
// RUN: shard-opt %s --mlir-print-op-generic | shard-opt - | FileCheck %s

// CHECK: sdy.mesh @two_axes = <["data"=2, "model"=8]>
sdy.mesh @two_axes = <["data"=2, "model"=8]>
// CHECK: sdy.mesh @reversed = <["x"=4], device_ids=[3, 2, 1, 0]>
sdy.mesh @reversed = <["x"=4], device_ids=[3, 2, 1, 0]>
// Device ids in their natural order are redundant and are dropped.
// CHECK: sdy.mesh @in_order = <["x"=2, "y"=2]>
sdy.mesh @in_order = <["x"=2, "y"=2], device_ids=[0, 1, 2, 3]>
// CHECK: sdy.mesh @one_device = <[], device_ids=[7]>
sdy.mesh @one_device = <[], device_ids=[7]>
// CHECK: sdy.mesh @placeholder = <[]>
sdy.mesh @placeholder = <[]>
// CHECK: sdy.mesh @"two words" = <["an axis"=1]>
sdy.mesh @"two words" = <["an axis"=1]>
// CHECK: sdy.mesh @annotated = <["x"=2]> {note = "kept"}
sdy.mesh @annotated = <["x"=2]> {note = "kept"}

// A nested module has its own meshes.
// CHECK: module @inner
module @inner {
  // CHECK: sdy.mesh @two_axes = <["x"=2]>
  sdy.mesh @two_axes = <["x"=2]>
  // Meshes may have different devices, if the devices of all meshes together have no gap.
  // CHECK: sdy.mesh @next_four = <["x"=4], device_ids=[2, 3, 4, 5]>
  sdy.mesh @next_four = <["x"=4], device_ids=[2, 3, 4, 5]>
  // CHECK: sdy.mesh @last_two = <["x"=2], device_ids=[7, 6]>
  sdy.mesh @last_two = <["x"=2], device_ids=[7, 6]>
  // CHECK: #sdy.sharding<@two_axes, [{"x"}]>
  func.func private @f(tensor<4xf32> {sdy.sharding = #sdy.sharding<@two_axes, [{"x"}]>})
}
