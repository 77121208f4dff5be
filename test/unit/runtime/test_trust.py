# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the detection of modules with native code."""

from __future__ import annotations

import numpy as np
import pytest

import mlir_shard as ms
from mlir_shard.dialects.contexts import create_context
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.trust import native_code


def found(text: str) -> list[str]:
    module = ms.parse(text, create_context(allow_unregistered=True))
    return [one.message for one in native_code(module)]


@pytest.mark.parametrize(
    "op",
    [
        "llvm.inline_asm has_side_effects \"nop\", \"\" : () -> ()",
        "%s = ptr.type_offset i32 : index",
        "%r = mpi.init : !mpi.retval",
        "%c = arith.constant 1 : index\n async.execute { async.yield }",
        "gpu.barrier",
    ],
)  # fmt: skip
def test_ops_of_native_dialects(op: str) -> None:
    (message,) = {one for one in found(f"func.func @main() {{\n {op}\n return\n}}") if "yield" not in one}
    assert message.endswith("op is native code")


def test_a_function_without_a_body_may_be_declared_but_not_used() -> None:
    declared = "func.func private @system(tensor<4xi8>) -> i32\n"
    assert not found(declared)
    assert found(f"{declared}func.func @main(%a: tensor<4xi8>) -> i32 {{\n"
                 " %0 = func.call @system(%a) : (tensor<4xi8>) -> i32\n return %0 : i32\n}") == [
        "'func.call' op refers to @system, which has no body: it would be a library function"
    ]  # fmt: skip
    assert len(found(f"{declared}func.func @main() {{\n"
                     " %0 = func.constant @system : (tensor<4xi8>) -> i32\n return\n}")) == 1  # fmt: skip


def test_programs_on_tensors_are_data() -> None:
    assert not found("""
      func.func @main(%a: tensor<4xf32>, %b: memref<4xf32>) -> tensor<4xf32> {
        %i = arith.constant 1 : index
        %v = memref.load %b[%i] : memref<4xf32>
        %0 = tensor.splat %v : tensor<4xf32>
        %1 = func.call @other(%a) : (tensor<4xf32>) -> tensor<4xf32>
        %2 = stablehlo.add %0, %1 : tensor<4xf32>
        "my.op"() : () -> ()
        return %2 : tensor<4xf32>
      }
      func.func private @other(%a: tensor<4xf32>) -> tensor<4xf32> {
        %0 = math.exp %a : tensor<4xf32>
        return %0 : tensor<4xf32>
      }""")


def test_python_runs_native_code_only_where_it_is_trusted() -> None:
    module = ms.parse("""
      func.func @main(%a: tensor<2xi32>) -> tensor<2xi32> {
        llvm.inline_asm has_side_effects "nop", "" : () -> ()
        return %a : tensor<2xi32>
      }""")
    array = np.arange(2, dtype=np.int32)
    with pytest.raises(RunError, match="native code"):
        ms.execute(module, [array])
    with pytest.raises(RunError, match="native code"):
        ms.Program(module).compile()
    (result,) = ms.execute(module, [array], trust_native=True)
    np.testing.assert_array_equal(result, array)
