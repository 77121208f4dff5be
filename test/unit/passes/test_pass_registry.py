# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the declaration of passes and pipelines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from mlir_shard.passes.options import Option, option
from mlir_shard.passes.registry import (
    Pass,
    RegistrationError,
    find_pass,
    find_pipeline,
    register,
    register_pipeline,
    registered,
    registered_pipelines,
    search,
)


class Example(Pass):
    name = "example-pass"
    anchor = "func.func"
    summary = "An example"

    fast: bool = option(True, "whether to hurry")
    axis_names: tuple[str, ...] = option((), "the axes")
    limit: int | None = option(None, "how many at most")

    def run(self, op: Any) -> None:
        pass


def test_options() -> None:
    assert Example.options() == (
        Option("fast", "fast", bool, True, "whether to hurry"),
        Option("axis-names", "axis_names", tuple[str, ...], (), "the axes"),
        Option("limit", "limit", int | None, None, "how many at most"),
    )
    assert [(one.type_text, one.default_text) for one in Example.options()] == [
        ("true or false", "true"),
        ("a list of a string", "{}"),
        ("an integer or none", "none"),
    ]


def test_instances() -> None:
    assert str(Example()) == "example-pass"
    assert str(Example(fast=False, axis_names=("x", "y"))) == "example-pass{fast=false axis-names={x,y}}"
    with pytest.raises(TypeError):
        Example(slow=True)


def test_options_are_inherited() -> None:
    class Derived(Example):
        name = "derived-pass"
        more: int = option(3, "")

    assert [one.name for one in Derived.options()] == ["fast", "axis-names", "limit", "more"]
    assert str(Derived(more=4, limit=1)) == "derived-pass{limit=1 more=4}"


def test_register() -> None:
    assert register(Example) is Example
    assert find_pass("example-pass") is Example
    assert registered()["example-pass"] is Example
    register(Example)


def test_a_name_is_taken_once() -> None:
    register(Example)

    class Other(Example):
        pass

    with pytest.raises(RegistrationError, match=r"Other: the name 'example-pass' is already used by .*Example"):
        register(Other)
    with pytest.raises(RegistrationError, match="the name 'example-pass' is already used"):
        register_pipeline("example-pass", "")(lambda: "cse")


@pytest.mark.parametrize("name", ["", "Example", "with space", "a_b", "-a", "a--b"])
def test_names(name: str) -> None:
    class Named(Example):
        pass

    Named.name = name
    with pytest.raises(RegistrationError, match="expected lower-case words separated by dashes"):
        register(Named)


def test_run_is_needed() -> None:
    class Idle(Pass):
        name = "idle-pass"

    with pytest.raises(RegistrationError, match=r"pass 'idle-pass' .* has no method `run\(self, op\)`"):
        register(Idle)


def test_types_of_options() -> None:
    class Odd(Example):
        name = "odd-pass"
        table: dict[str, int] = option(None, "")

    with pytest.raises(RegistrationError, match=r"option 'table' has type dict.*, which cannot be read from text"):
        register(Odd)


def test_options_need_defaults() -> None:
    class Bare(Example):
        name = "bare-pass"
        count: int

    with pytest.raises(RegistrationError, match="option 'count' must have a default value"):
        register(Bare)


def test_only_passes_are_registered() -> None:
    with pytest.raises(RegistrationError, match=r"is not a subclass of mlir_shard\.Pass"):
        register(int)


def test_pipelines() -> None:
    @register_pipeline("example-pipeline", "Examples")
    def build(times: int = option(2, "how often"), name: str = "x") -> list[Pass]:
        """Runs the example again and again."""
        return [Example()] * times

    found = find_pipeline("example-pipeline")
    assert found is not None
    assert found.description == "Runs the example again and again."
    assert found.options == (Option("times", "times", int, 2, "how often"), Option("name", "name", str, "x", ""))
    with pytest.raises(RegistrationError, match="parameter 'times' must have a default value"):
        register_pipeline("other-pipeline", "")(lambda times: "cse")


def test_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "searched_package" / "stage"
    folder.mkdir(parents=True)
    (tmp_path / "searched_package" / "__init__.py").touch()
    (folder / "__init__.py").touch()
    for name in ("found", "not_asked_for"):
        (folder / f"{name}_pass.py").write_text(
            "from mlir_shard import Pass, register\n"
            f"@register\nclass Found(Pass):\n    name = '{name.replace('_', '-')}-pass'\n"
            "    def run(self, op): pass\n"
        )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("mlir_shard.passes.registry._packages", [])
    search("searched_package")
    assert find_pass("found-pass") is not None
    assert find_pass("missing-pass") is None
    # One pass is found without importing all the others.
    assert "searched_package.stage.not_asked_for_pass" not in sys.modules
    assert "not-asked-for-pass" in registered()


def test_passes_are_listed_where_they_are_not_in_the_file_of_their_name() -> None:
    """Each folder's `PASSES` names the passes of its files, so that any of them is found without importing all."""
    search("mlir_shard.transforms")
    declared = {name: one.__module__ for name, one in registered().items() if one.__module__.startswith("mlir_shard.")}
    declared |= {name: one.build.__module__ for name, one in registered_pipelines().items()}
    for name, module in declared.items():
        if module.startswith("mlir_shard.transforms."):
            folder, _, file = module.rpartition(".")
            listed = getattr(sys.modules[folder], "PASSES", {}).get(file, (file.replace("_", "-"),))
            assert name in listed, f"{name} is in {module}, which {folder}.PASSES does not say"
