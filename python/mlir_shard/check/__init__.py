# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that a local program computes what a global one does; docs/certificates.md states the lemmas.

It imports nothing of the project but the bindings, so that it can be read, and trusted, by itself. Read `values` and
`nodes`, what they mean (`elements`, `terms`), then the lemmas (`canonical`, `ranges`, `moves`, `lemmas`,
`index_arithmetic`, `devices`, `tiles`), then the ops (`reading`, `structured`, `stablehlo`, `places`, `tosa`,
`upstream`, `collectives`), `programs` and `checker`.
"""
