# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `sdy.data_flow_edge`s of named computations, all of a module added or taken away together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.asm import AsmSyntaxError
from mlir_shard.asm.editor import Side, add_links, attribute_columns, take_links
from mlir_shard.dialects import sdy
from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.dialects.data_flow_edges import is_static
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.data_flow_edges import EDGE
from mlir_shard.transforms.function_shardings import rank_of

COMPUTATION = "sdy.named_computation"
_SHARDING = "sharding"
_SIDES = ((Side.ARGUMENTS, "in_shardings"), (Side.RESULTS, "out_shardings"))

Shardings = tuple[TensorSharding, ...]


def add_edges(computations: Sequence[Any]) -> None:
    """Puts an edge with its sharding between each argument or result of computations and its uses.

    Those that have an edge keep it, and what has no static shape needs none.
    """
    columns = attribute_columns(computations, *(name for _, name in _SIDES))
    for (side, _), column in zip(_SIDES, columns, strict=True):
        of_each = {attribute: _one_by_one(attribute) for attribute in set(column)}
        add_links(computations, side, EDGE, _SHARDING, [of_each[attribute] for attribute in column], is_static)


def _one_by_one(attribute: Any) -> list[Any]:
    """The attributes for the edges; none for an attribute that cannot be read."""
    try:
        value = attribute.value if isinstance(attribute, SdyAttribute) else None
    except AsmSyntaxError:
        return []
    if not isinstance(value, TensorShardingPerValue):
        return []
    return [sdy.attribute(sharding, attribute.context) for sharding in value.shardings]


def take_shardings(computations: Sequence[Any]) -> list[tuple[Shardings | None, Shardings | None]]:
    """The shardings of the arguments and of the results of each computation, None where there are none.

    They are those of the edges, which go: open on the first one's mesh where they are missing. Where all are missing,
    they are the computation's own.
    """
    own = attribute_columns(computations, *(name for _, name in _SIDES))
    sides = []
    for (side, _), attributes in zip(_SIDES, own, strict=True):
        taken = take_links(computations, side, EDGE, _SHARDING)
        known: dict[tuple[Any, ...], Shardings | None] = {}
        found = []
        for computation, of_edges, attribute in zip(computations, taken, attributes, strict=True):
            is_missing = any(one is None for one in of_edges)
            # The types decide only on shardings that are missing.
            key = (attribute, *of_edges, *(_types(computation, side) if is_missing else ()))
            if key not in known:
                known[key] = _of_edges(computation, side, of_edges) or _own(attribute)
            found.append(known[key])
        sides.append(found)
    return list(zip(*sides, strict=True))


def _types(computation: Any, side: Side) -> list[Any]:
    owners = computation.results if side is Side.RESULTS else computation.regions[0].blocks[0].arguments
    return [owner.type for owner in owners]


def _of_edges(computation: Any, side: Side, attributes: Sequence[Any]) -> Shardings | None:
    found = [_sharding(attribute) for attribute in attributes]
    ref = next((sharding.mesh_or_ref for sharding in found if sharding is not None), None)
    if ref is None:
        return None
    if None not in found:
        return tuple(sharding for sharding in found if sharding is not None)
    return tuple(
        TensorSharding.fully_open(rank_of(type_), ref) if sharding is None else sharding
        for sharding, type_ in zip(found, _types(computation, side), strict=True)
    )


def _sharding(attribute: Any) -> TensorSharding | None:
    value = attribute.value if isinstance(attribute, SdyAttribute) else None
    return value if isinstance(value, TensorSharding) else None


def _own(attribute: Any) -> Shardings | None:
    if attribute is None:
        return None
    shardings: Shardings = attribute.value.shardings
    return shardings
