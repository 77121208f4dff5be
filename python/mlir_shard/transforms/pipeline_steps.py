# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of the project's pipelines as pipeline text: passes with options, and dumps of the module between them."""

from __future__ import annotations

from typing import Any

from mlir_shard.passes.options import format_value


def step(name: str, **options: Any) -> str:
    """Returns the text of a pass or pipeline with the options that are not None."""
    given = {field.replace("_", "-"): value for field, value in options.items() if value is not None}
    texts = [f"{option}={format_value(value)}" for option, value in given.items()]
    return f"{name}{{{' '.join(texts)}}}" if texts else name


class Dumps:
    """The files to which a pipeline writes its module: in `directory`, numbered from `index` on; none if that is empty.

    The numbers and names are Shardy's.
    """

    def __init__(self, directory: str, index: int) -> None:
        self._directory = directory
        self._index = index

    def save(self, name: str) -> list[str]:
        """Returns the step that writes the current module to the next file; no step without a directory."""
        number = self._index
        self._index += 1
        if not self._directory:
            return []
        return [step("sdy-save-module", dump_directory=self._directory, file_name=name, dump_index=number)]
