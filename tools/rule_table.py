# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes docs/rules.md: all ops of linalg, tosa and tensor in the host, with their sharding rules on examples.

    python tools/rule_table.py [--check]

The examples are the functions in tools/rule_examples, one for each op between tensors. Exits with 1 if an op has
neither an example with a rule nor a reason for having none, and with `--check` if the file is not up to date.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mlir_shard import asm
from mlir_shard.dialects.contexts import create_context
from mlir_shard.host import dialect, ir
from mlir_shard.rules import reason_without_rule, rule_for
from mlir_shard.rules.builder import rank_of
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.lowering import llvm
from mlir_shard.sharding import OpShardingRule, factor_symbol

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "rules.md"
EXAMPLES = Path(__file__).resolve().parent / "rule_examples"
DIALECTS = ("linalg", "tosa", "tensor")

HEAD = """# Sharding rules of upstream's dialects

Written by `python tools/rule_table.py`, with every op of linalg, tosa and tensor that the host's Python wrappers have.

A rule maps the dimensions of operands and results to factors. Dimensions with the same factor are sharded alike. A
dimension with several factors is their product, from major to minor. Sharding a *reduction* factor leaves partial sums,
sharding a *permutation* factor needs elements of neighbors, and a *replication* factor cannot be sharded; all other
factors are passed through. Operands that are not tensors have no dimensions: `[]`. The last column says which ops the
MPI engine does not run.

All ops of arith and math are elementwise, as are those of complex on tensors. The rule of `linalg.generic` follows from
its indexing maps and iterator types, as for the named ops.
"""


def op_names(name: str) -> list[str]:
    """Returns the names of all ops of a dialect in the host's wrappers."""
    return sorted(
        member.OPERATION_NAME
        for _, member in inspect.getmembers(dialect(name), inspect.isclass)
        if issubclass(member, ir.OpView) and getattr(member, "OPERATION_NAME", "").startswith(f"{name}.")
    )


def examples(name: str, context: Any) -> dict[str, Any]:
    """Returns the example of each op of a dialect; each function has the name of its op."""
    path = EXAMPLES / f"{name}.mlir"
    module = asm.parse_module(path.read_text(), context, str(path))
    found = {}
    for function in module.body.operations:
        op_name = f"{name}.{function.attributes['sym_name'].value}"
        found[op_name] = next(op.operation for op in function.regions[0].blocks[0] if op.operation.name == op_name)
    # The operations do not keep their module alive.
    found[""] = module
    return found


def shapes(op: Any) -> str:
    """Returns the shapes of operands and results, in the form `4x8, 8x6 → 4x6`."""

    def side(values: Any) -> str:
        types = [value.type for value in values]
        return ", ".join("x".join(map(str, type_.shape)) if rank_of(type_) else "·" for type_ in types)

    return f"{side(op.operands)} → {side(op.results)}"


def special_factors(rule: OpShardingRule) -> str:
    """Returns the factors of a rule that are not passed through, with their kinds."""
    kinds = (
        ("reduction", rule.reduction_factors),
        ("permutation", rule.permutation_factors),
        ("replication", rule.need_replication_factors),
    )
    return "; ".join(f"{kind} {', '.join(map(factor_symbol, factors))}" for kind, factors in kinds if factors)


def is_lowered(example: Any) -> bool:
    """Returns whether the MPI engine runs an example."""
    function = example.parent
    module = ir.Module.parse(str(function), example.context)
    try:
        llvm.lower(module, function.attributes["sym_name"].value)
    except RunError:
        return False
    return True


def rows(name: str, context: Any) -> Iterator[str]:
    """Yields the rows of a dialect's table. Raises LookupError if an op has neither a rule nor a reason."""
    of_op = examples(name, context)
    for op_name in dict.fromkeys(op_names(name)):
        example = of_op.get(op_name)
        rule = rule_for(example) if example is not None else None
        if rule is not None:
            mappings = str(rule).rpartition(" {")[0].replace("->", " → ")
            runs = "" if is_lowered(example) else "no"
            yield f"| `{op_name}` | {shapes(example)} | `{mappings}` | {special_factors(rule)} | {runs} |"
            continue
        reason = reason_without_rule(op_name)
        if reason is None:
            raise LookupError(f"'{op_name}' has neither an example with a rule nor a reason for having none")
        yield f"| `{op_name}` | | none: {reason} | | |"


def table() -> str:
    """Returns the text of docs/rules.md."""
    context = create_context()
    parts = [HEAD]
    for name in DIALECTS:
        lines = list(rows(name, context))
        heading = (
            f"\n## {name}\n\n{len(lines)} ops.\n\n| op | shapes | rule | special factors | runs |\n"
            "| --- | --- | --- | --- | --- |\n"
        )
        parts.append(heading + "\n".join(lines) + "\n")
    return "".join(parts)


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the file is not up to date")
    check = parser.parse_args().check
    try:
        text = table()
    except LookupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if not check:
        TABLE.write_text(text)
    elif not TABLE.is_file() or TABLE.read_text() != text:
        print(f"error: {TABLE.relative_to(ROOT)} is not up to date: run tools/rule_table.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
