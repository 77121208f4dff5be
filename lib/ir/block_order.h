// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The order of the operations in large blocks, by which walks have those further on come from memory.
//
// A block is a linked list: where the operation after the next one lies is known once the next has come from memory, and
// a module of many operations is larger than a cache. Walks mostly come to the operations that the walk before came to,
// those in the small blocks inside of the operations too.
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

// Prefetches an operation. It is inlined always: compilers take a function that only prefetches for one without effects,
// and drop calls of it.
[[gnu::always_inline]] inline void prefetch(const void *op) {
  const auto *at = static_cast<const char *>(op);
  // Results lie before an operation, and operands behind it.
  for (const int line : {-64, 0, 64, 128})
    __builtin_prefetch(at + line);
}

// Prefetches the operation that is visited some after the one at a place, in a visit of all in their order.
inline void prefetchAfter(const std::vector<MlirOperation> &ops, std::size_t at) {
  constexpr std::size_t ahead = 16; // As many are visited while one comes from memory.
  if (at + ahead < ops.size())
    prefetch(ops[at + ahead].pointer);
}

// What walks over some blocks have last come to. Any of it may be gone since: it is only prefetched.
class BlockOrders {
public:
  struct Order {
    // How far something is from the block, in units of 8 bytes, to which all is aligned; 0 for what is too far away.
    using Place = std::int32_t;

    const void *block = nullptr;
    std::vector<Place> places; // Operations, but for the first few, and the blocks and operations in them.

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

  BlockWalk *innermost = nullptr; // Of the walks over large blocks that are under way.

private:
  std::array<std::shared_ptr<Order>, 16> orders;
  std::size_t next = 0;
};

// One walk over the operations of a block.
class BlockWalk {
public:
  BlockWalk(const Capi &capi, MlirBlock block) : capi(capi), block(block), outer(capi.blockOrders->innermost) {
    // Where a visit calls Python, another thread may begin a walk, which may end later than this one.
    if (outer && outer->thread != thread)
      outer = nullptr;
    if (outer)
      outer->comeTo(block.pointer);
  }
  ~BlockWalk() { capi.blockOrders->innermost = outer; }
  BlockWalk(const BlockWalk &) = delete;
  BlockWalk &operator=(const BlockWalk &) = delete;

  // Comes to an operation of the block, which still is in it.
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

  // The walk has come to all operations.
  void end() {
    if (isNew) {
      now.shrink_to_fit();
      order->places = std::move(now);
    } else if (order && next < order->places.size()) {
      order->places.resize(next);
    }
  }

private:
  static constexpr std::size_t small = 32; // In a block of fewer operations no order is kept.
  static constexpr std::size_t ahead = 24; // As many are visited while one comes from memory.
  static constexpr std::size_t mostGone = 64;

  using Place = BlockOrders::Order::Place;

  // Comes to what is at a place in the block; whether what comes after some more is known.
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

  // Goes on behind `place`, where others have gone from before it; one that is not found is taken for new.
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
  BlockWalk *outer; // The innermost one when this began, if it is of the same thread.
  std::size_t count = 0;
  std::size_t next = 0; // Of the order before.
  std::shared_ptr<BlockOrders::Order> order;
  bool isNew = false; // Whether the order is another one than before.
  std::vector<Place> now;
};

} // namespace mlir_shard
