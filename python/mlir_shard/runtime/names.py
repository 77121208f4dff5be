# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of arguments, results and values, and patterns that select them.

The name of an argument is its location, which JAX sets to its path in a pytree, `params['w1']`; the name of a result is
its `jax.result_info`. A pattern with `*` and `?` matches a name or its path, `params.w1`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir

RESULT_NAME = "jax.result_info"
_NAMED = re.compile(r'loc\("((?:[^"\\]|\\.)*)"(?!:)')
_ITEM = re.compile(r"""\[(?:'([^']*)'|"([^"]*)"|([^\]]*))\]""")


def location_name(location: Any) -> str:
    """Returns the name of a location, empty for one without a name."""
    found = _NAMED.match(str(location))
    return found[1].replace('\\"', '"').replace("\\\\", "\\") if found else ""


def argument_names(function: Any) -> tuple[str, ...]:
    """Returns the name of each argument of a function; `argN` for one without a name."""
    arguments = function.regions[0].blocks[0].arguments
    return tuple(location_name(one.location) or f"arg{index}" for index, one in enumerate(arguments))


def result_names(function: Any) -> tuple[str, ...]:
    """Returns the name of each result of a function; `resultN` for one without a name."""
    count = len(function.attributes["function_type"].value.results)
    attributes = function.attributes["res_attrs"] if "res_attrs" in function.attributes else [{}] * count
    return tuple(
        ir.StringAttr(of_result[RESULT_NAME]).value if RESULT_NAME in of_result else f"result{index}"
        for index, of_result in enumerate(attributes)
    )


def path(name: str) -> str:
    """Returns a name as a path: `params['layers'][0]['w']` is `params.layers.0.w`."""
    return _ITEM.sub(lambda found: "." + next(group for group in found.groups() if group is not None), name).strip(".")


def matches(pattern: str, name: str) -> bool:
    """Returns whether a pattern selects a name, either literally or as a path."""
    escaped = pattern.replace("[", "[[]")
    return fnmatchcase(name, escaped) or fnmatchcase(path(name), path(pattern))


def select(specs: Sequence[Any] | Mapping[Any, Any], names: Sequence[str], kind: str) -> list[Any]:
    """Returns the spec of each of `names`; None for a name without a spec.

    Args:
        specs: one for each name, in order, or a mapping from indices and patterns, of which the first match applies.
        names: of all arguments or results.
        kind: `argument` or `result`, for messages.

    Raises:
        ValueError: there are more specs than names, or an index or pattern selects nothing.
    """
    if not isinstance(specs, Mapping):
        if len(specs) > len(names):
            raise ValueError(f"{len(specs)} specs are given for {len(names)} {kind}s: {_listed(names)}")
        return [*specs, *[None] * (len(names) - len(specs))]
    found: list[Any] = [None] * len(names)
    is_set = [False] * len(names)
    for key, spec in specs.items():
        indices = _selected(key, names)
        if not indices:
            raise ValueError(f"no {kind} matches {key!r}: the {kind}s are {_listed(names)}")
        for index in indices:
            if not is_set[index]:
                found[index], is_set[index] = spec, True
    return found


def _selected(key: Any, names: Sequence[str]) -> list[int]:
    if isinstance(key, int):
        return [key % len(names)] if -len(names) <= key < len(names) else []
    return [index for index, name in enumerate(names) if matches(key, name)]


def _listed(names: Sequence[str], most: int = 12) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def named_values(function: Any) -> Iterable[tuple[str, Any]]:
    """Yields each op of a function, nested ones too, with the name of its location, or else the name of the op."""
    pending = [op.operation for op in reversed(function.regions[0].blocks[0].operations)]
    while pending:
        op = pending.pop()
        yield location_name(op.location) or op.name, op
        inner = [one.operation for region in op.regions for block in region.blocks for one in block.operations]
        pending += reversed(inner)


def mesh_symbol(module: Any, mesh: Any) -> str:
    """Returns the symbol name of a mesh in a module; defines the mesh if the module does not."""
    known = sdy.meshes(module)
    for name, one in known.items():
        if one == mesh:
            return name
    name = next(one for one in ("mesh", *(f"mesh_{index}" for index in range(len(known)))) if one not in known)
    with module.context, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(module.operation.regions[0].blocks[0]):
        ir.Operation.create(
            "sdy.mesh", attributes={"sym_name": ir.StringAttr.get(name), "mesh": sdy.attribute(mesh, module.context)}
        )
    return name
