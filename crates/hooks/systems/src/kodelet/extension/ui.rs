//! The requests of extensions about the user interface, and the host's requests that do the same.
//!
//! | request | host's request | answer |
//! |---|---|---|
//! | `kodelet.ui.input` | `ui/input` | `submitted` with a `value`, or `dismissed` |
//! | `kodelet.ui.confirm` | `ui/confirm` | `submitted` with `confirmed: true`, or `dismissed` |
//! | `kodelet.ui.select` | `ui/select` | `submitted` with a `value`, or `dismissed` |
//! | `kodelet.ui.notify` | `ui/notify` | `submitted` |
//! | `kodelet.ui.transcript.append` | `ui/notify` | `accepted: true` |
//! | `kodelet.ui.widget.set`, `.frame`, `.remove` | `ui/show` | `accepted: true` |
//! | `kodelet.ui.surface.*` | none | `accepted: false`, because the terminal shows lines |
//!
//! Without a user, the first four are `unavailable`, and the others are not accepted.

use serde::Deserialize;
use serde_json::{Value, json};

/// A request of an extension about the user interface.
struct Row {
    method: &'static str,
    /// The host's request; `None` if the host cannot do this.
    host: Option<&'static str>,
    params: fn(Request) -> Value,
    answer: fn(&Request, &Value) -> Value,
    form: Form,
}

/// The form of the answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// An object with `status`.
    Status,
    /// An object with `accepted`.
    Accepted,
}

/// The parameters of all requests. Each request uses some of them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Request {
    id: String,
    title: String,
    help_text: String,
    message: String,
    placeholder: String,
    default_value: String,
    required: bool,
    options: Vec<String>,
    placement: String,
    frame: Frame,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Frame {
    lines: Vec<Line>,
}

/// A line of a widget: text, or spans with styles, which are not shown.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Line {
    Text(String),
    Styled { spans: Vec<Span> },
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Span {
    text: String,
}

const ROWS: &[Row] = &[
    Row {
        method: "kodelet.ui.input",
        host: Some("ui/input"),
        params: |request| {
            let hint = [&request.placeholder, &request.default_value];
            let hint = hint.into_iter().find(|text| !text.is_empty());
            json!({ "title": request.heading("Extension requested input"), "placeholder": hint })
        },
        answer: |request, answer| match answer.get("answer").and_then(Value::as_str) {
            None => dismissed(),
            Some("") if !request.default_value.is_empty() => submitted(&request.default_value),
            Some(text) if request.required && text.trim().is_empty() => dismissed(),
            Some(text) => submitted(text),
        },
        form: Form::Status,
    },
    Row {
        method: "kodelet.ui.confirm",
        host: Some("ui/confirm"),
        params: |request| {
            let title = or(&request.title, "Extension requested confirmation");
            json!({ "title": title, "message": request.message })
        },
        answer: |_, answer| match answer.get("answer").and_then(Value::as_bool) {
            None => dismissed(),
            Some(true) => json!({ "status": "submitted", "value": "true", "confirmed": true }),
            Some(false) => json!({ "status": "dismissed", "value": "false" }),
        },
        form: Form::Status,
    },
    Row {
        method: "kodelet.ui.select",
        host: Some("ui/select"),
        params: |request| {
            let title = request.heading("Extension requested selection");
            json!({ "title": title, "options": request.options })
        },
        answer: |_, answer| {
            let answer = answer.get("answer").and_then(Value::as_str);
            answer.map_or_else(dismissed, submitted)
        },
        form: Form::Status,
    },
    Row {
        method: "kodelet.ui.notify",
        host: Some("ui/notify"),
        params: Request::notice,
        answer: |_, _| json!({ "status": "submitted" }),
        form: Form::Status,
    },
    Row {
        method: "kodelet.ui.transcript.append",
        host: Some("ui/notify"),
        params: Request::notice,
        answer: accepted,
        form: Form::Accepted,
    },
    Row {
        method: "kodelet.ui.widget.set",
        host: Some("ui/show"),
        params: Request::widget,
        answer: accepted,
        form: Form::Accepted,
    },
    Row {
        method: "kodelet.ui.widget.frame",
        host: Some("ui/show"),
        params: Request::widget,
        answer: accepted,
        form: Form::Accepted,
    },
    Row {
        method: "kodelet.ui.widget.remove",
        host: Some("ui/show"),
        params: |request| json!({ "kind": "widget", "key": request.id }),
        answer: accepted,
        form: Form::Accepted,
    },
    SURFACE,
    Row {
        method: "kodelet.ui.surface.frame",
        ..SURFACE
    },
    Row {
        method: "kodelet.ui.surface.close",
        ..SURFACE
    },
];

const SURFACE: Row = Row {
    method: "kodelet.ui.surface.open",
    host: None,
    params: |_| Value::Null,
    answer: accepted,
    form: Form::Accepted,
};

/// The requests that ask the user something. The time limit of a call does not count the time for the answer.
pub(in super::super) const QUESTIONS: &[&str] = &[
    "kodelet.ui.input",
    "kodelet.ui.confirm",
    "kodelet.ui.select",
];

/// What the host supports, in the form of kodelet's capabilities.
pub(in super::super) fn capabilities(has_user: bool) -> Value {
    json!({
        "input": has_user,
        "confirm": has_user,
        "select": has_user,
        "notify": has_user,
        "transcript": has_user,
        "widgets": has_user,
        "surfaces": false,
    })
}

/// Translates a request to a request of the host: its method and parameters. Returns `None` if the host has no such
/// request.
pub(in super::super) fn host_request(
    method: &str,
    params: &Value,
) -> Option<Result<(&'static str, Value), String>> {
    let row = row(method)?;
    let host = row.host?;
    Some(read(params).map(|request| (host, (row.params)(request))))
}

/// Translates the answer of the host to a request. `None` stands for a request that the host did not get, because
/// there is no user.
pub(in super::super) fn answer(method: &str, params: &Value, answer: Option<&Value>) -> Value {
    let Some(row) = row(method) else {
        return dismissed();
    };
    match (answer, read(params)) {
        (Some(answer), Ok(request)) => (row.answer)(&request, answer),
        _ => unavailable(row.form),
    }
}

/// Returns the answer to a request about the user interface that the host does not support.
pub(super) fn unsupported(method: &str) -> Option<Value> {
    let form = row(method).map_or(Form::Status, |row| row.form);
    method.starts_with("kodelet.ui.").then(|| unavailable(form))
}

fn row(method: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.method == method)
}

fn read(params: &Value) -> Result<Request, String> {
    Request::deserialize(params).map_err(|error| error.to_string())
}

fn unavailable(form: Form) -> Value {
    match form {
        Form::Status => json!({ "status": "unavailable", "reason": "no user can be asked" }),
        Form::Accepted => json!({ "accepted": false, "reason": "it cannot be shown" }),
    }
}

fn dismissed() -> Value {
    json!({ "status": "dismissed" })
}

fn submitted(value: &str) -> Value {
    json!({ "status": "submitted", "value": value })
}

fn accepted(_: &Request, _: &Value) -> Value {
    json!({ "accepted": true })
}

fn or<'a>(text: &'a str, default: &'a str) -> &'a str {
    if text.trim().is_empty() {
        default
    } else {
        text
    }
}

impl Request {
    /// Returns the title with the texts that explain it.
    fn heading(&self, default: &str) -> String {
        let texts = [or(&self.title, default), &self.help_text, &self.message];
        let texts = texts.into_iter().filter(|text| !text.trim().is_empty());
        texts.collect::<Vec<_>>().join("\n")
    }

    fn notice(self) -> Value {
        let texts = [self.title.as_str(), &self.message];
        let texts = texts.into_iter().filter(|text| !text.trim().is_empty());
        json!({ "message": texts.collect::<Vec<_>>().join(": "), "level": "info" })
    }

    fn widget(self) -> Value {
        let is_below = self.placement.starts_with("below");
        let lines = self.frame.lines.into_iter().map(|line| match line {
            Line::Text(text) => text,
            Line::Styled { spans } => spans.into_iter().map(|span| span.text).collect(),
        });
        json!({
            "kind": "widget",
            "key": self.id,
            "lines": lines.collect::<Vec<String>>(),
            "placement": if is_below { "below" } else { "above" },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_are_translated() {
        for (method, params, host, host_answer, expected) in [
            (
                "kodelet.ui.confirm",
                json!({"title": "Sure?", "message": "rm x"}),
                json!(["ui/confirm", {"title": "Sure?", "message": "rm x"}]),
                json!({"answer": true}),
                json!({"status": "submitted", "value": "true", "confirmed": true}),
            ),
            (
                "kodelet.ui.confirm",
                json!({}),
                json!(["ui/confirm", {"title": "Extension requested confirmation", "message": ""}]),
                json!({"answer": false}),
                json!({"status": "dismissed", "value": "false"}),
            ),
            (
                "kodelet.ui.select",
                json!({"title": "Which?", "message": "one of", "options": ["a", "b"]}),
                json!(["ui/select", {"title": "Which?\none of", "options": ["a", "b"]}]),
                json!({"answer": "b"}),
                json!({"status": "submitted", "value": "b"}),
            ),
            (
                "kodelet.ui.input",
                json!({"title": "Name?", "defaultValue": "me", "secret": true}),
                json!(["ui/input", {"title": "Name?", "placeholder": "me"}]),
                json!({"answer": ""}),
                json!({"status": "submitted", "value": "me"}),
            ),
            (
                "kodelet.ui.input",
                json!({"title": "Name?", "required": true}),
                json!(["ui/input", {"title": "Name?", "placeholder": null}]),
                json!({"answer": " "}),
                json!({"status": "dismissed"}),
            ),
            (
                "kodelet.ui.input",
                json!({"title": "Name?"}),
                json!(["ui/input", {"title": "Name?", "placeholder": null}]),
                json!({}),
                json!({"status": "dismissed"}),
            ),
            (
                "kodelet.ui.notify",
                json!({"title": "Build", "message": "done"}),
                json!(["ui/notify", {"message": "Build: done", "level": "info"}]),
                json!({}),
                json!({"status": "submitted"}),
            ),
            (
                "kodelet.ui.widget.set",
                json!({"id": "w", "placement": "belowComposer", "frame": {"sequence": 1, "lines": [
                    "one", {"spans": [{"text": "t"}, {"text": "wo", "style": {"bold": true}}]},
                ]}}),
                json!(["ui/show", {
                    "kind": "widget", "key": "w", "lines": ["one", "two"], "placement": "below",
                }]),
                json!({}),
                json!({"accepted": true}),
            ),
            (
                "kodelet.ui.widget.remove",
                json!({"id": "w", "sequence": 2}),
                json!(["ui/show", {"kind": "widget", "key": "w"}]),
                json!({}),
                json!({"accepted": true}),
            ),
        ] {
            let asked = host_request(method, &params).unwrap().unwrap();
            assert_eq!(json!(asked), host, "{method}");
            assert_eq!(
                answer(method, &params, Some(&host_answer)),
                expected,
                "{method}"
            );
        }
    }

    #[test]
    fn without_a_user_a_request_gets_the_documented_answer() {
        for row in ROWS {
            let found = answer(row.method, &json!({}), None);
            let is_unavailable = match row.form {
                Form::Status => found["status"] == "unavailable",
                Form::Accepted => found["accepted"] == false,
            };
            assert!(is_unavailable, "{}: {found}", row.method);
        }
        assert!(host_request("kodelet.ui.surface.open", &json!({})).is_none());
        assert_eq!(
            unsupported("kodelet.ui.surface.open").unwrap()["accepted"],
            false
        );
        assert_eq!(
            unsupported("kodelet.ui.later").unwrap()["status"],
            "unavailable"
        );
        assert_eq!(unsupported("kodelet.tool.update"), None);
    }

    #[test]
    fn parameters_of_the_wrong_type_are_refused() {
        let params = json!({"options": "a"});
        assert!(host_request("kodelet.ui.select", &params).unwrap().is_err());
    }
}
