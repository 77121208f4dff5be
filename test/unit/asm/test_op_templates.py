# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that are translated once up to the names of values, beside each read by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mlir_shard import asm
from mlir_shard.asm import op_templates, to_host, to_sdy
from mlir_shard.asm.op_templates import abstract_operation
from mlir_shard.dialects.contexts import create_context

TESTS = Path(__file__).resolve().parents[2]
SPLIT = "// -----"


def read(text: str, context: Any) -> tuple[str, str]:
    """A module with its locations, and as it is printed; or the errors."""
    try:
        module = asm.parse_module(text, context)
    except asm.ParseError as error:
        return "error", str(error)
    return module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True), asm.print_operation(
        module.operation
    )


def read_all(texts: list[str]) -> list[tuple[str, str]]:
    """What `read` gives for each, in a context of their own: resources get other names where these are taken."""
    context = create_context()
    context.allow_unregistered_dialects = True
    return [read(text, context) for text in texts]


def test_programs_are_read_and_printed_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = [text for file in sorted(TESTS.rglob("*.mlir")) for text in file.read_text().split(SPLIT)]
    texts = [text for text in programs if "sdy." in text]
    assert len(texts) > 500
    found = read_all(texts)
    for module in (to_host, to_sdy):
        monkeypatch.setattr(module, "abstract_operation", lambda text, name: None)
    assert read_all(texts) == found


@pytest.mark.parametrize(
    ("text", "abstract"),
    [
        ("sdy.reshard %a <@m, [{}]> : tensor<8xf32>\nx", "sdy.reshard %0 <@m, [{}]> : tensor<8xf32>"),
        ("sdy.reshard %a#1 <@m, [{}]> : tensor<8xf32> loc(#l)\nx", "sdy.reshard %0 <@m, [{}]> : tensor<8xf32>"),
        ('"sdy.return"(%1, %a.b) : (i1, i1) -> ()', '"sdy.return"(%0, %1) : (i1, i1) -> ()'),
        ('sdy.named_computation<"a%b">(%1) (%2: i1) {', None),
        ("sdy.op(%1) (%2: i1) {\n  %3 = x\n} : (i1) -> i1\n", "sdy.op(%0) (%1: i1) {} : (i1) -> i1"),
        ('"sdy.op"(%1) ({\n^bb0(%2: i1):\n  x\n}) : (i1) -> ()\n', '"sdy.op"(%0) ({\n^bb0(%1: i1):}) : (i1) -> ()'),
        # It may go on with the line behind it.
        ("sdy.reshard %a <@m, [{}]> : tensor<8xf32>\n  {x}", None),
        ("sdy.op %a\n : i1", None),
        ("sdy.op(%1) {\n", None),
    ],
)
def test_abstract_operations(text: str, abstract: str | None) -> None:
    found = abstract_operation(text, 0)
    assert (None if found is None else found.text) == abstract
    if found is not None:
        end = text.find("\n", text.find("}\n") if found.body else 0)
        assert found.end == (text.index(" loc(") if " loc(" in text else len(text) if end < 0 else end)


def test_offsets_in_the_source() -> None:
    text = "sdy.op(%long, %b) (%argument: i1) {\n  body\n} : (i1, i1) -> i1\n"
    found = abstract_operation(text, 0)
    assert found is not None
    assert found.body is not None
    assert text[slice(*found.body)] == "\n  body\n"
    for offset, character in enumerate(found.text[: found.text.index("{")]):
        if character not in "%012":
            assert text[found.offset_of(offset)] == character


def test_other_names_of_values_are_no_numbers() -> None:
    assert op_templates.value_numbers(["%0", "%12"]) == [0, 12]
    assert op_templates.value_numbers(["%0", "%a"]) is None
    assert op_templates.split_at_values("a(%0, %11)") == ["a(", 0, ", ", 11, ")"]
