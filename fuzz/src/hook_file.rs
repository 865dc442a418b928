//! Hook files, which a repository may contain.

use std::path::Path;

use tenterhook_hookfile::{Problem, Report, SourceText, read};

/// Checks a file. The first byte selects the format.
pub fn check(data: &[u8]) {
    let Some((number, rest)) = crate::selected(data) else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    // The digits 0 to 3 are readable in the corpus.
    let path = match number % 4 {
        0 => Path::new("/nowhere/hooks.yaml"),
        1 => Path::new("/nowhere/hooks.toml"),
        2 => Path::new("/nowhere/hooks.json"),
        // The content shows the format.
        _ => Path::new("/nowhere/hooks"),
    };
    let (declared, problems) = problems_of(path, text);
    for problem in &problems {
        points_into_the_text(problem, text);
        // The excerpt around the position must not cut a character.
        assert!(!problem.render(false).is_empty());
        serde_json::to_string(problem).expect("a problem is JSON");
    }
    if !text.starts_with('\u{feff}') {
        // A byte order mark changes neither the format nor a position.
        let marked = format!("\u{feff}{text}");
        assert_eq!(problems_of(path, &marked), (declared, problems));
    }
}

/// Reads a file, and returns its number of hooks and its problems.
fn problems_of(path: &Path, text: &str) -> (usize, Vec<Problem>) {
    let mut report = Report::new(SourceText::new(path, text));
    let file = read(&mut report);
    let hooks = file.declarations.len() + file.wired.len();
    (hooks, report.into_problems())
}

fn points_into_the_text(problem: &Problem, text: &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(position) = problem.position else {
        return;
    };
    let span = position.span;
    let found = text.get(span.start..span.end);
    let found = found.unwrap_or_else(|| panic!("{span:?} is not a part of the text: {problem}"));
    assert!(!found.contains('\n'), "{problem}: more than one line");
    let before = &text[..span.start];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before[start..].chars().count() + 1;
    assert_eq!(
        (position.line, position.column),
        (line, column),
        "{problem}"
    );
}
