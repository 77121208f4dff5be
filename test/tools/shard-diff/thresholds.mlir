// RUN: sed 's/\[{}, {"model"}\]/[{"model"}, {}]/' %s > %t.mlir
// RUN: shard-diff %s %t.mlir --threshold bytes=1GiB,time=1s --threshold collectives=100 > %t.within
// RUN: FileCheck %s --check-prefix=WITHIN < %t.within
// RUN: not shard-diff %s %t.mlir --threshold bytes=5% 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: not shard-diff %s %t.mlir --threshold shardings=1,time=1s 2>&1 | FileCheck %s --check-prefix=SHARDINGS
// RUN: not shard-diff %s %t.mlir --threshold bytes=1kB,annotations=0 --format markdown | FileCheck %s --check-prefix=MARKDOWN
// RUN: not shard-diff %s %t.mlir --threshold bytes=1kB --format json | FileCheck %s --check-prefix=JSON

// A decrease exceeds no threshold.
// RUN: shard-diff %t.mlir %s --threshold bytes=0,time=0

// WITHIN: bytes
// BYTES: shard-diff: the change of bytes, +{{.*}} KiB (+{{.*}}%), exceeds the threshold of 5%
// SHARDINGS: shard-diff: the change of shardings, {{.*}}, exceeds the threshold of 1
// MARKDOWN: - :x: the change of bytes, +{{.*}}, exceeds the threshold of 1kB
// MARKDOWN: - :x: the change of annotations, 1, exceeds the threshold of 0
// JSON: "exceeded": [
// JSON-NEXT: "bytes"

sdy.mesh @mesh = <["data"=2, "model"=4]>

func.func @main(
    %x: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
    %w1: tensor<128x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
    %w2: tensor<256x128xf32>) -> tensor<64x128xf32> {
  %0 = stablehlo.dot %x, %w1 : (tensor<64x128xf32>, tensor<128x256xf32>) -> tensor<64x256xf32>
  %1 = stablehlo.dot %0, %w2 : (tensor<64x256xf32>, tensor<256x128xf32>) -> tensor<64x128xf32>
  return %1 : tensor<64x128xf32>
}
