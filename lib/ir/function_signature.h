// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The dictionaries of attributes of a function's arguments or results.
#pragma once

#include "ir/capi.h"

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace mlir_shard {

enum class Side { Arguments, Results };
constexpr Side bothSides[] = {Side::Arguments, Side::Results};

// Returns the name of the attribute that holds the dictionaries of a side.
const char *nameOf(Side side);

// The attribute of one name and the type of each argument or result, as numbers among the distinct ones; -1 for no
// attribute.
struct SignatureColumn {
  std::vector<std::int32_t> attributes, types;
  std::vector<MlirAttribute> distinctAttributes;
  std::vector<MlirType> distinctTypes;
};

SignatureColumn signatureColumn(const Capi &capi, MlirOperation function, Side side, const std::string &name);

// Sets the attribute `name` of each argument or result; null removes it.
void setSignatureColumn(const Capi &capi, MlirOperation function, Side side, const std::string &name,
                        const std::vector<MlirAttribute> &attributes);

// Replaces one attribute in dictionaries, and caches the results.
class EntryReplacer {
public:
  EntryReplacer(const Capi &capi, MlirContext context, const std::string &name);

  // Returns the dictionary with the attribute replaced, or removed if `attribute` is null.
  MlirAttribute with(MlirAttribute dictionary, MlirAttribute attribute);

private:
  struct Key {
    const void *dictionary, *attribute;
    bool operator==(const Key &other) const { return dictionary == other.dictionary && attribute == other.attribute; }
  };
  struct Hash {
    std::size_t operator()(const Key &key) const {
      const std::hash<const void *> hash;
      return hash(key.dictionary) * 31 + hash(key.attribute);
    }
  };

  const Capi &capi;
  MlirContext context;
  MlirIdentifier name;
  std::unordered_map<Key, MlirAttribute, Hash> known;
};

} // namespace mlir_shard
