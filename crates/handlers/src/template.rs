//! Templates over an event, for prompts and for context.
//!
//! A template is written in one of two syntaxes: that of minijinja with the keys of the event
//! (`{{ tool_input.cmd }}`), or a subset of Go's `text/template` with the Go names of the same keys
//! (`{{ .ToolInput.cmd }}`), which is what docker-agent's files have. The second is translated to the first when it
//! is read. Which one it is shows in its actions; a template of both is refused.
//!
//! A template reads files of nobody, includes nothing and calls nothing but what stands in the tables of
//! [`FUNCTIONS`] and of the documentation. The work of one rendering is bounded, and so is its text.

mod functions;
mod go;
mod syntax;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;

use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value};
use serde::Deserialize as _;
use serde_json::value::RawValue;
use tenterhook::{Dialect, EventName, EventRef};
use tenterhook_protocol::JsonObject;
use thiserror::Error;

use self::syntax::Syntax;

pub use self::go::FUNCTIONS;

/// The longest template in bytes.
pub const SOURCE_LIMIT: usize = 64 << 10;

/// How many instructions one rendering may take. A loop over a conversation of a thousand messages takes a tenth.
const FUEL: u64 = 200_000;

/// The largest event in bytes, as it is written, that a template is rendered of without leaving the thread.
const SMALL_EVENT: usize = 64 << 10;

/// The name that a template has in its environment. Without an extension, nothing is escaped.
const NAME: &str = "template";

/// The variable of a translated template that holds the event.
const ROOT: &str = "_root";

/// What a key without a value does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It prints `<no value>` and counts as false.
    Printed,
    /// The rendering fails.
    Failure,
}

/// The events that a template is for, and how they are written: what decides which keys there are.
#[derive(Debug, Clone)]
pub struct Scope {
    dialect: Arc<dyn Dialect>,
    events: Vec<EventName>,
    /// Each known key with what it stands for where an event leaves it out.
    zeros: JsonObject,
    /// Some event may have keys that are not known before it happens.
    is_open: bool,
}

impl Scope {
    /// Makes the scope of a hook: its events, and the contract in which it gets them.
    pub fn new(dialect: Arc<dyn Dialect>, events: &[EventName]) -> Self {
        let mut zeros = JsonObject::new();
        let mut is_open = events.is_empty();
        for event in events {
            match dialect.skeleton(event.info()) {
                Some(keys) => zeros.extend(keys),
                None => is_open = true,
            }
        }
        Self {
            dialect,
            events: events.to_vec(),
            zeros,
            is_open,
        }
    }

    /// Says what is wrong with a key that no event of the scope has.
    fn check(&self, key: &str, written: &str) -> Result<(), String> {
        if self.is_open || self.zeros.contains_key(key) {
            return Ok(());
        }
        let events: Vec<String> = self
            .events
            .iter()
            .map(|event| format!("`{event}`"))
            .collect();
        let meant = self
            .zeros
            .keys()
            .map(|known| (strsim::jaro_winkler(key, known), known))
            .filter(|(likeness, _)| *likeness >= 0.86)
            .reduce(|best, next| if next.0 > best.0 { next } else { best });
        let meant = meant.map(|(_, known)| format!(", did you mean `{known}`?"));
        Err(format!(
            "unknown field `{written}` of {}{}",
            events.join(" and "),
            meant.unwrap_or_default()
        ))
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.zeros.keys().map(|key| format!("`{key}`")).collect();
        names.join(", ")
    }
}

/// A template that cannot be used, and where in it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message} (line {line}, column {column})")]
pub struct TemplateError {
    /// What was found.
    pub message: String,
    /// What is allowed there.
    pub allowed: Option<String>,
    /// The byte of the template.
    pub offset: usize,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// What is wrong with a template, before its line is looked for.
#[derive(Debug)]
struct Fault {
    offset: usize,
    message: String,
    allowed: Option<String>,
}

impl Fault {
    fn new(offset: usize, message: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
            allowed: None,
        }
    }

    fn allowed(self, allowed: impl Into<String>) -> Self {
        Self {
            allowed: Some(allowed.into()),
            ..self
        }
    }

    fn placed(self, source: &str) -> TemplateError {
        let offset = source.floor_char_boundary(self.offset.min(source.len()));
        let (line, column) = place(source, offset);
        TemplateError {
            message: self.message,
            allowed: self.allowed,
            offset,
            line,
            column,
        }
    }
}

/// Returns the line and the column of a byte, both from 1.
fn place(source: &str, offset: usize) -> (usize, usize) {
    let before = source.get(..offset).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before.get(start..).unwrap_or_default().chars().count();
    (before.matches('\n').count() + 1, column + 1)
}

/// A rendering that gave no text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct RenderError {
    message: String,
}

/// The keys of the event that a template looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Names {
    All,
    These(BTreeSet<String>),
}

/// A template that was read.
pub struct Template {
    environment: Environment<'static>,
    scope: Scope,
    names: Names,
    /// For a translated template, the byte of the original that each of its actions stands for.
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
    /// Reads a template. `limit` is the longest text in bytes that it may make of an event.
    ///
    /// # Errors
    /// When it is not written in one of the two syntaxes, is longer than [`SOURCE_LIMIT`], or names a key that no
    /// event of the scope has.
    pub fn parse(
        source: &str,
        scope: &Scope,
        missing: Missing,
        limit: usize,
    ) -> Result<Self, TemplateError> {
        let placed = |fault: Fault| fault.placed(source);
        if source.len() > SOURCE_LIMIT {
            let fault = Fault::new(0, "the template is too long");
            return Err(placed(fault.allowed("at most 64 KiB")));
        }
        let mut environment = Environment::empty();
        environment.set_debug(true);
        environment.set_fuel(Some(FUEL));
        functions::add(&mut environment, missing);
        let (names, origins) = match syntax::of(source).map_err(placed)? {
            Syntax::Go => {
                let translated = go::translate(source, scope).map_err(placed)?;
                // What is missing is found by the functions that the translation calls.
                environment.set_undefined_behavior(UndefinedBehavior::Lenient);
                environment
                    .add_template_owned(NAME, translated.source)
                    .map_err(|error| placed(Fault::new(0, detail(&error))))?;
                (translated.names, Some(translated.origins))
            }
            Syntax::Jinja => {
                environment.set_undefined_behavior(match missing {
                    Missing::Printed => UndefinedBehavior::Lenient,
                    Missing::Failure => UndefinedBehavior::Strict,
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

    /// Makes the text of an event, where waiting is allowed if the event is large.
    ///
    /// # Errors
    /// As [`render`](Self::render) does.
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

    /// Makes the text of an event.
    ///
    /// # Errors
    /// When a key has no value and that is a failure, a function cannot take what it gets, the text is longer than
    /// the limit, or the work is too much.
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

    /// Returns the keys of the event that the template looks at. Only these are read from what the event was
    /// written as, which all hooks of one contract share.
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

    /// Says what went wrong, and where in the template.
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

fn syntax_fault(error: &minijinja::Error) -> Fault {
    let offset = error.range().map_or(0, |range| range.start);
    Fault::new(offset, detail(error))
}

/// Returns the keys that a template in the own syntax looks at.
fn jinja_names(
    environment: &Environment<'_>,
    source: &str,
    scope: &Scope,
) -> Result<BTreeSet<String>, Fault> {
    let template = environment
        .get_template(NAME)
        .map_err(|error| syntax_fault(&error))?;
    let names: BTreeSet<String> = template.undeclared_variables(false).into_iter().collect();
    syntax::check_words(source)?;
    for name in &names {
        scope.check(name, name).map_err(|message| {
            Fault::new(syntax::position_of(source, name), message).allowed(scope.names())
        })?;
    }
    Ok(names)
}

/// A text that takes no more than it may.
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
