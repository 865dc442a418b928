//! Scripts that workers load, what they register, and how types are removed from TypeScript.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::thread;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tenterhook_protocol::{ContentBlock, Image, ToolCall, ToolResult, Usage};

use super::refusal::Refusal;

/// A script that a worker serves.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Script {
    /// The file.
    pub path: PathBuf,
    /// The API that the script is written for: `tenterhook`, or another API that the worker knows.
    pub api: &'static str,
    /// The copy that it runs from, if it is a script of a project that the user approved.
    pub approved: Option<ApprovedCopy>,
}

impl Script {
    /// Returns the name of its file, for messages.
    pub(super) fn file_name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }
}

/// The copy of the approved files of a project. A script that runs from it must not load other files
/// of the project.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct ApprovedCopy {
    /// The folder of the project.
    pub project: PathBuf,
    /// The folder with the copies of the approved files.
    pub copies: PathBuf,
}

/// A hook of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptHook {
    /// The name of the hook in its file.
    pub name: String,
    /// The name of the event in the script's API.
    pub event: String,
    /// Selects events of that name; all of them without a matcher.
    #[serde(default)]
    pub matcher: Option<String>,
    /// Higher runs first.
    #[serde(default)]
    pub priority: i32,
}

/// What a script registers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Registered {
    /// The hooks, in the order in which the script registers them.
    #[serde(default)]
    pub hooks: Vec<ScriptHook>,
    /// Tools for the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ScriptTool>,
    /// Commands for the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<ScriptCommand>,
    /// Flags for the command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<ScriptFlag>,
    /// Providers of models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<ScriptProvider>,
    /// Warnings for the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Registered {
    /// Returns whether the script registers nothing. Warnings do not count.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty()
            && self.tools.is_empty()
            && self.commands.is_empty()
            && self.flags.is_empty()
            && self.providers.is_empty()
    }
}

/// A tool of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptTool {
    /// The name that the model uses.
    pub name: String,
    /// What it does, for the model.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its arguments.
    #[serde(default)]
    pub parameters: Value,
    /// Whether the script has its own form in which a terminal shows calls.
    #[serde(default, skip_serializing_if = "is_false")]
    pub renders_call: bool,
    /// Whether the script has its own form in which a terminal shows results.
    #[serde(default, skip_serializing_if = "is_false")]
    pub renders_result: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A command of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptCommand {
    /// The name, without the slash.
    pub name: String,
    /// What it does, for the user.
    #[serde(default)]
    pub description: String,
}

/// A flag of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptFlag {
    /// The name, without dashes.
    pub name: String,
    /// `boolean` or `string`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it does, for the user.
    #[serde(default)]
    pub description: String,
}

/// A provider of models that a script registers. It never contains a key: the worker is asked for the key when a model
/// is called, because what a script registers is stored with its approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptProvider {
    /// The name, which may be the name of an existing provider.
    pub name: String,
    /// The base URL. Without it, the URL of the existing provider is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The models. Without any, the models of the existing provider are used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ScriptModel>,
}

/// A model of a script's provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptModel {
    /// The provider's name for the model.
    pub id: String,
    /// The service whose protocol the provider speaks. `None` if the script itself calls the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The base URL, if it differs from the provider's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The context window in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The prices, as in the file of the user's models.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub price: Value,
}

/// The key and the headers with which a script's provider is called.
#[derive(Clone, Default, Deserialize)]
pub struct ScriptCredentials {
    /// The key.
    #[serde(default)]
    pub api_key: Option<String>,
    /// Additional headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

/// Shows the names of headers, but never a value.
impl fmt::Debug for ScriptCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptCredentials")
            .field("has_key", &self.api_key.is_some())
            .field("headers", &self.headers.keys())
            .finish()
    }
}

/// A part of the answer of a model that a script calls.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ScriptModelPart {
    /// More text.
    Text {
        /// The added text.
        delta: String,
    },
    /// More reasoning.
    Reasoning {
        /// The added text.
        delta: String,
    },
    /// A complete tool call.
    ToolCall {
        /// The call.
        tool_call: ToolCall,
    },
}

/// The end of the answer of a model that a script calls.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ScriptModelEnd {
    /// The tokens that the call used.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// What went wrong, if the answer is not complete.
    #[serde(default)]
    pub error: Option<String>,
}

/// The result of a script's tool.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ToolAnswer {
    content: Vec<Block>,
    #[serde(default)]
    details: Value,
    #[serde(default)]
    is_error: bool,
}

/// A content block of a result, as scripts write it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    Image {
        data: String,
        #[serde(rename = "mimeType")]
        media_type: String,
    },
}

impl From<ToolAnswer> for ToolResult {
    fn from(answer: ToolAnswer) -> Self {
        let content = answer.content.into_iter().map(|block| match block {
            Block::Text { text } => ContentBlock::text(text),
            Block::Image { data, media_type } => ContentBlock::Image {
                image: Image::new(media_type, data),
            },
        });
        Self::default()
            .with_content(content.collect::<Vec<_>>())
            .with_details(answer.details.as_object().cloned())
            .with_is_error(answer.is_error)
    }
}

/// Writes a result in the form in which scripts write it. Blocks that scripts do not know are left out.
pub(super) fn result_for_script(result: &ToolResult) -> Value {
    let blocks = result.content.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(json!({ "type": "text", "text": text })),
        ContentBlock::Image { image } => Some(json!({
            "type": "image", "data": image.data, "mimeType": image.media_type,
        })),
        ContentBlock::Other(_) | _ => None,
    });
    json!({
        "content": blocks.collect::<Value>(),
        "details": result.details,
        "isError": result.is_error,
    })
}

/// The stack size of a thread that removes the types from sources, in bytes. Unused pages of it take no memory.
const STACK: usize = 512 << 20;

/// Starts a thread that calls [`strip_types`]. Deeply nested sources need its larger stack, and large sources would
/// block the runtime.
pub(super) fn strip_thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name("strip-types".to_owned());
    thread.stack_size(STACK).spawn(work).map(drop)
}

/// Returns TypeScript without its types, and with a source map to the original lines.
#[cfg(not(feature = "typescript"))]
pub(super) fn strip_types(_path: &str, _text: &str) -> Result<String, Refusal> {
    // The worker handles a host that was built without this feature.
    Err(Refusal::NoMethod)
}

/// Returns TypeScript without its types, and with a source map to the original lines.
#[cfg(feature = "typescript")]
pub(super) fn strip_types(path: &str, text: &str) -> Result<String, Refusal> {
    typescript::strip(path, text).map_err(Refusal::Failed)
}

#[cfg(feature = "typescript")]
mod typescript {
    use std::path::Path;

    use oxc_allocator::Allocator;
    use oxc_codegen::{Codegen, CodegenOptions};
    use oxc_diagnostics::Diagnostics;
    use oxc_parser::Parser;
    use oxc_semantic::SemanticBuilder;
    use oxc_sourcemap::SourceMap;
    use oxc_span::SourceType;
    use oxc_transformer::{TransformOptions, Transformer};

    /// Describes the first error of a source, with its line.
    fn describe_error(diagnostics: &Diagnostics, text: &str) -> String {
        let Some(first) = diagnostics.iter().next() else {
            return "it is not valid TypeScript".to_owned();
        };
        let label = first.labels.iter().next();
        let at = label.and_then(|label| usize::try_from(label.offset()).ok());
        let before = at.and_then(|at| text.get(..at));
        match before {
            Some(before) => format!("line {}: {first}", before.matches('\n').count() + 1),
            None => first.to_string(),
        }
    }

    /// Leaves out of a source map what only debuggers use: the source, and the columns within a line. Node.js reads the
    /// map whenever it loads the script.
    fn lines_only(map: SourceMap<'_>) -> SourceMap<'_> {
        let mut parts = map.into_parts();
        parts.source_contents.clear();
        parts.token_chunks = None;
        let mut last = None;
        let tokens = parts.tokens.iter().filter(|token| {
            let lines = Some((token.get_dst_line(), token.get_src_line()));
            let is_new = lines != last;
            last = lines;
            is_new
        });
        parts.tokens = tokens.copied().collect();
        SourceMap::from_parts(parts)
    }

    pub(super) fn strip(path: &str, text: &str) -> Result<String, String> {
        let file = Path::new(path);
        let source_type = SourceType::from_path(file).unwrap_or_else(|_| SourceType::ts());
        let allocator = Allocator::default();
        let mut parsed = Parser::new(&allocator, text, source_type).parse();
        if !parsed.diagnostics.is_empty() {
            return Err(describe_error(&parsed.diagnostics, text));
        }
        let scoping = SemanticBuilder::new()
            .with_excess_capacity(2.0)
            .with_enum_eval(true)
            .build(&parsed.program)
            .semantic
            .into_scoping();
        let options = TransformOptions::default();
        let transformed = Transformer::new(&allocator, file, &options)
            .build_with_scoping(scoping, &mut parsed.program);
        if !transformed.diagnostics.is_empty() {
            return Err(describe_error(&transformed.diagnostics, text));
        }
        let options = CodegenOptions {
            source_map_path: Some(file.to_owned()),
            ..CodegenOptions::default()
        };
        let made = Codegen::new().with_options(options).build(&parsed.program);
        let map = made.map.map(|map| lines_only(map).to_data_url());
        Ok(match map {
            Some(map) => format!("{}\n//# sourceMappingURL={map}\n", made.code),
            None => made.code,
        })
    }
}
