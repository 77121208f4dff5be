# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Explanations of the partitioning of a program: the information that its local module does not have.

All modules except `memory` run the pipelines of `transforms` on a copy of a program and read their decisions. Read in
this order:

    values              tensors, chains, lost axes, causes
    explanation         runs the pipeline and records the decisions of passes
    places              places in the user's program, names of values, and the tags that identify ops
    propagation_trace   the tensors and nodes of one propagation
    chains, losses      the origins of axes, and the axes that a tensor lost
    recorded_moves      the reshards and plans of one partitioning
    causes              the reasons for collectives
    selection           the tensors that a query selects
    what_if             the same program with other annotations
    suggestions         annotations that save bytes
    text, data          explanations as text and as JSON
    model_explorer/     explanations as graphs of Model Explorer
    memory              the peak memory of a rank, from the local program and the rules in `allocation`
    difference/         the differences between two programs
    quantities, budget  the costs of a local program, with units, and limits on them
"""
