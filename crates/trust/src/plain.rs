//! Recognizes plain commands: those where every word is understood, so that an approval covers
//! everything that they load.
//!
//! A plain command is a project file with arguments, or a program of the table below with options that
//! the table knows. The table is an allowlist. An option that is not in it may load code or read a file,
//! so a command with such an option is not plain, and the user sees a note before approving it. The same
//! table decides which options a `#!` line may have.

use std::ffi::OsStr;
use std::ops::Range;
use std::path::Path;

use crate::project_roots::{ProjectRoots, within};

/// The meaning of a word of a plain command to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Text that names nothing, such as a pattern or a number.
    Text,
    /// One of a few values.
    OneOf(&'static [&'static str]),
    /// A file that is read.
    Input,
    /// A file of `jq` code, which must not import other files.
    JqFile,
    /// `jq` code, which must not import other files.
    JqCode,
    /// A file that runs.
    Script,
    /// A folder from which code is loaded.
    Folder,
    /// A file that is written.
    Written,
    /// An argument of a script. Only the script knows its meaning.
    Argument,
}

/// The meaning of the words that are not options.
enum Operands {
    /// All words have this meaning.
    All(Use),
    /// The first word has a different meaning from the rest, unless one of these options replaces
    /// it.
    First(Use, &'static [&'static str], Use),
    /// The first word is a script, and the others are its arguments.
    Script,
    /// There are no options: every word is text.
    OnlyText,
}

/// A program whose whole command line can be understood.
struct ProgramRow {
    names: &'static [&'static str],
    /// Letters of options without a value. They may be combined, as in `-eu`.
    letters: &'static str,
    /// Other options without a value.
    options: &'static [&'static str],
    /// Options with values. If the name ends in `=`, the value follows in the same word.
    valued: &'static [(&'static str, &'static [Use])],
    operands: Operands,
}

const SHELL_OPTIONS: &[&str] = &[
    "errexit",
    "noclobber",
    "noglob",
    "nounset",
    "pipefail",
    "posix",
    "verbose",
    "xtrace",
];

/// The programs that load nothing except what this table declares.
const PROGRAMS: &[ProgramRow] = &[
    ProgramRow {
        names: &["sh", "bash", "dash", "ksh", "zsh"],
        letters: "Cefnuvx",
        options: &["+e", "+u", "+x", "--norc", "--noprofile", "--posix"],
        valued: &[("-o", &[Use::OneOf(SHELL_OPTIONS)])],
        operands: Operands::Script,
    },
    ProgramRow {
        names: &["python"],
        letters: "BEIOPRSbdqsuvx",
        options: &[],
        valued: &[],
        operands: Operands::Script,
    },
    ProgramRow {
        names: &["node"],
        letters: "",
        options: &[
            "--enable-source-maps",
            "--experimental-strip-types",
            "--no-deprecation",
            "--no-warnings",
            "--trace-uncaught",
            "--trace-warnings",
            "--use-strict",
        ],
        valued: &[
            ("--max-old-space-size=", &[Use::Text]),
            ("--stack-trace-limit=", &[Use::Text]),
            ("--unhandled-rejections=", &[Use::Text]),
        ],
        operands: Operands::Script,
    },
    ProgramRow {
        names: &["ruby"],
        letters: "w",
        options: &["--disable-gems", "--disable=gems", "-W0", "-W1", "-W2"],
        valued: &[("-I", &[Use::Folder])],
        operands: Operands::Script,
    },
    ProgramRow {
        names: &["perl"],
        letters: "TWXtw",
        options: &[],
        valued: &[("-I", &[Use::Folder])],
        operands: Operands::Script,
    },
    ProgramRow {
        names: &["jq"],
        letters: "CMRSacejnrs",
        options: &[
            "--ascii-output",
            "--color-output",
            "--compact-output",
            "--exit-status",
            "--join-output",
            "--monochrome-output",
            "--null-input",
            "--raw-input",
            "--raw-output",
            "--slurp",
            "--sort-keys",
            "--tab",
        ],
        valued: &[
            ("-f", &[Use::JqFile]),
            ("--from-file", &[Use::JqFile]),
            ("-L", &[Use::Folder]),
            ("--indent", &[Use::Text]),
            ("--arg", &[Use::Text, Use::Text]),
            ("--argjson", &[Use::Text, Use::Text]),
            ("--slurpfile", &[Use::Text, Use::Input]),
            ("--rawfile", &[Use::Text, Use::Input]),
        ],
        // Before 1.8, `jq` takes its code from the first of these files when it has `-f`.
        operands: Operands::First(Use::JqCode, &["-f", "--from-file"], Use::JqFile),
    },
    ProgramRow {
        names: &["grep", "egrep", "fgrep"],
        letters: "0123456789EFGHLPachilnoqsvwxz",
        options: &[
            "--count",
            "--extended-regexp",
            "--fixed-strings",
            "--ignore-case",
            "--invert-match",
            "--line-regexp",
            "--no-messages",
            "--quiet",
            "--silent",
            "--word-regexp",
        ],
        valued: &[
            ("-A", &[Use::Text]),
            ("-B", &[Use::Text]),
            ("-C", &[Use::Text]),
            ("-m", &[Use::Text]),
            ("-e", &[Use::Text]),
            ("-f", &[Use::Input]),
            ("--max-count", &[Use::Text]),
            ("--regexp", &[Use::Text]),
            ("--file", &[Use::Input]),
        ],
        operands: Operands::First(Use::Text, &["-e", "-f", "--regexp", "--file"], Use::Input),
    },
    ProgramRow {
        names: &["cat"],
        letters: "AETbenstuv",
        options: &[],
        valued: &[],
        operands: Operands::All(Use::Input),
    },
    ProgramRow {
        names: &["head", "tail"],
        letters: "0123456789qvz",
        options: &["--quiet", "--silent", "--verbose"],
        valued: &[
            ("-n", &[Use::Text]),
            ("-c", &[Use::Text]),
            ("--lines", &[Use::Text]),
            ("--bytes", &[Use::Text]),
        ],
        operands: Operands::All(Use::Input),
    },
    ProgramRow {
        names: &["cut"],
        letters: "nsz",
        options: &["--complement", "--only-delimited"],
        valued: &[
            ("-b", &[Use::Text]),
            ("-c", &[Use::Text]),
            ("-d", &[Use::Text]),
            ("-f", &[Use::Text]),
        ],
        operands: Operands::All(Use::Input),
    },
    ProgramRow {
        names: &["sort"],
        letters: "CMVbcdfghinrsuz",
        options: &["--numeric-sort", "--reverse", "--unique"],
        valued: &[("-k", &[Use::Text]), ("-t", &[Use::Text])],
        operands: Operands::All(Use::Input),
    },
    ProgramRow {
        names: &["wc"],
        letters: "Lclmw",
        options: &["--bytes", "--chars", "--lines", "--words"],
        valued: &[],
        operands: Operands::All(Use::Input),
    },
    ProgramRow {
        names: &["tr"],
        letters: "Ccdst",
        options: &["--complement", "--delete", "--squeeze-repeats"],
        valued: &[],
        operands: Operands::All(Use::Text),
    },
    ProgramRow {
        names: &["date"],
        letters: "Ru",
        options: &["--utc", "-Iseconds", "-Idate"],
        valued: &[("-d", &[Use::Text]), ("--date", &[Use::Text])],
        operands: Operands::All(Use::Text),
    },
    ProgramRow {
        names: &["tee"],
        letters: "ai",
        options: &["--append"],
        valued: &[],
        operands: Operands::All(Use::Written),
    },
    ProgramRow {
        names: &["touch"],
        letters: "acm",
        options: &["--no-create"],
        valued: &[("-d", &[Use::Text])],
        operands: Operands::All(Use::Written),
    },
    ProgramRow {
        names: &["mkdir"],
        letters: "pv",
        options: &["--parents"],
        valued: &[("-m", &[Use::Text])],
        operands: Operands::All(Use::Written),
    },
    ProgramRow {
        names: &["rm"],
        letters: "Rdfrv",
        options: &["--force", "--recursive"],
        valued: &[],
        operands: Operands::All(Use::Written),
    },
    ProgramRow {
        names: &["echo", "exit", "false", "printf", "true"],
        letters: "",
        options: &[],
        valued: &[],
        operands: Operands::OnlyText,
    },
];

/// A part of a word with its meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) word: usize,
    /// Its byte range in the word, for example after `--option=`.
    pub(crate) range: Range<usize>,
    pub(crate) used: Use,
}

impl Part {
    /// Returns the text of the part.
    pub(crate) fn text<'a>(&self, words: &'a [String]) -> &'a str {
        let word = words.get(self.word).map_or("", String::as_str);
        word.get(self.range.clone()).unwrap_or_default()
    }
}

/// Reads all words of a command. The error says why the command is not plain.
pub(crate) fn read(words: &[String], roots: ProjectRoots<'_>) -> Result<Vec<Part>, String> {
    let (program, arguments) = words.split_first().ok_or("the command is empty")?;
    if let Some(word) = words.iter().find(|word| is_of_system(word)) {
        return Err(format!("`{word}` can refer to any file"));
    }
    let is_file = |word: &str| within(word, roots).is_some_and(|path| path.is_file());
    if program.contains('/') && is_file(program) {
        let mut parts = vec![whole(0, program, Use::Script)];
        parts.extend(script_arguments(words, 1));
        return Ok(parts);
    }
    let unknown = || format!("Tenterhook does not know what `{program}` runs and reads");
    let row = row(program_name(program)).ok_or_else(unknown)?;
    let reader = Reader {
        row,
        words,
        at: 1,
        parts: Vec::new(),
        seen: Vec::new(),
    };
    let parts = reader.read()?;
    let is_interpreter = matches!(row.operands, Operands::Script);
    let script = parts.iter().find(|part| part.used == Use::Script);
    let script = script.and_then(|part| words.get(part.word));
    match script {
        Some(script) if !is_file(script) => Err(format!(
            "the script `{script}` is not a file of the project"
        )),
        None if is_interpreter => {
            let given = arguments.join(" ");
            Err(format!("`{program} {given}` does not name a script"))
        }
        Some(_) | None => Ok(parts),
    }
}

/// Checks the options of an interpreter on a `#!` line. The error names the first one that may load
/// something. Returns `None` if the interpreter is not in the table.
pub(crate) fn check_options(interpreter: &str, words: &[&str]) -> Option<Result<(), String>> {
    let row = row(interpreter).filter(|row| matches!(row.operands, Operands::Script))?;
    let words = || words.iter().map(|word| (*word).to_owned());
    let all: Vec<String> = std::iter::once(interpreter.to_owned())
        .chain(words())
        .collect();
    let reader = Reader {
        row,
        words: &all,
        at: 1,
        parts: Vec::new(),
        seen: Vec::new(),
    };
    let is_option = |part: &Part| matches!(part.used, Use::Text | Use::OneOf(_));
    Some(match reader.read() {
        Ok(parts) if parts.iter().all(is_option) => Ok(()),
        Ok(_) => Err("expected options only, not a file".to_owned()),
        Err(problem) => Err(problem),
    })
}

/// Returns the name of a program without folder and version, for example `python` for
/// `/usr/bin/python3.12`.
pub(crate) fn program_name(program: &str) -> &str {
    let name = Path::new(program).file_name().and_then(OsStr::to_str);
    let name = name.unwrap_or(program);
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if family.is_empty() { name } else { family }
}

fn row(name: &str) -> Option<&'static ProgramRow> {
    PROGRAMS.iter().find(|row| row.names.contains(&name))
}

/// Returns whether a path goes through system folders in which a name can refer to any file.
pub(crate) fn is_of_system(word: &str) -> bool {
    word.contains("/proc/") || word.contains("/dev/fd")
}

fn whole(word: usize, text: &str, used: Use) -> Part {
    Part {
        word,
        range: 0..text.len(),
        used,
    }
}

/// Returns the words from `start` on as arguments of a script. For `--option=value`, returns the value.
fn script_arguments(words: &[String], start: usize) -> impl Iterator<Item = Part> {
    words.iter().enumerate().skip(start).map(|(index, word)| {
        let value = word.split_once('=').filter(|_| word.starts_with('-'));
        let begin = value.map_or(0, |(option, _)| option.len() + 1);
        Part {
            word: index,
            range: begin..word.len(),
            used: Use::Argument,
        }
    })
}

struct Reader<'a> {
    row: &'static ProgramRow,
    words: &'a [String],
    at: usize,
    parts: Vec<Part>,
    /// The options with values that were read so far.
    seen: Vec<&'static str>,
}

impl<'a> Reader<'a> {
    fn read(mut self) -> Result<Vec<Part>, String> {
        let mut operands = Vec::new();
        let mut options_ended = matches!(self.row.operands, Operands::OnlyText);
        while let Some(word) = self.words.get(self.at) {
            if !options_ended && word == "--" {
                options_ended = true;
                self.at += 1;
            } else if !options_ended && self.is_option(word) {
                self.option(word)?;
            } else {
                operands.push(self.at);
                self.at += 1;
                if matches!(self.row.operands, Operands::Script) {
                    break;
                }
            }
        }
        for (place, index) in operands.into_iter().enumerate() {
            let used = self.used(place);
            let text = self.words.get(index).map_or("", String::as_str);
            if text != "-" {
                self.parts.push(whole(index, text, used));
            }
        }
        if matches!(self.row.operands, Operands::Script) {
            self.parts.extend(script_arguments(self.words, self.at));
        }
        self.check_values()?;
        Ok(self.parts)
    }

    fn is_option(&self, word: &str) -> bool {
        (word.starts_with('-') && word != "-") || self.row.options.contains(&word)
    }

    /// Returns the meaning of the operand at an index.
    fn used(&self, place: usize) -> Use {
        match self.row.operands {
            Operands::All(used) => used,
            Operands::First(first, instead, rest) => {
                let is_first = place == 0 && !self.seen.iter().any(|seen| instead.contains(seen));
                if is_first { first } else { rest }
            }
            Operands::Script => Use::Script,
            Operands::OnlyText => Use::Text,
        }
    }

    /// Reads one option, or several letters in one word, with its values.
    fn option(&mut self, word: &'a str) -> Result<(), String> {
        if self.row.options.contains(&word) {
            self.at += 1;
            return Ok(());
        }
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let has_value = word.len() > name.len();
        let named =
            |known: &str| known == name || (has_value && known.strip_suffix('=') == Some(name));
        if let Some((known, uses)) = self.row.valued.iter().find(|(known, _)| named(known))
            && word.starts_with("--")
        {
            self.seen.push(known);
            let attached = has_value.then(|| word.len() - value.len());
            return self.values(uses, attached);
        }
        if word.starts_with("--") {
            return Err(self.unknown(word));
        }
        for (place, letter) in word.char_indices().skip(1) {
            if self.row.letters.contains(letter) {
                continue;
            }
            let is_letter = |known: &str| {
                known
                    .strip_prefix('-')
                    .is_some_and(|rest| rest.chars().eq([letter]))
            };
            let Some((known, uses)) = self.row.valued.iter().find(|(known, _)| is_letter(known))
            else {
                return Err(self.unknown(word));
            };
            self.seen.push(known);
            let begin = place + letter.len_utf8();
            return self.values(uses, (begin < word.len()).then_some(begin));
        }
        self.at += 1;
        Ok(())
    }

    /// Reads the values of an option. The first one may be in the same word, from the byte `attached`.
    fn values(&mut self, uses: &[Use], attached: Option<usize>) -> Result<(), String> {
        let option = self.words.get(self.at).cloned().unwrap_or_default();
        let mut uses = uses.iter();
        if let (Some(begin), Some(used)) = (attached, uses.as_slice().first()) {
            uses.next();
            self.parts.push(Part {
                word: self.at,
                range: begin..option.len(),
                used: *used,
            });
        }
        self.at += 1;
        for used in uses {
            // Another version of the program could read such a value as an option.
            let value = self
                .words
                .get(self.at)
                .filter(|value| !value.starts_with('-'));
            let value = value.ok_or_else(|| format!("`{option}` has no value"))?;
            self.parts.push(whole(self.at, value, *used));
            self.at += 1;
        }
        Ok(())
    }

    fn check_values(&self) -> Result<(), String> {
        for part in &self.parts {
            let text = part.text(self.words);
            let is_known = match part.used {
                Use::OneOf(known) => known.contains(&text),
                Use::JqCode => !imports(text, self.seen.contains(&"-L")),
                Use::Text
                | Use::Input
                | Use::JqFile
                | Use::Script
                | Use::Folder
                | Use::Written
                | Use::Argument => true,
            };
            if !is_known {
                return Err(self.unknown(text));
            }
        }
        Ok(())
    }

    fn unknown(&self, word: &str) -> String {
        let program = self.words.first().map_or("", String::as_str);
        format!("`{word}` may make `{program}` load other files")
    }
}

/// Returns whether `jq` code may load files that the approval does not cover. With `-L`, imports come
/// from folders that it covers, unless the code itself sets a `search` path.
pub(crate) fn imports(code: &str, has_folder: bool) -> bool {
    let mut words = code.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let found = if has_folder {
        &["search"][..]
    } else {
        &["import", "include"]
    };
    words.any(|word| found.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(used: Use) -> &'static str {
        match used {
            Use::Text => "TEXT",
            Use::OneOf(_) => "NAME",
            Use::Input | Use::JqFile => "FILE",
            Use::JqCode => "FILTER",
            Use::Script => "SCRIPT",
            Use::Folder => "FOLDER",
            Use::Written => "WRITTEN",
            Use::Argument => "ARGUMENT",
        }
    }

    /// Writes a row as it is in the documentation.
    fn described(row: &ProgramRow) -> String {
        let mut words: Vec<String> = Vec::new();
        if !row.letters.is_empty() {
            words.push(format!("-{}", row.letters));
        }
        words.extend(row.options.iter().map(ToString::to_string));
        for (option, uses) in row.valued {
            let values: Vec<&str> = uses.iter().map(|used| named(*used)).collect();
            let between = if option.ends_with('=') { "" } else { " " };
            words.push(format!("{option}{between}{}", values.join(" ")));
        }
        words.push(match row.operands {
            Operands::All(used) => format!("{}…", named(used)),
            Operands::First(first, _, rest) => format!("{} {}…", named(first), named(rest)),
            Operands::Script => "SCRIPT ARGUMENT…".to_owned(),
            Operands::OnlyText => "TEXT…".to_owned(),
        });
        let mut text = row.names.join(", ");
        let mut width = usize::MAX;
        for word in words {
            if width.saturating_add(word.len()) > 90 {
                text.push_str("\n   ");
                width = 3;
            }
            width += word.len() + 1;
            text.push(' ');
            text.push_str(&word);
        }
        text
    }

    #[test]
    fn the_documentation_has_the_table() {
        let docs = include_str!("../../../docs/reference/approvals.md");
        let rows: Vec<String> = PROGRAMS.iter().map(described).collect();
        let table = rows.join("\n");
        assert!(
            docs.contains(&table),
            "docs/reference/approvals.md does not have this table:\n{table}"
        );
    }
}
