// RUN: shard-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(shard-expand-merged-dims))' | FileCheck %s
// RUN: shard-opt %s --split-input-file --shard-propagate | FileCheck %s --check-prefix=PROPAGATED

sdy.mesh @mesh = <["data"=2, "model"=2]>

// The batch and the heads of attention, which a matmul of tosa merges in one dimension.
// CHECK-LABEL: @attention
// CHECK:      %[[SCALED:.*]] = tosa.mul %arg0, %{{.*}}, %{{.*}} : (tensor<4x6x8x3xf32>, tensor<1x1x1x1xf32>, tensor<1xi8>)
// CHECK:      %[[SUMS:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]
// CHECK-SAME:   ins(%[[SCALED]], %arg1 : tensor<4x6x8x3xf32>, tensor<4x6x3x8xf32>) outs(%{{.*}} : tensor<4x6x8x8xf32>)
// CHECK:      %[[MOST:.*]] = tosa.reduce_max %[[SUMS]] {axis = 3 : i32} : (tensor<4x6x8x8xf32>) -> tensor<4x6x8x1xf32>
// CHECK:      %[[LESS:.*]] = tosa.sub %[[SUMS]], %[[MOST]] : (tensor<4x6x8x8xf32>, tensor<4x6x8x1xf32>) -> tensor<4x6x8x8xf32>
// CHECK-NEXT: return %[[LESS]]
// PROPAGATED-LABEL: @attention
// PROPAGATED: tosa.sub {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}, {}, {}]>]>}
func.func @attention(%q: tensor<4x6x8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}, {}, {}]>},
                     %k: tensor<4x6x3x8xf32>) -> tensor<4x6x8x8xf32> {
  %zero = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %shift = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %scale = "tosa.const"() <{values = dense<0.5> : tensor<1x1x1xf32>}> : () -> tensor<1x1x1xf32>
  %rows = tosa.const_shape {values = dense<[24, 8, 3]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %columns = tosa.const_shape {values = dense<[24, 3, 8]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %split = tosa.const_shape {values = dense<[4, 6, 8, 8]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %0 = tosa.reshape %q, %rows : (tensor<4x6x8x3xf32>, !tosa.shape<3>) -> tensor<24x8x3xf32>
  %1 = tosa.mul %0, %scale, %shift : (tensor<24x8x3xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<24x8x3xf32>
  %2 = tosa.reshape %k, %columns : (tensor<4x6x3x8xf32>, !tosa.shape<3>) -> tensor<24x3x8xf32>
  %3 = tosa.matmul %1, %2, %zero, %zero : (tensor<24x8x3xf32>, tensor<24x3x8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<24x8x8xf32>
  %4 = tosa.reduce_max %3 {axis = 2 : i32} : (tensor<24x8x8xf32>) -> tensor<24x8x1xf32>
  %5 = tosa.sub %3, %4 : (tensor<24x8x8xf32>, tensor<24x8x1xf32>) -> tensor<24x8x8xf32>
  %6 = tosa.reshape %5, %split : (tensor<24x8x8xf32>, !tosa.shape<4>) -> tensor<4x6x8x8xf32>
  return %6 : tensor<4x6x8x8xf32>
}

// -----

// A linear layer on tokens whose second dimension is the batch: the bias is added to tokens in one dimension, after a
// reshape that drops the batch dimension of the matmul.
// CHECK-LABEL: @linear
// CHECK:      %[[SUMS:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1x6x8x5xf32>)
// CHECK:      %[[ROWS:.*]] = tosa.reshape %[[SUMS]], %{{.*}} : (tensor<1x6x8x5xf32>, !tosa.shape<3>) -> tensor<6x8x5xf32>
// CHECK:      %[[BIASED:.*]] = tosa.add %[[ROWS]], %{{.*}} : (tensor<6x8x5xf32>, tensor<1x1x5xf32>) -> tensor<6x8x5xf32>
// CHECK-NEXT: return %[[BIASED]]
func.func @linear(%x: tensor<6x8x4xf32>, %w: tensor<1x4x5xf32>, %b: tensor<1x5xf32>) -> tensor<6x8x5xf32> {
  %zero = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %merged = tosa.const_shape {values = dense<[1, 48, 4]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %dropped = tosa.const_shape {values = dense<[48, 5]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %split = tosa.const_shape {values = dense<[6, 8, 5]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %0 = tosa.reshape %x, %merged : (tensor<6x8x4xf32>, !tosa.shape<3>) -> tensor<1x48x4xf32>
  %1 = tosa.matmul %0, %w, %zero, %zero : (tensor<1x48x4xf32>, tensor<1x4x5xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x48x5xf32>
  %2 = tosa.reshape %1, %dropped : (tensor<1x48x5xf32>, !tosa.shape<2>) -> tensor<48x5xf32>
  %3 = tosa.add %2, %b : (tensor<48x5xf32>, tensor<1x5xf32>) -> tensor<48x5xf32>
  %4 = tosa.reshape %3, %split : (tensor<48x5xf32>, !tosa.shape<3>) -> tensor<6x8x5xf32>
  return %4 : tensor<6x8x5xf32>
}

// -----

// Integers have zero points, which only the matmul of tosa subtracts.
// CHECK-LABEL: @integers
// CHECK: tosa.matmul
func.func @integers(%q: tensor<4x6x8x3xi8>, %k: tensor<24x3x8xi8>) -> tensor<4x6x8x8xi32> {
  %point = "tosa.const"() <{values = dense<3> : tensor<1xi8>}> : () -> tensor<1xi8>
  %rows = tosa.const_shape {values = dense<[24, 8, 3]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %split = tosa.const_shape {values = dense<[4, 6, 8, 8]> : tensor<4xindex>} : () -> !tosa.shape<4>
  %0 = tosa.reshape %q, %rows : (tensor<4x6x8x3xi8>, !tosa.shape<3>) -> tensor<24x8x3xi8>
  %1 = tosa.matmul %0, %k, %point, %point : (tensor<24x8x3xi8>, tensor<24x3x8xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<24x8x8xi32>
  %2 = tosa.reshape %1, %split : (tensor<24x8x8xi32>, !tosa.shape<4>) -> tensor<4x6x8x8xi32>
  return %2 : tensor<4x6x8x8xi32>
}
