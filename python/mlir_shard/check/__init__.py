# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that a local program computes what a global one does; docs/certificates.md states the lemmas.

It imports nothing of the project but the bindings, so that it can be read, and trusted, by itself. Read `values`,
`lemmas` and `index_arithmetic`, then the ops (`reading`, `stablehlo`, `upstream`, `collectives`), then `programs` and
`checker`.
"""
