# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands and results of an operation as runs of one type each.

A constraint of IRDL stands for one type in all of an operation, so MLIR wants the values of a variadic group to be of
the same type, whatever the constraint says (`ConstraintVerifier` in mlir/lib/Dialect/IRDL). An operation that takes
values of any types is therefore registered with `LIMIT` variadic groups, each of which takes a run of values of one
type, and carries the lengths of the runs in the attributes that MLIR asks for then. Text never shows these.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from mlir_shard.ods.model import OpDef, Operand, ResultDef, Variadicity

LIMIT = 1024

OPERAND_LENGTHS = "operandSegmentSizes"
RESULT_LENGTHS = "resultSegmentSizes"


class TooManyRuns(ValueError):
    """Values whose types change more often than an operation is registered for."""


def are_runs(values: Sequence[Operand | ResultDef]) -> bool:
    """Whether operands or results are one variadic group, and so are registered as runs."""
    return len(values) == 1 and values[0].variadicity is Variadicity.VARIADIC


def lengths(types: Sequence[object]) -> list[int]:
    """The length of each run of equal types, and zeros up to `LIMIT`."""
    runs = [sum(1 for _ in run) for _, run in groupby(types)]
    if len(runs) > LIMIT:
        raise TooManyRuns(
            f"the types of {len(types)} values change {len(runs) - 1} times, and {LIMIT - 1} are possible"
        )
    return runs + [0] * (LIMIT - len(runs))


def attribute_names(op: OpDef) -> list[str]:
    """The attributes with lengths that the operation carries."""
    return [name for name, values in ((OPERAND_LENGTHS, op.operands), (RESULT_LENGTHS, op.results)) if are_runs(values)]
