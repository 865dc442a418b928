//! Runs each imported hook once with a harmless event, in a copy of the folder.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use serde_json::{Value, json};
use tenterhook_agent::CancellationToken;
use tenterhook_discovery::Loaded;
use tenterhook_engine::{EventName, HookSpec, JsonObject};
use tenterhook_files::{FolderWalk, WalkError, open_itself};
use tenterhook_systems::example;
use tenterhook_systems::form::Form;
use tenterhook_systems::tools::CANONICAL_TOOLS;

use crate::blocking::run_blocking;
use crate::error::CliError;
use crate::exit::Exit;
use crate::hooks::engine;

/// The largest number of files of a folder that is copied.
const MAX_FILES: usize = 50_000;
/// The largest total size of these files, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// A hook that was tried.
#[derive(Debug)]
pub struct TriedHook {
    /// The name of the hook.
    pub name: String,
    /// What it did.
    pub result: TrialResult,
}

/// What a hook did in a trial.
#[derive(Debug)]
pub enum TrialResult {
    /// It answered.
    Answered,
    /// It failed; the text says how.
    Failed(String),
    /// It was not run; the text says why.
    NotRun(String),
}

/// Runs each hook once in a copy of `folder`. No tool runs.
///
/// # Errors
/// Fails if the folder cannot be copied.
pub async fn try_hooks(
    specs: Vec<HookSpec>,
    folder: &Path,
    token: &CancellationToken,
) -> Result<Vec<TriedHook>, CliError> {
    let folder = folder.to_owned();
    let copy = run_blocking(token, move || copy_of(&folder)).await?;
    let mut tried = Vec::new();
    for spec in specs {
        let name = spec.id.to_string();
        tried.push(TriedHook {
            name,
            result: try_hook(spec, copy.path()).await,
        });
    }
    Ok(tried)
}

async fn try_hook(spec: HookSpec, folder: &Path) -> TrialResult {
    let Some(name) = spec.event.clone() else {
        return TrialResult::NotRun("its events are unknown".to_owned());
    };
    let Some(payload) = harmless(&spec, &name) else {
        return TrialResult::NotRun(format!("no known tool matches `{}`", spec.matcher.as_str()));
    };
    let mut object = example::example_origin();
    object.extend(payload);
    object.insert("cwd".to_owned(), folder.to_string_lossy().into());
    let read = Form::recognise(&name, &object).and_then(|form| form.read(&name, &object));
    let read = match read {
        Ok(read) => read,
        Err(error) => return TrialResult::NotRun(error.to_string()),
    };
    let loaded = Loaded {
        specs: vec![spec],
        ..Loaded::default()
    };
    let engine = engine(&loaded, false, None);
    let dispatcher = engine.dispatcher(read.origin);
    let outcome = dispatcher.dispatch_any(read.event).await.outcome;
    match outcome.failures.first() {
        Some(failure) => TrialResult::Failed(failure.cause.clone()),
        None if outcome.hooks_run == 0 => {
            TrialResult::NotRun("no example event meets its conditions".to_owned())
        }
        None => TrialResult::Answered,
    }
}

/// Returns the payload of an event that the hook runs for. Returns `None` if it runs for no known tool.
fn harmless(spec: &HookSpec, event: &EventName) -> Option<JsonObject> {
    let mut payload = example::example(event);
    if !event.info().has_field("tool_name") {
        return Some(payload);
    }
    let is_seen = |tool: &str| {
        let names = spec.tools.as_ref().map(|tools| tools.names(tool));
        let names = names.filter(|names| !names.is_empty());
        let names = names.unwrap_or_else(|| vec![tool]);
        names.iter().any(|name| spec.matcher.matches(Some(name)))
    };
    let tool = CANONICAL_TOOLS.iter().find(|tool| is_seen(tool.name))?;
    let condition = condition_of(spec);
    let argument = |name: &&&str| -> Option<(String, Value)> {
        if name.ends_with('?') {
            return None;
        }
        let value = match **name {
            "cmd" => condition.clone().unwrap_or_else(|| "true".to_owned()),
            "path" => condition
                .clone()
                .unwrap_or_else(|| "example.txt".to_owned()),
            "url" => "https://example.com/".to_owned(),
            _ => "example".to_owned(),
        };
        Some(((**name).to_owned(), value.into()))
    };
    payload.insert("tool_name".to_owned(), tool.name.into());
    if event.info().has_field("tool_input") {
        let input: JsonObject = tool
            .arguments
            .iter()
            .filter_map(|name| argument(&name))
            .collect();
        payload.insert("tool_input".to_owned(), json!(input));
    }
    Some(payload)
}

/// Returns a text that meets the condition of an imported hook, if it has one with a pattern.
fn condition_of(spec: &HookSpec) -> Option<String> {
    let definition: Value = serde_json::from_str(spec.definition.as_deref()?).ok()?;
    let rule = definition.get("if")?.as_str()?;
    let (_, pattern) = rule.trim().strip_suffix(')')?.split_once('(')?;
    let text = pattern.trim_end_matches(":*").replace('*', "");
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Copies a folder into a folder that is removed at the end.
fn copy_of(folder: &Path) -> Result<tempfile::TempDir, CliError> {
    let refusal = |error: &io::Error| {
        let message = format!("cannot copy `{}` to try the hooks in it", folder.display());
        CliError::new(Exit::Config, message)
            .cause(error)
            .hint("run the command in the folder of a smaller project")
    };
    let copy = tempfile::tempdir().map_err(|error| refusal(&error))?;
    copy_below(folder, copy.path(), MAX_BYTES).map_err(|error| refusal(&error))?;
    Ok(copy)
}

/// Copies the files and links of a folder and of the folders below it.
///
/// A `.git` that is a file leads to the repository itself, in which a hook could change something. It is left out.
fn copy_below(from: &Path, to: &Path, max_bytes: u64) -> io::Result<()> {
    let too_large = || {
        io::Error::other(format!(
            "it has more than {MAX_FILES} files or {max_bytes} bytes"
        ))
    };
    let mut bytes = max_bytes;
    let mut walk = FolderWalk::below(from, MAX_FILES);
    while let Some(entry) = walk.next() {
        let entry = entry.map_err(|error| match error {
            WalkError::TooMany => too_large(),
            WalkError::Unreadable { source, .. } => source,
        })?;
        let source = entry.path();
        let target = to.join(source.strip_prefix(from).map_err(io::Error::other)?);
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            fs::create_dir(&target)?;
            walk.enter(source);
        } else if metadata.is_file() && entry.file_name() != ".git" {
            // Another program may have replaced the file since, for example by a named pipe, or may write to it.
            let (file, now) = open_itself(&source)?;
            let mut copy = fs::File::create_new(&target)?;
            let copied = io::copy(&mut file.take(bytes.saturating_add(1)), &mut copy)?;
            bytes = bytes.checked_sub(copied).ok_or_else(too_large)?;
            copy.set_permissions(now.permissions())?;
        } else if metadata.is_symlink() {
            #[cfg(unix)]
            std::os::unix::fs::symlink(fs::read_link(&source)?, &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_in_a_worktree_does_not_reach_its_repository() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("worktree");
        fs::create_dir_all(folder.join("sub/.git")).unwrap();
        fs::write(folder.join("sub/.git/HEAD"), "ref: refs/heads/main").unwrap();
        fs::write(folder.join(".git"), "gitdir: /repository/.git/worktrees/w").unwrap();
        fs::write(folder.join("a"), "a").unwrap();
        let copy = copy_of(&folder).unwrap();
        assert!(copy.path().join("a").exists() && copy.path().join("sub/.git/HEAD").exists());
        assert!(!copy.path().join(".git").exists());
    }

    #[test]
    fn a_pipe_or_a_file_that_grows_does_not_hold_up_a_trial() {
        let home = tempfile::tempdir().unwrap();
        let (from, to) = (home.path().join("from"), home.path().join("to"));
        fs::create_dir_all(&from).unwrap();
        let pipe = std::process::Command::new("mkfifo")
            .arg(from.join("pipe"))
            .status();
        assert!(pipe.unwrap().success());
        fs::write(from.join("file"), "12345").unwrap();
        // The size in the metadata fits, or does not.
        for (bytes, fits) in [(5, true), (4, false)] {
            let to = to.join(bytes.to_string());
            fs::create_dir_all(&to).unwrap();
            let copied = copy_below(&from, &to, bytes);
            assert_eq!(copied.is_ok(), fits);
            assert!(!to.join("pipe").exists());
        }
    }
}
