//! Reads the keys of model hooks: `model`, `prompt` and `schema`.
//!
//! The code that builds the hook later checks whether the prompt is a valid template for its events.

use std::collections::BTreeMap;

use crate::excerpt::shorten;
use crate::fields::Fields;
use crate::report::Report;
use crate::source::Span;
use crate::suggest::one_of;
use crate::tree::Node;

/// The values of `schema` that ask for a decision. Both mean the same.
pub const DECISION_SCHEMAS: [&str; 2] = ["pre_tool_use_decision", "decision"];

/// The question that a model hook asks.
#[derive(Debug, Clone)]
pub struct ModelDeclaration {
    /// The model. A name from `models` in the file is already replaced with `PROVIDER/MODEL`.
    pub model: String,
    /// The template of the prompt.
    pub prompt: String,
    /// Where the template is in the file.
    pub prompt_span: Span,
    /// The kind of reply that the hook asks for.
    pub reply: DeclaredReply,
}

/// The kind of reply that a model hook asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeclaredReply {
    /// Text that is added to the context of the agent's model.
    Context,
    /// A decision on the event.
    Decision,
}

impl DeclaredReply {
    /// Returns the name of the schema, or `None` if the reply is plain text.
    pub const fn schema_name(self) -> Option<&'static str> {
        let [name, _] = DECISION_SCHEMAS;
        match self {
            Self::Context => None,
            Self::Decision => Some(name),
        }
    }
}

/// The models of an agent file, as `PROVIDER/MODEL`, by name.
pub(crate) type Models = BTreeMap<String, String>;

/// Reads the section `models` of an agent file. Skips invalid values, because the agent reports them.
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
) -> Option<(ModelDeclaration, Span)> {
    for key in ["model", "prompt"] {
        if !fields.has(key) {
            let message = format!("the model hook has no `{key}`");
            report.add(report.problem(fields.span, message));
        }
    }
    let reply = read_reply(report, fields);
    let model = fields.full_text(report, "model");
    let prompt = fields.full_text(report, "prompt");
    let (model, prompt, reply) = (model?, prompt?, reply?);
    let declaration = ModelDeclaration {
        model: models
            .get(model.text)
            .map_or(model.text, String::as_str)
            .to_owned(),
        prompt: prompt.text.to_owned(),
        prompt_span: prompt.span,
        reply,
    };
    Some((declaration, model.span))
}

fn read_reply(report: &mut Report, fields: &Fields<'_>) -> Option<DeclaredReply> {
    if !fields.has("schema") {
        return Some(DeclaredReply::Context);
    }
    let schema = fields.text(report, "schema")?;
    if schema.text.is_empty() {
        return Some(DeclaredReply::Context);
    }
    if DECISION_SCHEMAS.contains(&schema.text) {
        return Some(DeclaredReply::Decision);
    }
    let message = format!("unknown schema `{}`", shorten(schema.text));
    report.add(
        report
            .problem(schema.span, message)
            .allowed(one_of(DECISION_SCHEMAS))
            .suggestion(report.nearest(schema.text, DECISION_SCHEMAS)),
    );
    None
}
