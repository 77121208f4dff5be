# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An explanation in the JSON formats of Model Explorer, without the package.

`graphs` makes graphs of the functions of a program, with shardings, chains and collectives at the nodes; `local_graphs`
those of its local program, with the collectives as nodes; `node_data` makes the numbers by which nodes of both are
coloured and summed up. `parts` has the parts of graphs.
"""
