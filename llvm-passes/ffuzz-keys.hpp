// The names of keys, as the fuzzer's side reads them from the program (`showdsf --names`).
//
// A line of text per key goes to the section .ffuzz_keys: not loaded, so it costs a run nothing, and joined by every
// linker as it is. src/inspect/sites.rs reads it from the files that the fork server has mapped, when a name is needed for
// the first time; src/engine/domain/names.rs parses it. Both trust nothing in it.
#ifndef FFUZZ_KEYS_HPP
#define FFUZZ_KEYS_HPP

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Module.h"

#include <string>

namespace fuzzfactory {

// Where a site is in the source, and in which function of the source (after inlining that may be
// another one than the function that holds the instruction).
struct Place {
  std::string File, Function;
  unsigned Line = 0, Column = 0;
};

// The names of keys: one line of text per key in a section of the object file that is not loaded.
// Linkers join such sections as they are, so the program has the lines of all its objects. A field
// that is empty is that of the line before, the first line of a module has all of them:
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
    std::string Fields[] = {Domain.str(), Number, P.File, std::to_string(P.Line), std::to_string(P.Column),
                            P.Function, What};
    Text += ".ascii \"";
    for (unsigned I = 0; I < Width; I++) {
      if (Fields[I] != Before[I]) appendEscaped(Fields[I]);
      Before[I] = Fields[I];
      Text += I + 1 < Width ? "\\t" : "\\n\"\n";
    }
  }

  void writeTo(llvm::Module &M, const std::string &Section = ".ffuzz_keys") {
    if (Text.empty()) return;
    M.appendModuleInlineAsm(".pushsection " + Section + ",\"\",%progbits\n" + Text + ".popsection\n");
    Text.clear();
  }

private:
  static constexpr unsigned Width = 7;
  llvm::StringRef Domain;
  std::string Before[Width], Text;

  void appendEscaped(llvm::StringRef Field) {
    for (unsigned char Byte : Field) {
      if (Byte < ' ') Byte = '?'; // no name may look like two
      if (Byte < 0x7f && Byte != '"' && Byte != '\\')
        Text += (char)Byte;
      else
        for (int Shift : {9, 6, 3, 0}) Text += Shift == 9 ? '\\' : (char)('0' + (Byte >> Shift & 7));
    }
  }
};

} // namespace fuzzfactory

#endif
