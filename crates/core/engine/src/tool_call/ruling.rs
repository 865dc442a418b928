//! The rulings of a host's own permission rules on a tool call.

/// The ruling of a host's permission rules on a tool call.
///
/// | ruling | what happens to the call, unless a hook stops it |
/// |---|---|
/// | `Deny` | does not run |
/// | `Ask` | a person is asked, even if a hook of `pre_tool_use` allows it |
/// | `Unruled` | a person is asked, unless a hook of `pre_tool_use` allows it |
/// | `Harmless` | it runs |
/// | `Allow`, `Granted` | it runs |
///
/// If a hook asks, a person is asked whatever the ruling. [`ToolCallHost::answers_yes`] answers the
/// questions of `Ask` and `Unruled`, but never one that a hook or a [consent](RuleVerdict::consent)
/// requires.
///
/// [`ToolCallHost::answers_yes`]: super::ToolCallHost::answers_yes
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PermissionRuling {
    /// A rule denies the call. The text is the complete reason.
    Deny(String),
    /// A rule requires a question. The text is the reason, for the person.
    Ask(String),
    /// No rule applies to the call.
    Unruled,
    /// No rule applies to the call, and the call changes nothing. It only reads, for example.
    Harmless,
    /// A rule allows the call.
    Allow,
    /// A person allowed similar calls for the session.
    Granted,
}

impl PermissionRuling {
    /// Returns the stricter of two rulings on different versions of a call. If they are equally
    /// strict, it is the first.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        if other.strictness() > self.strictness() {
            other
        } else {
            self
        }
    }

    fn strictness(&self) -> u8 {
        match self {
            Self::Allow | Self::Granted => 0,
            Self::Harmless => 1,
            Self::Unruled => 2,
            Self::Ask(_) => 3,
            Self::Deny(_) => 4,
        }
    }
}

/// The host's judgement of a tool call before a person is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleVerdict {
    /// The ruling of the permission rules.
    pub ruling: PermissionRuling,
    /// The reason why only a person may approve the call, if that is the case, for example because
    /// it changes a protected file. No rule and no hook can then answer instead.
    pub consent: Option<String>,
}

impl RuleVerdict {
    /// Requires a person's consent for this reason, whatever the rules decide.
    #[must_use]
    pub fn with_consent(mut self, reason: impl Into<String>) -> Self {
        self.consent = Some(reason.into());
        self
    }
}

impl From<PermissionRuling> for RuleVerdict {
    fn from(ruling: PermissionRuling) -> Self {
        Self {
            ruling,
            consent: None,
        }
    }
}
