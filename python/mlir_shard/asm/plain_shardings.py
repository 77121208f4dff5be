# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardings in canonical text, read and printed without their assembly format.

Most texts of shardings are of this kind, and programs have many: `<@mesh, [{"x", "y":(1)2, ?}p1, {}]>`. The assembly
format reads and prints the others: those with other spaces, inlined meshes, quoted symbols, or reductions other than
sums.
"""

from __future__ import annotations

import re
from functools import lru_cache

from mlir_shard.sharding import AxisRef, DimensionSharding, TensorSharding

_NAME = r"[A-Za-z_][\w$.]*"
_NUMBER = r"[1-9]\d{0,17}"
_AXIS = rf'"[\w.-]+"(?::\({_NUMBER}\){_NUMBER})?'
_AXES = rf"{_AXIS}(?:, {_AXIS})*"
_DIM = rf"\{{(?:{_AXES}(?:, \?)?|\?)?\}}(?:p(?:0|{_NUMBER}))?"
_SHARDING = re.compile(
    rf"<@({_NAME}), \[((?:{_DIM}(?:, {_DIM})*)?)\]"
    rf"(?:, replicated=\{{({_AXES})\}})?(?:, unreduced=\{{({_AXES})\}})?>",
    re.ASCII,
)
_ONE_DIM, _SYMBOL = re.compile(_DIM, re.ASCII), re.compile(_NAME, re.ASCII)
_EACH_DIM = re.compile(r"\{[^}]*\}(?:p\d+)?")
_PARTS_OF_DIM = re.compile(r"\{([^?}]*)(\?)?\}(?:p(\d+))?")
_PARTS_OF_AXIS = re.compile(r'"([^"]*)"(?::\((\d+)\)(\d+))?')


def read(text: str, position: int) -> tuple[TensorSharding, int] | None:
    """Returns the sharding at a position and its end; None if its text is not canonical."""
    match = _SHARDING.match(text, position)
    if match is None:
        return None
    mesh, dims, replicated, unreduced = match.groups()
    found = TensorSharding(
        mesh,
        tuple(map(_dimension, _EACH_DIM.findall(dims))),
        _axes(replicated) if replicated else (),
        _axes(unreduced) if unreduced else (),
    )
    return found, match.end()


def printed(sharding: TensorSharding) -> str | None:
    """Returns the text of a sharding; None if a name has to be quoted, or if the mesh is inlined."""
    if sharding.replicated_axes or sharding.unreduced_axes or not isinstance(sharding.mesh_or_ref, str):
        text = str(sharding)
        return text if _SHARDING.fullmatch(text) else None
    dims = [_dimension_text(dim) for dim in sharding.dim_shardings]
    if "" in dims or not _is_plain_symbol(sharding.mesh_or_ref):
        return None
    return f"<@{sharding.mesh_or_ref}, [{', '.join(dims)}]>"


@lru_cache(4096)
def _dimension_text(dim: DimensionSharding) -> str:
    """Returns the text of a dimension; the empty text if a name has to be quoted."""
    text = str(dim)
    return text if _ONE_DIM.fullmatch(text) else ""


@lru_cache(256)
def _is_plain_symbol(name: str) -> bool:
    return _SYMBOL.fullmatch(name) is not None


@lru_cache(4096)
def _dimension(text: str) -> DimensionSharding:
    match = _PARTS_OF_DIM.fullmatch(text)
    assert match is not None
    axes, is_open, priority = match.groups()
    return DimensionSharding(_axes(axes), is_open is None, None if priority is None else int(priority))


@lru_cache(4096)
def _axes(text: str) -> tuple[AxisRef, ...]:
    return tuple(
        AxisRef.sub(name, int(pre_size), int(size)) if size else AxisRef(name)
        for name, pre_size, size in _PARTS_OF_AXIS.findall(text)
    )
