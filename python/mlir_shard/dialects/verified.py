# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Verification of operations that have changed since the last time: see `lib/verification/verified_ops.h`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from mlir_shard import _native
from mlir_shard.asm.module import host_library
from mlir_shard.dialects import sdy, verification
from mlir_shard.dialects.data_flow import DATA_FLOW_OPS
from mlir_shard.dialects.data_flow_edges import has_edges
from mlir_shard.dialects.mesh_definitions import reading_meshes_once
from mlir_shard.dialects.verifiers.checks import deferred
from mlir_shard.dialects.verifiers.operations import COLLECTIVES, VERIFIERS
from mlir_shard.host import ir


def _sharding_of_results(name: str) -> str | None:
    """Returns the attribute with the shardings of an op's results, by op name; None if they may be elsewhere."""
    if name in COLLECTIVES:
        return sdy.COLLECTIVE_SHARDING
    # Ops in DATA_FLOW_OPS hold the shardings of their results; a data-flow edge op is the only user of its operand.
    is_elsewhere = has_edges(name) and name not in DATA_FLOW_OPS
    return None if is_elsewhere or name == "sdy.propagation_barrier" else sdy.sharding_key_of(name)


class Verified:
    """The operations, types and attributes of one context that have been verified."""

    def __init__(self) -> None:
        self._known = _native.Verification(host_library(), list(verification.CHECKS), _sharding_of_results)

    def verify(self, op: Any) -> bool:
        """Returns whether an operation and its contents are valid, sdy attributes included; emits an error if not."""
        with reading_meshes_once():
            is_valid = self._known.verify(op._CAPIPtr)
            if is_valid is None:
                return self._verify_by_host(op)
            return is_valid and self._have_valid_attributes()

    def _verify_by_host(self, op: Any) -> bool:
        try:
            with deferred():
                op.verify()
        except ir.MLIRError:
            # The verifiers of sdy, which run before the host's, have more precise error messages.
            return bool(op.verify())
        return self.accept(op)

    def accept(self, op: Any) -> bool:
        """Returns whether an operation is valid that the host verified while the verifiers of sdy were `deferred`.

        Runs the verifiers of sdy on one operation of each kind. Emits an error for an invalid operation.
        """
        with reading_meshes_once():
            for capsule in self._known.accept(op._CAPIPtr):
                unverified = ir.Operation._CAPICreate(capsule)
                is_valid = VERIFIERS.get(unverified.name)
                if is_valid is not None and not is_valid(unverified):
                    self._known.forget()
                    return False
            return self._have_valid_attributes()

    def verify_changed(
        self,
        root: Any,
        changed: Sequence[Any],
        moved: Sequence[Any],
        attributed: Sequence[Any],
        everywhere: Sequence[str] = (),
    ) -> bool:
        """Returns whether an operation that was valid is valid after changes to the given operations only.

        Args:
            root: the operation.
            changed: capsules of operations in `root` that were created, or given other operands, types or regions.
            moved: capsules of operations that were moved, or that replaced others with the same types.
            attributed: capsules of operations in `root` of which only attributes have changed.
            everywhere: attributes of `verification.CHECKS` that may have changed anywhere in `root`.
        """
        with reading_meshes_once():
            is_valid = self._known.verify_changed(root._CAPIPtr, changed, moved, attributed)
            if is_valid is None:
                return self.verify(root)
            if is_valid and everywhere:
                changed, moved, attributed = [root._CAPIPtr], [], []
            new, queries = [*changed, *moved], (verification.QUERIES, verification.SCOPES)
            return is_valid and self._are_valid(self._known.new_attribute_uses(new, attributed, *queries))

    @contextlib.contextmanager
    def keeping_symbols(self, op: Any) -> Iterator[None]:
        """Reads the symbols in `op` once for all operations that are verified while the context manager is active.

        Between two verifications, no symbol may change except that of the operation that is verified.
        """
        before = self._known.set_keeps_symbols(op._CAPIPtr, True)
        try:
            yield
        finally:
            self._known.set_keeps_symbols(op._CAPIPtr, before)

    def _have_valid_attributes(self) -> bool:
        return self._are_valid(self._known.changed_attribute_uses(verification.QUERIES, verification.SCOPES))

    def _are_valid(self, uses: list[verification.Found]) -> bool:
        if verification.are_valid(uses):
            return True
        # The host has accepted the operation that has the attribute.
        self._known.forget()
        return False


_of_contexts: WeakKeyDictionary[Any, Verified] = WeakKeyDictionary()


def verified_in(context: Any) -> Verified:
    """Returns the verified parts of a context, shared by parsing and runs: a parsed module is not verified again."""
    if context not in _of_contexts:
        _of_contexts[context] = Verified()
    return _of_contexts[context]
