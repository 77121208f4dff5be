// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "repetition/kept_ops.h"

#include <algorithm>

namespace mlir_shard {
namespace {

// A count of elements, bytes or operations.
using Count = __int128;

// Multiplies `product`; returns false if the result overflows.
bool multiply(Count &product, Count factor) { return !__builtin_mul_overflow(product, factor, &product); }

} // namespace

bool KeptOps::readKey(std::int32_t op, const std::int32_t *numbers) {
  const std::int32_t form = forms.empty() ? -1 : forms.at(arrays.signatures[op]);
  if (form < 0)
    return false;
  key.assign({form});
  for (const Groups *group : {&arrays.operands, &arrays.results})
    for (const std::int32_t *value = group->begin(op); value != group->end(op); ++value)
      key.push_back(numbers[*value]);
  return true;
}

void KeptOps::add(std::int32_t op, const std::int32_t *numbers, KeptForm form) {
  if (readKey(op, numbers))
    known.emplace(key, std::move(form));
}

bool KeptOps::isKept(std::int32_t op, const std::int32_t *numbers) {
  if (known.empty() || !readKey(op, numbers))
    return false;
  const auto found = known.find(key);
  return found != known.end() && isKept(op, found->second);
}

// Returns whether operands have even shards, and the operation costs no more than its part of the work of one device,
// and the latency of a reshard, which it would need to cost less.
bool KeptOps::isKept(std::int32_t op, const KeptForm &form) const {
  const Capi &capi = arrays.capi;
  const std::int32_t *const firstOperand = arrays.operands.begin(op), *const firstResult = arrays.results.begin(op);
  const auto operandCount = static_cast<std::size_t>(arrays.operands.end(op) - firstOperand);
  const auto typeOf = [&](std::size_t tensor) {
    const std::int32_t *value =
        tensor < operandCount ? firstOperand + tensor : firstResult + (tensor - operandCount);
    return capi.mlirValueGetType(arrays.value(*value));
  };
  const auto local = [](std::int64_t size, std::int64_t shards) { return (size + shards - 1) / shards; };
  Count bytes = 0, localBytes = 0;
  for (std::size_t tensor = 0; tensor < form.elementSizes.size(); ++tensor) {
    const std::vector<std::int64_t> &shards = form.tensorShards[tensor];
    const MlirType type = typeOf(tensor);
    Count whole = form.elementSizes[tensor], part = whole;
    for (std::size_t dim = 0; dim < shards.size(); ++dim) {
      const std::int64_t size = capi.mlirShapedTypeGetDimSize(type, static_cast<std::intptr_t>(dim));
      if ((tensor < operandCount && size % shards[dim] != 0) || !multiply(whole, size) ||
          !multiply(part, local(size, shards[dim])))
        return false;
    }
    bytes += whole;
    localBytes += part;
  }
  Count operations = form.operationsPerElement, localOperations = operations, devices = 1;
  for (std::size_t factor = 0; factor < form.factors.size(); ++factor) {
    const auto [tensor, dim] = form.factors[factor];
    const std::int64_t size = capi.mlirShapedTypeGetDimSize(typeOf(static_cast<std::size_t>(tensor)), dim);
    const std::int64_t shards = form.factorShards[factor];
    if (!multiply(operations, size) || !multiply(localOperations, local(std::max<std::int64_t>(size, 1), shards)) ||
        !multiply(devices, shards))
      return false;
  }
  const auto seconds = [&](Count ofOperations, Count ofBytes) {
    return std::max(static_cast<double>(ofOperations) / form.operationRate,
                    static_cast<double>(ofBytes) / form.memoryRate);
  };
  return seconds(localOperations, localBytes) <= seconds(operations / devices, bytes / devices) + form.moveLatency;
}

} // namespace mlir_shard
