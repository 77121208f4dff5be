# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Why a program is partitioned as it is: what is known of a program beyond the module that it becomes.

Everything but `memory` runs the pipelines of `transforms` on a copy of a program and reads what they did. To read, in
order:

    values              tensors, chains, lost axes, causes
    explanation         runs the pipeline and keeps what passes decide
    places              places in the user's program, names of values, and the tags by which ops are known again
    propagation_trace   the tensors and nodes of one propagation
    chains, losses      where axes are from, and which ones a tensor could not get
    recorded_moves      the reshards and plans of one partitioning
    causes              why collectives are there
    selection           which tensors a query means
    what_if             the same program with other annotations
    suggestions         annotations that save bytes
    text, data          explanations as text and as JSON
    model_explorer/     explanations as graphs of Model Explorer
    memory              the most memory that a rank needs, from the local program and the rules in `allocation`
    difference/         what has changed between two programs
    quantities, budget  what a local program costs, with units, and limits of it
"""
