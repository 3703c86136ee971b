// Domain `mem`: tells the runtime about every direct call of malloc and calloc.
#include "ffuzz-domain.hpp"

using namespace llvm;

class MemAllocFeedback : public fuzzfactory::DomainFeedback<MemAllocFeedback> {
public:
  static constexpr unsigned Phases = fuzzfactory::Early;

  MemAllocFeedback(Module &M) : DomainFeedback(M, "__afl_mem_dsf") {
    Allocated = resolveFunction("__ffuzz_mem_allocated", getVoidTy(),
                                {getIntTy(32), getIntTy(64), getIntTy(64), getPtrTy()});
  }

  void visitCallBase(CallBase &Call) {
    StringRef Name = calleeName(Call);
    unsigned Args = Name == "malloc" ? 1 : Name == "calloc" ? 2 : 0;
    if (!Args || Call.arg_size() != Args || !Call.getType()->isPointerTy()) return;
    auto Builder = insert_after(Call);
    auto Number = [&](unsigned I) { return Builder.CreateZExtOrTrunc(Call.getArgOperand(I), getIntTy(64)); };
    Value *Count = Args == 2 ? Number(0) : Builder.getInt64(1);
    Value *Size = Number(Args - 1);
    Builder.CreateCall(Allocated, {createProgramLocation(), Count, Size, asPtr(Builder, &Call)});
  }

private:
  FunctionCallee Allocated;
};

FUZZFACTORY_REGISTER_DOMAIN(MemAllocFeedback);
