# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes are put at places that tests can observe, and the most related tests are run on a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutated_code.areas import AREAS, ROOT, Area, is_lit, split
from mutated_code.equivalent import EQUIVALENT

MERGED_LOOPS = Path("python/mlir_shard/runtime/lowering/loops/merged_loops.py")


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.name)
def test_areas(area: Area) -> None:
    assert len(area.files()) > 10
    assert all((ROOT / test).exists() for test in area.tests)


def test_related_tests_come_first() -> None:
    runtime = next(area for area in AREAS if area.name == "runtime")
    first, *others = runtime.test_groups(MERGED_LOOPS)
    assert "test/unit/runtime/loops/test_merged_loops.py" in first
    assert others == [[test] for test in runtime.tests]


def test_lit_tests_are_told_from_others() -> None:
    tests = ["test/unit/rules", "test/transforms/halo", "test/transforms/halo/a.mlir", "test/unit/test_interfaces.py"]
    assert split(tests) == ([tests[0], tests[3]], tests[1:3])
    assert is_lit("test/dialects")


def test_what_changes_nothing_is_there() -> None:
    for change in EQUIVALENT:
        path, _, rest = change.partition(": `")
        before, _, after = rest.removesuffix("`").partition("` becomes `")
        assert before != after
        assert before in (ROOT / path).read_text(encoding="utf-8"), change


def test_mistakes_are_python_that_means_something_else() -> None:
    pytest.importorskip("cosmic_ray", reason="the package cosmic-ray is not installed")
    from mutated_code.mistakes import mistakes

    found = mistakes(AREAS[:1], 5, 0)
    assert [one.report() for one in found] == [one.report() for one in mistakes(AREAS[:1], 5, 0)]
    assert len({(one.path, one.line) for one in found}) == 5
    for one in found:
        compile(one.text, str(one.path), "exec")
        assert one.text != (ROOT / one.path).read_text(encoding="utf-8")
        assert one.before != one.after
