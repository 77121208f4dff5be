# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Most ops of a program are like an earlier one: they are planned and made local as that one is, natively.

Ops are alike that agree in signature, in what is in their regions, in where their operands lie, in which of these are
constant, and in how their results are used, as far as that counts. The first of them is the example of the others.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.rules.partition import PartitionRule
from mlir_shard.rules.registry import depends_on_context
from mlir_shard.transforms.spmdize.numbered_values import Known, NumberedValues

_UNUSED, _USED, _MOVED = -1, -2, -3


class Repeats(Enum):
    """Whether others that are like an op become what it becomes.

    NEVER: each is planned. CHECKED: each is planned, to see that it can be, and becomes what the first one becomes.
    ALWAYS: the first one alone is planned.
    """

    NEVER = "never"
    CHECKED = "checked"
    ALWAYS = "always"


Plan = Callable[[Any, bool], Repeats]


class RepeatedOps:
    """The ops of a module as it is read now.

    `movers` are the names of ops of which it matters that they are the only ones that use a value.
    """

    def __init__(self, module: Any, movers: Sequence[str] = ()) -> None:
        self.arrays = ModuleArrays(module)
        self.representatives = self.arrays.representatives()
        self._rehearsal = self.arrays.rehearsal()
        is_mover = [op.name in movers for op in self.representatives]
        signatures = self.arrays.signatures
        self._uses = array(
            "i",
            [
                _UNUSED if user == -1 else _MOVED - of if user >= 0 and is_mover[of := signatures[user]] else _USED
                for user in self.arrays.sole_users
            ],
        )

    def values(self) -> NumberedValues[Known]:
        """What is to be known of the values, for `plan`: at the beginning how they are used."""
        return NumberedValues(self.arrays, self._uses[:])

    def plan(self, block: Any, values: NumberedValues[Any], plan: Plan, context: int = 0) -> Any:
        """Plans the ops of a block but for the last one, which it gives.

        `plan(op, is_repeated)` plans an op and says of the values it makes where they lie. The first of those that are
        alike has a plan for all, which `carry_out` is to be given; the others have none. None for an empty block.
        """
        operations = block.operations
        count = len(operations)

        def ask(number: int, leader: int) -> tuple[list[int], bool] | None:
            repeats = plan(self.arrays.operation(number), leader >= 0)
            if repeats is Repeats.NEVER:
                return None
            return values.states_of(self.arrays.results(number)), repeats is Repeats.CHECKED

        if count > 1:
            self._rehearsal.visit(operations[0].operation._CAPIPtr, context, values.states, ask)
        return operations[count - 1].operation if count else None

    def carry_out(self, op: Any, change: Callable[[Any], None]) -> None:
        """Has an op changed, and those that are like it."""
        left = self._rehearsal.carry_out(op._CAPIPtr, lambda: change(op))
        for number in left:
            change(self.arrays.operation(number))


def is_repeatable(op: Any, partition: PartitionRule | None) -> bool:
    """Whether what becomes of an op depends on nothing but what ops that are alike agree in.

    Users' partition rules may look at more, and so do some sharding rules.
    """
    is_own = partition is None or partition.localize.__module__.startswith("mlir_shard.")
    return is_own and not depends_on_context(op)
