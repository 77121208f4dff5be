# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts explained axes and collectives of a program, and checks that explanations do not change the result."""

from __future__ import annotations

from dataclasses import dataclass, fields

import mlir_shard
from mlir_shard.dialects.contexts import create_context
from mlir_shard.explain.explanation import explain
from mlir_shard.explain.values import AnnotationKind, CauseKind
from mlir_shard.passes.registry import PassFailure


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts of one or several programs.

    Attributes:
        refused: programs that cannot be partitioned.
        different: programs whose local program differs from the one without explanations.
        axes, with_origin: axes of dimensions of tensors; those whose chain ends at an annotation.
        collectives, with_cause: collectives; those with a cause that names an op.
    """

    programs: int = 0
    refused: int = 0
    different: int = 0
    axes: int = 0
    with_origin: int = 0
    collectives: int = 0
    with_cause: int = 0

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Coverage)))


def coverage(text: str, collectives: str, name: str = "-") -> tuple[Coverage, list[str]]:
    """Returns the counts of a program, and descriptions of its unexplained axes and collectives."""
    try:
        module = mlir_shard.parse(text, create_context(), name)
    except mlir_shard.ParseError:
        return Coverage(), []
    plain = module.operation.clone()
    pipeline = f"builtin.module(spmd-pipeline{{collectives={collectives} remarks-above=none}})"
    try:
        mlir_shard.run(plain, pipeline)
    except PassFailure:
        return Coverage(1, 1), []
    explained = explain(module, collectives=collectives, sources={name: text})
    missing = []
    axes = with_origin = with_cause = 0
    for tensor in explained.tensors:
        for chain in explained.chains(tensor):
            axes += 1
            if chain.annotation.kind is AnnotationKind.UNKNOWN:
                missing.append(f"{tensor.place}: no annotation for {chain.axis} of {tensor.name}, {tensor.sharding}")
            else:
                with_origin += 1
        explained.lost(tensor)
    for one in explained.collectives:
        kinds = {cause.kind for cause in one.causes}
        if kinds and (CauseKind.PROGRAM not in kinds or _is_of_program(text)):
            with_cause += 1
        else:
            missing.append(f"{one.collective.place}: no cause for {one.collective.communication.kind.value}")
    differs = mlir_shard.print_module(plain) != mlir_shard.print_module(explained.module)
    if differs:
        missing.append("the local program differs")
    counts = Coverage(1, 0, int(differs), axes, with_origin, len(explained.collectives), with_cause)
    return counts, missing


_OWN = ("sdy.all_", "sdy.collective", "sdy.reduce_scatter", "sdy.manual_computation", "shard.all_", "_to_unreduced")


def _is_of_program(text: str) -> bool:
    return any(one in text for one in _OWN)
