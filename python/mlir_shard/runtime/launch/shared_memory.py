# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The files of the memory that MPICH shares between ranks, which remain if the ranks are killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

FOLDER = "/dev/shm"
PREFIX = f"{FOLDER}/mpich_sh"


def mapped(process: int | str = "self") -> list[str]:
    """Returns the paths of such files that a process has mapped; an empty list if its mappings cannot be read."""
    try:
        lines = Path(f"/proc/{process}/maps").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return sorted({path for line in lines if (path := line.split(maxsplit=5)[-1]).startswith(PREFIX)})


def remove_unused(since: float) -> None:
    """Removes such files of this user that are not older than `since` and that no process uses, of any run.

    Ranks that were killed in MPI_Init have not reported their files. The creator of a file keeps it open or mapped
    until it removes the file, so an unused file was left behind.

    Args:
        since: a time in seconds of the file system's clock.
    """
    for path in Path(FOLDER).glob(f"{Path(PREFIX).name}*"):
        with contextlib.suppress(OSError):
            status = path.stat()
            if status.st_uid == os.geteuid() and status.st_mtime >= since and _is_unused(path):
                path.unlink()


def _is_unused(path: Path) -> bool:
    # The system grants a write lease only if no other process, in any container, has the file open or mapped.
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except (OSError, AttributeError):
        return False
    finally:
        os.close(file)
    return True
