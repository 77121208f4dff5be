// RUN: shard-opt %s --spmdize="remarks-above=0" 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID < %t

sdy.mesh @mesh = <["x"=2, "y"=2]>

// The operands, arguments, yielded values and results of a loop have the same placement.
// CHECK-LABEL: func.func @carried(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[ACC:[^ ]*]] = %arg0) -> (tensor<4xf32>) {
// CHECK: %[[S:.*]] = shard.all_slice %arg1
// CHECK: arith.addf %[[ACC]], %[[S]] : tensor<4xf32>
// CHECK: scf.yield %{{.*}} : tensor<4xf32>
// CHECK: return %[[R]]
func.func @carried(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<8xf32>, %n: index)
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %a) -> tensor<8xf32> {
    %s = sdy.reshard %b <@mesh, [{"x"}]> : tensor<8xf32>
    %1 = arith.addf %acc, %s {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
    scf.yield %1 : tensor<8xf32>
  } {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
  return %0 : tensor<8xf32>
}

// A manual computation is inlined: along its axes, the types in the body are already those of shards.
// CHECK-LABEL: func.func @manual(%arg0: tensor<8xf32>) -> tensor<4xf32> {
// CHECK-NEXT: %[[S:.*]] = shard.all_slice %arg0 on @mesh grid_axes = [0, 1] slice_axis = 0 : tensor<8xf32> -> tensor<2xf32>
// CHECK-NEXT: %[[N:.*]] = arith.negf %[[S]] : tensor<2xf32>
// CHECK-NEXT: %[[G:.*]] = shard.all_gather %[[N]] on @mesh grid_axes = [1] gather_axis = 0 : tensor<2xf32> -> tensor<4xf32>
// CHECK-NEXT: return %[[G]]
func.func @manual(%a: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x", "y"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
    %1 = arith.negf %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A tensor that a body captures is gathered before the op.
// CHECK-LABEL: func.func @captured(%arg0: tensor<4xf32>
// CHECK: %[[G:.*]] = shard.all_gather %arg0
// CHECK: linalg.generic
// CHECK: tensor.extract %[[G]]
func.func @captured(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %i: index, %b: tensor<8xf32>) -> tensor<8xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%b : tensor<8xf32>) {
    ^bb0(%o: f32):
      %1 = tensor.extract %a[%i] : tensor<8xf32>
      linalg.yield %1 : f32
    } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// An op without a rule is computed on gathered operands.
// CHECK-LABEL: func.func @unknown(%arg0: tensor<4xf32>
// CHECK-NEXT: %[[G:.*]] = shard.all_gather %arg0
// CHECK-NEXT: tensor.extract %[[G]]
// SAID: remark: 'tensor.extract' op is replicated on every device, as it has no partition rule; a device receives 16 bytes
func.func @unknown(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %i: index) -> f32 {
  %0 = tensor.extract %a[%i] : tensor<8xf32>
  return %0 : f32
}

// CHECK-LABEL: func.func @unknown_result
// CHECK: tensor.from_elements
// CHECK-NEXT: shard.all_slice
func.func @unknown_result(%f: f32) -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = tensor.from_elements %f, %f {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// A replicated tensor that becomes unreduced and is reduced again is not changed.
// CHECK-LABEL: func.func @becomes_unreduced(%arg0: tensor<8xf32>)
// CHECK-NEXT: return %arg0
func.func @becomes_unreduced(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.reshard %a <@mesh, [{}], unreduced={"x"}> : tensor<8xf32>
  %1 = sdy.reshard %0 <@mesh, [{}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// Partial sums of a sharded result are scattered.
// CHECK-LABEL: func.func @scattered
// CHECK: %[[D:.*]] = stablehlo.dot_general
// CHECK-NEXT: %[[R:.*]] = shard.reduce_scatter %[[D]] on @mesh grid_axes = [0] scatter_dim = 0 : tensor<8x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT: return %[[R]]
func.func @scattered(
    %a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Shards have full size: gathered tensors are sliced at the end, and tensors are padded before they are sliced.
// CHECK-LABEL: func.func @uneven(%arg0: tensor<4xf32>) -> tensor<7xf32> {
// CHECK-NEXT: %[[N:.*]] = arith.negf %arg0 : tensor<4xf32>
// CHECK-NEXT: %[[G:.*]] = shard.all_gather %[[N]]
// CHECK-NEXT: %[[E:.*]] = tensor.extract_slice %[[G]][0] [7] [1] : tensor<8xf32> to tensor<7xf32>
// CHECK-NEXT: return %[[E]]
func.func @uneven(%a: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<7xf32> {
  %0 = arith.negf %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32>
  return %0 : tensor<7xf32>
}

// A division would fail on padding.
// CHECK-LABEL: func.func @divided(%arg0: tensor<4xi32>)
// CHECK: %[[W:.*]] = tensor.extract_slice %{{.*}} : tensor<8xi32> to tensor<7xi32>
// CHECK: arith.divsi %[[W]], %[[W]] : tensor<7xi32>
func.func @divided(%a: tensor<7xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<7xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = arith.divsi %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xi32>
  return %0 : tensor<7xi32>
}

// Shardings that frontends give to the scalars in a reduction have no meaning there.
// CHECK-LABEL: func.func @scalars
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.add across dimensions = [1]
func.func @scalars(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %zero) across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
   reducer(%b: tensor<f32>, %c: tensor<f32>) {
    %1 = stablehlo.add %b, %c : tensor<f32>
    %2 = sdy.reshard %1 <@mesh, []> : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }
  return %0 : tensor<8xf32>
}
