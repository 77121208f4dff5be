# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sdy dialect in a host context: its generated wrappers, and where a value's sharding lives."""

from __future__ import annotations

from typing import Any

from mlir_shard import asm
from mlir_shard.asm.module import native_host
from mlir_shard.asm.sdy_syntax import sdy_attributes
from mlir_shard.dialects import _sdy_gen, registration
from mlir_shard.dialects._sdy_gen import *
from mlir_shard.dialects.attribute import SdyAttribute, to_attribute, to_value
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
    """The mesh of `sharding`, looked up in the module around `op` where it is a name; None where it is unknown."""
    if isinstance(sharding.mesh_or_ref, Mesh):
        return sharding.mesh_or_ref
    return meshes(op).get(sharding.mesh_or_ref)


def enclosing_module(op: Any) -> Any:
    """The innermost `builtin.module` around `op`, or `op` itself where it is one."""
    op = op.operation
    while op.name != "builtin.module" and op.parent is not None:
        op = op.parent.operation
    return op


def meshes(op: Any) -> dict[str, Mesh]:
    """The meshes that the innermost module around `op` defines, by name, in the order of their definitions."""
    found = native_host().children(enclosing_module(op)._CAPIPtr, "sdy.mesh")
    definitions = [ir.Operation._CAPICreate(one).attributes for one in found]
    return {one["sym_name"].value: to_value(one["mesh"]) for one in definitions}


# Operations of the dialect that hold the sharding of their only result, or those of all their results, in an
# attribute of their own; all others hold it in the discardable attribute SHARDING.
_OWN_SHARDING = {"sdy.sharding_constraint": "sharding", "sdy.reshard": "sharding", "sdy.data_flow_edge": "sharding"}
_OWN_SHARDINGS = {"sdy.manual_computation": "out_shardings", "sdy.named_computation": "out_shardings"}
COLLECTIVE_SHARDING = "out_sharding"
# The attributes that hold shardings of results, and whether they hold one for each result.
SHARDING_KEYS = {SHARDING: True, "out_shardings": True, "sharding": False, COLLECTIVE_SHARDING: False}


def sharding_key(op: Any) -> str:
    """The attribute in which an operation holds the shardings of its results."""
    name = op.name
    is_collective = name.startswith("sdy.") and COLLECTIVE_SHARDING in op.attributes
    return COLLECTIVE_SHARDING if is_collective else sharding_key_of(name)


def sharding_key_of(name: str) -> str:
    """The attribute in which operations of a name, other than collectives, hold the shardings of their results."""
    return _OWN_SHARDING.get(name) or _OWN_SHARDINGS.get(name, SHARDING)


def get_sharding(value: Any) -> TensorSharding | None:
    """The sharding attached to a value: to a function's argument, or to the result of an operation; else None."""
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
    """The sharding that an attribute is; None of any other attribute, and of None."""
    value = attribute.value if isinstance(attribute, SdyAttribute) else None
    return value if isinstance(value, TensorSharding) else None


def _get_argument_sharding(argument: Any) -> TensorSharding | None:
    owner = argument.owner.owner.operation
    is_of_function = owner.name == "func.func" and argument.owner == owner.regions[0].blocks[0]
    return _get_function_sharding(owner, "arg_attrs", argument.arg_number) if is_of_function else None


def set_sharding(value: Any, sharding: TensorSharding | None) -> None:
    """Attaches `sharding` to a function's argument or to the result of an operation, where `get_sharding` finds it.

    None takes it away. The other results of the operation keep theirs; those that had none become fully open.
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
    if not SHARDING_KEYS[key]:
        op.attributes[key] = to_attribute(sharding, op.context)
        return
    index = ir.OpResult(value).result_number
    known = (sharding if number == index else get_sharding(result) for number, result in enumerate(op.results))
    ranks = (rank_of(result.type) for result in op.results)
    op.attributes[key] = to_attribute(TensorShardingPerValue.filled(known, ranks, sharding.mesh_or_ref), op.context)


def rank_of(type_: Any) -> int:
    """The rank of a ranked shaped type; 0 for scalars, tokens and every other type."""
    return type_.rank if isinstance(type_, ir.ShapedType) and type_.has_rank else 0


def get_result_sharding(function: Any, index: int) -> TensorSharding | None:
    """The sharding of result `index` of a `func.func`, or None."""
    return _get_function_sharding(function.operation, "res_attrs", index)


def _get_function_sharding(function: Any, key: str, index: int) -> TensorSharding | None:
    attrs: Any = function.attributes[key][index] if key in function.attributes else ()
    return sharding_or_none(attrs[SHARDING]) if SHARDING in attrs else None


def set_result_sharding(function: Any, index: int, sharding: TensorSharding | None) -> None:
    """Attaches `sharding` to result `index` of a `func.func`; None takes it away."""
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
