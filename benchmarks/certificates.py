# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time to write and check certificates of partitioned programs.

    python benchmarks/certificates.py [--layers 36] [--devices 8 512 100000] [--repeat 3]

Partitions the gradient of a transformer that JAX lowers, for both targets and for each number of devices. Prints the
size of the certificate, whether the local program is proved, the processor seconds of the pass that writes the
certificate, and the median of those of the check.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

from transformer import lowered_gradient

import mlir_shard as ms
from mlir_shard.check.checker import Certificate, check
from mlir_shard.passes.instrumentation import Instrumentation

_WRITING = "shard-write-certificate"


class _Times(Instrumentation):
    """The time of the pass that writes the certificate."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = 0.0

    def before_pass(self, title: str, name: str, op: object) -> None:
        self._began = time.process_time()

    def after_pass(self, title: str, name: str, op: object, failed: bool) -> None:
        if name == _WRITING:
            self.seconds += time.process_time() - self._began


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=36)
    parser.add_argument("--devices", type=int, nargs="*", default=[8, 512, 100_000])
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    for devices in arguments.devices:
        text = lowered_gradient(arguments.layers, devices)
        for target in ("shard", "stablehlo"):
            _measure(text, target, devices, arguments.repeat)


def _measure(text: str, target: str, devices: int, repeat: int) -> None:
    context = ms.create_context()
    whole, local = (ms.parse(text, context) for _ in range(2))
    times = _Times()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.json"
        ms.run(
            local,
            f"builtin.module(spmd-pipeline{{collectives={target} certificate={path}}})",
            instrumentations=[times],
        )
        content = path.read_text()
    certificate, seconds = Certificate.read(content), []
    for _ in range(repeat):
        began = time.process_time()
        verdict = check(whole, local, certificate)
        seconds.append(time.process_time() - began)
    proved = "proved" if verdict.is_proved else f"not proved: {verdict.refusals[0].failure.message}"
    print(
        f"{devices:7,} devices, {target:9}: {verdict.ops:,} operations read, certificate of {len(content):,} bytes, "
        f"written in {times.seconds:.2f} s; checked in {median(seconds):.2f} s: {proved}",
        flush=True,
    )


if __name__ == "__main__":
    main()
