//! Limits on the tools and folders of an agent.
//!
//! A subagent is subject to its own restrictions and to the restrictions of every agent that it works for. So no agent
//! can delegate what it may not do itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tenterhook_protocol::JsonObject;

use crate::failure::ToolFailure;
use crate::glob::Glob;
use crate::link::{follow, has_other_links};
use crate::permission::is_command_allowed;

/// The restrictions of one agent. The default restricts nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentRestrictions {
    /// Whether the agent has only [tools that change nothing](crate::Tool::is_read_only). It may still give tasks to
    /// other agents, which are restricted in the same way.
    pub read_only: bool,
    /// The folders that its file tools may use.
    pub folders: Vec<FolderRestriction>,
    /// Patterns for the command lines of its `shell` tool. `None` means any command.
    pub commands: Option<CommandPatterns>,
    /// The maximum number of model calls of one run, if fewer than the agent's limits allow.
    pub max_iterations: Option<u32>,
    /// How many identical tool calls in a row count as a loop, if fewer than in the agent's limits.
    pub repeated_calls: Option<u32>,
}

/// Patterns for command lines; `*` matches any text. Each command of a line must match one of them. A line with
/// redirections, variables or substitutions matches none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPatterns(Vec<Glob>);

impl<T: AsRef<str>> FromIterator<T> for CommandPatterns {
    fn from_iter<I: IntoIterator<Item = T>>(patterns: I) -> Self {
        let patterns = patterns.into_iter();
        Self(
            patterns
                .map(|pattern| Glob::new(pattern.as_ref()))
                .collect(),
        )
    }
}

/// The folders that certain tools may use. Links are followed before a path is compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FolderRestriction {
    /// The names of the tools.
    pub tools: Vec<String>,
    /// The folders that they may use; empty means any. Relative paths start from the session's directory.
    pub allow: Vec<PathBuf>,
    /// The folders that they may not use. They take precedence over `allow`.
    pub deny: Vec<PathBuf>,
}

/// The restrictions of an agent and of all agents that it works for.
#[derive(Debug, Clone, Default)]
pub struct Restrictions(Vec<Arc<AgentRestrictions>>);

impl Restrictions {
    /// Returns these restrictions combined with an agent's own.
    #[must_use]
    pub fn and(&self, own: Option<&Arc<AgentRestrictions>>) -> Self {
        Self(self.0.iter().chain(own).cloned().collect())
    }

    /// Returns whether the agent may only use tools that change nothing.
    pub fn is_read_only(&self) -> bool {
        self.0.iter().any(|one| one.read_only)
    }

    /// Returns the smallest of `limit` and the limits that the restrictions set.
    pub fn at_most(&self, limit: u32, of_one: impl Fn(&AgentRestrictions) -> Option<u32>) -> u32 {
        let limits = self.0.iter().filter_map(|one| of_one(one));
        limits.chain([limit]).min().unwrap_or(limit)
    }

    /// Checks whether a call of `tool` may run with another implementation, which does not enforce restrictions itself.
    ///
    /// # Errors
    ///
    /// Fails if the command line is not allowed, or if the agent may use only some folders with the tool, because only
    /// the tool's own implementation can compare every path that it reaches.
    pub fn check_replacement(&self, tool: &str, input: &JsonObject) -> Result<(), ToolFailure> {
        if let Some(line) = input.get("cmd").and_then(Value::as_str) {
            self.check_command(line)?;
        }
        let mut folders = self.0.iter().flat_map(|one| &one.folders);
        if folders.any(|folders| folders.tools.iter().any(|name| name == tool)) {
            return Err(ToolFailure::permanent(format!(
                "an extension replaces `{tool}`, and cannot be limited to the folders that this agent may use"
            )));
        }
        Ok(())
    }

    /// Checks a command line of the `shell` tool.
    pub(crate) fn check_command(&self, line: &str) -> Result<(), ToolFailure> {
        let mut limits = self.0.iter().filter_map(|one| one.commands.as_ref());
        let refused = limits.find_map(|patterns| refused_command(line, &patterns.0));
        match refused {
            None => Ok(()),
            Some(command) => Err(ToolFailure::permanent(format!(
                "`{command}` is not one of the commands that this agent may run"
            ))),
        }
    }

    /// Returns the folders that a tool may use in a session.
    pub(crate) fn folders(&self, tool: &str, cwd: &Path) -> AllowedFolders {
        let all = self.0.iter().flat_map(|one| &one.folders);
        let of_tool = all.filter(|folders| folders.tools.iter().any(|name| name == tool));
        AllowedFolders {
            cwd: cwd.to_owned(),
            restrictions: of_tool.cloned().collect(),
        }
    }
}

/// Returns the first command of a line that no pattern allows. Operators in quotes split the line, too, so that no part
/// of it is overlooked.
fn refused_command<'a>(line: &'a str, patterns: &[Glob]) -> Option<&'a str> {
    line.split(['|', ';', '\n'])
        .flat_map(|part| part.split("&&"))
        .map(|command| command.trim_matches([' ', '\t']))
        .filter(|command| !command.is_empty())
        .find(|command| {
            !patterns
                .iter()
                .any(|pattern| is_command_allowed(pattern, command))
        })
}

/// The folders that one tool may use.
#[derive(Debug, Clone)]
pub(crate) struct AllowedFolders {
    cwd: PathBuf,
    restrictions: Vec<FolderRestriction>,
}

impl AllowedFolders {
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

impl AllowedFolders {
    /// Checks the absolute path of a file that is to be changed. A file with several hard links is refused, because
    /// another name of it may be in a forbidden folder.
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
    /// Reports whether a resolved path may be used. A configured folder in a cycle of links allows nothing in `allow`,
    /// and denies everything in `deny`.
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

    fn folders(cwd: &Path, allow: &[&str], deny: &[&str]) -> AllowedFolders {
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
    fn each_command_of_a_line_must_match_a_pattern() {
        let own = AgentRestrictions {
            commands: Some(CommandPatterns::from_iter(["git *", "ls", "make test"])),
            ..AgentRestrictions::default()
        };
        let restrictions = Restrictions::default().and(Some(&Arc::new(own)));
        for (line, is_allowed) in [
            ("ls", true),
            (" git status ", true),
            ("git add . && make test; ls", true),
            ("git log || ls", true),
            ("git log | ls", true),
            ("ls -l", false),
            ("make", false),
            ("rm -rf x", false),
            ("git log && rm x", false),
            ("git log | rm x", false),
            ("git log & rm x", false),
            ("git log\nrm x", false),
            ("rm x && ls", false),
            ("ls && rm x && ls", false),
            ("ls&&rm x", false),
            ("ls &&& rm x", false),
            ("ls || rm x", false),
            ("ls; rm x", false),
            ("ls |& rm x", false),
            ("ls &", false),
            ("ls\n\nrm x", false),
            ("ls\r\nrm x", false),
            ("ls\rrm x", false),
            ("\u{a0}ls", false),
            ("git log `rm x`", false),
            ("git log \"`rm x`\"", false),
            ("git log $(rm x)", false),
            ("git log \"$(rm x)\"", false),
            ("git log $((1))", false),
            ("git log ${x:=y}", false),
            ("git log $x", false),
            ("git log <(rm x)", false),
            ("git log >(rm x)", false),
            ("git log > file", false),
            ("git log 2>> file", false),
            ("git log &> file", false),
            ("git log < file", false),
            ("git log << x\nrm x\nx", false),
            ("> file", false),
            ("git log \\\nrm x", false),
            ("git log 'x\nrm x'", false),
            ("git difftool -x rm", false),
            ("(ls)", false),
            ("{ ls; }", false),
            ("git {a,b}", false),
            ("! ls", false),
            ("x=y ls", false),
            ("eval ls", false),
            ("/tmp/ls", false),
            ("lsof", false),
        ] {
            assert_eq!(
                restrictions.check_command(line).is_ok(),
                is_allowed,
                "{line}"
            );
        }
        assert!(Restrictions::default().check_command("rm x").is_ok());
        let nothing = AgentRestrictions {
            commands: Some(CommandPatterns::from_iter([""; 0])),
            ..AgentRestrictions::default()
        };
        let both = restrictions.and(Some(&Arc::new(nothing)));
        assert!(both.check_command("ls").is_err());
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
