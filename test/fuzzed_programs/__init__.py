# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs that nobody would write: text with mistakes in it, and valid programs of unusual parts, through the passes.

Every input has to end in a module or in errors that say what is wrong and where. `python -m fuzzed_programs` runs many
of them. In the order in which to read them: `outcome` states what counts as a finding, `corpus` has the programs that
inputs are made of, `mutations` and `unusual` make them, `worker` runs them in a process that may crash, `campaign`
counts what came of them.
"""
