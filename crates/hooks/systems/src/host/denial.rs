//! The text of a denial. It is the same for every host: why, which hook in which file, and what to do next.

use std::fmt;

/// Longer reasons are shortened, in bytes. A host that stops reading a long answer would run the tool.
pub(super) const MAX_REASON: usize = 16 << 10;

/// The hook that decided, as a person finds it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DecidingHook {
    /// Where the hook is defined, for example `/home/ada/hooks.yaml:3`.
    pub source: Option<String>,
    /// What the person can do about the decision, as a sentence without a full stop.
    pub next_step: Option<String>,
}

/// The text of a denial.
///
/// ```
/// # use tenterhook_systems::host::denial::{DecidingHook, DenialText};
/// let by = DecidingHook {
///     source: Some("hooks.yaml:3".to_owned()),
///     next_step: Some("Only the user can change this: edit the file".to_owned()),
/// };
/// let text = DenialText { reason: "no sudo", hook: Some("no-sudo"), by: Some(&by) };
/// assert_eq!(
///     text.to_string(),
///     "no sudo\n\nStopped by the hook `no-sudo` in hooks.yaml:3. Only the user can change this: edit the file."
/// );
/// ```
#[derive(Debug, Clone, Copy)]
pub struct DenialText<'a> {
    /// Why, as the hook says it.
    pub reason: &'a str,
    /// The name of the hook, if a hook decided.
    pub hook: Option<&'a str>,
    /// More about the hook, if it is known.
    pub by: Option<&'a DecidingHook>,
}

impl fmt::Display for DenialText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            // Some hosts ignore a denial without a reason.
            reason if reason.trim().is_empty() => f.write_str("a hook gave no reason")?,
            reason if reason.len() > MAX_REASON => {
                let end = reason.floor_char_boundary(MAX_REASON);
                write!(f, "{} …", reason.get(..end).unwrap_or_default())?;
            }
            reason => f.write_str(reason)?,
        }
        let (Some(hook), Some(by)) = (self.hook, self.by) else {
            return Ok(());
        };
        write!(f, "\n\nStopped by the hook `{hook}`")?;
        if let Some(source) = &by.source {
            write!(f, " in {source}")?;
        }
        f.write_str(".")?;
        match &by.next_step {
            Some(step) => write!(f, " {step}."),
            None => Ok(()),
        }
    }
}
