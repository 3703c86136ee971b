/* What the macros __AFL_COVERAGE_ON() and its relatives call. */
#ifndef FFUZZ_SELECTIVE_H
#define FFUZZ_SELECTIVE_H

void __afl_coverage_on(void);
void __afl_coverage_off(void);
void __afl_coverage_discard(void);
void __afl_coverage_skip(void);

#endif
