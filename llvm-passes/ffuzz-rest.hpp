// The rest of a function that starts the fork server itself, by __AFL_INIT(): what follows that call.
//
// When such a function is entered, no run has begun, so it is in its first version, and stays there. Its rest becomes
// a function of its own, whose parameters are the values that it needs; the call of that function comes after the
// start of the fork server. Variables that only the rest uses are its own. Those that hold a single value and whose
// address is not taken are passed by value, so that they stay in registers in the function; others by pointer.
#ifndef FFUZZ_REST_HPP
#define FFUZZ_REST_HPP

#include "ffuzz-domain.hpp"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"

namespace {

constexpr const char RestSuffix[] = ".ffuzz_rest", RestMark[] = ".ffuzz_mark", ForkServerStart[] = "__afl_manual_init";

class Rest {
public:
  explicit Rest(llvm::Function &F) : F(F), Start(onlyStartIn(F)) {
    if (!Start) return;
    llvm::SmallVector<const llvm::BasicBlock *, 32> Next;
    if (auto *Invoke = llvm::dyn_cast<llvm::InvokeInst>(Start))
      Next.push_back(Invoke->getNormalDest());
    else
      llvm::append_range(Next, llvm::successors(Start->getParent()));
    while (!Next.empty()) {
      const llvm::BasicBlock *Block = Next.pop_back_val();
      if (Later.insert(Block).second) llvm::append_range(Next, llvm::successors(Block));
    }
    if (canBeSeparate()) findNeeds();
    else Start = nullptr;
  }

  bool exists() const { return Start; }

  // The function, and the call that marks its place: it is replaced by the way into it, see `EnterVersions`.
  std::pair<llvm::Function *, llvm::Function *> separate() {
    llvm::Module &M = *F.getParent();
    llvm::SmallVector<llvm::Type *, 8> Types;
    for (const Need &N : Needs) Types.push_back(N.type());
    auto *Type = llvm::FunctionType::get(F.getReturnType(), Types, false);
    auto *R = llvm::Function::Create(Type, llvm::GlobalValue::InternalLinkage, F.getName() + RestSuffix, M);
    copyInto(*R);

    llvm::IRBuilder<> B(firstOfRest());
    llvm::SmallVector<llvm::Value *, 8> Args;
    for (const Need &N : Needs)
      Args.push_back(N.IsContent ? fuzzfactory::ours(B.CreateLoad(N.type(), N.V)) : N.V);
    auto *Mark = llvm::Function::Create(llvm::FunctionType::get(B.getVoidTy(), Types, false),
                                        llvm::GlobalValue::ExternalLinkage, F.getName() + RestMark, M);
    Mark->addFnAttr(llvm::Attribute::NoUnwind);
    B.CreateCall(Mark, Args);
    // The way into the rest returns from this function.
    F.removeFnAttr(llvm::Attribute::AlwaysInline);
    F.addFnAttr(llvm::Attribute::NoInline);
    return {R, Mark};
  }

private:
  struct Need {
    llvm::Value *V;
    bool IsContent; // of the variable V

    llvm::Type *type() const {
      return IsContent ? llvm::cast<llvm::AllocaInst>(V)->getAllocatedType() : V->getType();
    }
  };

  llvm::Function &F;
  llvm::CallBase *Start;
  llvm::SmallPtrSet<const llvm::BasicBlock *, 32> Later; // without that of the start
  llvm::SmallVector<Need, 8> Needs;
  llvm::SmallVector<llvm::AllocaInst *, 16> Own; // variables of the rest, the copies of others among them

  static llvm::CallBase *onlyStartIn(llvm::Function &F) {
    llvm::CallBase *Found = nullptr;
    for (llvm::Instruction &I : llvm::instructions(F)) {
      auto *Call = llvm::dyn_cast<llvm::CallBase>(&I);
      auto *Callee = Call ? Call->getCalledFunction() : nullptr;
      if (!Callee || Callee->getName() != ForkServerStart) continue;
      if (Found) return nullptr;
      Found = Call;
    }
    return Found;
  }

  llvm::Instruction *firstOfRest() const {
    auto *Invoke = llvm::dyn_cast<llvm::InvokeInst>(Start);
    return Invoke ? &*Invoke->getNormalDest()->getFirstInsertionPt() : Start->getNextNode();
  }

  // Not in a loop, and no place is stored or remembered that is another one in the separate function.
  bool canBeSeparate() const {
    auto *Invoke = llvm::dyn_cast<llvm::InvokeInst>(Start);
    if (Later.count(Start->getParent()) || F.isVarArg() || llvm::isa<llvm::CallBrInst>(Start)) return false;
    auto *Next = Invoke ? Invoke->getNormalDest() : nullptr;
    if (Next && (!Next->getSinglePredecessor() || llvm::isa<llvm::PHINode>(Next->front()))) return false;
    for (const llvm::BasicBlock &Block : F)
      if (Block.hasAddressTaken()) return false;
    return llvm::none_of(llvm::instructions(F), [&](const llvm::Instruction &I) {
      if (I.getType()->isTokenTy()) return true;
      auto *Call = llvm::dyn_cast<llvm::IntrinsicInst>(&I);
      if (!Call) return false;
      bool Remembers = Call->getIntrinsicID() == llvm::Intrinsic::stacksave;
      return (Remembers && !isLater(I)) || Call->getIntrinsicID() == llvm::Intrinsic::localescape;
    });
  }

  bool isLater(const llvm::Instruction &I) const {
    if (I.getParent() == Start->getParent()) return Start->comesBefore(&I);
    return Later.count(I.getParent());
  }

  bool isUsedLater(const llvm::Value &V) const {
    return llvm::any_of(V.uses(), [&](const llvm::Use &U) {
      auto *I = llvm::cast<llvm::Instruction>(U.getUser());
      auto *Phi = llvm::dyn_cast<llvm::PHINode>(I);
      return isLater(Phi ? *Phi->getIncomingBlock(U)->getTerminator() : *I);
    });
  }

  void findNeeds() {
    for (llvm::Argument &A : F.args())
      if (isUsedLater(A)) Needs.push_back({&A, false});
    for (llvm::Instruction &I : llvm::instructions(F)) {
      if (isLater(I) || &I == Start || !isUsedLater(I)) continue;
      auto *Variable = llvm::dyn_cast<llvm::AllocaInst>(&I);
      if (Variable && !Variable->isStaticAlloca()) Variable = nullptr;
      bool IsNew = Variable && isOnlyUsedLater(*Variable);
      bool IsContent = Variable && !IsNew && isOnlyValue(*Variable);
      if (IsNew || IsContent) Own.push_back(Variable);
      if (!IsNew) Needs.push_back({&I, IsContent});
    }
  }

  // Marks of its lifetime do not count.
  bool isOnlyUsedLater(const llvm::Instruction &I) const {
    return llvm::all_of(I.users(), [&](const llvm::User *U) {
      auto *User = llvm::cast<llvm::Instruction>(U);
      return isLater(*User) || User->isLifetimeStartOrEnd() ||
             (llvm::isa<llvm::BitCastInst>(User) && isOnlyUsedLater(*User) && !isUsedLater(*User));
    });
  }

  static bool isOnlyValue(const llvm::AllocaInst &Variable) {
    llvm::Type *Type = Variable.getAllocatedType();
    return Type->isSingleValueType() && llvm::all_of(Variable.users(), [&](const llvm::User *U) {
      if (auto *Load = llvm::dyn_cast<llvm::LoadInst>(U)) return Load->getType() == Type && !Load->isVolatile();
      auto *Store = llvm::dyn_cast<llvm::StoreInst>(U);
      if (Store && Store->getValueOperand() != &Variable)
        return Store->getValueOperand()->getType() == Type && !Store->isVolatile();
      return llvm::cast<llvm::Instruction>(U)->isLifetimeStartOrEnd();
    });
  }

  void copyInto(llvm::Function &R) {
    llvm::ValueToValueMapTy Copy;
    for (llvm::Argument &A : F.args()) Copy[&A] = llvm::PoisonValue::get(A.getType());
    for (unsigned I = 0; I < Needs.size(); I++)
      if (llvm::isa<llvm::Argument>(Needs[I].V)) Copy[Needs[I].V] = R.getArg(I);
    llvm::SmallVector<llvm::ReturnInst *, 8> Returns;
    llvm::CloneFunctionInto(&R, &F, Copy, llvm::CloneFunctionChangeType::LocalChangesOnly, Returns);
    // What the parameters of `F` are says nothing about these.
    R.setAttributes(llvm::AttributeList::get(R.getContext(), R.getAttributes().getFnAttrs(), {}, {}));

    auto *There = llvm::cast<llvm::CallBase>(Copy[Start]);
    auto *Invoke = llvm::dyn_cast<llvm::InvokeInst>(There);
    llvm::BasicBlock *First =
        Invoke ? Invoke->getNormalDest() : There->getParent()->splitBasicBlock(There->getNextNode());
    auto *Begin = llvm::BasicBlock::Create(R.getContext(), "", &R, &R.getEntryBlock());
    llvm::IRBuilder<> B(Begin);
    for (llvm::AllocaInst *Variable : Own)
      llvm::cast<llvm::Instruction>(Copy[Variable])->moveBefore(*Begin, Begin->end());
    for (unsigned I = 0; I < Needs.size(); I++) {
      if (Needs[I].IsContent) B.CreateStore(R.getArg(I), Copy[Needs[I].V]);
      else if (!llvm::isa<llvm::Argument>(Needs[I].V)) Copy[Needs[I].V]->replaceAllUsesWith(R.getArg(I));
    }
    B.CreateBr(First);
    llvm::removeUnreachableBlocks(R);
  }
};

} // namespace

#endif
