# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code that mistakes are put into, and the tests that should catch them, the most related first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PACKAGE = "python/mlir_shard"


@dataclass(frozen=True, slots=True)
class Area:
    """Part of the code: folders and files in the package, and tests, in the order in which they are run.

    A test that ends in .mlir, or a folder below `test` without Python files, is a lit test.
    """

    name: str
    code: tuple[str, ...]
    tests: tuple[str, ...]

    def files(self) -> list[Path]:
        """Returns the files of the area, relative to the root."""
        found = [ROOT / _PACKAGE / one for one in self.code]
        paths = [path for one in found for path in ([one] if one.is_file() else sorted(one.rglob("*.py")))]
        return [path.relative_to(ROOT) for path in paths]

    def test_groups(self, path: Path) -> list[list[str]]:
        """Returns the tests for a file in groups, beginning with those that have its name or import it."""
        own = related_tests(path)
        groups = [own, *([test] for test in self.tests)]
        return [group for group in groups if group]


_ON_DEVICES = "test/random_programs/test_random_programs.py"
_SIMULATED = "test/unit/transforms/test_spmdize_simulated.py"
_RECORDED = ("sharding", "resharding", "rules", "ir", "dialects", "passes", "transforms", "runtime")
RECORDED = tuple(f"test/unit/{folder}" for folder in _RECORDED)
"""The tests that run the code of the areas in the process of pytest."""
AREAS = (
    Area(
        "rules",
        ("rules",),
        ("test/unit/rules", "test/transforms/propagate", "test/transforms/partition", _SIMULATED, _ON_DEVICES),
    ),
    Area(
        "planner",
        ("resharding",),
        ("test/unit/resharding", "test/transforms/reshard", "test/unit/transforms/test_reshard_programs.py"),
    ),
    Area(
        "propagation",
        ("sharding", "transforms/propagate"),
        ("test/unit/sharding", "test/dialects", "test/transforms/propagate", "test/differential"),
    ),
    Area(
        "emission",
        ("transforms/partition", "transforms/collectives", "transforms/halo"),
        (
            "test/transforms/partition",
            "test/transforms/halo",
            _SIMULATED,
            "test/unit/transforms/test_convert_global_to_local.py",
            "test/unit/transforms/test_windowed_ops.py",
            _ON_DEVICES,
        ),
    ),
    Area(
        "runtime",
        ("runtime/collectives", "runtime/lowering", "runtime/reference", "runtime/arrays.py", "runtime/interface.py"),
        (
            "test/unit/runtime/lowering/test_lowering.py",
            "test/unit/runtime/collectives/test_runtime_collectives.py",
            "test/unit/runtime/collectives/test_stablehlo_collectives.py",
            "test/unit/runtime/collectives/test_collectives_of_programs.py",
            "test/unit/runtime/loops/test_loops_of_random_expressions.py",
            _ON_DEVICES,
        ),
    ),
)


def is_lit(test: str) -> bool:
    """Returns True if lit, not pytest, runs a test."""
    if "::" in test or test.endswith((".py", ".mlir")):
        return test.endswith(".mlir")
    return not any((ROOT / test).rglob("test_*.py"))


def related_tests(path: Path) -> list[str]:
    """Returns a limited number of tests that have the name of a file or import it, those of lit last."""
    module = ".".join(path.relative_to("python").with_suffix("").parts).removesuffix(".__init__")
    name = path.stem if path.stem != "__init__" else path.parent.name
    package = module.rpartition(".")[0]
    imported = re.compile(
        rf"\b(?:from|import) {re.escape(module)}\b|\bfrom {re.escape(package)} import [^\n]*\b{name}\b"
    )
    tests = sorted((ROOT / "test").rglob("test_*.py"))
    python = [test for test in tests if name in test.stem or imported.search(test.read_text(encoding="utf-8"))]
    files = sorted((ROOT / "test").rglob("*.mlir"))
    lit = [test for test in files if test.stem.startswith(name) or test.parent.name == name]
    return [str(test.relative_to(ROOT)) for test in (*python, *lit) if _is_quick(test)]


def _is_quick(test: Path) -> bool:
    # The others start torch or a browser.
    return "frontend" not in test.parts and test.stem not in ("test_documents", "test_notebooks", "test_site")


def split(tests: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits tests into those of pytest and those of lit."""
    return [one for one in tests if not is_lit(one)], [one for one in tests if is_lit(one)]
