//! What pi offers its extensions, and what each member does here.
//!
//! | state | meaning |
//! |---|---|
//! | [`Implemented`] | the worker of the extension does it |
//! | [`Bridged`] | the program that runs the agent does it |
//! | [`Refused`] | it has no effect, or throws; `check` reports its use |
//!
//! The members come from the published types of [`VERSION`]. Three more are from its class `SessionManager`, because
//! extensions use them as well. `.ci/pi-members` compares them.

use std::fmt;

use self::PiMemberState::{Bridged, Implemented, Refused};

/// The version of pi whose members are in the table.
pub const VERSION: &str = "0.87.1";

/// What a member of one of pi's interfaces does here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PiMemberState {
    /// The worker of the extension does it.
    Implemented,
    /// The program that runs the agent does it.
    Bridged,
    /// It has no effect, or throws. The text says why, and what to use instead.
    Refused(&'static str),
}

/// One of pi's interfaces for extensions.
#[derive(Debug)]
pub struct PiInterface {
    /// Its name in pi's types.
    pub name: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// How extensions usually write a value of it.
    pub written: &'static str,
    /// Its members, by name.
    pub members: &'static [(&'static str, PiMemberState)],
}

/// A member that an extension uses, although it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedMember {
    /// How extensions usually write the value that has it.
    pub of: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Why it is refused, and what to use instead.
    pub reason: &'static str,
}

impl fmt::Display for RefusedMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}.{}` is not supported here: {}",
            self.of, self.name, self.reason
        )
    }
}

impl RefusedMember {
    /// Returns whether a source uses it. Other values may have a member of the same name as one of `ctx.modelRegistry`, so
    /// these are found only behind its name.
    fn is_used_in(&self, source: &str) -> bool {
        let written = match self.of {
            "ctx.modelRegistry" => format!("modelRegistry.{}", self.name),
            _ => format!(".{}", self.name),
        };
        source.match_indices(&written).any(|(at, found)| {
            let after = source
                .get(at + found.len()..)
                .and_then(|rest| rest.chars().next());
            !after.is_some_and(|next| next.is_alphanumeric() || next == '_' || next == '$')
        })
    }
}

/// Returns the refused members whose names the source of an extension contains, behind a dot.
pub fn refused_in(source: &str) -> Vec<RefusedMember> {
    let members = INTERFACES.iter().flat_map(|interface| {
        let of = interface.written;
        interface
            .members
            .iter()
            .filter_map(move |(name, state)| match state {
                Refused(reason) => Some(RefusedMember { of, name, reason }),
                Implemented | Bridged => None,
            })
    });
    members.filter(|member| member.is_used_in(source)).collect()
}

/// All interfaces.
pub static INTERFACES: &[PiInterface] = &[
    PiInterface {
        name: "ExtensionAPI",
        description: "What an extension gets when it is loaded.",
        written: "pi",
        members: &[
            ("appendEntry", Bridged),
            ("events", Implemented),
            ("exec", Implemented),
            ("getActiveTools", Bridged),
            ("getAllTools", Bridged),
            ("getCommands", Bridged),
            ("getFlag", Implemented),
            ("getSessionName", Bridged),
            ("getThinkingLevel", Bridged),
            ("on", Bridged),
            ("registerCommand", Bridged),
            (
                "registerEntryRenderer",
                Refused(
                    "the terminal does not show entries; it shows what `pi.sendMessage` sends with `display: true`",
                ),
            ),
            ("registerFlag", Bridged),
            (
                "registerMarkdownTransformer",
                Refused("the program draws the answers of the model itself"),
            ),
            ("registerMessageRenderer", Bridged),
            ("registerProvider", Bridged),
            ("registerShortcut", Bridged),
            ("registerTool", Bridged),
            ("sendMessage", Bridged),
            ("sendUserMessage", Bridged),
            ("setActiveTools", Bridged),
            ("setLabel", Bridged),
            ("setModel", Bridged),
            ("setSessionName", Bridged),
            ("setThinkingLevel", Bridged),
            ("unregisterProvider", Bridged),
        ],
    },
    PiInterface {
        name: "ExtensionContext",
        description: "What every handler gets.",
        written: "ctx",
        members: &[
            ("abort", Bridged),
            ("compact", Bridged),
            ("cwd", Implemented),
            ("getContextUsage", Bridged),
            ("getSystemPrompt", Bridged),
            ("hasPendingMessages", Bridged),
            ("hasUI", Implemented),
            ("isIdle", Bridged),
            ("isProjectTrusted", Implemented),
            ("mode", Implemented),
            ("model", Bridged),
            ("modelRegistry", Bridged),
            ("scopedModels", Implemented),
            ("sessionManager", Bridged),
            ("shutdown", Bridged),
            ("signal", Implemented),
            ("thinkingLevel", Bridged),
            ("ui", Bridged),
        ],
    },
    PiInterface {
        name: "ExtensionCommandContext",
        description: "What handlers of commands get in addition.",
        written: "ctx",
        members: &[
            ("fork", Bridged),
            (
                "getSystemPromptOptions",
                Refused(
                    "the system prompt is not built from these options; `ctx.getSystemPrompt()` returns it",
                ),
            ),
            ("navigateTree", Bridged),
            ("newSession", Bridged),
            ("reload", Bridged),
            ("switchSession", Bridged),
            ("waitForIdle", Bridged),
        ],
    },
    PiInterface {
        name: "ExtensionUIContext",
        description: "The user.",
        written: "ctx.ui",
        members: &[
            (
                "addAutocompleteProvider",
                Refused("the line editor completes commands and paths"),
            ),
            ("confirm", Bridged),
            ("custom", Bridged),
            ("editor", Bridged),
            ("getAllThemes", Implemented),
            ("getEditorComponent", Implemented),
            ("getEditorText", Bridged),
            ("getTheme", Implemented),
            ("getToolsExpanded", Implemented),
            ("input", Bridged),
            ("notify", Bridged),
            (
                "onTerminalInput",
                Refused(
                    "the line editor reads the keys; `ctx.ui.custom` receives them while it draws",
                ),
            ),
            ("pasteToEditor", Bridged),
            ("select", Bridged),
            (
                "setEditorComponent",
                Refused("prompts are written in the line editor"),
            ),
            ("setEditorText", Bridged),
            ("setFooter", Bridged),
            ("setHeader", Bridged),
            (
                "setHiddenThinkingLabel",
                Refused("the program labels hidden reasoning itself"),
            ),
            ("setStatus", Bridged),
            ("setTheme", Implemented),
            ("setTitle", Bridged),
            (
                "setToolsExpanded",
                Refused("results of tools are shown in one form"),
            ),
            ("setWidget", Bridged),
            (
                "setWorkingIndicator",
                Refused(
                    "the program draws the indicator itself; `ctx.ui.setWorkingMessage` changes its text",
                ),
            ),
            ("setWorkingMessage", Bridged),
            (
                "setWorkingVisible",
                Refused(
                    "the program draws the indicator itself; `ctx.ui.setWorkingMessage` changes its text",
                ),
            ),
            ("theme", Implemented),
        ],
    },
    PiInterface {
        name: "SessionManager",
        description: "The session. Handlers can only read it.",
        written: "ctx.sessionManager",
        members: &[
            ("buildContextEntries", Bridged),
            ("buildSessionContext", Bridged),
            ("buildSessionProjection", Bridged),
            ("getBranch", Bridged),
            ("getChildren", Bridged),
            ("getCwd", Implemented),
            ("getEntries", Bridged),
            ("getEntry", Bridged),
            ("getHeader", Bridged),
            ("getLabel", Bridged),
            ("getLeafEntry", Bridged),
            ("getLeafId", Bridged),
            ("getSessionDir", Bridged),
            ("getSessionFile", Bridged),
            ("getSessionId", Bridged),
            ("getSessionName", Bridged),
            ("getTree", Bridged),
            ("isPersisted", Bridged),
        ],
    },
    PiInterface {
        name: "ModelRegistry",
        description: "The models.",
        written: "ctx.modelRegistry",
        members: &[
            ("complete", Bridged),
            ("find", Bridged),
            ("getAll", Bridged),
            ("getApiKeyAndHeaders", Implemented),
            ("getApiKeyForProvider", Implemented),
            ("getAvailable", Bridged),
            ("getError", Implemented),
            ("getProvider", Bridged),
            ("getProviderAuth", Implemented),
            ("getProviderAuthStatus", Implemented),
            ("getProviderDisplayName", Implemented),
            ("getRegisteredNativeProvider", Implemented),
            ("getRegisteredProviderConfig", Implemented),
            ("getRegisteredProviderIds", Implemented),
            ("hasConfiguredAuth", Implemented),
            ("isUsingOAuth", Implemented),
            ("refresh", Implemented),
            ("registerProvider", Refused("use `pi.registerProvider`")),
            ("stream", Bridged),
            ("streamSimple", Bridged),
            ("unregisterProvider", Refused("use `pi.unregisterProvider`")),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_members_are_found_behind_a_dot_and_as_whole_names() {
        for (source, expected) in [
            (
                "pi.registerEntryRenderer('x', draw)",
                &["registerEntryRenderer"][..],
            ),
            ("ctx.ui?.setWorkingVisible?.(false)", &["setWorkingVisible"]),
            (
                "const { ui } = ctx; ui.onTerminalInput(read)",
                &["onTerminalInput"],
            ),
            (
                "ctx.modelRegistry.registerProvider('x', {})",
                &["registerProvider"],
            ),
            ("pi.registerProvider('x', {})", &[]),
            ("ctx.ui.setWorkingVisibleLater()", &[]),
            ("const setWorkingVisible = 1;", &[]),
            ("pi.registerTool(tool)", &[]),
        ] {
            let found: Vec<&str> = refused_in(source)
                .iter()
                .map(|member| member.name)
                .collect();
            assert_eq!(found, expected, "{source}");
        }
    }

    #[test]
    fn members_are_sorted_and_listed_once() {
        for interface in INTERFACES {
            let names = interface.members.iter().map(|(name, _)| *name);
            let mut sorted: Vec<&str> = names.clone().collect();
            sorted.sort_unstable();
            sorted.dedup();
            assert!(names.eq(sorted), "{}", interface.name);
        }
    }
}
