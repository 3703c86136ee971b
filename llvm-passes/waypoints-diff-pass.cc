// Domain `diff`: the edges that are taken once changed code was reached. What changed is said by a
// unified diff (FFUZZ_DIFF=FILE), or by a list of basename:line (-target_locations=FILE).
#include "ffuzz-domain.hpp"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"

#include <set>
#include <vector>

using namespace llvm;

static cl::opt<std::string> TargetLocations("target_locations", cl::desc("changed lines, one basename:line each"),
                                            cl::value_desc("file"));

// Lines by file. A name stands for every file whose path ends with it.
class ChangedLines {
public:
  bool empty() const { return Lines.empty(); }

  bool has(const DILocation &At) const {
    SmallString<256> Path(At.getFilename());
    if (!sys::path::is_absolute(Path)) {
      Path = At.getDirectory();
      sys::path::append(Path, At.getFilename());
    }
    sys::path::remove_dots(Path, true);
    for (const auto &[Name, Line] : Lines)
      if (Line == At.getLine() && isEndOf(Name, Path)) return true;
    return false;
  }

  void readList(const MemoryBuffer &File) {
    for (line_iterator Line(File); !Line.is_at_end(); ++Line) {
      auto [Name, Number] = Line->trim().rsplit(':');
      add(Name, Number);
    }
  }

  // The added lines, and the line that follows what was removed.
  void readDiff(const MemoryBuffer &File) {
    std::string Name;
    unsigned Next = 0, Left = 0;
    for (line_iterator Line(File, false); !Line.is_at_end(); ++Line) {
      StringRef Text = *Line;
      if (Left == 0 && fuzzfactory::startsWith(Text, "+++ ")) {
        Name = nameIn(Text.drop_front(4));
      } else if (fuzzfactory::startsWith(Text, "@@ ")) {
        auto [Start, Count] = Text.split('+').second.split(' ').first.split(',');
        if (Start.getAsInteger(10, Next)) Next = 0;
        if (Count.empty() || Count.getAsInteger(10, Left)) Left = 1;
        if (Left == 0) Next++, Left = 1; // only removes, behind the line that it names
      } else if (Left && (fuzzfactory::startsWith(Text, "+") || fuzzfactory::startsWith(Text, "-"))) {
        Lines.insert({Name, Next});
        if (Text[0] == '+') Next++, Left--;
      } else if (Left && !fuzzfactory::startsWith(Text, "\\")) {
        Next++, Left--;
      }
    }
    Lines.erase(Lines.lower_bound({"", 0}), Lines.upper_bound({"", ~0u}));
  }

private:
  std::set<std::pair<std::string, unsigned>> Lines;

  void add(StringRef Name, StringRef Number) {
    unsigned Line;
    if (!Name.empty() && !Number.getAsInteger(10, Line)) Lines.insert({Name.str(), Line});
  }

  // git puts a/ and b/ before names, others a date behind them.
  static std::string nameIn(StringRef Text) {
    Text = Text.split('\t').first.trim();
    if (Text == "/dev/null") return "";
    if (fuzzfactory::startsWith(Text, "b/") || fuzzfactory::startsWith(Text, "./")) Text = Text.drop_front(2);
    return Text.str();
  }

  static bool isEndOf(StringRef Name, StringRef Path) {
    if (Name == Path) return true;
    return Path.size() > Name.size() && Path.take_back(Name.size()) == Name && Path[Path.size() - Name.size() - 1] == '/';
  }
};

class IncrementalFuzzingFeedback : public fuzzfactory::DomainFeedback<IncrementalFuzzingFeedback> {
public:
  IncrementalFuzzingFeedback(Module &M) : DomainFeedback(M, "__afl_diff_dsf") {
    Hits = M.getOrInsertGlobal("__afl_hits_diff", getIntTy(32));
    Edge = resolveFunction("__ffuzz_diff_edge", getVoidTy(), {getIntTy(32)});
    Hit = resolveFunction("__ffuzz_diff_hit", getVoidTy(), {});
    const char *Diff = std::getenv("FFUZZ_DIFF");
    if (!TargetLocations.empty())
      read(TargetLocations, &ChangedLines::readList);
    else if (Diff && *Diff)
      read(Diff, &ChangedLines::readDiff);
    else if (!fuzzfactory::isQuiet(M))
      errs() << "[!] WARNING: domain 'diff' does not know what has changed.\n"
                "[!] Set FFUZZ_DIFF=FILE to a unified diff, or pass -target_locations=FILE.\n";
  }

  // The blocks of the function as it was; emitting splits them.
  void visitFunction(Function &F) {
    if (Changed.empty()) return;
    std::vector<BasicBlock *> Blocks;
    for (BasicBlock &Block : F)
      if (isProgramBlock(Block)) Blocks.push_back(&Block);
    for (BasicBlock *Block : Blocks) {
      bool IsChanged = any_of(*Block, [&](Instruction &I) { return I.getDebugLoc() && Changed.has(*I.getDebugLoc()); });
      auto Builder = insert_before(*Block);
      if (IsChanged) Builder.CreateCall(Hit);
      if (fuzzfactory::isForLinkTimeOptimisation(M)) {
        Builder.CreateCall(Edge, {createProgramLocation()});
        continue;
      }
      Value *Seen = fuzzfactory::ours(Builder.CreateICmpNE(Builder.CreateLoad(getIntTy(32), Hits), getConst(0)));
      Builder.SetInsertPoint(SplitBlockAndInsertIfThen(Seen, &*Builder.GetInsertPoint(), false));
      Builder.CreateCall(Edge, {createProgramLocation()});
    }
  }

private:
  ChangedLines Changed;
  Constant *Hits;
  FunctionCallee Edge, Hit;

  void read(StringRef Path, void (ChangedLines::*Reader)(const MemoryBuffer &)) {
    auto File = MemoryBuffer::getFile(Path);
    if (File)
      (Changed.*Reader)(**File);
    else
      M.getContext().emitError("domain 'diff' cannot read " + Path + ": " + File.getError().message() +
                               " (name an existing file in FFUZZ_DIFF or -target_locations)");
  }
};

FUZZFACTORY_REGISTER_DOMAIN(IncrementalFuzzingFeedback);
