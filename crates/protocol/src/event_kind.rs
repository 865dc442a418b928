//! The closed list of events and their names.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::catalogue::{AnyEvent, Event, EventInfo};
use crate::event;
use crate::id::{CustomName, InvalidName};

/// Declares the list. The order is that of the catalogue page.
macro_rules! event_kinds {
    ($($name:ident),+ $(,)?) => {
        /// An event of the catalogue, or `Custom` for every user-defined one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum EventKind {
            $( #[doc = concat!("See [`event::", stringify!($name), "`].")] $name, )+
        }

        impl EventKind {
            /// Every kind, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$( Self::$name ),+];

            /// Returns the event's row of the catalogue.
            pub const fn info(self) -> &'static EventInfo {
                match self { $( Self::$name => <event::$name as Event>::INFO ),+ }
            }

            fn parse(self, payload: Value) -> Result<Box<dyn AnyEvent>, serde_json::Error> {
                Ok(match self { $( Self::$name => Box::new(serde_json::from_value::<event::$name>(payload)?) ),+ })
            }

            /// Returns the JSON Schema of the payload.
            pub fn payload_schema(self) -> schemars::Schema {
                match self { $( Self::$name => schemars::schema_for!(event::$name) ),+ }
            }
        }
    };
}

event_kinds! {
    SessionDirectoryResolve,
    SessionStart,
    ResourcesDiscover,
    SessionBeforeSwitch,
    SessionSwitch,
    SessionBeforeFork,
    SessionFork,
    SessionBeforeTree,
    SessionTree,
    SessionInfoChange,
    SessionEnd,
    PreCompact,
    BeforeCompaction,
    CompactionStart,
    AfterCompaction,
    CompactionFailed,
    UserInput,
    UserPromptSubmit,
    UserSteeringSubmit,
    UserFollowupSubmit,
    UserBash,
    WaitingForUser,
    QueueUpdate,
    BeforeAgentStart,
    AgentStart,
    AgentEnd,
    Stop,
    AgentError,
    MaxIterations,
    SavePoint,
    AgentSettled,
    RetryStart,
    RetryEnd,
    Notification,
    AgentSwitch,
    SessionLimitResume,
    TurnStart,
    Context,
    BeforeLlmCall,
    ToolSelection,
    ProviderRequest,
    ProviderResponse,
    AfterLlmCall,
    MessageStart,
    MessageUpdate,
    MessageEnd,
    TurnEnd,
    ToolsDisabled,
    ToolExecutionStart,
    ToolExecutionUpdate,
    ToolExecutionEnd,
    ToolInputTransform,
    ToolGuard,
    PreToolUse,
    PermissionRequest,
    PermissionDenied,
    ToolApprovalDecision,
    TokenBudgetExceeded,
    ToolResponseTransform,
    PostToolUse,
    ToolError,
    SubagentStart,
    SubagentStop,
    ModelSelect,
    ThinkingLevelSelect,
    GatewayStart,
    GatewayStop,
    ChannelConnect,
    ChannelDisconnect,
    MessageReceive,
    MessageSend,
    MessageCancel,
    GatewayError,
    Setup,
    InstructionsLoaded,
    Elicitation,
    ElicitationResult,
    TeammateIdle,
    TaskCreated,
    TaskCompleted,
    ToolBatchEnd,
    ConfigChange,
    CwdChange,
    FileChange,
    DirectoryAdded,
    WorktreeCreate,
    WorktreeRemove,
    Interrupt,
    PromptExpansion,
    MessageDisplay,
    PreModelSwitch,
    PostModelSwitch,
    Custom,
}

impl EventKind {
    /// How many kinds there are: the length of a table indexed by [`EventKind::index`].
    pub const COUNT: usize = Self::ALL.len();

    /// Returns the position in the catalogue.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Returns every row of the catalogue but that of user-defined events.
pub fn events() -> impl Iterator<Item = &'static EventInfo> {
    EventKind::ALL
        .iter()
        .filter(|kind| **kind != EventKind::Custom)
        .map(|kind| kind.info())
}

/// The name of an event: of the catalogue, or `x-<vendor>.<name>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventName {
    /// An event of the catalogue.
    Known(EventKind),
    /// A user-defined event.
    Custom(CustomName),
}

impl EventName {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(kind) => kind.info().name,
            Self::Custom(name) => name.as_str(),
        }
    }

    /// Returns the kind; every user-defined event has the same one.
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Known(kind) => *kind,
            Self::Custom(_) => EventKind::Custom,
        }
    }

    /// Returns the event's row of the catalogue.
    pub fn info(&self) -> &'static EventInfo {
        self.kind().info()
    }
}

impl From<EventKind> for EventName {
    fn from(kind: EventKind) -> Self {
        Self::Known(kind)
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text names no event.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseEventNameError {
    /// It is not in the catalogue.
    #[error("unknown event `{found}`")]
    Unknown {
        /// What was given.
        found: String,
    },
    /// It starts like a user-defined event and is none.
    #[error(transparent)]
    Custom(#[from] InvalidName),
}

impl FromStr for EventName {
    type Err = ParseEventNameError;

    fn from_str(text: &str) -> Result<Self, ParseEventNameError> {
        if text.starts_with("x-") {
            return Ok(Self::Custom(text.parse()?));
        }
        events()
            .find(|info| info.name == text)
            .map(|info| Self::Known(info.kind))
            .ok_or_else(|| ParseEventNameError::Unknown {
                found: text.to_owned(),
            })
    }
}

impl Serialize for EventName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for EventName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for EventName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EventName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: Vec<&str> = events().map(|info| info.name).collect();
        schemars::json_schema!({
            "anyOf": [
                { "enum": names },
                { "type": "string", "pattern": r"^x-[a-z0-9_-]+(\.[a-z0-9_-]+)+$" },
            ]
        })
    }
}

/// Makes an event from its name and its payload.
///
/// # Errors
/// When the payload is not that of the event: a field is missing, unknown, or of the wrong type.
pub fn parse_event(
    name: &EventName,
    payload: Value,
) -> Result<Box<dyn AnyEvent>, serde_json::Error> {
    match name {
        EventName::Known(kind) => kind.parse(payload),
        EventName::Custom(name) => {
            let mut event = event::Custom::gate(name.clone());
            event.payload = serde_json::from_value(payload)?;
            Ok(Box::new(event))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{EventClass, Run};

    #[test]
    fn every_row_stands_at_its_own_place_under_its_own_name() {
        let names: BTreeSet<&str> = EventKind::ALL.iter().map(|kind| kind.info().name).collect();
        assert_eq!(names.len(), EventKind::COUNT);
        for (index, kind) in EventKind::ALL.iter().enumerate() {
            assert_eq!((kind.index(), kind.info().kind), (index, *kind));
        }
    }

    #[test]
    fn names_are_read_back() {
        for info in events() {
            assert_eq!(info.name.parse(), Ok(EventName::Known(info.kind)));
        }
        assert_eq!(
            "x-acme.deploy".parse::<EventName>().map(|name| name.kind()),
            Ok(EventKind::Custom)
        );
        assert!("pre_tool_usee".parse::<EventName>().is_err());
    }

    #[test]
    fn events_with_rewrites_run_in_series() {
        for info in events().filter(|info| !info.rewrites.is_empty()) {
            assert_eq!(info.run, Run::Series, "{}", info.name);
        }
    }

    #[test]
    fn every_gate_can_stop_something() {
        for info in events().filter(|info| info.class == EventClass::Gate) {
            assert!(info.can_stop(), "{}", info.name);
        }
    }

    #[test]
    fn payloads_refuse_unknown_and_missing_fields() {
        let name = EventName::Known(EventKind::PreToolUse);
        let missing =
            parse_event(&name, serde_json::json!({"tool_input": {}})).expect_err("no tool_name");
        assert!(missing.to_string().contains("tool_name"), "{missing}");
        let unknown =
            parse_event(&name, serde_json::json!({"tool_nme": "shell"})).expect_err("misspelled");
        assert!(unknown.to_string().contains("tool_nme"), "{unknown}");
    }
}
