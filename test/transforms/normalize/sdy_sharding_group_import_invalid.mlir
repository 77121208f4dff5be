// RUN: shard-opt %s --split-input-file --sdy-sharding-group-import --verify-diagnostics

func.func @different_shapes(%a: tensor<4xf32>, %b: tensor<4x1xf32>) {
  // expected-note @+1 {{an earlier tensor of the group has type tensor<4xf32>}}
  sdy.sharding_group %a group_id=3 : tensor<4xf32>
  // expected-error @+1 {{the tensors of sharding group 3 must have the same shape, but this one has type tensor<4x1xf32>}}
  sdy.sharding_group %b group_id=3 : tensor<4x1xf32>
  return
}

// -----

func.func @in_and_out(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{an earlier tensor of the group is here}}
  sdy.sharding_group %a group_id=5 : tensor<4xf32>
  %0 = sdy.manual_computation(%a) in_shardings=[<mesh<["x"=2]>, [{?}]>] out_shardings=[<mesh<["x"=2]>, [{?}]>] manual_axes={} (%b: tensor<4xf32>) {
    // expected-error @+1 {{sharding group 5 crosses the boundary of a manual computation: its tensors must all be in the body of the same manual computation, or all outside}}
    sdy.sharding_group %b group_id=5 : tensor<4xf32>
    sdy.return %b : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @in_two(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = sdy.manual_computation(%a) in_shardings=[<mesh<["x"=2]>, [{?}]>] out_shardings=[<mesh<["x"=2]>, [{?}]>] manual_axes={} (%b: tensor<4xf32>) {
    // expected-note @+1 {{an earlier tensor of the group is here}}
    sdy.sharding_group %b group_id=1 : tensor<4xf32>
    sdy.return %b : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  %1 = sdy.manual_computation(%a) in_shardings=[<mesh<["x"=2]>, [{?}]>] out_shardings=[<mesh<["x"=2]>, [{?}]>] manual_axes={} (%b: tensor<4xf32>) {
    // expected-error @+1 {{sharding group 1 crosses the boundary of a manual computation}}
    sdy.sharding_group %b group_id=1 : tensor<4xf32>
    sdy.return %b : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
