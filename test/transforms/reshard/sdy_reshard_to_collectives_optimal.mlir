// RUN: shard-opt %s --pass-pipeline='builtin.module(func.func(sdy-reshard-to-collectives{planner=optimal}))' | FileCheck %s
// RUN: shard-opt %s --pass-pipeline='builtin.module(func.func(sdy-reshard-to-collectives{planner=optimal direct-exchange=true}))' | FileCheck %s --check-prefix=DIRECT
// RUN: shard-opt %s --pass-pipeline='builtin.module(func.func(sdy-reshard-to-collectives{planner=optimal direct-exchange=true},sdy-reshard-to-collectives{planner=optimal}))' | FileCheck %s --check-prefix=DIRECT
// RUN: echo '{"latency": 1.0, "bandwidth": 1e30}' > %t.json
// RUN: shard-opt %s --pass-pipeline='builtin.module(func.func(sdy-reshard-to-collectives{planner=optimal costs=%t.json}))' | FileCheck %s --check-prefix=FEW
// RUN: shard-opt %s --pass-pipeline='builtin.module(func.func(sdy-reshard-to-collectives{planner=optimal costs=%t.json objective=bytes}))' | FileCheck %s

// RUN: not shard-opt %s --pass-pipeline='builtin.module(func.func(sdy-reshard-to-collectives{planner=optimal costs=%t.none.json}))' 2>&1 | FileCheck %s --check-prefix=NOFILE
// RUN: echo '{"latency": -1}' > %t.bad.json
// RUN: not shard-opt %s --pass-pipeline='builtin.module(func.func(sdy-reshard-to-collectives{planner=optimal costs=%t.bad.json}))' 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: not shard-opt %s --pass-pipeline='builtin.module(func.func(sdy-reshard-to-collectives{planner=optimal assumed-size=0}))' 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not shard-opt %s --pass-pipeline='builtin.module(func.func(sdy-reshard-to-collectives{planner=best}))' 2>&1 | FileCheck %s --check-prefix=CHOICE
// RUN: echo '{"links": {"TYPO": {"latency": 1}}}' > %t.axis.json
// RUN: not shard-opt %s --pass-pipeline='builtin.module(func.func(sdy-reshard-to-collectives{planner=optimal costs=%t.axis.json}))' 2>&1 | FileCheck %s --check-prefix=AXIS

// NOFILE: error: costs: cost model {{.*}}none.json
// BAD: error: costs: cost model {{.*}}bad.json: latency
// AXIS: error: costs: cost model {{.*}}axis.json: links.TYPO: not an axis of the mesh, which has "a", "b", "c", "x"
// SIZE: error: assumed-size must be a positive number of elements, got 0
// CHOICE: option 'planner' of 'sdy-reshard-to-collectives' expects {{.*}}shardy{{.*}}optimal{{.*}}, got 'best'

sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
sdy.mesh @backwards = <["a"=2, "b"=2, "c"=2], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
sdy.mesh @six = <["x"=6]>

// After a slice along "c", the exchange between devices moves half of the bytes.
// CHECK-LABEL: func @smaller_before_it_moves
// CHECK-NEXT: %[[S:.*]] = sdy.all_slice [{}, {"c"}] %arg0 out_sharding=<@mesh, [{"a", "b"}, {"c"}]>
// CHECK-NEXT: %[[P:.*]] = sdy.collective_permute %[[S]] out_sharding=<@mesh, [{"b", "c"}, {"a"}]>
// CHECK-NEXT: %[[G:.*]] = sdy.all_gather [{"c"}, {}] %[[P]] out_sharding=<@mesh, [{"b"}, {"a"}]>
// CHECK-NEXT: return %[[G]]

// DIRECT-LABEL: func @smaller_before_it_moves
// DIRECT-NEXT: sdy.reshard %arg0 <@mesh, [{"b"}, {"a"}]> {mlir_shard.direct_exchange}

// If only the number of messages counts, no plan is better than Shardy's.
// FEW-LABEL: func @smaller_before_it_moves
// FEW-NEXT: sdy.collective_permute
// FEW-NEXT: sdy.all_to_all [{"a"}: 0->1]
func.func @smaller_before_it_moves(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.reshard %a <@mesh, [{"b"}, {"a"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func @dynamic_size
// CHECK-NEXT: sdy.all_slice [{}, {"c"}] %arg0
func.func @dynamic_size(%a: tensor<?x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>}) -> tensor<?x8xf32> {
  %0 = sdy.reshard %a <@mesh, [{"b"}, {"a"}]> : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// CHECK-LABEL: func @several_dimensions_at_once
// CHECK-NEXT: sdy.all_gather [{"a"}, {"b"}] %arg0 out_sharding=<@mesh, [{}, {}]>
func.func @several_dimensions_at_once(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<8x8xf32> {
  %0 = sdy.reshard %a <@mesh, [{}, {}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func @reduce_where_it_goes
// CHECK-NEXT: %[[R:.*]] = sdy.reduce_scatter [{}, {"b"}] %arg0 out_sharding=<@mesh, [{"a"}, {"b"}]>
// CHECK-NEXT: return %[[R]]
func.func @reduce_where_it_goes(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.all_reduce {"b"} %a out_sharding=<@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  %1 = sdy.reshard %0 <@mesh, [{"a"}, {"b"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func @largest_of_partial_values
// CHECK-NEXT: sdy.reduce_scatter max [{"b"}, {}] %arg0 out_sharding=<@mesh, [{"b"}, {}]>
func.func @largest_of_partial_values(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced=max{"b"}>}) -> tensor<8x8xf32> {
  %0 = sdy.all_reduce max {"b"} %a out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %1 = sdy.reshard %0 <@mesh, [{"b"}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// Other users need the entire sum.
// CHECK-LABEL: func @reduced_for_others_too
// CHECK-NEXT: %[[R:.*]] = sdy.all_reduce {"b"} %arg0
// CHECK-NEXT: sdy.all_slice [{}, {"b"}] %[[R]]
func.func @reduced_for_others_too(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = sdy.all_reduce {"b"} %a out_sharding=<@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  %1 = sdy.reshard %0 <@mesh, [{"a"}, {"b"}]> : tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// CHECK-LABEL: func @devices_in_another_order
// CHECK-NEXT: %[[S:.*]] = sdy.all_slice [{}, {"b"}] %arg0 out_sharding=<@mesh, [{"a"}, {"b"}]>
// CHECK-NEXT: sdy.collective_permute %[[S]] out_sharding=<@backwards, [{"a"}, {"b"}]>
func.func @devices_in_another_order(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.reshard %a <@backwards, [{"a"}, {"b"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// A replicated tensor is the same in any device order, but a slice in one order is not a slice in another one.
// CHECK-LABEL: func @replicated_in_another_order
// CHECK-NEXT: %[[S:.*]] = sdy.all_slice [{}, {"b"}] %arg0 out_sharding=<@mesh, [{}, {"b"}]>
// CHECK-NEXT: sdy.collective_permute %[[S]] out_sharding=<@backwards, [{}, {"b"}]>
func.func @replicated_in_another_order(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.reshard %a <@backwards, [{}, {"b"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Shards of a half and of a third of the elements on six devices: only replicated tensors contain both.
// CHECK-LABEL: func @no_common_grid
// CHECK-NEXT: sdy.all_gather [{"x":(1)2}]
// CHECK-NEXT: sdy.all_slice [{"x":(1)3}]
// DIRECT-LABEL: func @no_common_grid
// DIRECT-NEXT: sdy.reshard %arg0 <@six, [{"x":(1)3}]> {mlir_shard.direct_exchange}
func.func @no_common_grid(%a: tensor<12xf32> {sdy.sharding = #sdy.sharding<@six, [{"x":(1)2}]>}) -> tensor<12xf32> {
  %0 = sdy.reshard %a <@six, [{"x":(1)3}]> : tensor<12xf32>
  return %0 : tensor<12xf32>
}
