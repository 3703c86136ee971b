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

  static std::string absolutePath(llvm::StringRef File, llvm::StringRef Folder) {
    llvm::SmallString<256> Name(File);
    if (!Folder.empty() && !llvm::sys::path::is_absolute(File)) {
      Name = Folder;
      llvm::sys::path::append(Name, File);
    }
    llvm::sys::fs::make_absolute(Name);
    llvm::sys::path::remove_dots(Name, true);
    return std::string(Name.str());
  }
};

// The words: one line of text per word in a section of the object file that is not loaded. Linkers
// join such sections as they are, so the program has the lines of all its objects. A field that is
// empty is that of the line before, the first line of a module has all of them:
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
    std::string Fields[] = {llvm::toHex(Bytes, true), Kind, Place.File, std::to_string(Place.Line)};
    Text += ".ascii \"";
    for (unsigned I = 0; I < Width; I++) {
      if (I == 0 || Fields[I] != Before[I]) appendEscaped(Fields[I]);
      Before[I] = Fields[I];
      Text += I + 1 < Width ? "\\t" : "\\n\"\n";
    }
  }

  void writeTo(llvm::Module &M) {
    if (Text.empty()) return;
    M.appendModuleInlineAsm(".pushsection .ffuzz_words,\"\",%progbits\n" + Text + ".popsection\n");
    Text.clear();
  }

private:
  static constexpr unsigned Width = 4;
  llvm::StringSet<> Known;
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
