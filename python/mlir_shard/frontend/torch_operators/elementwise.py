# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise functions of torch without a lowering, or with a wrong one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log, nan, pi, sqrt
from typing import Any

import torch

_aten = torch.ops.aten


def _fmod(x: torch.Tensor, y: Any) -> torch.Tensor:
    """Gives the remainder of magnitudes, which is exact, the sign of the dividend."""
    found = torch.remainder(abs(x), abs(y))
    return torch.where(x < 0, -found, found)


def _isfinite(x: torch.Tensor) -> torch.Tensor:
    if not x.dtype.is_floating_point:
        return NotImplemented
    # torch-mlir takes `x == x` for true.
    return torch.logical_not((x != x) | (x.abs() == inf))


def _reciprocal(x: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(x) / x if x.dtype.is_floating_point else NotImplemented


def _hypot(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Scales by the larger magnitude, whose square may overflow."""
    x, y = x.abs(), y.abs()
    large, small = torch.maximum(x, y), torch.minimum(x, y)
    # Zeros and infinities need no scale.
    is_plain = (large == 0) | (large == inf)
    ratio = torch.where(is_plain, torch.zeros_like(small), small / torch.where(is_plain, torch.ones_like(large), large))
    found = large * torch.sqrt(1 + ratio * ratio)
    return torch.where((x == inf) | (y == inf), torch.full_like(found, inf), found)


def _shift_left(x: torch.Tensor, amount: Any) -> torch.Tensor:
    amount = _amount(x, amount)
    is_in_range = (amount >= 0) & (amount < _bits(x))
    kept = _aten.bitwise_left_shift.Tensor(x, torch.where(is_in_range, amount, torch.zeros_like(amount)))
    return torch.where(is_in_range, kept, torch.zeros_like(kept))


def _shift_right(x: torch.Tensor, amount: Any) -> torch.Tensor:
    amount, most = _amount(x, amount), _bits(x) - 1
    is_in_range = (amount >= 0) & (amount <= most)
    return _aten.bitwise_right_shift.Tensor(x, torch.where(is_in_range, amount, torch.full_like(amount, most)))


def _amount(x: torch.Tensor, amount: Any) -> torch.Tensor:
    return amount.to(x.dtype) if isinstance(amount, torch.Tensor) else torch.full_like(x, amount)


def _bits(x: torch.Tensor) -> int:
    return torch.iinfo(x.dtype).bits


def _polynomial(x: torch.Tensor, coefficients: Sequence[float]) -> torch.Tensor:
    """Evaluates a polynomial whose highest coefficient is the first."""
    found = torch.full_like(x, coefficients[0])
    for one in coefficients[1:]:
        found = found * x + one
    return found


_ERFC_BELOW_8 = (
    (
        2.46196981473530512524e-10,
        5.64189564831068821977e-1,
        7.46321056442269912687e0,
        4.86371970985681366614e1,
        1.96520832956077098242e2,
        5.26445194995477358631e2,
        9.34528527171957607540e2,
        1.02755188689515710272e3,
        5.57535335369399327526e2,
    ),
    (
        1.0,
        1.32281951154744992508e1,
        8.67072140885989742329e1,
        3.54937778887819891062e2,
        9.75708501743205489753e2,
        1.82390916687909736289e3,
        2.24633760818710981792e3,
        1.65666309194161350182e3,
        5.57535340817727675546e2,
    ),
)
_ERFC_FROM_8 = (
    (
        5.64189583547755073984e-1,
        1.27536670759978104416e0,
        5.01905042251180477414e0,
        6.16021097993053585195e0,
        7.40974269950448939160e0,
        2.97886665372100240670e0,
    ),
    (
        1.0,
        2.26052863220117276590e0,
        9.39603524938001434673e0,
        1.20489539808096656605e1,
        1.70814450747565897222e1,
        9.60896809063285878198e0,
        3.36907645100081516050e0,
    ),
)
"""Rational approximations of `erfc(x) exp(x²)` by numerator and denominator, of Cephes."""


def _erfcx_of_positive(x: torch.Tensor) -> torch.Tensor:
    """Returns `erfc(x) exp(x²)` for numbers that are at least 1."""
    is_small = x < 8
    # Powers of large numbers overflow: each polynomial is evaluated in its range.
    low, high = torch.where(is_small, x, torch.ones_like(x)), torch.where(is_small, torch.full_like(x, 8.0), x)
    high = torch.minimum(high, torch.full_like(high, 1e5))
    first, second = (
        _polynomial(of, numerator) / _polynomial(of, denominator)
        for of, (numerator, denominator) in ((low, _ERFC_BELOW_8), (high, _ERFC_FROM_8))
    )
    far = 1 / (x * sqrt(pi))
    return torch.where(is_small, first, torch.where(x < 1e5, second, far))


def _erfc(x: torch.Tensor) -> torch.Tensor:
    if not x.dtype.is_floating_point:
        return NotImplemented
    away = x.abs()
    tail = torch.exp(-x * x) * _erfcx_of_positive(torch.where(away < 1, torch.ones_like(x), away))
    tail = torch.where(away > 1e5, torch.zeros_like(tail), tail)
    return torch.where(away < 1, 1 - torch.erf(x), torch.where(x < 0, 2 - tail, tail))


def _erfcx(x: torch.Tensor) -> torch.Tensor:
    if not x.dtype.is_floating_point:
        return NotImplemented
    away = x.abs()
    scale = torch.exp(x * x)
    tail = _erfcx_of_positive(torch.where(away < 1, torch.ones_like(x), away))
    return torch.where(away < 1, scale * (1 - torch.erf(x)), torch.where(x < 0, 2 * scale - tail, tail))


_ERFINV_CENTER = (
    (-0.140543331, 0.914624893, -1.645349621, 0.886226899),
    (0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0),
)
_ERFINV_TAIL = ((1.641345311, 3.429567803, -1.624906493, -1.970840454), (1.637067800, 3.543889200, 1.0))


def _erfinv(y: torch.Tensor) -> torch.Tensor:
    """Improves a rational approximation by two steps of Newton's method, as torch does."""
    if not y.dtype.is_floating_point:
        return NotImplemented
    away = y.abs()
    is_center = away <= 0.7
    near = torch.where(is_center, y, torch.zeros_like(y))
    square = near * near
    center = near * _polynomial(square, _ERFINV_CENTER[0]) / _polynomial(square, _ERFINV_CENTER[1])
    far = torch.where(is_center | (away >= 1), torch.full_like(y, 0.9), away)
    root = torch.sqrt(-torch.log((1 - far) / 2))
    tail = _polynomial(root, _ERFINV_TAIL[0]) / _polynomial(root, _ERFINV_TAIL[1])
    found = torch.where(is_center, center, torch.where(y < 0, -tail, tail))
    target = torch.where(away >= 1, torch.zeros_like(y), y)
    for _ in range(2):
        found = found - (torch.erf(found) - target) / ((2 / sqrt(pi)) * torch.exp(-found * found))
    at_end = torch.where(y < 0, torch.full_like(y, -inf), torch.full_like(y, inf))
    beyond = torch.where(away == 1, at_end, torch.full_like(y, nan))
    return torch.where(away < 1, found, beyond)


_LANCZOS_G = 7.0
_LANCZOS = (
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
)
"""The coefficients of the Lanczos approximation of the gamma function after the constant 1."""


def _reflected(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns whether numbers are below 0.5, and the argument of the series: `-x` for them, or else `x - 1`."""
    is_low = x < 0.5
    return is_low, torch.where(is_low, -x, x - 1)


def _log_gamma(x: torch.Tensor) -> torch.Tensor:
    if not x.dtype.is_floating_point:
        return NotImplemented
    is_low, z = _reflected(x)
    series = torch.ones_like(z)
    for index, one in enumerate(_LANCZOS):
        series = series + one / (z + (index + 1))
    shifted = z + (_LANCZOS_G + 0.5)
    log_shifted = log(_LANCZOS_G + 0.5) + torch.log1p(z / (_LANCZOS_G + 0.5))
    found = (z + 0.5 - shifted / log_shifted) * log_shifted + 0.5 * log(2 * pi) + torch.log(series)
    away = x.abs()
    fraction = away - torch.floor(away)
    sine = torch.sin(pi * torch.where(fraction > 0.5, 1 - fraction, fraction))
    below = log(pi) - torch.log(sine) - found
    # Poles are at integers below 1; the function is infinite at both infinities.
    below = torch.where(sine == 0, torch.full_like(below, inf), below)
    found = torch.where(is_low, below, found)
    return torch.where(away == inf, torch.full_like(found, inf), found)


def _digamma(x: torch.Tensor) -> torch.Tensor:
    if not x.dtype.is_floating_point:
        return NotImplemented
    is_low, z = _reflected(x)
    value, slope = torch.ones_like(z), torch.zeros_like(z)
    for index, one in enumerate(_LANCZOS):
        term = one / (z + (index + 1))
        value, slope = value + term, slope - term / (z + (index + 1))
    shifted = z + (_LANCZOS_G + 0.5)
    log_shifted = log(_LANCZOS_G + 0.5) + torch.log1p(z / (_LANCZOS_G + 0.5))
    found = log_shifted + slope / value - _LANCZOS_G / shifted
    fraction = x + torch.floor(-x + 0.5)
    below = found - pi * torch.cos(pi * fraction) / torch.sin(pi * fraction)
    below = torch.where(x == torch.floor(x), torch.full_like(below, nan), below)
    below = torch.where(x == 0, torch.where(1 / x < 0, *_both_ends(x)), below)
    return torch.where(is_low, below, torch.where(x == inf, x, found))


def _both_ends(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.full_like(x, inf), torch.full_like(x, -inf)


def _power(x: torch.Tensor, exponent: float) -> torch.Tensor:
    """Multiplies integers, which torch-mlir does not for linalg."""
    if x.dtype.is_floating_point or x.dtype.is_complex or not isinstance(exponent, int) or not 0 <= exponent <= 64:
        return NotImplemented
    found, square = torch.ones_like(x), x
    while exponent:
        if exponent % 2:
            found = found * square
        exponent //= 2
        if exponent:
            square = square * square
    return found


def _maximum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (
        torch.where((x >= y) | (x != x), x, y) if x.dtype.is_floating_point and x.dtype == y.dtype else NotImplemented
    )


def _minimum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (
        torch.where((x <= y) | (x != x), x, y) if x.dtype.is_floating_point and x.dtype == y.dtype else NotImplemented
    )


def _clamp(x: torch.Tensor, low: Any = None, high: Any = None) -> torch.Tensor:
    if not x.dtype.is_floating_point or any(isinstance(one, torch.Tensor) for one in (low, high)):
        return NotImplemented
    found = x
    if low is not None:
        found = torch.where(found < low, torch.full_like(found, low), found)
    return found if high is None else torch.where(found > high, torch.full_like(found, high), found)


def _clamp_tensors(x: torch.Tensor, low: Any = None, high: Any = None) -> torch.Tensor:
    if not x.dtype.is_floating_point:
        return NotImplemented
    found = x if low is None else torch.maximum(x, low)
    return found if high is None else torch.minimum(found, high)


def _hardtanh(x: torch.Tensor, low: float = -1, high: float = 1) -> torch.Tensor:
    return _clamp(x, low, high)


ELEMENTWISE: dict[Any, Callable[..., Any]] = {
    _aten.fmod.Scalar: _fmod,
    _aten.fmod.Tensor: _fmod,
    _aten.isfinite.default: _isfinite,
    _aten.reciprocal.default: _reciprocal,
    _aten.hypot.default: _hypot,
    _aten.__lshift__.Scalar: _shift_left,
    _aten.__lshift__.Tensor: _shift_left,
    _aten.__rshift__.Scalar: _shift_right,
    _aten.__rshift__.Tensor: _shift_right,
    _aten.bitwise_left_shift.Tensor_Scalar: _shift_left,
    _aten.bitwise_right_shift.Tensor_Scalar: _shift_right,
    _aten.erfc.default: _erfc,
    _aten.special_erfcx.default: _erfcx,
    _aten.erfinv.default: _erfinv,
    _aten.lgamma.default: _log_gamma,
    _aten.digamma.default: _digamma,
    _aten.pow.Tensor_Scalar: _power,
}
WITH_NAN: dict[Any, Callable[..., Any]] = {
    _aten.maximum.default: _maximum,
    _aten.minimum.default: _minimum,
    _aten.clamp.default: _clamp,
    _aten.clamp.Tensor: _clamp_tensors,
    _aten.clamp_min.default: lambda x, low: _clamp(x, low),
    _aten.clamp_max.default: lambda x, high: _clamp(x, None, high),
    _aten.hardtanh.default: _hardtanh,
}
"""Functions of NaN, which linalg and tosa would order like another number."""
