// Domain `out`: bytes that each place of the program writes to a file, pipe or socket.
#include "ffuzz-domain.hpp"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace {
// How a call says what it has written.
enum Kind {
  Nothing,
  Result,    // the result, if it is positive
  Items,     // the result times argument 1
  Text,      // the string in argument 0, if the result is not negative
  Line,      // the same and a newline
  Character, // one byte, if the result is not negative
  Stream,    // argument 2: a C++ stream, which does not say
};
} // namespace

class OutFeedback : public fuzzfactory::DomainFeedback<OutFeedback> {
public:
  // Before the optimiser makes a puts of a printf: keys stay what they are.
  static constexpr unsigned Phases = fuzzfactory::Early;

  OutFeedback(Module &M) : DomainFeedback(M, "__afl_out_dsf") {
    Wrote = resolveFunction("__ffuzz_out_wrote", getVoidTy(), {getIntTy(32), getIntTy(64), getIntTy(64)});
    OneByte = resolveFunction("__ffuzz_out_character", getVoidTy(), {getIntTy(32), getIntTy(64)});
    String = resolveFunction("__ffuzz_out_text", getVoidTy(), {getIntTy(32), getPtrTy(), getIntTy(32), getIntTy(64)});
  }

  void visitCallBase(CallBase &Call) {
    Kind How = kindOf(calleeName(Call));
    if (How == Nothing || Call.isMustTailCall() || !fits(How, Call)) return;
    auto *Key = createProgramLocation();
    auto After = insert_after(Call);
    auto Signed = [&](Value *V) { return After.CreateSExtOrTrunc(V, getIntTy(64)); };
    if (How == Stream)
      After.CreateCall(Wrote, {Key, Signed(Call.getArgOperand(Call.arg_size() - 1)), After.getInt64(1)});
    else if (How == Text || How == Line)
      After.CreateCall(String, {Key, asPtr(After, Call.getArgOperand(0)), getConst(How == Line), Signed(&Call)});
    else if (How == Character)
      After.CreateCall(OneByte, {Key, Signed(&Call)});
    else
      After.CreateCall(Wrote, {Key, Signed(&Call), How == Items ? Signed(Call.getArgOperand(1)) : After.getInt64(1)});
  }

private:
  FunctionCallee Wrote, OneByte, String;

  static Kind kindOf(StringRef Name) {
    return StringSwitch<Kind>(Name)
        .Cases("write", "pwrite", "pwrite64", "writev", "pwritev", Result)
        .Cases("send", "sendto", "sendmsg", "sendfile", "splice", Result)
        .Cases("printf", "fprintf", "vprintf", "vfprintf", "dprintf", "vdprintf", Result)
        .Cases("__printf_chk", "__fprintf_chk", "__vprintf_chk", "__vfprintf_chk", "__dprintf_chk", Result)
        .Cases("fwrite", "fwrite_unlocked", Items)
        .Cases("fputs", "fputs_unlocked", Text)
        .Case("puts", Line)
        .Cases("putc", "fputc", "putchar", "_IO_putc", "putc_unlocked", "putchar_unlocked", "fputc_unlocked", Character)
        .Case("_ZNSo5writeEPKcl", Stream)
        .Case("_ZSt16__ostream_insertIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_PKS3_l", Stream)
        .Default(Nothing);
  }

  // A function of the program may have the same name.
  static bool fits(Kind How, const CallBase &Call) {
    if (How == Stream) return Call.arg_size() == 3 && Call.getArgOperand(2)->getType()->isIntegerTy();
    if (!Call.getType()->isIntegerTy() || Call.arg_size() == 0) return false;
    if (How == Items) return Call.arg_size() == 4 && Call.getArgOperand(1)->getType()->isIntegerTy();
    return (How != Text && How != Line) || Call.getArgOperand(0)->getType()->isPointerTy();
  }
};

FUZZFACTORY_REGISTER_DOMAIN(OutFeedback);
