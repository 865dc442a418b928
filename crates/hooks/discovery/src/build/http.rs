//! Builds the handlers of HTTP hooks.

use std::sync::Arc;

use tenterhook_engine::AsyncHandler;
use tenterhook_hookfile::{Environment, HookDeclaration, HttpDeclaration, Report, shorten};
use tenterhook_runners::http::{Headers, HttpHandler, Target, TargetError};

/// Builds the handler of a declaration that posts to a URL.
pub(super) fn handler(
    report: &mut Report,
    environment: &Environment,
    declaration: &HookDeclaration,
    http: &HttpDeclaration,
) -> Option<Arc<dyn AsyncHandler>> {
    let target = target(report, http);
    let headers = headers(report, environment, http);
    let handler = HttpHandler::new(target?, headers?, Arc::clone(&declaration.dialect));
    match handler {
        Ok(handler) => Some(Arc::new(handler.strict_output(declaration.strict_output))),
        Err(error) => {
            report.add(report.problem(declaration.action_span, error.to_string()));
            None
        }
    }
}

fn target(report: &mut Report, http: &HttpDeclaration) -> Option<Target> {
    let target = match Target::parse(&http.url, http.allow_private) {
        Ok(target) => target,
        Err(error) => {
            let message = format!("cannot post to `{}`: {error}", shorten(&http.url));
            let problem = report.problem(http.url_span, message);
            report.add(if matches!(error, TargetError::Private { .. }) {
                problem.hint("to allow private addresses, write `allow_private: true`")
            } else {
                problem.allowed("a URL such as `https://example.com/hook`")
            });
            return None;
        }
    };
    if target.is_plain() {
        let message = format!("events are sent to `{}` without encryption", target.host());
        report.add(
            report
                .warning(http.url_span, message)
                .hint("use `https://`, or post only to this machine"),
        );
    }
    Some(target)
}

/// Builds the headers. Returns `None` if one of them is invalid; the report then has the reason.
fn headers(
    report: &mut Report,
    environment: &Environment,
    http: &HttpDeclaration,
) -> Option<Headers> {
    let (mut names, mut headers) = (Headers::default(), Headers::default());
    let mut is_complete = true;
    for header in &http.headers {
        if let Err(error) = names.add(&header.name, b"") {
            report.add(report.problem(header.name_span, error.to_string()));
            is_complete = false;
            continue;
        }
        if let Some(variable) = environment.first_unset(&header.value) {
            let message = format!(
                "the header `{}` uses the variable `{variable}`, which is not set",
                header.name
            );
            report.add(
                report
                    .warning(header.name_span, message)
                    .hint("set the variable; until then, it expands to an empty string"),
            );
        }
        let value = environment.expand_value(&header.value);
        if let Err(error) = headers.add(&header.name, value.as_encoded_bytes()) {
            report.add(report.problem(header.name_span, error.to_string()));
            is_complete = false;
        }
    }
    is_complete.then_some(headers)
}
