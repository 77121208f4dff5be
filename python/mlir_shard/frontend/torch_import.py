# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversion of torch modules and functions to MLIR modules by torch.export and torch-mlir's importer.

A function is first traced with `make_fx`, which supports `torch.func.grad`, unlike torch.export; then it is exported
like a module.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree
from torch_mlir import ir, passmanager
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.extras.fx_decomp_util import get_decomposition_table
from torch_mlir.extras.fx_importer import FxImporter

from mlir_shard.frontend.torch_corrections import (
    DECOMPOSITIONS,
    RESIZES,
    correct_remainders,
    count_indices_from_the_start,
)
from mlir_shard.frontend.torch_unsigned import widen_unsigned
from mlir_shard.ir.editing import operations_where
from mlir_shard.runtime.names import RESULT_NAME

_TO_BACKEND_CONTRACT = "func.func(torch-match-quantized-custom-ops),torchdynamo-export-to-torch-backend-pipeline"
_TO_DIALECT = {
    "linalg": "torch-backend-to-linalg-on-tensors-backend-pipeline",
    "stablehlo": "torch-backend-to-stablehlo-backend-pipeline",
    "tosa": "torch-backend-to-tosa-backend-pipeline",
}
_STATE = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
_RETURNED = OutputKind.USER_OUTPUT
_ENTRY = "main"


Path = tuple[Any, ...]
"""The path of a leaf in a pytree: a tuple of keys of torch's pytrees."""


@dataclass(frozen=True)
class Exported:
    """An exported program with the structure of its arguments and results.

    Attributes:
        program: the program in core ATen operators.
        arguments: the leaves of `(args, kwargs)` by their paths: constants, and an arbitrary tensor for each tensor.
        result_tree: the structure of the result.
        parameters: the names of the positional arguments.
    """

    program: ExportedProgram
    arguments: Mapping[Path, Any]
    result_tree: Any
    parameters: tuple[str, ...] = ()

    @property
    def state(self) -> dict[str, torch.Tensor]:
        """The parameters, buffers and constants by name, which are the first arguments of the program."""
        tensors = {**self.program.constants, **self.program.state_dict}
        return {one.target: tensors[one.target] for one in self._signature.input_specs if one.kind in _STATE}

    @property
    def tensor_paths(self) -> list[Path]:
        """The paths of the tensors among the arguments, in the order of the program's arguments."""
        return [path for path, leaf in self.arguments.items() if isinstance(leaf, torch.Tensor)]

    @property
    def state_updates(self) -> dict[str, int]:
        """The numbers of the results that are new values of tensors of the state, by the tensors' names."""
        return {one.target: index for index, one in enumerate(self._tensor_outputs) if one.kind != _RETURNED}

    @property
    def result_count(self) -> int:
        """The number of results of the program."""
        return len(self._tensor_outputs)

    @property
    def results(self) -> dict[Path, int | ConstantArgument]:
        """The leaves of the result by their paths: the number of the program's result, or a constant."""
        indices = iter([index for index, one in enumerate(self._tensor_outputs) if one.kind == _RETURNED])
        returned = [one.arg for one in self._signature.output_specs if one.kind == _RETURNED]
        leaves = [one if isinstance(one, ConstantArgument) else next(indices) for one in returned]
        return dict(pytree.tree_flatten_with_path(pytree.tree_unflatten(leaves, self.result_tree))[0])

    @property
    def unsigned_arguments(self) -> frozenset[int]:
        """The numbers of the arguments of the program that have unsigned elements."""
        return _unsigned(node for node in self.program.graph.nodes if node.op == "placeholder")

    @property
    def unsigned_results(self) -> frozenset[int]:
        """The numbers of the results of the program that have unsigned elements."""
        return _unsigned(self.program.graph.output_node().args[0])

    @property
    def _tensor_outputs(self) -> list[Any]:
        return [one for one in self._signature.output_specs if isinstance(one.arg, TensorArgument)]

    @property
    def _signature(self) -> Any:
        return self.program.graph_signature


_UNSIGNED = (torch.uint8, torch.uint32)
_WITHOUT_TYPE = (torch.uint16, torch.uint64)


def _unsigned(nodes: Iterable[Any]) -> frozenset[int]:
    """Returns the positions of the tensors of unsigned elements among all tensors of `nodes`."""
    values = (node.meta["val"] for node in nodes if isinstance(node, torch.fx.Node))
    tensors = (one for one in values if isinstance(one, torch.Tensor))
    return frozenset(index for index, one in enumerate(tensors) if one.dtype in _UNSIGNED)


def export(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Exported:
    """Exports a module, a function of tensors or an exported program.

    Raises:
        TypeError: `function` is none of these.
        ValueError: it has dynamic shapes, writes to an argument, or an argument or result is not a tensor or constant.
    """
    # A tensor that is passed twice becomes two arguments; torch would merge them into one.
    args, kwargs = pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, (tuple(args), dict(kwargs)))
    with warnings.catch_warnings(), sdpa_kernel(SDPBackend.MATH):
        # These warnings are about torch's own classes.
        warnings.simplefilter("ignore", FutureWarning)
        if isinstance(function, ExportedProgram):
            # The sizes of the arguments replace the dynamic sizes of the program.
            program = torch.export.export(function.module(), args, kwargs, strict=False) if args or kwargs else function
            exported = _of_program(program, program.module_call_graph[0].signature.forward_arg_names or ())
        elif isinstance(function, torch.nn.Module):
            program = torch.export.export(function, args, kwargs, strict=False)
            exported = _of_program(program, _parameters(function.forward))
        elif callable(function):
            exported = _of_function(function, args, kwargs)
        else:
            raise TypeError(f"{function!r} is not a module, a function or an ExportedProgram of torch")
    _check(exported)
    return exported


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Returns the names of the positional parameters; none for functions of torch in C++, which do not tell them."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return []
    return [one.name for one in parameters if one.kind in kinds]


def _of_program(program: ExportedProgram, parameters: Iterable[str]) -> Exported:
    spec = program.call_spec
    inputs = [one.arg for one in program.graph_signature.input_specs if one.kind == InputKind.USER_INPUT]
    given = [one.value if isinstance(one, ConstantArgument) else _TENSOR for one in inputs]
    arguments = dict(pytree.tree_flatten_with_path(pytree.tree_unflatten(given, spec.in_spec))[0])
    return Exported(_decomposed(program), arguments, spec.out_spec, tuple(parameters))


_TENSOR = torch.empty(0, device="meta")


def _of_function(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Exported:
    leaves, tree = pytree.tree_flatten((args, kwargs))
    is_tensor = [isinstance(one, torch.Tensor) for one in leaves]
    results = None

    def flat(*tensors: torch.Tensor) -> list[Any]:
        nonlocal results
        given = iter(tensors)
        merged = [next(given) if one else leaf for one, leaf in zip(is_tensor, leaves, strict=True)]
        its_args, its_kwargs = pytree.tree_unflatten(merged, tree)
        returned, results = pytree.tree_flatten(function(*its_args, **its_kwargs))
        return list(returned)

    tensors = tuple(one for one in leaves if isinstance(one, torch.Tensor))
    traced = make_fx(flat, tracing_mode="fake", _allow_non_fake_inputs=True, decomposition_table=RESIZES)(*tensors)
    program = torch.export.export(traced, tensors, strict=False)
    arguments = dict(pytree.tree_flatten_with_path((args, kwargs))[0])
    return Exported(_decomposed(program), arguments, results, tuple(_parameters(function)))


def _decomposed(program: ExportedProgram) -> ExportedProgram:
    return program.run_decompositions(get_decomposition_table() | DECOMPOSITIONS | RESIZES)


def _check(exported: Exported) -> None:
    signature = exported.program.graph_signature
    for one in signature.input_specs:
        is_tensor = one.kind in _STATE or (one.kind == InputKind.USER_INPUT and isinstance(one.arg, TensorArgument))
        if not is_tensor and not isinstance(one.arg, ConstantArgument):
            raise ValueError(f"the program has the argument '{one.arg.name}', which is not a tensor: {one}")
    for one in signature.output_specs:
        if one.kind == OutputKind.USER_INPUT_MUTATION:
            raise ValueError(f"the program writes to its argument '{one.target}': return the new value instead")
        if not isinstance(one.arg, (TensorArgument, ConstantArgument)):
            raise ValueError(f"the program returns '{one.arg.name}', which is not a tensor: it depends on elements")
    for node in exported.program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and not all(isinstance(size, int) for size in value.shape):
            shape = ", ".join(map(str, value.shape))
            advice = "specify arguments of static shape"
            raise ValueError(f"'{node.name}' has the dynamic shape ({shape}): {advice}")
        if isinstance(value, torch.Tensor) and value.dtype in _WITHOUT_TYPE:
            advice = "use int32 or int64"
            raise ValueError(f"'{node.name}' has the dtype {value.dtype}, which torch-mlir does not import: {advice}")


def lower(
    exported: Exported, dialect: str, argument_names: Sequence[str], result_names: Sequence[str], donated: set[str]
) -> bytes:
    """Lowers the program to a module in a dialect, with a function `main` on tensors, and returns its bytecode.

    Args:
        exported: the program.
        dialect: `linalg`, `stablehlo` or `tosa`.
        argument_names, result_names: the names of arguments and results in the module.
        donated: the names of arguments whose memory a call may overwrite.

    Raises:
        ValueError: torch-mlir cannot lower an operator to the dialect.
    """
    if dialect not in _TO_DIALECT:
        raise ValueError(f"the dialect '{dialect}' is not one of {', '.join(_TO_DIALECT)}")
    context = ir.Context()
    torch_dialect.register_dialect(context)
    importer = FxImporter(context=context)
    imported = _tensors_only(exported.program)
    widen_unsigned(imported.graph, extends_signs=dialect == "tosa")
    count_indices_from_the_start(imported.graph)
    importer.import_stateless_graph(imported.graph, func_name=_ENTRY)
    module = importer.module
    for pipeline in (_TO_BACKEND_CONTRACT, _TO_DIALECT[dialect]):
        _run(module, pipeline, dialect)
    correct_remainders(module)
    for own in operations_where(module.operation, lambda name: name.startswith("tm_tensor.")):
        message = f"torch-mlir cannot lower the program to '{dialect}' without '{own.name}', an operation of its own"
        place = "" if isinstance(own.location, ir.UnknownLoc) else f" at {own.location}"
        raise ValueError(f"{message}{place}; try {_others(dialect)}")
    function = next(op for op in module.body.operations if op.operation.name == "func.func").operation
    with context, ir.Location.unknown():
        _name(function, argument_names, result_names, donated)
    return _bytecode(module)


def _tensors_only(program: ExportedProgram) -> torch.fx.GraphModule:
    """Returns a copy of the graph of a program without arguments and results that are not tensors."""
    copied = torch.fx.Graph()
    values: dict[torch.fx.Node, torch.fx.Node] = {}
    results = copied.graph_copy(program.graph, values)
    for before, after in values.items():
        if before.op == "placeholder" and not isinstance(before.meta.get("val"), torch.Tensor):
            copied.erase_node(after)
    copied.output(tuple(one for one in results if isinstance(one, torch.fx.Node)))
    # The importer rewrites some operators, which requires a module.
    return torch.fx.GraphModule(program.graph_module, copied)


def _run(module: Any, pipeline: str, dialect: str) -> None:
    try:
        with module.context:
            passmanager.PassManager.parse(f"builtin.module({pipeline})").run(module.operation)
    except ir.MLIRError as error:
        found = "; ".join(_reason(str(one.message)) for one in error.error_diagnostics) or str(error)
        message = f"torch-mlir cannot lower the program to '{dialect}': {found}; try {_others(dialect)}"
        raise ValueError(message) from error


def _reason(message: str) -> str:
    """Returns the reason in a diagnostic of torch-mlir, with the name of an operator that has no lowering."""
    unknown = re.search(r'"torch\.operator".*name = "torch\.([^"]+)"', message)
    return f"operator '{unknown[1]}' has no lowering" if unknown else message.partition(": %")[0]


def _others(dialect: str) -> str:
    return " or ".join(f"'{one}'" for one in _TO_DIALECT if one != dialect)


def _name(function: Any, arguments: Sequence[str], results: Sequence[str], donated: set[str]) -> None:
    for argument, name in zip(function.regions[0].blocks[0].arguments, arguments, strict=True):
        argument.set_location(ir.Location.name(name))
    for name in [one for one in function.attributes if one.startswith("torch.")]:
        del function.attributes[name]
    flag, nothing = ir.DictAttr.get({"jax.buffer_donor": ir.BoolAttr.get(True)}), ir.DictAttr.get({})
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([flag if one in donated else nothing for one in arguments])
    function.attributes["res_attrs"] = ir.ArrayAttr.get(
        [ir.DictAttr.get({RESULT_NAME: ir.StringAttr.get(one)}) for one in results]
    )


def _bytecode(module: Any) -> bytes:
    written = BytesIO()
    module.operation.write_bytecode(written)
    return written.getvalue()
