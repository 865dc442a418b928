//! `search`: finds lines by a regular expression.

use std::error::Error;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use tenterhook_protocol::ToolResult;
use tenterhook_protocol::excerpt;
use tokio_util::sync::CancellationToken;

use crate::excerpt::excerpt;
use crate::failure::ToolFailure;
use crate::file_access::{blocking, regular_file};
use crate::glob::Glob;
use crate::key_block::KeyBlock;
use crate::restriction::AllowedFolders;
use crate::tool::ToolContext;
use crate::typed_tool::TypedTool;

const NAME: &str = "search";

/// The maximum number of lines that are shown.
const MAX_MATCHES: usize = 200;

/// The largest file that is searched, in bytes. Larger files are skipped.
const MAX_FILE_BYTES: u64 = 2 * 1024 * 1024;

/// The longest part of a line that is shown, in characters.
const MAX_LINE: usize = 300;

/// Folders with generated content, which are skipped.
const SKIPPED_FOLDERS: [&str; 3] = [".git", "node_modules", "target"];

/// Searches the text files below a folder.
#[derive(Debug, Clone, Copy)]
pub struct Search;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchInput {
    /// The regular expression that a line must match.
    pattern: String,
    /// The file or folder; a relative path starts from the session's directory, which is the default.
    path: Option<String>,
    /// Only files whose name matches, such as `*.rs`.
    glob: Option<String>,
}

impl SearchInput {
    fn regex(&self) -> Result<Regex, String> {
        Regex::new(&self.pattern)
            .map_err(|error| format!("`pattern` is not a valid regular expression: {error}"))
    }
}

impl TypedTool for Search {
    type Input = SearchInput;

    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> String {
        "Finds lines that match a regular expression in the text files below a folder. Folders named .git, node_modules and target are skipped."
            .to_owned()
    }

    fn category(&self) -> &'static str {
        "filesystem"
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn check_input(&self, input: &SearchInput) -> Result<(), Box<dyn Error + Send + Sync>> {
        input.regex()?;
        Ok(())
    }

    async fn run(
        &self,
        input: SearchInput,
        context: ToolContext<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        let search = FileSearch {
            regex: input.regex().map_err(ToolFailure::permanent)?,
            glob: input.glob.as_deref().map(Glob::new),
            root: context.path(input.path.as_deref().unwrap_or(".")),
            folders: context.folders(NAME),
            cancel: context.cancel.clone(),
            found: Vec::new(),
        };
        let text = blocking(move || search.run()).await?;
        Ok(ToolResult::text(excerpt(text)))
    }
}

struct FileSearch {
    regex: Regex,
    glob: Option<Glob>,
    root: PathBuf,
    folders: AllowedFolders,
    cancel: CancellationToken,
    found: Vec<String>,
}

impl FileSearch {
    fn run(mut self) -> Result<String, ToolFailure> {
        let root = self.root.clone();
        self.folders.check(&root)?;
        let kind = fs::metadata(&root).map_err(|error| ToolFailure::io("search", &root, &error))?;
        if kind.is_dir() {
            self.folder(&root);
        } else if regular_file("search", &root)?.len() > MAX_FILE_BYTES {
            return Err(ToolFailure::permanent(format!(
                "cannot search `{}`: it is larger than {MAX_FILE_BYTES} bytes",
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
                "[more than {MAX_MATCHES} lines match; the rest is not shown]"
            ));
        }
        Ok(self.found.join("\n"))
    }

    fn is_full(&self) -> bool {
        self.found.len() >= MAX_MATCHES || self.cancel.is_cancelled()
    }

    /// Searches a folder. Unreadable files are skipped. Links are not followed, so a cycle of links does no harm.
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
                let is_skipped = path
                    .file_name()
                    .and_then(OsStr::to_str)
                    .is_some_and(|name| SKIPPED_FOLDERS.contains(&name));
                if !is_skipped {
                    self.folder(&path);
                }
            } else if kind.is_file() && kind.len() <= MAX_FILE_BYTES {
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
        // The first line of the private key from which a line was already shown.
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
                let line = excerpt::head(line, MAX_LINE);
                self.found.push(format!("{shown}:{number}: {line}"));
            }
        }
    }
}

/// Reads text up to the size limit. The limit is checked here again, because a file may grow, and kernel files
/// report a size of 0.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?
        .take(MAX_FILE_BYTES)
        .read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tempfile::tempdir;

    use super::*;
    use crate::testing::{make_fifo, run};

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
        assert!(error.contains("not a valid regular expression"), "{error}");
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
        assert_eq!(text.lines().count(), MAX_MATCHES + 1);
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
            assert!(error.ends_with("it is not a regular file"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_file_that_is_too_large_is_named() {
        let dir = tempdir().unwrap();
        let large = File::create(dir.path().join("large")).unwrap();
        large.set_len(MAX_FILE_BYTES + 1).unwrap();
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
