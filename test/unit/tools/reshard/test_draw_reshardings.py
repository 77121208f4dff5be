# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests that the pictures in the documentation equal the output of the tool."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def draw_reshardings() -> ModuleType:
    path = ROOT / "tools" / "draw_reshardings.py"
    spec = importlib.util.spec_from_file_location("draw_reshardings", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pictures_are_up_to_date(draw_reshardings: ModuleType) -> None:
    assert draw_reshardings.outdated() == [], "run tools/draw_reshardings.py"


def test_the_document_shows_every_picture(draw_reshardings: ModuleType) -> None:
    shown = re.findall(r"\(resharding/(\w+)\.svg\)", (ROOT / "docs" / "resharding.md").read_text(encoding="utf-8"))
    assert shown == list(draw_reshardings.PICTURES)


def test_other_pictures_are_out_of_date(
    draw_reshardings: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(draw_reshardings, "FOLDER", tmp_path)
    monkeypatch.setattr(draw_reshardings, "PICTURES", {"moved_axis": draw_reshardings.PICTURES["moved_axis"]})
    assert draw_reshardings.outdated() == ["moved_axis.svg"]
    assert draw_reshardings.draw("moved_axis", tmp_path)
    assert draw_reshardings.outdated() == []
    (tmp_path / "moved_axis.svg").write_text("<svg/>")
    (tmp_path / "unheard_of.svg").write_text("<svg/>")
    assert draw_reshardings.outdated() == ["moved_axis.svg", "unheard_of.svg"]
