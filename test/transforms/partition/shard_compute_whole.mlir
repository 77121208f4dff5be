// RUN: shard-opt %s --shard-compute-whole | FileCheck %s
// RUN: shard-opt %s --shard-compute-whole=remarks-above=0 2>&1 >%t | FileCheck %s --check-prefix=REPORT
// RUN: shard-opt %s --shard-compute-whole --sdy-convert-global-to-local --sdy-drop-sharding-and-mesh | FileCheck %s --check-prefix=LOCAL
// RUN: not shard-opt %s --sdy-convert-global-to-local 2>&1 | FileCheck %s --check-prefix=ALONE

// LOCAL-NOT: sdy.
// ALONE: error: 'stablehlo.add' op cannot be computed on blocks: its tensors are on meshes that differ

sdy.mesh @mesh = <["a"=2, "b"=3]>
sdy.mesh @line = <["x"=6]>

// What is in the way is gathered, and nothing else; where nothing is, nothing happens.
// CHECK-LABEL: func @one_dimension(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: tensor<12x6xf32>
// CHECK-NEXT:    %[[ALL:.*]] = sdy.all_gather [{"a"}, {}] %[[X]] out_sharding=<@mesh, [{}, {"b"}]>
// CHECK-NEXT:    %[[BACK:.*]] = stablehlo.reverse %[[ALL]], dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"b"}]>]>}
// CHECK-NEXT:    %[[OWN:.*]] = sdy.all_slice [{"a"}, {}] %[[BACK]] out_sharding=<@mesh, [{"a"}, {"b"}]>
// CHECK-NEXT:    %[[SUM:.*]] = stablehlo.add %[[OWN]], %[[X]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>}
// CHECK-NEXT:    return %[[SUM]]
// REPORT: [[# @LINE + 3]]:8: remark: 'stablehlo.reverse' op is computed on larger shards, operand 0 gathered to be <@mesh, [{}, {"b"}]>: along dimension 0 a device needs the block of another
func.func @one_dimension(%x: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
    -> (tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
  %0 = stablehlo.reverse %x, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : tensor<12x6xf32>
  %1 = stablehlo.add %0, %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : tensor<12x6xf32>
  return %1 : tensor<12x6xf32>
}

// CHECK-LABEL: func @two_meshes(
// CHECK-DAG:     %[[L:.*]] = sdy.all_gather [{"a"}, {"b"}] %arg0 out_sharding=<@mesh, [{}, {}]>
// CHECK-DAG:     %[[R:.*]] = sdy.all_gather [{"x"}, {}] %arg1 out_sharding=<@line, [{}, {}]>
// CHECK-NEXT:    %[[SUM:.*]] = stablehlo.add %[[L]], %[[R]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
// CHECK-NEXT:    sdy.all_slice [{"a"}, {"b"}] %[[SUM]] out_sharding=<@mesh, [{"a"}, {"b"}]>
// REPORT: 'stablehlo.add' op is computed whole on every device: its tensors are on meshes that differ
func.func @two_meshes(%x: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
                      %y: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@line, [{"x"}, {}]>})
    -> (tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
  %0 = stablehlo.add %x, %y {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : tensor<12x6xf32>
  return %0 : tensor<12x6xf32>
}

// Nothing is known of it but its tensors.
// CHECK-LABEL: func @unknown(
// CHECK-NEXT:    %[[ALL:.*]] = sdy.all_gather [{"a"}, {}] %arg0
// CHECK-NEXT:    %[[MADE:.*]] = stablehlo.custom_call @whatever(%[[ALL]])
// CHECK-NEXT:    sdy.all_slice [{}, {"b"}] %[[MADE]]
// REPORT: 'stablehlo.custom_call' op is computed whole on every device: no sharding rule of it is known
func.func @unknown(%x: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
    -> (tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>}) {
  %0 = stablehlo.custom_call @whatever(%x) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"b"}]>]>} : (tensor<12x6xf32>) -> tensor<12x6xf32>
  return %0 : tensor<12x6xf32>
}

// A sum that each device has all of counts once where it is summed up.
// CHECK-LABEL: func @reduced_later(
// CHECK-DAG:     %[[L:.*]] = sdy.all_gather [{}, {"b"}] %arg0 out_sharding=<@mesh, [{"a"}, {}]>
// CHECK-DAG:     %[[R:.*]] = sdy.all_gather [{}, {"b"}] %arg1 out_sharding=<@mesh, [{}, {}]>
// CHECK-NEXT:    %[[DOT:.*]] = stablehlo.dot %[[L]], %[[R]]
// CHECK-NEXT:    %[[ONCE:.*]] = sdy.replicated_to_unreduced {"b"} %[[DOT]] out_sharding=<@mesh, [{"a"}, {}], unreduced={"b"}>
// CHECK-NEXT:    sdy.all_reduce {"b"} %[[ONCE]]
func.func @reduced_later(%x: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
                         %y: tensor<6x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>})
    -> (tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %0 = stablehlo.dot %x, %y {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<12x6xf32>, tensor<6x6xf32>) -> tensor<12x6xf32>
  %1 = sdy.all_reduce {"b"} %0 out_sharding=<@mesh, [{"a"}, {}]> : tensor<12x6xf32>
  return %1 : tensor<12x6xf32>
}

// CHECK-LABEL: func @replicated_and_reduced_later(
// CHECK:         %[[DOT:.*]] = stablehlo.dot
// CHECK-NEXT:    %[[ONCE:.*]] = sdy.replicated_to_unreduced {"b"} %[[DOT]] out_sharding=<@mesh, [{}, {}], unreduced={"b"}>
// CHECK-NEXT:    sdy.all_reduce {"b"} %[[ONCE]]
func.func @replicated_and_reduced_later(%x: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>},
                                        %y: tensor<6x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>}) -> tensor<12x6xf32> {
  %0 = stablehlo.dot %x, %y : (tensor<12x6xf32>, tensor<6x6xf32>) -> tensor<12x6xf32>
  %1 = sdy.all_reduce {"b"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<12x6xf32>
  return %1 : tensor<12x6xf32>
}

// No collective combines partial products: nothing is partial then.
// CHECK-LABEL: func @products(
// CHECK-NEXT:    %[[ALL:.*]] = sdy.all_gather [{}, {"b"}] %arg0 out_sharding=<@mesh, [{"a"}, {}]>
// CHECK-NEXT:    stablehlo.reduce(%[[ALL]] init: %arg1) applies stablehlo.multiply
// CHECK-NEXT:    return
func.func @products(%x: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}, %i: tensor<f32>)
    -> (tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  %0 = stablehlo.reduce(%x init: %i) applies stablehlo.multiply across dimensions = [1]
      {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : (tensor<12x6xf32>, tensor<f32>) -> tensor<12xf32>
  return %0 : tensor<12xf32>
}

// CHECK-LABEL: func @elsewhere(
// CHECK-NEXT:    %[[ALL:.*]] = sdy.all_gather [{}, {"b"}] %arg0 out_sharding=<@mesh, [{"a"}, {}]>
// CHECK-NEXT:    %[[OTHER:.*]] = sdy.all_gather [{"a"}, {"b"}] %arg0 out_sharding=<@mesh, [{}, {}]>
// CHECK-NEXT:    %[[SAID:.*]] = sdy.reshard %[[OTHER]] <@line, [{}, {}]>
// CHECK-NEXT:    %[[OWN:.*]] = sdy.all_slice [{"x"}, {}] %[[SAID]] out_sharding=<@line, [{"x"}, {}]>
// CHECK-NEXT:    return %[[ALL]], %[[OWN]]
func.func @elsewhere(%x: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
    -> (tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
        tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@line, [{"x"}, {}]>}) {
  return %x, %x : tensor<12x6xf32>, tensor<12x6xf32>
}

// The same value goes around as two, which are in different blocks.
// CHECK-LABEL: func @loop(
// CHECK-NEXT:    %[[WHOLE:.*]] = sdy.all_gather [{}, {"b"}] %arg0
// CHECK-NEXT:    %[[CUT:.*]] = sdy.all_slice [{"a"}, {}] %[[WHOLE]]
// CHECK-NEXT:    %[[ALL:.*]] = sdy.all_gather [{}, {"b"}] %arg0
// CHECK-NEXT:    stablehlo.while(%[[V:.*]] = %[[CUT]], %{{.*}} = %[[ALL]])
// CHECK:           %[[AGAIN:.*]] = sdy.all_gather [{"a"}, {}] %[[V]]
// CHECK-NEXT:      stablehlo.return %[[V]], %[[AGAIN]]
// REPORT: 'stablehlo.while' op has operand 0 gathered and sliced, to be <@mesh, [{"a"}, {}]>
// REPORT: 'stablehlo.while' op has operand 1 gathered and sliced, to be replicated
// REPORT: 'stablehlo.return' op has operand 1 gathered and sliced, to be replicated
func.func @loop(%x: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>}, %go: tensor<i1>)
    -> (tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, tensor<12x6xf32>) {
  %0:2 = stablehlo.while(%v = %x, %w = %x) : tensor<12x6xf32>, tensor<12x6xf32>
      attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>, <@mesh, [{}, {}]>]>}
  cond {
    stablehlo.return %go : tensor<i1>
  } do {
    stablehlo.return %v, %v : tensor<12x6xf32>, tensor<12x6xf32>
  }
  return %0#0, %0#1 : tensor<12x6xf32>, tensor<12x6xf32>
}

// CHECK-LABEL: func @branches(
// CHECK:           %[[ALL:.*]] = sdy.all_gather [{}, {"b"}] %arg1
// CHECK-NEXT:      %[[CUT:.*]] = sdy.all_slice [{"a"}, {}] %[[ALL]]
// CHECK-NEXT:      stablehlo.return %[[CUT]]
// CHECK:           %[[OTHER:.*]] = stablehlo.constant
// CHECK:           %[[PART:.*]] = sdy.all_slice [{"a"}, {}] %{{.*}} out_sharding=<@mesh, [{"a"}, {}]>
// CHECK-NEXT:      stablehlo.return %[[PART]]
func.func @branches(%i: tensor<i32>, %x: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>})
    -> (tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %x : tensor<12x6xf32>
  }, {
    %1 = stablehlo.constant dense<1.0> : tensor<12x6xf32>
    stablehlo.return %1 : tensor<12x6xf32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<i32>) -> tensor<12x6xf32>
  return %0 : tensor<12x6xf32>
}

// In a manual computation along the other axes.
// CHECK-LABEL: func @manual(
// CHECK:           %[[ALL:.*]] = sdy.all_gather [{}, {"b"}] %arg1 out_sharding=<@mesh, [{}, {}]>
// CHECK-NEXT:      %[[BACK:.*]] = stablehlo.reverse %[[ALL]], dims = [1]
// CHECK-NEXT:      %[[OWN:.*]] = sdy.all_slice [{}, {"b"}] %[[BACK]] out_sharding=<@mesh, [{}, {"b"}]>
// CHECK-NEXT:      sdy.return %[[OWN]]
func.func @manual(%x: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
    -> (tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {"b"}]>] out_shardings=[<@mesh, [{"a"}, {"b"}]>]
      manual_axes={"a"} (%y: tensor<6x6xf32>) {
    %1 = stablehlo.reverse %y, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"b"}]>]>} : tensor<6x6xf32>
    sdy.return %1 : tensor<6x6xf32>
  } : (tensor<12x6xf32>) -> tensor<12x6xf32>
  return %0 : tensor<12x6xf32>
}
