// The plugin of all domains that come with ffuzz, of the words, and of what else changes code. It is one,
// because most of the time that a pass takes to compile goes into reading LLVM's headers. The compiler
// wrapper says which to add: FFUZZ_BUILTIN_DOMAINS has the names, FFUZZ_DECLARED_DOMAINS the file of the
// declared ones.
#include "ffuzz-domain.hpp"

// Each of these files is a plugin of its own as well.
#undef FUZZFACTORY_REGISTER_DOMAIN
#define FUZZFACTORY_REGISTER_DOMAIN(Class) static_assert(true)

#include "ffuzz-conditions.hpp"
#include "ffuzz-counters.hpp"
#include "ffuzz-declared.hpp"
#include "ffuzz-exec.hpp"
#include "ffuzz-flow.hpp"
#include "ffuzz-log.hpp"
#include "ffuzz-words-pass.hpp"
#include "waypoints-cmp-pass.cc"
#include "waypoints-diff-pass.cc"
#include "waypoints-heap-pass.cc"
#include "waypoints-mem-pass.cc"
#include "waypoints-out-pass.cc"
#include "waypoints-perf-pass.cc"
#include "waypoints-slack-pass.cc"
#include "waypoints-slow-pass.cc"
#include "waypoints-stack-pass.cc"
#include "waypoints-valid-pass.cc"

template <class Domain> static void addIf(bool IsWanted, PassBuilder &PB, const char *Class) {
  if (IsWanted) fuzzfactory::addDomain<Domain>(PB, Class);
}

static void addNamed(PassBuilder &PB, StringRef Name) {
  if (Name == "words") addWords(PB);
  if (Name == "log") addLog(PB);
  if (Name == "flow") addFlow(PB);
  if (Name == "conditions") addConditions(PB);
  if (Name == "never-zero") addNeverZero(PB);
  if (Name == "deny-exec") addDenyExec(PB);
#define DOMAIN(Known, Class) addIf<Class>(Name == Known, PB, #Class)
  DOMAIN("cmp", CmpFeedback);
  DOMAIN("diff", IncrementalFuzzingFeedback);
  DOMAIN("heap", HeapFeedback);
  DOMAIN("mem", MemAllocFeedback);
  DOMAIN("out", OutFeedback);
  DOMAIN("perf", PerfFuzzFeedback);
  DOMAIN("slack", SlackFeedback);
  DOMAIN("slow", SlowFuzzFeedback);
  DOMAIN("stack", StackFeedback);
  DOMAIN("valid", ValidFuzzFeedback);
}

static void addWanted(PassBuilder &PB) {
  const char *Names = std::getenv("FFUZZ_BUILTIN_DOMAINS");
  SmallVector<StringRef, 16> Wanted;
  StringRef(Names ? Names : "").split(Wanted, ',');
  // Words are those of first versions, and second versions have nothing that a domain adds; nor has the flow.
  const StringRef First[] = {"words", "log", "flow"};
  for (StringRef Name : First)
    if (is_contained(Wanted, Name)) addNamed(PB, Name);
  erase_if(Wanted, [&](StringRef Name) { return is_contained(First, Name); });
  for (StringRef Name : Wanted) addNamed(PB, Name);
  addDeclaredDomains(PB);
  addLogEntries(PB);
}

FFUZZ_PLUGIN("ffuzz", addWanted)
