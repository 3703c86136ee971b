/* The channel: what ffuzz and a target built by ffuzz-cc share, written down once.
 * src/target/channel.rs mirrors it; a test compares sizes and offsets.
 *
 * The fuzzer creates a memfd of FFUZZ_CHANNEL_HEADER bytes (sealed against shrinking), leaves it
 * open in the target under a descriptor number of its choice, and names it in the environment:
 * FFUZZ_CHANNEL=<fd>. A runtime that knows the channel checks magic and version, grows the file to
 * what it needs, writes the layout and the two tables, sets `accepted`, and only then sends its
 * ordinary AFL hello. The fuzzer looks at the header when the hello arrives. A target that does
 * not know the channel never notices; a stock fuzzer never offers one.
 *
 * Who writes what: the fields say so. Nothing the target writes is trusted: the fuzzer checks every
 * offset against the size of the file, once, after the hello, and every index whenever it is used. */
#ifndef FFUZZ_CHANNEL_H
#define FFUZZ_CHANNEL_H

#include <stdint.h>

#define FFUZZ_CHANNEL_ENV "FFUZZ_CHANNEL"
#define FFUZZ_CHANNEL_MAGIC 0x5a5a4646u /* "FFZZ" in memory */
#define FFUZZ_CHANNEL_VERSION 1u
#define FFUZZ_CHANNEL_HEADER 4096u /* the tables and maps begin behind it */
#define FFUZZ_PAGE 4096u           /* every region begins on a page border */

/* Bits of ffuzz_channel.features. */
#define FFUZZ_FEATURE_COPIED_COUNTERS 1u /* some module's counters are copied after a run (gold) */

struct ffuzz_channel {
  /* written by the fuzzer before the target starts */
  uint32_t magic;
  uint32_t version;
  /* written by the target before its hello */
  uint32_t accepted; /* the version it speaks; 0 until then */
  uint32_t features;
  uint64_t size;           /* bytes of the whole channel */
  uint64_t map_offset;     /* edge counters, one byte each; parts of modules are page-aligned */
  uint64_t map_size;       /* last counter in use + 1 */
  uint64_t modules_offset; /* struct ffuzz_module[module_count] */
  uint64_t domains_offset; /* struct ffuzz_domain[domain_count], in order of registration */
  uint64_t dsf_offset;     /* uint32_t[dsf_total] */
  uint64_t touched_offset; /* uint32_t[touched_capacity] */
  uint32_t module_count;
  uint32_t domain_count;
  uint32_t dsf_total; /* keys of all domains */
  uint32_t touched_capacity;
  /* state of a run: the target counts up, the fuzzer sets it to 0 between runs. A count above the
   * capacity means that the list is incomplete and the whole map has to be looked at. */
  uint32_t touched_count;
  uint32_t reserved;
};

/* One object with counters of its own: the program or a shared library. */
struct ffuzz_module {
  uint64_t start;    /* index of its first counter in the map */
  uint64_t counters; /* true number of counters (the section itself is padded) */
  char name[112];    /* file name, cut, always ends with NUL */
};

/* One domain: keys start .. start+size-1 of the DSF array. */
struct ffuzz_domain {
  uint32_t start;
  uint32_t size;
  uint32_t reducer; /* enum fuzzfactory_reducer */
  uint32_t initial; /* value of every key before a run */
  char name[48];    /* cut, always ends with NUL */
};

#endif
