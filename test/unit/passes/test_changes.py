# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes that return `Changes` name all their changes, because nothing else is verified after them."""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any

import pytest
from passes.programs import modules
from passes.snapshots import Snapshot

import mlir_shard
from mlir_shard.dialects import verification
from mlir_shard.host import ir
from mlir_shard.ir.editing import ops_below
from mlir_shard.passes.registry import Changes, Pass, registered, search

PIPELINES = ("sdy-propagation-pipeline", "spmd-pipeline")
# From this pass on, the passes of pipelines return no `Changes` and take long.
AFTER_CHANGES = "spmdize"


def passes_with_changes() -> dict[str, type[Pass]]:
    """Returns the project's passes that may return `Changes`, by name."""
    search("mlir_shard.transforms")
    return {name: one for name, one in registered().items() if _returns_changes(one)}


def _returns_changes(one: type[Pass]) -> bool:
    returned = typing.get_type_hints(one.run)["return"]
    return Changes in (returned, *typing.get_args(returned))


def test_changes_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pass names its changes, by itself on the programs of its stage, and in pipelines on all programs."""
    returned: dict[str, list[str]] = {}
    failures: list[Exception] = []

    def watched(run: Callable[[Pass, Any], Any]) -> Callable[[Pass, Any], Any]:
        def compare(this: Pass, op: Any) -> Any:
            before = Snapshot(op)
            changes = run(this, op)
            if isinstance(changes, Changes):
                unnamed = returned.setdefault(this.name, [])
                unnamed += before.unnamed(op, changes)
                if not (op.verify() and verification.verify(op)):
                    unnamed.append("not valid")
            return changes

        return compare

    passes = passes_with_changes()
    for one in passes.values():
        monkeypatch.setattr(one, "run", watched(one.run))

    def end(_: Pass, op: Any) -> None:
        raise mlir_shard.PassFailure("no more", op)

    monkeypatch.setattr(registered()[AFTER_CHANGES], "run", end)
    of_stage: dict[str, list[str]] = {}
    for name, one in passes.items():
        of_stage.setdefault(one.__module__.split(".")[2], []).append(name)
    for stage, module in modules(mlir_shard.create_context()):
        for name in (*of_stage.get(stage, ()), *PIPELINES):
            try:
                mlir_shard.run(module.operation.clone().operation, [name], report=lambda _: None)
            except mlir_shard.PassFailure as failure:
                if "raised" in str(failure):
                    failures.append(failure)
    assert not failures
    assert returned == {name: [] for name in passes}


TEXT = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8x16xf32>, %b: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = stablehlo.add %a, %b : tensor<8x16xf32>
  %1 = stablehlo.tanh %a : tensor<8x16xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}
"""


def _attribute(ops: list[Any]) -> None:
    ops[0].attributes["test"] = ir.UnitAttr.get(ops[0].context)


def _operand(ops: list[Any]) -> None:
    ops[0].operands[1] = ops[0].operands[0]


def _use(ops: list[Any]) -> None:
    ops[0].results[0].replace_all_uses_with(ops[1].results[0])


def _type(ops: list[Any]) -> None:
    ops[1].results[0].set_type(ir.IntegerType.get_signless(32, ops[0].context))


def _order(ops: list[Any]) -> None:
    ops[1].move_before(ops[0])


def _made(ops: list[Any]) -> None:
    ops[1].clone(ip=ir.InsertionPoint(ops[2]))


@pytest.mark.parametrize("change", [_attribute, _operand, _use, _type, _order, _made])
def test_snapshots_tell_what_is_not_named(change: Callable[[list[Any]], None]) -> None:
    module = mlir_shard.parse(TEXT, mlir_shard.create_context())
    ops = [op for op in ops_below(module) if op.name.startswith("stablehlo.")]
    before = Snapshot(module)
    assert not list(before.unnamed(module, Changes()))

    change(ops)

    assert list(before.unnamed(module, Changes(attributed=[ops[2]])))
    every = [op for op in ops_below(module) if op.name.startswith("stablehlo.")]
    assert not list(before.unnamed(module, Changes(every)))
    # Users of moved operations are covered if the types of their operands stay the same.
    assert bool(list(before.unnamed(module, Changes(moved=every[:-1])))) == (change is _type)
