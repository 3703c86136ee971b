// Domain `cmp`: how many bits of the two sides of a comparison are equal. The comparison itself is
// left as it is: what is added comes before it and gives nothing back.
#include "ffuzz-domain.hpp"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

class CmpFeedback : public fuzzfactory::DomainFeedback<CmpFeedback> {
public:
  static constexpr unsigned Phases = fuzzfactory::Early | fuzzfactory::Late;

  CmpFeedback(Module &M) : DomainFeedback(M, "__wrapcmp_dsf_map", {65536}) {}

  // Early: later a memcmp of few bytes is a load, and memcmp(..) == 0 has become bcmp.
  void visitCallBase(CallBase &Call) {
    if (CurrentPhase != fuzzfactory::Early) return;
    StringRef Helper = helperOf(calleeName(Call));
    bool HasLength = Helper == "__ffuzz_cmp_memcmp" || Helper == "__ffuzz_cmp_strncmp";
    if (Helper.empty() || Call.arg_size() != (HasLength ? 3u : 2u)) return;
    if (!Call.getArgOperand(0)->getType()->isPointerTy() || !Call.getArgOperand(1)->getType()->isPointerTy()) return;
    if (HasLength && !Call.getArgOperand(2)->getType()->isIntegerTy()) return;
    auto Builder = insert_before(Call);
    SmallVector<Value *, 4> Args = {createProgramLocation(), asPtr(Builder, Call.getArgOperand(0)),
                                    asPtr(Builder, Call.getArgOperand(1))};
    SmallVector<Type *, 4> Types = {getIntTy(32), getPtrTy(), getPtrTy()};
    if (HasLength) {
      Args.push_back(Builder.CreateZExtOrTrunc(Call.getArgOperand(2), getIntTy(64)));
      Types.push_back(getIntTy(64));
    }
    Builder.CreateCall(resolveFunction(Helper, getVoidTy(), Types), Args);
  }

  void visitICmpInst(ICmpInst &Cmp) {
    Value *A = Cmp.getOperand(0), *B = Cmp.getOperand(1);
    if (CurrentPhase != fuzzfactory::Late || !Cmp.isEquality() || !isUsefulWidth(A->getType())) return;
    if (isOurs(Cmp) || (isa<Constant>(A) && isa<Constant>(B))) return;
    if (isSanitizerValue(A) || isSanitizerValue(B) || isSeenCall(A) || isSeenCall(B)) return;
    auto Builder = insert_before(Cmp);
    // One instruction if the function is for processors that have it (-mpopcnt, -march=...), else twelve.
    Value *Different = Builder.CreateUnaryIntrinsic(Intrinsic::ctpop, Builder.CreateXor(A, B));
    Value *Equal = Builder.CreateSub(getConst(A->getType()->getIntegerBitWidth()),
                                     Builder.CreateZExtOrTrunc(Different, getIntTy(32)));
    update(Builder, fuzzfactory::Operation::Max, createProgramLocation(), Equal);
  }

  // One call with the table of all cases: a big switch would otherwise become a wall of calls.
  void visitSwitchInst(SwitchInst &Switch) {
    Value *Operand = Switch.getCondition();
    if (CurrentPhase != fuzzfactory::Late || !Switch.getNumCases()) return;
    if (!isUsefulWidth(Operand->getType()) || Operand->getType()->isIntegerTy(128)) return;
    SmallVector<uint64_t, 16> Cases;
    std::vector<std::string> Names;
    for (auto &Case : Switch.cases()) {
      Cases.push_back(Case.getCaseValue()->getZExtValue());
      Names.push_back(describe(Switch) + ", case " + std::to_string(Case.getCaseValue()->getSExtValue()));
    }
    auto *Data = ConstantDataArray::get(C, Cases);
    auto *Table = new GlobalVariable(M, Data->getType(), true, GlobalValue::PrivateLinkage, Data, "ffuzz.cases");
    auto Builder = insert_before(Switch);
    auto Helper = resolveFunction("__ffuzz_cmp_switch", getVoidTy(),
                                  {getIntTy(32), getIntTy(64), getPtrTy(), getIntTy(32), getIntTy(32)});
    Builder.CreateCall(Helper, {createProgramLocation(&Switch, Names), Builder.CreateZExt(Operand, getIntTy(64)),
                                asPtr(Builder, Table), getConst(Cases.size()),
                                getConst(Operand->getType()->getIntegerBitWidth())});
  }

private:
  static StringRef helperOf(StringRef Name) {
    return StringSwitch<StringRef>(Name)
        .Cases("memcmp", "bcmp", "__ffuzz_cmp_memcmp")
        .Cases("strcmp", "strcasecmp", "__ffuzz_cmp_strcmp")
        .Cases("strncmp", "strncasecmp", "__ffuzz_cmp_strncmp")
        .Case("strstr", "__ffuzz_cmp_strstr")
        .Default("");
  }

  static bool isUsefulWidth(const Type *T) {
    for (unsigned Bits : {8, 16, 32, 64, 128})
      if (T->isIntegerTy(Bits)) return true;
    return false;
  }

  // Its operands were reported already, its result (-1, 0, 1) tells nothing more.
  static bool isSeenCall(const Value *V) {
    auto *Call = dyn_cast<CallBase>(V);
    return Call && !helperOf(calleeName(*Call)).empty();
  }
};

FUZZFACTORY_REGISTER_DOMAIN(CmpFeedback);
