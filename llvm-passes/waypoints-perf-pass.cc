// Domain `perf`: how often each basic block is executed.
#include "ffuzz-domain.hpp"

class PerfFuzzFeedback : public fuzzfactory::DomainFeedback<PerfFuzzFeedback> {
public:
  PerfFuzzFeedback(llvm::Module &M) : DomainFeedback(M, "__afl_perf_dsf", {65536}) {}

  void visitBasicBlock(llvm::BasicBlock &Block) {
    if (!isProgramBlock(Block)) return;
    auto Builder = insert_before(Block);
    update(Builder, fuzzfactory::Operation::Add, createProgramLocation(), getConst(1));
  }
};

FUZZFACTORY_REGISTER_DOMAIN(PerfFuzzFeedback);
