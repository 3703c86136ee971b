// The words of a module, as the fuzzer's side reads them from the program: an automatic dictionary.
#ifndef FFUZZ_WORDS_HPP
#define FFUZZ_WORDS_HPP

#include "ffuzz-domain.hpp"

#include "llvm/ADT/StringSet.h"

namespace fuzzfactory {

// Where the program has a word: a file as debug information names it, and 0 for an unknown line.
struct WordPlace {
  std::string File;
  unsigned Line = 0;
};

// The places of words. Files are absolute, as in the names of keys.
class WordPlaces {
public:
  explicit WordPlaces(const llvm::Module &M) : Unit(absolutePath(M.getSourceFileName(), "")) {}

  WordPlace of(const llvm::Instruction &I) const {
    if (const llvm::DILocation *Location = I.getDebugLoc()) return at(Location->getFile(), Location->getLine());
    if (const llvm::DISubprogram *Function = I.getFunction()->getSubprogram())
      return at(Function->getFile(), Function->getLine());
    return {Unit, 0};
  }

  WordPlace of(const llvm::GlobalVariable &G) const {
    llvm::SmallVector<llvm::DIGlobalVariableExpression *, 1> Known;
    G.getDebugInfo(Known);
    if (Known.empty()) return {Unit, 0};
    return at(Known.front()->getVariable()->getFile(), Known.front()->getVariable()->getLine());
  }

private:
  std::string Unit;

  WordPlace at(const llvm::DIFile *File, unsigned Line) const {
    if (!File) return {Unit, 0};
    return {absolutePath(File->getFilename(), File->getDirectory()), Line};
  }
};

// The words, a line per word:
//   bytes in hexadecimal TAB kind TAB file TAB line
// A word is in a module's lines once; the reader has to drop words that several modules have.
class WordTable {
public:
  static constexpr size_t MinBytes = 2, MaxBytes = 32;
  // More are dropped: generated sources have tables that no dictionary can use.
  static constexpr size_t MaxWords = 65536;

  // `PlaceOf` is called for new words only.
  template <class Find> void add(llvm::StringRef Bytes, const char *Kind, Find PlaceOf) {
    if (Bytes.size() < MinBytes || Bytes.size() > MaxBytes || Known.size() >= MaxWords) return;
    if (!Known.insert(Bytes).second) return;
    WordPlace Place = PlaceOf();
    Lines.add({llvm::toHex(Bytes, true), Kind, Place.File, std::to_string(Place.Line)});
  }

  void writeTo(llvm::Module &M) { Lines.writeTo(M, ".ffuzz_words"); }

private:
  llvm::StringSet<> Known;
  LineTable<4> Lines;
};

} // namespace fuzzfactory

#endif
