//! Reads the front matter of a Markdown file: the text between two lines of `---` at its beginning.

use serde::Deserialize;

/// The line before and after the front matter.
const FENCE: &str = "---";

/// The keys that have a meaning here. Other keys belong to other programs and are ignored.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct FrontMatter {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) argument_hint: Option<String>,
    pub(super) disable_model_invocation: bool,
}

/// What is wrong with the front matter, and in which line of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) line: Option<u64>,
    pub(super) problem: String,
}

/// Reads the front matter. Returns it with the text after it.
pub(super) fn read(text: &str) -> Result<(FrontMatter, &str), Wrong> {
    let Some((head, body)) = split(text) else {
        return Ok((FrontMatter::default(), text));
    };
    if head.trim().is_empty() {
        return Ok((FrontMatter::default(), body));
    }
    let front: FrontMatter = serde_saphyr::from_str(head).map_err(|error| {
        let error = error.without_snippet();
        Wrong {
            // The line of `---` before the front matter counts too.
            line: error.location().map(|location| location.line() + 1),
            problem: format!("cannot read the front matter: {error}"),
        }
    })?;
    Ok((front, body))
}

fn split(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != FENCE {
        return None;
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        let behind = end + line.len();
        if line.trim_end() == FENCE {
            return Some((rest.get(..end)?, rest.get(behind..)?));
        }
        end = behind;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_stands_between_two_lines_at_the_head() {
        let of = |description: &str| FrontMatter {
            description: Some(description.to_owned()),
            ..FrontMatter::default()
        };
        let none = FrontMatter::default;
        for (text, front, body) in [
            ("body", none(), "body"),
            ("", none(), ""),
            ("---\n---\nbody", none(), "body"),
            ("---\n# only a remark\n---\n", none(), ""),
            (
                "---\ndescription: d\n---\nbody\n---\n",
                of("d"),
                "body\n---\n",
            ),
            ("---\r\ndescription: d\r\n---\r\nbody", of("d"), "body"),
            ("---\ndescription: d\nlicense: MIT\n---", of("d"), ""),
            ("---\nno end", none(), "---\nno end"),
            (" ---\na: b\n---\n", none(), " ---\na: b\n---\n"),
        ] {
            assert_eq!(read(text), Ok((front, body)), "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_said_with_its_line() {
        let wrong = read("---\nname: a\ndescription: [\n---\nbody").unwrap_err();
        assert!(wrong.problem.starts_with("cannot read the front matter: "));
        assert!(wrong.line.is_some_and(|line| line >= 3), "{wrong:?}");
        let wrong = read("---\nname: a\ndescription: {a: b}\n---\n").unwrap_err();
        assert_eq!(wrong.line, Some(3), "{wrong:?}");
    }
}
