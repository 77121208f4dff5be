// RUN: shard-opt %s --split-input-file --verify-diagnostics --convert-shard-to-sdy | FileCheck %s

// CHECK: sdy.mesh @grid = <["axis_0"=2, "axis_1"=4]>
shard.grid @grid(shape = 2x4)

// An annotation of the value itself becomes the sharding of an argument or of an op's result.
// CHECK-LABEL: func.func @on_values
// CHECK-SAME: (%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@grid, [{"axis_0"}, {}]>})
// CHECK-NEXT: %[[R:.*]] = arith.negf %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{}, {"axis_1", "axis_0"}]>]>}
// CHECK-NEXT: %[[S:.*]] = arith.negf %[[R]]
// CHECK-NEXT: return %[[S]]
func.func @on_values(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %rows = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %columns = shard.sharding @grid split_axes = [[], [1, 0]] : !shard.sharding
  %0 = shard.shard %a to %rows : tensor<8x8xf32>
  %1 = arith.negf %0 : tensor<8x8xf32>
  %2 = shard.shard %1 to %columns : tensor<8x8xf32>
  %3 = arith.negf %2 : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// An annotation for users becomes a constraint between the value and these users only.
// CHECK-LABEL: func.func @for_users
// CHECK-SAME: (%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@grid, [{"axis_0"}, {}]>})
// CHECK-NEXT: %[[C:.*]] = sdy.sharding_constraint %arg0 <@grid, [{}, {"axis_1"}]>
// CHECK-NEXT: %[[R:.*]] = arith.negf %[[C]]
// CHECK-NEXT: arith.addf %[[R]], %arg0
func.func @for_users(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %rows = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %columns = shard.sharding @grid split_axes = [[], [1]] : !shard.sharding
  %0 = shard.shard %a to %rows : tensor<8x8xf32>
  %1 = shard.shard %0 to %columns annotate_for_users : tensor<8x8xf32>
  %2 = arith.negf %1 : tensor<8x8xf32>
  %3 = arith.addf %2, %0 : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// An annotation of a returned value is also the sharding of the function's result.
// CHECK-LABEL: func.func @returned
// CHECK-SAME: (%arg0: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@grid, [{"axis_1"}]>}, tensor<8xf32>)
// CHECK-NEXT: %[[C:.*]] = sdy.sharding_constraint %arg0 <@grid, [{"axis_1"}]>
// CHECK-NEXT: return %[[C]], %arg0
func.func @returned(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %s = shard.sharding @grid split_axes = [[1]] : !shard.sharding
  %0 = shard.shard %a to %s annotate_for_users : tensor<8xf32>
  return %0, %a : tensor<8xf32>, tensor<8xf32>
}

// A replicated annotation is a sharding, too: its dimensions are closed.
// CHECK-LABEL: func.func @replicated
// CHECK-SAME: sdy.sharding = #sdy.sharding<@grid, [{}, {}]>
func.func @replicated(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %s = shard.sharding @grid split_axes = [[]] : !shard.sharding
  %0 = shard.shard %a to %s : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// An annotation for users that is equal to that of the value is dropped.
// CHECK-LABEL: func.func @same_for_users
// CHECK-SAME: -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@grid, [{"axis_0"}, {}]>})
// CHECK-NEXT: %[[R:.*]] = arith.negf %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{"axis_0"}, {}]>]>}
// CHECK-NEXT: return %[[R]]
func.func @same_for_users(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %t = shard.sharding @grid split_axes = [[0], []] : !shard.sharding
  %0 = arith.negf %a : tensor<8x8xf32>
  %1 = shard.shard %0 to %s : tensor<8x8xf32>
  %2 = shard.shard %1 to %t annotate_for_users : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// Offsets may describe the default shards of sdy.
// CHECK-LABEL: func.func @uneven
// CHECK-SAME: (%arg0: tensor<8x9xf32> {sdy.sharding = #sdy.sharding<@grid, [{"axis_0"}, {"axis_1"}]>})
func.func @uneven(%a: tensor<8x9xf32>) {
  %s = shard.sharding @grid split_axes = [[0], [1]] sharded_dims_offsets = [0, 4, 8, 0, 3, 6, 9, 9] : !shard.sharding
  %0 = shard.shard %a to %s : tensor<8x9xf32>
  return
}

// -----

// CHECK: sdy.mesh @grid = <["data"=2, "model"=4]>
shard.grid @grid(shape = 2x4) {mlir_shard.axis_names = ["data", "model"]}

// -----

// expected-error@+1 {{'mlir_shard.axis_names' must be 2 different names, one for each axis of the grid}}
shard.grid @grid(shape = 2x4) {mlir_shard.axis_names = ["data", "data"]}

// -----

shard.grid @grid(shape = 2)
func.func @dynamic_offsets(%a: tensor<8xf32>, %n: i64) {
  // expected-error@+1 {{dynamic 'sharded_dims_offsets' cannot be expressed in sdy, whose shards have n / k elements, rounded up}}
  %s = shard.sharding @grid split_axes = [[0]] sharded_dims_offsets = [0, %n, 8] : !shard.sharding
  %0 = shard.shard %a to %s : tensor<8xf32>
  return
}

// -----

// expected-error@+1 {{a 'shard.grid' with a dynamic size cannot become an sdy mesh, which has static sizes}}
shard.grid @grid(shape = 2x?)

// -----

shard.grid @grid(shape = 2)
func.func @twice(%a: tensor<8xf32>) -> tensor<8xf32> {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %r = shard.sharding @grid split_axes = [[]] : !shard.sharding
  %0 = shard.shard %a to %s : tensor<8xf32>
  // expected-error@+1 {{this annotation shards as <@grid, [{}]> a value that is already sharded as <@grid, [{"axis_0"}]>}}
  %1 = shard.shard %0 to %r : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @halo(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'halo_sizes' cannot be expressed in sdy, whose shards do not overlap}}
  %s = shard.sharding @grid split_axes = [[0]] halo_sizes = [1, 1] : !shard.sharding
  %0 = shard.shard %a to %s : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @offsets(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'sharded_dims_offsets' cannot be expressed in sdy, which shards tensor<8xf32> at [0, 4, 8], into n / k elements, rounded up}}
  %s = shard.sharding @grid split_axes = [[0]] sharded_dims_offsets = [0, 3, 8] : !shard.sharding
  %0 = shard.shard %a to %s : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @not_an_annotation(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'shard.all_reduce' has no counterpart in sdy: only annotations are converted}}
  %0 = shard.all_reduce %a on @grid : tensor<8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
