# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans reshards with PyTorch for another process; this file is a program.

Reads lines of JSON, [sizes of the mesh axes, shape, [[source, target], ...]], where a sharding is the mesh axes of each
dimension. Writes for each line the steps of each pair, [mesh axes, source dimension or null, target dimension or null];
null if torch is not installed, or does not have this planner. Each part of the mesh has a flattened mesh, so that
gathers are merged if possible.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import sys
from itertools import combinations
from math import prod
from typing import Any

Dims = list[list[int]]


def plan(sizes: list[int], shape: list[int], pairs: list[tuple[Dims, Dims]]) -> list[Any]:
    """Returns the steps of each pair."""
    import torch
    from torch import distributed
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, _redistribute
    from torch.distributed.tensor._dtensor_spec import DTensorSpec, ShardOrderEntry, TensorMeta
    from torch.testing._internal.distributed.fake_pg import FakeStore

    logging.disable(logging.WARNING)
    distributed.init_process_group("fake", rank=0, world_size=prod(sizes), store=FakeStore())
    names = [f"axis_{index}" for index in range(len(sizes))]
    mesh = init_device_mesh("cpu", tuple(sizes), mesh_dim_names=tuple(names))
    for count in range(2, len(names) + 1):
        for some in combinations(names, count):
            mesh[some]._flatten()
    strides = [prod(shape[dim + 1 :]) for dim in range(len(shape))]
    tensor = TensorMeta(torch.Size(shape), tuple(strides), torch.float32)

    def spec(dims: Dims) -> Any:
        placements: list[Any] = [Replicate()] * len(sizes)
        for dim, axes in enumerate(dims):
            for axis in axes:
                placements[axis] = Shard(dim)
        order = tuple(ShardOrderEntry(dim, tuple(axes)) for dim, axes in enumerate(dims) if axes)
        return DTensorSpec(mesh, tuple(placements), tensor, shard_order=order, use_strided_shard_as_shard_order=False)

    def steps(source: Any, target: Any) -> list[Any]:
        if source == target:
            return []
        infos = _redistribute._gen_transform_infos_non_cached(source, target, use_graph_based_transform=True)
        merged = _redistribute._optimize_transform_infos(infos, mesh, source.placements, target.placements)
        return [_step(info) for info in merged]

    return [steps(spec(source), spec(target)) for source, target in pairs]


def _step(info: Any) -> list[Any]:
    axes = list(getattr(info, "original_mesh_dims", (info.mesh_dim,)))
    return [axes, *(one.dim if one.is_shard() else None for one in info.src_dst_placements)]


def main() -> None:
    """Answers the requests on standard input, each in a fork, because torch has one world of ranks per process."""
    with contextlib.suppress(ImportError):
        importlib.import_module("torch.distributed.tensor")
    for request in sys.stdin:
        process = os.fork()
        if not process:
            _answer(request)
            os._exit(0)
        if os.waitpid(process, 0)[1]:
            sys.exit(1)


def _answer(request: str) -> None:
    try:
        answer = plan(*json.loads(request))
    except ImportError:
        answer = None
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
