# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interface of a function: types, and the part of each tensor that a rank holds by the function's shardings.

A function may take and return values that are not tensors: scalars cross its boundary as tensors of rank 0, tokens do
not cross it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir.editing import functions, operations_named, ops_in
from mlir_shard.ir.values import is_token
from mlir_shard.passes import diagnostic
from mlir_shard.runtime import arrays
from mlir_shard.runtime.arrays import TensorSpec
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.positive_arguments import positive_arguments
from mlir_shard.runtime.program import Port
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.layout import Box, device_box
from mlir_shard.transforms.device_sets import count_devices, have_different_devices

_tensor = host.dialect("tensor")
_EXTRACT = "tensor.extract"
_FROM_ELEMENTS = "tensor.from_elements"
_DONATED = ("tf.aliasing_output", "jax.buffer_donor")
CROSSING = frozenset({_EXTRACT, _FROM_ELEMENTS})
"""The ops that extract scalars from tensors, and build tensors from scalars."""


def is_scalar(type_: Any) -> bool:
    """Returns whether a type is an element type of tensors."""
    return isinstance(type_, (ir.ComplexType, ir.FloatType, ir.IndexType, ir.IntegerType))


def cross_as_tensors(module: Any, function: Any) -> None:
    """Replaces scalar arguments and results of a function by tensors of rank 0, in place, and drops its tokens.

    Functions that call it are erased.
    """
    type_ = function.attributes["function_type"].value
    if not any(is_scalar(one) or is_token(one) for one in (*type_.inputs, *type_.results)):
        return
    _erase_callers(module, function)
    drop_tokens(function)
    with function.location:
        inputs = _take(function.regions[0].blocks[0])
        for last in operations_named(function, "func.return"):
            _give(last)
        results = [_crossing(one) for one in function.attributes["function_type"].value.results]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def drop_tokens(function: Any) -> None:
    """Drops the tokens that a function takes and returns, in place; tokens that it took are created in its body."""
    type_, block = function.attributes["function_type"].value, function.regions[0].blocks[0]
    sides = (type_.inputs, type_.results)
    if not any(is_token(one) for side in sides for one in side):
        return
    kept = [[index for index, one in enumerate(side) if not is_token(one)] for side in sides]
    for indices, name in zip(kept, ("arg_attrs", "res_attrs"), strict=True):
        if name in function.attributes:
            every = list(function.attributes[name])
            function.attributes[name] = ir.ArrayAttr.get([every[index] for index in indices], function.context)
    with function.location:
        with ir.InsertionPoint.at_block_begin(block):
            for index in reversed(range(len(block.arguments))):
                argument = block.arguments[index]
                if is_token(argument.type):
                    made = ir.Operation.create("stablehlo.after_all", [argument.type])
                    argument.replace_all_uses_with(made.results[0])
                    block.erase_argument(index)
        for last in operations_named(function, "func.return"):
            with ir.InsertionPoint(last), last.location:
                ir.Operation.create(last.name, [], [last.operands[index] for index in kept[1]])
            last.erase()
        inputs, results = ([side[index] for index in indices] for side, indices in zip(sides, kept, strict=True))
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _crossing(type_: Any) -> Any:
    return ir.RankedTensorType.get([], type_) if is_scalar(type_) else type_


def _take(block: Any) -> list[Any]:
    """Replaces scalar arguments by tensors of rank 0; returns the types of all arguments."""
    with ir.InsertionPoint.at_block_begin(block):
        for argument in reversed(list(block.arguments)):
            if is_scalar(argument.type):
                scalar = argument.type
                argument.set_type(_crossing(scalar))
                taken = ir.Operation.create(_EXTRACT, [scalar], [argument])
                argument.replace_all_uses_except(taken.results[0], [taken])
    return [argument.type for argument in block.arguments]


def _give(last: Any) -> None:
    with ir.InsertionPoint(last), last.location:
        given = [
            _tensor.from_elements(_crossing(value.type), [value]) if is_scalar(value.type) else value
            for value in last.operands
        ]
        ir.Operation.create(last.name, [], given)
    last.erase()


def _erase_callers(module: Any, function: Any) -> None:
    """Erases the functions that call a function, directly or through others."""
    name = ir.StringAttr(function.attributes["sym_name"]).value
    wanted, callers = {name}, functions(module)
    while wanted:
        called = {
            known
            for known, op in callers.items()
            if known != name
            and any(call.attributes["callee"].value in wanted for call in operations_named(op, "func.call"))
        }
        for known in called:
            callers.pop(known).erase()
        wanted = called


def entry_function(module: Any, name: str) -> Any:
    """Returns the `func.func` of a name, or the only public function if `main` is wanted and does not exist.

    Raises RunError if none exists, or it has no body.
    """
    named = {one: op for one, op in functions(module).items() if len(op.regions[0].blocks)}
    if name in named:
        return named[name]
    public = [known for known, op in named.items() if _is_public(op)]
    if name == "main" and len(public) == 1:
        return named[public[0]]
    known = ", ".join(f"@{one}" for one in named) or "none with a body"
    raise RunError(f"the program has no function @{name} to run; its functions: {known}")


def name_of(function: Any) -> str:
    """Returns the name of a function, without `@`."""
    name: str = function.attributes["sym_name"].value
    return name


def check_ranks(module: Any, ranks: int | None) -> int:
    """Returns the number of devices of all meshes of a module; without meshes `ranks`, or else 1.

    Raises RunError if that is not `ranks`.
    """
    if ranks is not None and ranks < 1:
        raise RunError(f"the number of ranks is {ranks}, but must be 1 or more")
    meshes = {f"@{name} of": mesh for name, mesh in sdy.meshes(module).items()} | _inlined_meshes(module)
    described = {
        f"{name} {mesh.total_size} ({mesh})": mesh.total_size
        for name, mesh in meshes.items()
        if not mesh.is_empty and not mesh.is_maximal
    }
    if not described:
        return ranks or 1
    devices = count_devices(meshes.values())
    if ranks is not None and ranks != devices:
        are_several = have_different_devices(meshes.values())
        its = f"its meshes are {', '.join(described)}" if are_several else f"its mesh is {next(iter(described))}"
        raise RunError(f"the program is for {devices} ranks, not {ranks}: {its}")
    return devices


def _inlined_meshes(module: Any) -> dict[str, Mesh]:
    """Returns the meshes inlined in shardings of arguments, results and operations, by their text in a message."""
    found: dict[str, Mesh] = {}

    def add(sharding: TensorSharding | None) -> None:
        if sharding is not None and isinstance(sharding.mesh_or_ref, Mesh):
            found[f"{sharding.mesh_text} of"] = sharding.mesh_or_ref

    for op in ops_in(module):
        for result in op.results:
            add(sdy.get_sharding(result))
        if op.name == "func.func":
            for argument in op.regions[0].blocks[0].arguments if len(op.regions[0].blocks) else ():
                add(sdy.get_sharding(argument))
            for index in range(len(op.attributes["function_type"].value.results)):
                add(sdy.get_result_sharding(op, index))
    return found


def ports(function: Any, ranks: int) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Returns the arguments and the results of a function whose shardings are decided, without tokens.

    Raises RunError if one is not a tensor or scalar that can be passed, or has no place on the devices.
    """
    type_ = function.attributes["function_type"].value
    arguments, donated = function.regions[0].blocks[0].arguments, donated_arguments(function)
    positive = positive_arguments(function)
    return (
        tuple(
            replace(
                _port(f"argument {index}", one, sdy.get_sharding(arguments[index]), function, ranks),
                donated=index in donated,
                positive=index in positive,
            )
            for index, one in enumerate(type_.inputs)
            if not is_token(one)
        ),
        tuple(
            _port(f"result {index}", one, sdy.get_result_sharding(function, index), function, ranks)
            for index, one in enumerate(type_.results)
            if not is_token(one)
        ),
    )


def argument_specs(function: Any) -> dict[str, TensorSpec]:
    """Returns the types of the arrays that a function takes, by argument names; raises RunError as `ports` does."""
    return _specs("argument", function.attributes["function_type"].value.inputs, function)


def result_specs(function: Any) -> dict[str, TensorSpec]:
    """Returns the types of the arrays that a function returns, by result names; raises RunError as `ports` does."""
    return _specs("result", function.attributes["function_type"].value.results, function)


def _specs(kind: str, types: Any, function: Any) -> dict[str, TensorSpec]:
    named = {f"{kind} {index}": one for index, one in enumerate(types) if not is_token(one)}
    return {name: _spec(name, one, function) for name, one in named.items()}


def alone(port: Port) -> Port:
    """Returns the same argument or result, held entirely by one rank."""
    whole = Box((0,) * len(port.spec.shape), port.spec.shape)
    return Port(port.name, port.spec, port.spec, (whole,), positive=port.positive)


def check_local(function: Any, arguments: tuple[Port, ...], results: tuple[Port, ...]) -> None:
    """Raises RunError if the types of a local function are not those that the shardings give for the global ones."""
    type_ = function.attributes["function_type"].value
    for types, expected in ((type_.inputs, arguments), (type_.results, results)):
        local = [str(one) for one in types if not is_token(one)]
        if local != [str(port.local) for port in expected]:
            wanted = ", ".join(str(port.local) for port in expected)
            message = f"the local function has types ({', '.join(local)}), but its shardings require ({wanted})"
            raise RunError("the local program does not match its shardings", [_error(message, function)])


def donated_arguments(function: Any) -> frozenset[int]:
    """Returns the numbers of the arguments whose memory a call may overwrite, by the attributes that JAX gives them."""
    attributes = function.attributes.get("arg_attrs") or ()
    return frozenset(index for index, of in enumerate(attributes) if any(name in of for name in _DONATED))


def _is_public(function: Any) -> bool:
    attributes = function.attributes
    return "sym_visibility" not in attributes or attributes["sym_visibility"].value == "public"


def _error(message: str, op: Any) -> diagnostic.Diagnostic:
    return diagnostic.at("error", message, op.location)


def _port(name: str, type_: Any, sharding: TensorSharding | None, function: Any, ranks: int) -> Port:
    spec = _spec(name, type_, function)
    if sharding is None:
        return _replicated(name, spec, "", ranks)
    mesh = sdy.mesh_of(sharding, function)
    if mesh is None:
        raise _unplaced(f"{name} is sharded on {sharding.mesh_text}, which the program does not define", function)
    if sharding.unreduced_axes:
        axes = ", ".join(map(str, sharding.unreduced_axes))
        message = f"{name} is unreduced along {axes}: a function's arguments and results have no pending reduction"
        raise _unplaced(message, function)
    if mesh.is_empty or mesh.is_maximal:
        return _replicated(name, spec, str(sharding), ranks)
    return _sharded(name, spec, sharding, mesh, ranks)


def _unplaced(message: str, function: Any) -> RunError:
    return RunError("the program cannot be run as it is sharded", [_error(message, function)])


def _replicated(name: str, spec: TensorSpec, sharding: str, ranks: int) -> Port:
    whole = Box((0,) * len(spec.shape), spec.shape)
    return Port(name, spec, spec, (whole,) * ranks, sharding)


def _sharded(name: str, spec: TensorSpec, sharding: TensorSharding, mesh: Mesh, ranks: int) -> Port:
    local = tuple(size or 0 for size in sharding.local_shape(spec.shape, mesh))
    devices = set(mesh.devices)
    boxes = tuple(
        device_box(sharding, mesh, spec.shape, device) if device in devices else None for device in range(ranks)
    )
    return Port(name, spec, replace(spec, shape=local), boxes, str(sharding))


def _spec(name: str, type_: Any, function: Any) -> TensorSpec:
    if is_scalar(type_):
        spec = TensorSpec((), str(type_), is_scalar=True)
    elif isinstance(type_, ir.RankedTensorType) and type_.has_static_shape:
        spec = TensorSpec(tuple(type_.shape), str(type_.element_type))
    else:
        wanted = "expected a tensor of static shape, a scalar or a token"
        message = f"{name} has type {type_}: {wanted}"
        raise RunError("the program cannot be run", [_error(message, function)])
    if not arrays.is_supported(spec.element_type):
        elements = "which has" if spec.is_scalar else "whose elements have"
        message = f"{name} has type {type_}, {elements} no counterpart in NumPy"
        raise RunError("the program cannot be run", [_error(message, function)])
    return spec
