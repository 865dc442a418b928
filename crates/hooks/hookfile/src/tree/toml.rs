//! Reads TOML, with the parser of the `toml` crate, which finds several syntax errors at once.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::node::{Entry, Node, Number, Value};
use crate::report::Report;
use crate::source::SourceText;

pub(super) fn read(report: &mut Report) -> Option<Node> {
    let source = report.source().clone();
    let (root, errors) = DeTable::parse_recoverable(source.text());
    for error in &errors {
        let span = error.span().unwrap_or_default().into();
        report.add(report.problem(span, format!("invalid TOML: {}", error.message())));
    }
    errors.is_empty().then(|| Node {
        value: table(&source, root.get_ref()),
        span: (0..source.text().len()).into(),
    })
}

fn node(source: &SourceText, value: &DeValue<'_>, span: Range<usize>) -> Node {
    let written = || {
        source
            .text()
            .get(span.clone())
            .unwrap_or_default()
            .to_owned()
    };
    let value = match value {
        DeValue::String(text) => Value::Text(text.clone().into_owned()),
        DeValue::Integer(integer) => {
            let value = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
            Value::Number(Number {
                written: written(),
                integer: value,
                float: as_float(integer.as_str(), value),
            })
        }
        DeValue::Float(float) => Value::Number(Number {
            written: written(),
            integer: None,
            float: as_float(float.as_str(), None),
        }),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => Value::List(
            items
                .iter()
                .map(|item| node(source, item.get_ref(), item.span()))
                .collect(),
        ),
        DeValue::Table(entries) => table(source, entries),
    };
    Node {
        value,
        span: span.into(),
    }
}

fn as_float(written: &str, integer: Option<i64>) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "every allowed range is far smaller than the numbers that lose precision"
    )]
    match integer {
        Some(value) => value as f64,
        None => written.parse().unwrap_or(f64::NAN),
    }
}

/// Returns the entries of a table in the order of the file. The `toml` crate sorts them by key.
fn table(source: &SourceText, entries: &DeTable<'_>) -> Value {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let entries = entries.into_iter().map(|(key, value)| Entry {
        key: key.get_ref().clone().into_owned(),
        key_span: key.span().into(),
        value: node(source, value.get_ref(), value.span()),
    });
    Value::Table(entries.collect())
}
