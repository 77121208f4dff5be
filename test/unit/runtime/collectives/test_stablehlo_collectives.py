# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares StableHLO's collectives under mpiexec with their definitions, and tests their groups of devices."""

from __future__ import annotations

from typing import Any

import pytest
from collectives_on_ranks import cases, run, stablehlo_cases
from runtime.launchers import installation
from runtime.local_program import needs_mpich

from mlir_shard import create_context, parse
from mlir_shard.runtime import RunError
from mlir_shard.runtime.collectives.stablehlo_devices import Processes, groups_of, pairs_of
from mlir_shard.runtime.lowering import llvm

KINDS = {
    *("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "reduce_scatter"),
    *("partition_id", "replica_id"),
}
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
ALONG_X = (
    "replica_groups = #stablehlo.replica_group_mesh_axes<"
    'mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 4>]>, '
    'axes = [#stablehlo.axis_ref<name = "x">]>'
)
ALONE, GRID, UNKNOWN = Processes(4, 1, 4), Processes(4, 2, 2), Processes(4)


@needs_mpich
@pytest.mark.parametrize(("mpi", "ranks"), [*(("mpich", ranks) for ranks in cases.GRIDS), ("openmpi", 6)])
def test_collectives_are_what_they_are_defined_to_be(mpi: str, ranks: int) -> None:
    tried = stablehlo_cases.some_cases(ranks, 1, 3)
    assert {case.name for case in tried} <= KINDS
    failed = run.failures(tried, ranks, mpi=installation(mpi))
    assert not failed, "\n".join(map(str, failed))


def collective(name: str, attributes: str, head: str = "") -> tuple[Any, Any]:
    """Returns a module with one collective of a vector, whose result has the same size, and the collective."""
    region = (
        """({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %z = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %z : tensor<f32>
    }) """
        if name == "all_reduce"
        else ""
    )
    text = f"""{head}
    func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = "stablehlo.{name}"(%a) <{{{attributes}}}> {region}: (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }}"""
    module = parse(text, create_context())
    function = module.body.operations[len(module.body.operations) - 1]
    return module, function.regions[0].blocks[0].operations[0].operation


def groups(lists: list[list[int]]) -> str:
    return f"replica_groups = dense<{lists}> : tensor<{len(lists)}x{len(lists[0])}xi64>"


@pytest.mark.parametrize(
    ("processes", "attributes", "expected"),
    [
        # flattened_ids: groups of devices, in their order.
        (GRID, f"{groups([[3, 0], [1, 2]])}, {CHANNEL}, use_global_device_ids", ((3, 0), (1, 2))),
        (GRID, f"{groups([[3, 0, 1], [2, -1, -1]])}, {CHANNEL}, use_global_device_ids", ((3, 0, 1), (2,))),
        # cross_replica: one group for each partition.
        (GRID, groups([[1, 0]]), ((2, 0), (3, 1))),
        (GRID, groups([[0], [1]]), ((0,), (1,), (2,), (3,))),
        (ALONE, groups([[0]]), ((0,), (1,), (2,), (3,))),
        # cross_replica_and_partition: each replica with all of its partitions.
        (GRID, f"{groups([[1, 0]])}, {CHANNEL}", ((2, 0, 3, 1),)),
        (GRID, f"{groups([[0], [1]])}, {CHANNEL}", ((0, 1), (2, 3))),
        (ALONE, f"{groups([[0]])}, {CHANNEL}", ((0, 1, 2, 3),)),
        # If devices are not assigned to replicas, or the numbers are too large for replicas, they are device numbers.
        (UNKNOWN, groups([[0, 2], [1, 3]]), ((0, 2), (1, 3))),
        (ALONE, f"{groups([[0, 2], [1, 3]])}, {CHANNEL}", ((0, 2), (1, 3))),
        (UNKNOWN, "replica_groups = dense<> : tensor<0x0xi64>", ((0, 1, 2, 3),)),
        (GRID, "replica_groups = dense<> : tensor<0x0xi64>", ((0, 2), (1, 3))),
    ],
)
def test_groups_are_of_what_the_channel_says(
    processes: Processes, attributes: str, expected: tuple[tuple[int, ...], ...]
) -> None:
    _module, op = collective("all_reduce", attributes)
    assert groups_of(op, processes) == expected


def test_groups_along_axes_of_a_mesh() -> None:
    axes = '#stablehlo.axis_ref<name = "y">, #stablehlo.axis_ref<name = "x", sub_axis_info = (1)2>'
    written = "#stablehlo.mesh<axes = [{}]{}>".format(
        '#stablehlo.mesh_axis<name = "x", size = 4>, #stablehlo.mesh_axis<name = "y", size = 2>', "{}"
    )
    reversed_ids = f", device_ids = dense<{list(range(7, -1, -1))}> : tensor<8xi64>"
    named = 'shard.grid @mesh(shape = 4x2) {mlir_shard.axis_names = ["x", "y"]}'
    expected = ((0, 4, 1, 5), (2, 6, 3, 7))
    for mesh, head, groups in (
        (written.format(""), "", expected),
        (written.format(reversed_ids), "", ((7, 3, 6, 2), (5, 1, 4, 0))),
        ("@mesh", named, expected),
        ("@mesh", 'sdy.mesh @mesh = <["x"=4, "y"=2]>', expected),
    ):
        by_axes = f"replica_groups = #stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [{axes}]>"
        _module, op = collective("all_reduce", f"{by_axes}, {CHANNEL}, use_global_device_ids", head)
        assert groups_of(op, Processes(8)) == groups
        with pytest.raises(RunError) as raised:
            groups_of(op, Processes(4))
        assert "is on a mesh of 8 devices, but the program is for 4" in raised.value.diagnostics[0].message


def test_pairs_are_of_what_the_channel_says() -> None:
    pairs = "source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>"
    _module, op = collective("collective_permute", pairs)
    assert pairs_of(op, GRID) == ((0, 2), (1, 3), (2, 0), (3, 1))
    assert pairs_of(op, ALONE) == pairs_of(op, UNKNOWN) == ((0, 1), (1, 0))
    _module, op = collective("collective_permute", f"{pairs}, {CHANNEL}")
    assert pairs_of(op, GRID) == ((0, 1), (2, 3), (1, 0), (3, 2))


@pytest.mark.parametrize(
    ("name", "attributes", "message"),
    [
        ("all_reduce", groups([[0, 1]]), "'stablehlo.all_reduce': device 2 of 4 is not in any replica group"),
        (
            "all_reduce",
            f"{groups([[0, 1], [2, 3], [4, 5]])}, {CHANNEL}, use_global_device_ids",
            "'stablehlo.all_reduce' refers to device 4, but the devices of the program are 0 to 3",
        ),
        (
            "all_reduce",
            f"{groups([[0, 1, 2, 3]])}, channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>",
            "its channel_handle is #stablehlo.channel_handle<handle = 1, type = 2>, but channels between devices",
        ),
        (
            "all_gather",
            f"{groups([[0, 1], [2, 3]])}, all_gather_dim = 0 : i64",
            "has result type tensor<4xf32> for tensor<4xf32>, which does not match groups of 2 devices",
        ),
        (
            "all_to_all",
            f"{ALONG_X}, split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64",
            "has a split count of 2, but groups of 4 devices",
        ),
        (
            "collective_permute",
            "source_target_pairs = dense<[[0, 4]]> : tensor<1x2xi64>",
            "refers to device 4, but the devices of the program are 0 to 3",
        ),
    ],
)
def test_what_cannot_be_run_is_refused(name: str, attributes: str, message: str) -> None:
    module, _ = collective(name, attributes, "shard.grid @g(shape = 4)")
    with pytest.raises(RunError) as raised:
        llvm.lower(module, "main")
    assert message in raised.value.diagnostics[0].message


def test_the_number_of_devices_has_to_be_known() -> None:
    module, _ = collective("all_reduce", groups([[0, 1]]))
    with pytest.raises(RunError) as raised:
        llvm.lower(module, "main")
    assert "the number of devices of the program is unknown" in raised.value.diagnostics[0].message
