# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SIGINT in a command: it terminates the process silently during imports, and raises KeyboardInterrupt afterwards."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

_SECONDS_TO_RETURN = 0.05


def terminate_during_imports() -> None:
    """Makes SIGINT terminate this process if it is one of the commands; another process keeps its handler."""
    if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_from_now_on() -> None:
    """Makes SIGINT raise KeyboardInterrupt in a command, even in a destructor; does nothing in other processes."""
    if not _is_command():
        return
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.unraisablehook = _unraisable


def _is_command() -> bool:
    """Returns whether this process is a command, started by its script or as `python -m mlir_shard.tools...`."""
    given = sys.orig_argv
    module = given[given.index("-m") + 1] if "-m" in given[:-1] else ""
    return module.startswith("mlir_shard.tools.") or os.path.basename(sys.argv[0]).startswith("shard-")


def _unraisable(error: Any) -> None:
    """Sends SIGINT again if its KeyboardInterrupt was raised in a destructor, where Python ignores exceptions."""
    if error.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(error)
        return
    import threading

    # The signal is sent after this hook has returned, because exceptions are ignored in the hook too.
    timer = threading.Timer(_SECONDS_TO_RETURN, os.kill, (os.getpid(), signal.SIGINT))
    timer.daemon = True
    timer.start()
