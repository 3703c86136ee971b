// The comparison log: what the program compares, for runs that ask for it (runtime/log.h).
//
// Each function gets a second version that logs; the first asks a flag at its entry and goes to the second
// if it is set. So a run without the log pays for at most one test per call, and nothing inside the first version
// changes. The second version is made before the optimiser, where comparisons are as in the source: later a
// memcmp of four bytes is a load, a switch a table, and a checksum and the field it is compared with one value.
//
// A variadic function enters its second version by a tail call that passes on all arguments. The runtime reads the
// pointers of calls that only look like a comparison (Lookalikes) by a system call, because they need not be valid.
#ifndef FFUZZ_LOG_HPP
#define FFUZZ_LOG_HPP

#include "ffuzz-counters.hpp"
#include "ffuzz-rest.hpp"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace {

// Instructions of a second version, before it logs.
constexpr unsigned LargestOptimized = 2000;
constexpr const char LogSuffix[] = ".ffuzz_log";
constexpr const char LogPairs[] = "ffuzz.logs", RestPairs[] = "ffuzz.rests";
constexpr const char LogFlag[] = "_ffuzz_log_on", LogInit[] = "_ffuzz_log_init";

// `enum ffuzz_comparison_kind` and its flags, see runtime/channel.h.
enum LogKind : unsigned { LogEqual, LogUnsigned, LogSigned, LogFloat, LogSwitch, LogMemory, LogText, LogSearch };
enum LogFlags : unsigned { LogConstA = 1, LogConstB = 2, LogIgnoresCase = 4, LogMaybe = 8 };

// Functions of libraries that compare, by the form of their parameters.
enum class Comparer {
  None, Memory, Text, TextOfLength, Search, SearchOfLengths, SearchInLength,
  // Of std::string: a text, another one; a part of it with a text, which may have a length.
  StringText, Strings, StringPart, StringPartOfLength,
  // It is called as one that compares texts, or memory of a length, and it may be something else.
  MaybeText, MaybeMemory,
};

struct ComparerOf {
  Comparer Form = Comparer::None;
  bool IgnoresCase = false;
  // std::string is that of libc++, not of libstdc++.
  bool IsOfLibcxx = false;

  ComparerOf() = default;
  explicit ComparerOf(llvm::StringRef Name) {
    Form = llvm::StringSwitch<Comparer>(Name)
               .Cases("memcmp", "bcmp", "CRYPTO_memcmp", "OPENSSL_memcmp", "memcmp_const_time", Comparer::Memory)
               .Cases("memcmpct", "timingsafe_memcmp", "timingsafe_bcmp", "consttime_memequal", Comparer::Memory)
               .Cases("strcmp", "xmlStrcmp", "xmlStrEqual", "g_strcmp0", "g_str_equal", Comparer::Text)
               .Cases("curl_strequal", "strcsequal", "strcasecmp", "stricmp", "_stricmp", Comparer::Text)
               .Cases("ap_cstr_casecmp", "OPENSSL_strcasecmp", "xmlStrcasecmp", "g_strcasecmp", Comparer::Text)
               .Cases("g_ascii_strcasecmp", "Curl_strcasecompare", "Curl_safe_strcasecompare", Comparer::Text)
               .Cases("cmsstrcasecmp", "sqlite3_stricmp", "sqlite3StrICmp", "strcasecmp_l", Comparer::Text)
               .Cases("apr_cstr_casecmp", "g_str_has_prefix", "g_str_has_suffix", Comparer::Text)
               .Cases("strncmp", "strncasecmp", "strnicmp", "_strnicmp", Comparer::TextOfLength)
               .Cases("ap_cstr_casecmpn", "OPENSSL_strncasecmp", "xmlStrncmp", Comparer::TextOfLength)
               .Cases("xmlStrncasecmp", "g_ascii_strncasecmp", "g_strncasecmp", Comparer::TextOfLength)
               .Cases("Curl_strncasecompare", "curl_strnequal", "sqlite3_strnicmp", Comparer::TextOfLength)
               .Cases("apr_cstr_casecmpn", "strnstr", Comparer::TextOfLength)
               .Cases("strstr", "strcasestr", "xmlStrstr", "xmlStrcasestr", "ap_strcasestr", Comparer::Search)
               .Case("memmem", Comparer::SearchOfLengths)
               .Case("g_strstr_len", Comparer::SearchInLength)
               .Default(Comparer::None);
    llvm::StringRef Method = Name;
    IsOfLibcxx = Method.consume_front("_ZNKSt3__112basic_stringIcNS_11char_traitsIcEENS_9allocatorIcEEE7compareE");
    if (IsOfLibcxx || Method.consume_front("_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7compareE"))
      Form = llvm::StringSwitch<Comparer>(Method)
                 .Case("PKc", Comparer::StringText)
                 .Case("RKS4_", Comparer::Strings)
                 .Case("mmPKc", Comparer::StringPart)
                 .Case("mmPKcm", Comparer::StringPartOfLength)
                 .Default(Comparer::None);
    IgnoresCase = hasPart(Name, {"case", "icmp", "curl_str", "strcsequal"});
  }

  static bool hasPart(llvm::StringRef Name, std::initializer_list<const char *> Parts) {
    std::string Lower = Name.lower();
    return llvm::any_of(Parts, [&](const char *Part) { return llvm::StringRef(Lower).contains(Part); });
  }

  unsigned parameters() const {
    switch (Form) {
    case Comparer::None: return 0;
    case Comparer::Text: case Comparer::Search: case Comparer::StringText: case Comparer::Strings:
    case Comparer::MaybeText: return 2;
    case Comparer::Memory: case Comparer::TextOfLength: case Comparer::SearchInLength:
    case Comparer::MaybeMemory: return 3;
    case Comparer::SearchOfLengths: case Comparer::StringPart: return 4;
    case Comparer::StringPartOfLength: return 5;
    }
    return 0;
  }

  // A function of the program's own may have such a name, and other parameters.
  bool fits(const llvm::CallBase &Call) const {
    unsigned Count = parameters();
    if (!Count || Call.arg_size() < Count) return false;
    for (unsigned I = 0; I < Count; I++) {
      llvm::Type *T = Call.getArgOperand(I)->getType();
      if (isLength(I) ? !T->isIntegerTy() : !T->isPointerTy()) return false;
    }
    return true;
  }

private:
  bool isLength(unsigned Parameter) const {
    switch (Form) {
    case Comparer::SearchOfLengths: case Comparer::SearchInLength: return Parameter % 2 == 1;
    case Comparer::StringPart: case Comparer::StringPartOfLength:
      return Parameter == 1 || Parameter == 2 || Parameter == 4;
    default: return Parameter == 2;
    }
  }
};

// Calls that look as if they compared: two pointers, perhaps with a length, and a result that is compared with zero.
// Of a function that is known, its code has to do nothing else; another has to have the name of one that does.
class Lookalikes {
public:
  ComparerOf of(const llvm::CallBase &Call, bool IgnoresCase) {
    ComparerOf Maybe;
    bool HasLength = Call.arg_size() == 3;
    Maybe.Form = HasLength ? Comparer::MaybeMemory : Comparer::MaybeText;
    Maybe.IgnoresCase = IgnoresCase;
    if (Call.arg_size() != Maybe.parameters() || !Maybe.fits(Call) || !isVerdict(Call)) return ComparerOf();
    if (Call.isInlineAsm() || Call.getFunctionType()->isVarArg()) return ComparerOf();
    // Objects of C++ are no texts.
    if (Call.getParamDereferenceableBytes(0) > 1 || Call.getParamDereferenceableBytes(1) > 1) return ComparerOf();
    auto *F = llvm::dyn_cast<llvm::Function>(Call.getCalledOperand());
    // By pointer, a length may be that of anything.
    bool Compares = !F ? !HasLength : F->isDeclaration() ? hasNameOfComparer(*F) : comparesOnly(*F);
    return Compares ? Maybe : ComparerOf();
  }

private:
  llvm::DenseMap<const llvm::Function *, bool> Known;

  static bool hasNameOfComparer(const llvm::Function &F) {
    if (F.isIntrinsic()) return false;
    llvm::StringRef Name = F.getName();
    if (Name.size() > 2 && Name.take_back(2).lower() == "eq") return true;
    return ComparerOf::hasPart(Name, {"cmp", "compar", "equal", "streq", "memeq", "match", "same", "prefix", "starts"});
  }

  // The result of a call decides by being zero.
  static bool isVerdict(const llvm::CallBase &Call) {
    auto *T = llvm::dyn_cast<llvm::IntegerType>(Call.getType());
    return T && T->getBitWidth() <= 64 && decides(Call, 2);
  }

  static bool decides(const llvm::Value &V, unsigned Variables) {
    return llvm::any_of(V.users(), [&](const llvm::User *U) {
      if (auto *Cmp = llvm::dyn_cast<llvm::ICmpInst>(U)) {
        auto *Zero = llvm::dyn_cast<llvm::ConstantInt>(Cmp->getOperand(1));
        return Zero && Zero->isZero();
      }
      if (auto *Branch = llvm::dyn_cast<llvm::BranchInst>(U)) return Branch->isConditional();
      if (auto *Choice = llvm::dyn_cast<llvm::SelectInst>(U)) return Choice->getCondition() == &V;
      if (llvm::isa<llvm::CastInst>(U)) return decides(*U, Variables);
      auto *Store = llvm::dyn_cast<llvm::StoreInst>(U);
      auto *Variable = Store ? llvm::dyn_cast<llvm::AllocaInst>(Store->getPointerOperand()) : nullptr;
      if (!Variable || !Variables || Store->getValueOperand() != &V) return false;
      return llvm::any_of(Variable->users(), [&](const llvm::User *Use) {
        return llvm::isa<llvm::LoadInst>(Use) && decides(*Use, Variables - 1);
      });
    });
  }

  bool comparesOnly(const llvm::Function &F) {
    auto Place = Known.try_emplace(&F, false);
    if (Place.second) Place.first->second = hasLoopOrComparer(F) && changesNothing(F, 2);
    return Place.first->second;
  }

  // But variables of its own, nor does what it calls.
  static bool changesNothing(const llvm::Function &F, unsigned Calls) {
    return llvm::all_of(llvm::instructions(F), [&](const llvm::Instruction &I) { return isHarmless(I, Calls); });
  }

  // Something that has several bytes: the compiler writes a loop so that it leads to a block before.
  static bool hasLoopOrComparer(const llvm::Function &F) {
    llvm::SmallPtrSet<const llvm::BasicBlock *, 16> Before;
    for (const llvm::BasicBlock &Block : F) {
      Before.insert(&Block);
      if (llvm::any_of(llvm::successors(&Block), [&](const llvm::BasicBlock *Next) { return Before.count(Next); }))
        return true;
    }
    return llvm::any_of(llvm::instructions(F), [](const llvm::Instruction &I) {
      auto *Call = llvm::dyn_cast<llvm::CallBase>(&I);
      auto *Callee = Call ? Call->getCalledFunction() : nullptr;
      return Callee && ComparerOf(Callee->getName()).fits(*Call);
    });
  }

  static bool isHarmless(const llvm::Instruction &I, unsigned Calls) {
    if (auto *Store = llvm::dyn_cast<llvm::StoreInst>(&I))
      return llvm::isa<llvm::AllocaInst>(Store->getPointerOperand()->stripInBoundsOffsets());
    auto *Call = llvm::dyn_cast<llvm::CallBase>(&I);
    if (!Call) return !I.mayWriteToMemory();
    if (Call->onlyReadsMemory() || I.isLifetimeStartOrEnd() || llvm::isa<llvm::DbgInfoIntrinsic>(I)) return true;
    auto *Callee = Call->getCalledFunction();
    if (!Callee) return false;
    if (!Callee->isDeclaration()) return Calls && changesNothing(*Callee, Calls - 1);
    llvm::StringRef Name = Callee->getName();
    return ComparerOf(Name).fits(*Call) || Name == "tolower" || Name == "toupper" || Name == "strlen" || Name == "strnlen";
  }
};

// Before the optimiser: second versions.
class Logging : public fuzzfactory::DomainBase {
public:
  explicit Logging(llvm::Module &M) : DomainBase(M, "__ffuzz_log") { CurrentPhase = fuzzfactory::Early; }

  bool run() {
    std::vector<llvm::Function *> Functions;
    bool Logs = false;
    for (llvm::Function &F : M) {
      if (!isProgramCode(F) || !canHaveSecondVersion(F)) continue;
      Functions.push_back(&F);
      Logs |= llvm::any_of(llvm::instructions(F), [&](const llvm::Instruction &I) { return isLogged(I); });
    }
    if (!Logs) return false;
    // Also of those that compare nothing: a first version that is inlined into a second one would lead on to
    // first versions.
    for (llvm::Function *F : Functions) addSecondVersion(*F);
    for (llvm::Function *F : Functions) {
      enter(*F);
      logIn(*Versions[F]);
    }
    for (llvm::Function *Separate : addRests(Functions)) {
      enter(*Separate);
      logIn(*Separate);
    }
    llvm::appendToCompilerUsed(M, Added);
    writeKeysTo(".ffuzz_log"); // not that of keys: programs have many comparisons, and few tools ask for them
    return true;
  }

private:
  llvm::DenseMap<const llvm::Function *, llvm::Function *> Versions;
  Lookalikes Alike;
  std::vector<llvm::GlobalValue *> Added;

  static bool canHaveSecondVersion(const llvm::Function &F) {
#if LLVM_VERSION_MAJOR >= 15
    if (F.hasFnAttribute(llvm::Attribute::PresplitCoroutine)) return false;
#endif
    if (F.hasFnAttribute("coroutine.presplit")) return false;
    for (const llvm::Argument &A : F.args())
      if (A.hasInAllocaAttr() || A.hasAttribute(llvm::Attribute::Preallocated) || A.hasSwiftErrorAttr()) return false;
    return llvm::all_of(F, [&](const llvm::BasicBlock &Block) {
      if (!Block.hasAddressTaken()) return true;
      auto *Address = llvm::BlockAddress::lookup(&Block);
      return !Address || isOnlyUsedIn(*Address, F);
    });
  }

  // Or in tables that only it uses.
  static bool isOnlyUsedIn(const llvm::Constant &Value, const llvm::Function &F) {
    return llvm::all_of(Value.users(), [&](const llvm::User *U) {
      if (auto *I = llvm::dyn_cast<llvm::Instruction>(U)) return I->getFunction() == &F;
      auto *Table = llvm::dyn_cast<llvm::GlobalVariable>(U);
      if (Table && !(Table->hasLocalLinkage() && isOnlyRead(*Table))) return false;
      return llvm::isa<llvm::Constant>(U) && isOnlyUsedIn(*llvm::cast<llvm::Constant>(U), F);
    });
  }

  static bool isOnlyRead(const llvm::Value &Table) {
    return llvm::all_of(Table.users(), [](const llvm::User *U) {
      bool IsPart = llvm::isa<llvm::GEPOperator>(U) || llvm::isa<llvm::BitCastOperator>(U);
      return llvm::isa<llvm::LoadInst>(U) || (IsPart && isOnlyRead(*U));
    });
  }

  // Tables of places in a function, for computed goto.
  static void addTables(const llvm::Constant &Value, llvm::SetVector<llvm::GlobalVariable *> &Tables) {
    for (const llvm::User *U : Value.users()) {
      if (auto *Table = llvm::dyn_cast<llvm::GlobalVariable>(U))
        Tables.insert(const_cast<llvm::GlobalVariable *>(Table));
      else if (auto *Part = llvm::dyn_cast<llvm::Constant>(U))
        addTables(*Part, Tables);
    }
  }

  // What llvm::CloneFunction does, but for debug information: that goes through all types of the module for each
  // function. The copy keeps the places of its instructions until they are written down, see logIn.
  llvm::Function *copy(llvm::Function &F, llvm::ValueToValueMapTy &Map) {
    auto *Log = llvm::Function::Create(F.getFunctionType(), F.getLinkage(), F.getAddressSpace(), F.getName(), &M);
    Log->copyAttributesFrom(&F);
    Log->copyMetadata(&F, 0);
    Log->setSubprogram(nullptr);
    for (auto [From, To] : llvm::zip(F.args(), Log->args())) {
      To.setName(From.getName());
      Map[&From] = &To;
    }
    for (llvm::BasicBlock &Block : F) {
      llvm::BasicBlock *Own = llvm::CloneBasicBlock(&Block, Map, "", Log);
      Map[&Block] = Own;
      if (Block.hasAddressTaken()) Map[llvm::BlockAddress::get(&F, &Block)] = llvm::BlockAddress::get(Log, Own);
    }
    for (llvm::Instruction &I : llvm::instructions(*Log)) {
#if LLVM_VERSION_MAJOR >= 19
      I.dropDbgRecords();
#endif
      llvm::RemapInstruction(&I, Map, llvm::RF_NoModuleLevelChanges);
    }
    return Log;
  }

  // A second version has tables of its own places.
  llvm::Function *clone(llvm::Function &F) {
    llvm::SetVector<llvm::GlobalVariable *> Tables;
    for (llvm::BasicBlock &Block : F)
      if (auto *Address = Block.hasAddressTaken() ? llvm::BlockAddress::lookup(&Block) : nullptr)
        addTables(*Address, Tables);
    llvm::ValueToValueMapTy Map;
    for (llvm::GlobalVariable *Table : Tables) {
      auto *Own = new llvm::GlobalVariable(M, Table->getValueType(), true, Table->getLinkage(), nullptr,
                                           Table->getName() + LogSuffix);
      Own->copyAttributesFrom(Table);
      Map[Table] = Own;
    }
    llvm::Function *Log = copy(F, Map);
    for (llvm::GlobalVariable *Table : Tables)
      llvm::cast<llvm::GlobalVariable>(Map[Table])->setInitializer(llvm::MapValue(Table->getInitializer(), Map));
    return Log;
  }

  ComparerOf comparerOf(const llvm::CallBase &Call) {
    ComparerOf Known(calleeName(Call));
    return Known.fits(Call) ? Known : Alike.of(Call, Known.IgnoresCase);
  }

  bool isLogged(const llvm::Instruction &I) {
    if (auto *Cmp = llvm::dyn_cast<llvm::CmpInst>(&I)) return isLoggedComparison(*Cmp);
    if (auto *Switch = llvm::dyn_cast<llvm::SwitchInst>(&I))
      return Switch->getNumCases() && Switch->getCondition()->getType()->getIntegerBitWidth() <= 64;
    auto *Call = llvm::dyn_cast<llvm::CallBase>(&I);
    return Call && comparerOf(*Call).Form != Comparer::None;
  }

  static bool isLoggedComparison(const llvm::CmpInst &Cmp) {
    const llvm::Value *A = Cmp.getOperand(0), *B = Cmp.getOperand(1);
    const llvm::Type *T = A->getType();
    if (llvm::isa<llvm::Constant>(A) && llvm::isa<llvm::Constant>(B)) return false;
    if (isOurs(Cmp) || isResultOfComparer(A) || isResultOfComparer(B) || isOfArgumentList(A)) return false;
    if (T->isIntegerTy()) {
      unsigned Bits = T->getIntegerBitWidth();
      return Bits > 1 && (Bits <= 128 || llvm::ICmpInst::isEquality(Cmp.getPredicate()));
    }
    return T->isFloatingPointTy();
  }

  // Of va_arg: whether the next argument is in a register.
  static bool isOfArgumentList(const llvm::Value *V) {
    auto *Load = llvm::dyn_cast<llvm::LoadInst>(V);
    auto *Part = Load ? llvm::dyn_cast<llvm::GEPOperator>(Load->getPointerOperand()) : nullptr;
    auto *List = Part ? llvm::dyn_cast<llvm::StructType>(Part->getSourceElementType()) : nullptr;
    return List && List->hasName() && List->getName().find("__va_list") != llvm::StringRef::npos;
  }

  // Its operands are logged, its result (-1, 0, 1) tells nothing more.
  static bool isResultOfComparer(const llvm::Value *V) {
    auto *Call = llvm::dyn_cast<llvm::CallBase>(V);
    return Call && ComparerOf(calleeName(*Call)).fits(*Call);
  }

  void addSecondVersion(llvm::Function &F) {
    llvm::Function *Log = clone(F);
    Log->setName(F.getName() + LogSuffix);
    Log->setComdat(nullptr);
    // One for all objects that have this inline function.
    bool IsShared = F.hasLinkOnceODRLinkage() || F.hasWeakODRLinkage();
    Log->setLinkage(IsShared ? llvm::GlobalValue::LinkOnceODRLinkage : llvm::GlobalValue::InternalLinkage);
    Log->setVisibility(IsShared ? llvm::GlobalValue::HiddenVisibility : llvm::GlobalValue::DefaultVisibility);
    if (IsShared) Log->setComdat(M.getOrInsertComdat(Log->getName()));
    Log->setDSOLocal(true);
    Versions[&F] = Log;
    keep(*Log, LogPairs, F);
  }

  // Second versions of what follows the start of the fork server: their places are marked by calls.
  std::vector<llvm::Function *> addRests(llvm::ArrayRef<llvm::Function *> Functions) {
    std::vector<llvm::Function *> Separate;
    for (llvm::Function *F : Functions) {
      Rest Following(*F);
      if (!Following.exists()) continue;
      auto [Log, Mark] = Following.separate();
      keep(*Log, RestPairs, *Mark);
      Separate.push_back(Log);
    }
    return Separate;
  }

  // Until it is known who enters it.
  void keep(llvm::Function &Log, const char *Pairs, llvm::Function &From) {
    // What -fsanitize=function puts in front of a function that is called by pointer.
    Log.setPrologueData(nullptr);
    Log.setMetadata("func_sanitize", nullptr);
    // No edges: what a run that logs shows is the log.
    Log.addFnAttr(llvm::Attribute::NoSanitizeCoverage);
    Log.removeFnAttr(llvm::Attribute::InlineHint);
    // Nothing to vectorize: that alone would take a third of the time.
    Log.addFnAttr(llvm::Attribute::NoImplicitFloat);
    limitOptimization(Log);
    auto *Pair = llvm::MDNode::get(C, {llvm::ValueAsMetadata::get(&From), llvm::ValueAsMetadata::get(&Log)});
    M.getOrInsertNamedMetadata(Pairs)->addOperand(Pair);
    Added.push_back(&Log);
  }

  // Few runs log, and what the optimiser takes for a large function grows faster than its size.
  static void limitOptimization(llvm::Function &Log) {
    bool IsInlined = Log.hasFnAttribute(llvm::Attribute::AlwaysInline);
    if (!IsInlined) Log.addFnAttr(llvm::Attribute::NoInline);
    if (Log.hasFnAttribute(llvm::Attribute::OptimizeNone)) return;
    if (IsInlined || Log.getInstructionCount() < LargestOptimized) {
      Log.addFnAttr(llvm::Attribute::MinSize);
      return;
    }
    Log.removeFnAttr(llvm::Attribute::MinSize);
    Log.removeFnAttr(llvm::Attribute::OptimizeForSize);
    Log.addFnAttr(llvm::Attribute::OptimizeNone);
  }

  void logIn(llvm::Function &Log) {
    std::vector<llvm::Instruction *> Sites;
    std::vector<llvm::CallBase *> Calls;
    for (llvm::Instruction &I : llvm::instructions(Log)) {
      if (isLogged(I)) Sites.push_back(&I);
      if (auto *Call = llvm::dyn_cast<llvm::CallBase>(&I)) Calls.push_back(Call);
    }
    for (llvm::Instruction *I : Sites) logAt(*I);
    for (llvm::CallBase *Call : Calls) {
      auto *Callee = llvm::dyn_cast<llvm::Function>(Call->getCalledOperand());
      auto Version = Versions.find(Callee);
      // What is called by pointer, and by functions without a second version, enters its own; not if it was inlined.
      // One that is always inlined need not be in any library.
      bool MayInline = Callee ? !Callee->isDeclaration() && !Callee->hasFnAttribute(llvm::Attribute::AlwaysInline)
                              : !Call->isInlineAsm();
      if (MayInline && Version == Versions.end()) Call->addFnAttr(llvm::Attribute::NoInline);
      // One that another object may replace is asked for by its name.
      if (Version != Versions.end() && !Callee->isInterposable()) Call->setCalledOperand(Version->second);
    }
    // Without edges its lines would never be reached, for whoever counts lines by edges.
    llvm::stripDebugInfo(Log);
  }

  void logAt(llvm::Instruction &I) {
    auto *Key = createProgramLocation(&I, describe(I));
    llvm::IRBuilder<> B(&I);
    if (auto *Cmp = llvm::dyn_cast<llvm::ICmpInst>(&I)) return logIntegers(B, *Cmp, Key);
    if (auto *Cmp = llvm::dyn_cast<llvm::FCmpInst>(&I)) return logFloats(B, *Cmp, Key);
    if (auto *Switch = llvm::dyn_cast<llvm::SwitchInst>(&I)) return logSwitch(B, *Switch, Key);
    logCall(B, llvm::cast<llvm::CallBase>(I), Key);
  }

  // `how` of runtime/log.h.
  llvm::Value *how(unsigned Kind, unsigned Bytes, unsigned Flags) { return getConst(Bytes | Kind << 8 | Flags << 16); }

  static unsigned constants(const llvm::Value *A, const llvm::Value *B) {
    return (llvm::isa<llvm::Constant>(A) ? LogConstA : 0) | (llvm::isa<llvm::Constant>(B) ? LogConstB : 0);
  }

  void call(llvm::IRBuilder<> &B, const char *Name, llvm::ArrayRef<llvm::Value *> Args) {
    llvm::SmallVector<llvm::Type *, 6> Types;
    for (llvm::Value *Arg : Args) Types.push_back(Arg->getType());
    auto *Call = B.CreateCall(resolveFunction(Name, getVoidTy(), Types), Args);
    Call->setMetadata("nosanitize", llvm::MDNode::get(C, {}));
  }

  void logIntegers(llvm::IRBuilder<> &B, llvm::ICmpInst &Cmp, llvm::Value *Key) {
    llvm::Value *Left = Cmp.getOperand(0), *Right = Cmp.getOperand(1);
    unsigned Bytes = (Left->getType()->getIntegerBitWidth() + 7) / 8;
    unsigned Kind = Cmp.isEquality() ? LogEqual : Cmp.isSigned() ? LogSigned : LogUnsigned;
    llvm::Value *How = how(Kind, Bytes, constants(Left, Right));
    if (Bytes <= 8)
      return call(B, "__ffuzz_log_values", {Key, How, B.CreateZExt(Left, Int64Ty), B.CreateZExt(Right, Int64Ty)});
    if (Bytes > 16) return logWidest(B, Cmp, Key);
    llvm::Type *Wide = getIntTy(128);
    llvm::SmallVector<llvm::Value *, 6> Args = {Key, How};
    for (llvm::Value *V : {Left, Right}) {
      V = B.CreateZExt(V, Wide);
      Args.push_back(B.CreateTrunc(V, Int64Ty));
      Args.push_back(B.CreateTrunc(B.CreateLShr(V, 64), Int64Ty));
    }
    call(B, "__ffuzz_log_wide", Args);
  }

  // _BitInt of more than 128 bits, as it stands in memory.
  void logWidest(llvm::IRBuilder<> &B, llvm::ICmpInst &Cmp, llvm::Value *Key) {
    llvm::SmallVector<llvm::Value *, 5> Args = {Key, how(LogMemory, 0, 0)};
    llvm::Type *T = Cmp.getOperand(0)->getType();
    unsigned Bytes = (T->getIntegerBitWidth() + 7) / 8;
    llvm::BasicBlock &Entry = Cmp.getFunction()->getEntryBlock();
    for (llvm::Value *V : Cmp.operands()) {
      auto *Place = new llvm::AllocaInst(T, 0, "", &*Entry.getFirstInsertionPt());
      B.CreateStore(V, Place);
      Args.push_back(asPtr(B, Place));
    }
    Args.push_back(llvm::ConstantInt::get(Int64Ty, Bytes));
    call(B, "__ffuzz_log_memory", Args);
  }

  // Those of other formats as a double.
  void logFloats(llvm::IRBuilder<> &B, llvm::FCmpInst &Cmp, llvm::Value *Key) {
    unsigned Bytes = Cmp.getOperand(0)->getType()->isFloatTy() ? 4 : 8;
    auto Bits = [&](llvm::Value *V) -> llvm::Value * {
      if (Bytes == 8 && !V->getType()->isDoubleTy()) V = B.CreateFPCast(V, B.getDoubleTy());
      return B.CreateZExt(B.CreateBitCast(V, getIntTy(Bytes * 8)), Int64Ty);
    };
    llvm::Value *Left = Cmp.getOperand(0), *Right = Cmp.getOperand(1);
    llvm::Value *How = how(LogFloat, Bytes, constants(Left, Right));
    call(B, "__ffuzz_log_values", {Key, How, Bits(Left), Bits(Right)});
  }

  void logSwitch(llvm::IRBuilder<> &B, llvm::SwitchInst &Switch, llvm::Value *Key) {
    llvm::SmallVector<uint64_t, 16> Cases;
    for (auto &Case : Switch.cases()) Cases.push_back(Case.getCaseValue()->getZExtValue());
    auto *Data = llvm::ConstantDataArray::get(C, Cases);
    auto *Table = new llvm::GlobalVariable(M, Data->getType(), true, llvm::GlobalValue::PrivateLinkage, Data,
                                           "ffuzz.cases");
    llvm::Value *V = Switch.getCondition();
    unsigned Bytes = (V->getType()->getIntegerBitWidth() + 7) / 8;
    call(B, "__ffuzz_log_switch", {Key, how(LogSwitch, Bytes, 0), B.CreateZExt(V, Int64Ty), asPtr(B, Table),
                                   getConst(Cases.size())});
  }

  void logCall(llvm::IRBuilder<> &B, llvm::CallBase &Call, llvm::Value *Key) {
    ComparerOf Known = comparerOf(Call);
    auto Pointer = [&](unsigned I) { return asPtr(B, Call.getArgOperand(I)); };
    auto Length = [&](unsigned I) { return B.CreateSExtOrTrunc(Call.getArgOperand(I), Int64Ty); };
    llvm::Value *All = llvm::ConstantInt::get(Int64Ty, ~0ull);
    unsigned Flags = Known.IgnoresCase ? LogIgnoresCase : 0;
    auto PartOfString = [&](llvm::Value *From, llvm::Value *Count, llvm::Value *Text, llvm::Value *OfLength) {
      call(B, "__ffuzz_log_string_part", {Key, how(LogText, 0, 0), Pointer(0), getConst(Known.IsOfLibcxx), From, Count,
                                          Text, OfLength});
    };
    switch (Known.Form) {
    case Comparer::None: return;
    case Comparer::Memory:
      return call(B, "__ffuzz_log_memory", {Key, how(LogMemory, 0, Flags), Pointer(0), Pointer(1), Length(2)});
    case Comparer::Text:
      return call(B, "__ffuzz_log_text", {Key, how(LogText, 0, Flags), Pointer(0), Pointer(1), All});
    case Comparer::StringText:
      return PartOfString(llvm::ConstantInt::get(Int64Ty, 0), All, Pointer(1), All);
    case Comparer::StringPart:
      return PartOfString(Length(1), Length(2), Pointer(3), All);
    case Comparer::StringPartOfLength:
      return PartOfString(Length(1), Length(2), Pointer(3), Length(4));
    case Comparer::Strings:
      return call(B, "__ffuzz_log_string", {Key, how(LogText, 0, 0), Pointer(0), Pointer(1), getConst(1)});
    case Comparer::MaybeText:
      return call(B, "__ffuzz_log_maybe", {Key, how(LogText, 0, Flags | LogMaybe), Pointer(0), Pointer(1), All});
    case Comparer::MaybeMemory:
      return call(B, "__ffuzz_log_maybe",
                  {Key, how(LogMemory, 0, Flags | LogMaybe), Pointer(0), Pointer(1), Length(2)});
    case Comparer::TextOfLength:
      return call(B, "__ffuzz_log_text", {Key, how(LogText, 0, Flags), Pointer(0), Pointer(1), Length(2)});
    case Comparer::Search:
      return call(B, "__ffuzz_log_search", {Key, how(LogSearch, 0, Flags), Pointer(0), All, Pointer(1), All});
    case Comparer::SearchInLength:
      return call(B, "__ffuzz_log_search", {Key, how(LogSearch, 0, Flags), Pointer(0), Length(1), Pointer(2), All});
    case Comparer::SearchOfLengths:
      return call(B, "__ffuzz_log_search",
                  {Key, how(LogMemory, 0, Flags), Pointer(0), Length(1), Pointer(2), Length(3)});
    }
  }
};

struct SecondVersions : llvm::PassInfoMixin<SecondVersions> {
  static bool isRequired() { return true; }

  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &) {
    return Logging(M).run() ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
  }
};

// Behind coverage: the way into the second versions.
struct EnterVersions : llvm::PassInfoMixin<EnterVersions> {
  static bool isRequired() { return true; }

  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &MAM) {
    llvm::NamedMDNode *Pairs = M.getNamedMetadata(LogPairs);
    if (!Pairs) return llvm::PreservedAnalyses::all();
    llvm::SmallPtrSet<const llvm::GlobalValue *, 32> Logs;
    llvm::MapVector<llvm::Function *, llvm::Function *> Ways;
    for (llvm::MDNode *Pair : Pairs->operands()) {
      // Null if the optimiser needs it no more.
      auto *F = llvm::mdconst::dyn_extract_or_null<llvm::Function>(Pair->getOperand(0));
      auto *Log = llvm::mdconst::dyn_extract_or_null<llvm::Function>(Pair->getOperand(1));
      if (Log) Logs.insert(Log);
      // With other parameters it is called by functions of this object only, whose second versions call its own.
      if (!F || !Log || F->isDeclaration() || F->hasAvailableExternallyLinkage() || Log->isDeclaration()) continue;
      if (F->getFunctionType() == Log->getFunctionType()) Ways[F] = Log;
    }
    Pairs->eraseFromParent();
    Ways.remove_if([](const auto &Way) { return isSilent(*Way.second); });
    llvm::SmallPtrSet<const llvm::Function *, 32> Asked = askedBefore(M, Ways);
    bool Enters = false;
    for (auto [F, Log] : Ways) {
      if (Asked.count(F)) continue;
      enter(*F, *Log);
      Enters = true;
    }
    Enters |= enterRests(M, Logs);
    release(M, Logs);
    if (Enters) announce(M);
    llvm::GlobalDCEPass().run(M, MAM);
    return llvm::PreservedAnalyses::none();
  }

private:
  using WaysOf = llvm::MapVector<llvm::Function *, llvm::Function *>;

  // It logs nothing by itself, and calls no other second version: in the first one, what is called may be inlined.
  // Functions of other objects ask for themselves.
  static bool isSilent(const llvm::Function &Log) {
    return llvm::none_of(llvm::instructions(Log), [](const llvm::Instruction &I) {
      auto *Call = llvm::dyn_cast<llvm::CallBase>(&I);
      auto *Callee = Call ? Call->getCalledFunction() : nullptr;
      return Callee && (!Callee->isDeclaration() || Callee->getName().find("__ffuzz_log") == 0);
    });
  }

  // Functions that only first versions call which have asked, or were called by some that have. The flag is set before
  // the program begins, or where it starts the fork server by itself: `main` may call the function that does.
  static llvm::SmallPtrSet<const llvm::Function *, 32> askedBefore(const llvm::Module &M, const WaysOf &Ways) {
    llvm::SmallPtrSet<const llvm::Function *, 32> Asked;
    if (M.getNamedMetadata(RestPairs)) return Asked;
    for (auto &[F, Log] : Ways)
      if (F->hasLocalLinkage()) Asked.insert(F);
    auto Asks = [&](const llvm::Use &U) {
      if (isTableOfCoverage(*U.getUser())) return true;
      auto *Call = llvm::dyn_cast<llvm::CallBase>(U.getUser());
      if (!Call || !Call->isCallee(&U)) return false;
      auto *Caller = const_cast<llvm::Function *>(Call->getFunction());
      return Caller->getName() != "main" && Ways.count(Caller) != 0;
    };
    // Each that asks has asked before, so those that are left need nothing else.
    for (auto &[F, Log] : Ways)
      if (!llvm::all_of(F->uses(), Asks)) Asked.erase(F);
    return Asked;
  }

  // The marks of `Rest` become ways into its second version.
  static bool enterRests(llvm::Module &M, llvm::SmallPtrSetImpl<const llvm::GlobalValue *> &Logs) {
    llvm::NamedMDNode *Pairs = M.getNamedMetadata(RestPairs);
    if (!Pairs) return false;
    bool Enters = false;
    for (llvm::MDNode *Pair : Pairs->operands()) {
      auto *Mark = llvm::mdconst::dyn_extract_or_null<llvm::Function>(Pair->getOperand(0));
      auto *Log = llvm::mdconst::dyn_extract_or_null<llvm::Function>(Pair->getOperand(1));
      if (Log) Logs.insert(Log);
      // Null if nothing calls the function that it is in.
      if (!Mark) continue;
      for (llvm::User *U : llvm::make_early_inc_range(Mark->users())) {
        auto *Call = llvm::cast<llvm::CallInst>(U);
        // The optimiser can drop a result that nobody uses.
        bool Fits = Log && Call->getFunction()->getReturnType() == Log->getReturnType();
        if (Fits) enterAt(*Call, *Log);
        Enters |= Fits;
        Call->eraseFromParent();
      }
      Mark->eraseFromParent();
    }
    Pairs->eraseFromParent();
    return Enters;
  }

  static void enterAt(llvm::CallInst &Mark, llvm::Function &Log) {
    llvm::IRBuilder<> B(&Mark);
    llvm::Instruction *Way = llvm::SplitBlockAndInsertIfThen(isOn(B), &Mark, true);
    B.SetInsertPoint(Way);
    llvm::CallInst *Result = B.CreateCall(&Log, llvm::SmallVector<llvm::Value *, 8>(Mark.args()));
    if (Log.getReturnType()->isVoidTy()) B.CreateRetVoid();
    else B.CreateRet(Result);
    Way->eraseFromParent();
  }

  static llvm::Value *isOn(llvm::IRBuilder<> &B) {
    llvm::GlobalVariable *Flag = flag(*B.GetInsertBlock()->getModule());
    return fuzzfactory::ours(B.CreateICmpNE(fuzzfactory::ours(B.CreateLoad(B.getInt8Ty(), Flag)), B.getInt8(0)));
  }

  // What nothing calls is dropped.
  static void release(llvm::Module &M, const llvm::SmallPtrSetImpl<const llvm::GlobalValue *> &Logs) {
    llvm::SmallVector<llvm::GlobalValue *, 32> Kept;
    if (llvm::GlobalVariable *Used = llvm::collectUsedGlobalVariables(M, Kept, true)) Used->eraseFromParent();
    llvm::erase_if(Kept, [&](const llvm::GlobalValue *Value) { return Logs.count(Value) != 0; });
    if (!Kept.empty()) llvm::appendToCompilerUsed(M, Kept);
  }

  // Of each linked object: hidden, so that it is found without a table.
  static llvm::GlobalVariable *flag(llvm::Module &M) {
    if (auto *Known = M.getNamedGlobal(LogFlag)) return Known;
    llvm::Type *Byte = llvm::Type::getInt8Ty(M.getContext());
    auto *Flag = new llvm::GlobalVariable(M, Byte, false, llvm::GlobalValue::LinkOnceODRLinkage,
                                          llvm::ConstantInt::get(Byte, 0), LogFlag);
    Flag->setVisibility(llvm::GlobalValue::HiddenVisibility);
    Flag->setDSOLocal(true);
    Flag->setComdat(M.getOrInsertComdat(LogFlag));
    return Flag;
  }

  static void enter(llvm::Function &F, llvm::Function &Log) {
    llvm::LLVMContext &C = F.getContext();
    bool Returns = llvm::any_of(F, [](const llvm::BasicBlock &B) { return llvm::isa<llvm::ReturnInst>(B.getTerminator()); });
    llvm::BasicBlock *Entry = &F.getEntryBlock();
    // What is allocated stays in the entry.
    llvm::Instruction *First = &*Entry->getFirstInsertionPt();
    for (llvm::Instruction &I : llvm::make_early_inc_range(*Entry))
      if (auto *Slot = llvm::dyn_cast<llvm::AllocaInst>(&I); Slot && Slot->isStaticAlloca() && Slot != First)
        Slot->moveBefore(First);
    while (auto *Slot = llvm::dyn_cast<llvm::AllocaInst>(First)) {
      if (!Slot->isStaticAlloca()) break;
      First = First->getNextNode();
    }
    llvm::BasicBlock *Body = Entry->splitBasicBlock(First, "body");
    Entry->getTerminator()->eraseFromParent();
    llvm::BasicBlock *Other = llvm::BasicBlock::Create(C, "log", &F);
    llvm::IRBuilder<> B(Entry);
    B.CreateCondBr(isOn(B), Other, Body, llvm::MDBuilder(C).createBranchWeights(1, 100000));
    llvm::IRBuilder<> There(Other);
    if (llvm::DISubprogram *Scope = F.getSubprogram())
      There.SetCurrentDebugLocation(llvm::DILocation::get(C, Scope->getScopeLine(), 0, Scope));
    llvm::SmallVector<llvm::Value *, 8> Args;
    llvm::SmallVector<llvm::AttributeSet, 8> Of;
    llvm::AttributeList Attributes = Log.getAttributes();
    for (llvm::Argument &A : F.args()) {
      Args.push_back(&A);
      Of.push_back(Attributes.getParamAttrs(A.getArgNo()));
    }
    auto *Result = There.CreateCall(&Log, Args);
    Result->setCallingConv(Log.getCallingConv());
    Result->setAttributes(llvm::AttributeList::get(C, llvm::AttributeSet(), Attributes.getRetAttrs(), Of));
    // What else it was called with goes on as it is.
    if (F.isVarArg()) Result->setTailCallKind(llvm::CallInst::TCK_MustTail);
    if (!Returns && !F.isVarArg()) There.CreateUnreachable();
    else if (F.getReturnType()->isVoidTy()) There.CreateRetVoid();
    else There.CreateRet(Result);
  }

  // Tells the runtime where the flag is, once for each linked object.
  static void announce(llvm::Module &M) {
    llvm::LLVMContext &C = M.getContext();
    llvm::Type *Nothing = llvm::Type::getVoidTy(C);
    auto *Init = llvm::Function::Create(llvm::FunctionType::get(Nothing, false),
                                        llvm::GlobalValue::LinkOnceODRLinkage, LogInit, M);
    Init->setVisibility(llvm::GlobalValue::HiddenVisibility);
    Init->setDSOLocal(true);
    Init->setComdat(M.getOrInsertComdat(LogInit));
    Init->addFnAttr(llvm::Attribute::NoSanitizeCoverage);
    llvm::IRBuilder<> B(llvm::BasicBlock::Create(C, "", Init));
    llvm::GlobalVariable *Flag = flag(M);
    B.CreateCall(M.getOrInsertFunction("__ffuzz_log_flag", Nothing, Flag->getType()), {Flag});
    B.CreateRetVoid();
    llvm::appendToGlobalCtors(M, Init, 2, Init);
    llvm::appendToUsed(M, {Init});
  }
};

} // namespace

// Before what else changes code.
static void addLog(llvm::PassBuilder &PB) {
  PB.registerPipelineStartEPCallback([](llvm::ModulePassManager &MPM, auto) { MPM.addPass(SecondVersions()); });
}

// Behind everything.
static void addLogEntries(llvm::PassBuilder &PB) {
  PB.registerPipelineStartEPCallback([&PB](llvm::ModulePassManager &, auto) {
    PB.registerOptimizerLastEPCallback([](llvm::ModulePassManager &MPM, auto...) { MPM.addPass(EnterVersions()); });
  });
}

#endif
