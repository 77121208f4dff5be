# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of rules in the documents equals the output of the command."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def rule_table() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rule_table", ROOT / "tools" / "rule_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_up_to_date(rule_table: ModuleType) -> None:
    assert rule_table.table() == (ROOT / "docs" / "rules.md").read_text(), "run tools/rule_table.py"


def test_every_op_is_asked_for(rule_table: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"linalg.matmul", "linalg.pack", "linalg.index"} <= set(rule_table.op_names("linalg"))
    assert {"tosa.conv2d", "tosa.row_gather", "tosa.yield"} <= set(rule_table.op_names("tosa"))
    monkeypatch.setattr(rule_table, "op_names", lambda name: [f"{name}.unheard_of"])
    with pytest.raises(LookupError, match=r"'linalg.unheard_of' has neither an example with a rule nor a reason"):
        rule_table.table()
