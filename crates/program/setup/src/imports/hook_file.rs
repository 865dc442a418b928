//! Adds an entry to the list `import` of a hook file.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde_json::json;
use tenterhook_files::write_private;
use tenterhook_hookfile::{EXTENSIONS, Report, SourceText, read};

use crate::error::CliError;
use crate::exit::Exit;

/// The name of the hook file, without its extension.
const HOOKS: &str = "hooks";

/// An entry of `import`: the file as it is written in the hook file, and the variables of its hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedImport {
    /// The path as it is written.
    pub written: String,
    /// The variables of its hooks.
    pub variables: Vec<(String, String)>,
}

impl AddedImport {
    /// Returns the item of the list, with its indentation.
    fn item(&self, indent: &str) -> String {
        let path = json!(self.written);
        if self.variables.is_empty() {
            return format!("{indent}- {path}\n");
        }
        let variables = self.variables.iter();
        let lines = variables
            .map(|(name, value)| format!("{indent}    {}: {}\n", json!(name), json!(value)));
        format!(
            "{indent}- file: {path}\n{indent}  env:\n{}",
            lines.collect::<String>()
        )
    }
}

/// Returns the hook file of a folder: the one that exists, or else `hooks.yaml`.
pub fn hook_file(folder: &Path) -> PathBuf {
    let mut paths = EXTENSIONS
        .map(|extension| folder.join(HOOKS).with_extension(extension))
        .into_iter();
    paths
        .find(|path| path.exists())
        .unwrap_or_else(|| folder.join(HOOKS).with_extension("yaml"))
}

/// Adds an import to a hook file. Returns whether the file changed.
///
/// # Errors
/// Fails if the file cannot be read or written, is not YAML, or imports the file with other variables.
pub fn add_import(path: &Path, import: &AddedImport) -> Result<bool, CliError> {
    let by_hand = |why: String| {
        let item = import.item("");
        CliError::new(Exit::Config, why).hint(format!(
            "add this to the list `import` in `{}`: {}",
            path.display(),
            item.trim_end()
        ))
    };
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => {
            let message = format!("cannot read `{}`", path.display());
            return Err(CliError::new(Exit::Config, message).cause(&error));
        }
    };
    let present = imports_of(path, &text);
    if present.contains(import) {
        return Ok(false);
    }
    if present.iter().any(|it| it.written == import.written) {
        let message = format!(
            "`{}` already imports `{}`, with other variables",
            path.display(),
            import.written
        );
        return Err(by_hand(message));
    }
    if !path
        .extension()
        .is_some_and(|it| it == "yaml" || it == "yml")
    {
        return Err(by_hand(format!("`{}` is not a YAML file", path.display())));
    }
    let changed = with_import(&text, import);
    // Text that was edited by hand may have a form that the edit does not know.
    let mut expected = present;
    expected.push(import.clone());
    if imports_of(path, &changed) != expected {
        let message = format!("cannot add a line to `{}`", path.display());
        return Err(by_hand(message));
    }
    replace(path, &changed).map_err(|error| {
        let message = format!("cannot write `{}`", path.display());
        CliError::new(Exit::Config, message).cause(&error)
    })?;
    Ok(true)
}

fn imports_of(path: &Path, text: &str) -> Vec<AddedImport> {
    let mut report = Report::new(SourceText::new(path, text));
    let imports = read(&mut report).imports.into_iter();
    imports
        .map(|import| AddedImport {
            written: import.path,
            variables: import.variables,
        })
        .collect()
}

/// Returns the text of a hook file with one more import: in its list `import`, or in a new list at the end.
fn with_import(text: &str, import: &AddedImport) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(at) = lines.iter().position(|line| line.starts_with("import:")) else {
        let separator = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        return format!("{text}{separator}import:\n{}", import.item("  "));
    };
    let is_of_list = |line: &&&str| line.starts_with([' ', '-']);
    let items: Vec<&str> = lines
        .iter()
        .skip(at + 1)
        .take_while(is_of_list)
        .copied()
        .collect();
    let indent: String = items.first().map_or("  ".to_owned(), |line| {
        line.chars().take_while(|c| *c == ' ').collect()
    });
    let added = import.item(&indent);
    lines.insert(at + 1 + items.len(), &added);
    lines.concat()
}

/// Replaces a file as a whole, so that no one reads a part of it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    #[cfg(unix)]
    let mode = |found: fs::Metadata| std::os::unix::fs::MetadataExt::mode(&found) & 0o777;
    #[cfg(not(unix))]
    let mode = |_| 0o600;
    write_private(
        path,
        text.as_bytes(),
        fs::metadata(path).map_or(0o600, mode),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_is_added_to_the_list_or_at_the_end() {
        let import = AddedImport {
            written: "~/a".to_owned(),
            variables: Vec::new(),
        };
        for (text, expected) in [
            ("", "import:\n  - \"~/a\"\n"),
            ("version: 1", "version: 1\nimport:\n  - \"~/a\"\n"),
            (
                "# mine\nimport:\n- x # why\nhooks: []\n",
                "# mine\nimport:\n- x # why\n- \"~/a\"\nhooks: []\n",
            ),
            (
                "import:\n    - x\n    - y\n",
                "import:\n    - x\n    - y\n    - \"~/a\"\n",
            ),
        ] {
            assert_eq!(with_import(text, &import), expected);
        }
    }

    #[test]
    fn an_import_with_variables_is_read_as_it_was_added() {
        let import = |written: &str, value: &str| AddedImport {
            written: written.to_owned(),
            variables: vec![
                ("A".to_owned(), value.to_owned()),
                ("B".to_owned(), "x".to_owned()),
            ],
        };
        let (first, second) = (import("~/a", "it's \"b\": #c"), import("../b", "1"));
        let text = with_import("hooks: []\n", &first);
        let text = with_import(&text, &second);
        let path = Path::new("hooks.yaml");
        assert_eq!(imports_of(path, &text), [first.clone(), second]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hooks.yaml");
        assert!(add_import(&path, &first).unwrap());
        assert!(!add_import(&path, &first).unwrap());
        let error = add_import(&path, &import("~/a", "other")).unwrap_err();
        assert!(
            error.message.contains("with other variables"),
            "{}",
            error.message
        );
    }
}
