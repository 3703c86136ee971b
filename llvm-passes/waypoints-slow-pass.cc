// Domain `slow`: the length of the path, in basic blocks.
#include "ffuzz-domain.hpp"

class SlowFuzzFeedback : public fuzzfactory::DomainFeedback<SlowFuzzFeedback> {
public:
  SlowFuzzFeedback(llvm::Module &M) : DomainFeedback(M, "__afl_slow_dsf", {1}) {}

  void visitBasicBlock(llvm::BasicBlock &Block) {
    if (!isProgramBlock(Block)) return;
    auto Builder = insert_before(Block);
    update(Builder, fuzzfactory::Operation::Add, getConst(0), getConst(1));
  }
};

FUZZFACTORY_REGISTER_DOMAIN(SlowFuzzFeedback);
