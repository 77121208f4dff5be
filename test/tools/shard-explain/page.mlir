// RUN: shard-explain %s -o %t.html --suggest 2 2>&1 | FileCheck %s --check-prefix=QUIET --allow-empty
// RUN: FileCheck %s < %t.html
// RUN: shard-explain %s --format=html %%0 | FileCheck %s --check-prefix=SELECTED
// RUN: shard-explain %s --collectives=stablehlo -o %t.htm && FileCheck %s --check-prefix=STABLEHLO < %t.htm

sdy.mesh @mesh = <["</script><b>"=2]>

func.func @main(
    %a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"</script><b>"}]>},
    %b: tensor<4x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Suggestions also try an annotation that shards nothing. This causes no warning about this program.
// QUIET-NOT: warning

// CHECK: <!doctype html>
// CHECK: <title>page.mlir</title>
// CHECK: <script type="application/json" id="data">{"title":"page.mlir","selected":-1,"suggestions":{{\[\[}}
// CHECK-SAME: \u003c/script>\u003cb>
// CHECK-NOT: </script><b>
// CHECK: </html>

// SELECTED: "selected":{{[0-9]+}},"suggestions":[],

// STABLEHLO: "operands disagree"
