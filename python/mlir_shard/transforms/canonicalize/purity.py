# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The purity of operations, observed in the host's `cse`: Python can query neither traits nor memory effects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.editing import Purity, first_names
from mlir_shard.ir.op_names import op_names
from mlir_shard.passes import host_passes

# The memory effects of operations of these dialects without regions depend only on their names.
_BY_NAME = frozenset(
    ("arith", "builtin", "chlo", "complex", "func", "index", "math", "scf", "sdy", "shape", "shard", "stablehlo")
).union(("tensor", "tosa", "ub"))
_BY_ATTRIBUTES = frozenset(op_names("stablehlo", "custom_call"))
# The effects of other operations of these depend on attributes, types and regions. None is isolated from above.
_BY_CONTENTS = frozenset(("linalg", "scf", "stablehlo", "tensor", "tosa"))
ISOLATED = ("builtin.module", "func.func")
"""The operations that are isolated from above for the host; those of sdy are not."""


class Purities:
    """The purity of operations, observed once in a process for each name or, with regions, for the names inside.

    It is None for operations that read memory, which are equal only if none between them writes, and for those of other
    dialects, whose purity is not observed.
    """

    def __init__(self) -> None:
        self._by_name: dict[str, Purity | None] = dict.fromkeys(ISOLATED, Purity.ISOLATED)
        self._by_contents: dict[tuple[str, ...], Purity] = {}

    def of_names(self, names: Iterable[str], firsts: Callable[[], Iterable[Any]]) -> dict[str, Purity] | None:
        """Returns the purity of the operations of a program by name; None if that of one is None.

        Args:
            names: the names of all operations in it, and perhaps others.
            firsts: returns an operation of each name in it; called if a name is new.
        """
        names = list(names)
        if not self._by_name.keys() >= set(names):
            new = [op for op in firsts() if op.name not in self._by_name]
            found_now = {op.name: _declared(op) for op in new}
            observed = [op for op in new if _is_by_name(op)]
            found_now.update(zip((op.name for op in observed), purities_of(observed), strict=True))
            # Other threads must not see a part of the result before all of it is known.
            self._by_name.update(found_now)
        found: dict[str, Purity] = {}
        for name in names:
            purity = self._by_name.get(name)
            if purity is not None:
                found[name] = purity
            elif name in self._by_name:
                return None
        return found

    def of_operation(self, op: Any) -> Purity:
        """Returns the purity of an operation whose name has `VARIES`; `IMPURE` if it reads memory."""
        names = [op.name, *first_names(op)]
        others = {str(one.type) for one in op.operands if not isinstance(one.type, ir.RankedTensorType)}
        key = (*names, "", *sorted(others))
        if key not in self._by_contents or not _BY_ATTRIBUTES.isdisjoint(names):
            self._by_contents[key] = purities_of([op])[0] or Purity.IMPURE
        return self._by_contents[key]


PURITIES = Purities()


def _declared(op: Any) -> Purity | None:
    return Purity.VARIES if _dialect(op) in _BY_CONTENTS or _is_by_name(op) else None


def _is_by_name(op: Any) -> bool:
    return not len(op.regions) and _dialect(op) in _BY_NAME and op.name not in _BY_ATTRIBUTES


def _dialect(op: Any) -> str:
    return str(op.name).partition(".")[0]


def purities_of(ops: Sequence[Any]) -> list[Purity | None]:
    """Returns the purity of each operation; None for one that reads memory.

    The host's `cse` runs on copies of it: an unused one; two with a call of unknown effects between them, and one more
    with reversed operands; and two next to each other.
    """
    if not ops:
        return []
    with ops[0].context, ops[0].location:
        module = ir.Module.create()
        copies = [[_copies(module, op, kind) for kind in _KINDS] for op in ops]
        host_passes.run("builtin.module(cse)", module.operation, verify_each=False)
        found = [_observed(*(function.regions[0].blocks[0] for function in of_op)) for of_op in copies]
        # In their regions, copies use values of the program, which may not be erased before them.
        for of_op in copies:
            for function in of_op:
                function.erase()
        return found


_CALL, _REVERSED = "call", "reversed"
_KINDS: tuple[tuple[str, ...], ...] = (("",), ("", _CALL, "", _REVERSED), ("", ""))


def _copies(module: Any, op: Any, kind: tuple[str, ...]) -> Any:
    """Makes a function with copies of an operation, and with a call that uses their results if there are several."""
    types = [operand.type for operand in op.operands]
    attributes = {
        "sym_name": ir.StringAttr.get(f"f{len(module.body.operations)}"),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
    }
    function = ir.Operation.create("func.func", attributes=attributes, regions=1, ip=ir.InsertionPoint(module.body))
    block = function.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    before = ir.InsertionPoint(ir.Operation.create("func.return", ip=ir.InsertionPoint(block)))
    arguments, results = list(block.arguments), []
    for one in kind:
        if one == _CALL:
            _call([], before)
            continue
        copy = op.clone(ip=before).operation
        for number, argument in enumerate(reversed(arguments) if one == _REVERSED else arguments):
            copy.operands[number] = argument
        results += copy.results
    if len(kind) > 1:
        _call(results, before)
    return function


def _call(operands: Sequence[Any], before: Any) -> None:
    attributes = {"callee": ir.FlatSymbolRefAttr.get("unknown")}
    ir.Operation.create("func.call", operands=operands, attributes=attributes, ip=before)


def _observed(unused: Any, apart: Any, adjacent: Any) -> Purity | None:
    """Returns the purity of an operation from the blocks that its copies were in."""
    if len(unused.operations) > 1:
        return Purity.IMPURE
    first, second, backwards = _results(apart, 3)
    if first == second:
        return Purity.COMMUTATIVE if first and len(apart.arguments) > 1 and first == backwards else Purity.PURE
    one, other = _results(adjacent, 2)
    return None if one == other else Purity.REMOVABLE


def _results(block: Any, copies: int) -> list[list[Any]]:
    *_, call, _ = block.operations
    values = list(call.operands)
    count = len(values) // copies
    return [values[number * count : (number + 1) * count] for number in range(copies)]
