# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attributes of the sdy dialect as the host stores them, and their values.

In memory an attribute is a dynamic attribute with one parameter, the canonical text of its value: the host
cannot parse a dialect's own attribute syntax for a dialect defined at run time. The typed value is read from
that text once per distinct text, and not at all if the attribute was made from the value of a sharding.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from mlir_shard import asm
from mlir_shard.host import ir
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue

# The values of attributes in each context, kept because the text of an attribute with many shardings is long.
_values: WeakKeyDictionary[Any, dict[int, Any]] = WeakKeyDictionary()


class SdyAttribute(ir.DynamicAttr):
    """Base of the generated attribute classes; `mnemonic` is the name after `#sdy.` in the text."""

    mnemonic: ClassVar[str]
    attr_name: ClassVar[str]

    @property
    def text(self) -> str:
        """The canonical sdy syntax of this attribute, after the mnemonic."""
        return ir.StringAttr(self.params[0]).value

    @property
    def value(self) -> Any:
        """The value of this attribute, a dataclass of `mlir_shard.sharding`."""
        context = self.context
        known = _values.get(context)
        if known is None:
            known = _values[context] = {}
        # The hash of an attribute is its address, which does not change as long as its context lives.
        found = known.get(hash(self))
        if found is None:
            found = known[hash(self)] = _value(self.mnemonic, self.text)
        return found

    @classmethod
    def get(cls, value: Any, context: Any = None) -> Any:
        """Returns the attribute of a dataclass value, in `context` or the current one."""
        return to_attribute(value, context).maybe_downcast()

    @classmethod
    def parse(cls, text: str, context: Any = None) -> Any:
        """Parses sdy syntax, such as `#sdy.sharding<@mesh, [{"x"}]>`, with or without the prefix `#sdy.sharding`.

        `ir.Attribute.parse` does not support this syntax. Raises ValueError if the text is not valid.
        """
        try:
            return cls.get(_value(cls.mnemonic, text.strip().removeprefix(f"#sdy.{cls.mnemonic}")), context)
        except asm.AsmSyntaxError as error:
            raise ValueError(f"'{text}' is not a valid #sdy.{cls.mnemonic}: {error}") from None


# Values by mnemonic and text.
_parsed: dict[tuple[str, str], Any] = {}


def _value(mnemonic: str, text: str) -> Any:
    found = _parsed.get((mnemonic, text))
    if found is None:
        found = _parsed[mnemonic, text] = asm.parse_value(mnemonic, text)
    return found


@cache
def _text(value: Any) -> tuple[str, str]:
    printed = asm.mnemonic_of(value), asm.print_value(value)
    if _reads_back(value):
        _parsed.setdefault(printed, value)
    return printed


def _reads_back(value: Any) -> bool:
    """Returns whether the text of a value is certain to be read as the value: the reader checks meshes and numbers."""
    if isinstance(value, TensorShardingPerValue):
        return all(map(_reads_back, value.shardings))
    if not isinstance(value, TensorSharding) or not isinstance(value.mesh_or_ref, str):
        return False
    numbers = [dim.priority for dim in value.dim_shardings if dim.priority is not None]
    for axis in value.used_axes:
        numbers += axis.sub_axis_info or ()
    return all(abs(number) < 2**63 for number in numbers)


def to_attribute(value: Any, context: Any = None) -> Any:
    """Returns the attribute for `value`: an attribute as it is, a dataclass of `mlir_shard.sharding` converted.

    Raises TypeError if no attribute represents the value.
    """
    if isinstance(value, ir.Attribute):
        return value
    mnemonic, text = _text(value)
    return ir.DynamicAttr.get(f"sdy.{mnemonic}", [ir.StringAttr.get(text, context)], context=context)


def to_value(attribute: Any) -> Any:
    """Returns the dataclass of an sdy attribute. Raises ValueError if the attribute is of another dialect."""
    if not isinstance(attribute, SdyAttribute):
        raise ValueError(f"{attribute} is not an attribute of the sdy dialect")
    return attribute.value


def value_or_none(attribute: Any, kind: type) -> Any | None:
    """Returns the value of an attribute; None if it cannot be read, or is not of the dataclass `kind`."""
    try:
        value = attribute.value if isinstance(attribute, SdyAttribute) else None
    except asm.AsmSyntaxError:
        return None
    return value if isinstance(value, kind) else None


def value_of(op: Any, name: str, kind: type) -> Any | None:
    """Returns the value of the attribute `name` of an op, as `value_or_none` does; None if none exists."""
    return value_or_none(op.attributes.get(name), kind)
