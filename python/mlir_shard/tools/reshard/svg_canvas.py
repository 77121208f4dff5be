# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An SVG picture as it is drawn: elements with as few attributes as they need, numbers as short as they are exact."""

from __future__ import annotations

from xml.etree import ElementTree

_NAMESPACE = "http://www.w3.org/2000/svg"


class SvgCanvas:
    """Draws from the top left corner; lengths are in pixels. The same calls make the same text."""

    def __init__(self) -> None:
        self._root = ElementTree.Element("svg", {"xmlns": _NAMESPACE})
        self._definitions = ElementTree.SubElement(self._root, "defs")
        self._patterns: dict[tuple[str, ...], str] = {}

    def rectangle(self, x: float, y: float, width: float, height: float, *, kind: str = "", fill: str = "") -> None:
        """A rectangle of a class, a colour, or both."""
        attributes = {"x": _number(x), "y": _number(y), "width": _number(width), "height": _number(height)}
        ElementTree.SubElement(self._root, "rect", attributes | _look(kind, fill))

    def line(self, x: float, y: float, to_x: float, to_y: float, kind: str) -> None:
        """A line of a class."""
        attributes = {"x1": _number(x), "y1": _number(y), "x2": _number(to_x), "y2": _number(to_y), "class": kind}
        ElementTree.SubElement(self._root, "line", attributes)

    def text(self, x: float, y: float, content: str, kind: str = "") -> None:
        """Text on a base line; a class says where `x` is of it."""
        element = ElementTree.SubElement(self._root, "text", {"x": _number(x), "y": _number(y)} | _look(kind, ""))
        element.text = _printable(content)

    def stripes(self, colours: tuple[str, ...], width: float) -> str:
        """A fill of slanting stripes, each so wide."""
        name = self._patterns.get(colours)
        if name is None:
            name = self._patterns[colours] = f"stripes-{len(self._patterns)}"
            period = _number(width * len(colours))
            attributes = {"id": name, "width": period, "height": period, "patternUnits": "userSpaceOnUse"}
            attributes["patternTransform"] = "rotate(45)"
            pattern = ElementTree.SubElement(self._definitions, "pattern", attributes)
            for number, colour in enumerate(colours):
                stripe = {"x": _number(number * width), "width": _number(width), "height": period, "fill": colour}
                ElementTree.SubElement(pattern, "rect", stripe)
        return f"url(#{name})"

    def picture(self, width: float, height: float, title: str, style: str) -> str:
        """The SVG file, on a ground of the class `ground`, with a title for those who cannot see it."""
        root = ElementTree.Element("svg", dict(self._root.attrib))
        root.attrib |= {"width": _number(width), "height": _number(height), "role": "img"}
        root.set("viewBox", f"0 0 {_number(width)} {_number(height)}")
        ElementTree.SubElement(root, "title").text = _printable(title)
        ElementTree.SubElement(root, "style").text = style
        ground = {"x": "0.5", "y": "0.5", "rx": "8", "class": "ground"}
        ground |= {"width": _number(width - 1), "height": _number(height - 1)}
        ElementTree.SubElement(root, "rect", ground)
        root.extend(child for child in self._root if child is not self._definitions or len(child))
        ElementTree.indent(root)
        return ElementTree.tostring(root, encoding="unicode") + "\n"


def _look(kind: str, fill: str) -> dict[str, str]:
    return {name: value for name, value in (("class", kind), ("fill", fill)) if value}


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _printable(text: str) -> str:
    """The text without control characters, which XML has no way to say."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
