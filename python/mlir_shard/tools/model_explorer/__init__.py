# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An extension of Model Explorer: `model-explorer --extensions=mlir_shard.tools.model_explorer program.mlir`.

`main` is the module that Model Explorer imports. It shows programs with the shardings of their tensors, and provides
the costs of their collectives as node data. `program` reads files.
"""
