# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes put into the project's own code, one at a time: how many of them its tests catch.

`python -m mutated_code` runs this. In the order in which to read: `areas` says which code is changed and which tests
are run on it, `mistakes` makes the changes, `equivalent` says which of them change nothing, `recorded` knows which
tests execute a line, `checkout` runs tests on a copy of the project, `campaign` counts.
"""
