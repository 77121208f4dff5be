// RUN: shard-explain %s %%w | FileCheck %s
// RUN: shard-explain %s | FileCheck %s --check-prefix=PROGRAM
// RUN: shard-explain %s --collectives=stablehlo %%0 | FileCheck %s --check-prefix=PRODUCT
// RUN: shard-explain %s --format=json %%w | FileCheck %s --check-prefix=JSON
// RUN: shard-explain %s --what-if '%%w: [{"model"}, {}]' | FileCheck %s --check-prefix=WHATIF
// RUN: shard-explain %s --suggest 3 | FileCheck %s --check-prefix=SUGGEST
// RUN: shard-opt %s --explain %%w --explain='result 0' 2>&1 >%t.mlir | FileCheck %s --check-prefixes=CHECK,RESULT
// RUN: FileCheck %s --check-prefix=UNCHANGED < %t.mlir
// RUN: not shard-opt %s --explain %%q 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: shard-run -n 8 --engine=pjrt %s --explain %%w | FileCheck %s

sdy.mesh @mesh = <["data"=4, "model"=2]>

func.func @layer(
    %x: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", ?}, {?}]>},
    %w: tensor<64x32xf32>) -> tensor<16x32xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{?}, {"model"}]> : tensor<16x32xf32>
  %2 = stablehlo.tanh %1 : tensor<16x32xf32>
  return %2 : tensor<16x32xf32>
}

// CHECK: {{^}}%w: argument 1 of @layer, tensor<64x32xf32>, at {{.*}}values.mlir:16:5
// CHECK-NEXT: {{^}}  sharded as <@mesh, [{}, {"model"}]>
// CHECK-NEXT: {{^}}  dimension 1 on "model":
// CHECK-NEXT: from constraint at {{.*}}values.mlir:19:8: <@mesh, [{?}, {"model"}]>
// CHECK-NEXT: → stablehlo.dot_general at 17:8, factor j: result 0 %0 to operand 1 %w

// PROGRAM: Arguments and results
// PROGRAM-NEXT: %x tensor<16x64xf32> [{"data"}, {}]
// PROGRAM-NEXT: %w tensor<64x32xf32> [{}, {"model"}] from constraint
// PROGRAM: Communication: 0 collectives, 0 B for a device, 0 s

// PRODUCT: %0: 'stablehlo.dot_general' in @layer
// PRODUCT: dimension 0 on "data":
// PRODUCT-NEXT: from argument %x at

// JSON: "name": "%w",
// JSON: "axis": "\"model\"",
// JSON: "kind": "constraint",

// WHATIF: a device receives 0 B → 256 B
// WHATIF: collectives 0 → 1
// WHATIF: %w at {{.*}}: [{}, {"model"}] → [{"model"}, {}]

// RESULT: result 0 of @layer, tensor<16x32xf32>, at
// UNCHANGED-NOT: sdy.sharding = #sdy.sharding_per_value
// NONE: shard-opt: error: --explain: no tensor matches '%q': a tensor is selected by
// SUGGEST: No single annotation that was tried saves bytes
