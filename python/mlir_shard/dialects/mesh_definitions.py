# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The meshes that modules define, read once while none may change."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from mlir_shard.asm.module import native_host
from mlir_shard.dialects.attribute import value_of
from mlir_shard.host import ir
from mlir_shard.sharding import Mesh

# The first mesh of each name; None for a definition without a valid mesh.
_Meshes = Mapping[str | None, Mesh | None]


class _Known(threading.local):
    of_modules: dict[Any, _Meshes] | None = None


_known = _Known()


@contextlib.contextmanager
def reading_meshes_once() -> Iterator[None]:
    """Reads the meshes of each module at most once in this thread while active; no mesh may change meanwhile."""
    before = _known.of_modules
    _known.of_modules = {} if before is None else before
    try:
        yield
    finally:
        _known.of_modules = before


def meshes_in(module: Any) -> _Meshes:
    """Returns the meshes that a module defines, by name, in the order of their definitions."""
    known = _known.of_modules
    found = None if known is None else known.get(module)
    if found is None:
        found = _read(module)
        if known is not None:
            known[module] = found
    return found


def _read(module: Any) -> _Meshes:
    found: dict[str | None, Mesh | None] = {}
    for capsule in native_host().children(module._CAPIPtr, "sdy.mesh"):
        op = ir.Operation._CAPICreate(capsule)
        name = op.attributes.get("sym_name")
        found.setdefault(name.value if isinstance(name, ir.StringAttr) else None, value_of(op, "mesh", Mesh))
    return found
