# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites operations of StableHLO that the host does not lower to operations that it lowers.

`operations` lists them all; `element_loops`, `sorting` and `linear_algebra` rewrite those that become loops, and
`contractions` and `by_element_type` those of which the host lowers other forms or element types.
`top_k` rewrites approximate top-k calls to sorts.
"""
