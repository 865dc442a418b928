//! Loading returns hooks or printable problems for arbitrary content of a file.

use std::fs;

use proptest::prelude::*;
use tenterhook_discovery::load_file;
use tenterhook_engine::Layer;

use crate::{load, options};

const PATHS: [&str; 4] = ["a.yaml", "a.toml", "a.json", "a"];

/// Loads a text in every format, and renders its problems.
fn answer(text: &str) {
    for path in PATHS {
        let problems = match load(path, text) {
            Ok(loaded) => loaded.warnings,
            Err(error) => error.problems,
        };
        for problem in problems {
            assert!(!problem.render(false).is_empty());
            if let Some(position) = problem.position {
                let text = text.strip_prefix('\u{feff}').unwrap_or(text);
                assert!(
                    text.get(position.span.start..position.span.end).is_some(),
                    "{problem:?}"
                );
            }
        }
    }
}

/// Generates pieces of all three formats and both kinds of files, in any order.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "hooks",
            "agents",
            "root",
            "event",
            "pre_tool_use",
            "matcher",
            "command",
            "type",
            "builtin",
            "timeout",
            "env",
            "on_error",
            "block",
            "defaults",
            "version",
            "preempt_yolo",
            "stop",
            ":",
            ": ",
            "\n",
            "\n  ",
            "\n    ",
            "- ",
            "[",
            "]",
            "{",
            "}",
            ", ",
            "\"",
            "'",
            "|\n",
            "&a ",
            "*a",
            "<<: ",
            "!x ",
            "---\n",
            "...\n",
            "= ",
            "[[hooks]]\n",
            "#",
            "\\u",
            "\\ud800",
            "1",
            "-1",
            "1e999",
            ".inf",
            "0x",
            "null",
            "~",
            "true",
            "\u{feff}",
            "\r\n",
            "\r",
            "\t",
            "\u{85}",
            "\u{2028}",
            "ü",
            "🚫",
            "\0",
            "\u{1b}[31m",
            "? ",
            "%YAML 1.2\n",
            "${env.A}",
            "$$",
        ])
        .prop_map(str::to_owned),
        ".{0,4}",
    ]
}

proptest! {
    #[test]
    fn any_pieces_are_answered(pieces in prop::collection::vec(piece(), 0..40)) {
        answer(&pieces.concat());
    }

    #[test]
    fn any_bytes_of_a_file_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let dir = tempfile::tempdir().unwrap();
        for path in PATHS {
            let path = dir.path().join(path);
            fs::write(&path, &bytes).unwrap();
            if let Err(error) = load_file(&path, Layer::Project, &options()) {
                prop_assert!(!error.render(true).is_empty());
            }
        }
    }

    #[test]
    fn a_file_that_was_cut_or_changed_is_answered(at in 0_usize..4000, with in piece(), cut in any::<bool>()) {
        let text = include_str!("fixtures/docker_agent.yaml");
        let at = text.floor_char_boundary(at);
        let (before, after) = text.split_at(at);
        let text = if cut { format!("{before}{with}") } else { format!("{before}{with}{after}") };
        answer(&text);
    }
}
