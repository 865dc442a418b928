//! `list_directory`: shows the contents of a folder.

use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use tenterhook_protocol::ToolResult;

use crate::excerpt::excerpt;
use crate::failure::ToolFailure;
use crate::file_access::blocking;
use crate::tool::ToolContext;
use crate::typed_tool::TypedTool;

const NAME: &str = "list_directory";

/// Lists a folder in byte order of the names. Names of folders end with a slash.
#[derive(Debug, Clone, Copy)]
pub struct ListDirectory;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListDirectoryInput {
    /// The folder; a relative path starts from the session's directory, which is the default.
    path: Option<String>,
}

impl TypedTool for ListDirectory {
    type Input = ListDirectoryInput;

    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> String {
        "Lists the files and folders of a folder; folders end with a slash.".to_owned()
    }

    fn category(&self) -> &'static str {
        "filesystem"
    }

    fn is_read_only(&self) -> bool {
        true
    }

    async fn run(
        &self,
        input: ListDirectoryInput,
        context: ToolContext<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        let path = context.path(input.path.as_deref().unwrap_or("."));
        let folders = context.folders(NAME);
        let names = blocking(move || {
            folders.check(&path)?;
            list(&path)
        })
        .await?;
        let text = if names.is_empty() {
            "[empty]".to_owned()
        } else {
            names.join("\n")
        };
        Ok(ToolResult::text(excerpt(text)))
    }
}

fn list(path: &Path) -> Result<Vec<String>, ToolFailure> {
    let failure = |error: std::io::Error| ToolFailure::io("list", path, &error);
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(failure)? {
        let entry = entry.map_err(failure)?;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name();
        let slash = if is_folder { "/" } else { "" };
        names.push(format!("{}{slash}", name.to_string_lossy()));
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tempfile::tempdir;

    use super::*;
    use crate::testing::run;

    #[tokio::test]
    async fn a_folder_is_listed_in_order() {
        let dir = tempdir().unwrap();
        assert_eq!(
            run(&ListDirectory, dir.path(), json!({}))
                .await
                .unwrap()
                .joined_text(),
            "[empty]"
        );
        fs::create_dir(dir.path().join("inner")).unwrap();
        fs::write(dir.path().join("b"), "").unwrap();
        fs::write(dir.path().join(".a"), "").unwrap();
        let listed = run(&ListDirectory, dir.path(), json!({"path": "."}))
            .await
            .unwrap();
        assert_eq!(listed.joined_text(), ".a\nb\ninner/");
        let error = run(&ListDirectory, dir.path(), json!({"path": "none"}))
            .await
            .unwrap_err();
        assert!(error.starts_with("cannot list"), "{error}");
    }
}
