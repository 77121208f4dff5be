# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs through explanations: which axes have an annotation, which collectives a cause, and that nothing changes."""
