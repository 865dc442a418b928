//! Determines the language of a script, and finds files that only look like scripts.

use std::path::Path;

use tenterhook_hookfile::{SourceProblem, is_hook_file};
use tenterhook_systems::hook_folder::{FolderKind, ScriptLanguage};

/// Extensions of files that look like scripts but are not loaded, each with the extension to use instead.
const SIMILAR: [(&str, &str); 5] = [
    ("cts", "ts"),
    ("tsx", "ts"),
    ("jsx", "js"),
    ("pyi", "py"),
    ("pyw", "py"),
];

/// The text in the first lines of a script that requests a worker of its own.
const ISOLATE: &[u8] = b"tenterhook: isolate";

/// The number of bytes that are searched for [`ISOLATE`].
const FIRST_LINES: usize = 1 << 10;

/// The language of the scripts that a worker runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Language {
    /// A script in this language. Tenterhook ships a worker for it.
    Script(ScriptLanguage),
    /// An executable that is a worker itself.
    Program,
}

impl Language {
    /// Returns the language of a script, from its name.
    pub(super) fn of_script(kind: &FolderKind, path: &Path) -> Option<Self> {
        kind.language(path).map(Self::Script)
    }

    /// Returns the name of the interpreter.
    pub(super) const fn interpreter(self) -> Option<&'static str> {
        match self {
            Self::Script(ScriptLanguage::Python) => Some("python3"),
            Self::Script(ScriptLanguage::JavaScript) => Some("node"),
            Self::Program => None,
        }
    }
}

/// Returns the problem of a file that looks like a script or a hook file but is not loaded from such a
/// folder.
pub(super) fn misnamed(kind: &FolderKind, path: &Path) -> Option<SourceProblem> {
    let scripts = kind.scripts.as_ref()?;
    let name = path.file_name()?.to_string_lossy();
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    if name.starts_with(scripts.private_prefixes) || name.ends_with(".d.cts") {
        return None;
    }
    let is_script = |wanted: &str| scripts.extensions.iter().any(|(end, _)| *end == wanted);
    let similar = SIMILAR.iter().find(|(end, _)| *end == extension);
    let expected = similar.map_or(extension.as_str(), |(_, end)| *end);
    if is_script(expected) {
        let renamed = path.with_extension(expected);
        // A `.pyi` file next to its module only has type annotations.
        if extension == "pyi" && renamed.exists() {
            return None;
        }
        let renamed = renamed.file_name()?.to_string_lossy();
        let message = "the file looks like a script, but a file with this name is not loaded";
        return Some(SourceProblem::from(message).hint(format!("rename it to `{renamed}`")));
    }
    let is_lost = kind.is_next_to_hook_files && is_hook_file(path);
    is_lost.then(|| {
        SourceProblem::from(
            "the file is a hook file, but this folder is for executables and scripts",
        )
        .hint("move it to `hooks.d` next to this folder")
    })
}

/// Returns whether a script asks for a worker of its own.
pub(super) fn is_isolated(text: &[u8]) -> bool {
    let start = text.get(..text.len().min(FIRST_LINES)).unwrap_or_default();
    memchr::memmem::find(start, ISOLATE).is_some()
}
