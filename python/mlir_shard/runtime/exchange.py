# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folder through which a run hands its ranks the program and gets their results.

program.json  program.mlir  argument.<i>.npy      what to run
result.<rank>.<i>.npy                             what a rank returns
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlir_shard.runtime.arrays import Array, TensorSpec
from mlir_shard.runtime.program import Port, Program
from mlir_shard.sharding.layout import Box


@dataclass(frozen=True, slots=True)
class Exchange:
    """The folder, by its path."""

    directory: Path

    def write_program(self, program: Program, inputs: Sequence[Array], owner: int) -> None:
        """Writes what to run; the ranks end when the process `owner` does."""
        (self.directory / "program.mlir").write_text(program.text, encoding="utf-8")
        described = {
            "entry": program.entry,
            "arguments": [_port_to_json(port) for port in program.arguments],
            "results": [_port_to_json(port) for port in program.results],
            "ranks": program.ranks,
            "owner": owner,
        }
        (self.directory / "program.json").write_text(json.dumps(described), encoding="utf-8")
        for index, array in enumerate(inputs):
            np.save(self.directory / f"argument.{index}.npy", array, allow_pickle=False)

    def read_program(self) -> tuple[Program, int]:
        """The program and its owner."""
        described = json.loads((self.directory / "program.json").read_text(encoding="utf-8"))
        program = Program(
            text=(self.directory / "program.mlir").read_text(encoding="utf-8"),
            entry=described["entry"],
            arguments=tuple(map(_port_from_json, described["arguments"])),
            results=tuple(map(_port_from_json, described["results"])),
            ranks=described["ranks"],
        )
        return program, described["owner"]

    def read_input(self, index: int) -> Array:
        """A global input, mapped rather than read: a rank takes only its part."""
        loaded: Array = np.load(self.directory / f"argument.{index}.npy", mmap_mode="r", allow_pickle=False)
        return loaded

    def write_results(self, rank: int, arrays: Sequence[Array]) -> None:
        """Writes the local results of a rank."""
        for index, array in enumerate(arrays):
            np.save(self.directory / f"result.{rank}.{index}.npy", array, allow_pickle=False)

    def read_results(self, rank: int, count: int) -> list[Array]:
        """The local results of a rank."""
        return [np.load(self.directory / f"result.{rank}.{index}.npy", allow_pickle=False) for index in range(count)]


def _port_to_json(port: Port) -> dict[str, Any]:
    return {
        "name": port.name,
        "shape": port.spec.shape,
        "local_shape": port.local.shape,
        "element_type": port.spec.element_type,
        "boxes": [(box.start, box.size) for box in port.boxes],
    }


def _port_from_json(described: dict[str, Any]) -> Port:
    element_type = described["element_type"]
    return Port(
        name=described["name"],
        spec=TensorSpec(tuple(described["shape"]), element_type),
        local=TensorSpec(tuple(described["local_shape"]), element_type),
        boxes=tuple(Box(tuple(start), tuple(size)) for start, size in described["boxes"]),
    )
