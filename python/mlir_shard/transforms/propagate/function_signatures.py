# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The shardings that functions have for their arguments and results, as states.

A gradient has thousands of arguments and results, and few different dictionaries of attributes on them: each distinct
one is looked at, and made, once.
"""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.transforms.function_shardings import sharding_in
from mlir_shard.transforms.propagate.value_graph import ShardingTable

ARGUMENTS, RESULTS = "arg_attrs", "res_attrs"


class FunctionSignatures:
    """Reads and writes the shardings in functions' signatures, numbered by a table."""

    def __init__(self, table: ShardingTable) -> None:
        self._table = table
        self._states: dict[Any, int] = {}
        self._dictionaries: dict[tuple[Any, int], Any] = {}

    def states(self, function: Any, key: str) -> list[int]:
        """The state of each argument or result, `key` being ARGUMENTS or RESULTS."""
        return [self._state(dictionary) for dictionary in _dictionaries(function, key)]

    def write(self, function: Any, key: str, states: dict[int, int]) -> None:
        """Gives the arguments or results with the given indices the shardings of the states."""
        dictionaries = list(_dictionaries(function, key))
        for index, state in states.items():
            known = (dictionaries[index], state)
            if known not in self._dictionaries:
                self._dictionaries[known] = self._with_state(*known)
            dictionaries[index] = self._dictionaries[known]
        function.attributes[key] = ir.ArrayAttr.get(dictionaries, function.context)

    def _state(self, dictionary: Any) -> int:
        state = self._states.get(dictionary)
        if state is None:
            state = self._states[dictionary] = self._table.number(sharding_in(dictionary))
        return state

    def _with_state(self, dictionary: Any, state: int) -> Any:
        entries = {named.name: named.attr for named in dictionary}
        entries[sdy.SHARDING] = sdy.attribute(self._table[state], dictionary.context)
        return ir.DictAttr.get(entries, dictionary.context)


def _dictionaries(function: Any, key: str) -> Any:
    if key in function.attributes:
        return function.attributes[key]
    type_ = function.attributes["function_type"].value
    count = len(type_.inputs if key == ARGUMENTS else type_.results)
    return [ir.DictAttr.get({}, function.context)] * count
