# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Start-up: the processor time, user and system, of the commands as processes, beside that of the host, in one run.

    python benchmarks/start_up.py [--repeat 15]

`host` is a Python process that imports the bindings, makes a context with all dialects and parses an empty module. The
small program is the example of the README. The misspelt flag comes after the other arguments of the command. The editor
starts shard-lsp, requests its capabilities and ends it. Prints medians.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from mlir_shard import host

HOST_EMPTY = f"""
from {host.PREFIX} import ir
context = ir.Context()
print(ir.Module.parse("module {{}}", context))
"""
SMALL = """
sdy.mesh @mesh = <["data"=2, "model"=2]>

func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %w: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.dot %x, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""


# The required arguments of a command, `{}` for a file with the small program; None if it requires none.
COMMANDS: dict[str, list[str] | None] = {
    "shard-opt": ["{}"],
    "shard-run": ["{}"],
    "shard-explain": ["{}"],
    "shard-diff": ["{}", "{}"],
    "shard-reshard": ["--mesh", "x=2,y=3", "--shape", "1200x1800xf32", '[{"x"}, {"y"}]', '[{"y"}, {"x"}]'],
    "shard-check": ["{}", "{}", "{}"],
    "shard-lsp": None,
}
MISSPELT = "--verson"
EDITOR = [
    {"id": 1, "method": "initialize", "params": {"capabilities": {}, "processId": None, "rootUri": None}},
    {"id": 2, "method": "shutdown"},
    {"method": "exit"},
]


def requests() -> bytes:
    """Returns the messages of an editor that starts a server and ends it."""
    bodies = [json.dumps({"jsonrpc": "2.0", **one}) for one in EDITOR]
    return "".join(f"Content-Length: {len(body)}\r\n\r\n{body}" for body in bodies).encode()


def processor_seconds(command: list[str], repeat: int, status: int = 0, given: bytes = b"module {}") -> float:
    """Returns the median processor time of a command, which must exit with `status`."""
    times = []
    for _ in range(repeat):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, input=given, capture_output=True, check=False)
        if done.returncode != status:
            sys.exit(f"{' '.join(command)} has exited with {done.returncode}: {done.stderr.decode()}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return statistics.median(times)


def with_program(arguments: list[str] | None, program: Path) -> list[str]:
    """Returns the arguments of a command, with the file of a program for `{}`."""
    return [str(program) if argument == "{}" else argument for argument in arguments or ()]


def command_of(name: str) -> list[str]:
    """Returns the command line that runs a command."""
    return [sys.executable, "-m", f"mlir_shard.tools.{name.replace('-', '_')}"]


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=15)
    repeat = parser.parse_args().repeat
    shard_opt = command_of("shard-opt")
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder, "small.mlir")
        small.write_text(SMALL)
        rows = {
            "python -c pass": processor_seconds([sys.executable, "-c", "pass"], repeat),
            "host, empty module": processor_seconds([sys.executable, "-c", HOST_EMPTY], repeat),
            "shard-opt, empty module": processor_seconds([*shard_opt, "-"], repeat),
            "a small program": processor_seconds([*shard_opt, str(small)], repeat),
            "its shard-propagate": processor_seconds([*shard_opt, str(small), "--shard-propagate"], repeat),
            "its spmd-pipeline": processor_seconds([*shard_opt, str(small), "--spmd-pipeline"], repeat),
            "the same in StableHLO": processor_seconds(
                [*shard_opt, str(small), "--spmd-pipeline=collectives=stablehlo"], repeat
            ),
        }
        for name, arguments in COMMANDS.items():
            command, given = command_of(name), with_program(arguments, small)
            rows[f"{name} --version"] = processor_seconds([*command, "--version"], repeat)
            rows[f"{name} --help"] = processor_seconds([*command, "--help"], repeat)
            status = 2 if name == "shard-diff" else 1
            rows[f"{name}, a misspelt flag"] = processor_seconds([*command, *given, MISSPELT], repeat, status=status)
        rows["shard-opt, a misspelt pass"] = processor_seconds(
            [*shard_opt, str(small), "--spmd-pipelin"], repeat, status=1
        )
        for name in ("shard-explain", "shard-diff", "shard-reshard"):
            given = with_program(COMMANDS[name], small)
            rows[f"{name}, a small problem"] = processor_seconds([*command_of(name), *given], repeat)
        rows["shard-lsp, for an editor"] = processor_seconds(command_of("shard-lsp"), repeat, given=requests())
    for name, seconds in rows.items():
        print(f"{name:<36} {seconds * 1000:6.0f} ms  {seconds / rows['host, empty module']:.2f} of the host's")


if __name__ == "__main__":
    main()
