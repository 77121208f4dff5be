# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The buffers that a compiler allocates for a local program, predicted without compiling it.

Read in this order: `local_values` reads a module into plain values; `instructions` simplifies them; `fusion` finds the
instructions that are run, and their order; `assignment` gives these buffers with lifetimes; `buffers` adds up or packs
the buffers. `xla_rules` and `mpi_rules` are the rules of XLA:CPU and of this package's lowering for operations.
"""
