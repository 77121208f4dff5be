# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Readers of meshes, tensor types and shardings on a command line, in sdy's syntax or in a short form.

| value | in sdy's syntax | in short |
| --- | --- | --- |
| mesh | `<["x"=2, "y"=3]>` | `x=2,y=3`, or `2x3` with axes `axis_0` and `axis_1` |
| tensor | `tensor<12x18xf32>` | `12x18xf32` |
| sharding | `<@mesh, [{"x"}, {}], unreduced={"y"}>` | `[{"x"}, {}], unreduced={"y"}`, or `[[0], []], unreduced=[1]` |

The list form is that of upstream's shard dialect: for each dimension the numbers of the mesh axes that shard it.
Every function here raises ValueError, with a message of one line, for a text that cannot be read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from mlir_shard import asm
from mlir_shard.dialects import sdy
from mlir_shard.passes.options import did_you_mean
from mlir_shard.sharding import AxisRef, Mesh, ReductionOp, TensorSharding
from mlir_shard.sharding.verify.tensor import check_mesh

MESH_NAME = "mesh"
"""The name of the mesh in shardings without one."""

MOST_DEVICES = 1 << 16
"""The maximum number of devices of a mesh: plans contain the bytes that each device receives."""

MOST_BYTES = 1 << 46
"""The maximum number of bytes of a tensor: the bytes that `MOST_DEVICES` devices receive must fit 64 bits."""

_SHORT_AXIS = re.compile(r'\s*"?([A-Za-z_][\w.]*)"?\s*=\s*(\d+)\s*')
_GRID = re.compile(r"\d+(x\d+)*")
_TENSOR = re.compile(r"((?:(?:\d+|\?)x)*)(?:(\d+|\?)|([A-Za-z].*))?")
_INTEGER = re.compile(r"(?:i|si|ui)([1-9]\d{0,7})")
_MOST_BITS = (1 << 24) - 1
_COMPLEX = re.compile(r"complex<(\w+)>")
_FLOAT_BYTES = {
    **{"f16": 2, "f32": 4, "f64": 8, "f80": 10, "f128": 16, "bf16": 2, "tf32": 4},
    **{f"f8{kind}": 1 for kind in ("E5M2", "E4M3", "E4M3FN", "E5M2FNUZ", "E4M3FNUZ", "E4M3B11FNUZ", "E3M4", "E8M0FNU")},
    **{f"f{kind}": 1 for kind in ("4E2M1FN", "6E2M3FN", "6E3M2FN")},
}
"""The bytes of MLIR's float types."""
_LIST = r"\[[\d\s,]*\]"
_LISTS = re.compile(
    rf"(\[\s*(?:{_LIST}(?:\s*,\s*{_LIST})*)?\s*\])\s*(?:,?\s*unreduced\s*=\s*(sum|max|min)?\s*({_LIST}))?"
)


@dataclass(frozen=True, slots=True)
class TensorType:
    """A shape, and elements of `element_size` bytes."""

    shape: tuple[int, ...]
    element_type: str
    element_size: int

    def __str__(self) -> str:
        return "x".join([*map(str, self.shape), self.element_type])


def read_mesh(text: str) -> Mesh:
    """Reads a mesh of at most `MOST_DEVICES` devices."""
    mesh = _attribute("mesh", text.strip(), text) if text.strip().startswith("<") else _short_mesh(text)
    if violation := check_mesh(mesh):
        raise ValueError(f"mesh '{text}': {violation}")
    if mesh.is_empty:
        raise ValueError(f"mesh '{text}' has no axes")
    if mesh.total_size > MOST_DEVICES:
        raise ValueError(f"mesh '{text}' has {mesh.total_size} devices, too many to plan for: at most {MOST_DEVICES}")
    return mesh


def read_tensor(text: str) -> TensorType:
    """Reads a tensor type of static shape; the element type is f32 if it is left out."""
    compact = re.sub(r"\s+", "", text)
    if compact.startswith("tensor<") and compact.endswith(">"):
        compact = compact[len("tensor<") : -1]
    match = _TENSOR.fullmatch(compact)
    if not match or not (match[2] or match[3]):
        raise ValueError(f"'{text}' is not a shape with an element type, such as 12x18xf32")
    sizes = [*match[1].split("x")[:-1], *([match[2]] if match[2] else [])]
    if "?" in sizes:
        raise ValueError(f"'{text}' has a dynamic size: specify the size to plan for")
    element_type = match[3] or "f32"
    tensor = TensorType(tuple(map(int, sizes)), element_type, _element_size(element_type))
    if max((prod(tensor.shape), *tensor.shape)) * tensor.element_size > MOST_BYTES:
        raise ValueError(f"'{text}' is too large to plan for: at most {MOST_BYTES} bytes")
    return tensor


def read_sharding(text: str, mesh: Mesh) -> TensorSharding:
    """Reads a sharding by the axes of `mesh`. Does not check that it fits a shape, see `TensorLayout`."""
    stripped = text.strip()
    if match := _LISTS.fullmatch(stripped):
        return _sharding_by_numbers(text, match, mesh)
    if stripped.startswith("["):
        stripped = f"<@{MESH_NAME}, {stripped}>"
    sharding: TensorSharding = _attribute("sharding", stripped, text)
    return sharding


def _attribute(mnemonic: str, attribute: str, text: str) -> Any:
    try:
        return asm.parse_value(mnemonic, attribute, sdy.DIALECT.name)
    except asm.AsmSyntaxError as error:
        raise ValueError(f"{mnemonic} '{text}': {error.message}") from None


def _short_mesh(text: str) -> Mesh:
    if _GRID.fullmatch(text):
        return Mesh((f"axis_{number}", int(size)) for number, size in enumerate(text.split("x")))
    axes = [_SHORT_AXIS.fullmatch(axis) for axis in text.split(",")]
    if not all(axes):
        raise ValueError(f"""'{text}' is not a mesh such as x=2,y=3 or <["x"=2, "y"=3]>""")
    return Mesh((axis[1], int(axis[2])) for axis in axes if axis)


def _element_size(element_type: str) -> int:
    if element_type == "index":
        return 8
    if element_type in _FLOAT_BYTES:
        return _FLOAT_BYTES[element_type]
    if (match := _COMPLEX.fullmatch(element_type)) and match[1] != "index":
        return 2 * _element_size(match[1])
    if (match := _INTEGER.fullmatch(element_type)) and int(match[1]) <= _MOST_BITS:
        return -(-int(match[1]) // 8)
    known = (*_FLOAT_BYTES, "i1", "i8", "i32", "index")
    hint = did_you_mean(element_type, known) or ", such as f32, bf16, i8 or index"
    raise ValueError(f"'{element_type}' is not an element type of known size{hint}")


def _sharding_by_numbers(text: str, match: re.Match[str], mesh: Mesh) -> TensorSharding:
    def axes(numbers: list[int]) -> tuple[AxisRef, ...]:
        for number in numbers:
            if number >= len(mesh.axes):
                raise ValueError(
                    f"sharding '{text}' refers to axis {number}, but the axes of mesh {mesh} are numbered 0 to "
                    f"{len(mesh.axes) - 1}"
                )
        return tuple(AxisRef(mesh.axis_names[number]) for number in numbers)

    try:
        dims, unreduced = json.loads(match[1]), json.loads(match[3] or "[]")
    except json.JSONDecodeError:
        raise ValueError(f"sharding '{text}' has a list with a missing number between commas") from None
    closed = TensorSharding.closed_with(map(axes, dims), MESH_NAME)
    reduction = ReductionOp(match[2] or "sum")
    return replace(closed, unreduced_axes=axes(sorted(unreduced)), reduction_op=reduction)
