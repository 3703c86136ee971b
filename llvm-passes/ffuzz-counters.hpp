// Counters of coverage that skip zero, if the user wants it (AFL_LLVM_NOT_ZERO). A counter has 8 bits: an
// edge that is hit 256 times looks as if it was never reached.
#ifndef FFUZZ_COUNTERS_HPP
#define FFUZZ_COUNTERS_HPP

#include "ffuzz-domain.hpp"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Intrinsics.h"

namespace {

// What clang puts its counters into.
bool isCoverage(const llvm::Value *Place) {
  auto *G = llvm::dyn_cast<llvm::GlobalVariable>(llvm::getUnderlyingObject(Place));
  return G && G->hasSection() && G->getSection().contains("sancov_cntrs");
}

// A part of the table that only says where counters belong to: who uses a function there, does not call it.
bool isTableOfCoverage(const llvm::User &U) {
  if (auto *Table = llvm::dyn_cast<llvm::GlobalVariable>(&U)) return Table->getSection().contains("sancov_pcs");
  return llvm::isa<llvm::Constant>(U) && !llvm::isa<llvm::GlobalValue>(U) && !U.use_empty() &&
         llvm::all_of(U.users(), [](const llvm::User *Outer) { return isTableOfCoverage(*Outer); });
}

// The sum that is stored, if the store is the last step of a counter's increment.
llvm::BinaryOperator *incrementOf(llvm::StoreInst &Store) {
  if (!Store.getValueOperand()->getType()->isIntegerTy(8) || !isCoverage(Store.getPointerOperand())) return nullptr;
  auto *Sum = llvm::dyn_cast<llvm::BinaryOperator>(Store.getValueOperand());
  auto *One = Sum && Sum->getOpcode() == llvm::Instruction::Add ? llvm::dyn_cast<llvm::ConstantInt>(Sum->getOperand(1)) : nullptr;
  auto *Old = Sum ? llvm::dyn_cast<llvm::LoadInst>(Sum->getOperand(0)) : nullptr;
  bool IsIncrement = One && One->isOne() && Old && Old->getPointerOperand() == Store.getPointerOperand();
  return IsIncrement ? Sum : nullptr;
}

// 255 + 1 is 1: the carry is added. Most processors have an instruction for that.
void skipZero(llvm::BinaryOperator &Sum, llvm::StoreInst &Store) {
  using fuzzfactory::ours;
  llvm::IRBuilder<> B(&Store);
  B.SetCurrentDebugLocation(Store.getDebugLoc());
  llvm::Value *Both =
      ours(B.CreateBinaryIntrinsic(llvm::Intrinsic::uadd_with_overflow, Sum.getOperand(0), Sum.getOperand(1)));
  llvm::Value *Carry = ours(B.CreateZExt(ours(B.CreateExtractValue(Both, 1)), Sum.getType()));
  Store.setOperand(0, ours(B.CreateAdd(ours(B.CreateExtractValue(Both, 0)), Carry)));
  if (Sum.use_empty()) Sum.eraseFromParent();
}

struct NeverZeroPass : llvm::PassInfoMixin<NeverZeroPass> {
  static bool isRequired() { return true; }

  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &) {
    bool Changed = false;
    for (llvm::Function &F : M)
      for (llvm::Instruction &I : llvm::make_early_inc_range(llvm::instructions(F))) {
        auto *Store = llvm::dyn_cast<llvm::StoreInst>(&I);
        llvm::BinaryOperator *Sum = Store ? incrementOf(*Store) : nullptr;
        if (!Sum) continue;
        skipZero(*Sum, *Store);
        Changed = true;
      }
    return Changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
  }
};

} // namespace

// Behind coverage, which clang adds after the plugins: see `addLast`.
static void addNeverZero(llvm::PassBuilder &PB) {
  PB.registerPipelineStartEPCallback([&PB](llvm::ModulePassManager &, auto) {
    PB.registerOptimizerLastEPCallback([](llvm::ModulePassManager &MPM, auto...) { MPM.addPass(NeverZeroPass()); });
  });
}

#endif
