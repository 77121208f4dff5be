# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which ops propagate first, said by those who know the ops: an ordered list of groups of op names.

Shardy's order, elementwise ops before others and so on, comes after all that is listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlir_shard.dialects.registered_function import RegistrationError, check_op_names

Group = tuple[str, ...]

_order: list[Group] = []


def register_op_priorities(*order: str | Sequence[str]) -> None:
    """Adds ops to the list: each argument is an op, or several that propagate together, after all those before it.

    An op is given by its name, `"attn.scores"`, all of a dialect by `"attn.*"`. What was listed before moves to its
    new place. Raises RegistrationError for names of no op, and for one that is given twice.
    """
    groups = [(group,) if isinstance(group, str) else tuple(group) for group in order]
    check_order(groups)
    names = {name for group in groups for name in group}
    kept = [tuple(name for name in group if name not in names) for group in _order]
    _order[:] = [group for group in (*kept, *groups) if group]


def op_priorities() -> tuple[Group, ...]:
    """The groups that are listed, the first to propagate first."""
    return tuple(_order)


def check_order(groups: Iterable[Group]) -> None:
    """Raises RegistrationError where a group is empty, has what is no op name, or one that was given before."""
    seen: set[str] = set()
    for group in groups:
        if not group:
            raise RegistrationError("a group of ops that propagate together has at least one")
        check_op_names(group)
        for name in group:
            if name in seen:
                raise RegistrationError(f"'{name}' is given twice, but an op has one place in the order")
            seen.add(name)


def is_among(name: str, group: Group) -> bool:
    """Whether ops of this name are in a group."""
    return name in group or f"{name.partition('.')[0]}.*" in group
