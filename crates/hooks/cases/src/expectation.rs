//! What a case expects, and how a result differs from it.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use tenterhook_engine::JsonObject;

use crate::decision::ExpectedDecision;
use crate::result::CaseResult;
use crate::text_pattern::TextPattern;

/// What a case expects. A field that is `None` is not compared.
#[derive(Debug, Clone, Default)]
pub struct CaseExpectation {
    /// The decision.
    pub decision: Option<ExpectedDecision>,
    /// The reason to ask or to stop.
    pub reason: Option<TextPattern>,
    /// The values that hooks change.
    pub rewritten: Option<ExpectedRewrites>,
    /// Text that a hook adds for the model.
    pub context: Option<TextPattern>,
    /// Whether a hook is expected to fail. If not, a failed hook fails the case, so that a crash never counts
    /// as a tested denial.
    pub is_failure: bool,
}

/// The values that hooks must have changed, by their names in the payload. An empty list means that nothing may be changed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExpectedRewrites(pub Vec<(String, Value)>);

/// One difference between what was expected and the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseMismatch {
    /// What differs: a key of `expect`, or a value of the payload.
    pub what: String,
    /// What was expected.
    pub expected: String,
    /// What the hooks did.
    pub got: String,
}

impl CaseMismatch {
    fn new(what: &str, expected: impl fmt::Display, got: impl fmt::Display) -> Self {
        Self {
            what: what.to_owned(),
            expected: expected.to_string(),
            got: got.to_string(),
        }
    }
}

impl CaseExpectation {
    /// Returns every difference between the expectation and a result.
    pub fn compare(&self, result: &CaseResult) -> Vec<CaseMismatch> {
        let mut mismatches = Vec::new();
        if let Some(expected) = self.decision
            && expected != result.decision
        {
            mismatches.push(CaseMismatch::new("decision", expected, decided(result)));
        }
        if let Some(expected) = &self.reason {
            let reason = result.reason.as_deref();
            if !reason.is_some_and(|reason| expected.fits(reason)) {
                let got = reason.map_or_else(|| "no reason".to_owned(), quoted);
                mismatches.push(CaseMismatch::new("reason", expected, got));
            }
        }
        if let Some(expected) = &self.rewritten {
            expected.compare(result, &mut mismatches);
        }
        if let Some(expected) = &self.context
            && !result.context.iter().any(|text| expected.fits(text))
        {
            let texts: Vec<String> = result.context.iter().map(|text| quoted(text)).collect();
            let got = match texts.as_slice() {
                [] => "no context".to_owned(),
                texts => texts.join(", "),
            };
            mismatches.push(CaseMismatch::new("context", expected, got));
        }
        self.compare_failures(result, &mut mismatches);
        mismatches
    }

    fn compare_failures(&self, result: &CaseResult, mismatches: &mut Vec<CaseMismatch>) {
        let failures = result.failures();
        if self.is_failure && failures.is_empty() {
            mismatches.push(CaseMismatch::new(
                "failure",
                "a hook that fails",
                "no hook failed",
            ));
        }
        if !self.is_failure {
            for failure in failures {
                let got = format!("`{}` failed: {}", failure.hook, failure.cause);
                mismatches.push(CaseMismatch::new("failure", "no hook fails", got));
            }
        }
    }
}

impl ExpectedRewrites {
    fn compare(&self, result: &CaseResult, mismatches: &mut Vec<CaseMismatch>) {
        if self.0.is_empty() && result.before != result.after {
            let changed = changed_fields(&result.before, &result.after).join(", ");
            mismatches.push(CaseMismatch::new("rewritten", "nothing", changed));
        }
        for (name, expected) in &self.0 {
            let before = value_at(&result.before, name);
            match value_at(&result.after, name) {
                None => mismatches.push(CaseMismatch::new(name, expected, "no such value")),
                Some(after) if after != expected && before == Some(after) => {
                    let got = format!("{after} (not changed)");
                    mismatches.push(CaseMismatch::new(name, expected, got));
                }
                Some(after) if after != expected => {
                    mismatches.push(CaseMismatch::new(name, expected, after));
                }
                Some(after) if before == Some(after) => {
                    let got = "the case sends this value already, and no hook changed it";
                    mismatches.push(CaseMismatch::new(name, expected, got));
                }
                Some(_) => {}
            }
        }
    }
}

/// Returns the fields of a payload that differ.
fn changed_fields(before: &JsonObject, after: &JsonObject) -> Vec<String> {
    let changed = after
        .iter()
        .filter(|(name, value)| before.get(*name) != Some(value));
    changed
        .map(|(name, value)| format!("`{name}` is {value}"))
        .collect()
}

/// Returns the value with this name: a path into the payload such as `tool_input.cmd` or `result.content.0.text`, or the
/// name of an argument of the tool.
fn value_at<'a>(payload: &'a JsonObject, name: &str) -> Option<&'a Value> {
    let mut parts = name.split('.');
    let first = payload.get(parts.next()?);
    let next = |value: &'a Value, part: &str| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        Value::Object(fields) => fields.get(part),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    let at_path = first.and_then(|value| parts.try_fold(value, next));
    at_path.or_else(|| payload.get("tool_input")?.get(name))
}

/// Describes a decision: the word, the hook and its reason.
fn decided(result: &CaseResult) -> String {
    if result.hooks_run() == 0 {
        return format!("{}; no hook matched {}", result.decision, result.sent);
    }
    let by = result.by.as_ref().map(|by| {
        let source = if by.source.is_empty() {
            String::new()
        } else {
            format!(" of {}", by.source)
        };
        format!(" by `{}`{source} on {}", by.hook, by.event)
    });
    let reason = result.reason.as_deref().map(|reason| format!(": {reason}"));
    format!(
        "{}{}{}",
        result.decision,
        by.unwrap_or_default(),
        reason.unwrap_or_default()
    )
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::result::DecidedBy;

    fn object(value: Value) -> JsonObject {
        let Value::Object(object) = value else {
            panic!("{value}");
        };
        object
    }

    #[test]
    fn a_value_has_a_path_or_is_an_argument_of_the_tool() {
        let payload = object(json!({
            "tool_input": { "cmd": "ls", "a.b": 1 },
            "result": { "content": [{ "text": "x" }] },
        }));
        for (name, expected) in [
            ("cmd", Some(json!("ls"))),
            ("tool_input.cmd", Some(json!("ls"))),
            ("a.b", Some(json!(1))),
            ("result.content.0.text", Some(json!("x"))),
            ("result.content.1.text", None),
            ("result.content.x", None),
            ("gone", None),
        ] {
            assert_eq!(value_at(&payload, name), expected.as_ref(), "{name}");
        }
    }

    fn result() -> CaseResult {
        CaseResult {
            decision: ExpectedDecision::Stop,
            reason: Some("no sudo here".to_owned()),
            by: Some(DecidedBy {
                hook: "guard".to_owned(),
                source: "hooks.yaml:2".to_owned(),
                event: "tool_guard".to_owned(),
            }),
            before: object(json!({ "tool_name": "shell", "tool_input": { "cmd": "ls" } })),
            after: object(json!({ "tool_name": "shell", "tool_input": { "cmd": "ls -h" } })),
            context: vec!["be careful".to_owned()],
            runs: Vec::new(),
            sent: "the event `stop`".to_owned(),
            unmatched: Vec::new(),
        }
    }

    fn pattern(text: &str) -> Option<TextPattern> {
        TextPattern::parse(text).ok()
    }

    #[test]
    fn what_is_not_expected_is_not_compared() {
        assert_eq!(CaseExpectation::default().compare(&result()), []);
    }

    #[test]
    fn every_expectation_is_compared() {
        let fits = CaseExpectation {
            decision: Some(ExpectedDecision::Stop),
            reason: pattern("/sudo here$/"),
            rewritten: Some(ExpectedRewrites(vec![("cmd".to_owned(), json!("ls -h"))])),
            context: pattern("careful"),
            is_failure: false,
        };
        assert_eq!(fits.compare(&result()), []);
        let differs = CaseExpectation {
            decision: Some(ExpectedDecision::Ask),
            reason: pattern("root"),
            rewritten: Some(ExpectedRewrites(vec![
                ("tool_input.cmd".to_owned(), json!("ls -a")),
                ("tool_name".to_owned(), json!("shell")),
                ("gone".to_owned(), json!(1)),
            ])),
            context: pattern("brave"),
            is_failure: true,
        };
        let mismatches = differs.compare(&result());
        let what: Vec<&str> = mismatches.iter().map(|it| it.what.as_str()).collect();
        assert_eq!(
            what,
            [
                "decision",
                "reason",
                "tool_input.cmd",
                "tool_name",
                "gone",
                "context",
                "failure"
            ]
        );
    }

    #[test]
    fn an_empty_list_of_rewrites_means_that_nothing_is_changed() {
        let expectation = CaseExpectation {
            rewritten: Some(ExpectedRewrites::default()),
            ..CaseExpectation::default()
        };
        let mismatches = expectation.compare(&result());
        assert_eq!(mismatches[0].got, r#"`tool_input` is {"cmd":"ls -h"}"#);
        let mut unchanged = result();
        unchanged.after = unchanged.before.clone();
        assert_eq!(expectation.compare(&unchanged), []);
    }
}
