# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the axes along which ops are computed at the least cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations, product
from math import inf
from random import Random

import pytest
from resharding.every_layout import mesh_of
from resharding.random_ops import axes_of_shardy, random_problem, sharded_op

from mlir_shard.resharding.cost.links import DeviceRates
from mlir_shard.resharding.operator.common_axes import AxesPerFactor
from mlir_shard.resharding.operator.op_assignment import (
    MOST_NODES,
    CandidateSearch,
    OpAssignment,
    cheapest_assignment,
)
from mlir_shard.resharding.operator.op_cost import OpCosts
from mlir_shard.resharding.operator.op_form import OpForm
from mlir_shard.resharding.operator.op_problem import OpProblem
from mlir_shard.resharding.operator.op_reshards import reshards_to
from mlir_shard.resharding.operator.reshard_prices import OpTensor, PlannedPrices, Price, Reshardings
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, Mesh, OpShardingRule, TensorSharding
from mlir_shard.sharding.axes import Axes
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.sharding.rule import TensorMapping

RESHARDINGS = Reshardings(PlannedPrices())
A, B = AxisRef("a"), AxisRef("b")


def costs_of(problem: OpProblem, rates: DeviceRates | None = None) -> OpCosts:
    return OpCosts(problem, axes_of_shardy(problem), RESHARDINGS, rates or DeviceRates())


def cheapest(problem: OpProblem, rates: DeviceRates | None = None) -> OpAssignment:
    return cheapest_assignment(problem, costs_of(problem, rates))


def every_assignment(problem: OpProblem) -> Iterator[AxesPerFactor]:
    """Yields all assignments of full axes to factors, in any order, with even shards, that shardings can express."""
    mesh, rule = problem.form.mesh, problem.form.rule
    axes = [AxisRef(name) for name in mesh.axis_names]
    lists: list[Axes] = [one for count in range(len(axes) + 1) for one in permutations(axes, count)]

    def may_have(factor: int, one: Axes) -> bool:
        blocks = 1
        for axis in one:
            blocks *= axis.size(mesh)
        return rule.factor_sizes[factor] % blocks == 0 and not (one and factor in rule.need_replication_factors)

    choices = [[one for one in lists if may_have(factor, one)] for factor in range(rule.num_factors)]
    for assigned in product(*choices):
        if any(set(one) & set(other) for one, other in combinations(assigned, 2)):
            continue
        wanted = ShardingProjection.of_factors(assigned, rule)
        said = ShardingProjection.build(*wanted.to_shardings(rule, mesh, mesh), rule, mesh)
        if said.common_prefix_axes() == assigned:
            yield assigned


def problem_of(rule: OpShardingRule, mesh: Mesh, *dims: tuple[Axes, ...], element_size: int = 4) -> OpProblem:
    shardings = tuple(TensorSharding.closed_with(one, "m") for one in dims)
    tensors = []
    for mapping in rule.tensor_mappings:
        shape = []
        for dim in mapping.dim_mappings:
            size = 1
            for factor in dim.factor_indices:
                size *= rule.factor_sizes[factor]
            shape.append(size)
        tensors.append(OpTensor(tuple(shape), element_size))
    return OpProblem(OpForm(rule, shardings, mesh), rule.factor_sizes, tuple(tensors))


def matmul(rows: int, columns: int, contracted: int) -> OpShardingRule:
    return OpShardingRule(
        (rows, columns, contracted),
        (TensorMapping.of([0], [2]), TensorMapping.of([2], [1])),
        (TensorMapping.of([0], [1]),),
        reduction_factors=(2,),
    )


def test_as_cheap_as_the_cheapest_of_all() -> None:
    random = Random(0)
    mesh = mesh_of(2, 2)
    for _ in range(60):
        problem = random_problem(random, mesh)
        if problem.form.rule.permutation_factors:
            continue
        costs = costs_of(problem)
        best = min(map(costs.cost, every_assignment(problem)))
        used = {axis.name for sharding in problem.form.shardings if sharding for axis in sharding.used_axes}
        found = cheapest(problem)
        assert found.is_exact
        if used == {"a", "b"}:
            assert found.cost == pytest.approx(best)
        else:
            assert found.cost >= best * (1 - 1e-9)


def agreeing(problem: OpProblem, axes: AxesPerFactor) -> OpProblem:
    """Returns the op with all its tensors sharded along these axes of the factors."""
    projection = ShardingProjection.of_factors(axes, problem.form.rule)
    operands, results = projection.to_shardings(problem.form.rule, problem.form.mesh, problem.form.mesh)
    return replace(problem, form=replace(problem.form, shardings=(*operands, *results)))


def test_the_axes_that_all_tensors_keep_are_the_ones_chosen_whatever_the_sizes() -> None:
    random = Random(5)
    mesh, numbers = mesh_of(2, 2), {True: 0, False: 0}
    for _ in range(300):
        problem = random_problem(random, mesh)
        if random.random() < 0.5:
            problem = agreeing(problem, random.choice(list(every_assignment(problem))))
        costs = costs_of(problem)
        kept, rule = problem.form.kept_axes, problem.form.rule
        stays = cheapest(problem).stays and not rule.permutation_factors
        if kept is not None:
            assert kept == costs.known
            assert costs.compute.cost_if_least(kept, 0.0, costs.move_latency) == costs.known_if_least()
            sizes = tuple(2 * size for size in rule.factor_sizes)
            assert replace(problem.form, rule=replace(rule, factor_sizes=sizes)).kept_axes == kept
        assert kept is not None or not stays
        numbers[stays] += 1
    assert min(numbers.values()) > 50


def test_where_nothing_has_to_move_all_others_cost_as_much() -> None:
    random = Random(3)
    mesh = mesh_of(2, 2)
    num_kept = 0
    for _ in range(60):
        problem = random_problem(random, mesh, sizes=(1, 4, 24, 4096))
        # A permutation factor gets no axes of others.
        if problem.form.rule.permutation_factors:
            continue
        assignments = list(every_assignment(problem))
        assigned = random.choice([one for one in assignments if sum(map(len, one)) == 2] or assignments)
        problem = agreeing(problem, assigned)
        rates = DeviceRates(operations=10.0 ** random.randrange(4, 15), memory=10.0 ** random.randrange(4, 13))
        costs = OpCosts(problem, assigned, RESHARDINGS, rates)
        found = cheapest_assignment(problem, costs)
        assert found.cost == pytest.approx(min(map(costs.cost, assignments)))
        num_kept += found.axes_per_factor == assigned
    assert 10 < num_kept < 60


def test_an_op_that_stays_is_not_resharded_around() -> None:
    random = Random(4)
    mesh = mesh_of(2, 3)
    num_staying = 0
    for _ in range(200):
        problem = random_problem(random, mesh, sizes=(1, 4, 24, 4096))
        if random.random() < 0.7:
            problem = agreeing(problem, axes_of_shardy(problem))
        found = cheapest(problem)
        op = sharded_op(problem)
        reshards = reshards_to(op, found.axes_per_factor, ("m", mesh), {"m": mesh})
        assert reshards == reshards_to(
            op, found.axes_per_factor, ("m", mesh), {"m": mesh}, (problem.form.rule, problem.form.projection)
        )
        if found.stays:
            assert reshards is None
            num_staying += 1
    assert 20 < num_staying < 200


@pytest.mark.parametrize(("sizes", "count"), [((2, 2), 150), ((2, 3), 60), ((4, 2, 2), 12)])
def test_never_dearer_than_shardys(sizes: tuple[int, ...], count: int) -> None:
    random = Random(1)
    mesh = mesh_of(*sizes)
    num_cheaper = 0
    for _ in range(count):
        problem = random_problem(random, mesh, sizes=(24, 48, 96))
        known = axes_of_shardy(problem)
        cost = costs_of(problem).cost(known)
        found = cheapest(problem)
        assert found.cost <= cost
        assert found.cost == pytest.approx(costs_of(problem).cost(found.axes_per_factor))
        if found.cost == cost:
            assert found.axes_per_factor == known
        num_cheaper += found.cost < cost
    assert num_cheaper > count / 10


def test_bounds_are_no_more_than_costs() -> None:
    random = Random(2)
    mesh = mesh_of(2, 2)
    compared = 0
    for _ in range(30):
        problem = random_problem(random, mesh)
        costs = costs_of(problem)
        search = CandidateSearch(problem, costs)
        native = search.native()
        found, _ = native.below(inf, MOST_NODES, 1000)
        for bound, least, numbers in random.sample(found, min(10, len(found))):
            assigned = search.axes(numbers)
            assert bound <= least <= costs.cost(assigned) * (1 + 1e-9)
            for index, seconds in enumerate(native.least_moves(numbers)):
                assert seconds <= costs.tensor_price(index, assigned).seconds * (1 + 1e-9)
                compared += seconds > 0
    assert compared > 100


class CountedPrices(PlannedPrices):
    """Prices, with the number of requests for them."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def price(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Price:
        self.count += 1
        return super().price(source, target, element_size)


def test_few_are_priced() -> None:
    """Lower bounds on the cost of plans rule out most assignments that shard the contracted factor."""
    mesh = mesh_of(4, 4, 2, 8, 2)
    a, b, c, d, e = map(AxisRef, mesh.axis_names)
    rule = OpShardingRule(
        (8, 32, 1280, 14336, 4096),
        (TensorMapping.of([0], [1], [2], [3]), TensorMapping.of([0], [3], [4])),
        (TensorMapping.of([0], [1], [2], [4]),),
        reduction_factors=(3,),
    )
    problem = problem_of(rule, mesh, ((e,), (a, b), (c,), (d,)), ((e,), (d,), ()), ((e,), (a, b), (c,), ()))
    prices = CountedPrices()
    costs = OpCosts(problem, axes_of_shardy(problem), Reshardings(prices), DeviceRates())
    found = cheapest_assignment(problem, costs)
    assert found.cost <= costs.cost(costs.known)
    assert prices.count < 10


def test_what_is_in_the_result_alone_may_be_computed_whole_for_less() -> None:
    rule = OpShardingRule((2**16, 2), (TensorMapping.of([0]),), (TensorMapping.of([1]),))
    found = cheapest(problem_of(rule, mesh_of(2), ((),), ((A,),)))
    assert found.axes_per_factor == ((A,), ())


def test_axes_that_only_the_result_has_are_kept_without_a_search() -> None:
    broadcast = OpShardingRule((64, 32), (TensorMapping.of([1]),), (TensorMapping.of([0], [1]),))
    found = cheapest(problem_of(broadcast, mesh_of(2, 2), ((),), ((A,), ())))
    assert (found.axes_per_factor, found.stays) == (((A,), ()), True)
    # The axis would be free for a factor that the operand alone has, of a size that can be sharded.
    for size, stays in ((1, True), (8, False)):
        rule = OpShardingRule((64, size), (TensorMapping.of([1]),), (TensorMapping.of([0]),))
        assert cheapest(problem_of(rule, mesh_of(2), ((),), ((A,),))).stays == stays


def test_axes_that_are_kept_cost_least_whatever_tensors_have_a_factor() -> None:
    random, mesh = Random(11), mesh_of(2, 2)
    kept = dict.fromkeys(("result", "operand"), 0)
    for _ in range(400):
        count = random.choice((2, 3, 4))
        tensors = [[one for one in range(count) if random.random() < 0.6] for _ in range(random.choice((2, 3)))]
        mappings = tuple(TensorMapping.of(*([factor] for factor in factors)) for factors in tensors)
        sizes = tuple(random.choice((1, 4, 24, 4096)) for _ in range(count))
        used = {factor for factors in tensors for factor in factors}
        only = {factor for factor in used if factor not in tensors[-1]}
        reduced = tuple(factor for factor in sorted(only) if random.random() < 0.5)
        rule = OpShardingRule(sizes, mappings[:-1], mappings[-1:], reduction_factors=reduced)
        problem = problem_of(rule, mesh, *(((),) * len(factors) for factors in tensors))
        assignments = list(every_assignment(problem))
        assigned = random.choice(assignments)
        problem = agreeing(problem, assigned)
        rates = DeviceRates(operations=10.0 ** random.randrange(4, 15), memory=10.0 ** random.randrange(4, 13))
        costs = OpCosts(problem, assigned, RESHARDINGS, rates)
        least = costs.known_if_least()
        if least is not None:
            in_use = {axis for axes in assigned for axis in axes}
            others = [one for one in assignments if in_use.issuperset(axis for axes in one for axis in axes)]
            assert least <= min(map(costs.cost, others)) * (1 + 1e-9)
            in_result = {factor for factor, axes in enumerate(assigned) if axes and factor in tensors[-1]}
            of_operands = {factor for factors in tensors[:-1] for factor in factors}
            kept["operand" if in_result <= of_operands else "result"] += 1
    assert min(kept.values()) > 20


def test_a_search_that_ends_early_is_not_exact() -> None:
    problem = problem_of(matmul(64, 64, 64), mesh_of(2), ((), (A,)), ((A,), ()), ((A,), ()))
    known = axes_of_shardy(problem)
    found = cheapest_assignment(problem, costs_of(problem), most_nodes=1)
    assert (found.axes_per_factor, found.is_exact) == (known, False)


def test_too_many_axes() -> None:
    mesh = mesh_of(*[2] * 7)
    axes = tuple(map(AxisRef, mesh.axis_names))
    rule = OpShardingRule.pointwise((256, 256), 1)
    problem = problem_of(rule, mesh, (axes[:4], axes[4:]), (axes[4:], axes[:4]))
    with pytest.raises(ValueError, match="7 axes and sub-axes are in use, more than 6"):
        cheapest(problem)


class TestMatmul:
    """A matmul whose operands are sharded along the contracted dimension, and the result along the rows."""

    def axes(self, contracted: int, devices: int = 8) -> AxesPerFactor:
        shardings = ((), (A,)), ((A,), ()), ((A,), ())
        return cheapest(problem_of(matmul(1024, 1024, contracted), mesh_of(devices), *shardings)).axes_per_factor

    def test_long_contractions_are_computed_where_they_lie(self) -> None:
        assert self.axes(1024) == ((), (), (A,))

    def test_short_ones_have_the_operands_resharded(self) -> None:
        assert self.axes(640) == ((A,), (), ())
        assert self.axes(128) == ((A,), (), ())

    def test_outer_products_gather_what_is_small(self) -> None:
        rule = OpShardingRule((64, 32), (TensorMapping.of([0]), TensorMapping.of([1])), (TensorMapping.of([0], [1]),))
        problem = problem_of(rule, mesh_of(2), ((A,),), ((),), ((), ()))
        assert axes_of_shardy(problem) == ((A,), ())
        assert cheapest(problem).axes_per_factor == ((), ())


class TestComputing:
    """A matmul for which gathering the left operand moves as many bytes as reducing the result."""

    PROBLEM = problem_of(matmul(512, 256, 512), mesh_of(2), ((), (A,)), ((), ()), ((), ()))

    def test_the_same_on_all_devices_is_not_for_nothing(self) -> None:
        costs = costs_of(self.PROBLEM)
        gathered, reduced = ((), (), ()), ((), (), (A,))
        received = [sum(costs.tensor_price(index, axes).moving for index in range(3)) for axes in (gathered, reduced)]
        assert received[0] == pytest.approx(received[1])
        assert costs.cost(gathered) > costs.cost(reduced)
        assert cheapest(self.PROBLEM).axes_per_factor == reduced

    def test_it_may_be_cheaper_than_to_receive_more(self) -> None:
        problem = problem_of(matmul(512, 512, 64), mesh_of(2), ((), (A,)), ((), ()), ((), ()))
        assert cheapest(problem).axes_per_factor == ((), (), ())
        slow = DeviceRates(operations=1e9)
        assert cheapest(problem, slow).axes_per_factor != ((), (), ())

    def test_by_the_longer_of_operations_and_memory(self) -> None:
        rates = DeviceRates(operations=100.0, memory=10.0)
        assert rates.seconds(200, 10) == 2.0
        assert rates.seconds(200, 50) == 5.0
        costs = costs_of(problem_of(matmul(4, 8, 16), mesh_of(2), ((), ()), ((), ()), ((), ())), rates)
        assert costs.compute.of(((), (), ())) == max(2 * 4 * 8 * 16 / 100, 4 * (4 * 16 + 16 * 8 + 4 * 8) / 10)
        assert costs.compute.of(((A,), (), ())) == max(2 * 2 * 8 * 16 / 100, 4 * (2 * 16 + 16 * 8 + 2 * 8) / 10)

    @pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
    def test_rates_are_positive(self, rate: float) -> None:
        with pytest.raises(ValueError, match="memory: expected a positive number"):
            DeviceRates(memory=rate)


class TestFactorsThatAreNotJustSharded:
    MAPPING = TensorMapping.of([0], [1])

    def rule(self, **factors: tuple[int, ...]) -> OpShardingRule:
        return OpShardingRule((64, 64), (self.MAPPING,), (self.MAPPING,), **factors)

    def test_one_that_is_whole_gives_its_axes_to_another(self) -> None:
        problem = problem_of(self.rule(need_replication_factors=(1,)), mesh_of(2), ((), (A,)), ((), (A,)))
        assert cheapest(problem).axes_per_factor == ((A,), ())

    def test_a_sharded_permutation_receives_a_block(self) -> None:
        rule = self.rule(permutation_factors=(1,))
        problem = problem_of(rule, mesh_of(2), ((), (A,)), ((), (A,)))
        costs = costs_of(problem, DeviceRates(network=1e6))
        assert costs.cost(((), (A,))) == pytest.approx(64 * 32 * 4 / 1e6 + costs.compute.of(((), (A,))))

    def test_nothing_moves_to_where_nothing_propagates(self) -> None:
        rule = self.rule(need_replication_factors=(1,), blocked_propagation_factors=(0,))
        problem = problem_of(rule, mesh_of(2), ((), (A,)), ((), (A,)))
        assert cheapest(problem).axes_per_factor[0] == axes_of_shardy(problem)[0]

    def test_what_dimensions_cannot_say_is_not_chosen(self) -> None:
        rule = OpShardingRule((4, 16), (TensorMapping.of([0, 1]),), (TensorMapping.of([0], [1]),))
        problem = problem_of(rule, mesh_of(2, 2), ((),), ((), (A, B)))
        found = cheapest(problem).axes_per_factor
        assert not found[1] or len(found[0]) == 2


def test_sub_axes() -> None:
    mesh = mesh_of(4)
    major, minor = AxisRef.sub("a", 1, 2), AxisRef.sub("a", 2, 2)
    wanted = (major,), (minor,)
    problem = problem_of(OpShardingRule.pointwise((64, 64), 2), mesh, ((A,), ()), wanted, wanted)
    assert cheapest(problem).axes_per_factor == wanted
