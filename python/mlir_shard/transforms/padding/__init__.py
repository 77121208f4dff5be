# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Global programs padded so that all shards are even, as Shardy's `sdy-pad-for-divisibility` does.

`sdy_pad_for_divisibility` is the pass, `padded_values` has the padding of values, `padding_rules` registers how ops are
padded, and `padded_ops` has these rules. Uneven shards in `spmdize` are masked instead.
"""
