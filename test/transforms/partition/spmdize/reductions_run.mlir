// RUN: shard-run %s | FileCheck %s
// RUN: shard-opt %s --shard-propagate --shard-spmdize | FileCheck %s --check-prefix=LOCAL

// Reductions that sdy cannot express run on shards, and the results of the devices are combined. Initial values count
// once, whatever they are.
// CHECK: result
// CHECK-COUNT-12: OK
sdy.mesh @mesh = <["x"=2, "y"=3]>
// LOCAL-NOT: gather_axis = 1
// LOCAL: func.func @main
func.func @main(
    %a: tensor<8x6xf64> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %b: tensor<8x6xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %c: tensor<8x6xi1> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %init: tensor<f64>,
    %d: tensor<8x10xf64> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<8xf64>, tensor<8xi32>, tensor<8xi32>, tensor<8xf64>, tensor<8xf64>, tensor<8x1xi1>, tensor<8xf64>, tensor<8xi32>, tensor<8xf64>,
        tensor<8xf64>, tensor<8xf64>, tensor<8xf64>) {
  %three = arith.constant dense<3.0> : tensor<8xf64>
  %seven = arith.constant dense<7> : tensor<8xi32>
  %product = linalg.reduce {arith.mulf} ins(%a : tensor<8x6xf64>) outs(%three : tensor<8xf64>) dimensions = [1]
  // LOCAL: shard.all_reduce {{.*}} reduction = bitwise_and
  %and = linalg.reduce {arith.andi} ins(%b : tensor<8x6xi32>) outs(%seven : tensor<8xi32>) dimensions = [1]
  // LOCAL: shard.all_reduce {{.*}} reduction = bitwise_xor
  %xor = linalg.reduce {arith.xori} ins(%b : tensor<8x6xi32>) outs(%seven : tensor<8xi32>) dimensions = [1]
  // LOCAL: linalg.generic
  // LOCAL: shard.all_reduce
  // LOCAL: shard.all_reduce {{.*}} reduction = max
  %both:2 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<8x6xf64>) outs(%three, %three : tensor<8xf64>, tensor<8xf64>) {
  ^bb0(%x: f64, %sum: f64, %max: f64):
    %p = arith.addf %x, %sum : f64
    %q = arith.maximumf %x, %max : f64
    linalg.yield %p, %q : f64, f64
  } -> (tensor<8xf64>, tensor<8xf64>)
  // LOCAL: tosa.reduce_all
  // LOCAL: shard.all_reduce {{.*}} reduction = bitwise_and
  %all = tosa.reduce_all %c {axis = 1 : i32} : (tensor<8x6xi1>) -> tensor<8x1xi1>
  // LOCAL: stablehlo.reduce
  // LOCAL: shard.all_gather {{.*}} gather_axis = 0 : tensor<1x4xf64>
  // LOCAL: shard.all_gather {{.*}} gather_axis = 0 : tensor<1x4xi32>
  // LOCAL: stablehlo.reduce
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %least = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
  %greatest:2 = stablehlo.reduce(%a init: %least), (%b init: %zero) across dimensions = [1] : (tensor<8x6xf64>, tensor<8x6xi32>, tensor<f64>, tensor<i32>) -> (tensor<8xf64>, tensor<8xi32>)
      reducer(%x: tensor<f64>, %y: tensor<f64>) (%i: tensor<i32>, %j: tensor<i32>) {
    %g = stablehlo.compare GE, %x, %y : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %v = stablehlo.select %g, %x, %y : tensor<i1>, tensor<f64>
    %n = stablehlo.select %g, %i, %j : tensor<i1>, tensor<i32>
    stablehlo.return %v, %n : tensor<f64>, tensor<i32>
  }
  %by_init = stablehlo.reduce(%a init: %init) applies stablehlo.multiply across dimensions = [1] : (tensor<8x6xf64>, tensor<f64>) -> tensor<8xf64>
  // Partly filled shards: the body skips the padding, and the combiner of its results is still recognized.
  // LOCAL: arith.select
  // LOCAL: shard.all_reduce {{.*}} reduction = min
  // One collective reduces all three products.
  // LOCAL: shard.all_reduce {{.*}} reduction = product : tensor<12xf64>
  %uneven:2 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<8x10xf64>) outs(%three, %three : tensor<8xf64>, tensor<8xf64>) {
  ^bb0(%x: f64, %product_so_far: f64, %min: f64):
    %p = arith.mulf %product_so_far, %x : f64
    %q = arith.minimumf %x, %min : f64
    linalg.yield %p, %q : f64, f64
  } -> (tensor<8xf64>, tensor<8xf64>)
  // The summand is not an element of the operand: each zero of the padding would add one.
  %zeros = arith.constant dense<0.0> : tensor<8xf64>
  %exponentials = linalg.reduce ins(%d : tensor<8x10xf64>) outs(%zeros : tensor<8xf64>) dimensions = [1]
      (%x: f64, %sum: f64) {
    %e = math.exp %x : f64
    %s = arith.addf %e, %sum : f64
    linalg.yield %s : f64
  }
  return %product, %and, %xor, %both#0, %both#1, %all, %greatest#0, %greatest#1, %by_init, %uneven#0, %uneven#1, %exponentials
      : tensor<8xf64>, tensor<8xi32>, tensor<8xi32>, tensor<8xf64>, tensor<8xf64>, tensor<8x1xi1>, tensor<8xf64>, tensor<8xi32>, tensor<8xf64>,
        tensor<8xf64>, tensor<8xf64>, tensor<8xf64>
}
