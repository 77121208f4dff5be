# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the verification of operations that a pass reports as changed, against the host's full verification."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from dialects.verified_programs import TEXT, Changed, by_host, known, known_changed, ops_named

from mlir_shard.dialects.contexts import create_context
from mlir_shard.dialects.parsing import parse
from mlir_shard.dialects.verified import Verified
from mlir_shard.dialects.verifiers import checks
from mlir_shard.host import ir
from mlir_shard.ir.editing import ops_below, replace


@pytest.fixture(scope="module")
def context() -> Any:
    return create_context()


def _mutate(module: Any, choose: random.Random, changed: Changed) -> None:
    """Makes one change, except of terminators and of types in loops, on which the host's verifiers crash."""
    ops = list(ops_below(module))
    op, other = choose.choice(ops), choose.choice(ops)
    values = [result for one in ops for result in one.results]
    kind = choose.randrange(9)
    if kind == 0 and len(op.operands) and len(op.results):
        op.operands[choose.randrange(len(op.operands))] = choose.choice(values)
        changed.ops.append(op)
    elif kind == 1 and len(op.results) and op.parent.operation.name == "func.func":
        op.results[choose.randrange(len(op.results))].set_type(choose.choice(values).type)
        changed.ops.append(op)
    elif kind == 2 and op.name == other.name and len(op.attributes):
        name = choose.choice([one for one, _ in op.attributes.items()])
        if name in other.attributes:
            op.attributes[name] = other.attributes[name]
            changed.attributed.append(op)
    elif kind == 3 and len(op.results) and len(other.results) and op.block == other.block and op != other:
        op.move_before(other)
        choose.choice((changed.ops, changed.moved)).append(op)
    elif kind == 4 and len(op.results) and not any(list(result.uses) for result in op.results):
        for made in (changed.ops, changed.moved, changed.attributed):
            made[:] = [one for one in made if one not in (op, *ops_below(op))]
        op.erase()
    elif kind == 5:
        (sharded,) = [one for one in ops if "sdy.sharding" in one.attributes][:1] or [other]
        if "sdy.sharding" in sharded.attributes:
            op.attributes["sdy.sharding"] = sharded.attributes["sdy.sharding"]
            changed.attributed.append(op)
    elif kind == 8 and len(op.results) and op.block == other.block:
        copied = op.clone(ip=ir.InsertionPoint(other)).operation
        for old, new in zip(op.results, copied.results, strict=True):
            old.replace_all_uses_with(new)
        changed.moved.append(copied)
    elif len(op.regions) and op.name != "func.func":
        if kind == 6:
            copied = op.clone(ip=ir.InsertionPoint(op)).operation
            for old, new in zip(op.results, copied.results, strict=True):
                old.replace_all_uses_with(new)
        else:
            for named in (changed.ops, changed.moved, changed.attributed):
                named[:] = [one for one in named if one != op]
            copied = replace(op, op.name, {}, dropped=(), body=op)
        changed.ops.append(copied)


def _mutated(root: Any, choose: random.Random) -> Changed:
    """Makes one or two changes in an operation and returns them."""
    changed = Changed()
    for _ in range(choose.randrange(1, 3)):
        _mutate(root, choose, changed)
    return changed


@pytest.mark.parametrize("seed", range(40))
def test_random_changes_are_judged_as_by_the_host(seed: int, context: Any) -> None:
    choose = random.Random(seed)
    verified = Verified()
    with context, ir.Location.unknown():
        for _ in range(25):
            module = parse(TEXT, context)
            assert known(verified, module)
            changed = _mutated(module, choose)
            expected = by_host(module)
            if choose.randrange(2):
                assert known_changed(verified, module, changed) == expected
            assert known(verified, module) == expected
            if expected:
                # A valid module is still valid in a second verification.
                assert known(verified, module)


@pytest.mark.parametrize("seed", range(10))
def test_random_changes_of_a_function_are_judged_as_by_the_host(seed: int, context: Any) -> None:
    choose = random.Random(seed)
    verified = Verified()
    with context, ir.Location.unknown():
        for _ in range(25):
            module = parse(TEXT, context)
            assert known(verified, module)
            with verified.keeping_symbols(module.operation):
                for function in ops_named(module, "func.func"):
                    changed = _mutated(function, choose)
                    assert known_changed(verified, function, changed) == by_host(function)
            assert known(verified, module) == by_host(module)


def test_a_function_that_changes_its_type_is_known_to_those_that_call_it(context: Any) -> None:
    module = parse(
        """
      func.func private @callee(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }
      func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
        %0 = call @callee(%a) : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }""",
        context,
    )
    verified = Verified()
    assert known(verified, module)
    callee, main = ops_named(module, "func.func")
    with verified.keeping_symbols(module.operation):
        assert known_changed(verified, main, Changed(ops_named(main, "func.call")))
        with context:
            callee.attributes["function_type"] = ir.Attribute.parse("(tensor<5xf32>) -> tensor<5xf32>")
            callee.regions[0].blocks[0].arguments[0].set_type(ir.Type.parse("tensor<5xf32>"))
        assert known_changed(verified, callee, Changed(attributed=[callee]))
        assert by_host(callee)
    assert not known_changed(verified, module, Changed(attributed=[callee]))
    assert not by_host(module)


@pytest.mark.parametrize("is_inside", [False, True])
def test_a_made_loop_may_not_use_what_has_an_edge(is_inside: bool, context: Any) -> None:
    verified = Verified()
    module = parse(TEXT, context)
    assert known(verified, module)
    loop, edge = ops_named(module, "stablehlo.while")[0], ops_named(module, "sdy.data_flow_edge")[0]
    made = loop.clone(ip=ir.InsertionPoint.after(edge)).operation
    user = ops_named(made, "stablehlo.add")[0] if is_inside else made
    user.operands[0] = loop.results[0]
    assert not known_changed(verified, module, Changed([made]))
    assert not by_host(module)


@pytest.mark.parametrize("is_before", [True, False])
def test_users_of_what_was_moved_come_after_it(is_before: bool, context: Any) -> None:
    module = parse(TEXT, context)
    verified = Verified()
    assert known(verified, module)
    exponential = ops_named(module, "stablehlo.exponential")[0]
    user = next(iter(exponential.results[0].uses)).owner
    if is_before:
        exponential.move_before(user)
    else:
        exponential.move_after(user)
    assert known_changed(verified, module, Changed(moved=[exponential])) == is_before
    assert by_host(module) == is_before


@pytest.mark.parametrize("is_constant", [True, False])
def test_users_that_look_at_constants_are_verified_after_a_move(is_constant: bool, context: Any) -> None:
    text = """
      func.func @main(%a: tensor<2x3xf32>) -> tensor<3x2xf32> {
        %shape = tosa.const_shape {values = dense<[3, 2]> : tensor<2xindex>} : () -> !tosa.shape<2>
        %0 = tosa.reshape %a, %shape : (tensor<2x3xf32>, !tosa.shape<2>) -> tensor<3x2xf32>
        return %0 : tensor<3x2xf32>
      }"""
    module = parse(text, context)
    verified = Verified()
    assert known(verified, module)
    (old,) = ops_named(module, "tosa.const_shape")
    with context, ir.Location.unknown():
        made = old.clone(ip=ir.InsertionPoint(old)).operation
        if not is_constant:
            made.attributes["values"] = ir.DenseElementsAttr.get(np.array([5, 2], np.int64), type=ir.IndexType.get())
    old.results[0].replace_all_uses_with(made.results[0])
    assert known_changed(verified, module, Changed(moved=[made])) == is_constant
    assert by_host(module) == is_constant


def test_nested_operations_are_verified_once(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    depth = 20
    opened = [
        f"""%r{level} = sdy.named_computation<"c{level}">(%a{level}) (%a{level + 1}: tensor<4xf32>) {{
          %t{level} = stablehlo.tanh %a{level + 1} : tensor<4xf32>"""
        for level in range(depth)
    ]
    closed = [
        f"""sdy.return %{f"r{level + 1}" if level + 1 < depth else f"t{level}"} : tensor<4xf32>
        }} : (tensor<4xf32>) -> tensor<4xf32>"""
        for level in reversed(range(depth))
    ]
    body = "\n".join([*opened, *closed])
    module = parse(
        f"func.func @main(%a0: tensor<4xf32>) -> tensor<4xf32> {{ {body}\n return %r0 : tensor<4xf32> }}", context
    )
    verified = Verified()
    assert known(verified, module)

    class Counting:
        """Verifiers that are not deferred, and the number of operations that they have verified."""

        count = 0

        @property
        def is_on(self) -> bool:
            self.count += 1
            return False

    computations = ops_named(module, "sdy.named_computation")
    # The ops inside come first.
    for given in (Changed(attributed=computations[::-1]), Changed(computations[::-1])):
        for number, op in enumerate(computations):
            op.attributes["name"] = ir.StringAttr.get(f"{id(given)}_{number}", context)
        with monkeypatch.context() as patched:
            counting = Counting()
            patched.setattr(checks, "_deferring", counting)
            assert known_changed(verified, module, given)
            assert counting.count <= 2 * depth
    inner = computations[-1]
    inner.attributes["in_shardings"] = ir.StringAttr.get("none", context)
    assert not known_changed(verified, module, Changed(attributed=computations))
    assert not by_host(module)
