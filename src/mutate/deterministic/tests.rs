//! Tests of the deterministic stage.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::super::dictionary::Token;
use super::*;

type Found = Vec<(Step, Vec<u8>)>;

fn all_of(seed: &[u8], dictionary: &Dictionary, mut steps: Deterministic) -> Found {
    let (mut found, mut out) = (Vec::new(), Vec::new());
    while let Some(step) = steps.next(seed, dictionary, &mut out) {
        found.push((step, out.clone()));
        assert_eq!(steps.done(), found.len() as u64);
        assert!(steps.done() <= steps.planned());
    }
    assert_eq!(steps.planned(), steps.done());
    assert_eq!(steps.stage_name(), "done");
    found
}

fn count(found: &Found, name: &str) -> usize {
    found.iter().filter(|(step, _)| step.op() == name).count()
}

#[test]
fn the_families_come_in_order_under_their_names() {
    let dictionary = Dictionary {
        user: Dictionary::parse(b"\"XY\"", 0).0,
        auto: Dictionary::parse(b"\"abc\"", 0).0,
        ..Dictionary::default()
    };
    let found = all_of(
        &[250, 1, 255, 255, 255, 3, 250, 1, 9, 250],
        &dictionary,
        Deterministic::new(10, &dictionary, false),
    );
    let mut names: Vec<_> = found.iter().map(|(step, _)| step.op()).collect();
    names.dedup();
    let wanted: Vec<_> = FAMILIES.iter().map(|family| family.op).collect();
    assert_eq!(names, wanted);
    assert_eq!(count(&found, "flip1"), 80);
    assert_eq!(count(&found, "flip4"), 77);
    assert_eq!(count(&found, "flip32"), 7);
    assert_eq!(count(&found, "ext_UO"), 9);
    assert_eq!(count(&found, "ext_UI"), 11);
    assert_eq!(count(&found, "ext_AO"), 8);
}

#[test]
fn a_step_tells_its_value_and_byte_order() {
    let dictionary = Dictionary::default();
    let found = all_of(&[0, 0xf0], &dictionary, Deterministic::new(2, &dictionary, false));
    let wanted = Step::At { op: "arith16", pos: 0, value: Some(20), big_endian: true };
    let (_, bytes) = found.iter().find(|(step, _)| *step == wanted).unwrap();
    assert_eq!(bytes, &[1, 4]);
}

#[test]
fn arithmetic_is_left_out_on_request() {
    let dictionary = Dictionary::default();
    let found = all_of(b"abcdef", &dictionary, Deterministic::new(6, &dictionary, true));
    assert_eq!(count(&found, "arith8") + count(&found, "arith16") + count(&found, "arith32"), 0);
}

#[test]
fn bytes_without_effect_are_left_alone() {
    let (dictionary, seed) = (Dictionary::default(), [b'.'; 200]);
    let mut steps = Deterministic::new(seed.len(), &dictionary, false);
    let mut out = Vec::new();
    let mut touched = HashSet::new();
    while let Some(step) = steps.next(&seed, &dictionary, &mut out) {
        steps.report(out[40] != b'.');
        if matches!(step.op(), "arith8" | "int8") {
            touched.extend((0..seed.len()).filter(|&pos| out[pos] != seed[pos]));
        }
    }
    assert_eq!(touched, HashSet::from([40]));
}

#[test]
fn short_inputs_are_walked_whole_whatever_is_reported() {
    let (dictionary, seed) = (Dictionary::default(), [b'.'; 20]);
    let mut steps = Deterministic::new(seed.len(), &dictionary, false);
    let (mut out, mut last) = (Vec::new(), 0);
    while steps.next(&seed, &dictionary, &mut out).is_some() {
        steps.report(false);
        last += 1;
    }
    let unreported = all_of(&seed, &dictionary, Deterministic::new(20, &dictionary, false));
    assert_eq!(last, unreported.len());
}

#[test]
fn a_long_input_costs_no_more_than_its_bound() {
    let (dictionary, seed) = (Dictionary::default(), vec![b'.'; 100_000]);
    let mut steps = Deterministic::new(seed.len(), &dictionary, false);
    let (mut counts, mut out) = (HashMap::new(), Vec::new());
    while let Some(step) = steps.next(&seed, &dictionary, &mut out) {
        *counts.entry(step.op()).or_insert(0) += 1;
        if step.op() == "arith16" {
            break;
        }
    }
    assert!(counts["flip8"] <= PROBE_LIMIT);
    assert_eq!(counts["flip1"], 8 * WALK_LIMIT);
    assert!(counts["arith8"] <= ARITH_VARIANTS * WALK_LIMIT);
}

#[test]
fn tokens_that_change_nothing_or_do_not_fit_are_skipped() {
    let dictionary =
        Dictionary { user: Dictionary::parse(b"\"bc\"", 0).0, ..Dictionary::default() };
    let steps = Deterministic::new(4, &dictionary, false).limit(5);
    let found = all_of(b"abcd", &dictionary, steps);
    assert_eq!(count(&found, "ext_UO"), 2);
    assert_eq!(count(&found, "ext_UI"), 0);
}

#[test]
fn with_many_tokens_every_one_gets_a_turn() {
    let tokens: Vec<Token> =
        (0..1000).filter_map(|number| Token::new(format!("{number:04}").as_bytes())).collect();
    let seen: HashSet<_> = (0..8)
        .flat_map(|pos| (0..TOKENS_PER_POSITION).map(move |variant| (pos, variant)))
        .filter_map(|(pos, variant)| token([&tokens[..3], &tokens[3..]], pos, variant))
        .collect();
    assert_eq!(seen.len(), tokens.len());
}

#[test]
fn an_empty_seed_takes_appended_bits_and_tokens() {
    let dictionary = Dictionary { user: Dictionary::parse(b"\"a\"", 0).0, ..Dictionary::default() };
    let found = all_of(b"", &dictionary, Deterministic::new(0, &dictionary, false));
    assert_eq!(found.len(), 8 * APPENDED + 1);
    assert_eq!(found[0].1, [0x80]);
    assert_eq!(found.last().unwrap().1, b"a");
}

proptest! {
    #[test]
    fn every_single_bit_is_flipped_exactly_once(
        seed in proptest::collection::vec(any::<u8>(), 1..40),
    ) {
        let dictionary = Dictionary::default();
        let found = all_of(&seed, &dictionary, Deterministic::new(seed.len(), &dictionary, false));
        let flips: Vec<_> = found.iter().filter(|(step, _)| step.op() == "flip1").collect();
        let distinct: HashSet<_> = flips.iter().map(|(_, bytes)| bytes).collect();
        prop_assert_eq!(flips.len(), 8 * seed.len());
        prop_assert_eq!(distinct.len(), flips.len());
        for (step, bytes) in flips {
            let changed: u32 = bytes.iter().zip(&seed).map(|(a, b)| (a ^ b).count_ones()).sum();
            prop_assert_eq!(changed, 1);
            let Step::At { pos, .. } = *step else { panic!() };
            prop_assert_ne!(bytes[pos as usize], seed[pos as usize]);
        }
    }

    /// Skipping must lose nothing: every value of a family is written by it or by an earlier one.
    #[test]
    fn every_value_is_written_and_by_one_family(seed in proptest::collection::vec(any::<u8>(), 1..7)) {
        let dictionary = Dictionary::default();
        let found = all_of(&seed, &dictionary, Deterministic::new(seed.len(), &dictionary, false));
        let mut written: HashMap<&Vec<u8>, Step> = HashMap::new();
        for (step, bytes) in &found {
            prop_assert_ne!(bytes, &seed);
            let earlier = *written.entry(bytes).or_insert(*step);
            // Overlapping windows of one family may meet in a value, and flips are not compared.
            let allowed = step.op().starts_with("flip") || step.op() == earlier.op();
            prop_assert!(earlier == *step || allowed, "{:?} repeats {:?}", step, earlier);
        }
        for width in [1, 2, 4] {
            for pos in 0..(seed.len() + 1).saturating_sub(width) {
                for big_endian in [false, true] {
                    let old = values::load(&seed[pos..pos + width], big_endian);
                    let sums = (-35..=35).map(|delta| old.wrapping_add_signed(delta));
                    let constants = values::interesting(width).iter().map(|&value| value as u32);
                    for number in sums.chain(constants) {
                        let mut bytes = seed.clone();
                        values::store(&mut bytes[pos..pos + width], number, big_endian);
                        prop_assert!(bytes == seed || written.contains_key(&bytes));
                    }
                }
            }
        }
    }
}

#[test]
fn a_walk_from_the_middle_makes_the_same_candidates() {
    let dictionary =
        Dictionary { user: Dictionary::parse(b"\"XY\"", 0).0, ..Dictionary::default() };
    let seed = [250, 1, 255, 3, 9];
    let whole = all_of(&seed, &dictionary, Deterministic::new(5, &dictionary, false));
    let turned =
        all_of(&seed, &dictionary, Deterministic::new(5, &dictionary, false).starting_at(3));
    assert_eq!((turned[0].0.op(), turned[0].0.position()), ("flip1", 3));
    let set = |found: &Found| found.iter().map(|(_, bytes)| bytes.clone()).collect::<HashSet<_>>();
    assert_eq!((turned.len(), set(&turned)), (whole.len(), set(&whole)));
}
