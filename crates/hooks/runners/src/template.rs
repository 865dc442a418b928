//! Templates over an event, for prompts and for context.
//!
//! A template is written in one of two syntaxes. The native syntax is minijinja with the keys of
//! the event (`{{ tool_input.cmd }}`). docker-agent's files use a subset of Go's `text/template`
//! with the Go names of the same keys (`{{ .ToolInput.cmd }}`), which is translated to the native
//! syntax when it is read. The actions show which syntax a template uses. A template that mixes the
//! two is refused.
//!
//! An [`ArgumentTemplate`] is a prompt over named arguments. It is always written in Go's syntax.
//!
//! A template cannot read files or include other templates. It can call only [`FUNCTIONS`] and the
//! filters and tests of the documentation. The work and the length of one rendering are limited.

mod arguments;
mod error;
mod functions;
mod go;
mod scope;
mod syntax;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;

use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value};
use serde::Deserialize as _;
use serde_json::value::RawValue;
use tenterhook_engine::EventRef;
use thiserror::Error;

use self::error::{UnlocatedError, place};
use self::scope::{Names, ROOT, Values};
use self::syntax::Syntax;

pub use self::arguments::ArgumentTemplate;
pub use self::error::TemplateError;
pub use self::go::FUNCTIONS;
pub use self::scope::{MissingKey, TemplateScope};

/// The longest template, in bytes.
pub const SOURCE_LIMIT: usize = 64 << 10;

/// How many instructions one rendering may take. A loop over a conversation of a thousand messages
/// takes a tenth of it.
const FUEL: u64 = 200_000;

/// The largest event, in encoded bytes, that is rendered on the current thread.
const SMALL_EVENT: usize = 64 << 10;

/// The name of a template in its environment. It has no file extension, so that nothing is escaped.
const NAME: &str = "template";

/// Why a rendering failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct RenderError {
    message: String,
}

/// A template that has been parsed.
pub struct Template {
    environment: Environment<'static>,
    scope: TemplateScope,
    names: Names,
    /// For a translated template, the byte offset in the original for each action.
    origins: Option<Vec<usize>>,
    source: String,
    limit: usize,
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.source).finish()
    }
}

impl Template {
    /// Parses a template. `limit` is the longest text that a rendering may produce, in bytes.
    ///
    /// # Errors
    /// Fails if the template is not written in one of the two syntaxes, is longer than
    /// [`SOURCE_LIMIT`], or uses a key that no event of the scope has.
    pub fn parse(
        source: &str,
        scope: &TemplateScope,
        missing: MissingKey,
        limit: usize,
    ) -> Result<Self, TemplateError> {
        let placed = |error: UnlocatedError| error.placed(source);
        if source.len() > SOURCE_LIMIT {
            let error = UnlocatedError::new(0, "the template is too long");
            return Err(placed(error.allowed("at most 64 KiB")));
        }
        let mut environment = Environment::empty();
        environment.set_debug(true);
        environment.set_fuel(Some(FUEL));
        functions::add(&mut environment, missing);
        let (names, origins) = match syntax::of(source).map_err(placed)? {
            Syntax::Go => {
                let translated = go::translate(source, Values::Event(scope)).map_err(placed)?;
                // The functions that the translation calls detect missing keys themselves.
                environment.set_undefined_behavior(UndefinedBehavior::Lenient);
                environment
                    .add_template_owned(NAME, translated.source)
                    .map_err(|error| placed(UnlocatedError::new(0, detail(&error))))?;
                (translated.names, Some(translated.origins))
            }
            Syntax::Jinja => {
                environment.set_undefined_behavior(match missing {
                    MissingKey::Printed => UndefinedBehavior::Lenient,
                    MissingKey::Failure => UndefinedBehavior::Strict,
                });
                environment
                    .add_template_owned(NAME, source.to_owned())
                    .map_err(|error| placed(syntax_fault(&error)))?;
                let names = jinja_names(&environment, source, scope).map_err(placed)?;
                (Names::These(names), None)
            }
        };
        Ok(Self {
            environment,
            scope: scope.clone(),
            names,
            origins,
            source: source.to_owned(),
            limit,
        })
    }

    /// Renders an event. Large events are rendered on a thread that may block.
    ///
    /// # Errors
    /// Fails like [`render`](Self::render).
    pub async fn render_aside(self: &Arc<Self>, event: &EventRef) -> Result<String, RenderError> {
        let is_small = event
            .encoded(&*self.scope.dialect)
            .is_ok_and(|bytes| bytes.len() <= SMALL_EVENT);
        if is_small {
            return self.render(event);
        }
        let (template, event) = (Arc::clone(self), event.clone());
        tokio::task::spawn_blocking(move || template.render(&event))
            .await
            .unwrap_or_else(|error| {
                Err(RenderError {
                    message: error.to_string(),
                })
            })
    }

    /// Renders an event.
    ///
    /// # Errors
    /// Fails if a key has no value and [`MissingKey::Failure`] was chosen, if a function gets an
    /// argument of the wrong kind, if the text is longer than the limit, or if the rendering takes
    /// too many instructions.
    pub fn render(&self, event: &EventRef) -> Result<String, RenderError> {
        let failed = |message: String| RenderError { message };
        let keys = self.keys(event).map_err(failed)?;
        let context = if self.origins.is_some() {
            Value::from_pairs([(ROOT, keys)])
        } else {
            keys
        };
        let template = self
            .environment
            .get_template(NAME)
            .map_err(|error| failed(error.to_string()))?;
        let mut text = Bounded::new(self.limit);
        let result = template.render_captured_to(context, &mut text).map(drop);
        if text.is_over {
            let limit = self.limit >> 10;
            return Err(failed(format!("the text is longer than {limit} KiB")));
        }
        result.map_err(|error| failed(self.explain(&error)))?;
        String::from_utf8(text.bytes).map_err(|error| failed(error.to_string()))
    }

    /// Returns the keys of the event that the template uses. Only these are parsed. The encoded
    /// event is shared by all hooks with the same dialect.
    fn keys(&self, event: &EventRef) -> Result<Value, String> {
        let bytes = event
            .encoded(&*self.scope.dialect)
            .map_err(|error| error.to_string())?;
        let written: BTreeMap<String, &RawValue> =
            serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        let pair = |name: &String| -> Option<Result<(String, Value), serde_json::Error>> {
            let value = match (written.get(name), self.scope.zeros.get(name)) {
                (Some(raw), _) => serde_json::from_str(raw.get()),
                (None, Some(zero)) => Value::deserialize(zero),
                (None, None) => return None,
            };
            Some(value.map(|value| (name.clone(), value)))
        };
        let keys: Result<Vec<_>, _> = match &self.names {
            Names::These(names) => names.iter().filter_map(pair).collect(),
            Names::All => written.keys().filter_map(pair).collect(),
        };
        keys.map(Value::from_pairs)
            .map_err(|error| error.to_string())
    }

    /// Describes an error, with its line in the template.
    fn explain(&self, error: &minijinja::Error) -> String {
        if error.kind() == ErrorKind::OutOfFuel {
            return "the template takes too much work".to_owned();
        }
        let offset = match (&self.origins, error.line()) {
            (Some(origins), Some(line)) => origins.get(line.saturating_sub(1) / 2).copied(),
            (None, _) => error.range().map(|range| range.start),
            (Some(_), None) => None,
        };
        let written = error.range().filter(|_| self.origins.is_none());
        let written = written.and_then(|range| self.source.get(range));
        let message = match (error.kind(), written) {
            (ErrorKind::UndefinedError, Some(written)) => format!("`{written}` has no value"),
            _ => detail(error),
        };
        let line = offset.map(|offset| place(&self.source, offset).0);
        match line.or(error.line().filter(|_| self.origins.is_none())) {
            Some(line) => format!("line {line}: {message}"),
            None => message,
        }
    }
}

fn detail(error: &minijinja::Error) -> String {
    error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned)
}

fn syntax_fault(error: &minijinja::Error) -> UnlocatedError {
    let offset = error.range().map_or(0, |range| range.start);
    UnlocatedError::new(offset, detail(error))
}

/// Returns the keys that a template in the native syntax uses.
fn jinja_names(
    environment: &Environment<'_>,
    source: &str,
    scope: &TemplateScope,
) -> Result<BTreeSet<String>, UnlocatedError> {
    let template = environment
        .get_template(NAME)
        .map_err(|error| syntax_fault(&error))?;
    let names: BTreeSet<String> = template.undeclared_variables(false).into_iter().collect();
    syntax::check_words(source)?;
    for name in &names {
        scope.check(name, name).map_err(|message| {
            UnlocatedError::new(syntax::position_of(source, name), message).allowed(scope.names())
        })?;
    }
    Ok(names)
}

/// Text with a maximum length.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
    is_over: bool,
}

impl Bounded {
    fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
            is_over: false,
        }
    }
}

impl io::Write for &mut Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            self.is_over = true;
            return Err(io::Error::other("too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
