# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of contractions in memory to calls of `gemm` and `gemv`, in loops if one call is not enough.

Floats are accumulated in the type of the result, or in f32 if that is narrower. Widened integers are accumulated in
i32 if the native core has a function for their type, or in a float type that represents every sum exactly; loops
compute other integer contractions. A convolution is a matrix product for each position in its window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import index_arithmetic as index
from mlir_shard.ir.editing import op_in_block, operations_where
from mlir_shard.runtime.collectives import buffers
from mlir_shard.runtime.launch.libraries import blas
from mlir_shard.runtime.lowering.blas.arithmetic import Arithmetic, arithmetic
from mlir_shard.runtime.lowering.blas.contractions import FEWEST, Contraction, contraction
from mlir_shard.runtime.lowering.blas.gemm_plan import GemmPlan, Operand, plan_gemm

_arith, _complex, _func, _linalg = map(host.dialect, ("arith", "complex", "func", "linalg"))
_memref, _scf = map(host.dialect, ("memref", "scf"))
_ROW_MAJOR, _AS_IT_IS, _TRANSPOSED = 101, 111, 112
# The factor by which the number of products of a call must grow to justify copying another operand.
_WORTH_A_COPY = 4


def lower(module: Any) -> None:
    """Replaces the contractions in memory of a module by calls, in place, if OpenBLAS is installed."""
    if blas.library_path() is None:
        return
    found = map(contraction, operations_where(module, lambda name: name.startswith("linalg.")))
    calls = _Calls(module)
    for one in [one for one in found if one is not None and one.volume >= FEWEST]:
        how = arithmetic(one)
        if how is not None:
            with ir.InsertionPoint(one.op), one.op.location:
                if calls.emit(one, how):
                    one.op.erase()


@dataclass(frozen=True, slots=True)
class _Source:
    """The memory that an operand is read from: its own, or a copy whose dimension `i` is its dimension `order[i]`."""

    operand: Operand
    order: tuple[int, ...] | None = None


def _sources(found: Contraction, place: int, type_: Any) -> Iterator[_Source]:
    """Yields the memory that an operand may be read from, the cheapest first."""
    memory = found.op.operands[place]
    strides, shape = buffers.strides(memory.type), memory.type.shape
    if memory.type.element_type == type_ and strides is not None:
        yield _Source(_indexed(found, place, strides))
    if found.is_plain(place):
        of_dims, order = found.plain_loops(place), found.orders[place]
        contiguous = _contiguous([found.sizes[loop] for loop in order])
        yield _Source(Operand(tuple(order), contiguous), tuple(of_dims.index(loop) for loop in order))
        return
    # The steps of a window are not contiguous; the channels are if they are the last dimension.
    summed = [len(terms) == 1 and terms[0][0] in found.summed for terms in found.indices[place]]
    dims = range(len(shape))
    for dims_of_copy in dict.fromkeys((tuple(dims), tuple(sorted(dims, key=summed.__getitem__)))):
        of_copy = _contiguous([shape[dim] for dim in dims_of_copy])
        yield _Source(_indexed(found, place, [of_copy[dims_of_copy.index(dim)] for dim in dims]), dims_of_copy)


def _indexed(found: Contraction, place: int, strides: Sequence[int]) -> Operand:
    """Returns an operand in memory whose dimensions have these strides."""
    of_loop: dict[int, int] = {}
    for terms, stride in zip(found.indices[place], strides, strict=True):
        for loop, times in terms:
            of_loop[loop] = of_loop.get(loop, 0) + times * stride
    return Operand(tuple(of_loop), tuple(of_loop.values()))


def _contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(prod(shape[place + 1 :]) for place in range(len(shape)))


def _chosen(found: Contraction, how: Arithmetic) -> tuple[GemmPlan, tuple[_Source, ...]] | None:
    """Returns the plan with the fewest copies among those with large calls, and its sources; None if none exists."""
    options, types = [], (how.inputs, how.inputs, how.sums)
    for sources in product(*(_sources(found, place, type_) for place, type_ in enumerate(types))):
        plan = plan_gemm(found.sizes, *(one.operand for one in sources))
        if plan is not None and plan.volume >= FEWEST:
            options.append((sum(one.order is not None for one in sources), plan, sources))
    largest = max((plan.volume for _, plan, _ in options), default=0)
    worth = [one for one in options if one[1].volume * _WORTH_A_COPY > largest]
    return min(worth, key=lambda one: (one[0], -one[1].volume))[1:] if worth else None


class _Calls:
    """Calls of BLAS in a module."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._declared: set[str] = set()

    def emit(self, found: Contraction, how: Arithmetic) -> bool:
        """Emits the calls of a contraction at the current insertion point; returns false if no plan exists."""
        chosen = _chosen(found, how)
        if chosen is None:
            return False
        plan, sources = chosen
        a, b, result = found.op.operands
        # With summed loops around the call, a call adds to the result of previous calls. Some versions of `gemv`
        # multiply the previous result by 0 instead of ignoring it, which gives NaN if it is NaN.
        is_by_gemv = plan.is_of_vectors and how.function is None
        adds_up = is_by_gemv or any(loop.steps[2] == 0 for loop in plan.loops)
        *inputs, of_result = sources
        is_copied = of_result.order is not None
        fill = _fill_before(found.op) if is_copied or not adds_up else None
        memories = [_read(memory, source, how.inputs) for memory, source in zip((a, b), inputs, strict=True)]
        memories.append(_room(result, of_result.order, how.sums) if of_result.order is not None else result)
        if is_copied and adds_up:
            _linalg.fill(_zero(how.sums), outs=[memories[2]])
        self._loops(plan, memories, how, adds=adds_up or (not is_copied and fill is None))
        if of_result.order is not None:
            # The copy of the result is copied back or added to it afterwards.
            back = [of_result.order.index(dim) for dim in range(len(of_result.order))]
            _copy(memories[2], result, back, adds=fill is None)
        if fill is not None:
            fill.erase()
        for memory, source in zip(memories, sources, strict=True):
            if source.order is not None:
                _memref.DeallocOp(memory)
        return True

    def _loops(self, plan: GemmPlan, memories: Sequence[Any], how: Arithmetic, adds: bool) -> None:
        """Emits the loops of a plan around its call."""
        sizes = [_bytes(one) for one in (how.inputs, how.inputs, how.sums)]
        order = (1, 0, 2) if plan.swaps else (0, 1, 2)
        addresses = [_address(memories[place], size) for place, size in zip(order, sizes, strict=True)]
        before = [self._factor(how.sums, 1), self._factor(how.sums, int(adds))] if how.function is None else []
        points = []
        for loop in plan.loops:
            made = _scf.ForOp(index.constant(0), index.constant(loop.size), index.constant(1))
            point = ir.InsertionPoint(made.body)
            point.__enter__()
            points.append(point)
            for place, step in enumerate(loop.steps):
                if step:
                    offset = index.multiply(made.induction_variable, index.constant(step * sizes[place]))
                    addresses[place] = index.add(addresses[place], offset)
        pointers = list(map(buffers.pointer_at, addresses))
        if how.function is None:
            self._call_blas(plan, pointers, before, how.sums)
        else:
            self._call_native(how.function, plan, pointers, adds)
        for point in reversed(points):
            _scf.YieldOp([])
            point.__exit__(None, None, None)

    def _factor(self, type_: Any, value: int) -> Any:
        """Returns a factor of the product, or of the previous result, in the form that BLAS takes."""
        if not isinstance(type_, ir.ComplexType):
            return _arith.ConstantOp(type_, ir.FloatAttr.get(type_, value)).result
        real = type_.element_type
        symbol, memory_type = f"blas_{value}_{real}", ir.MemRefType.get([2], real)
        if symbol not in self._declared:
            self._declared.add(symbol)
            parts = [ir.FloatAttr.get(real, part) for part in (value, 0)]
            constant = ir.DenseElementsAttr.get(parts, ir.RankedTensorType.get([2], real))
            with ir.InsertionPoint.at_block_begin(self._module.body):
                attribute = ir.TypeAttr.get(memory_type)
                _memref.GlobalOp(symbol, attribute, sym_visibility="private", initial_value=constant, constant=True)
        memory = _memref.GetGlobalOp(memory_type, symbol).result
        return buffers.pointer(memory)

    def _call_blas(self, plan: GemmPlan, pointers: Sequence[Any], factors: Sequence[Any], type_: Any) -> None:
        a, b, c = pointers
        times, plus = factors
        if plan.is_of_vectors:
            name = "gemv"
            arguments = self._of_gemv(plan, a, b, c, times, plus)
        else:
            name = "gemm"
            forms = [_int(_TRANSPOSED if factor.is_transposed else _AS_IT_IS) for factor in (plan.a, plan.b)]
            sizes = [_int(size) for size in (plan.m, plan.n, plan.k)]
            a_leading, b_leading, c_leading = map(_int, (plan.a.leading, plan.b.leading, plan.c_leading))
            arguments = [_int(_ROW_MAJOR), *forms, *sizes, times, a, a_leading, b, b_leading, plus, c, c_leading]
        self._call(f"cblas_{_letter(type_)}{name}", arguments)

    def _call_native(self, symbol: str, plan: GemmPlan, pointers: Sequence[Any], adds: bool) -> None:
        """Emits a call of a function of the native core, see `lib/runtime/narrow_gemm.h`."""
        a, b, c = pointers
        forms = [_int(factor.is_transposed) for factor in (plan.a, plan.b)]
        sizes = [_int(size) for size in (plan.m, plan.n, plan.k)]
        a_leading, b_leading, c_leading = map(_int, (plan.a.leading, plan.b.leading, plan.c_leading))
        # The number of threads of the rank is that of OpenBLAS.
        (threads,) = self._call(blas.GET_THREADS, [], [ir.IntegerType.get_signless(32)])
        self._call(symbol, [*forms, *sizes, a, a_leading, b, b_leading, _int(adds), c, c_leading, threads])

    def _call(self, symbol: str, arguments: Sequence[Any], results: Sequence[Any] = ()) -> list[Any]:
        if symbol not in self._declared:
            self._declared.add(symbol)
            with ir.InsertionPoint.at_block_begin(self._module.body):
                signature = ir.FunctionType.get([value.type for value in arguments], list(results))
                _func.FuncOp(symbol, signature, visibility="private")
        return list(_func.CallOp(list(results), symbol, list(arguments)).results)

    def _of_gemv(self, plan: GemmPlan, a: Any, b: Any, c: Any, times: Any, plus: Any) -> list[Any]:
        """Returns the arguments of `gemv` if the result has one row or column."""
        if plan.n == 1:
            matrix, form, rows, vector = a, plan.a, plan.m, b
            is_applied_transposed = form.is_transposed
            steps = plan.b.leading, plan.c_leading
        else:
            # One row of the result is the transposed matrix times a column.
            matrix, form, rows, vector = b, plan.b, plan.k, a
            is_applied_transposed = not form.is_transposed
            steps = plan.a.leading if plan.a.is_transposed else 1, 1
        shape = (rows, plan.k) if plan.n == 1 else (rows, plan.n)
        if form.is_transposed:
            shape = shape[::-1]
        what = _int(_TRANSPOSED if is_applied_transposed else _AS_IT_IS)
        step, result_step = map(_int, steps)
        head = [_int(_ROW_MAJOR), what, *map(_int, shape), times, matrix, _int(form.leading)]
        return [*head, vector, step, plus, c, result_step]


def _fill_before(op: Any) -> Any | None:
    """Returns the op that fills the result with zeros if nothing uses the memory between it and `op`; else None."""
    memory = op.operands[2]
    allocation = memory.owner
    if isinstance(allocation, ir.Block) or allocation.operation.name != "memref.alloc":
        return None
    users = {op_in_block(use.owner.operation, op.block) for use in memory.uses} - {op}
    before = [user for user in users if user is not None and user.is_before_in_block(op)]
    if any(isinstance(result.type, ir.MemRefType) for user in before for result in user.results):
        # Other ops may use the memory through a view.
        return None
    last = next((one for one in before if not any(one.is_before_in_block(other) for other in before)), None)
    if last is None or last.name != "linalg.fill" or last.operands[1] != memory:
        return None
    value = last.operands[0].owner
    is_constant = not isinstance(value, ir.Block) and value.operation.name in ("arith.constant", "complex.constant")
    return last if is_constant and _is_zero(value.operation.attributes["value"]) else None


def _zero(type_: Any) -> Any:
    if isinstance(type_, ir.IntegerType):
        return _arith.ConstantOp(type_, ir.IntegerAttr.get(type_, 0)).result
    if isinstance(type_, ir.ComplexType):
        parts = ir.ArrayAttr.get([ir.FloatAttr.get(type_.element_type, 0.0)] * 2)
        return _complex.ConstantOp(type_, parts).result
    return _arith.ConstantOp(type_, ir.FloatAttr.get(type_, 0.0)).result


def _is_zero(attribute: Any) -> bool:
    if isinstance(attribute, ir.ArrayAttr):
        return all(map(_is_zero, attribute))
    return isinstance(attribute, (ir.FloatAttr, ir.IntegerAttr)) and attribute.value == 0


def _room(memory: Any, order: Sequence[int], type_: Any) -> Any:
    """Allocates memory for the elements, with the dimensions in another order."""
    shape = [memory.type.shape[dim] for dim in order]
    return _memref.AllocOp(ir.MemRefType.get(shape, type_), [], []).result


def _read(memory: Any, source: _Source, type_: Any) -> Any:
    """Returns the memory that an operand is read from, after copying it if `source` is a copy."""
    if source.order is None:
        return memory
    made = _room(memory, source.order, type_)
    _copy(memory, made, source.order)
    return made


def _copy(source: Any, target: Any, order: Sequence[int], *, adds: bool = False) -> None:
    """Copies and converts elements, or adds them; dimension `i` of `target` is `order[i]` of `source`."""
    rank = len(order)
    maps = [
        ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(order.index(dim)) for dim in range(rank)]),
        ir.AffineMap.get_identity(rank),
    ]
    attributes = {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(one) for one in maps]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
        "iterator_types": ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * rank),
    }
    made = ir.Operation.create("linalg.generic", [], [source, target], attributes, regions=1)
    types = source.type.element_type, target.type.element_type
    block = made.regions[0].blocks.append(*types, arg_locs=[ir.Location.unknown()] * 2)
    with ir.InsertionPoint(block):
        value, before = block.arguments
        if adds and isinstance(types[1], ir.ComplexType):
            value = _complex.AddOp(value, before).result
        elif adds and isinstance(types[1], ir.FloatType):
            # Added in the wider type and rounded once.
            value = _arith.AddFOp(value, _converted(before, types[0])).result
        value = _converted(value, types[1])
        if adds and isinstance(types[1], ir.IntegerType):
            value = _arith.AddIOp(value, before).result
        _linalg.YieldOp([value])


def _converted(value: Any, type_: Any) -> Any:
    """Returns a value converted to another type; integers from floats wrap around."""
    if value.type == type_:
        return value
    if isinstance(value.type, ir.IntegerType) and isinstance(type_, ir.IntegerType):
        return (_arith.ExtSIOp if value.type.width < type_.width else _arith.TruncIOp)(type_, value).result
    if isinstance(value.type, ir.IntegerType):
        return _arith.SIToFPOp(type_, value).result
    if isinstance(type_, ir.IntegerType):
        whole = _arith.FPToSIOp(ir.IntegerType.get_signless(64), value).result
        return whole if type_.width == 64 else _arith.TruncIOp(type_, whole).result
    convert = _arith.ExtFOp if value.type.width < type_.width else _arith.TruncFOp
    return convert(type_, value).result


def _bytes(type_: Any) -> int:
    return 2 * _bytes(type_.element_type) if isinstance(type_, ir.ComplexType) else int(type_.width) // 8


def _letter(type_: Any) -> str:
    is_double = _bytes(type_.element_type if isinstance(type_, ir.ComplexType) else type_) == 8
    return ("cz" if isinstance(type_, ir.ComplexType) else "sd")[is_double]


def _address(memory: Any, size: int) -> Any:
    """Returns the address of the first element, an index."""
    address = _memref.ExtractAlignedPointerAsIndexOp(memory).result
    _, offset = memory.type.get_strides_and_offset()
    if offset == 0:
        return address
    if memory.type.is_dynamic_stride_or_offset(offset):
        elements = _memref.ExtractStridedMetadataOp(memory).offset
    else:
        elements = index.constant(offset)
    return index.add(address, index.multiply(elements, index.constant(size)))


def _int(value: int) -> Any:
    type_ = ir.IntegerType.get_signless(32)
    return _arith.ConstantOp(type_, ir.IntegerAttr.get(type_, value)).result
