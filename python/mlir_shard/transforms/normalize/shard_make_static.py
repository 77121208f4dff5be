# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gives sizes to dynamic dimensions of a program, by upstream's refinement of shapes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from mlir_shard.host import ir, passmanager
from mlir_shard.ir.editing import functions, operations_named, ops_below
from mlir_shard.ir.stablehlo import call_target
from mlir_shard.ir.values import defining_op, replace_uses, uses_of
from mlir_shard.passes.options import alternatives, option
from mlir_shard.passes.registry import ModulePass, PassFailure, register

_ASSERTION = "shape_assertion"
# The attribute of jax.export on an argument that is a dimension variable.
_DIMENSION_VARIABLE = "jax.global_constant"
_SIZE = "stablehlo.get_dimension_size"
_CAST = "tensor.cast"
_STABLEHLO = ("chlo.", "stablehlo.", "vhlo.")
_REFINE_STABLEHLO = (
    "stablehlo-refine-arguments{{types={types}}},stablehlo-refine-shapes,func.func(stablehlo-canonicalize-dynamism)"
)
_REFINE = "func.func(tosa-infer-shapes),canonicalize,cse,canonicalize"
_SHAPE = re.compile(r"\d+(x\d+)*")


@register
class MakeStatic(ModulePass):
    """Gives the dynamic dimensions of a program's arguments sizes, and infers static shapes of all tensors from these.

    `shapes` are shapes of arguments by number, `0=32x16`, or sizes of the dimension variables of a `jax.export` program
    by name, `batch=32`. Assertions of `jax.export` on the shapes are checked.
    """

    name = "shard-make-static"
    summary = "Replaces dynamic dimensions by static sizes"

    shapes: tuple[str, ...] = option((), "Shapes of arguments, 0=32x16, or sizes of dimension variables, batch=32")
    function: str = option("main", "The function that has the arguments")

    def run(self, op: Any) -> bool:
        known = functions(op)
        if self.function not in known:
            raise PassFailure(f"the module has no function @{self.function}", op)
        function = known[self.function]
        if not self.shapes and not any(map(_is_dynamic, _types(function))):
            return False
        types = _Sizes(op, function).types(self.shapes)
        _refine(op, function, types)
        _check_assertions(op)
        _check_static(function)
        return True


@dataclass(frozen=True, slots=True)
class _Sizes:
    """The function whose dynamic dimensions get sizes."""

    module: Any
    function: Any

    def types(self, shapes: tuple[str, ...]) -> list[Any]:
        """Returns the types of the arguments with sizes; raises PassFailure if `shapes` is invalid or incomplete."""
        types, by_name = _types(self.function), self._by_name()
        for given in shapes:
            key, _, text = given.rpartition("=")
            if not key or _SHAPE.fullmatch(text) is None:
                raise PassFailure(
                    f"'{given}' is not a shape: expected an argument as in 0=32x16, or a dimension variable as in "
                    "batch=32",
                    self.function,
                )
            sizes = list(map(int, text.split("x")))
            if key.isdecimal():
                self._set(types, int(key), sizes)
            elif key not in by_name:
                if by_name:
                    advice = f"; its dimension variables are {alternatives(by_name)}"
                else:
                    dynamic = (f"{at}={_example(one)}" for at, one in enumerate(types) if _is_dynamic(one))
                    advice = f"; give the shapes of arguments, as in {next(dynamic, '0=32x16')}"
                raise PassFailure(f"the program has no argument or dimension variable '{key}'{advice}", self.function)
            else:
                for number, dim in by_name[key]:
                    shape = _shape(types[number])
                    shape[dim] = sizes[0]
                    types[number] = _with_shape(types[number], shape)
        for number, type_ in enumerate(types):
            if _is_dynamic(type_):
                left = {(number, dim) for dim, size in enumerate(_shape(type_)) if size is None}
                ways = [f"{number}={_example(type_)}"]
                ways += [f"{name}=SIZE" for name, places in by_name.items() if not left.isdisjoint(places)]
                advice = alternatives(f"--shape {way}" for way in ways)
                raise PassFailure(f"argument {number} has type {type_}: give its shape, as in {advice}", self.function)
        return types

    def _set(self, types: list[Any], number: int, sizes: list[int]) -> None:
        if number >= len(types):
            raise PassFailure(
                f"argument {number} does not exist: the program has {len(types)} arguments", self.function
            )
        type_ = types[number]
        shape = _shape(type_)
        if len(shape) != len(sizes) or any(old not in (None, new) for old, new in zip(shape, sizes, strict=True)):
            text = "x".join(map(str, sizes))
            raise PassFailure(
                f"argument {number} has type {type_}, which does not match the shape {text}", self.function
            )
        types[number] = _with_shape(type_, sizes)

    def _by_name(self) -> dict[str, list[tuple[int, int]]]:
        """Returns the dimensions of arguments whose size is a dimension variable, by the name of the variable."""
        found: dict[str, list[tuple[int, int]]] = {}
        known = functions(self.module)
        for call in operations_named(self.function, "func.call"):
            callee = known.get(call.attributes["callee"].value)
            if callee is None or "arg_attrs" not in callee.attributes:
                continue
            for value, attributes in zip(call.operands, callee.attributes["arg_attrs"], strict=True):
                if _DIMENSION_VARIABLE not in attributes:
                    continue
                places = found.setdefault(attributes[_DIMENSION_VARIABLE].value, [])
                size = defining_op(value, _SIZE)
                if size is not None and isinstance(size.operands[0].owner, ir.Block):
                    argument = ir.BlockArgument(size.operands[0])
                    places.append((argument.arg_number, size.attributes["dimension"].value))
        return found


def _types(function: Any) -> list[Any]:
    return list(function.attributes["function_type"].value.inputs)


def _is_dynamic(type_: Any) -> bool:
    return isinstance(type_, ir.RankedTensorType) and not type_.has_static_shape


def _shape(type_: Any) -> list[int | None]:
    if not isinstance(type_, ir.RankedTensorType):
        return []
    return [None if type_.is_dynamic_dim(dim) else type_.shape[dim] for dim in range(type_.rank)]


def _with_shape(type_: Any, shape: list[Any]) -> Any:
    dynamic = ir.ShapedType.get_dynamic_size()
    return ir.RankedTensorType.get(
        [dynamic if size is None else size for size in shape], type_.element_type, type_.encoding
    )


def _example(type_: Any) -> str:
    return "x".join("SIZE" if size is None else str(size) for size in _shape(type_))


def _refine(module: Any, function: Any, types: list[Any]) -> None:
    passes = _REFINE
    if any(op.name.startswith(_STABLEHLO) for op in ops_below(module)):
        passes = f"{_REFINE_STABLEHLO.format(types=','.join(map(str, types)))},{_REFINE}"
    else:
        for argument, type_ in zip(function.regions[0].blocks[0].arguments, types, strict=True):
            if argument.type != type_:
                _retype(argument, type_)
        _set_signature(function, types, list(function.attributes["function_type"].value.results))
    try:
        passmanager.PassManager.parse(f"builtin.module({passes})", module.context).run(module)
    except ir.MLIRError as error:
        raise PassFailure(f"the shapes of the program are inconsistent: {error}", function) from error
    for one in functions(module).values():
        _drop_casts(one)


def _retype(argument: Any, type_: Any) -> None:
    """Changes the type of an argument; users get a cast to the old type, except those of TOSA, which use its type."""
    before = argument.type
    uses = [use for use in uses_of(argument) if not use[0].name.startswith("tosa.")]
    argument.set_type(type_)
    with ir.InsertionPoint.at_block_begin(argument.owner), ir.Location.unknown(type_.context):
        cast = ir.Operation.create(_CAST, [before], [argument])
    replace_uses(uses, cast.result)


def _drop_casts(function: Any) -> None:
    """Makes a function return the operands of casts to dynamic types, instead of their results."""
    for last in operations_named(function, "func.return"):
        for number, value in enumerate(last.operands):
            cast = defining_op(value, _CAST)
            if cast is not None and _is_dynamic(value.type):
                last.operands[number] = cast.operands[0]
                if not list(cast.result.uses):
                    cast.erase()
        _set_signature(function, _types(function), [value.type for value in last.operands])


def _set_signature(function: Any, inputs: list[Any], results: list[Any]) -> None:
    type_ = ir.FunctionType.get(inputs, results, function.context)
    function.attributes["function_type"] = ir.TypeAttr.get(type_)


def _check_assertions(module: Any) -> None:
    """Erases the assertions of jax.export that hold; raises PassFailure with the message of one that does not."""
    for call in operations_named(module, "stablehlo.custom_call"):
        if call_target(call) != _ASSERTION:
            continue
        values = list(map(_constant, call.operands))
        if values[0] is False:
            message = call.attributes["error_message"].value.partition(". Please see")[0]
            for number, value in enumerate(values[1:]):
                message = message.replace(f"{{{number}}}", str(value))
            raise PassFailure(message.partition(" Using the following")[0], call)
        if values[0] is True:
            call.erase()


def _constant(value: Any) -> Any:
    op = defining_op(value, "stablehlo.constant")
    return None if op is None else op.attributes["value"].get_splat_value().value


def _check_static(function: Any) -> None:
    for op in ops_below(function):
        for value in op.results:
            if _is_dynamic(value.type):
                raise PassFailure(
                    f"'{op.name}' has a result of type {value.type}, whose shape depends on run-time values", op
                )
