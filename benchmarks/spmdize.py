# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time to partition the gradient of a transformer: beside the C++ Shardy in jaxlib, and by number of devices.

    python benchmarks/spmdize.py [--layers 48] [--devices 8 512 100000] [--planner optimal] [--repeat 5] [--rounds 3]
    python benchmarks/spmdize.py --model different [--layers 12]
    python benchmarks/spmdize.py --model moe [--layers 32]

The entire pipeline, from annotations to the local program, is measured on the parsed module; Shardy's is its import
pipeline, propagation, its export pipeline with collectives, and the passes that convert these to StableHLO. XLA's are
the passes that jax runs for the same work: Shardy, between conversions from and to HLO, and XLA's partitioner. Each
side and number of devices has a separate process and parses the module again for every measurement; XLA's passes run
once in a process. The sides are measured in turn, in rounds, because the speed of a shared machine changes. Prints
medians over the rounds, in seconds, and their ratios: with new plans, all caches of `mlir_shard.resharding` evicted,
and again in the same process with cached plans. The groups of StableHLO's collectives list all devices, so that these
programs grow with the mesh; those of `shard` do not.

With `--model different` each layer of the transformer has other shapes. `llama` and `moe` are the train steps of
`llama_step.py` on 512 devices, on three and five axes.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from math import isnan, nan
from pathlib import Path
from statistics import median

from propagation import OURS, SHARDY, Setting, measure, operations_in
from train_steps import llama, moe, step
from train_steps.llama import LlamaSizes
from train_steps.moe import MoeSizes
from transformer import DEVICES, lowered_gradient
from xla_passes import xla_seconds

STEP_DEVICES = 512
"""The number of devices of a train step."""

# Printing a program whose groups list 100,000 devices would take too long.
AGAIN = OURS.replace("    mlir_shard.print_module,", "    lambda module: None,")
_RUN = "lambda module: mlir_shard.run("
ANEW = f"""
import sys

def evict():
    modules = [module for name, module in sys.modules.items() if name.startswith("mlir_shard.resharding")]
    for one in [one for module in modules for one in vars(module).values()]:
        getattr(one, "cache_clear", lambda: None)()
{AGAIN.replace(_RUN, _RUN.replace(": ", ": evict() or "))}
"""
_SHARDY_COLLECTIVES = (
    "sdy-import-pipeline,sdy-user-priority-propagate,sdy-export-pipeline{enable-insert-explicit-collectives=true}"
)
SHARDY_PIPELINES = {
    "Shardy, propagation and export": _SHARDY_COLLECTIVES,
    "Shardy, the same and to StableHLO's collectives": f"{_SHARDY_COLLECTIVES},sdy-convert-global-to-local,"
    "sdy-drop-sharding-and-mesh",
}
XLA = "XLA, Shardy's pass and the partitioner"


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["gradient", "different", "llama", "moe"], default="gradient")
    parser.add_argument("--layers", type=int, default=48)
    parser.add_argument("--devices", type=int, nargs="*", default=[8, 512, 100_000])
    parser.add_argument("--planner", choices=["optimal", "shardy"], default="optimal")
    parser.add_argument("--repeat", type=int, default=5, help="measurements of each process")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each side")
    arguments = parser.parse_args()
    pipelines = {
        target: f"shard-propagate,shard-spmdize{{collectives={target} planner={arguments.planner}}}"
        for target in ("shard", "stablehlo")
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "gradient.mlir")
        file.write_text(text := program(arguments.model, arguments.layers))
        devices = DEVICES if arguments.model in ("gradient", "different") else STEP_DEVICES
        print(f"{arguments.model} of {arguments.layers} layers, {operations_in(text)} operations, {devices} devices")
        timed = partial(seconds_of, repeat=arguments.repeat)
        sides = {name: partial(timed, ANEW, file, one) for name, one in pipelines.items()}
        sides |= {f"{name} again": partial(timed, AGAIN, file, one) for name, one in pipelines.items()}
        ours = [name for one in pipelines for name in (one, f"{one} again")]
        sides |= {name: partial(timed, SHARDY, file, one) for name, one in SHARDY_PIPELINES.items()}
        sides[XLA] = partial(xla_seconds, file, devices)
        seconds = in_turn(sides, arguments.rounds)
        for name in (*SHARDY_PIPELINES, XLA):
            theirs = seconds[name]
            if isnan(theirs):
                print(f"  {name}: it crashes")
                continue
            ratios = ", ".join(f"{one} {seconds[one]:.3f} s ({seconds[one] / theirs:.2f})" for one in ours)
            print(f"  {name}: {theirs:.3f} s; here, and as a ratio: {ratios}", flush=True)
        for target, pipeline in pipelines.items() if arguments.model == "gradient" else ():
            sides = {}
            for devices in arguments.devices:
                file = Path(folder, f"{devices}.mlir")
                file.write_text(lowered_gradient(arguments.layers, devices))
                sides[str(devices)] = partial(timed, ANEW, file, pipeline)
            seconds = in_turn(sides, arguments.rounds)
            first = seconds[next(iter(seconds))] if seconds else 0.0
            for name, took in seconds.items():
                print(f"  {name} devices, {target}: {took:.3f} s, {took / first:.2f} times the first", flush=True)


def program(model: str, layers: int) -> str:
    """Returns the text of the annotated module of a model with this number of layers."""
    if model in ("gradient", "different"):
        return lowered_gradient(layers, growing=model == "different")
    step.prepare(STEP_DEVICES)
    made = llama.llama(LlamaSizes(layers=layers)) if model == "llama" else moe.moe(MoeSizes(layers=layers))
    text: str = step.lowered_step(made).as_text()
    return text


def in_turn(sides: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Returns the median seconds of each side over rounds in which all sides run.

    The result is NaN for a side whose process crashes.
    """
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            try:
                seconds[name].append(side())
            except subprocess.CalledProcessError:
                seconds[name].append(nan)
    return {name: median(of) for name, of in seconds.items()}


def seconds_of(script: str, file: Path, pipeline: str, *, repeat: int) -> float:
    """Returns the seconds of a pipeline on a module, measured by a script as in `propagation`."""
    return measure(script, file.read_text(), Setting(pipeline, repeat, True, file.parent)).seconds


if __name__ == "__main__":
    main()
