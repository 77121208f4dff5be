# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Common properties of collectives of `shard` and of StableHLO, and elementwise ops on local tensors."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import prod
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir import shard
from mlir_shard.ir.editing import ops_below
from mlir_shard.ir.op_names import op_names
from mlir_shard.ir.replica_groups import REPLICA_GROUPS
from mlir_shard.ir.values import element_size
from mlir_shard.rules import RuleCache
from mlir_shard.rules.elementwise import is_elementwise
from mlir_shard.rules.reduction import Combiner, combiners_of_body
from mlir_shard.sharding.rule import FactorType

GATHERS = ("shard.all_gather", "stablehlo.all_gather")
REDUCES = ("shard.all_reduce", "stablehlo.all_reduce")
SCATTERS = ("shard.reduce_scatter", "stablehlo.reduce_scatter")
CHANNEL = "channel_handle"
_GRID_GROUPS = ("grid", "grid_axes")
_LISTED_GROUPS = (REPLICA_GROUPS, "use_global_device_ids")
AMONG = (*_GRID_GROUPS, *_LISTED_GROUPS)
"""The attributes that determine which devices communicate, of collectives of shard, then of StableHLO."""
_DIMS = {
    "shard.all_gather": "gather_axis",
    "shard.all_slice": "slice_axis",
    "shard.reduce_scatter": "scatter_dim",
    "stablehlo.all_gather": "all_gather_dim",
    "stablehlo.reduce_scatter": "scatter_dimension",
}


def among(collective: Any) -> tuple[Any, ...]:
    """Returns a key that collectives share if the same devices communicate in the same way."""
    attributes = collective.attributes
    if collective.name.startswith("shard."):
        return ("shard", *(attributes[name] for name in _GRID_GROUPS if name in attributes))
    # Without those that are absent: an attribute cannot be compared with None.
    listed = tuple((name, attributes[name]) for name in _LISTED_GROUPS if name in attributes)
    return ("stablehlo", CHANNEL in attributes, *listed)


def is_of_values(collective: Any) -> bool:
    """Returns whether a collective is of tensors: memory may change from one collective to the next."""
    return all(isinstance(value.type, ir.RankedTensorType) for value in (*collective.operands, *collective.results))


def dim_of(collective: Any) -> int | None:
    """Returns the dimension that is gathered, sliced or scattered; None for several tensors at once."""
    if len(collective.operands) != 1 or collective.name not in _DIMS:
        return None
    dim: int = collective.attributes[_DIMS[collective.name]].value
    return dim


def reduction(collective: Any) -> Hashable:
    """Returns the combiner of two elements; for an unknown op, the collective itself, which equals no other."""
    if not len(collective.regions):
        return shard.reduction_of(collective)
    (combiner,) = combiners_of_body(collective, first_element=1)
    return collective if combiner is None else combiner


def adds(collective: Any) -> bool:
    """Returns whether a reduction is a sum."""
    return reduction(collective) == Combiner.SUM


def scattered(reduce: Any, dim: int, type_: Any) -> Any:
    """Builds the shard along `dim` of the result of an all-reduce of `shard`: the result of a reduce-scatter of this
    type, at the current insertion point."""
    attributes = {name: reduce.attributes[name] for name in (*AMONG, "reduction") if name in reduce.attributes}
    attributes["scatter_dim"] = ir.IntegerAttr.get(ir.IndexType.get(), dim)
    return ir.Operation.create("shard.reduce_scatter", [type_], [reduce.operands[0]], attributes).results[0]


def num_bytes(type_: Any) -> int | None:
    """Returns the bytes of a tensor; None if its shape is not known."""
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        return None
    return prod(type_.shape) * (element_size(type_) or 1)


def received_bytes(gather: Any) -> int | None:
    """Returns the bytes that a device receives from an all-gather of one tensor; None if shapes are not known."""
    before, after = num_bytes(gather.operands[0].type), num_bytes(gather.results[0].type)
    return None if before is None or after is None else after - before


_LINALG = frozenset(
    op_names(
        "linalg",
        "abs add ceil div div_unsigned elementwise erf exp floor generic log map max min mul negf powf reciprocal "
        "round rsqrt select sqrt square sub tanh",
    )
)


@dataclass(frozen=True, slots=True)
class OnBlock:
    """An op to make local, and the dimension on which each operand is sharded, or None."""

    op: Any
    operand_dims: tuple[int | None, ...]


def on_block(op: Any, value: Any, dim: int, rules: RuleCache) -> OnBlock | None:
    """Returns the form in which an op with the operand `value` is local if `dim` of its result is sharded, or None."""
    if len(op.results) != 1 or not (is_elementwise(op.name) or op.name in _LINALG):
        return None
    if list(op.results[0].type.shape) != list(value.type.shape) or any(
        one.name == "linalg.index" for one in ops_below(op)
    ):
        return None
    rule = rules.rule_for(op)
    if rule is None or any(
        rule.factor_type(factor) is not FactorType.PASS_THROUGH for factor in range(rule.num_factors)
    ):
        return None
    factors = rule.result_mappings[0].dim_mappings[dim].factor_indices
    if len(factors) != 1:
        return None
    dims: list[int | None] = []
    for operand, mapping in zip(op.operands, rule.operand_mappings, strict=True):
        cut = [at for at, one in enumerate(mapping.dim_mappings) if factors[0] in one.factor_indices]
        is_factor = cut and mapping.dim_mappings[cut[0]].factor_indices == factors
        is_value = operand == value
        if len(cut) > 1 or (cut and not is_factor) or (is_value and cut != [dim]):
            return None
        dims.append(cut[0] if cut else None)
    return OnBlock(op, tuple(dims))
