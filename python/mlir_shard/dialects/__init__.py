# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sdy dialect in a host context.

`sdy` contains the generated wrappers of the dialect and accessors of the shardings of values. `data_flow` and
`data_flow_edges` find the values that share a sharding across regions. `verifiers` and `verification` check operations
and attributes, and `verified` checks only those that have changed since the last verification.
"""
