# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of rules by execution: an op that runs in two parts along a factor gives the result of the entire op.

The examples of the table of rules are compiled and run: the entire op, and the op on each half along a factor, for
every pass-through and reduction factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlir_shard import asm
from mlir_shard.dialects.contexts import create_context
from mlir_shard.host import ir
from mlir_shard.rules import rule_for
from mlir_shard.rules.reduction import SELECTING_OPS, reduction_op
from mlir_shard.runtime import arrays
from mlir_shard.runtime.arrays import Array, TensorSpec
from mlir_shard.runtime.launch.jit import Executable
from mlir_shard.runtime.lowering import llvm
from mlir_shard.runtime.program import Lowered, Port, Program
from mlir_shard.sharding import OpShardingRule, ReductionOp
from mlir_shard.sharding.rule import DimMapping, FactorType, TensorMapping

EXAMPLES = Path(__file__).resolve().parents[3] / "tools" / "rule_examples"

# Operands other than tensors and position-dependent bodies of linalg ops are adapted when an op becomes local.
OF_LINALG = [
    *("abs", "add", "batch_matmul", "batch_matvec", "batch_mmt4d", "batch_reduce_matmul", "broadcast", "contract"),
    *("conv_1d_ncw_fcw", "conv_1d_nwc_wcf", "conv_2d_ngchw_fgchw", "conv_2d_ngchw_gfchw_q", "conv_2d_nhwgc_gfhwc"),
    *("conv_2d_nhwc_hwcf", "conv_3d_ncdhw_fcdhw", "depthwise_conv_1d_nwc_wcm", "depthwise_conv_2d_nhwc_hwcm_q"),
    *("depthwise_conv_3d_ncdhw_cdhw", "dot", "elementwise", "fill", "map", "matmul", "mmt4d", "pooling_nchw_max"),
    *("pooling_ndhwc_min", "pooling_nwc_sum", "quantized_matmul", "reduce", "select", "transpose", "vecmat"),
]
OF_TENSOR = ["cast", "collapse_shape", "concat"]
OF_TOSA = [
    *("add", "argmax", "avg_pool2d", "concat", "conv2d", "conv3d", "depthwise_conv2d", "gather", "matmul"),
    *("max_pool2d", "mul", "negate", "reduce_max", "reduce_product", "reduce_sum", "reverse", "rfft2d"),
    *("select", "table", "transpose"),
]
COMBINE: dict[ReductionOp, Callable[..., Array]] = {
    ReductionOp.SUM: np.add,
    ReductionOp.MAX: np.maximum,
    ReductionOp.MIN: np.minimum,
}


@cache
def examples(dialect: str) -> Any:
    """Returns the module with the example ops of a dialect."""
    path = EXAMPLES / f"{dialect}.mlir"
    return asm.parse_module(path.read_text(), create_context(), str(path))


def example(dialect: str, name: str) -> Any:
    """Returns the example of an op, which callers must not modify."""
    function = next(op for op in examples(dialect).body.operations if op.attributes["sym_name"].value == name)
    return next(op.operation for op in function.regions[0].blocks[0] if op.operation.name == f"{dialect}.{name}")


def tensor_type(sizes: list[int], element_type: Any) -> Any:
    with element_type.context, ir.Location.unknown():
        return ir.RankedTensorType.get(sizes, element_type)


def halved(type_: Any, mapping: TensorMapping, factor: int) -> Any:
    if not isinstance(type_, ir.RankedTensorType):
        return type_
    sizes = [
        size // 2 if factor in dim.factor_indices else size
        for size, dim in zip(type_.shape, mapping.dim_mappings, strict=True)
    ]
    return tensor_type(sizes, type_.element_type)


def factor_slices(rule: OpShardingRule, dim: DimMapping, size: int, factor: int) -> Iterator[tuple[list[int], int]]:
    """Yields the sizes of the factors of a dimension and the index of the factor, if the dimension contains it."""
    if factor in dim.factor_indices:
        sizes = [rule.factor_sizes[one] for one in dim.factor_indices]
        assert np.prod(sizes) == size
        yield sizes, dim.factor_indices.index(factor)


def part(array: Array, rule: OpShardingRule, mapping: TensorMapping, factor: int, half: int) -> Array:
    """Returns one half of a tensor along a factor."""
    for number, dim in enumerate(mapping.dim_mappings):
        for sizes, position in factor_slices(rule, dim, array.shape[number], factor):
            split = array.reshape(*array.shape[:number], *sizes, *array.shape[number + 1 :])
            length = sizes[position] // 2
            taken = split.take(range(half * length, (half + 1) * length), axis=number + position)
            array = taken.reshape(*array.shape[:number], -1, *array.shape[number + 1 :])
    return np.ascontiguousarray(array)


def specs(types: Sequence[Any]) -> list[TensorSpec]:
    return [TensorSpec(tuple(type_.shape), str(type_.element_type)) for type_ in types]


def run(op: Any, variants: list[tuple[list[Any], list[Any]]], inputs: list[list[Array]]) -> list[list[Array]]:
    """Returns the results of `op` for each variant of its types; operands other than tensors are passed as tensors."""
    with op.context, ir.Location.unknown():
        module = ir.Module.create()
        argument_types = [as_tensor(type_) for operands, _ in variants for type_ in operands]
        result_types = [type_ for _, results in variants for type_ in results]
        function = ir.Operation.parse(
            f"func.func @main({', '.join(f'%a{n}: {type_}' for n, type_ in enumerate(argument_types))}) "
            f"-> ({', '.join(map(str, result_types))}) {{ {extracts(variants)} llvm.unreachable }}"
        )
        module.body.append(function)
        block = function.regions[0].blocks[0]
        block.operations[len(block.operations) - 1].operation.erase()
        values = operands_of(block, variants)
        results = []
        for (_, local_results), operands in zip(variants, values, strict=True):
            found = [
                zero(block, value.type) if is_zero_point(op, number) else value for number, value in enumerate(operands)
            ]
            clone = op.clone(ip=ir.InsertionPoint(block)).operation
            for number, value in enumerate(found):
                clone.operands[number] = value
            for result, type_ in zip(clone.results, local_results, strict=True):
                result.set_type(type_)
            results += clone.results
        ir.Operation.create("func.return", operands=results, ip=ir.InsertionPoint(block))
    assert module.operation.verify()
    llvm.lower(module, "main")

    def ports(of: list[TensorSpec]) -> tuple[Port, ...]:
        return tuple(Port("", spec, spec, ()) for spec in of)

    program = Program(Lowered(str(module)), "main", ports(specs(argument_types)), ports(specs(result_types)), 1)
    found = Executable(program)([array for of_variant in inputs for array in of_variant])
    count = len(op.results)
    return [found[first : first + count] for first in range(0, len(found), count)]


def is_zero_point(op: Any, number: int) -> bool:
    """Returns whether an operand is a zero point or a shift, which tosa's lowering requires to be constant."""
    return op.name.startswith("tosa.") and number > 0 and list(op.operands[number].type.shape) == [1]


def zero(block: Any, type_: Any) -> Any:
    value = ir.Attribute.parse(f"dense<0{'' if isinstance(type_.element_type, ir.IntegerType) else '.0'}> : {type_}")
    return ir.Operation.create(
        "tosa.const", [type_], attributes={"values": value}, ip=ir.InsertionPoint(block)
    ).results[0]


def as_tensor(type_: Any) -> Any:
    return type_ if isinstance(type_, ir.RankedTensorType) else tensor_type([], type_)


def extracts(variants: list[tuple[list[Any], list[Any]]]) -> str:
    """Returns the ops that extract scalar operands from the tensors that hold them."""
    types = [type_ for operands, _ in variants for type_ in operands]
    return "\n".join(
        f"%s{n} = tensor.extract %a{n}[] : tensor<{type_}>"
        for n, type_ in enumerate(types)
        if not isinstance(type_, ir.RankedTensorType)
    )


def operands_of(block: Any, variants: list[tuple[list[Any], list[Any]]]) -> list[list[Any]]:
    arguments, numbers = iter(block.arguments), iter([op.operation.results[0] for op in block.operations])
    found = []
    for operands, _ in variants:
        of_variant = []
        for type_ in operands:
            argument = next(arguments)
            of_variant.append(argument if isinstance(type_, ir.RankedTensorType) else next(numbers))
        found.append(of_variant)
    return found


def inputs_of(op: Any, generator: np.random.Generator) -> list[Array]:
    """Returns random operands, with zeros as the initial values of partial results and with indices in bounds."""
    initial = range(len(op.operands) - len(op.results), len(op.operands)) if op.name.startswith("linalg.") else ()
    biases = (2,) if "conv" in op.name and op.name.startswith("tosa.") else ()
    made = []
    for number, spec in enumerate(specs([as_tensor(value.type) for value in op.operands])):
        array = arrays.random(spec, generator)
        if number in (*initial, *biases):
            array = np.zeros_like(array)
        elif op.name == "tosa.gather" and number == 1:
            array %= 4
        made.append(array)
    return made


def separable(op: Any, rule: OpShardingRule) -> list[int]:
    """Returns the factors of even size along which two halves can be computed separately and then combined.

    Reductions that select elements are excluded, because the indices of each half are different.
    """
    reduces = reduction_op(op) is not None and op.name not in SELECTING_OPS
    types = [FactorType.PASS_THROUGH] + [FactorType.REDUCTION] * reduces
    return [
        factor for factor, size in enumerate(rule.factor_sizes) if rule.factor_type(factor) in types and size % 2 == 0
    ]


CASES = [
    (dialect, name)
    for dialect, names in (("linalg", OF_LINALG), ("tensor", OF_TENSOR), ("tosa", OF_TOSA))
    for name in names
]


@pytest.mark.parametrize(("dialect", "name"), CASES)
def test_parts_make_the_whole(dialect: str, name: str) -> None:
    op = example(dialect, name)
    rule = rule_for(op)
    assert rule is not None
    factors = separable(op, rule)
    assert factors
    operand_types, result_types = [value.type for value in op.operands], [value.type for value in op.results]
    whole_inputs = inputs_of(op, np.random.default_rng(0))
    variants, inputs = [(operand_types, result_types)], [whole_inputs]
    for factor in factors:
        local = (
            [halved(type_, of, factor) for type_, of in zip(operand_types, rule.operand_mappings, strict=True)],
            [halved(type_, of, factor) for type_, of in zip(result_types, rule.result_mappings, strict=True)],
        )
        for half in (0, 1):
            variants.append(local)
            inputs.append(
                [
                    part(array, rule, of, factor, half)
                    for array, of in zip(whole_inputs, rule.operand_mappings, strict=True)
                ]
            )
    whole, *parts = run(op, variants, [[array.copy() for array in of_variant] for of_variant in inputs])
    for number, factor in enumerate(factors):
        halves = parts[2 * number], parts[2 * number + 1]
        for result, mapping in enumerate(rule.result_mappings):
            if rule.factor_type(factor) is FactorType.REDUCTION:
                combiner = reduction_op(op)
                assert combiner is not None
                combined = COMBINE[combiner](halves[0][result], halves[1][result])
                np.testing.assert_allclose(combined, whole[result], rtol=1e-4, atol=1e-4)
                continue
            for half in (0, 1):
                expected = part(whole[result], rule, mapping, factor, half)
                np.testing.assert_allclose(halves[half][result], expected, rtol=1e-4, atol=1e-4)
