# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Verification after each pass, of what the pass has changed: see `lib/verified_ops.h`."""

from __future__ import annotations

from typing import Any

from mlir_shard import _native, host
from mlir_shard.dialects import verification


class Verified:
    """What a run of passes has found to be valid, in one context."""

    def __init__(self) -> None:
        self._known = _native.Verification(str(host.capi_library()), host.capsule_prefix(), list(verification.CHECKS))

    def verify(self, op: Any) -> bool:
        """Whether all in an operation is valid, its attributes of sdy included; emits an error where it is not."""
        is_valid = self._known.verify(op._CAPIPtr)
        if is_valid is None:
            is_valid = op.verify()
            if is_valid:
                self._known.accept(op._CAPIPtr)
        return is_valid and verification.verify(op)
