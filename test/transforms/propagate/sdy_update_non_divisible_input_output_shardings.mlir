// RUN: shard-opt %s --split-input-file --sdy-update-non-divisible-input-output-shardings | FileCheck %s --check-prefixes=CHECK,PREFIX
// RUN: shard-opt %s --split-input-file --sdy-update-non-divisible-input-output-shardings=common-grid=true | FileCheck %s --check-prefix=GRID

sdy.mesh @mesh = <["x"=4, "y"=6]>

// The longest prefix that divides stays: 4 of 8 and 2 of the rest, 3 of the 6 of "y", and the 2 of a sub-axis.
// CHECK: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y":(1)2}]>},
// CHECK-SAME: %arg1: tensor<3x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)3, ?}, {}]>},
// CHECK-SAME: %arg2: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(3)2}], unreduced={"y":(1)3}>},
// CHECK-SAME: %arg3: tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}p1]>},
// CHECK-SAME: %arg4: tensor<?xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
// CHECK-SAME: -> (tensor<8xf32> {jax.note}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2}]>})
// CHECK-NEXT: call @callee(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y":(1)2}]>]>}
// CHECK-NEXT: stablehlo.abs %{{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>}
// CHECK-NEXT: sdy.manual_computation(%{{.*}}) in_shardings=[<@mesh, [{"x", "y":(1)2}]>] out_shardings=[<@mesh, [{"x", "y":(1)2}]>] manual_axes={"x"}
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>},
                %b: tensor<3x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {"x"}]>},
                %c: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(3)2, "x"}], unreduced={"y":(1)3}>},
                %d: tensor<24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}p1]>},
                %e: tensor<?xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<8xf32> {jax.note}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
  %0 = call @callee(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  // Values inside of a function may be padded.
  %1 = stablehlo.abs %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : tensor<8xf32>
  %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"x", "y"}]>] out_shardings=[<@mesh, [{"x", "y"}]>] manual_axes={"x"} (%arg: tensor<2xf32>) {
    sdy.return %arg : tensor<2xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %1, %2 : tensor<8xf32>, tensor<8xf32>
}

func.func private @callee(%a: tensor<8xf32>) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}

// The operand of a collective keeps its sharding.
// CHECK: func.func @collectives(%arg0: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
// CHECK-NEXT: %[[AGAIN:.*]] = sdy.reshard %arg0 <@mesh, [{"x"}]>
// CHECK-NEXT: sdy.all_reduce {"y"} %[[AGAIN]] out_sharding=<@mesh, [{"x"}]>
// CHECK-NEXT: sdy.all_gather {{\[}}{"x"}] %arg1 out_sharding=<@mesh, [{}]>
func.func @collectives(%a: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                       %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<7xf32>, tensor<8xf32>) {
  %0 = sdy.all_reduce {"y"} %a out_sharding=<@mesh, [{"x"}]> : tensor<7xf32>
  %1 = sdy.all_gather [{"x"}] %b out_sharding=<@mesh, [{}]> : tensor<8xf32>
  return %0, %1 : tensor<7xf32>, tensor<8xf32>
}

// -----

// With `common-grid`, the second tensor is replicated: no grid has axes for sub-axes of sizes 2 and 3.

sdy.mesh @mesh = <["x"=6, "y"=4]>

// PREFIX: func.func @sub_axes(%arg0: tensor<8xf32> {{.*}}[{"x":(1)2}]{{.*}}, %arg1: tensor<9xf32> {{.*}}[{"x":(1)3}]
// GRID: func.func @sub_axes(%arg0: tensor<8xf32> {{.*}}[{"x":(1)2}]{{.*}}, %arg1: tensor<9xf32> {{.*}}[{}]{{.*}}, %arg2: tensor<6xf32> {{.*}}[{"y":(1)2}]
func.func @sub_axes(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                    %b: tensor<9xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                    %c: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
  return
}
