// Domain `slack`: the smallest distance |a - b| of the two sides of each integer comparison. What
// is one step from its bound, or hits it, shows as 1 or 0.
#include "ffuzz-domain.hpp"

using namespace llvm;

class SlackFeedback : public fuzzfactory::DomainFeedback<SlackFeedback> {
public:
  SlackFeedback(Module &M) : DomainFeedback(M, "__afl_slack_dsf", {65536, UINT32_MAX}) {}

  void visitICmpInst(ICmpInst &Cmp) {
    Value *A = Cmp.getOperand(0), *B = Cmp.getOperand(1);
    auto *Type = dyn_cast<IntegerType>(A->getType());
    if (!Type || Type->getBitWidth() < 8 || Type->getBitWidth() > 64) return;
    if (isOurs(Cmp) || (isa<Constant>(A) && isa<Constant>(B)) || isSanitizerValue(A) || isSanitizerValue(B)) return;
    auto Builder = insert_before(Cmp);
    Value *IsLess = fuzzfactory::ours(Cmp.isSigned() ? Builder.CreateICmpSLT(A, B) : Builder.CreateICmpULT(A, B));
    Value *Distance = Builder.CreateSelect(IsLess, Builder.CreateSub(B, A), Builder.CreateSub(A, B));
    if (Type->getBitWidth() > 32) {
      Value *Most = ConstantInt::get(Type, UINT32_MAX);
      Distance = Builder.CreateSelect(fuzzfactory::ours(Builder.CreateICmpULT(Distance, Most)), Distance, Most);
    }
    update(Builder, fuzzfactory::Operation::Min, createProgramLocation(), Builder.CreateZExtOrTrunc(Distance, getIntTy(32)));
  }
};

FUZZFACTORY_REGISTER_DOMAIN(SlackFeedback);
