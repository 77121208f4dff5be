# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The two-dimensional weight-stationary feed-forward layer, partitioned here and by upstream's passes.

    python benchmarks/weight_stationary.py

docs/examples/weight_stationary.mlir, annotated on its inputs, weights and output, is partitioned here, run on four MPI
ranks and compared with NumPy. The same layer is partitioned by upstream's `sharding-propagation` and `shard-partition`,
with these annotations and with the annotations on intermediate values that they need. Prints the collectives of each,
and whether they are those of figure 2b of arXiv:2211.05102. The exit status is 1 if ours are not, or if a result is
wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import mlir_shard
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.cost.communication import CollectiveKind
from mlir_shard.runtime.execution import execute
from mlir_shard.runtime.reference.verify import compare
from mlir_shard.transforms.communication.communication_report import CommunicationReport
from mlir_shard.transforms.communication.shard_communication_report import communication_report

_ROOT = Path(__file__).parent.parent
_LAYER = _ROOT / "docs" / "examples" / "weight_stationary.mlir"
_UPSTREAM = {
    "upstream, annotated on inputs, weights and output": "upstream.mlir",
    "upstream, annotated in between by hand": "upstream_by_hand.mlir",
}
_PARTITION = "func.func(sharding-propagation,shard-partition),shard-optimize-communication"

# The input along y, the hidden layer along x, before and after its activation, and the output along y.
_DERIVED = [
    (CollectiveKind.ALL_GATHER, 256),
    (CollectiveKind.REDUCE_SCATTER, 1024),
    (CollectiveKind.ALL_GATHER, 1024),
    (CollectiveKind.REDUCE_SCATTER, 256),
]


def local_report(file: Path, pipeline: str) -> CommunicationReport:
    """Returns the communication of a module after the pipeline; raises PassFailure if the pipeline fails."""
    module = mlir_shard.parse(file.read_text(), mlir_shard.create_context())
    mlir_shard.run(module, f"builtin.module({pipeline})")
    return communication_report(module.operation)


def is_derived(title: str, report: CommunicationReport) -> bool:
    """Prints the collectives and whether they are the paper's; returns the latter."""
    found = [(one.communication.kind, one.communication.bytes_received) for one in report.collectives]
    listed = ", ".join(f"{kind.value} {size} B" for kind, size in found)
    verdict = "as derived" if found == _DERIVED else "not as derived"
    print(f"{title}: {listed}; a device receives {report.bytes_received} B: {verdict}")
    return found == _DERIVED


def is_right() -> bool:
    """Runs the layer on four ranks; prints and returns whether the result equals NumPy's."""
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal(shape).astype(np.float32) for shape in ((8, 32), (32, 128), (128, 32))]
    module = mlir_shard.parse(_LAYER.read_text(), mlir_shard.create_context())
    (result,) = execute(module, arrays)
    expected = np.maximum(arrays[0] @ arrays[1], 0) @ arrays[2]
    comparison = compare(np.asarray(result), expected, "f32")
    verdict = "OK" if comparison.is_equal else "MISMATCH"
    print(f"on 4 ranks, against NumPy: max rel error {comparison.relative:.1e} {verdict}")
    return comparison.is_equal


def main() -> None:
    """Runs the benchmark."""
    good = is_derived("here", local_report(_LAYER, "spmd-pipeline"))
    good &= is_right()
    for title, name in _UPSTREAM.items():
        try:
            is_derived(title, local_report(Path(__file__).parent / "weight_stationary" / name, _PARTITION))
        except PassFailure as failure:
            print(f"{title}: refused: {failure.diagnostics[0].message if failure.diagnostics else failure.message}")
    sys.exit(not good)


if __name__ == "__main__":
    main()
