# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the messages and locations of errors about collectives that cannot be lowered."""

from __future__ import annotations

import pytest

from mlir_shard.dialects.contexts import create_context
from mlir_shard.host import ir
from mlir_shard.runtime.collectives import buffers
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.lowering import llvm

T = "tensor<4xf32>"
CASES = {
    "send to itself": (
        f"%r = shard.send %a on @g grid_axes = [0] destination = [1] : ({T}) -> {T}",
        "so the device at [1] would send to itself: run it under a condition on the process index",
    ),
    "send alone": (
        f"%r = shard.send %a on @g grid_axes = [1] destination = [0] : ({T}) -> {T}",
        "'shard.send' along axes [1]: each device would send to only itself",
    ),
    "receive from itself": (
        f"%r = shard.recv %a on @g grid_axes = [0] source = [0] : ({T}) -> {T}",
        "the device at [0] would receive from itself",
    ),
    "receive without send": (
        f"%r = shard.recv %a on @g grid_axes = [0] : ({T}) -> {T}",
        "'shard.recv' would deadlock: the program has no 'shard.send' of tensor<4xf32> along the same axes of @g",
    ),
    "send without receive": (
        f"%r = shard.send %a on @g grid_axes = [0] destination = [%i] : ({T}, index) -> {T}",
        "'shard.send' would deadlock: the program has no 'shard.recv' of tensor<4xf32> along the same axes of @g",
    ),
    "reduction": (
        f"%r = shard.all_reduce %a on @g grid_axes = [0] reduction = generic : {T} -> {T}",
        "'shard.all_reduce' of tensor<4xf32> by #shard<partial generic> has no lowering to MPI",
    ),
    "reduction of bits": (
        f"%r = shard.all_reduce %a on @g grid_axes = [0] reduction = bitwise_or : {T} -> {T}",
        "'shard.all_reduce' of tensor<4xf32> by #shard<partial bitwise_or> has no lowering to MPI",
    ),
    "dimension of slices": (
        f"%r = shard.all_slice %a on @g grid_axes = [1] slice_axis = 1 : {T} -> {T}",
        "'shard.all_slice' of tensor<4xf32>: dimension 1 is out of range",
    ),
    "dimension of what is put side by side": (
        f"%r = shard.all_to_all %a on @g grid_axes = [1] split_axis = 0 concat_axis = 1 : {T} -> {T}",
        "'shard.all_to_all' of tensor<4xf32>: dimension 1 is out of range",
    ),
    "negative halo": (
        "%n = arith.constant -1 : i64\n"
        f"  %r = shard.update_halo %a on @g split_axes = [[0]] halo_sizes = [%n, 1] : {T}",
        "halos of -1 and 1 along dimension 0 of tensor<4xf32>",
    ),
    "halo": (
        f"%r = shard.update_halo %a on @g split_axes = [[0]] halo_sizes = [2, 1] : {T}",
        "halos of 2 and 1 along dimension 0 of tensor<4xf32>: halo sizes must be between 0 and the interior size of 1",
    ),
    "sizes of halos": (
        f"%r = shard.update_halo %a on @g split_axes = [[0]] halo_sizes = [2] : {T}",
        "has 1 halo sizes for 1 split dimensions, expected two for each",
    ),
    "unknown sizes of halos": (
        f"%n = arith.index_cast %i : index to i64\n"
        f"  %r = shard.update_halo %a on @g split_axes = [[0]] halo_sizes = [%n, 1] : {T}",
        "'shard.update_halo': halo sizes must be constants",
    ),
    "dynamic grid": (
        f"%r = shard.all_reduce %a on @unknown grid_axes = [0] : {T} -> {T}",
        "'shard.all_reduce' is on the grid @unknown, whose shape is dynamic",
    ),
    "two grids": (
        f"%s = shard.all_reduce %a on @g grid_axes = [0] : {T} -> {T}\n"
        f"  %r = shard.all_reduce %s on @other grid_axes = [0] : {T} -> {T}",
        "the grids of the program have different numbers of devices: 2 and 3",
    ),
    "dynamic shape": (
        f"%c = tensor.cast %a : {T} to tensor<?xf32>\n"
        f"  %d = shard.broadcast %c on @g grid_axes = [0] root = [0] : (tensor<?xf32>) -> tensor<?xf32>\n"
        f"  %r = tensor.cast %d : tensor<?xf32> to {T}",
        "'shard.broadcast' of tensor<?xf32>: all sizes must be static",
    ),
    "too many elements": (
        "%c = tensor.empty() : tensor<65536x65536xi8>\n"
        "  %d = shard.all_reduce %c on @g grid_axes = [0] : tensor<65536x65536xi8> -> tensor<65536x65536xi8>\n"
        "  %e = tensor.dim %d, %i : tensor<65536x65536xi8>\n"
        f"  %r = tensor.insert %f into %a[%e] : {T}",
        "MPI supports at most 2147483647 elements",
    ),
    "annotation": (
        f"%s = shard.sharding @g split_axes = [[0]] : !shard.sharding\n  %r = shard.shard %a to %s : {T}",
        "'shard.shard' has no lowering to MPI: the program is not local",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_lowered_is_named_where_it_stands(name: str) -> None:
    operations, message = CASES[name]
    (first,) = [error for error in _errors(operations) if message in error.message][:1]
    lines = operations.split("\n")
    at_fault = next(place for place, line in enumerate(lines) if "shard." in line and "shard.sharding" not in line)
    assert first.position is not None
    # The function's header and the lines before it come first.
    assert first.position.line == 5 + at_fault


def test_all_that_would_wait_is_named() -> None:
    operations = "\n".join(f"  %{index} = shard.recv %a on @g grid_axes = [0] : ({T}) -> {T}" for index in range(2))
    assert len(_errors(f"{operations}\n  %r = arith.addf %0, %1 : {T}")) == 2


@pytest.mark.parametrize("sizes", ["2, 0", "0, 2"])
def test_halos_may_be_as_large_as_what_is_inside(sizes: str) -> None:
    lower(f"%r = shard.update_halo %a on @g split_axes = [[0]] halo_sizes = [{sizes}] : {T}")


def test_elements_that_are_moved_as_they_are() -> None:
    with create_context():
        of_bits = {bits: ir.IntegerType.get_signless(bits) for bits in (1, 7, 8, 9, 16, 24, 32, 64, 128)}
        # One bit is in memory as a byte.
        assert [bits for bits, type_ in of_bits.items() if buffers.is_movable(type_)] == [1, 8, 16, 32, 64]
        assert buffers.is_movable(ir.ComplexType.get(ir.F64Type.get()))
        assert not buffers.is_movable(ir.IntegerType.get_unsigned(8))


def test_a_device_alone_has_what_a_collective_gives() -> None:
    lower(
        f"%s = shard.all_gather %a on @g grid_axes = [1] gather_axis = 0 : {T} -> {T}\n"
        f"  %r = shard.all_reduce %s on @g grid_axes = [] reduction = sum : {T} -> {T}"
    )


def test_what_is_sent_and_received_is_no_error() -> None:
    lower(
        f"%s = shard.send %a on @g grid_axes = [0] destination = [%i] : ({T}, index) -> {T}\n"
        f"  %r = shard.recv %s on @g grid_axes = [0] : ({T}) -> {T}"
    )


def _errors(operations: str) -> list[llvm.Diagnostic]:
    with pytest.raises(RunError) as raised:
        lower(operations)
    return list(raised.value.diagnostics)


def lower(operations: str) -> None:
    text = f"""shard.grid @g(shape = 2x1)
shard.grid @unknown(shape = ?x2)
shard.grid @other(shape = 3)
func.func @main(%a: {T}, %i: index, %f: f32) -> {T} {{
  {operations}
  return %r : {T}
}}"""
    llvm.lower(ir.Module.parse(text, create_context()), "main")
