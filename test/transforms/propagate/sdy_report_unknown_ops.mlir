// RUN: shard-opt %s --allow-unregistered-dialect --sdy-report-unknown-ops --verify-diagnostics
// RUN: shard-opt %s --allow-unregistered-dialect --sdy-report-unknown-ops -o /dev/null 2>&1 | FileCheck %s
// RUN: shard-opt %s --allow-unregistered-dialect --sdy-report-unknown-ops 2>/dev/null | FileCheck %s --check-prefix=IR

// CHECK: sdy_report_unknown_ops.mlir:[[# @LINE + 15]]:8: remark: 'my.unknown' has no sharding rule: no rule is registered for it (2 ops, the first one here)
// CHECK-NEXT: %0 = "my.unknown"(%a)
// CHECK-NOT: 'my.unknown'
// CHECK: remark: 'stablehlo.add' has no sharding rule: it has a dynamic shape (1 op)

// The program is not changed.
// IR: func.func @unknown
// IR-NEXT: "my.unknown"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>

func.func @unknown(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark @+5 {{'my.unknown' has no sharding rule: no rule is registered for it (2 ops, the first one here)}}




  %0 = "my.unknown"(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "my.unknown"(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

func.func @reasons(%a: tensor<?xf32>, %b: tensor<f32>, %c: tensor<4xi32>) -> tensor<?xf32> {
  // expected-remark @+1 {{'stablehlo.add' has no sharding rule: it has a dynamic shape (1 op)}}
  %0 = stablehlo.add %a, %a : tensor<?xf32>
  // expected-remark @+1 {{'my.region' has no sharding rule: no rule is registered for it (1 op)}}
  %1 = "my.region"() ({
    // expected-remark @+1 {{'my.inner' has no sharding rule}}
    %2 = "my.inner"(%c) : (tensor<4xi32>) -> tensor<4xi32>
    "my.yield"(%2) : (tensor<4xi32>) -> ()
  }) : () -> tensor<4xi32>
  return %0 : tensor<?xf32>
}

// These ops cannot prevent propagation: they lack tensors on one side, or have edges, or are in an op with a rule.
func.func @known(%a: tensor<8xf32>, %b: i1, %c: tensor<f32>) -> tensor<8xf32> {
  %0 = "my.constant"() : () -> tensor<8xf32>
  %1 = "my.scalar"(%c) : (tensor<f32>) -> tensor<f32>
  %2 = scf.if %b -> tensor<8xf32> {
    scf.yield %a : tensor<8xf32>
  } else {
    scf.yield %0 : tensor<8xf32>
  }
  %3 = stablehlo.add %2, %a : tensor<8xf32>
  %4 = func.call @callee(%3) : (tensor<8xf32>) -> tensor<8xf32>
  return %4 : tensor<8xf32>
}

func.func private @callee(tensor<8xf32>) -> tensor<8xf32>
