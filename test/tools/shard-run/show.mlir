// RUN: shard-run --show=propagated,local %s | FileCheck %s --check-prefixes=PROPAGATED,LOCAL,TABLE
// RUN: shard-run --show local %s | FileCheck %s --check-prefixes=ONLYLOCAL,LOCAL,TABLE

// PROPAGATED: // The program with all shardings
// PROPAGATED: sdy.mesh @mesh = <["x"=4]>
// PROPAGATED: func.func @add(%arg0: tensor<8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}
// PROPAGATED: stablehlo.add {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xi32>

// ONLYLOCAL-NOT: sdy.mesh
// LOCAL: // The local program
// LOCAL: shard.grid @mesh(shape = 4)
// LOCAL: func.func @add(%arg0: tensor<2xi32>
// LOCAL: stablehlo.add {{.*}} : tensor<2xi32>

// TABLE: @add on 4 ranks
// TABLE: tensor<8xi32>  <@mesh, [{"x"}]>  0.00e+00       0.00e+00       OK

sdy.mesh @mesh = <["x"=4]>

// A program without a function main runs its only public function.
func.func @add(%a: tensor<8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xi32> {
  %sum = stablehlo.add %a, %a : tensor<8xi32>
  return %sum : tensor<8xi32>
}
