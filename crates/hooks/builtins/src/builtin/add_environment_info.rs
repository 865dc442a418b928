//! Tells the model about its environment: directory, whether it is a repository, operating system, processor and shell.

use std::path::Path;

use futures_util::future::BoxFuture;
use tenterhook_engine::{Call, HandlerError};
use tenterhook_protocol::{AnyEffect, EventKind};

use super::row::{Builtin, EventRunner, blocking, context, directory, takes_none};

pub(super) const BUILTIN: Builtin = Builtin {
    name: "add_environment_info",
    events: &[EventKind::SessionStart],
    arguments: "none",
    make: |setup| {
        takes_none(setup.arguments).map(|()| Box::new(AddEnvironmentInfo) as Box<dyn EventRunner>)
    },
};

struct AddEnvironmentInfo;

impl EventRunner for AddEnvironmentInfo {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        Box::pin(async move {
            let Some(dir) = directory(&call.event).map(Path::to_owned) else {
                return Ok(AnyEffect::default());
            };
            blocking(move || context(describe(&dir))).await
        })
    }
}

fn describe(dir: &Path) -> String {
    let is_repository = dir
        .ancestors()
        .any(|ancestor| ancestor.join(".git").exists());
    [
        "Here is useful information about the environment you are running in:".to_owned(),
        "\t<env>".to_owned(),
        format!("\tWorking directory: {}", dir.display()),
        format!(
            "\tIs directory a git repo: {}",
            if is_repository { "Yes" } else { "No" }
        ),
        format!(
            "\tOperating System: {}",
            operating_system(std::env::consts::OS)
        ),
        format!(
            "\tCPU Architecture: {}",
            architecture(std::env::consts::ARCH)
        ),
        format!("\tShell: {SHELL}"),
        "\t</env>".to_owned(),
    ]
    .join("\n")
}

/// The shell that runs the command lines of the `shell` tool, which is not the user's login shell.
const SHELL: &str = "sh (/bin/sh)";

fn operating_system(os: &str) -> &str {
    match os {
        "linux" => "Linux",
        "macos" => "MacOS",
        "windows" => "Windows",
        other => other,
    }
}

fn architecture(arch: &str) -> &str {
    match arch {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_below_a_repository_counts_as_one() {
        let root = tempfile::tempdir().unwrap();
        let below = root.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        assert!(describe(&below).contains("git repo: No"));
        std::fs::write(root.path().join(".git"), "gitdir: elsewhere").unwrap();
        let text = describe(&below);
        assert!(text.contains("\tIs directory a git repo: Yes\n"), "{text}");
        assert!(
            text.contains(&format!("\tWorking directory: {}\n", below.display())),
            "{text}"
        );
        assert!(text.contains("\tShell: sh (/bin/sh)\n"), "{text}");
        assert_eq!(text.lines().count(), 8);
    }
}
