# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of translations that read only distinct attributes and operations, against reading each operation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mlir_shard import _native, asm
from mlir_shard.asm import to_host, to_sdy
from mlir_shard.dialects.contexts import create_context

TESTS = Path(__file__).resolve().parents[2]
SPLIT = "// -----"


def read(text: str, context: Any) -> tuple[str, ...]:
    """Returns a module with its locations and its printed forms, or the errors."""
    try:
        module = asm.parse_module(text, context)
    except asm.ParseError as error:
        return "error", str(error)
    located = module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
    return (located, *(asm.print_operation(module.operation, generic=generic) for generic in (False, True)))


def read_all(texts: list[str]) -> list[tuple[str, ...]]:
    """Returns the result of `read` for each text in a new context, because resources are renamed if a name is taken."""
    context = create_context()
    context.allow_unregistered_dialects = True
    return [read(text, context) for text in texts]


def test_programs_are_read_and_printed_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = [text for file in sorted(TESTS.rglob("*.mlir")) for text in file.read_text().split(SPLIT)]
    texts = [text for text in programs if "sdy." in text]
    assert len(texts) > 500
    found = read_all(texts)
    for module in (to_host.Translation, to_sdy.Translation):
        monkeypatch.setattr(module, "abstract_operation", lambda self, text, has_region: None)
    assert read_all(texts) == found


class Recorder:
    """Translates attributes to `A`, and operations to lists of their values; records its inputs."""

    def __init__(self, text: str, *, as_templates: bool = True) -> None:
        self.given: list[str | int] = []
        self.as_templates = as_templates
        self.text = text
        self.translation = _native.Translation(text, ["sdy"], {"sdy.op", "sdy.return"}, is_generic=False)
        self.translation.translate(0, len(text), self)

    def attribute(self, offset: int) -> tuple[str, int] | None:
        self.given.append(offset)
        end = self.text.find(">", offset) + 1
        return ("A", end) if end else None

    def abstract_operation(self, text: str, has_region: bool) -> _native.OperationTemplate | None:
        self.given.append(text)
        if not self.as_templates:
            return None
        values = ", ".join(sorted(set(re.findall(r"%\d+", text))))
        arguments = re.search(r"(?<=\()%\d+: .*?(?=\) ?[{:])", text) if has_region else None
        span = arguments.span() if arguments else None
        return _native.OperationTemplate(f"operation[{values}", span, "|", "|", "]")

    def operation(self, offset: int) -> int | None:
        self.given.append(offset)
        return None


@pytest.mark.parametrize(
    ("text", "abstract"),
    [
        ("sdy.op %a <@m, [{}]> : tensor<8xf32>\nx", "sdy.op %0 <@m, [{}]> : tensor<8xf32>"),
        ("sdy.op %a#1 <@m, [{}]> : tensor<8xf32> loc(#l)\nx", "sdy.op %0 <@m, [{}]> : tensor<8xf32>"),
        ('"sdy.return"(%1, %a.b) : (i1, i1) -> ()', '"sdy.return"(%0, %1) : (i1, i1) -> ()'),
        ("sdy.op(%1) (%2: i1) {\n  %3 = x\n} : (i1) -> i1\n", "sdy.op(%0) (%1: i1) {} : (i1) -> i1"),
        ('"sdy.op"(%1) ({\n^bb0(%2: i1):\n  x\n}) : (i1) -> ()\n', '"sdy.op"(%0) ({\n^bb0(%1: i1):}) : (i1) -> ()'),
        # The elements of a constant count as a value.
        ("sdy.op dense<[1, 2]> : tensor<2xi32>\n%a = x", "sdy.op dense<%0> : tensor<2xi32>"),
        ('sdy.op {x = dense<"a>%b"> : t, y = dense<>} %a : i1', "sdy.op {x = dense<%0> : t, y = dense<%1>} %2 : i1"),
        ("sdy.op #a.dense<1>, #dense<1>, dense %a : i1", "sdy.op #a.dense<1>, #dense<%0>, dense %1 : i1"),
        # A value name in a string is not a value.
        ('sdy.op<"a%b">(%1) (%2: i1) {\n}', None),
        # The operation may continue on the next line.
        ("sdy.op %a <@m, [{}]> : tensor<8xf32>\n  {x}", None),
        ("sdy.op %a\n : i1", None),
        ("sdy.op\n %a : i1", None),
        ("sdy.op(%1) {\n", None),
        ("sdy.op(%1) ({\n^bb0(%2: i1)\n: x\n})", None),
    ],
)
def test_operations_are_given_without_the_names_of_their_values(text: str, abstract: str | None) -> None:
    assert Recorder(text, as_templates=False).given == ([] if abstract is None else [abstract]) + [0]


@pytest.mark.parametrize(
    "text",
    [
        "sdy.other x",
        "{sdy.op = 1}",
        "[sdy.op, x]",
        '@"sdy.op"(%a)',
        '["sdy.op"(x)',
        '"sdy.op" : i1',
        "%sdy.op",
        "!sdy.op",
    ],
)
def test_other_names_are_not_those_of_operations(text: str) -> None:
    recorder = Recorder(text)
    assert recorder.given == []
    assert recorder.translation.joined() == text


def test_each_distinct_operation_and_attribute_is_read_once() -> None:
    recorder = Recorder(
        "#sdy.a<1> #sdy.a<2> #sdy.a<1>\n%a = sdy.op %b {x = #sdy.a<1>}\n%c = sdy.op %a {x = #sdy.a<1>}\n"
    )
    assert recorder.translation.joined() == "A A A\n%a = operation[%b]\n%c = operation[%a]\n"
    assert recorder.given == [0, 10, "sdy.op %0 {x = #sdy.a<1>}"]


def test_what_is_in_regions_is_translated_too() -> None:
    recorder = Recorder("sdy.op(%long) (%b: i1, %argument: !t<#sdy.a<1>>) {\n  sdy.op %b\n} : i1\nx\n")
    assert (
        recorder.translation.joined()
        == "operation[%long, %b, %argument%b: i1, %argument: !t<A>|\n  operation[%b]\n|]\nx\n"
    )


def test_what_is_not_translated_stays() -> None:
    text = "#sdy.a sdy.op\n %a #sdy.a"
    recorder = Recorder(text)
    assert recorder.translation.joined() == text
    assert recorder.given == [0, 7, 18]


def test_an_error_of_the_reader_comes_through() -> None:
    class Failing(Recorder):
        def attribute(self, offset: int) -> tuple[str, int] | None:
            raise KeyError(offset)

    with pytest.raises(KeyError, match="2"):
        Failing("x #sdy.a<1>")


def test_lines_stay_and_columns_where_there_is_room() -> None:
    recorder = Recorder("one\n#sdy.a<2> two\nsdy.op(%a) (%b: i1) {\n} x\nz #sdy.a<\n3> y\n")
    text = _native.HostText(recorder.translation, "# ")
    assert str(text) == "# one\nA         two\noperation[%a, %b%b: i1|\n|] \nz A\n   y\n"
    assert [text.to_user(1, column) for column in (1, 2, 3, 4)] == [(1, 1), (1, 1), (1, 1), (1, 2)]
    assert text.to_user(2, 12) == (2, 12)
    # Columns within the translated text, and after it.
    assert [text.to_user(3, column) for column in (1, 16, 17, 19, 23)] == [(3, 1), (3, 1), (3, 13), (3, 15), (3, 19)]
    assert [text.to_user(4, column) for column in (1, 2)] == [(4, 1), (4, 4)]
    assert [text.to_user(5, column) for column in (1, 3)] == [(5, 1), (5, 3)]
    assert text.to_user(6, 4) == (6, 4)


def test_text_without_translations_is_the_users() -> None:
    text = _native.HostText(Recorder("module {}").translation)
    assert str(text) == "module {}"
    assert text.to_user(1, 7) == (1, 7)
