// RUN: shard-opt %s --split-input-file --shard-check-annotations --verify-diagnostics -o /dev/null
// RUN: shard-opt %s --split-input-file --spmd-pipeline -o /dev/null 2>&1 | FileCheck %s
// RUN: shard-opt %s --split-input-file --sdy-propagation-pipeline -o /dev/null 2>&1 | FileCheck %s
// RUN: shard-opt %s --split-input-file --shard-spmdize=collectives=stablehlo -o /dev/null 2>&1 | FileCheck %s
// RUN: shard-opt %s --split-input-file --shard-reshard -o /dev/null 2>&1 | FileCheck %s

// Each pipeline warns once.
// CHECK:     shard_check_annotations.mlir:[[# @LINE + 10]]:17: warning: 'sdy.shardin' is not an attribute of sdy and is not read, and nothing in the module is sharded; did you mean 'sdy.sharding'?
// CHECK-NOT: 'sdy.shardin'
// CHECK:     warning: 'mhlo.sharding' is an attribute of GSPMD
// CHECK-NOT: 'mhlo.sharding'
// CHECK:     warning: nothing is sharded
// CHECK-NOT: warning: 'sharding'
// CHECK:     warning: nothing is sharded
// CHECK-NOT: warning: nothing is sharded
sdy.mesh @mesh = <["x"=2]>
// expected-warning @+1 {{'sdy.shardin' is not an attribute of sdy and is not read, and nothing in the module is sharded; did you mean 'sdy.sharding'?}}
func.func @main(%a: tensor<8xf32> {sdy.shardin = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.negate %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// expected-warning @+1 {{'mhlo.sharding' is an attribute of GSPMD and is not read, and nothing in the module is sharded; write 'sdy.sharding'}}
func.func @main(%a: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}

// -----

// expected-warning @below {{nothing is sharded: no sharding uses an axis of a mesh; annotate a tensor, {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, or give a front end in_shardings}}
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<8xf32> {
    return %a : tensor<8xf32>
  }
}

// -----

// The names of attributes of sdy operations cause no warning.
// expected-warning @below {{nothing is sharded}}
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.sharding_constraint %a <@mesh, [{}]> : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

// A misspelt attribute beside a correct one.
sdy.mesh @mesh = <["x"=2]>
// expected-warning @+1 {{'sdy.sharding_rul' is not an attribute of sdy and is not read; did you mean 'sdy.sharding_rule'?}}
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>, sdy.sharding_rul = 1 : i32}) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}

// -----

// A tensor is sharded, but the arguments have no shardings.
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// No value of this module could be sharded.
func.func @main(%a: f32) -> f32 {
  return %a : f32
}
