# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts mistakes into the project's own code, one at a time, and counts those that its tests catch.

`python -m mutated_code` runs this. Read the modules in this order: `areas` lists the code and its tests, `mistakes`
makes the changes, `equivalent` lists the changes without effect, `recorded` finds the tests that execute a line,
`checkout` runs tests on a copy of the project, `campaign` counts.
"""
