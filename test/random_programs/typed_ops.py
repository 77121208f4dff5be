# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO operations on element types other than f32, on numbers that these represent exactly.

Operands are small integers, so that no sum or product depends on the order in which it is computed.
"""

from __future__ import annotations

from differential.program import Shape, Value
from differential.scope import Scope, array, combiner

# The element types of the factors and of the product.
_PRODUCTS = (
    *(("i8", "i32"), ("ui8", "i32"), ("ui8", "ui32"), ("i16", "i32"), ("i32", "i32"), ("i64", "i64"), ("ui8", "ui8")),
    *(("bf16", "f32"), ("f16", "f32"), ("f8E4M3FN", "f32"), ("f8E5M2", "f32"), ("i1", "i1")),
)
_REDUCTIONS = {
    "add": ("i1", "i8", "i16", "ui8", "ui32", "i64"),
    "maximum": ("i8", "ui8", "ui16", "bf16", "f16", "f8E5M2", "i4"),
    "minimum": ("i8", "ui8", "ui16", "bf16", "f16", "f8E5M2", "i4"),
    "or": ("i1", "i8", "ui32"),
    "and": ("i1", "ui8", "i64"),
    "xor": ("i1", "i16"),
}
_MOVED = ("i1", "i8", "ui16", "i64", "bf16", "f16", "i4", "f8E4M3FN", "complex<f32>")
_INDICES = ("i8", "i16", "i64", "ui8", "ui32")
_NEUTRAL = {"add": "0", "or": "0", "xor": "0", "and": "-1"}


def exact(scope: Scope, value: Value, element: str) -> Value:
    """Appends the integers from -3 to 3 near a value, or from 0 to 3 for an unsigned type, in an element type."""
    least = "0.0" if element.startswith("ui") else "-3.0"
    low, high = scope.constant((), "f32", least), scope.constant((), "f32", "3.0")
    (bounded,) = scope.op("clamp", [low, value, high], [(value.shape, "f32")])
    (near,) = scope.op("round_nearest_even", [bounded], [(value.shape, "f32")])
    return scope.converted(near, element)


def product(scope: Scope) -> None:
    """Appends a product with wider results, by `dot_general` with a batch dimension or none, or by a convolution."""
    value = scope.pick(lambda one: len(one.shape) in (2, 3))
    if value is None:
        return
    of_factors, of_result = scope.random.choice(_PRODUCTS)
    *batch, rows, inner = value.shape
    columns = scope.random.choice([1, 3, 4, 8])
    other = exact(scope, scope.of_type((*batch, inner, columns)), of_factors)
    dims, at = list(range(len(batch))), len(batch)
    numbers = (
        f"lhs_batching_dimensions = {dims}, rhs_batching_dimensions = {dims}, "
        f"lhs_contracting_dimensions = [{at + 1}], rhs_contracting_dimensions = [{at}]"
    )
    properties = f"dot_dimension_numbers = #stablehlo.dot<{numbers}>"
    factors = [exact(scope, value, of_factors), other]
    scope.op("dot_general", factors, [((*batch, rows, columns), of_result)], properties)
    scope.converted(scope.values[-1], "f32")


def complex_product(scope: Scope) -> None:
    """Appends a product of complex matrices, or a sum or product of their elements."""
    value = scope.pick(lambda one: len(one.shape) == 2)
    if value is None:
        return
    element = "complex<f32>"
    (left,) = scope.op("complex", [value, scope.alike(value)], [(value.shape, element)])
    (right,) = scope.op("complex", [scope.alike(value), value], [(value.shape, element)])
    kind, shape = scope.random.random(), value.shape
    if kind < 0.4:
        shape = (value.shape[0],) * 2
        numbers = "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]"
        properties = f"dot_dimension_numbers = #stablehlo.dot<{numbers}>"
        scope.op("dot_general", [left, right], [(shape, element)], properties)
    elif kind < 0.6:
        dim = scope.random.randrange(2)
        shape = (value.shape[1 - dim],)
        zero = scope.constant((), element, "(0.0, 0.0)")
        region = combiner(scope, "add", [element])
        scope.op("reduce", [left, zero], [(shape, element)], f"dimensions = {array([dim])}", [region])
    else:
        scope.op(scope.random.choice(["add", "multiply", "subtract"]), [left, right], [(shape, element)])
    scope.op(scope.random.choice(["real", "imag", "abs"]), [scope.values[-1]], [(shape, "f32")])


def convolution(scope: Scope) -> None:
    """Appends a convolution of any element types, with dilations, reversal and groups, in any dimension order."""
    of_factors, of_result = scope.random.choice([("f32", "f32"), ("f32", "f32"), *_PRODUCTS[:-1]])
    random = scope.random
    features, batch = random.choice([2, 4, 6]), random.choice([2, 4])
    groups = random.choice([(1, 1), (1, 1), (2, 1), (1, 2)])
    outputs = 2 * random.choice([1, 2, 3])
    size, window = random.choice([5, 8, 9, 12]), random.choice([1, 2, 3])
    stride, base, inner = (random.choice([1, 1, 2]) for _ in range(3))
    low, high = random.choice([-1, 0, 1, 2]), random.choice([0, 1, 2])
    count = ((size - 1) * base + 1 + low + high - (window - 1) * inner - 1) // stride + 1
    orders = [random.sample(letters, 3) for letters in (("b", "0", "f"), ("0", "i", "o"), ("b", "0", "f"))]
    of_image = {"b": batch, "0": size, "f": features}
    of_kernel = {"0": window, "i": features // groups[0], "o": outputs}
    of_result_dims = {"b": batch // groups[1], "0": count, "f": outputs}
    if count < 1:
        return
    shapes = [
        tuple(sizes[letter] for letter in order)
        for sizes, order in zip((of_image, of_kernel, of_result_dims), orders, strict=True)
    ]
    image, kernel = (exact(scope, scope.of_type(shape), of_factors) for shape in shapes[:2])
    spelled = "x".join(f"[{', '.join(order)}]" for order in orders[:2])
    properties = (
        f"dimension_numbers = #stablehlo.conv<{spelled}->[{', '.join(orders[2])}]>, "
        f"batch_group_count = {groups[1]} : i64, feature_group_count = {groups[0]} : i64, "
        f"window_strides = {array([stride])}, padding = dense<[[{low}, {high}]]> : tensor<1x2xi64>, "
        f"lhs_dilation = {array([base])}, rhs_dilation = {array([inner])}, "
        f"window_reversal = array<i1: {str(scope.chance(0.3)).lower()}>"
    )
    scope.op("convolution", [image, kernel], [(shapes[2], of_result)], properties)
    if of_result != "f32":
        scope.converted(scope.values[-1], "f32")


def reduction(scope: Scope) -> None:
    """Reduces a tensor along dimensions, or cumulatively along one."""
    value = scope.pick(lambda one: len(one.shape) > 0)
    if value is None:
        return
    name = scope.random.choice([*_REDUCTIONS])
    element = scope.random.choice(_REDUCTIONS[name])
    one = exact(scope, value, element)
    region = combiner(scope, name, [element])
    initial = scope.constant((), element, _initial(name, element))
    scope.values.remove(initial)
    if scope.chance(0.6):
        rank = len(value.shape)
        dims = sorted(scope.random.sample(range(rank), scope.random.randint(1, rank)))
        shape = tuple(size for dim, size in enumerate(value.shape) if dim not in dims)
        scope.op("reduce", [one, initial], [(shape, element)], f"dimensions = {array(dims)}", [region])
    else:
        dim = scope.random.randrange(len(value.shape))
        window = [size if at == dim else 1 for at, size in enumerate(value.shape)]
        padding = [[size - 1 if at == dim else 0, 0] for at, size in enumerate(value.shape)]
        properties = f"window_dimensions = {array(window)}, padding = dense<{padding}> : tensor<{len(window)}x2xi64>"
        scope.op("reduce_window", [one, initial], [(value.shape, element)], properties, [region])
    scope.converted(scope.values[-1], "f32")


def _initial(name: str, element: str) -> str:
    """Returns the neutral element for the values that `exact` returns."""
    if name in ("maximum", "minimum"):
        number = -4 if name == "maximum" else 4
        return f"{number}.0" if element[0] in "fb" else str(max(number, 0) if element.startswith("u") else number)
    if element == "i1":
        return "true" if name == "and" else "false"
    return str(255) if (name, element) == ("and", "ui8") else _NEUTRAL[name]


def moved(scope: Scope) -> None:
    """Moves elements of any type by one or two operations, with indices of any integer type."""
    value = scope.pick(lambda one: 0 < len(one.shape) < 4)
    if value is None:
        return
    element = scope.random.choice(_MOVED)
    if element.startswith("complex"):
        (one,) = scope.op("complex", [value, scope.alike(value)], [(value.shape, element)])
    else:
        one = exact(scope, value, element)
    for _ in range(scope.random.randint(1, 2)):
        one = scope.random.choice(_MOVES)(scope, one)
    if element.startswith("complex"):
        scope.op(scope.random.choice(["real", "imag"]), [one], [(one.shape, "f32")])
    else:
        scope.converted(one, "f32")


def _reversed(scope: Scope, value: Value) -> Value:
    dims = array([scope.random.randrange(len(value.shape))])
    return scope.op("reverse", [value], [(value.shape, value.element)], f"dimensions = {dims}")[0]


def _transposed(scope: Scope, value: Value) -> Value:
    order = scope.random.sample(range(len(value.shape)), len(value.shape))
    shape = tuple(value.shape[dim] for dim in order)
    return scope.op("transpose", [value], [(shape, value.element)], f"permutation = {array(order)}")[0]


def _padded(scope: Scope, value: Value) -> Value:
    low, high, between = ([scope.random.choice([0, 0, 1]) for _ in value.shape] for _ in range(3))
    shape = tuple(
        size + before + after + (size - 1) * inner
        for size, before, after, inner in zip(value.shape, low, high, between, strict=True)
    )
    properties = (
        f"edge_padding_low = {array(low)}, edge_padding_high = {array(high)}, interior_padding = {array(between)}"
    )
    return scope.op("pad", [value, _scalar(scope, value)], [(shape, value.element)], properties)[0]


def _scalar(scope: Scope, value: Value) -> Value:
    literal = {"i1": "true", "c": "(1.0, 2.0)", "f": "1.0", "b": "1.0"}
    return scope.constant((), value.element, literal.get(value.element, literal.get(value.element[0], "1")))


def _joined(scope: Scope, value: Value) -> Value:
    dim = scope.random.randrange(len(value.shape))
    shape = tuple(2 * size if at == dim else size for at, size in enumerate(value.shape))
    properties = f"dimension = {dim} : i64"
    return scope.op("concatenate", [value, _reversed(scope, value)], [(shape, value.element)], properties)[0]


def _sliced(scope: Scope, value: Value) -> Value:
    shape = _part(scope, value.shape)
    starts = _starts(scope, value)
    properties = f"slice_sizes = {array(shape)}"
    return scope.op("dynamic_slice", [value, *starts], [(shape, value.element)], properties)[0]


def _updated(scope: Scope, value: Value) -> Value:
    shape = _part(scope, value.shape)
    properties = f"slice_sizes = {array(shape)}"
    (part,) = scope.op("dynamic_slice", [value, *_starts(scope, value)], [(shape, value.element)], properties)
    operands = [value, part, *_starts(scope, value)]
    return scope.op("dynamic_update_slice", operands, [(value.shape, value.element)])[0]


def _part(scope: Scope, shape: Shape) -> Shape:
    return tuple(scope.random.randint(1, size) if scope.chance(0.5) else size for size in shape)


def _starts(scope: Scope, value: Value) -> list[Value]:
    """Returns indices, some of which depend on the inputs, of one type."""
    element = scope.random.choice(_INDICES)
    if scope.chance(0.5):
        number = scope.converted(scope.of_type(()), element)
        return [number for _ in value.shape]
    return [scope.constant((), element, str(scope.random.randint(0, size))) for size in value.shape]


def _selected(scope: Scope, value: Value) -> Value:
    mask = scope.pick(lambda one: one.shape == value.shape, "i1")
    mask = mask or scope.constant(value.shape, "i1")
    return scope.op("select", [mask, value, _reversed(scope, value)], [(value.shape, value.element)])[0]


_MOVES = (_reversed, _transposed, _padded, _joined, _sliced, _updated, _selected)
