# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference of the Python interface: complete, and under public names.

- Every public name of `mlir_shard` and `mlir_shard.interfaces` must be on a page.
- A type in a signature links to the public name of its class, wherever the class is defined.
"""

import contextlib
import importlib
from collections.abc import Iterator
from functools import cache
from typing import Any

from docstrings import as_restructured_text
from sphinx.util import logging

import mlir_shard

_log = logging.getLogger(__name__)


def _public() -> Iterator[str]:
    for module in (mlir_shard, mlir_shard.interfaces):
        for name in module.__all__:
            if name != "interfaces":
                yield f"{module.__name__}.{name}"


@cache
def _defined_as() -> dict[str, str]:
    """The public name of each class and function by the module and the name that it is defined with."""
    found = {}
    for name in _public():
        module, _, last = name.rpartition(".")
        # Those that need a package which is not there are no types.
        with contextlib.suppress(ImportError):
            one = getattr(importlib.import_module(module), last)
            if hasattr(one, "__qualname__"):
                found[f"{one.__module__}.{one.__qualname__}"] = name
    return found


def _docstring(app: Any, what: str, name: str, one: Any, options: Any, lines: list[str]) -> None:
    # In the first line of an attribute, napoleon would take the words in front of a colon for its type.
    lines[:] = [*([""] if what in ("attribute", "property") else []), *as_restructured_text(lines)]


def _reference(app: Any, env: Any, node: Any, content: Any) -> Any:
    target = _defined_as().get(node.get("reftarget", ""))
    if target is None or node.get("refdomain") != "py":
        return None
    domain = env.get_domain("py")
    return domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], target, node, content)


def _check(app: Any, env: Any) -> None:
    documented = env.get_domain("py").objects
    for name in _public():
        if name not in documented:
            _log.warning("%s is public, and on no page of the reference", name)


def setup(app: Any) -> dict[str, bool]:
    """Connects this to Sphinx; docstrings are changed before napoleon reads their sections."""
    app.connect("autodoc-process-docstring", _docstring, priority=100)
    app.connect("missing-reference", _reference)
    app.connect("env-check-consistency", _check)
    return {"parallel_read_safe": True}
