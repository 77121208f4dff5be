# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices that are affine in variables: positions along dimensions, and the position of the device on the mesh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Terms = tuple[tuple[int, Any], ...]
"""Products of a stride and a variable, to be added. Mesh axes are the variables -1, -2 and so on."""
Entry = tuple[int, Terms]
"""An offset and terms: the index along one dimension."""


def entry_of(offset: int, strides: Mapping[Any, int]) -> Entry:
    """Returns the index of an offset and strides, with its terms in canonical order."""
    terms = [(stride, variable) for variable, stride in strides.items() if stride]
    terms.sort(key=lambda term: (-abs(term[0]), str(term[1])))
    return offset, tuple(terms)
