# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes that the tests of shard-opt load."""

from __future__ import annotations

import enum
from typing import Any

from mlir_shard import Pass, PassFailure, option, register, register_pipeline
from mlir_shard.host import ir


class Manner(enum.Enum):
    """How a pass fails."""

    GIVE_UP = "give-up"
    RAISE = "raise"
    INVALIDATE = "invalidate"


@register
class Tag(Pass):
    name = "tag-function"
    anchor = "func.func"
    summary = "Give functions an attribute"

    text: str = option("tagged", "the value of the attribute")
    times: int = option(1, "how often it is in there")

    def run(self, op: Any) -> None:
        op.attributes["tag"] = ir.StringAttr.get(self.text * self.times)


@register
class Fail(Pass):
    name = "fail-on-module"
    anchor = "builtin.module"
    summary = "Fail"

    manner: Manner = option(Manner.GIVE_UP, "how")

    def run(self, op: Any) -> None:
        if self.manner is Manner.GIVE_UP:
            raise PassFailure(
                "this module is not good enough", notes=[("look at this", next(iter(op.regions[0].blocks[0])))]
            )
        if self.manner is Manner.RAISE:
            raise LookupError("nothing here")
        del next(iter(op.regions[0].blocks[0])).attributes["sym_name"]


@register_pipeline("tag-twice", "Give functions an attribute, and change it")
def tag_twice(text: str = option("second", "the value in the end")) -> list[Pass | str]:
    """Returns the passes."""
    return [Tag(text="first"), "canonicalize", f"tag-function{{text={text}}}"]
