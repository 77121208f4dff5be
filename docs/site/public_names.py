# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference of the Python interface: complete, and under public names.

- Every public name of `mlir_shard` and `mlir_shard.interfaces` must be on a page.
- A type in a signature links to the public name of its class, wherever the class is defined.
"""

import contextlib
import importlib
import re
from collections.abc import Iterator
from enum import Enum
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
        # Names from packages that are not installed are not types.
        with contextlib.suppress(ImportError):
            one = getattr(importlib.import_module(module), last)
            if hasattr(one, "__qualname__"):
                found[f"{one.__module__}.{one.__qualname__}"] = name
    return found


# Of private use in Unicode.
_COLON = "\ue000"


def _docstring(app: Any, what: str, name: str, one: Any, options: Any, lines: list[str]) -> None:
    lines[:] = as_restructured_text(lines)
    if what in ("attribute", "property") and lines:
        # In the first line of an attribute, napoleon would take the words in front of a colon for its type.
        lines[0] = lines[0].replace(":", _COLON)
    if isinstance(one, type) and issubclass(one, Enum):
        values = ", ".join(f"`{member.name}`" for member in one)
        lines[:] = [*lines, "", f"Values: {values}.", ""]


def _after_napoleon(app: Any, what: str, name: str, one: Any, options: Any, lines: list[str]) -> None:
    lines[:] = [line.replace(_COLON, ":") for line in lines]


# How defaults print that are functions, or are made anew.
_NO_TEXT = re.compile(r"<(?:function [^<>]*(?:<\w+>)?|factory)>|mappingproxy\(\{\}\)")


def _signature(
    app: Any, what: str, name: str, one: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None] | None:
    if what != "class" or signature is None:
        return None
    # What is made by functions alone has parameters that say nothing.
    is_private = isinstance(one, type) and any(known.startswith("_") for known in getattr(one, "__annotations__", ()))
    if is_private and name not in _defined_as().values():
        return "", None
    return _NO_TEXT.sub("...", signature), returns


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
    app.connect("autodoc-process-docstring", _after_napoleon, priority=900)
    app.connect("autodoc-process-signature", _signature)
    app.connect("missing-reference", _reference)
    app.connect("env-check-consistency", _check)
    return {"parallel_read_safe": True}
