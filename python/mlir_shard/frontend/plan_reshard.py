# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of reshards for partition specs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.resharding.plan import Plan, PlanStep
from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import Mesh
from mlir_shard.sharding.partition_spec import sharding_of_spec
from mlir_shard.tools.reshard import notation, picture, report

_WIDTH = 120


@dataclass(frozen=True, slots=True)
class ReshardPlan:
    """The cheapest plan between two shardings. Prints as the report of `shard-reshard`; in notebooks as its picture."""

    plan: Plan
    title: str

    @property
    def steps(self) -> tuple[PlanStep, ...]:
        """The steps of the plan with their costs."""
        return self.plan.steps

    @property
    def time(self) -> float:
        """The predicted seconds."""
        return self.plan.time

    @property
    def bytes_received(self) -> int:
        """The maximum number of bytes that a device receives."""
        return self.plan.bytes_received

    @property
    def total_bytes(self) -> int:
        """The number of bytes that all devices receive."""
        return self.plan.total_bytes

    def _repr_svg_(self) -> str:
        return picture.svg(self.plan, self.title)

    def __str__(self) -> str:
        return report.text(self.plan, self.title, (), _WIDTH, in_colour=False)

    __repr__ = __str__


def plan_reshard(
    mesh: Mesh,
    shape: Sequence[int],
    dtype: Any,
    source: Any,
    target: Any,
    *,
    target_mesh: Mesh | None = None,
    cost_model: CostModel | None = None,
) -> ReshardPlan:
    """Returns the cheapest plan from one sharding of a tensor to another.

    Args:
        mesh: the mesh of the source and, without `target_mesh`, of the target.
        shape: the shape of the tensor.
        dtype: the type of its elements, as in NumPy or MLIR: `np.float32`, `"bf16"`.
        source, target: the partition specs.
        target_mesh: the mesh of the target, of the same or other devices.
        cost_model: the latency and bandwidth of mesh axes, and the objective.

    Raises:
        ValueError: a spec does not match the shape or the mesh, or the cost model has a link for an unknown axis.
    """
    after = target_mesh or mesh
    tensor = notation.read_tensor("x".join([*map(str, shape), _element_type(dtype)]))
    layouts = [
        TensorLayout(sharding_of_spec(spec, tuple(shape), one, one), one, tuple(shape))
        for spec, one in ((source, mesh), (target, after))
    ]
    model = cost_model or CostModel()
    model.check_axes((*mesh.axis_names, *after.axis_names))
    plan = Planner(model).plan(layouts[0], layouts[1], tensor.element_size)
    meshes = dict.fromkeys((str(mesh), str(after)))
    return ReshardPlan(plan, f"{tensor} on mesh {', then '.join(meshes)}")


def _element_type(dtype: Any) -> str:
    if isinstance(dtype, str) and dtype not in _NAMES:
        return dtype
    name = str(getattr(dtype, "name", None) or getattr(dtype, "__name__", dtype))
    return _NAMES.get(name, name)


_NAMES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "bool": "i1",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    **{f"int{bits}": f"i{bits}" for bits in (4, 8, 16, 32, 64)},
    **{f"uint{bits}": f"ui{bits}" for bits in (4, 8, 16, 32, 64)},
}
