//! Builds the handlers of model hooks, and locates mistakes of their prompts in the file.

use std::sync::Arc;

use tenterhook_engine::{AsyncHandler, EventName};
use tenterhook_hookfile::{
    DECISION_SCHEMAS, DeclaredReply, HookDeclaration, ModelDeclaration, Problem, Report, Span,
};
use tenterhook_runners::model::{ModelHandler, ModelHook, ModelHookError, Shape};

use crate::options::LoadOptions;

/// Builds the handler of a declaration that asks a model.
pub(super) fn handler(
    report: &mut Report,
    options: &LoadOptions,
    declaration: &HookDeclaration,
    model: &ModelDeclaration,
) -> Option<Arc<dyn AsyncHandler>> {
    let events: Vec<EventName> = declaration.event_names();
    let hook = ModelHook {
        model: &model.model,
        prompt: &model.prompt,
        shape: match model.reply {
            DeclaredReply::Context => Shape::Context,
            DeclaredReply::Decision => Shape::Decision,
        },
        events: &events,
        dialect: &declaration.dialect,
    };
    match ModelHandler::new(&hook, options.services.model.clone()) {
        Ok(handler) => {
            if let Some(problem) = handler.problem() {
                report.add(
                    report
                        .warning(declaration.action_span, problem)
                        .hint("until this is fixed, every call of the hook fails"),
                );
            }
            Some(Arc::new(handler))
        }
        Err(error) => {
            report.add(problem(report, model, declaration.action_span, &error));
            None
        }
    }
}

/// Returns the problem of a hook that cannot be built.
fn problem(
    report: &Report,
    model: &ModelDeclaration,
    action_span: Span,
    error: &ModelHookError,
) -> Problem {
    match error {
        ModelHookError::Prompt(template) => {
            let span = span_of(report, model, template.offset, template.line);
            let message = match span {
                // The report shows the position, so the message need not contain it.
                Some(_) => format!("parse prompt template: {}", template.message),
                None => error.to_string(),
            };
            let problem = report.problem(span.unwrap_or(model.prompt_span), message);
            match &template.allowed {
                Some(allowed) => problem.allowed(allowed),
                None => problem,
            }
        }
        ModelHookError::Event { shape, .. } => {
            let hint = match shape {
                Shape::Context => format!(
                    "choose an event that accepts context, or write `schema: {}` on an event that accepts a decision",
                    DECISION_SCHEMAS[0]
                ),
                Shape::Decision => {
                    "choose an event that accepts a decision, or remove `schema` on an event that accepts context".to_owned()
                }
            };
            report.problem(action_span, error.to_string()).hint(hint)
        }
        _ => report.problem(action_span, error.to_string()),
    }
}

/// Finds the position in the file of a byte of the prompt. It is on the same line of the written text, or
/// one line further down if a block text begins below its key. Returns `None` if the text is written
/// differently than it reads, for example with escapes.
fn span_of(report: &Report, model: &ModelDeclaration, offset: usize, line: usize) -> Option<Span> {
    let written = report.source().text();
    let written = written.get(model.prompt_span.start..model.prompt_span.end)?;
    let before = model.prompt.get(..offset)?;
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let wanted = model.prompt.get(line_start..)?.lines().next()?;
    let mut start = 0;
    let lines = written.split_inclusive('\n').map(|text| {
        let at = start;
        start += text.len();
        (at, text)
    });
    let found = lines.skip(line - 1).take(2).find_map(|(at, text)| {
        let column = text.find(wanted)?;
        Some(at + column)
    });
    let start = model.prompt_span.start + found? + (offset - line_start);
    Some(Span {
        start,
        end: start + 1,
    })
}
