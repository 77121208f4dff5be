# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The shardings in a function's signature, read and written together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.host import ir
from mlir_shard.sharding import Mesh, TensorSharding, TensorShardingPerValue


class Side(Enum):
    """The arguments or the results of a function, by the attribute that holds theirs."""

    ARGUMENTS = "arg_attrs"
    RESULTS = "res_attrs"


def types_of(function: Any, side: Side) -> list[Any]:
    """The types on one side of a function's signature."""
    type_ = function.attributes["function_type"].value
    return list(type_.inputs if side is Side.ARGUMENTS else type_.results)


def rank_of(type_: Any) -> int:
    """The rank of a tensor; 0 of what has none."""
    return type_.rank if isinstance(type_, ir.ShapedType) and type_.has_rank else 0


def attributes_of(function: Any, side: Side) -> list[dict[str, Any]]:
    """The attributes of each argument or result, by name."""
    if side.value not in function.attributes:
        return [{} for _ in types_of(function, side)]
    return [{named.name: named.attr for named in dictionary} for dictionary in function.attributes[side.value]]


def set_attributes(function: Any, side: Side, attributes: Sequence[Mapping[str, Any]]) -> None:
    """Gives each argument or result these attributes, and no others."""
    if not any(attributes):
        if side.value in function.attributes:
            del function.attributes[side.value]
        return
    dictionaries = [ir.DictAttr.get(dict(one), function.context) for one in attributes]
    function.attributes[side.value] = ir.ArrayAttr.get(dictionaries, function.context)


def shardings_of(function: Any, side: Side) -> list[TensorSharding | None]:
    """The sharding of each argument or result, None where it has none."""
    if side.value not in function.attributes:
        return [None for _ in types_of(function, side)]
    # Few of the dictionaries of a large signature are different.
    known: dict[Any, TensorSharding | None] = {}
    found = []
    for dictionary in function.attributes[side.value]:
        if dictionary not in known:
            known[dictionary] = sharding_in(dictionary)
        found.append(known[dictionary])
    return found


def sharding_in(dictionary: Any) -> TensorSharding | None:
    """The sharding among the attributes of an argument or result."""
    if sdy.SHARDING not in dictionary:
        return None
    attribute = dictionary[sdy.SHARDING]
    value = attribute.value if isinstance(attribute, SdyAttribute) else None
    return value if isinstance(value, TensorSharding) else None


def set_shardings(function: Any, side: Side, shardings: Sequence[TensorSharding | None]) -> None:
    """Gives each argument or result its sharding; None takes it away."""
    attributes = attributes_of(function, side)
    for entries, sharding in zip(attributes, shardings, strict=True):
        if sharding is not None:
            entries[sdy.SHARDING] = sdy.attribute(sharding, function.context)
        elif sdy.SHARDING in entries:
            del entries[sdy.SHARDING]
    set_attributes(function, side, attributes)


def shardings_per_value(function: Any, side: Side, meshes: Mapping[str, Mesh]) -> TensorShardingPerValue | None:
    """The shardings of all arguments or results, open on the first one's mesh where they are missing.

    None where there is no sharding, or none but on a single device.
    """
    shardings = shardings_of(function, side)
    ref = next((one.mesh_or_ref for one in shardings if one is not None and not _is_maximal(one, meshes)), None)
    if ref is None:
        return None
    return TensorShardingPerValue(
        tuple(
            TensorSharding.fully_open(rank_of(type_), ref) if sharding is None else sharding
            for sharding, type_ in zip(shardings, types_of(function, side), strict=True)
        )
    )


def _is_maximal(sharding: TensorSharding, meshes: Mapping[str, Mesh]) -> bool:
    ref = sharding.mesh_or_ref
    mesh = ref if isinstance(ref, Mesh) else meshes.get(ref)
    return mesh is not None and mesh.is_maximal
