// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "resharding/exchange_rounds.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

namespace mlir_shard {

namespace {

constexpr std::int32_t noMessage = -1;

// The message of each device in each round, for the devices on one side of the messages.
class Schedules {
public:
  // Returns the number of a device, and assigns one if it is new.
  std::size_t number(std::int64_t device) {
    const auto [known, isNew] = numbers.emplace(device, messages.size());
    if (isNew)
      messages.emplace_back();
    return known->second;
  }

  std::int32_t at(std::size_t device, std::int32_t round) const {
    const std::vector<std::int32_t> &own = messages[device];
    return static_cast<std::size_t>(round) < own.size() ? own[round] : noMessage;
  }

  void put(std::size_t device, std::int32_t round, std::int32_t message) {
    std::vector<std::int32_t> &own = messages[device];
    if (static_cast<std::size_t>(round) >= own.size())
      own.resize(round + 1, noMessage);
    own[round] = message;
  }

  std::int32_t firstFree(std::size_t device) const {
    const std::vector<std::int32_t> &own = messages[device];
    return static_cast<std::int32_t>(std::find(own.begin(), own.end(), noMessage) - own.begin());
  }

private:
  std::unordered_map<std::int64_t, std::size_t> numbers;
  std::vector<std::vector<std::int32_t>> messages;
};

} // namespace

std::vector<std::int32_t> exchangeRounds(const std::vector<std::pair<std::int64_t, std::int64_t>> &messages,
                                         std::int32_t count) {
  Schedules sending, receiving;
  std::vector<std::pair<std::size_t, std::size_t>> ends;
  std::vector<std::int32_t> rounds;
  for (const auto &[sender, receiver] : messages)
    ends.emplace_back(sending.number(sender), receiving.number(receiver));
  for (const auto &[sender, receiver] : ends) {
    std::int32_t round = 0;
    while (sending.at(sender, round) != noMessage || receiving.at(receiver, round) != noMessage)
      ++round;
    if (round >= count) {
      // The receiver is busy in the first round that is free for the sender. Exchanges that round with one that is free
      // for the receiver, along the alternating path of messages in these two rounds that starts at the receiver.
      round = sending.firstFree(sender);
      const std::int32_t other = receiving.firstFree(receiver);
      std::vector<std::int32_t> path;
      bool isReceiver = true;
      std::size_t at = receiver;
      for (std::int32_t wanted = round;; wanted = round + other - wanted) {
        const std::int32_t message = isReceiver ? receiving.at(at, wanted) : sending.at(at, wanted);
        if (message == noMessage)
          break;
        path.push_back(message);
        at = isReceiver ? ends[message].first : ends[message].second;
        isReceiver = !isReceiver;
      }
      for (std::int32_t message : path) {
        sending.put(ends[message].first, rounds[message], noMessage);
        receiving.put(ends[message].second, rounds[message], noMessage);
      }
      for (std::int32_t message : path) {
        rounds[message] = round + other - rounds[message];
        sending.put(ends[message].first, rounds[message], message);
        receiving.put(ends[message].second, rounds[message], message);
      }
    }
    const auto message = static_cast<std::int32_t>(rounds.size());
    sending.put(sender, round, message);
    receiving.put(receiver, round, message);
    rounds.push_back(round);
  }
  return rounds;
}

} // namespace mlir_shard
