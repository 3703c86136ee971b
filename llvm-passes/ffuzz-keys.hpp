// The names of keys, as the fuzzer's side reads them from the program (`showdsf --names`).
//
// src/inspect/sites.rs reads the section .ffuzz_keys from the files that the fork server has mapped, when a name is
// needed for the first time; src/engine/domain/names.rs parses it. Both trust nothing in it.
#ifndef FFUZZ_KEYS_HPP
#define FFUZZ_KEYS_HPP

#include "ffuzz-lines.hpp"

namespace fuzzfactory {

// Where a site is in the source, and in which function of the source (after inlining that may be
// another one than the function that holds the instruction).
struct Place {
  std::string File, Function;
  unsigned Line = 0, Column = 0;
};

// The names of keys, a line per key:
//   domain TAB key[+count] TAB file TAB line TAB column TAB function TAB what is measured
class KeyTable {
public:
  explicit KeyTable(llvm::StringRef MapName) : Domain(MapName) {
    if (MapName == "__wrapcmp_dsf_map") Domain = "cmp";
    llvm::StringRef Head = "__afl_", Tail = "_dsf"; // as the runtime does it
    if (MapName.size() > Head.size() + Tail.size() && MapName.take_front(Head.size()) == Head &&
        MapName.take_back(Tail.size()) == Tail)
      Domain = MapName.drop_front(Head.size()).drop_back(Tail.size());
  }

  void add(uint32_t Key, unsigned Count, const Place &P, const std::string &What) {
    std::string Number = std::to_string(Key) + (Count > 1 ? "+" + std::to_string(Count) : "");
    Lines.add({Domain.str(), Number, P.File, std::to_string(P.Line), std::to_string(P.Column), P.Function, What});
  }

  void writeTo(llvm::Module &M, const std::string &Section = ".ffuzz_keys") { Lines.writeTo(M, Section); }

private:
  llvm::StringRef Domain;
  LineTable<7> Lines;
};

} // namespace fuzzfactory

#endif
