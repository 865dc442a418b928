//! The template that makes a message of a request. Its author is the owner; its data are a stranger's.

use std::io;

use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value};
use thiserror::Error;

/// How many instructions one rendering may take.
const FUEL: u64 = 200_000;

/// The maximum size of a message in bytes.
const MAX_TEXT: usize = 64 << 10;

/// The name of the template. It has no file extension, so that nothing is escaped.
const NAME: &str = "message";

/// The error of a template that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{cause}")]
pub struct InvalidTemplate {
    /// What is wrong, with the line.
    pub cause: String,
}

/// A parsed template. `{{ body.… }}` inserts values of the request; missing values are empty.
pub(super) struct MessageTemplate(Environment<'static>);

impl MessageTemplate {
    pub(super) fn parse(source: &str) -> Result<Self, InvalidTemplate> {
        let mut environment = Environment::new();
        environment.set_fuel(Some(FUEL));
        environment.set_undefined_behavior(UndefinedBehavior::Chainable);
        environment
            .add_template_owned(NAME, source.to_owned())
            .map_err(|error| InvalidTemplate {
                cause: describe(&error),
            })?;
        Ok(Self(environment))
    }

    /// Returns the text of the message.
    ///
    /// # Errors
    ///
    /// Fails if the body is not JSON, or if the template cannot use its values or makes too much of them.
    pub(super) fn render(&self, body: &[u8]) -> Result<String, String> {
        let body: Value = serde_json::from_slice(body)
            .map_err(|error| format!("the body is not JSON: {error}"))?;
        let template = self.0.get_template(NAME);
        let template = template.map_err(|error| describe(&error))?;
        let mut text = BoundedText(Vec::new());
        template
            .render_captured_to(Value::from_pairs([("body", body)]), &mut text)
            .map_err(|error| describe(&error))?;
        String::from_utf8(text.0).map_err(|error| error.to_string())
    }
}

fn describe(error: &minijinja::Error) -> String {
    let what = match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => "the template takes too much work".to_owned(),
        (ErrorKind::WriteFailure, _) => {
            format!("the message is larger than {} KiB", MAX_TEXT >> 10)
        }
        (_, Some(detail)) => detail.to_owned(),
        (kind, None) => kind.to_string(),
    };
    match error.line() {
        Some(line) => format!("line {line} of the template: {what}"),
        None => what,
    }
}

struct BoundedText(Vec<u8>);

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len().saturating_add(bytes.len()) > MAX_TEXT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn render(source: &str, body: &serde_json::Value) -> Result<String, String> {
        let body = body.to_string();
        MessageTemplate::parse(source)
            .unwrap()
            .render(body.as_bytes())
    }

    #[test]
    fn values_of_the_body_are_inserted_as_data() {
        let body = json!({"action": "opened", "issue": {"title": "<b> {{ 7 * 7 }}", "n": 3}});
        assert_eq!(
            render(
                "{{ body.action }} #{{ body.issue.n }}: {{ body.issue.title }}",
                &body
            )
            .unwrap(),
            "opened #3: <b> {{ 7 * 7 }}"
        );
        assert_eq!(
            render("{{ body.a.b.c }}{% if body.x %}x{% endif %}", &body).unwrap(),
            ""
        );
    }

    #[test]
    fn work_and_length_are_bounded() {
        let body = json!({"text": "x".repeat(10_000)});
        let long = "{% for i in range(100) %}{{ body.text }}{% endfor %}";
        assert!(
            render(long, &body)
                .unwrap_err()
                .contains("larger than 64 KiB")
        );
        let busy = "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}";
        assert!(render(busy, &body).unwrap_err().contains("too much work"));
    }

    #[test]
    fn a_broken_template_is_an_error_with_its_line() {
        let error = MessageTemplate::parse("a\n{{ body. }}").err().unwrap();
        assert!(error.cause.starts_with("line 2"), "{error}");
    }
}
