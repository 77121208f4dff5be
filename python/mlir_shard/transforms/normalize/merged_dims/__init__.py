# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computing on the dimensions that reshapes merge and split again: the pass `shard-expand-merged-dims`.

`expanded_dims` has the shapes, `expandable_ops` and `expandable_tosa` the ops, `expandable_values` the values of a
function that can be expanded, and `chosen_expansions` the choice among them.
"""
