# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Printing modules in the syntax of their dialects, verified as parsing verifies them."""

from __future__ import annotations

from typing import Any

from mlir_shard.asm.module import print_operation
from mlir_shard.dialects.verified import verified_in
from mlir_shard.dialects.verifiers.checks import deferred
from mlir_shard.host import ir


def print_module(
    op: Any,
    *,
    generic: bool = False,
    debug_info: bool = False,
    pretty_debug_info: bool = False,
    local_scope: bool = False,
    large_elements_limit: int | None = None,
    assume_verified: bool = False,
    skip_regions: bool = False,
) -> str:
    """Returns the text of an operation or module in the custom syntax of its dialects.

    The options are those of the bindings' printer.
    """
    return print_operation(
        op,
        generic=generic,
        debug_info=debug_info,
        pretty_debug_info=pretty_debug_info,
        local_scope=local_scope,
        large_elements_limit=large_elements_limit,
        assume_verified=assume_verified or (not generic and _is_valid(op.operation)),
        skip_regions=skip_regions,
    )


def _is_valid(op: Any) -> bool:
    """Returns whether an operation is known to be valid, without an error if it is not.

    The host's printer verifies other operations itself, and its verifier calls those of sdy for every operation.
    """
    # The symbols that the operations in a module use are in the module.
    if op.name != "builtin.module":
        return False
    handler = op.context.attach_diagnostic_handler(lambda _: True)
    try:
        with deferred():
            op.verify()
        return verified_in(op.context).accept(op)
    except ir.MLIRError:
        return False
    finally:
        handler.detach()
