# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversion of torch modules and functions to MLIR modules by torch.export and torch-mlir's importer.

A function is first traced with `make_fx`, which supports `torch.func.grad`, unlike torch.export; then it is exported
like a module.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from operator import getitem
from typing import Any

import torch
from torch._higher_order_ops.effects import with_effects
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument, TokenArgument
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, free_unbacked_symbols
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree
from torch_mlir import ir
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from mlir_shard.frontend.torch_corrections import compare_with_itself, count_indices_from_the_start
from mlir_shard.frontend.torch_lowering import DIALECTS, lowered, name_of
from mlir_shard.frontend.torch_operators import RESIZES, Functions, decompositions
from mlir_shard.frontend.torch_places import WithPlaces, in_line, line_of_error, line_of_node, recorded_places
from mlir_shard.frontend.torch_unsigned import widen_unsigned
from mlir_shard.runtime.names import RESULT_NAME

_STATE = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
_RETURNED = OutputKind.USER_OUTPUT


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
_CHECK_ERRORS = torch.ops.aten._linalg_check_errors.default
_WITHOUT_TYPE = (torch.uint16, torch.uint64)


def _unsigned(nodes: Iterable[Any]) -> frozenset[int]:
    """Returns the positions of the tensors of unsigned elements among all tensors of `nodes`."""
    values = (node.meta["val"] for node in nodes if isinstance(node, torch.fx.Node))
    tensors = [one for one in values if isinstance(one, torch.Tensor)]
    return frozenset(index for index, one in enumerate(tensors) if one.dtype in _UNSIGNED)


def export(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dialect: str) -> Exported:
    """Exports a module, a function of tensors or an exported program, in operators that are lowered to a dialect.

    Raises:
        TypeError: `function` is none of these.
        ValueError: it has dynamic shapes, depends on elements of tensors, writes to an argument, or an argument or
            result is not a tensor or constant.
    """
    # A tensor that is passed twice becomes two arguments; torch would merge them into one.
    args, kwargs = pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, (tuple(args), dict(kwargs)))
    with warnings.catch_warnings(), sdpa_kernel(SDPBackend.MATH), _without_mkldnn(), _no_elements(), Functions():
        # These warnings are about torch's own classes.
        warnings.simplefilter("ignore", FutureWarning)
        if isinstance(function, ExportedProgram):
            # The sizes of the arguments replace the dynamic sizes of the program.
            program = torch.export.export(function.module(), args, kwargs, strict=False) if args or kwargs else function
            exported = _of_program(program, program.module_call_graph[0].signature.forward_arg_names or (), dialect)
        elif isinstance(function, torch.nn.Module):
            program = torch.export.export(function, args, kwargs, strict=False)
            exported = _of_program(program, _parameters(function.forward), dialect)
        elif callable(function):
            exported = _of_function(function, args, kwargs, dialect)
        else:
            raise TypeError(f"{function!r} is not a module, a function or an ExportedProgram of torch")
    _check(exported)
    return exported


@contextmanager
def _without_mkldnn() -> Iterator[None]:
    """Disables the recurrent layers of mkldnn, which have no lowering; those of torch consist of other operators."""
    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)


@contextmanager
def _no_elements() -> Iterator[None]:
    """Raises ValueError for torch's errors about shapes and control flow that depend on elements of tensors."""
    try:
        yield
    except (DataDependentOutputException, DynamicOutputShapeException) as error:
        place, line = line_of_error(error)
        depends = f"operator '{name_of(error.func)}'{in_line(line)} depends on elements of tensors"
        raise ValueError(f"{place}error: {depends}, which are not known before a program runs; {_WHERE}") from error
    except GuardOnDataDependentSymNode as error:
        place, line = line_of_error(error)
        depends = f"the function depends{in_line(line)} on elements of tensors"
        raise ValueError(f"{place}error: {depends}, which are not known before a program runs; {_WHERE}") from error


_WHERE = "select values by torch.where, in tensors of static shape"
_STATIC = "specify arguments of static shape"


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Returns the names of the positional parameters; none for functions of torch in C++, which do not tell them."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return []
    return [one.name for one in parameters if one.kind in kinds]


def _of_program(program: ExportedProgram, parameters: Iterable[str], dialect: str) -> Exported:
    spec = program.call_spec
    inputs = [one.arg for one in program.graph_signature.input_specs if one.kind == InputKind.USER_INPUT]
    given = [one.value if isinstance(one, ConstantArgument) else _TENSOR for one in inputs]
    arguments = dict(pytree.tree_flatten_with_path(pytree.tree_unflatten(given, spec.in_spec))[0])
    return Exported(_decomposed(program, dialect), arguments, spec.out_spec, tuple(parameters))


_TENSOR = torch.empty(0, device="meta")


def _of_function(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], dialect: str
) -> Exported:
    leaves, tree = pytree.tree_flatten((args, kwargs))
    is_tensor = [isinstance(one, torch.Tensor) for one in leaves]
    results = None

    def flat(*tensors: torch.Tensor) -> list[Any]:
        nonlocal results
        given = iter(tensors)
        merged = [next(given) if one else leaf for one, leaf in zip(is_tensor, leaves, strict=True)]
        its_args, its_kwargs = pytree.tree_unflatten(merged, tree)
        with recorded_places():
            returned, results = pytree.tree_flatten(function(*its_args, **its_kwargs))
        return list(returned)

    tensors = tuple(one for one in leaves if isinstance(one, torch.Tensor))
    traced = make_fx(flat, tracing_mode="fake", _allow_non_fake_inputs=True, decomposition_table=RESIZES)(*tensors)
    program = torch.export.export(WithPlaces(traced), tensors, strict=False)
    arguments = dict(pytree.tree_flatten_with_path((args, kwargs))[0])
    return Exported(_decomposed(program, dialect), arguments, results, tuple(_parameters(function)))


def _decomposed(program: ExportedProgram, dialect: str) -> ExportedProgram:
    return program.run_decompositions(get_decomposition_table() | decompositions(dialect))


def _check(exported: Exported) -> None:
    signature = exported.program.graph_signature
    for one in signature.input_specs:
        is_tensor = one.kind in _STATE or (one.kind == InputKind.USER_INPUT and isinstance(one.arg, TensorArgument))
        if not is_tensor and not isinstance(one.arg, (ConstantArgument, TokenArgument)):
            raise ValueError(f"the program has the argument '{one.arg.name}', which is not a tensor: {one}")
    for one in signature.output_specs:
        if one.kind == OutputKind.USER_INPUT_MUTATION:
            raise ValueError(f"the program writes to its argument '{one.target}': return the new value instead")
        if not isinstance(one.arg, (TensorArgument, ConstantArgument, TokenArgument)):
            raise ValueError(f"the program returns '{one.arg.name}', which is not a tensor: it depends on elements")
    for node in exported.program.graph.nodes:
        if complaint := _complaint(node):
            place, line = line_of_node(node)
            raise ValueError(f"{place}error: {_described(node)}{in_line(line)} {complaint}")


def _described(node: torch.fx.Node) -> str:
    if node.target is getitem:
        node = node.args[0]
    return f"operator '{name_of(node.target)}'" if node.op == "call_function" else f"argument '{node.name}'"


def _complaint(node: torch.fx.Node) -> str:
    """Returns why a node cannot be lowered; empty if nothing is known."""
    if node.target == with_effects and node.args[1] != _CHECK_ERRORS:
        return f"calls '{name_of(node.args[1])}', which has a side effect: remove it"
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return ""
    if not all(isinstance(size, int) for size in value.shape):
        shape = f"has the dynamic shape ({', '.join(map(str, value.shape))})"
        is_of_elements = any(map(free_unbacked_symbols, value.shape))
        return f"{shape}, which depends on elements: {_WHERE}" if is_of_elements else f"{shape}: {_STATIC}"
    if value.dtype in _WITHOUT_TYPE:
        return f"has the dtype {value.dtype}, which torch-mlir does not import: use int32 or int64"
    return ""


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
    if dialect not in DIALECTS:
        raise ValueError(f"the dialect '{dialect}' is not one of {', '.join(DIALECTS)}")
    imported = _tensors_only(exported.program)
    widen_unsigned(imported.graph, extends_signs=dialect == "tosa")
    count_indices_from_the_start(imported.graph)
    compare_with_itself(imported.graph)
    module = lowered(imported, dialect)
    function = next(op for op in module.body.operations if op.operation.name == "func.func").operation
    with module.context, ir.Location.unknown():
        _name(function, argument_names, result_names, donated)
    return _bytecode(module)


def _tensors_only(program: ExportedProgram) -> torch.fx.GraphModule:
    """Returns a copy of the graph of a program without arguments and results that are not tensors, and without checks.

    The checks are those of linear algebra, which raise an error for a singular matrix.
    """
    copied = torch.fx.Graph()
    values: dict[torch.fx.Node, torch.fx.Node] = {}
    copied.graph_copy(program.graph, values)
    kept = [values[one] for one in program.graph.output_node().args[0] if _is_tensor(one)]
    for before, after in reversed(values.items()):
        is_check = before.target == with_effects or (before.target is getitem and before.args[0].target == with_effects)
        if is_check or (before.op == "placeholder" and not _is_tensor(before)):
            copied.erase_node(after)
    copied.output(tuple(kept))
    # The importer rewrites some operators, which requires a module.
    return torch.fx.GraphModule(program.graph_module, copied)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.fx.Node) and isinstance(value.meta.get("val"), torch.Tensor)


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
