//! Command lines, which a model writes and permission rules judge.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tenterhook_shell::{LineWordKind, Reading, Word, commands, launches, plain_words, read, words};

/// The longest line that is made by repetition, in bytes.
const MAX_REPEATED: usize = 8 << 10;

/// How many bytes all readings of a line may have: a constant, because the commands that other commands
/// run are limited, and a number for each byte of the line.
const MAX_READINGS: usize = 4 << 20;
const MAX_READINGS_PER_BYTE: usize = 24;

/// Checks a line. The first byte says how often the rest is repeated, because work that grows faster
/// than the line shows only in long lines.
pub fn check(data: &[u8]) {
    let Some((times, rest)) = crate::selected(data) else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    // Most inputs stay short, so that the fuzzer tries many of them.
    let times = if times < 0xf0 { 1 } else { 1 << (times - 0xef) };
    let times = times.min(MAX_REPEATED / text.len().max(1)).max(1);
    let line = text.repeat(times);
    let found = read(&line);
    readings_are_bounded(&line, &found);
    positions_are_in_the_line(&line);
    if times > 1 {
        // The other properties do not depend on the length, and these lines take long to read.
        return;
    }
    readings_contain_the_line(&line, &found);
    plain_lines_mean_their_words(&line);
    wrapping_hides_nothing(&line, &found);
}

fn readings_contain_the_line(line: &str, found: &Reading) {
    let all = found.texts();
    let texts: BTreeSet<&str> = all.iter().map(String::as_str).collect();
    assert!(texts.contains(line), "the line is not a reading");
    assert_eq!(texts.len(), all.len(), "a reading is repeated");
    assert_eq!(launches(line).is_some(), found.is_complete);
}

fn readings_are_bounded(line: &str, found: &Reading) {
    let bytes: usize = found.texts().iter().map(String::len).sum();
    let max = MAX_READINGS + MAX_READINGS_PER_BYTE * line.len();
    assert!(bytes <= max, "{bytes} bytes of {} bytes", line.len());
}

fn positions_are_in_the_line(line: &str) {
    let mut ends: BTreeMap<usize, usize> = BTreeMap::new();
    for word in words(line, Path::new("/project")) {
        let written = line.get(word.range.clone());
        let written = written.expect("the range is in the line and cuts no character");
        let end = ends.entry(word.command).or_default();
        assert!(word.range.start >= *end, "words of a command overlap: {word:?}");
        *end = word.range.end;
        if word.kind == LineWordKind::Assignment {
            assert!(word.raw.ends_with(written), "{word:?}");
        } else {
            assert_eq!(word.raw, written);
        }
    }
}

fn plain_lines_mean_their_words(line: &str) {
    let Some(plain) = plain_words(line) else {
        return;
    };
    assert_eq!(commands(line), [plain.clone()]);
    let found = words(line, Path::new("/project"));
    assert!(found.iter().all(|word| word.command == 0), "{found:?}");
    let texts: Vec<_> = found.into_iter().map(|word| word.text).collect();
    let expected: Vec<_> = plain.into_iter().map(Some).collect();
    assert_eq!(texts, expected);
}

/// Programs that run the line or its words.
fn wrapping_hides_nothing(line: &str, found: &Reading) {
    let mut wrapped = Vec::new();
    // Single quotes keep every other character.
    if !line.contains('\'') && !line.starts_with(['-', '+']) {
        wrapped.push(format!("sh -c '{line}'"));
        wrapped.push(format!("echo x; timeout 5 bash -lc '{line}'"));
    }
    if let Some(plain) = plain_words(line)
        && !plain[0].starts_with('-')
    {
        wrapped.extend(
            ["timeout 5 ", "nice -n 5 ", "sudo -u me "].map(|before| format!("{before}{line}")),
        );
    }
    for line in wrapped {
        let outer = read(&line);
        if !outer.is_complete {
            continue;
        }
        let all = outer.texts();
        let texts: BTreeSet<&str> = all.iter().map(String::as_str).collect();
        let certain = found.commands.iter().filter(|command| command.is_certain);
        let commands = certain.map(|command| {
            let words: Vec<_> = command.words.iter().map(Word::as_str).collect();
            words.join(" ")
        });
        for text in commands {
            assert!(texts.contains(text.as_str()), "{line:?} hides {text:?}");
        }
    }
}
