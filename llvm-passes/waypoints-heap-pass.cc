// Domain `heap`: tells the runtime about every block that the program gets and gives back.
#include "ffuzz-allocations.hpp"

using namespace llvm;

class HeapFeedback : public fuzzfactory::DomainFeedback<HeapFeedback> {
public:
  static constexpr unsigned Phases = fuzzfactory::Early;

  HeapFeedback(Module &M) : DomainFeedback(M, "__afl_heap_dsf") {
    Got = resolveFunction("__ffuzz_heap_got", getVoidTy(), {getIntTy(32), getPtrTy(), getIntTy(64), getIntTy(64)});
    Placed = resolveFunction("__ffuzz_heap_placed", getVoidTy(), {getIntTy(32), getPtrTy(), getIntTy(32), getIntTy(64)});
    Copied = resolveFunction("__ffuzz_heap_copied", getVoidTy(), {getIntTy(32), getPtrTy()});
    Gives = resolveFunction("__ffuzz_heap_gives", getVoidTy(), {getPtrTy()});
    Moved = resolveFunction("__ffuzz_heap_moved", getVoidTy(),
                            {getIntTy(32), getPtrTy(), getPtrTy(), getIntTy(64), getIntTy(64)});
  }

  void visitCallBase(CallBase &Call) {
    StringRef Name = calleeName(Call);
    if (Call.isMustTailCall()) return;
    if (auto Allocation = fuzzfactory::allocationBy(Call, Name)) tell(Call, Allocation);
    if (!fuzzfactory::isRelease(Call, Name)) return;
    auto Before = insert_before(Call);
    Before.CreateCall(Gives, {asPtr(Before, Call.getArgOperand(0))});
  }

private:
  FunctionCallee Got, Placed, Copied, Gives, Moved;

  void tell(CallBase &Call, const fuzzfactory::Allocation &Allocation) {
    auto *Key = createProgramLocation();
    auto After = insert_after(Call);
    if (Allocation.IsString) {
      After.CreateCall(Copied, {Key, asPtr(After, &Call)});
      return;
    }
    auto Number = [&](int I) -> Value * {
      return I < 0 ? After.getInt64(1) : After.CreateZExtOrTrunc(Call.getArgOperand(I), getIntTy(64));
    };
    Value *Count = Number(Allocation.Count), *Size = Number(Allocation.Size);
    if (Allocation.Result >= 0) {
      Value *Status = After.CreateZExtOrTrunc(&Call, getIntTy(32));
      After.CreateCall(Placed, {Key, asPtr(After, Call.getArgOperand(Allocation.Result)), Status, Size});
      return;
    }
    Value *Block = asPtr(After, &Call);
    if (Allocation.Old >= 0)
      After.CreateCall(Moved, {Key, asPtr(After, Call.getArgOperand(Allocation.Old)), Block, Count, Size});
    else
      After.CreateCall(Got, {Key, Block, Count, Size});
  }
};

FUZZFACTORY_REGISTER_DOMAIN(HeapFeedback);
