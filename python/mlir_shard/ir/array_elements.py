# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elements of the host's array attributes."""

from __future__ import annotations

from typing import Any


def elements(attribute: Any) -> list[Any]:
    """Returns the elements of an attribute that has a length and indices: a dense array, dense elements, a dictionary.

    They are read by index. The end of an iteration is a C++ exception in the host, which takes several times as long,
    and the memory of the tables that unwind it.
    """
    return [attribute[index] for index in range(len(attribute))]
