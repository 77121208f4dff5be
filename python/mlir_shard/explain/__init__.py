# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Why a program is partitioned as it is: what is known of a program beyond the module that it becomes.

Everything here runs the pipelines of `transforms` on a copy of a program and reads what they did.
"""
