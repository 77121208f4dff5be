# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of the attributes that operations store as properties, which the host does not list."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

from mlir_shard import host

# The attributes of all operations of StableHLO and CHLO up to this version of StableHLO.
_STABLEHLO_VERSION: Final = (1, 20)
_OF_STABLEHLO: Final = """
algorithm all_gather_dim api_version backend_config base_dilations batch_dims batch_group_count broadcast_dimensions
broadcast_sizes call_target_name called_computations channel_handle compare_type comparison_direction
composite_attributes concat_dimension decomposition dim dimension dimension_numbers dimensions
dot_dimension_numbers edge_padding_high edge_padding_low einsum_config epsilon exponent_bits feature_group_count
feature_index fft_length fft_type has_dynamic_root has_side_effect index indices_are_sorted infeed_config
interior_padding iota_dimension is_associative is_host_transfer is_reverse is_stable k known_expanding_dimensions
known_nonexpanding_dimensions layout left_side lhs_dilation limit_indices lower mantissa_bits name
operandSegmentSizes operand_layouts outfeed_config output_operand_aliases padding permutation precision_config
ragged_dot_dimension_numbers replica_groups resultSegmentSizes result_accuracy result_layouts result_tilings
rhs_dilation rng_algorithm rng_distribution scan_dim_size scatter_dimension scatter_dimension_numbers slice_sizes
source_target_pairs split_count split_dimension start_indices strides transpose_a unique_indices unit_diagonal
use_global_device_ids value version window_dilations window_dimensions window_reversal window_strides
"""


def inherent_names(op_name: str, many: bool = False) -> Sequence[str] | None:
    """Returns names that include all attributes that operations of a name can store as properties.

    The names for StableHLO are listed here; those for upstream's dialects are read from the generated wrappers. Returns
    None if the names are unknown: for a newer StableHLO, for a dialect without wrappers, or if the wrappers are not
    loaded and there are not `many` operations, for which they are loaded.
    """
    dialect = op_name.partition(".")[0]
    if dialect == "sdy":
        # Operations that are defined at run time have no properties.
        return ()
    if dialect in ("stablehlo", "chlo"):
        return _OF_STABLEHLO.split() if host.stablehlo_version() <= _STABLEHLO_VERSION else None
    is_loaded = many or f"{host.PREFIX}.{_generated(dialect)}" in sys.modules
    wrapper = _wrappers(dialect).get(op_name) if is_loaded else None
    return None if wrapper is None else [*_read_by(wrapper)]


def _generated(dialect: str) -> str:
    return f"dialects._{dialect}_ops_gen"


@cache
def _wrappers(dialect: str) -> dict[str, Any]:
    """Returns the wrappers of a dialect by operation name; empty if none exist."""
    try:
        found = vars(host.module(_generated(dialect))).values()
    except host.HostError:
        return {}
    return {one.OPERATION_NAME: one for one in found if isinstance(one, type) and hasattr(one, "OPERATION_NAME")}


def _read_by(wrapper: Any) -> Iterator[str]:
    """Yields the attributes that the properties of a wrapper read, and those with the lengths of value groups."""
    yield from ("operandSegmentSizes", "resultSegmentSizes")
    for base in wrapper.__mro__:
        for member in vars(base).values():
            code = getattr(getattr(member, "fget", None), "__code__", None)
            if code is not None and "attributes" in code.co_names:
                yield from (one for one in code.co_consts if isinstance(one, str) and one.isidentifier())
