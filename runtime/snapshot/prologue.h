/* What a program does before it looks at its input. */
#ifndef FFUZZ_SNAPSHOT_PROLOGUE_H
#define FFUZZ_SNAPSHOT_PROLOGUE_H

#include "snapshot/state.h"

#if FFUZZ_HAS_SNAPSHOTS
HIDDEN int ffuzz_prologue_begins(void); /* the snapshot is taken later */
/* Takes the snapshot here, unless it was taken before. Returns in each run. */
HIDDEN void ffuzz_prologue_stops(void);
#endif

#endif
