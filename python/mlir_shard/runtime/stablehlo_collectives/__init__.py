# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO's collectives on MPI: whatever groups of devices and reductions they have.

What they are is decided while the program is in StableHLO (`legalization`), what MPI is called for where it is lowered
to memory (`stand_ins`).
"""

from __future__ import annotations

from mlir_shard.runtime.stablehlo_collectives.legalization import legalize
from mlir_shard.runtime.stablehlo_collectives.processes import set_devices
from mlir_shard.runtime.stablehlo_collectives.stand_ins import StandIns

__all__ = ["StandIns", "legalize", "set_devices"]
