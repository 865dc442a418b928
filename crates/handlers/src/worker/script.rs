//! Scripts: what a worker loads, what they register, and TypeScript without its types.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenterhook_protocol::{ContentBlock, Image, ToolResult};

use super::host::Refusal;

/// A script that a worker serves.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Script {
    /// The file that is loaded.
    pub path: PathBuf,
    /// Whose API it is written for: `tenterhook`, or another one that the worker knows.
    pub api: &'static str,
}

/// A hook of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptHook {
    /// What it is called in its file.
    pub name: String,
    /// The event, by its name in the API of the script.
    pub event: String,
    /// Which events of that name.
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
    /// Flags of the command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<ScriptFlag>,
    /// What a person should know of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Registered {
    /// Says whether there is nothing of use.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty()
            && self.tools.is_empty()
            && self.commands.is_empty()
            && self.flags.is_empty()
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

/// What a tool of a script answers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ToolAnswer {
    content: Vec<Block>,
    #[serde(default)]
    details: Value,
    #[serde(default)]
    is_error: bool,
}

/// A piece of an answer, as scripts write it.
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
                image: Image { media_type, data },
            },
        });
        Self {
            content: content.collect(),
            details: answer.details.as_object().cloned(),
            is_error: answer.is_error,
            terminate: false,
        }
    }
}

/// Returns TypeScript without its types, with a map that leads back to the lines of the source.
#[cfg(not(feature = "typescript"))]
pub(super) fn strip_types(_path: &str, _text: &str) -> Result<String, Refusal> {
    // Built without it; the worker knows what to do.
    Err(Refusal::NoMethod)
}

/// Returns TypeScript without its types, with a map that leads back to the lines of the source.
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
    use oxc_span::SourceType;
    use oxc_transformer::{TransformOptions, Transformer};

    /// Says what is wrong with a source first, and on which line.
    fn told(diagnostics: &Diagnostics, text: &str) -> String {
        let Some(first) = diagnostics.iter().next() else {
            return "it is no TypeScript".to_owned();
        };
        let label = first.labels.iter().next();
        let at = label.and_then(|label| usize::try_from(label.offset()).ok());
        let before = at.and_then(|at| text.get(..at));
        match before {
            Some(before) => format!("line {}: {first}", before.matches('\n').count() + 1),
            None => first.to_string(),
        }
    }

    pub(super) fn strip(path: &str, text: &str) -> Result<String, String> {
        let file = Path::new(path);
        let source_type = SourceType::from_path(file).unwrap_or_else(|_| SourceType::ts());
        let allocator = Allocator::default();
        let mut parsed = Parser::new(&allocator, text, source_type).parse();
        if !parsed.diagnostics.is_empty() {
            return Err(told(&parsed.diagnostics, text));
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
            return Err(told(&transformed.diagnostics, text));
        }
        let options = CodegenOptions {
            source_map_path: Some(file.to_owned()),
            ..CodegenOptions::default()
        };
        let made = Codegen::new().with_options(options).build(&parsed.program);
        let map = made.map.map(|map| map.to_data_url());
        Ok(match map {
            Some(map) => format!("{}\n//# sourceMappingURL={map}\n", made.code),
            None => made.code,
        })
    }
}
