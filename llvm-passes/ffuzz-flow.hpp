// The control flow of each function as the coverage counts it: which block leads to which, what a block calls, and
// where its condition stands. The fuzzer finds there what is shut: edges from a reached block to one that is not
// (src/engine/coverage/frontier.rs).
//
// Each function has one record in the section .ffuzz_flow, in the group of its counters, so that a linker keeps or
// drops both. Numbers of 4 bytes are little-endian, `n` is an unsigned LEB128, `z` a signed number as n (zigzag):
//   4  length of what follows
//   4  address of the function's first counter, less the address of this field
//   4  name, see `nameOf`
//   n  2 * blocks + 1 if something else than a call of this object uses the function's address
//   each block:
//   n  16 * successors + 1 if it has a counter, + 2 if that is not the next one, + 4 if it has a condition, + 8 if it
//      calls functions
//   n  number of its counter in the function, if that is not the next one
//   z  each successor, less the number of the block after this one
//   4  line of the condition, see `lineHash`
//   n  its column
//   n  how many functions it calls
//   4  name of each
#ifndef FFUZZ_FLOW_HPP
#define FFUZZ_FLOW_HPP

#include "ffuzz-counters.hpp"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/GlobalAlias.h"
#include "llvm/Support/LEB128.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace {

constexpr const char FlowSection[] = ".ffuzz_flow";

class FlowTable : public fuzzfactory::DomainBase {
public:
  explicit FlowTable(llvm::Module &M) : DomainBase(M, "__ffuzz_flow") {}

  bool run() {
    std::vector<llvm::GlobalValue *> Records;
    for (llvm::Function &F : M) {
      if (F.isDeclaration() || F.hasAvailableExternallyLinkage()) continue;
      if (llvm::GlobalVariable *Record = recordOf(F)) Records.push_back(Record);
    }
    llvm::appendToCompilerUsed(M, Records);
    return !Records.empty();
  }

private:
  // Of a block: its counter's number in the array of the function.
  struct Counter {
    llvm::GlobalVariable *Array;
    unsigned Number;
  };

  llvm::GlobalVariable *recordOf(llvm::Function &F) {
    llvm::DenseMap<const llvm::BasicBlock *, unsigned> Counters, Numbers;
    llvm::GlobalVariable *Array = nullptr;
    for (llvm::BasicBlock &Block : F) {
      Numbers[&Block] = Numbers.size();
      if (auto Found = counterOf(Block)) {
        Array = Found->Array;
        Counters[&Block] = Found->Number;
      }
    }
    if (!Array) return nullptr;
    enter(F);
    std::string Text;
    llvm::raw_string_ostream Out(Text);
    llvm::encodeULEB128(2 * Numbers.size() + isUsedElsewhere(F), Out);
    unsigned Next = 0;
    for (llvm::BasicBlock &Block : F) {
      auto Known = Counters.find(&Block);
      bool IsCounted = Known != Counters.end(), IsOther = IsCounted && Known->second != Next;
      llvm::SmallVector<const llvm::BasicBlock *, 4> After = successorsOf(Block);
      const llvm::Instruction *Condition = After.size() > 1 ? conditionOf(*Block.getTerminator()) : nullptr;
      llvm::SetVector<uint32_t> Called = calledIn(Block);
      unsigned Flags = IsCounted | IsOther << 1 | (Condition != nullptr) << 2 | !Called.empty() << 3;
      llvm::encodeULEB128(16 * After.size() + Flags, Out);
      if (IsOther) llvm::encodeULEB128(Known->second, Out);
      if (IsCounted) Next = Known->second + 1;
      for (const llvm::BasicBlock *To : After) writeSigned((int64_t)Numbers[To] - Numbers[&Block] - 1, Out);
      if (Condition) writePlace(*Condition, Out);
      if (!Called.empty()) llvm::encodeULEB128(Called.size(), Out);
      for (uint32_t Name : Called) write4(Name, Out);
    }
    return add(*Array, nameOf(F), Out.str());
  }

  static std::optional<Counter> counterOf(llvm::BasicBlock &Block) {
    const llvm::DataLayout &DL = Block.getModule()->getDataLayout();
    for (llvm::Instruction &I : Block) {
      auto *Store = llvm::dyn_cast<llvm::StoreInst>(&I);
      if (!Store || !isCoverage(Store->getPointerOperand())) continue;
      llvm::Value *Place = Store->getPointerOperand();
      llvm::APInt Offset(DL.getIndexTypeSizeInBits(Place->getType()), 0);
      auto *Array = llvm::dyn_cast<llvm::GlobalVariable>(Place->stripAndAccumulateConstantOffsets(DL, Offset, true));
      if (!Array) Array = arrayOfSum(Place, Offset);
      if (Array) return Counter{Array, (unsigned)Offset.getZExtValue()};
    }
    return std::nullopt;
  }

  // clang adds to the address as a number.
  static llvm::GlobalVariable *arrayOfSum(llvm::Value *Place, llvm::APInt &Offset) {
    auto *Cast = llvm::dyn_cast<llvm::Operator>(Place);
    if (!Cast || Cast->getOpcode() != llvm::Instruction::IntToPtr) return nullptr;
    auto *Sum = llvm::dyn_cast<llvm::Operator>(Cast->getOperand(0));
    if (!Sum || Sum->getOpcode() != llvm::Instruction::Add) return nullptr;
    auto *Number = llvm::dyn_cast<llvm::ConstantInt>(Sum->getOperand(1));
    auto *Array = llvm::dyn_cast<llvm::GlobalVariable>(llvm::getUnderlyingObject(Place));
    if (Number) Offset = Number->getValue();
    return Number ? Array : nullptr;
  }

  // Without where exceptions go: no condition decides that.
  static llvm::SmallVector<const llvm::BasicBlock *, 4> successorsOf(const llvm::BasicBlock &Block) {
    llvm::SmallVector<const llvm::BasicBlock *, 4> After;
    if (auto *Invoke = llvm::dyn_cast<llvm::InvokeInst>(Block.getTerminator())) {
      After.push_back(Invoke->getNormalDest());
      return After;
    }
    for (const llvm::BasicBlock *To : llvm::successors(&Block))
      if (!To->isEHPad() && !llvm::is_contained(After, To)) After.push_back(To);
    return After;
  }

  // What the log has an entry of, as far as that can be told after the optimiser.
  static const llvm::Instruction *conditionOf(const llvm::Instruction &End) {
    auto *Branch = llvm::dyn_cast<llvm::BranchInst>(&End);
    auto *Condition = Branch ? llvm::dyn_cast<llvm::Instruction>(Branch->getCondition()) : nullptr;
    if (!Condition) return &End;
    auto *Result = Condition->getNumOperands() ? llvm::dyn_cast<llvm::CallBase>(Condition->getOperand(0)) : nullptr;
    if (Result && Result->getType()->isIntegerTy() && Result->getDebugLoc()) return Result;
    return Condition->getDebugLoc() ? Condition : &End;
  }

  static llvm::SetVector<uint32_t> calledIn(llvm::BasicBlock &Block) {
    llvm::SetVector<uint32_t> Names;
    for (llvm::Instruction &I : Block) {
      auto *Call = llvm::dyn_cast<llvm::CallBase>(&I);
      llvm::Value *Callee = Call ? Call->getCalledOperand()->stripPointerCastsAndAliases() : nullptr;
      auto *F = llvm::dyn_cast_or_null<llvm::Function>(Callee);
      if (F && !F->isIntrinsic()) Names.insert(nameOf(*F));
    }
    return Names;
  }

  static bool isUsedElsewhere(const llvm::Function &F) {
    return llvm::any_of(F.uses(), [](const llvm::Use &U) {
      if (auto *Call = llvm::dyn_cast<llvm::CallBase>(U.getUser())) return !Call->isCallee(&U);
      return !isTableOfCoverage(*U.getUser());
    });
  }

  static uint32_t hash(llvm::StringRef Text) {
    uint32_t Hash = 0x811c9dc5; // FNV-1a
    for (unsigned char Byte : Text) Hash = (Hash ^ Byte) * 0x01000193;
    return Hash;
  }

  // Functions of one name that several objects have for themselves differ by the name of the source file.
  static uint32_t nameOf(const llvm::Function &F) {
    std::string Name = F.getName().str();
    if (F.hasLocalLinkage()) Name = F.getParent()->getSourceFileName() + '\0' + Name;
    return hash(Name);
  }

  void writePlace(const llvm::Instruction &I, llvm::raw_ostream &Out) const {
    fuzzfactory::Place P = placeOf(&I);
    write4(lineHash(P), Out);
    llvm::encodeULEB128(P.Column, Out);
  }

  // Of "file:line", where the file is spelled as in the table of the log.
  static uint32_t lineHash(const fuzzfactory::Place &P) { return hash(P.File + ':' + std::to_string(P.Line)); }

  static void write4(uint32_t Number, llvm::raw_ostream &Out) {
    for (int Shift : {0, 8, 16, 24}) Out << (char)(Number >> Shift & 0xff);
  }

  static void writeSigned(int64_t Number, llvm::raw_ostream &Out) {
    llvm::encodeULEB128((uint64_t)Number << 1 ^ (uint64_t)(Number >> 63), Out);
  }

  llvm::GlobalVariable *add(llvm::GlobalVariable &Array, uint32_t Name, llvm::StringRef Text) {
    llvm::Constant *Data = llvm::ConstantDataArray::getString(C, Text, false);
    auto *Layout = llvm::StructType::get(C, {Int32Ty, Int32Ty, Int32Ty, Data->getType()}, true);
    auto *Record = new llvm::GlobalVariable(M, Layout, true, llvm::GlobalValue::PrivateLinkage, nullptr, "ffuzz.flow");
    auto *Start = llvm::ConstantExpr::getPtrToInt(Record, Int64Ty);
    auto *Field = llvm::ConstantExpr::getAdd(Start, llvm::ConstantInt::get(Int64Ty, 4));
    auto *Way = llvm::ConstantExpr::getSub(llvm::ConstantExpr::getPtrToInt(&Array, Int64Ty), Field);
    Record->setInitializer(llvm::ConstantStruct::get(Layout, {getConst(8 + Text.size()),
                                                              llvm::ConstantExpr::getTrunc(Way, Int32Ty),
                                                              getConst(Name), Data}));
    Record->setSection(FlowSection);
    Record->setAlignment(llvm::Align(1));
    Record->setComdat(Array.getComdat());
    return Record;
  }
};

struct FlowPass : llvm::PassInfoMixin<FlowPass> {
  static bool isRequired() { return true; }

  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &) {
    return FlowTable(M).run() ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
  }
};

} // namespace

// Behind coverage, and before what else adds blocks there.
static void addFlow(llvm::PassBuilder &PB) {
  PB.registerPipelineStartEPCallback([&PB](llvm::ModulePassManager &, auto) {
    PB.registerOptimizerLastEPCallback([](llvm::ModulePassManager &MPM, auto...) { MPM.addPass(FlowPass()); });
  });
}

#endif
