//! Tools whose arguments are a Rust type, which is parsed, checked and described to the model in one place.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tenterhook_protocol::{JsonObject, ToolResult};

use crate::failure::{InvalidInput, ToolFailure};
use crate::retry::ToolRetry;
use crate::tool::{Tool, ToolContext};

/// The schemas of the types that were described. Each model call needs all of them, and copying is much faster than
/// generating.
static SCHEMAS: Mutex<BTreeMap<TypeId, Value>> = Mutex::new(BTreeMap::new());

/// A tool with typed arguments. Every such tool is a [`Tool`]. Its schema is generated from [`Input`](Self::Input), and
/// arguments that are not an `Input` are refused before anything runs.
///
/// Give the input type `#[serde(deny_unknown_fields)]`, so that the model learns of a misspelt argument. The doc
/// comments on its fields are the descriptions that the model reads.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use tenterhook_protocol::ToolResult;
/// use tenterhook_tools::{ToolContext, ToolFailure, Toolbox, TypedTool};
///
/// #[derive(Debug, Deserialize, JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct CountWordsInput {
///     /// The text.
///     text: String,
/// }
///
/// #[derive(Debug)]
/// struct CountWords;
///
/// impl TypedTool for CountWords {
///     type Input = CountWordsInput;
///
///     fn name(&self) -> &str {
///         "count_words"
///     }
///
///     fn description(&self) -> String {
///         "Counts the words of a text.".to_owned()
///     }
///
///     fn category(&self) -> &'static str {
///         "text"
///     }
///
///     fn is_read_only(&self) -> bool {
///         true
///     }
///
///     async fn run(
///         &self,
///         input: CountWordsInput,
///         _: ToolContext<'_>,
///     ) -> Result<ToolResult, ToolFailure> {
///         Ok(ToolResult::text(input.text.split_whitespace().count().to_string()))
///     }
/// }
///
/// let toolbox = Toolbox::empty().with(CountWords);
/// let schema = toolbox.spec("count_words").unwrap().schema;
/// assert_eq!(schema["required"], serde_json::json!(["text"]));
/// ```
pub trait TypedTool: Send + Sync + fmt::Debug {
    /// The type of the arguments.
    type Input: DeserializeOwned + JsonSchema + Send + 'static;

    /// Returns the name that models and rules use.
    fn name(&self) -> &str;

    /// Returns the description for the model.
    fn description(&self) -> String;

    /// Returns the tool's category for hooks, as [`Tool::category`] does.
    fn category(&self) -> &'static str;

    /// Returns whether the tool changes nothing, as [`Tool::is_read_only`] does.
    fn is_read_only(&self) -> bool;

    /// Returns whether the tool only gives a task to another agent, as [`Tool::delegates`] does.
    fn delegates(&self) -> bool {
        false
    }

    /// Returns whether a call needs approval by default, as [`Tool::wants_approval`] does.
    fn wants_approval(&self) -> bool {
        !TypedTool::is_read_only(self)
    }

    /// Returns whether the tool ends by itself when cancelled, as [`Tool::ends_itself`] does. The default is `false`.
    fn ends_itself(&self) -> bool {
        false
    }

    /// Returns whether repeated calls are normal, as [`Tool::may_repeat`] does. The default is `false`.
    fn may_repeat(&self) -> bool {
        false
    }

    /// Returns how failed runs are retried, as [`Tool::retry`] does. By default, they are not
    /// retried.
    fn retry(&self) -> ToolRetry {
        ToolRetry::once()
    }

    /// Checks rules that the type of the arguments cannot express. The default accepts everything.
    ///
    /// # Errors
    ///
    /// Describes what is wrong in words that the model can act on.
    fn check_input(&self, _input: &Self::Input) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }

    /// Returns the name of the argument that holds the path of the file to change, see [`Tool::changed_file`]. By
    /// default a call changes no file.
    ///
    /// The name is the key in the model's JSON. Do not give that argument an alias: if the model uses the alias, the
    /// user is not asked before the call, and only a [`WriteGuard`](crate::WriteGuard) still refuses the change.
    fn changed_file_argument(&self) -> Option<&'static str> {
        None
    }

    /// Runs the tool on arguments that [`check_input`](Self::check_input) accepted.
    fn run(
        &self,
        input: Self::Input,
        context: ToolContext<'_>,
    ) -> impl Future<Output = Result<ToolResult, ToolFailure>> + Send;
}

impl<T: TypedTool> Tool for T {
    fn name(&self) -> &str {
        TypedTool::name(self)
    }

    fn description(&self) -> String {
        TypedTool::description(self)
    }

    fn schema(&self) -> Value {
        schema_of::<T::Input>()
    }

    fn category(&self) -> &'static str {
        TypedTool::category(self)
    }

    fn is_read_only(&self) -> bool {
        TypedTool::is_read_only(self)
    }

    fn delegates(&self) -> bool {
        TypedTool::delegates(self)
    }

    fn wants_approval(&self) -> bool {
        TypedTool::wants_approval(self)
    }

    fn ends_itself(&self) -> bool {
        TypedTool::ends_itself(self)
    }

    fn may_repeat(&self) -> bool {
        TypedTool::may_repeat(self)
    }

    fn retry(&self) -> ToolRetry {
        TypedTool::retry(self)
    }

    fn check(&self, input: &JsonObject) -> Result<(), InvalidInput> {
        let parsed = parse(self, input)?;
        let checked = self.check_input(&parsed);
        checked.map_err(|problem| invalid(self, problem.to_string()))
    }

    fn changed_file<'a>(&self, input: &'a JsonObject) -> Option<&'a str> {
        input.get(self.changed_file_argument()?)?.as_str()
    }

    fn run<'a>(
        &'a self,
        input: JsonObject,
        context: ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolFailure>> {
        Box::pin(async move {
            let input = parse(self, &input)?;
            TypedTool::run(self, input, context).await
        })
    }
}

fn parse<T: TypedTool>(tool: &T, input: &JsonObject) -> Result<T::Input, InvalidInput> {
    serde_json::from_value(Value::Object(input.clone()))
        .map_err(|error| invalid(tool, error.to_string()))
}

fn invalid<T: TypedTool>(tool: &T, problem: String) -> InvalidInput {
    InvalidInput {
        tool: TypedTool::name(tool).to_owned(),
        problem,
    }
}

/// Returns the schema of the arguments `T` in a plain form that every model service accepts.
fn schema_of<T: JsonSchema + 'static>() -> Value {
    let generate = || {
        let mut schema = schemars::schema_for!(T).to_value();
        simplify(&mut schema);
        schema
    };
    let mut schemas = SCHEMAS.lock();
    let schema = schemas.entry(TypeId::of::<T>());
    schema.or_insert_with(generate).clone()
}

/// Removes keys that services refuse or ignore: titles, formats, and `null` as a second type of an optional argument,
/// which may be omitted anyway.
fn simplify(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for key in ["$schema", "title", "format", "default", "minimum"] {
                if !object.get(key).is_some_and(Value::is_object) {
                    object.retain(|name, _| name != key);
                }
            }
            if let Some(Value::Array(kinds)) = object.get("type") {
                let kind = kinds.iter().find(|kind| *kind != "null").cloned();
                object.insert("type".to_owned(), kind.unwrap_or(Value::Null));
            }
            for (_, inner) in object.iter_mut() {
                simplify(inner);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
