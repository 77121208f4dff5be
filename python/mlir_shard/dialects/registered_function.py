# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of functions that a dialect registered for its ops, with error messages that identify a failing function."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator
from typing import Any

# Ops that represent other ops or functions, and the attribute with the name of the one they represent.
_NAMED_BY = {"stablehlo.composite": "name", "stablehlo.custom_call": "call_target_name"}


class InterfaceError(Exception):
    """A function that a dialect registered for an op failed, or its result does not fit the op, which is `op`."""

    def __init__(self, op: Any, message: str) -> None:
        super().__init__(message)
        self.op = op


class RegistrationError(ValueError):
    """An object registered for an op does not meet the requirements of its role."""


def ask(
    role: str,
    function: Callable[..., Any],
    op: Any,
    *arguments: Any,
    raises: type[InterfaceError] = InterfaceError,
) -> Any:
    """Returns the result of `function`, registered as the `role` of ops like `op`, for `op`.

    If the function raises an exception, raises `raises`, InterfaceError or a subclass, with the line of the exception.
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
    """Returns the name of an op, for a custom call followed by a colon and its target, for a composite by its name."""
    name: str = op.name
    attribute = _NAMED_BY.get(name)
    return name if attribute is None else f"{name}:{op.attributes[attribute].value}"


def has_specific_names(name: str) -> bool:
    """Returns whether functions can be registered for a subset of the ops of this name."""
    return name in _NAMED_BY


def registered_names(op: Any) -> Iterator[str]:
    """Yields the names under which a function may be registered for an op, the most specific first."""
    name: str = op.name
    if name in _NAMED_BY:
        yield specific_name(op)
    yield name
    yield f"{name.partition('.')[0]}.*"


def described(role: str, function: Callable[..., Any], op: Any) -> str:
    """Describes the role and the place of a function: `the sharding rule of 'attn.scores' (scores in attn.py:12)`."""
    return f"the {role} of '{specific_name(op)}' ({place_of(function)})"


def place_of(function: Callable[..., Any]) -> str:
    """Returns the name of a function with its file and line if known, or its attribute `place` if it has one."""
    function = inspect.unwrap(function)
    if isinstance(place := getattr(function, "place", None), str):
        return place
    name = getattr(function, "__qualname__", type(function).__qualname__).rpartition("<locals>.")[2]
    code = getattr(function, "__code__", None)
    return name if code is None else f"{name} in {code.co_filename}:{code.co_firstlineno}"


def check_takes(role: str, function: Any, *arguments: str) -> None:
    """Raises RegistrationError if `function` cannot be called with these arguments."""
    expected = f"must be a function of ({', '.join(arguments)})"
    if not callable(function):
        raise RegistrationError(f"the {role} {expected}, got {function!r}")
    try:
        signature = inspect.signature(function)
    except ValueError:
        # Built-in callables may have no signature.
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        raise RegistrationError(
            f"the {role} {place_of(function)} {expected}, but has the signature {signature}"
        ) from None


def check_op_names(names: tuple[str, ...], *, dialects: bool = True) -> None:
    """Raises RegistrationError unless each name is that of an op, `"attn.scores"`, or of a dialect, `"attn.*"`."""
    for name in names:
        if isinstance(name, str):
            dialect, _, rest = name.partition(".")
            if dialect and rest and name.split() == [name] and (dialects or "*" not in rest):
                continue
        allowed = "expected 'dialect.name'" + (" or, for all ops of a dialect, 'dialect.*'" if dialects else "")
        raise RegistrationError(f"{name!r} is not an op name: {allowed}")


def _line_of(error: Exception, function: Callable[..., Any]) -> str:
    """Describes the innermost line in the file of the function that raised the error; empty if none exists."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
    return f" in line {inside[-1].lineno}" if inside else ""
