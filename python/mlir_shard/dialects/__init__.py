# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sdy dialect in a host context.

`sdy` is the dialect: generated wrappers and where a value's sharding is. `data_flow` and `data_flow_edges` say which
values across regions share a sharding, `verifiers` and `verification` check operations and attributes, `verified` what
has changed since the last time.
"""
