// Domain `mem`: tells the runtime how much every direct call of an allocating function asks for.
#include "ffuzz-allocations.hpp"
#include "llvm/IR/InlineAsm.h"

using namespace llvm;

class MemAllocFeedback : public fuzzfactory::DomainFeedback<MemAllocFeedback> {
public:
  static constexpr unsigned Phases = fuzzfactory::Early;

  MemAllocFeedback(Module &M) : DomainFeedback(M, "__afl_mem_dsf") {
    Requested = resolveFunction("__ffuzz_mem_requested", getVoidTy(), {getIntTy(32), getIntTy(64), getIntTy(64)});
    Copied = resolveFunction("__ffuzz_mem_copied", getVoidTy(), {getIntTy(32), getPtrTy()});
  }

  // The request is told before the call, because operator new throws when it cannot be met.
  void visitCallBase(CallBase &Call) {
    auto Allocation = fuzzfactory::allocationBy(Call, calleeName(Call));
    if (!Allocation || Call.isMustTailCall()) return;
    auto *Key = createProgramLocation();
    auto After = insert_after(Call);
    if (Allocation.IsString) {
      After.CreateCall(Copied, {Key, asPtr(After, &Call)});
      return;
    }
    IRBuilder<> Before(&Call);
    auto Number = [&](int I) -> Value * {
      return I < 0 ? Before.getInt64(1) : Before.CreateZExtOrTrunc(Call.getArgOperand(I), getIntTy(64));
    };
    Before.CreateCall(Requested, {Key, Number(Allocation.Count), Number(Allocation.Size)});
    if (Allocation.Result < 0) keepAlive(After, Call);
  }

private:
  FunctionCallee Requested, Copied;

  // An allocation whose result nobody sees is dropped by the optimiser.
  void keepAlive(IRBuilder<> &B, CallBase &Call) {
    Value *Block = asPtr(B, &Call);
    auto *Type = FunctionType::get(getVoidTy(), {Block->getType()}, false);
    B.CreateCall(InlineAsm::get(Type, "", "r,~{memory}", true), {Block});
  }
};

FUZZFACTORY_REGISTER_DOMAIN(MemAllocFeedback);
