# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs unusual inputs through the passes: text with mistakes in it, and valid programs with unusual parts.

Every input must end in a module or in errors with a cause and a place. `python -m fuzzed_programs` runs many inputs.
Read the modules in this order: `outcome` defines findings, `corpus` has the programs from which inputs are made,
`mutations` and `unusual` make them, `worker` runs them in a process that may crash, `campaign` counts the outcomes.
"""
