# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values of an explanation: tensors, causes of axes, axes that were lost, and causes of collectives."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mlir_shard.explain.places import Place
from mlir_shard.sharding import TensorSharding
from mlir_shard.sharding.axes import AxisRef
from mlir_shard.transforms.communication.communication_report import ReportedCollective


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of the propagated program.

    Attributes:
        number: the number of the tensor in the explanation.
        name: the name in the text, such as `%w`, the name that a front end gave, or the op.
        op: the op that defines it, `argument` or `result` of a function, or `region argument`.
        index: the index of the argument or result.
        function: the name of the function that contains it.
        place: the place of its definition.
        shape: the shape of its type.
        element: the element type, such as `f32`.
        bytes: the bytes of the global tensor.
        sharding: the sharding after propagation; None if it has none.
    """

    number: int
    name: str
    op: str
    index: int
    function: str
    place: Place
    shape: tuple[int, ...]
    element: str
    bytes: int
    sharding: TensorSharding | None

    @property
    def type(self) -> str:
        """The type as MLIR prints it."""
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.element}>"


@dataclass(frozen=True, slots=True)
class Operation:
    """An op of a function of the propagated program.

    Attributes:
        number: the number of the op in the explanation.
        name: the name of the op, such as `stablehlo.add`.
        place: the place in the text.
        function: the name of the function that contains it.
        parent: the number of the op whose region contains it.
        operands: the numbers of its operands.
        results: the numbers of its results.
        arguments: the numbers of the arguments of the blocks in its regions.
    """

    number: int
    name: str
    place: Place
    function: str
    parent: int
    operands: tuple[int, ...]
    results: tuple[int, ...]
    arguments: tuple[int, ...]


class AnnotationKind(str, Enum):
    """The part of a program on which a sharding is written before propagation."""

    ARGUMENT = "argument"
    RESULT = "result"
    CONSTRAINT = "constraint"
    MANUAL = "manual computation"
    OP = "op"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Annotation:
    """A sharding that was given before propagation: the origin of axes.

    Attributes:
        kind: the kind of the part of the program that it is written on.
        text: that part in words, such as `argument %x`.
        place: the place in the text.
        sharding: the sharding as it was given.
        priority: the priority of the dimension with the axis.
    """

    kind: AnnotationKind
    text: str
    place: Place
    sharding: TensorSharding | None
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Link:
    """One step of propagation of an axis through an op, from one tensor to another.

    Attributes:
        op: the name of the op.
        place: the place of the op.
        factor: the symbol of the factor of its sharding rule that both dimensions have; empty if unknown.
        source: the number of the tensor that has the axis.
        target: the number of the tensor that gets it.
        source_role: the role of the source in the op, such as `operand 0`.
        target_role: the role of the target in the op.
        dim: the dimension of the target.
        step: the number of the step among all steps of propagation.
    """

    op: str
    place: Place
    factor: str
    source: int
    target: int
    source_role: str
    target_role: str
    dim: int
    step: int


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """The last link of a chain and its predecessor.

    Attributes:
        link: the last link.
        before: the previous step, or the annotation at which the chain begins.
    """

    link: Link
    before: Step | Annotation


@dataclass(frozen=True, slots=True)
class Chain:
    """The reason why a dimension of a tensor is sharded along an axis.

    Attributes:
        axis: the axis of the mesh.
        dim: the dimension of the tensor.
        annotation: the annotation that the axis comes from.
        links: the steps from the annotation to the tensor; empty if the tensor itself is annotated.
    """

    axis: AxisRef
    dim: int
    annotation: Annotation
    links: tuple[Link, ...]


class LossReason(str, Enum):
    """The reason why an axis that shards a factor in one tensor of an op does not shard it in another."""

    CLOSED = "closed dimension"
    REPLICATED = "explicitly replicated"
    USED = "axis already used"
    OTHER_AXES = "dimension sharded otherwise"
    DIVISIBILITY = "divisibility"
    BLOCKED = "factor is not propagated"
    DIRECTION = "direction"
    ORDER = "order"


@dataclass(frozen=True, slots=True)
class Lost:
    """An axis that a neighbour of a tensor along an op has and the tensor lacks.

    Attributes:
        axis: the axis that the neighbour has.
        dim: the dimension of the tensor that would have been sharded.
        reason: the kind of the reason.
        text: the place of the axis in the neighbour, and the reason why the tensor lacks it.
        why: the reason alone.
        remedy: a change that would avoid the loss.
        op: the name of the op through which the axis would have been propagated.
        place: the place of the op.
        factor: the factor of its sharding rule.
        source: the number of the neighbour.
        winner: the annotation that gave the tensor its own axes or its closed dimension; None if no annotation did.
    """

    axis: AxisRef
    dim: int
    reason: LossReason
    text: str
    why: str
    remedy: str
    op: str
    place: Place
    factor: str
    source: int
    winner: Annotation | None = None


class CauseKind(str, Enum):
    """The reason why a collective is in a local program."""

    PARTIAL_SUM = "partial sum"
    OPERANDS_DISAGREE = "operands disagree"
    RESULT_SHARDING = "result sharding"
    NEEDS_REPLICATION = "needs replication"
    CONSTRAINT = "annotation"
    FUNCTION_BOUNDARY = "function boundary"
    CARRIED = "carried through a region"
    HALO = "halo"
    NO_RULE = "no rule"
    OP_EXCHANGES = "op exchanges elements"
    OTHER_MESH = "other mesh"
    PROGRAM = "in the program"


@dataclass(frozen=True, slots=True)
class Cause:
    """The reason why a collective is needed.

    Attributes:
        kind: the kind of the reason.
        text: the reason in a sentence.
        op: the name of the op that needs the collective.
        place: the place of the op.
        tensor: the number of the tensor that is moved; None if it is not in the propagated program.
        axes: the axes that cause the collective.
        alternative: a change that would avoid it, and why it was not possible; empty if it is unknown.
    """

    kind: CauseKind
    text: str
    op: str
    place: Place
    tensor: int | None = None
    axes: tuple[AxisRef, ...] = ()
    alternative: str = ""


@dataclass(frozen=True, slots=True)
class ExplainedCollective:
    """A collective of the local program with its causes.

    Attributes:
        collective: the collective with its bytes and its time.
        causes: the causes, one for each op that needs it.
    """

    collective: ReportedCollective
    causes: tuple[Cause, ...]
