# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Invalid arguments of a planner, a cost model or the simulator raise errors that describe the fault.

Shapes smaller than the mesh are valid: they have correct plans with empty shards.
"""

from __future__ import annotations

import json
import re
import sys
from errno import EACCES
from itertools import product
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from exhaustive_resharding.campaign import ELEMENT_SIZE, planners
from exhaustive_resharding.delivery import Deliveries
from resharding.every_layout import distinct_values, full_axes, mesh_of, shardings

from mlir_shard.resharding import simulation
from mlir_shard.resharding.cost.cost_model import CostModel, Link
from mlir_shard.resharding.cost.lower_bound import lower_bound
from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, Mesh, MeshAxis, ReductionOp, TensorSharding

MESH = mesh_of(2, 4)
WHOLE = TensorSharding.fully_closed(2, "mesh")


def layout(*dims: str, mesh: Mesh = MESH, shape: tuple[int, ...] = (8, 8), **rest: Any) -> TensorLayout:
    """Returns the layout of a tensor sharded along axes given by their letters."""
    closed = TensorSharding.closed_with((map(AxisRef, axes) for axes in dims), "mesh")
    return TensorLayout(TensorSharding("mesh", closed.dim_shardings, **rest), mesh, shape)


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        (["z", ""], 'unknown axis "z"'),
        (["a", "a"], '"a"'),
        (["aa", ""], '"a"'),
        (["a"], "dimension"),
        (["a", "", ""], "dimension"),
    ],
)
def test_shardings_that_do_not_fit(dims: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        layout(*dims)


def test_sub_axes_that_are_none() -> None:
    for part in (AxisRef.sub("b", 1, 3), AxisRef.sub("b", 3, 2), AxisRef.sub("b", 2, 4), AxisRef.sub("a", 4, 2)):
        with pytest.raises(ValueError, match=f'"{part.name}"'):
            TensorLayout(TensorSharding.closed_with([[part], []], "mesh"), MESH, (8, 8))


def test_axes_twice_by_their_parts() -> None:
    parts = [[AxisRef.sub("b", 1, 2)], [AxisRef("b")]]
    with pytest.raises(ValueError, match='"b"'):
        TensorLayout(TensorSharding.closed_with(parts, "mesh"), MESH, (8, 8))


def test_shapes_and_meshes_that_are_none() -> None:
    with pytest.raises(ValueError, match=r"shape \[8, -1\] has a negative size"):
        TensorLayout(WHOLE, MESH, (8, -1))
    with pytest.raises(ValueError, match='"a"'):
        TensorLayout(WHOLE, Mesh((MeshAxis("a", 2), MeshAxis("a", 2))), (8, 8))
    with pytest.raises(ValueError, match="mesh"):
        TensorLayout(WHOLE, mesh_of(2, 2, device_ids=(0, 1, 2, 2)), (8, 8))


@pytest.mark.parametrize("element_size", [0, -4])
def test_elements_without_bytes(element_size: int) -> None:
    with pytest.raises(ValueError, match=f"at least 1 byte, got {element_size}"):
        Planner().plan(layout("a", ""), layout("", "a"), element_size)


def test_tensors_that_cannot_become_each_other() -> None:
    source = layout("a", "")
    partial = layout("b", "", unreduced_axes=(AxisRef("a"),))
    largest = layout("b", "", unreduced_axes=(AxisRef("a"),), reduction_op=ReductionOp.MAX)
    cases = [
        (source, layout("a", "", shape=(8, 9)), r"shape \[8, 8\] cannot become one of shape \[8, 9\]"),
        (source, partial, 'unreduced along "a", but the source is not partial there'),
        (partial, largest, "an unreduced sum cannot become an unreduced max"),
        (partial, layout("", "", mesh=mesh_of(2, 4, device_ids=reversed(range(8)))), "partial values require one mesh"),
    ]
    for before, after, message in cases:
        for is_any in (True, False):
            with pytest.raises(ValueError, match=message):
                Planner(uses_direct_exchange=is_any).plan(before, after, ELEMENT_SIZE)


def test_what_is_too_large_to_simulate() -> None:
    huge = layout("a", "", mesh=mesh_of(1 << 10, 1 << 10), shape=(1 << 20, 1 << 20))
    with pytest.raises(ValueError, match="too many to simulate: at most"):
        simulation.check_size(huge)
    wide = layout("a", "", shape=(1 << 14, 1 << 14))
    with pytest.raises(ValueError, match="too many to simulate: at most"):
        simulation.check_size(wide)


def test_values_of_another_shape_are_not_simulated() -> None:
    with pytest.raises(ValueError, match=r"\[1, 8, 8\]"):
        simulation.place(distinct_values(layout("a", "", shape=(8, 7))), layout("a", ""))


@pytest.mark.parametrize("bandwidth", [0, -1.0, nan, inf, -inf])
def test_links_without_bandwidth(bandwidth: float) -> None:
    with pytest.raises(ValueError, match=f"positive number of bytes per second, got {bandwidth}"):
        Link(latency=0.0, bandwidth=bandwidth)
    with pytest.raises(ValueError, match=r"^bandwidth: "):
        CostModel.from_mapping({"bandwidth": bandwidth})
    with pytest.raises(ValueError, match=r"^links\.b\.bandwidth: "):
        CostModel.from_mapping({"links": {"b": {"bandwidth": bandwidth}}})


@pytest.mark.parametrize("latency", [-1e-9, nan, inf])
def test_links_that_are_too_early_or_never_there(latency: float) -> None:
    with pytest.raises(ValueError, match="number of seconds, at least 0"):
        Link(latency=latency, bandwidth=1.0)
    with pytest.raises(ValueError, match=r"^latency: "):
        CostModel.from_mapping({"latency": latency})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"bandwith": 1}, "^bandwith: unknown key, expected one of latency, bandwidth"),
        ({"links": {"a": {"speed": 1}}}, r"^links\.a\.speed: unknown"),
        ({"links": ["a"]}, "^links: "),
        ({"links": {"a": 3}}, r"^links\.a: "),
        ({"latency": "fast"}, "^latency: expected a number, got 'fast'"),
        ({"bandwidth": True}, "^bandwidth: expected a number, got True"),
        ({"objective": "speed"}, "^objective: expected one of bytes, time, memory, got 'speed'"),
        ({"objective": ["time"]}, "^objective: "),
        ({"memory_limit": 0}, "^memory_limit: expected a positive number of bytes, got 0"),
        ({"memory_limit": 1.5}, "^memory_limit: "),
        ({"memory_limit": "1GB"}, "^memory_limit: "),
    ],
)
def test_cost_models_that_are_none(values: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        CostModel.from_mapping(values)
    path = tmp_path / "costs.json"
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match=message.removeprefix("^")) as raised:
        CostModel.of_file(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("costs.json", b"{", "line 1 column 2"),
        ("costs.json", b"", "line 1 column 1"),
        ("costs.json", b"\xff\xfe", "not UTF-8: invalid start byte at byte 0$"),
        ("costs.json", b"[]", r"expected a table with latency, .*, got \[\]$"),
        ("costs.json", b"3", "expected a table with latency, .*, got 3$"),
        ("costs.json", b'{"latency": NaN}', "latency: .*nan"),
        ("costs.json", b'{"bandwidth": 1' + b"0" * 400 + b"}", r"bandwidth: the number 10+\.\.\.0+ is too large$"),
        (
            "costs.json",
            b'{"links": {"a": {"bandwidth": 1' + b"0" * 400 + b"}}}",
            r"links\.a\.bandwidth: the number .* is too large",
        ),
        ("costs.json", b'{"memory_limit": -1' + b"0" * 400 + b"}", "memory_limit: expected a positive"),
        ("costs.json", b'{"bandwidth": 1' + b"0" * 10000 + b"}", "digits"),
        ("costs.json", b"[" * 100_000, "nested too deeply$"),
        ("costs.json", b'{"latency": ' + b"[" * 900 + b"]" * 900 + b"}", "latency: expected a number, got"),
        ("costs.json", b'{"a\\nb\\ud800": 1}', r"'a\\nb\\ud800': unknown"),
        ("costs.json", b'{"links": {"a\\nb": 1}}', r"links\.'a\\nb': expected a table"),
        ("costs.toml", b"latency =", "Invalid value"),
        ("costs.toml", b"latency = nan", "latency: .*nan"),
        ("costs.toml", b"bandwidth = 1" + b"0" * 400, "bandwidth: the number .* is too large"),
        ("costs.toml", b"a = " + b"[" * 100_000, "nested too deeply$"),
        ("costs.toml", b"latency = 1979-05-27", "latency: expected a number, got"),
        ("costs.toml", b"links = 3", "links: expected a table"),
        ("costs.toml", b"[[links]]\nname = 'a'", "links: expected a table"),
        ("costs.toml", b"\x00", "line 1"),
        ("costs.toml", b"a = '\xe9'", "not UTF-8"),
    ],
    ids=lambda part: str(part[:24]),
)
def test_cost_files_that_are_none(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    if path.suffix == ".toml" and sys.version_info < (3, 11):
        message = r"TOML requires Python 3\.11|not UTF-8"
    with pytest.raises(ValueError, match=f"^cost model {re.escape(str(path))}: .*({message})") as raised:
        CostModel.of_file(path)
    line = str(raised.value)
    assert line.isprintable() and len(line) < 300 + len(str(path))


def test_cost_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    (tmp_path / "costs.toml").write_bytes(b"")
    for name, reason in (
        ("none.toml", "No such file or directory"),
        ("", "Is a directory"),
        ("loop.toml", "Too many levels of symbolic links"),
        ("costs.toml/costs.toml", "Not a directory"),
        ("c" * 300, "File name too long"),
    ):
        path = tmp_path / name
        with pytest.raises(ValueError) as raised:
            CostModel.of_file(path)
        assert str(raised.value) == f"cost model {path}: {reason}"


def test_cost_files_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path, **_: str) -> str:
        raise PermissionError(EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", denied)
    with pytest.raises(ValueError, match=r"^cost model .*costs\.toml: Permission denied$"):
        CostModel.of_file(tmp_path / "costs.toml")


def test_two_links_of_one_axis() -> None:
    link = Link(0.0, 1.0)
    with pytest.raises(ValueError, match='axis "a" has two links'):
        CostModel(links=(("a", link), ("a", link)))


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 2), (0, 5), (0, 0)])
def test_tensors_smaller_than_the_mesh(shape: tuple[int, ...]) -> None:
    every = [TensorLayout(one, MESH, shape) for one in shardings(MESH, full_axes(MESH), 2)]
    deliveries = Deliveries()
    for planner in planners().values():
        for source, target in product(every, repeat=2):
            plan = planner.plan(source, target, ELEMENT_SIZE)
            assert deliveries.fault(plan, source, target) is None
            assert plan.total_bytes >= lower_bound(source, target, ELEMENT_SIZE).total
