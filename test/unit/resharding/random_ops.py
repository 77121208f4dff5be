# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random einsum-like ops with shardings that conflict."""

from __future__ import annotations

from math import prod
from random import Random

from mlir_shard.resharding.operator.common_axes import AxesPerFactor
from mlir_shard.resharding.operator.op_form import OpForm
from mlir_shard.resharding.operator.op_problem import OpProblem
from mlir_shard.resharding.operator.op_reshards import OpKind, ShardedOp, axes_of_factors
from mlir_shard.resharding.operator.reshard_prices import OpTensor
from mlir_shard.sharding import AxisRef, Mesh, OpShardingRule, TensorSharding
from mlir_shard.sharding.rule import TensorMapping


def random_problem(random: Random, mesh: Mesh, *, sizes: tuple[int, ...] = (16, 32, 64, 128)) -> OpProblem:
    """Returns an op with one or two operands, a result and 2 to 4 factors, one of which may have to stay unsharded.

    A quarter of the ops index.
    """
    num_factors = random.choice((2, 3, 3, 4))
    factor_sizes = tuple(random.choice(sizes) for _ in range(num_factors))
    tensors = [_some_factors(random, num_factors) for _ in range(random.choice((2, 3, 3)))]
    reduced = tuple(factor for factor in range(num_factors) if factor not in tensors[-1])
    kept = [factor for factor in range(num_factors) if factor not in reduced]
    special = (random.choice(kept),) if kept and random.random() < 0.25 else ()
    is_whole = random.random() < 0.5
    mappings = tuple(TensorMapping.of(*([factor] for factor in factors)) for factors in tensors)
    rule = OpShardingRule(
        factor_sizes,
        mappings[:-1],
        mappings[-1:],
        reduction_factors=reduced,
        need_replication_factors=special if is_whole else (),
        permutation_factors=() if is_whole else special,
    )
    shardings = tuple(_sharding(random, mesh, len(factors)) for factors in tensors)
    shapes = (tuple(factor_sizes[factor] for factor in factors) for factors in tensors)
    tensors_of_op = tuple(OpTensor(shape, 4) for shape in shapes)
    return OpProblem(OpForm(rule, shardings, mesh), factor_sizes, tensors_of_op, indexes=random.random() < 0.25)


def axes_of_shardy(problem: OpProblem) -> AxesPerFactor:
    """Returns the axes that Shardy's heuristic chooses for each factor."""
    return axes_of_factors(sharded_op(problem), ("m", problem.form.mesh))


def sharded_op(problem: OpProblem) -> ShardedOp:
    """Returns the op of a problem."""
    count = len(problem.form.rule.operand_mappings)
    sizes = tuple(prod(tensor.shape) for tensor in problem.tensors)
    kind = OpKind.INDEXING if problem.indexes else OpKind.OTHER
    return ShardedOp(problem.form.rule, problem.form.shardings[:count], problem.form.shardings[count:], sizes, kind)


def _some_factors(random: Random, count: int) -> list[int]:
    factors = [factor for factor in range(count) if random.random() < 0.65] or [0]
    random.shuffle(factors)
    return factors


def _sharding(random: Random, mesh: Mesh, rank: int) -> TensorSharding:
    names = list(mesh.axis_names)
    random.shuffle(names)
    dims: list[list[AxisRef]] = [[] for _ in range(rank)]
    for name in names:
        if random.random() < 0.6:
            random.choice(dims).append(AxisRef(name))
    return TensorSharding.closed_with(map(tuple, dims), "m")
