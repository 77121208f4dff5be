# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Standard streams that are closed, or that cannot be written to."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import TextIO

_NAMES = ("stdin", "stdout", "stderr")
# How writing to a stream fails, where opening a file does not: that has the name of the file too.
_WRITE_ERRORS = frozenset({errno.ENOSPC, errno.EBADF, errno.EIO, errno.EFBIG, errno.EDQUOT})


def reserve() -> None:
    """Opens the standard streams that the process was started without.

    A file that is opened later would get the number of such a stream, and what native code prints. Reading standard
    input and writing to standard output are errors then, and standard error is discarded.
    """
    missing = [number for number, name in enumerate(_NAMES) if getattr(sys, name) is None]
    for number in missing:
        with contextlib.suppress(OSError):
            os.fstat(number)
            continue
        # Reading what is open for writing only, and the other way round, is an error.
        descriptor = os.open(os.devnull, os.O_RDONLY if _NAMES[number] == "stdout" else os.O_WRONLY)
        if descriptor != number:
            os.dup2(descriptor, number)
            os.close(descriptor)
    for number in missing:
        mode = "r" if _NAMES[number] == "stdin" else "w"
        setattr(sys, _NAMES[number], os.fdopen(number, mode, encoding="utf-8", closefd=False))


def write_error(error: OSError) -> str | None:
    """Returns why a standard stream cannot be written to; None if the error is another one."""
    is_of_stream = error.errno in _WRITE_ERRORS and error.filename is None
    return os.strerror(error.errno or 0) if is_of_stream else None


def discard(stream: TextIO) -> None:
    """Discards what is left to be written to a standard stream: the interpreter would fail at exit because of it."""
    with contextlib.suppress(OSError, ValueError):
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, stream.fileno())
        os.close(descriptor)
