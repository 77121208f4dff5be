# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules: the correspondence of the dimensions of an op's tensors, expressed by factors.

A matmul is ([i, k], [k, j])->([i, j]): dimensions that share a factor can be sharded in the same way, and a dimension
of several factors, as the `ij` of a reshape, is sharded along them from the major factor on. The idea is Shardy's,
which follows GSPMD and einsum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

from mlir_shard.sharding.hashed_once import HashedOnce

_LAST_LETTER = ord("z") - ord("i")


class FactorType(str, Enum):
    """The communication that sharding a factor causes: none, a collective, or the factor must stay unsharded."""

    PASS_THROUGH = "pass_through"
    REDUCTION = "reduction"
    NEED_REPLICATION = "need_replication"
    PERMUTATION = "permutation"


@dataclass(frozen=True, slots=True)
class DimMapping:
    """The factors whose product is one dimension, major to minor; empty if the dimension is not mapped."""

    factor_indices: tuple[int, ...]

    def is_minor_most(self, factor: int) -> bool:
        """Returns whether the factor is the last of this dimension."""
        return bool(self.factor_indices) and self.factor_indices[-1] == factor

    def __str__(self) -> str:
        return "".join(map(factor_symbol, self.factor_indices))


@dataclass(frozen=True, slots=True)
class TensorMapping(HashedOnce):
    """One mapping for each dimension of a tensor."""

    dim_mappings: tuple[DimMapping, ...]
    has_compound_dimensions: bool = field(init=False, repr=False, compare=False)
    """Whether a dimension is the product of several factors."""

    def __post_init__(self) -> None:
        is_compound = any(len(dim.factor_indices) > 1 for dim in self.dim_mappings)
        object.__setattr__(self, "has_compound_dimensions", is_compound)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            return self._hashed(self.dim_mappings)

    @staticmethod
    def of(*dims: Sequence[int]) -> TensorMapping:
        """Makes a mapping from the factors of each dimension."""
        return _mapping(tuple(map(tuple, dims)))

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dim_mappings)

    def contains_factor(self, factor: int) -> bool:
        """Returns whether a dimension has the factor."""
        return any(factor in dim.factor_indices for dim in self.dim_mappings)

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.dim_mappings))}]"


@lru_cache(maxsize=4096)
def _mapping(dims: tuple[tuple[int, ...], ...]) -> TensorMapping:
    return TensorMapping(tuple(map(DimMapping, dims)))


@dataclass(frozen=True, slots=True)
class OpShardingRule(HashedOnce):
    """The rule by which an op's operands and results may be sharded together.

    If a factor in `reduction_factors` is sharded, results are partial sums. A factor in `need_replication_factors` must
    not be sharded, and one in `permutation_factors` needs data of neighbours; all others pass through. Shardings are
    not propagated along `blocked_propagation_factors`, whatever their type. `is_custom_rule` marks a rule of the user.
    """

    factor_sizes: tuple[int, ...]
    operand_mappings: tuple[TensorMapping, ...]
    result_mappings: tuple[TensorMapping, ...]
    reduction_factors: tuple[int, ...] = ()
    need_replication_factors: tuple[int, ...] = ()
    permutation_factors: tuple[int, ...] = ()
    blocked_propagation_factors: tuple[int, ...] = ()
    is_custom_rule: bool = False

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            # The other fields are rarely different in rules with equal mappings.
            return self._hashed((self.factor_sizes, self.operand_mappings, self.result_mappings))

    @staticmethod
    def pointwise(shape: Sequence[int], operands: int, results: int = 1) -> OpShardingRule:
        """Returns the rule of an op whose tensors all have this shape and correspond element by element."""
        mapping = TensorMapping.of(*((factor,) for factor in range(len(shape))))
        return OpShardingRule(tuple(shape), (mapping,) * operands, (mapping,) * results)

    @property
    def num_factors(self) -> int:
        """The number of factors."""
        return len(self.factor_sizes)

    @property
    def tensor_mappings(self) -> tuple[TensorMapping, ...]:
        """The mappings of the operands, then of the results."""
        return self.operand_mappings + self.result_mappings

    def factor_type(self, factor: int) -> FactorType:
        """Returns the type of a factor."""
        if factor in self.reduction_factors:
            return FactorType.REDUCTION
        if factor in self.need_replication_factors:
            return FactorType.NEED_REPLICATION
        if factor in self.permutation_factors:
            return FactorType.PERMUTATION
        return FactorType.PASS_THROUGH

    def is_blocked(self, factor: int) -> bool:
        """Returns whether shardings must not be propagated along this factor."""
        return factor in self.blocked_propagation_factors

    def is_batching_factor(self, factor: int) -> bool:
        """Returns whether the factor passes through and is in every tensor that has dimensions."""
        return self.factor_type(factor) is FactorType.PASS_THROUGH and all(
            mapping.contains_factor(factor) for mapping in self.tensor_mappings if mapping.rank
        )

    @property
    def batching_factors(self) -> tuple[int, ...]:
        """All batching factors, ascending."""
        return tuple(filter(self.is_batching_factor, range(self.num_factors)))

    @property
    def non_scalar_tensors(self) -> tuple[int, ...]:
        """The positions in `tensor_mappings` of the tensors that have dimensions."""
        return tuple(index for index, mapping in enumerate(self.tensor_mappings) if mapping.rank)

    @property
    def has_compound_dimensions(self) -> bool:
        """Whether a dimension is the product of several factors."""
        return any(mapping.has_compound_dimensions for mapping in self.tensor_mappings)

    def __str__(self) -> str:
        def mappings(of: tuple[TensorMapping, ...]) -> str:
            return f"({', '.join(map(str, of))})"

        sizes = ", ".join(f"{factor_symbol(index)}={size}" for index, size in enumerate(self.factor_sizes))
        return f"{mappings(self.operand_mappings)}->{mappings(self.result_mappings)} {{{sizes}}}"


def factor_symbol(index: int) -> str:
    """Returns the symbol of a factor: `i` to `z` for 0 to 17, then `z_1`, `z_2`, ..."""
    return chr(ord("i") + index) if index <= _LAST_LETTER else f"z_{index - _LAST_LETTER}"


def factor_index(symbol: str) -> int:
    """Returns the factor of a symbol, the inverse of `factor_symbol`. Raises ValueError if it is not a factor's."""
    if len(symbol) == 1 and "i" <= symbol <= "z":
        return ord(symbol) - ord("i")
    number = symbol[2:]
    if symbol.startswith("z_") and number.isascii() and number.isdigit() and not number.startswith("0"):
        return _LAST_LETTER + int(number)
    raise ValueError(f"'{symbol}' is not a factor: expected a letter from 'i' to 'z', or 'z_' and a positive number")
