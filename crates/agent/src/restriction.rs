//! What an agent may do with the tools that it has.
//!
//! A subagent is held to its own restrictions and to those of every agent that it works for, so that no agent can have
//! another do what it may not do itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::permission::follow;
use crate::protection::has_other_links;
use crate::tool::{TRANSFER_TASK, ToolFailure, Toolbox};

/// What an agent may not do. The default restricts nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentRestrictions {
    /// The agent has only [tools that change nothing](crate::Tool::is_read_only), and may give tasks to agents that are
    /// held to the same.
    pub read_only: bool,
    /// The folders that its file tools may use.
    pub folders: Vec<FolderRestriction>,
    /// The largest number of model calls of one run, where it is less than that of [`Limits`](crate::Limits).
    pub max_iterations: Option<u32>,
    /// How often in a row the same tool call counts as a loop, where it is less than in [`Limits`](crate::Limits).
    pub repeated_calls: Option<u32>,
}

/// The folders that some tools may use. Links are followed before a path is compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FolderRestriction {
    /// The names of the tools.
    pub tools: Vec<String>,
    /// The folders that they may use; empty is any. Relative ones start from the session's directory.
    pub allow: Vec<PathBuf>,
    /// The folders that they may not use. This outranks `allow`.
    pub deny: Vec<PathBuf>,
}

/// The restrictions of an agent and of all agents that it works for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Restrictions(Vec<Arc<AgentRestrictions>>);

impl Restrictions {
    /// Adds those of one agent more.
    pub(crate) fn and(&self, own: Option<&Arc<AgentRestrictions>>) -> Self {
        Self(self.0.iter().chain(own).cloned().collect())
    }

    /// Says whether an agent may use the tool of that name.
    pub(crate) fn admit(&self, name: &str, toolbox: &Toolbox) -> bool {
        let is_read_only = || toolbox.get(name).is_some_and(|tool| tool.is_read_only());
        !self.0.iter().any(|one| one.read_only) || name == TRANSFER_TASK || is_read_only()
    }

    /// Returns the smaller of a limit and those of the restrictions.
    pub(crate) fn at_most(
        &self,
        limit: u32,
        of_one: impl Fn(&AgentRestrictions) -> Option<u32>,
    ) -> u32 {
        let limits = self.0.iter().filter_map(|one| of_one(one));
        limits.chain([limit]).min().unwrap_or(limit)
    }

    /// Returns the folders that a tool may use in a session.
    pub(crate) fn folders(&self, tool: &str, cwd: &Path) -> Folders {
        let all = self.0.iter().flat_map(|one| &one.folders);
        let of_tool = all.filter(|folders| folders.tools.iter().any(|name| name == tool));
        Folders {
            cwd: cwd.to_owned(),
            restrictions: of_tool.cloned().collect(),
        }
    }
}

/// The folders that one tool may use.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    cwd: PathBuf,
    restrictions: Vec<FolderRestriction>,
}

impl Folders {
    /// Checks an absolute path. This looks at the disk.
    pub(crate) fn check(&self, path: &Path) -> Result<(), ToolFailure> {
        if self.restrictions.is_empty() {
            return Ok(());
        }
        let reached = follow(path);
        let is_allowed = reached.is_some_and(|reached| {
            let mut restrictions = self.restrictions.iter();
            restrictions.all(|one| one.allows(&reached, &self.cwd))
        });
        if is_allowed {
            return Ok(());
        }
        Err(ToolFailure::permanent(format!(
            "`{}` is outside the folders that this agent may use",
            path.display()
        )))
    }
}

impl Folders {
    /// Checks an absolute path of a file that is to be changed. A file with several names may be one of a folder that may not
    /// be used.
    pub(crate) fn check_change(&self, path: &Path) -> Result<(), ToolFailure> {
        self.check(path)?;
        let has_other_links = || std::fs::metadata(path).is_ok_and(|it| has_other_links(&it));
        if self.restrictions.is_empty() || !has_other_links() {
            return Ok(());
        }
        Err(ToolFailure::permanent(format!(
            "`{}` has hard links, which may be outside the folders that this agent may use",
            path.display()
        )))
    }
}

impl FolderRestriction {
    /// Says whether the place that a path leads to may be used. A folder that leads nowhere allows nothing, and where it
    /// should deny, denies everything.
    fn allows(&self, reached: &Path, cwd: &Path) -> bool {
        let folder = |folder: &PathBuf| follow(&cwd.join(folder));
        let is_in = |folder: PathBuf| reached.starts_with(folder);
        let mut denied = self.deny.iter().map(folder);
        let mut allowed = self.allow.iter().filter_map(folder);
        !denied.any(|folder| folder.is_none_or(is_in))
            && (self.allow.is_empty() || allowed.any(is_in))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::tempdir;

    use super::*;

    fn folders(cwd: &Path, allow: &[&str], deny: &[&str]) -> Folders {
        let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect();
        let own = AgentRestrictions {
            folders: vec![FolderRestriction {
                tools: vec!["read_file".to_owned()],
                allow: paths(allow),
                deny: paths(deny),
            }],
            ..AgentRestrictions::default()
        };
        Restrictions::default()
            .and(Some(&Arc::new(own)))
            .folders("read_file", cwd)
    }

    #[test]
    fn a_path_is_compared_where_it_leads_to_and_deny_outranks_allow() {
        let dir = tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("work/secret")).unwrap();
        fs::create_dir(root.join("outside")).unwrap();
        symlink("../outside", root.join("work/way_out")).unwrap();
        symlink("secret", root.join("work/alias")).unwrap();
        symlink("loop", root.join("work/loop")).unwrap();
        let cwd = root.join("work");
        let both = folders(&cwd, &["."], &["secret"]);
        for (path, is_allowed) in [
            ("a", true),
            (".", true),
            ("deep/er", true),
            ("secret", false),
            ("secret/a", false),
            ("alias/a", false),
            ("secretary", true),
            ("../outside/a", false),
            ("way_out/a", false),
            ("loop/a", false),
            ("a/../../outside", false),
        ] {
            let checked = both.check(&cwd.join(path));
            assert_eq!(checked.is_ok(), is_allowed, "{path}");
        }
        fs::write(root.join("outside/file"), "").unwrap();
        fs::write(root.join("work/own"), "").unwrap();
        fs::hard_link(root.join("outside/file"), root.join("work/hard")).unwrap();
        for (path, may_change) in [("own", true), ("new", true), ("hard", false)] {
            let checked = both.check_change(&cwd.join(path));
            assert_eq!(checked.is_ok(), may_change, "{path}");
        }
        assert!(folders(&cwd, &[], &["loop"]).check(&cwd.join("a")).is_err());
        assert!(folders(&cwd, &["loop"], &[]).check(&cwd.join("a")).is_err());
        assert!(folders(&cwd, &[], &[]).check(&cwd.join("a")).is_ok());
        assert!(folders(&cwd, &[], &["."]).check(&cwd.join("a")).is_err());
    }
}
