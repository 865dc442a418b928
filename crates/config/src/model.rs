//! Model hooks: their keys, and where in the file a mistake of their prompt stands.

use std::collections::BTreeMap;

use tenterhook_handlers::model::{ModelHookError, Shape};

use crate::fields::Fields;
use crate::problem::Problem;
use crate::report::Report;
use crate::source::Span;
use crate::suggest::one_of;
use crate::tree::{Node, shorten};

/// What a model hook asks.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The model, with the name that the file has for it resolved.
    pub(crate) model: String,
    pub(crate) prompt: String,
    pub(crate) prompt_span: Span,
    pub(crate) shape: Shape,
}

/// The names that an agent file gives to models, each with `PROVIDER/MODEL`.
pub(crate) type Models = BTreeMap<String, String>;

/// Reads the section `models` of an agent file. What is no model is the agent's to refuse.
pub(crate) fn read_models(root: &Node) -> Models {
    let section = root
        .entry("models")
        .and_then(|entry| entry.value.as_table());
    let text = |node: &Node, key| Some(node.entry(key)?.value.as_text()?.to_owned());
    section
        .unwrap_or_default()
        .iter()
        .filter_map(|entry| {
            let (provider, model) = (
                text(&entry.value, "provider")?,
                text(&entry.value, "model")?,
            );
            Some((entry.key.clone(), format!("{provider}/{model}")))
        })
        .collect()
}

/// Reads `model`, `prompt` and `schema`.
pub(crate) fn read(
    report: &mut Report,
    fields: &Fields<'_>,
    models: &Models,
) -> Option<(Asked, Span)> {
    for key in ["model", "prompt"] {
        if !fields.has(key) {
            let message = format!("the model hook has no `{key}`");
            report.add(report.problem(fields.span, message));
        }
    }
    let shape = read_shape(report, fields);
    let model = fields.full_text(report, "model");
    let prompt = fields.full_text(report, "prompt");
    let (model, prompt, shape) = (model?, prompt?, shape?);
    let asked = Asked {
        model: models
            .get(model.text)
            .map_or(model.text, String::as_str)
            .to_owned(),
        prompt: prompt.text.to_owned(),
        prompt_span: prompt.span,
        shape,
    };
    Some((asked, model.span))
}

fn read_shape(report: &mut Report, fields: &Fields<'_>) -> Option<Shape> {
    if !fields.has("schema") {
        return Some(Shape::Context);
    }
    let schema = fields.text(report, "schema")?;
    if schema.text.is_empty() {
        return Some(Shape::Context);
    }
    if Shape::DECISION_NAMES.contains(&schema.text) {
        return Some(Shape::Decision);
    }
    let message = format!("unknown schema `{}`", shorten(schema.text));
    report.add(
        report
            .problem(schema.span, message)
            .allowed(one_of(Shape::DECISION_NAMES))
            .suggestion(report.nearest(schema.text, Shape::DECISION_NAMES)),
    );
    None
}

impl Asked {
    /// Makes the problem of a hook that cannot be made. `place` is where what it runs stands.
    pub(crate) fn problem(&self, report: &Report, place: Span, error: &ModelHookError) -> Problem {
        match error {
            ModelHookError::Prompt(template) => {
                let span = self.span_of(report, template.offset, template.line);
                let message = match span {
                    // The place is shown, and needs no words.
                    Some(_) => format!("parse prompt template: {}", template.message),
                    None => error.to_string(),
                };
                let problem = report.problem(span.unwrap_or(self.prompt_span), message);
                match &template.allowed {
                    Some(allowed) => problem.allowed(allowed),
                    None => problem,
                }
            }
            ModelHookError::Event { shape, .. } => {
                let hint = match shape {
                    Shape::Context => format!(
                        "write `schema: {}` for a decision on an event that takes one",
                        Shape::DECISION_NAMES[0]
                    ),
                    Shape::Decision => {
                        "remove `schema` for context on an event that takes it".to_owned()
                    }
                };
                report.problem(place, error.to_string()).hint(hint)
            }
            _ => report.problem(place, error.to_string()),
        }
    }

    /// Finds the byte of the file where a byte of the prompt stands: on the same line of the text as it is
    /// written, or one further down where a block text begins below its key. `None` where it is written otherwise
    /// than it reads.
    fn span_of(&self, report: &Report, offset: usize, line: usize) -> Option<Span> {
        let written = report.source().text();
        let written = written.get(self.prompt_span.start..self.prompt_span.end)?;
        let before = self.prompt.get(..offset)?;
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let wanted = self.prompt.get(line_start..)?.lines().next()?;
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
        let start = self.prompt_span.start + found? + (offset - line_start);
        Some(Span {
            start,
            end: start + 1,
        })
    }
}
