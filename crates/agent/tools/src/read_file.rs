//! `read_file`: shows the text of a file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use tenterhook_protocol::ToolResult;

use crate::excerpt::excerpt;
use crate::failure::ToolFailure;
use crate::file_access::{blocking, regular_file};
use crate::key_block::{KeyBlock, MAX_LINE_BYTES};
use crate::tool::ToolContext;
use crate::typed_tool::TypedTool;

/// The tool's name.
pub const NAME: &str = "read_file";

/// The maximum number of bytes of a file that are read.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// Reads a text file, whole or some of its lines.
#[derive(Debug, Clone, Copy)]
pub struct ReadFile;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFileInput {
    /// The file; a relative path starts from the session's directory.
    path: String,
    /// The first line to show, from 1. The default is the first of the file.
    offset: Option<u64>,
    /// How many lines to show. The default is all.
    limit: Option<u64>,
}

impl TypedTool for ReadFile {
    type Input = ReadFileInput;

    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> String {
        "Reads a text file, whole or `limit` lines from line `offset` on.".to_owned()
    }

    fn category(&self) -> &'static str {
        "filesystem"
    }

    fn is_read_only(&self) -> bool {
        true
    }

    async fn run(
        &self,
        input: ReadFileInput,
        context: ToolContext<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        let path = context.path(&input.path);
        let folders = context.folders(NAME);
        let text = blocking(move || {
            folders.check(&path)?;
            read(&path, &input)
        })
        .await?;
        Ok(ToolResult::text(excerpt(text)))
    }
}

fn read(path: &Path, input: &ReadFileInput) -> Result<String, ToolFailure> {
    let failure = |error: io::Error| ToolFailure::io("read", path, &error);
    regular_file("read", path)?;
    let mut reader = BufReader::new(File::open(path).map_err(failure)?);
    let skipped = input.offset.unwrap_or(1).saturating_sub(1);
    let mut keys = KeyBlock::default();
    for _ in 0..skipped {
        if skip_line(&mut reader, &mut keys).map_err(failure)? == 0 {
            return Err(ToolFailure::permanent(format!(
                "`{}` has fewer than {} lines",
                path.display(),
                skipped + 1
            )));
        }
    }
    let mut bytes = Vec::new();
    if let Some(open) = keys.open() {
        bytes.extend(format!("{}\n[... the key continues ...]\n", open.mark).bytes());
    }
    let mut rest = reader.take(MAX_FILE_BYTES);
    match input.limit {
        Some(limit) => {
            for _ in 0..limit {
                if rest.read_until(b'\n', &mut bytes).map_err(failure)? == 0 {
                    break;
                }
            }
        }
        None => {
            rest.read_to_end(&mut bytes).map_err(failure)?;
        }
    }
    String::from_utf8(bytes)
        .map_err(|_| ToolFailure::permanent(format!("`{}` is not UTF-8 text", path.display())))
}

/// Skips a line of any length and returns the length in bytes. Only its beginning is kept and checked.
fn skip_line(reader: &mut impl BufRead, keys: &mut KeyBlock) -> io::Result<usize> {
    let mut line = Vec::new();
    let beginning = reader
        .by_ref()
        .take(MAX_LINE_BYTES as u64)
        .read_until(b'\n', &mut line)?;
    if beginning > 0 && !line.ends_with(b"\n") {
        reader.skip_until(b'\n')?;
    }
    keys.see(&String::from_utf8_lossy(&line));
    Ok(beginning)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tempfile::tempdir;

    use super::*;
    use crate::testing::{make_fifo, run};

    #[tokio::test]
    async fn a_file_is_read_whole_or_by_lines() {
        let dir = tempdir().unwrap();
        std::fs::write(dir.path().join("a.txt"), "one\ntwo\nthree\nfour").unwrap();
        for (input, expected) in [
            (json!({"path": "a.txt"}), "one\ntwo\nthree\nfour"),
            (
                json!({"path": "a.txt", "offset": 2, "limit": 2}),
                "two\nthree\n",
            ),
            (json!({"path": "a.txt", "offset": 4}), "four"),
            (json!({"path": "a.txt", "limit": 1}), "one\n"),
        ] {
            let result = run(&ReadFile, dir.path(), input.clone()).await.unwrap();
            assert_eq!(result.joined_text(), expected, "{input}");
        }
    }

    #[tokio::test]
    async fn lines_from_the_middle_of_a_private_key_are_shown_with_its_first_line() {
        let dir = tempdir().unwrap();
        let key =
            "-----BEGIN PRIVATE KEY-----\none\ntwo\nthree\n-----END PRIVATE KEY-----\nafter\n";
        std::fs::write(dir.path().join("key"), key).unwrap();
        let begin = "-----BEGIN PRIVATE KEY-----\n[... the key continues ...]\n";
        for (offset, expected) in [
            (1, "-----BEGIN PRIVATE KEY-----\n".to_owned()),
            (3, format!("{begin}two\n")),
            (6, "after\n".to_owned()),
        ] {
            let input = json!({"path": "key", "offset": offset, "limit": 1});
            let result = run(&ReadFile, dir.path(), input).await.unwrap();
            assert_eq!(result.joined_text(), expected, "{offset}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_named() {
        let dir = tempdir().unwrap();
        std::fs::write(dir.path().join("binary"), [0xff, 0xfe, 0x00]).unwrap();
        std::fs::write(dir.path().join("short"), "one\n").unwrap();
        for (input, problem) in [
            (json!({"path": "none"}), "cannot read"),
            (json!({"path": "."}), "it is not a regular file"),
            (json!({"path": "binary"}), "is not UTF-8 text"),
            (json!({"path": "short", "offset": 5}), "fewer than 5 lines"),
        ] {
            let error = run(&ReadFile, dir.path(), input).await.unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn pipes_and_devices_are_refused_and_not_waited_for() {
        let dir = tempdir().unwrap();
        make_fifo(dir.path());
        for path in ["pipe", "/dev/zero"] {
            let error = run(&ReadFile, dir.path(), json!({"path": path}))
                .await
                .unwrap_err();
            assert!(error.ends_with("it is not a regular file"), "{error}");
        }
    }
}
