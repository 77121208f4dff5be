# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the shardings that propagation starts from are: the names of these places, and the place each axis is from.

The names are Shardy's, but for shardings that an op has of its own, which it does not name.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlir_shard.sharding.axes import AxisRef

# What an origin is called at the place that it names.
SELF = "self"


def input_origin(index: int) -> str:
    """The sharding of an argument of a function."""
    return f"input: {index}"


def output_origin(index: int) -> str:
    """The sharding of a result of a function."""
    return f"output: {index}"


def constraint_name(number: int) -> str:
    """A sharding constraint."""
    return f"constraint_{number}"


def op_name(number: int) -> str:
    """An op that has a sharding for its results."""
    return f"op_{number}"


def computation_name(number: int) -> str:
    """A manual computation; its shardings are origins of their own."""
    return f"mc_{number}"


def computation_input_origin(computation: str, index: int) -> str:
    """An in-sharding of the manual computation of this name."""
    return f"{computation}_input: {index}"


def computation_output_origin(computation: str, index: int) -> str:
    """An out-sharding of the manual computation of this name."""
    return f"{computation}_output: {index}"


def find_origin(origins: Mapping[AxisRef, str], axis: AxisRef) -> str | None:
    """The origin of an axis, or that of the first axis it was split from or merged of; None for an unknown one."""
    if axis in origins:
        return origins[axis]
    return next((origin for other, origin in origins.items() if other.contains(axis) or axis.contains(other)), None)


def origins_by_name(origins: Mapping[AxisRef, str], own: str | None = None) -> dict[str, str]:
    """The origins by axes as text, without the quotes of names; the origin called `own` is SELF."""
    return {str(axis).replace('"', ""): SELF if origin == own else origin for axis, origin in origins.items()}
