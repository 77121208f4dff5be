# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector functions of the C library: glibc's `libmvec`, for loops that call a function for each element.

An attribute of each scalar function lists its vector variants for LLVM, as Clang emits it for `#pragma omp declare
simd`. Their results differ from those of the scalar function by at most 4 units in the last place. Names follow the
vector function ABI for x86-64.
"""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from mlir_shard.runtime.launch.cpu import Cpu

ONE_ARGUMENT: Final = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1"),
    *("log", "log10", "log1p", "log2", "sin", "sinh", "tan", "tanh"),
)
TWO_ARGUMENTS: Final = ("atan2", "pow")
_LIBRARY: Final = "libmvec.so.1"
# The letters of instruction sets in the ABI, by the size of their registers in bytes.
_LETTERS: Final = {16: "b", 32: "d", 64: "e"}
_DECLARATION = re.compile(r"llvm\.func @(\w+)\(f(?:32|64)")
_TARGET: Final = "target_cpu"
_VARIANTS, _PASSTHROUGH = "vector-function-abi-variant", "passthrough"


@dataclass(frozen=True, slots=True)
class Variant:
    """A vector variant of a scalar function.

    Attributes:
        mapping: the parameters in the vector function ABI, for example `N8vv` for two vectors of 8 elements.
        symbol: the symbol in the library.
        declaration: the declaration in the LLVM dialect.
    """

    mapping: str
    symbol: str
    declaration: str


def addresses(text: str) -> dict[str, int]:
    """Returns the address of each vector variant of the functions that a program in the LLVM dialect declares."""
    found = {one.symbol for name in set(_DECLARATION.findall(text)) for one in _variants(name)}
    return {one: ctypes.cast(_library()[one], ctypes.c_void_p).value or 0 for one in found}


def declare(module: Any) -> None:
    """Declares vector functions in a module in the LLVM dialect, in place, if it is compiled for this machine's CPU.

    Programs for a given CPU level do not use them, so that their results do not depend on the machine.
    """
    # Imported here, not with this module: a rank that loads machine code does not need MLIR.
    from mlir_shard.host import ir

    declared: list[Variant] = []
    functions = [op.operation for op in module.body.operations if op.operation.name == "llvm.func"]
    if any(_TARGET in one.attributes for one in functions):
        return
    for function in functions:
        if not len(function.regions[0].blocks):
            name = function.attributes["sym_name"].value
            if variants := _variants(name):
                declared += variants
                text = ",".join(f"_ZGV_LLVM_{one.mapping}_{name}({one.symbol})" for one in variants)
                pair = [ir.StringAttr.get(one, module.context) for one in (_VARIANTS, text)]
                pairs = [ir.ArrayAttr.get(pair, module.context)]
                function.attributes[_PASSTHROUGH] = ir.ArrayAttr.get(pairs, module.context)
    if declared:
        added = ir.Module.parse(_declarations(declared), module.context)
        for op in list(added.body.operations):
            module.body.append(op)


def _declarations(variants: list[Variant]) -> str:
    """Returns declarations of variants, and a list that uses them: LLVM would drop unused ones before it vectorizes."""
    type_ = f"!llvm.array<{len(variants)} x ptr>"
    lines = [f"%list0 = llvm.mlir.undef : {type_}"]
    for place, one in enumerate(variants):
        lines += [
            f"%address{place} = llvm.mlir.addressof @{one.symbol} : !llvm.ptr",
            f"%list{place + 1} = llvm.insertvalue %address{place}, %list{place}[{place}] : {type_}",
        ]
    attributes = '{addr_space = 0 : i32, section = "llvm.metadata"}'
    head = f"llvm.mlir.global appending @llvm.compiler.used() {attributes} : {type_}"
    functions = [one.declaration for one in variants]
    return "\n".join([*functions, f"{head} {{", *lines, f"llvm.return %list{len(variants)} : {type_}", "}"])


@cache
def _variants(name: str) -> tuple[Variant, ...]:
    """Returns the variants of a C library function that this machine supports, those with the widest vectors first."""
    library, is_double = _library(), name in (*ONE_ARGUMENT, *TWO_ARGUMENTS)
    base = name if is_double else name.removesuffix("f")
    if library is None or base not in (*ONE_ARGUMENT, *TWO_ARGUMENTS):
        return ()
    element, size = ("f64", 8) if is_double else ("f32", 4)
    operands, found = 1 + (base in TWO_ARGUMENTS), []
    for width, letter in _LETTERS.items():
        if width <= Cpu().vector_bytes:
            mapping, vector = f"N{width // size}{'v' * operands}", f"vector<{width // size}x{element}>"
            symbol = f"_ZGV{letter}{mapping}_{name}"
            if hasattr(library, symbol):
                types = ", ".join([vector] * operands)
                found.append(Variant(mapping, symbol, f"llvm.func @{symbol}({types}) -> {vector}"))
    return tuple(reversed(found))


@cache
def _library() -> Any:
    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
