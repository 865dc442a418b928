//! The entries of the list `import`.

use crate::source::Span;

/// Another file whose hooks a hook file imports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportEntry {
    /// The path as written.
    pub path: String,
    /// Where the path is in the file.
    pub span: Span,
    /// The variables that the hooks of the other file have.
    pub variables: Vec<(String, String)>,
}
