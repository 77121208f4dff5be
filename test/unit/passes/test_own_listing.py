# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The listed passes of the project are those that its modules declare, and listing does not import the modules."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from mlir_shard.passes import host_listing, own_listing
from mlir_shard.passes.host_listing import Summary

ROOT = Path(__file__).resolve().parents[3]
IMPORTED_BY = """
import sys
from mlir_shard.tools.shard_opt import main
status = main(sys.argv[1:])
modules = [one for one in sys.modules.values() if one.__name__.startswith("mlir_shard.transforms.")]
print(status, *(one.__name__ for one in modules if not hasattr(one, "__path__")), file=sys.stderr)
"""


def test_the_files_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("pass_table", ROOT / "tools" / "pass_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, text in module.tables().items():
        assert Path(own_listing.__file__).with_name(name).read_text() == text, "run tools/pass_table.py"
    assert module.page() == (ROOT / "docs" / "passes.md").read_text(), "run tools/pass_table.py"


def test_summaries_are_read_as_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summaries = {
        "a-b": Summary("One [func.func]", {"x": "an option (a string; default empty)"}),
        "c": Summary("Two", {}, "later"),
        "d": Summary("Three", {"y": "another"}, "first"),
    }
    stages = {"first": "What comes first.", "later": "What comes then."}
    monkeypatch.setattr(host_listing, "__file__", str(tmp_path / "host_listing.py"))
    (tmp_path / "some.txt").write_text(f"# a comment\n{own_listing.written(summaries, stages)}")
    assert host_listing.read_summaries("some.txt") == summaries
    assert list(host_listing.read_stages("some.txt").items()) == list(stages.items())


@pytest.mark.parametrize("argument", ["--help", "--help=all", "--list-passes", "--spmd-pipelin"])
def test_no_pass_is_imported_to_list_them(argument: str) -> None:
    command = [sys.executable, "-c", IMPORTED_BY, argument]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    status, *modules = done.stderr.splitlines()[-1].split()
    assert status == ("1" if argument == "--spmd-pipelin" else "0")
    assert modules == []
    assert ("did you mean '--spmd-pipeline'?" in done.stderr) == (status == "1")
    assert ("--spmd-pipeline" in done.stdout) == (status == "0")
