//! Arguments checked against the JSON Schema that a tool of somebody else brings.

use std::fmt;
use std::sync::Arc;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Value, json};
use tenterhook_protocol::JsonObject;
use thiserror::Error;

use super::excerpt::shortened;

/// How many problems of one call are named.
const MOST_PROBLEMS: usize = 5;

/// How many characters of what was found are shown.
const LONGEST_VALUE: usize = 120;

/// How far a pattern may go back while it is matched: longer than any sensible one needs, and over in a moment.
const MOST_BACKTRACKS: usize = 100_000;

/// A schema that arguments cannot be checked against.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("tool `{tool}` has a schema that is no JSON Schema of its own: {problem}")]
pub struct SchemaProblem {
    /// The tool.
    pub tool: String,
    /// What is wrong, and where.
    pub problem: String,
}

/// A JSON Schema of arguments, compiled.
#[derive(Clone)]
pub(crate) struct ArgumentSchema {
    schema: Value,
    validator: Arc<Validator>,
}

impl fmt::Debug for ArgumentSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArgumentSchema").field(&self.schema).finish()
    }
}

impl ArgumentSchema {
    /// Compiles the schema of a tool. Nothing is fetched: what it refers to stands in it.
    pub(crate) fn compile(tool: &str, schema: Value) -> Result<Self, SchemaProblem> {
        let schema = of_object(schema);
        let patterns = PatternOptions::fancy_regex().backtrack_limit(MOST_BACKTRACKS);
        let options = jsonschema::options()
            .offline()
            .with_pattern_options(patterns);
        match options.build(&schema) {
            Ok(validator) => Ok(Self {
                schema,
                validator: Arc::new(validator),
            }),
            Err(error) => Err(SchemaProblem {
                tool: tool.to_owned(),
                problem: describe(&error),
            }),
        }
    }

    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }

    /// Checks arguments; the error names the place of each problem, what is there, and what is allowed.
    pub(crate) fn check(&self, input: &JsonObject) -> Result<(), String> {
        // A borrowed object is no value, and most arguments are few.
        let input = Value::Object(input.clone());
        let mut problems = self.validator.iter_errors(&input);
        let named: Vec<String> = problems
            .by_ref()
            .take(MOST_PROBLEMS)
            .map(|error| describe(&error))
            .collect();
        if named.is_empty() {
            return Ok(());
        }
        let more = if problems.next().is_some() {
            "; and more"
        } else {
            ""
        };
        Err(format!("{}{more}", named.join("; ")))
    }
}

/// Returns a schema that services take: one of an object, whatever a tool left out.
fn of_object(schema: Value) -> Value {
    match schema {
        Value::Object(mut schema) => {
            if schema.is_empty() {
                schema.insert("properties".to_owned(), json!({}));
            }
            schema.entry("type").or_insert_with(|| "object".into());
            Value::Object(schema)
        }
        Value::Null => json!({ "type": "object", "properties": {} }),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => other,
    }
}

fn describe(error: &ValidationError<'_>) -> String {
    let found = shortened(&error.instance().to_string(), LONGEST_VALUE);
    let said = error.masked_with(found).to_string();
    let path = error.instance_path().as_str();
    if path.is_empty() {
        said
    } else {
        format!("at `{path}`: {said}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> ArgumentSchema {
        let schema = json!({
            "properties": {
                "name": { "type": "string", "minLength": 2 },
                "count": { "type": "integer", "maximum": 9 },
                "either": { "type": ["string", "null"] },
                "unit": { "enum": ["m", "km"] },
                "inner": { "$ref": "#/$defs/inner" },
                "code": { "type": "string", "pattern": "^(?!x)[a-z]+$" },
                "any": {},
            },
            "required": ["name"],
            "additionalProperties": false,
            "$defs": { "inner": { "type": "object", "properties": { "x": { "type": "number" } } } },
        });
        ArgumentSchema::compile("t", schema).unwrap()
    }

    #[test]
    fn a_problem_names_the_place_what_is_there_and_what_is_allowed() {
        let long = "a".repeat(500);
        for (input, problem) in [
            (json!({ "name": "ada" }), ""),
            (
                json!({ "name": "ada", "count": 2.0, "either": null, "any": [] }),
                "",
            ),
            (json!({}), "\"name\" is a required property"),
            (
                json!({ "name": 7 }),
                "at `/name`: 7 is not of type \"string\"",
            ),
            (
                json!({ "name": "a" }),
                "at `/name`: \"a\" is shorter than 2 characters",
            ),
            (
                json!({ "name": "ada", "count": 2.5 }),
                "at `/count`: 2.5 is not of type \"integer\"",
            ),
            (
                json!({ "name": "ada", "count": 10 }),
                "at `/count`: 10 is greater than the maximum of 9",
            ),
            (
                json!({ "name": "ada", "unit": "mile" }),
                "at `/unit`: \"mile\" is not one of \"m\" or \"km\"",
            ),
            (
                json!({ "name": "ada", "inner": { "x": "1" } }),
                "at `/inner/x`: \"1\" is not of type \"number\"",
            ),
            (
                json!({ "name": "ada", "more": 1 }),
                "Additional properties are not allowed ('more' was unexpected)",
            ),
            (
                json!({ "name": "ada", "code": "xa" }),
                "at `/code`: \"xa\" does not match \"^(?!x)[a-z]+$\"",
            ),
            (
                json!({ "name": 1, "count": "2" }),
                "at `/name`: 1 is not of type \"string\"; at `/count`: \"2\" is not of type \"integer\"",
            ),
        ] {
            let found = schema().check(input.as_object().unwrap()).err();
            assert_eq!(found.unwrap_or_default(), problem, "{input}");
        }
        let input = json!({ "name": "ada", "count": long });
        let problem = schema().check(input.as_object().unwrap()).unwrap_err();
        assert!(problem.len() < 200, "{problem}");
    }

    #[test]
    fn a_schema_that_cannot_be_used_says_why() {
        for (schema, problem) in [
            (json!("object"), "is not of types"),
            (json!({ "type": "thing" }), "at `/type`: \"thing\" is not"),
            (
                json!({ "properties": { "a": { "pattern": "(" } } }),
                "pattern",
            ),
            (
                json!({ "$ref": "https://example.com/schema.json" }),
                "https://example.com/schema.json",
            ),
            (
                json!({ "$ref": "file:///etc/passwd" }),
                "file:///etc/passwd",
            ),
            (json!({ "$ref": "#/$defs/none" }), "#/$defs/none"),
        ] {
            let error = ArgumentSchema::compile("t", schema.clone())
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("tool `t` has a schema that is no JSON Schema of its own: "),
                "{error}"
            );
            assert!(
                error.contains(problem) || error.contains("$defs"),
                "{schema}: {error}"
            );
        }
    }

    #[test]
    fn a_tool_that_says_nothing_takes_an_object() {
        for schema in [json!(null), json!({})] {
            let compiled = ArgumentSchema::compile("t", schema).unwrap();
            assert_eq!(compiled.schema()["type"], "object");
            assert_eq!(compiled.schema()["properties"], json!({}));
            assert_eq!(compiled.check(&JsonObject::new()), Ok(()));
        }
    }

    #[test]
    fn a_pattern_that_goes_back_for_ever_is_a_problem_and_no_wait() {
        let schema =
            json!({ "properties": { "a": { "type": "string", "pattern": "^(a|a?)+(?=b)c$" } } });
        let compiled = ArgumentSchema::compile("t", schema).unwrap();
        let input = json!({ "a": "a".repeat(60) });
        assert!(compiled.check(input.as_object().unwrap()).is_err());
    }
}
