# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models from JAX and PyTorch through both targets: verified on devices, with their bytes beside those of XLA.

    python -m model_zoo            # from the folder `test`

`program` defines what a model is; `jax_programs` and `torch_programs` have a file for each family of models, which
`jax_models` and `torch_models` lower; `measurement` runs one.
"""
