# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The prime factors of axis sizes: a mesh axis can be cut no finer."""

from __future__ import annotations

from functools import cache


@cache
def prime_factors(number: int) -> tuple[int, ...]:
    """The prime factors of a number, at least 1, ascending."""
    factors = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return (*factors, number) if number > 1 else tuple(factors)
