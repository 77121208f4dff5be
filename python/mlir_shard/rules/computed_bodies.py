# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bodies of StableHLO reductions on tensors, and properties that are found by computing bodies on constants.

StableHLO's interpreter computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

from mlir_shard import host
from mlir_shard.deferred import numpy as np
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import clone_with
from mlir_shard.ir.op_names import op_names
from mlir_shard.ir.values import defining_op

_bindings = host.module("_mlir_libs._stablehlo")
_CONSTANT = "stablehlo.constant"
_CONSTANTS = (_CONSTANT, "sdy.constant")
# Elementwise ops that StableHLO's interpreter computes correctly on constants.
_COMPUTED = frozenset(
    op_names(
        "stablehlo",
        "abs add and compare constant convert divide exponential exponential_minus_one is_finite log log_plus_one "
        "maximum minimum multiply negate not or power select sign sqrt subtract tanh xor",
    )
)
# Numbers on which bodies are computed, and the relative error of floats by their width: sums, products and maxima of
# any three differ.
_NUMBERS = {ir.FloatType: (-3.0, -0.5, 0.25, 1.0, 2.5), ir.IntegerType: (0, 1, 2, 3, 7)}
_ERRORS = {16: 0.05, 32: 1e-4, 64: 1e-9}


def constant_of(value: Any) -> Any | None:
    """Returns the attribute of the constant that a scalar of StableHLO is; None if it is not known to be constant."""
    while (op := defining_op(value, "stablehlo.broadcast_in_dim", "stablehlo.reshape")) is not None:
        value = op.operands[0]
    op = defining_op(value, *_CONSTANTS)
    return None if op is None else op.attributes["value"]


def integer_of(value: Any) -> int | None:
    """Returns the integer that all elements of a tensor of StableHLO are known to be, or None."""
    constant = constant_of(value)
    if not isinstance(constant, ir.DenseIntElementsAttr) or not constant.is_splat:
        return None
    return int(constant.get_splat_value().value)


def is_zero(value: Any) -> bool:
    """Returns whether all elements of a tensor of StableHLO are known to be the number zero, without a sign."""
    constant = constant_of(value)
    if not isinstance(constant, ir.DenseElementsAttr) or not constant.is_splat:
        return False
    if not stablehlo.has_zero(constant.type.element_type):
        return False
    return bool(
        constant == ir.DenseElementsAttr.get_splat(constant.type, stablehlo.element(constant.type.element_type, 0))
    )


def is_computable(op: Any) -> bool:
    """Returns whether the body of a reduction has only elementwise ops on its arguments that can be computed."""
    block = op.regions[0].blocks[0]
    inside = set(block.arguments)
    for inner in block.operations:
        if any(value not in inside for value in inner.operands):
            return False
        inside.update(inner.operation.results)
    *body, _ = (inner.operation for inner in block.operations)
    return all(inner.name in _COMPUTED for inner in body)


def apply_body(op: Any, operands: Sequence[Any], made: Callable[[Any], None] = lambda _: None) -> list[Any]:
    """Builds the body of a reduction on tensors of one shape instead of scalars; returns the values that it yields.

    The body computes in the element type of the operands. `made` is called with each op.
    """
    block, type_ = op.regions[0].blocks[0], operands[0].type
    values = dict(zip(block.arguments, operands, strict=True))
    *body, last = (inner.operation for inner in block.operations)
    for inner in body:
        copied = clone_with(inner, values)
        for result in copied.results:
            is_computed = result.type.element_type == block.arguments[0].type.element_type
            element = type_.element_type if is_computed else result.type.element_type
            result.set_type(stablehlo.tensor(element, *type_.shape))
        if copied.name == _CONSTANT:
            number, made_type = copied.attributes["value"].get_splat_value(), copied.results[0].type
            if number.type != made_type.element_type:
                number = stablehlo.element(made_type.element_type, number.value)
            copied.attributes["value"] = ir.DenseElementsAttr.get_splat(made_type, number)
        made(copied)
    return [values[value] for value in last.operands]


def may_repeat_initial_values(op: Any) -> bool:
    """Returns whether a `stablehlo.reduce` is known to give the same result if its initial values are repeated."""
    op = op.operation
    scalars = list(op.operands)[len(op.results) :]
    initial = [one for one in map(constant_of, scalars) if one is not None]
    if len(initial) < len(scalars) or not is_computable(op):
        return False
    with _computation(op) as results:
        results += apply_body(op, [stablehlo.constant(one) for one in (*initial, *initial)])
    return results == initial


def is_associative(op: Any) -> bool:
    """Returns whether the body of a reduction with one result combines any three of several numbers in any tree.

    Floats may differ by errors of rounding.
    """
    op = op.operation
    element = op.results[0].type.element_type
    if not is_computable(op) or not _has_numbers(element):
        return False
    left, middle, right = zip(*product(_numbers(element), repeat=3), strict=True)
    with _computation(op) as results:
        one, two, three = (stablehlo.constant(_elements(numbers, element)) for numbers in (left, middle, right))
        trees = (_combine(op, _combine(op, one, two), three), _combine(op, one, _combine(op, two, three)))
        results += map(_widened, trees)
    return _agree(results[0], results[1], element)


def is_identity(op: Any, scalar: Any) -> bool:
    """Returns whether the body of a reduction gives each of several numbers if it is combined with `scalar`."""
    op = op.operation
    initial, element = constant_of(scalar), op.results[0].type.element_type
    if initial is None or not is_computable(op) or not _has_numbers(element):
        return False
    numbers = _numbers(element)
    with _computation(op) as results:
        these = stablehlo.constant(_elements(numbers, element))
        others = stablehlo.broadcast(stablehlo.reshape(stablehlo.constant(initial), ()), [len(numbers)])
        results += map(_widened, (these, _combine(op, these, others), _combine(op, others, these)))
    return _agree(results[0], results[1], element) and _agree(results[0], results[2], element)


def _has_numbers(element: Any) -> bool:
    if isinstance(element, ir.IntegerType):
        return element.width > 1
    return isinstance(element, ir.FloatType) and element.width in _ERRORS


def _numbers(element: Any) -> tuple[float, ...]:
    return next(numbers for kind, numbers in _NUMBERS.items() if isinstance(element, kind))


def _combine(op: Any, left: Any, right: Any) -> Any:
    return apply_body(op, (left, right))[0]


def _elements(numbers: Sequence[float], element: Any) -> Any:
    of_kind = ir.FloatAttr if isinstance(element, ir.FloatType) else ir.IntegerAttr
    attributes = [of_kind.get(element, one) for one in numbers]
    return ir.DenseElementsAttr.get(attributes, stablehlo.tensor(element, len(numbers)))


def _widened(value: Any) -> Any:
    is_float = isinstance(value.type.element_type, ir.FloatType)
    return stablehlo.convert(value, ir.F64Type.get() if is_float else stablehlo.i64())


def _agree(left: Any, right: Any, element: Any) -> bool:
    one, other = np.array(left), np.array(right)
    if not isinstance(element, ir.FloatType):
        return bool(np.array_equal(one, other))
    error = _ERRORS[element.width]
    return bool(np.isfinite(one).all() and np.allclose(one, other, rtol=error, atol=error))


@contextmanager
def _computation(op: Any) -> Iterator[list[Any]]:
    """Computes the values that are built inside and added to the list, which then has their attributes."""
    module = ir.Module.create(loc=op.location)
    with ir.InsertionPoint(module.body), op.location:
        attributes = {"sym_name": ir.StringAttr.get("main")}
        attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([], []))
        function = ir.Operation.create("func.func", regions=1, attributes=attributes)
        entry = function.regions[0].blocks.append()
    results: list[Any] = []
    with ir.InsertionPoint(entry), op.location:
        yield results
        ir.Operation.create("func.return", operands=results)
        types = [value.type for value in results]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([], types))
    results[:] = _bindings.eval_module(module, [])
