/* What a harness that is started by hand writes: lines, artifacts, statistics. By write alone, as it happens in handlers
 * of signals. */
#ifndef FFUZZ_DRIVER_REPORT_H
#define FFUZZ_DRIVER_REPORT_H

#include "base.h"

/* Inputs that end the harness, or are slow, become files. */
HIDDEN extern int ffuzz_driver_saves;
HIDDEN extern unsigned long ffuzz_driver_runs, ffuzz_driver_new_units;
HIDDEN extern double ffuzz_driver_slowest; /* seconds */

/* To standard error as it was before -close_fd_mask. */
HIDDEN void ffuzz_driver_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* From now on the target's output goes nowhere, as -close_fd_mask says. */
HIDDEN void ffuzz_driver_close_outputs(void);

/* A file KIND-SHA1, and the lines about it. */
HIDDEN void ffuzz_driver_save(const char *kind, const uint8_t *data, size_t size);
/* The same behind the lines about how the harness ends. */
HIDDEN void ffuzz_driver_save_last(const char *kind, const uint8_t *data, size_t size);
/* With -print_final_stats. */
HIDDEN void ffuzz_driver_statistics(void);

HIDDEN double ffuzz_driver_seconds(void); /* since the first call */
HIDDEN long ffuzz_driver_peak_mb(void);

#endif
