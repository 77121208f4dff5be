# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ODS: operations, attributes and types defined in TableGen files, read and turned into Python. Imports no MLIR.

`loader`, `program` and `expressions` evaluate TableGen, `reader` makes a `model` of the records, `generate` writes
Python by `op_source` and `python_source`. What is used at run time is `model`, `assembly_format` and `irdl_source`.
"""
