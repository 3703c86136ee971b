// Domain `stack`: tells the runtime when a function is entered, left, and returned to by longjmp or
// an exception.
#include "ffuzz-domain.hpp"
#include "llvm/IR/InstIterator.h"

#include <vector>

using namespace llvm;

class StackFeedback : public fuzzfactory::DomainFeedback<StackFeedback> {
public:
  StackFeedback(Module &M) : DomainFeedback(M, "__afl_stack_dsf") {
    Enter = resolveFunction("__ffuzz_stack_enter", getIntTy(32), {getIntTy(32)});
    Back = resolveFunction("__ffuzz_stack_back", getVoidTy(), {getIntTy(32)});
  }

  void visitFunction(Function &F) {
    std::vector<Instruction *> Returns, Landings;
    for (Instruction &I : instructions(F)) {
      auto *Call = dyn_cast<CallInst>(&I);
      if (isa<ReturnInst>(I)) Returns.push_back(&I);
      if (isa<LandingPadInst>(I)) Landings.push_back(&*I.getParent()->getFirstInsertionPt());
      if (Call && Call->hasFnAttr(Attribute::ReturnsTwice)) Landings.push_back(I.getNextNode());
    }
    auto Builder = insert_before(F.getEntryBlock());
    const Instruction *Itself = nullptr;
    Value *Outside = Builder.CreateCall(Enter, {createProgramLocation(Itself, "frames")});
    Value *Inside = Builder.CreateAdd(Outside, getConst(1));
    for (Instruction *At : Landings) IRBuilder<>(At).CreateCall(Back, {Inside});
    for (Instruction *Return : Returns) {
      CallInst *Tail = Return->getParent()->getTerminatingMustTailCall();
      IRBuilder<>(Tail ? Tail : Return).CreateCall(Back, {Outside});
    }
  }

private:
  FunctionCallee Enter, Back;
};

FUZZFACTORY_REGISTER_DOMAIN(StackFeedback);
