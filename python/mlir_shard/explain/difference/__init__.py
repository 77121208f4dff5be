# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The differences between two programs: in annotations, shardings, operations and communication.

Read `compare` first, which runs the pipelines on both, then `changes`, the values that it returns, and `describe`,
which creates them. `graph` represents a module without names, order and calls; `reading` builds it from the
`signatures` of operations; `numbering` numbers its nodes by their computations and by their uses; `matching` finds the
nodes that two graphs have in common, by these numbers (`pairs`) and from their neighbours (`spreading`). `order` puts
one module into the order of another one, and `report` prints.
"""
