# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of programs from which the sharding is removed."""

from __future__ import annotations

import pytest

import mlir_shard
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.reference.unsharded import drop_sharding

TYPE = "tensor<8x8xf32>"
HEADER = 'sdy.mesh @mesh = <["x"=2, "y"=2]>\n'


def without_sharding(text: str) -> str:
    module = mlir_shard.parse(text, mlir_shard.create_context())
    drop_sharding(module)
    assert module.operation.verify()
    return str(module)


def plain(body: str, returned: str) -> str:
    text = f"func.func @main(%a: {TYPE}) -> {TYPE} {{\n{body}\n  return {returned} : {TYPE}\n}}"
    return str(mlir_shard.parse(text, mlir_shard.create_context()))


def test_annotations_of_sdy() -> None:
    text = f"""{HEADER}
    func.func @main(%a: {TYPE} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
        -> ({TYPE} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}}) {{
      %0 = stablehlo.add %a, %a {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"x"}}, {{}}]>]>}} : {TYPE}
      %1 = sdy.sharding_constraint %0 <@mesh, [{{"y"}}, {{}}]> : {TYPE}
      sdy.sharding_group %1 group_id = 0 : {TYPE}
      %2 = sdy.propagation_barrier %1 allowed_direction = NONE : {TYPE}
      %3 = sdy.reshard %2 <@mesh, [{{}}, {{"y"}}]> : {TYPE}
      %4 = sdy.all_gather [{{}}, {{"y"}}] %3 out_sharding = <@mesh, [{{}}, {{}}]> : {TYPE}
      return %4 : {TYPE}
    }}"""
    assert without_sharding(text) == plain(f"  %0 = stablehlo.add %a, %a : {TYPE}", "%0")


def test_annotations_of_shard() -> None:
    text = f"""
    shard.grid @grid(shape = 2x2)
    func.func @main(%a: {TYPE}) -> {TYPE} {{
      %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
      %0 = shard.shard %a to %s : {TYPE}
      %1 = shard.shard %0 to %s annotate_for_users : {TYPE}
      %2 = stablehlo.add %1, %1 : {TYPE}
      return %2 : {TYPE}
    }}"""
    assert without_sharding(text) == plain(f"  %0 = stablehlo.add %a, %a : {TYPE}", "%0")


def test_a_named_computation_and_a_constant() -> None:
    text = f"""{HEADER}
    func.func @main(%a: {TYPE}) -> {TYPE} {{
      %0 = sdy.named_computation<"outer">(%a) (%b: {TYPE}) {{
        %1 = sdy.named_computation<"inner">(%b) (%c: {TYPE}) {{
          %2 = stablehlo.multiply %c, %c : {TYPE}
          %3 = sdy.sharding_constraint %2 <@mesh, [{{"x"}}, {{}}]> : {TYPE}
          sdy.return %3 : {TYPE}
        }} : ({TYPE}) -> {TYPE}
        sdy.return %1 : {TYPE}
      }} : ({TYPE}) -> {TYPE}
      %4 = sdy.constant dense<2.0> : {TYPE}
      %5 = stablehlo.add %0, %4 : {TYPE}
      return %5 : {TYPE}
    }}"""
    body = f"""
      %0 = stablehlo.multiply %a, %a : {TYPE}
      %1 = stablehlo.constant dense<2.0> : {TYPE}
      %2 = stablehlo.add %0, %1 : {TYPE}"""
    assert without_sharding(text) == plain(body, "%2")


def manual(body: str, sharding: str = '<@mesh, [{"x"}, {}]>', local: str = "tensor<4x8xf32>") -> str:
    return f"""{HEADER}
    func.func private @index() -> tensor<ui32> {{
      %0 = stablehlo.partition_id : tensor<ui32>
      return %0 : tensor<ui32>
    }}
    func.func @main(%a: {TYPE}) -> {TYPE} {{
      %0 = sdy.manual_computation(%a) in_shardings=[{sharding}] out_shardings=[{sharding}] manual_axes={{"x"}}
          (%b: {local}) {{
        {body}
      }} : ({TYPE}) -> {TYPE}
      return %0 : {TYPE}
    }}"""


def test_a_manual_computation_is_its_body_on_all_blocks() -> None:
    text = manual("%1 = stablehlo.negate %b : tensor<4x8xf32>\n sdy.return %1 : tensor<4x8xf32>")
    body = f"""
      %0 = stablehlo.slice %a [0:4, 0:8] : ({TYPE}) -> tensor<4x8xf32>
      %1 = stablehlo.slice %a [4:8, 0:8] : ({TYPE}) -> tensor<4x8xf32>
      %2 = stablehlo.negate %0 : tensor<4x8xf32>
      %3 = stablehlo.negate %1 : tensor<4x8xf32>
      %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> {TYPE}"""
    assert without_sharding(text).split("@main")[1] == plain(body, "%4").split("@main")[1]


def test_devices_with_the_same_block_compute_it_once() -> None:
    text = manual(f"%1 = stablehlo.negate %b : {TYPE}\n sdy.return %1 : {TYPE}", "<@mesh, [{}, {}]>", TYPE)
    expected = plain(f"  %0 = stablehlo.negate %a : {TYPE}", "%0")
    assert without_sharding(text).split("@main")[1] == expected.split("@main")[1]


def test_devices_have_what_others_send_them_and_their_numbers() -> None:
    local = "tensor<4x8xf32>"
    pairs = "source_target_pairs = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>"
    permute = f"""%1 = "stablehlo.collective_permute"(%b) <{{{pairs}}}>
        : ({local}) -> {local}
      sdy.return %1 : {local}"""
    body = f"""
      %0 = stablehlo.slice %a [0:4, 0:8] : ({TYPE}) -> {local}
      %1 = stablehlo.slice %a [4:8, 0:8] : ({TYPE}) -> {local}
      %2 = stablehlo.constant dense<0.0> : {local}
      %3 = stablehlo.concatenate %2, %0, dim = 0 : ({local}, {local}) -> {TYPE}"""
    assert without_sharding(manual(permute)).split("@main")[1] == plain(body, "%3").split("@main")[1]
    numbered = f"""%1 = func.call @index() : () -> tensor<ui32>
      %2 = stablehlo.convert %1 : (tensor<ui32>) -> tensor<f32>
      %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> {local}
      sdy.return %3 : {local}"""
    found = without_sharding(manual(numbered))
    assert "partition_id" not in found
    assert "dense<0> : tensor<1xui32>" in found
    assert "dense<2> : tensor<1xui32>" in found


PAIRS = [[0, 2], [2, 0], [1, 3], [3, 1]]


def loop(carried: str, step: str) -> str:
    """Returns a loop that contains a collective and runs while `%n`, which starts at `carried`, is less than 3."""
    return f"""%one = stablehlo.constant dense<1> : tensor<ui32>
      %three = stablehlo.constant dense<3> : tensor<ui32>
      %start = {carried}
      %1:2 = stablehlo.while(%n = %start, %v = %b) : tensor<ui32>, tensor<4x8xf32> cond {{
        %p = stablehlo.compare LT, %n, %three : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        %m = stablehlo.add %n, {step} : tensor<ui32>
        %w = "stablehlo.collective_permute"(%v) <{{source_target_pairs = dense<{PAIRS}> : tensor<4x2xi64>}}>
          : (tensor<4x8xf32>) -> tensor<4x8xf32>
        stablehlo.return %m, %w : tensor<ui32>, tensor<4x8xf32>
      }}
      sdy.return %1#1 : tensor<4x8xf32>"""


def test_devices_go_through_a_loop_together() -> None:
    found = without_sharding(manual(loop("stablehlo.constant dense<0> : tensor<ui32>", "%one")))
    # The counter is carried once, and the shards of both devices are exchanged.
    assert found.count("stablehlo.while") == 1
    assert ": tensor<ui32>, tensor<4x8xf32>, tensor<4x8xf32>" in found
    assert "collective_permute" not in found


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (
            """%1 = stablehlo.custom_call @f(%b) : (tensor<4x8xf32>) -> tensor<4x8xf32>
            sdy.return %1 : tensor<4x8xf32>""",
            "'stablehlo.custom_call' in a manual computation cannot run on one device",
        ),
        (
            loop("func.call @index() : () -> tensor<ui32>", "%one"),
            "'stablehlo.while' with collectives cannot run on one device: "
            "devices may run different numbers of iterations",
        ),
        (
            """%1 = "stablehlo.collective_permute"(%b) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}>
                : (tensor<4x8xf32>) -> tensor<4x8xf32>
            sdy.return %1 : tensor<4x8xf32>""",
            "'stablehlo.collective_permute' communicates along axes that are not manual: [0, 1]",
        ),
    ],
)
def test_what_has_no_meaning_on_one_device_is_refused(body: str, complaint: str) -> None:
    with pytest.raises(RunError, match="--no-verify disables the comparison") as raised:
        without_sharding(manual(body))
    assert [one.message for one in raised.value.diagnostics] == [complaint]
