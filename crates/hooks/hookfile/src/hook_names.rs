//! The names of the hooks in one file.

use std::collections::BTreeMap;

/// Gives each hook in a file a unique name.
#[derive(Debug, Default)]
pub(crate) struct HookNames {
    counts: BTreeMap<String, usize>,
    lines: BTreeMap<String, usize>,
}

impl HookNames {
    /// Counts a hook with this prefix and returns its name: `pre_tool_use#2` for the second hook of
    /// `pre_tool_use`.
    pub(crate) fn numbered(&mut self, prefix: &str) -> String {
        let count = self.counts.entry(prefix.to_owned()).or_default();
        *count += 1;
        format!("{prefix}#{count}")
    }

    /// Reserves a name for the hook on this line. If the name is taken, the error is the line of the hook
    /// that has it.
    pub(crate) fn reserve(&mut self, name: &str, line: usize) -> Result<(), usize> {
        if let Some(first) = self.lines.get(name) {
            return Err(*first);
        }
        self.lines.insert(name.to_owned(), line);
        Ok(())
    }
}
