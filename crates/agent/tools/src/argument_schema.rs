//! Checks arguments against the JSON Schema of a tool from another source, such as an extension.

use std::fmt;
use std::sync::Arc;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Value, json};
use tenterhook_protocol::JsonObject;
use tenterhook_protocol::excerpt;
use thiserror::Error;

/// The maximum number of problems of one call that are reported.
const MAX_PROBLEMS: usize = 5;

/// The maximum number of characters of an invalid value that are shown.
const MAX_VALUE: usize = 120;

/// The limit on backtracking steps of a pattern. Sensible patterns need fewer, and this many take only a moment.
const MAX_BACKTRACKS: usize = 100_000;

/// The error for a schema that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("tool `{tool}` has an invalid JSON Schema: {problem}")]
pub struct ArgumentSchemaError {
    /// The tool's name.
    pub tool: String,
    /// What is wrong, and where in the schema.
    pub problem: String,
}

/// A compiled JSON Schema of a tool's arguments.
#[derive(Clone)]
pub struct ArgumentSchema {
    schema: Value,
    validator: Arc<Validator>,
}

impl fmt::Debug for ArgumentSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArgumentSchema").field(&self.schema).finish()
    }
}

/// Arguments do not match a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", problems.join("; "), if *has_more { "; and more" } else { "" })]
pub struct SchemaMismatch {
    /// Where each problem is, what was found, and what is allowed. At most 8.
    pub problems: Vec<String>,
    /// Whether there are more problems.
    pub has_more: bool,
}

impl ArgumentSchema {
    /// Compiles the schema of a tool. It may only refer to its own parts, because nothing is fetched.
    ///
    /// # Errors
    /// Fails if the schema is invalid, or refers to another document.
    pub fn compile(tool: &str, schema: Value) -> Result<Self, ArgumentSchemaError> {
        let schema = of_object(schema);
        let patterns = PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS);
        let options = jsonschema::options()
            .offline()
            .with_pattern_options(patterns);
        match options.build(&schema) {
            Ok(validator) => Ok(Self {
                schema,
                validator: Arc::new(validator),
            }),
            Err(error) => Err(ArgumentSchemaError {
                tool: tool.to_owned(),
                problem: describe(&error),
            }),
        }
    }

    /// Returns the schema in the form that model services accept.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Checks arguments.
    ///
    /// # Errors
    ///
    /// Fails if the arguments do not match the schema.
    pub fn check(&self, input: &JsonObject) -> Result<(), SchemaMismatch> {
        // The validator needs a `Value`, which cannot borrow the object. Arguments are usually small enough to clone.
        let input = Value::Object(input.clone());
        let mut problems = self.validator.iter_errors(&input);
        let named: Vec<String> = problems
            .by_ref()
            .take(MAX_PROBLEMS)
            .map(|error| describe(&error))
            .collect();
        if named.is_empty() {
            return Ok(());
        }
        Err(SchemaMismatch {
            has_more: problems.next().is_some(),
            problems: named,
        })
    }
}

/// Completes a schema so that model services accept it: they require the type `object`.
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
    let found = excerpt::shortened(&error.instance().to_string(), MAX_VALUE);
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
            let found = schema().check(input.as_object().unwrap());
            let found = found.map_or_else(|error| error.to_string(), |()| String::new());
            assert_eq!(found, problem, "{input}");
        }
        let input = json!({ "name": "ada", "count": long });
        let problem = schema().check(input.as_object().unwrap()).unwrap_err();
        assert!(problem.to_string().len() < 200, "{problem}");
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
                error.starts_with("tool `t` has an invalid JSON Schema: "),
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
