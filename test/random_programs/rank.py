# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An MPI rank that runs programs one after the other, for `ranks_engine`. Arguments: ADDRESS LIBRARY OWNER."""

from __future__ import annotations

import os
import sys
import threading
import time
from multiprocessing.connection import Client
from pathlib import Path

from mlir_shard.runtime.launch.jit import Executable
from mlir_shard.runtime.launch.mpi_library import MpiProcess
from mlir_shard.runtime.launch.run_folder import is_running

_WATCH_SECONDS = 0.5


def main() -> None:
    """Runs programs until the connection is closed."""
    address, library, owner = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])

    def watch() -> None:
        while is_running(owner):
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    process = MpiProcess(library)
    with Client(address) as connection:
        connection.send(process.rank)
        while True:
            try:
                program, blocks = connection.recv()
            except EOFError:
                break
            connection.send(Executable(program, process)(blocks))
    process.finalize()


if __name__ == "__main__":
    main()
