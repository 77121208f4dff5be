# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of partition specs: valid and invalid entries, and axes that are not in the mesh."""

from __future__ import annotations

from typing import Any

import pytest

from mlir_shard.sharding import Mesh
from mlir_shard.sharding.partition_spec import PartitionSpec, sharding_of_spec

MESH = Mesh([("data", 4), ("model", 2)])


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (("data",), '[{"data"}, {}]'),
        ((None, ("model",)), '[{}, {"model"}]'),
        ((["data", "model"],), '[{"data", "model"}, {}]'),
        (((), "data:(2)2"), '[{}, {"data":(2)2}]'),
        ((PartitionSpec.UNCONSTRAINED, "model"), '[{?}, {"model"}]'),
    ],
)
def test_entries(entries: tuple[Any, ...], expected: str) -> None:
    sharding = sharding_of_spec(PartitionSpec(*entries), (8, 16), MESH, "mesh")
    assert str(sharding) == f"<@mesh, {expected}>"


def test_partial_sums_are_along_axes_in_the_order_of_the_mesh() -> None:
    mesh = Mesh([("z", 2), ("y", 2), ("x", 2)])
    sharding = sharding_of_spec(PartitionSpec("y", unreduced={"x", "z"}), (8,), mesh, "mesh")
    assert str(sharding) == '<@mesh, [{"y"}], unreduced={"z", "x"}>'
    with pytest.raises(ValueError, match=r"^axis 'w' is not in the mesh"):
        sharding_of_spec(PartitionSpec(unreduced={"w"}), (8,), mesh, "mesh")


@pytest.mark.parametrize("entry", [1, ("data", 1), {"data": 1}, {"data"}])
def test_what_is_no_entry(entry: Any) -> None:
    with pytest.raises(TypeError, match="is not an entry of a partition spec"):
        PartitionSpec(entry)


@pytest.mark.parametrize(("name", "hint"), [("modle", r": did you mean 'model'\?"), ("x", "")])
def test_axes_that_are_not_in_the_mesh(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match=rf"^axis '{name}' is not in the mesh [^:]*{hint}$"):
        sharding_of_spec(PartitionSpec(name), (8,), MESH, "mesh")
