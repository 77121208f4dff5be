# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a tool ends: with an exit status, and one line for what went wrong, never with a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from mlir_shard.tools.command_line import UsageError

INTERRUPTED = 130
TRACEBACK_VARIABLE = "MLIR_SHARD_TRACEBACK"


def exit_status(tool: str, drive: Callable[[], int]) -> int:
    """What `drive` returns; 1 for any error, 130 where it was interrupted, after a line on standard error."""
    try:
        return drive()
    except UsageError as error:
        return complain(tool, str(error))
    except KeyboardInterrupt:
        complain(tool, "interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has gone; the interpreter would complain about it once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        return complain(tool, _internal_error(error))


def complain(tool: str, message: str) -> int:
    """Says what went wrong; returns the exit status for that."""
    print(f"{tool}: error: {message}", file=sys.stderr, flush=True)
    return 1


def _internal_error(error: Exception) -> str:
    if isinstance(error, ImportError):
        return str(error)
    from mlir_shard.passes.diagnostic import of_exception

    found = of_exception(error, "internal error:", None)
    where = f" at {found.position.file}:{found.position.line}" if found.position else ""
    return f"{found.message.splitlines()[0]}{where}; {TRACEBACK_VARIABLE}=1 shows more"
