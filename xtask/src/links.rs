//! Checks the links between the pages of this repository, and rewrites them for the book.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde_json::Value;

/// The pages to check, and the folders with such pages.
const PLACES: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "docs",
    "packaging",
    "sdk",
];

/// The links of a page, and its anchors.
struct Page {
    /// Each target, with the line and the byte range of the whole link.
    links: Vec<(String, usize, Range<usize>)>,
    anchors: BTreeSet<String>,
}

/// Returns a message `file:line: …` for every relative link to a missing file or heading, and a message for
/// every page of the book that is missing in its table of contents.
pub(crate) fn problems(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    for place in PLACES {
        collect(&root.join(place), &mut files)?;
    }
    files.sort();
    let mut pages = BTreeMap::new();
    for file in files {
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        pages.insert(file, read(&text));
    }
    let mut problems = Vec::new();
    for (file, page) in &pages {
        let name = file.strip_prefix(root)?.display();
        for (target, line, _) in &page.links {
            if let Some(problem) = fault_of(file, target, &pages) {
                problems.push(format!("{name}:{line}: {problem}"));
            }
        }
    }
    problems.extend(missing_in_contents(root, &pages)?);
    Ok(problems)
}

fn collect(place: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if place.is_dir() {
        if place.ends_with("node_modules") || place.ends_with("target") {
            return Ok(());
        }
        for entry in fs::read_dir(place)? {
            collect(&entry?.path(), files)?;
        }
    } else if place.extension().is_some_and(|it| it == "md") && place.exists() {
        files.push(place.to_owned());
    }
    Ok(())
}

fn read(text: &str) -> Page {
    let mut page = Page {
        links: Vec::new(),
        anchors: BTreeSet::new(),
    };
    let mut heading: Option<String> = None;
    let options = Options::ENABLE_TABLES;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let before = text.get(..range.start).unwrap_or_default();
                let line = before.matches('\n').count() + 1;
                page.links.push((dest_url.into_string(), line, range));
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let anchor = slug(&heading.take().unwrap_or_default());
                let repeated = (1..).map(|number| format!("{anchor}-{number}"));
                let mut candidates = std::iter::once(anchor.clone()).chain(repeated);
                if let Some(free) = candidates.find(|it| !page.anchors.contains(it)) {
                    page.anchors.insert(free);
                }
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                page.anchors.extend(ids(&html));
            }
            _ => {}
        }
    }
    page
}

/// Returns the values of the attributes `id` and `name` of an HTML anchor.
fn ids(html: &str) -> Vec<String> {
    let parts = [" id=\"", " name=\""]
        .into_iter()
        .flat_map(|key| html.split(key).skip(1));
    let values = parts.filter_map(|rest| rest.split('"').next());
    values.map(str::to_owned).collect()
}

/// Returns the anchor of a heading, as mdBook and GitHub generate it.
fn slug(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter_map(|it| match it {
        ' ' => Some('-'),
        '-' | '_' => Some(it),
        _ => it.is_alphanumeric().then_some(it),
    });
    kept.collect()
}

fn fault_of(file: &Path, target: &str, pages: &BTreeMap<PathBuf, Page>) -> Option<String> {
    if is_outside(target) {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let linked = if path.is_empty() {
        file.to_owned()
    } else {
        normalise(&file.parent()?.join(path))
    };
    if !linked.exists() {
        return Some(format!("`{target}` leads to a missing file"));
    }
    let page = pages.get(&linked)?;
    (!anchor.is_empty() && !page.anchors.contains(anchor))
        .then(|| format!("`{target}` leads to a missing heading"))
}

/// Returns whether a target has a scheme, such as `https:`.
fn is_outside(target: &str) -> bool {
    let scheme = target.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|it| it.chars().all(char::is_alphanumeric))
}

/// Resolves `.` and `..` without looking at the file system.
fn normalise(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop();
            }
            _ => resolved.push(part),
        }
    }
    resolved
}

fn missing_in_contents(
    root: &Path,
    pages: &BTreeMap<PathBuf, Page>,
) -> anyhow::Result<Vec<String>> {
    let docs = root.join("docs");
    let contents = docs.join("SUMMARY.md");
    let Some(summary) = pages.get(&contents) else {
        return Ok(Vec::new());
    };
    let listed = summary.links.iter();
    let listed: BTreeSet<PathBuf> = listed.map(|(it, ..)| normalise(&docs.join(it))).collect();
    let missing = pages
        .keys()
        .filter(|page| page.starts_with(&docs) && **page != contents && !listed.contains(*page));
    let problems = missing.map(|page| {
        let page = page.strip_prefix(&docs)?;
        Ok(format!("docs/SUMMARY.md does not list {}", page.display()))
    });
    problems.collect()
}

/// Rewrites a book as a preprocessor of mdBook. A link to a file outside of `docs/` becomes its text and the
/// path of the file, because the book contains only the pages below `docs/`.
///
/// # Errors
/// Fails if `input` does not have the format that mdBook sends.
pub(crate) fn rewrite_book(input: &str) -> anyhow::Result<String> {
    let input: Vec<Value> =
        serde_json::from_str(input).context("the input of mdBook is not a JSON array")?;
    let mut book = input
        .into_iter()
        .nth(1)
        .context("the input of mdBook has no book")?;
    for key in ["items", "sections"] {
        if let Some(items) = book.get_mut(key).and_then(Value::as_array_mut) {
            rewrite_items(items);
        }
    }
    Ok(book.to_string())
}

fn rewrite_items(items: &mut [Value]) {
    for item in items {
        let Some(chapter) = item.get_mut("Chapter") else {
            continue;
        };
        let path = chapter.get("path").and_then(Value::as_str);
        let content = chapter.get("content").and_then(Value::as_str);
        let rewritten = path
            .zip(content)
            .map(|(path, content)| rewrite_links(path, content));
        if let (Some(rewritten), Some(content)) = (rewritten, chapter.get_mut("content")) {
            *content = rewritten.into();
        }
        if let Some(items) = chapter.get_mut("sub_items").and_then(Value::as_array_mut) {
            rewrite_items(items);
        }
    }
}

/// Rewrites the links of one page, whose path is relative to `docs/`.
fn rewrite_links(path: &str, content: &str) -> String {
    let folder = Path::new("docs").join(path);
    let folder = folder.parent().unwrap_or(Path::new("docs"));
    let mut text = content.to_owned();
    // Start at the end, so that the byte ranges of earlier links stay valid.
    for (target, _, range) in read(content).links.into_iter().rev() {
        let file = target.split('#').next().unwrap_or_default();
        let linked = normalise(&folder.join(file));
        if is_outside(&target) || linked.starts_with("docs") {
            continue;
        }
        let link = text.get(range.clone()).unwrap_or_default();
        if let Some(label) = link.strip_suffix(&format!("]({target})")) {
            let label = label.trim_start_matches('[');
            let plain = format!("{label} (`{}`)", linked.display());
            text.replace_range(range, &plain);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "# A `b`, c\n\n## Same\n\n## Same\n\n<a id=\"here\"></a>\n";

    /// A link in `docs/x.md`, and the expected problem.
    const CASES: &[(&str, Option<&str>)] = &[
        ("how-to/a.md", None),
        ("how-to/a.md#a-b-c", None),
        ("how-to/a.md#same-1", None),
        ("how-to/a.md#here", None),
        ("../README.md", None),
        ("https://example.com/nowhere", None),
        ("#x", None),
        ("how-to/b.md", Some("leads to a missing file")),
        ("how-to/a.md#same-2", Some("leads to a missing heading")),
        ("#y", Some("leads to a missing heading")),
        ("../docs/how-to", None),
    ];

    #[test]
    fn a_link_has_to_lead_to_a_file_and_a_heading() {
        for (target, expected) in CASES {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir_all(root.path().join("docs/how-to")).unwrap();
            fs::write(root.path().join("README.md"), "# R\n").unwrap();
            fs::write(root.path().join("docs/how-to/a.md"), A).unwrap();
            let page = format!("# X\n\ntext\n[link]({target})\n");
            fs::write(root.path().join("docs/x.md"), page).unwrap();
            let found = problems(root.path()).unwrap();
            match expected {
                None => assert!(found.is_empty(), "{found:?}"),
                Some(problem) => {
                    assert_eq!(found, [format!("docs/x.md:4: `{target}` {problem}")]);
                }
            }
        }
    }

    #[test]
    fn a_page_that_the_contents_leave_out_is_found() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("docs")).unwrap();
        fs::write(root.path().join("docs/SUMMARY.md"), "[A](a.md)\n").unwrap();
        fs::write(root.path().join("docs/a.md"), "# A\n").unwrap();
        fs::write(root.path().join("docs/b.md"), "# B\n").unwrap();
        let found = problems(root.path()).unwrap();
        assert_eq!(found, ["docs/SUMMARY.md does not list b.md"]);
    }

    #[test]
    fn a_link_out_of_the_book_becomes_the_path_of_its_file() {
        let page =
            "[a](b.md) [`c`](../../crates/c.rs) [d](../e.md#x) [f](#f) [g](https://example.com)\n";
        assert_eq!(
            rewrite_links("how-to/x.md", page),
            "[a](b.md) `c` (`crates/c.rs`) [d](../e.md#x) [f](#f) [g](https://example.com)\n"
        );
        let book = serde_json::json!([{}, { "items": [{ "Chapter": {
            "path": "x.md", "content": "[c](../C.md)", "sub_items": []
        } }] }]);
        let rewritten = rewrite_book(&book.to_string()).unwrap();
        assert!(rewritten.contains("c (`C.md`)"), "{rewritten}");
    }
}
