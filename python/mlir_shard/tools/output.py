# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The output of a driver: a file is written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Collection

from mlir_shard.tools.command_line import UsageError


def check(path: str) -> None:
    """Checks that an output path can be written, before the output is computed.

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


_PICTURES = (".svg", ".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".pdf", ".ps", ".eps")
_PAGES = (".html", ".htm")
_DRAWN = "shard-explain draws a program, shard-reshard a plan, as a .svg picture or a .html page"


def suffix(path: str) -> str:
    """Returns the suffix of a name, such as `.svg`, in lower case."""
    return os.path.splitext(path)[1].lower()


def check_form(path: str, written: str, *, drawn: Collection[str] = (), option: str = "--output") -> None:
    """Rejects an output path with the suffix of a picture or a page that the tool does not draw.

    Args:
        path: the output path.
        written: a description of the possible outputs, for the message.
        drawn: the suffixes of the pictures and pages that the tool draws.
        option: the option of the command line whose value is the path.

    Raises:
        UsageError: the path has such a suffix.
    """
    found = suffix(path)
    if found in (*_PICTURES, *_PAGES) and found not in drawn:
        raise UsageError(f"{option}={path}: {written}; {_DRAWN}")


def check_report(path: str, option: str) -> None:
    """Checks that the path of a report, the value of `option`, can be written, before the report is computed.

    Raises:
        UsageError: the path cannot be written, or has the suffix of a picture or a page.
    """
    check_form(path, "a report is written as a table, or as JSON to a .json file", option=option)
    check(path)


def write(path: str, data: bytes | str) -> None:
    """Writes to a file, or to standard output for `-`; an existing file is replaced in one step.

    Raises:
        UsageError: the file cannot be written; an existing file is unchanged.
    """
    data = data.encode() if isinstance(data, str) else data
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    # The target of a symbolic link is replaced, not the link.
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
