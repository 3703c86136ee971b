// Domain `valid`: how often each basic block is executed by valid inputs. The map goes away in the
// middle of a run when an assumption fails.
#include "ffuzz-domain.hpp"

class ValidFuzzFeedback : public fuzzfactory::DomainFeedback<ValidFuzzFeedback> {
public:
  ValidFuzzFeedback(llvm::Module &M) : DomainFeedback(M, "__afl_valid_dsf", {65536, 0, true}) {}

  void visitBasicBlock(llvm::BasicBlock &Block) {
    if (!isProgramBlock(Block)) return;
    auto Builder = insert_before(Block);
    update(Builder, fuzzfactory::Operation::Add, createProgramLocation(), getConst(1));
  }
};

FUZZFACTORY_REGISTER_DOMAIN(ValidFuzzFeedback);
