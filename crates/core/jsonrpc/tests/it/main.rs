//! Bytes are read as the same messages, however they are split.

#![expect(
    clippy::indexing_slicing,
    reason = "a test that cannot continue has failed"
)]

use bytes::Bytes;
use proptest::prelude::*;
use tenterhook_jsonrpc::{FrameError, FrameReader, Framing};

const MAX: usize = 64;

/// The messages and errors of a reader, in order.
type Frames = Vec<Result<Vec<u8>, FrameError>>;

/// Reads the parts one after another. An invalid header ends the reading, as in real use.
fn read<'a>(framing: Framing, parts: impl IntoIterator<Item = &'a [u8]>) -> Frames {
    let mut reader = FrameReader::new(framing, 16, MAX);
    let mut frames = Frames::new();
    for part in parts {
        reader.room(part.len()).extend_from_slice(part);
        loop {
            match reader.next_frame() {
                Ok(None) => break,
                Ok(Some(frame)) => frames.push(Ok(frame.trim_ascii_end().to_vec())),
                Err(error) => {
                    frames.push(Err(error));
                    if framing == Framing::ContentLength {
                        return frames;
                    }
                }
            }
        }
    }
    frames.extend(reader.take_rest().map(|rest: Bytes| Ok(rest.to_vec())));
    frames
}

/// Splits bytes at the given positions.
fn split<'a>(bytes: &'a [u8], at: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut ends: Vec<usize> = at.iter().map(|at| at.index(bytes.len() + 1)).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let mut begin = 0;
    let mut parts = Vec::new();
    for end in ends {
        parts.push(&bytes[begin..end]);
        begin = end;
    }
    parts
}

fn framings() -> impl Strategy<Value = Framing> {
    prop_oneof![Just(Framing::Lines), Just(Framing::ContentLength)]
}

#[test]
fn messages_are_the_same_wherever_a_read_ends() {
    let sent: [&[u8]; 4] = [b"{}", b"{\"a\":1}", b"[\"\xc3\xa4\"]", b"7"];
    for framing in [Framing::Lines, Framing::ContentLength] {
        let bytes: Vec<u8> = sent
            .iter()
            .flat_map(|message| framing.frame(&[&[&message[..1]], &[&message[1..]]]))
            .collect();
        for size in 1..=bytes.len() {
            let heard: Vec<Vec<u8>> = read(framing, bytes.chunks(size))
                .into_iter()
                .map(Result::unwrap)
                .collect();
            assert_eq!(heard, sent, "{framing:?} in parts of {size}");
        }
    }
}

#[test]
fn a_line_that_is_too_long_is_one_mistake_and_the_next_one_is_read() {
    for long in [MAX + 1, 3 * MAX] {
        let bytes = [&vec![b'x'; long][..], b"\n{}\n", &[b'y'; MAX], b"\nlast"].concat();
        let expected: Frames = vec![
            Err(FrameError::LineTooLong { max: MAX }),
            Ok(b"{}".to_vec()),
            Ok(vec![b'y'; MAX]),
            Ok(b"last".to_vec()),
        ];
        for size in 1..=bytes.len() {
            let frames = read(Framing::Lines, bytes.chunks(size));
            assert_eq!(frames, expected, "{long} in parts of {size}");
        }
    }
}

#[test]
fn a_head_says_how_long_the_message_is_or_what_is_wrong() {
    for (bytes, expected) in [
        (
            &b"printed\nX: y\ncontent-length : 2\r\n\r\n{}"[..],
            Ok(b"{}".to_vec()),
        ),
        (b"\n", Err(FrameError::NoLength)),
        (
            b"Content-Length: two\n\n",
            Err(FrameError::BadLength {
                value: "two".to_owned(),
            }),
        ),
        (
            b"Content-Length: 65\n\n",
            Err(FrameError::MessageTooLong {
                length: 65,
                max: MAX,
            }),
        ),
    ] {
        assert_eq!(read(Framing::ContentLength, [bytes]), [expected]);
    }
    let endless = vec![b'x'; (64 << 10) + 1];
    assert_eq!(
        read(Framing::ContentLength, endless.chunks(100)),
        [Err(FrameError::HeadTooLong)]
    );
}

#[test]
fn a_second_content_length_cannot_change_where_a_message_ends() {
    for second in [
        "Content-Length: 30",
        "content-length:2",
        "X: y\r\nCONTENT-LENGTH: 0",
    ] {
        let bytes =
            format!("Content-Length: 2\r\n{second}\r\n\r\n{{}}{{\"method\": \"smuggled\"}}");
        assert_eq!(
            read(Framing::ContentLength, [bytes.as_bytes()]),
            [Err(FrameError::RepeatedLength)],
            "{second}"
        );
    }
}

proptest! {
    #[test]
    fn any_split_of_messages_gives_the_same_messages(
        framing in framings(),
        sent in prop::collection::vec("[ -~é]{1,30}", 0..6),
        at in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let bytes: Vec<u8> = sent
            .iter()
            .flat_map(|message| framing.frame(&[&[message.as_bytes()]]))
            .collect();
        let heard = read(framing, split(&bytes, &at));
        let expected: Frames = sent
            .iter()
            .map(|message| Ok(message.as_bytes().trim_ascii_end().to_vec()))
            .collect();
        prop_assert_eq!(heard, expected);
    }

    #[test]
    fn any_split_of_any_bytes_gives_the_same_messages_and_mistakes(
        framing in framings(),
        bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b':'), any::<u8>()], 0..400),
        at in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        prop_assert_eq!(read(framing, split(&bytes, &at)), read(framing, [&bytes[..]]));
    }
}
