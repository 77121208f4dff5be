// RUN: shard-opt %s --shard-hoist-collectives | FileCheck %s

shard.grid @grid(shape = 2x2)

// A value that both loops carry unchanged is loop-invariant, but a sum over iterations is not.
// CHECK-LABEL: func.func @nested
// CHECK: %[[ALL:.*]] = shard.all_gather %arg0
// CHECK-NEXT: scf.for
// CHECK-NEXT: scf.for
// CHECK-NEXT: arith.addf %[[ALL]]
// CHECK-NEXT: shard.all_reduce
func.func @nested(%a: tensor<8xf32>, %n: index) -> tensor<16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero, %same = %a) -> (tensor<16xf32>, tensor<8xf32>) {
    %q = scf.for %j = %c0 to %n step %c1 iter_args(%y = %x) -> tensor<16xf32> {
      %all = shard.all_gather %same on @grid grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
      %sum = arith.addf %all, %y : tensor<16xf32>
      %reduced = shard.all_reduce %sum on @grid grid_axes = [0] : tensor<16xf32> -> tensor<16xf32>
      scf.yield %reduced : tensor<16xf32>
    }
    scf.yield %q, %same : tensor<16xf32>, tensor<8xf32>
  }
  return %r#0 : tensor<16xf32>
}

// The operands of a collective are hoisted with it.
// CHECK-LABEL: func.func @stablehlo
// CHECK: %[[NEGATED:.*]] = stablehlo.negate %arg0
// CHECK-NEXT: %[[ALL:.*]] = "stablehlo.all_gather"(%[[NEGATED]])
// CHECK-NEXT: stablehlo.while
// CHECK: stablehlo.add %[[ALL]]
// CHECK-NOT: all_gather
func.func @stablehlo(%a: tensor<8xf32>, %n: tensor<i32>) -> tensor<16xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zeros = stablehlo.constant dense<0.0> : tensor<16xf32>
  %r:3 = stablehlo.while(%i = %zero, %x = %zeros, %same = %a) : tensor<i32>, tensor<16xf32>, tensor<8xf32>
    cond {
      %goes_on = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %goes_on : tensor<i1>
    } do {
      %negated = stablehlo.negate %same : tensor<8xf32>
      %all = "stablehlo.all_gather"(%negated) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>
          : (tensor<8xf32>) -> tensor<16xf32>
      %sum = stablehlo.add %all, %x : tensor<16xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %sum, %same : tensor<i32>, tensor<16xf32>, tensor<8xf32>
    }
  return %r#1 : tensor<16xf32>
}

// Arguments of both blocks of a while loop. The second loop swaps two values, so they are not invariant.
// CHECK-LABEL: func.func @while
// CHECK-NEXT: %[[ALL:.*]] = shard.all_gather %arg0
// CHECK-NEXT: scf.while
// CHECK-NOT: shard.all_gather
// CHECK: scf.while
// CHECK: shard.all_gather
func.func @while(%a: tensor<8xf32>, %b: tensor<8xf32>, %x: tensor<16xf32>, %goes_on: i1) -> (tensor<16xf32>, tensor<8xf32>) {
  %0:2 = scf.while (%same = %a, %y = %x) : (tensor<8xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<8xf32>) {
    scf.condition(%goes_on) %y, %same : tensor<16xf32>, tensor<8xf32>
  } do {
  ^bb0(%y: tensor<16xf32>, %same: tensor<8xf32>):
    %all = shard.all_gather %same on @grid grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
    %sum = arith.addf %all, %y : tensor<16xf32>
    scf.yield %same, %sum : tensor<8xf32>, tensor<16xf32>
  }
  %1:2 = scf.while (%one = %a, %other = %b) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %all = shard.all_gather %one on @grid grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
    %element = arith.constant 0 : index
    %first = tensor.extract %all[%element] : tensor<16xf32>
    %positive = arith.cmpf ogt, %first, %first : f32
    scf.condition(%positive) %other, %one : tensor<8xf32>, tensor<8xf32>
  } do {
  ^bb0(%one: tensor<8xf32>, %other: tensor<8xf32>):
    scf.yield %one, %other : tensor<8xf32>, tensor<8xf32>
  }
  return %0#0, %1#0 : tensor<16xf32>, tensor<8xf32>
}

// Collectives in a condition, or of values that may change between iterations, stay.
// CHECK-LABEL: func.func @others
// CHECK: scf.for
// CHECK: scf.if
// CHECK-NEXT: shard.all_gather
// CHECK: shard.all_gather
func.func @others(%a: tensor<8xf32>, %n: index, %condition: i1) -> tensor<16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero) -> tensor<16xf32> {
    %chosen = scf.if %condition -> tensor<16xf32> {
      %all = shard.all_gather %a on @grid grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
      scf.yield %all : tensor<16xf32>
    } else {
      scf.yield %x : tensor<16xf32>
    }
    %slice = tensor.extract_slice %a[%i] [8] [1] : tensor<8xf32> to tensor<8xf32>
    %all = shard.all_gather %slice on @grid grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
    %sum = arith.addf %all, %chosen : tensor<16xf32>
    scf.yield %sum : tensor<16xf32>
  }
  return %r : tensor<16xf32>
}

// The values that regions of hoisted ops capture are hoisted, too.
// CHECK-LABEL: func.func @captured
// CHECK: %[[LIMIT:.*]] = arith.addi
// CHECK-NEXT: %[[CUT:.*]] = linalg.generic
// CHECK: arith.minsi %{{.*}}, %[[LIMIT]]
// CHECK: %[[ALL:.*]] = shard.all_gather %[[CUT]]
// CHECK: scf.for
// CHECK-NOT: shard.all_gather
// CHECK: return
func.func @captured(%a: index, %n: index, %part: tensor<8xindex>) -> tensor<16xindex> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0> : tensor<16xindex>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero) -> tensor<16xindex> {
    %limit = arith.addi %a, %c1 : index
    %cut = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%part : tensor<8xindex>) {
    ^bb0(%at: index):
      %least = arith.minsi %at, %limit : index
      linalg.yield %least : index
    } -> tensor<8xindex>
    %all = shard.all_gather %cut on @grid grid_axes = [0] gather_axis = 0 : tensor<8xindex> -> tensor<16xindex>
    %sum = arith.addi %all, %x : tensor<16xindex>
    scf.yield %sum : tensor<16xindex>
  }
  return %r : tensor<16xindex>
}

// An op whose region captures the iteration number is not hoisted.
// CHECK-LABEL: func.func @captured_counter
// CHECK: scf.for
// CHECK: shard.all_gather
func.func @captured_counter(%n: index, %part: tensor<8xindex>) -> tensor<16xindex> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0> : tensor<16xindex>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero) -> tensor<16xindex> {
    %cut = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%part : tensor<8xindex>) {
    ^bb0(%at: index):
      %least = arith.minsi %at, %i : index
      linalg.yield %least : index
    } -> tensor<8xindex>
    %all = shard.all_gather %cut on @grid grid_axes = [0] gather_axis = 0 : tensor<8xindex> -> tensor<16xindex>
    %sum = arith.addi %all, %x : tensor<16xindex>
    scf.yield %sum : tensor<16xindex>
  }
  return %r : tensor<16xindex>
}

// A barrier, as of rematerialized layers, is passed along the carried weight, also after a conversion, but not along the
// part of the batch.
// CHECK-LABEL: func.func @barrier
// CHECK:      %[[CONVERTED:.*]] = stablehlo.convert %arg0
// CHECK:      %[[ALL:.*]] = shard.all_gather %[[CONVERTED]]
// CHECK:      stablehlo.while
// CHECK:      %[[BOTH:.*]]:2 = stablehlo.optimization_barrier
// CHECK:      %[[PART:.*]] = shard.all_gather %[[BOTH]]#1
// CHECK:      stablehlo.multiply %[[ALL]], %[[PART]]
func.func @barrier(%w: tensor<8xf32>, %first: tensor<8xf64>) -> tensor<16xf64> {
  %zero = stablehlo.constant dense<0.0> : tensor<16xf64>
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %r:4 = stablehlo.while(%weight = %w, %part = %first, %x = %zero, %i = %c0) : tensor<8xf32>, tensor<8xf64>, tensor<16xf64>, tensor<i32> cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %is_less = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %is_less : tensor<i1>
  } do {
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %both:2 = stablehlo.optimization_barrier %weight, %part : tensor<8xf32>, tensor<8xf64>
    %converted = stablehlo.convert %both#0 : (tensor<8xf32>) -> tensor<8xf64>
    %all = shard.all_gather %converted on @grid grid_axes = [0] gather_axis = 0 : tensor<8xf64> -> tensor<16xf64>
    %all_part = shard.all_gather %both#1 on @grid grid_axes = [0] gather_axis = 0 : tensor<8xf64> -> tensor<16xf64>
    %product = stablehlo.multiply %all, %all_part : tensor<16xf64>
    %sum = stablehlo.add %product, %x : tensor<16xf64>
    %next_part = stablehlo.add %part, %part : tensor<8xf64>
    %next = stablehlo.add %i, %c1 : tensor<i32>
    stablehlo.return %weight, %next_part, %sum, %next : tensor<8xf32>, tensor<8xf64>, tensor<16xf64>, tensor<i32>
  }
  return %r#2 : tensor<16xf64>
}
