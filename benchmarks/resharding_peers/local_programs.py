# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Local programs of one reshard each, made by the entire pipeline, and the costs of their collectives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import mlir_shard
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.transforms.communication.communication_report import CommunicationReport
from mlir_shard.transforms.communication.shard_communication_report import communication_report
from resharding_peers.pairs import MESH
from resharding_peers.random_reshards import Reshard

TARGETS = ("shard", "stablehlo")


@dataclass(frozen=True, slots=True)
class Cost:
    """The bytes that a device receives, if the same one receives most in each collective, and predicted seconds.

    collectives: the kinds, in the order of the program; each message of an exchange is a collective, whose receivers
    are known.
    """

    bytes_received: int
    time: float
    collectives: tuple[str, ...] = ()


def program_costs(reshards: Sequence[Reshard], mesh: Mesh, target: str, model: CostModel) -> list[Cost | None]:
    """Returns the cost of the collectives in the local program of each reshard, None if the pipeline fails for it.

    All are functions of one module. Uneven shards are made from a replicated argument and reduced to a scalar, because
    StableHLO's programs take and return only even shards; the cost of this reduction is subtracted.
    """
    costs: list[Cost | None] = [None] * len(reshards)
    _measure(list(enumerate(reshards)), mesh, target, model, costs)
    return costs


def _measure(
    numbered: Sequence[tuple[int, Reshard]], mesh: Mesh, target: str, model: CostModel, costs: list[Cost | None]
) -> None:
    lines = [f"sdy.mesh @{MESH} = {mesh}"]
    for number, reshard in numbered:
        lines += _functions(number, reshard)
    module = mlir_shard.parse("\n".join(lines), mlir_shard.create_context())
    try:
        mlir_shard.run(module, f"builtin.module(spmd-pipeline{{collectives={target}}})")
        report = communication_report(module.operation, model)
    except PassFailure:
        # If the pass fails for one reshard, it fails for the entire module.
        half = len(numbered) // 2
        for part in (numbered[:half], numbered[half:]) if half else ():
            _measure(part, mesh, target, model, costs)
        return
    found = defaultdict(list)
    for one in report.collectives:
        found[one.function].append(one)

    def cost(function: str) -> Cost:
        of_function = CommunicationReport(tuple(found[function]))
        kinds = tuple(one.communication.kind.value for one in of_function.collectives)
        return Cost(of_function.bytes_received, of_function.time, kinds)

    for number, reshard in numbered:
        measured = cost(f"reshard_{number}")
        if not reshard.is_even:
            rest = cost(f"rest_{number}")
            kinds = measured.collectives[: len(measured.collectives) - len(rest.collectives)]
            measured = Cost(measured.bytes_received - rest.bytes_received, measured.time - rest.time, kinds)
        costs[number] = measured


def _functions(number: int, reshard: Reshard) -> list[str]:
    source, target = reshard.source.sharding, reshard.target.sharding
    if reshard.is_even:
        return [
            f"func.func @reshard_{number}(%arg: {reshard.type} {_attribute(source)}) "
            f"-> ({reshard.type} {_attribute(target)}) {{",
            f"  %0 = sdy.sharding_constraint %arg {target} : {reshard.type}",
            f"  return %0 : {reshard.type}",
            "}",
        ]
    sharded = [
        f"  %0 = sdy.sharding_constraint %arg {source} : {reshard.type}",
        f"  %1 = stablehlo.negate %0 : {reshard.type}",
        # Otherwise propagation may give the operand of the negation the target sharding, which needs no communication.
        f"  %2 = sdy.sharding_constraint %1 {source} : {reshard.type}",
        *_reduced("%2", reshard),
    ]
    return [
        *_replicated(f"reshard_{number}", sharded, reshard),
        *_replicated(f"rest_{number}", _reduced("%arg", reshard), reshard),
    ]


def _reduced(value: str, reshard: Reshard) -> list[str]:
    dims = ", ".join(map(str, range(len(reshard.target.shape))))
    return [
        f"  %3 = sdy.sharding_constraint {value} {reshard.target.sharding} : {reshard.type}",
        f"  %4 = stablehlo.negate %3 : {reshard.type}",
        "  %zero = stablehlo.constant dense<0.0> : tensor<f32>",
        f"  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [{dims}] "
        f": ({reshard.type}, tensor<f32>) -> tensor<f32>",
        "  return %5 : tensor<f32>",
    ]


def _replicated(name: str, body: Sequence[str], reshard: Reshard) -> list[str]:
    """Returns the lines of a function that takes a replicated tensor and returns a scalar."""
    whole = TensorSharding.fully_closed(len(reshard.source.shape), MESH)
    return [f"func.func @{name}(%arg: {reshard.type} {_attribute(whole)}) -> tensor<f32> {{", *body, "}"]


def _attribute(sharding: TensorSharding) -> str:
    return f"{{sdy.sharding = #sdy.sharding{sharding}}}"
