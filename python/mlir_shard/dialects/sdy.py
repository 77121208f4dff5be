# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sdy dialect in a host context: its generated wrappers, and accessors of shardings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir_shard import asm
from mlir_shard.asm.sdy_syntax import sdy_attributes
from mlir_shard.dialects import _sdy_gen, registration
from mlir_shard.dialects._sdy_gen import *
from mlir_shard.dialects.attribute import SdyAttribute, to_attribute, to_value
from mlir_shard.dialects.mesh_definitions import meshes_in
from mlir_shard.host import ir
from mlir_shard.sharding import Mesh, TensorSharding, TensorShardingPerValue

SHARDING = "sdy.sharding"
SHARDING_RULE = "sdy.sharding_rule"

attribute = to_attribute
value = to_value

asm.register(sdy_attributes(_sdy_gen.DIALECT))


def load(context: Any) -> None:
    """Loads the sdy dialect in `context`: operations, attributes, traits and verifiers. Idempotent."""
    from mlir_shard.dialects.verifiers import operations

    registration.load(context, _sdy_gen, operations.VERIFIERS)


def mesh_of(sharding: TensorSharding, op: Any) -> Mesh | None:
    """Returns the mesh of `sharding`, looked up by name in the module around `op` if needed; None if it is unknown."""
    if isinstance(sharding.mesh_or_ref, Mesh):
        return sharding.mesh_or_ref
    return meshes(op).get(sharding.mesh_or_ref)


def enclosing_module(op: Any) -> Any:
    """Returns the innermost `builtin.module` around `op`, or `op` itself if it is a module."""
    op = op.operation
    while op.name != "builtin.module" and op.parent is not None:
        op = op.parent.operation
    return op


def meshes(op: Any) -> dict[str, Mesh]:
    """Returns the meshes that the innermost module around `op` defines, by name, in the order of their definitions."""
    found = meshes_in(enclosing_module(op))
    return {name: mesh for name, mesh in found.items() if name is not None and mesh is not None}


# Operations of the dialect that hold the sharding of their only result, or the shardings of all results, in an
# inherent attribute; all others hold them in the discardable attribute SHARDING.
_OWN_SHARDING = {"sdy.sharding_constraint": "sharding", "sdy.reshard": "sharding", "sdy.data_flow_edge": "sharding"}
_OWN_SHARDINGS = {"sdy.manual_computation": "out_shardings", "sdy.named_computation": "out_shardings"}
COLLECTIVE_SHARDING = "out_sharding"
# The attributes that hold shardings of results, and whether an attribute holds one sharding for each result.
SHARDING_KEYS = {SHARDING: True, "out_shardings": True, "sharding": False, COLLECTIVE_SHARDING: False}


def sharding_key(op: Any) -> str:
    """Returns the name of the attribute in which an operation holds the shardings of its results."""
    name = op.name
    is_collective = name.startswith("sdy.") and COLLECTIVE_SHARDING in op.attributes
    return COLLECTIVE_SHARDING if is_collective else sharding_key_of(name)


def sharding_key_of(name: str) -> str:
    """Returns the attribute that holds the shardings of results of operations of a name, other than collectives."""
    return _OWN_SHARDING.get(name) or _OWN_SHARDINGS.get(name, SHARDING)


def get_sharding(value: Any) -> TensorSharding | None:
    """Returns the sharding attached to a function's argument or an operation's result; None if none exists."""
    if isinstance(value, ir.BlockArgument):
        return _get_argument_sharding(value)
    op = value.owner.operation
    key = sharding_key(op)
    if not SHARDING_KEYS[key]:
        return sharding_or_none(op.attributes.get(key))
    per_value = op.attributes.get(key)
    of_results = per_value.value if isinstance(per_value, SdyAttribute) else None
    if not isinstance(of_results, TensorShardingPerValue):
        return None
    shardings = of_results.shardings
    index = ir.OpResult(value).result_number
    return shardings[index] if index < len(shardings) else None


def sharding_or_none(attribute: Any) -> TensorSharding | None:
    """Returns the value of a sharding attribute; None for any other attribute, and for None."""
    value = attribute.value if isinstance(attribute, SdyAttribute) else None
    return value if isinstance(value, TensorSharding) else None


def _get_argument_sharding(argument: Any) -> TensorSharding | None:
    owner = argument.owner.owner.operation
    is_of_function = owner.name == "func.func" and argument.owner == owner.regions[0].blocks[0]
    return _get_function_sharding(owner, "arg_attrs", argument.arg_number) if is_of_function else None


def set_sharding(value: Any, sharding: TensorSharding | None) -> None:
    """Attaches `sharding` to a function's argument or to the result of an operation, where `get_sharding` finds it.

    The other results of the operation keep their shardings; results without sharding become fully open. If `sharding`
    is None, removes the sharding of the argument, or the attribute with the shardings of all results. The time is
    proportional to the number of arguments or results: `set_shardings` attaches several at once.
    """
    if isinstance(value, ir.BlockArgument):
        _set_function_sharding(value.owner.owner.operation, "arg_attrs", value.arg_number, sharding)
        return
    op = value.owner.operation
    key = sharding_key(op)
    if sharding is None:
        if key in op.attributes:
            del op.attributes[key]
        return
    set_shardings(op, {ir.OpResult(value).result_number: sharding})


def set_shardings(op: Any, shardings: Mapping[int, TensorSharding]) -> None:
    """Attaches shardings to the results of an operation with these numbers, of which there is at least one.

    The other results keep their shardings; results without sharding become fully open on the mesh of the first one.
    """
    key = sharding_key(op)
    first = next(iter(shardings.values()))
    if not SHARDING_KEYS[key]:
        op.attributes[key] = to_attribute(first, op.context)
        return
    known = (shardings.get(number) or get_sharding(result) for number, result in enumerate(op.results))
    ranks = (rank_of(result.type) for result in op.results)
    op.attributes[key] = to_attribute(TensorShardingPerValue.filled(known, ranks, first.mesh_or_ref), op.context)


def rank_of(type_: Any) -> int:
    """Returns the rank of a ranked shaped type; 0 for scalars, tokens and every other type."""
    return type_.rank if isinstance(type_, ir.ShapedType) and type_.has_rank else 0


def get_result_sharding(function: Any, index: int) -> TensorSharding | None:
    """Returns the sharding of result `index` of a `func.func`; None if none exists."""
    return _get_function_sharding(function.operation, "res_attrs", index)


def _get_function_sharding(function: Any, key: str, index: int) -> TensorSharding | None:
    attrs: Any = function.attributes[key][index] if key in function.attributes else ()
    return sharding_or_none(attrs[SHARDING]) if SHARDING in attrs else None


def set_result_sharding(function: Any, index: int, sharding: TensorSharding | None) -> None:
    """Attaches `sharding` to result `index` of a `func.func`; None removes its sharding."""
    _set_function_sharding(function.operation, "res_attrs", index, sharding)


def _set_function_sharding(function: Any, key: str, index: int, sharding: TensorSharding | None) -> None:
    type_ = function.attributes["function_type"].value
    count = len(type_.inputs if key == "arg_attrs" else type_.results)
    context = function.context
    if key in function.attributes:
        dicts = list(function.attributes[key])
    else:
        dicts = [ir.DictAttr.get({}, context)] * count
    entries = {named.name: named.attr for named in dicts[index]}
    entries.pop(SHARDING, None)
    if sharding is not None:
        entries[SHARDING] = to_attribute(sharding, context)
    dicts[index] = ir.DictAttr.get(entries, context)
    function.attributes[key] = ir.ArrayAttr.get(dicts, context)
