# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partitions small models from JAX and PyTorch for both targets, verifies them on devices, and compares bytes with XLA.

    python -m model_zoo            # from the folder `test`

`program` defines a model; `jax_programs` and `torch_programs` have a file for each family of models, which `jax_models`
and `torch_models` lower; `measurement` runs one.
"""
