// RUN: shard-opt %s --allow-unregistered-dialect --load %S/Inputs/broken_rules.py --split-input-file --sdy-basic-propagate --verify-diagnostics
// RUN: not shard-opt %s --allow-unregistered-dialect --load %S/Inputs/broken_rules.py --split-input-file --sdy-propagation-pipeline 2>&1 | FileCheck %s

// Errors in the registrations of a dialect are reported at the op, in passes and pipelines.
// CHECK: broken_rules.mlir:[[# @LINE + 5]]:8: error: the sharding rule of 'broken.text'
// CHECK-NOT: Traceback

func.func @text(%a: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  // expected-error-re @+1 {{the sharding rule of 'broken.text' ('i k, k j -> i j' in {{.*}}broken_rules.py:{{[0-9]+}}) does not match the op: dim 0 of operand 1 has size 8, but 'i k, k j -> i j' requires k=4}}
  %0 = "broken.text"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @raises(%a: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  // expected-error-re @+1 {{the sharding rule of 'broken.raises' (raises in {{.*}}broken_rules.py:{{[0-9]+}}) failed in line {{[0-9]+}}: KeyError: 'broken.raises'}}
  %0 = "broken.raises"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @nonsense(%a: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  // expected-error-re @+1 {{(nonsense in {{.*}}broken_rules.py:{{[0-9]+}}) returned str 'i j -> i j', but must return an OpShardingRule or None}}
  %0 = "broken.nonsense"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @fields(%a: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  // expected-error-re @+1 {{(fields in {{.*}}broken_rules.py:{{[0-9]+}}) returned a rule with fields of invalid types}}
  %0 = "broken.fields"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @rank(%a: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  // expected-error-re @+1 {{(rank in {{.*}}broken_rules.py:{{[0-9]+}}) does not match the op: operand: the mapping [i] has 1 dimensions, but the tensor has 2}}
  %0 = "broken.rank"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @size(%a: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  // expected-error-re @+1 {{(size in {{.*}}broken_rules.py:{{[0-9]+}}) does not match the op: dim 1 of operand 0 has size 4, but the rule requires j=8}}
  %0 = "broken.size"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @factor(%a: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  // expected-error-re @+1 {{(factor in {{.*}}broken_rules.py:{{[0-9]+}}) does not match the op: operand: dim 1: unknown factor p: the rule has 2 factors}}
  %0 = "broken.factor"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @key(%a: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  // expected-error-re @+1 {{`context_key` of the sharding rule of 'broken.key' (<lambda> in {{.*}}broken_rules.py:{{[0-9]+}}) failed in line {{[0-9]+}}: AttributeError}}
  %0 = "broken.key"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @edges(%a: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  // expected-error-re @+1 {{the data-flow edges of 'broken.edges' (edges in {{.*}}broken_rules.py:{{[0-9]+}}) failed in line {{[0-9]+}}: LookupError: no edges today}}
  %0 = "broken.edges"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @no_edges(%a: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  // expected-error-re @+1 {{(no_edges in {{.*}}broken_rules.py:{{[0-9]+}}) do not match the op: edge 0 is {{.*}}, but must be a DataFlowEdge}}
  %0 = "broken.no_edges"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @shapes(%a: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  // expected-error-re @+1 {{(shapes in {{.*}}broken_rules.py:{{[0-9]+}}) do not match the op: edge 0 connects {{.*}} of type tensor<4xf32> with its owner of type tensor<8x4xf32>, but the values of an edge must have the same shape}}
  %0 = "broken.shapes"(%b) : (tensor<4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @twice(%a: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  // expected-error-re @+1 {{(twice in {{.*}}broken_rules.py:{{[0-9]+}}) do not match the op: a value of 'broken.twice' of type tensor<8x4xf32> is a target of both edge 0 and edge 1}}
  %0 = "broken.twice"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @foreign(%a: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  // expected-error-re @+1 {{(foreign in {{.*}}broken_rules.py:{{[0-9]+}}) do not match the op: a block argument of type tensor<8x4xf32> of edge 0 is neither a result nor a block argument of the op}}
  %0 = "broken.foreign"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
