# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Valid programs with unusual parts: sizes 0 and 1, dynamic ones, large and empty meshes, other element types, odd
names.

An edit applies everywhere in a program, so that most programs stay valid; the parser refuses the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

_SIZE = re.compile(r"(?<=[<x])\d+(?=x)")
_AXIS_SIZE = re.compile(r'(?<="=)\d+')
_MESH = re.compile(r"sdy\.mesh (@[\w\"]+) = <\[.*?\](?:, device_ids=\[.*?\])?>")
_DIMENSIONS = re.compile(r"#sdy\.sharding<@\w+, \[(.*?)\](?=[,>])")
_ELEMENTS = ("bf16", "f16", "f64", "f8E4M3FN", "i1", "i4", "ui8", "complex<f32>", "!quant.uniform<i8:f32, 1.0>")
_MOST_EDITS = 3


def unusual(text: str, draw: Random) -> str:
    """Returns a program with one to three edits."""
    for _ in range(draw.randint(1, _MOST_EDITS)):
        text = draw.choice(_EDITS)(text, draw)
    return text


def _resized(text: str, draw: Random) -> str:
    """Replaces one size by another one in all types."""
    sizes = sorted(set(_SIZE.findall(text)))
    if not sizes:
        return text
    chosen, new = draw.choice(sizes), draw.choice(("0", "1", "1", "3", "7", "?", "1000003"))
    return _SIZE.sub(lambda found: new if found[0] == chosen else found[0], text)


def _resized_axis(text: str, draw: Random) -> str:
    new = draw.choice(("1", "1", "3", "5", "7", "16", "1000", "262144", "1073741824"))
    sizes = list(_AXIS_SIZE.finditer(text))
    if not sizes:
        return text
    found = draw.choice(sizes)
    return text[: found.start()] + new + text[found.end() :]


def _other_mesh(text: str, draw: Random) -> str:
    """Replaces a mesh by one without axes, one of one device, or one of reordered devices."""
    found = _MESH.search(text)
    if not found:
        return text
    mesh = draw.choice(("<[]>", "<[], device_ids=[0]>", '<["x"=1]>', '<["x"=2, "y"=2], device_ids=[3, 1, 2, 0]>'))
    return f"{text[: found.start()]}sdy.mesh {found[1]} = {mesh}{text[found.end() :]}"


def _second_mesh(text: str, draw: Random) -> str:
    mesh = draw.choice(("<[]>", "<[], device_ids=[1]>", '<["x"=3]>', '<["only"=2]>'))
    return f"sdy.mesh @second = {mesh}\n{text}"


def _other_element(text: str, draw: Random) -> str:
    return re.sub(r"(?<=[x<])f32\b", draw.choice(_ELEMENTS), text)


def _sharding_suffix(text: str, draw: Random) -> str:
    """Adds replicated or unreduced axes to a sharding."""
    axes = sorted(set(re.findall(r'"(\w+)"=\d', text))) or ["x"]
    suffix = draw.choice((", replicated={", ", unreduced={")) + f'"{draw.choice(axes)}"}}'
    found = list(_DIMENSIONS.finditer(text))
    if not found:
        return text
    chosen = draw.choice(found)
    return text[: chosen.end()] + suffix + text[chosen.end() :]


def _priority(text: str, draw: Random) -> str:
    places = [found.end() for found in re.finditer(r'\{(?:"\w+"[^{}]*)?\??\}(?=[,\]])', text)]
    if not places:
        return text
    place = draw.choice(places)
    return f"{text[:place]}p{draw.choice((0, 1, 9, 1000))}{text[place:]}"


def _opened(text: str, draw: Random) -> str:
    return text.replace('"}', '", ?}') if draw.random() < 0.5 else text.replace("?}", "}").replace(", }", "}")


def _renamed(text: str, draw: Random) -> str:
    """Renames a function to a name that must be quoted."""
    names = sorted(set(re.findall(r"func\.func (?:\w+ )?@(\w+)", text)))
    if not names:
        return text
    new = draw.choice(('"a b"', '"ä"', '"\\22"', "_" * 300, '"%0"', '"loc(unknown)"'))
    return re.sub(rf"@{draw.choice(names)}\b", lambda _: f"@{new}", text)


def _called_twice(text: str, draw: Random) -> str:
    """Adds a chain of functions of some depth, each of which calls the next one twice."""
    depth = draw.choice((2, 5, 8))
    type_ = "tensor<8xf32>"
    chain = [f"func.func private @level0(%a: {type_}) -> {type_} {{\n  return %a : {type_}\n}}"]
    for level in range(1, depth + 1):
        body = "".join(
            f"  %{after} = call @level{level - 1}(%{before}) : ({type_}) -> {type_}\n"
            for before, after in (("a", "0"), ("0", "1"))
        )
        chain.append(f"func.func private @level{level}(%a: {type_}) -> {type_} {{\n{body}  return %1 : {type_}\n}}")
    chain.append(f"func.func @calls(%a: {type_}) -> {type_} {{\n  %0 = call @level{depth}(%a) : ({type_}) -> {type_}\n")
    return text + "\n" + "\n".join(chain) + f"  return %0 : {type_}\n}}\n"


def _without_bodies(text: str, draw: Random) -> str:
    del draw
    return text + "\nfunc.func private @declared(tensor<4xf32>)\nfunc.func @nothing() {\n  return\n}\n"


_EDITS: tuple[Callable[[str, Random], str], ...] = (
    *(_resized, _resized, _resized_axis, _resized_axis, _other_mesh, _second_mesh, _other_element, _sharding_suffix),
    *(_sharding_suffix, _priority, _opened, _renamed, _called_twice, _without_bodies),
)
