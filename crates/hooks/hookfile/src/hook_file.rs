//! Recognises hook files and reads them.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;

use crate::agent_file::{self, AgentFile, Form};
use crate::declaration::HookDeclaration;
use crate::file_text::{MAX_FILE_SIZE, read_bytes};
use crate::import_entry::ImportEntry;
use crate::link::dead_target;
use crate::native;
use crate::problem::{Problem, Severity};
use crate::report::Report;
use crate::settings_file;
use crate::source::SourceText;
use crate::source_problem::SourceProblem;
use crate::tree::{self, Format, Node};

/// The file name extensions of hook files.
pub const EXTENSIONS: [&str; 4] = ["yaml", "yml", "toml", "json"];

/// Returns whether a path has the extension of a hook file.
pub fn has_extension(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
}

/// Returns whether a path has the name of a file with test cases, `NAME.cases.yaml`. Such a file belongs next to
/// hooks, and it is never loaded as a hook file. [`misnamed_as_cases`] finds files that only have such a name.
///
/// ```
/// use std::path::Path;
/// use tenterhook_hookfile::is_cases_file;
///
/// assert!(is_cases_file(Path::new("hooks.d/guard.cases.yaml")));
/// assert!(!is_cases_file(Path::new("hooks.d/cases.yaml")));
/// ```
pub fn is_cases_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_lowercase();
    let mut extensions = EXTENSIONS.iter();
    extensions.any(|extension| name.ends_with(&format!(".cases.{extension}")))
}

/// Returns the problem of a file that is named like a file with test cases but has no key `cases`. It may be a hook
/// file, and then its guards would silently not be loaded.
pub fn misnamed_as_cases(path: &Path) -> Option<SourceProblem> {
    if !is_cases_file(path) || path.is_dir() {
        return None;
    }
    let message = match read_text(path) {
        Ok(text) if has_cases(path, &text) => return None,
        Ok(_) => {
            "a file with this name contains test cases, but this one has no key `cases`".into()
        }
        // Whether it has hooks is unknown, so it must not be ignored.
        Err(problem) => format!(
            "a file with this name contains test cases, but its content is unknown: {}",
            problem.message
        ),
    };
    let extension = path.extension().unwrap_or_default();
    let renamed = path.with_extension("").with_extension(extension);
    let renamed = renamed.file_name().unwrap_or_default().to_string_lossy();
    Some(SourceProblem::from(message).hint(format!(
        "if it has hooks, rename it, for example to `{renamed}`; if not, add its test cases below the key `cases`"
    )))
}

fn has_cases(path: &Path, text: &str) -> bool {
    let mut report = Report::new(SourceText::new(path, text));
    match tree::read(&mut report, Format::of(path, text)) {
        Some(root) if !report.has_errors() => root.entry("cases").is_some(),
        // A mistake in a test file must not deny operations.
        _ => has_line_with_key(text, "cases"),
    }
}

/// Returns whether a line begins with a key, for text with syntax errors.
fn has_line_with_key(text: &str, key: &str) -> bool {
    text.lines().any(|line| {
        let start = line.trim_start_matches(['{', '[', '"', ' ']);
        start
            .strip_prefix(key)
            .is_some_and(|rest| rest.starts_with([':', '"', '=', ' ', ']']))
    })
}

/// Reads a file as text.
///
/// # Errors
///
/// Returns a [`Problem`] if the file cannot be read, is larger than 4 MiB, or is not UTF-8. In the last
/// case, the problem points to the first invalid byte.
pub fn read_text(path: &Path) -> Result<String, Box<Problem>> {
    let whole = |message: String| {
        let source = SourceText::new(path, "");
        Box::new(Problem::new(Severity::Error, &source, None, message))
    };
    let bytes = read_bytes(path).map_err(|error| {
        if error.kind() == ErrorKind::NotFound && path.is_symlink() {
            return Box::new(dead_target(path).into_problem(path));
        }
        let mut problem = whole(if error.kind() == ErrorKind::IsADirectory {
            error.to_string()
        } else {
            let what = if path.is_dir() { "folder" } else { "file" };
            format!("the {what} cannot be read: {error}")
        });
        problem.cause = Some(error.to_string());
        problem
    })?;
    if bytes.len() > MAX_FILE_SIZE {
        let problem = *whole("the file is too large".to_owned());
        return Err(Box::new(problem.allowed("at most 4 MiB")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        let source = SourceText::new(path, &text);
        let span = (valid..valid + 1).into();
        let message = "the file is not UTF-8 text".to_owned();
        Box::new(Problem::new(Severity::Error, &source, Some(span), message))
    })
}

/// Returns whether a file has the extension and the content of a hook file, for files outside of the
/// usual places.
pub fn is_hook_file(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    if is_cases_file(path) || !has_extension(&path.with_extension(extension)) {
        return false;
    }
    // A file that is not text or is too large is data, not a hook file.
    let Ok(text) = read_text(path) else {
        return false;
    };
    let mut report = Report::new(SourceText::new(path, &text));
    match tree::read(&mut report, Format::of(path, &text)) {
        Some(root) if !report.has_errors() => {
            root.entry("hooks").is_some() || has_hooks_of_docker_agent(&root)
        }
        // The file has syntax errors, so look only for the key `hooks`.
        _ => has_line_with_key(&text, "hooks"),
    }
}

fn has_hooks_of_docker_agent(root: &Node) -> bool {
    match Form::of(root) {
        Some(Form::AgentFile) => root.entry("agents").is_some(),
        Some(Form::UserSettings) => {
            let settings = root.entry("settings");
            settings.is_some_and(|settings| settings.value.entry("hooks").is_some())
        }
        Some(Form::DropIn) => true,
        None => false,
    }
}

/// The contents of a hook file.
#[derive(Debug)]
pub struct HookFile {
    /// The hooks, in the order of the file.
    pub declarations: Vec<HookDeclaration>,
    /// The hooks that keys of agents stand for, such as `add_date: true`.
    pub wired: Vec<HookDeclaration>,
    /// The agents, if the file is an agent file.
    pub agent_file: Option<AgentFile>,
    /// The other files whose hooks the file imports.
    pub imports: Vec<ImportEntry>,
    /// The hook system that the file is written for, for example `tenterhook` or `docker-agent`.
    pub system: &'static str,
}

/// Reads the text of the report's source as a hook file. Recognises the format and the kind of file, and
/// adds all problems to the report.
pub fn read(report: &mut Report) -> HookFile {
    read_imported(report, &[])
}

/// Reads a hook file like [`read`], with variables of the [`ImportEntry`] that imports it.
pub fn read_imported(report: &mut Report, variables: &[(String, String)]) -> HookFile {
    let format = Format::of(report.source().path(), report.source().text());
    let mut all = HookFile {
        declarations: Vec::new(),
        wired: Vec::new(),
        agent_file: None,
        imports: Vec::new(),
        system: "tenterhook",
    };
    let Some(root) = tree::read(report, format) else {
        return all;
    };
    let path = report.source().path();
    if is_cases_file(path) {
        let test = format!("run `tenterhook test {}`", path.display());
        let problem = report.problem(root.span, "this file contains test cases, not hooks");
        report.add(problem.hint(test));
        return all;
    }
    if let Some(system) = settings_file::system_of(path, &root) {
        all.system = system.name;
        all.declarations = settings_file::read(report, &root, system, variables);
    } else if let Some(form) = Form::of(&root) {
        all.system = "docker-agent";
        let read = agent_file::read(report, &root, form);
        all.agent_file = (form == Form::AgentFile).then_some(read.file);
        all.wired = read.wired;
        all.declarations = read.declarations;
    } else if !root.is_null() {
        let file = native::read(report, &root);
        all.declarations = file.declarations;
        all.imports = file.imports;
    }
    all
}
