//! Every mistake in `mistakes.md` is reported exactly as written there.

use std::path::Path;

use crate::load;

const PAGE: &str = include_str!("mistakes.md");

/// One section of the page.
struct Mistake<'a> {
    name: &'a str,
    path: &'a str,
    text: &'a str,
}

fn mistakes() -> Vec<Mistake<'static>> {
    let sections = PAGE.split("\n## ").skip(1);
    let mistakes = sections.map(|section| {
        let (name, rest) = section.split_once("\n\n```").unwrap();
        let (path, rest) = rest.split_once('\n').unwrap();
        let (text, _) = rest.split_once("\n```\n").unwrap();
        Mistake { name, path, text }
    });
    mistakes.collect()
}

fn rendered(mistake: &Mistake<'_>) -> String {
    match load(mistake.path, mistake.text) {
        Ok(loaded) => {
            let warnings = loaded.warnings.iter().map(|warning| warning.render(false));
            warnings.collect::<Vec<_>>().join("\n\n")
        }
        Err(error) => error.render(false),
    }
}

#[test]
fn every_mistake_is_reported_word_for_word() {
    let (intro, _) = PAGE.split_once("\n## ").unwrap();
    let mut page = intro.to_owned();
    for mistake in mistakes() {
        let Mistake { name, path, text } = mistake;
        let rendered = rendered(&mistake);
        let file = format!("\n## {name}\n\n```{path}\n{text}\n```\n");
        page.extend([file, format!("\n```text\n{rendered}\n```\n")]);
    }
    let actual = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mistakes.md");
    std::fs::write(&actual, &page).unwrap();
    assert!(
        page == PAGE,
        "the reports differ from mistakes.md; the current reports are in {}",
        actual.display()
    );
}

#[test]
fn the_page_has_mistakes_of_every_format_and_kind_of_file() {
    let mistakes = mistakes();
    let count = |extension: &str| {
        let of = mistakes
            .iter()
            .filter(|mistake| mistake.path.ends_with(extension));
        of.count()
    };
    assert!(count(".yaml") >= 25, "{}", count(".yaml"));
    assert!(count(".toml") >= 4, "{}", count(".toml"));
    assert!(count(".json") >= 4, "{}", count(".json"));
    assert!(count("agent.yaml") >= 10, "{}", count("agent.yaml"));
}
