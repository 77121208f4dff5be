# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The prelude stands for upstream's own files: with them at hand, the same comes out."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mlir_shard.ods.loader import PRELUDE
from mlir_shard.ods.program import Program
from mlir_shard.ods.reader import read

DEFINITION = Path(__file__).resolve().parents[3] / "dialect_defs" / "sdy.td"
TBLGEN = next((found for name in ("mlir-tblgen", "mlir-tblgen-22") if (found := shutil.which(name))), "")
UPSTREAM = Path(TBLGEN).resolve().parent.parent / "include"

needs_upstream = pytest.mark.skipif(
    not TBLGEN or not (UPSTREAM / "mlir" / "IR" / "OpBase.td").is_file(), reason="LLVM's mlir-tblgen is not installed"
)


@needs_upstream
def test_a_dialect_reads_the_same_with_upstream_files() -> None:
    assert read(DEFINITION, [UPSTREAM]) == read(DEFINITION)


@needs_upstream
def test_the_prelude_is_tablegen() -> None:
    command = [TBLGEN, "-print-records", "-I", str(PRELUDE.parent), str(PRELUDE)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@needs_upstream
def test_types_and_attributes_are_upstreams(tmp_path: Path) -> None:
    """Summaries stand in diagnostics, and builders tell which types are printed, so both have to agree."""
    path = tmp_path / "t.td"
    path.write_text('include "mlir/IR/OpBase.td"\n')
    ours, theirs = Program(path), Program(path, [UPSTREAM])
    compared = 0
    for class_name, fields in (("Type", ("summary", "builderCall")), ("Attr", ("summary", "isOptional"))):
        for record in ours.defs(class_name):
            other = theirs.records.get(record.name)
            if other is not None:
                for field in fields:
                    compared += 1
                    assert record[field] == other[field], f"{record.name}.{field}"
    assert compared > 200


@pytest.mark.parametrize("name", ["OpBase.td", "EnumAttr.td", "NeverHeardOf.td"])
def test_any_upstream_file_is_the_prelude(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.td"
    path.write_text(f'include "mlir/IR/{name}"\ninclude "mlir/IR/OpBase.td"\ndef T {{ Type t = AnyType; }}\n')
    assert str(Program(path).records["T"]["t"]) == "AnyType"
