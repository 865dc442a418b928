//! Events that only other agents have. Their payloads are passed on as those agents write them.

use std::any::Any;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::JsonObject;
use crate::capability::{Capabilities, Capability};
use crate::catalogue::{self, AnyEvent, Event, EventClass, EventInfo, RewriteError, Run};
use crate::event_kind::EventKind;
use crate::event_macro;
use crate::field::IntoField;
use crate::honours;

/// Declares an event with an open payload.
macro_rules! open_event {
    ($( $(#[$meta:meta])* $name:ident = $text:literal, $class:ident, [$($capability:ident),*]; )+) => { $(
        $(#[$meta])*
        #[doc = ""]
        #[doc = concat!("| event | `", $text, "` |")]
        #[doc = "|---|---|"]
        #[doc = concat!("| class | [`", stringify!($class), "`](crate::EventClass::", stringify!($class), ") |")]
        #[doc = "| hooks run | [`Series`](crate::Run::Series) |"]
        #[doc = concat!("| effects |" $(, " [`", stringify!($capability), "`](crate::capability::Capability::", stringify!($capability), ")")*, " |")]
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        #[non_exhaustive]
        pub struct $name {
            /// The payload as the agent wrote it.
            pub payload: JsonObject,
        }

        impl $name {
            /// Creates the event from the payload that the agent wrote.
            pub fn new(payload: impl IntoField<JsonObject>) -> Self {
                Self { payload: payload.into_field() }
            }

            /// Adds a value to the payload's `extra`. Replaces an earlier value with the same key.
            #[must_use]
            pub fn with_extra(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
                catalogue::add_extra_to_open(&mut self.payload, key.into(), value.into());
                self
            }
        }

        impl catalogue::private::Sealed for $name {}

        event_macro::class!($class $name);

        impl Event for $name {
            const INFO: &'static EventInfo = &EventInfo {
                kind: EventKind::$name,
                name: $text,
                class: EventClass::$class,
                fields: None,
                run: Run::Series,
                precedes_model: true,
                subject: None,
                capabilities: Capabilities::of(&[$(Capability::$capability),*]),
                rewrites: &[],
                collects: &[],
                supplies: None,
            };
        }

        impl AnyEvent for $name {
            fn info(&self) -> &'static EventInfo { Self::INFO }
            fn subject(&self) -> Option<&str> { None }
            fn extra(&self) -> Option<&JsonObject> { catalogue::extra_of_open(&self.payload) }
            fn payload(&self) -> Result<JsonObject, serde_json::Error> { Ok(self.payload.clone()) }
            fn rewrite(&mut self, field: &str, _value: Value) -> Result<(), RewriteError> {
                Err(RewriteError::UnknownField { event: $text.to_owned(), field: field.to_owned() })
            }
            fn as_any(&self) -> &dyn Any { self }

            fn boxed_clone(&self) -> Box<dyn AnyEvent> { Box::new(self.clone()) }
        }

        $( impl honours::$capability for $name {} )*
    )+ };
}

open_event! {
    /// Fires when an agent sets up a project.
    Setup = "setup", Observer, [];
    /// Fires when instruction files have been loaded.
    InstructionsLoaded = "instructions_loaded", Observer, [];
    /// Fires when a tool server asks the user for something.
    Elicitation = "elicitation", Gate, [Block];
    /// Fires when the user has answered a tool server.
    ElicitationResult = "elicitation_result", Gate, [Block];
    /// Fires when a teammate has nothing to do.
    TeammateIdle = "teammate_idle", Gate, [Block];
    /// Fires when a task is created.
    TaskCreated = "task_created", Gate, [Block];
    /// Fires before a task is marked as completed.
    TaskCompleted = "task_completed", Gate, [Block];
    /// Fires when all tool calls of one model answer are over.
    ToolBatchEnd = "tool_batch_end", Observer, [Context];
    /// Fires before a configuration file changes.
    ConfigChange = "config_change", Gate, [Block];
    /// Fires when the working directory has changed.
    CwdChange = "cwd_change", Observer, [];
    /// Fires when a watched file has changed.
    FileChange = "file_change", Observer, [];
    /// Fires when a directory has been added to the workspace.
    DirectoryAdded = "directory_added", Observer, [];
    /// Fires before a worktree is created.
    WorktreeCreate = "worktree_create", Gate, [Block, Context];
    /// Fires when a worktree is removed.
    WorktreeRemove = "worktree_remove", Observer, [];
    /// Fires when the user has interrupted the agent.
    Interrupt = "interrupt", Observer, [];
    /// Fires before a command is expanded to a prompt.
    PromptExpansion = "prompt_expansion", Gate, [Block, Context];
    /// Fires when a message is shown to the user.
    MessageDisplay = "message_display", Observer, [];
    /// Fires before another model is selected.
    PreModelSwitch = "pre_model_switch", Gate, [Block];
    /// Fires when another model has been selected.
    PostModelSwitch = "post_model_switch", Observer, [];
}
