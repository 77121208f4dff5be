# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the command that generates the Python module of a dialect, and of the dependencies of that module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mlir_shard.ods.generate import main, module_source
from mlir_shard.ods.reader import read

ROOT = Path(__file__).resolve().parents[3]
DEFINITION = ROOT / "dialect_defs" / "sdy.td"


def run_python(program: str) -> subprocess.CompletedProcess[str]:
    program = f"import sys\n{program}"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_the_module_compiles_and_is_the_same_every_time(tmp_path: Path) -> None:
    output = tmp_path / "_sdy_gen.py"
    assert main([str(DEFINITION), "-I", str(DEFINITION.parent), "-o", str(output)]) == 0
    text = output.read_text()
    compile(text, str(output), "exec")
    assert text == module_source(read(DEFINITION), "sdy.td")


def test_the_module_names_no_directory(tmp_path: Path) -> None:
    assert str(ROOT) not in module_source(read(DEFINITION), DEFINITION.name)


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(DEFINITION)]) == 0
    assert capsys.readouterr().out == module_source(read(DEFINITION), "sdy.td")


def test_mistakes_are_diagnostics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.td"
    path.write_text("def A : B;\n")
    assert main([str(path), "-o", str(tmp_path / "t.py")]) == 1
    assert capsys.readouterr().err == f"{path}:1:9: error: unknown class 'B'\ndef A : B;\n        ^\n"
    assert not (tmp_path / "t.py").exists()


def test_what_cannot_be_registered_is_not_generated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.td"
    path.write_text(
        'include "mlir/IR/OpBase.td"\ndef D : Dialect { let name = "d"; }\n'
        'def A : Op<D, "a"> { let regions = (region VariadicRegion<AnyRegion>:$many); }\n'
    )
    assert main([str(path)]) == 1
    assert capsys.readouterr().err == "error: 'A' has a group of regions, 'many', which IRDL cannot register\n"


def test_output_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(DEFINITION), "-o", str(tmp_path / "missing" / "t.py")]) == 1
    assert "error: cannot write" in capsys.readouterr().err


def test_generating_needs_no_bindings(tmp_path: Path) -> None:
    run = run_python(f"""
sys.modules.update(dict.fromkeys(["mlir", "torch_mlir", "numpy"]))
from mlir_shard.ods.generate import main
status = main([{str(DEFINITION)!r}, "-o", {str(tmp_path / "gen.py")!r}])
print(status, "mlir_shard.host" in sys.modules)
""")
    assert (run.stdout, run.stderr) == ("0 False\n", "")


def test_the_module_needs_no_parser() -> None:
    run = run_python("""
sys.modules["lark"] = None
from mlir_shard.dialects import _sdy_gen
print(len(_sdy_gen.OPS), len(_sdy_gen.ATTRIBUTES))
""")
    assert (run.stdout, run.stderr) == ("19 19\n", "")


def test_the_module_exports_what_it_defines() -> None:
    from mlir_shard.dialects import _sdy_gen

    names = {each.__name__ for each in (*_sdy_gen.OPS, *_sdy_gen.ATTRIBUTES)}
    assert names | {"ATTRIBUTES", "DIALECT", "IRDL", "OPS"} == set(_sdy_gen.__all__)
    assert {op.OPERATION_NAME for op in _sdy_gen.OPS} == {f"sdy.{op.mnemonic}" for op in _sdy_gen.DIALECT.ops}
    assert all(each.__doc__ for each in (*_sdy_gen.OPS, *_sdy_gen.ATTRIBUTES))
