# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The buffers that a compiler allocates for a local program, predicted without compiling it.

To read in this order: `local_values` reads a module into plain values; `instructions` simplifies them; `fusion` finds
what is run, and in which order; `assignment` gives what is left buffers with lifetimes; `buffers` adds them up or packs
them. `xla_rules` and `mpi_rules` say how XLA:CPU and this package's lowering treat operations.
"""
