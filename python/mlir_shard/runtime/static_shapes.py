# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes for the dynamic dimensions of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mlir_shard
from mlir_shard.runtime import names
from mlir_shard.runtime.interface import entry_function

Shapes = Mapping[int | str, int | Sequence[int]]


def make_static(module: Any, shapes: Shapes, function: str = "main") -> None:
    """Replaces the dynamic dimensions of a program by static sizes, in place.

    Args:
        module: the module.
        shapes: shapes of arguments, by index, name or pattern, and sizes of dimension variables of `jax.export`:
            `{"x": (32, 16), "batch": 32}`.
        function: the name of the program's entry function.

    Raises:
        PassFailure: a shape does not fit, or a dimension is left without a size.
    """
    of_arguments = names.argument_names(entry_function(module, function))
    given: list[str] = []
    for key, sizes in shapes.items():
        text = "x".join(map(str, (sizes,) if isinstance(sizes, int) else sizes))
        matched = [str(number) for number, name in enumerate(of_arguments) if names.matches(str(key), name)]
        given += [f"{one}={text}" for one in matched or [str(key)]]
    mlir_shard.run(module, f"builtin.module(shard-make-static{{shapes={','.join(given)} function={function}}})")
