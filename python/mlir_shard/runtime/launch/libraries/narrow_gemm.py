# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the native core for matrix products of bf16 and of i8, on CPUs with instructions for them.

`lib/runtime/narrow_gemm.h` describes them.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from mlir_shard import _native
from mlir_shard.runtime.error import RunError

PREFIX: Final = "narrow_gemm_"
"""The prefix of the symbols; the element type follows it."""
_SYMBOL = re.compile(rf"llvm\.func @({PREFIX}\w+)\(")


@cache
def functions() -> dict[str, int]:
    """Returns the address of each function that the CPU of this machine can run, by symbol."""
    return dict(_native.narrow_gemms())


def addresses(text: str) -> dict[str, int]:
    """Returns the address of each function of the native core that a program in the LLVM dialect calls, by symbol.

    Raises:
        RunError: this CPU does not support a function that the program calls.
    """
    symbols, known = sorted(set(_SYMBOL.findall(text))), functions()
    for symbol in symbols:
        if symbol not in known:
            raise RunError(
                f"the program multiplies matrices of {symbol.removeprefix(PREFIX)} with instructions that this CPU "
                "does not support"
            )
    return {one: known[one] for one in symbols}
