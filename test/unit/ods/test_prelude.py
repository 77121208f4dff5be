# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests that the prelude replaces the upstream files; `tools/compare-tblgen` compares it with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlir_shard.ods.program import Program


@pytest.mark.parametrize("name", ["OpBase.td", "EnumAttr.td", "NeverHeardOf.td"])
def test_any_upstream_file_is_the_prelude(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.td"
    path.write_text(f'include "mlir/IR/{name}"\ninclude "mlir/IR/OpBase.td"\ndef T {{ Type t = AnyType; }}\n')
    assert str(Program(path).records["T"]["t"]) == "AnyType"
