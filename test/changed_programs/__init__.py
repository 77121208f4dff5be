# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares random programs with variants that have other names, another order or one changed annotation.

`variants` makes the variants; `python -m changed_programs`, from the folder `test`, compares many programs with them.
"""
