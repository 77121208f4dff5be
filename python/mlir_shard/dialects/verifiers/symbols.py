# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an operation sees around it: the meshes of its module, the manual computations it is in.

Operations around the one being verified may be broken themselves; what is broken counts as not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlir_shard.asm import AsmSyntaxError
from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.host import ir
from mlir_shard.sharding import ManualAxes, Mesh, TensorSharding
from mlir_shard.sharding.verify import MeshLookup


def ancestors(op: Any) -> Iterator[Any]:
    """The operations around `op`, innermost first."""
    parent = op.parent
    while parent is not None:
        yield parent.operation
        parent = parent.operation.parent


def find_mesh(sharding: TensorSharding, op: Any) -> Mesh | None:
    """The mesh of a sharding on or in `op`: inlined, or defined in the innermost module around `op`; else None."""
    name = sharding.mesh_or_ref
    if isinstance(name, Mesh):
        return name
    module = next((around for around in ancestors(op) if around.name == "builtin.module"), None)
    if module is None:
        return None
    for candidate in module.regions[0].blocks[0].operations:
        if candidate.operation.name == "sdy.mesh" and _symbol_name(candidate.operation) == name:
            return _value(candidate.operation, "mesh", Mesh)
    return None


def mesh_lookup(op: Any) -> MeshLookup:
    """`find_mesh` for shardings on or in `op`."""
    return lambda sharding: find_mesh(sharding, op)


def bound_manual_axes(op: Any) -> dict[str, Any]:
    """The axes that manual computations around `op` are manual on, and for each the operation that is."""
    bound: dict[str, Any] = {}
    for around in ancestors(op):
        if around.name == "sdy.manual_computation":
            manual = _value(around, "manual_axes", ManualAxes)
            for name in manual.value if manual is not None else ():
                bound[name] = around
    return bound


def _symbol_name(op: Any) -> str | None:
    name = op.attributes.get("sym_name")
    return name.value if isinstance(name, ir.StringAttr) else None


def _value(op: Any, name: str, kind: type) -> Any | None:
    if name not in op.attributes or not isinstance(op.attributes[name], SdyAttribute):
        return None
    try:
        value = op.attributes[name].value
    except AsmSyntaxError:
        return None
    return value if isinstance(value, kind) else None
