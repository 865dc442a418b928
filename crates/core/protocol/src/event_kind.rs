//! The fixed list of events.

/// Calls a macro with the list, in the order of the catalogue page.
macro_rules! each_event {
    ($callback:ident) => {
        $callback! {
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
            MessageDeliver,
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
    };
}
pub(crate) use each_event;

macro_rules! event_kinds {
    ($($name:ident),+ $(,)?) => {
        /// An event of the catalogue, or `Custom` for every user-defined one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum EventKind {
            $( #[doc = concat!("See [`event::", stringify!($name), "`](crate::event::", stringify!($name), ").")] $name, )+
        }

        impl EventKind {
            /// Every kind, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$( Self::$name ),+];
        }
    };
}

each_event! { event_kinds }

impl EventKind {
    /// The number of kinds, which is the length of a table indexed by [`EventKind::index`].
    pub const COUNT: usize = Self::ALL.len();

    /// Returns the position in the catalogue.
    pub const fn index(self) -> usize {
        self as usize
    }
}
