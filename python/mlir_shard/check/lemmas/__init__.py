# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Proofs for tensors of any size on any number of devices; docs/certificates.md states the lemmas.

Read `values` and `nodes`, the representation of tensors, then the lemmas: `canonical`, `ranges`, `moves`, `lemmas`,
`index_arithmetic` and `tiles`. `affine` combines all of them.
"""
