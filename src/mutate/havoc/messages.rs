//! Changes whole messages of an input that is a list of messages (see [`crate::messages`]), also with messages of
//! another seed.

use std::ops::Range;

use super::super::buffer::Buffer;
use super::super::{Rng, below, index};
use super::HavocContext;
use crate::messages::{HEAD, LONGEST, Message, head, is_list, messages, span};

/// Number of connections that a change may use: each is one more client.
const CONNECTIONS: u32 = 3;

/// Applies one change. Returns false and changes nothing if that is not possible. An input that is a single message
/// is first converted to a list.
pub(super) fn change(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    if !is_list(bytes) && !make_list(bytes, context) {
        return false;
    }
    let count = messages(bytes).count();
    let done = count > 0 && one_change(rng, bytes, count, context);
    bytes.reframe();
    done
}

fn one_change(rng: &mut Rng, bytes: &mut Buffer, count: usize, context: &HavocContext<'_>) -> bool {
    let part = span(bytes, index(rng, count));
    let has_room = part.len() <= context.ceiling().saturating_sub(bytes.len());
    match below(rng, 16) {
        0..3 if count > 1 && bytes.len() - part.len() >= context.floor() => {
            bytes.close_gap(part.start, part.len());
        }
        3..5 if has_room => bytes.insert_copy(part.clone(), part.end, 0),
        5..7 if has_room && count > 1 => {
            let to = span(bytes, index(rng, count)).start;
            bytes.insert_copy(part.clone(), to, 0);
            let old = if to <= part.start { part.end } else { part.start };
            bytes.close_gap(old, part.len());
        }
        7..12 => {
            let at = if below(rng, 2) == 0 { part.start } else { part.end };
            return insert_foreign(rng, bytes, at, context);
        }
        12..15 => return replace_tail(rng, bytes, part, context),
        15 => bytes[part.start + HEAD - 1] = below(rng, CONNECTIONS) as u8,
        _ => return false,
    }
    true
}

fn make_list(bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let len = bytes.len();
    let fits = len <= LONGEST && len + HEAD <= context.ceiling();
    if fits {
        bytes.open_gap(0, HEAD);
        bytes[..HEAD].copy_from_slice(&head(0, len));
    }
    fits
}

/// A random message of the donor, and its index.
fn foreign<'a>(rng: &mut Rng, context: &HavocContext<'a>) -> Option<(usize, Message<'a>)> {
    let donor = context.donor?;
    let count = messages(donor).count();
    let number = (count > 0).then(|| index(rng, count))?;
    messages(donor).nth(number).map(|message| (number, message))
}

fn insert(bytes: &mut Buffer, at: usize, message: Message<'_>, context: &HavocContext<'_>) -> bool {
    let len = message.bytes.len();
    let fits = len <= LONGEST && HEAD + len <= context.ceiling().saturating_sub(bytes.len());
    if fits {
        bytes.open_gap_within(at, HEAD + len, 0);
        bytes[at..at + HEAD].copy_from_slice(&head(message.connection, len));
        bytes[at + HEAD..at + HEAD + len].copy_from_slice(message.bytes);
    }
    fits
}

fn insert_foreign(
    rng: &mut Rng,
    bytes: &mut Buffer,
    at: usize,
    context: &HavocContext<'_>,
) -> bool {
    foreign(rng, context).is_some_and(|(_, message)| insert(bytes, at, message, context))
}

/// Replaces all messages after `last` with the tail of another seed, from a random message on.
fn replace_tail(
    rng: &mut Rng,
    bytes: &mut Buffer,
    last: Range<usize>,
    context: &HavocContext<'_>,
) -> bool {
    let Some((number, _)) = foreign(rng, context) else { return false };
    let Some(donor) = context.donor else { return false };
    let rest = bytes.len() - last.end;
    bytes.close_gap(last.end, rest);
    for message in messages(donor).skip(number) {
        let end = bytes.len();
        if !insert(bytes, end, message, context) {
            break;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand_core::SeedableRng as _;

    use super::super::tests as havoc_tests;
    use super::*;
    use crate::dictionary::Dictionary;
    use crate::messages::list;

    fn texts(input: &[u8]) -> Vec<String> {
        let text = |message: Message<'_>| String::from_utf8_lossy(message.bytes).into_owned();
        messages(input).map(text).collect()
    }

    fn results(input: &[u8], donor: &[u8]) -> BTreeSet<Vec<String>> {
        let dictionary = Dictionary::default();
        let context = HavocContext { donor: Some(donor), ..havoc_tests::context(&dictionary) };
        let context = HavocContext { max_len: 60, ..context };
        let mut rng = crate::Rng::seed_from_u64(1);
        let mut seen = BTreeSet::new();
        for _ in 0..2000 {
            let mut bytes = Buffer::new(input, &[]);
            if change(&mut rng, &mut bytes, &context) {
                assert!(is_list(&bytes) && bytes.len() <= 60);
                assert_eq!(list(messages(&bytes)), bytes.to_vec(), "all words are right");
                assert_eq!(bytes.lengths().len(), texts(&bytes).len());
                seen.insert(texts(&bytes));
            }
        }
        seen
    }

    #[test]
    fn messages_are_dropped_doubled_moved_and_taken_from_others() {
        let all = [&b"one"[..], b"two", b"six"].map(|bytes| Message { connection: 0, bytes });
        let other = [&b"A"[..], b"B"].map(|bytes| Message { connection: 1, bytes });
        let seen = results(&list(all), &list(other));
        for wanted in
            ["one six", "one one two six", "six one two", "two one six", "one B two six", "one A B"]
        {
            let wanted: Vec<String> = wanted.split(' ').map(Into::into).collect();
            assert!(seen.contains(&wanted), "{wanted:?}");
        }
    }

    #[test]
    fn one_message_becomes_a_session() {
        let seen = results(b"HELO", b"QUIT");
        for wanted in [["HELO", "QUIT"], ["QUIT", "HELO"], ["HELO", "HELO"]] {
            assert!(seen.contains(&wanted.map(String::from)[..]), "{wanted:?}");
        }
    }
}
