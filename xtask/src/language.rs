//! Finds phrases that confuse newcomers, in everything that people read: documentation, comments and
//! messages.
//!
//! The check works on whole paragraphs, so that it finds a phrase that is split over two lines. Tests are
//! not checked, because they quote the output of other programs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use regex::{Regex, RegexBuilder};

/// A phrase to avoid.
struct Rule {
    /// A regular expression for the phrase, including the words that `except` needs.
    phrase: &'static str,
    /// A regular expression for matches that are plain English.
    except: Option<&'static str>,
    /// What to write instead.
    instead: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        phrase: r"(?:[\w`]+,? )?\b(?:is|are|was|were) none\b",
        except: Some(r"^there |(?-i:None)$"),
        instead: "name what is missing, or say that it is invalid",
    },
    Rule {
        phrase: r"(?:[\w`]+,? )?\b(?:is|are|was|were) no [\w`-]+",
        except: Some(
            r"^there |no (?:longer|more|less|fewer|later|earlier|larger|better|worse|one|different|way|need|reason|longer|such)$",
        ),
        instead: "`is not a …`",
    },
    Rule {
        phrase: r"\bin (?:the|its|their) place of\b",
        except: None,
        instead: "`instead of`",
    },
    Rule {
        phrase: r"\btakes? the place of\b|\btook the place of\b",
        except: None,
        instead: "`replaces`",
    },
    Rule {
        phrase: r"\bnone the (?:worse|wiser)\b",
        except: None,
        instead: "`not affected`",
    },
    Rule {
        phrase: r"\b(?:is|are|was|were|be|been|being) told\b",
        except: None,
        instead: "name who does it: `reports`, `receives`, `sends`",
    },
    Rule {
        phrase: r"\b(?:hear|hears|heard) of\b",
        except: None,
        instead: "`receives`, `is notified of`",
    },
    Rule {
        phrase: r"\bwhoever\b",
        except: None,
        instead: "`anyone who`, or name the actor",
    },
    Rule {
        phrase: r"\b(?:nobody|somebody)\b",
        except: None,
        instead: "`no one`, `someone`, or name the actor",
    },
    Rule {
        phrase: r"\bif (?:it|they|he) (?:likes?|wish(?:es)?)\b|\bit wishes\b",
        except: None,
        instead: "`optionally`, `requests`",
    },
    Rule {
        phrase: r"\bwhat (?:comes|came|becomes|became) (?:of|nothing)\b|\bwhat a (?:repository|project) brings\b",
        except: None,
        instead: "`the result`, `project hooks`",
    },
    Rule {
        phrase: r"\bwhat (?:it|they|he) (?:says?|said|tells?|told)\b",
        except: None,
        instead: "`the output`, `the answer`",
    },
    Rule {
        phrase: r"\bbeside\b",
        except: None,
        instead: "`next to`, `in addition to`",
    },
    Rule {
        phrase: r"\bblanks?\b(?: lines?)?",
        except: Some(r"blank lines?$"),
        instead: "`spaces`",
    },
    Rule {
        phrase: r"\bthe bar\b",
        except: None,
        instead: "write the character: `|`",
    },
    Rule {
        phrase: r"\b(?:that|those|the one|the ones) of\b",
        except: None,
        instead: "repeat the noun",
    },
    Rule {
        phrase: r"\b(?:go|goes|going|went|gone) on\b",
        except: None,
        instead: "`continues`",
    },
    Rule {
        phrase: r"\bthere (?:is|are) `[^`]+`,",
        except: None,
        instead: "`available: …`",
    },
];

/// The files and folders that are checked.
const PLACES: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "crates",
    "docs",
    "examples",
    "fuzz",
    "packaging",
    "sdk",
    "xtask/src",
];

/// Files that must contain the phrases, each with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[("xtask/src/language.rs", "the phrases themselves")];

/// The longest line of a page, in characters. Tables and fences may be wider.
const MAX_LINE: usize = 120;

/// Returns a message for each phrase to avoid, as `file:line: …`.
pub(crate) fn problems(root: &Path, only: &[&str]) -> anyhow::Result<Vec<String>> {
    let rules = compile()?;
    let mut files = Vec::new();
    for place in PLACES {
        collect(&root.join(place), &mut files)?;
    }
    files.sort();
    let mut problems = Vec::new();
    for file in files {
        let name = file.strip_prefix(root)?.to_string_lossy().into_owned();
        let is_wanted = only.is_empty() || only.iter().any(|prefix| name.starts_with(prefix));
        if !is_wanted || EXCEPTIONS.iter().any(|(exempt, _)| name == *exempt) {
            continue;
        }
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {name}"))?;
        let paragraphs = if file.extension().is_some_and(|it| it == "md") {
            problems.extend(long_lines(&name, &text));
            paragraphs_of_page(&text)
        } else {
            paragraphs_of_source(&text)
        };
        for paragraph in &paragraphs {
            for (rule, phrase, except) in &rules {
                problems.extend(paragraph.problems(&name, rule, phrase, except.as_ref()));
            }
        }
    }
    Ok(problems)
}

type CompiledRule = (&'static Rule, Regex, Option<Regex>);

fn compile() -> anyhow::Result<Vec<CompiledRule>> {
    let compiled = |pattern: &str| RegexBuilder::new(pattern).case_insensitive(true).build();
    let rules = RULES.iter().map(|rule| {
        let except = rule.except.map(compiled).transpose()?;
        Ok((rule, compiled(rule.phrase)?, except))
    });
    rules.collect()
}

fn collect(place: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !place.exists() {
        return Ok(());
    }
    if place.is_dir() {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        if ["tests", "target", "node_modules", "corpus", "artifacts"].contains(&&*name)
            || name.starts_with('.')
        {
            return Ok(());
        }
        for entry in fs::read_dir(place)? {
            collect(&entry?.path(), files)?;
        }
        return Ok(());
    }
    let extension = place.extension().unwrap_or_default().to_string_lossy();
    if ["md", "rs", "py", "mjs", "js", "ts"].contains(&&*extension) {
        files.push(place.to_owned());
    }
    Ok(())
}

fn long_lines(name: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut is_fenced = false;
    let mut is_comment = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        // Comments hold commands that test the page. Readers do not see them.
        is_comment |= line.starts_with("<!--");
        let is_prose = !is_fenced && !is_comment && !line.starts_with('|');
        is_comment &= !line.ends_with("-->");
        let length = line.chars().count();
        // A single word, such as a link, cannot be wrapped.
        let words = line.trim_start().trim_start_matches("- ");
        if is_prose && words.contains(' ') && length > MAX_LINE {
            problems.push(format!(
                "{name}:{}: {length} characters; wrap the line at 100",
                index + 1
            ));
        }
    }
    problems
}

/// Consecutive lines as one text.
#[derive(Default)]
struct Paragraph {
    text: String,
    /// The offset in `text` at which each line begins, and the number of that line.
    lines: Vec<(usize, usize)>,
}

impl Paragraph {
    fn push(&mut self, number: usize, line: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.lines.push((self.text.len(), number));
        self.text.push_str(line);
    }

    fn line_at(&self, offset: usize) -> usize {
        let before = self.lines.iter().rev().find(|(begin, _)| *begin <= offset);
        before.map_or(0, |(_, number)| *number)
    }

    fn problems(
        &self,
        name: &str,
        rule: &Rule,
        phrase: &Regex,
        except: Option<&Regex>,
    ) -> Vec<String> {
        let found = phrase.find_iter(&self.text);
        let found = found.filter(|it| !except.is_some_and(|except| except.is_match(it.as_str())));
        let report = found.map(|it| {
            let line = self.line_at(it.end().saturating_sub(1));
            format!("{name}:{line}: \"{}\"; write {}", it.as_str(), rule.instead)
        });
        report.collect()
    }
}

fn paragraphs_of_page(text: &str) -> Vec<Paragraph> {
    let mut paragraphs = vec![Paragraph::default()];
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['|', '#', '-', '`']) {
            paragraphs.push(Paragraph::default());
        }
        if let Some(last) = paragraphs.last_mut() {
            last.push(index + 1, line);
        }
    }
    paragraphs
}

/// Joins consecutive comment lines into paragraphs. Each line of code is a paragraph of its own, so that
/// messages in it are checked.
fn paragraphs_of_source(text: &str) -> Vec<Paragraph> {
    let mut paragraphs = vec![Paragraph::default()];
    let mut was_comment = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let is_comment = line.starts_with("//") || line.starts_with("# ") || line.starts_with("* ");
        if !(is_comment && was_comment) {
            paragraphs.push(Paragraph::default());
        }
        was_comment = is_comment;
        let words = line.trim_start_matches(['/', '!', '#', '*']).trim();
        if let Some(last) = paragraphs.last_mut() {
            last.push(index + 1, words);
        }
    }
    paragraphs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file, its text, and the line at which a phrase is found. `None` if the text is plain English.
    const CASES: &[(&str, &str, Option<usize>)] = &[
        ("docs/a.md", "`x` is no hook.\n", Some(1)),
        ("docs/a.md", "A file that\nis none.\n", Some(2)),
        ("docs/a.md", "Hooks are\ntold of it.\n", Some(2)),
        ("docs/a.md", "one\n\nin the place of two\n", Some(3)),
        (
            "docs/a.md",
            "There is no hook, and it is no longer used.\n",
            None,
        ),
        ("docs/a.md", "Leave a blank line. No one reads on.\n", None),
        ("crates/a/src/lib.rs", "/// Nobody waits.\n", Some(1)),
        ("crates/a/src/lib.rs", "// Whoever\n//  waits.\n", Some(1)),
        ("crates/a/src/lib.rs", "// What comes\n// of it.\n", Some(2)),
        (
            "crates/a/src/lib.rs",
            "bail!(\"`{x}` is no file\");\n",
            Some(1),
        ),
        ("crates/a/src/lib.rs", "let nobody_waits = true;\n", None),
        ("crates/a/tests/it/main.rs", "// whoever\n", None),
        ("sdk/python/a.py", "# The hook goes on.\n", Some(1)),
    ];

    #[test]
    fn a_planted_phrase_is_found_at_its_line_and_plain_english_is_not() {
        for (name, text, line) in CASES {
            let root = tempfile::tempdir().unwrap();
            let file = root.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            let found = problems(root.path(), &[]).unwrap();
            match line {
                None => assert!(found.is_empty(), "{text}: {found:?}"),
                Some(line) => {
                    assert_eq!(found.len(), 1, "{text}: {found:?}");
                    assert!(
                        found[0].starts_with(&format!("{name}:{line}: ")),
                        "{found:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_long_line_of_a_page_is_found_and_a_table_may_be_wide() {
        let words = "word ".repeat(30);
        let page = format!("{words}\n| {words} |\n```\n{words}\n```\n");
        let found = long_lines("docs/a.md", &page);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("docs/a.md:1: "), "{found:?}");
    }
}
