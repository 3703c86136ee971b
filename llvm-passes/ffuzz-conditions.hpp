// Branches of `a && b` and `a || b` that the optimiser folded: each condition gets a branch of its own again.
//
// From -O1 on, `if (b[0] == 'G' && b[1] == 'O')` is one branch on one value, and coverage counts its two sides.
// An input that has the G alone then takes the same path as one that has nothing. The conditions have no
// effects, because they were computed together; so testing the second one after the first changes nothing but
// the counters.
//
// It runs after the optimiser and before coverage. Second versions that log, and values that are no branch (select),
// stay as they are.
#ifndef FFUZZ_CONDITIONS_HPP
#define FFUZZ_CONDITIONS_HPP

#include "ffuzz-domain.hpp"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

namespace {

// The second test of a folded branch, in a block of its own; null if the branch has one condition. The branch
// keeps the first one.
llvm::BranchInst *splitCondition(llvm::BranchInst &Branch) {
  using namespace llvm::PatternMatch;
  llvm::Value *Folded = Branch.getCondition(), *First, *Second;
  bool IsAnd = match(Folded, m_LogicalAnd(m_Value(First), m_Value(Second)));
  if (!IsAnd && !match(Folded, m_LogicalOr(m_Value(First), m_Value(Second)))) return nullptr;

  // The side that the first condition decides alone is reached from both blocks, the other one from the second.
  llvm::BasicBlock *Block = Branch.getParent();
  unsigned Shared = IsAnd ? 1 : 0;
  llvm::BasicBlock *Early = Branch.getSuccessor(Shared), *Late = Branch.getSuccessor(1 - Shared);
  if (Early == Late) return nullptr;
  auto *Rest = llvm::BasicBlock::Create(Block->getContext(), "", Block->getParent(), Block->getNextNode());
  auto *Again = llvm::IRBuilder<>(Rest).Insert(llvm::cast<llvm::BranchInst>(Branch.clone()));
  Again->setCondition(Second);
  if (auto *Place = llvm::dyn_cast<llvm::Instruction>(Second); Place && Place->getDebugLoc())
    Again->setDebugLoc(Place->getDebugLoc());
  for (llvm::PHINode &Phi : Early->phis()) Phi.addIncoming(Phi.getIncomingValueForBlock(Block), Rest);
  Late->replacePhiUsesWith(Block, Rest);

  Branch.setCondition(First);
  Branch.setSuccessor(1 - Shared, Rest);
  Branch.setMetadata(llvm::LLVMContext::MD_loop, nullptr);
  if (auto *Unused = llvm::dyn_cast<llvm::Instruction>(Folded); Unused && Unused->use_empty()) Unused->eraseFromParent();
  return Again;
}

struct SplitConditionsPass : llvm::PassInfoMixin<SplitConditionsPass> {
  static bool isRequired() { return true; }

  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &) {
    bool Changed = false;
    for (llvm::Function &F : M) {
      if (F.isDeclaration() || F.hasFnAttribute(llvm::Attribute::NoSanitizeCoverage)) continue;
      // The optimiser may have put the second condition first, which may be read from memory that only the other one
      // proves to be initialised.
      if (F.hasFnAttribute(llvm::Attribute::SanitizeMemory)) continue;
      llvm::SmallVector<llvm::BranchInst *, 32> Left;
      for (llvm::BasicBlock &Block : F)
        if (auto *Branch = llvm::dyn_cast<llvm::BranchInst>(Block.getTerminator()); Branch && Branch->isConditional())
          Left.push_back(Branch);
      while (!Left.empty()) {
        llvm::BranchInst *Branch = Left.pop_back_val();
        while (llvm::BranchInst *Rest = splitCondition(*Branch)) {
          Left.push_back(Rest);
          Changed = true;
        }
      }
    }
    return Changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
  }
};

} // namespace

// After the optimiser and before coverage, which clang adds after the plugins.
static void addConditions(llvm::PassBuilder &PB) {
  PB.registerOptimizerLastEPCallback([](llvm::ModulePassManager &MPM, auto...) { MPM.addPass(SplitConditionsPass()); });
}

#endif
