# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of shard-opt that lit cannot run: bytes, signals, pipes, installed plugins."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from default_signals import default_signals
from hang_guard import SECONDS
from narrow_terminal import lines_on_terminal

import mlir_shard
from mlir_shard import __version__
from mlir_shard.passes import plugins, runner
from mlir_shard.tools import command_line, shard_opt

SHARD_OPT = (sys.executable, "-m", "mlir_shard.tools.shard_opt")
VALID = "func.func @f() {\n  return\n}\n"


def call(*argv: str, input: bytes | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(
        [*SHARD_OPT, *argv],
        input=input,
        capture_output=True,
        timeout=SECONDS,
        env={**os.environ, **environment},
        check=False,
    )
    out, err = result.stdout.decode(), result.stderr.decode()
    assert "Traceback" not in err
    return subprocess.CompletedProcess(result.args, result.returncode, out, err)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.mlir"
    path.write_text(VALID)
    return path


@pytest.mark.parametrize("split", [[], ["--split-input-file"]])
def test_invalid_utf8(split: list[str], tmp_path: Path) -> None:
    path = tmp_path / "in.mlir"
    path.write_bytes(b"func.func @f() {\n  // \xc3\xa4\n  // ab\xff\n  return\n}\n")
    output = tmp_path / "out.mlir"
    result = call(str(path), "-o", str(output), *split)
    assert result.returncode == 1
    assert result.stderr.startswith(f"{path}:3:8: error: ")
    assert "0xff" in result.stderr
    assert result.stderr.count("error") == 1
    assert not output.exists()


@pytest.mark.parametrize("text", [b"func.func @f() { \0", b"\xef\xbb\xbf", b"}", b'"', b"ML\xefR", b"\xff" * 100])
def test_rubbish(text: bytes) -> None:
    result = call(input=text)
    assert result.returncode == 1
    assert result.stdout == ""
    assert ": error: " in result.stderr


@pytest.mark.parametrize("text", [b"", b"\n// nothing\n", b"// -----\n"])
def test_empty(text: bytes) -> None:
    assert call(input=text).stdout == "module {\n}\n"


def interrupted(*command: str, path: str | None = None) -> tuple[int, str]:
    """Sends SIGINT to a command after it prints that it runs. Returns its exit status and its standard error.

    path: a folder that precedes the others in the search for modules.
    """
    folders = filter(None, (path, os.environ.get("PYTHONPATH")))
    with default_signals():
        child = subprocess.Popen(
            [sys.executable, "-m", *command],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert child.stdout is not None
    assert child.stdout.readline() == "running\n"
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=SECONDS)
    assert out == ""
    return child.returncode, err


def interrupted_pass(load: Path, source: Path, *more: str) -> tuple[int, str]:
    """Interrupts shard-opt after its pass, or module, prints that it runs."""
    return interrupted("mlir_shard.tools.shard_opt", str(source), "--load", str(load), "--wait", *more)


WAIT = """\
import struct
from mlir_shard import Pass, register

@register
class Wait(Pass):
    name = "wait"

    def run(self, op):
        print("running", flush=True)
        while True:
            pass
"""


def test_interrupt(tmp_path: Path, source: Path) -> None:
    load = tmp_path / "wait.py"
    load.write_text(WAIT)
    output = tmp_path / "out.mlir"
    output.write_text("old")
    assert interrupted_pass(load, source, "-o", str(output)) == (130, "shard-opt: error: interrupted\n")
    assert output.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["in.mlir", "out.mlir", "wait.py"]


WAITING = """\
def wait(*arguments):
    print("running", flush=True)
    while True:
        pass
"""
IN_A_CLASS = """
Wait = type("Wait", (), {"__set_name__": wait})
type("Owner", (), {"wait": Wait()})
"""
IN_A_DESTRUCTOR = """
Wait = type("Wait", (), {"__del__": wait})
Wait()
while True:
    pass
"""


@pytest.mark.parametrize("where", [IN_A_CLASS, IN_A_DESTRUCTOR])
def test_interrupt_where_python_hides_it(tmp_path: Path, source: Path, where: str) -> None:
    load = tmp_path / "wait.py"
    load.write_text(WAITING + where)
    assert interrupted_pass(load, source) == (130, "shard-opt: error: interrupted\n")


def test_interrupt_while_the_command_is_imported(tmp_path: Path) -> None:
    (tmp_path / "difflib.py").write_text(WAITING + "\nwait()\n")
    command = "mlir_shard.tools.shard_run", "--help"
    assert interrupted(*command, path=str(tmp_path)) == (-signal.SIGINT, "")


def test_a_reader_that_goes_away(source: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = subprocess.run(
            [*SHARD_OPT, str(source)], stdout=writing, stderr=subprocess.PIPE, timeout=SECONDS, check=False
        )
    finally:
        os.close(writing)
    assert (result.returncode, result.stderr) == (1, b"")


def test_an_installed_plugin(tmp_path: Path, source: Path) -> None:
    (tmp_path / "my_installed_passes.py").write_text(
        "from mlir_shard import Pass, register\n"
        "@register\nclass Mine(Pass):\n    name = 'installed-pass'\n    summary = 'From a package'\n"
        "    def run(self, op): print('it ran', flush=True)\n"
    )
    info = tmp_path / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[mlir_shard.plugins]\nmine = my_installed_passes\nbroken = no_such_module\n"
    )
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    result = call(str(source), "--installed-pass", PYTHONPATH=path)
    assert result.returncode == 0
    assert result.stdout.startswith("it ran\nmodule {")
    # A plugin that fails to load does not prevent the run.
    assert "warning: cannot load the plugin 'broken' (no_such_module): ModuleNotFoundError" in result.stderr


def test_no_plugins_are_looked_for_in_vain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "missing"), ""])
    plugins.load_installed.cache_clear()
    assert plugins.load_installed() == ()


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert shard_opt.main(["--version"]) == 0
    assert capsys.readouterr().out == f"mlir-shard {__version__}\n"


def test_nothing_heavy_is_imported_for_the_version() -> None:
    heavy = ("numpy", "lark", "rich", "torch_mlir", "mlir", "importlib.metadata")
    code = (
        "import sys; from mlir_shard.tools.shard_opt import main; main(['--version']); "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, check=True)
    assert result.stdout.splitlines()[1] == "[]"


def fail(*args: object, **kwargs: object) -> None:
    raise ZeroDivisionError("division by zero")


def test_errors_of_our_own(source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(runner, "run", fail)
    assert shard_opt.main([str(source)]) == 1
    message = capsys.readouterr().err
    assert message.startswith("shard-opt: error: internal error: ZeroDivisionError: division by zero at ")
    assert message.count("\n") == 1
    monkeypatch.setenv(command_line.TRACEBACK_VARIABLE, "1")
    with pytest.raises(ZeroDivisionError):
        shard_opt.main([str(source)])


def test_missing_bindings() -> None:
    result = call(input=VALID.encode(), MLIR_SHARD_HOST="no_such_package")
    assert result.returncode == 1
    assert result.stderr.startswith("shard-opt: error: MLIR_SHARD_HOST=no_such_package: ")


def test_the_launcher_runs_from_anywhere(source: Path, tmp_path: Path) -> None:
    """The launcher runs the package in its own tree, here a copy of the package under test, as if built in place."""
    tree = tmp_path / "tree"
    (tree / "tools").mkdir(parents=True)
    shutil.copy(Path(__file__).parents[3] / "tools" / "shard-opt", tree / "tools")
    caches = shutil.ignore_patterns("__pycache__")
    # An editable install keeps built and generated files in a separate folder.
    for folder in mlir_shard.__path__:
        shutil.copytree(folder, tree / "python" / "mlir_shard", ignore=caches, dirs_exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(
        [sys.executable, str(tree / "tools" / "shard-opt"), "in.mlir"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    assert "func.func @f()" in result.stdout


def test_help_fits_the_terminal() -> None:
    lines = lines_on_terminal([*SHARD_OPT, "--help=spmd-pipeline,cse"], 60)
    assert lines[0] == "--spmd-pipeline: Converts a partially annotated module to"
    assert "--cse: Eliminate common sub-expressions" in lines
    assert max(map(len, lines)) <= 60
