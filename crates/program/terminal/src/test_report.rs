//! The report of a test run: a line for each case, and the differences for each failed case.

use serde_json::{Value, json};
use tenterhook_cases::{
    CaseEnd, CaseMismatch, CaseResult, CaseRun, HookCase, LoadedHook, SelectedCases, TestedHooks,
};
use tenterhook_engine::journal::RunRecord;

use crate::output::{self, style, styled};
use crate::timeline;
use tenterhook_protocol::escape::{escape_indented, escape_line};

/// How many of a hook's last lines of output are shown.
const MAX_PRINTED: usize = 10;

/// How many of the loaded hooks are shown if none of them matched.
const MAX_LOADED: usize = 10;

/// The column at which the details of a failed case begin.
const INDENT: usize = 8;

/// Shows the cases as they end, or collects them for JSON.
#[derive(Debug)]
pub struct TestReport<'a> {
    files: &'a [SelectedCases],
    is_json: bool,
    /// The cases of each file, for JSON.
    cases: Vec<Vec<Value>>,
    /// The file whose cases are shown.
    shown: Option<usize>,
    /// The problems that were shown last. All cases of a file have the same problems.
    broken: Option<String>,
    passed: usize,
    failed: usize,
    has_broken: bool,
}

/// The end of a test run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestSummary {
    /// How many cases failed.
    pub failed: usize,
    /// Whether any case failed because its hooks cannot be loaded.
    pub has_broken: bool,
}

impl<'a> TestReport<'a> {
    /// Begins the report of these files.
    pub fn new(files: &'a [SelectedCases], is_json: bool) -> Self {
        Self {
            files,
            is_json,
            cases: vec![Vec::new(); files.len()],
            shown: None,
            broken: None,
            passed: 0,
            failed: 0,
            has_broken: false,
        }
    }

    /// Adds a case of a file.
    pub fn add(&mut self, file: usize, case: &HookCase, ran: &CaseRun) {
        let mismatches = match &ran.end {
            CaseEnd::Result(result) => case.expect.compare(result),
            CaseEnd::Broken(_) | CaseEnd::Failed(_) => Vec::new(),
        };
        let is_ok = matches!(ran.end, CaseEnd::Result(_)) && mismatches.is_empty();
        if is_ok {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
        self.has_broken |= matches!(ran.end, CaseEnd::Broken(_));
        if self.is_json {
            if let Some(cases) = self.cases.get_mut(file) {
                cases.push(in_json(case, ran, &mismatches, is_ok));
            }
            return;
        }
        self.show_file(file);
        self.show(case, ran, &mismatches, is_ok);
    }

    /// Ends the report, and returns what a caller needs for its exit status.
    pub fn finish(self) -> TestSummary {
        let Self { passed, failed, .. } = self;
        if self.is_json {
            let files: Vec<Value> = self
                .files
                .iter()
                .zip(&self.cases)
                .map(|(file, cases)| {
                    json!({ "file": file.shown, "hooks": hooks(file), "cases": cases })
                })
                .collect();
            output::json(&json!({
                "ok": failed == 0,
                "passed": passed,
                "failed": failed,
                "files": files,
            }));
        } else {
            let passed = styled(style::GOOD, format_args!("{passed} passed"));
            output::line("");
            output::line(if failed == 0 {
                format!("{passed}.")
            } else {
                format!(
                    "{passed}, {}.",
                    styled(style::BAD, format_args!("{failed} failed"))
                )
            });
        }
        TestSummary {
            failed,
            has_broken: self.has_broken,
        }
    }

    /// Shows the name of a file before its first case.
    fn show_file(&mut self, file: usize) {
        if self.shown == Some(file) {
            return;
        }
        if self.shown.is_some() {
            output::line("");
        }
        self.shown = Some(file);
        if let Some(file) = self.files.get(file) {
            output::line(styled(style::STRONG, &file.shown));
        }
    }

    fn show(&mut self, case: &HookCase, ran: &CaseRun, mismatches: &[CaseMismatch], is_ok: bool) {
        let name = escape_line(&case.name);
        if is_ok {
            output::line(format_args!("  {}    {name}", styled(style::GOOD, "ok")));
            return;
        }
        let line = case.line;
        output::line(format_args!(
            "  {}  {name} (line {line})",
            styled(style::BAD, "FAIL")
        ));
        if let Some(note) = &case.note {
            show_detail(&format!("note: {note}"));
        }
        match &ran.end {
            CaseEnd::Result(result) => show_mismatches(result, mismatches),
            CaseEnd::Failed(problem) => show_detail(problem),
            CaseEnd::Broken(problems) => {
                show_detail("the hooks cannot be loaded");
                if self.broken.as_ref() != Some(problems) {
                    output::note(problems);
                    output::note("");
                    self.broken = Some(problems.clone());
                }
            }
        }
        let printed: Vec<&str> = ran.printed.lines().collect();
        let last = printed.len().saturating_sub(MAX_PRINTED);
        for line in printed.get(last..).unwrap_or_default() {
            show_detail(&format!("printed: {line}"));
        }
    }
}

/// Shows what differs, and what each hook did.
fn show_mismatches(result: &CaseResult, mismatches: &[CaseMismatch]) {
    for mismatch in mismatches {
        let what = escape_line(&mismatch.what);
        show_detail(&what);
        show_detail(&format!("  expected  {}", mismatch.expected));
        show_detail(&format!("  got       {}", mismatch.got));
    }
    if !result.unmatched.is_empty() {
        show_detail("hooks that were loaded");
    }
    for hook in result.unmatched.iter().take(MAX_LOADED) {
        show_detail(&format!("  {}", loaded(hook)));
    }
    if let more @ 1.. = result.unmatched.len().saturating_sub(MAX_LOADED) {
        show_detail(&format!("  and {more} more"));
    }
    if !result.runs.is_empty() {
        show_detail("hooks that ran");
        for line in timeline::run_lines(&result.runs) {
            output::line(format_args!("{:INDENT$}{line}", ""));
        }
    }
}

/// Describes a hook that did not match.
fn loaded(hook: &LoadedHook) -> String {
    let event = hook.event.as_ref();
    let event = event.map_or_else(|| "every event".to_owned(), |event| format!("`{event}`"));
    let matcher = match hook.matcher.as_str() {
        "*" => String::new(),
        matcher => format!(", for `{matcher}`"),
    };
    format!("`{}` on {event}{matcher}", hook.hook)
}

fn show_detail(text: &str) {
    let text = escape_indented(text, INDENT + 12);
    output::line(format_args!("{:INDENT$}{text}", ""));
}

/// Returns the hooks of a file, for JSON.
fn hooks(file: &SelectedCases) -> Value {
    match &file.hooks {
        TestedHooks::Project => "project".into(),
        TestedHooks::Files(files) => {
            let files = files.iter().map(|file| file.display().to_string());
            files.collect::<Vec<_>>().into()
        }
    }
}

fn in_json(case: &HookCase, ran: &CaseRun, mismatches: &[CaseMismatch], is_ok: bool) -> Value {
    let (result, error) = match &ran.end {
        CaseEnd::Result(result) => (Some(result_json(result)), None),
        CaseEnd::Failed(error) | CaseEnd::Broken(error) => (None, Some(error)),
    };
    json!({
        "name": case.name,
        "line": case.line,
        "ok": is_ok,
        "note": case.note,
        "warning": case.warning,
        "duration_ms": ran.duration.as_millis(),
        "mismatches": mismatches,
        "error": error,
        "result": result,
        "printed": ran.printed,
    })
}

fn result_json(result: &CaseResult) -> Value {
    let run = |run: &RunRecord| {
        json!({
            "event": run.event,
            "hook": run.hook,
            "source": run.source,
            "status": run.status,
            "effect": run.effect,
            "reason": run.reason,
            "cause": run.cause,
            "let_through": run.let_through,
            "duration_ms": run.duration_ms,
        })
    };
    json!({
        "decision": result.decision,
        "reason": result.reason,
        "by": result.by,
        "before": result.before,
        "after": result.after,
        "context": result.context,
        "runs": result.runs.iter().map(run).collect::<Vec<_>>(),
        "unmatched": result.unmatched,
    })
}
