// RUN: shard-diff %s %S/Inputs/same.mlir | FileCheck %s --check-prefix=SAME
// RUN: shard-diff %s %S/Inputs/same.mlir --collectives stablehlo -o %t.md
// RUN: FileCheck %s --check-prefix=NONE < %t.md
// RUN: not shard-diff %s %S/Inputs/changed.mlir --width 60 | FileCheck %s
// RUN: not shard-diff %s %S/Inputs/changed.mlir --format markdown | FileCheck %s --check-prefix=MARKDOWN
// RUN: not shard-diff %s %S/Inputs/changed.mlir -o %t.json
// RUN: FileCheck %s --check-prefix=JSON < %t.json
// RUN: not shard-diff --collectives=stablehlo %s - < %S/Inputs/changed.mlir | FileCheck %s --check-prefix=INPUT

// SAME: no difference

// NONE: ### Sharding: `{{.*}}changed.mlir` → `{{.*}}same.mlir`
// NONE: No difference.

// CHECK: changed.mlir →
// CHECK: before after change
// CHECK: bytes 24.0 KiB 48.0 KiB +24.0 KiB (+100.0%)
// CHECK-NEXT: memory 112 KiB 240 KiB +128 KiB (+114.3%)
// CHECK-NEXT: time
// CHECK: collectives
// CHECK: 1 annotation changed
// CHECK: 1 argument arg1 tensor<128x256xf32>
// CHECK-NEXT: [{}, {"model"}] → [{"model"}, {}]
// CHECK: 3 shardings changed
// CHECK: 1 argument arg1 tensor<128x256xf32>
// CHECK: 1 argument arg2 tensor<256x128xf32>
// CHECK-NEXT: [{"model"}, {}] → replicated
// CHECK: stablehlo.dot tensor<64x256xf32>
// CHECK: collectives, and what a device receives
// CHECK: for stablehlo.dot
// CHECK-NEXT: 24.0 KiB → 48.0 KiB

// MARKDOWN: | bytes | 24.0 KiB | 48.0 KiB | +24.0 KiB (+100.0%) |
// MARKDOWN: <details><summary>1 annotation changed</summary>
// MARKDOWN: | count | tensor | type | before | after | at |
// MARKDOWN-NEXT: | --- | --- | --- | --- | --- | --- |
// MARKDOWN-NEXT: | 1 | argument `arg1` | `tensor<128x256xf32>` | `[{}, {"model"}]` | `[{"model"}, {}]` | `{{.*}}Inputs/changed.mlir:6:5` |
// MARKDOWN: </details>

// JSON: "exceeded": [],
// JSON: "annotations": [
// JSON: "what": "argument",
// JSON-NEXT: "name": "arg1",
// JSON: "quantities": {
// JSON-NEXT: "bytes": {
// JSON-NEXT: "before": 24576,
// JSON: "numbers": {
// JSON-NEXT: "annotations": 1,

// INPUT: changed.mlir → -
// INPUT: 1 annotation changed

sdy.mesh @mesh = <["data"=2, "model"=4]>

func.func @main(
    %x: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
    %w1: tensor<128x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
    %w2: tensor<256x128xf32>) -> tensor<64x128xf32> {
  %0 = stablehlo.dot %x, %w1 : (tensor<64x128xf32>, tensor<128x256xf32>) -> tensor<64x256xf32>
  %1 = stablehlo.dot %0, %w2 : (tensor<64x256xf32>, tensor<256x128xf32>) -> tensor<64x128xf32>
  %2 = stablehlo.abs %x : tensor<64x128xf32>
  %3 = stablehlo.add %1, %2 : tensor<64x128xf32>
  return %3 : tensor<64x128xf32>
}
