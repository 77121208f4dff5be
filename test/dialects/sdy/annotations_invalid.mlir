// RUN: shard-opt %s --split-input-file --verify-diagnostics

func.func @negative_group(%a: tensor<8xf32>) {
  // expected-error @+1 {{'sdy.sharding_group' op has group_id -1, but a group id must not be negative}}
  sdy.sharding_group %a group_id=-1 : tensor<8xf32>
  return
}

// -----

func.func @narrow_group(%a: tensor<8xf32>) {
  // expected-error @+1 {{attribute 'group_id' must be an integer of type i64, got 4 : i32}}
  "sdy.sharding_group"(%a) {group_id = 4 : i32} : (tensor<8xf32>) -> ()
  return
}

// -----

func.func @group_of_unranked(%a: tensor<*xf32>) {
  // expected-error @+1 {{requires ranked tensors, got tensor<*xf32>}}
  sdy.sharding_group %a group_id=1 : tensor<*xf32>
  return
}

// -----

func.func @barrier_of_number(%a: i32) {
  // expected-error @+1 {{'sdy.propagation_barrier' op requires ranked tensors, got i32}}
  %0 = sdy.propagation_barrier %a allowed_direction=NONE : i32
  return
}

// -----

func.func @open_barrier(%a: tensor<8xf32>) {
  // expected-error @+1 {{blocks no direction}}
  %0 = sdy.propagation_barrier %a allowed_direction=BOTH : tensor<8xf32>
  return
}

// -----

func.func @unknown_direction(%a: tensor<8xf32>) {
  // expected-error @+1 {{attribute 'allowed_direction' must be 0 (NONE), 1 (FORWARD) or 2 (BACKWARD), got 7}}
  %0 = "sdy.propagation_barrier"(%a) {allowed_direction = 7 : i32} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @other_type() {
  // expected-error @+1 {{must have a result of its value's type tensor<2xi32>, got tensor<4xi32>}}
  %0 = "sdy.constant"() {value = dense<1> : tensor<2xi32>} : () -> tensor<4xi32>
  return
}

// -----

func.func @no_elements() {
  // expected-error @+1 {{attribute 'value' must be the elements of a ranked tensor, got 1 : i32}}
  %0 = "sdy.constant"() {value = 1 : i32} : () -> tensor<i32>
  return
}

// -----

func.func @vector() {
  // expected-error @+1 {{attribute 'value' must be the elements of a ranked tensor}}
  %0 = "sdy.constant"() {value = dense<1> : vector<2xi32>} : () -> vector<2xi32>
  return
}
