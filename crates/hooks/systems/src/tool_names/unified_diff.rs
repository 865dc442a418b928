//! Parses unified diffs of one file: `@@ -1,2 +1,2 @@`, and lines that begin with a space, `-` or `+`.
//!
//! The tools that use this format (Operator's `patch_file`, morphix' `diff_editor`) receive the file in another
//! argument and ignore the names in the diff. They also skip lines and counts that do not match. This parser refuses
//! those, because it cannot predict how the tool handles them.

use crate::tool_names::envelope::shortened;
use crate::tool_names::row::Problem;

/// The beginnings of lines that are allowed before the first change.
const HEADERS: [&str; 9] = [
    "--- ",
    "+++ ",
    "diff ",
    "index ",
    "new file mode ",
    "deleted file mode ",
    "old mode ",
    "new mode ",
    "similarity index ",
];

/// Writes one replacement as a diff. The line numbers are not known, so they start at 1.
pub(crate) fn written(old: &str, new: &str) -> String {
    let lines = |text: &str| match text {
        "" => 0,
        text => text.split('\n').count(),
    };
    let (olds, news) = (lines(old), lines(new));
    let mut diff = format!("@@ -1,{olds} +1,{news} @@\n");
    for (sign, text) in [('-', old), ('+', new)] {
        for line in text.split('\n').filter(|_| !text.is_empty()) {
            diff.push(sign);
            diff.push_str(line);
            diff.push('\n');
        }
    }
    diff
}

/// Returns the old and the new text of each change in a diff.
pub(crate) fn edits(diff: &str) -> Result<Vec<(String, String)>, Problem> {
    let diff = diff.strip_suffix('\n').unwrap_or(diff);
    let mut lines = diff.split('\n').enumerate().peekable();
    let mut edits = Vec::new();
    while let Some((at, line)) = lines.next() {
        let is_blank = line.trim().is_empty() || line.starts_with("\\ ");
        let is_header = edits.is_empty() && HEADERS.iter().any(|header| line.starts_with(header));
        if is_blank || is_header {
            continue;
        }
        let counts =
            counts(line).ok_or_else(|| problem(at, line, "a change such as `@@ -1,2 +1,2 @@`"))?;
        edits.push(change(&mut lines, counts)?);
    }
    if edits.is_empty() {
        return Err("the diff has no change such as `@@ -1,2 +1,2 @@`".to_owned());
    }
    Ok(edits)
}

/// Reads the old and the new text of one change, given the number of lines of each.
fn change<'a>(
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
    (mut olds, mut news): (u64, u64),
) -> Result<(String, String), Problem> {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    while olds > 0 || news > 0 {
        let Some((at, line)) = lines.next() else {
            return Err(format!(
                "the diff ends early: {olds} old and {news} new lines of the last change are missing"
            ));
        };
        let mut rest = line.chars();
        // Models often omit the space of an empty line.
        let (is_old, is_new) = match rest.next().unwrap_or(' ') {
            ' ' => (true, true),
            '-' => (true, false),
            '+' => (false, true),
            '\\' => continue,
            _ => return Err(problem(at, line, "a line that begins with ` `, `+` or `-`")),
        };
        let left = |count: u64, is: bool| count.checked_sub(u64::from(is));
        (olds, news) = left(olds, is_old)
            .zip(left(news, is_new))
            .ok_or_else(|| problem(at, line, "the number of lines that the `@@` line states"))?;
        if is_old {
            old.push(rest.as_str());
        }
        if is_new {
            new.push(rest.as_str());
        }
    }
    Ok((old.join("\n"), new.join("\n")))
}

/// Returns how many old and new lines follow a line such as `@@ -1,2 +1,2 @@`.
fn counts(line: &str) -> Option<(u64, u64)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let count = |range: &str| {
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        start.parse::<u64>().ok()?;
        count.parse().ok()
    };
    Some((count(old)?, count(new)?))
}

fn problem(at: usize, line: &str, expected: &str) -> Problem {
    format!(
        "line {} of the diff is `{}`, expected {expected}",
        at + 1,
        shortened(line)
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_change_of_a_diff_is_found() {
        let diff = [
            "diff --git a/x b/x",
            "index 1..2 100644",
            "--- a/x",
            "+++ b/x",
            "@@ -1,3 +1,2 @@ fn x",
            " a",
            "-b",
            "-c",
            "+d",
            "",
            "@@ -9 +8,2 @@",
            "--- e",
            "+f",
            "+++ g",
            "\\ No newline at end of file",
            "@@ -20,0 +20,1 @@",
            "+h",
            "",
        ]
        .join("\n");
        let expected = [("a\nb\nc", "a\nd"), ("-- e", "f\n++ g"), ("", "h")];
        assert_eq!(
            edits(&diff).unwrap(),
            expected.map(|(old, new)| (old.to_owned(), new.to_owned()))
        );
    }

    #[test]
    fn a_diff_that_cannot_be_parsed_is_an_error() {
        for (diff, problem) in [
            ("", "no change"),
            ("--- a\n+++ b\n", "no change"),
            ("rm -rf /", "line 1 of the diff"),
            ("@@ -a +b @@\n-x", "line 1 of the diff"),
            ("@@ -1 +1 @@\n-x", "0 old and 1 new"),
            ("@@ -1 +1 @@\n-x\n-y\n+z", "line 3 of the diff"),
            ("@@ -1 +1 @@\n-x\n+y\n+z", "line 4 of the diff"),
            ("@@ -1 +1 @@\n-x\n+y\n--- a/other", "line 4 of the diff"),
            ("@@ -1 +1 @@\nx", "begins with"),
            ("@@ -1 +1 @@\né", "begins with"),
            (
                "<<<<<<< ORIGINAL\na\n=======\nb\n>>>>>>> REPLACEMENT",
                "line 1 of the diff",
            ),
        ] {
            let error = edits(diff).unwrap_err();
            assert!(error.contains(problem), "{diff:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn a_replacement_is_read_as_it_was_written(old in "[-+ @\\\\a\r\n]{0,12}", new in "[-+ @\\\\a\r\n]{0,12}") {
            prop_assume!(!(old.is_empty() && new.is_empty()));
            prop_assert_eq!(edits(&written(&old, &new)).unwrap(), [(old, new)]);
        }
    }
}
