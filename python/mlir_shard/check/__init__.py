# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that a local program computes the results of a global one; docs/certificates.md describes the proofs.

The package imports nothing of the project except the bindings, so it can be read and trusted by itself. Read `kernel`,
the meaning of programs, and `ops`, the definitions of the ops of dialects, then `programs` and `checker`. These prove
programs that have few elements. The `lemmas` prove programs of any size.
"""
