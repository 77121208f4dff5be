# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TableGen's bang operators, `!if(...)` and the like, on evaluated arguments.

Those that do not evaluate every argument, or bind variables, are in `expressions`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce

from mlir_shard.ods.records import UNSET, Dag, Record, Value

Operator = Callable[..., Value]


class OperatorError(Exception):
    """Arguments that an operator does not take; the text says which."""


def to_text(value: Value) -> str:
    """`!cast<string>(value)`."""
    if isinstance(value, Record):
        return value.name
    if isinstance(value, (str, int)):
        return str(value)
    raise OperatorError("a string, an integer or a record was expected")


def concatenate(left: Value, right: Value) -> Value:
    """`left # right`."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return left + right
    if isinstance(left, Dag) and isinstance(right, Dag):
        return _con(left, right)
    return to_text(left) + to_text(right)


def _con(*dags: Dag) -> Dag:
    first = dags[0]
    if any(dag.operator is not first.operator for dag in dags):
        raise OperatorError("dags with different operators cannot be joined")
    arguments = tuple(argument for dag in dags for argument in dag.arguments)
    return Dag(first.operator, arguments, tuple(location for dag in dags for location in dag.locations))


def _flat(lists: tuple[Value, ...]) -> Value:
    return tuple(item for part in lists if isinstance(part, tuple) for item in part)


def _equal(left: Value, right: Value) -> bool:
    return left is right if isinstance(left, Record) else left == right


def _find(text: str, part: str, start: int = 0) -> int:
    return text.find(part, start)


def _interleave(items: tuple[Value, ...], separator: str) -> str:
    return separator.join(to_text(item) for item in items)


def _range(*arguments: Value) -> Value:
    if len(arguments) == 1 and isinstance(arguments[0], tuple):
        return tuple(range(len(arguments[0])))
    return tuple(range(*(argument for argument in arguments if isinstance(argument, int))))


def _subst(old: Value, new: Value, value: Value) -> Value:
    if isinstance(value, str):
        return value.replace(to_text(old), to_text(new))
    return new if _equal(value, old) else value


def _substr(text: str, start: int, length: int | None = None) -> str:
    return text[start:] if length is None else text[start : start + length]


def _dag(dag_operator: Value, values: tuple[Value, ...], names: tuple[Value, ...]) -> Dag:
    named = zip(values, names, strict=True)
    return Dag(dag_operator, tuple((value, name if isinstance(name, str) else "") for value, name in named), ())


def _all(values: tuple[int, ...], function: Callable[[int, int], int]) -> int:
    for value in values:
        if not isinstance(value, int):
            raise OperatorError("integers were expected")
    return reduce(function, values)


OPERATORS: dict[str, Operator] = {
    "add": lambda *values: _all(values, operator.add),
    "sub": lambda a, b: a - b,
    "mul": lambda *values: _all(values, operator.mul),
    "div": lambda a, b: a // b,
    "and": lambda *values: _all(values, operator.and_),
    "or": lambda *values: _all(values, operator.or_),
    "xor": lambda *values: _all(values, operator.xor),
    "not": lambda a: int(not a),
    "shl": lambda a, b: a << b,
    "sra": lambda a, b: a >> b,
    "eq": lambda a, b: int(_equal(a, b)),
    "ne": lambda a, b: int(not _equal(a, b)),
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "gt": lambda a, b: int(a > b),
    "ge": lambda a, b: int(a >= b),
    "con": _con,
    "dag": _dag,
    "empty": lambda a: int(not (a.arguments if isinstance(a, Dag) else a)),
    "find": _find,
    "getdagop": lambda a: a.operator,
    "head": lambda a: a[0],
    "interleave": _interleave,
    "listconcat": lambda *lists: _flat(lists),
    "listflatten": _flat,
    "listremove": lambda a, b: tuple(item for item in a if not any(_equal(item, other) for other in b)),
    "listsplat": lambda a, n: (a,) * n,
    "range": _range,
    "repr": lambda a: repr(a),
    "size": lambda a: len(a.arguments if isinstance(a, Dag) else a),
    "strconcat": lambda *values: "".join(to_text(value) for value in values),
    "subst": _subst,
    "substr": _substr,
    "tail": lambda a: a[1:],
    "tolower": lambda a: a.lower(),
    "toupper": lambda a: a.upper(),
}


def apply(name: str, arguments: list[Value]) -> Value:
    """The value of `!name(arguments)`; OperatorError where the arguments do not suit."""
    if any(argument is UNSET for argument in arguments):
        raise OperatorError("an argument has no value")
    try:
        return OPERATORS[name](*arguments)
    except IndexError as error:
        raise OperatorError("the list is too short") from error
    except (TypeError, AttributeError, ValueError, ZeroDivisionError) as error:
        raise OperatorError(str(error)) from error
