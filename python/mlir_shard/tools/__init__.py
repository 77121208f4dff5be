# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands `shard_opt`, `shard_run` and `shard_reshard`, each with its arguments and steps in files beside it.

`session` is what shard-opt does with a module, `run_steps` what shard-run does; `reshard/` shows plans.
"""
