# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Signatures of operations: their role in a graph, and the properties that distinguish them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from mlir_shard._native import ExpressionKind
from mlir_shard.dialects import sdy
from mlir_shard.explain.difference.graph import CALL, Numbers
from mlir_shard.host import ir
from mlir_shard.transforms.constant_expressions import expression_kind

ANNOTATIONS = frozenset(
    {"sdy.propagation_barrier", "sdy.reshard", "sdy.sharding_constraint", "sdy.sharding_group", "shard.shard"}
)
"""Operations that annotate their operand."""
NAMES = ("sym_name", "sym_visibility", "arg_attrs", "res_attrs")
"""Attributes that do not affect the result of an operation."""
_DECLARATIONS = frozenset({"sdy.mesh", "shard.grid", "shard.sharding"})
_SHARDINGS_OF_SDY = ("sharding", "in_shardings", "out_shardings", "out_sharding")
_OF_CONSTANTS = (ExpressionKind.OF_CONSTANTS, ExpressionKind.ASKED_EACH)


class Role(Enum):
    PLAIN = auto()
    FUNCTION = auto()
    CALL = auto()
    RETURN = auto()
    ANNOTATION = auto()
    OF_CONSTANTS = auto()
    EXPANSION = auto()
    DECLARATION = auto()


@dataclass(frozen=True, slots=True)
class Signature:
    """The properties that operations of one name, types and attributes share."""

    name: str
    role: Role
    kind: int
    loose_kind: int
    has_regions: bool
    scalars: frozenset[int]


def signature_of(op: Any, kinds: Numbers) -> Signature:
    name: str = op.name
    role, scalars = _role(op), frozenset[int]()
    if role is Role.EXPANSION:
        scalars = frozenset(number for number, one in enumerate(op.operands) if _is_scalar(one.type))
    types = tuple(one.type for one in op.operands), tuple(one.type for one in op.results)
    attributes = () if role in (Role.FUNCTION, Role.DECLARATION) else tuple(sorted(_attributes(op), key=_name))
    kind = kinds.of((name, types, attributes))
    loose_kind = kinds.of((name, len(op.operands), len(op.results)))
    return Signature(name, role, kind, loose_kind, len(op.regions) > 0, scalars)


def _name(named: tuple[str, Hashable]) -> str:
    return named[0]


def _role(op: Any) -> Role:
    name = op.name
    for role, known in _ROLES.items():
        if name in known:
            return role
    kind = expression_kind(op)
    if kind is ExpressionKind.CONSTANT:
        return Role.OF_CONSTANTS
    if kind is ExpressionKind.EXPANSION:
        return Role.EXPANSION
    return Role.OF_CONSTANTS if kind in _OF_CONSTANTS and len(op.results) == 1 else Role.PLAIN


_ROLES: Mapping[Role, frozenset[str]] = {
    Role.FUNCTION: frozenset({"func.func"}),
    Role.CALL: frozenset({CALL}),
    Role.RETURN: frozenset({"func.return"}),
    Role.ANNOTATION: ANNOTATIONS,
    Role.DECLARATION: _DECLARATIONS,
}


def _is_scalar(type_: Any) -> bool:
    return not isinstance(type_, ir.ShapedType) or (type_.has_rank and type_.rank == 0)


def _attributes(op: Any) -> Iterator[tuple[str, Hashable]]:
    """Yields the attributes that distinguish an operation, by name; shardings are left out, and symbols are `@`."""
    own = (*_SHARDINGS_OF_SDY, "manual_axes") if op.name.startswith("sdy.") else ()
    if op.name == "shard.shard":
        return
    for name in op.attributes:
        if name not in own and name not in NAMES and name != sdy.SHARDING:
            attribute = op.attributes[name]
            # A function without a body is known by its name alone; calls of others are their bodies.
            is_name = name != "callee" and _is_symbol(attribute)
            yield name, "@" if is_name else attribute


def _is_symbol(attribute: Any) -> bool:
    if isinstance(attribute, ir.ArrayAttr):
        return len(attribute) > 0 and all(map(_is_symbol, attribute))
    return isinstance(attribute, ir.FlatSymbolRefAttr | ir.SymbolRefAttr)


def held_shardings(op: Any) -> list[Any]:
    """Returns the attributes with the shardings of an operation of the sdy dialect, those of its results first."""
    keys = [key for key in ("sharding", "out_sharding", "out_shardings", "in_shardings") if key in op.attributes]
    return [op.attributes[key] for key in keys]


def upstream_sharding(op: Any) -> str:
    """Returns the sharding of a `shard.shard` as text: the attributes of its `shard.sharding`."""
    sharding = op.operands[1].owner.operation
    attributes = sharding.attributes
    shown = [f"{name} = {attributes[name]}" for name in sorted(attributes) if name != "grid"]
    side = " for users" if "annotate_for_users" in op.attributes else ""
    return f"[{', '.join(shown)}]{side}"
