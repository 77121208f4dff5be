# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Meshes, tensors and regions of any size are partitioned, or rejected by a diagnostic at their location."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import pytest

from mlir_shard import asm
from mlir_shard import run as run_passes
from mlir_shard.dialects.contexts import create_context
from mlir_shard.passes.diagnostic import Diagnostic
from mlir_shard.passes.registry import PassFailure
from mlir_shard.sharding import Mesh
from mlir_shard.sharding.mesh import MOST_DEVICES, TooManyDevicesError

TARGETS = ("shard", "stablehlo")
LARGEST = 2**63 - 1
MOST_ELEMENTS = 2**62


def on(dims: str) -> str:
    return f"{{sdy.sharding = #sdy.sharding<@m, [{dims}]>}}"


def programs(size: int) -> dict[str, str]:
    """Returns functions of a tensor with a dimension of `size` elements, sharded along axis x, by kind of operation."""
    type_, x, y = f"tensor<{size}xf32>", on('{"x"}'), on('{"y"}')

    def unary(result: str, line: str, of_result: str = "") -> str:
        return f"func.func @main(%a: {type_} {x}) -> ({result} {of_result}) {{\n{line}\n  return %r : {result}\n}}"

    found = {
        "elementwise": unary(type_, f"  %r = stablehlo.add %a, %a : {type_}"),
        "moved": unary(type_, f"  %r = stablehlo.add %a, %a : {type_}", y),
        "gathered": unary(type_, f"  %r = sdy.reshard %a <@m, [{{}}]> : {type_}"),
        "reversed": unary(type_, f"  %r = stablehlo.reverse %a, dims = [0] : {type_}"),
        "summed": unary(
            "tensor<f32>",
            "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
            "  %r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] "
            f": ({type_}, tensor<f32>) -> tensor<f32>",
        ),
        "in linalg": unary(type_, f"  %r = linalg.exp ins(%a : {type_}) outs(%a : {type_}) -> {type_}"),
        "made": f"func.func @main() -> ({type_} {x}) {{\n"
        f"  %r = stablehlo.iota dim = 0 : {type_}\n  return %r : {type_}\n}}",
        "constant": f"func.func @main() -> ({type_} {x}) {{\n"
        f"  %r = stablehlo.constant dense<1.0> : {type_}\n  return %r : {type_}\n}}",
    }
    if size > 4:
        cut = f"tensor<{size - 3}xf32>"
        found["cut"] = unary(cut, f"  %r = stablehlo.slice %a [3:{size}] : ({type_}) -> {cut}")
    if size < LARGEST:
        padded = f"tensor<{size + 1}xf32>"
        found["padded"] = unary(
            padded,
            "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
            f"  %r = stablehlo.pad %a, %z, low = [1], high = [0], interior = [0] : ({type_}, tensor<f32>) -> {padded}",
        )
    return found


KINDS = tuple(programs(8))


def mesh_text(sizes: dict[str, int]) -> str:
    return f"sdy.mesh @m = {Mesh(sizes.items())}\n"


def partitioned(text: str, target: str) -> str | Sequence[Diagnostic]:
    """Returns the local program, or the diagnostics of a program that cannot be partitioned."""
    module = asm.parse_module(text, create_context(), "program.mlir")
    try:
        run_passes(module, f"builtin.module(spmd-pipeline{{collectives={target}}})")
    except PassFailure as failure:
        return failure.diagnostics
    return str(module)


def refusal(text: str, target: str) -> Diagnostic:
    """Returns the only error of a program that is rejected, which has a location in the program."""
    found = partitioned(text, target)
    assert not isinstance(found, str), found
    (error,) = found
    assert error.severity == "error"
    assert error.position is not None
    assert error.position.file == "program.mlir", error
    assert " raised " not in error.message
    return error


HUGE_MESHES = {
    "2^31 devices": {"x": 2**31, "y": 1},
    "2^31 devices on the minor axis": {"y": 2, "x": 2**30},
    "2^60 devices": {"x": 2**30, "y": 2**30},
    "the largest axis": {"x": LARGEST, "y": 2},
    "2^70 devices on 70 axes": {"x": 2, "y": 2} | {f"a{number}": 2 for number in range(68)},
    "one device too many": {"x": MOST_DEVICES + 1, "y": 1},
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", HUGE_MESHES.values(), ids=HUGE_MESHES.keys())
def test_too_many_devices(sizes: dict[str, int], kind: str, target: str) -> None:
    error = refusal(mesh_text(sizes) + programs(8)[kind], target)
    mesh = Mesh(sizes.items())
    assert f"has {mesh.total_size} devices" in error.message
    assert f"at most {MOST_DEVICES}" in error.message
    assert error.position is not None
    assert error.position.line == 1


def test_devices_of_a_huge_mesh_are_not_listed() -> None:
    with pytest.raises(TooManyDevicesError, match=f"has {2**31} devices"):
        _ = Mesh([("x", 2**31)]).devices


PASSES = ("convert-sdy-to-shard", "sdy-insert-explicit-reshards", "sdy-reshard-to-collectives")


@pytest.mark.parametrize("passes", [*PASSES, "sdy-convert-global-to-local", "spmdize", "shard-unify-meshes"])
@pytest.mark.parametrize("is_inlined", [False, True])
def test_single_passes_end(passes: str, is_inlined: bool) -> None:
    """Each pass ends on a mesh of 2^31 devices, inlined in the sharding or not, with success or a diagnostic."""
    text = mesh_text({"x": 2**31, "y": 2}) + programs(8)["moved"]
    if is_inlined:
        text = re.sub("^.*\n", "", text).replace("@m,", f'mesh<["x"={2**31}, "y"=2]>,')
    module = asm.parse_module(text, create_context(), "program.mlir")
    anchor = next(iter(re.findall("insert|to-collectives", passes)), "")
    try:
        run_passes(module, f"builtin.module({f'func.func({passes})' if anchor else passes})")
    except PassFailure as failure:
        for error in failure.diagnostics:
            assert " raised " not in error.message
            assert error.position is not None


@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_mesh(kind: str) -> None:
    """No cost is exponential or quadratic in the number of devices of a mesh of many axes."""
    count = MOST_DEVICES.bit_length() - 3
    sizes = {"x": 2, "y": 2} | {f"a{number}": 2 for number in range(count)}
    assert Mesh(sizes.items()).total_size == MOST_DEVICES
    assert isinstance(partitioned(mesh_text(sizes) + programs(8)[kind], "shard"), str)


ONES = {f"a{number}": 1 for number in range(68)}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [8, 9])
@pytest.mark.parametrize("kind", KINDS)
def test_axes_of_one_device_make_no_difference(kind: str, size: int, target: str) -> None:
    """Axes of size 1 do not change the local program, even if they are more than a NumPy array can have dimensions."""
    program = programs(size)[kind]
    without = {"x": 2, "y": 3}
    expected, found = (partitioned(mesh_text(sizes) + program, target) for sizes in (without, without | ONES))
    assert isinstance(expected, str)
    assert isinstance(found, str)
    assert re.sub("shard.grid.*", "", found) == re.sub("shard.grid.*", "", expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [MOST_ELEMENTS + 1, LARGEST - 1, LARGEST])
def test_too_many_elements(size: int, kind: str, target: str) -> None:
    program = programs(size).get(kind)
    if program is None:
        return
    error = refusal(mesh_text({"x": 2, "y": 2}) + program, target)
    assert f"more than the {MOST_ELEMENTS}" in error.message


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [2**61, 2**61 - 1, 2**32 + 1, 1, 0])
def test_many_elements_and_none(size: int, kind: str, target: str) -> None:
    program = programs(size).get(kind)
    if program is not None:
        assert isinstance(partitioned(mesh_text({"x": 3, "y": 2}) + program, target), str)


def test_elements_of_several_dimensions_are_counted() -> None:
    type_ = f"tensor<{2**40}x{2**23}xf32>"
    sharded = on('{"x"}, {}')
    text = f"""func.func @main(%a: {type_} {sharded}) -> {type_} {{
  %r = stablehlo.add %a, %a : {type_}
  return %r : {type_}
}}"""
    assert f"with {2**63} elements" in refusal(mesh_text({"x": 2}) + text, "shard").message


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("ids", ["", ", device_ids=[0]"])
def test_meshes_without_axes(ids: str, target: str) -> None:
    dims = "[]" if ids else "[{}]"
    text = f"""sdy.mesh @m = <[]{ids}>
func.func @main(%a: tensor<4xf32> {{sdy.sharding = #sdy.sharding<@m, {dims}>}}) -> tensor<4xf32> {{
  %r = stablehlo.add %a, %a : tensor<4xf32>
  return %r : tensor<4xf32>
}}"""
    found = partitioned(text, target)
    assert isinstance(found, str)
    assert "grid" not in found
    assert "stablehlo.add %arg0, %arg0 : tensor<4xf32>" in found


QUANTIZED = "!quant.uniform<i8:f32, 1.0>"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [6, 7])
@pytest.mark.parametrize(
    "line",
    [
        '%r = sdy.all_slice [{"x"}] %a out_sharding=<@m, [{"x"}]> : TYPE',
        '%r = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : TYPE',
    ],
    ids=["sliced", "added"],
)
def test_quantized_tensors(line: str, size: int, target: str) -> None:
    """No padding constant is known for quantized tensors: uneven shards of them are rejected, or avoided."""
    type_ = f"tensor<{size}x{QUANTIZED}>"
    text = f"""func.func @main(%a: {type_} {on("{}")}) -> tensor<f32> {{
  {line.replace("TYPE", type_)}
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  return %c : tensor<f32>
}}"""
    found = partitioned(mesh_text({"x": 3}) + text, target)
    if size == 6:
        assert isinstance(found, str)
    elif not isinstance(found, str):
        assert "no padding constant is known for this type" in refusal(mesh_text({"x": 3}) + text, target).message


def nested(depth: int) -> str:
    type_ = "tensor<4xf32>"
    returned = '"stablehlo.return"(%{}) : (' + type_ + ") -> ()\n"
    lines = [f'%r{number} = "stablehlo.if"(%p) ({{\n' for number in range(depth)]
    lines += [f"%s = stablehlo.add %a, %a : {type_}\n", returned.format("s")]
    for number in reversed(range(depth)):
        lines.append(f"}}, {{\n{returned.format('a')}}}) : (tensor<i1>) -> {type_}\n")
        lines.append(returned.format(f"r{number}") if number else f"return %r0 : {type_}\n")
    sharded = on('{"x"}')
    head = f"func.func @main(%p: tensor<i1>, %a: {type_} {sharded}) -> {type_} {{\n"
    return f"{mesh_text({'x': 2})}{head}{''.join(lines)}}}\n"


@pytest.mark.parametrize("target", TARGETS)
def test_regions_in_300_others(target: str) -> None:
    before = sys.getrecursionlimit()
    found = partitioned(nested(300), target)
    assert isinstance(found, str)
    assert "tensor<4xf32>" not in found
    assert found.count("stablehlo.if") == 300
    assert sys.getrecursionlimit() == before


def test_regions_too_deep() -> None:
    error = refusal(nested(900), "shard")
    assert re.search(r"is nested in \d+ regions, too deep for pass", error.message)


def test_a_call_of_too_many_types_is_refused_where_it_would_be_a_computation() -> None:
    types = ", ".join(f"tensor<{4 + 4 * (number % 2)}xf32>" for number in range(1100))
    arguments = ", ".join(f"%{number}: {type_}" for number, type_ in enumerate(types.split(", ")))
    values = ", ".join(f"%{number}" for number in range(1100))
    text = f"""
      func.func private @callee({arguments}) -> tensor<4xf32> {{ return %0 : tensor<4xf32> }}
      func.func @main({arguments}) -> tensor<4xf32> {{
        %r = call @callee({values}) : ({types}) -> tensor<4xf32>
        return %r : tensor<4xf32>
      }}"""
    context = create_context()
    module = asm.parse_module(text, context)
    with pytest.raises(PassFailure, match=r"call of @callee cannot become .* at most 1023 changes .* inline the call"):
        run_passes(module, "builtin.module(sdy-propagation-pipeline)")
    module = asm.parse_module(text, context)
    run_passes(module, "builtin.module(shard-inline-calls,sdy-propagation-pipeline)")
