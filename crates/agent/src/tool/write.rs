//! `write_file`: makes a file, or replaces what is in it.

use std::fs;
use std::path::Path;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tenterhook_protocol::{JsonObject, ToolResult};

use super::{InvalidInput, Tool, ToolContext, ToolFailure, blocking, read_input, schema_of};
use crate::protection::WriteGuard;

const NAME: &str = "write_file";

/// Writes a whole file and makes the folders it needs.
#[derive(Debug, Clone, Copy)]
pub struct WriteFile;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file; a relative path starts from the session's directory.
    path: String,
    /// The whole new content.
    content: String,
}

impl Tool for WriteFile {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> String {
        "Writes a text file. What was in it is replaced; folders that are missing are made."
            .to_owned()
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn category(&self) -> &'static str {
        "filesystem"
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn check(&self, input: &JsonObject) -> Result<(), InvalidInput> {
        read_input::<Input>(NAME, input).map(drop)
    }

    fn changed_file<'a>(&self, input: &'a JsonObject) -> Option<&'a str> {
        input.get("path")?.as_str()
    }

    fn run<'a>(
        &'a self,
        input: JsonObject,
        context: ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolFailure>> {
        Box::pin(async move {
            let input: Input = read_input(NAME, &input)?;
            let path = context.path(&input.path);
            let bytes = input.content.len();
            let folders = context.folders(NAME);
            let guard = context.write_guard;
            blocking(move || {
                folders.check_change(&path)?;
                write(&path, &input.content, &guard)
            })
            .await?;
            Ok(ToolResult::text(format!(
                "Wrote {bytes} bytes to `{}`.",
                input.path
            )))
        })
    }
}

/// Writes a file that may be changed.
pub(super) fn write(path: &Path, content: &str, guard: &WriteGuard) -> Result<(), ToolFailure> {
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
    use crate::tool::testing::{make_fifo, run};

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
            assert!(error.ends_with("it is no file"), "{error}");
        }
    }
}
