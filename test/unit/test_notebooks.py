# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests that the notebooks of the documentation run and are stored without outputs."""

from pathlib import Path

import nbformat
import pytest
from documents.blocks import ROOT
from nbclient import NotebookClient

SHOWN = {"layer": {"text/html"}, "resharding": {"image/svg+xml"}}
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def test_each_notebook_is_listed() -> None:
    assert {path.stem for path in NOTEBOOKS} == SHOWN.keys()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_run_and_show_values(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in cells), "outputs are not kept: clear them"
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    NotebookClient(notebook, timeout=None, resources={"metadata": {"path": str(path.parent)}}).execute()
    shown = {kind for cell in cells for output in cell.outputs for kind in output.get("data", {})}
    assert SHOWN[path.stem] <= shown
