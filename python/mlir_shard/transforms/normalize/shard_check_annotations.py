# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Warns if a module has no sharding to start from, and of attributes that were meant to be shardings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.editing import Contents, in_modules
from mlir_shard.passes import analyses
from mlir_shard.passes.diagnostic import warn
from mlir_shard.passes.options import near
from mlir_shard.passes.registry import ModulePass, register, shared
from mlir_shard.transforms.shardings import KNOWN_ATTRIBUTES, shardings_in

_OF_GSPMD = "mhlo.sharding"
_EXAMPLE = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
_ADVICE = f"annotate a tensor, {_EXAMPLE}, or give a front end in_shardings"

# The name of an attribute, and the operation that it is on or whose argument or result it is on.
_Use = tuple[str, Any]


@register
class CheckAnnotations(ModulePass):
    """Warns of unknown attributes with names similar to an sdy attribute. If nothing in the module is sharded, also
    warns of GSPMD attributes, which are not read, or of missing annotations. Emits each warning once per run."""

    name = "shard-check-annotations"
    summary = "Warns about misspelt sharding attributes, and about modules without shardings"

    def run(self, op: Any) -> bool:
        given: set[tuple[str, str]] = shared(CheckAnnotations, set)
        held = analyses.held(op)
        has_shardings = _has_shardings(op, held)
        found: dict[str, Any] = {}
        if any(_is_wrong(name, has_shardings) for name in held.attributes):
            for name, user in (use for one in ModuleArrays(op).representatives() for use in _uses(one)):
                if _is_wrong(name, has_shardings):
                    found.setdefault(name, user)
        texts = [(_text(name, has_shardings), user) for name, user in found.items()]
        if not texts and not has_shardings and not _is_empty(op):
            texts = [(f"nothing is sharded: no sharding uses an axis of a mesh; {_ADVICE}", op)]
        for text, where in texts:
            if (key := (text, str(where.location))) not in given:
                given.add(key)
                warn(text, where)
        return False


def _text(name: str, is_sharded: bool) -> str:
    rest = "" if is_sharded else ", and nothing in the module is sharded"
    if name == _OF_GSPMD:
        return f"'{name}' is an attribute of GSPMD and is not read{rest}; write 'sdy.sharding', {_EXAMPLE}"
    alternatives = near(name, KNOWN_ATTRIBUTES, limit=1) or ("sdy.sharding",)
    return f"'{name}' is not an attribute of sdy and is not read{rest}; did you mean '{alternatives[0]}'?"


def _has_shardings(module: Any, held: Contents) -> bool:
    """Returns whether anything in a module is sharded along an axis of a mesh, or is on one device."""
    if any(name.startswith("shard.") for name in held.operations):
        return True
    shardings = any(one.used_axes or one.unreduced_axes for one in analyses.analysis(shardings_in, module))
    return shardings or any(one.attributes["mesh"].value.is_maximal for one in in_modules(module, "sdy.mesh"))


def _is_wrong(name: str, is_sharded: bool) -> bool:
    return _is_misspelt(name, is_sharded) or (name == _OF_GSPMD and not is_sharded)


def _is_misspelt(name: str, is_sharded: bool) -> bool:
    if name in KNOWN_ATTRIBUTES or name == _OF_GSPMD:
        return False
    if name.startswith("sdy."):
        return bool(near(name, KNOWN_ATTRIBUTES)) or not is_sharded
    return not is_sharded and bool(near(name, ("sdy.sharding",)))


def _uses(op: Any) -> Iterator[_Use]:
    """Yields the discardable attributes of an operation, and of the arguments and results of a function."""
    is_of_sdy = op.name.startswith("sdy.")
    for name in op.attributes:
        if "." in name or ("sharding" in name and not is_of_sdy):
            yield name, op
        if name in ("arg_attrs", "res_attrs"):
            for index, dictionary in enumerate(op.attributes[name]):
                is_argument = name == "arg_attrs" and len(op.regions[0].blocks)
                where = op.regions[0].blocks[0].arguments[index] if is_argument else op
                yield from ((one.name, where) for one in dictionary)


def _is_empty(module: Any) -> bool:
    """Returns whether a module has no function with a body that takes or returns a tensor other than a scalar."""
    functions = [one.operation for one in module.regions[0].blocks[0].operations if one.operation.name == "func.func"]
    types = (
        type_
        for one in functions
        if len(one.regions[0].blocks)
        for type_ in (*one.attributes["function_type"].value.inputs, *one.attributes["function_type"].value.results)
    )
    return not any(isinstance(type_, ir.RankedTensorType) and type_.rank for type_ in types)
