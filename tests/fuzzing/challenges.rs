//! Programs of `tests/challenges/`: each crashes behind comparisons that a search without the comparison log does not
//! pass. Solved from a seed that knows nothing, by each of five seeds of the generator, within a number of executions.

use crate::common;
use common::*;

fn solve(source: &str, execs: u64) {
    let dir = TestDir::with_seed("x".repeat(48));
    let compiler = if source.ends_with("cc") { "c++" } else { "cc" };
    let path = repository(&format!("tests/challenges/{source}")).display().to_string();
    let job = dir.ffuzz(&format!("{compiler} -O2 -fsanitize=fuzzer {path} -o t"));
    let job = job.env("XDG_CACHE_HOME", cache().to_str().unwrap());
    job.env("FFUZZ_NO_WORDS", "1").run().expect(0);
    for seed in 1..=5 {
        // On a busy machine a run may take longer than a timeout that follows the seed.
        let options = format!("-s {seed} -t 2000 -E {execs} -o out{seed} -i in");
        let job = dir.ffuzz(&options).arg("--").arg(dir.path("t"));
        job.env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(0);
        let stats = dir.text(&format!("out{seed}/default/fuzzer_stats"));
        assert!(!stats.contains("saved_crashes     : 0"), "{source}, seed {seed}: {stats}");
    }
}

/// Tests of one program and a limit of executions, some four times what the slowest of the seeds needs.
macro_rules! challenges {
    ($($name:ident: $source:literal, $execs:literal;)*) => {
        $(#[test]
        fn $name() {
            solve($source, $execs);
        })*
    };
}

challenges! {
    numbers_of_every_width_and_order: "magics.c", 1_000;
    the_same_in_the_other_order: "orders.c", 1_000;
    eight_numbers_one_behind_the_other: "chain.c", 2_000;
    eight_gates_of_different_kinds: "behind.c", 10_000;
    a_number_whose_bytes_are_apart: "split.c", 4_000;
    fields_of_bits: "bits.c", 5_000;
    fields_bounds_and_switches: "fields.c", 12_000;
    fields_that_repeat_others: "fields-equal.c", 12_000;
    fields_tied_by_exclusive_or: "xor.c", 20_000;
    a_field_tied_to_another_one_and_to_a_constant: "tied.c", 4_000;
    escapes_of_urls: "percent.c", 2_000;
    packed_decimal_digits: "bcd.c", 8_000;
    an_address_with_dots: "dotted.c", 30_000;
    an_identifier_in_text: "uuid.c", 250_000;
    bits_in_the_other_order: "reversed.c", 12_000;
    packed_bytes: "runs.c", 2_500;
    nested_switches: "switches.c", 4_000;
    floating_point_numbers: "floats.c", 2_000;
    calculated_numbers: "affine.c", 12_000;
    remainders_quotients_and_turned_numbers: "modulo.c", 10_000;
    numbers_of_variable_length: "varint.c", 20_000;
    numbers_in_text: "text-numbers.c", 12_000;
    a_number_with_sign_and_point: "decimal.c", 8_000;
    what_strtol_returns: "strtol.c", 6_000;
    a_date: "date.c", 2_500;
    hexadecimal_digits: "hexadecimal.c", 15_000;
    base_64: "base64.c", 20_000;
    strings_of_cxx: "strings.cc", 12_000;
    keywords_in_any_case: "folded.c", 1_000;
    a_keyword_in_utf_16: "utf16.c", 4_000;
    a_keyword_anywhere: "find.c", 4_000;
    a_text_under_a_mask: "masked.c", 12_000;
    words_that_one_function_compares: "helper.c", 8_000;
    keywords_and_a_state_machine: "keywords.c", 15_000;
    a_compare_function: "compare.c", 6_000;
    a_table_in_a_loop: "table-loop.c", 2_000;
    a_table_of_bsearch: "table-bsearch.c", 1_000;
    a_table_with_hashes: "table-hash.c", 10_000;
    a_protocol: "protocol.c", 8_000;
    counts_of_lines_and_words: "counts.c", 60_000;
    sums_over_a_region: "sums.c", 6_000;
    adler_32: "adler.c", 1_000;
    crc_32: "crc32.c", 1_000;
    a_frame_with_a_crc_of_16_bits: "crc16.c", 2_000;
    the_checksum_of_the_internet: "internet.c", 1_000;
    a_hash_of_its_own: "own-hash.c", 1_000;
    a_checksum_over_a_region_with_a_length: "checksum.c", 6_000;
    nested_checksums: "nested.c", 1_000;
    a_sum_in_octal_digits: "octal.c", 10_000;
    a_sum_in_hexadecimal_digits: "sentence.c", 60_000;
    entries_with_a_trailer: "tlv.c", 2_000;
    offsets_one_behind_the_other: "offsets.c", 1_000;
    lengths_three_deep: "deep.c", 2_000;
    chunks_with_lengths_and_checksums: "chunks.c", 300_000;
}

/// With `-s` the stage counts runs, and works on a seed until nothing is left. Usually it counts time: a seed that takes
/// long goes on in later rounds, so that each of these is solved as well.
#[test]
fn so_they_are_while_the_stage_counts_time() {
    for source in ["affine.c", "bits.c", "checksum.c", "hexadecimal.c", "masked.c"] {
        let dir = TestDir::with_seed("x".repeat(48));
        let path = repository(&format!("tests/challenges/{source}")).display().to_string();
        let job = dir.ffuzz(&format!("cc -O2 -fsanitize=fuzzer {path} -o t"));
        let job = job.env("XDG_CACHE_HOME", cache().to_str().unwrap());
        job.env("FFUZZ_NO_WORDS", "1").run().expect(0);
        // Each takes less than two seconds on a quiet machine.
        let job = dir.fuzz("-V 60", &dir.path("t"), "").env("AFL_BENCH_UNTIL_CRASH", "1");
        job.run().expect(0);
        assert_eq!(dir.stat("saved_crashes"), 1, "{source}: {:#?}", dir.stats());
    }
}

/// `-c -`: as before.
#[test]
fn without_comparisons_they_stay_shut() {
    let dir = TestDir::with_seed("x".repeat(48));
    let path = repository("tests/challenges/chain.c").display().to_string();
    let job = dir.ffuzz(&format!("cc -O2 -fsanitize=fuzzer {path} -o t"));
    let job = job.env("XDG_CACHE_HOME", cache().to_str().unwrap());
    job.env("FFUZZ_NO_WORDS", "1").run().expect(0);
    dir.fuzz("-s 1 -E 200000 -c -", &dir.path("t"), "").run().expect(0);
    assert!(dir.crashes().is_empty());
}
