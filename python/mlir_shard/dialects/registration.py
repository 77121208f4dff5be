# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Registration of a dialect that ODS defines in a host context.

The operations and attributes are loaded as IRDL, which defines a dialect at run time. Traits, side effects and
verifiers, which IRDL cannot express, are attached to the operation names afterwards, as in the host's
`dialects/ext.py`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir

Verifier = Callable[[Any], bool]


class _NoMemoryEffect(ir.MemoryEffectsOpInterface):
    @staticmethod
    def get_effects(op: Any, effects: Any) -> None:
        """Reports no effects."""


class _AlwaysSpeculatable(ir.ConditionallySpeculatable):
    @staticmethod
    def get_speculatability(op: Any) -> Any:
        return ir.Speculatability.Speculatable


_ATTACHABLE: Mapping[str, tuple[Any, ...]] = {
    "Pure": (_NoMemoryEffect, _AlwaysSpeculatable),
    "Terminator": (ir.IsTerminatorTrait,),
    "IsolatedFromAbove": (ir.IsIsolatedFromAboveTrait,),
}

_wrapped: set[str] = set()
# Bytecode by IRDL text, stored when the text is read for a second context: bytecode is read in half the time.
_bytecode: dict[str, bytes | None] = {}


def load(context: Any, generated: ModuleType, verifiers: Mapping[str, Verifier]) -> None:
    """Loads the dialect of a module written by `mlir_shard.ods.generate` in `context`, once for each context.

    `verifiers` maps operation names (`sdy.mesh`) to functions that emit a diagnostic and return False if an
    operation breaks an invariant.
    """
    definition = generated.DIALECT
    if context.is_dialect_loaded(definition.name):
        return
    irdl = host.dialect("irdl")
    with context, ir.Location.unknown():
        for text in generated.IRDL:
            irdl.load_dialects(_definitions(text))
        for op in definition.ops:
            name = f"{definition.name}.{op.mnemonic}"
            for trait in op.traits:
                for attachable in _ATTACHABLE.get(trait.name, ()):
                    attachable.attach(name)
            if name in verifiers:
                members = {"verify_invariants": staticmethod(verifiers[name])}
                ir.DynamicOpTrait.attach(name, type(f"Verify_{name.replace('.', '_')}", (), members))
        _register_wrappers(definition.name, generated)


def _definitions(text: str) -> Any:
    """Returns the module of a text of IRDL in the current context."""
    known = _bytecode.get(text)
    if known is not None:
        return ir.Module.parse(known)
    module = ir.Module.parse(text)
    if text not in _bytecode:
        # Most processes have one context.
        _bytecode[text] = None
        return module
    host.module("passmanager").PassManager.parse("builtin.module(strip-debuginfo)").run(module.operation)
    written = io.BytesIO()
    module.operation.write_bytecode(written)
    _bytecode[text] = written.getvalue()
    return module


def _register_wrappers(namespace: str, generated: ModuleType) -> None:
    bindings = host.module("_mlir_libs._mlir")
    # Type ids of dynamic attributes belong to a context, so the casters are registered for each.
    for attribute in generated.ATTRIBUTES:
        type_id = ir.DynamicAttr.lookup_typeid(attribute.attr_name)
        bindings.register_type_caster(type_id, replace=True)(attribute)
    if namespace in _wrapped:
        return
    _wrapped.add(namespace)
    dialect = type(namespace.capitalize() + "Dialect", (ir.Dialect,), {"DIALECT_NAMESPACE": namespace})
    for op in generated.OPS:
        bindings.register_operation(dialect)(op)
