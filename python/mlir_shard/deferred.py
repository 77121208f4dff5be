# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules that are imported at the first use of an attribute.

Importing NumPy takes longer than partitioning a small program, and most programs do not need it:

    from mlir_shard.deferred import numpy as np
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any


class Deferred(ModuleType):
    """A placeholder for the module that `load` returns."""

    def __init__(self, name: str, load: Callable[[], ModuleType]) -> None:
        super().__init__(name)
        self._load = load

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._load(), name)
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return dir(self._load())


if TYPE_CHECKING:
    import numpy as numpy
else:
    numpy = Deferred("numpy", lambda: importlib.import_module("numpy"))
