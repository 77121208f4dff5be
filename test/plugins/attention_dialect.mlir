// RUN: shard-opt %s --split-input-file --load %examples/attention_dialect.py --sdy-propagation-pipeline | FileCheck %s
// RUN: shard-opt %s --split-input-file --load %examples/attention_dialect.py --sdy-op-priority-propagate | FileCheck %s --check-prefix=ORDER
// RUN: shard-opt %s --split-input-file --load %examples/attention_dialect.py --sdy-op-priority-propagate=op-priorities=attn.scores | FileCheck %s --check-prefix=SCORES
// RUN: shard-opt %s --split-input-file --load %examples/attention_dialect.py --sdy-report-unknown-ops -o /dev/null 2>&1 | FileCheck %s --check-prefix=KNOWN --allow-empty

// KNOWN-NOT: remark

sdy.mesh @mesh = <["data"=2, "model"=4]>

// The shardings of the query's batch and heads are propagated to all tensors, into the layers and out of them.
// CHECK-LABEL: func.func @layers
// CHECK-SAME: %arg1: tensor<8x4x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}, {}, {}]>}
// CHECK-SAME: %arg2: tensor<8x4x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}, {}, {}]>}
// CHECK-SAME: -> (tensor<8x4x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}, {}, {}]>})
// CHECK: "attn.constant"() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}, {}, {}]>]>
// CHECK: "attn.scores"{{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}, {}, {}]>]>}
// CHECK: "attn.mask"{{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}, {}, {}]>]>}
// CHECK: "attn.softmax"{{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}, {}, {}]>]>}
// CHECK: "attn.attend"{{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}, {}, {}]>]>}
// CHECK: attn.body_shardings = #sdy.sharding_per_value<[<@mesh, [{"data", ?}, {"model", ?}, {?}, {?}]>]>
// CHECK-SAME: sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}, {}, {}]>]>
func.func @layers(%query: tensor<8x4x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}, {}, {}]>},
                  %key: tensor<8x4x16x32xf32>, %value: tensor<8x4x16x32xf32>) -> tensor<8x4x16x32xf32> {
  %mask = "attn.constant"() {value = dense<0.0> : tensor<8x4x16x16xf32>} : () -> tensor<8x4x16x16xf32>
  %0 = "attn.layers"(%query) ({
  ^bb0(%x: tensor<8x4x16x32xf32>):
    %1 = "attn.scores"(%x, %key) : (tensor<8x4x16x32xf32>, tensor<8x4x16x32xf32>) -> tensor<8x4x16x16xf32>
    %2 = "attn.mask"(%1, %mask) : (tensor<8x4x16x16xf32>, tensor<8x4x16x16xf32>) -> tensor<8x4x16x16xf32>
    %3 = "attn.softmax"(%2) : (tensor<8x4x16x16xf32>) -> tensor<8x4x16x16xf32>
    %4 = "attn.attend"(%3, %value) : (tensor<8x4x16x16xf32>, tensor<8x4x16x32xf32>) -> tensor<8x4x16x32xf32>
    "attn.yield"(%4) : (tensor<8x4x16x32xf32>) -> ()
  }) : (tensor<8x4x16x32xf32>) -> tensor<8x4x16x32xf32>
  return %0 : tensor<8x4x16x32xf32>
}

// -----

sdy.mesh @mesh = <["data"=2, "model"=4]>

// The constant does not propagate the sharding of one of its uses to the other.
// CHECK-LABEL: func.func @constant
// CHECK-DAG: "attn.constant"() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}, {}, {}]>]>
// CHECK-DAG: "attn.constant"() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"model"}, {}, {}]>]>
// CHECK: "attn.mask"(%arg0, %{{.*}}) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}, {}, {}]>]>}
// CHECK: "attn.mask"(%arg1, %{{.*}}) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"model"}, {}, {}]>]>}
func.func @constant(%a: tensor<8x4x2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}, {}, {}]>},
                    %b: tensor<8x4x2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}, {}]>})
    -> (tensor<8x4x2x2xf32>, tensor<8x4x2x2xf32>) {
  %mask = "attn.constant"() {value = dense<0.0> : tensor<8x4x2x2xf32>} : () -> tensor<8x4x2x2xf32>
  %0 = "attn.mask"(%a, %mask) : (tensor<8x4x2x2xf32>, tensor<8x4x2x2xf32>) -> tensor<8x4x2x2xf32>
  %1 = "attn.mask"(%b, %mask) : (tensor<8x4x2x2xf32>, tensor<8x4x2x2xf32>) -> tensor<8x4x2x2xf32>
  return %0, %1 : tensor<8x4x2x2xf32>, tensor<8x4x2x2xf32>
}

// -----

sdy.mesh @mesh = <["data"=2, "model"=4]>

// The sharding of the scores depends on which of their neighbours is propagated first.
// ORDER-LABEL: func.func @order
// ORDER: "attn.scores"{{.*}}[{?}, {?}, {?}, {"data", ?}]
// SCORES-LABEL: func.func @order
// SCORES: "attn.scores"{{.*}}[{?}, {?}, {"data", ?}, {?}]
func.func @order(%query: tensor<8x4x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {"data"}, {?}]>},
                 %key: tensor<8x4x16x32xf32>,
                 %value: tensor<8x4x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {"data"}, {?}]>})
    -> tensor<8x4x16x32xf32> {
  %0 = "attn.scores"(%query, %key) : (tensor<8x4x16x32xf32>, tensor<8x4x16x32xf32>) -> tensor<8x4x16x16xf32>
  %1 = "attn.attend"(%0, %value) : (tensor<8x4x16x16xf32>, tensor<8x4x16x32xf32>) -> tensor<8x4x16x32xf32>
  return %1 : tensor<8x4x16x32xf32>
}
