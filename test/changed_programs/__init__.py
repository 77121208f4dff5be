# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs beside the same with other names, in another order or with one other annotation.

`variants` makes them; `python -m changed_programs`, from the folder `test`, compares many with what they were made of.
"""
