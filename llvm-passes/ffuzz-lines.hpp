// Tables that the fuzzer's side reads from a program: lines of text in a section of the object file.
//
// The section is not loaded, so it costs a run nothing, and every linker joins such sections as they are: the program
// has the lines of all its objects. A field that is empty is that of the line before; the first line of a module has
// all of them.
#ifndef FFUZZ_LINES_HPP
#define FFUZZ_LINES_HPP

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <string>

namespace fuzzfactory {

// The name of a source file in a folder, without `.` and `..`.
inline std::string absolutePath(llvm::StringRef File, llvm::StringRef Folder) {
  llvm::SmallString<256> Name(File);
  if (!Folder.empty() && !llvm::sys::path::is_absolute(File)) {
    Name = Folder;
    llvm::sys::path::append(Name, File);
  }
  llvm::sys::fs::make_absolute(Name);
  llvm::sys::path::remove_dots(Name, true);
  return std::string(Name.str());
}

// Lines of `Width` fields, with tabs between them.
template <unsigned Width> class LineTable {
public:
  void add(const std::string (&Fields)[Width]) {
    Text += ".ascii \"";
    for (unsigned I = 0; I < Width; I++) {
      if (Fields[I] != Before[I]) appendEscaped(Fields[I]);
      Before[I] = Fields[I];
      Text += I + 1 < Width ? "\\t" : "\\n\"\n";
    }
  }

  void writeTo(llvm::Module &M, const std::string &Section) {
    if (Text.empty()) return;
    M.appendModuleInlineAsm(".pushsection " + Section + ",\"\",%progbits\n" + Text + ".popsection\n");
    Text.clear();
  }

private:
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
