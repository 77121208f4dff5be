# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The record of where shardings came from goes."""

from __future__ import annotations

from typing import Any

from mlir_shard.asm.arrays import ModuleArrays
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.function_shardings import Side, attributes_of, set_attributes
from mlir_shard.transforms.propagate import debug_attributes


@register
class RemovePropagationDebugInfo(Pass):
    """Removes the attributes that say from where and in which steps propagation took shardings."""

    name = "sdy-remove-propagation-debug-info"
    anchor = "builtin.module"
    summary = "Removes what propagation said about the origins of shardings"

    def run(self, op: Any) -> None:
        _clean(op)
        arrays = ModuleArrays(op)
        carrying = {
            signature
            for signature, one in enumerate(arrays.representatives())
            if one.name == "func.func" or any(name in one.attributes for name in debug_attributes.ALL)
        }
        for number, signature in enumerate(arrays.signatures):
            if signature in carrying:
                _clean(arrays.operation(number))


def _clean(op: Any) -> None:
    for name in debug_attributes.ALL:
        if name in op.attributes:
            del op.attributes[name]
    if op.name == "func.func":
        for side in Side:
            _clean_signature(op, side)


def _clean_signature(function: Any, side: Side) -> None:
    old = attributes_of(function, side)
    new = [{name: one for name, one in entries.items() if name not in debug_attributes.ALL} for entries in old]
    if new != old:
        set_attributes(function, side, new)
