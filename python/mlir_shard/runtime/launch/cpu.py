# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CPU that programs are compiled for: this machine's, or a level of the x86-64 psABI."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from mlir_shard.runtime.error import RunError

NATIVE: Final = "native"
# A feature of each level. LLVM derives the others from the level's name; a list of features, even of a single one,
# replaces those of this machine.
_LEVELS: Final = {"x86-64": "+sse2", "x86-64-v2": "+sse4.2", "x86-64-v3": "+avx2", "x86-64-v4": "+avx512f"}
# Levels with instructions that convert between f16 and f32.
_WITH_F16C: Final = ("x86-64-v3", "x86-64-v4")
# The bytes of a vector register of each level, and the Linux name of the feature with the registers of a level.
_WIDTHS: Final = {"x86-64-v3": 32, "x86-64-v4": 64}
_FEATURES: Final = {"avx2": "x86-64-v3", "avx512f": "x86-64-v4"}
CPUS: Final = (NATIVE, *_LEVELS)


@dataclass(frozen=True, slots=True)
class Cpu:
    """A CPU by its name, one of `CPUS`. Raises RunError for another name."""

    name: str = NATIVE

    def __post_init__(self) -> None:
        if self.name not in CPUS:
            raise RunError(f"unknown CPU '{self.name}': choose {', '.join(CPUS[:-1])} or {CPUS[-1]}")

    @property
    def converts_f16(self) -> bool:
        """Whether instructions convert between f16 and f32; otherwise LLVM calls a library that may be missing."""
        if self.name == NATIVE:
            return not _is_x86() or "f16c" in _flags()
        return self.name in _WITH_F16C

    @property
    def vector_bytes(self) -> int:
        """The bytes of a vector register; 16 if unknown."""
        widths = _WIDTHS if self.name != NATIVE else {feature: _WIDTHS[level] for feature, level in _FEATURES.items()}
        has = _flags() if self.name == NATIVE else (self.name,)
        return max((width for one, width in widths.items() if one in has), default=16)

    def set_on(self, function: Any) -> None:
        """Sets the attributes of an `llvm.func` that make LLVM compile it for this CPU."""
        if self.name != NATIVE:
            # Imported here, not with this module: a rank that loads machine code does not need MLIR.
            from mlir_shard.host import ir

            function.attributes["target_cpu"] = ir.StringAttr.get(self.name)
            function.attributes["target_features"] = ir.Attribute.parse(
                f'#llvm.target_features<["{_LEVELS[self.name]}"]>'
            )


def _is_x86() -> bool:
    return platform.machine() in ("x86_64", "AMD64")


@cache
def _flags() -> frozenset[str]:
    """Returns the features of this machine's CPU by their Linux names."""
    path = Path("/proc/cpuinfo")
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        name, _, flags = line.partition(":")
        if name.strip() == "flags":
            return frozenset(flags.split())
    return frozenset()
