// Updates of a domain's map without a call. The common path is a load, the operation and a store;
// only the first change of a key in a run calls the runtime. In a loop that calls nothing the
// operation works on a register, and the map is updated where the loop is left: a run that ends
// inside of such a loop (by a crash, or killed as a hang) loses what the loop has counted.
#ifndef FFUZZ_UPDATE_HPP
#define FFUZZ_UPDATE_HPP

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

#include <string>

namespace fuzzfactory {

// Operations inside a run. The sum stays at the largest value when it does not fit.
enum class Operation { Add, Max, Min };

// What is marked so is not the program's: no sanitizer and no domain looks at it.
inline llvm::Value *ours(llvm::Value *V) {
  if (auto *I = llvm::dyn_cast<llvm::Instruction>(V)) I->setMetadata("nosanitize", llvm::MDNode::get(I->getContext(), {}));
  return V;
}

// What a pass has to know of a domain to update it without a call.
struct Shape {
  uint32_t Size = 0;         // as registered; 0: not known, every update is a call
  uint32_t Initial = 0;      // 0 for Add and Max, 0xFFFFFFFF for Min
  bool MovesInRun = false;   // the runtime may discard the map in the middle of a run
};

// Where code at the head of a block goes. Not before the variables of a function: they have to stay
// in its first block.
inline llvm::Instruction *headOf(llvm::BasicBlock &Block) {
  llvm::BasicBlock::iterator At = Block.getFirstInsertionPt();
  while (llvm::isa<llvm::AllocaInst>(*At) || llvm::isa<llvm::DbgInfoIntrinsic>(*At)) ++At;
  return &*At;
}

// Coverage comes behind the domains then: it would take what an update adds for blocks of the
// program, so nothing may add a block.
inline bool isForLinkTimeOptimisation(const llvm::Module &M) {
  return M.getModuleFlag("ThinLTO") || M.getModuleFlag("EnableSplitLTOUnit");
}

class Updates {
public:
  Updates(llvm::Module &M, const std::string &DomainVariable, Shape S) : M(M), C(M.getContext()), S(S) {
    if (isForLinkTimeOptimisation(M)) this->S.Size = 0;
    if (!this->S.Size) return;
    I32 = llvm::Type::getInt32Ty(C);
    Pointer = llvm::PointerType::getUnqual(I32);
    Map = llvm::cast<llvm::GlobalVariable>(M.getOrInsertGlobal(DomainVariable + "_map", Pointer));
    // Code for an executable reaches it directly: the domain's object is linked into the same file.
    if (M.getPICLevel() == llvm::PICLevel::NotPIC || M.getPIELevel() != llvm::PIELevel::Default) Map->setDSOLocal(true);
  }

  bool isPossible(Operation Op) const {
    return S.Size && S.Initial == (Op == Operation::Min ? UINT32_MAX : 0);
  }

  // Remembers one; nothing is emitted before the whole function was seen.
  void add(llvm::Instruction &At, Operation Op, llvm::Value *Key, llvm::Value *V) {
    if (auto *Constant = llvm::dyn_cast<llvm::ConstantInt>(Key))
      Key = llvm::ConstantInt::get(I32, Constant->getZExtValue() % S.Size);
    Waiting.push_back({&At, Op, Key, V, nullptr});
  }

  void emit(llvm::Function &F) {
    if (Waiting.empty()) return;
    if (!S.MovesInRun) Start = loadMap(&*F.getEntryBlock().getFirstInsertionPt());
    promoteInLoops(F);
    for (Update &U : Waiting)
      if (!U.InRegister) emitUpdate(U.At, U.Op, U.Key, U.V);
    Waiting.clear();
  }

private:
  struct Update {
    llvm::Instruction *At;
    Operation Op;
    llvm::Value *Key, *V;
    llvm::Loop *InRegister;
  };

  // More than these would not stay in registers, and each costs an update where the loop is left.
  static constexpr unsigned MostInLoop = 12;

  llvm::Module &M;
  llvm::LLVMContext &C;
  Shape S;
  llvm::Type *I32 = nullptr;
  llvm::PointerType *Pointer = nullptr;
  llvm::GlobalVariable *Map = nullptr;
  llvm::Value *Start = nullptr; // address of the map in this function, or at this update
  llvm::SmallVector<Update, 32> Waiting;

  llvm::Value *loadMap(llvm::Instruction *At) {
    llvm::IRBuilder<> B(At);
    auto *Load = B.CreateLoad(Pointer, Map);
    ours(Load);
    if (!S.MovesInRun) Load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(C, {}));
    return Load;
  }

  llvm::Value *index(llvm::IRBuilder<> &B, llvm::Value *Key) {
    if (!llvm::isa<llvm::ConstantInt>(Key)) Key = B.CreateURem(Key, llvm::ConstantInt::get(I32, S.Size));
    return B.CreateZExt(Key, B.getInt64Ty());
  }

  // Made anew for each use: it is part of the instruction then, and takes no register.
  llvm::Value *place(llvm::IRBuilder<> &B, llvm::Value *Index) { return B.CreateInBoundsGEP(I32, Start, Index); }

  llvm::Instruction *unlikely(llvm::Value *Condition, llvm::Instruction *At) {
    return llvm::SplitBlockAndInsertIfThen(Condition, At, false, llvm::MDBuilder(C).createBranchWeights(1, 100000));
  }

  void emitUpdate(llvm::Instruction *At, Operation Op, llvm::Value *Key, llvm::Value *V) {
    if (S.MovesInRun) Start = loadMap(At);
    if (Op == Operation::Add)
      emitSum(At, Key, V);
    else
      emitExtreme(At, Op, Key, V);
  }

  // A sum that is not larger than what was added is either the first of its key, or did not fit.
  void emitSum(llvm::Instruction *At, llvm::Value *Key, llvm::Value *V) {
    llvm::IRBuilder<> B(At);
    Key = index(B, Key);
    llvm::Value *Old = ours(B.CreateLoad(I32, place(B, Key)));
    llvm::Value *Sum = B.CreateAdd(Old, V);
    llvm::BasicBlock *Head = B.GetInsertBlock();
    llvm::Instruction *Then = unlikely(ours(B.CreateICmpULE(Sum, V)), At);
    B.SetInsertPoint(Then);
    auto Slow = M.getOrInsertFunction("__ffuzz_first_or_full", I32, Pointer, I32, I32);
    llvm::Value *Exact = B.CreateCall(Slow, {place(B, Key), Old, V});
    B.SetInsertPoint(At);
    auto *New = B.CreatePHI(I32, 2);
    New->addIncoming(Sum, Head);
    New->addIncoming(Exact, Then->getParent());
    ours(B.CreateStore(New, place(B, Key)));
  }

  void emitExtreme(llvm::Instruction *At, Operation Op, llvm::Value *Key, llvm::Value *V) {
    llvm::IRBuilder<> B(At);
    Key = index(B, Key);
    llvm::Value *Old = ours(B.CreateLoad(I32, place(B, Key)));
    llvm::Value *Better = Op == Operation::Max ? B.CreateICmpUGT(V, Old) : B.CreateICmpULT(V, Old);
    llvm::Instruction *Then = unlikely(ours(Better), At);
    B.SetInsertPoint(Then);
    llvm::Value *First = ours(B.CreateICmpEQ(Old, llvm::ConstantInt::get(I32, S.Initial)));
    auto *Store = B.CreateStore(V, place(B, Key));
    ours(Store);
    B.SetInsertPoint(unlikely(First, Store));
    B.CreateCall(M.getOrInsertFunction("__ffuzz_touch", B.getVoidTy(), Pointer), {place(B, Key)});
  }

  // Nothing in it can leave it but its own branches.
  static bool callsNothing(const llvm::Loop &L) {
    for (const llvm::BasicBlock *Block : L.blocks())
      for (const llvm::Instruction &I : *Block) {
        auto *Call = llvm::dyn_cast<llvm::CallBase>(&I);
        if (!Call || llvm::isa<llvm::DbgInfoIntrinsic>(Call)) continue;
        if (!Call->doesNotThrow() || !Call->hasFnAttr(llvm::Attribute::WillReturn)) return false;
      }
    return true;
  }

  unsigned updatesIn(const llvm::Loop &L) const {
    return llvm::count_if(Waiting, [&](const Update &U) { return L.contains(U.At); });
  }

  // The outermost loop that an update may wait in, or null.
  llvm::Loop *waitingRoom(const Update &U, llvm::LoopInfo &LI) const {
    llvm::Loop *Best = nullptr;
    if (!llvm::isa<llvm::ConstantInt>(U.Key)) return Best;
    for (llvm::Loop *L = LI.getLoopFor(U.At->getParent()); L && callsNothing(*L); L = L->getParentLoop())
      if (updatesIn(*L) <= MostInLoop) Best = L;
    return Best;
  }

  void promoteInLoops(llvm::Function &F) {
    llvm::DominatorTree DT(F);
    llvm::LoopInfo LI(DT);
    if (LI.empty()) return;
    for (Update &U : Waiting) U.InRegister = waitingRoom(U, LI);
    for (Update &U : Waiting)
      if (U.InRegister) llvm::simplifyLoop(U.InRegister, &DT, &LI, nullptr, nullptr, nullptr, false);
    llvm::SmallVector<llvm::AllocaInst *, 32> Registers;
    for (Update &U : Waiting) {
      if (U.InRegister && !U.InRegister->isLoopSimplifyForm()) U.InRegister = nullptr;
      if (U.InRegister) prepare(F, U, Registers);
    }
    for (auto &Leave : Leaving) flush(Leave);
    Leaving.clear();
    DT.recalculate(F);
    llvm::PromoteMemToReg(Registers, DT);
  }

  struct Exit {
    llvm::Instruction *At;
    llvm::AllocaInst *Register;
    Operation Op;
    llvm::Value *Key;
  };
  llvm::SmallVector<Exit, 32> Leaving;

  // Sums have 64 bits, so that no loop is long enough to overflow them.
  void prepare(llvm::Function &F, Update &U, llvm::SmallVectorImpl<llvm::AllocaInst *> &Registers) {
    bool IsSum = U.Op == Operation::Add;
    llvm::Type *Type = IsSum ? llvm::Type::getInt64Ty(C) : I32;
    llvm::IRBuilder<> B(&*F.getEntryBlock().getFirstInsertionPt());
    auto *Register = B.CreateAlloca(Type);
    Registers.push_back(Register);
    B.SetInsertPoint(U.InRegister->getLoopPreheader()->getTerminator());
    B.CreateStore(llvm::ConstantInt::get(Type, S.Initial), Register);
    B.SetInsertPoint(U.At);
    llvm::Value *Old = B.CreateLoad(Type, Register), *New;
    if (IsSum)
      New = B.CreateAdd(Old, B.CreateZExt(U.V, Type));
    else
      New = B.CreateSelect(ours(U.Op == Operation::Max ? B.CreateICmpUGT(U.V, Old) : B.CreateICmpULT(U.V, Old)), U.V, Old);
    B.CreateStore(New, Register);
    llvm::SmallVector<llvm::BasicBlock *, 4> Exits;
    U.InRegister->getUniqueExitBlocks(Exits);
    for (llvm::BasicBlock *Block : Exits)
      Leaving.push_back({&*Block->getFirstInsertionPt(), Register, U.Op, U.Key});
  }

  void flush(const Exit &Leave) {
    llvm::IRBuilder<> B(Leave.At);
    llvm::Type *Type = Leave.Register->getAllocatedType();
    llvm::Value *V = B.CreateLoad(Type, Leave.Register);
    llvm::Value *Some = ours(B.CreateICmpNE(V, llvm::ConstantInt::get(Type, S.Initial)));
    llvm::Instruction *Then = llvm::SplitBlockAndInsertIfThen(Some, Leave.At, false);
    B.SetInsertPoint(Then);
    if (Leave.Op == Operation::Add) {
      auto *Most = B.getInt64(UINT32_MAX);
      V = B.CreateTrunc(B.CreateSelect(ours(B.CreateICmpULT(V, Most)), V, Most), I32);
    }
    emitUpdate(Then, Leave.Op, Leave.Key, V);
  }
};

} // namespace fuzzfactory

#endif
