//! Events that only other agents have, with the payloads that those agents write.

use std::any::Any;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::JsonObject;
use crate::capability::{Capabilities, Capability, honours};
use crate::catalogue::{self, AnyEvent, Event, EventClass, EventInfo, RewriteError, Run};
use crate::event_kind::EventKind;

/// Declares an event with an open payload.
macro_rules! open_event {
    ($( $(#[$meta:meta])* $name:ident = $text:literal, $class:ident, [$($capability:ident),*]; )+) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name {
            /// The payload as the agent wrote it.
            pub payload: JsonObject,
        }

        impl catalogue::private::Sealed for $name {}

        catalogue::class!($class $name);

        impl Event for $name {
            const INFO: &'static EventInfo = &EventInfo {
                kind: EventKind::$name,
                name: $text,
                class: EventClass::$class,
                run: Run::Series,
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
    /// An agent sets up a project.
    Setup = "setup", Observer, [];
    /// Instruction files were loaded.
    InstructionsLoaded = "instructions_loaded", Observer, [];
    /// A tool server asks the user for something.
    Elicitation = "elicitation", Gate, [Block];
    /// The user answered a tool server.
    ElicitationResult = "elicitation_result", Gate, [Block];
    /// A teammate has nothing to do.
    TeammateIdle = "teammate_idle", Gate, [Block];
    /// A task was created.
    TaskCreated = "task_created", Gate, [Block];
    /// A task is about to count as done.
    TaskCompleted = "task_completed", Gate, [Block];
    /// All tool calls of one model answer are over.
    ToolBatchEnd = "tool_batch_end", Observer, [Context];
    /// A configuration file is about to change.
    ConfigChange = "config_change", Gate, [Block];
    /// The working directory changed.
    CwdChange = "cwd_change", Observer, [];
    /// A watched file changed.
    FileChange = "file_change", Observer, [];
    /// A directory was added to the workspace.
    DirectoryAdded = "directory_added", Observer, [];
    /// A worktree is about to be created.
    WorktreeCreate = "worktree_create", Gate, [Block, Context];
    /// A worktree is removed.
    WorktreeRemove = "worktree_remove", Observer, [];
    /// The user interrupted the agent.
    Interrupt = "interrupt", Observer, [];
    /// A command is about to expand to a prompt.
    PromptExpansion = "prompt_expansion", Gate, [Block, Context];
    /// A message is shown to the user.
    MessageDisplay = "message_display", Observer, [];
    /// Another model is about to be chosen.
    PreModelSwitch = "pre_model_switch", Gate, [Block];
    /// Another model was chosen.
    PostModelSwitch = "post_model_switch", Observer, [];
}
