// The base of all domain passes, and the only file that knows the differences between versions of
// LLVM (14 to 20). A domain is a class that inherits from fuzzfactory::DomainFeedback, overrides
// visit functions of llvm::InstVisitor, and ends its file with FUZZFACTORY_REGISTER_DOMAIN(Class).
//
// Calls are best seen early (later the optimiser has removed or inlined them), blocks and integer
// comparisons late (only then they are what the program will execute): `Phases` says which.
#ifndef FFUZZ_DOMAIN_HPP
#define FFUZZ_DOMAIN_HPP

#include "ffuzz-keys.hpp"
#include "ffuzz-update.hpp"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstVisitor.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
#if LLVM_VERSION_MAJOR >= 22
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

#include <cstdlib>
#include <memory>
#include <string>

namespace fuzzfactory {

enum Phase : unsigned { Early = 1, Late = 2 };

#if LLVM_VERSION_MAJOR >= 16
inline bool startsWith(llvm::StringRef Text, llvm::StringRef Head) { return Text.starts_with(Head); }
#else
inline bool startsWith(llvm::StringRef Text, llvm::StringRef Head) { return Text.startswith(Head); }
#endif

// A function of the runtime, as FunctionCallee or, for passes in FuzzFactory's words, as Function *.
struct RuntimeFunction : llvm::FunctionCallee {
  RuntimeFunction(llvm::FunctionCallee F) : llvm::FunctionCallee(F) {}
  operator llvm::Function *() { return llvm::cast<llvm::Function>(getCallee()->stripPointerCasts()); }
};

// What a domain's pass can use. No template, so that a plugin of many domains holds it once.
class DomainBase {
public:
  // `MapName` is the variable of the runtime file that holds the domain's index. With the shape of
  // the domain (the same as in the runtime file, which has to use FFUZZ_NEW_DOMAIN) updates are
  // inlined; without it they are calls.
  DomainBase(llvm::Module &M, const char *MapName, Shape S = {})
      : M(M), C(M.getContext()), DsfMapVariable(M.getOrInsertGlobal(MapName, getIntTy(32))),
        DsfIncrementFunction(resolveFunction("__fuzzfactory_dsfp_increment", getVoidTy(),
                                             {getPtrTy(), getIntTy(32), getIntTy(32)})),
        Path(absolutePath(M.getSourceFileName(), "")), MapName(MapName), Inlined(M, MapName, S), Keys(MapName) {}

protected:
  llvm::Module &M;
  llvm::LLVMContext &C;
  llvm::IntegerType *Int32Ty = getIntTy(32), *Int64Ty = getIntTy(64);
  llvm::Type *VoidTy = getVoidTy();
  llvm::Constant *DsfMapVariable;
  RuntimeFunction DsfIncrementFunction;
  Phase CurrentPhase = Late;

  // The key of the site that is being visited, named after it.
  llvm::ConstantInt *createProgramLocation() {
    std::string What = !Site ? "function" : SiteIsBlock ? "block" : describe(*Site);
    return createProgramLocation(Site, What);
  }

  // The same for any instruction or block; `What` says what is measured. With a count the key stands
  // for as many keys, with a list it and those behind it have the names of the list.
  llvm::ConstantInt *createProgramLocation(const llvm::Instruction *Where, const std::string &What, unsigned Count = 1) {
    llvm::ConstantInt *Key = newKey(Count);
    Keys.add(Key->getZExtValue(), Count, placeOf(Where), What);
    return Key;
  }
  llvm::ConstantInt *createProgramLocation(const llvm::BasicBlock &Where, const std::string &What, unsigned Count = 1) {
    return createProgramLocation(&Where.front(), What, Count);
  }
  llvm::ConstantInt *createProgramLocation(const llvm::Instruction *Where, llvm::ArrayRef<std::string> What) {
    llvm::ConstantInt *Key = newKey(What.size());
    Place P = placeOf(Where);
    for (size_t I = 0; I < What.size(); I++) Keys.add(Key->getZExtValue() + I, 1, P, What[I]);
    return Key;
  }

  // "i32 ==", "switch i8", "malloc", "store".
  static std::string describe(const llvm::Instruction &I) {
    if (auto *Call = llvm::dyn_cast<llvm::CallBase>(&I)) {
      llvm::StringRef Name = calleeName(*Call);
      return Name.empty() ? "call by pointer" : llvm::demangle(Name.str());
    }
    std::string Text;
    llvm::raw_string_ostream Out(Text);
    if (auto *Switch = llvm::dyn_cast<llvm::SwitchInst>(&I))
      Out << "switch " << *Switch->getCondition()->getType();
    else if (auto *Cmp = llvm::dyn_cast<llvm::CmpInst>(&I))
      Out << *Cmp->getOperand(0)->getType() << ' ' << symbolOf(Cmp->getPredicate());
    else
      Out << I.getOpcodeName();
    return Out.str();
  }

  // A number for the pass's own use; like a key it is the same in a rebuild.
  uint32_t generateRandom31() {
    uint64_t Number = newKey(1)->getZExtValue();
    return (uint32_t)(Number * 0x9e3779b97f4a7c15u >> 33);
  }

private:
  // 31 bits over domain, absolute path and function, plus the number of the site in the function. A
  // rebuild keeps it, files of the same name in two folders differ, and what runs together lies
  // together. A site with several keys takes `Count` of them.
  llvm::ConstantInt *newKey(unsigned Count) {
    std::string Place = std::string(MapName) + '\0' + Path + '\0' + CurrentFunction->getName().str() + '\0' +
                        std::to_string(CurrentPhase);
    uint64_t Hash = 0xcbf29ce484222325u; // FNV-1a, then folded: its high bits mix best
    for (unsigned char Byte : Place) Hash = (Hash ^ Byte) * 0x100000001b3u;
    Hash ^= Hash >> 32;
    Hash *= 0x9e3779b97f4a7c15u;
    uint32_t Key = ((uint32_t)(Hash >> 33) + Ordinal) & 0x7fffffff;
    Ordinal += Count;
    return getConst(Key);
  }

protected:
  // At the place of the builder: m[Key] = m[Key] + V, or the larger, or the smaller of the two.
  void update(llvm::IRBuilder<> &B, Operation Op, llvm::Value *Key, llvm::Value *V) {
    if (Inlined.isPossible(Op)) return Inlined.add(*B.GetInsertPoint(), Op, Key, V);
    const char *Name = Op == Operation::Add   ? "__fuzzfactory_dsfp_add_saturating"
                       : Op == Operation::Max ? "__fuzzfactory_dsfp_max"
                                              : "__fuzzfactory_dsfp_min";
    B.CreateCall(resolveFunction(Name, getVoidTy(), {DsfMapVariable->getType(), getIntTy(32), getIntTy(32)}),
                 {DsfMapVariable, Key, V});
  }

  llvm::IRBuilder<> insert_before(llvm::Instruction &I) {
    Sites++;
    return llvm::IRBuilder<>(&I);
  }

  // Behind an invoke means: where it goes when nothing is thrown.
  llvm::IRBuilder<> insert_after(llvm::Instruction &I) {
    Sites++;
    llvm::Instruction *Next;
    if (auto *Invoke = llvm::dyn_cast<llvm::InvokeInst>(&I)) {
      llvm::BasicBlock *Target = Invoke->getNormalDest();
      if (!Target->getSinglePredecessor()) Target = llvm::SplitEdge(Invoke->getParent(), Target);
      Next = &*Target->getFirstInsertionPt();
    } else {
      Next = I.getNextNode();
    }
    return llvm::IRBuilder<>(Next);
  }

  llvm::IRBuilder<> insert_before(llvm::BasicBlock &B) {
    Sites++;
    return llvm::IRBuilder<>(headOf(B));
  }

  // At the end of what the block does, before it goes elsewhere.
  llvm::IRBuilder<> insert_after(llvm::BasicBlock &B) { return insert_before(*B.getTerminator()); }

  llvm::ConstantInt *getConst(uint32_t N) { return llvm::ConstantInt::get(llvm::Type::getInt32Ty(C), N); }
  llvm::IntegerType *getIntTy(unsigned Bits) { return llvm::IntegerType::get(C, Bits); }
  llvm::PointerType *getIntPtrTy(unsigned Bits) { return llvm::PointerType::getUnqual(getIntTy(Bits)); }
  llvm::Type *getVoidTy() { return llvm::Type::getVoidTy(C); }
#if LLVM_VERSION_MAJOR >= 17
  llvm::PointerType *getPtrTy() { return llvm::PointerType::getUnqual(C); }
#else
  llvm::PointerType *getPtrTy() { return llvm::Type::getInt8PtrTy(C); }
#endif

  RuntimeFunction resolveFunction(llvm::StringRef Name, llvm::FunctionType *Type) {
    return M.getOrInsertFunction(Name, Type);
  }
  RuntimeFunction resolveFunction(llvm::StringRef Name, llvm::Type *Result, llvm::ArrayRef<llvm::Type *> Args) {
    return resolveFunction(Name, llvm::FunctionType::get(Result, Args, false));
  }

  // The domain's index, as it is when the program runs.
  llvm::Value *loadDsfMapVariable(llvm::IRBuilder<> &B) { return B.CreateLoad(getIntTy(32), DsfMapVariable); }

  // Null if the program does not know the function.
  llvm::Function *getFunctionIfExists(llvm::StringRef Name) { return M.getFunction(Name); }

  // Any pointer as the type that getPtrTy() names (clang 14 still has typed ones).
  llvm::Value *asPtr(llvm::IRBuilder<> &B, llvm::Value *V) {
    return B.CreatePointerBitCastOrAddrSpaceCast(V, getPtrTy());
  }

  // False for what other domains have added, and for what only coverage has put on an edge between
  // two blocks of the program.
  static bool isProgramBlock(const llvm::BasicBlock &B) {
    if (!B.getTerminator() || B.getTerminator()->hasMetadata("ffuzz")) return false;
    const llvm::BasicBlock *From = B.getSinglePredecessor(), *To = B.getSingleSuccessor();
    if (!From || !To || From->getSingleSuccessor() || To->getSinglePredecessor()) return true;
    return llvm::any_of(B, [](const llvm::Instruction &I) {
      return !I.isTerminator() && !llvm::isa<llvm::DbgInfoIntrinsic>(I) && !isOurs(I) && !isCountOfCoverage(I);
    });
  }

  static bool isProgramCode(const llvm::Function &F) {
    if (F.isDeclaration() || F.hasAvailableExternallyLinkage()) return false;
    if (F.hasFnAttribute(llvm::Attribute::Naked) || F.hasFnAttribute(llvm::Attribute::NoSanitizeCoverage))
      return false;
    for (const char *Ours : {"__ffuzz_", "__fuzzfactory_", "__afl_", "__sanitizer_", "sancov.", "asan.", "msan.", "tsan."})
      if (startsWith(F.getName(), Ours)) return false;
    return true;
  }

  // The sum between coverage's load and its store, which are marked.
  static bool isCountOfCoverage(const llvm::Instruction &I) {
    auto *Load = I.getNumOperands() == 2 ? llvm::dyn_cast<llvm::LoadInst>(I.getOperand(0)) : nullptr;
    return Load && isOurs(*Load);
  }

  static bool isOurs(const llvm::Instruction &I) { return I.hasMetadata("nosanitize"); }

  // Name of the function if it is called directly, else "".
  static llvm::StringRef calleeName(const llvm::CallBase &Call) {
    auto *Callee = llvm::dyn_cast<llvm::Function>(Call.getCalledOperand()->stripPointerCasts());
    return Callee ? Callee->getName() : llvm::StringRef();
  }

  // Checks that AddressSanitizer and its like have put in are not the program's own.
  static bool isSanitizerValue(const llvm::Value *V) {
    if (auto *Cast = llvm::dyn_cast<llvm::CastInst>(V); Cast && !llvm::isa<llvm::IntToPtrInst>(Cast))
      V = Cast->getOperand(0);
    auto *Load = llvm::dyn_cast<llvm::LoadInst>(V);
    return Load && (Load->getMetadata("nosanitize") ||
                    llvm::isa<llvm::IntToPtrInst>(Load->getPointerOperand()));
  }

  const llvm::Instruction *Site = nullptr; // null: the function itself
  bool SiteIsBlock = false;
  unsigned Sites = 0;

  void enter(llvm::Function &F) {
    CurrentFunction = &F;
    Ordinal = 0;
    Site = nullptr;
    SiteIsBlock = false;
    Program.clear();
    for (const llvm::BasicBlock &Block : F)
      if (isProgramBlock(Block)) Program.insert(&Block);
  }

  void leave(llvm::Function &F) {
    Inlined.emit(F);
    if (CurrentPhase == Late) markOurs(F);
  }

  // Without debug information there is still the function.
  Place placeOf(const llvm::Instruction *Where) const {
    const llvm::DILocation *Location = locationOf(Where);
    const llvm::DISubprogram *Scope =
        Location ? Location->getScope()->getSubprogram() : CurrentFunction->getSubprogram();
    Place P;
    P.File = Path;
    P.Function = llvm::demangle(CurrentFunction->getName().str());
    if (!Scope) return P;
    const llvm::DIFile *File = Location ? Location->getFile() : Scope->getFile();
    if (File) P.File = absolutePath(File->getFilename(), File->getDirectory());
    llvm::StringRef Mangled = Scope->getLinkageName();
    P.Function = Mangled.empty() ? Scope->getName().str() : llvm::demangle(Mangled.str());
    P.Line = Location ? Location->getLine() : Scope->getLine();
    P.Column = Location ? Location->getColumn() : 0;
    return P;
  }

  void writeKeys() { Keys.writeTo(M); }
  void writeKeysTo(const char *Section) { Keys.writeTo(M, Section); }

private:
  std::string Path;
  std::string MapName;
  Updates Inlined;
  KeyTable Keys;
  llvm::Function *CurrentFunction = nullptr;
  llvm::SmallPtrSet<const llvm::BasicBlock *, 32> Program; // its blocks before anything was added
  unsigned Ordinal = 0;

  // Code that the compiler or coverage made up has no line: then the next one in the block counts.
  static const llvm::DILocation *locationOf(const llvm::Instruction *I) {
    for (; I; I = I->getNextNode()) {
      if (isOurs(*I) || isCountOfCoverage(*I)) continue;
      if (const llvm::DILocation *Location = I->getDebugLoc(); Location && Location->getLine()) return Location;
    }
    return nullptr;
  }

  static llvm::StringRef symbolOf(llvm::CmpInst::Predicate P) {
    switch (P) {
    case llvm::CmpInst::ICMP_EQ: case llvm::CmpInst::FCMP_OEQ: case llvm::CmpInst::FCMP_UEQ: return "==";
    case llvm::CmpInst::ICMP_NE: case llvm::CmpInst::FCMP_ONE: case llvm::CmpInst::FCMP_UNE: return "!=";
    case llvm::CmpInst::ICMP_SLT: case llvm::CmpInst::ICMP_ULT: return "<";
    case llvm::CmpInst::ICMP_SLE: case llvm::CmpInst::ICMP_ULE: return "<=";
    case llvm::CmpInst::ICMP_SGT: case llvm::CmpInst::ICMP_UGT: return ">";
    case llvm::CmpInst::ICMP_SGE: case llvm::CmpInst::ICMP_UGE: return ">=";
    case llvm::CmpInst::FCMP_OLT: case llvm::CmpInst::FCMP_ULT: return "<";
    case llvm::CmpInst::FCMP_OLE: case llvm::CmpInst::FCMP_ULE: return "<=";
    case llvm::CmpInst::FCMP_OGT: case llvm::CmpInst::FCMP_UGT: return ">";
    case llvm::CmpInst::FCMP_OGE: case llvm::CmpInst::FCMP_UGE: return ">=";
    default: return llvm::CmpInst::getPredicateName(P);
    }
  }

  // For the domains that follow: the rest of a block that was split is no block of its own.
  void markOurs(llvm::Function &F) {
    for (llvm::BasicBlock &Block : F)
      if (!Program.count(&Block)) Block.getTerminator()->setMetadata("ffuzz", llvm::MDNode::get(C, {}));
  }
};

template <class Self> class DomainFeedback : public DomainBase, public llvm::InstVisitor<Self> {
  using Visitor = llvm::InstVisitor<Self>;

public:
  static constexpr unsigned Phases = Late;

  using DomainBase::DomainBase;

  // Visits all functions of the program; returns the number of sites.
  unsigned run(Phase Now) {
    CurrentPhase = Now;
    for (llvm::Function &F : M) {
      if (!isProgramCode(F)) continue;
      enter(F);
      Visitor::visit(F);
      leave(F);
    }
    writeKeys();
    return Sites;
  }

  // The visitor passes here on its way, so a key that is asked for without more knows its site.
  using Visitor::visit;
  void visit(llvm::BasicBlock &B) {
    Site = &B.front();
    SiteIsBlock = true;
    Visitor::visit(B);
  }
  void visit(llvm::Instruction &I) {
    Site = &I;
    SiteIsBlock = false;
    Visitor::visit(I);
  }
};

// Configure scripts compare what a compiler prints, so their test files stay without comment.
inline bool isQuiet(const llvm::Module &M) {
  return std::getenv("AFL_QUIET") || startsWith(llvm::sys::path::filename(M.getSourceFileName()), "conftest.");
}

// Many a file has nothing to instrument; a program that has nothing is a mistake. The compiler wrapper
// adds these lines up when it links.
inline void noteSites(llvm::Module &M, llvm::StringRef Class, unsigned Sites) {
  std::string Name;
  for (unsigned char Byte : Class) Name += llvm::isAlnum(Byte) || Byte == '_' ? (char)Byte : '?';
  M.appendModuleInlineAsm(".pushsection .ffuzz_sites,\"\",%progbits\n.ascii \"" + Name + "\\t" +
                          std::to_string(Sites) + "\\n\"\n.popsection\n");
}

inline void tellSites(llvm::Module &M, const char *Class, unsigned Sites) {
  noteSites(M, Class, Sites);
  if (Sites && !isQuiet(M)) llvm::errs() << "[+] [" << Class << "] Instrumented " << Sites << " locations.\n";
}

// One run of one phase. The last phase of a compilation tells the total.
template <class Domain> struct DomainPass : llvm::PassInfoMixin<DomainPass<Domain>> {
  Phase Now;
  const char *Class;
  std::shared_ptr<unsigned> Total;

  DomainPass(Phase Now, const char *Class, std::shared_ptr<unsigned> Total)
      : Now(Now), Class(Class), Total(std::move(Total)) {}
  static bool isRequired() { return true; }

  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &) {
    unsigned Sites = Domain(M).run(Now);
    *Total += Sites;
    if (Now == Late || !(Domain::Phases & Late)) tellSites(M, Class, *Total);
    return Sites ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
  }
};

// AddressSanitizer and its like mark the functions that they are to look at.
inline bool isSanitized(const llvm::Module &M) {
  return llvm::any_of(M, [](const llvm::Function &F) {
    return F.hasFnAttribute(llvm::Attribute::SanitizeAddress) || F.hasFnAttribute(llvm::Attribute::SanitizeHWAddress) ||
           F.hasFnAttribute(llvm::Attribute::SanitizeMemory) || F.hasFnAttribute(llvm::Attribute::SanitizeThread);
  });
}

template <class Pass> struct OnlyIf : llvm::PassInfoMixin<OnlyIf<Pass>> {
  Pass Inner;
  bool Sanitized;

  OnlyIf(Pass Inner, bool Sanitized) : Inner(Inner), Sanitized(Sanitized) {}
  static bool isRequired() { return true; }

  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &MAM) {
    return isSanitized(M) == Sanitized ? Inner.run(M, MAM) : llvm::PreservedAnalyses::all();
  }
};

// Runs a pass last of all, behind clang's coverage: what an update adds is no edge of the program.
// Clang registers coverage after the plugins, so we join the queue when the pipeline is being made.
// Sanitizers come in one step with coverage, and their checks are no comparisons of the program: with
// them the pass runs before both, and coverage does count what updates add.
template <class Pass> void addLast(llvm::PassBuilder &PB, Pass Last) {
  PB.registerOptimizerLastEPCallback(
      [Last](llvm::ModulePassManager &MPM, auto...) { MPM.addPass(OnlyIf<Pass>(Last, true)); });
  PB.registerPipelineStartEPCallback([&PB, Last](llvm::ModulePassManager &, auto) {
    PB.registerOptimizerLastEPCallback(
        [Last](llvm::ModulePassManager &MPM, auto...) { MPM.addPass(OnlyIf<Pass>(Last, false)); });
  });
}

template <class Domain> void addDomain(llvm::PassBuilder &PB, const char *Class) {
  auto Total = std::make_shared<unsigned>(0);
  if (Domain::Phases & Early)
    PB.registerPipelineStartEPCallback([Class, Total](llvm::ModulePassManager &MPM, auto) {
      MPM.addPass(DomainPass<Domain>(Early, Class, Total));
    });
  if (Domain::Phases & Late)
    addLast(PB, DomainPass<Domain>(Late, Class, Total));
}

} // namespace fuzzfactory

// A pass fits one version of LLVM: the compiler wrapper looks for this text before it loads one.
#define FFUZZ_TEXT_OF(Number) #Number
#define FFUZZ_BUILT_FOR(Number) "ffuzz pass for LLVM " FFUZZ_TEXT_OF(Number)
extern "C" __attribute__((used, visibility("default"))) inline const char ffuzz_pass_built_for[] =
    FFUZZ_BUILT_FOR(LLVM_VERSION_MAJOR);

#define FFUZZ_PLUGIN(Name, Add)                                                                         \
  extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo llvmGetPassPluginInfo() { \
    return {LLVM_PLUGIN_API_VERSION, Name, "1", Add};                                                   \
  }

#define FUZZFACTORY_REGISTER_DOMAIN(Class) \
  FFUZZ_PLUGIN(#Class, [](llvm::PassBuilder &PB) { fuzzfactory::addDomain<Class>(PB, #Class); })

#endif
