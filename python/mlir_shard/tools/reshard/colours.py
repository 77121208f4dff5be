# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A colour for each device: as many hues as devices, of one lightness or a few, so that dark text reads on all of them.

Colours are chosen in OKLCH, where equal steps of hue look alike (Björn Ottosson, "A perceptual color space for image
processing", 2020).
"""

from __future__ import annotations

from functools import cache
from math import cos, radians, sin

_CHROMA = 0.115
_FEW = 12
_LIGHTNESS = (0.82, 0.72, 0.88, 0.65)
_DARKER = 0.17


@cache
def device_colour(position: int, count: int, *, is_text: bool = False) -> str:
    """The colour, as `#rrggbb`, of the device at a position of a mesh of `count` devices.

    That of text is a darker one, which can be read on a light ground and on a dark one.
    """
    hue = 20 + 360 * position / max(count, 1)
    lightness = _LIGHTNESS[0 if count <= _FEW else position % len(_LIGHTNESS)]
    return _rgb(lightness - _DARKER * is_text, _CHROMA, hue)


def _rgb(lightness: float, chroma: float, hue: float) -> str:
    a, b = chroma * cos(radians(hue)), chroma * sin(radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return "#" + "".join(f"{round(255 * _gamma(min(max(one, 0.0), 1.0))):02x}" for one in linear)


def _gamma(linear: float) -> float:
    return 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055
