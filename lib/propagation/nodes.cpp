// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "propagation/nodes.h"

#include <algorithm>
#include <array>

namespace mlir_shard {

void Nodes::add(std::int32_t kind, const Numbers &uses, const Numbers &definitions) {
  kinds.push_back(kind);
  values.insert(values.end(), uses.begin(), uses.end());
  middle.push_back(static_cast<std::int32_t>(values.size()));
  values.insert(values.end(), definitions.begin(), definitions.end());
  start.push_back(static_cast<std::int32_t>(values.size()));
}

void Nodes::addOperations(const ModuleArrays &arrays, const Numbers &ops,
                          const std::vector<std::pair<std::int32_t, std::int32_t>> &moved, const Reading &reading) {
  constexpr std::int32_t notAsked = -1;
  std::vector<std::array<std::int32_t, 2>> kindsOf(arrays.representatives.size(), {notAsked, notAsked});
  const std::string isUsedOnce = arrays.usedOnce();
  Numbers places(arrays.values.size());
  for (std::size_t value = 0; value < places.size(); ++value)
    places[value] = arrays.definers[value] < 0 ? 0 : static_cast<std::int32_t>(value) + 1;
  for (const auto &[value, place] : moved)
    places.at(value) = place;
  for (Numbers *numbers : {&kinds, &middle})
    numbers->reserve(numbers->size() + ops.size());
  start.reserve(start.size() + ops.size());
  values.reserve(values.size() + arrays.operands.numbers.size() + arrays.results.numbers.size());
  for (std::int32_t op : ops) {
    const std::int32_t signature = arrays.signatures.at(op);
    const std::optional<Numbers> &watched = reading.watched.at(signature);
    if (!watched) {
      for (const auto &[kind, used, defined] : reading.nodesOf(op))
        add(kind, used, defined);
      continue;
    }
    const std::int32_t *operands = arrays.operands.begin(op);
    const bool shared = std::any_of(watched->begin(), watched->end(), [&](std::int32_t operand) {
      return !isUsedOnce[operands[operand]];
    });
    std::int32_t &kind = kindsOf[signature][shared];
    if (kind == notAsked)
      kind = reading.kindOf(signature, shared);
    kinds.push_back(kind);
    for (const std::int32_t *operand = operands; operand != arrays.operands.end(op); ++operand)
      values.push_back(places[*operand]);
    middle.push_back(static_cast<std::int32_t>(values.size()));
    for (const std::int32_t *result = arrays.results.begin(op); result != arrays.results.end(op); ++result)
      values.push_back(places[*result]);
    start.push_back(static_cast<std::int32_t>(values.size()));
  }
}

Nodes::Node Nodes::at(std::size_t node) const {
  return {kinds.at(node), {begin(node), definitions(node)}, {definitions(node), end(node)}};
}

} // namespace mlir_shard
