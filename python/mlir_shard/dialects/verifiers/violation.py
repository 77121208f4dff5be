# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A broken invariant: raised by the check that finds it, reported once where the operation is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir_shard.dialects.registered_function import InterfaceError

Check = Callable[[Any], None]


class Violation(Exception):
    """An invariant that an operation breaks: what is wrong and what would be right, without the operation's name."""


def require(message: str | None) -> None:
    """Raises Violation with the message of a pure check, where it has one."""
    if message is not None:
        raise Violation(message)


def report(op: Any, violation: Violation | InterfaceError) -> None:
    """Emits the violation as an error at the operation; or what went wrong in a dialect's part where that is."""
    if isinstance(violation, InterfaceError):
        violation.op.location.emit_error(str(violation))
    else:
        op.location.emit_error(f"'{op.name}' op {violation}")


def verifier(*checks: Check) -> Callable[[Any], bool]:
    """A function that runs the checks on an operation, and reports the first violation and returns False."""

    def verify(op: Any) -> bool:
        try:
            for check in checks:
                check(op.operation)
        except (Violation, InterfaceError) as violation:
            report(op.operation, violation)
            return False
        return True

    return verify
