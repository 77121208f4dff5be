# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the site of the documentation adds to Sphinx."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from documents.blocks import ROOT


def of_site(name: str) -> ModuleType:
    """A module beside the settings of Sphinx."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "site" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_that_the_index_does_not_name_are_added() -> None:
    text = "# Title\n\n```{toctree}\na\n```\n\n```{toctree}\n:hidden:\n\nb\nOTHERS\n```\n"
    read = of_site("other_pages").with_other_pages(text, {"index", "d", "a", "b", "c"})
    assert read == text.replace("OTHERS", "c\nd")


def test_the_index_has_a_place_for_other_pages() -> None:
    text = (ROOT / "docs" / "index.md").read_text()
    assert "\nnew-page\n" in of_site("other_pages").with_other_pages(text, {"new-page"})


@pytest.mark.parametrize(
    ("docstring", "read"),
    [
        ("One line.", "One line."),
        ("Text.\n\n    code\n\n    more\n\nText.", "Text.\n\n::\n\n    code\n\n    more\n\nText."),
        (
            "Text.\n\nArgs:\n    a: what it is.\n\n    b: likewise.",
            "Text.\n\nArgs:\n    a: what it is.\n\n    b: likewise.",
        ),
        ("Many `P`s, `a` and `b`.", "Many `P`\\ s, `a` and `b`."),
    ],
)
def test_docstrings(docstring: str, read: str) -> None:
    assert of_site("docstrings").as_restructured_text(docstring.split("\n")) == read.split("\n")


def test_the_words_of_mlir_have_colours() -> None:
    lexer = of_site("mlir_lexer").MlirLexer()
    for path in sorted(Path(ROOT / "docs" / "examples").glob("*.mlir")):
        wrong = [text for kind, text in lexer.get_tokens(path.read_text()) if str(kind) == "Token.Error"]
        assert not wrong
    words = {text: str(kind) for kind, text in lexer.get_tokens('%0 = stablehlo.dot %a, %b : tensor<8x16xf32> // "x"')}
    assert words["%0"] == "Token.Name.Variable"
    assert words["stablehlo.dot"] == "Token.Name.Builtin"
    assert words["8x"] == "Token.Literal.Number.Integer"
    assert words["f32"] == "Token.Keyword.Type"
    assert words['// "x"'] == "Token.Comment.Single"
