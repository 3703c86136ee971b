//! Tests of havoc.

use proptest::prelude::*;
use rand_core::SeedableRng as _;

use super::super::Rng;
use super::super::dictionary::Token;
use super::*;

pub(super) fn context(dictionary: &Dictionary) -> HavocContext<'_> {
    HavocContext {
        dictionary,
        donor: None,
        min_len: 1,
        max_len: 1 << 20,
        long_blocks: 3,
        stack_power: 4,
        text: false,
        messages: false,
        words: false,
        exploit: false,
        gentle: false,
    }
}

fn shares(profile: Profile) -> Vec<f64> {
    let table = table(profile);
    (0..OPERATORS.len())
        .map(|row| table.iter().filter(|&&slot| usize::from(slot) == row).count() as f64)
        .map(|slots| slots / TABLE_LEN as f64)
        .collect()
}

#[test]
fn the_tables_follow_the_weights() {
    for profile in [Profile::Text, Profile::Explore, Profile::Exploit] {
        let total: usize = OPERATORS.iter().map(|row| weight(row, profile)).sum();
        assert!((900..=1100).contains(&total), "{total}");
        for (row, share) in OPERATORS.iter().zip(shares(profile)) {
            let wanted = weight(row, profile) as f64 / total as f64;
            assert!((share - wanted).abs() < 0.002);
        }
    }
}

#[test]
fn every_operator_answers_false_or_changes_within_the_limits() {
    let mut dictionary = Dictionary::default();
    dictionary.add_user(Token::new(b"token"));
    dictionary.add_auto(b"learned");
    let donor = b"the donor's bytes";
    let mut rng = Rng::seed_from_u64(3);
    for row in &OPERATORS {
        for len in [1, 2, 3, 4, 9, 40] {
            for max_len in [len, len + 1, 64] {
                let limits = HavocContext {
                    donor: Some(donor),
                    min_len: len.min(3),
                    max_len,
                    ..context(&dictionary)
                };
                let seed: Vec<u8> = (0..len as u8).map(|byte| b'0' + byte % 20).collect();
                for _ in 0..200 {
                    let mut bytes = Buffer::new(&seed, &[]);
                    let applied = (row.apply)(&mut rng, &mut bytes, &limits);
                    assert!((len.min(3)..=max_len).contains(&bytes.len()));
                    assert!(applied || *bytes == seed);
                }
            }
        }
    }
}

#[test]
fn a_copied_block_is_a_piece_of_the_input() {
    let dictionary = Dictionary::default();
    let clone_copy = OPERATORS[17].apply;
    let seed: Vec<u8> = (0..40).collect();
    let mut rng = Rng::seed_from_u64(4);
    for _ in 0..2000 {
        let mut bytes = Buffer::new(&seed, &[]);
        assert!(clone_copy(&mut rng, &mut bytes, &context(&dictionary)));
        let len = bytes.len() - seed.len();
        let explained = (0..=seed.len()).any(|pos| {
            bytes[..pos] == seed[..pos]
                && bytes[pos + len..] == seed[pos..]
                && seed.windows(len).any(|window| window == &bytes[pos..pos + len])
        });
        assert!(explained, "{bytes:?}");
    }
}

#[test]
fn an_empty_seed_gives_candidates_too() {
    let dictionary = Dictionary::default();
    let mut rng = Rng::seed_from_u64(5);
    for text in [false, true] {
        let mut bytes = Buffer::default();
        assert!(
            havoc(&mut rng, &mut bytes, &HavocContext { text, ..context(&dictionary) }, |_| false)
                > 0
        );
        assert!(!bytes.is_empty());
    }
}

#[test]
fn gentle_candidates_have_one_or_two_changes_mostly() {
    let dictionary = Dictionary::default();
    let mut rng = Rng::seed_from_u64(6);
    let context = HavocContext { gentle: true, ..context(&dictionary) };
    let counts: Vec<u32> = (0..1000)
        .map(|_| havoc(&mut rng, &mut Buffer::new(&[0; 8], &[]), &context, |_| false))
        .collect();
    let at_most = |most| counts.iter().filter(|count| **count <= most).count();
    assert!((450..550).contains(&at_most(1)) && (700..800).contains(&at_most(2)));
    assert_eq!(at_most(1 + GENTLE_MOST), 1000);
}

#[test]
fn the_stack_grows_with_its_power() {
    let dictionary = Dictionary::default();
    let mut rng = Rng::seed_from_u64(6);
    let mut highest = |stack_power| {
        let context = HavocContext { stack_power, ..context(&dictionary) };
        (0..500)
            .map(|_| havoc(&mut rng, &mut Buffer::new(&[0; 8], &[]), &context, |_| false))
            .max()
            .unwrap()
    };
    assert_eq!(highest(1), 2);
    assert_eq!(highest(4), 16);
    assert_eq!(highest(0), 2);
}

#[test]
fn equal_random_states_give_equal_candidates() {
    let dictionary = Dictionary::default();
    let run = || {
        let (mut rng, mut bytes) = (Rng::seed_from_u64(7), Buffer::new(b"GET / HTTP/1.1", &[]));
        for _ in 0..50 {
            havoc(&mut rng, &mut bytes, &context(&dictionary), |_| false);
        }
        bytes.into_bytes()
    };
    assert_eq!(run(), run());
}

#[test]
fn block_lengths_keep_to_their_classes() {
    let mut rng = Rng::seed_from_u64(8);
    for _ in 0..2000 {
        assert!((1..=32).contains(&block_len(&mut rng, 1 << 20, 1)));
        assert!((1..=128).contains(&block_len(&mut rng, 1 << 20, 2)));
        assert!((1..=32_768).contains(&block_len(&mut rng, 1 << 20, 3)));
        assert_eq!(block_len(&mut rng, 1, 3), 1);
    }
}

proptest! {
    #[test]
    fn a_mutant_keeps_to_the_limits(
        seed in proptest::collection::vec(any::<u8>(), 0..200),
        donor in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..100)),
        tokens in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..4),
        (min_len, max_len) in (0usize..20, 0usize..250),
        (long_blocks, stack_power) in (0u32..5, 0u32..7),
        (text, exploit, gentle) in any::<(bool, bool, bool)>(),
        state in any::<u64>(),
    ) {
        let mut dictionary = Dictionary::default();
        for token in &tokens {
            dictionary.add_user(Token::new(token));
            dictionary.add_auto(token);
        }
        let context = HavocContext {
            dictionary: &dictionary,
            donor: donor.as_deref(),
                min_len,
            max_len,
            long_blocks,
            stack_power,
            text,
            messages: false,
            words: text,
            exploit,
            gentle,
        };
        let mut rng = Rng::seed_from_u64(state);
        let mut bytes = Buffer::new(&seed, &[]);
        for _ in 0..20 {
            havoc(&mut rng, &mut bytes, &context, |_| false);
            let floor = min_len.max(1);
            prop_assert!((floor..=max_len.max(floor)).contains(&bytes.len()));
        }
    }
}
