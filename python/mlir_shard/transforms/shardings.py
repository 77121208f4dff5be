# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardings around an op, in functions' signatures and in every attribute of a module; and rules, once for a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from mlir_shard.dialects import _sdy_gen, sdy
from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import editing
from mlir_shard.ir.editing import (
    distinct_attributes,
    ops_below,
    replace_attributes,
    set_signature_column,
    signature_attributes,
    signature_column,
)
from mlir_shard.ir.op_kinds import OpKinds
from mlir_shard.ir.op_names import op_names
from mlir_shard.ir.operation_list import OperationList
from mlir_shard.passes.analyses import analysis
from mlir_shard.passes.registry import PassFailure, shared
from mlir_shard.rules import RuleCache, RuleOptions
from mlir_shard.rules.builder import rank_of as rank_of
from mlir_shard.rules.rule_cache import CommonRules
from mlir_shard.sharding import Mesh, OpShardingRule, TensorSharding, TensorShardingPerValue
from mlir_shard.sharding.axes import Axes
from mlir_shard.sharding.mesh import MOST_DEVICES, TooManyDevicesError
from mlir_shard.sharding.tensor import mesh_of
from mlir_shard.transforms.limits import check_devices

KNOWN_ATTRIBUTES = frozenset(
    op_names(
        "sdy",
        "block_arg_propagation_edges block_arg_sharding_origins func_manual_axes manual_axes original_func_name "
        "propagation_edges result_propagation_edges result_sharding_origins sharding sharding_origin_name "
        "sharding_origins sharding_rule",
    )
)
"""The names of the discardable attributes of sdy."""


def listed_meshes(op: Any) -> dict[str, Mesh]:
    """Returns the meshes of the module that `op` is in, by name.

    Raises PassFailure if one, or an inline mesh in a sharding below `op`, has too many devices to list.
    """
    meshes = sdy.meshes(op)
    check_devices(sdy.enclosing_module(op), meshes)
    for mesh in {sharding.mesh_or_ref for sharding in analysis(shardings_in, op)}:
        if isinstance(mesh, Mesh) and mesh.total_size > MOST_DEVICES:
            raise PassFailure(str(TooManyDevicesError(mesh)), _first_on(mesh, op))
    return meshes


def _first_on(mesh: Mesh, root: Any) -> Any:
    """Returns the first operation below `root` with this inline mesh in an attribute; `root` if none exists."""
    # The host keeps attributes of sdy as strings.
    texts = (f"mesh{mesh}", f"mesh{mesh}".replace('"', "\\22"))
    for op in ops_below(root):
        if any(text in str(op.attributes[name]) for name in op.attributes for text in texts):
            return op
    return root


def sharding_and_mesh(value: Any, meshes: Mapping[str, Mesh]) -> tuple[TensorSharding, Mesh] | None:
    """Returns the sharding of a value and its mesh; None if it has none, or is on a single device."""
    sharding = sharding_of(value)
    mesh = None if sharding is None else mesh_of(sharding, meshes)
    return None if sharding is None or mesh is None or mesh.is_maximal else (sharding, mesh)


def common_mesh(
    shardings: Iterable[TensorSharding | None], meshes: Mapping[str, Mesh]
) -> tuple[str | Mesh, Mesh] | None:
    """Returns the reference to the only mesh of shardings, and the mesh; None for no, several or a maximal mesh.

    Missing shardings and the empty mesh are compatible with any mesh.
    """
    common: tuple[str | Mesh, Mesh] | None = None
    for sharding in shardings:
        if sharding is None:
            continue
        mesh = mesh_of(sharding, meshes)
        if mesh is None or mesh.is_maximal:
            return None
        if common is None or common[1].is_empty:
            common = (sharding.mesh_or_ref, mesh)
        elif not mesh.is_empty and mesh != common[1]:
            return None
    return common


class Side(Enum):
    """The arguments or the results of a function; the value is the name of their attribute."""

    ARGUMENTS = "arg_attrs"
    RESULTS = "res_attrs"


_NATIVE = {Side.ARGUMENTS: editing.Side.ARGUMENTS, Side.RESULTS: editing.Side.RESULTS}


def types_of(function: Any, side: Side) -> list[Any]:
    """Returns the types on one side of a function's signature."""
    type_ = function.attributes["function_type"].value
    return list(type_.inputs if side is Side.ARGUMENTS else type_.results)


def numbered_types(function: Any, side: Side) -> tuple[list[int], list[Any]]:
    """Returns indices of the types on one side of a function's signature in a list of distinct types, and that list."""
    _, _, numbers, types = signature_column(function, _NATIVE[side], sdy.SHARDING)
    return numbers, types


def attributes_of(function: Any, side: Side) -> list[dict[str, Any]]:
    """Returns the attributes of each argument or result, by name."""
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
    """Returns the sharding of each argument or result, None if it has none."""
    numbers, attributes = signature_attributes(function, _NATIVE[side], sdy.SHARDING)
    # A missing attribute has the number -1, which indexes the last element here.
    distinct = [*map(sdy.sharding_or_none, attributes), None]
    return [distinct[number] for number in numbers]


def distinct_shardings_of(function: Any, side: Side) -> list[TensorSharding | None]:
    """Returns the distinct shardings of the arguments or results."""
    _, attributes = signature_attributes(function, _NATIVE[side], sdy.SHARDING)
    return list(map(sdy.sharding_or_none, attributes))


def set_shardings(function: Any, side: Side, shardings: Sequence[TensorSharding | None]) -> None:
    """Sets the sharding of each argument or result; None removes it."""
    attributes = {one: None if one is None else sdy.attribute(one, function.context) for one in set(shardings)}
    set_signature_column(function, _NATIVE[side], sdy.SHARDING, [attributes[one] for one in shardings])


def replace_shardings(function: Any, side: Side, replaced: Callable[[TensorSharding, Any], TensorSharding]) -> bool:
    """Replaces the sharding of each argument or result that has one by `replaced` of the sharding and the type.

    `replaced` is called once for each distinct sharding and type, in their order. Returns whether a sharding has
    changed.
    """
    numbers, attributes, numbers_of_types, types = signature_column(function, _NATIVE[side], sdy.SHARDING)
    known = list(map(sdy.sharding_or_none, attributes))
    pairs = list(zip(numbers, numbers_of_types, strict=True))
    new: dict[tuple[int, int], TensorSharding | None] = {}
    is_changed = False
    for number, type_ in dict.fromkeys(pairs):
        old = known[number] if number >= 0 else None
        new[number, type_] = now = None if old is None else replaced(old, types[type_])
        is_changed = is_changed or now != old
    if is_changed:
        set_shardings(function, side, [new[pair] for pair in pairs])
    return is_changed


def shardings_per_value(function: Any, side: Side, meshes: Mapping[str, Mesh]) -> TensorShardingPerValue | None:
    """Returns the shardings of all arguments or results; missing ones are open on the first one's mesh.

    Returns None without shardings, or if all of them are on a single device.
    """
    shardings = shardings_of(function, side)
    ref = next((one.mesh_or_ref for one in shardings if one is not None and not _is_maximal(one, meshes)), None)
    if ref is None:
        return None
    return TensorShardingPerValue.filled(shardings, map(rank_of, types_of(function, side)), ref)


def _is_maximal(sharding: TensorSharding, meshes: Mapping[str, Mesh]) -> bool:
    mesh = mesh_of(sharding, meshes)
    return mesh is not None and mesh.is_maximal


Transform = Callable[[TensorSharding], TensorSharding]
# Operations of the sdy dialect that have shardings in attributes of their own.
SHARDING_HOLDERS = tuple(
    f"sdy.{op.mnemonic}"
    for op in _sdy_gen.DIALECT.ops
    if any(one.constraint.attribute in ("sharding", "sharding_per_value") for one in op.attributes)
)


def shardings_in(root: Any) -> tuple[TensorSharding, ...]:
    """Returns the distinct shardings of `root` and below it that `transform_shardings` would change, in no particular
    order. An analysis: see `passes/analyses.py`.
    """
    found: list[TensorSharding] = []
    for attribute in distinct_attributes(root, sdy.SHARDING, SHARDING_HOLDERS):
        value = attribute.value if isinstance(attribute, SdyAttribute) else None
        if isinstance(value, TensorSharding):
            found.append(value)
        elif isinstance(value, TensorShardingPerValue):
            found += value.shardings
    return tuple(dict.fromkeys(found))


def used_axes(
    module: Any, names: Collection[str] | None = None
) -> tuple[list[tuple[Mesh, Axes]], dict[str | Mesh, Mesh]]:
    """Returns the mesh and the axes of each sharding and all-reduce of a module, and the meshes by reference.

    `names` are the names of the module's operations, if known. Raises PassFailure if a sharding refers to a mesh that
    the module does not define.
    """
    refs: dict[str | Mesh, Mesh] = dict(listed_meshes(module).items())
    used = []
    for sharding in analysis(shardings_in, module):
        ref = sharding.mesh_or_ref
        if isinstance(ref, Mesh):
            refs[ref] = ref
        elif ref not in refs:
            raise PassFailure(f"a sharding refers to the undefined mesh @{ref}", module)
        if not refs[ref].is_maximal:
            used.append((refs[ref], sharding.used_axes))
    # A sum may be reduced along a sub-axis that shards no tensor.
    is_reduced = names is None or "sdy.all_reduce" in names
    for op in OpKinds(module, "sdy.all_reduce").representatives if is_reduced else ():
        mesh = refs[op.attributes["out_sharding"].value.mesh_or_ref]
        if not mesh.is_maximal:
            used.append((mesh, op.attributes["reduction_axes"].value.value))
    return used, refs


def transform_shardings(root: Any, transform: Transform) -> OperationList | None:
    """Replaces each sharding of `root` and below it by `transform` of it, which is called in text order, once per
    distinct attribute.

    Returns the operations of the sdy dialect whose own attributes it has replaced, None if it has changed nothing.

    Shardings are the attribute `sdy.sharding` of an operation, an argument or a result, and the shardings that
    operations of the sdy dialect have in attributes of their own.
    """

    def changed(attribute: Any) -> Any:
        value = attribute.value if isinstance(attribute, SdyAttribute) else None
        if isinstance(value, TensorSharding):
            return sdy.attribute(transform(value), attribute.context)
        if isinstance(value, TensorShardingPerValue):
            shardings = replace(value, shardings=tuple(map(transform, value.shardings)))
            return sdy.attribute(shardings, attribute.context)
        return attribute

    return replace_attributes(root, sdy.SHARDING, SHARDING_HOLDERS, changed)


COMPUTING = RuleOptions(computing=True)
"""The options of rules for computing ops, which may differ from the rules for propagating shardings."""


def rule_cache(options: RuleOptions | None = None) -> RuleCache:
    """Returns the rule cache of this run with these options."""
    given = options or RuleOptions()
    return shared((RuleCache, given), lambda: RuleCache(given, shared(CommonRules, CommonRules)))


RuleFor = Callable[[Any], OpShardingRule | None]


def rules_of_run(options: RuleOptions, *, reuses: bool) -> RuleFor:
    """Returns the function that gives the rule of an op; unless it `reuses` rules, it computes each anew."""
    if reuses:
        return rule_cache(options).rule_for
    return lambda op: RuleCache(options).rule_for(op)


def is_sharded(op: Any) -> bool:
    """Returns whether an operation, or an argument or result of a function, has a sharding along an axis of a mesh."""
    if op.name.startswith("shard."):
        return True
    attributes = op.attributes
    for name in attributes:
        if name in ("arg_attrs", "res_attrs"):
            if any(_uses_axes(one.name, one.attr) for dictionary in attributes[name] for one in dictionary):
                return True
        elif _uses_axes(name, attributes[name]):
            return True
    return False


def _uses_axes(name: str, attribute: Any) -> bool:
    is_read = "." not in name or name in KNOWN_ATTRIBUTES
    if not is_read or not isinstance(attribute, SdyAttribute):
        return False
    value = attribute.value
    if isinstance(value, Mesh):
        # A placement on a single device is a sharding too.
        return value.is_maximal
    shardings = value.shardings if isinstance(value, TensorShardingPerValue) else (value,)
    return any(isinstance(one, TensorSharding) and bool(one.used_axes or one.unreduced_axes) for one in shardings)
