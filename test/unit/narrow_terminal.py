# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Captures the output of a command on a terminal of a given width."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Sequence

_STYLE = re.compile("\x1b\\[[0-9;]*m")


def lines_on_terminal(command: Sequence[str], columns: int) -> list[str]:
    """Returns the lines that a command writes to the terminal, without styles. Asserts that the command succeeds."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    written = b""
    with subprocess.Popen(command, stdout=theirs, env=environment) as process:
        os.close(theirs)
        # Reading fails after every writer has closed the terminal.
        with contextlib.suppress(OSError):
            while piece := os.read(ours, 4096):
                written += piece
        os.close(ours)
    assert process.returncode == 0
    return [line.rstrip() for line in _STYLE.sub("", written.decode()).splitlines()]
