//! Reads test files, with the position of every problem.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenterhook_discovery::unknown_tool;
use tenterhook_engine::{EventName, JsonObject};
use tenterhook_hookfile::fields::{Empty, Fields, wrong};
use tenterhook_hookfile::tree::{self, Format, Node};
use tenterhook_hookfile::{Problem, Report, SourceText, Span, one_of, read_text, read_timeout};
use tenterhook_systems::form::{FormError, event_of_system, forms, system_event_names};
use tenterhook_systems::tools::system_of_form;

use crate::decision::ExpectedDecision;
use crate::event::{CaseEvent, read_event};
use crate::expectation::{CaseExpectation, ExpectedRewrites};
use crate::named_call::{NamedCall, NamedCallError, named_call, named_tool};
use crate::reading;
use crate::text_pattern::TextPattern;

/// How long a case may take if the file sets no timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

const FILE_KEYS: &[&str] = &["hooks", "cases"];
const CASE_KEYS: &[&str] = &[
    "name", "tool", "input", "event", "payload", "from", "expect", "env", "timeout",
];
const EXPECT_KEYS: &[&str] = &["decision", "reason", "rewritten", "context", "failure"];

/// The word for all hooks of the project.
const PROJECT: &str = "project";

/// A file with test cases.
#[derive(Debug, Clone)]
pub struct CasesFile {
    /// The file.
    pub path: PathBuf,
    /// The hooks that it tests.
    pub hooks: HooksUnderTest,
    /// The cases, in the order of the file.
    pub cases: Vec<HookCase>,
}

/// The hooks that a test file tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HooksUnderTest {
    /// The file next to the test file that has the same name up to `.cases`.
    SameName,
    /// These files, as written in the test file: relative to its folder.
    Files(Vec<PathBuf>),
    /// All hooks of the project.
    Project,
}

/// One test case.
#[derive(Debug, Clone)]
pub struct HookCase {
    /// The name, which is unique in the file.
    pub name: String,
    /// The line of the name, from 1.
    pub line: usize,
    /// The event.
    pub event: CaseEvent,
    /// How the names of its tool call were translated, if they were.
    pub note: Option<String>,
    /// What may be wrong with the case, such as a misspelt tool.
    pub warning: Option<String>,
    /// What hooks must make of it.
    pub expect: CaseExpectation,
    /// Environment variables that hooks get in addition to the variables of the caller.
    pub env: Vec<(String, String)>,
    /// How long the case may take, including the time that its hooks need to load.
    pub timeout: Duration,
}

impl CasesFile {
    /// Reads a file.
    ///
    /// # Errors
    /// Returns every problem of the file.
    pub fn read(path: &Path) -> Result<Self, Vec<Problem>> {
        let text = read_text(path).map_err(|problem| vec![*problem])?;
        Self::parse(path, &text)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// Returns every problem of the text.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Vec<Problem>> {
        let mut report = Report::new(SourceText::new(path, text));
        let root = tree::read(&mut report, Format::of(path, text));
        let file = root.and_then(|root| read_file(&mut report, path, &root));
        match file {
            Some(file) if !report.has_errors() => Ok(file),
            _ => Err(report.into_problems()),
        }
    }
}

fn read_file(report: &mut Report, path: &Path, root: &Node) -> Option<CasesFile> {
    if root.is_null() {
        report.add(no_cases(report, root.span));
        return None;
    }
    let fields = Fields::read(report, root, "a test file", FILE_KEYS, Empty::Wrong)?;
    let hooks = read_hooks(report, &fields);
    let Some(entry) = fields.entry("cases") else {
        report.add(no_cases(report, root.span));
        return None;
    };
    let Some(items) = entry.value.as_list() else {
        return wrong(report, "cases", &entry.value, "a list of cases");
    };
    if items.is_empty() {
        report.add(no_cases(report, entry.value.span));
    }
    let mut names = HashMap::new();
    let cases: Vec<HookCase> = items
        .iter()
        .filter_map(|item| read_case(report, item, &mut names))
        .collect();
    Some(CasesFile {
        path: path.to_owned(),
        hooks: hooks?,
        cases,
    })
}

fn no_cases(report: &Report, span: Span) -> Problem {
    report
        .problem(span, "the file has no cases")
        .allowed("`cases:` with a list of cases, each with `name`, `tool` or `event`, and `expect`")
}

fn read_hooks(report: &mut Report, fields: &Fields<'_>) -> Option<HooksUnderTest> {
    let Some(entry) = fields.entry("hooks") else {
        return Some(HooksUnderTest::SameName);
    };
    let node = &entry.value;
    if node.as_text() == Some(PROJECT) {
        return Some(HooksUnderTest::Project);
    }
    let one = std::slice::from_ref(node);
    let items = node.as_list().unwrap_or(one);
    let mut files = Vec::new();
    for item in items {
        match item.as_text() {
            Some(text) if !text.trim().is_empty() => files.push(PathBuf::from(text)),
            _ => {
                return wrong(
                    report,
                    "hooks",
                    item,
                    "a file, a list of files, or `project` for all hooks of the project",
                );
            }
        }
    }
    if files.is_empty() {
        return wrong(report, "hooks", node, "a file or a list of files");
    }
    Some(HooksUnderTest::Files(files))
}

fn read_case(
    report: &mut Report,
    node: &Node,
    names: &mut HashMap<String, usize>,
) -> Option<HookCase> {
    let fields = Fields::read(report, node, "a case", CASE_KEYS, Empty::Wrong)?;
    let name = read_name(report, &fields, names);
    let read = read_case_event(report, &fields);
    let event = read.as_ref().map(|read| &read.event);
    let expect = read_expectation(report, &fields, event);
    let timeout = if fields.has("timeout") {
        read_timeout(report, &fields)
    } else {
        Some(DEFAULT_TIMEOUT)
    };
    let env = if fields.has("env") {
        fields.variables(report, "env")
    } else {
        Some(Vec::new())
    };
    let (name, line) = name?;
    let read = read?;
    Some(HookCase {
        name,
        line,
        event: read.event,
        note: read.note,
        warning: read.warning,
        expect: expect?,
        env: env?,
        timeout: timeout?,
    })
}

/// Reads the name of a case, which must be unique.
fn read_name(
    report: &mut Report,
    fields: &Fields<'_>,
    names: &mut HashMap<String, usize>,
) -> Option<(String, usize)> {
    if !fields.has("name") {
        report.add(
            report
                .problem(fields.span, "the case has no `name`")
                .hint("say in a few words what the hook must do, such as `name: denies sudo`"),
        );
        return None;
    }
    let name = fields.full_text(report, "name")?;
    let line = report.source().line_of(name.span.start);
    if let Some(first) = names.get(name.text) {
        let message = format!(
            "two cases are named `{}`, the first on line {first}",
            name.text
        );
        report.add(report.problem(name.span, message));
        return None;
    }
    names.insert(name.text.to_owned(), line);
    Some((name.text.to_owned(), line))
}

/// The event of a case, and what the user should know about it.
struct ReadEvent {
    event: CaseEvent,
    note: Option<String>,
    warning: Option<String>,
}

impl From<CaseEvent> for ReadEvent {
    fn from(event: CaseEvent) -> Self {
        Self {
            event,
            note: None,
            warning: None,
        }
    }
}

fn read_case_event(report: &mut Report, fields: &Fields<'_>) -> Option<ReadEvent> {
    let needs: [(&str, &[&str]); 3] = [
        ("payload", &["event"]),
        ("from", &["event", "tool"]),
        ("input", &["tool"]),
    ];
    for (key, needs) in needs {
        let is_alone = !needs.iter().any(|needed| fields.has(needed));
        if let Some(entry) = fields.entry(key).filter(|_| is_alone) {
            let message = format!("`{key}` needs {}", one_of(needs.iter().copied()));
            report.add(report.problem(entry.key_span, message));
            return None;
        }
    }
    if let Some(entry) = fields.entry("payload").filter(|_| fields.has("tool")) {
        let problem = report.problem(entry.key_span, "a case has `tool` or `payload`, not both");
        report.add(problem.hint("`tool` and `input` make the payload of a tool call"));
        return None;
    }
    let from = read_from(report, fields);
    if from.is_none() && fields.has("from") {
        return None;
    }
    match (fields.has("event"), fields.has("tool")) {
        (true, true) => read_event_of_tool(report, fields, from),
        (true, false) => read_any_event(report, fields, from).map(ReadEvent::from),
        (false, true) => {
            let call = read_tool_call(report, fields, from)?;
            Some(ReadEvent {
                event: CaseEvent::ToolCall {
                    tool: call.tool,
                    input: call.input,
                    system: call.system.map(str::to_owned),
                },
                note: call.note,
                warning: call.warning,
            })
        }
        (false, false) => {
            report.add(
                report
                    .problem(fields.span, "the case has no event")
                    .allowed("`tool` with `input`, or `event` with `payload`"),
            );
            None
        }
    }
}

fn read_input(report: &mut Report, fields: &Fields<'_>) -> Option<JsonObject> {
    if fields.has("input") {
        reading::object(report, fields, "input")
    } else {
        Some(JsonObject::new())
    }
}

/// A tool call that a case writes with `tool` and `input`.
struct ReadCall {
    tool: String,
    input: JsonObject,
    system: Option<&'static str>,
    note: Option<String>,
    warning: Option<String>,
    /// Where the name is in the file.
    span: Span,
}

/// Reads a tool call, and translates the names of other hook systems.
fn read_tool_call(
    report: &mut Report,
    fields: &Fields<'_>,
    from: Option<&'static str>,
) -> Option<ReadCall> {
    let name = fields.full_text(report, "tool")?;
    let input = read_input(report, fields)?;
    let system = from.and_then(system_of_form);
    match named_call(name.text, &input, system) {
        Ok(NamedCall {
            tool,
            input,
            system,
            note,
        }) => Some(ReadCall {
            warning: unknown_tool(&tool).filter(|_| system.is_none()),
            tool,
            input,
            system,
            note,
            span: name.span,
        }),
        Err(error) => {
            let problem = report.problem(name.span, error.to_string());
            report.add(match error {
                NamedCallError::Ambiguous { systems, .. } => {
                    problem.hint(format!("add `from:` with {}", one_of(systems)))
                }
                NamedCallError::Input(_) => problem.hint(format!(
                    "`tenterhook tools {}` shows the arguments",
                    name.text
                )),
            });
            None
        }
    }
}

/// Reads `from`, the name of a form.
fn read_from(report: &mut Report, fields: &Fields<'_>) -> Option<&'static str> {
    let names: Vec<(&'static str, &'static str)> =
        forms().map(|form| (form.name, form.name)).collect();
    fields.choice(report, "from", &names)
}

/// Reads a case that names an event and a tool.
fn read_event_of_tool(
    report: &mut Report,
    fields: &Fields<'_>,
    from: Option<&'static str>,
) -> Option<ReadEvent> {
    let named = fields.full_text(report, "event")?;
    let event = read_event_name(report, named.text, named.span)?;
    let mut payload = JsonObject::new();
    if event.info().has_field("tool_input") || fields.has("input") {
        let call = read_tool_call(report, fields, from)?;
        payload.insert("tool_name".to_owned(), call.tool.into());
        payload.insert("tool_input".to_owned(), call.input.into());
        check_payload(report, call.span, &event, None, &payload)?;
        return Some(ReadEvent {
            event: CaseEvent::Event {
                event,
                from: None,
                system: call.system.map(str::to_owned),
                payload,
            },
            note: call.note,
            warning: call.warning,
        });
    }
    let name = fields.full_text(report, "tool")?;
    let system = from.and_then(system_of_form);
    let NamedCall { tool, note, .. } = named_tool(name.text, system);
    let warning = unknown_tool(&tool);
    payload.insert("tool_name".to_owned(), tool.into());
    check_payload(report, name.span, &event, None, &payload)?;
    Some(ReadEvent {
        event: CaseEvent::Event {
            event,
            from: None,
            system: None,
            payload,
        },
        note,
        warning,
    })
}

/// Reads a case that names its event, with or without a payload.
fn read_any_event(
    report: &mut Report,
    fields: &Fields<'_>,
    from: Option<&'static str>,
) -> Option<CaseEvent> {
    let named = fields.full_text(report, "event")?;
    let event = read_event_name(report, named.text, named.span)?;
    let from = from.map(str::to_owned);
    let (payload, span) = match fields.entry("payload") {
        Some(entry) => (reading::object(report, fields, "payload")?, entry.key_span),
        None => (JsonObject::new(), named.span),
    };
    check_payload(report, span, &event, from.as_deref(), &payload)?;
    Some(CaseEvent::Event {
        event,
        from,
        system: None,
        payload,
    })
}

/// Checks that a payload fits its event. Returns `None` if it does not.
fn check_payload(
    report: &mut Report,
    span: Span,
    event: &EventName,
    from: Option<&str>,
    payload: &JsonObject,
) -> Option<()> {
    let read = read_event(event, from, payload);
    read.map(drop)
        .map_err(|error| report.add(explain(report, span, event, &error)))
        .ok()
}

/// Reads the name of an event, in the catalogue or in any hook system.
fn read_event_name(report: &mut Report, text: &str, span: Span) -> Option<EventName> {
    if let Ok(event) = text.parse() {
        return Some(event);
    }
    if let Some(kind) = event_of_system(text) {
        return Some(EventName::Known(kind));
    }
    let known = tenterhook_engine::events().map(|info| info.name);
    let others: Vec<String> = system_event_names().map(|row| row.name).collect();
    let names = known.chain(others.iter().map(String::as_str));
    report.add(
        report
            .problem(span, format!("unknown event `{text}`"))
            .suggestion(report.nearest(text, names))
            .hint("`tenterhook events` lists all events; your own are named `x-<vendor>.<name>`"),
    );
    None
}

/// Explains why a payload is not valid for the event.
fn explain(report: &Report, span: Span, event: &EventName, error: &FormError) -> Problem {
    let example = format!("`tenterhook fire {event} --example` prints a payload");
    match error {
        FormError::Invalid {
            problem, fields, ..
        } => {
            // The fields are listed below.
            let (cause, _) = problem.split_once(", expected ").unwrap_or((problem, ""));
            let message = format!("the payload is not a `{event}` event: {cause}");
            let names = || fields.iter().map(String::as_str);
            let unknown = cause.strip_prefix("unknown field `");
            let unknown = unknown.and_then(|rest| rest.strip_suffix('`'));
            let meant = unknown.and_then(|unknown| report.nearest(unknown, names()));
            let problem = report
                .problem(span, message)
                .suggestion(meant)
                .hint(example);
            if fields.is_empty() {
                return problem;
            }
            problem.allowed(format!("the fields {}", one_of(names())))
        }
        FormError::Ambiguous { forms } => report
            .problem(span, "the payload fits the form of several hook systems")
            .hint(format!(
                "add `from:` with {}",
                one_of(forms.iter().copied())
            )),
        FormError::OtherEvent { .. } | FormError::NoSuchEvent { .. } | _ => {
            report.problem(span, error.to_string()).hint(example)
        }
    }
}

fn read_expectation(
    report: &mut Report,
    fields: &Fields<'_>,
    event: Option<&CaseEvent>,
) -> Option<CaseExpectation> {
    let Some(entry) = fields.entry("expect") else {
        report.add(
            report
                .problem(fields.span, "the case has no `expect`")
                .allowed(one_of(EXPECT_KEYS.iter().copied()))
                .hint("for example `expect: {decision: stop}`"),
        );
        return None;
    };
    let expect = Fields::read(report, &entry.value, "`expect`", EXPECT_KEYS, Empty::Wrong)?;
    if expect.entries().is_empty() {
        let problem = report.problem(expect.span, "`expect` is empty");
        report.add(problem.allowed(one_of(EXPECT_KEYS.iter().copied())));
        return None;
    }
    let decision = expect.choice(report, "decision", &ExpectedDecision::WORDS);
    let reason = read_pattern(report, &expect, "reason");
    let context = read_pattern(report, &expect, "context");
    if let Some(entry) = expect.entry("context")
        && matches!(event, Some(CaseEvent::ToolCall { .. }))
    {
        let message = "a case with `tool` alone cannot expect `context`";
        let problem = report.problem(entry.key_span, message);
        report
            .add(problem.hint("add the event that gives the model context: `event: pre_tool_use`"));
    }
    let rewritten = if expect.has("rewritten") {
        let values = reading::object(report, &expect, "rewritten")?;
        Some(ExpectedRewrites(values.into_iter().collect()))
    } else {
        None
    };
    let is_failure = expect.boolean(report, "failure").unwrap_or_default();
    Some(CaseExpectation {
        decision,
        reason,
        rewritten,
        context,
        is_failure,
    })
}

fn read_pattern(report: &mut Report, fields: &Fields<'_>, key: &str) -> Option<TextPattern> {
    if !fields.has(key) {
        return None;
    }
    let text = fields.full_text(report, key)?;
    match TextPattern::parse(text.text) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let error = error.to_string();
            let last = error.lines().last().unwrap_or_default();
            let cause = last.trim().trim_start_matches("error: ");
            let message = format!("`{key}` is not a valid regular expression: {cause}");
            report.add(report.problem(text.span, message));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let read = CasesFile::parse(Path::new("g.cases.yaml"), text);
        let problems = read.err().unwrap_or_default();
        let shown = problems.iter().map(|problem| {
            let hint = problem.suggestion.as_deref();
            let hint = hint.map(|hint| format!(" (did you mean {hint}?)"));
            format!("{problem}{}", hint.unwrap_or_default())
        });
        shown.collect()
    }

    #[test]
    fn a_file_has_hooks_and_cases() {
        let text = "hooks: [a.py, b.py]\ncases:\n  - name: one\n    tool: shell\n    input: {cmd: ls, count: 2, deep: [1.5, null, true]}\n    expect: {decision: deny, reason: no, failure: true}\n    env: {A: 1}\n    timeout: 0.5\n";
        let file = CasesFile::parse(Path::new("g.cases.yaml"), text).unwrap();
        let files = ["a.py", "b.py"].map(PathBuf::from).to_vec();
        assert_eq!(file.hooks, HooksUnderTest::Files(files));
        let case = &file.cases[0];
        assert_eq!((case.name.as_str(), case.line), ("one", 3));
        assert_eq!(case.expect.decision, Some(ExpectedDecision::Stop));
        assert_eq!(case.env, [("A".to_owned(), "1".to_owned())]);
        assert_eq!(case.timeout, Duration::from_millis(500));
        let CaseEvent::ToolCall { tool, input, .. } = &case.event else {
            panic!("{case:?}");
        };
        assert_eq!(tool, "shell");
        let expected = serde_json::json!({"cmd": "ls", "count": 2, "deep": [1.5, null, true]});
        assert_eq!(serde_json::Value::Object(input.clone()), expected);
    }

    #[test]
    fn an_event_may_have_the_name_of_any_system() {
        let case = |event: &str| {
            format!("cases: [{{name: x, event: {event}, tool: shell, expect: {{decision: stop}}}}]")
        };
        for name in [
            "pre_tool_use",
            "before_tool_call",
            "PreToolUse",
            "tool_call",
        ] {
            let file = CasesFile::parse(Path::new("g.cases.yaml"), &case(name));
            if name == "PreToolUse" && file.is_err() {
                continue;
            }
            let file = file.unwrap();
            let CaseEvent::Event { event, .. } = &file.cases[0].event else {
                panic!("{name}");
            };
            assert_eq!(event.as_str(), "pre_tool_use", "{name}");
        }
    }

    #[test]
    fn the_page_of_test_files_has_every_key() {
        let page = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../docs/reference/test-files.md"
        );
        let page = std::fs::read_to_string(page).unwrap();
        for (heading, keys) in [
            ("Keys of a file", FILE_KEYS),
            ("Keys of a case", CASE_KEYS),
            ("Keys of `expect`", EXPECT_KEYS),
        ] {
            let section = page.split(&format!("\n## {heading}\n")).nth(1).unwrap();
            let section = section.split("\n## ").next().unwrap();
            let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
            let mut found: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
            // The second table of a section says how keys go together.
            found.truncate(keys.len());
            assert_eq!(found, keys, "{heading}");
        }
    }

    #[test]
    fn mistakes_have_a_position_and_a_suggestion() {
        let case = |rest: &str| format!("cases:\n  - name: x\n    {rest}\n");
        let shell = "tool: shell, expect: {decision: stop}";
        for (text, expected) in [
            (String::new(), "g.cases.yaml:1:1: the file has no cases"),
            (
                "cases: []".to_owned(),
                "g.cases.yaml:1:8: the file has no cases",
            ),
            (
                "casess: []".to_owned(),
                "g.cases.yaml:1:1: unknown key `casess` (did you mean cases?)",
            ),
            (
                format!("cases: [{{{shell}}}]"),
                "g.cases.yaml:1:9: the case has no `name`",
            ),
            (
                format!("cases: [{{name: x, {shell}}}, {{name: x, {shell}}}]"),
                "g.cases.yaml:1:66: two cases are named `x`, the first on line 1",
            ),
            (
                case("expect: {decision: stop}"),
                "g.cases.yaml:2:5: the case has no event",
            ),
            (
                case("tool: shell"),
                "g.cases.yaml:2:5: the case has no `expect`",
            ),
            (
                case("event: pre_tool_usee\n    expect: {decision: stop}"),
                "g.cases.yaml:3:12: unknown event `pre_tool_usee` (did you mean pre_tool_use?)",
            ),
            (
                case("tool: shell\n    expect: {decison: stop}"),
                "g.cases.yaml:4:14: unknown key `decison` (did you mean decision?)",
            ),
            (
                case("tool: shell\n    expect: {decision: stopp}"),
                "g.cases.yaml:4:24: `decision` cannot be `stopp` (did you mean stop?)",
            ),
            (
                case("tool: shell\n    expect: {reason: /(/}"),
                "g.cases.yaml:4:22: `reason` is not a valid regular expression: unclosed group",
            ),
            (
                case("tool: shell\n    expect: {context: x}"),
                "g.cases.yaml:4:14: a case with `tool` alone cannot expect `context`",
            ),
            (
                case("payload: {}\n    expect: {decision: stop}"),
                "g.cases.yaml:3:5: `payload` needs `event`",
            ),
            (
                case("tool: shell\n    timeout: 0\n    expect: {decision: stop}"),
                "g.cases.yaml:4:14: `timeout` cannot be `0`",
            ),
        ] {
            let found = problems(&text);
            assert!(
                found.iter().any(|problem| problem == expected),
                "{text}\n{found:#?}"
            );
        }
        let wrong = problems(&case(
            "event: pre_tool_use\n    payload: {tool_nme: shell}\n    expect: {decision: stop}",
        ));
        assert!(
            wrong[0].starts_with("g.cases.yaml:4:5: the payload is not a `pre_tool_use` event: "),
            "{wrong:?}"
        );
    }
}
