// RUN: shard-opt %s --shard-write-certificate=file=%t.json | FileCheck %s
// RUN: FileCheck %s --check-prefix=JSON < %t.json
// RUN: not shard-opt %s --shard-write-certificate 2>&1 | FileCheck %s --check-prefix=FILE

// The module is not changed; sub-axes are listed as separate axes.
// CHECK: stablehlo.while

// JSON: {"mesh":{{\[\[}}"x:(1)2",2],["x:(2)2",2],["y",3]]
// JSON-SAME: "functions":{"main":{"arguments":{{\[\[\[}}"x:(1)2"],["y"]],[]],"results":{{\[\[\[}}"x:(1)2","x:(2)2"],[]]]}}
// JSON-SAME: "loops":{{\[\[\[\]}},{{\[\[}}"x:(1)2"],[]]]]

// FILE: the certificate requires an output file: set file=NAME

sdy.mesh @mesh = <["x"=4, "y"=3]>

func.func @main(
    %x: tensor<8x9xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {"y"}]>}, %n: tensor<i32>
) -> (tensor<8x9xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %n, %y = %x) : tensor<i32>, tensor<8x9xf32>
      attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"x":(1)2}, {}]>]>}
  cond {
    %2 = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %2 = stablehlo.add %i, %one : tensor<i32>
    %3 = stablehlo.tanh %y : tensor<8x9xf32>
    stablehlo.return %2, %3 : tensor<i32>, tensor<8x9xf32>
  }
  return %0#1 : tensor<8x9xf32>
}

func.func private @callee(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
