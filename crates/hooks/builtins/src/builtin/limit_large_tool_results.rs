//! Saves a tool result to a file if it is too large for the model, and shows the model only a part
//! of it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use tenterhook_engine::{Call, HandlerError};
use tenterhook_files::claim_private;
use tenterhook_protocol::event::ToolResponseTransform;
use tenterhook_protocol::excerpt;
use tenterhook_protocol::{AnyEffect, Effect, EventKind};

use super::row::{Builtin, EventRunner, blocking, takes_none};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "limit_large_tool_results",
    events: &[EventKind::ToolResponseTransform, EventKind::SessionEnd],
    arguments: "none",
    make: |setup| {
        takes_none(setup.arguments).map(|()| {
            Box::new(LimitLargeToolResults {
                folder: std::env::temp_dir().join(own_folder()),
            }) as Box<dyn EventRunner>
        })
    },
};

/// The maximum number of bytes that the model gets.
const BYTES: usize = 51_200;
/// The maximum number of lines that the model gets.
const LINES: usize = 2_000;
/// The tool categories whose results can be large. Results of the agent's own tools are never cut.
const CATEGORIES: [&str; 4] = ["filesystem", "shell", "mcp", "a2a"];
/// The tool whose results are cut at the end instead of the beginning: the model can read the rest with `offset`. A tool
/// of another category with this name may have no such argument.
const READ_FILE: (&str, &str) = ("filesystem", "read_file");

struct LimitLargeToolResults {
    folder: PathBuf,
}

impl EventRunner for LimitLargeToolResults {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        Box::pin(async move {
            let session = call.event.envelope().origin.session_id.as_str();
            let folder = self.folder.join(folder_name(session));
            if call.event.info().kind == EventKind::SessionEnd {
                return blocking(move || remove(&folder)).await?.map_err(failed);
            }
            let event = call.event.downcast::<ToolResponseTransform>();
            let Some(event) = event.filter(|event| is_too_large(event)) else {
                return Ok(AnyEffect::default());
            };
            let event = event.clone();
            let response = blocking(move || keep(&folder, &event))
                .await?
                .map_err(failed)?;
            let effect = Effect::<ToolResponseTransform>::none().replace_response(response);
            Ok(effect.into_any().map(|effect| *effect).unwrap_or_default())
        })
    }
}

/// Returns the name of the folder of all sessions. Each user has a separate one, because it is private to its owner.
fn own_folder() -> String {
    #[cfg(unix)]
    let user = format!("-{}", rustix::process::geteuid().as_raw());
    #[cfg(not(unix))]
    let user = "";
    format!("tenterhook-tool-results{user}")
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
fn failed(error: io::Error) -> HandlerError {
    HandlerError::Other {
        problem: format!("cannot save the whole result in a file: {error}"),
    }
}

fn is_too_large(event: &ToolResponseTransform) -> bool {
    let text = &event.tool_response;
    let category = event.tool_category.as_deref().unwrap_or_default();
    CATEGORIES.contains(&category) && (text.len() > BYTES || text.lines().count() > LINES)
}

/// Saves the whole text in a file and returns the text that the model gets instead.
fn keep(folder: &Path, event: &ToolResponseTransform) -> io::Result<String> {
    let text = &event.tool_response;
    for dir in folder.parent().into_iter().chain([folder]) {
        claim_private(dir)?;
    }
    let mut file = tempfile::Builder::new()
        .prefix("tool-result-")
        .suffix(".txt")
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    let (_, path) = file.keep().map_err(|error| error.error)?;
    let size = text.len();
    let path = path.display();
    let intro = format!(
        "Tool call result was too large ({size} bytes; limit {BYTES} bytes). \
         The full result is available in a file: {path}\n\n"
    );
    let category = event.tool_category.as_deref().unwrap_or_default();
    if (category, event.tool_name.as_str()) == READ_FILE {
        let part = head(text);
        let shown = part.lines().count();
        let first = event
            .tool_input
            .get("offset")
            .and_then(serde_json::Value::as_u64);
        let next = first.unwrap_or(1).max(1).saturating_add(shown as u64);
        return Ok(format!(
            "{intro}Showing the first {shown} lines (up to {BYTES} bytes); \
             the next part begins with `offset` {next}:\n\n{part}"
        ));
    }
    let part = tail(text);
    Ok(format!(
        "{intro}Showing the last {LINES} lines (up to {BYTES} bytes):\n\n{part}"
    ))
}

/// Returns the first whole lines that fit. If the first line alone is too long, returns as many
/// of its words as fit.
fn head(text: &str) -> &str {
    let ends = text.split_inclusive('\n').take(LINES).scan(0, |end, line| {
        *end += line.len();
        Some(*end)
    });
    let end = ends.take_while(|end| *end <= BYTES).last();
    match end {
        Some(end) => text.get(..end).unwrap_or(text),
        None => excerpt::head(text, BYTES),
    }
}

/// Returns the last lines, cut to the limit.
fn tail(text: &str) -> &str {
    let lines = text.split_inclusive('\n').rev().take(LINES);
    let length: usize = lines.map(str::len).sum();
    let lines = text.get(text.len() - length..).unwrap_or(text);
    excerpt::tail(lines, BYTES)
}

fn remove(folder: &Path) -> io::Result<AnyEffect> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(AnyEffect::default()),
    }
}

/// Returns the session's id as a folder name. Characters that could leave the parent folder are written in hex.
fn folder_name(session: &str) -> String {
    if session.is_empty() {
        return "unknown".to_owned();
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    session.bytes().fold(String::new(), |mut name, byte| {
        if is_plain(byte) {
            name.push(char::from(byte));
        } else {
            name.extend(['%', hex(byte >> 4), hex(byte & 15)]);
        }
        name
    })
}

fn hex(digit: u8) -> char {
    char::from_digit(u32::from(digit), 16).unwrap_or('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(category: &str, text: String) -> ToolResponseTransform {
        ToolResponseTransform::new("shell")
            .with_tool_category(category.to_owned())
            .with_tool_response(text)
    }

    fn numbered_lines() -> String {
        let lines: Vec<String> = (1..=2_500).map(|line| format!("line {line}")).collect();
        lines.join("\n") + "\n"
    }

    #[test]
    fn only_large_results_of_tools_that_reach_outside_are_cut() {
        let (many, long) = ("x\n".repeat(LINES + 1), "x".repeat(BYTES + 1));
        for (category, text, expected) in [
            ("shell", "x\n".repeat(LINES), false),
            ("shell", "x".repeat(BYTES), false),
            ("shell", many.clone(), true),
            ("filesystem", long.clone(), true),
            ("mcp", many.clone(), true),
            ("a2a", long.clone(), true),
            ("agent", long, false),
            ("", many, false),
        ] {
            assert_eq!(is_too_large(&event(category, text)), expected, "{category}");
        }
    }

    #[test]
    fn the_model_gets_the_end_and_the_file_gets_everything() {
        let root = tempfile::tempdir().unwrap();
        let text = numbered_lines();
        let response = keep(&root.path().join("own/s"), &event("shell", text.clone())).unwrap();
        let (intro, shown) = response.split_once("bytes):\n\n").unwrap();
        assert!(shown.starts_with("line 501\n"), "{shown:.40}");
        assert!(shown.ends_with("line 2500\n"));
        assert_eq!(shown.lines().count(), 2_000);
        let (_, path) = intro.split_once("in a file: ").unwrap();
        let path = Path::new(path.lines().next().unwrap());
        assert_eq!(fs::read_to_string(path).unwrap(), text);
        remove(&root.path().join("own/s")).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_text_without_a_last_line_end_has_as_many_lines_as_any_other() {
        let text = vec!["x"; 2_500].join("\n");
        assert_eq!(tail(&text).lines().count(), 2_000);
    }

    #[test]
    fn a_cut_leaves_whole_characters() {
        let text = format!("a{}", "é\n".repeat(BYTES)).replacen('\n', " ", BYTES - 1);
        assert!(tail(&text).len() > BYTES / 2 && text.ends_with(tail(&text)));
        assert!(head(&text).len() > BYTES - 4 && text.starts_with(head(&text)));
    }

    #[test]
    fn a_file_that_was_read_is_cut_behind_its_beginning_and_names_where_to_go_on() {
        let root = tempfile::tempdir().unwrap();
        let text = numbered_lines();
        let mut read = event("filesystem", text);
        read.tool_name = READ_FILE.1.to_owned();
        read.tool_input.insert("offset".to_owned(), 11.into());
        let response = keep(&root.path().join("own/s"), &read).unwrap();
        assert!(response.contains("begins with `offset` 2011:\n\nline 1\n"));
        assert!(response.ends_with("line 2000\n"));
    }

    #[test]
    fn the_model_gets_the_end_from_a_read_file_of_another_server() {
        let root = tempfile::tempdir().unwrap();
        let mut read = event("mcp", numbered_lines());
        read.tool_name = READ_FILE.1.to_owned();
        let response = keep(&root.path().join("own/s"), &read).unwrap();
        assert!(!response.contains("offset"), "{response:.200}");
        assert!(response.ends_with("line 2500\n"));
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_others_can_look_into_is_not_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("open");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        let error = keep(&folder.join("s"), &event("shell", "x".to_owned())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_session_cannot_name_a_folder_elsewhere() {
        for (session, name) in [
            ("", "unknown"),
            ("a-1_b", "a-1_b"),
            ("../x", "%2e%2e%2fx"),
            ("é", "%c3%a9"),
        ] {
            assert_eq!(folder_name(session), name);
        }
    }
}
