# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is known of each value of a module, as a number: equal knowledge is the same number."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence
from typing import Any, Generic, TypeVar

from mlir_shard.ir.arrays import ModuleArrays

Known = TypeVar("Known", bound=Hashable)


class NumberedValues(Generic[Known]):
    """A mapping from the values of a module, as it was read, to what is known of them.

    `states` has for each value the number of what is known, or a negative one where nothing is: what it begins with.
    """

    def __init__(self, arrays: ModuleArrays, states: array[int] | None = None) -> None:
        self.states = array("i", [-1]) * arrays.value_count if states is None else states
        self._arrays = arrays
        self._distinct: list[Known] = []
        self._numbers: dict[Known, int] = {}

    def __contains__(self, value: Any) -> bool:
        return self._state(value) >= 0

    def __getitem__(self, value: Any) -> Known:
        state = self._state(value)
        if state < 0:
            raise KeyError(value)
        return self._distinct[state]

    def __setitem__(self, value: Any, known: Known) -> None:
        number = self._arrays.number_of(value)
        if number is None:
            raise KeyError(value)
        self.states[number] = self._number(known)

    def get(self, value: Any) -> Known | None:
        """What is known of a value; None where nothing is."""
        state = self._state(value)
        return None if state < 0 else self._distinct[state]

    def states_of(self, values: Sequence[int]) -> list[int]:
        """The numbers of what is known of values, which are given by number."""
        return [self.states[value] for value in values]

    def _state(self, value: Any) -> int:
        number = self._arrays.number_of(value)
        return -1 if number is None else self.states[number]

    def _number(self, known: Known) -> int:
        number = self._numbers.setdefault(known, len(self._distinct))
        if number == len(self._distinct):
            self._distinct.append(known)
        return number
