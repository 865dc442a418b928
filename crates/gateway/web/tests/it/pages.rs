//! Rules for the files of both pages: the chat and the inspector.

use std::fs;
use std::path::Path;

/// The folders of the pages.
const FOLDERS: [&str; 2] = ["src/page", "../../program/inspect/src/page"];

/// The beginning of the names of files that others wrote.
const VENDORED: &str = "markdown-it";

/// Returns the name and text of each file of ours.
fn own_files() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if !name.starts_with(VENDORED) {
                files.push((
                    path.display().to_string(),
                    fs::read_to_string(&path).unwrap(),
                ));
            }
        }
    }
    assert!(files.len() > 40, "only {} files were found", files.len());
    files
}

// I5
#[test]
fn no_text_can_become_html_or_code() {
    let ways = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "DOMParser",
        "setHTML",
        "createContextualFragment",
        "eval(",
        "new Function",
        "srcdoc",
        "javascript:",
    ];
    for (name, text) in own_files() {
        for way in ways {
            assert!(!text.contains(way), "{name}: {way}");
        }
    }
}

/// The policies under which the pages are sent forbid these, so they would silently do nothing.
#[test]
fn no_page_has_an_inline_script_style_or_handler() {
    for (name, text) in own_files() {
        let extension = Path::new(&name).extension();
        if !extension.is_some_and(|it| it == "html" || it == "svg") {
            continue;
        }
        assert!(
            !text.contains(" style=") && !text.contains("<style"),
            "{name}"
        );
        for attribute in text.split_whitespace().filter(|word| word.contains('=')) {
            assert!(!attribute.starts_with("on"), "{name}: {attribute}");
        }
        for script in text.split("<script").skip(1) {
            let (tag, rest) = script.split_once('>').unwrap();
            assert!(
                tag.contains("src=") && rest.starts_with("</script>"),
                "{name}: {tag}"
            );
        }
    }
}

#[test]
fn the_pages_load_nothing_from_other_servers() {
    for (name, text) in own_files() {
        for scheme in ["https://", "http://"] {
            for address in text.split(scheme).skip(1) {
                assert!(address.starts_with("www.w3.org/"), "{name}: {scheme}");
            }
        }
    }
}
