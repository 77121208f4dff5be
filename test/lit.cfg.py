# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Configuration of the lit tests in this folder: `lit test`, with lit and filecheck from PyPI, without LLVM.

The tests use the package that lit's own Python finds, which is installed or on PYTHONPATH, and otherwise that of the
source tree.

The tools run in forks of one process, see `fork_server`. If the start of the process matters, a test runs
`%fresh-shard-opt` and the like. `lit --param processes=fresh test` starts a new process for every tool.
"""

import atexit
import importlib.util
import os
import runpy
import shlex
import sys
from typing import Any

import lit.formats

# lit runs this file with these names in scope.
config: Any = globals()["config"]
lit_config: Any = globals()["lit_config"]

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

config.name = "mlir-shard"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["Inputs", "unit"]
config.test_source_root = os.path.join(root, "test")
config.test_exec_root = os.path.join(root, "build", "test")

for name in ("PYTHONPATH", "MLIR_SHARD_HOST"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
if importlib.util.find_spec("mlir_shard") is None:
    config.environment["PYTHONPATH"] = os.path.join(root, "python")

PROCESSES = ("forked", "fresh")
processes = lit_config.params.get("processes", PROCESSES[0])
if processes not in PROCESSES:
    lit_config.fatal(f"processes={processes}: the processes of tools are {' or '.join(PROCESSES)}")
server = None
if processes == "forked":
    sys.path.insert(0, config.test_source_root)
    from fork_server import ForkServer

    server = ForkServer(config.environment)
    atexit.register(server.close)


def command(name: str, module: str) -> None:
    """Substitutes a command for the word `name`, unless it is part of a path, and a new process for `%fresh-name`."""
    fresh = [sys.executable, "-m", module]
    config.substitutions.append((rf"%fresh-{name}(?![\w./-])", shlex.join(fresh)))
    started = fresh if server is None else server.command(module)
    config.substitutions.append((rf"(?<![\w./-]){name}(?![\w./-])", shlex.join(started)))


command("shard-check", "mlir_shard.tools.shard_check")
command("shard-diff", "mlir_shard.tools.shard_diff")
command("shard-explain", "mlir_shard.tools.shard_explain")
command("shard-lsp", "mlir_shard.tools.shard_lsp")
command("shard-opt", "mlir_shard.tools.shard_opt")
command("shard-reshard", "mlir_shard.tools.shard_reshard")
command("shard-run", "mlir_shard.tools.shard_run")
command("FileCheck", "filecheck")
hang_guard = runpy.run_path(os.path.join(root, "test", "hang_guard.py"))
config.substitutions.append(("%hang_guard", str(hang_guard["SECONDS"])))
config.substitutions.append(("%examples", os.path.join(root, "docs", "examples")))
