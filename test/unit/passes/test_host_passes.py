# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the information about the host's passes."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest
from passes import host_libraries

from mlir_shard.dialects.contexts import create_context
from mlir_shard.host import ir
from mlir_shard.passes import host_listing, host_passes
from mlir_shard.passes.host_passes import HostPassError


@pytest.mark.parametrize("name", ["cse", "canonicalize", "shard-partition", "stablehlo-legalize-to-vhlo", "sparsifier"])
def test_registered(name: str) -> None:
    assert host_passes.is_registered(name)


@pytest.mark.parametrize("name", ["", "csee", "cse)", "cse,cse", "func.func(cse", "cse{", "Cse"])
def test_not_registered(name: str) -> None:
    assert not host_passes.is_registered(name)


def test_options() -> None:
    assert dict(host_passes.options("canonicalize"))["max-iterations"] == "10"
    assert host_passes.options("cse") == ()
    assert host_passes.options("sparsifier") == ()


@pytest.mark.parametrize(
    ("name", "anchor"),
    [
        ("cse", None),
        ("convert-func-to-llvm", "builtin.module"),
        ("llvm-request-c-wrappers", "func.func"),
        ("gpu-async-region", "func.func"),
        ("nvvm-attach-target", None),
        ("spirv-update-vce", "spirv.module"),
    ],
)
def test_anchor(name: str, anchor: str | None) -> None:
    assert host_passes.make(name).anchor == anchor


def test_pipelines_are_expanded() -> None:
    made = host_passes.make("tosa-to-linalg-pipeline")
    assert made.is_pipeline
    assert "func.func(tosa-to-linalg" in made.text


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("nope", "", "'nope' is not a registered host pass"),
        ("cse", "x=1", "'cse' has no option 'x'"),
        (
            "canonicalize",
            "max-iteration=1",
            "'canonicalize' has no option 'max-iteration'; did you mean 'max-iterations'?",
        ),
        (
            "canonicalize",
            "max-iterations=x",
            "option 'max-iterations' of 'canonicalize': 'x' value invalid for long argument",
        ),
        (
            "canonicalize",
            "region-simplify=x",
            "option 'region-simplify' of 'canonicalize': 'x' is not one of its values",
        ),
        ("inline", "op-pipelines=func.func(nope)", "'nope' is not a registered host pass (in the options of 'inline')"),
        ("sparsifier", "vl=x", "option 'vl' of 'sparsifier': 'x' value invalid for integer argument"),
    ],
)
def test_refused(name: str, options: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(HostPassError) as refused:
        host_passes.make(name, options)
    assert str(refused.value) == message
    # The host's own text is part of the message and is not printed.
    assert capfd.readouterr() == ("", "")


def test_wrong_nesting_is_no_abort() -> None:
    """A check of a host pass under a wrong anchor raises an error instead of aborting the process."""
    for name in host_listing.summaries():
        made = host_passes.make(name)
        for anchor in ("builtin.module", "func.func", "gpu.module", "llvm.func", "any"):
            try:
                host_passes.check(made, anchor)
            except HostPassError as error:
                assert error.wanted_anchor not in (None, anchor)


def test_names_are_those_in_the_libraries_of_the_host() -> None:
    names = tuple(host_listing.summaries())
    # A separate process, because an import of programs from torch registers more passes.
    command = [sys.executable, host_libraries.__file__]
    registered = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert names == tuple(registered)
    # Two of these names are stored as the tails of other strings.
    assert {"cse", "canonicalize", "shard-partition", "sharding-propagation", "convert-shard-to-mpi"} <= set(names)


def test_dialects_are_those_in_the_libraries_of_the_host() -> None:
    assert host_listing.dialects(create_context()) == host_libraries.dialects(create_context())


def test_every_pass_has_a_summary() -> None:
    assert [name for name, one in host_listing.summaries().items() if not one.text] == []


def test_class_names() -> None:
    assert host_passes.class_name("cse") == "CSE"
    assert host_passes.class_name("convert-func-to-llvm") == "ConvertFuncToLLVM"


def test_pass_managers_are_freed_with_their_context() -> None:
    context = create_context()
    module = ir.Module.parse("func.func @main() { %0 = arith.constant 1 : i32 return }", context)
    for _ in range(2):
        host_passes.run("builtin.module(canonicalize)", module.operation, verify_each=False)
        assert "arith.constant" not in str(module)
    freed = weakref.ref(context)
    del module, context
    gc.collect()
    assert freed() is None
