# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Local programs of `sdy-convert-global-to-local` compute on every device its shard of the global program's results."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from runtime.local_program import needs_jax
from transforms import stablehlo_interpreter, xla_devices

from mlir_shard import asm, interfaces
from mlir_shard import run as run_passes
from mlir_shard.dialects import sdy
from mlir_shard.dialects.contexts import create_context
from mlir_shard.host import ir
from mlir_shard.passes.registry import PassFailure
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.layout import device_box

pytestmark = needs_jax

HALVES = 'sdy.mesh @m = <["x"=2]>\n'


def check(text: str, passes: str = "sdy-convert-global-to-local", seed: int = 0, high: int = 5) -> str:
    """Compares `main` of a text with one mesh, run as a global program, with each device; returns the local program."""
    module = asm.parse_module(text, create_context())
    mesh = next(iter(sdy.meshes(module).values()))
    function = next(
        op.operation for op in module.body.operations if op.operation.attributes["sym_name"].value == "main"
    )
    type_ = function.attributes["function_type"].value
    arguments = [sdy.get_sharding(argument) for argument in function.regions[0].blocks[0].arguments]
    results = [sdy.get_result_sharding(function, index) for index in range(len(type_.results))]
    random = np.random.default_rng(seed)
    inputs = [random.integers(-1, high, list(one.shape)).astype(_dtype(one.element_type)) for one in type_.inputs]
    # In the global program a collective is the identity.
    without = re.sub(r"= sdy\.[^%]*(%\w+) out_sharding=.* : (tensor<.*>)", r"= stablehlo.reshape \1 : (\2) -> \2", text)
    whole = asm.parse_module(without, create_context())
    run_passes(whole, "builtin.module(sdy-drop-sharding-and-mesh)")
    expected = stablehlo_interpreter.run(whole, inputs)
    run_passes(module, f"builtin.module({passes},sdy-drop-sharding-and-mesh)")
    blocks = [[block(*pair, mesh, device) for pair in zip(inputs, arguments, strict=True)] for device in mesh.devices]
    blocks = [of for _, of in sorted(zip(mesh.devices, blocks, strict=True), key=lambda pair: pair[0])]
    found = xla_devices.run(module, blocks)
    local = asm.print_operation(module.operation)
    for device, values in enumerate(found):
        for got, want, sharding in zip(values, expected, results, strict=True):
            wanted = block(want, sharding, mesh, device)
            np.testing.assert_allclose(got, wanted, rtol=1e-5, err_msg=f"device {device} of {local}")
    return local


def block(whole: Any, sharding: TensorSharding | None, mesh: Mesh, device: int) -> Any:
    return whole if sharding is None else whole[device_box(sharding, mesh, whole.shape, device).slices]


def _dtype(element_type: Any) -> Any:
    return {"f32": np.float32, "i32": np.int32, "i64": np.int64, "i1": np.bool_, "ui32": np.uint32}[str(element_type)]


def on(dims: str, mesh: str = "m") -> str:
    """Returns the sharding attribute of an argument or a result."""
    return f"{{sdy.sharding = #sdy.sharding<@{mesh}, [{dims}]>}}"


def of(*dims: str, mesh: str = "m") -> str:
    """Returns the sharding attribute of the results of an op."""
    return f"sdy.sharding = #sdy.sharding_per_value<[{', '.join(f'<@{mesh}, [{one}]>' for one in dims)}]>"


X_, _X = '{"x"}, {}', '{}, {"x"}'


def reduce_text(initial: str) -> str:
    return f"""
func.func @main(%a: tensor<4x6xf32> {on(_X)}) -> tensor<4xf32> {{
  %init = stablehlo.constant dense<{initial}> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %init) applies stablehlo.add across dimensions = [1]
    : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = sdy.all_reduce {{"x"}} %0 out_sharding=<@m, [{{}}]> : tensor<4xf32>
  return %1 : tensor<4xf32>
}}"""


@pytest.mark.parametrize("initial", ["0.0", "2.5"])
def test_initial_values_count_once(initial: str) -> None:
    check(HALVES + reduce_text(initial))


UPDATE = f"""
func.func @main(%a: tensor<8x3xf32> {on(X_)}, %u: tensor<3x3xf32>, %i: tensor<i32>) -> (tensor<8x3xf32> {on(X_)}) {{
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %a, %u, %i, %z {{{of(X_)}}}
    : (tensor<8x3xf32>, tensor<3x3xf32>, tensor<i32>, tensor<i32>) -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}}"""


@pytest.mark.parametrize("seed", range(12))
def test_update_of_a_part_of_a_sharded_dimension(seed: int) -> None:
    """The update may fall in one shard, span both, or start too far, in which case its start index is clamped."""
    check(HALVES + UPDATE, seed=seed, high=9)


def scatter_text(tensor: str, updates: str, result: str, reduced: str) -> str:
    return f"""
func.func @main(%a: tensor<4x6xf32> {on(tensor)}, %i: tensor<4x1xi32> {on(updates)}, %u: tensor<4x6xf32> {on(updates)})
    -> (tensor<4x6xf32> {on(result)}) {{
  %0 = "stablehlo.scatter"(%a, %i, %u) ({{
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.{"maximum" if "max" in reduced else "add"} %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, {of(tensor)}}}
    : (tensor<4x6xf32>, tensor<4x1xi32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  {f"%1 = sdy.all_reduce {reduced} %0 out_sharding=<@m, [{tensor}]> : tensor<4x6xf32>" if reduced else ""}
  return %{1 if reduced else 0} : tensor<4x6xf32>
}}"""


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("tensor", "updates", "reduced"),
    [(X_, "{}, {}", ""), ("{}, {}", X_, '{"x"}'), ("{}, {}", X_, 'max {"x"}')],
)
def test_scatters(tensor: str, updates: str, reduced: str, seed: int) -> None:
    check(HALVES + scatter_text(tensor, updates, tensor, reduced), seed=seed)


def window_text(inserted: str) -> str:
    """Returns a scatter that updates one element of a row, always in the first column."""
    return f"""
func.func @main(%a: tensor<4x6xf32> {on(_X)}, %i: tensor<3x1xi32>, %u: tensor<{"3xf32" if inserted else "3x1xf32"}>)
    -> (tensor<4x6xf32> {on(_X)}) {{
  %0 = "stablehlo.scatter"(%a, %i, %u) ({{
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }}) {{scatter_dimension_numbers = #stablehlo.scatter<{"" if inserted else "update_window_dims = [1],"}
      inserted_window_dims = [0{", 1" if inserted else ""}], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
      {of(_X)}}} : (tensor<4x6xf32>, tensor<3x1xi32>, tensor<{"3xf32" if inserted else "3x1xf32"}>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}}"""


@pytest.mark.parametrize("inserted", ["inserted", ""])
def test_a_scatter_without_an_index_writes_in_the_first_block(inserted: str) -> None:
    check(HALVES + window_text(inserted))


def gather_text(index_map: str, vector: int) -> str:
    return f"""
func.func @main(%a: tensor<4x6xf32> {on(X_)}, %i: tensor<5x{vector}xi32>) -> tensor<5x6xf32> {{
  %0 = "stablehlo.gather"(%a, %i) {{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
      start_index_map = [{index_map}], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}}
    : (tensor<4x6xf32>, tensor<5x{vector}xi32>) -> tensor<5x6xf32>
  %1 = sdy.all_reduce {{"x"}} %0 out_sharding=<@m, [{{}}, {{}}]> : tensor<5x6xf32>
  return %1 : tensor<5x6xf32>
}}"""


@pytest.mark.parametrize(("index_map", "vector"), [("0", 1), ("0, 1", 2), ("1", 1)])
@pytest.mark.parametrize("seed", range(3))
def test_gathers(index_map: str, vector: int, seed: int) -> None:
    check(HALVES + gather_text(index_map, vector), seed=seed)


SORT = f"""
func.func @main(%a: tensor<4x6xf32> {on(X_)}) -> (tensor<4x6xf32> {on(X_)}) {{
  %0 = "stablehlo.sort"(%a) ({{
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %c = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }}) {{dimension = 1 : i64, {of(X_)}}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}}"""
WHILE = f"""
func.func @main(%a: tensor<4x6xf32> {on(X_)}) -> (tensor<4x6xf32> {on(X_)}) {{
  %n = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.while(%x = %a, %i = %n) : tensor<4x6xf32>, tensor<i32> attributes {{{of(X_, "")}}}
  cond {{
    %z = stablehlo.constant dense<0> : tensor<i32>
    %c = stablehlo.compare GT, %i, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %o = stablehlo.constant dense<1> : tensor<i32>
    %d = stablehlo.subtract %i, %o : tensor<i32>
    %y = stablehlo.add %x, %x {{{of(X_)}}} : tensor<4x6xf32>
    %s = func.call @row(%y) {{{of(X_)}}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    stablehlo.return %s, %d : tensor<4x6xf32>, tensor<i32>
  }}
  return %0#0 : tensor<4x6xf32>
}}
func.func private @row(%a: tensor<4x6xf32> {on(X_)}) -> (tensor<4x6xf32> {on(X_)}) {{
  %i = stablehlo.iota dim = 0 {{{of(X_)}}} : tensor<4x6xf32>
  %0 = stablehlo.add %a, %i {{{of(X_)}}} : tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}}"""
CASE = f"""
func.func @main(%a: tensor<4x6xf32> {on(X_)}, %i: tensor<i32>) -> (tensor<4x6xf32> {on(X_)}) {{
  %0 = "stablehlo.case"(%i) ({{
    %b = stablehlo.optimization_barrier {{{of(X_)}}} %a : tensor<4x6xf32>
    stablehlo.return %b : tensor<4x6xf32>
  }}, {{
    %n = stablehlo.negate %a {{{of(X_)}}} : tensor<4x6xf32>
    stablehlo.return %n : tensor<4x6xf32>
  }}) {{{of(X_)}}} : (tensor<i32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}}"""
SLICES = f"""
func.func @main(%a: tensor<4x6xf32> {on(X_)}, %i: tensor<i32>) -> (tensor<4x2xf32> {on(X_)}) {{
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_slice %a, %z, %i, sizes = [4, 3] {{{of(X_)}}}
    : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
  %1 = stablehlo.slice %0 [0:4, 1:3] {{{of(X_)}}} : (tensor<4x3xf32>) -> tensor<4x2xf32>
  %2 = stablehlo.reverse %1, dims = [1] {{{of(X_)}}} : tensor<4x2xf32>
  return %2 : tensor<4x2xf32>
}}"""
REVERSED = f"""
sdy.mesh @r = <["x"=2], device_ids=[1, 0]>
func.func @main(%a: tensor<4x6xf32> {on(X_)}) -> (tensor<4x6xf32> {on(X_)}) {{
  %0 = stablehlo.reverse %a, dims = [0] {{{of(X_, mesh="r")}}} : tensor<4x6xf32>
  %1 = sdy.collective_permute %0 out_sharding=<@m, [{X_}]> : tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}}"""
WINDOWS = f"""
func.func @main(%a: tensor<8x6xf32> {on(X_)}) -> (tensor<4x6xf32> {on(X_)}) {{
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %z) ({{
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }}) {{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>, {of(X_)}}}
    : (tensor<8x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}}"""
IMAGE = f"""
func.func @main(%a: tensor<1x4x6x2xf32> {on('{}, {"x"}, {}, {}')}, %k: tensor<4x6x2x3xf32> {on('{"x"}, {}, {}, {}')})
    -> tensor<1x1x1x3xf32> {{
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{}}
    {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
    : (tensor<1x4x6x2xf32>, tensor<4x6x2x3xf32>) -> tensor<1x1x1x3xf32>
  %1 = sdy.all_reduce {{"x"}} %0 out_sharding=<@m, [{{}}, {{}}, {{}}, {{}}]> : tensor<1x1x1x3xf32>
  return %1 : tensor<1x1x1x3xf32>
}}"""


# The elements of the first shard are at positions 1 and 3 of five, those of the second at 0 and 2.
PADDED = f"""
func.func @main(%a: tensor<4x6xf32> {on(X_)}) -> (tensor<10x7xf32> {on(X_)}) {{
  %c = stablehlo.constant dense<2.0> : tensor<f32>
  %0 = stablehlo.pad %a, %c, low = [1, 0], high = [2, 1], interior = [1, 0] {{{of(X_)}}}
    : (tensor<4x6xf32>, tensor<f32>) -> tensor<10x7xf32>
  return %0 : tensor<10x7xf32>
}}"""


@pytest.mark.parametrize("text", [SORT, WHILE, CASE, SLICES, REVERSED, WINDOWS, IMAGE, PADDED], ids=range(8))
def test_programs(text: str) -> None:
    check(HALVES + text)


def collective_text(before: str, op: str, after: str) -> str:
    type_ = f"tensor<{'4x' * (before.count('}, {') + 1)}f32>"
    return f"""
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @main(%a: {type_} {on(before)}) -> ({type_} {on(after)}) {{
  %0 = sdy.{op} %a out_sharding=<@m, [{after}]> : {type_}
  return %0 : {type_}
}}"""


@pytest.mark.parametrize("options", ["", "{per-dim-all-gather=true}"])
@pytest.mark.parametrize(
    ("before", "op", "after"),
    [
        ('{"x"}, {"y"}, {}', 'all_gather [{"x"}, {"y"}, {}]', "{}, {}, {}"),
        ('{}, {"y", "x"}, {}', 'all_gather [{}, {"y", "x"}, {}]', "{}, {}, {}"),
        ("{}, {}, {}", 'all_slice [{"y"}, {}, {"x"}]', '{"y"}, {}, {"x"}'),
        ('{"x"}, {}, {"y"}', 'all_to_all [{"x"}: 0->1]', '{}, {"x"}, {"y"}'),
        ('{"x"}, {"y"}, {}, {}', 'all_to_all [{"x"}: 0->3, {"y"}: 1->2]', '{}, {}, {"y"}, {"x"}'),
        ('{"x"}, {"y"}, {}', "collective_permute", '{"y"}, {"x"}, {}'),
    ],
)
def test_collectives(before: str, op: str, after: str, options: str) -> None:
    check(collective_text(before, op, after), f"sdy-convert-global-to-local{options}")


@pytest.mark.parametrize(
    ("before", "op"),
    [('{}, {"y"}', 'replicated_to_unreduced {"x"}'), ('{"y", "x"}, {}', 'sharded_to_unreduced [{"x"}, {}]')],
)
def test_sums_of_what_becomes_partial(before: str, op: str) -> None:
    left = before.replace('"y", "x"', '"y"')
    check(f"""
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4x4xf32> {on(before)}) -> (tensor<4x4xf32> {on(left)}) {{
  %0 = sdy.{op} %a out_sharding=<@m, [{left}], unreduced={{"x"}}> : tensor<4x4xf32>
  %1 = sdy.all_reduce {{"x"}} %0 out_sharding=<@m, [{left}]> : tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}}""")


TAKE = f"""
sdy.mesh @m = <["x"=2]>
func.func @main(%a: tensor<8xf32> {on('{"x"}')}) -> (tensor<8xf32> {on('{"x"}')}) {{
  %0 = "my.take"(%a) {{count = 8 : i64, sdy.sharding = #sdy.sharding_per_value<[<@m, [{{"x"}}]>]>}}
    : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}}"""


def local_take(rule: Any) -> str:
    """Returns the local program when `rule` is registered as the partition rule of its op."""
    interfaces.sharding_rule("my.take", text="i -> i")
    interfaces.partition_rule("my.take")(rule)
    context = create_context()
    context.allow_unregistered_dialects = True
    module = asm.parse_module(TAKE, context)
    run_passes(module, "builtin.module(sdy-convert-global-to-local)")
    return asm.print_operation(module.operation)


def take(op: Any, blocks: interfaces.Blocks) -> None:
    """Sets the count to the size of the local shard."""
    op.results[0].set_type(blocks.result_types[0])
    op.attributes["count"] = ir.IntegerAttr.get(op.attributes["count"].type, blocks.operands[0].block_shape[0])


def take_nothing(op: Any, blocks: interfaces.Blocks) -> None:
    """Raises PartitionError."""
    raise interfaces.PartitionError("it takes all there is")


def take_wrongly(op: Any, blocks: interfaces.Blocks) -> None:
    """Fails with an error of its own."""
    raise KeyError("size")


def test_partition_rule_of_a_user() -> None:
    local = local_take(take)
    assert "count = 4" in local
    assert "(tensor<4xf32>) -> tensor<4xf32>" in local


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (take_nothing, "'my.take' cannot be partitioned: it takes all there is"),
        (take_wrongly, r"the partition rule of 'my.take' \(take_wrongly in .*\) failed in line \d+: KeyError: 'size'"),
    ],
)
def test_partition_rules_that_fail(rule: Any, message: str) -> None:
    with pytest.raises(PassFailure, match=message):
        local_take(rule)


def test_partition_rules_that_cannot_be() -> None:
    with pytest.raises(interfaces.RegistrationError, match="is not an op name"):
        interfaces.partition_rule("take")(take)
    with pytest.raises(interfaces.RegistrationError, match="must be a function of"):
        interfaces.partition_rule("my.take")(lambda op: None)
