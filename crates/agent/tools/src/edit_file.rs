//! `edit_file`: replaces one passage of a file.

use std::error::Error;
use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use tenterhook_protocol::ToolResult;

use crate::failure::ToolFailure;
use crate::file_access::{blocking, regular_file};
use crate::protected_file::WriteGuard;
use crate::tool::ToolContext;
use crate::typed_tool::TypedTool;
use crate::write_file::write;

const NAME: &str = "edit_file";

/// Replaces a passage that occurs exactly once, or every occurrence on request.
#[derive(Debug, Clone, Copy)]
pub struct EditFile;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditFileInput {
    /// The file; a relative path starts from the session's directory.
    path: String,
    /// The passage as it stands in the file.
    old_text: String,
    /// The text that replaces it.
    new_text: String,
    /// Replaces every occurrence. The default is that there must be exactly one.
    replace_all: Option<bool>,
}

impl TypedTool for EditFile {
    type Input = EditFileInput;

    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> String {
        "Replaces `old_text` with `new_text` in a text file. `old_text` must occur exactly once unless `replace_all` is true."
            .to_owned()
    }

    fn category(&self) -> &'static str {
        "filesystem"
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn check_input(&self, input: &EditFileInput) -> Result<(), Box<dyn Error + Send + Sync>> {
        let problem = if input.old_text.is_empty() {
            "`old_text` is empty"
        } else if input.old_text == input.new_text {
            "`old_text` and `new_text` are the same"
        } else {
            return Ok(());
        };
        Err(problem.into())
    }

    fn changed_file_argument(&self) -> Option<&'static str> {
        Some("path")
    }

    async fn run(
        &self,
        input: EditFileInput,
        context: ToolContext<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        let path = context.path(&input.path);
        let folders = context.folders(NAME);
        let guard = context.write_guard;
        let text = blocking(move || {
            folders.check_change(&path)?;
            edit(&path, &input, &guard)
        })
        .await?;
        Ok(ToolResult::text(text))
    }
}

fn edit(path: &Path, input: &EditFileInput, guard: &WriteGuard) -> Result<String, ToolFailure> {
    regular_file("read", path)?;
    let text = fs::read_to_string(path).map_err(|error| ToolFailure::io("read", path, &error))?;
    let count = text.matches(&input.old_text).count();
    match count {
        0 => {
            return Err(ToolFailure::permanent(format!(
                "`old_text` does not occur in `{}`",
                input.path
            )));
        }
        2.. if input.replace_all != Some(true) => {
            return Err(ToolFailure::permanent(format!(
                "`old_text` occurs {count} times in `{}`; include more of the text around it, or set `replace_all`",
                input.path
            )));
        }
        _ => {}
    }
    let text = text.replace(&input.old_text, &input.new_text);
    write(path, &text, guard)?;
    let passages = if count == 1 { "passage" } else { "passages" };
    Ok(format!("Replaced {count} {passages} in `{}`.", input.path))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tempfile::tempdir;

    use super::*;
    use crate::testing::{make_fifo, run};

    #[tokio::test]
    async fn one_passage_is_replaced_and_several_only_when_asked() {
        let dir = tempdir().unwrap();
        let file = dir.path().join("a.txt");
        fs::write(&file, "a b a").unwrap();
        let edit = |old: &str, new: &str, all: Option<bool>| {
            let mut input = json!({"path": "a.txt", "old_text": old, "new_text": new});
            if let Some(all) = all {
                input["replace_all"] = all.into();
            }
            input
        };
        let done = run(&EditFile, dir.path(), edit("b", "c", None))
            .await
            .unwrap();
        assert_eq!(done.joined_text(), "Replaced 1 passage in `a.txt`.");
        let twice = run(&EditFile, dir.path(), edit("a", "x", None))
            .await
            .unwrap_err();
        assert!(twice.contains("occurs 2 times"), "{twice}");
        let none = run(&EditFile, dir.path(), edit("z", "x", None))
            .await
            .unwrap_err();
        assert_eq!(none, "`old_text` does not occur in `a.txt`");
        let all = run(&EditFile, dir.path(), edit("a", "x", Some(true)))
            .await
            .unwrap();
        assert_eq!(all.joined_text(), "Replaced 2 passages in `a.txt`.");
        assert_eq!(fs::read_to_string(&file).unwrap(), "x c x");
    }

    #[tokio::test]
    async fn an_edit_that_changes_nothing_is_refused() {
        let dir = tempdir().unwrap();
        for (old, problem) in [("", "is empty"), ("same", "are the same")] {
            let input = json!({"path": "a", "old_text": old, "new_text": "same"});
            let error = run(&EditFile, dir.path(), input).await.unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn pipes_and_devices_are_refused_and_not_waited_for() {
        let dir = tempdir().unwrap();
        make_fifo(dir.path());
        for path in ["pipe", "/dev/zero"] {
            let error = run(
                &EditFile,
                dir.path(),
                json!({"path": path, "old_text": "a", "new_text": "b"}),
            )
            .await
            .unwrap_err();
            assert!(error.ends_with("it is not a regular file"), "{error}");
        }
    }
}
