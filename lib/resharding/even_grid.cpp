// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "resharding/even_grid.h"

#include <algorithm>
#include <array>

namespace mlir_shard {

namespace {

// Returns the prime factors of a number in ascending order, with multiplicity.
std::vector<std::int64_t> primeFactors(std::int64_t number) {
  std::vector<std::int64_t> found;
  for (std::int64_t factor = 2; factor * factor <= number; ++factor)
    for (; number % factor == 0; number /= factor)
      found.push_back(factor);
  if (number > 1)
    found.push_back(number);
  return found;
}

} // namespace

EvenGrid::EvenGrid(const std::vector<std::int64_t> &sizes) {
  std::int64_t only = 0;
  bool isOfOneSize = true;
  for (std::int64_t size : sizes) {
    devices *= size;
    if (size > 1) {
      isOfOneSize = isOfOneSize && (!only || only == size);
      only = size;
    }
  }
  for (std::int64_t size : sizes) {
    std::vector<std::int64_t> factors = primeFactors(size);
    if (only && isOfOneSize && size > 1)
      factors = {size};
    std::vector<std::uint8_t> ofAxis;
    for (std::int64_t radix : factors) {
      ofAxis.push_back(static_cast<std::uint8_t>(radices.size()));
      radices.push_back(radix);
    }
    digits.push_back(std::move(ofAxis));
  }
  for (std::int64_t radix : radices)
    isUniform = isUniform && radix == radices.front();
}

const EvenGrid::Change &EvenGrid::change(const GridAxes &before, const GridAxes &after) {
  std::string key = before + '\xff' + after;
  auto known = changes.find(key);
  if (known != changes.end())
    return known->second;
  std::vector<std::uint8_t> old, now;
  for (char axis : before)
    for (std::uint8_t digit : digits[axisNumber(axis)])
      old.push_back(digit);
  for (char axis : after)
    for (std::uint8_t digit : digits[axisNumber(axis)])
      now.push_back(digit);
  Change found;
  std::size_t common = std::min(old.size(), now.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (old[i] != now[i])
      found.equal.emplace_back(old[i], now[i]);
    found.shared.push_back(now[i]);
    found.isAlike = found.isAlike && radices[old[i]] == radices[now[i]];
  }
  for (std::size_t i = common; i < old.size(); ++i)
    found.moreBefore *= radices[old[i]];
  for (std::size_t i = common; i < now.size(); ++i)
    found.moreAfter *= radices[now[i]];
  for (std::uint8_t digit : now)
    found.after *= radices[digit];
  return changes.emplace(std::move(key), std::move(found)).first->second;
}

std::pair<Elements, Elements> EvenGrid::lacking(const std::vector<const Change *> &of, Elements elements) {
  std::int64_t now = 1, finer = 1, meeting = 1;
  bool isSame = true;
  std::array<std::uint8_t, 256> next;
  std::array<std::uint8_t, 256> isVisited{};
  next.fill(0xff);
  for (const Change *change : of) {
    now *= change->after;
    finer *= change->moreBefore;
    for (auto [digit, other] : change->equal) {
      isSame = false;
      next[digit] = other;
      meeting *= radices[digit];
    }
  }
  Elements box = elements / now, common = box / finer;
  if (isSame)
    return {devices * (box - common), box - common};
  // Computes the fraction of devices that satisfy the equations; an equation that closes a cycle is redundant.
  for (std::size_t first = 0; first < radices.size(); ++first) {
    std::size_t digit = first;
    while (digit != 0xff && !isVisited[digit]) {
      isVisited[digit] = static_cast<std::uint8_t>(first + 1);
      digit = next[digit];
    }
    if (digit != 0xff && next[first] != 0xff && isVisited[digit] == first + 1)
      meeting /= radices[digit];
  }
  return {devices * box - devices * common / meeting, box};
}

std::int64_t EvenGrid::exchangeRounds(const GridDims &before, const std::vector<const Change *> &of) {
  std::array<bool, 256> isUsed{};
  for (const GridAxes &axes : before)
    for (char axis : axes)
      for (std::uint8_t digit : digits[axisNumber(axis)])
        isUsed[digit] = true;
  std::int64_t senders = 1, free = 1;
  bool differs = false, differsInUsed = false;
  for (const Change *change : of) {
    senders *= change->moreBefore;
    free *= change->moreBefore;
    for (std::uint8_t digit : change->shared)
      if (!isUsed[digit])
        free *= radices[digit];
    for (auto [digit, other] : change->equal) {
      differs = true;
      differsInUsed = differsInUsed || isUsed[other];
    }
  }
  return std::max(senders - !differs, free - !differsInUsed);
}

} // namespace mlir_shard
