# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A partitioned train step of real size: the bytes that a device receives, beside a count by hand and XLA's.

    python benchmarks/llama_step.py [--model moe] [--layers 32] [--targets shard stablehlo] [--xla] [--scan]

`llama` has the shapes of Llama 3 8B on "data"=8, "fsdp"=8, "model"=8, `moe` those of Mixtral 8x7B on "data"=4,
"fsdp"=4, "seq"=2, "model"=8, "expert"=2: forward and gradient in bf16 of f32 masters, each layer recomputed for its
gradient, and AdamW. JAX lowers it from shapes alone for 512 virtual devices of its CPU; no program is run. For each
kind of collective along each set of mesh axes, it prints the MiB that a device receives: as counted by hand from the
needs of the parallelism (`train_steps/needs.py`), in the local program of each target, and with `--xla` in the program
that XLA:CPU compiles, which converts bf16 to f32. Then it prints the processor seconds from the annotated module to the
local program.

With `--most MIB` the exit status is 1 if a target receives more, or another number of bytes than the other target.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from group_axes import axes_of_groups
from hlo_collectives import repeated_hlo_collectives
from train_steps import llama, moe, step
from train_steps.llama import LlamaSizes
from train_steps.moe import MoeSizes
from train_steps.needs import llama_needs, moe_needs

import mlir_shard
from mlir_shard.ir.editing import operations_named
from mlir_shard.ir.replica_groups import REPLICA_GROUPS
from mlir_shard.resharding.cost.communication import Communication
from mlir_shard.transforms.communication.communication_reading import COLLECTIVES
from mlir_shard.transforms.communication.shard_communication_report import communication_report

_MIB = 2**20
TARGETS = ("shard", "stablehlo")
# A kind of collective, and the mesh axes of its groups.
Row = tuple[str, str]


def local_program(text: str, target: str) -> tuple[Any, float]:
    """Returns the local module, and the processor seconds of the pipeline."""
    module = mlir_shard.parse(text, mlir_shard.create_context())
    begin = time.process_time()
    mlir_shard.run(module, f"builtin.module(spmd-pipeline{{collectives={target}}})")
    return module, time.process_time() - begin


def received(module: Any, mesh: Mapping[str, int], layers: int) -> Counter[Row]:
    """Returns the bytes of each row in a local module; a loop has as many iterations as there are layers."""
    found: Counter[Row] = Counter()
    ops = operations_named(module.operation, *sorted(COLLECTIVES))
    for op, one in zip(ops, communication_report(module.operation).collectives, strict=True):
        names = [axis.name for axis in one.communication.axes]
        if not all(names) and REPLICA_GROUPS in op.attributes:
            names = [axis.name for axis in axes_of_groups(op.attributes[REPLICA_GROUPS], mesh)]
        found[_row(one.communication, names)] += one.communication.bytes_received * layers**one.loops
    return found


def _row(communication: Communication, names: Iterable[str]) -> Row:
    return communication.kind.value, " ".join(sorted(names)) or f"{communication.group_size} devices"


def table(columns: Mapping[str, Counter[Row]]) -> str:
    """Returns a line for each row, those with the most bytes first, and one for the total."""
    rows = sorted({row for column in columns.values() for row in column}, key=lambda row: _most(row, columns))[::-1]
    lines = [f"  {'MiB a device receives':<52}" + "".join(f"{name:>12}" for name in columns)]
    lines += [_line(" ".join(row), (column[row] for column in columns.values())) for row in rows if _most(row, columns)]
    return "\n".join([*lines, _line("all", (column.total() for column in columns.values()))])


def _most(row: Row, columns: Mapping[str, Counter[Row]]) -> int:
    return max(column[row] for column in columns.values())


def _line(title: str, sizes: Iterable[float]) -> str:
    return f"  {title:<52}" + "".join(f"{size / _MIB:>12,.1f}" for size in sizes)


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["llama", "moe"], default="llama")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--targets", nargs="*", choices=TARGETS, default=TARGETS)
    parser.add_argument("--scan", action="store_true", help="all layers as one loop, of llama")
    parser.add_argument("--xla", action="store_true", help="XLA's partitioner, too")
    parser.add_argument("--most", type=float, metavar="MIB", help="fail where a device receives more")
    arguments = parser.parse_args()
    if arguments.scan and arguments.model != "llama":
        parser.error("--scan is for llama")
    if arguments.model == "llama":
        llama_sizes = LlamaSizes(layers=arguments.layers)
        model, needs = llama.llama(llama_sizes, scan=arguments.scan), llama_needs(llama_sizes)
    else:
        moe_sizes = MoeSizes(layers=arguments.layers)
        model, needs = moe.moe(moe_sizes), moe_needs(moe_sizes)
    step.prepare(512)
    lowered = step.lowered_step(model)
    text = lowered.as_text()
    mesh = ", ".join(f'"{name}"={size}' for name, size in model.mesh.items())
    print(
        f"{arguments.model}, {arguments.layers} layers, {sum(' = ' in line for line in text.splitlines())} ops, {mesh}"
    )
    by_hand: Counter[Row] = Counter()
    for need in needs:
        by_hand[need.kind.value, " ".join(sorted(need.axes))] += round(need.bytes_received)
        axes = " ".join(need.axes)
        print(f"  by hand {need.bytes_received / _MIB:>10,.1f} MiB {need.kind.value} {axes}: {need.purpose}")
    columns, seconds = {"by hand": by_hand}, {}
    for target in arguments.targets:
        module, seconds[target] = local_program(text, target)
        columns[target] = received(module, model.mesh, arguments.layers)
    if arguments.xla:
        begin = time.process_time()
        compiled = lowered.compile().as_text()
        seconds["XLA"] = time.process_time() - begin
        columns["XLA"] = Counter()
        for communication, times in repeated_hlo_collectives(compiled, model.mesh):
            row = _row(communication, (axis.name for axis in communication.axes))
            columns["XLA"][row] += communication.bytes_received * times
    print(table(columns))
    print(f"  {'processor seconds to compile':<64}" + "".join(f"{one:>12.1f}" for one in seconds.values()))
    totals = [columns[target].total() for target in arguments.targets]
    return arguments.most is not None and (len(set(totals)) > 1 or max(totals) > arguments.most * _MIB)


if __name__ == "__main__":
    sys.exit(main())
