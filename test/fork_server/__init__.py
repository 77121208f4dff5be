# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the project's modules as `python -m` does, in forks of one process that has imported all of them.

Most of the time of a short run of a tool is for importing the bindings and the passes. A command of
`ForkServer.command` starts `client.py`, which passes its arguments, environment, working directory and file descriptors
to the server, and ends in the same way as the fork. If a fork would differ from a new process, because of an
environment variable or a module on the path that an interpreter reads when it starts, the command replaces itself with
a new process.

Read `client.py`, `server.py` and `fork.py` in this order.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from fork_server.server import main; "
    "sys.path.remove(sys.argv[1]); main(int(sys.argv[2]))"
)
# Threads would not exist in a fork. PJRT ranks start with the other variables: `mlir_shard.runtime.pjrt.executable`.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_X64": "1",
}


class ForkServer:
    """A server that ends with this process, or when it is closed.

    It imports nothing before the first request. `environment` is the environment of most requests.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        # Names in Linux's abstract namespace leave no file behind.
        self.address = f"mlir-shard-fork-server-{os.getpid()}-{secrets.token_hex(8)}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(f"\0{self.address}")
            listener.listen(socket.SOMAXCONN)
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, str(_FOLDER.parent), str(listener.fileno())],
                stdin=subprocess.PIPE,
                env={**environment, **_ENVIRONMENT},
                pass_fds=[listener.fileno()],
                # The client receives the signals of a terminal, and forwards them.
                start_new_session=True,
            )

    def command(self, module: str) -> list[str]:
        """Returns the command that replaces `python -m module`."""
        return command(self.address, module)

    def close(self) -> None:
        """Ends the server and its remaining forks."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def command(address: str, module: str) -> list[str]:
    """Returns the command that replaces `python -m module`, for the server at an address."""
    return [sys.executable, "-I", "-S", str(_FOLDER / "client.py"), address, module]
