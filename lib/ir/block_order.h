// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The order of the operations in large blocks, by which walks prefetch operations.
//
// A block is a linked list: the address of the operation after the next one is known only when the next one has been
// loaded from memory, and a module of many operations is larger than a cache. Most walks visit the same operations as
// the previous walk, including operations in small nested blocks.
#pragma once

#include "ir/capi.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace mlir_shard {

class BlockWalk;

// Prefetches an operation. The function is always inlined: compilers assume that a function which only prefetches has
// no effects, and remove calls of it.
[[gnu::always_inline]] inline void prefetch(const void *op) {
  const auto *at = static_cast<const char *>(op);
  // Results are stored before an operation, and operands after it.
  for (const int line : {-64, 0, 64, 128})
    __builtin_prefetch(at + line);
}

// Prefetches the operation that is visited a few operations after index `at`, for a loop over all operations in order.
inline void prefetchAfter(const std::vector<MlirOperation> &ops, std::size_t at) {
  constexpr std::size_t ahead = 16; // The number of operations that are visited while one is loaded from memory.
  if (at + ahead < ops.size())
    prefetch(ops[at + ahead].pointer);
}

// The orders in which the last walks over some blocks visited operations. The operations may have been erased since: an
// order is only used to prefetch.
class BlockOrders {
public:
  struct Order {
    // The distance of an object from the block in units of 8 bytes, the alignment of all objects; 0 if it is too large.
    using Place = std::int32_t;

    const void *block = nullptr;
    std::vector<Place> places; // The visited operations, except the first few, and the nested blocks and operations.

    Place place(const void *of) const {
      const std::int64_t away = (reinterpret_cast<std::intptr_t>(of) - reinterpret_cast<std::intptr_t>(block)) / 8;
      return away == static_cast<Place>(away) ? static_cast<Place>(away) : 0;
    }
    const void *at(Place place) const {
      return reinterpret_cast<const void *>(reinterpret_cast<std::intptr_t>(block) + std::intptr_t{8} * place);
    }
  };

  std::shared_ptr<Order> of(MlirBlock block) {
    for (const std::shared_ptr<Order> &order : orders)
      if (order && order->block == block.pointer)
        return order;
    std::shared_ptr<Order> &oldest = orders[next++ % orders.size()];
    oldest = std::make_shared<Order>();
    oldest->block = block.pointer;
    return oldest;
  }

  BlockWalk *innermost = nullptr; // The innermost of the active walks over large blocks.

private:
  std::array<std::shared_ptr<Order>, 16> orders;
  std::size_t next = 0;
};

// One walk over the operations of a block.
class BlockWalk {
public:
  BlockWalk(const Capi &capi, MlirBlock block) : capi(capi), block(block), outer(capi.blockOrders->innermost) {
    // If a visit calls Python, another thread may begin a walk, which may end later than this one.
    if (outer && outer->thread != thread)
      outer = nullptr;
    if (outer)
      outer->comeTo(block.pointer);
  }
  ~BlockWalk() { capi.blockOrders->innermost = outer; }
  BlockWalk(const BlockWalk &) = delete;
  BlockWalk &operator=(const BlockWalk &) = delete;

  // Records the visit of an operation, which must still be in the block.
  void come(MlirOperation op) {
    if (order) {
      if (!comeTo(op.pointer))
        prefetch(capi.mlirOperationGetNextInBlock(op).pointer);
      return;
    }
    if (outer)
      outer->comeTo(op.pointer);
    prefetch(capi.mlirOperationGetNextInBlock(op).pointer);
    if (++count == small) {
      order = capi.blockOrders->of(block);
      capi.blockOrders->innermost = this;
    }
  }

  // Ends a walk that has visited all operations.
  void end() {
    if (isNew) {
      now.shrink_to_fit();
      order->places = std::move(now);
    } else if (order && next < order->places.size()) {
      order->places.resize(next);
    }
  }

private:
  static constexpr std::size_t small = 32; // No order is kept for blocks with fewer operations.
  static constexpr std::size_t ahead = 24; // The number of operations that are visited while one is loaded from memory.
  static constexpr std::size_t mostGone = 64;

  using Place = BlockOrders::Order::Place;

  // Records the visit of the object at an address. Returns whether the order contains an object to prefetch.
  bool comeTo(const void *at) {
    const Place place = order->place(at);
    const std::vector<Place> &before = order->places;
    const bool isNext = next < before.size() && before[next] == place;
    if (!isNext && !isNew) {
      now.assign(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(std::min(next, before.size())));
      isNew = true;
    }
    if (isNew)
      now.push_back(place);
    if (isNext)
      ++next;
    else
      findIn(before, place);
    if (next + ahead >= before.size())
      return false;
    prefetch(order->at(before[next + ahead]));
    return true;
  }

  // Continues after `place` in the previous order if the objects before it were skipped; if `place` is not found, it is
  // regarded as new.
  void findIn(const std::vector<Place> &before, Place place) {
    if (next >= before.size())
      return;
    const auto from = before.begin() + static_cast<std::ptrdiff_t>(next);
    const auto to = from + static_cast<std::ptrdiff_t>(std::min(before.size() - next, mostGone));
    if (const auto found = std::find(from, to, place); found != to)
      next = static_cast<std::size_t>(found - before.begin()) + 1;
  }

  const Capi &capi;
  MlirBlock block;
  std::thread::id thread = std::this_thread::get_id();
  BlockWalk *outer; // The innermost walk when this one began, if it is of the same thread.
  std::size_t count = 0;
  std::size_t next = 0; // The next index in the previous order.
  std::shared_ptr<BlockOrders::Order> order;
  bool isNew = false; // Whether the order differs from the previous one.
  std::vector<Place> now;
};

} // namespace mlir_shard
