// RUN: shard-explain %s -o %t.svg 2>&1 | FileCheck %s --check-prefix=QUIET --allow-empty
// RUN: FileCheck %s < %t.svg
// RUN: shard-explain %s --format=svg %%y | FileCheck %s --check-prefix=CHOSEN

sdy.mesh @mesh = <["data"=2, "model"=2]>

func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>},
                %w: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<8x4xf32>
  %y = stablehlo.dot %x, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %z = stablehlo.tanh %y : tensor<8x4xf32>
  %0 = stablehlo.add %z, %one : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// QUIET-NOT: {{.}}

// CHECK: <title>picture.mlir</title>
// CHECK: prefers-color-scheme: dark
// CHECK: 4 devices: mesh data=2, model=2
// CHECK: 2 collectives, by which a device receives 64 B
// CHECK: >%x<
// CHECK: >argument 0<
// CHECK: >8x16xf32<
// CHECK: >[{"data"}, {"model"}]<
// CHECK: >0</text>
// CHECK: >3</text>
// CHECK: >128 B on a device<
// CHECK: >%w<
// CHECK: >[{"model"}, {}]<
// CHECK-NOT: >%one<
// CHECK: >%y<
// CHECK-NOT: >%z<
// CHECK: >reduce-scatter<
// CHECK: >on model=2: 32 B<
// CHECK: >all-gather<
// The picture shows the result of an elementwise op at the return.
// CHECK: >%0<
// CHECK-NOT: >result 0<

// CHOSEN-NOT: >%x<
// CHOSEN: >%y<
// CHOSEN-NOT: >%0<
