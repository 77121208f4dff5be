// RUN: shard-opt %s --sdy-constant-or-scalar-merger=expressions=true | FileCheck %s
// RUN: shard-opt %s --sdy-constant-or-scalar-merger | FileCheck %s --check-prefix=CONSTANTS

sdy.mesh @mesh = <["x"=2]>

// Entire expressions that the splitter has split merge if all their parts are equal, shardings included.
// CHECK-LABEL: func.func @expressions
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant
// CHECK-NEXT: %[[EMPTY:.*]] = tensor.empty() : tensor<8xf32>
// CHECK-NEXT: %[[SHARDED:.*]] = tensor.empty() {{.*}}[{"x"}]
// CHECK-NEXT: %[[FILLED:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[EMPTY]] :
// CHECK-NEXT: %[[IOTA:.*]] = stablehlo.iota
// CHECK-NEXT: %[[ADDED:.*]] = stablehlo.add %[[IOTA]], %[[IOTA]]
// CHECK-NEXT: return %[[FILLED]], %[[FILLED]], %[[SHARDED]], %[[ADDED]], %[[ADDED]]
// CONSTANTS-LABEL: func.func @expressions
// CONSTANTS-COUNT-3: tensor.empty
// CONSTANTS-COUNT-2: linalg.fill
// CONSTANTS-COUNT-2: stablehlo.iota
// CONSTANTS-COUNT-2: stablehlo.add
func.func @expressions() -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xi32>, tensor<8xi32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<8xf32>
  %1 = tensor.empty() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  %2 = tensor.empty() : tensor<8xf32>
  %3 = linalg.fill ins(%zero : f32) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  %4 = linalg.fill ins(%zero : f32) outs(%2 : tensor<8xf32>) -> tensor<8xf32>
  %5 = stablehlo.iota dim = 0 : tensor<8xi32>
  %6 = stablehlo.iota dim = 0 : tensor<8xi32>
  %7 = stablehlo.add %5, %6 : tensor<8xi32>
  %8 = stablehlo.add %6, %5 : tensor<8xi32>
  return %3, %4, %1, %7, %8 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xi32>, tensor<8xi32>
}

// Bodies have to be equal, too.
// CHECK-LABEL: func.func @bodies
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return %[[UP:.*]], %[[UP]], %
func.func @bodies() -> (tensor<8xindex>, tensor<8xindex>, tensor<8xindex>) {
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %empty = tensor.empty() : tensor<8xindex>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%empty : tensor<8xindex>) {
  ^bb0(%out: index):
    %i = linalg.index 0 : index
    %s = arith.addi %i, %one : index
    linalg.yield %s : index
  } -> tensor<8xindex>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%empty : tensor<8xindex>) {
  ^bb0(%out: index):
    %i = linalg.index 0 : index
    %s = arith.addi %i, %one : index
    linalg.yield %s : index
  } -> tensor<8xindex>
  %2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%empty : tensor<8xindex>) {
  ^bb0(%out: index):
    %i = linalg.index 0 : index
    %s = arith.addi %i, %two : index
    linalg.yield %s : index
  } -> tensor<8xindex>
  return %0, %1, %2 : tensor<8xindex>, tensor<8xindex>, tensor<8xindex>
}

// Ops on other operands stay, ops on scalars included.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-2: stablehlo.negate
// CHECK-COUNT-2: stablehlo.add {{.*}} : tensor<f32>
// CHECK: return
func.func @others(%a: tensor<8xf32>, %s: tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) {
  %0 = stablehlo.negate %a : tensor<8xf32>
  %1 = stablehlo.negate %a : tensor<8xf32>
  %2 = stablehlo.add %s, %s : tensor<f32>
  %3 = stablehlo.add %s, %s : tensor<f32>
  return %0, %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>
}
