//! What the fuzz targets check.
//!
//! Each module has one function, `check`, which panics if an input breaks a property of a parser. The
//! programs in `fuzz_targets/` call it with inputs from the fuzzer. The test in `tests/corpus.rs` calls
//! it with the inputs in `corpus/`. `README.md` lists the properties.

pub mod command_line;
pub mod event_input;
pub mod hook_answer;
pub mod hook_file;
pub mod rpc_frame;
pub mod template;

use tenterhook_engine::{EventKind, EventName};

/// Splits off the first byte, which selects what an input is used for.
fn selected(data: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = data.split_first()?;
    Some((usize::from(*first), rest))
}

/// Splits off the first line, which selects the event that an input is for.
///
/// The inputs in `corpus/` name an event. Of any other line, the first byte selects one, so that the
/// fuzzer finds all events.
fn event(data: &[u8]) -> Option<(EventName, &[u8])> {
    let end = data.iter().position(|byte| *byte == b'\n')?;
    let (line, rest) = data.split_at(end);
    let named = std::str::from_utf8(line)
        .ok()
        .and_then(|line| line.parse().ok());
    let first = usize::from(*line.first()?);
    let kinds: Vec<EventKind> = EventKind::ALL
        .iter()
        .copied()
        .filter(|kind| *kind != EventKind::Custom)
        .collect();
    let name = named.unwrap_or_else(|| EventName::Known(kinds[first % kinds.len()]));
    Some((name, &rest[1..]))
}
