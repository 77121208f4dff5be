# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every collective of sdy in a user's program has the same meaning on both targets and engines.

A tensor of a global program has one value, and a collective changes its distribution over the devices: the result
equals the operand. The result of a reduction equals that of the preceding op in NumPy.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from runtime.local_program import needs_jax, needs_mpich

import mlir_shard
from mlir_shard.runtime import RunError, execute
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.backends import Backend, backend
from mlir_shard.transforms.named_ops import RESHARDING_OPS

MATRIX, SQUARE, VECTOR = "tensor<4x8xf32>", "tensor<4x4xf32>", "tensor<4xf32>"
X, Y, XY, YX, SECOND = '[{"x"}, {}]', '[{"y"}, {}]', '[{"x"}, {"y"}]', '[{"y"}, {"x"}]', '[{}, {"x"}]'
PARTIAL = f'{X}, unreduced={{"y"}}'


@dataclass(frozen=True)
class Case:
    """Lines that compute `%r` from the arguments `%a` and `%b`, and the same computation in NumPy."""

    lines: str
    type: str = MATRIX
    expected: Callable[[Array, Array], Array] = lambda a, _: a

    def numbered(self, number: int) -> str:
        """Returns the lines with unique names of values."""
        return re.sub(r"%([cpr])\b", rf"%\g<1>{number}", self.lines)


def chain(before: str, *steps: tuple[str, str]) -> Case:
    """Returns a case of `%a` with the sharding `before`, then collectives with the shardings of their results."""
    lines, value = [f"%c = sdy.sharding_constraint %a <@mesh, {before}> : {MATRIX}"], "%c"
    for (op, after), result in zip(steps, ["%p", "%r"][-len(steps) :], strict=True):
        name, _, axes = op.partition(" ")
        key = "" if name in ("sdy.reshard", "sdy.sharding_constraint") else "out_sharding="
        lines.append(f"{result} = {name} {axes} {value} {key}<@mesh, {after}> : {MATRIX}")
        value = result
    return Case("\n".join(lines))


def contraction(sharding: str, op: str, after: str) -> Case:
    """Returns a contraction along a dimension sharded on "y", and its reduction."""
    return Case(
        f"""
        %p = stablehlo.dot %a, %b {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, {sharding}>]>}}
          : ({MATRIX}, tensor<8x4xf32>) -> {SQUARE}
        %r = {op} %p out_sharding=<@mesh, {after}> : {SQUARE}""",
        SQUARE,
        np.matmul,
    )


def maximum(op: str, after: str) -> Case:
    """Returns a maximum along a dimension sharded on "y", and its reduction."""
    return Case(
        f"""
        %p = stablehlo.reduce(%a init: %least) applies stablehlo.maximum across dimensions = [1]
          {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"x"}}]>]>}} : ({MATRIX}, tensor<f32>) -> {VECTOR}
        %r = {op} %p out_sharding=<@mesh, {after}> : {VECTOR}""",
        VECTOR,
        lambda a, _: a.max(axis=1),
    )


SHARDED = 'sdy.sharded_to_unreduced [{}, {"y"}]', PARTIAL
CASES = {
    "gather": chain(XY, ('sdy.all_gather [{}, {"y"}]', X)),
    "slice": chain(X, ('sdy.all_slice [{}, {"y"}]', XY)),
    "all to all": chain(X, ('sdy.all_to_all [{"x"}: 0->1]', SECOND)),
    "permute": chain(XY, ("sdy.collective_permute", YX)),
    "reshard": chain(XY, ("sdy.reshard", SECOND)),
    "constraint": chain(XY, ("sdy.sharding_constraint", Y)),
    "replicated": chain(X, ('sdy.replicated_to_unreduced {"y"}', PARTIAL), ('sdy.all_reduce {"y"}', X)),
    "sharded": chain(XY, SHARDED, ('sdy.all_reduce {"y"}', X)),
    "scattered": chain(XY, SHARDED, ('sdy.reduce_scatter [{"y"}, {}]', '[{"x", "y"}, {}]')),
    "partial resharded": chain(XY, SHARDED, ("sdy.reshard", SECOND)),
    "declared": contraction(PARTIAL, 'sdy.all_reduce {"y"}', X),
    "declared, scattered": contraction(PARTIAL, 'sdy.reduce_scatter [{}, {"y"}]', XY),
    "undeclared": contraction(X, 'sdy.all_reduce {"y"}', X),
    "undeclared, scattered": contraction(X, 'sdy.reduce_scatter [{}, {"y"}]', XY),
    "maximum": maximum('sdy.all_reduce max {"y"}', '[{"x"}]'),
    "maximum, scattered": maximum('sdy.reduce_scatter max [{"y"}]', '[{"x", "y"}]'),
}


def program() -> str:
    """Returns a program with all cases in one function."""
    lines = "\n".join(case.numbered(number) for number, case in enumerate(CASES.values()))
    types = ", ".join(case.type for case in CASES.values())
    results = ", ".join(f"%r{number}" for number in range(len(CASES)))
    return f"""
    sdy.mesh @mesh = <["x"=2, "y"=2]>
    func.func @main(%a: {MATRIX} {{sdy.sharding = #sdy.sharding<@mesh, {XY}>}},
        %b: tensor<8x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, {Y}>}}) -> ({types}) {{
      %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
      {lines}
      return {results} : {types}
    }}"""


def run(text: str, chosen: Backend, *inputs: Array) -> list[Array]:
    module: Any = mlir_shard.parse(text, mlir_shard.create_context())
    return execute(module, inputs, engine=chosen)


MAKE = pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: backend("mpi"), marks=needs_mpich, id="mpi-shard"),
        pytest.param(lambda: backend("mpi", collectives="stablehlo"), marks=needs_mpich, id="mpi-stablehlo"),
        pytest.param(lambda: backend("pjrt"), marks=needs_jax, id="pjrt-stablehlo"),
    ],
)


@MAKE
def test_one_meaning(make: Callable[[], Backend]) -> None:
    random = np.random.default_rng(7)
    a, b = (random.integers(-8, 8, shape).astype(np.float32) for shape in ((4, 8), (8, 4)))
    found = run(program(), make(), a, b)
    for (name, case), result in zip(CASES.items(), found, strict=True):
        np.testing.assert_array_equal(result, case.expected(a, b), err_msg=name)


@MAKE
@pytest.mark.parametrize(("op", "after"), [('sdy.all_reduce {"y"}', X), ('sdy.reduce_scatter [{}, {"y"}]', XY)])
def test_what_is_not_partial_is_not_reduced(make: Callable[[], Backend], op: str, after: str) -> None:
    text = f"""
    sdy.mesh @mesh = <["x"=2, "y"=2]>
    func.func @main(%a: {MATRIX} {{sdy.sharding = #sdy.sharding<@mesh, {X}>}}) -> {MATRIX} {{
      %0 = {op} %a out_sharding=<@mesh, {after}> : {MATRIX}
      return %0 : {MATRIX}
    }}"""
    with pytest.raises(RunError) as raised:
        run(text, make(), np.zeros((4, 8), np.float32))
    (found,) = raised.value.diagnostics
    assert 'reduces along "y", but its operand is not unreduced there' in found.message


def test_no_collective_is_left_out() -> None:
    text = program()
    of_propagation = {"sdy.data_flow_edge", "sdy.func_data_flow_edge", "sdy.propagation_barrier"}
    assert {name for name in RESHARDING_OPS if f"{name} " not in text} == of_propagation
