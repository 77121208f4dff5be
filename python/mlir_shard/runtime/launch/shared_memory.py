# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The files of the memory that MPICH shares between ranks, which stay if the ranks are killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

FOLDER = "/dev/shm"
PREFIX = f"{FOLDER}/mpich_sh"


def mapped(process: int | str = "self") -> list[str]:
    """Returns the paths of the files that a process, by its number, has mapped; none where that is not known."""
    try:
        lines = Path(f"/proc/{process}/maps").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return sorted({path for line in lines if (path := line.split(maxsplit=5)[-1]).startswith(PREFIX)})


def remove_unused(since: float) -> None:
    """Removes the files of this user, not older than `since`, that no process uses, of whatever run they are.

    Ranks that were killed in MPI_Init have told nobody what they had made. The creator of a file has it open or mapped
    until it removes it, so that one which nobody has was left.

    Args:
        since: in seconds of the clock of the file systems.
    """
    for path in Path(FOLDER).glob(f"{Path(PREFIX).name}*"):
        with contextlib.suppress(OSError):
            status = path.stat()
            if status.st_uid == os.geteuid() and status.st_mtime >= since and _is_unused(path):
                path.unlink()


def _is_unused(path: Path) -> bool:
    # The lease of a writer is given only where nobody else has the file, in any container.
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except (OSError, AttributeError):
        return False
    finally:
        os.close(file)
    return True
