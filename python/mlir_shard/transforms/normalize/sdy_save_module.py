# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Saves the module between two passes to a file."""

from __future__ import annotations

import os
from typing import Any

from mlir_shard import asm
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import ModulePass, PassFailure, register


@register
class SaveModule(ModulePass):
    """Writes the module to `<dump-directory>/<dump-index>.<file-name>.mlir`, with an index of at least two digits.
    Creates the directory if it is missing. Does nothing if no directory is given."""

    name = "sdy-save-module"
    summary = "Saves the module to a file"

    dump_directory: str = option("", "The directory of the file")
    file_name: str = option("module", "The name of the file, without index and extension")
    dump_index: int | None = option(None, "The index that is prefixed to the name of the file")

    def run(self, op: Any) -> bool:
        if not self.dump_directory:
            return False
        prefix = "" if self.dump_index is None else f"{self.dump_index:02}."
        path = os.path.join(self.dump_directory, f"{prefix}{self.file_name}.mlir")
        try:
            os.makedirs(self.dump_directory, exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(asm.print_operation(op))
        except OSError as error:
            raise PassFailure(f"cannot write '{path}': {error.strerror}") from error
        return False
