# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Outlines loop nests to functions, so that equal loop nests, as of repeated layers, are compiled only once.

LLVM's compile time of a function grows faster than its size: one function with the loops of all layers takes minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any, Final

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir.editing import clone_with, ops_below, ops_in
from mlir_shard.runtime.launch.libraries import blas, narrow_gemm

_func = host.dialect("func")
_GENERIC: Final = "linalg.generic"
# Names in C cannot contain a dot.
_PREFIX: Final = "loops."
# The attribute of functions whose arguments do not alias.
_APART: Final = "loops.apart"
_ALLOCATIONS: Final = ("memref.alloc", "memref.get_global")
_VIEWS: Final = frozenset(
    {"memref.cast", "memref.collapse_shape", "memref.expand_shape", "memref.reinterpret_cast", "memref.subview"}
    | {"memref.transpose", "memref.view"}
)
# The dialects of ops in loops over elements.
_OF_LOOPS: Final = frozenset({"affine", "arith", "complex", "index", "linalg", "math", "memref", "scf", "vector"})
# The number of operations of a function with calls above which LLVM takes too long to schedule them.
_LARGE: Final = 1000
_CONSTANT: Final = "arith.constant"
# Prefixes of the symbols that matrix products call.
_PRODUCTS: Final = ("cblas_", narrow_gemm.PREFIX, blas.GET_THREADS)
# Scalar types that fit in registers on every CPU.
_SCALARS: Final = (ir.IndexType, ir.IntegerType, ir.F32Type, ir.F64Type)


def outline(module: Any) -> None:
    """Moves the loop nests of a module in memory to functions, which equal nests share, in place."""
    functions: dict[str, str] = {}
    for op in [op.operation for op in module.body.operations if op.operation.name == "func.func"]:
        if len(op.regions[0].blocks):
            for nest in list(_nests(op)):
                _outline(module, nest, functions)


def finish(function: Any) -> None:
    """Adds attributes for LLVM to an `llvm.func` that is a function of loops or a large function that calls them."""
    attributes, blocks = function.attributes, function.regions[0].blocks
    passthrough: tuple[str, ...] = ()
    if attributes["sym_name"].value.startswith(_PREFIX):
        # LLVM would inline functions that are called once.
        passthrough = ("noinline",)
        if _APART in attributes:
            del attributes[_APART]
            no_alias = {"llvm.noalias": ir.UnitAttr.get()}
            noted = [no_alias if str(one.type) == "!llvm.ptr" else {} for one in blocks[0].arguments]
            attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(one) for one in noted])
    elif sum(len(block.operations) for block in blocks) > _LARGE:
        passthrough = ("noinline", "optnone")
    if passthrough:
        attributes["passthrough"] = ir.ArrayAttr.get([ir.StringAttr.get(one) for one in passthrough])


def _nests(function: Any) -> Iterator[Any]:
    """Yields the outermost loop nests of a function."""
    for region in function.regions:
        for block in region.blocks:
            for one in block.operations:
                op = one.operation
                if op.name == _GENERIC:
                    if not len(op.results) and _has_loops(op):
                        yield op
                elif op.name == "scf.for" and not len(op.results) and _is_of_elements(op):
                    yield op
                elif len(op.regions):
                    yield from _nests(op)


def _has_loops(op: Any) -> bool:
    shapes = [operand.type.shape for operand in op.operands if isinstance(operand.type, ir.MemRefType)]
    return any(prod(shape) != 1 for shape in shapes)


def _is_of_elements(loop: Any) -> bool:
    """Returns whether a loop contains no other loop nest, and no call except of matrix products."""
    return all(_is_of_element(op) for op in ops_below(loop))


def _is_of_element(op: Any) -> bool:
    if op.name == "func.call":
        return str(op.attributes["callee"].value).startswith(_PRODUCTS)
    if op.name == _GENERIC:
        return not _has_loops(op)
    return op.name.partition(".")[0] in _OF_LOOPS or op.name == "llvm.inttoptr"


def _outline(module: Any, nest: Any, functions: dict[str, str]) -> None:
    constants, values = _captured(nest)
    if not all(isinstance(one.type, (ir.MemRefType, *_SCALARS)) for one in values):
        return
    with ir.InsertionPoint(module.body), nest.location:
        type_ = ir.FunctionType.get([one.type for one in values], [])
        function = _func.FuncOp(f"{_PREFIX}{len(functions)}", type_, visibility="private")
        block = function.add_entry_block()
    if _are_apart(values):
        function.attributes[_APART] = ir.UnitAttr.get()
    with ir.InsertionPoint(block), nest.location:
        places = dict(zip(values, block.arguments, strict=True))
        for one in constants:
            clone_with(one.owner, places)
        clone_with(nest, places)
        _func.ReturnOp([])
    name = function.name.value
    function.attributes["sym_name"] = ir.StringAttr.get(_PREFIX)
    text = function.operation.get_asm(use_local_scope=True)
    if text in functions:
        function.operation.erase()
    else:
        functions[text] = name
        function.attributes["sym_name"] = ir.StringAttr.get(name)
    with ir.InsertionPoint(nest), nest.location:
        _func.CallOp([], functions[text], values)
    nest.erase()


def _captured(nest: Any) -> tuple[list[Any], list[Any]]:
    """Returns the constants and the other values that a loop nest uses without defining them, each once."""
    made: set[Any] = set()
    used: dict[Any, None] = {}
    for op in ops_in(nest):
        made.update(op.results)
        for region in op.regions:
            for block in region.blocks:
                made.update(block.arguments)
        used.update(dict.fromkeys(op.operands))
    outside = [one for one in used if one not in made]
    constants = [one for one in outside if _is_constant(one)]
    return constants, [one for one in outside if not _is_constant(one)]


def _is_constant(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name == _CONSTANT


def _are_apart(values: Iterable[Any]) -> bool:
    """Returns whether no two of the values alias."""
    memories = [_memory(one) for one in values if isinstance(one.type, ir.MemRefType)]
    return all(one is not None for one in memories) and len(set(memories)) == len(memories)


def _memory(value: Any) -> Any | None:
    """Returns the allocation of the memory of a value, or the function argument that it is in; None if unknown."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in _VIEWS:
        value = value.owner.operation.operands[0]
    if isinstance(value.owner, ir.Block):
        return value if value.owner.owner.operation.name == "func.func" else None
    return value if value.owner.operation.name in _ALLOCATIONS else None
