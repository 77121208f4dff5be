# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The output of a driver: a file is written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile

from mlir_shard.tools.command_line import UsageError


def check(path: str) -> None:
    """Finds what can be known to be wrong with an output path before there is anything to write.

    Raises:
        UsageError: the path cannot be written.
    """
    if path == "-":
        return
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise _error(path, "Is a directory")
    if not os.path.isdir(folder):
        raise _error(path, "No such file or directory" if not os.path.exists(folder) else "Not a directory")
    exists = os.path.exists(path)
    is_replaced = not exists or os.path.isfile(path)
    if (exists and not os.access(path, os.W_OK)) or (is_replaced and not os.access(folder, os.W_OK)):
        raise _error(path, "Permission denied")


_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".pdf", ".ps", ".eps")


def check_is_no_picture(path: str, formats: str) -> None:
    """Refuses a name that promises a picture of a format that is not written; `formats` says which are.

    Raises:
        UsageError: the name ends so.
    """
    if os.path.splitext(path)[1].lower() in _PICTURES:
        raise UsageError(f"--output={path}: {formats}")


def write(path: str, data: bytes | str) -> None:
    """Writes to a file, or to standard output for `-`; a file that is there is replaced in one step.

    Raises:
        UsageError: it cannot be written; a file that was there is as it was.
    """
    data = data.encode() if isinstance(data, str) else data
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    # A link stays a link.
    target = os.path.realpath(path)
    try:
        status = os.stat(target)
    except OSError:
        status = None
    try:
        if status is not None and not stat.S_ISREG(status.st_mode):
            # A device or a pipe is written to, not replaced.
            with open(target, "wb") as device:
                device.write(data)
            return
        _replace(target, data, stat.S_IMODE(status.st_mode) if status else 0o666 & ~_umask())
    except OSError as error:
        raise _error(path, error.strerror or str(error)) from None


def _replace(target: str, data: bytes, mode: int) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(target)}.", dir=os.path.dirname(target))
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _error(path: str, reason: str) -> UsageError:
    return UsageError(f"cannot open output file '{path}': {reason}")
