# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a model of the zoo becomes: bytes of both targets and of XLA, and whether its results are right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import mlir_shard
from model_zoo.program import Model

TARGETS = ("shard", "stablehlo")
ENGINES = {"shard": "mpi", "stablehlo": "pjrt"}


@dataclass
class Measurement:
    """What became of a model; `bytes` has what a device receives, by target and for XLA, `errors` what failed."""

    model: Model
    bytes: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def is_more_than_xla(self) -> bool:
        """Whether a target receives more than XLA's program, and it is not known why."""
        most = self.bytes.get("xla")
        return most is not None and not self.model.unlike_xla and max(self.bytes.get(one, 0) for one in TARGETS) > most

    @property
    def notes(self) -> str:
        """A line for each error, and for what is known to be missing."""
        known = [f"{engine}: {what}" for engine, what in self.model.missing.items()]
        known += [f"more than XLA: {self.model.unlike_xla}"] if self.model.unlike_xla else []
        return "\n".join([*(f"{stage}: {error}" for stage, error in self.errors.items()), *known])


def lowered(model: Model) -> Any:
    """Returns what `jax.jit(...).lower(...)` does, on virtual devices of the CPU."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    devices = np.array(jax.devices()).reshape(tuple(model.mesh.values()))
    mesh = jax.sharding.Mesh(devices, tuple(model.mesh))

    def shardings(specs: Any) -> Any:
        return jax.tree.map(
            lambda spec: NamedSharding(mesh, spec), specs, is_leaf=lambda one: isinstance(one, PartitionSpec)
        )

    options = {} if model.out_specs is None else {"out_shardings": shardings(model.out_specs)}
    with jax.sharding.set_mesh(mesh):
        jitted = jax.jit(model.function, in_shardings=shardings(model.in_specs), keep_unused=True, **options)
        return jitted.lower(*model.arguments)


def expected(model: Model) -> list[Any]:
    """Returns the results of the function on one device, or on all where it names them."""
    import jax

    if model.names_devices:
        return [np.asarray(leaf) for leaf in jax.tree.leaves(lowered(model).compile()(*model.arguments))]
    names = tuple(model.mesh)
    one = jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape((1,) * len(names)), names)
    with jax.sharding.set_mesh(one):
        return [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(model.function)(*model.arguments))]


@contextmanager
def _recorded(errors: dict[str, str], stage: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # Whatever fails is what the zoo is to show.
        lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        errors[stage] = next((line for line in lines if "error" in line), lines[0])


def measure(model: Model, *, runs: bool = True) -> Measurement:
    """Partitions a model for both targets and compares results with JAX on one device.

    Args:
        model: the model.
        runs: whether the programs of the targets are run.
    """
    from hlo_collectives import hlo_collectives

    from mlir_shard.transforms.communication.shard_communication_report import communication_report

    found = Measurement(model)
    with _recorded(found.errors, "jax"):
        program = lowered(model)
        wanted = expected(model) if runs else []
    if found.errors:
        return found
    with _recorded(found.errors, "xla"):
        received = hlo_collectives(program.compile().as_text())
        found.bytes["xla"] = sum(one.bytes_received for one in received)
    text = program.as_text()
    for target in TARGETS:
        with _recorded(found.errors, f"{target} partition"):
            module = mlir_shard.parse(text, mlir_shard.create_context())
            mlir_shard.run(module, f"builtin.module(spmd-pipeline{{collectives={target}}})")
            report = communication_report(module.operation).collectives
            found.bytes[target] = sum(one.communication.bytes_received for one in report)
        if runs and ENGINES[target] not in model.missing and f"{target} partition" not in found.errors:
            with _recorded(found.errors, f"{target} on {ENGINES[target]}"):
                _check(model, text, target, wanted)
    return found


def _check(model: Model, text: str, target: str, wanted: list[Any]) -> None:
    import jax

    from mlir_shard.runtime.compile import Pipelines
    from mlir_shard.runtime.execution import execute

    module = mlir_shard.parse(text, mlir_shard.create_context())
    pipelines = Pipelines("shard-propagate", f"shard-spmdize{{collectives={target}}}")
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(model.arguments)]
    results = execute(module, arrays, pipelines=pipelines, engine=ENGINES[target])
    for number, (result, of_jax) in enumerate(zip(results, wanted, strict=True)):
        got, exact = np.asarray(result).astype(np.complex128), of_jax.astype(np.complex128)
        scale = max(float(np.abs(exact).mean()), 1e-30)
        tolerance = model.tolerance or (2e-2 if of_jax.dtype.itemsize < 4 else 2e-4)
        error = float((np.abs(got - exact) / np.maximum(np.abs(exact), scale)).max(initial=0.0))
        if not error <= tolerance:
            raise ValueError(f"result {number} of {len(wanted)} is wrong: relative error {error:.1e}")
