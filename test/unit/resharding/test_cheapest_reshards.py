# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the cheapest reshards around ops, against Shardy's choice."""

from __future__ import annotations

from random import Random

import pytest
from resharding.every_layout import mesh_of
from resharding.random_ops import random_problem, sharded_op

from mlir_shard.resharding.operator.cheapest_reshards import CheapestReshards, PricedReshards
from mlir_shard.resharding.operator.op_reshards import OpKind, ShardedOp, reshards_around
from mlir_shard.resharding.operator.reshard_prices import OpTensor, PlannedPrices, Price
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, Mesh, OpShardingRule, ReductionOp, TensorSharding
from mlir_shard.sharding.rule import TensorMapping

MESH = mesh_of(2, 2)
MESHES = {"m": MESH, "reversed": mesh_of(2, 2, device_ids=(3, 2, 1, 0)), "one": Mesh.maximal(0)}
A, B = AxisRef("a"), AxisRef("b")
OUTER = OpShardingRule((64, 32), (TensorMapping.of([0]), TensorMapping.of([1])), (TensorMapping.of([0], [1]),))
TENSORS = tuple(OpTensor(shape, 4) for shape in ((64,), (32,), (64, 32)))


def sharded(*dims: tuple[AxisRef, ...], unreduced: tuple[AxisRef, ...] = (), ref: str = "m") -> TensorSharding:
    closed = TensorSharding.closed_with(dims, ref)
    return TensorSharding(ref, closed.dim_shardings, (), unreduced)


class CountedPrices(PlannedPrices):
    """Prices, with the number of requests for them."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def price(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Price:
        self.count += 1
        return super().price(source, target, element_size)


def outer(*shardings: TensorSharding | None) -> ShardedOp:
    return ShardedOp(OUTER, shardings[:2], shardings[2:], (64, 32, 64 * 32))


def around(op: ShardedOp, prices: CountedPrices | None = None) -> PricedReshards:
    cheapest = CheapestReshards(prices or PlannedPrices())
    return cheapest.around(op, TENSORS, ReductionOp.SUM, MESHES)


def test_the_cheaper_one() -> None:
    found = around(outer(sharded((A,)), None, sharded((), ())))
    assert found.reshards is not None
    assert found.reshards.operands == (sharded(()), None)
    assert found.reshards.users == (None,)
    assert found.cost is not None
    assert found.cost > found.resharding_operands[0] > found.resharding_operands[1] == 0.0


def test_shardys_where_it_costs_the_same() -> None:
    rule = OpShardingRule.pointwise((8, 8), 2)
    for shardings in ([(A,), ()], [(), (A,)], [(A,), ()]), ([(A,), ()], [(B,), ()], [(B,), ()]):
        operands = tuple(sharded(*dims) for dims in shardings[:2])
        op = ShardedOp(rule, operands, (sharded(*shardings[2]),), (64, 64, 64))
        found = CheapestReshards(PlannedPrices()).around(op, (OpTensor((8, 8), 4),) * 3, ReductionOp.SUM, MESHES)
        assert found.reshards == reshards_around(op, MESHES, full=True)


def test_what_agrees_is_left_alone() -> None:
    found = around(outer(sharded((A,)), sharded((B,)), sharded((A,), (B,))))
    assert found.reshards is None
    assert found.resharding_operands == (0.0, 0.0)


def test_a_lookup_of_a_sharded_batch_in_a_large_table_keeps_the_batch() -> None:
    # A device reads one row of the table for each index, not its shard of the table.
    mappings = (TensorMapping.of([0], [1]), TensorMapping.of([2])), (TensorMapping.of([2], [1]),)
    rule = OpShardingRule((50304, 512, 8192), *mappings, reduction_factors=(0,))
    op = ShardedOp(
        rule,
        (sharded((A,), ()), sharded((B,))),
        (sharded((B,), ()),),
        (50304 * 512, 8192, 8192 * 512),
        OpKind.INDEXING,
    )
    tensors = (OpTensor((50304, 512), 4), OpTensor((8192,), 4), OpTensor((8192, 512), 4))
    found = CheapestReshards(PlannedPrices()).around(op, tensors, ReductionOp.SUM, MESHES)
    assert found.reshards is not None
    assert found.reshards.operands == (None, None)
    assert found.resharding_operands == (0.0, 0.0)


def test_no_shardings() -> None:
    assert around(outer(None, None, None)) == PricedReshards(None)


def test_partial_values_are_not_weighed() -> None:
    op = outer(sharded((A,)), None, sharded((), (), unreduced=(B,)))
    prices = CountedPrices()
    assert around(op, prices) == PricedReshards(reshards_around(op, MESHES, full=True))
    assert prices.count == 0


def test_another_order_of_devices() -> None:
    op = outer(sharded((A,), ref="reversed"), sharded((B,)), sharded((A,), (B,)))
    found = around(op)
    assert found.reshards is not None
    assert found.reshards.operands == (sharded((A,)), None)
    assert found.resharding_operands[0] > 0.0


def test_a_reduction_that_nothing_combines_is_whole() -> None:
    rule = OpShardingRule((64, 32), (TensorMapping.of([0], [1]),), (TensorMapping.of([0]),), reduction_factors=(1,))
    tensors = OpTensor((64, 32), 4), OpTensor((64,), 4)
    for reducible in (True, False):
        op = ShardedOp(rule, (sharded((), (A,)),), (sharded(()),), (64 * 32, 64), reducible=reducible)
        found = CheapestReshards(PlannedPrices()).around(op, tensors, ReductionOp.MAX, MESHES).reshards
        assert found is not None
        assert bool(found.reduced_axes) == reducible


def test_a_change_of_sharding_is_priced_once() -> None:
    prices = CountedPrices()
    cheapest = CheapestReshards(prices)
    op = outer(sharded((A,)), None, sharded((), ()))
    cheapest.around(op, TENSORS, ReductionOp.SUM, MESHES)
    count = prices.count
    assert count > 0
    cheapest.around(op, TENSORS, ReductionOp.SUM, MESHES)
    assert prices.count == count


class TestBetween:
    CHEAPEST = CheapestReshards(PlannedPrices())
    TENSOR = OpTensor((64, 32), 4)

    def between(self, source: TensorSharding | None, target: TensorSharding | None) -> float | None:
        return self.CHEAPEST.between(source, target, self.TENSOR, MESHES)

    def test_nothing_for_slices_and_what_is_there(self) -> None:
        assert self.between(None, None) == 0.0
        assert self.between(sharded((A,), ()), sharded((A,), ())) == 0.0
        assert self.between(None, sharded((A,), ())) == 0.0

    def test_what_has_to_be_received(self) -> None:
        whole, half = self.between(sharded((A,), ()), None), self.between(sharded((A,), ()), sharded((), (A,)))
        assert whole is not None
        assert half is not None
        assert whole > half > 0.0

    def test_not_where_a_tensor_is_on_one_device(self) -> None:
        assert self.between(TensorSharding("one", ()), sharded((A,), ())) is None


def test_all_tensors_end_up_along_the_same_axes() -> None:
    random = Random(3)
    for _ in range(40):
        problem = random_problem(random, MESH)
        op = sharded_op(problem)
        found = CheapestReshards(PlannedPrices()).around(op, problem.tensors, ReductionOp.SUM, MESHES)
        assert found.cost is not None
        if found.reshards is None:
            continue
        new = [one or own for one, own in zip(found.reshards.operands, op.operands, strict=True)]
        again = ShardedOp(op.rule, tuple(new), found.reshards.results, op.tensor_sizes)
        settled = reshards_around(again, MESHES, full=True)
        assert settled is None or not (any(settled.operands) or any(settled.users))


@pytest.mark.parametrize("field", ["moving", "latency"])
def test_prices_add_up(field: str) -> None:
    one = Price(**{field: 2.0})
    assert (one + one).seconds == 4.0
    assert getattr(one + Price(1.0, 1.0), field) == 3.0
