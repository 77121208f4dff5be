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
# The errors of writing to a stream. An error of opening a file also has the name of the file.
_WRITE_ERRORS = frozenset({errno.ENOSPC, errno.EBADF, errno.EIO, errno.EFBIG, errno.EDQUOT})


def reserve() -> None:
    """Opens the standard streams that the process was started without.

    Otherwise a file that is opened later would get the number of such a stream, and the output of native code. Reading
    such a standard input and writing to such a standard output are errors; a standard error is discarded.
    """
    missing = [number for number, name in enumerate(_NAMES) if getattr(sys, name) is None]
    for number in missing:
        with contextlib.suppress(OSError):
            os.fstat(number)
            continue
        # Reading is an error if a file is open for writing only, and writing if it is open for reading only.
        descriptor = os.open(os.devnull, os.O_RDONLY if _NAMES[number] == "stdout" else os.O_WRONLY)
        if descriptor != number:
            os.dup2(descriptor, number)
            os.close(descriptor)
    for number in missing:
        mode = "r" if _NAMES[number] == "stdin" else "w"
        setattr(sys, _NAMES[number], os.fdopen(number, mode, encoding="utf-8", closefd=False))


def write_error(error: OSError) -> str | None:
    """Returns the reason why a standard stream cannot be written to; None for other errors."""
    is_of_stream = error.errno in _WRITE_ERRORS and error.filename is None
    return os.strerror(error.errno or 0) if is_of_stream else None


def discard(stream: TextIO) -> None:
    """Discards the unwritten output of a standard stream, because of which the interpreter would fail at exit."""
    with contextlib.suppress(OSError, ValueError):
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, stream.fileno())
        os.close(descriptor)
