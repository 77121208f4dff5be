// RUN: shard-run %s | FileCheck %s
// RUN: shard-opt %s --spmd-pipeline | FileCheck %s --check-prefix=LOCAL
// RUN: shard-opt %s --spmd-pipeline | shard-opt --pass-pipeline='builtin.module(func.func(convert-shard-to-mpi,canonicalize))' | FileCheck %s --check-prefix=LOWERED

// A feed-forward layer with a destination for its result: the destination has the sharding of the result and needs no
// communication. A caller's schedule can bufferize it in place.
// CHECK-COUNT-2: OK
// LOCAL-LABEL: func.func @main
// LOCAL: shard.all_gather %arg0 on @grid grid_axes = [0] gather_axis = 1
// LOCAL: linalg.matmul
// LOCAL: linalg.matmul
// LOCAL: %[[RESULT:.*]] = shard.reduce_scatter {{.*}} on @grid grid_axes = [0] scatter_dim = 1 : tensor<8x16xf32> -> tensor<8x8xf32>
// LOCAL-NEXT: %[[WRITTEN:.*]] = bufferization.materialize_in_destination %[[RESULT]] in %arg3 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
// LOCAL-NOT: shard.all
// LOCAL: return %[[WRITTEN]]
// LOWERED-COUNT-2: mpi.
// LOWERED-NOT: shard.all
module attributes {mpi.dlti = #dlti.map<"MPI:Implementation" = "MPICH", "MPI:comm_world_size" = 2, "MPI:comm_world_rank" = 0>} {
  shard.grid @grid(shape = 2)
  func.func @main(%x: tensor<8x16xf32>, %w1: tensor<16x32xf32>, %w2: tensor<32x16xf32>, %into: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
    %columns = shard.sharding @grid split_axes = [[], [0]] : !shard.sharding
    %rows = shard.sharding @grid split_axes = [[0], []] : !shard.sharding
    %xs = shard.shard %x to %columns : tensor<8x16xf32>
    %w1s = shard.shard %w1 to %columns : tensor<16x32xf32>
    %w2s = shard.shard %w2 to %rows : tensor<32x16xf32>
    %intos = shard.shard %into to %columns : tensor<8x16xf32>
    %zero = arith.constant 0.0 : f32
    %e0 = tensor.empty() : tensor<8x32xf32>
    %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<8x32xf32>) -> tensor<8x32xf32>
    %h = linalg.matmul ins(%xs, %w1s : tensor<8x16xf32>, tensor<16x32xf32>) outs(%f0 : tensor<8x32xf32>) -> tensor<8x32xf32>
    %a = math.tanh %h : tensor<8x32xf32>
    %e1 = tensor.empty() : tensor<8x16xf32>
    %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8x16xf32>) -> tensor<8x16xf32>
    %y = linalg.matmul ins(%a, %w2s : tensor<8x32xf32>, tensor<32x16xf32>) outs(%f1 : tensor<8x16xf32>) -> tensor<8x16xf32>
    %r = bufferization.materialize_in_destination %y in %intos : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %rs = shard.shard %r to %columns annotate_for_users : tensor<8x16xf32>
    return %rs, %intos : tensor<8x16xf32>, tensor<8x16xf32>
  }
}
