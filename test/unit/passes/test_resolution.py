# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the conversion of pipeline text to passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mlir_shard.passes import registry, resolution
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, register, register_pipeline
from mlir_shard.passes.resolution import PipelineError


class OnAny(Pass):
    name = "on-any"
    times: int = option(1, "how often")

    def run(self, op: Any) -> None:
        pass


class OnModule(OnAny):
    name = "on-module"
    anchor = "builtin.module"


class OnFunction(OnAny):
    name = "on-function"
    anchor = "func.func"


@pytest.fixture(autouse=True)
def passes(own_registry: None) -> None:
    for one in (OnAny, OnModule, OnFunction):
        register(one)


@pytest.mark.parametrize(
    "text",
    [
        "builtin.module(on-any,on-module{times=2},func.func(on-any,on-function{times=3},cse),canonicalize)",
        "builtin.module(func.func(llvm-request-c-wrappers),builtin.module(on-module),convert-func-to-llvm)",
        "any(on-any,on-function,any(cse))",
        "builtin.module()",
        "builtin.module(canonicalize{top-down=false disable-patterns={a,b}})",
    ],
)
def test_text_survives(text: str) -> None:
    assert str(resolution.from_text(text)) == text


def test_pipelines_of_the_host() -> None:
    assert "func.func(tosa-to-linalg{" in str(resolution.from_text("builtin.module(tosa-to-linalg-pipeline)"))


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("cse", 0, "the pipeline must be wrapped in the operation it runs on: builtin.module(cse)"),
        ("cse,on-any", 0, "the pipeline must be wrapped in the operation it runs on: builtin.module(cse,on-any)"),
        ("", 0, "the pipeline must be wrapped in the operation it runs on: builtin.module()"),
        ("builtin.module(ces)", 15, "'ces' is neither a pass nor a pipeline; did you mean 'cse'?"),
        (
            "builtin.module(on-functoin)",
            15,
            "'on-functoin' is neither a pass nor a pipeline; did you mean 'on-function'?",
        ),
        ("builtin.module(on-any{tims=1})", 22, "'on-any' has no option 'tims'; did you mean 'times'?"),
        ("builtin.module(on-any{times=x})", 22, "option 'times' of 'on-any' expects an integer, got 'x'"),
        ("builtin.module(cse{x=1})", 19, "'cse' has no option 'x': it has no options"),
        ("builtin.module(sccp{x=1})", 20, "'sccp' has no option 'x'"),
        (
            "builtin.module(on-function)",
            15,
            "pass 'on-function' runs on func.func, not on builtin.module: write func.func(on-function)",
        ),
        (
            "builtin.module(func.func(cse,on-module))",
            29,
            "pass 'on-module' runs on builtin.module, not on func.func: move it out of func.func(...)",
        ),
        (
            "builtin.module(func.func(convert-func-to-llvm))",
            25,
            "pass 'convert-func-to-llvm' runs on builtin.module, not on func.func: move it out of func.func(...)",
        ),
        (
            "builtin.module(llvm-request-c-wrappers)",
            15,
            "pass 'llvm-request-c-wrappers' runs on func.func, not on builtin.module: "
            "write func.func(llvm-request-c-wrappers)",
        ),
        ("builtin.module(cse(on-any))", 15, "'cse' is a pass and cannot contain passes"),
        ("builtin.module(func(cse))", 15, "'func' is not an operation: expected an anchor such as func.func"),
    ],
)
def test_refused(text: str, offset: int, message: str) -> None:
    with pytest.raises(PipelineError) as refused:
        resolution.from_text(text)
    assert (refused.value.message, refused.value.offset) == (message, offset)


def test_wrong_nesting_inside_a_host_pipeline() -> None:
    with pytest.raises(PipelineError) as refused:
        resolution.from_text("builtin.module(func.func(gpu-lower-to-nvvm-pipeline))")
    assert refused.value.message == (
        "pipeline 'gpu-lower-to-nvvm-pipeline' runs on builtin.module, not on func.func: move it out of func.func(...)"
    )


@pytest.mark.parametrize("anchor", ["func.func", "any"])
def test_wrong_nesting_of_a_pipeline(anchor: str) -> None:
    @register_pipeline("inner-on-modules", "")
    def inner() -> Sequence[Pass | str]:
        return [OnAny(), OnModule()]

    @register_pipeline("outer-on-modules", "")
    def outer() -> str:
        return "on-any,inner-on-modules"

    with pytest.raises(PipelineError) as refused:
        resolution.from_text(f"builtin.module(cse,{anchor}(outer-on-modules))")
    assert (refused.value.message, refused.value.offset) == (
        f"pipeline 'outer-on-modules' runs on builtin.module, not on {anchor}: move it out of {anchor}(...)",
        20 + len(anchor),
    )

    @register_pipeline("wrong-inside", "")
    def wrong() -> str:
        return "builtin.module(func.func(on-module))"

    with pytest.raises(PipelineError, match=r"^in pipeline 'wrong-inside': pass 'on-module' runs on builtin\.module"):
        resolution.from_text("builtin.module(wrong-inside)")


def test_wrong_nesting_of_lone_passes() -> None:
    with pytest.raises(PipelineError, match=r"^pass 'on-module' runs on builtin\.module, not on func\.func"):
        resolution.from_passes([OnModule()], "func.func")


def test_lone_passes_are_nested() -> None:
    steps = [OnFunction(), "llvm-request-c-wrappers", OnAny(times=2), "on-function", OnModule()]
    assert str(resolution.from_passes(steps)) == (
        "builtin.module(func.func(on-function,llvm-request-c-wrappers),on-any{times=2},"
        "func.func(on-function),on-module)"
    )
    assert str(resolution.from_passes([OnFunction(), "cse"], "func.func")) == "func.func(on-function,cse)"
    assert str(resolution.from_passes(["builtin.module(cse,on-any)", "cse"])) == "builtin.module(cse,on-any,cse)"
    with pytest.raises(PipelineError, match="a pipeline must consist of passes and pipeline texts, got 3"):
        resolution.from_passes([3])


def test_pipelines() -> None:
    @register_pipeline("inner-pipeline", "")
    def inner(times: int = option(1, "")) -> str:
        return f"on-any{{times={times}}},on-function"

    @register_pipeline("outer-pipeline", "")
    def outer(times: int = 4) -> Sequence[Pass | str]:
        return [OnModule(), f"inner-pipeline{{times={times}}}", "cse"]

    assert (
        str(resolution.from_text("builtin.module(outer-pipeline{times=5},cse)"))
        == "builtin.module(on-module,on-any{times=5},func.func(on-function),cse,cse)"
    )
    with pytest.raises(PipelineError, match="option 'times' of 'outer-pipeline' expects an integer, got 'x'"):
        resolution.from_text("builtin.module(outer-pipeline{times=x})")


def test_a_pipeline_cannot_contain_itself() -> None:
    register_pipeline("odd-pipeline", "")(lambda: "even-pipeline")
    register_pipeline("even-pipeline", "")(lambda: "odd-pipeline")
    with pytest.raises(PipelineError, match="'odd-pipeline' contains itself, through odd-pipeline and even-pipeline"):
        resolution.from_text("builtin.module(odd-pipeline)")


def test_errors_inside_a_pipeline_name_it() -> None:
    register_pipeline("broken-pipeline", "")(lambda: "cse,missing-pass")
    with pytest.raises(PipelineError, match="in pipeline 'broken-pipeline': 'missing-pass' is neither a pass nor"):
        resolution.from_text("builtin.module(broken-pipeline)")


def test_each_resolution_has_its_own_passes() -> None:
    first, second = (resolution.from_text("builtin.module(spmd-pipeline)") for _ in range(2))
    assert str(first) == str(second)
    assert first.steps[0] is not second.steps[0]


def test_a_pipeline_that_is_registered_again_is_resolved_again() -> None:
    for passes in ("cse", "on-any"):
        registry._pipelines.pop("changing-pipeline", None)
        register_pipeline("changing-pipeline", "")(lambda text=passes: text)
        assert str(resolution.from_text("builtin.module(changing-pipeline)")) == f"builtin.module({passes})"
