# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The colours of MLIR in code blocks: a lexer for Pygments, which has none."""

from typing import Any, ClassVar

from pygments import token
from pygments.lexer import RegexLexer


class MlirLexer(RegexLexer):
    """The words of MLIR in the custom assembly of any dialect."""

    name = "MLIR"
    aliases: ClassVar[list[str]] = ["mlir"]
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"\s+", token.Whitespace),
            (r"//.*", token.Comment.Single),
            (r'"(?:\\.|[^"\\])*"', token.String),
            (r"%[\w.$#-]+", token.Name.Variable),
            (r"\^[\w.$-]+", token.Name.Label),
            (r"@(?:[\w.$-]+|\"[^\"]*\")", token.Name.Function),
            (r"[#!][\w.$-]+", token.Name.Decorator),
            (r"(?:tensor|vector|memref|tuple|complex)(?=<)", token.Keyword.Type),
            (r"(?:[su]?i\d+|bf16|f\d+\w*|tf32|index|none)\b", token.Keyword.Type),
            # The sizes of a shape are each followed by an x.
            (r"(?:\d+|\?)x", token.Number.Integer),
            (r"-?\d+\.\d*(?:[eE][-+]?\d+)?|0x[\da-fA-F]+|-?\d+", token.Number),
            (r"(?:true|false|unit|dense|loc)\b", token.Keyword.Constant),
            (r"[a-z_][\w$]*(?:\.[\w$]+)+", token.Name.Builtin),
            (r"(?:module|return|attributes|private|public)\b", token.Keyword),
            (r"[A-Za-z_][\w$]*", token.Name),
            (r"->|[-=:,.*+/<>(){}\[\]|…·→?^&;!#@%'\\]", token.Punctuation),
        ]
    }


def setup(app: Any) -> dict[str, bool]:
    """Adds the lexer to Sphinx."""
    app.add_lexer("mlir", MlirLexer)
    return {"parallel_read_safe": True}
