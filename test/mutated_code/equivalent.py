# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes without an observable effect, found among those that no test caught, with reasons."""

from __future__ import annotations

from typing import Final

EQUIVALENT: Final = {
    "python/mlir_shard/resharding/operator/op_assignment.py: `most = MOST_PRICED + 1` becomes "
    "`most = MOST_PRICED ^ 1`": "the number is even",
    "python/mlir_shard/resharding/planner.py: `at_most = min(at_most, both.rank[:2])` becomes "
    "`at_most = min(at_most, both.rank[: 3])`": "what is read of it are the first two",
    "python/mlir_shard/resharding/simulation.py: `result[device][box.slices] = values[0] if len(values) == 1 else "
    "REDUCTIONS[reduction](values)` becomes `result[device][box.slices] = values[0] if len(values) <= 1 else "
    "REDUCTIONS[reduction](values)`": "each box that something lands in has a value",
    "python/mlir_shard/rules/builder.py: `if not {*of_operands, *of_results} <= {0, len(shape)}:` becomes "
    "`if not {*of_operands, *of_results} == {0, len(shape)}:`": "the builder makes the same rule, only slower",
    "python/mlir_shard/runtime/collectives/stablehlo_calls.py: `if real is None or imaginary is None:` becomes "
    "`if real is None and imaginary is None:`": "both are of one type, which alone decides whether they are None",
    "python/mlir_shard/runtime/lowering/external_symbols.py: `function = module.body.operations[0].operation` becomes "
    "`function = module.body.operations[ -1].operation`": "the module has one operation",
    "python/mlir_shard/runtime/lowering/external_symbols.py: `return type_.width <= _INTEGER_BITS` becomes "
    "`return type_.width == _INTEGER_BITS`": "LLVM is asked about more types, and knows all of them",
    "python/mlir_shard/sharding/mesh.py: `_hash: int = field(init=False, repr=False, compare=False)` becomes "
    "`_hash: int = field(init=True, repr=False, compare=False)`": "the class has an `__init__` of its own",
    'python/mlir_shard/transforms/halo/moving_ops.py: `is_filled_with_zero = op.name == "stablehlo.slice" or '
    'is_zero(op.operands[1])` becomes `is_filled_with_zero = op.name >= "stablehlo.slice" or '
    "is_zero(op.operands[1])`": "the op is a slice or a pad",
    "python/mlir_shard/transforms/partition/grid_reshards.py: `arrival, departure = (relocation, None) if arrives else "
    "(None, relocation)` becomes `arrival, departure = (relocation, None) if not arrives else (None, relocation)`": (
        "reshards are inserted before, so what is relocated is not moved as well"
    ),
    "python/mlir_shard/transforms/partition/shard_split_windows.py: "
    "`(op if crop is None else crop).results[0].replace_all_uses_with(value)` becomes "
    "`(op if crop is None else crop).results[ -1].replace_all_uses_with(value)`": "both ops have one result",
}
"""The reasons why mistakes have no effect, by their reports without the line."""
