# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs from torch: modules, functions of tensors, and the results of `torch.export.export`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

import mlir_shard
from mlir_shard.frontend.annotate import Specs, annotate
from mlir_shard.frontend.device_array import DeviceArray
from mlir_shard.frontend.executable import Kept
from mlir_shard.frontend.program import Program
from mlir_shard.frontend.torch_import import Exported, Path, export, lower
from mlir_shard.runtime.arrays import Array
from mlir_shard.sharding import Mesh


def from_torch(
    function: Any,
    *args: Any,
    mesh: Mesh | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    shard: Specs = (),
    donate_argnums: int | Sequence[int] = (),
    dialect: str = "stablehlo",
    context: Any = None,
    **kwargs: Any,
) -> Program:
    """Returns the program of a torch module or function.

    The parameters and buffers of a module become arguments of the program with their names, before the arguments of
    `forward`. A call takes only the latter: the state of the module is moved to the devices in the first call and stays
    there. A tensor of the state that is modified in place between calls is moved again; buffers that the program
    updates, such as running means of BatchNorm, change only on the devices, see `Executable.state`.

    Args:
        function: a `torch.nn.Module`, a function of tensors, or a `torch.export.ExportedProgram`. An exported program
            with dynamic shapes needs arguments, whose sizes replace its dynamic sizes.
        args, kwargs: its arguments, pytrees of tensors, which may be on the device `meta`, and constants; none for an
            exported program with static shapes.
        mesh: the mesh of the specs.
        in_shardings: partition specs of `args`, a pytree prefix; propagation decides the sharding if a spec is None.
        out_shardings: partition specs of the result, in the same form.
        shard: specs of parameters and other arguments, by name or pattern: `{"layers.*.wq.weight": P("model", None)}`,
            see `annotate`.
        donate_argnums: the arguments whose memory a call may overwrite, as in `jax.jit`.
        dialect: the dialect of the module: `stablehlo`, which both engines run, `linalg` or `tosa`.
        context: the context of the module; by default a new one.

    Raises:
        ValueError: torch-mlir cannot lower an operator, a spec does not match its tensor or the mesh, or its tree is
            not a prefix.
        TypeError: `function` is not one of these objects.
    """
    exported = export(function, args, kwargs, dialect)
    of_args = _Names(exported.parameters)
    state, paths = exported.state, exported.tensor_paths
    names = [*state, *map(of_args, paths)]
    results = [""] * exported.result_count
    for name, index in exported.state_updates.items():
        results[index] = name
    for path, place in exported.results.items():
        if isinstance(place, int):
            results[place] = "result" + pytree.keystr(path)
    numbers = {donate_argnums} if isinstance(donate_argnums, int) else set(donate_argnums)
    donated = {of_args(path) for path in paths if path[0].idx == 0 and path[1].idx in numbers}
    bytecode = lower(exported, dialect, names, results, donated)
    module = mlir_shard.parse(bytecode, context or mlir_shard.create_context())
    if in_shardings is not None or out_shardings is not None:
        in_specs = _specs((in_shardings, None), exported.arguments, "in_shardings")
        out_specs = _specs(out_shardings, exported.results, "out_shardings")
        annotate(
            module,
            mesh,
            args=[*[None] * len(state), *map(in_specs.__getitem__, paths)],
            results={place: out_specs[path] for path, place in exported.results.items() if isinstance(place, int)},
        )
    updates = {names.index(name): index for name, index in exported.state_updates.items()}
    pack, unpack = _Pack(exported, of_args), _Unpack(exported)
    program = Program(
        module,
        mesh,
        pack=pack,
        unpack=unpack,
        updates=updates,
        unsigned_arguments=exported.unsigned_arguments,
        unsigned_results=exported.unsigned_results,
    )
    return program.annotate(args=shard) if shard else program


class _Names:
    """A function from paths of arguments to their names, such as `params['w1']`."""

    def __init__(self, parameters: Sequence[str]) -> None:
        self._positional = parameters

    def __call__(self, path: Path) -> str:
        which, argument, *rest = path
        if which.idx == 1:
            name = argument.key
        elif argument.idx < len(self._positional):
            name = self._positional[argument.idx]
        else:
            name = f"arg{argument.idx}"
        return str(name) + pytree.keystr(tuple(rest))


def _specs(specs: Any, tree: Mapping[Path, Any], what: str) -> dict[Path, Any]:
    """Returns the spec of each leaf of a tree, by its path; `specs` must be a prefix of the tree."""
    given = dict(pytree.tree_flatten_with_path(specs)[0])
    used, found = set(), {}
    for path in tree:
        prefix = next((path[:count] for count in range(len(path) + 1) if path[:count] in given), None)
        if prefix is None:
            raise ValueError(f"{what} has no spec for {_place(path)}: None leaves a sharding to propagation")
        used.add(prefix)
        found[path] = given[prefix]
    unused = [path for path, spec in given.items() if path not in used and spec is not None]
    if unused:
        raise ValueError(f"{what} has a spec for {_place(unused[0])}, where the program has no tensor")
    return found


def _place(path: Path) -> str:
    return pytree.keystr(path) or "the whole"


class _Pack:
    """A function that flattens the arguments of a call, after the state of the module, which stays on the devices."""

    def __init__(self, exported: Exported, names: _Names) -> None:
        self._state, self._arguments, self._names = exported.state, exported.arguments, names
        self._tensor_paths = exported.tensor_paths

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        given = dict(pytree.tree_flatten_with_path((tuple(args), dict(kwargs)))[0])
        for path in self._arguments.keys() ^ given.keys():
            what = "is not given" if path in self._arguments else "is given, but the program has no such argument"
            raise TypeError(f"'{self._names(path)}' {what}")
        for path, constant in self._arguments.items():
            if path not in self._tensor_paths and given[path] != constant:
                made_for = f"the program was specialized for {constant!r}"
                raise TypeError(f"'{self._names(path)}' is {given[path]!r}, but {made_for}")
        kept = [Kept(_version(tensor), partial(_array, name, tensor)) for name, tensor in self._state.items()]
        return [*kept, *(_array(self._names(path), given[path]) for path in self._tensor_paths)]


class _Unpack:
    """A function that builds the pytree of results."""

    def __init__(self, exported: Exported) -> None:
        self._places, self._tree = list(exported.results.values()), exported.result_tree

    def __call__(self, results: Sequence[DeviceArray]) -> Any:
        leaves = [results[place] if isinstance(place, int) else place.value for place in self._places]
        return pytree.tree_unflatten(leaves, self._tree)


def _array(name: str, leaf: Any) -> Array | DeviceArray:
    if not isinstance(leaf, torch.Tensor):
        return leaf if isinstance(leaf, DeviceArray) else np.asarray(leaf)
    if leaf.is_meta:
        raise ValueError(f"'{name}' of shape {tuple(leaf.shape)} is on the device 'meta', which holds no elements")
    tensor = leaf.detach().cpu().resolve_conj().resolve_neg()
    if tensor.dtype == torch.bfloat16:
        import ml_dtypes

        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return np.asarray(tensor.numpy())


def _version(tensor: torch.Tensor) -> tuple[int, int]:
    """Returns a value that changes when the tensor is written to; not for tensors of inference mode."""
    return tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version
