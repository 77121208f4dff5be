# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the code blocks of the documentation: `python -m documents [PAGE...]`.

The blocks of a page run from top to bottom, in one Python process and one new directory:

| block | how it is checked |
| --- | --- |
| `python` | executed; all of a page share their names |
| `sh` | executed by bash, every command must succeed |
| `console` | the lines after `$` are executed as `sh`, the others are their output |
| `mlir` | parsed and verified |

A comment of HTML in front of a block changes that:

| comment | meaning |
| --- | --- |
| `<!-- file: NAME -->` | the block is the contents of this file |
| `<!-- output -->` | the block is part of the output of the last one that was executed |
| `<!-- fails -->` | the commands end with a status other than 0 |
| `<!-- not run: REASON -->` | the block is not checked, except the files of the repository that its commands name |

A comment of several lines whose first word is `python` or `sh` is a block of that language that is hidden from readers.

In outputs, `…` stands for any text within a line, and alone in a line for any lines. The amount of white space and
numbers with an exponent do not count. `blocks` reads pages, `output` compares outputs, `execution` executes.
"""
