# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that do nothing but make their results, of their operands alone, on any values."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.editing import ops_in

_DIALECTS = frozenset(("arith", "complex", "linalg", "math", "shard", "stablehlo", "tosa"))
_WAITING_DIALECTS = _DIALECTS | {"tensor"}
_OF_TENSORS = frozenset(f"tensor.{name}" for name in ("cast", "collapse_shape", "concat", "empty", "expand_shape"))
# These have no meaning for some values.
_PARTIAL = frozenset(
    f"arith.{name}" for name in ("ceildivsi", "ceildivui", "divsi", "divui", "floordivsi", "remsi", "remui")
)
_EFFECTS = frozenset(
    {
        *(f"shard.{name}" for name in ("recv", "send", "shard", "update_halo")),
        *(f"stablehlo.{name}" for name in ("case", "custom_call", "if", "infeed", "outfeed", "recv", "send", "while")),
        *(f"stablehlo.{name}" for name in ("after_all", "create_token", "rng", "rng_bit_generator")),
        *(f"tosa.{name}" for name in ("cond_if", "custom", "variable_read", "variable_write", "while_loop")),
    }
)
_IMPURE = _PARTIAL | _EFFECTS


def is_pure(op: Any) -> bool:
    """Whether an op, with what is inside it, is one; collectives are, that all devices of a group carry out.

    Those that have no meaning for some values, divisions of integers, are not.
    """
    return all(
        (one.name in _OF_TENSORS or one.name.partition(".")[0] in _DIALECTS) and one.name not in _IMPURE
        for one in ops_in(op)
    )


def can_wait(op: Any) -> bool:
    """Whether an op, with what is inside it, does nothing but make tensors of its operands, so that it may come later.

    Unlike what is pure it may have no meaning for some values: it is carried out just as often.
    """
    if any(isinstance(value.type, (ir.MemRefType, ir.UnrankedMemRefType)) for value in (*op.operands, *op.results)):
        return False
    return len(op.results) > 0 and all(
        one.name.partition(".")[0] in _WAITING_DIALECTS and one.name not in _EFFECTS for one in ops_in(op)
    )
