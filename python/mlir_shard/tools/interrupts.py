# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interrupts of a command: they end it without a word while it is imported, and raise KeyboardInterrupt later."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

_SECONDS_TO_RETURN = 0.05


def end_while_imported() -> None:
    """Has an interrupt end this process if it is a command of this package that is being started."""
    if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_from_now_on() -> None:
    """Has an interrupt raise KeyboardInterrupt in a command, also where it comes in a destructor."""
    if _is_command() and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.unraisablehook = _unraisable


def _is_command() -> bool:
    """Whether this process is a command, by its script or as `python -m mlir_shard.tools...`, not a user of them."""
    given = sys.orig_argv
    module = given[given.index("-m") + 1] if "-m" in given[:-1] else ""
    return module.startswith("mlir_shard.tools.") or os.path.basename(sys.argv[0]).startswith("shard-")


def _unraisable(error: Any) -> None:
    """Interrupts this process once more where an interrupt came in a destructor, which drops it."""
    if error.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(error)
        return
    import threading

    # Not from here, where it would be dropped again.
    timer = threading.Timer(_SECONDS_TO_RETURN, os.kill, (os.getpid(), signal.SIGINT))
    timer.daemon = True
    timer.start()
