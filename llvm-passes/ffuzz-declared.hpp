// Declared domains: a text that the compiler wrapper has checked says what to watch. Places are
// chosen at the start of the pipeline, so that what is watched is what the source says, whatever the
// optimiser and its version make of it. What is put there is a call: other domains would take the blocks
// of an inlined update for the program's. Calls are inlined at the end.
#ifndef FFUZZ_DECLARED_HPP
#define FFUZZ_DECLARED_HPP

#include "ffuzz-domain.hpp"
#include "ffuzz-variables.hpp"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"

#include <deque>
#include <optional>
#include <set>
#include <vector>

using namespace llvm;

namespace {

// "arg 0", "result", "number 3"
struct Term {
  StringRef Word;
  uint32_t Number = 0;

  explicit Term(StringRef Text = "number 1") {
    StringRef Digits;
    std::tie(Word, Digits) = Text.split(' ');
    Digits.getAsInteger(10, Number);
  }
};

struct Declaration {
  std::string Map; // the runtime's variable
  StringRef Name, Watch, Operation;
  std::vector<GlobPattern> Names, Functions, Files;
  std::vector<Term> Values;
  Term Key;
  fuzzfactory::Shape Shape;
};

void addPattern(std::vector<GlobPattern> &List, StringRef Text) {
  if (Expected<GlobPattern> Pattern = GlobPattern::create(Text))
    List.push_back(*Pattern);
  else
    report_fatal_error(Pattern.takeError());
}

// Strings point into the file, which is read once and kept.
std::deque<Declaration> readDeclarations() {
  static std::unique_ptr<MemoryBuffer> Text;
  std::deque<Declaration> Found;
  const char *Path = std::getenv("FFUZZ_DECLARED_DOMAINS");
  if (!Path) return Found;
  auto File = MemoryBuffer::getFile(Path);
  if (!File) report_fatal_error(Twine("cannot read ") + Path);
  Text = std::move(*File);
  for (line_iterator Line(*Text); !Line.is_at_end(); ++Line) {
    auto [Word, Rest] = Line->split(' ');
    if (Word == "domain") {
      Found.emplace_back();
      Found.back().Name = Rest;
      Found.back().Map = ("__afl_" + Rest + "_dsf").str();
    }
    Declaration &D = Found.back();
    if (Word == "watch") D.Watch = Rest;
    if (Word == "operation") D.Operation = Rest;
    if (Word == "key") D.Key = Term(Rest);
    if (Word == "size") Rest.getAsInteger(10, D.Shape.Size);
    if (Word == "initial") Rest.getAsInteger(10, D.Shape.Initial);
    if (Word == "value") D.Values.emplace_back(Rest);
    if (Word == "name") addPattern(D.Names, Rest);
    if (Word == "function") addPattern(D.Functions, Rest);
    if (Word == "file") addPattern(D.Files, Rest);
  }
  return Found;
}

bool matches(const std::vector<GlobPattern> &Patterns, StringRef Text) {
  return any_of(Patterns, [&](const GlobPattern &Pattern) { return Pattern.match(Text); });
}

// Without its parameters: "ns::Header::read". C functions keep their names.
std::string readableName(const Function &F) {
  ItaniumPartialDemangler Demangler;
  std::string Mangled = F.getName().str();
  if (Demangler.partialDemangle(Mangled.c_str())) return Mangled;
  char *Text = Demangler.getFunctionName(nullptr, nullptr);
  std::string Name = Text ? Text : Mangled;
  std::free(Text);
  return Name;
}

bool matchesFunction(const std::vector<GlobPattern> &Patterns, const Function &F) {
  return matches(Patterns, F.getName()) || matches(Patterns, readableName(F));
}

// The path as a whole, or any end of it that begins behind a slash.
bool matchesFile(const std::vector<GlobPattern> &Patterns, StringRef Path) {
  for (StringRef End = Path; !End.empty(); End = End.split('/').second)
    if (matches(Patterns, End)) return true;
  return false;
}

StringRef functionOf(StringRef Operation) {
  return StringSwitch<StringRef>(Operation)
      .Case("add", "__fuzzfactory_dsfp_add_saturating")
      .Case("min", "__fuzzfactory_dsfp_min")
      .Case("or", "__fuzzfactory_dsfp_bitwise_or")
      .Case("set", "__fuzzfactory_dsfp_set")
      .Default("__fuzzfactory_dsfp_max");
}

// What a site has to offer as value and key.
struct Seen {
  std::vector<Value *> Arguments;
  Value *Result = nullptr, *Stored = nullptr;
  ICmpInst *Compare = nullptr;
};

class DeclaredFeedback : public fuzzfactory::DomainFeedback<DeclaredFeedback> {
public:
  DeclaredFeedback(Module &M, const Declaration &D) : DomainFeedback(M, D.Map.c_str()), D(D) {
    if (D.Watch == "stores") Names.emplace(M);
  }

  void visitFunction(Function &F) {
    Headers.clear();
    InScope = isInScope(F);
    if (!InScope) return;
    if (Names) Names->enter(F);
    Returns = D.Watch == "returns" && matchesFunction(D.Names, F);
    if (D.Watch != "loops") return;
    DominatorTree Tree(F);
    LoopInfo Loops(Tree);
    for (Loop *L : Loops.getLoopsInPreorder()) Headers.insert(L->getHeader());
  }

  void visitBasicBlock(BasicBlock &B) {
    if (InScope && (D.Watch == "blocks" || Headers.count(&B))) {
      auto Builder = insert_before(B);
      record(Builder, {});
    }
  }

  void visitCallBase(CallBase &Call) {
    if (!InScope || D.Watch != "calls" || !isWatched(Call)) return;
    Seen S;
    S.Arguments.assign(Call.arg_begin(), Call.arg_end());
    if (!needs("result")) return recordBefore(Call, S);
    if (isa<CallBrInst>(Call) || Call.isMustTailCall()) return skip("has no place behind it");
    S.Result = &Call;
    if (!isUsable(S)) return;
    auto Builder = insert_after(Call);
    record(Builder, S);
  }

  void visitReturnInst(ReturnInst &Return) {
    if (!InScope || !Returns) return;
    Seen S;
    for (Argument &A : Return.getFunction()->args()) S.Arguments.push_back(&A);
    S.Result = Return.getReturnValue();
    if (Return.getParent()->getTerminatingMustTailCall()) return skip("has no place before it");
    recordBefore(Return, S);
  }

  void visitStoreInst(StoreInst &Store) {
    if (!InScope || D.Watch != "stores") return;
    std::string Name = Names->nameOf(Store);
    if (Name.empty() || !matches(D.Names, Name)) return;
    Seen S;
    S.Stored = Store.getValueOperand();
    recordBefore(Store, S);
  }

  void visitICmpInst(ICmpInst &Compare) {
    if (!InScope || D.Watch != "comparisons" || Compare.getMetadata("nosanitize")) return;
    if (!isNumber(Compare.getOperand(0)) || (isa<Constant>(Compare.getOperand(0)) && isa<Constant>(Compare.getOperand(1))))
      return;
    Seen S;
    S.Compare = &Compare;
    recordBefore(Compare, S);
  }

  void tellSkipped() const {
    if (Skipped && !fuzzfactory::isQuiet(M))
      errs() << "[!] WARNING: [" << D.Name << "] Skipped " << Skipped << " locations: the first " << Reason << ".\n";
  }

private:
  const Declaration &D;
  std::optional<fuzzfactory::Variables> Names;
  std::set<const BasicBlock *> Headers;
  bool InScope = false, Returns = false;
  unsigned Skipped = 0;
  std::string Reason;

  bool isInScope(const Function &F) const {
    if (D.Functions.empty() && D.Files.empty()) return true;
    if (matchesFunction(D.Functions, F)) return true;
    SmallString<256> Path(M.getSourceFileName());
    if (const DISubprogram *Program = F.getSubprogram()) {
      Path = Program->getDirectory();
      sys::path::append(Path, Program->getFilename());
      if (sys::path::is_absolute(Program->getFilename())) Path = Program->getFilename();
    }
    sys::fs::make_absolute(Path);
    sys::path::remove_dots(Path, true);
    return matchesFile(D.Files, Path);
  }

  // clang turns these three into instructions of its own.
  bool isWatched(const CallBase &Call) const {
    if (isa<MemCpyInst>(Call)) return matches(D.Names, "memcpy");
    if (isa<MemMoveInst>(Call)) return matches(D.Names, "memmove");
    if (isa<MemSetInst>(Call)) return matches(D.Names, "memset");
    auto *Callee = dyn_cast<Function>(Call.getCalledOperand()->stripPointerCasts());
    if (!Callee || Callee->isIntrinsic()) return false;
    return !fuzzfactory::startsWith(Callee->getName(), "__fuzzfactory_") && matchesFunction(D.Names, *Callee);
  }

  bool needs(StringRef Word) const {
    return any_of(D.Values, [&](const Term &T) { return T.Word == Word; });
  }

  static bool isNumber(const Value *V) { return V->getType()->isIntegerTy() && V->getType()->getIntegerBitWidth() <= 64; }

  void skip(const Twine &Why) {
    if (!Skipped++) Reason = Why.str();
  }

  // The terms that come from the program have to be there and to be numbers.
  bool isUsable(const Seen &S) {
    auto IsUsable = [&](const Term &T) {
      if (T.Word == "arg") {
        std::string Which = "argument " + std::to_string(T.Number);
        if (T.Number >= S.Arguments.size()) return skip("has no " + Which), false;
        if (!isNumber(S.Arguments[T.Number])) return skip(Which + " is no integer of at most 64 bits"), false;
      }
      if (T.Word == "result" && (!S.Result || !isNumber(S.Result)))
        return skip("result is no integer of at most 64 bits"), false;
      if (T.Word == "stored" && !isNumber(S.Stored)) return skip("stored value is no integer of at most 64 bits"), false;
      return true;
    };
    return all_of(D.Values, IsUsable) && IsUsable(D.Key);
  }

  void recordBefore(Instruction &I, const Seen &S) {
    if (!isUsable(S)) return;
    auto Builder = insert_before(I);
    record(Builder, S);
  }

  // It always comes back, so it leaves loops to the domains that count in registers.
  void record(IRBuilder<> &B, const Seen &S) {
    Value *Key = D.Key.Word == "site" ? createProgramLocation() : termOf(B, D.Key, S);
    FunctionCallee Update = resolveFunction(functionOf(D.Operation), getVoidTy(),
                                            {DsfMapVariable->getType(), getIntTy(32), getIntTy(32)});
    CallInst *Call = B.CreateCall(Update, {DsfMapVariable, B.CreateZExtOrTrunc(Key, getIntTy(32)), valueOf(B, S)});
    Call->setDoesNotThrow();
    Call->addFnAttr(Attribute::WillReturn);
  }

  // The product of all terms; what does not fit 32 bits is the largest number of 32 bits.
  Value *valueOf(IRBuilder<> &B, const Seen &S) {
    Value *Product = nullptr;
    for (const Term &T : D.Values) {
      Value *Next = B.CreateZExt(termOf(B, T, S), getIntTy(64));
      Product = Product ? multiplied(B, Product, Next) : Next;
    }
    if (auto *Constant = dyn_cast<ConstantInt>(Product); Constant && Constant->getZExtValue() <= UINT32_MAX)
      return getConst(Constant->getZExtValue());
    return B.CreateTrunc(B.CreateBinaryIntrinsic(Intrinsic::umin, Product, B.getInt64(UINT32_MAX)), getIntTy(32));
  }

  Value *multiplied(IRBuilder<> &B, Value *X, Value *Y) {
    Value *Both = B.CreateBinaryIntrinsic(Intrinsic::umul_with_overflow, X, Y);
    return B.CreateSelect(B.CreateExtractValue(Both, 1), B.getInt64(UINT64_MAX), B.CreateExtractValue(Both, 0));
  }

  Value *termOf(IRBuilder<> &B, const Term &T, const Seen &S) {
    if (T.Word == "arg") return S.Arguments[T.Number];
    if (T.Word == "result") return S.Result;
    if (T.Word == "stored") return S.Stored;
    if (T.Word == "difference") return differenceOf(B, *S.Compare);
    if (T.Word == "equal_bits") return equalBitsOf(B, *S.Compare);
    return getConst(T.Number);
  }

  // Only an ordered comparison says whether its sides have signs; for the others it is the shorter
  // way around.
  Value *differenceOf(IRBuilder<> &B, ICmpInst &Compare) {
    Value *X = Compare.getOperand(0), *Y = Compare.getOperand(1);
    Value *Down = B.CreateSub(X, Y), *Up = B.CreateSub(Y, X);
    if (Compare.isEquality()) return B.CreateBinaryIntrinsic(Intrinsic::umin, Down, Up);
    auto Larger = Compare.isSigned() ? CmpInst::ICMP_SGT : CmpInst::ICMP_UGT;
    return B.CreateSelect(B.CreateICmp(Larger, X, Y), Down, Up);
  }

  Value *equalBitsOf(IRBuilder<> &B, ICmpInst &Compare) {
    Value *Same = B.CreateNot(B.CreateXor(Compare.getOperand(0), Compare.getOperand(1)));
    // Of few bits the number of bits does not fit into as many.
    return B.CreateUnaryIntrinsic(Intrinsic::ctpop, B.CreateZExt(Same, getIntTy(64)));
  }
};

// Makes inlined updates of the calls, where the operation has one.
class DeclaredUpdates : public fuzzfactory::DomainFeedback<DeclaredUpdates> {
public:
  DeclaredUpdates(Module &M, const Declaration &D)
      : DomainFeedback(M, D.Map.c_str(), D.Shape), Function(functionOf(D.Operation)),
        Op(StringSwitch<Operation>(D.Operation).Case("add", Operation::Add).Case("min", Operation::Min).Default(Operation::Max)) {}

  // From the last to the first: what stands behind a call is none of them then.
  void visitFunction(llvm::Function &F) {
    std::vector<CallInst *> Calls;
    for (Instruction &I : instructions(F))
      if (auto *Call = dyn_cast<CallInst>(&I); Call && calleeName(*Call) == Function && Call->getArgOperand(0) == DsfMapVariable)
        Calls.push_back(Call);
    for (CallInst *Call : reverse(Calls)) {
      IRBuilder<> B(Call->getNextNode());
      update(B, Op, Call->getArgOperand(1), Call->getArgOperand(2));
      Call->eraseFromParent();
    }
  }

private:
  using Operation = fuzzfactory::Operation;
  StringRef Function;
  Operation Op;
};

struct DeclaredPass : PassInfoMixin<DeclaredPass> {
  fuzzfactory::Phase Now;
  explicit DeclaredPass(fuzzfactory::Phase Now) : Now(Now) {}
  static bool isRequired() { return true; }

  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    static const std::deque<Declaration> Declarations = readDeclarations();
    for (const Declaration &D : Declarations)
      if (Now == fuzzfactory::Early)
        choosePlaces(M, D);
      else if (D.Operation != "or" && D.Operation != "set")
        DeclaredUpdates(M, D).run(Now);
    return PreservedAnalyses::none();
  }

  static void choosePlaces(Module &M, const Declaration &D) {
    DeclaredFeedback Feedback(M, D);
    fuzzfactory::tellSites(M, D.Name.str().c_str(), Feedback.run(fuzzfactory::Early));
    Feedback.tellSkipped();
  }
};

} // namespace

static void addDeclaredDomains(PassBuilder &PB) {
  using namespace fuzzfactory;
  if (!std::getenv("FFUZZ_DECLARED_DOMAINS")) return;
  PB.registerPipelineStartEPCallback([](ModulePassManager &MPM, auto) { MPM.addPass(DeclaredPass(Early)); });
  addLast(PB, DeclaredPass(Late));
}

#endif
