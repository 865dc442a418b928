//! `write_file`: creates a file, or replaces its content.

use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use tenterhook_protocol::ToolResult;

use crate::failure::ToolFailure;
use crate::file_access::blocking;
use crate::protected_file::WriteGuard;
use crate::tool::ToolContext;
use crate::typed_tool::TypedTool;

const NAME: &str = "write_file";

/// Writes a whole file, and creates missing folders.
#[derive(Debug, Clone, Copy)]
pub struct WriteFile;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteFileInput {
    /// The file; a relative path starts from the session's directory.
    path: String,
    /// The whole new content.
    content: String,
}

impl TypedTool for WriteFile {
    type Input = WriteFileInput;

    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> String {
        "Writes a text file. Existing content is replaced; missing folders are created.".to_owned()
    }

    fn category(&self) -> &'static str {
        "filesystem"
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn changed_file_argument(&self) -> Option<&'static str> {
        Some("path")
    }

    async fn run(
        &self,
        input: WriteFileInput,
        context: ToolContext<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        let path = context.path(&input.path);
        let size = match input.content.len() {
            1 => "1 byte".to_owned(),
            bytes => format!("{bytes} bytes"),
        };
        let folders = context.folders(NAME);
        let guard = context.write_guard;
        blocking(move || {
            folders.check_change(&path)?;
            write(&path, &input.content, &guard)
        })
        .await?;
        Ok(ToolResult::text(format!(
            "Wrote {size} to `{}`.",
            input.path
        )))
    }
}

/// Writes a file, unless it is protected.
pub(crate) fn write(path: &Path, content: &str, guard: &WriteGuard) -> Result<(), ToolFailure> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(ToolFailure::no_file("write", path));
    }
    let written = guard.write(path, content.as_bytes());
    written.map_err(|error| ToolFailure::io("write", path, &error))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tempfile::tempdir;

    use super::*;
    use crate::testing::{make_fifo, run};

    #[tokio::test]
    async fn a_file_is_made_with_its_folders_and_replaced() {
        let dir = tempdir().unwrap();
        let file = dir.path().join("a/b/c.txt");
        for content in ["first", "2nd"] {
            let input = json!({"path": "a/b/c.txt", "content": content});
            let result = run(&WriteFile, dir.path(), input).await.unwrap();
            assert_eq!(
                result.joined_text(),
                format!("Wrote {} bytes to `a/b/c.txt`.", content.len())
            );
            assert_eq!(fs::read_to_string(&file).unwrap(), content);
        }
        let error = run(
            &WriteFile,
            dir.path(),
            json!({"path": "a/b", "content": ""}),
        )
        .await
        .unwrap_err();
        assert!(error.starts_with("cannot write"), "{error}");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn pipes_and_devices_are_refused_and_not_waited_for() {
        let dir = tempdir().unwrap();
        make_fifo(dir.path());
        for path in ["pipe", "/dev/zero"] {
            let error = run(
                &WriteFile,
                dir.path(),
                json!({"path": path, "content": "x"}),
            )
            .await
            .unwrap_err();
            assert!(error.ends_with("it is not a regular file"), "{error}");
        }
    }
}
