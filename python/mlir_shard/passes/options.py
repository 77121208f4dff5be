# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Typed options of a pass: declarations, reading from text and writing back, and names similar to a misspelt one."""

from __future__ import annotations

import dataclasses
import difflib
import enum
import re
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Any


def near(name: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Finds at most `limit` of the `known` names that resemble `name` about as much as the nearest; nearest first."""
    close = difflib.get_close_matches(name, list(known), n=limit, cutoff=0.6)
    alike = {one: difflib.SequenceMatcher(None, one, name).ratio() for one in close}
    return tuple(one for one in close if alike[one] > alike[close[0]] - 0.1)


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """Returns `; did you mean 'a' or 'b'?`, each name after `prefix`. Empty if no known name is near."""
    names = [f"'{prefix}{one}'" for one in near(name, known)]
    if not names:
        return ""
    return f"; did you mean {alternatives(names)}?"


def alternatives(names: Iterable[str]) -> str:
    """Returns the names as `a, b or c`."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


_METADATA = "mlir_shard.option"


class OptionError(ValueError):
    """An error of options that cannot be read; `offset` is in characters from the start of their text."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


@dataclasses.dataclass(frozen=True, slots=True)
class Declaration:
    """The arguments of `option` other than the default value."""

    help: str
    choices: tuple[str, ...] | None


def option(default: Any, help: str, choices: tuple[str, ...] | None = None) -> Any:
    """Declares a field of a pass as an option: `axis: str = option("x", "the axis to shard along")`.

    The annotation of the field is its type: bool, int, float, str, an `enum.Enum` (named by the values of its
    members), a `typing.Literal`, `tuple[T, ...]` of these, or `T | None`. `choices` limits a str. On the command line
    the underscores of the name are dashes.
    """
    return dataclasses.field(default=default, metadata={_METADATA: Declaration(help, choices)})


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """An option as it is written on the command line."""

    name: str
    field: str
    type: Any
    default: Any
    help: str
    choices: tuple[str, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All values of the option if these can be listed; otherwise empty."""
        return _names(self.type, self.choices)

    @property
    def type_text(self) -> str:
        """The type as `--help` shows it."""
        return _type_text(self.type, self.choices)

    @property
    def default_text(self) -> str:
        """The default value as it is written in a pipeline."""
        return format_value(self.default)


def declared(name: str, type_: Any, field: dataclasses.Field[Any]) -> Option:
    """Returns the option that the dataclass field `field` of type `type_` declares.

    Raises:
        TypeError: the type cannot be read from text, or the default value is missing.
    """
    declaration = field.metadata.get(_METADATA, Declaration("", None))
    if field.default is dataclasses.MISSING:
        raise TypeError(f"option '{name}' must have a default value")
    if not _is_readable(type_):
        raise TypeError(
            f"option '{name}' has type {_spelling(type_)}, which cannot be read from text: "
            "use bool, int, float, str, an Enum, a Literal, tuple[T, ...] of these, or T | None"
        )
    return Option(name.replace("_", "-"), name, type_, field.default, declaration.help, declaration.choices)


def read_options(text: str, options: tuple[Option, ...], owner: str) -> dict[str, Any]:
    """Reads the values that `text` gives to some of the `options` of `owner`, by field name.

    Raises:
        OptionError: an option is unknown or repeated, or a value is not of the type of its option.
    """
    by_name = {one.name: one for one in options}
    values: dict[str, Any] = {}
    for name, value, offset in split_options(text):
        chosen = by_name.get(name) or by_name.get(name.replace("_", "-"))
        if chosen is None:
            known = f": its options are {', '.join(by_name)}" if by_name else ": it has no options"
            raise OptionError(f"'{owner}' has no option '{name}'{did_you_mean(name, by_name) or known}", offset)
        if chosen.field in values:
            raise OptionError(f"option '{name}' of '{owner}' is given twice", offset)
        values[chosen.field] = _read_option(chosen, value, owner, offset)
    return values


def _read_option(chosen: Option, text: str | None, owner: str, offset: int) -> Any:
    try:
        value = _read_value(chosen.type, text)
    except ValueError:
        shown = "nothing" if text is None else f"'{text}'"
        raise OptionError(
            f"option '{chosen.name}' of '{owner}' expects {chosen.type_text}, got {shown}", offset
        ) from None
    if chosen.choices is not None:
        for one in value if isinstance(value, tuple) else (value,):
            if one is not None and one not in chosen.choices:
                raise OptionError(
                    f"option '{chosen.name}' of '{owner}' expects {alternatives(chosen.choices)}, got "
                    f"'{one}'{did_you_mean(one, chosen.choices)}",
                    offset,
                )
    return value


_CLOSING = {"{": "}", '"': '"', "'": "'"}
_DELIMITER = re.compile("[{}\"']")


def split_options(text: str) -> Iterator[tuple[str, str | None, int]]:
    """Yields the (name, value, offset) of each option in `text`; the value is None without `=`.

    Raises:
        OptionError: a brace or a quote is not closed, or an option has no name.
    """
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        start = at
        while at < len(text) and text[at] != "=" and not text[at].isspace():
            at += 1
        name = text[start:at]
        if not name:
            raise OptionError("expected an option name before '='", start)
        if at == len(text) or text[at] != "=":
            yield name, None, start
            continue
        at += 1
        end = _value_end(text, at)
        yield name, without_delimiters(text[at:end]), start
        at = end


def _value_end(text: str, start: int) -> int:
    """Returns the index of the first space after the value at `start` that is not inside braces or quotes."""
    at = start
    while at < len(text) and not text[at].isspace():
        at = skip_group(text, at) if text[at] in _CLOSING else at + 1
    return at


def skip_group(text: str, start: int) -> int:
    """Returns the index after the brace or quote that closes the one at `start`."""
    closing = _CLOSING[text[start]]
    at = start + 1
    while (found := _DELIMITER.search(text, at)) is not None:
        at = found.start()
        if text[at] == closing:
            return at + 1
        at = skip_group(text, at) if closing == "}" and text[at] in _CLOSING else at + 1
    raise OptionError(f"expected {closing} to match the {text[start]}", start)


def without_delimiters(text: str) -> str:
    """Removes the delimiters of a text that is one group in braces or quotes; returns other text unchanged."""
    text = text.strip()
    if text and text[0] in _CLOSING and skip_group(text, 0) == len(text):
        return text[1:-1]
    return text


def _members(type_: Any) -> tuple[Any, bool]:
    """Returns the type without `| None`, and whether None is one of its values."""
    if typing.get_origin(type_) in (typing.Union, types.UnionType):
        members = [one for one in typing.get_args(type_) if one is not type(None)]
        if len(members) == 1:
            return members[0], len(typing.get_args(type_)) == 2
    return type_, False


def _is_readable(type_: Any) -> bool:
    type_, _ = _members(type_)
    origin = typing.get_origin(type_)
    if origin is tuple:
        arguments = typing.get_args(type_)
        return len(arguments) == 2 and arguments[1] is Ellipsis and _is_readable(arguments[0])
    if origin is typing.Literal:
        return all(isinstance(one, str) for one in typing.get_args(type_))
    return isinstance(type_, type) and (type_ in (bool, int, float, str) or issubclass(type_, enum.Enum))


def _read_value(type_: Any, text: str | None) -> Any:
    type_, optional = _members(type_)
    if type_ is bool:
        return _read_bool(text)
    if text is None:
        raise ValueError
    if optional and text == "none":
        return None
    origin = typing.get_origin(type_)
    if origin is tuple:
        return tuple(_read_value(typing.get_args(type_)[0], one) for one in split_list(text))
    if origin is typing.Literal:
        if text not in typing.get_args(type_):
            raise ValueError
        return text
    if issubclass(type_, enum.Enum):
        return next((one for one in type_ if str(one.value) == text), None) or _no_value()
    return int(text, 0) if type_ is int else type_(text)


def _no_value() -> Any:
    raise ValueError


def _read_bool(text: str | None) -> bool:
    if text in (None, "true", "1", "True", "TRUE"):
        return True
    if text in ("false", "0", "False", "FALSE"):
        return False
    raise ValueError


def split_list(text: str) -> list[str]:
    """Splits a comma-separated list; commas inside braces or quotes do not separate elements."""
    elements, start, at = [], 0, 0
    while at < len(text):
        if text[at] == ",":
            elements.append(text[start:at])
            start = at + 1
        at = skip_group(text, at) if text[at] in _CLOSING else at + 1
    elements.append(text[start:])
    return [without_delimiters(one) for one in elements] if text.strip() else []


def _names(type_: Any, choices: tuple[str, ...] | None) -> tuple[str, ...]:
    type_, optional = _members(type_)
    if optional:
        return (*_names(type_, choices), "none")
    if choices is not None:
        return choices
    if typing.get_origin(type_) is typing.Literal:
        return typing.get_args(type_)
    if isinstance(type_, type) and issubclass(type_, enum.Enum):
        return tuple(str(one.value) for one in type_)
    return ("true", "false") if type_ is bool else ()


def _type_text(type_: Any, choices: tuple[str, ...] | None) -> str:
    type_, optional = _members(type_)
    if optional:
        return f"{_type_text(type_, choices)} or none"
    if names := _names(type_, choices):
        return alternatives(names)
    if typing.get_origin(type_) is tuple:
        return f"a list of {_type_text(typing.get_args(type_)[0], None)}"
    return {int: "an integer", float: "a number", str: "a string"}[type_]


def _spelling(type_: Any) -> str:
    return type_.__name__ if isinstance(type_, type) else str(type_)


def format_value(value: Any) -> str:
    """Returns the value of an option as it is written in a pipeline."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, tuple | list):
        return "{" + ",".join(format_value(one) for one in value) + "}"
    text = str(value)
    if isinstance(value, str) and (not text or any(one.isspace() or one in "{}'\"=," for one in text)):
        return f'"{text}"' if '"' not in text else f"'{text}'"
    return text
