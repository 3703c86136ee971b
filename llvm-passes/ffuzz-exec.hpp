// Programs that must not start others (AFL_LLVM_DENY_EXEC): a call of exec, spawn, system or popen aborts.
#ifndef FFUZZ_EXEC_HPP
#define FFUZZ_EXEC_HPP

#include "ffuzz-domain.hpp"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

namespace {

// A function of the program may have the same name.
bool startsProgram(const llvm::CallBase &Call) {
  const llvm::Function *Callee = Call.getCalledFunction();
  if (!Callee || !Callee->isDeclaration()) return false;
  return llvm::StringSwitch<bool>(Callee->getName())
      .Cases("execl", "execlp", "execle", "execv", "execvp", true)
      .Cases("execve", "execvpe", "fexecve", "execveat", true)
      .Cases("posix_spawn", "posix_spawnp", "system", "popen", true)
      .Default(false);
}

struct DenyExecPass : llvm::PassInfoMixin<DenyExecPass> {
  static bool isRequired() { return true; }

  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &) {
    bool Changed = false;
    for (llvm::Function &F : M)
      for (llvm::Instruction &I : llvm::instructions(F)) {
        auto *Call = llvm::dyn_cast<llvm::CallBase>(&I);
        if (!Call || !startsProgram(*Call)) continue;
        llvm::IRBuilder<> B(Call);
        B.CreateCall(M.getOrInsertFunction("abort", B.getVoidTy()));
        Changed = true;
      }
    return Changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
  }
};

} // namespace

// Before the optimiser, so that no call has another name.
static void addDenyExec(llvm::PassBuilder &PB) {
  PB.registerPipelineStartEPCallback([](llvm::ModulePassManager &MPM, auto...) { MPM.addPass(DenyExecPass()); });
}

#endif
