# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of models as Python source."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mlir_shard.ods import assembly_format, model
from mlir_shard.ods.assembly_format import Custom, Directive, Group, Literal, TypeOf, Variable, Whitespace
from mlir_shard.ods.model import (
    AttrDef,
    AttributeArgument,
    AttributeConstraint,
    DialectDef,
    EnumCase,
    EnumDef,
    OpDef,
    Operand,
    ParameterDef,
    RegionDef,
    ResultDef,
    TraitRef,
    TypeConstraint,
    Variadicity,
)
from mlir_shard.ods.python_source import WIDTH, class_names, expression, quote

texts = st.text(max_size=40)
some = st.integers(0, 2)
formats = st.lists(
    st.one_of(
        st.builds(Literal, texts),
        st.builds(Whitespace, texts),
        st.builds(Variable, texts),
        st.builds(TypeOf, st.builds(Variable, texts)),
        st.builds(Directive, texts, st.tuples(st.builds(Variable, texts))),
        st.builds(Custom, texts, st.tuples(st.builds(Variable, texts), texts)),
        st.builds(Group, st.tuples(st.builds(Variable, texts)), st.just(()), st.just(0)),
    ),
    max_size=4,
).map(tuple)
variadicities = st.sampled_from(Variadicity)
types = st.builds(TypeConstraint, texts, texts, st.none() | texts)
constraints = st.builds(AttributeConstraint, texts, texts, texts, st.none() | texts)
arguments = st.one_of(
    st.builds(Operand, texts, types, texts, variadicities),
    st.builds(
        AttributeArgument,
        texts,
        constraints,
        texts,
        st.booleans(),
        st.none() | texts,
        st.one_of(st.none(), st.booleans(), st.integers(), texts, st.floats(allow_nan=False, allow_infinity=False)),
    ),
)
ops = st.builds(
    OpDef,
    texts,
    texts,
    texts,
    texts,
    texts,
    st.lists(arguments, max_size=3).map(tuple),
    st.lists(st.builds(ResultDef, texts, types, texts, variadicities), max_size=2).map(tuple),
    st.lists(st.builds(RegionDef, texts, texts, st.none() | some, variadicities), max_size=2).map(tuple),
    st.lists(st.builds(TraitRef, texts, st.tuples(texts, st.tuples(texts, some))), max_size=2).map(tuple),
    st.none() | formats,
)
attributes = st.builds(
    AttrDef,
    texts,
    texts,
    texts,
    parameters=st.lists(st.builds(ParameterDef, texts, texts, array=st.booleans()), max_size=2).map(tuple),
    assembly_format=st.none() | formats,
)
enums = st.builds(EnumDef, texts, texts, cases=st.tuples(st.builds(EnumCase, texts, some, texts)), width=some)
dialects = st.builds(
    DialectDef,
    texts,
    description=texts,
    ops=st.lists(ops, max_size=2).map(tuple),
    attributes=st.lists(attributes, max_size=2).map(tuple),
    enums=st.lists(enums, max_size=1).map(tuple),
)


@given(dialects)
def test_the_source_of_a_model_makes_the_model(dialect: DialectDef) -> None:
    assert eval(expression(dialect), {**vars(assembly_format), **vars(model)}) == dialect


@given(dialects)
def test_the_names_that_the_source_needs(dialect: DialectDef) -> None:
    every = {**vars(assembly_format), **vars(model)}
    needed = {name: every[name] for name in class_names(dialect)}
    assert eval(expression(dialect), {"__builtins__": {}, **needed}) == dialect


def test_layout() -> None:
    assert expression(TraitRef("Pure")) == 'TraitRef(name="Pure")'
    long = OpDef("op", "AnOp", "An_Op", description="first line\nsecond line", traits=(TraitRef("x" * WIDTH),))
    assert expression(long) == (
        "OpDef(\n"
        '    mnemonic="op",\n'
        '    name="AnOp",\n'
        '    def_name="An_Op",\n'
        "    description=(\n"
        '        "first line\\n"\n'
        '        "second line"\n'
        "    ),\n"
        "    traits=(\n"
        "        TraitRef(\n"
        f'            name="{"x" * WIDTH}",\n'
        "        ),\n"
        "    ),\n"
        ")"
    )


@given(texts)
def test_quote(text: str) -> None:
    assert eval(quote(text)) == text
