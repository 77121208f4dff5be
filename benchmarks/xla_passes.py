# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time of XLA's passes that propagate shardings and partition, in a compilation by jax.

The first runs Shardy: it converts from HLO to MLIR, propagates, exports and converts to HLO again. The times are those
of XLA's log.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

_TIME = re.compile(r"HLO pass: (?:shardy-xla|(spmd-partitioning)) time: .*?\((\d+) us\)")


def compiled(text: str) -> Any:
    """Returns XLA's executable of a program with shardings, partitioned for all devices of JAX."""
    import jax
    import numpy as np
    from jax._src.lib import xla_client

    devices = jax.devices()
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = 1
    options.num_partitions = build.num_partitions = len(devices)
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    options.device_assignment = xla_client.DeviceAssignment.create(np.arange(len(devices))[None])
    return devices[0].client.compile_and_load(text.encode(), xla_client.DeviceList(tuple(devices)), options)


def xla_seconds(file: Path, devices: int) -> float:
    """Returns the seconds of both passes on a module, in a new process that ends after the second one.

    Raises CalledProcessError with XLA's last messages if it does not partition the module.
    """
    environment = os.environ | {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "0",
        "TF_CPP_VMODULE": "hlo_pass_pipeline=1",
    }
    command = [sys.executable, __file__, str(file)]
    microseconds, log = 0, []
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stderr
        for line in process.stderr:
            log.append(line)
            if time := _TIME.search(line):
                microseconds += int(time[2])
                if time[1]:
                    # The rest of the compilation takes longer than everything before it.
                    process.kill()
                    return microseconds / 1e6
    raise subprocess.CalledProcessError(process.returncode, command, stderr="".join(log[-5:]))


if __name__ == "__main__":
    compiled(Path(sys.argv[1]).read_text())
