# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors about axes and meshes point at the wrong word, which a `^` precedes in each program."""

import pytest

import mlir_shard

MESHES = 'sdy.mesh @mesh = <["x"=2, "y"=4]>\nsdy.mesh @other = <["z"=2]>\n'
X, Y = "tensor<8x8xf32>", '{sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}'


def function(body: str, before: str = "") -> str:
    return f"{before}{MESHES}func.func @f(%a: {X}) -> {X} {{\n  {body}\n  return %0 : {X}\n}}\n"


def signature(sharding: str, result: str = X) -> str:
    return f"{MESHES}func.func private @f({X} {Y},\n  {X} {{sdy.sharding = {sharding}}}, {X} {Y}) -> ({X}, {result})\n"


def constraint(sharding: str) -> str:
    return function(f"%0 = sdy.sharding_constraint %a {sharding} : {X}")


def manual(ins: str = '<@mesh, [{"x"}, {}]>', axes: str = '"x"') -> str:
    return function(
        f'%0 = sdy.manual_computation(%a) in_shardings=[{ins}] out_shardings=[<@mesh, [{{"x"}}, {{}}]>] '
        f"manual_axes={{{axes}}} (%b: tensor<4x8xf32>) {{\n"
        f"    sdy.return %b : tensor<4x8xf32>\n  }} : ({X}) -> {X}"
    )


PROGRAMS = {
    "an axis that is none": (constraint('<@mesh, [{"x"}, {^"z"}]>'), 'unknown axis "z": the mesh has "x", "y"'),
    "used twice in one dimension": (constraint('<@mesh, [{"x", "y", ^"x"}, {}]>'), 'dim 0: axis "x" is used twice'),
    "used in two dimensions": (constraint('<@mesh, [{"y"}, {"x", ^"y"}]>'), 'axis "y" is already used in dim 0'),
    "replicated too": (constraint('<@mesh, [{"y"}, {}], replicated={^"y"}>'), 'axis "y" is already used in dim 0'),
    "unreduced too": (constraint('<@mesh, [{"x"}, {}], unreduced={^"x"}>'), 'axis "x" is already used in dim 0'),
    "a part and all": (constraint('<@mesh, [{"y"}, {^"y":(1)2}]>'), 'axis "y":(1)2 overlaps "y" in dim 0'),
    "parts to merge": (constraint('<@mesh, [{^"y":(1)2, "y":(2)2}, {}]>'), "follow each other and have to be merged"),
    "a part that is all": (constraint('<@mesh, [{}, {^"y":(1)4}]>'), "covers its entire axis"),
    "a mesh that is none": (constraint('<^@mehs, [{"x"}, {}]>'), "unknown mesh @mehs: the module has @mesh, @other"),
    "the second argument": (signature('#sdy.sharding<@mesh, [{"y"}, {^"y"}]>'), 'argument 1: dim 1: axis "y"'),
    "the mesh of an argument": (signature("#sdy.sharding<^@n, [{}, {}]>"), "argument 1: unknown mesh @n"),
    "the second result": (
        signature('#sdy.sharding<@mesh, [{"y"}, {}]>', X + ' {sdy.sharding = #sdy.sharding<@mesh, [{}, {^"q"}]>}'),
        'result 1: dim 1: unknown axis "q"',
    ),
    "the second result of an op": (
        function(
            '%0, %1 = "test.two"(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>, '
            f'<@mesh, [{{"y"}}, {{^"y"}}]>]>}} : ({X}) -> ({X}, {X})'
        ),
        'result 1: dim 1: axis "y" is already used in dim 0',
    ),
    "in an alias": (
        signature("#s").replace("sdy.mesh", '#s = #sdy.sharding<@mesh, [{}, {^"w"}]>\nsdy.mesh', 1),
        'argument 1: dim 1: unknown axis "w"',
    ),
    "a manual axis that is none": (manual(axes='^"w"'), 'unknown manual axis "w"'),
    "a manual axis given twice": (manual(axes='"x", ^"x"'), 'manual axis "x" is given twice'),
    "in the shardings of a body": (manual(ins='<@mesh, [{"y", ^"x"}, {}]>'), 'manual axis "x" comes after the free'),
    "in the axes of a collective": (
        function(f'%s = sdy.reshard %a <@mesh, [{{"x"}}, {{}}]> : {X}\n  '
                 f'%0 = sdy.all_gather [{{"x"}}, {{^"y"}}] %s out_sharding=<@mesh, [{{}}, {{}}]> : {X}'),
        '"y" is not at the end',
    ),
    "in the sharding after a collective": (
        function(f'%0 = sdy.all_slice [{{"x"}}, {{}}] %a out_sharding=<@mesh, [{{"x"}}, {{^"x"}}]> : {X}'),
        'out_sharding: dim 1: axis "x" is already used in dim 0',
    ),
    "behind text that is not ASCII": (constraint('<@mesh, [{"x"}, {^"ä"}]>'), 'unknown axis "ä"'),
    "a grid that is none": (
        function(f"%s = shard.sharding ^@gird split_axes = [[0]] : !shard.sharding\n  "
                 f"%0 = shard.shard %a to %s : {X}", before="shard.grid @g(shape = 2)\nshard.grid @h(shape = 3)\n"),
        'Undefined required grid symbol "gird": the module has @g, @h',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_errors_point_at_the_word(name: str) -> None:
    marked, message = PROGRAMS[name]
    before, _, after = marked.partition("^")
    with mlir_shard.create_context() as context:
        context.allow_unregistered_dialects = True
    with pytest.raises(mlir_shard.ParseError) as raised:
        mlir_shard.parse(before + after, context, filename="program.mlir")
    (diagnostic,) = raised.value.diagnostics
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2].encode()) + 1
    assert message in diagnostic.message
    assert str(diagnostic.location) == f'loc("program.mlir":{line}:{column})'


def test_a_word_that_the_text_does_not_have_leaves_the_error_at_the_operation() -> None:
    escaped = constraint('<@mesh, [{"\\78"}, {"\\78"}]>')
    with pytest.raises(mlir_shard.ParseError) as raised:
        mlir_shard.parse(escaped, filename="program.mlir")
    (diagnostic,) = raised.value.diagnostics
    assert str(diagnostic.location) == 'loc("program.mlir":4:8)'
