# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elements of the host's array attributes."""

from __future__ import annotations

from typing import Any


def elements(attribute: Any) -> list[Any]:
    """Returns the elements of an attribute that has a length and indices: a dense array, dense elements, a dictionary.

    The elements are read by index: iterators end with a C++ exception in the host, which takes several times as long,
    and takes memory for unwind tables.
    """
    return [attribute[index] for index in range(len(attribute))]
