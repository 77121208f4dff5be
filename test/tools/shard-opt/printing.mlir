// RUN: shard-opt %s | FileCheck %s
// RUN: shard-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: shard-opt %s --mlir-print-op-generic | shard-opt | FileCheck %s
// RUN: shard-opt %s --mlir-print-debuginfo | FileCheck %s --check-prefix=DEBUG
// RUN: shard-opt %s --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=LOCAL
// RUN: shard-opt %s --mlir-elide-elementsattrs-if-larger=2 | FileCheck %s --check-prefix=ELIDED

// CHECK: sdy.mesh @mesh = <["x"=2]>
// CHECK: arith.constant dense<[1, 2, 3]> : tensor<3xi32>
// CHECK: sdy.reshard %{{.*}} <@mesh, [{"x"}]> : tensor<3xi32>
// GENERIC: "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"}> : () -> ()
// GENERIC: "sdy.reshard"(%{{.*}}) <{sharding = #sdy.sharding<@mesh, [{"x"}]>}> : (tensor<3xi32>) -> tensor<3xi32>
// DEBUG: sdy.reshard %{{.*}} <@mesh, [{"x"}]> : tensor<3xi32> loc(#[[LOC:.*]])
// DEBUG: #[[LOC]] = loc("{{.*}}printing.mlir":[[# @LINE + 6]]:8)
// LOCAL: sdy.reshard %{{.*}} <@mesh, [{"x"}]> : tensor<3xi32> loc("{{.*}}printing.mlir":[[# @LINE + 5]]:8)
// ELIDED: arith.constant dense_resource<__elided__> : tensor<3xi32>
sdy.mesh @mesh = <["x"=2]>
func.func @f() -> tensor<3xi32> {
  %0 = arith.constant dense<[1, 2, 3]> : tensor<3xi32>
  %1 = sdy.reshard %0 <@mesh, [{"x"}]> : tensor<3xi32>
  return %1 : tensor<3xi32>
}
