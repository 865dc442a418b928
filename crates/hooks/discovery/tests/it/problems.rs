//! How problems of files that cannot be loaded are reported.

use std::fs;
use std::path::Path;

use tenterhook_discovery::{LoadOptions, load_file, load_files};
use tenterhook_engine::Layer;
use tenterhook_hookfile::Severity;

use crate::{load, options};

#[test]
fn problems_have_a_form_for_programs() {
    let text = "hooks:\n  - event: stpo\n    command: cat\n    timeout: -1\n  - event: turn_end\n";
    let error = load("hooks.yaml", text).expect_err("three mistakes");
    assert_eq!(error.to_string(), "3 problems in `hooks.yaml`");
    assert_eq!(
        serde_json::to_value(&error.problems).unwrap(),
        serde_json::json!([
            {
                "severity": "error",
                "path": "hooks.yaml",
                "line": 2,
                "column": 12,
                "span": {"start": 18, "end": 22},
                "message": "unknown event `stpo`",
                "allowed": "an event of the catalogue, or `x-<vendor>.<name>`",
                "suggestion": "stop",
            },
            {
                "severity": "error",
                "path": "hooks.yaml",
                "line": 4,
                "column": 14,
                "span": {"start": 53, "end": 55},
                "message": "`timeout` cannot be `-1`",
                "allowed": "seconds (`10`, `0.5`) or a number with a unit (`500ms`, `2s`, `1m`), more than 0 and at most 10 minutes",
            },
            {
                "severity": "error",
                "path": "hooks.yaml",
                "line": 5,
                "column": 5,
                "span": {"start": 60, "end": 75},
                "message": "the hook has nothing to run",
                "allowed": "exactly one of `command`, `argv`, `builtin`, `http` or `model`",
            },
        ])
    );
    let broken = serde_json::to_value(&error.broken[0]).unwrap();
    assert_eq!(broken["path"], "hooks.yaml");
    assert_eq!(broken["system"], "tenterhook");
    assert_eq!(broken["problems"].as_array().unwrap().len(), 3);
    let hint = load("hooks.yaml", "hooks: [{event: on_error, command: cat}]").expect_err("a name");
    assert_eq!(
        serde_json::to_value(&hint.problems[0]).unwrap()["hint"],
        "`on_error` is docker-agent's name for the event"
    );
}

#[test]
fn spans_are_those_of_the_text_in_every_format() {
    for (path, text) in [
        (
            "a.yaml",
            "# ü\nhooks:\n  - {event: 'ünknown', command: cat}\n",
        ),
        (
            "a.toml",
            "# ü\n[[hooks]]\nevent = 'ünknown'\ncommand = 'cat'\n",
        ),
        (
            "a.json",
            "{\"version\": 1, \"hooks\": [\n{\"event\": \"ünknown\", \"command\": \"cat\"}]}",
        ),
        (
            "a.yaml",
            "\u{feff}hooks: [{event: 'ünknown', command: cat}]\r\n",
        ),
    ] {
        let error = load(path, text).expect_err(path);
        let [problem] = error.problems.as_slice() else {
            panic!("{}", error.render(false));
        };
        let position = problem.position.unwrap();
        let text = text.trim_start_matches('\u{feff}');
        let found = text.get(position.span.start..position.span.end).unwrap();
        assert_eq!(found.trim_matches(['\'', '"']), "ünknown", "{path}");
        let line = text.lines().nth(position.line - 1).unwrap();
        let from_column: String = line.chars().skip(position.column - 1).collect();
        assert!(from_column.starts_with(found), "{path} {position:?}");
    }
}

#[test]
fn colour_is_given_only_where_it_is_asked_for() {
    let error = load("hooks.yaml", "hoks: []").expect_err("a mistake");
    assert!(!error.render(false).contains('\u{1b}'));
    assert!(error.render(true).contains("\u{1b}["));
}

#[test]
fn a_long_line_is_shown_around_the_mistake_only() {
    let hook = r#"{"event":"stop","command":"cat"},"#;
    let text = format!(
        r#"{{"hooks":[{}{{"event":"stpo","argv":["ls"]}}]}}"#,
        hook.repeat(10_000)
    );
    let error = load("hooks.json", &text).expect_err("a mistake");
    let problem = error
        .problems
        .iter()
        .find(|p| p.severity == Severity::Error);
    let rendered = problem.unwrap().render(false);
    assert!(rendered.contains("--> hooks.json:1:330020\n"), "{rendered}");
    assert!(rendered.contains("did you mean `stop`?"), "{rendered}");
    assert!(rendered.len() < 3000, "{}", rendered.len());
}

#[test]
fn a_file_that_is_wrong_everywhere_stops_to_say_so() {
    let text = "x: {}\n".repeat(5000);
    let error = load("hooks.yaml", &text).expect_err("duplicates");
    assert_eq!(error.problems.len(), 201);
    let last = error.problems.last().unwrap();
    assert_eq!(
        last.to_string(),
        "hooks.yaml: more than 200 problems; the others are not shown"
    );
}

#[test]
fn what_cannot_be_read_is_a_problem_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::create_dir(path("dir.yaml")).unwrap();
    fs::write(path("large.yaml"), vec![b'#'; (4 << 20) + 1]).unwrap();
    fs::write(path("latin1.yaml"), b"hooks:\n- name: gr\xfcn\n").unwrap();
    for (name, expected) in [
        (
            "missing.yaml",
            "error: the file cannot be read: No such file or directory (os error 2)\n--> missing.yaml",
        ),
        (
            "dir.yaml",
            "error: it is a folder, expected a file\n--> dir.yaml",
        ),
        (
            "large.yaml",
            "error: the file is too large\n--> large.yaml\n = note: allowed: at most 4 MiB",
        ),
        (
            "latin1.yaml",
            "error: the file is not UTF-8 text\n --> latin1.yaml:2:11\n  |\n2 | - name: gr�n\n  |           ^",
        ),
    ] {
        let error = load_file(&path(name), Layer::User, &options()).expect_err(name);
        let prefix = format!("{}/", dir.path().display());
        assert_eq!(error.render(false).replace(&prefix, ""), expected);
    }
}

/// A folder with two valid files and two broken ones.
fn write_files(dir: &Path) -> Vec<(std::path::PathBuf, Layer)> {
    let files = [
        ("a.yaml", "hooks: [{event: stop, command: cat}]"),
        ("b.yaml", "hoks: []"),
        ("c.toml", "hooks = 5"),
        (
            "d.json",
            r#"{"hooks": [{"event": "stop", "argv": ["cat"]}]}"#,
        ),
    ];
    let written = files.map(|(name, text)| {
        let path = dir.join(name);
        fs::write(&path, text).unwrap();
        (path, Layer::User)
    });
    written.to_vec()
}

#[test]
fn several_files_report_the_problems_of_all() {
    let dir = tempfile::tempdir().unwrap();
    let error = load_files(write_files(dir.path()), &options()).expect_err("two are broken");
    assert_eq!(error.to_string(), "2 problems in 2 files");
    let messages: Vec<_> = error.problems.iter().map(|p| p.message.as_str()).collect();
    assert_eq!(messages, ["unknown key `hoks`", "`hooks` cannot be `5`"]);
}

#[test]
fn a_lenient_load_takes_the_good_files_and_tells_of_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let lenient = LoadOptions {
        lenient: true,
        ..options()
    };
    let loaded = load_files(write_files(dir.path()), &lenient).unwrap();
    let sources: Vec<_> = loaded
        .specs
        .iter()
        .filter_map(|spec| spec.source.path.as_ref()?.file_name()?.to_str())
        .collect();
    assert_eq!(sources, ["a.yaml", "d.json"]);
    assert_eq!(loaded.warnings, []);
    let problems: Vec<_> = loaded
        .broken
        .iter()
        .flat_map(|source| &source.problems)
        .map(|problem| (problem.severity, problem.message.as_str()))
        .collect();
    assert_eq!(
        problems,
        [
            (Severity::Error, "unknown key `hoks`"),
            (Severity::Error, "`hooks` cannot be `5`"),
        ]
    );
}

#[test]
fn a_broken_file_gives_no_hook_at_all() {
    let lenient = LoadOptions {
        lenient: true,
        ..options()
    };
    let text = "hooks: [{event: stop, command: cat}, {event: stpo, command: cat}]";
    let loaded =
        tenterhook_discovery::load_text(Path::new("a.yaml"), text, Layer::User, &lenient).unwrap();
    assert!(loaded.specs.is_empty());
    assert_eq!(loaded.broken.len(), 1);
}

#[test]
fn a_file_of_unknown_keys_is_reported_up_to_a_limit() {
    let keys: Vec<String> = (0..20_000)
        .map(|number| format!("hoks{number}: 1"))
        .collect();
    let error = load("hooks.yaml", &keys.join("\n")).unwrap_err();
    assert_eq!(error.problems.len(), 201);
    assert_eq!(
        error.problems.first().unwrap().suggestion.as_deref(),
        Some("hooks"),
        "{}",
        error.problems[0]
    );
}
