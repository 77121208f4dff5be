# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padding does not change the results of random programs in the StableHLO interpreter, whatever its value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from transforms.program_builder import MESH
from transforms.uneven_programs import STEPS, random_program

from mlir_shard import asm, host
from mlir_shard import run as run_passes
from mlir_shard.dialects import sdy
from mlir_shard.dialects.contexts import create_context
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import ops_below
from mlir_shard.passes.registry import PassFailure
from mlir_shard.transforms.padding.padding_rules import UnevenOp, padding_of
from mlir_shard.transforms.padding.sdy_pad_for_divisibility import pad_function
from mlir_shard.transforms.shardings import listed_meshes

_bindings = host.module("_mlir_libs._stablehlo")
# Creating a context takes longer than most programs here.
CONTEXT = create_context()
RESHARDED = "sdy-insert-explicit-reshards{enable-full-version=true}"
RESOLVED = "sdy-resolve-permutation-factors{enable-halo-exchange=false}"
# Pipelines that insert the reshards of each op; the first one inserts none.
PIPELINES = [
    None,
    f"builtin.module(func.func({RESHARDED},sdy-reshard-to-collectives))",
    f"builtin.module(func.func({RESHARDED}),{RESOLVED},func.func(sdy-reshard-to-collectives))",
]


def garbage(element_type: Any) -> Any:
    """Returns a constant that is visible in the results that it reaches."""
    value = float("nan") if isinstance(element_type, ir.FloatType) else 1 if element_type.width == 1 else 77777
    return stablehlo.splat(stablehlo.tensor(element_type), value)


def evaluate(module: Any, inputs: Sequence[Any]) -> list[Any]:
    """Returns the results of a program in the interpreter, with the collectives of sdy as identities."""
    for op in list(ops_below(module.operation)):
        if op.name == "sdy.mesh":
            op.erase()
        elif op.name.startswith("sdy."):
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
    run_passes(module, "builtin.module(sdy-drop-sharding-and-mesh)")
    with module.operation.location:
        return [np.array(one) for one in _bindings.eval_module(module, [elements(one) for one in inputs])]


def elements(array: Any) -> Any:
    if array.dtype != np.bool_:
        return ir.DenseElementsAttr.get(np.ascontiguousarray(array))
    flag = ir.IntegerType.get_signless(1)
    entries = [ir.IntegerAttr.get(flag, int(one)) for one in array.flatten()]
    return ir.DenseElementsAttr.get(entries, ir.RankedTensorType.get(array.shape, flag))


def check_even(function: Any) -> None:
    meshes = listed_meshes(function)
    for op in ops_below(function):
        for result in op.results:
            sharding = sdy.get_sharding(result)
            if sharding is not None:
                for size, dim in zip(result.type.shape, sharding.dim_shardings, strict=True):
                    assert size % dim.sharded_size(meshes["mesh"]) == 0, op


def check(text: str, inputs: Sequence[Any], pipeline: str | None, padding: Any) -> bool:
    """Checks that padding leaves the results unchanged and all shards even; returns whether anything was padded."""
    expected = evaluate(asm.parse_module(text, CONTEXT), inputs)
    module = asm.parse_module(text, CONTEXT)
    if pipeline is not None:
        run_passes(module, pipeline)
    function = next(op for op in ops_below(module.operation) if op.name == "func.func")
    with CONTEXT, function.location:
        is_padded = pad_function(function, listed_meshes(function), padding)
    assert module.operation.verify()
    check_even(function)
    printed = asm.print_operation(module.operation)
    found = evaluate(module, inputs)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4, err_msg=f"{text}\n{printed}")
    return is_padded


def is_refused(text: str, inputs: Sequence[Any], seed: int) -> bool:
    """Returns whether the program is rejected, which is allowed for a windowed dimension with uneven shards."""
    try:
        check(text, inputs, PIPELINES[seed % 3], garbage if seed % 2 else None)
    except PassFailure as failure:
        assert "stablehlo.convolution" in text
        assert "no known padding value" in failure.message
        return True
    return False


@pytest.mark.parametrize("name", STEPS)
def test_each_op(name: str) -> None:
    refused = sum(is_refused(*random_program(seed, [name] * 2), seed) for seed in range(6))
    assert refused <= 3


def test_random_programs() -> None:
    for seed in range(30):
        is_refused(*random_program(seed), seed)


def test_padding_is_needed() -> None:
    text = f"""{MESH}
      func.func @main(%a: tensor<7xf32>) -> tensor<7xf32> {{
        %0 = stablehlo.abs %a {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"z"}}]>]>}} : tensor<7xf32>
        return %0 : tensor<7xf32>
      }}"""
    assert check(text, [np.arange(7, dtype=np.float32)], None, garbage)
    assert not check(text.replace("<7x", "<8x"), [np.arange(8, dtype=np.float32)], None, garbage)


def test_padding_of_a_users_op() -> None:
    @padding_of("attn.scale")
    def scale(uneven: UnevenOp) -> None:
        uneven.op.attributes["rows"] = stablehlo.integer(uneven.even_result_shapes()[0][0])
        uneven.set_operands(uneven.even_result_shapes())
        uneven.set_results(uneven.even_result_shapes())

    context = create_context()
    context.allow_unregistered_dialects = True
    module = asm.parse_module(
        f"""{MESH}
        func.func @main(%a: tensor<7xf32>) -> tensor<7xf32> {{
          %0 = "attn.scale"(%a) {{rows = 7 : i64, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"z"}}]>]>}}
            : (tensor<7xf32>) -> tensor<7xf32>
          return %0 : tensor<7xf32>
        }}""",
        context,
    )
    run_passes(module, "builtin.module(func.func(sdy-pad-for-divisibility))")
    (op,) = (op for op in ops_below(module.operation) if op.name == "attn.scale")
    assert op.attributes["rows"].value == 8
    assert list(op.results[0].type.shape) == [8]
