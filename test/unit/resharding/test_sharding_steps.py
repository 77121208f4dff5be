# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the steps from one sharding to another, for tensors that are or become partial."""

from __future__ import annotations

import pytest
from sharding.texts import sharding

from mlir_shard.resharding.sharding_steps import (
    ReduceAlong,
    ReplicatedToUnreduced,
    Reshard,
    ReshardError,
    ShardedToUnreduced,
    ShardingStep,
    steps_between,
)
from mlir_shard.sharding import AxisRef, Mesh, ReductionOp, TensorSharding

MESHES = {"mesh": Mesh({"x": 2, "y": 2, "z": 4}.items()), "other": Mesh({"x": 2}.items())}


def steps(source: str | None, target: str | None, *, with_reshard: bool = True) -> tuple[ShardingStep, ...]:
    before, after = (None if text is None else sharding(text) for text in (source, target))
    return steps_between(before, after, MESHES, with_reshard=with_reshard)


def axes(names: str) -> tuple[AxisRef, ...]:
    return tuple(map(AxisRef, names))


def test_what_is_equivalent_needs_nothing() -> None:
    assert steps('[{"x"}, {}]', '[{"x", ?}, {?}]') == ()
    assert steps(None, None) == ()
    assert steps(None, "[{}, {?}]") == ()
    assert steps("[{}, {}]", None) == ()


def test_dimensions_are_resharded_only_where_that_is_asked_for() -> None:
    assert steps('[{"x"}, {}]', '[{}, {"x"}]') == (Reshard(sharding('[{}, {"x"}]')),)
    assert steps(None, '[{}, {"x"}]') == (Reshard(sharding('[{}, {"x"}]')),)
    assert steps('[{"x"}, {?}]', None) == (Reshard(sharding("[{}, {}]")),)
    assert steps('[{"x"}, {}]', '[{}, {"x"}]', with_reshard=False) == ()


def test_what_the_target_is_not_partial_along_is_reduced_first() -> None:
    source = '[{"z"}], unreduced=max{"x", "y"}'
    left = sharding('[{"z"}], unreduced=max{"y"}')
    reduce = ReduceAlong(axes("x"), ReductionOp.MAX, left)
    assert steps(source, '[{"z"}], unreduced=max{"y"}') == (reduce,)
    target = '[{"x"}], unreduced=max{"y"}'
    assert steps(source, target) == (reduce, Reshard(sharding(target)))
    assert steps(source, target, with_reshard=False) == (reduce,)


def test_without_a_target_all_is_reduced() -> None:
    whole = sharding('[{"x"}]')
    found = steps('[{"x"}], unreduced={"y"}', None)
    assert found == (ReduceAlong(axes("y"), ReductionOp.SUM, whole), Reshard(sharding("[{}]")))


def test_replicated_and_sharded_axes_become_partial() -> None:
    target = sharding('[{}, {}], unreduced={"x", "y", "z"}')
    between = sharding('[{"x"}, {}], unreduced={"y", "z"}')
    assert steps('[{"x"}, {}], unreduced={"y"}', '[{}, {}], unreduced={"x", "y", "z"}') == (
        ReplicatedToUnreduced(axes("z"), between),
        ShardedToUnreduced((axes("x"), ()), target),
    )


def test_only_the_minor_most_axes_of_a_dimension_become_partial_in_place() -> None:
    # "x" is not the minor-most axis, so the dimension is resharded first.
    before = sharding('[{"y"}]')
    assert steps('[{"x", "y"}]', '[{"y"}], unreduced={"x"}') == (
        Reshard(before),
        ReplicatedToUnreduced(axes("x"), sharding('[{"y"}], unreduced={"x"}')),
    )


def test_a_part_of_an_axis_becomes_partial() -> None:
    target = '[{"z":(1)2}], unreduced={"z":(2)2}'
    step = ShardedToUnreduced(((AxisRef.sub("z", 2, 2),),), sharding(target))
    assert steps('[{"z"}]', target) == (step,)


def test_partial_tensors_stay_on_their_mesh() -> None:
    other = TensorSharding.fully_closed(1, "other")
    with pytest.raises(ReshardError, match="the meshes must be equal"):
        steps_between(sharding('[{}], unreduced={"x"}'), other, MESHES, with_reshard=False)
