# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decomposition of linalg ops that are not loop nests: softmax, packing and Winograd transforms."""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named

_WINOGRAD = tuple(f"linalg.winograd_{name}_transform" for name in ("filter", "input", "output"))
# By op name: the transform of such an op, %op, in upstream's transform dialect.
_TRANSFORMS = {
    "linalg.softmax": "transform.structured.decompose_interface %op : (!transform.any_op) -> !transform.any_op",
    "linalg.pack": """
      %pack = transform.cast %op : !transform.any_op to !transform.op<"linalg.pack">
      transform.structured.lower_pack %pack : (!transform.op<"linalg.pack">)
          -> (!transform.op<"tensor.pad">, !transform.op<"tensor.expand_shape">, !transform.op<"linalg.transpose">)""",
    "linalg.unpack": """
      %unpack = transform.cast %op : !transform.any_op to !transform.op<"linalg.unpack">
      transform.structured.lower_unpack %unpack : (!transform.op<"linalg.unpack">)
          -> (!transform.op<"tensor.empty">, !transform.op<"linalg.transpose">,
              !transform.op<"tensor.collapse_shape">, !transform.op<"tensor.extract_slice">,
              !transform.op<"linalg.copy">)""",
    **dict.fromkeys(
        _WINOGRAD, "transform.structured.decompose_winograd_op %op : (!transform.any_op) -> !transform.any_op"
    ),
}


def decompose(module: Any) -> None:
    """Decomposes these ops of a module into loop nests and tensor ops, in place."""
    names = {op.name for op in operations_named(module, *_TRANSFORMS)}
    if not names:
        return
    matched = "\n".join(
        f"""
    %{number} = transform.structured.match ops{{["{name}"]}} in %module : (!transform.any_op) -> !transform.any_op
    transform.foreach %{number} : !transform.any_op {{
    ^bb0(%op: !transform.any_op):
      {_TRANSFORMS[name]}
    }}"""
        for number, name in enumerate(sorted(names))
    )
    schedule = ir.Module.parse(
        f"""module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @decompose(%module: !transform.any_op {{transform.readonly}}) {{{matched}
    transform.yield
  }}
}}""",
        module.context,
    )
    interpreter = host.module("dialects.transform.interpreter")
    interpreter.apply_named_sequence(module, schedule.body.operations[0], schedule)
