# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python interface: imports programs from JAX, torch and files, and annotates, partitions and runs them.

annotate           annotations from partition specs
shardings          the sharding of each tensor after propagation
program            a global program with named arguments and results, and its local program
difference         the difference of two programs
plan_reshard       plans of reshards for partition specs
display            programs as HTML, for notebooks
executable         a compiled program that can be called, on devices that stay up
device_array       a result on the devices
from_jax           programs from JAX functions
from_torch         programs from torch modules and functions
torch_import       programs exported from torch modules and functions
torch_places       the lines of operators of torch in the user's files
torch_lowering     MLIR modules from graphs of torch, and the operators that have no lowering
torch_operators    decompositions of operators that torch-mlir does not lower
torch_corrections  operators that it lowers wrongly, in the graph or in the module
torch_unsigned     unsigned integers, which it lowers wrongly
torch_graph        edits of graphs of torch
load               programs from files

`mlir_shard` exports the names that users need.
"""
