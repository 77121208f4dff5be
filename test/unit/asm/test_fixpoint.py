# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the native fixpoint, against a plain loop over all nodes that ends when nothing changes."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_shard import _native

VALUES = 8
Step = Callable[[int, list[int]], list[int] | None]
Follow = Callable[[int, int], list[tuple[int, int, bool, bool]]]


def spread(kind: int, states: list[int]) -> list[int] | None:
    """Raises all values (kind 0) or only the last one (kind 1) to the highest; the monotone step has one fixpoint."""
    highest = max(states)
    after = [highest] * len(states) if kind == 0 else [*states[:-1], max(states[-1], highest)]
    return None if after == states else after


def unfollowed(value: int, state: int) -> list[tuple[int, int, bool, bool]]:
    raise AssertionError("nothing is tied")


def nodes_of(*nodes: _native.Node) -> _native.Nodes:
    all_nodes = _native.Nodes()
    for kind, uses, definitions in nodes:
        all_nodes.add(kind, uses, definitions)
    return all_nodes


def fixpoint_of(
    values: int,
    *nodes: _native.Node,
    boundary: Sequence[_native.Node] = (),
    constant: int = -1,
    tied: Sequence[int] = (),
    deferred: Sequence[int] = (),
    loops: Sequence[int] = (),
    elsewhere: Sequence[int] = (),
) -> _native.Fixpoint:
    return _native.Fixpoint(nodes_of(*nodes), nodes_of(*boundary), values, constant, tied, deferred, loops, elsewhere)


def run(
    fixpoint: _native.Fixpoint,
    before: list[int],
    step: Step = spread,
    follow: Follow = unfollowed,
    behaviours: Sequence[int] = (0, 1),
) -> list[int]:
    states = array("i", before)
    fixpoint.run(states, behaviours, step, follow)
    return states.tolist()


# Node i defines value i: as in SSA, no value has two definitions.
nodes = st.lists(
    st.tuples(st.integers(0, 1), st.lists(st.integers(0, VALUES - 1), min_size=1, max_size=3)), max_size=VALUES
)


kinds = st.sets(st.integers(0, 1))


@given(nodes, st.lists(st.integers(-1, 5), min_size=VALUES, max_size=VALUES), kinds, kinds, kinds)
def test_reaches_the_fixpoint(
    network: list[tuple[int, list[int]]], states: list[int], deferred: set[int], loops: set[int], elsewhere: set[int]
) -> None:
    asked: list[tuple[int, tuple[int, ...]]] = []

    def step(kind: int, before: list[int]) -> list[int] | None:
        asked.append((kind, tuple(before)))
        return spread(kind, before)

    network_nodes = [(kind, uses, [definition]) for definition, (kind, uses) in enumerate(network)]
    orders = {"deferred": sorted(deferred), "loops": sorted(loops), "elsewhere": sorted(elsewhere)}
    fixpoint = fixpoint_of(VALUES, *network_nodes, **orders)
    found = run(fixpoint, states, step)

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

    # Known steps are not repeated, and a change from outside is propagated.
    before = [*found[:-1], 9]
    assert run(fixpoint, found, step) == found
    assert len(asked) == len(set(asked))
    assert run(fixpoint, before, step) == run(fixpoint_of(VALUES, *network_nodes), before)


def test_deferred_nodes_wait_until_nothing_else_is_left() -> None:
    # Value 3 keeps the first state that reaches it: from value 0, through nodes 1 and 0, or from value 2.
    def first_come(kind: int, before: list[int]) -> list[int] | None:
        after = [max(before) if state == -1 else state for state in before]
        return None if after == before else after

    nodes, states = [(0, [0], [3]), (1, [1], [0]), (1, [2, 3], [])], [-1, 5, 7, -1]
    assert run(fixpoint_of(4, *nodes), states, first_come) == [5, 5, 7, 5]
    assert run(fixpoint_of(4, *nodes, deferred=[0]), states, first_come) == [5, 5, 7, 7]


def test_nodes_in_a_loop_come_after_what_follows_it() -> None:
    # Node 3 changes value 0, which node 1 defines and which nodes 0 and 2 use, before and after node 1.
    seen: list[int] = []

    def step(kind: int, before: list[int]) -> list[int] | None:
        seen.append(kind)
        return [5, *before[1:]] if kind == 3 and before[0] == 1 else None

    def order(**kinds: Sequence[int]) -> list[int]:
        seen.clear()
        nodes = [(0, [0], [1]), (1, [2], [0]), (2, [0], [3]), (3, [0], [4])]
        run(fixpoint_of(5, *nodes, **kinds), [1, 1, 1, 1, 1], step, behaviours=range(4))
        assert seen[:4] == [0, 1, 2, 3]
        return seen[4:]

    assert order() == [0, 2, 1]
    assert order(loops=[1]) == [2, 1, 0]
    assert order(loops=[1], elsewhere=[0]) == [0, 2, 1]


def test_a_value_twice_in_a_node_keeps_the_change_of_one_place() -> None:
    fixpoint = fixpoint_of(1, (0, [0, 0], []))
    assert run(fixpoint, [3], lambda kind, before: [7, 3] if before == [3, 3] else None) == [7]


def test_the_constant_value_stays() -> None:
    fixpoint = fixpoint_of(2, (0, [1], [0]), (0, [1], [0]), constant=0)
    assert run(fixpoint, [-1, 4]) == [-1, 4]


def test_tied_values_follow() -> None:
    fixpoint = fixpoint_of(5, (0, [0], [1]), (0, [2], [4]), tied=[1])
    followed = []

    def follow(value: int, state: int) -> list[tuple[int, int, bool, bool]]:
        followed.append((value, state))
        return [(2, state, False, True), (3, 9, True, False)]

    assert run(fixpoint, [5, -1, -1, 2, -1], follow=follow) == [5, 5, 5, 2, 5]
    assert followed == [(1, 5)]


def test_a_kind_that_does_nothing_is_not_asked_about() -> None:
    fixpoint = fixpoint_of(3, (0, [0], [1]), (1, [1], [2]))
    assert run(fixpoint, [5, -1, -1], behaviours=[-1, 1]) == [5, -1, -1]
    assert run(fixpoint, [5, -1, -1], behaviours=[0, -1]) == [5, 5, -1]
    assert run(fixpoint, [5, 5, -1], behaviours=[-1, 0]) == [5, 5, 5]

    def step(behaviour: int, before: list[int]) -> None:
        assert behaviour == 0

    run(fixpoint, [5, 5, 5], step, behaviours=[0, 0])
    run(fixpoint, [5, 5, 5], step, behaviours=[-1, -1])


def test_the_boundary_is_stepped_through_before_and_after() -> None:
    fixpoint = fixpoint_of(4, (0, [1], [2]), boundary=[(0, [0], [1]), (0, [2], [3])])
    assert run(fixpoint, [5, -1, -1, -1]) == [5, 5, 5, 5]
    # The second visit of the boundary propagates changes back through it.
    backward = fixpoint_of(3, (0, [1], [2]), boundary=[(0, [0], [1])])
    assert run(backward, [-1, -1, 5]) == [5, 5, 5]
    chain = fixpoint_of(3, boundary=[(0, [0], [1]), (0, [1], [2])])
    assert run(chain, [-1, -1, 5]) == [5, 5, 5]


def test_an_error_in_a_step_comes_through() -> None:
    def step(kind: int, before: list[int]) -> list[int]:
        raise LookupError("no rule")

    with pytest.raises(LookupError, match="no rule"):
        run(fixpoint_of(1, (0, [0], [])), [1], step)


def test_a_value_has_one_definition() -> None:
    with pytest.raises(ValueError, match="one definition"):
        fixpoint_of(1, (0, [], [0]), (0, [], [0]))


@pytest.mark.parametrize(("after", "states"), [([1, 2], [0]), ([1], [0, 0])])
def test_wrong_lengths(after: list[int], states: list[int]) -> None:
    with pytest.raises(ValueError, match="a state for each value"):
        run(fixpoint_of(1, (0, [0], [])), states, lambda kind, before: after)


def test_states_are_integers_of_32_bits() -> None:
    with pytest.raises(ValueError, match="32 bits"):
        fixpoint_of(1).run(array("q", [0]), [], spread, unfollowed)


def test_a_follower_has_to_be_a_value() -> None:
    with pytest.raises(ValueError, match="one of them"):
        run(fixpoint_of(2, (0, [0], [1]), tied=[1]), [5, -1], follow=lambda value, state: [(7, 1, False, False)])


def test_nodes_by_number() -> None:
    nodes = nodes_of((3, [0, 1], [2]), (4, [], [5]))
    assert len(nodes) == 2 and list(nodes) == [(3, [0, 1], [2]), (4, [], [5])]


def test_an_observer_is_told_of_steps_that_change_something() -> None:
    told: list[tuple[int, int, list[int]]] = []
    fixpoint = fixpoint_of(4, (0, [1], [2]), (1, [2], [0]), boundary=[(1, [0], [1]), (1, [2], [3])])
    states = array("i", [-1, 3, -1, -1])
    fixpoint.run(states, [0, 1], spread, unfollowed, lambda *one: told.append(one))
    assert told == [(0, 0, [3, -1]), (1, 1, [3, -1]), (-2, 1, [3, -1])]
    assert states.tolist() == [3, 3, 3, 3]
