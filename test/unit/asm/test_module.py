# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of modules that are parsed into the host and printed again, in sdy's own syntax."""

from __future__ import annotations

import pytest

from mlir_shard import asm, host
from mlir_shard.dialects.contexts import create_context


@pytest.fixture(scope="module")
def context():
    return create_context()


def printed(text: str, context, **options) -> str:
    return asm.print_operation(asm.parse_module(text, context), **options)


def body(text: str, context, **options) -> str:
    """Returns a module's text without the lines of the module operation itself."""
    return "\n".join(line[2:] for line in printed(text, context, **options).rstrip().splitlines()[1:-1]) + "\n"


PROGRAM = """\
sdy.mesh @mesh = <["a"=2, "b"=2]>
sdy.mesh @"a mesh" = <["x"=4], device_ids=[3, 2, 1, 0]>
func.func @main(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<16x32xf32> {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] \
manual_axes={"a"} (%arg1: tensor<8x32xf32>) {
    %4 = stablehlo.add %arg1, %arg1 : tensor<8x32xf32>
    sdy.return %4 : tensor<8x32xf32>
  } {note = #sdy<manual_axes{"k"}>} : (tensor<16x32xf32>) -> tensor<16x32xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a", ?}p2, {"b":(1)2}], replicated={}> : tensor<16x32xf32>
  %2 = sdy.constant dense<1.000000e+00> : tensor<16x32xf32>
  %3:2 = sdy.named_computation<"two">(%1, %2) (%arg1: tensor<16x32xf32>, %arg2: tensor<16x32xf32>) {
    sdy.return %arg1, %arg2 : tensor<16x32xf32>, tensor<16x32xf32>
  } : (tensor<16x32xf32>, tensor<16x32xf32>) -> (tensor<16x32xf32>, tensor<16x32xf32>)
  sdy.sharding_group %3#0 group_id=7 : tensor<16x32xf32>
  return %3#1 : tensor<16x32xf32>
}
""".replace(', {"b":(1)2}], replicated={}>', ', {"b"}]>')


def test_what_is_printed_is_what_was_read(context) -> None:
    assert body(PROGRAM, context) == PROGRAM


def test_printing_leaves_the_attributes_that_it_does_not_show(context) -> None:
    module = asm.parse_module(PROGRAM, context)
    before = module.operation.get_asm(print_generic_op_form=True)
    assert "SegmentSizes" in before
    assert asm.print_operation(module, assume_verified=True) == asm.print_operation(module)
    asm.print_operation(module, generic=True)
    assert module.operation.get_asm(print_generic_op_form=True) == before


def test_generic_form_reads_back_to_the_same(context) -> None:
    generic = printed(PROGRAM, context, generic=True)
    assert '"sdy.mesh"() <{mesh = #sdy.mesh<["a"=2, "b"=2]>, sym_name = "mesh"}> : () -> ()' in generic
    assert "SegmentSizes" not in generic
    assert printed(generic, context) == printed(PROGRAM, context)


@pytest.mark.parametrize(
    ("attribute", "canonical"),
    [
        ('#sdy.sharding<@m,[{"x" ,?} , { } ]>', '#sdy.sharding<@m, [{"x", ?}, {}]>'),
        (
            '#sdy.sharding<@m, [], unreduced = max {"y"}, replicated={"x"}>',
            '#sdy.sharding<@m, [], replicated={"x"}, unreduced=max{"y"}>',
        ),
        ('#sdy.sharding<mesh<["x"=2], device_ids=[0, 1]>, []>', '#sdy.sharding<mesh<["x"=2]>, []>'),
        ("#sdy.sharding<@m, [{?}p0]>", "#sdy.sharding<@m, [{?}p0]>"),
        (
            "#sdy.op_sharding_rule<([ij,k])->([ijk]) {i=2,j=3,k=4} reduction={}>".replace(" reduction={}", ""),
            "#sdy.op_sharding_rule<([ij, k])->([ijk]) {i=2, j=3, k=4}>",
        ),
        (
            "#sdy.op_sharding_rule<([i, j])->([i]) {i=2, j=3} reduction={j} blocked_propagation={i}, custom>",
            "#sdy.op_sharding_rule<([i, j])->([i]) {i=2, j=3} reduction={j} blocked_propagation={i}, custom>",
        ),
        (
            '#sdy.propagation_edges<[{step-2 = [{"y" = operand-1->[operand-0,result-0]}]}]>',
            '#sdy.propagation_edges<[{step-2 = [{"y" = operand-1 -> [operand-0, result-0]}]}]>',
        ),
        ('#sdy<list_of_axis_ref_lists[{"a":(1)2}, {}]>', '#sdy<list_of_axis_ref_lists[{"a":(1)2}, {}]>'),
        ('#sdy<all_to_all_param_list[{"b"}: 0->2]>', '#sdy<all_to_all_param_list[{"b"}: 0->2]>'),
        ('#sdy.sharding_per_value<[<@"a b", []>, <@m, [{}]>]>', '#sdy.sharding_per_value<[<@"a b", []>, <@m, [{}]>]>'),
    ],
)
def test_attributes_in_canonical_form(attribute: str, canonical: str, context) -> None:
    assert f"{{k = {canonical}}}" in printed(f"module attributes {{t.a = {{k = {attribute}}}}} {{}}", context)


def test_aliases_stand_for_attributes_anywhere(context) -> None:
    text = """
    #mesh = #sdy.mesh<["x"=2]>
    #rows = #sdy.sharding<#mesh, [{"x"}, {}]>
    #_0 = #sdy.sharding<@m, []>
    func.func @f(%a: tensor<2x4xf32> {sdy.sharding = #rows}) {
      %0 = stablehlo.abs %a {sdy.sharding = #sdy.sharding_per_value<[#rows]>} : tensor<2x4xf32>
      %1 = sdy.reshard %0 #rows : tensor<2x4xf32>
      return
    }
    """
    expanded = '<mesh<["x"=2]>, [{"x"}, {}]>'
    out = printed(text, context)
    assert f"sdy.sharding = #sdy.sharding{expanded}" in out
    assert f"#sdy.sharding_per_value<[{expanded}]>" in out
    assert f"sdy.reshard %0 {expanded} : tensor<2x4xf32>" in out


def test_what_looks_like_syntax_survives(context) -> None:
    text = (
        '// sdy.reshard %x <@m, [{"x"}]>\n'
        'module attributes {a.b = "sdy.mesh @m = <[]> \\"q\\" #sdy.sharding<@m, []>", a.c = "\\E2\\86\\92"} {\n'
        '  func.func private @"sdy.mesh"() loc("sdy.mesh"("sdy.mesh":1:2)) // "sdy.mesh"(\n}\n'
    )
    assert 'loc("sdy.mesh"(#loc1))' in printed(text, context, debug_info=True)
    out = printed(text, context)
    assert 'a.b = "sdy.mesh @m = <[]> \\22q\\22 #sdy.sharding<@m, []>"' in out
    assert 'a.c = "\\E2\\86\\92"' in out
    assert "@sdy.mesh()" in out


def test_text_beyond_ascii(context) -> None:
    out = printed('sdy.mesh @m = <["α"=2]> {note = "→"}', context)
    assert printed(out, context) == out
    module = asm.parse_module('sdy.mesh @m = <["α"=2]>', context)
    assert module.body.operations[0].attributes["mesh"].value.axis_names == ("α",)


def test_types_that_change_along_the_operands(context) -> None:
    types = ["tensor<2xf32>", "tensor<3xf32>", "tensor<2xf32>", "!stablehlo.token"]
    arguments = ", ".join(f"%arg{i}: {type_}" for i, type_ in enumerate(types))
    inner = ", ".join(f"%arg{i + 4}: {type_}" for i, type_ in enumerate(types))
    text = (
        f"func.func @f({arguments}) {{\n"
        f'  %0:4 = sdy.named_computation<"f">(%arg0, %arg1, %arg2, %arg3) ({inner}) {{\n'
        f"    sdy.return %arg4, %arg5, %arg6, %arg7 : {', '.join(types)}\n"
        f"  }} : ({', '.join(types)}) -> ({', '.join(types)})\n"
        "  return\n}\n"
    )
    assert body(text, context) == text
    assert body(text, context, assume_verified=True) == text


def located(text: str, context) -> dict[str, tuple[int, int]]:
    """Returns the line and column of the locations of operations and of block arguments, by name."""
    found = {}

    def visit(op):
        op = op.operation
        location = op.location
        found[op.name] = (location.start_line, location.start_col)
        for region in op.regions:
            for block in region:
                for argument in block.arguments:
                    found[argument.get_name()] = (argument.location.start_line, argument.location.start_col)
        return host.ir.WalkResult.ADVANCE

    asm.parse_module(text, context, "program.mlir").operation.walk(visit)
    return found


def expected(text: str, token: str) -> tuple[int, int]:
    offset = text.index(token)
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


LONG = '[{"a"}, {}]'
LAYOUTS = {
    "as printed": f"""sdy.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4x8xf32> {{sdy.sharding = #sdy.sharding<@m, {LONG}>}}, %y: tensor<4x8xf32>) {{
  %0 = sdy.reshard %y <@m, {LONG}> : tensor<4x8xf32>
  %1 = stablehlo.abs %0 : tensor<4x8xf32>
  return
}}""",
    "on one line": f"""sdy.mesh @m = <["a"=2]> func.func @f(%x: tensor<4x8xf32> \
{{sdy.sharding = #sdy.sharding<@m, {LONG}>}}, %y: tensor<4x8xf32>) {{ \
%0 = sdy.reshard %y <@m, {LONG}> : tensor<4x8xf32> %1 = stablehlo.abs %0 : tensor<4x8xf32> return }}""",
    "over many lines": f"""
  sdy.mesh
   @m // the mesh
     = <["a"=2]> func.func @f(%x: tensor<4x8xf32> {{sdy.sharding = #sdy.sharding<@m,
   {LONG}>}}, %y: tensor<4x8xf32>)
 {{ %0 =
   sdy.reshard %y

     <@m, [{{"a"}}, // rows
           {{}}]> : tensor<4x8xf32>   %1 = stablehlo.abs %0 : tensor<4x8xf32>
   return }}""",
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_locations_are_those_of_the_users_text(layout: str, context) -> None:
    found = located(layout, context)
    for op in ("sdy.mesh", "func.func", "sdy.reshard", "stablehlo.abs"):
        assert found[op] == expected(layout, op), op
    assert found["func.return"] == expected(layout, "return")
    assert found["%arg0"] == expected(layout, "%x:")
    assert found["%arg1"] == expected(layout, "%y:")


def test_explicit_locations_stay(context) -> None:
    text = 'module { func.func private @f() loc("program.mlir":7:8) func.func private @g() loc("-":9:10) }'
    out = asm.print_operation(asm.parse_module(text, context, "program.mlir"), debug_info=True)
    assert 'loc("program.mlir":7:8)' in out
    assert 'loc("-":9:10)' in out


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ('sdy.mesh @m = <["a"=0]>', (1, 17), "at least size 1"),
        ('sdy.mesh @m = ["a"=2]', (1, 15), "expected '<'"),
        ("\n\n  %0 = sdy.reshard\n", (4, 1), "expected an SSA operand for 'input'"),
        ('module { a.b = #sdy.shardin<"x"> }', (1, 21), "did you mean sharding"),
        ("module {\n  func.func @f() { sdy.return ^ }\n}", (2, 31), "invalid block name"),
        ("module { %0 = foo", (1, 15), "foo"),
        (b"module {\n \xff }", (2, 2), "0xff"),
        ('func.func @f() attributes {a = #sdy.sharding<@m, [{"x"}p01]>} { return }', (1, 56), "leading zeros"),
    ],
)
def test_errors_are_where_they_are(text: str | bytes, position: tuple[int, int], message: str, context) -> None:
    with pytest.raises(asm.ParseError) as caught:
        asm.parse_module(text, context, "program.mlir")
    first = caught.value.diagnostics[0]
    assert message in first.message
    assert (first.location.start_line, first.location.start_col) == position
    assert first.location.filename == "program.mlir"


def test_errors_of_the_verifier_are_where_they_are(context) -> None:
    function = 'func.func @f(%x: tensor<4xf32>) { %0 = sdy.reshard %x <@m, [{"b"}]> : tensor<4xf32> return }'
    text = f'sdy.mesh @m = <["a"=2]> {function}'
    with pytest.raises(asm.ParseError) as caught:
        asm.parse_module(text, context, "program.mlir")
    (only,) = caught.value.diagnostics
    assert (only.location.start_line, only.location.start_col) == expected(text, "sdy.reshard")
    assert '"b"' in only.message


def test_an_operation_that_does_not_verify_can_be_shown(context) -> None:
    shown = asm.to_sdy_syntax('see current operation: %0 = "sdy.reshard"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>')
    assert shown.endswith('"sdy.reshard"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>')
    shown = asm.to_sdy_syntax('got #sdy.sharding<"<@m, [{\\22x\\22}]>"> here')
    assert shown == 'got #sdy.sharding<@m, [{"x"}]> here'


def test_values_by_text(context) -> None:
    value = asm.parse_value("sharding", '<@mesh, [{"x", ?}p1, {}], replicated={"y":(2)4}>')
    assert asm.print_value(value) == '<@mesh, [{"x", ?}p1, {}], replicated={"y":(2)4}>'
    assert asm.mnemonic_of(value) == "sharding"
    with pytest.raises(TypeError, match="not an attribute of the sdy dialect"):
        asm.mnemonic_of(3)
    with pytest.raises(asm.AsmSyntaxError, match="expected the end"):
        asm.parse_value("sharding", "<@mesh, []> x")


def test_nesting_that_the_parser_does_not_survive() -> None:
    context = create_context()
    with pytest.raises(asm.ParseError, match=r"deep.mlir.:2001:8.*brackets are nested more than 2000 levels deep"):
        asm.parse_module("module {\n" * 10000 + "}\n" * 10000, context, "deep.mlir")
    # Brackets in strings and comments do not count.
    module = asm.parse_module('module attributes {x.a = "' + "(" * 3000 + '"} {} // ' + "[" * 3000, context)
    assert str(module.operation.attributes["x.a"]) == '"' + "(" * 3000 + '"'


def test_text_of_which_the_parser_says_nothing() -> None:
    with pytest.raises(asm.ParseError, match=r"quiet.mlir.:1:1.*the text is not a module"):
        asm.parse_module("sdy.mesh, x", create_context(), "quiet.mlir")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("func.func @f() {\n  return\n}\0", "3:2"),
        ("func.func @f() {\n  return\n}\n\0\nfunc.func @g() { return }", "4:1"),
        ("func.func @f() {\n  // \0\n  return\n}", "2:6"),
        ('sdy.mesh @"m\0" = <["x"=2]>', "1:13"),
    ],
)
def test_nul_characters_are_refused_everywhere(text: str, place: str, context) -> None:
    with pytest.raises(asm.ParseError, match=rf'"in.mlir":{place}\): NUL character'):
        asm.parse_module(text, context, "in.mlir")
    with pytest.raises(asm.ParseError, match=rf'"in.mlir":{place}\): NUL character'):
        asm.parse_module(text.encode(), context, "in.mlir")
