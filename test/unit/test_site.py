# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the extensions of Sphinx in the site of the documentation."""

import dataclasses
import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from documents.blocks import ROOT
from explain.browser import chromium

import mlir_shard


def of_site(name: str) -> ModuleType:
    """Returns a module in the folder of the settings of Sphinx."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "site" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module in `sys.modules`.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_pages_that_the_index_does_not_name_are_added() -> None:
    text = "# Title\n\n```{toctree}\na\n```\n\n```{toctree}\n:hidden:\n\nb\nOTHERS\n```\n"
    read = of_site("other_pages").with_other_pages(text, {"index", "d", "a", "b", "c"})
    assert read == text.replace("OTHERS", "c\nd")


def test_pages_in_folders_are_for_other_pages() -> None:
    assert of_site("other_pages").with_other_pages("\nOTHERS\n", {"a", "gallery/b"}) == "\na\n"


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


GALLERY = ROOT / "docs" / "gallery"
COLLECTIVES = {
    "convolution.mlir": {"halo-exchange on rows=2": 2, "halo-exchange on columns=2": 2},
    "embedding.mlir": {"all-reduce on model=2": 1},
    "experts.py": {"all-to-all on expert=4": 2},
    "fsdp.py": {"all-gather on data=4": 2, "reduce-scatter on data=4": 2},
    "mlp.mlir": {"all-reduce on model=2": 1},
    "pipeline.py": {"halo-exchange on stage=4": 1, "all-reduce on stage=4": 1},
    "reshard.mlir": {"recv on x=2 y=2 z=2": 2},
    "sequence_parallel.mlir": {"all-gather on model=4": 1, "reduce-scatter on model=4": 1},
    "softmax.mlir": {"all-reduce on vocabulary=3": 2},
    "transformer.py": {"all-reduce on model=4": 2},
    "uneven.mlir": {"all-reduce on x=4": 1},
    "vision.py": {"reduce-scatter on model=2": 1, "all-gather on model=2": 1},
}
"""The collectives in the text of each page, by source."""


@pytest.mark.parametrize("source", COLLECTIVES)
def test_programs_of_the_gallery(source: str) -> None:
    programs = of_site("programs")
    (page,) = (one for one in programs.pages(GALLERY) if one.source == source)
    shown = programs.read(GALLERY, page)
    assert Counter(f"{row[0]} on {row[1]}" for row in shown.collectives[:-1]) == COLLECTIVES[source]
    for picture in (shown.picture, *shown.plans):
        assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert all(f">{kind.partition(' ')[0]}<" in shown.picture for kind in COLLECTIVES[source])
    assert len(shown.plans) == len(page.reshards)
    assert "sdy." not in shown.local


def test_each_source_of_the_gallery_has_a_page() -> None:
    pages = of_site("programs").pages(GALLERY)
    sources = {path.name for path in GALLERY.iterdir() if path.suffix in (".mlir", ".py")}
    assert sources == {page.source for page in pages} == set(COLLECTIVES)
    contents = (ROOT / "docs" / "gallery.md").read_text()
    assert all(f"\ngallery/{page.name}\n" in contents for page in pages)


def test_versions_are_in_order() -> None:
    names = ["main", "0.2.0rc1", "0.9.0", "0.10.0", "dev", "0.2.0", "v1.0"]
    ordered = ["v1.0", "0.10.0", "0.9.0", "0.2.0", "0.2.0rc1", "dev", "main"]
    assert of_site("versions").in_order(names) == ordered


def test_a_tree_without_versions(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no version of the site"):
        of_site("versions").write(tmp_path)


def test_the_switch_of_versions(tmp_path: Path) -> None:
    """The selector opens the same page of another version, or its first page if it has none, without a server."""
    for name, pages in (("0.1.0", ["index.html"]), ("0.2.0", ["index.html", "gallery/new.html", "gallery/mlp.html"])):
        for page in pages:
            path = tmp_path / name / page
            path.parent.mkdir(parents=True, exist_ok=True)
            root = "../" * (page.count("/") + 1)
            switch = (ROOT / "docs" / "site" / "static" / "switch.js").as_uri()
            path.write_text(
                f'''<div class="versions" data-version="{name}" data-page="{page}" data-root="{root}"></div>
<script src="{root}versions.js"></script><script src="{switch}"></script>'''
            )
    of_site("versions").write(tmp_path)
    with chromium() as browser:
        page = browser.new_page()
        page.goto((tmp_path / "index.html").as_uri())
        page.wait_for_url("**/0.2.0/index.html")
        page.goto((tmp_path / "0.2.0" / "gallery" / "new.html").as_uri())
        assert page.locator("option").all_inner_texts() == ["0.2.0", "0.1.0"]
        assert page.locator("select").input_value() == "0.2.0"
        page.select_option("select", "0.1.0")
        page.wait_for_url("**/0.1.0/index.html")
        page.select_option("select", "0.2.0")
        page.wait_for_url("**/0.2.0/index.html")


CLASSES = re.findall(r"^\.\. autoclass:: (\S+)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
CLASSES += [
    f"mlir_shard.explain.values.{name}"
    for name in ("Tensor", "Operation", "Annotation", "Link", "Step", "Chain", "Lost", "Cause", "ExplainedCollective")
]


def class_of(name: str) -> type:
    module, _, last = name.rpartition(".")
    found = getattr(importlib.import_module(module or "mlir_shard.interfaces"), last)
    assert isinstance(found, type)
    return found


@pytest.mark.parametrize("name", sorted(set(CLASSES)))
def test_attributes_in_the_reference_exist(name: str) -> None:
    one = class_of(name)
    section = re.search(r"^ *Attributes:\n((?:(?: {8,}.*)?\n)+)", (one.__doc__ or "") + "\n", re.MULTILINE)
    named = re.findall(r"^ {8}([\w, ]+):", section[1], re.MULTILINE) if section else []
    attributes = {name for line in named for name in line.split(", ")}
    known = {name for base in one.__mro__ for name in getattr(base, "__annotations__", ())} | set(vars(one))
    assert attributes - known == set()
    if dataclasses.is_dataclass(one) and attributes and not issubclass(one, mlir_shard.Pass):
        fields = {field.name for field in dataclasses.fields(one) if not field.name.startswith("_")}
        assert fields - attributes == set(), "fields without a text"
