# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes tensors that a `linalg.generic` reads by `tensor.extract` visible to sharding rules, and lowers them again."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import clone_with, operations_named, operations_where, terminator
from mlir_shard.ir.values import defining_op
from mlir_shard.passes import host_passes
from mlir_shard.passes.registry import ModulePass, register
from mlir_shard.rules.linalg_loops import loops_of

_arith, _linalg, _tensor = host.dialect("arith"), host.dialect("linalg"), host.dialect("tensor")
_GENERIC, _EXTRACT, _INDEX, _GATHER = "linalg.generic", "tensor.extract", "linalg.index", "stablehlo.gather"
_WITHOUT_STABLEHLO = "mlir_shard.without_stablehlo"
_PURE_DIALECTS = ("arith.", "index.", "math.")


@register
class ShardExtractToGather(ModulePass):
    """Turns tensors from which the body of a `linalg.generic` extracts elements into inputs of the `linalg.generic`.

    torch-mlir lowers look-ups to `tensor.extract` in a body. No sharding rule covers these, so the tensor would be
    gathered. If all indices into a tensor are loop indices, the tensor becomes an input with an indexing map. Otherwise
    the computed indices become a tensor, and a `stablehlo.gather` reads the elements. The gather is local along the
    other dimensions and those of the indices, and a table that is sharded along the indexed dimension is not gathered.

    `shard-gather-to-linalg` lowers the gathers again in a module that has no other op of StableHLO.
    """

    name = "shard-extract-to-gather"
    summary = "Converts tensor.extract in the body of linalg.generic to gathers"
    needs = (_EXTRACT,)

    def run(self, op: Any) -> bool:
        has_stablehlo = bool(operations_where(op, lambda name: name.startswith("stablehlo.")))
        changed = False
        for generic in operations_named(op, _GENERIC):
            left = generic
            # Indices that were extracted themselves are inputs the next time.
            while left is not None and (inputs := _inputs(left)):
                left = _rebuilt(left, inputs)
                changed = True
        if changed and not has_stablehlo and operations_named(op, _GATHER):
            op.attributes[_WITHOUT_STABLEHLO] = ir.UnitAttr.get(op.context)
        return changed


@register
class ShardGatherToLinalg(ModulePass):
    """Lowers the gathers of `shard-extract-to-gather`, and the ops that partitioning replaced them by, to linalg.

    Modules that contained other ops of StableHLO before that pass are not changed.
    """

    name = "shard-gather-to-linalg"
    summary = "Lowers the gathers of shard-extract-to-gather to linalg"
    needs = (_WITHOUT_STABLEHLO,)

    def run(self, op: Any) -> bool:
        if _WITHOUT_STABLEHLO not in op.attributes:
            return False
        del op.attributes[_WITHOUT_STABLEHLO]
        host_passes.run("builtin.module(stablehlo-legalize-to-linalg)", op.operation, verify_each=False)
        return True


@dataclass(frozen=True)
class _Input:
    """A tensor that replaces a `tensor.extract` as an input, and the loops that index it."""

    extract: Any
    tensor: Any
    loops: tuple[int, ...]


def _inputs(op: Any) -> list[_Input]:
    """Returns the inputs that can replace extracts in a body; inserts the ops that make them before the op."""
    extracts = [inner for inner in _body_ops(op) if inner.name == _EXTRACT]
    is_on_tensors = len(op.results) and sdy.SHARDING_RULE not in op.attributes
    sizes = _loop_sizes(op) if extracts and is_on_tensors else None
    if sizes is None:
        return []
    with ir.InsertionPoint(op), op.location:
        return list(filter(None, (_input(op, one, sizes) for one in extracts)))


def _body_ops(op: Any) -> list[Any]:
    return [inner.operation for inner in op.regions[0].blocks[0].operations]


def _loop_sizes(op: Any) -> tuple[int, ...] | None:
    """Returns the sizes of the loops; None if one is dynamic or not known from a single dimension."""
    loops = loops_of(op)
    sizes = [-1] * loops.count
    for operand, dims in zip(op.operands, loops.dims, strict=True):
        for dim, loop in enumerate(dims):
            if loop is not None and not operand.type.is_dynamic_dim(dim):
                sizes[loop] = operand.type.get_dim_size(dim)
    return None if -1 in sizes else tuple(sizes)


def _input(op: Any, extract: Any, sizes: Sequence[int]) -> _Input | None:
    """Returns the input for a `tensor.extract`; None if it stays."""
    table, indices = extract.operands[0], list(extract.operands)[1:]
    # A gather reads slices of one element, and none exists if a size is 0.
    if not table.type.has_static_shape or 0 in table.type.shape or isinstance(table.type.element_type, ir.IndexType):
        return None
    if not isinstance(table.owner, ir.Block) and table.owner.operation.block == op.regions[0].blocks[0]:
        return None
    loops = _loops_of_indices(op, indices, table.type.shape, sizes)
    computed = [number for number, loop in enumerate(loops) if loop is None]
    if not computed:
        return _Input(extract, table, tuple(loop for loop in loops if loop is not None))
    body = op.regions[0].blocks[0]
    needed = _slice(body, [indices[number] for number in computed])
    if needed is None or any(value.arg_number >= len(op.operands) - len(op.results) for value in needed.arguments):
        return None
    used = {_loop_of(inner) for inner in needed.ops if inner.name == _INDEX}
    for value in needed.arguments:
        for expr in op.attributes["indexing_maps"][value.arg_number].value.results:
            if isinstance(expr, ir.AffineDimExpr):
                used.add(expr.position)
            elif not isinstance(expr, ir.AffineConstantExpr):
                return None
    batch = sorted(used)
    starts = _start_indices(op, [indices[number] for number in computed], needed, batch, sizes)
    rest = [(number, loop) for number, loop in enumerate(loops) if loop is not None]
    batching = [(number, batch.index(loop)) for number, loop in rest if loop in batch]
    gathered = stablehlo.gather(table, starts, computed, batching)
    return _Input(extract, gathered, (*batch, *(loop for _, loop in rest if loop not in batch)))


def _loops_of_indices(op: Any, indices: Sequence[Any], shape: Sequence[int], sizes: Sequence[int]) -> list[int | None]:
    """Returns the loops of indices, each once; None for an index that is computed, or does not cover a dimension."""
    found: list[int | None] = []
    for index, size in zip(indices, shape, strict=True):
        loop = _loop_of_index(op, index)
        found.append(loop if loop is not None and loop not in found and sizes[loop] == size else None)
    return found


def _loop_of_index(op: Any, value: Any) -> int | None:
    """Returns the loop whose index a value of the body is; None if it is not known to be one."""
    if isinstance(value.owner, ir.Block):
        body, number = op.regions[0].blocks[0], ir.BlockArgument(value).arg_number
        dim = _counting_dim(op.operands[number]) if value.owner == body else None
        return None if dim is None else loops_of(op).dims[number][dim]
    inner = value.owner.operation
    if inner.name == _INDEX:
        return _loop_of(inner)
    if inner.name == "arith.index_cast":
        narrow = (isinstance(one, ir.IntegerType) and one.width < 32 for one in (value.type, inner.operands[0].type))
        return None if any(narrow) else _loop_of_index(op, inner.operands[0])
    if inner.name == "arith.select" and _is_negative(inner.operands[0], inner.operands[2]):
        return _loop_of_index(op, inner.operands[2])
    return None


def _counting_dim(tensor: Any) -> int | None:
    """Returns the dimension along which the elements of a tensor are their own indices; None if none exists."""
    made = defining_op(tensor)
    if made is not None and made.name == "tensor.expand_shape":
        dim = _counting_dim(made.operands[0])
        if dim is None:
            return None
        (first, *rest) = [one.value for one in made.attributes["reassociation"][dim]]
        shape = tensor.type.shape
        # The index along a dimension of one element is 0.
        kept = [one for one in (first, *rest) if shape[one] != 1] or [first]
        return kept[0] if len(kept) == 1 else None
    if made is None or made.name != _GENERIC or len(made.results) != 1:
        return None
    dims, (yielded,) = loops_of(made).dims[-1], terminator(made).operands
    loop = None if isinstance(yielded.owner, ir.Block) else _loop_of_index(made, yielded)
    return dims.index(loop) if loop in dims else None


def _is_negative(condition: Any, value: Any) -> bool:
    """Returns whether a condition tests that a value is negative, as torch-mlir does for indices from the end."""
    compare = defining_op(condition, "arith.cmpi")
    if compare is None or compare.operands[0] != value:
        return False
    zero = defining_op(compare.operands[1], "arith.constant")
    is_less = ir.IntegerAttr(compare.attributes["predicate"]).value == _arith.CmpIPredicate.slt.value
    return is_less and zero is not None and ir.IntegerAttr(zero.attributes["value"]).value == 0


def _loop_of(index: Any) -> int:
    return int(ir.IntegerAttr(index.attributes["dim"]).value)


@dataclass(frozen=True)
class _Slice:
    """The backward slice of some values of a body: ops in order, and arguments of the body."""

    ops: tuple[Any, ...]
    arguments: tuple[Any, ...]


def _slice(body: Any, values: Sequence[Any]) -> _Slice | None:
    """Returns the backward slice of some values; None if it has ops that cannot be computed elsewhere."""
    seen: set[Any] = set()
    pending = list(values)
    arguments = []
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value.owner, ir.Block):
            arguments += [ir.BlockArgument(value)] if value.owner == body else []
        elif value.owner.operation.block == body:
            name = value.owner.name
            if name == _EXTRACT or not _is_pure(value.owner):
                return None
            pending += value.owner.operands
    ops = tuple(inner.operation for inner in body.operations if any(result in seen for result in inner.results))
    return _Slice(ops, tuple(sorted(arguments, key=lambda one: one.arg_number)))


def _start_indices(op: Any, indices: Sequence[Any], needed: _Slice, batch: Sequence[int], sizes: Sequence[int]) -> Any:
    """Returns a tensor of the computed indices, along the loops of the batch and a last dimension."""
    integer = ir.IntegerType.get_signless(64)
    rank, shape = len(batch) + 1, [*(sizes[loop] for loop in batch), len(indices)]
    empty = _tensor.EmptyOp(shape, integer).result
    places = {loop: ir.AffineDimExpr.get(place) for place, loop in enumerate(batch)}
    of_inputs = [op.attributes["indexing_maps"][argument.arg_number].value for argument in needed.arguments]
    maps = [
        ir.AffineMap.get(
            rank, 0, [places[one.position] if isinstance(one, ir.AffineDimExpr) else one for one in of.results]
        )
        for of in of_inputs
    ]
    made = _generic(
        [*(op.operands[argument.arg_number] for argument in needed.arguments), empty],
        [*maps, _map(rank, range(rank))],
        [_iterator("parallel")] * rank,
        [empty.type],
    )
    block = made.regions[0].blocks[0]
    values = dict(zip(needed.arguments, block.arguments, strict=False))
    with ir.InsertionPoint(block):
        for inner in needed.ops:
            if inner.name == _INDEX:
                values[inner.results[0]] = _linalg.IndexOp(batch.index(_loop_of(inner))).result
            else:
                clone_with(inner, values)
        chosen = [_arith.IndexCastOp(integer, values.get(index, index)).result for index in indices]
        result = chosen[0]
        for number, other in enumerate(chosen[1:], 1):
            position = _linalg.IndexOp(rank - 1).result
            place = _arith.ConstantOp.create_index(number).result
            equal = _arith.CmpIOp(_arith.CmpIPredicate.eq, position, place).result
            result = _arith.SelectOp(equal, other, result).result
        _linalg.YieldOp([result])
    return made.result


def _rebuilt(op: Any, inputs: Sequence[_Input]) -> Any:
    """Replaces the op by one with more inputs, without the ops that only the indices needed; returns the new op.

    Returns None if only a gathered tensor is left, which then replaces the op.
    """
    count, (old,) = len(op.operands) - len(op.results), op.regions[0].blocks
    maps, operands = [attribute.value for attribute in op.attributes["indexing_maps"]], list(op.operands)
    of_extract = {one.extract.result: one for one in inputs}
    live = _live(op, of_extract)
    yielded = list(terminator(op).operands)
    if not live and len(yielded) == 1 and yielded[0] in of_extract:
        found = of_extract[yielded[0]]
        if _map(maps[0].n_dims, found.loops) == maps[-1] and sdy.SHARDING not in op.attributes:
            op.results[0].replace_all_uses_with(found.tensor)
            op.erase()
            return None
    read = {value for inner in live for value in inner.operands} | set(yielded)
    is_bound_by_results = set(range(maps[0].n_dims)) <= {loop for dims in loops_of(op).dims[count:] for loop in dims}
    kept = [place for place in range(count) if old.arguments[place] in read or not is_bound_by_results]
    with ir.InsertionPoint(op), op.location:
        made = _generic(
            [*(operands[place] for place in kept), *(one.tensor for one in inputs), *operands[count:]],
            [*(maps[place] for place in kept), *(_map(maps[0].n_dims, one.loops) for one in inputs), *maps[count:]],
            op.attributes["iterator_types"],
            [result.type for result in op.results],
        )
    for name in op.attributes:
        if name not in made.attributes:
            made.attributes[name] = op.attributes[name]
    block = made.regions[0].blocks[0]
    before = [
        *(old.arguments[place] for place in kept),
        *(one.extract.result for one in inputs),
        *list(old.arguments)[count:],
    ]
    values = dict(zip(before, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for inner in live:
            clone_with(inner, values)
        _linalg.YieldOp([values.get(value, value) for value in yielded])
    for result, new in zip(op.results, made.results, strict=True):
        result.replace_all_uses_with(new)
    op.erase()
    return made


def _live(op: Any, replaced: Container[Any]) -> list[Any]:
    """Returns the ops of a body that are needed if the values in `replaced` are not computed in it."""
    needed, live = set(terminator(op).operands), []
    for inner in reversed(_body_ops(op)[:-1]):
        if any(result in replaced for result in inner.results):
            continue
        if any(result in needed for result in inner.results) or not _is_pure(inner):
            needed |= set(inner.operands)
            live.append(inner)
    return live[::-1]


def _is_pure(op: Any) -> bool:
    return op.name in (_INDEX, _EXTRACT) or op.name.startswith(_PURE_DIALECTS)


def _generic(operands: Sequence[Any], maps: Sequence[Any], iterators: Any, types: Sequence[Any]) -> Any:
    """Builds a `linalg.generic` with an empty body."""
    attributes = {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(one) for one in maps]),
        "iterator_types": ir.ArrayAttr.get(list(iterators)),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands) - len(types), len(types)]),
    }
    made = ir.Operation.create(_GENERIC, types, operands, attributes, regions=1)
    made.regions[0].blocks.append(*map(_element_type, operands), arg_locs=[made.location] * len(operands))
    return made


def _element_type(value: Any) -> Any:
    return value.type.element_type if isinstance(value.type, ir.ShapedType) else value.type


def _map(count: int, loops: Sequence[int]) -> Any:
    return ir.AffineMap.get(count, 0, [ir.AffineDimExpr.get(loop) for loop in loops])


def _iterator(kind: str) -> Any:
    return ir.Attribute.parse(f"#linalg.iterator_type<{kind}>")
