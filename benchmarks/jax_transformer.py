# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A transformer of JAX on meshes of data by model, partitioned here and by XLA's partitioner, in one run.

    python benchmarks/jax_transformer.py [--layers 2] [--meshes 2x4] [--engines pjrt mpi] [--planners optimal shardy]

Forward and gradient are lowered by JAX. The results of JAX for random arrays, on 8 devices by XLA's partitioner and on
one device, are compared with those of our programs on PJRT (8 CPU devices, StableHLO collectives) and on MPI (8 ranks,
`shard` collectives). Then it prints the collectives of each program: the number of each kind, and the bytes that one
device and all devices receive; see docs/communication.md for the measure. XLA's are those of its compiled program. The
exit status is 1 if a result differs, or if one of our programs receives more bytes than XLA's.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hlo_collectives import hlo_collectives
from transformer import DEVICES, Sizes, Transformer, transformer

import mlir_shard
from mlir_shard.resharding.cost.communication import Communication
from mlir_shard.runtime.backends import backend
from mlir_shard.runtime.compile import Pipelines
from mlir_shard.runtime.execution import execute
from mlir_shard.runtime.reference.verify import compare
from mlir_shard.transforms.communication.shard_communication_report import communication_report

_FUNCTIONS = ("forward", "gradient")
_COLLECTIVES = {"pjrt": "stablehlo", "mpi": "shard"}


def random_arrays(model: Transformer) -> tuple[list[dict[str, Any]], Any]:
    """Returns random parameters and input, scaled so that activations neither vanish nor saturate."""
    generator = np.random.default_rng(0)

    def one(name: str, shape: Sequence[int]) -> Any:
        if name.startswith("gain"):
            return np.ones(shape, np.float32)
        return (generator.standard_normal(shape) * model.x.shape[-1] ** -0.5).astype(np.float32)

    parameters = [{name: one(name, like.shape) for name, like in of_layer.items()} for of_layer in model.parameters]
    return parameters, generator.standard_normal(model.x.shape).astype(np.float32)


def report(title: str, communications: Sequence[Communication]) -> int:
    """Prints the communication of a program, and returns the bytes that a device receives."""
    kinds: defaultdict[str, list[Communication]] = defaultdict(list)
    for one in communications:
        kinds[one.kind.value].append(one)
    total = sum(one.bytes_received for one in communications)
    everyone = sum(one.total_bytes for one in communications)
    parts = [
        f"{len(of_kind)} {kind} {sum(one.bytes_received for one in of_kind):,} B"
        for kind, of_kind in sorted(kinds.items())
    ]
    print(f"  {title}: {', '.join(parts)}; a device receives {total:,} B, all {everyone:,} B", flush=True)
    return total


def check(title: str, results: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Prints the maximum error of results, and returns whether all are correct."""
    comparisons = [compare(np.asarray(one), np.asarray(of), "f32") for one, of in zip(results, expected, strict=True)]
    is_right = all(one.is_equal for one in comparisons)
    worst = max(one.relative for one in comparisons)
    print(
        f"  {title}: {len(comparisons)} results, max rel error {worst:.1e} {'OK' if is_right else 'MISMATCH'}",
        flush=True,
    )
    return is_right


def run(name: str, model: Transformer, function: Callable[..., Any], arguments: argparse.Namespace) -> bool:
    """Measures one function; returns whether the results are correct and the bytes are at most XLA's."""
    import jax

    lowered = model.lower(function)
    text = lowered.as_text()
    parameters, x = random_arrays(model)
    arrays = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves((parameters, x))]
    print(f"{name}, {sum(' = ' in line for line in text.splitlines())} operations", flush=True)
    compiled = lowered.compile()
    is_right, expected = True, []
    if not arguments.only_bytes:
        expected = jax.tree_util.tree_leaves(compiled(parameters, x))
        alone = jax.tree_util.tree_leaves(jax.jit(function)(parameters, x))
        is_right = check("JAX on 8 devices, against it on one", expected, alone)
    most = report("XLA's partitioner", hlo_collectives(compiled.as_text()))
    context = mlir_shard.create_context()
    for engine in arguments.engines:
        for planner in arguments.planners:
            spmdize = f"shard-spmdize{{collectives={_COLLECTIVES[engine]} planner={planner}}}"
            local = mlir_shard.parse(text, context)
            mlir_shard.run(local, f"builtin.module(shard-propagate,{spmdize})")
            found = communication_report(local.operation).collectives
            title = f"{engine}, planner={planner}"
            is_right &= report(title, [one.communication for one in found]) <= most or planner != "optimal"
            if arguments.only_bytes:
                continue
            start = time.perf_counter()
            results = execute(
                mlir_shard.parse(text, context),
                arrays,
                pipelines=Pipelines("shard-propagate", spmdize),
                engine=backend(engine),
            )
            is_right &= check(f"{title}, against JAX ({time.perf_counter() - start:.0f} s)", results, expected)
    return is_right


def mesh_shape(text: str) -> tuple[int, int]:
    """Reads the devices along data and along model, as 2x4; raises ValueError if they are not 8."""
    data, model = map(int, text.split("x"))
    if data * model != DEVICES:
        raise ValueError(f"{text} is no mesh of {DEVICES} devices")
    return data, model


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--meshes", type=mesh_shape, nargs="*", default=[(2, 4)], help="devices along data x model")
    parser.add_argument("--engines", nargs="*", choices=sorted(_COLLECTIVES), default=["pjrt", "mpi"])
    parser.add_argument("--functions", nargs="*", choices=_FUNCTIONS, default=_FUNCTIONS)
    parser.add_argument("--planners", nargs="*", choices=["optimal", "shardy"], default=["optimal"])
    parser.add_argument(
        "--sizes", type=int, nargs=5, default=[256, 8, 1024, 128, 8], help="width heads hidden length batch"
    )
    parser.add_argument("--only-bytes", action="store_true", help="run nothing")
    arguments = parser.parse_args()
    right = True
    for shape in arguments.meshes:
        model = transformer(arguments.layers, Sizes(*arguments.sizes), shape)
        import jax

        functions = {"forward": model.forward, "gradient": jax.grad(model.loss)}
        for name in arguments.functions:
            right &= run(f"{name} on {shape[0]}x{shape[1]}", model, functions[name], arguments)
    sys.exit(not right)


if __name__ == "__main__":
    main()
