# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that a local program computes what a global one does; docs/certificates.md says how.

It imports nothing of the project but the bindings, so that it can be read, and trusted, by itself. Read `kernel`, what
a program means, and `ops`, what the ops of dialects are, then `programs` and `checker`. This proves programs that have
few elements. The `lemmas` prove those of any size.
"""
