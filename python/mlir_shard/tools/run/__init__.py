# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of shard-run: `steps` in order, from `arguments` and `arrays` to a `comparison`, a `report` and `times`."""
