# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The mesh axes of listed groups of devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlir_shard.resharding.cost.communication import GroupAxis


def axes_of_groups(groups: Any, mesh: Mapping[str, int]) -> tuple[GroupAxis, ...]:
    """Returns the mesh axes of groups, in the order of the mesh, or the size of a group if it is not along axes.

    groups: the numbers of devices, a row for each group; devices are numbered along the axes, the last axis fastest.
    """
    groups = np.asarray(groups)
    shape = tuple(mesh.values())
    size = groups.shape[-1]
    places = np.stack(np.unravel_index(groups, shape), -1)
    varying = [axis for axis in range(len(shape)) if (places[:, :, axis] != places[:, :1, axis]).any()]
    if int(np.prod([shape[axis] for axis in varying])) == size:
        return tuple(GroupAxis(name, shape[axis]) for axis, name in enumerate(mesh) if axis in varying)
    return (GroupAxis("", size),)
