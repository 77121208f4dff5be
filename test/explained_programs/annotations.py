# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs in which the sharding of an argument changes, in the text and as a change."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from random_programs.generate import Scale, program

import mlir_shard
from mlir_shard.explain.what_if import Change, what_if
from mlir_shard.passes.registry import PassFailure
from mlir_shard.transforms.communication.communication_report import CommunicationReport
from mlir_shard.transforms.communication.shard_communication_report import communication_report

_MESH = re.compile(r"sdy\.mesh @(\w+) = <\[(.*?)\]>")
_AXIS = re.compile(r'"(\w+)"=')
_ARGUMENT = re.compile(r"(%\w+): tensor<((?:\d+x)+)\w+>(?: \{sdy\.sharding = #sdy\.sharding<[^>]*>\})?")


@dataclass(frozen=True, slots=True)
class Annotated:
    """A program, a change of one of the arguments of its main function, and the program with the change."""

    before: str
    change: str
    after: str


def annotated_at_random(seed: str, axes: tuple[int, int] = (1, 3)) -> Annotated:
    """Returns a random program with a random change, which the seed determines."""
    random = Random(seed)
    while True:
        text = program(f"{seed}/{random.random()}", scale=Scale.of(*axes)).write()
        found = _change(text, random)
        if found is not None:
            return found


def _change(text: str, random: Random) -> Annotated | None:
    mesh = _MESH.search(text)
    start = text.find("@main(")
    if mesh is None or start < 0 or len(_MESH.findall(text)) > 1 or "mesh<" in text:
        return None
    arguments = list(_ARGUMENT.finditer(text, start, text.index("->", start)))
    if not arguments:
        return None
    chosen = random.choice(arguments)
    rank = chosen[2].count("x")
    names = _AXIS.findall(mesh[2])
    dims: list[list[str]] = [[] for _ in range(rank)]
    for name in random.sample(names, random.randint(0, len(names))):
        random.choice(dims).append(f'"{name}"')
    sharding = f"[{', '.join('{' + ', '.join(axes) + '}' for axes in dims)}]"
    typed = chosen[0].partition(" {")[0]
    annotated = f"{typed} {{sdy.sharding = #sdy.sharding<@{mesh[1]}, {sharding}>}}"
    after = text[: chosen.start()] + annotated + text[chosen.end() :]
    return Annotated(text, f"@main:{chosen[1]}: @{mesh[1]}, {sharding}", after)


# The bytes that a device receives, and the kinds of the collectives with the bytes of each.
Costs = tuple[int, list[tuple[str, int]]]


def costs_of_change(one: Annotated, target: str) -> Costs | None:
    """Returns the predicted costs of a change, or None if the program with the change cannot be partitioned."""
    module = mlir_shard.parse(one.before)
    try:
        found = what_if(module, [Change.read(one.change)], collectives=target, sources={"-": one.before})
        return _costs(found.after.report)
    except PassFailure:
        return None


def costs_of_text(text: str, target: str) -> Costs | None:
    """Returns the costs of a program, or None if it cannot be partitioned."""
    module = mlir_shard.parse(text)
    try:
        mlir_shard.run(module, f"builtin.module(spmd-pipeline{{collectives={target} remarks-above=none}})")
    except PassFailure:
        return None
    return _costs(communication_report(module))


def _costs(report: CommunicationReport) -> Costs:
    found = [one.communication for one in report.collectives]
    return report.bytes_received, [(one.kind.value, one.bytes_received) for one in found]
