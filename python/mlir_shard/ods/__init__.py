# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads ODS, definitions of operations, attributes and types in TableGen, and generates Python. Does not import MLIR.

`loader`, `program` and `expressions` evaluate TableGen, `reader` makes a `model` of the records, `generate` writes
Python by `op_source` and `python_source`. Only `model`, `assembly_format` and `irdl_source` are used at run time.
"""
