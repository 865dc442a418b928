//! The pieces of messages and tool results, including kinds that the catalogue does not know.

use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use thiserror::Error;

use crate::JsonObject;

/// An image in a message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Image {
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// The image data in base64.
    pub data: String,
}

impl Image {
    /// Creates an image from its media type and its data in base64.
    pub fn new(media_type: impl Into<String>, data: impl Into<String>) -> Self {
        Self {
            media_type: media_type.into(),
            data: data.into(),
        }
    }
}

/// One piece of a tool result or of a message.
///
/// In JSON it is an object with a `type`. A text block without other keys is [`Text`](Self::Text), and an
/// object with an `image` and no other keys is [`Image`](Self::Image). Every other object is
/// [`Other`](Self::Other), for example audio, a document, or a text block with a cache marker. It is
/// written exactly as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// The image.
        image: Image,
    },
    /// A block that the catalogue does not know.
    Other(OpaqueBlock),
}

impl ContentBlock {
    /// Creates a block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Returns the text that the model reads in this block: its text, or the `text` of a block that
    /// the catalogue does not know.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Image { .. } => None,
            Self::Other(block) => block.0.get("text")?.as_str(),
        }
    }
}

/// A block as its host or provider wrote it: a JSON object whose `type` is a string.
///
/// ```
/// use tenterhook_protocol::{ContentBlock, OpaqueBlock, ToolResult};
///
/// let json = r#"{"type":"audio","data":"UklGRg=="}"#;
/// let audio = OpaqueBlock::try_from(serde_json::from_str::<tenterhook_protocol::JsonObject>(json)?)?;
/// let result = ToolResult::default().with_content(vec![ContentBlock::Other(audio)]);
/// assert_eq!(result.joined_text(), "");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpaqueBlock(JsonObject);

impl OpaqueBlock {
    /// Returns the block as a JSON object.
    pub fn as_object(&self) -> &JsonObject {
        &self.0
    }

    /// Returns the block as a JSON object.
    pub fn into_object(self) -> JsonObject {
        self.0
    }
}

/// The error for an object that is not a block: its `type` is missing or not a string.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the `type` of a block is {found}, expected a string such as `text` or `audio`")]
pub struct InvalidBlock {
    /// What was found, as JSON, or `missing`.
    pub found: String,
}

impl TryFrom<JsonObject> for OpaqueBlock {
    type Error = InvalidBlock;

    fn try_from(object: JsonObject) -> Result<Self, InvalidBlock> {
        match object.get("type") {
            Some(Value::String(_)) => Ok(Self(object)),
            other => Err(InvalidBlock {
                found: other.map_or_else(|| "missing".to_owned(), Value::to_string),
            }),
        }
    }
}

impl Serialize for ContentBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = match self {
            Self::Other(block) => return block.0.serialize(serializer),
            Self::Text { .. } | Self::Image { .. } => serializer.serialize_map(Some(2))?,
        };
        match self {
            Self::Text { text } => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            Self::Image { image } => {
                map.serialize_entry("type", "image")?;
                map.serialize_entry("image", image)?;
            }
            Self::Other(_) => {}
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let block = OpaqueBlock::try_from(JsonObject::deserialize(deserializer)?)
            .map_err(D::Error::custom)?;
        let is_plain = block.0.len() == 2;
        match block.0.get("type").and_then(Value::as_str) {
            Some("text") => match block.0.get("text") {
                Some(Value::String(text)) if is_plain => Ok(Self::text(text)),
                Some(Value::String(_)) => Ok(Self::Other(block)),
                _ => Err(D::Error::custom(
                    "a block of type `text` has no `text`, or it is not a string",
                )),
            },
            // A provider's own image block has other keys.
            Some("image") => match block.0.get("image") {
                Some(image) => {
                    let image = Image::deserialize(image).map_err(D::Error::custom)?;
                    Ok(if is_plain {
                        Self::Image { image }
                    } else {
                        Self::Other(block)
                    })
                }
                None => Ok(Self::Other(block)),
            },
            _ => Ok(Self::Other(block)),
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ContentBlock {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ContentBlock".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut image = generator.subschema_for::<Image>();
        image.insert(
            "description".into(),
            "The image of an `image` block.".into(),
        );
        schemars::json_schema!({
            "description": "One piece of a tool result or of a message. Blocks of other types are passed on unchanged.",
            "type": "object",
            "properties": {
                "type": { "type": "string", "description": "What the block is: `text`, `image` or another word." },
                "text": { "type": "string", "description": "The text of a `text` block." },
                "image": image,
            },
            "required": ["type"],
            "if": { "properties": { "type": { "const": "text" } } },
            "then": { "required": ["text"] },
        })
    }
}
