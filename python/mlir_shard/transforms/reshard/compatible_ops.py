# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inserts the operations around each op of a function that its shardings need.

Most ops need none, and ops with the same signature and shardings need the same ones. These are decided once, and native
code inserts them around all such ops.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from mlir_shard._native import Insertion, ShardedOps
from mlir_shard.asm.module import host_library
from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir.operation_list import OperationList, capsules_of
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.operator.cheapest_reshards import CheapestReshards, PricedReshards
from mlir_shard.resharding.operator.common_axes import is_on_one_device
from mlir_shard.resharding.operator.op_reshards import OpReshards, Shardings
from mlir_shard.resharding.sharding_steps import (
    ReduceAlong,
    ReplicatedToUnreduced,
    Reshard,
    ReshardError,
    ShardedToUnreduced,
    ShardingStep,
    steps_between,
)
from mlir_shard.resharding.windows import FactorWindow
from mlir_shard.rules import RuleOptions
from mlir_shard.rules.cumulative import factor_windows
from mlir_shard.rules.reduction import reduction_op
from mlir_shard.rules.registry import has_rule_for_any_sizes
from mlir_shard.sharding import Mesh, OpShardingRule, ReductionOp, TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.gathers import Gathers
from mlir_shard.transforms.insertion import apply, operation_of
from mlir_shard.transforms.reshard.function_signatures import FunctionSignatures
from mlir_shard.transforms.reshard.gathered_operands import note_gathered_operands
from mlir_shard.transforms.reshard.op_choices import (
    RESHARDED_ALWAYS,
    AskedOp,
    OpChoices,
    Signature,
    Treatment,
    concerns_all_ops,
    is_resharded_by_default,
)
from mlir_shard.transforms.reshard.reduced_operands import (
    check_terminator,
    common_unreduced,
    reduction_before,
    unreduced_axes,
)
from mlir_shard.transforms.reshard.result_shardings import RestingShardings
from mlir_shard.transforms.reshard.sharded_function import OpRules, ShardedFunction
from mlir_shard.transforms.reshard.shared_reshards import SharedReshards
from mlir_shard.transforms.reshard.single_device import reshard_around
from mlir_shard.transforms.reshard.targets import Targets
from mlir_shard.transforms.shardings import COMPUTING, Side, rules_of_run, shardings_of


class CompatibleOps:
    """The ops of a function, which are given compatible shardings, with `cheapest` at the least cost.

    Without `reuses`, the reshards around each op are decided for it alone. Raises PassFailure and RuleError.

    made: the operations that were inserted.
    attributed: the operations whose shardings were changed.
    """

    def __init__(
        self,
        function: Any,
        meshes: Mapping[str, Mesh],
        *,
        is_full: bool,
        cheapest: CheapestReshards | None = None,
        gathers: Gathers | None = None,
        reuses: bool = True,
    ) -> None:
        self.made: Sequence[Any] = ()
        self.attributed: list[Any] = []
        self._made: list[Any] = []
        self._op = function
        # Without prices, sizes matter only if rules depend on them.
        by_price = is_full or cheapest is not None
        self._function = ShardedFunction(function, None if by_price or not reuses else has_rule_for_any_sizes)
        self._arrays = self._function.arrays
        self._meshes = meshes
        self._is_full = is_full
        self._gathers = gathers
        self._reuses = reuses
        self._options = RuleOptions() if cheapest is None else COMPUTING
        self._rule_for = rules_of_run(self._options, reuses=reuses)
        self._targets = Targets(function, meshes, self._made, with_reshard=is_full)
        self._cheapest = cheapest
        self._choices = OpChoices(self._function.shardings, meshes, cheapest, is_full=is_full, reuses=reuses)
        self._combiners: dict[int, ReductionOp | None] = {}
        self._windows: dict[tuple[int, int], tuple[FactorWindow, ...]] = {}
        # Ops without a rule may need insertions only in this case.
        self._asks_all = any(concerns_all_ops(sharding, meshes) for sharding in self._function.shardings)
        self._signatures = FunctionSignatures(
            self._function,
            self._rule_for,
            self._options,
            self._may_reshard,
            is_priced=cheapest is not None,
            asks_each=not reuses,
        )
        self._replaced: list[Any] = []
        self._shared = SharedReshards()
        self._kinds: Sequence[int] = ()

    def make(self) -> None:
        """Inserts all necessary operations."""
        rules = self._ops_of_interest()
        ops = self._by_kind(rules)
        self._kinds = ops.kinds
        if self._cheapest is not None and self._is_full:
            firsts = self._signatures.first_of_each_form()
            self._shared = SharedReshards.read(self._function, firsts, rules, self._combiner)
        if self._shared:
            ops = self._by_kind(rules)
        self._settle_results(rules, ops)

        def process(op: int) -> tuple[Insertion | None, bool]:
            try:
                return self._process(op, self._signatures.of_form(self._arrays.signatures[op]), rules[op])
            except ReshardError as error:
                where = self._arrays.operation(op)
                raise PassFailure(f"'{where.name}' cannot be resharded: {error}", where) from error

        attributed = ops.visit(self._function.in_post_order(rules.ops), self._function.numbers, process)
        for op in self._replaced:
            op.erase()
        self.made = OperationList([*capsules_of(self._made), *self._arrays.made().capsules])
        self.attributed += map(self._arrays.operation, attributed)

    def _ops_of_interest(self) -> OpRules:
        """Returns the ops that may need insertions, in pre-order, with their rules.

        Ops inside ops with a rule are left out: they compute elements.
        """
        own: dict[int, OpShardingRule | None] = {}

        def is_closed(op: int) -> bool:
            own[op] = self._rule_for(self._arrays.operation(op))
            return own[op] is not None

        reached = self._arrays.outermost(self._closes, is_closed)
        firsts = self._signatures.first_of_each_form()
        asked = [self._asked_rule(one, one.rule) for one in firsts]
        goes_without = [self._asks_all or one.treatment is not Treatment.OTHER for one in firsts]
        is_interesting = [
            without or rule is not None or (one.asks_each and self._may_reshard(one.name))
            for one, rule, without in zip(firsts, asked, goes_without, strict=True)
        ]
        ops = reached.where(is_interesting).numbers
        signatures = self._arrays.signatures
        own = {op: self._asked_rule(self._signatures[signatures[op]], rule) for op, rule in own.items()}
        left_out = {op for op, rule in own.items() if rule is None and not goes_without[signatures[op]]}

        def rule_of(signature: int) -> OpShardingRule | None:
            return self._asked_rule(self._signatures[signature], self._signatures[signature].rule)

        ops = [op for op in ops if op not in left_out] if left_out else ops
        return OpRules(ops, signatures, asked, rule_of, own)

    def _asked_rule(self, signature: Signature, rule: OpShardingRule | None) -> OpShardingRule | None:
        """Returns the rule that may require insertions around an op, or None."""
        is_asked = rule is not None and not rule.is_custom_rule and self._may_reshard(signature.name)
        return rule if is_asked else None

    def _by_kind(self, rules: OpRules) -> ShardedOps:
        """Returns the ops by kind, with equal rules and `_shared` numbers. Without `reuses`, each op is a kind."""
        if not self._reuses:
            return self._arrays.sharded_ops(rules.ops, {op: op + 1 for op in rules})
        numbers: dict[Hashable, int] = {}
        tags = {op: numbers.setdefault((0, self._shared.of(op)), len(numbers) + 1) for op in self._shared}
        for op, rule in rules.own.items():
            tags[op] = numbers.setdefault((id(rule), self._shared.of(op)), len(numbers) + 1)
        return self._arrays.sharded_ops(rules.ops, tags, self._signatures.forms)

    def _settle_results(self, rules: OpRules, ops: ShardedOps) -> None:
        """Gives results the shardings that are cheapest for the ops that make and use them."""
        function = self._function
        if self._cheapest is None or not self._is_full or self._asks_all or function.has_barriers:
            return
        returned = shardings_of(self._op, Side.RESULTS)
        prices = self._cheapest, self._meshes

        def keep(op: int) -> None:
            rule = rules[op]
            if rule is not None and self._signatures.shares_form(self._arrays.signatures[op]):
                self._choices.keep(self._asked(op, rule, self._operand_numbers(op)), op, ops, function.numbers)

        resting = RestingShardings(function, self._signatures, rules, returned, (self._priced, ops, keep), prices)
        for op in resting.settle():
            self._set_shardings(op, tuple(map(function.sharding_of, self._arrays.results(op))))

    def _priced(self, number: int, rule: OpShardingRule) -> PricedReshards:
        return self._choices.of(self._asked(number, rule, self._operand_numbers(number)))

    def _closes(self, number: int) -> bool | None:
        signature = self._signatures.of_form(number)
        return None if signature.asks_each else signature.rule is not None

    def _may_reshard(self, name: str) -> bool:
        """Returns whether insertions may be made around ops of a name for their rule."""
        return self._is_full or self._asks_all or is_resharded_by_default(name)

    def _process(self, number: int, signature: Signature, rule: OpShardingRule | None) -> tuple[Insertion | None, bool]:
        """Makes an op compatible; returns the insertion that is left, and whether its class needs no more than that."""
        if signature.treatment is Treatment.EDGES:
            # Without the full version, sources are changed only along unreduced axes.
            if self._is_full or self._asks_all:
                self._targets.process_edges(self._arrays.operation(number), self._function.disagreeing_edges(number))
        elif signature.treatment is Treatment.CALL:
            self._targets.process_call(self._arrays.operation(number), self._sources(number))
        elif signature.treatment is Treatment.RETURN:
            self._targets.process_return(self._arrays.operation(number), self._sources(number))
        elif signature.treatment is not Treatment.RESHARD or not self._convert_reshard(number):
            reduced = self._reduce_operands(number, signature.name) if self._asks_all else {}
            if self._asks_all and self._results_on_one_device(number):
                self._process_on_one_device(number)
            elif rule is not None:
                insertion, is_noted = self._process_with_rule(number, rule, reduced)
                return insertion, not (is_noted or self._asks_all or self._function.has_barriers)
        return None, False

    def _sources(self, number: int) -> list[TensorSharding | None]:
        return list(map(self._function.sharding_of, self._arrays.operands(number)))

    def _process_with_rule(
        self, number: int, rule: OpShardingRule, reduced: Mapping[int, int]
    ) -> tuple[Insertion | None, bool]:
        """Returns the insertion around an op, and whether the op adds to `_gathers`, as each of its class then has to.

        `reduced` has the numbers of the shardings of reduced operands, by index.
        """
        choice, combiner = self._choice(number, rule, reduced)
        if choice is None:
            return None, False
        insertion = self._insertion(number, choice, combiner)
        if self._gathers is None:
            return insertion, False
        noted = len(self._gathers)
        before = list(map(self._function.shardings.__getitem__, self._operand_numbers(number)))
        op = self._arrays.operation(number)
        note_gathered_operands(self._gathers, op, rule, (before, choice.operands), self._meshes)
        return insertion, len(self._gathers) > noted

    def _choice(
        self, number: int, rule: OpShardingRule, reduced: Mapping[int, int]
    ) -> tuple[OpReshards | None, ReductionOp | None]:
        """Chooses the reshards around an op; returns them and the reduction of its partial results."""
        operands = self._operand_numbers(number)
        for index, sharding in reduced.items():
            operands[index] = sharding
        asked = self._asked(number, rule, operands)
        return self._choices.of(asked).reshards, asked.combiner

    def _operand_numbers(self, number: int) -> list[int]:
        return [self._function.number_before_barriers(value) for value in self._arrays.operands(number)]

    def _asked(self, number: int, rule: OpShardingRule, operands: Sequence[int]) -> AskedOp:
        kind = self._arrays.signatures[number]
        signature = self._signatures[kind]
        results = tuple([self._function.numbers[value] for value in self._arrays.results(number)])
        own = self._combiner(number, rule), tuple(operands), results, self._windows_of(number, rule)
        is_uniform = signature.name in RESHARDED_ALWAYS and self._is_uniform(number, operands, results)
        return AskedOp(kind, signature, rule, *own, *self._shared.of(number), is_uniform)

    def _is_uniform(self, number: int, operands: Sequence[int], results: Sequence[int]) -> bool:
        """Returns whether the operands have the sharding of the first result, as seen behind propagation barriers."""
        function = self._function
        return all(
            (function.numbers[value] if asked == function.number_before_barriers(value) else asked) == results[0]
            for value, asked in zip(self._arrays.operands(number), operands, strict=True)
        )

    def _windows_of(self, number: int, rule: OpShardingRule) -> tuple[FactorWindow, ...]:
        """Returns the windows along permutation factors, computed once for all isomorphic ops."""
        if self._cheapest is None or not rule.permutation_factors:
            return ()
        key = self._arrays.signatures[number], id(rule)
        if key not in self._windows or not self._reuses:
            self._windows[key] = factor_windows(self._arrays.operation(number), rule)
        return self._windows[key]

    def _combiner(self, number: int, rule: OpShardingRule) -> ReductionOp | None:
        """Returns the reduction of partial results of an op, or None."""
        if not rule.reduction_factors:
            return None
        kind = self._kinds[number]
        if kind not in self._combiners:
            self._combiners[kind] = reduction_op(self._arrays.operation(number))
        return self._combiners[kind]

    def _insertion(self, number: int, choice: OpReshards, combiner: ReductionOp | None) -> Insertion:
        """Returns the operations to insert around an op; records the shardings that users of its results get."""
        before = [(index, Reshard(one)) for index, one in enumerate(choice.operands) if one is not None]
        behind: list[tuple[int, ShardingStep]] = []
        if choice.reduced_axes:
            kinds = (combiner or sharding.reduction_op for sharding in choice.reduced)
            reduced = zip(kinds, choice.reduced, strict=True)
            behind += enumerate(ReduceAlong(choice.reduced_axes, kind, sharding) for kind, sharding in reduced)
        behind += [(index, Reshard(one)) for index, one in enumerate(choice.users) if one is not None]
        attributes = []
        if any(choice.users):
            key, attribute = _shardings_of_results(self._arrays.operation(number), choice.results)
            attributes.append((key, attribute._CAPIPtr))
        results = self._arrays.results(number)
        for index, step in behind:
            self._function.replaced(results[index], step.sharding)
        numbers = [(index, self._function.numbers[results[index]]) for index in {index for index, _ in behind}]
        return Insertion(host_library(), _operations_of(before), _operations_of(behind), attributes, numbers)

    def _convert_reshard(self, number: int) -> bool:
        """Replaces a reshard by steps that make partial values, if only its result is unreduced; returns if it did."""
        operand, result = self._arrays.operands(number)[0], self._arrays.results(number)[0]
        source, target = map(self._function.sharding_of, (operand, result))
        if source is None or target is None or not target.unreduced_axes:
            return False
        steps = steps_between(source, target, self._meshes, with_reshard=False)
        if not any(isinstance(step, ReplicatedToUnreduced | ShardedToUnreduced) for step in steps):
            return False
        op = self._arrays.operation(number)
        with ir.InsertionPoint(op):
            op.results[0].replace_all_uses_with(apply(op.operands[0], steps, self._made))
        self._function.replaced(result, steps[-1].sharding)
        self._replaced.append(op)
        return True

    def _reduce_operands(self, number: int, name: str) -> dict[int, int]:
        """Reduces operands along unreduced axes that the op's results do not have.

        Returns the numbers of the new shardings, by the index of the operand.
        """
        operands = [self._function.numbers[value] for value in self._arrays.operands(number)]
        if not any(map(self._is_unreduced, operands)):
            return {}
        results = list(map(self._function.sharding_of, self._arrays.results(number)))
        op = self._arrays.operation(number)
        if not results:
            check_terminator(op)
            return {}
        target = common_unreduced(results)
        reduced: dict[int, int] = {}
        for index, one in enumerate(operands):
            source = self._function.shardings[one]
            step = None if source is None else reduction_before(op, source, target, self._meshes)
            if step is not None:
                with ir.InsertionPoint(op):
                    op.operands[index] = apply(op.operands[index], [step], self._made)
                reduced[index] = self._function.number(step.sharding)
        return reduced

    def _results_on_one_device(self, number: int) -> bool:
        shardings = map(self._function.sharding_of, self._arrays.results(number))
        return any(is_on_one_device(sharding, self._meshes) for sharding in shardings)

    def _process_on_one_device(self, number: int) -> None:
        values, op = self._arrays.results(number), self._arrays.operation(number)
        self.attributed.append(op)
        for index, sharding in reshard_around(op, self._meshes, self._made):
            self._function.replaced(values[index], sharding)

    def _set_shardings(self, number: int, shardings: Shardings) -> None:
        """Sets the shardings of all results of an op."""
        op = self._arrays.operation(number)
        self.attributed.append(op)
        if len(op.results) == 1:
            sdy.set_sharding(op.results[0], shardings[0])
            return
        key, attribute = _shardings_of_results(op, shardings)
        op.attributes[key] = attribute

    def _is_unreduced(self, sharding: int) -> bool:
        return bool(unreduced_axes(self._function.shardings[sharding]))


def _shardings_of_results(op: Any, shardings: Shardings) -> tuple[str, Any]:
    """Returns the name and the value of the attribute in which an op holds the shardings of its results."""
    known = tuple(sharding for sharding in shardings if sharding is not None)
    key = sdy.sharding_key(op)
    return key, sdy.attribute(TensorShardingPerValue(known) if sdy.SHARDING_KEYS[key] else known[0], op.context)


def _operations_of(steps: Iterable[tuple[int, ShardingStep]]) -> list[tuple[int, str, list[tuple[str, Any]]]]:
    """Returns the operations of steps, for native code, each with the number of the operand or result it takes."""
    made = []
    for index, step in steps:
        name, attributes = operation_of(step)
        made.append((index, name, [(key, attribute._CAPIPtr) for key, attribute in attributes.items()]))
    return made
