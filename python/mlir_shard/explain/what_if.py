# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The effect of another sharding: the pipeline runs on a copy of the program with other annotations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mlir_shard import asm
from mlir_shard.dialects import sdy
from mlir_shard.explain import text
from mlir_shard.explain.explanation import Explanation, explain
from mlir_shard.explain.places import SourceTexts, place_of
from mlir_shard.explain.selection import select
from mlir_shard.explain.values import Tensor
from mlir_shard.host import ir
from mlir_shard.ir.editing import functions, ops_below
from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.rules.builder import shape_of
from mlir_shard.sharding import TensorSharding
from mlir_shard.sharding.tensor import mesh_of
from mlir_shard.sharding.verify.tensor import check_tensor_sharding

_CHANGE = re.compile(r"\s*(?P<query>.+?)\s*:\s*(?P<sharding>(?:@[\w$.-]+\s*,\s*)?\[.*)", re.DOTALL)


class WhatIfError(ValueError):
    """Raised for a change that cannot be made; the message has the reason and a correct form."""


@dataclass(frozen=True, slots=True)
class Change:
    """Another sharding for the tensors that a query selects, in the syntax of sdy: `[{}, {"model"}]`.

    A mesh may come first, `@mesh, [{}]`; the default is the only mesh of the program.
    """

    query: str
    sharding: str

    @staticmethod
    def read(change: str) -> Change:
        """Reads `%w: [{}, {"model"}]`.

        Raises:
            WhatIfError: the text is of another form.
        """
        found = _CHANGE.fullmatch(change)
        if found is None:
            raise WhatIfError(f"'{change}' is not a value and its sharding, such as '%w: [{{}}, {{\"model\"}}]'")
        return Change(found["query"], found["sharding"])


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """A program as it is and as it would be; prints as text.

    Attributes:
        before: the explanation of the program as it is.
        after: the explanation of the program with the changes.
    """

    before: Explanation
    after: Explanation

    def __str__(self) -> str:
        return text.comparison_text(self)

    def changed_shardings(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """Returns each tensor whose sharding differs, before and after the changes."""
        after = {_key(one): one for one in self.after.tensors}
        pairs = ((one, after[_key(one)]) for one in self.before.tensors if _key(one) in after)
        return tuple((one, other) for one, other in pairs if _dims(one.sharding) != _dims(other.sharding))


def what_if(
    module: Any,
    changes: Iterable[Change],
    *,
    collectives: str = "shard",
    sources: Mapping[str, str] | None = None,
    costs: CostModel | None = None,
    before: Explanation | None = None,
) -> Comparison:
    """Compares a program with the same program under other annotations; the module is not modified.

    Args:
        module: an `ir.Module` or its operation.
        changes: the annotations, which replace those that the values have.
        before: the explanation of the program, if it is known.

    Raises:
        WhatIfError: a change cannot be made.
        PassFailure: the program cannot be partitioned.
    """
    options: dict[str, Any] = {"collectives": collectives, "sources": sources, "costs": costs}
    clone = module.operation.clone()
    apply_changes(clone, changes, SourceTexts(sources or {}))
    return Comparison(before or explain(module, **options), explain(clone, **options))


def apply_changes(module: Any, changes: Iterable[Change], sources: SourceTexts) -> None:
    """Gives values of a module other shardings, in place; see `what_if`."""
    values = list(_values(module, sources))
    for change in changes:
        try:
            chosen = select([tensor for tensor, _ in values], change.query)
        except ValueError as error:
            raise WhatIfError(str(error)) from None
        for tensor in chosen:
            _annotate(module, tensor, values[tensor.number][1], _sharding(change, tensor, module))


def _values(module: Any, sources: SourceTexts) -> Iterator[tuple[Tensor, Any]]:
    """Yields the tensors of a module that can be annotated, numbered in order, each with its value, or its function for
    a result of a function."""
    number = 0
    for symbol, function in functions(module).items():
        if not len(function.regions[0].blocks):
            continue
        for index, argument in enumerate(function.regions[0].blocks[0].arguments):
            place = place_of(argument.location)
            name = sources.argument_name(place) or place.name or f"argument {index}"
            yield _tensor(number, name, "argument", index, symbol, place, argument.type), argument
            number += 1
        for op in ops_below(function):
            place = place_of(op.location)
            for index, result in enumerate(op.results):
                name = sources.result_name(place, op.name, index) or place.name or op.name
                yield _tensor(number, name, op.name, index, symbol, place, result.type), result
                number += 1
        for index, type_ in enumerate(function.attributes["function_type"].value.results):
            place = place_of(function.location)
            yield _tensor(number, f"result {index}", "result", index, symbol, place, type_), function
            number += 1


def _tensor(number: int, name: str, op: str, index: int, function: str, place: Any, type_: Any) -> Tensor:
    is_tensor = isinstance(type_, ir.RankedTensorType) and type_.has_static_shape
    shape = tuple(shape_of(type_)) if is_tensor else ()
    element = str(type_.element_type) if is_tensor else ""
    return Tensor(number, name, op, index, function, place, shape, element, 0, None)


def _sharding(change: Change, tensor: Tensor, module: Any) -> TensorSharding:
    spelled, known = change.sharding.strip(), sdy.meshes(module)
    listed = ", ".join(f"@{name}" for name in known) or "none"
    if not spelled.startswith("@"):
        if len(known) != 1:
            raise WhatIfError(
                f"'{spelled}' does not name a mesh, and the program does not define exactly one: {listed}"
            )
        spelled = f"@{next(iter(known))}, {spelled}"
    elif (name := spelled[1:].partition(",")[0].strip()) not in known:
        raise WhatIfError(f"unknown mesh '@{name}': the program defines {listed}")
    try:
        sharding: TensorSharding = asm.parse_value("sharding", f"<{spelled}>", sdy.DIALECT.name)
    except asm.AsmSyntaxError as error:
        raise WhatIfError(
            f"'{change.sharding}' is not a sharding, such as '[{{}}, {{\"model\"}}]': {error.message}"
        ) from None
    mesh = mesh_of(sharding, known)
    problem = None if mesh is None else check_tensor_sharding(sharding, mesh, tensor.shape)
    if problem is not None:
        raise WhatIfError(f"'{change.sharding}' for {tensor.name}, {tensor.type}: {problem}")
    return sharding


def _annotate(module: Any, tensor: Tensor, value: Any, sharding: TensorSharding) -> None:
    if tensor.op == "result":
        sdy.set_result_sharding(value, tensor.index, sharding)
    else:
        sdy.set_sharding(value, sharding)


def _key(tensor: Tensor) -> tuple[object, ...]:
    return tensor.function, tensor.op, tensor.index, tensor.place, tensor.name, tensor.type


def _dims(sharding: TensorSharding | None) -> tuple[object, ...]:
    return () if sharding is None else tuple(dim.axes for dim in sharding.dim_shardings)
