//! The values that hooks may rewrite. Each row of the table below is a method of [`Effect`], and a
//! module that contains the marker trait of the events that have this method.
//!
//! A method is defined once for all its events, so that the compiler can infer the event from the
//! surrounding closure: `engine.on(|event: &PreToolUse| Effect::none().patch_input(…))`.

use std::path::PathBuf;

use serde_json::Value;

use crate::JsonObject;
use crate::content::{ContentBlock, Image};
use crate::effect::Effect;
use crate::event::MessagePart;
use crate::field::IntoField;
use crate::message::Message;

macro_rules! rewritable {
    ($( $(#[$meta:meta])* $setter:ident ($field:ident: $type:ty), $verb:literal );+ $(;)?) => {
        $(
            #[doc = concat!("Events that honour [`Effect::", stringify!($setter), "`](crate::Effect::", stringify!($setter), ").")]
            pub mod $setter {
                /// The name of the rewrite in JSON.
                pub const FIELD: &str = stringify!($field);

                #[doc = concat!("Events that honour [`Effect::", stringify!($setter), "`](crate::Effect::", stringify!($setter), "). Only the catalogue implements this trait.")]
                #[diagnostic::on_unimplemented(
                    message = $verb,
                    label = "not honoured by this event",
                    note = "the event catalogue lists what hooks may rewrite"
                )]
                pub trait Rewritable: crate::Event {}
            }

            impl<E: $setter::Rewritable> Effect<E> {
                $(#[$meta])*
                #[must_use]
                pub fn $setter(self, value: impl IntoField<$type>) -> Self {
                    self.rewriting($setter::FIELD, &value.into_field())
                }
            }
        )+
    };
}

rewritable! {
    /// Changes tool arguments. The given keys replace the same keys, and all others are kept.
    patch_input(tool_input: JsonObject), "hooks cannot change the arguments of `{Self}`";
    /// Replaces all tool arguments.
    replace_input(whole_input: JsonObject), "hooks cannot replace the arguments of `{Self}`";
    /// Replaces the tool's answer. An empty string clears it.
    replace_response(tool_response: String), "`{Self}` has no tool response that hooks may replace";
    /// Replaces the part of a result that the model sees.
    replace_content(content: Vec<ContentBlock>), "`{Self}` has no content that hooks may replace";
    /// Replaces the structured details of a result.
    replace_details(details: Option<JsonObject>), "`{Self}` has no details that hooks may replace";
    /// Changes whether the result counts as an error.
    replace_is_error(is_error: bool), "`{Self}` has no error flag that hooks may change";
    /// Changes whether the run ends after this result.
    replace_terminate(terminate: bool), "`{Self}` has no `terminate` flag that hooks may change";
    /// Replaces the system prompt.
    replace_system_prompt(system_prompt: String), "`{Self}` has no system prompt that hooks may replace";
    /// Replaces the text.
    replace_text(text: String), "`{Self}` has no text that hooks may replace";
    /// Replaces the message parts.
    replace_parts(parts: Vec<MessagePart>), "`{Self}` has no message parts that hooks may replace";
    /// Replaces the images. Without this call they are kept.
    replace_images(images: Vec<Image>), "`{Self}` has no images that hooks may replace";
    /// Runs another command instead.
    replace_command(command: String), "`{Self}` has no command that hooks may replace";
    /// Replaces the directory in which sessions are stored.
    replace_directory(default_directory: PathBuf), "`{Self}` has no directory that hooks may replace";
    /// Starts the fork without the earlier conversation.
    skip_conversation_restore(skip_conversation_restore: bool), "`{Self}` restores no conversation";
    /// Changes the instructions for the summary.
    custom_instructions(custom_instructions: Option<String>), "`{Self}` has no instructions that hooks may change";
    /// Sets whether the instructions replace the default ones.
    replace_instructions(replace_instructions: bool), "`{Self}` has no instructions that hooks may replace";
    /// Changes the label of the branch.
    label(label: Option<String>), "`{Self}` has no label that hooks may change";
    /// Replaces the messages that the model receives.
    replace_messages(messages: Vec<Message>), "`{Self}` has no messages that hooks may replace";
    /// Replaces the tools that are offered to the model.
    replace_tools(tools: Vec<String>), "`{Self}` has no list of tools that hooks may replace";
    /// Replaces the body of the request to the model's provider.
    replace_payload(payload: Value), "`{Self}` has no provider request that hooks may replace";
    /// Replaces the message. Its role must stay the same.
    replace_message(message: Message), "`{Self}` has no message that hooks may replace";
    /// Changes the payload of a user-defined event. The given keys replace the same keys.
    patch_payload(payload: JsonObject), "only user-defined events have a payload that hooks may change";
}
