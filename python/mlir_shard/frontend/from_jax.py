# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs from JAX: functions, jitted functions, and the results of `jax.jit(...).lower` and `jax.export`.

A function is lowered for abstract devices, so the mesh may have more devices than the machine, and arguments may be
`jax.ShapeDtypeStruct`s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np

import mlir_shard
from mlir_shard.frontend.annotate import Specs, annotate
from mlir_shard.frontend.device_array import DeviceArray
from mlir_shard.frontend.program import Program
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.interface import drop_tokens, entry_function
from mlir_shard.sharding import Mesh
from mlir_shard.sharding.partition_spec import PartitionSpec


def from_jax(
    function: Any,
    *args: Any,
    mesh: Any = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    shard: Specs = (),
    static_argnums: int | Sequence[int] = (),
    donate_argnums: int | Sequence[int] = (),
    context: Any = None,
    **kwargs: Any,
) -> Program:
    """Returns the program of a JAX function.

    Args:
        function: a function, a jitted one, a `jax.stages.Lowered` or a `jax.export.Exported`.
        args, kwargs: its arguments, pytrees of arrays or `jax.ShapeDtypeStruct`s; none for a lowered function.
        mesh: a `Mesh` of this package or of JAX, which is the current mesh while the function is traced. By default the
            mesh of the function's own shardings.
        in_shardings: partition specs of `args`, a pytree prefix as in `jax.jit`; propagation decides if a spec is None.
        out_shardings: partition specs of the result, in the same form.
        shard: further specs of arguments, by index, name or pattern, see `annotate`.
        static_argnums, donate_argnums: as in `jax.jit`.
        context: the context of the module; by default a new one.

    Raises:
        ValueError: a spec does not match its tensor or the mesh, or its tree is not a prefix.
        TypeError: `function` is not one of these objects.
    """
    import jax

    of_jax = _mesh_of_jax(mesh)
    if hasattr(function, "mlir_module") and hasattr(function, "in_tree"):
        lowered, kept = function, tuple(function.module_kept_var_idx)
        text, avals = function.mlir_module(), function.in_avals
        out_avals = function.out_avals
    else:
        if not hasattr(function, "as_text"):
            function = _lower(function, args, kwargs, of_jax, static_argnums, donate_argnums)
        lowered, avals = function, jax.tree.leaves(function.in_avals)
        text, kept = function.as_text(debug_info=True), _kept(function, len(avals))
        out_avals = jax.tree.leaves(function.out_info)
    module = mlir_shard.parse(text, context or mlir_shard.create_context())
    # Ordered effects add tokens, which JAX counts neither as arguments nor as results.
    drop_tokens(entry_function(module, "main"))
    positional, keywords = lowered.in_tree.children()
    # As in `jax.jit`, `in_shardings` is for positional arguments.
    in_specs = [*_prefix(in_shardings, positional, "in_shardings"), *[None] * keywords.num_leaves]
    out_specs = _prefix(out_shardings, lowered.out_tree, "out_shardings")
    ours = _mesh_of_ours(mesh)
    if any(spec is not None for spec in (*in_specs, *out_specs)):
        annotate(module, ours, args=[in_specs[index] for index in kept], results=out_specs)
    pack, unpack = _Pack(lowered.in_tree, kept), _Unpack(lowered.out_tree, tuple(out_avals))
    program = Program(module, ours, pack=pack, unpack=unpack)
    return program.annotate(args=shard) if shard else program


def _lower(
    function: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    mesh: Any,
    static_argnums: int | Sequence[int],
    donate_argnums: int | Sequence[int],
) -> Any:
    import jax
    from jax.extend import source_info_util

    # Locations of operations must be in the user's files, not in this one.
    source_info_util.register_exclusion(__file__)
    if not callable(function):
        raise TypeError(f"{function!r} is not a function, a Lowered or an Exported of JAX")
    if not hasattr(function, "trace"):
        function = jax.jit(function, static_argnums=static_argnums, donate_argnums=donate_argnums, keep_unused=True)
    current: AbstractContextManager[Any] = nullcontext() if mesh is None else jax.sharding.use_abstract_mesh(mesh)
    with current:
        return function.trace(*args, **kwargs).lower(lowering_platforms=("cpu",))


def _kept(lowered: Any, count: int) -> tuple[int, ...]:
    """Returns the indices of the arguments that the module has: `jax.jit` drops unused ones."""
    kept = lowered._lowering.compile_args.get("kept_var_idx")
    return tuple(range(count)) if kept is None else tuple(sorted(kept))


def _mesh_of_jax(mesh: Any) -> Any:
    import jax

    if mesh is None:
        return None
    if isinstance(mesh, Mesh):
        return jax.sharding.AbstractMesh(tuple(axis.size for axis in mesh.axes), mesh.axis_names)
    return getattr(mesh, "abstract_mesh", mesh)


def _mesh_of_ours(mesh: Any) -> Mesh | None:
    if mesh is None or isinstance(mesh, Mesh):
        return mesh
    import jax

    ids = [device.id for device in mesh.devices.flat] if isinstance(mesh, jax.sharding.Mesh) else []
    return Mesh(zip(mesh.axis_names, mesh.axis_sizes, strict=True), ids)


class _Unspecified:
    """The leaf that replaces a spec of None, which JAX counts as a subtree without leaves."""

    spec = None


def _prefix(specs: Any, tree: Any, what: str) -> list[Any]:
    """Returns the spec of each leaf of a tree; `specs` must be a prefix of the tree."""
    import jax

    def is_spec(one: Any) -> bool:
        return isinstance(one, (PartitionSpec, jax.sharding.PartitionSpec, jax.sharding.Sharding))

    full = jax.tree.unflatten(tree, range(tree.num_leaves))
    leaves = jax.tree.map(
        lambda one: _Unspecified() if one is None else one, specs, is_leaf=lambda one: one is None or is_spec(one)
    )
    try:
        spread = jax.tree.broadcast(leaves, full, is_leaf=is_spec)
    except ValueError as error:
        raise ValueError(f"{what} is not a pytree prefix of the program's: {error}") from error
    return [getattr(one, "spec", one) for one in jax.tree.leaves(spread, is_leaf=is_spec)]


class _Pack:
    """A function that flattens the arguments of a call as JAX does, and drops those that the module does not have."""

    def __init__(self, tree: Any, kept: tuple[int, ...]) -> None:
        self._tree, self._kept = tree, kept

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        import jax

        leaves, tree = jax.tree.flatten((tuple(args), dict(kwargs)))
        if tree != self._tree:
            raise TypeError(f"the arguments have the structure {tree}, but the program expects {self._tree}")
        return [_array(leaves[index]) for index in self._kept]


class _Unpack:
    """A function that builds the pytree of results, with PRNG keys for results that are keys."""

    def __init__(self, tree: Any, avals: tuple[Any, ...]) -> None:
        self._tree, self._avals = tree, avals

    def __call__(self, results: Sequence[DeviceArray]) -> Any:
        import jax

        return jax.tree.unflatten(self._tree, map(_result, results, self._avals))


def _array(leaf: Any) -> Array | DeviceArray:
    import jax

    if isinstance(leaf, DeviceArray):
        return leaf
    if _is_key(leaf):
        return np.asarray(jax.random.key_data(leaf))
    array = np.asarray(leaf)
    # As in `jax.jit`, types have 64 bits only if they are enabled.
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)


def _is_key(leaf: Any) -> bool:
    import jax

    return hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _result(array: DeviceArray, aval: Any) -> Any:
    import jax

    if not _is_key(aval):
        return array
    for impl in ("threefry2x32", "rbg", "unsafe_rbg"):
        if jax.eval_shape(partial(jax.random.key, impl=impl), 0).dtype == aval.dtype:
            return jax.random.wrap_key_data(np.asarray(array), impl=impl)
    raise TypeError(f"a result is a PRNG key of an implementation that is not one of JAX: {aval.dtype}")
