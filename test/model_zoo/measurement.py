# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures a model of the zoo: the received bytes of both targets and of XLA, and the errors of its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import mlir_shard
from model_zoo.program import Measured, Model, TorchModel

ENGINES = {"shard": "mpi", "stablehlo": "pjrt"}


@dataclass
class Measurement:
    """The measurement of a model: `bytes` are those that a device receives, by target and for XLA."""

    model: Model | TorchModel
    bytes: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def is_more_than_xla(self) -> bool:
        """True if a target receives more than XLA's program for an unknown reason."""
        most = self.bytes.get("xla")
        return (
            most is not None
            and not self.model.unlike_xla
            and max(self.bytes.get(one, 0) for one in self.model.targets) > most
        )

    @property
    def notes(self) -> str:
        """A line for each error, and the reason for receiving more than XLA's program."""
        known = [f"more than XLA: {self.model.unlike_xla}"] if self.model.unlike_xla else []
        return "\n".join([*(f"{stage}: {error}" for stage, error in self.errors.items()), *known])


@contextmanager
def _recorded(errors: dict[str, str], stage: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # The zoo shows every failure.
        lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        errors[stage] = next((line for line in lines if "error" in line), lines[0])


def measure(model: Model | TorchModel, *, runs: bool = True) -> Measurement:
    """Partitions a model for its targets and compares results with those without sharding.

    Args:
        model: the model.
        runs: whether the programs of the targets are run.
    """
    from hlo_collectives import hlo_collectives

    from mlir_shard.transforms.communication.shard_communication_report import communication_report

    found = Measurement(model)
    with _recorded(found.errors, "lowering"):
        measured = model.measured()
        wanted = measured.expected() if runs else []
    if found.errors:
        return found
    with _recorded(found.errors, "xla"):
        received = hlo_collectives(measured.hlo())
        found.bytes["xla"] = sum(one.bytes_received for one in received)
    for target in model.targets:
        with _recorded(found.errors, f"{target} partition"):
            module = mlir_shard.parse(measured.text, mlir_shard.create_context())
            mlir_shard.run(module, f"builtin.module(spmd-pipeline{{collectives={target}}})")
            report = communication_report(module.operation).collectives
            found.bytes[target] = sum(one.communication.bytes_received for one in report)
        if runs and f"{target} partition" not in found.errors:
            with _recorded(found.errors, f"{target} on {ENGINES[target]}"):
                _check(measured, target, wanted, model.tolerance)
    return found


def _check(measured: Measured, target: str, wanted: Sequence[Any], tolerance: float | None) -> None:
    from mlir_shard.runtime.compile import Pipelines
    from mlir_shard.runtime.execution import execute

    module = mlir_shard.parse(measured.text, mlir_shard.create_context())
    pipelines = Pipelines("shard-propagate", f"shard-spmdize{{collectives={target}}}")
    check_results(execute(module, measured.arrays, pipelines=pipelines, engine=ENGINES[target]), wanted, tolerance)


def check_results(results: Sequence[Any], wanted: Sequence[Any], tolerance: float | None) -> None:
    """Raises ValueError if the relative error of a result exceeds `tolerance`, by default that of rounding."""
    for number, (result, exact) in enumerate(zip(results, wanted, strict=True)):
        got, right = np.asarray(result).astype(np.complex128), exact.astype(np.complex128)
        scale = max(float(np.abs(right).mean()), 1e-30)
        most = tolerance or (2e-2 if exact.dtype.itemsize < 4 else 2e-4)
        error = float((np.abs(got - right) / np.maximum(np.abs(right), scale)).max(initial=0.0))
        if not error <= most:
            raise ValueError(f"result {number} of {len(wanted)} is wrong: relative error {error:.1e}")
