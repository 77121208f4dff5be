# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The native fixpoint, against the plain one of trying every node until nothing changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_shard import _native

VALUES = 8


def spread(kind: int, states: list[int]) -> list[int] | None:
    """Kind 0 raises all values to the highest, kind 1 only the last one; a monotone step has one fixpoint."""
    highest = max(states)
    after = [highest] * len(states) if kind == 0 else [*states[:-1], max(states[-1], highest)]
    return None if after == states else after


def unfollowed(value: int, state: int) -> list[tuple[int, int, bool, bool]]:
    raise AssertionError("nothing is tied")


# Node i defines value i: as in SSA, no value has two definitions.
nodes = st.lists(
    st.tuples(st.integers(0, 1), st.lists(st.integers(0, VALUES - 1), min_size=1, max_size=3)), max_size=VALUES
)


@given(nodes, st.lists(st.integers(-1, 5), min_size=VALUES, max_size=VALUES))
def test_reaches_the_fixpoint(network: list[tuple[int, list[int]]], states: list[int]) -> None:
    asked: list[tuple[int, tuple[int, ...]]] = []

    def step(kind: int, before: list[int]) -> list[int] | None:
        asked.append((kind, tuple(before)))
        return spread(kind, before)

    fixpoint = _native.Fixpoint(VALUES, -1, [])
    for definition, (kind, uses) in enumerate(network):
        fixpoint.add(kind, uses, [definition])
    found = fixpoint.run(states, step, unfollowed)

    expected, changed = list(states), True
    while changed:
        changed = False
        for definition, (kind, uses) in enumerate(network):
            values = [*uses, definition]
            after = spread(kind, [expected[value] for value in values])
            for value, state in zip(values, after or [], strict=False):
                if state > expected[value]:
                    expected[value], changed = state, True
    assert found == expected
    assert len(asked) == len(set(asked))
    assert all(any(state != -1 for state in before) for _, before in asked)


def test_a_value_twice_in_a_node_keeps_the_change_of_one_place() -> None:
    fixpoint = _native.Fixpoint(1, -1, [])
    fixpoint.add(0, [0, 0], [])
    assert fixpoint.run([3], lambda kind, before: [7, 3] if before == [3, 3] else None, unfollowed) == [7]


def test_the_constant_value_stays() -> None:
    fixpoint = _native.Fixpoint(2, 0, [])
    fixpoint.add(0, [1], [0])
    fixpoint.add(0, [1], [0])
    assert fixpoint.run([-1, 4], spread, unfollowed) == [-1, 4]


def test_tied_values_follow() -> None:
    fixpoint = _native.Fixpoint(5, -1, [1])
    fixpoint.add(0, [0], [1])
    fixpoint.add(0, [2], [4])
    followed = []

    def follow(value: int, state: int) -> list[tuple[int, int, bool, bool]]:
        followed.append((value, state))
        return [(2, state, False, True), (3, 9, True, False)]

    assert fixpoint.run([5, -1, -1, 2, -1], spread, follow) == [5, 5, 5, 2, 5]
    assert followed == [(1, 5)]


def test_an_error_in_a_step_comes_through() -> None:
    def step(kind: int, before: list[int]) -> list[int]:
        raise LookupError("no rule")

    fixpoint = _native.Fixpoint(1, -1, [])
    fixpoint.add(0, [0], [])
    with pytest.raises(LookupError, match="no rule"):
        fixpoint.run([1], step, unfollowed)


def test_a_value_has_one_definition() -> None:
    fixpoint = _native.Fixpoint(1, -1, [])
    fixpoint.add(0, [], [0])
    with pytest.raises(ValueError, match="one definition"):
        fixpoint.add(0, [], [0])


@pytest.mark.parametrize(("after", "states"), [([1, 2], [0]), ([1], [0, 0])])
def test_wrong_lengths(after: list[int], states: list[int]) -> None:
    fixpoint = _native.Fixpoint(1, -1, [])
    fixpoint.add(0, [0], [])
    with pytest.raises(ValueError, match="a state for each value"):
        fixpoint.run(states, lambda kind, before: after, unfollowed)
