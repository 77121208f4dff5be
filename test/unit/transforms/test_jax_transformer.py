# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small JAX transformer through the entire pipeline gives correct results with no more bytes than under XLA."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fork_server import ForkServer
from hang_guard import SECONDS

pytest.importorskip("jax", reason="programs come from it")

_BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
_SMALL = ("--layers", "1", "--sizes", "32", "8", "64", "8", "8")
_RUNS = {
    "pjrt": ("--engines", "pjrt"),
    "mpi": ("--engines", "mpi", "--functions", "forward"),
    "other meshes": ("--only-bytes", "--meshes", "4x2", "8x1", "1x8"),
}
# Runs the benchmark with each list of options, and prints the exit code and the output of each run.
_SCRIPT = """
import contextlib, functools, io, json, sys
address, folder, benchmarks, runs = sys.argv[1:]
sys.path[:0] = [folder, benchmarks]
import fork_server, jax_transformer
from mlir_shard.runtime.launch import python_process
python_process.python_command = functools.partial(fork_server.command, address)
ended = []
for options in json.loads(runs):
    printed = io.StringIO()
    sys.argv = ["jax_transformer", *options]
    with contextlib.redirect_stdout(printed):
        try:
            jax_transformer.main()
        except SystemExit as error:
            ended.append([error.code, printed.getvalue()])
print(json.dumps(ended))
"""


@pytest.fixture(scope="module")
def ended(fork_server: ForkServer) -> dict[str, tuple[bool, str]]:
    """Returns the exit code and the output of each run of the benchmark; all runs share one process with JAX."""
    runs = json.dumps([[*_SMALL, *options] for options in _RUNS.values()])
    folders = [str(Path(__file__).parents[2]), str(_BENCHMARKS)]
    command = [sys.executable, "-c", _SCRIPT, fork_server.address, *folders, runs]
    # XLA's program serves only for comparison and need not be fast.
    environment = {**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS, env=environment)
    assert process.returncode == 0, process.stdout + process.stderr
    return dict(zip(_RUNS, map(tuple, json.loads(process.stdout)), strict=True))


@pytest.mark.parametrize("name", _RUNS)
def test_is_right_and_receives_no_more_than_xla(ended: dict[str, tuple[bool, str]], name: str) -> None:
    is_wrong, printed = ended[name]
    assert not is_wrong, printed
    assert "a device receives" in printed
