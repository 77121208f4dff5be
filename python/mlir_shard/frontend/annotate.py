# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Annotation of modules with partition specs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.contexts import prepare
from mlir_shard.host import ir
from mlir_shard.runtime import names
from mlir_shard.runtime.interface import entry_function
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.partition_spec import sharding_of_spec
from mlir_shard.sharding.verify.tensor import check_mesh

Specs = Sequence[Any] | Mapping[Any, Any]
"""Partition specs in order, or by index or name pattern; propagation decides the sharding if a spec is None."""


def annotate(
    module: Any,
    mesh: Mesh | None = None,
    *,
    args: Specs = (),
    results: Specs = (),
    values: Mapping[str, Any] | None = None,
    function: str = "main",
) -> None:
    """Annotates arguments, results and values of a function with shardings, in place.

    Args:
        module: an `ir.Module` of any context.
        mesh: the mesh of the axes in the specs; by default the single mesh that the module defines.
        args: specs of arguments, in order, or by index, name or pattern: `{"params.layers.*.wq": P(None, "model")}`.
        results: specs of results, in the same form.
        values: specs of op results, by a pattern of the location's name, such as `jit(step)/tanh`, or by the op's name.
        function: the name of the function.

    Raises:
        ValueError: a pattern selects nothing, or a spec does not match its tensor or the mesh. The module is unchanged.
    """
    op = entry_function(module, function)
    prepare(op.context)
    if mesh is not None and (problem := check_mesh(mesh)):
        raise ValueError(f"the mesh {mesh} is not valid: {problem}")
    known = _only_mesh(module) if mesh is None else mesh
    type_ = op.attributes["function_type"].value
    of_arguments = _shardings("argument", args, names.argument_names(op), type_.inputs, known)
    of_results = _shardings("result", results, names.result_names(op), type_.results, known)
    of_values = _value_shardings(op, values or {}, known)
    symbol = names.mesh_symbol(module, known)
    for index, sharding in of_arguments.items():
        sdy.set_sharding(op.regions[0].blocks[0].arguments[index], _on(sharding, symbol))
    for index, sharding in of_results.items():
        sdy.set_result_sharding(op, index, _on(sharding, symbol))
    for value, sharding in of_values:
        sdy.set_sharding(value, _on(sharding, symbol))


def _only_mesh(module: Any) -> Mesh:
    known = sdy.meshes(module)
    if len(known) != 1:
        defined = ", ".join(f"@{name}" for name in known) or "none"
        raise ValueError(f"no mesh is specified, and the module does not define exactly one: {defined}")
    return next(iter(known.values()))


def _on(sharding: TensorSharding, symbol: str) -> TensorSharding:
    return TensorSharding(symbol, sharding.dim_shardings, unreduced_axes=sharding.unreduced_axes)


def _shardings(
    kind: str, specs: Specs, of: Sequence[str], types: Sequence[Any], mesh: Mesh
) -> dict[int, TensorSharding]:
    chosen = names.select(specs, of, kind)
    return {
        index: _sharding(f"{kind} {index} '{of[index]}'", spec, types[index], mesh)
        for index, spec in enumerate(chosen)
        if spec is not None
    }


def _value_shardings(function: Any, specs: Mapping[str, Any], mesh: Mesh) -> list[tuple[Any, TensorSharding]]:
    found, unused = [], dict.fromkeys(specs)
    for name, op in names.named_values(function) if specs else ():
        pattern = next((one for one in specs if names.matches(one, name) or one == op.name), None)
        if pattern is None:
            continue
        unused.pop(pattern, None)
        if specs[pattern] is not None:
            found += [(one, _sharding(f"value '{name}'", specs[pattern], one.type, mesh)) for one in op.results]
    if unused:
        raise ValueError(
            f"no value matches {next(iter(unused))!r}: values are named by locations, as 'jit(f)/tanh', or ops"
        )
    return found


def _sharding(what: str, spec: Any, type_: Any, mesh: Mesh) -> TensorSharding:
    if not isinstance(type_, ir.RankedTensorType):
        raise ValueError(f"{what} has type {type_}: only tensors of known rank can be sharded")
    shape = [None if type_.is_dynamic_dim(dim) else type_.shape[dim] for dim in range(type_.rank)]
    try:
        return sharding_of_spec(spec, shape, mesh, mesh)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{what} of type {type_}: {error}") from None
