//! Compares the generated parts of the reference page of hook files with the page. Only tests use it.

use std::path::Path;

/// The environment variable that makes a comparison update the page.
const UPDATE: &str = "TENTERHOOK_INTERNAL__UPDATE_DOCS";

/// Compares the part of the page between the markers for `subject` with `reference`.
pub(crate) fn compare(subject: &str, reference: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/hook-files.md");
    let written = std::fs::read_to_string(&path).unwrap();
    let start = format!("<!-- generated from {subject} -->\n\n");
    let end = format!("\n<!-- end of {subject} -->\n");
    let (before, rest) = written.split_once(&start).unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    let page = format!("{before}{start}{reference}{end}{after}");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, &page).unwrap();
        return;
    }
    assert!(
        written == page,
        "`docs/reference/hook-files.md` is out of date; run the test with {UPDATE}=1 to update it"
    );
}
