//! Reads the key `timeout`, which native files and agent files write in different ways.

use std::time::Duration;

use crate::fields::{Fields, wrong};
use crate::report::Report;

/// The longest timeout of a native hook.
const NATIVE_LIMIT: Duration = Duration::from_mins(10);
/// The longest timeout of a hook in an agent file, in seconds. docker-agent documents no limit, but a
/// deadline that is too far away would have no effect.
const AGENT_FILE_LIMIT: i64 = 24 * 60 * 60;
/// What `timeout: 0` means in an agent file.
const AGENT_FILE_ZERO: Duration = Duration::from_mins(1);

/// Reads `timeout` in a native file: a number of seconds, or a number with a unit. Reports an invalid value.
pub fn native(report: &mut Report, fields: &Fields<'_>) -> Option<Duration> {
    let node = &fields.entry("timeout")?.value;
    let duration = match node.as_number() {
        Some(number) => Duration::try_from_secs_f64(number.float).ok(),
        None => node.as_text().and_then(parse),
    };
    let allowed = duration.filter(|timeout| !timeout.is_zero() && *timeout <= NATIVE_LIMIT);
    if allowed.is_none() {
        wrong::<()>(
            report,
            "timeout",
            node,
            "seconds (`10`, `0.5`) or a number with a unit (`500ms`, `2s`, `1m`), more than 0 and at most 10 minutes",
        );
    }
    allowed
}

/// Reads `timeout` in an agent file. Returns the duration, and the number of seconds as written in the
/// file.
pub(crate) fn agent_file(report: &mut Report, fields: &Fields<'_>) -> Option<(Duration, i64)> {
    let node = &fields.entry("timeout")?.value;
    match node.as_number().and_then(|number| number.integer) {
        Some(0) => Some((AGENT_FILE_ZERO, 0)),
        Some(seconds @ 1..=AGENT_FILE_LIMIT) => {
            Some((Duration::from_secs(seconds.unsigned_abs()), seconds))
        }
        _ => wrong(
            report,
            "timeout",
            node,
            "whole seconds from 0 to 86400 (one day)",
        ),
    }
}

fn parse(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at_checked(unit_at)?;
    let is_number = number.starts_with(|c: char| c.is_ascii_digit());
    let number: f64 = number.parse().ok().filter(|_| is_number)?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "s" => number,
        "m" => number * 60.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_unit_are_a_duration() {
        for (text, expected) in [
            ("500ms", Some(500)),
            ("2s", Some(2_000)),
            ("1.5s", Some(1_500)),
            ("1m", Some(60_000)),
            ("1h", None),
            ("2", None),
            ("2 s", None),
            ("-2s", None),
            ("s", None),
            ("infs", None),
            ("1e3s", None),
            ("", None),
        ] {
            assert_eq!(parse(text), expected.map(Duration::from_millis), "{text}");
        }
    }
}
