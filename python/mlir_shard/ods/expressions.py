# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluates the values of TableGen, including bang operators such as `!if`, from the trees of the grammar."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING

from lark import Token, Tree

from mlir_shard.ods.records import UNSET, Dag, FieldType, Record, Scope, Value, describe
from mlir_shard.ods.source import LocatedText, Location, OdsError, did_you_mean

Operator = Callable[..., Value]


class OperatorError(Exception):
    """The error for arguments that an operator does not accept; the text contains the reason."""


def to_text(value: Value) -> str:
    """Returns the value of `!cast<string>(value)`."""
    if isinstance(value, Record):
        return value.name
    if isinstance(value, (str, int)):
        return str(value)
    raise OperatorError("expected a string, an integer or a record")


def concatenate(left: Value, right: Value) -> Value:
    """Returns the value of `left # right`."""
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


def _range(*arguments: Value) -> Value:
    if len(arguments) == 1 and isinstance(arguments[0], tuple):
        return tuple(range(len(arguments[0])))
    return tuple(range(*(argument for argument in arguments if isinstance(argument, int))))


def _subst(old: Value, new: Value, value: Value) -> Value:
    if isinstance(value, str):
        return value.replace(to_text(old), to_text(new))
    return new if _equal(value, old) else value


def _dag(dag_operator: Value, values: tuple[Value, ...], names: tuple[Value, ...]) -> Dag:
    named = zip(values, names, strict=True)
    return Dag(dag_operator, tuple((value, name if isinstance(name, str) else "") for value, name in named), ())


def _all(values: tuple[int, ...], function: Callable[[int, int], int]) -> int:
    for value in values:
        if not isinstance(value, int):
            raise OperatorError("expected integers")
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
    "find": lambda text, part, start=0: text.find(part, start),
    "getdagop": lambda a: a.operator,
    "head": lambda a: a[0],
    "interleave": lambda items, separator: separator.join(map(to_text, items)),
    "listconcat": lambda *lists: _flat(lists),
    "listflatten": _flat,
    "listremove": lambda a, b: tuple(item for item in a if not any(_equal(item, other) for other in b)),
    "listsplat": lambda a, n: (a,) * n,
    "range": _range,
    "repr": lambda a: repr(a),
    "size": lambda a: len(a.arguments if isinstance(a, Dag) else a),
    "strconcat": lambda *values: "".join(to_text(value) for value in values),
    "subst": _subst,
    "substr": lambda text, start, length=None: text[start : None if length is None else start + length],
    "tail": lambda a: a[1:],
    "tolower": lambda a: a.lower(),
    "toupper": lambda a: a.upper(),
}


def apply(name: str, arguments: list[Value]) -> Value:
    """Returns the value of `!name(arguments)`; raises OperatorError if the arguments are invalid."""
    if any(argument is UNSET for argument in arguments):
        raise OperatorError("an argument has no value")
    try:
        return OPERATORS[name](*arguments)
    except IndexError as error:
        raise OperatorError("the list is too short") from error
    except (TypeError, AttributeError, ValueError, ZeroDivisionError) as error:
        raise OperatorError(str(error)) from error


if TYPE_CHECKING:
    from mlir_shard.ods.program import Program

    Node = Tree[Token]
else:
    Node = Tree
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "'": "'"}


_CONSTANTS: dict[str, Value] = {"true": 1, "false": 0, "unset": UNSET}


def trees_of(node: Node | Token | None) -> tuple[Node, ...]:
    """Returns the children that are trees."""
    return tuple(child for child in node.children if isinstance(child, Tree)) if isinstance(node, Tree) else ()


def location_of(node: Node | Token, scope: Scope) -> Location:
    """Returns the location of a node of the tree."""
    place = node if isinstance(node, Token) else node.meta
    return Location(scope.source, getattr(place, "line", None) or 1, getattr(place, "column", None) or 1)


def text_of(token: Token, scope: Scope) -> LocatedText:
    """Returns the text of a string or code token, without its quotes and escapes."""
    quotes = 1 if token.startswith('"') else 2
    location = location_of(token, scope)
    inner = Location(location.source, location.line, location.column + quotes)
    text = token[quotes:-quotes]
    if quotes == 1:
        text = re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text)
    return LocatedText(text, inner)


def type_of(tree: Node) -> FieldType:
    """Returns the type that a tree represents."""
    if tree.data == "list_type":
        return FieldType("list", type_of(*trees_of(tree)))
    if tree.data == "bits_type":
        return FieldType("bits")
    return FieldType(str(tree.children[0]), is_class=tree.data == "class_type")


class Expressions:
    """An evaluator of values among `definitions`."""

    def __init__(self, definitions: Program) -> None:
        self._definitions = definitions

    def evaluate(self, tree: Node, scope: Scope) -> Value:
        """Returns the value of `tree` with the names of `scope`; raises OdsError if it is invalid."""
        if tree.data in _CONSTANTS:
            return _CONSTANTS[tree.data]
        method: Callable[[Node, Scope], Value] = getattr(self, f"_{tree.data}")
        return method(tree, scope)

    def boolean(self, tree: Node, scope: Scope) -> bool:
        """Returns the value of a condition; raises OdsError if it is not an integer."""
        value = self.evaluate(tree, scope)
        if not isinstance(value, int):
            raise OdsError(f"a condition must be 0 or 1, not {describe(value)}", location_of(tree, scope))
        return bool(value)

    def sequence(self, tree: Node, scope: Scope) -> tuple[Value, ...]:
        """Returns the value of a list; raises OdsError if it is not a list."""
        value = self.evaluate(tree, scope)
        if not isinstance(value, tuple):
            raise OdsError(f"expected a list, not {describe(value)}", location_of(tree, scope))
        return value

    def name_text(self, tree: Node, scope: Scope) -> str:
        """Returns the value of a def's name; the value of an undefined identifier is its own text."""
        if tree.data == "name" and scope.lookup(str(tree.children[0])) is None:
            return str(tree.children[0])
        try:
            value = self._pasted(tree, scope)
        except OperatorError as error:
            raise OdsError(f"these cannot be joined by '#': {error}", location_of(tree, scope)) from error
        if not isinstance(value, str):
            raise OdsError(f"the name of a def must be a string, not {describe(value)}", location_of(tree, scope))
        return str(value)

    def _string(self, tree: Node, scope: Scope) -> Value:
        pieces = [text_of(token, scope) for token in tree.children if isinstance(token, Token)]
        return pieces[0] if len(pieces) == 1 else LocatedText("".join(pieces), None)

    def _integer(self, tree: Node, scope: Scope) -> Value:
        return int(str(tree.children[0]), 0)

    def _name(self, tree: Node, scope: Scope) -> Value:
        name = str(tree.children[0])
        found = scope.lookup(name)
        if found is not None:
            return found()
        record = self._definitions.find_record(name)
        if record is not None:
            return record
        location = location_of(tree, scope)
        if self._definitions.is_class(name):
            raise OdsError(f"'{name}' is a class; write '{name}<...>' for a record of it", location)
        candidates = [*scope.names(), *self._definitions.names()]
        raise OdsError(f"'{name}' is not defined{did_you_mean(name, candidates)}", location)

    def _instance(self, tree: Node, scope: Scope) -> Value:
        name, arguments = tree.children
        assert isinstance(name, Token)
        return self._definitions.instantiate(name, arguments if isinstance(arguments, Tree) else None, scope)

    def _member(self, tree: Node, scope: Scope) -> Value:
        owner_tree, field = tree.children
        assert isinstance(owner_tree, Tree) and isinstance(field, Token)
        owner = self.evaluate(owner_tree, scope)
        if not isinstance(owner, Record):
            raise OdsError(f"{describe(owner)} has no fields", location_of(field, scope))
        return owner.member(str(field), location_of(field, scope))

    def _element(self, tree: Node, scope: Scope) -> Value:
        owner_tree, index_tree = trees_of(tree)
        items, index = self.sequence(owner_tree, scope), self.evaluate(index_tree, scope)
        if not isinstance(index, int) or not 0 <= index < len(items):
            message = f"index {index} is out of range for a list of {len(items)}"
            raise OdsError(message, location_of(index_tree, scope))
        return items[index]

    def _list(self, tree: Node, scope: Scope) -> Value:
        # The last child is the type after the list, or None.
        return tuple(self.evaluate(item, scope) for item in tree.children[:-1] if isinstance(item, Tree))

    def _paste(self, tree: Node, scope: Scope) -> Value:
        left, right = trees_of(tree)
        try:
            return concatenate(self.evaluate(left, scope), self._pasted(right, scope))
        except OperatorError as error:
            raise OdsError(f"these cannot be joined by '#': {error}", location_of(right, scope)) from error

    def _pasted(self, tree: Node, scope: Scope) -> Value:
        if tree.data == "paste":
            left, right = trees_of(tree)
            return concatenate(self._pasted(left, scope), self._pasted(right, scope))
        if tree.data == "name" and scope.lookup(str(tree.children[0])) is None:
            record = self._definitions.find_record(str(tree.children[0]))
            return record if record is not None else str(tree.children[0])
        return self.evaluate(tree, scope)

    def _dag(self, tree: Node, scope: Scope) -> Value:
        entries = [(self._dag_entry(child, scope), child) for child in trees_of(tree)]
        locations = tuple(location_of(child, scope) for _, child in entries[1:])
        return Dag(entries[0][0][0], tuple(entry for entry, _ in entries[1:]), locations)

    def _dag_entry(self, tree: Node, scope: Scope) -> tuple[Value, str]:
        if tree.data == "dag_name":
            return UNSET, str(tree.children[0])[1:]
        value, name = tree.children
        assert isinstance(value, Tree)
        return self.evaluate(value, scope), "" if name is None else str(name)[1:]

    def _cond(self, tree: Node, scope: Scope) -> Value:
        for condition, value in map(trees_of, trees_of(tree)):
            if self.boolean(condition, scope):
                return self.evaluate(value, scope)
        raise OdsError("no condition of this '!cond' is true", location_of(tree, scope))

    def _bang(self, tree: Node, scope: Scope) -> Value:
        operator, type_tree, *arguments = tree.children
        assert isinstance(operator, Token)
        name = operator[1:]
        trees = [argument for argument in arguments if isinstance(argument, Tree)]
        special = getattr(self, f"_bang_{name}", None)
        try:
            if special is not None:
                value: Value = special(trees, type_of(type_tree) if isinstance(type_tree, Tree) else None, scope)
                return value
            if name in OPERATORS:
                return apply(name, [self.evaluate(argument, scope) for argument in trees])
        except (OperatorError, ValueError) as error:
            raise OdsError(f"invalid arguments of '{operator}': {error}", location_of(tree, scope)) from error
        known = [f"!{each}" for each in OPERATORS]
        raise OdsError(f"unknown operator '{operator}'{did_you_mean(operator, known)}", location_of(tree, scope))

    def _bang_if(self, trees: list[Node], type_: FieldType | None, scope: Scope) -> Value:
        condition, then, otherwise = trees
        return self.evaluate(then if self.boolean(condition, scope) else otherwise, scope)

    def _bang_foreach(self, trees: list[Node], type_: FieldType | None, scope: Scope) -> Value:
        variable, items, body = trees
        name = str(variable.children[0])
        return tuple(self.evaluate(body, scope.nested({name: item})) for item in self.sequence(items, scope))

    def _bang_filter(self, trees: list[Node], type_: FieldType | None, scope: Scope) -> Value:
        variable, items, body = trees
        name = str(variable.children[0])
        return tuple(item for item in self.sequence(items, scope) if self.boolean(body, scope.nested({name: item})))

    def _bang_foldl(self, trees: list[Node], type_: FieldType | None, scope: Scope) -> Value:
        start, items, accumulator, variable, body = trees
        value = self.evaluate(start, scope)
        names = str(accumulator.children[0]), str(variable.children[0])
        for item in self.sequence(items, scope):
            value = self.evaluate(body, scope.nested({names[0]: value, names[1]: item}))
        return value

    def _bang_cast(self, trees: list[Node], type_: FieldType | None, scope: Scope) -> Value:
        (tree,) = trees
        value = self.evaluate(tree, scope)
        if type_ is None or not type_.is_class:
            return to_text(value) if type_ is not None and type_.name == "string" else value
        record = self._definitions.find_record(value) if isinstance(value, str) else value
        if not isinstance(record, Record) or not record.is_a(type_.name):
            raise OdsError(f"{describe(value)} is not a record of class '{type_.name}'", location_of(tree, scope))
        return record

    def _bang_isa(self, trees: list[Node], type_: FieldType | None, scope: Scope) -> Value:
        value = self.evaluate(trees[0], scope)
        return int(isinstance(value, Record) and type_ is not None and value.is_a(type_.name))

    def _bang_exists(self, trees: list[Node], type_: FieldType | None, scope: Scope) -> Value:
        record = self._definitions.find_record(to_text(self.evaluate(trees[0], scope)))
        return int(record is not None and type_ is not None and record.is_a(type_.name))
