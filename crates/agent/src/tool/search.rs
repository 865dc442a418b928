//! `search`: finds lines by a regular expression.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tenterhook_process::cut;
use tenterhook_protocol::{JsonObject, ToolResult};
use tokio_util::sync::CancellationToken;

use super::excerpt::excerpt;
use super::key_block::KeyBlock;
use super::{
    InvalidInput, Tool, ToolContext, ToolFailure, blocking, read_input, regular_file, schema_of,
};
use crate::glob::Glob;
use crate::restriction::Folders;

const NAME: &str = "search";

/// The most lines that are shown.
const MOST_MATCHES: usize = 200;

/// Files larger than this are passed over.
const LARGEST: u64 = 2 * 1024 * 1024;

/// The longest part of a line that is shown, in characters.
const LONGEST_LINE: usize = 300;

/// Folders that hold nothing a person wrote.
const PASSED_OVER: [&str; 3] = [".git", "node_modules", "target"];

/// Searches the text files below a folder.
#[derive(Debug, Clone, Copy)]
pub struct Search;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The regular expression that a line must match.
    pattern: String,
    /// The file or folder; a relative path starts from the session's directory, which is the default.
    path: Option<String>,
    /// Only files whose name matches, such as `*.rs`.
    glob: Option<String>,
}

impl Input {
    fn regex(&self) -> Result<Regex, InvalidInput> {
        Regex::new(&self.pattern).map_err(|error| InvalidInput {
            tool: NAME.to_owned(),
            problem: format!("`pattern` is no regular expression: {error}"),
        })
    }
}

impl Tool for Search {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> String {
        "Finds lines that match a regular expression in the text files below a folder. Folders named .git, node_modules and target are passed over."
            .to_owned()
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn category(&self) -> &'static str {
        "filesystem"
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn check(&self, input: &JsonObject) -> Result<(), InvalidInput> {
        read_input::<Input>(NAME, input)?.regex().map(drop)
    }

    fn run<'a>(
        &'a self,
        input: JsonObject,
        context: ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolFailure>> {
        Box::pin(async move {
            let input: Input = read_input(NAME, &input)?;
            let hunt = Hunt {
                regex: input.regex()?,
                glob: input.glob.as_deref().map(Glob::new),
                root: context.path(input.path.as_deref().unwrap_or(".")),
                folders: context.folders(NAME),
                cancel: context.cancel.clone(),
                found: Vec::new(),
            };
            let text = blocking(move || hunt.run()).await?;
            Ok(ToolResult::text(excerpt(text)))
        })
    }
}

struct Hunt {
    regex: Regex,
    glob: Option<Glob>,
    root: PathBuf,
    folders: Folders,
    cancel: CancellationToken,
    found: Vec<String>,
}

impl Hunt {
    fn run(mut self) -> Result<String, ToolFailure> {
        let root = self.root.clone();
        self.folders.check(&root)?;
        let kind = fs::metadata(&root).map_err(|error| ToolFailure::io("search", &root, &error))?;
        if kind.is_dir() {
            self.folder(&root);
        } else if regular_file("search", &root)?.len() > LARGEST {
            return Err(ToolFailure::permanent(format!(
                "cannot search `{}`: it is larger than {LARGEST} bytes",
                root.display()
            )));
        } else {
            self.file(&root);
        }
        if self.found.is_empty() {
            return Ok("[no match]".to_owned());
        }
        if self.is_full() {
            self.found.push(format!(
                "[more than {MOST_MATCHES} lines match; the rest is not shown]"
            ));
        }
        Ok(self.found.join("\n"))
    }

    fn is_full(&self) -> bool {
        self.found.len() >= MOST_MATCHES || self.cancel.is_cancelled()
    }

    /// Looks through a folder. What cannot be read is passed over, and links are not followed, so that
    /// a circle of links does no harm.
    fn folder(&mut self, folder: &Path) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort_unstable();
        for path in paths {
            if self.is_full() {
                return;
            }
            if self.folders.check(&path).is_err() {
                continue;
            }
            let Ok(kind) = fs::symlink_metadata(&path) else {
                continue;
            };
            if kind.is_dir() {
                let is_passed_over = path
                    .file_name()
                    .and_then(OsStr::to_str)
                    .is_some_and(|name| PASSED_OVER.contains(&name));
                if !is_passed_over {
                    self.folder(&path);
                }
            } else if kind.is_file() && kind.len() <= LARGEST {
                self.file(&path);
            }
        }
    }

    fn file(&mut self, path: &Path) {
        let name = path
            .file_name()
            .map(OsStr::to_string_lossy)
            .unwrap_or_default();
        if self.glob.as_ref().is_some_and(|glob| !glob.matches(&name)) {
            return;
        }
        let Ok(text) = read(path) else {
            return;
        };
        let shown = path
            .strip_prefix(&self.root)
            .ok()
            .filter(|path| !path.as_os_str().is_empty());
        let shown = shown.unwrap_or(path).display().to_string();
        let mut keys = KeyBlock::default();
        // The first line of the key of which a line was shown.
        let mut shown_key = None;
        for (position, line) in text.lines().enumerate() {
            if self.is_full() {
                return;
            }
            keys.see(line);
            let number = position + 1;
            let key = keys.open().filter(|open| open.line < number);
            let is_end = key.is_none() && shown_key.take().is_some();
            let is_match = self.regex.is_match(line);
            if let Some(open) = key.filter(|open| is_match && shown_key != Some(open.line)) {
                let (number, mark) = (open.line, &open.mark);
                self.found.push(format!("{shown}:{number}: {mark}"));
                shown_key = Some(number);
            }
            if is_match || is_end {
                let line = cut::head(line, LONGEST_LINE);
                self.found.push(format!("{shown}:{number}: {line}"));
            }
        }
    }
}

/// Reads a text. A file may grow, or claim to be empty as those of the kernel do, so the length that it
/// had is no bound.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LARGEST).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tempfile::tempdir;

    use super::*;
    use crate::tool::testing::{make_fifo, run};

    #[tokio::test]
    async fn matching_lines_are_shown_with_file_and_number() {
        let dir = tempdir().unwrap();
        fs::create_dir_all(dir.path().join("src/inner")).unwrap();
        fs::create_dir(dir.path().join(".git")).unwrap();
        fs::write(dir.path().join("src/a.rs"), "fn one() {}\nfn two() {}\n").unwrap();
        fs::write(dir.path().join("src/inner/b.txt"), "fn three\n").unwrap();
        fs::write(dir.path().join(".git/c"), "fn four\n").unwrap();
        fs::write(dir.path().join("binary"), [0xff, b'f', b'n']).unwrap();
        for (input, expected) in [
            (
                json!({"pattern": "fn t"}),
                "src/a.rs:2: fn two() {}\nsrc/inner/b.txt:1: fn three",
            ),
            (
                json!({"pattern": "fn", "glob": "*.txt"}),
                "src/inner/b.txt:1: fn three",
            ),
            (
                json!({"pattern": "three", "path": "src/inner"}),
                "b.txt:1: fn three",
            ),
            (json!({"pattern": "five"}), "[no match]"),
        ] {
            let result = run(&Search, dir.path(), input.clone()).await.unwrap();
            assert_eq!(result.joined_text(), expected, "{input}");
        }
        let error = run(&Search, dir.path(), json!({"pattern": "("}))
            .await
            .unwrap_err();
        assert!(error.contains("no regular expression"), "{error}");
    }

    #[tokio::test]
    async fn lines_of_a_private_key_are_shown_between_its_first_and_last_line() {
        let dir = tempdir().unwrap();
        let text =
            "MII0\n-----BEGIN PRIVATE KEY-----\nMII1\nMII2\nxyz\n-----END PRIVATE KEY-----\nMII3\n";
        fs::write(dir.path().join("key"), text).unwrap();
        let result = run(&Search, dir.path(), json!({"pattern": "MII"}))
            .await
            .unwrap();
        let expected = [
            "key:1: MII0",
            "key:2: -----BEGIN PRIVATE KEY-----",
            "key:3: MII1",
            "key:4: MII2",
            "key:6: -----END PRIVATE KEY-----",
            "key:7: MII3",
        ];
        assert_eq!(result.joined_text(), expected.join("\n"));
    }

    #[tokio::test]
    async fn the_number_of_lines_is_bounded() {
        let dir = tempdir().unwrap();
        fs::write(dir.path().join("a"), "x\n".repeat(500)).unwrap();
        let text = run(&Search, dir.path(), json!({"pattern": "x"}))
            .await
            .unwrap()
            .joined_text();
        assert_eq!(text.lines().count(), MOST_MATCHES + 1);
        assert!(text.ends_with("the rest is not shown]"));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn pipes_and_devices_are_refused_and_not_waited_for() {
        let dir = tempdir().unwrap();
        make_fifo(dir.path());
        for path in ["pipe", "/dev/zero"] {
            let error = run(&Search, dir.path(), json!({"pattern": "x", "path": path}))
                .await
                .unwrap_err();
            assert!(error.ends_with("it is no file"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_file_that_is_too_large_is_named() {
        let dir = tempdir().unwrap();
        let large = File::create(dir.path().join("large")).unwrap();
        large.set_len(LARGEST + 1).unwrap();
        let input = |path: &str| json!({"pattern": "x", "path": path});
        let error = run(&Search, dir.path(), input("large")).await.unwrap_err();
        assert!(
            error.ends_with("it is larger than 2097152 bytes"),
            "{error}"
        );
        let folder = run(&Search, dir.path(), input(".")).await.unwrap();
        assert_eq!(folder.joined_text(), "[no match]");
    }
}
