# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs every code block of the documentation that is not marked as not run, and tests the rules of these checks."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from documents import blocks, output
from fork_server import ForkServer

TEST = Path(blocks.__file__).parents[1]
PRINTED = {
    "from-jax": ["from-jax.md:16:13", "all_reduce"],
    "from-torch": ["'layers.0.wq.weight'", '<@mesh, [{"model"}, {}]>'],
    "from-python": [
        "<LocalProgram @main(x: tensor<32x16xf32>, params.w1: tensor<16x16xf32>, params.w2:",
        "no plan of these moves is cheaper",
    ],
    "user-dialects": [
        '"attn.scores"(%arg3, %arg1) : (tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>) -> tensor<2x2x8x8xf32>',
        "attn.constant",
    ],
}


Run = Callable[[Path], subprocess.CompletedProcess[str]]


@pytest.fixture
def run(fork_server: ForkServer) -> Run:
    """Returns a function that runs a page as `python -m documents` does."""
    command = [*fork_server.command("documents"), "--fork-server", fork_server.address]
    return lambda page: subprocess.run([*command, page], cwd=TEST, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("page", blocks.pages(), ids=lambda page: page.stem)
def test_every_block(run: Run, page: Path) -> None:
    ended = run(page)
    assert ended.returncode == 0, ended.stderr
    for text in PRINTED.get(page.stem, []):
        assert text in ended.stdout
    if page.stem == "user-dialects":
        assert "all_slice" not in ended.stdout
        assert "all_gather" not in ended.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("    shard-opt --help\n", "page.md:1: a code block is indented"),
        ("```\nx\n```\n", "page.md:1: how to check a block of the language '' is not known"),
        ("<!-- not run -->\n```sh\nx\n```\n", "page.md:1: `not run` needs a text behind a colon"),
        ("<!-- ouptut -->\n```text\nx\n```\n", "page.md:1: the comment is none of: file, output, fails, not run"),
        ("<!-- output -->\n\nA paragraph.\n", "page.md:3: the comment `output` is not in front of a code block"),
        ("```sh\nfalse\n```\n", "page.md:1: exit status 1"),
        ("<!-- fails -->\n```sh\ntrue\n```\n", "page.md:2: exit status 0"),
        ("```python\nx = 1\nassert x == 2\n```\n", 'File "page.md", line 3'),
        ("```mlir\nfunc.func @f() -> i32 {\n  return\n}\n```\n", "'func.return' op has 0 operands"),
        ("```console\n$ echo a\nb\n```\n", "the output has not:\nb"),
        ("```sh\necho a\n```\n\n<!-- output -->\n```text\nb\n```\n", "page.md:6: the output has not:\nb"),
        ("<!-- not run: a benchmark -->\n```sh\npython benchmarks/none.py\n```\n", "benchmarks/none.py does not exist"),
    ],
)
def test_pages_that_are_wrong(run: Run, tmp_path: Path, text: str, message: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    ended = run(page)
    assert ended.returncode == 1
    assert message in ended.stderr


def test_blocks_share_names_and_files(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- python\nx = 1\n-->\n\n```python\nprint(x)\n```\n\n<!-- file: y.txt -->\n```text\nfrom a file\n```\n\n"
        "```console\n$ cat y.txt\nfrom a file\n$ test -d docs\n```\n\n<!-- output -->\n```text\n```\n"
    )
    ended = run(page)
    assert (ended.stderr, ended.stdout) == ("", "1\nfrom a file\n")


@pytest.mark.parametrize(
    ("expected", "actual", "whole", "missing"),
    [
        ("a b", "a\n  b\n", True, None),
        ("a", "a\nb\n", True, "its end after the line: a"),
        ("a", "b\na\nc\n", False, None),
        ("a\n…\nc", "a\nb\nb\nc\n", True, None),
        ("a\n…", "a\nb\nb\nc\n", True, None),
        ("a …\nc", "a b\nc\n", True, None),
        ("a …\nc", "a b\nb\nc\n", True, "c"),
        ("error 1.5e-06 OK", "error 2e-07 OK", True, None),
        ("error 1.5e-06 OK", "error 1.5 OK", True, "error 1.5e-06 OK"),
        ("a\nx\nc", "a\nb\nc\n", False, "x"),
    ],
)
def test_outputs(expected: str, actual: str, whole: bool, missing: str | None) -> None:
    assert output.missing_line(expected, actual, whole=whole) == missing
