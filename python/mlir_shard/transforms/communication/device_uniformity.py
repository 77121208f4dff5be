# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that are uniform across the devices of the groups in which a collective communicates.

An op without effects has uniform results if its operands are uniform.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import Any

from mlir_shard.dialects.data_flow import owning_op
from mlir_shard.ir.editing import ops_below, ops_in
from mlir_shard.ir.op_names import op_names
from mlir_shard.ir.values import defining_op
from mlir_shard.transforms.communication.collective_forms import GATHERS, REDUCES, among

_DIALECTS = frozenset(("arith", "complex", "linalg", "math", "shard", "stablehlo", "tosa"))
_WAITING_DIALECTS = _DIALECTS | {"tensor"}
_OF_TENSORS = frozenset(op_names("tensor", "cast collapse_shape concat empty expand_shape"))
# These are undefined for some values.
_PARTIAL = op_names("arith", "ceildivsi ceildivui divsi divui floordivsi remsi remui")
_EFFECTS = frozenset(
    (
        *op_names("shard", "recv send shard update_halo"),
        *op_names("stablehlo", "after_all case create_token custom_call if infeed outfeed recv rng rng_bit_generator"),
        *op_names("stablehlo", "send while"),
        *op_names("tosa", "cond_if custom variable_read variable_write while_loop"),
    )
)
_IMPURE = _EFFECTS.union(_PARTIAL)


def is_pure(op: Any) -> bool:
    """Returns whether an op and the ops inside it are pure; collectives that all devices of a group execute are.

    Ops that are undefined for some values, such as divisions of integers, are not pure.
    """
    return all(map(_has_pure_name, _names_in(op)))


def _names_in(op: Any) -> Iterable[str]:
    """Returns the names of an op and of the ops inside it."""
    return {one.name for one in ops_in(op)} if len(op.regions) else (op.name,)


@cache
def _has_pure_name(name: str) -> bool:
    return (name in _OF_TENSORS or name.partition(".")[0] in _DIALECTS) and name not in _IMPURE


def may_wait(name: str) -> bool:
    """Returns whether an op of this name only computes tensors from its operands, so that it may come later.

    Unlike a pure op, it may be undefined for some values: it is executed just as often.
    """
    return name.partition(".")[0] in _WAITING_DIALECTS and name not in _EFFECTS


_DEVICE_IDS = frozenset(("stablehlo.partition_id", "stablehlo.replica_id"))
_SHARING = frozenset((*GATHERS, *REDUCES))


class UniformValues:
    """The values that are uniform across the devices of each group of a collective.

    Values that the devices have gathered or reduced, constants, and results computed from uniform values alone are
    uniform. Arguments of functions and loops may diverge. `known` maps values to whether they are uniform.
    """

    def __init__(self, collective: Any, known: dict[Any, bool] | None = None) -> None:
        self._among = among(collective)
        self._known: dict[Any, bool] = {} if known is None else known

    def has(self, value: Any) -> bool:
        """Returns whether a value is known to be uniform."""
        found = self._known.get(value)
        if found is not None:
            return found
        # The values under examination, each needed by the one before, with an iterator over those that it needs.
        path = [(value, self._needed(value))]
        while path:
            current, needed = path[-1]
            one = None if needed is None else next(needed, None)
            is_uniform = needed is not None if one is None else self._known.get(one)
            if is_uniform is None:
                path.append((one, self._needed(one)))
            elif not is_uniform:
                self._known |= dict.fromkeys((one for one, _ in path), False)
                return False
            elif one is None:
                self._known[current] = True
                path.pop()
        return True

    def has_captured(self, op: Any) -> bool:
        """Returns whether the values that the regions of an op capture are uniform."""
        return all(self.has(value) for value in captured(op))

    def _needed(self, value: Any) -> Iterator[Any] | None:
        """Returns the values that must be uniform for this one to be uniform; None if it may diverge."""
        op = defining_op(value)
        if op is None:
            return None
        if op.name in _SHARING and among(op) == self._among:
            return iter(())
        names = _names_in(op)
        if op.name.startswith("shard.") or not all(map(_has_pure_name, names)) or not _DEVICE_IDS.isdisjoint(names):
            return None
        return chain(op.operands, captured(op))


class KnownUniform:
    """The uniform values for all collectives of a program; those with the same groups share them."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], dict[Any, bool]] = {}

    def of(self, collective: Any) -> UniformValues:
        """Returns the uniform values for a collective."""
        return UniformValues(collective, self._known.setdefault(among(collective), {}))

    def forget(self, values: Iterable[Any]) -> None:
        """Forgets values before they change or are erased; the values computed from them must not change."""
        for value in values:
            for known in self._known.values():
                known.pop(value, None)


def captured(op: Any) -> Iterator[Any]:
    """Yields the values that the regions of an op use and that are defined around it."""
    if not len(op.regions):
        return
    own = set(ops_in(op))
    for one in ops_below(op):
        for value in one.operands:
            if owning_op(value) not in own:
                yield value
