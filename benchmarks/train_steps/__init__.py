# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Train steps of large models in JAX, by shapes alone, and the bytes that their parallelism needs: `llama_step`."""
