# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python interface: programs from JAX and from files, annotated, partitioned and run with pytrees.

names         names of arguments, results and values, and patterns of them
annotate      shardings from partition specs
shardings     the sharding of each tensor after propagation
program       a global program with named arguments and results; the local program that it becomes
display       programs as HTML, for notebooks
executable    a program that can be called, on devices that stay up
device_array  a result on the devices
from_jax      programs from functions of JAX
from_torch    programs from modules and functions of torch
torch_import  modules of MLIR from those of torch
load          programs from files

`mlir_shard` exports the names that users need.
"""
