# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asking functions that a dialect registered for its ops: they may fail in any way, and then have to be named."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator
from typing import Any

# Ops that stand for others, by the attribute with the name of what they stand for.
_NAMED_BY = {"stablehlo.composite": "name", "stablehlo.custom_call": "call_target_name"}


class InterfaceError(Exception):
    """What a dialect has registered for an op failed, or does not fit it; `op` is the op it was asked about."""

    def __init__(self, op: Any, message: str) -> None:
        super().__init__(message)
        self.op = op


class RegistrationError(ValueError):
    """Something registered for an op that cannot be what it has to be."""


def ask(
    role: str,
    function: Callable[..., Any],
    op: Any,
    *arguments: Any,
    raises: type[InterfaceError] = InterfaceError,
) -> Any:
    """What `function`, registered as the `role` of ops like `op`, says of it.

    Raises InterfaceError, or the subclass of it, in place of whatever the function raises, with the line that did.
    """
    try:
        return function(op, *arguments)
    except InterfaceError:
        raise
    except Exception as error:
        text = str(error).strip()
        what = f"{type(error).__name__}: {text}" if text else type(error).__name__
        message = f"{described(role, function, op)} failed{_line_of(error, function)}: {what}"
        raise raises(op, message) from error


def specific_name(op: Any) -> str:
    """The name of an op; of a custom call with its target, and of a composite with its name, behind a colon."""
    name: str = op.name
    attribute = _NAMED_BY.get(name)
    return name if attribute is None else f"{name}:{op.attributes[attribute].value}"


def has_specific_names(name: str) -> bool:
    """Whether something may be registered for some of the ops of this name."""
    return name in _NAMED_BY


def registered_names(op: Any) -> Iterator[str]:
    """The names under which something may be registered for an op, the most specific first."""
    name: str = op.name
    if name in _NAMED_BY:
        yield specific_name(op)
    yield name
    yield f"{name.partition('.')[0]}.*"


def described(role: str, function: Callable[..., Any], op: Any) -> str:
    """What the function is to the op, and where it is: `the sharding rule of 'attn.scores' (scores in attn.py:12)`."""
    return f"the {role} of '{specific_name(op)}' ({place_of(function)})"


def place_of(function: Callable[..., Any]) -> str:
    """The name of a function, its file and line as far as it has them; or what its attribute `place` says."""
    function = inspect.unwrap(function)
    if isinstance(place := getattr(function, "place", None), str):
        return place
    name = getattr(function, "__qualname__", type(function).__qualname__).rpartition("<locals>.")[2]
    code = getattr(function, "__code__", None)
    return name if code is None else f"{name} in {code.co_filename}:{code.co_firstlineno}"


def check_takes(role: str, function: Any, *arguments: str) -> None:
    """Raises RegistrationError where `function` cannot be called with these arguments."""
    expected = f"has to be a function of ({', '.join(arguments)})"
    if not callable(function):
        raise RegistrationError(f"the {role} {expected}, not {function!r}")
    try:
        signature = inspect.signature(function)
    except ValueError:
        # Built-in callables may have no signature to look at.
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        raise RegistrationError(f"the {role} {place_of(function)} {expected}, but takes {signature}") from None


def check_op_names(names: tuple[str, ...], *, dialects: bool = True) -> None:
    """Raises RegistrationError where one of the names is no op's, `"attn.scores"`, nor a dialect's, `"attn.*"`."""
    for name in names:
        if isinstance(name, str):
            dialect, _, rest = name.partition(".")
            if dialect and rest and name.split() == [name] and (dialects or "*" not in rest):
                continue
        allowed = "an op is 'dialect.name'" + (", all of a dialect 'dialect.*'" if dialects else "")
        raise RegistrationError(f"{name!r} is not an op name: {allowed}")


def _line_of(error: Exception, function: Callable[..., Any]) -> str:
    """The innermost line that raised the error in the file of the function."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
    return f" in line {inside[-1].lineno}" if inside else ""
