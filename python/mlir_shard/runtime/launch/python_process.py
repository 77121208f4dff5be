# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command and the environment of Python processes that run modules of this project."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import MappingProxyType


def python_command(module: str) -> list[str]:
    """Returns the command that runs a module of this project in this interpreter."""
    return [sys.executable, "-m", module]


def python_environment(additions: Mapping[str, str] = MappingProxyType({}), threads: int = 1) -> dict[str, str]:
    """Returns the environment for a Python process with this process's module path and without its working folder.

    Before Python 3.11 the working folder is still searched, so the process should be started in a folder of the
    project. OpenBLAS computes with `threads` threads.
    """
    path = [os.path.abspath(entry) for entry in sys.path if entry]
    found = {"PYTHONPATH": os.pathsep.join(path), "PYTHONSAFEPATH": "1"}
    computing = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    return {**os.environ, **computing, **found, **additions}
