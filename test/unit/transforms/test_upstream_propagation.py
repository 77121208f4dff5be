# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every sharding of upstream's propagation is found here too: the benchmark on its programs and some of its ops."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import mlir_shard

BENCHMARK = Path(__file__).resolve().parents[3] / "benchmarks" / "upstream_propagation.py"
EVERY = 23


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location(BENCHMARK.stem, BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # The dataclass decorator looks up the module by its name.
    sys.modules[BENCHMARK.stem] = module
    spec.loader.exec_module(module)
    return module


BENCH = _load()


@pytest.fixture(scope="module")
def context() -> Any:
    return mlir_shard.create_context()


@pytest.mark.parametrize("program", list(BENCH.programs()), ids=lambda program: program.name)
def test_programs(program: Any, context: Any) -> None:
    comparison = BENCH.compare(program, context)
    assert comparison.missing == []
    if comparison.refusal is None:
        assert comparison.same > 0


@pytest.mark.parametrize("program", list(BENCH.programs()), ids=lambda program: program.name)
def test_upstream_keeps_what_is_decided_here(program: Any, context: Any) -> None:
    if BENCH.compare(program, context).refusal is not None:
        return
    module = program.parse(context)
    mlir_shard.run(module, f"builtin.module({BENCH.HERE},convert-sdy-to-shard)")
    decided = BENCH.annotated(module)
    assert all(len(tensor.annotations) == 1 for tensor in decided)
    mlir_shard.run(module, "builtin.module(func.func(sharding-propagation))")
    assert BENCH.annotated(module) == decided


def test_upstream_accepts_most_programs(context: Any) -> None:
    refusals = [BENCH.compare(program, context).refusal for program in BENCH.programs()]
    assert refusals.count(None) >= 20
    assert all("sharding interface is not implemented" in refusal for refusal in refusals if refusal is not None)


def test_some_ops(context: Any) -> None:
    comparisons = [BENCH.compare(program, context) for program in list(BENCH.ops(context))[::EVERY]]
    assert [text for one in comparisons for text in one.missing] == []
    assert sum(one.same for one in comparisons) > len(comparisons)


def test_what_is_missing_is_seen() -> None:
    theirs = BENCH.Annotated("a", (8, 8, 1), (((0,), (1,), (2,)),))
    comparison = BENCH.Comparison(None, 1, 1)
    comparison.add(theirs, BENCH.Annotated("a", (8, 8, 1), (((1,),),)))
    assert (comparison.same, comparison.size_one, len(comparison.other), len(comparison.missing)) == (0, 1, 2, 0)
    comparison.add(theirs, BENCH.Annotated("a", (8, 8, 1), (((0,),),)))
    assert comparison.missing == ["a: upstream [[0], [1], [2]], here [[0]]"]
    assert not BENCH.report([BENCH.Comparison(BENCH.Program("p", ""), 1, 1, missing=["a"])])
