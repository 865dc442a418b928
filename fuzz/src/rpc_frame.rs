//! Messages of workers and of clients: the frames, and the JSON-RPC messages in them.

use bytes::Bytes;
use serde_json::Value;
use tenterhook_jsonrpc::{FrameError, FrameReader, Framing, Incoming, PeerMessage};

/// The maximum length of a message. It is small, so that the fuzzer reaches it.
const MAX: usize = 512;

/// Checks a stream. The first byte selects the framing, and how the stream is cut into chunks.
pub fn check(data: &[u8]) {
    let Some((number, stream)) = crate::selected(data) else {
        return;
    };
    let framing = if number % 2 == 0 {
        Framing::Lines
    } else {
        Framing::ContentLength
    };
    let whole = frames(framing, stream, stream.len().max(1), 0);
    for (length, step) in [(1, 0), (1 + number / 16, 3), (64, 7)] {
        let chunked = frames(framing, stream, length, step);
        assert_eq!(whole, chunked, "chunks of {length} bytes and more");
    }
    for frame in whole.iter().flatten() {
        assert!(frame.len() <= MAX + 1, "{} bytes", frame.len());
        messages(frame);
    }
    written_frames_are_read_back(framing, stream);
}

/// Reads a stream in chunks, of which each is longer than the one before.
fn frames(
    framing: Framing,
    stream: &[u8],
    mut length: usize,
    step: usize,
) -> Vec<Result<Bytes, FrameError>> {
    let mut reader = FrameReader::new(framing, 16, MAX);
    let mut found = Vec::new();
    let mut rest = stream;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(length.min(rest.len()));
        rest = after;
        length += step;
        reader.room(chunk.len()).extend_from_slice(chunk);
        loop {
            match reader.next_frame() {
                Ok(Some(frame)) => found.push(Ok(frame)),
                Ok(None) => break,
                Err(error) => {
                    found.push(Err(error));
                    // After an invalid header, reading cannot continue.
                    if framing == Framing::ContentLength {
                        return found;
                    }
                }
            }
        }
    }
    if framing == Framing::Lines {
        found.extend(reader.take_rest().map(Ok));
    }
    found
}

/// Parses a message as both sides do.
fn messages(frame: &Bytes) {
    if let Ok(Some(PeerMessage::Answer {
        result: Ok(Some(result)),
        ..
    })) = PeerMessage::parse(frame)
    {
        let result: Result<Value, _> = serde_json::from_slice(&result);
        assert!(result.is_ok(), "a result is not JSON");
    }
    let strict = Incoming::parse(frame);
    match &strict {
        Ok(Incoming::Request(request)) => {
            let id = &request.id;
            assert!(id.is_string() || id.is_number(), "{id}");
            // What is sent again is the same request.
            let params = request.params.clone().into();
            let sent = tenterhook_jsonrpc::request(id, &request.method, &params);
            assert_eq!(Incoming::parse(sent.to_string().as_bytes()), strict);
        }
        Ok(Incoming::Nothing | Incoming::Answer { .. }) => {}
        Err(error) => assert!(error.code() < 0, "{error:?}"),
    }
}

fn written_frames_are_read_back(framing: Framing, message: &[u8]) {
    if message.len() > MAX || message.contains(&b'\n') {
        return;
    }
    let (first, second) = message.split_at(message.len() / 2);
    let frame = framing.frame(&[&[first], &[second]]);
    let mut expected = message.to_vec();
    if framing == Framing::Lines {
        expected.push(b'\n');
    }
    assert_eq!(frames(framing, &frame, 5, 1), [Ok(Bytes::from(expected))]);
}
