//! An input as a list of messages, for targets whose inputs come over a socket (`--net`).
//!
//! Each message is a little-endian 32-bit word and its bytes. The lower 24 bits of the word are the length, the upper 8
//! bits the connection, below 128. With one connection this is the replay format of AFLNet (Pham et al., ICST 2020). A
//! file whose first word is invalid is one message on the first connection. Mirrors `runtime/net/input.c`.

use std::ops::Range;

use crate::length::Length;

/// Number of connections that an input can name.
pub const CONNECTIONS: u8 = 128;
/// Size of the word before a message, bytes.
pub const HEAD: usize = 4;
/// Longest message, bytes.
pub const LONGEST: usize = 0xff_ffff;
/// Width of the length field in a word. No other [`Length`] has this width.
const WIDTH: usize = 3;

/// One message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Message<'a> {
    pub connection: u8,
    pub bytes: &'a [u8],
}

/// Connection and length in the first word of an input.
fn word(input: &[u8]) -> Option<(u8, usize)> {
    let word = u32::from_le_bytes(*input.first_chunk::<HEAD>()?);
    let [.., connection] = word.to_le_bytes();
    Some((connection, word as usize & LONGEST))
}

/// True if an input is a list, not a single message.
#[must_use]
pub fn is_list(input: &[u8]) -> bool {
    word(input).is_some_and(|(connection, length)| {
        connection < CONNECTIONS && length <= input.len() - HEAD
    })
}

/// Messages of an input. A length beyond the end is truncated.
pub fn messages(input: &[u8]) -> impl Iterator<Item = Message<'_>> + Clone {
    let is_list = is_list(input);
    let mut rest = input;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (connection, length) = if is_list { word(rest)? } else { (0, rest.len()) };
        let bytes = if is_list { &rest[HEAD..] } else { rest };
        let (bytes, after) = bytes.split_at(length.min(bytes.len()));
        rest = after;
        Some(Message { connection: connection % CONNECTIONS, bytes })
    })
}

/// Word of a message of `length` bytes, at most [`LONGEST`].
#[must_use]
pub fn head(connection: u8, length: usize) -> [u8; HEAD] {
    let [l0, l1, l2, ..] = length.min(LONGEST).to_le_bytes();
    [l0, l1, l2, connection % CONNECTIONS]
}

/// Builds a list from messages.
#[must_use]
pub fn list<'a>(messages: impl IntoIterator<Item = Message<'a>>) -> Vec<u8> {
    let mut list = Vec::new();
    for message in messages {
        push(&mut list, message.connection, message.bytes);
    }
    list
}

/// Range of message `number` including its word; empty, at the end of the list, if there is none.
#[must_use]
pub fn span(list: &[u8], number: usize) -> Range<usize> {
    let mut start = 0;
    for message in messages(list).take(number) {
        start += HEAD + message.bytes.len();
    }
    let length = messages(list).nth(number).map_or(0, |message| HEAD + message.bytes.len());
    start..start + length
}

/// Messages shared by the inputs of consecutive runs. A process that has received them can be restored to where it
/// waits for the next one, see `RunSettings::beginning` of the engine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Beginning {
    bytes: Vec<u8>,
    count: usize,
    /// Connection of the next message, equal in all these inputs.
    connection: u8,
}

impl Beginning {
    /// First `count` messages of a list; None if `count` is 0 or if no valid list follows.
    #[must_use]
    pub fn of(list: &[u8], count: usize) -> Option<Self> {
        if count == 0 || !is_list(list) {
            return None;
        }
        let (bytes, rest) = list.split_at(span(list, count).start);
        let (connection, _) = word(rest).filter(|_| is_list(rest))?;
        Some(Self { bytes: bytes.into(), count, connection })
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of messages.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// True if an input begins with these messages, followed by one on the same connection.
    #[must_use]
    pub fn starts(&self, input: &[u8]) -> bool {
        let next = input.strip_prefix(&*self.bytes).and_then(word);
        next.is_some_and(|(connection, _)| connection == self.connection)
    }

    /// Prepends the messages to `rest` and sets the connection of its first message. `rest` has at least [`HEAD`]
    /// bytes.
    pub fn put_before(&self, rest: &mut Vec<u8>) {
        rest[HEAD - 1] = self.connection;
        rest.splice(0..0, self.bytes.iter().copied());
    }
}

/// Writes `input` with message `number` replaced by `bytes`. An input that is no list stays one message.
pub fn replace(input: &[u8], number: usize, bytes: &[u8], out: &mut Vec<u8>) {
    out.clear();
    if !is_list(input) && !is_list(bytes) {
        out.extend_from_slice(bytes);
        return;
    }
    for (index, message) in messages(input).enumerate() {
        push(out, message.connection, if index == number { bytes } else { message.bytes });
    }
}

/// Adds a message to a list.
pub fn push(list: &mut Vec<u8>, connection: u8, bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(LONGEST)];
    list.extend(head(connection, bytes.len()));
    list.extend_from_slice(bytes);
}

/// Ranges of message contents in a list; empty if the input is no list.
pub fn bodies(input: &[u8]) -> impl Iterator<Item = Range<usize>> {
    framing(input).map(|length| length.from..length.end(input).min(input.len()))
}

/// Writes `input` with `removed` bytes at `at` replaced by `inserted`. In a list the replaced range is cut at the end
/// of its message, whose word is updated; an insertion at that end extends the message. Returns false, writing nothing,
/// if `at` is in a word.
pub fn edit(input: &[u8], range: Range<usize>, inserted: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    let (at, mut end, mut word) = (range.start, range.end, None);
    if is_list(input) {
        let Some(body) = bodies(input).find(|body| (body.start..=body.end).contains(&at)) else {
            return false;
        };
        end = end.min(body.end);
        let connection = input[body.start - 1];
        let length = body.len() + inserted.len() - (end - at);
        word = Some((body.start - HEAD, head(connection, length)));
    }
    out.extend_from_slice(&input[..at]);
    out.extend_from_slice(inserted);
    out.extend_from_slice(&input[end..]);
    if let Some((place, word)) = word {
        out[place..place + HEAD].copy_from_slice(&word);
    }
    true
}

/// Restores the words of `list` in a changed version of the same length.
pub fn keep_words(list: &[u8], changed: &mut [u8]) {
    for body in bodies(list) {
        let word = body.start - HEAD..body.start;
        changed[word.clone()].copy_from_slice(&list[word]);
    }
}

/// True if `other` has the words of `list` at the same positions.
pub fn has_words(list: &[u8], other: &[u8]) -> bool {
    let mut words = bodies(list).map(|body| body.start - HEAD..body.start);
    words.all(|word| list[word.clone()] == other[word])
}

/// First part of `block` that lies in one message.
#[must_use]
pub fn within(list: &[u8], block: Range<usize>) -> Range<usize> {
    let Range { mut start, mut end } = block;
    for word in framing(list).map(|length| length.at..length.at + HEAD) {
        if word.contains(&start) {
            start = word.end;
        } else if (start..end).contains(&word.start) {
            end = word.start;
        }
    }
    start..end.max(start)
}

/// Length fields of a list; none if the input is one message.
pub fn framing(input: &[u8]) -> impl Iterator<Item = Length> {
    let is_list = is_list(input);
    let mut at = 0;
    messages(input).take_while(move |_| is_list).map(move |message| {
        let length = Length { at, width: WIDTH, is_big: false, from: at + HEAD };
        at += HEAD + message.bytes.len();
        length
    })
}

/// True if a length comes from [`framing`].
#[must_use]
pub fn is_framing(length: &Length) -> bool {
    length.width == WIDTH
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_of() -> &'static [u8] {
        b"\x02\0\0\0ab\0\0\0\x03\0\0\0\0"
    }

    fn read(input: &[u8]) -> Vec<(u8, &[u8])> {
        messages(input).map(|message| (message.connection, message.bytes)).collect()
    }

    #[test]
    fn a_file_whose_first_word_does_not_fit_is_one_message() {
        for input in [
            &b"GET / HTTP/1.1"[..],
            b"\x10\x0f\0\x04MQTT",
            b"abc",
            b"\x01\0\0\x80a",
            b"\x05\0\0\0abc",
        ] {
            assert_eq!(read(input), [(0, input)]);
            assert!(!is_list(input));
        }
        assert_eq!(read(b""), []);
    }

    #[test]
    fn a_beginning_has_a_message_before_and_behind_it() {
        let count = |count| Beginning::of(list_of(), count).map(|beginning| beginning.bytes.len());
        assert_eq!([count(0), count(1), count(2), count(3)], [None, Some(6), Some(10), None]);
        assert_eq!(Beginning::of(b"HELO", 1), None);
        assert_eq!(Beginning::of(b"\x01\0\0\0a\x09\0\0\0b", 1), None, "the next one is cut");
        let beginning = Beginning::of(list_of(), 1).unwrap();
        let mut rest = b"\x01\0\0\x07z".to_vec();
        assert!(!beginning.starts(b"\x02\0\0\0ab\x01\0\0\x07z"), "another connection");
        beginning.put_before(&mut rest);
        assert_eq!(rest, b"\x02\0\0\0ab\x01\0\0\x03z");
        assert!(beginning.starts(&rest) && beginning.starts(list_of()));
        assert!(!beginning.starts(&rest[..9]) && !beginning.starts(b""));
    }

    #[test]
    fn a_list_has_connections_and_is_cut_at_its_end() {
        let all = b"\x02\0\0\0ab\0\0\0\x03\x09\0\0\0xyz";
        assert_eq!(read(all), [(0, &b"ab"[..]), (3, b""), (0, b"xyz")]);
        assert_eq!(read(b"\x01\0\0\0a\x01\0"), [(0, &b"a"[..])]);
        assert_eq!(list(messages(b"\x01\0\0\0a")), b"\x01\0\0\0a");
        assert_eq!(
            [span(list_of(), 0), span(list_of(), 2), span(list_of(), 3)],
            [0..6, 10..14, 14..14]
        );
        let replaced = |input: &[u8], bytes: &[u8]| {
            let mut out = b"old".to_vec();
            replace(input, 0, bytes, &mut out);
            out
        };
        assert_eq!(replaced(list_of(), b"xyz"), b"\x03\0\0\0xyz\0\0\0\x03\0\0\0\0");
        assert_eq!(replaced(b"HELO", b"xyz"), b"xyz");
        assert_eq!(replaced(b"HELO", b"\0\0\0\0"), b"\x04\0\0\0\0\0\0\0");
        let ends: Vec<usize> = framing(list_of()).map(|length| length.end(list_of())).collect();
        assert_eq!(ends, [6, 10, 14]);
        let pieces = [0..3, 0..5, 5..12, 7..14, 4..14].map(|block| within(list_of(), block));
        assert_eq!(pieces, [4..4, 4..5, 5..6, 14..14, 4..6]);
        let edited = |at, removed| {
            let mut out = b"old".to_vec();
            edit(list_of(), at..at + removed, b"xyz", &mut out).then_some(out)
        };
        assert_eq!(edited(5, 9).unwrap(), b"\x04\0\0\0axyz\0\0\0\x03\0\0\0\0");
        assert_eq!(edited(6, 0).unwrap(), b"\x05\0\0\0abxyz\0\0\0\x03\0\0\0\0");
        assert_eq!(edited(10, 0).unwrap(), b"\x02\0\0\0ab\x03\0\0\x03xyz\0\0\0\0");
        assert_eq!([edited(0, 1), edited(8, 0), edited(11, 3)], [None, None, None]);
        assert_eq!(framing(b"HELO").count(), 0);
        assert_eq!(read(b"\0\0\0\0"), [(0, &b""[..])]);
        assert_eq!(read(b"\x01\0\0\0a\x01\0\0\xffb"), [(0, &b"a"[..]), (127, b"b")]);
    }
}
