// RUN: shard-run %s | FileCheck %s

// Loops, branches, named computations, captured tensors and ops without rules, in even and in uneven shards, on ranks:
// the results are the same as without sharding.
// CHECK: result
// CHECK-NEXT: OK
// CHECK-NEXT: OK
// CHECK-NEXT: OK
// CHECK-NEXT: OK
// CHECK-NEXT: OK
// CHECK-NEXT: OK
// CHECK-NEXT: OK
// CHECK-NEXT: OK
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func private @for(%a: tensor<8x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<8x5xf32>) -> (tensor<8x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %0 = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %a) -> tensor<8x5xf32> {
    %1 = arith.addf %acc, %b : tensor<8x5xf32>
    %e = tensor.extract %acc[%i, %i] : tensor<8x5xf32>
    %s = tensor.splat %e : tensor<8x5xf32>
    %2 = arith.mulf %1, %s : tensor<8x5xf32>
    scf.yield %2 : tensor<8x5xf32>
  } {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>}
  return %0 : tensor<8x5xf32>
}
func.func private @half(%a: tensor<7x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<7x8xf32> {
  %c0 = arith.constant 0 : i32
  %c3 = arith.constant 3 : i32
  %c1 = arith.constant 1 : i32
  %0:2 = scf.while (%i = %c0, %v = %a) : (i32, tensor<7x8xf32>) -> (i32, tensor<7x8xf32>) {
    %p = arith.cmpi slt, %i, %c3 : i32
    scf.condition(%p) %i, %v : i32, tensor<7x8xf32>
  } do {
  ^bb0(%i: i32, %v: tensor<7x8xf32>):
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%v init: %z) applies stablehlo.add across dimensions = [0] : (tensor<7x8xf32>, tensor<f32>) -> tensor<8xf32>
    %b = stablehlo.broadcast_in_dim %r, dims = [1] : (tensor<8xf32>) -> tensor<7x8xf32>
    %w = stablehlo.multiply %v, %b : tensor<7x8xf32>
    %k = arith.addi %i, %c1 : i32
    scf.yield %k, %w : i32, tensor<7x8xf32>
  }
  return %0#1 : tensor<7x8xf32>
}
func.func private @if(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) {
  %c0 = arith.constant 0 : index
  %e = tensor.extract %a[%c0, %c0] : tensor<8x8xf32>
  %z = arith.constant 0.0 : f32
  %p = arith.cmpf ogt, %e, %z : f32
  %0 = scf.if %p -> tensor<8x8xf32> {
    %1 = sdy.reshard %a <@mesh, [{}, {"x"}]> : tensor<8x8xf32>
    %2 = arith.negf %1 : tensor<8x8xf32>
    scf.yield %2 : tensor<8x8xf32>
  } else {
    scf.yield %a : tensor<8x8xf32>
  } {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>}
  return %0 : tensor<8x8xf32>
}
func.func private @plain(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8x6xf32> {
  %0 = arith.mulf %a, %a : tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
func.func private @named(%a: tensor<8x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x5xf32> {
  %0 = sdy.named_computation<"foo">(%a) in_shardings=[<@mesh, [{}, {"y"}]>] out_shardings=[<@mesh, [{"y"}, {}]>] (%b: tensor<8x5xf32>) {
    %1 = arith.mulf %b, %b : tensor<8x5xf32>
    sdy.return %1 : tensor<8x5xf32>
  } : (tensor<8x5xf32>) -> tensor<8x5xf32>
  return %0 : tensor<8x5xf32>
}
func.func private @capture(%a: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}) {
  %e = tensor.empty() : tensor<7xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%e : tensor<7xf32>) attrs = {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", "y"}]>]>} {
    ^bb0(%o: f32):
      %i = linalg.index 0 : index
      %c6 = arith.constant 6 : index
      %j = arith.subi %c6, %i : index
      %1 = tensor.extract %a[%j] : tensor<7xf32>
      linalg.yield %1 : f32
    } -> tensor<7xf32>
  return %0 : tensor<7xf32>
}
func.func private @forall(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %e = arith.constant dense<1.0> : tensor<8x4xf32>
  %0 = scf.forall (%i) in (8) shared_outs(%o = %e) -> (tensor<8x4xf32>) {
    %s = tensor.extract_slice %a[%i, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<1x4xf32>
    %n = arith.negf %s : tensor<1x4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n into %o[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
    }
  }
  return %0 : tensor<8x4xf32>
}
func.func private @gathered(%a: tensor<8x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> (tensor<8x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  %0 = stablehlo.reverse %a, dims = [0, 1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : tensor<8x5xf32>
  return %0 : tensor<8x5xf32>
}
func.func @main(
    %a: tensor<8x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %b: tensor<7x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %c: tensor<8x8xf32>, %d: tensor<8x6xf32>, %e: tensor<7xf32>, %f: tensor<8x4xf32>) -> (tensor<8x5xf32>, tensor<7x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, tensor<8x8xf32>, tensor<8x6xf32>, tensor<8x5xf32>, tensor<7xf32>, tensor<8x4xf32>, tensor<8x5xf32>) {
  %0 = call @for(%a, %a) : (tensor<8x5xf32>, tensor<8x5xf32>) -> tensor<8x5xf32>
  %1 = call @half(%b) : (tensor<7x8xf32>) -> tensor<7x8xf32>
  %2 = call @if(%c) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = call @plain(%d) : (tensor<8x6xf32>) -> tensor<8x6xf32>
  %4 = call @named(%a) : (tensor<8x5xf32>) -> tensor<8x5xf32>
  %5 = call @capture(%e) : (tensor<7xf32>) -> tensor<7xf32>
  %6 = call @forall(%f) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %7 = call @gathered(%a) : (tensor<8x5xf32>) -> tensor<8x5xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<8x5xf32>, tensor<7x8xf32>, tensor<8x8xf32>, tensor<8x6xf32>, tensor<8x5xf32>, tensor<7xf32>, tensor<8x4xf32>, tensor<8x5xf32>
}
