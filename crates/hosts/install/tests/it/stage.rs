//! A home folder, and agents of every form.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;
use tenterhook_install::{
    HostStatus, InstallError, InstallPlan, InstallScope, Installer, Machine, ProgramState,
};
use tenterhook_systems::HOSTS;
use tenterhook_systems::host::HostAgent;
use tenterhook_systems::host::installation::{
    ApprovalValue, FailsClosed, HookPlace, Installation, OffSwitch, OffValue, OwnFile, PlaceForm,
    SelfApproval,
};

/// A home folder with a data folder and the two programs of Tenterhook.
pub(crate) struct Stage {
    folder: TempDir,
    pub(crate) machine: Machine,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let machine = Machine {
            home: root.join("home"),
            data: root.join("data"),
            program: root.join("programs/tenterhook"),
            search_path: vec![root.join("path")],
            variables: BTreeMap::new(),
        };
        fs::create_dir_all(&machine.home).unwrap();
        let stage = Self { folder, machine };
        stage.build("the first");
        stage
    }

    /// Replaces the programs by another build of the same version.
    pub(crate) fn build(&self, name: &str) {
        let program = format!("#!/bin/sh\necho 'tenterhook 0.1.0' # {name}\n");
        write_program(&self.machine.program, &program);
        let line = tenterhook_shim::version_line();
        write_program(
            &self.source_shim(),
            &format!("#!/bin/sh\necho '{line}' # {name}\n"),
        );
    }

    /// Returns the shim next to the program.
    pub(crate) fn source_shim(&self) -> PathBuf {
        self.machine.program.with_file_name("tenterhook-shim")
    }

    pub(crate) fn state(&self) -> ProgramState {
        ProgramState::inspect(&self.machine)
    }

    pub(crate) fn home(&self, path: &str) -> PathBuf {
        self.machine.home.join(path)
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("project")
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.home(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.home(path)).unwrap()
    }

    pub(crate) fn installer(&self) -> Installer {
        Installer::open(self.machine.clone()).unwrap()
    }

    pub(crate) fn try_install(
        &self,
        host: &'static HostAgent,
    ) -> Result<InstallPlan, InstallError> {
        self.try_install_in(host, &InstallScope::User)
    }

    pub(crate) fn try_install_in(
        &self,
        host: &'static HostAgent,
        scope: &InstallScope,
    ) -> Result<InstallPlan, InstallError> {
        let installer = Installer::open(self.machine.clone())?;
        let plan = installer.plan_install(host, scope, false)?;
        installer.install_programs()?;
        installer.apply(&plan)?;
        Ok(plan)
    }

    pub(crate) fn install(&self, host: &'static HostAgent) -> InstallPlan {
        self.try_install(host).unwrap()
    }

    pub(crate) fn uninstall(&self, host: &'static HostAgent) -> InstallPlan {
        let installer = self.installer();
        let plan = installer.plan_removal(host, &InstallScope::User).unwrap();
        installer.apply(&plan).unwrap();
        installer.remove_unused_programs().unwrap();
        plan
    }

    pub(crate) fn status(&self, host: &'static HostAgent) -> HostStatus {
        HostStatus::inspect(&self.machine, host, &self.project())
    }

    /// Returns every file and folder below the home folder, with the contents and modes.
    pub(crate) fn snapshot(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.machine.home.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let metadata = fs::symlink_metadata(&path).unwrap();
                let bytes = if metadata.is_symlink() {
                    fs::read_link(&path)
                        .unwrap()
                        .into_os_string()
                        .into_encoded_bytes()
                } else if metadata.is_dir() {
                    folders.push(path.clone());
                    Vec::new()
                } else {
                    fs::read(&path).unwrap()
                };
                files.insert(path, (metadata.permissions().mode(), bytes));
            }
        }
        files
    }
}

pub(crate) fn write_program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns an agent like the first one, with other places.
fn agent(name: &'static str, installation: Installation) -> &'static HostAgent {
    let model = HOSTS[0];
    Box::leak(Box::new(HostAgent {
        name,
        title: "Acme",
        programs: &["acme"],
        installation: Box::leak(Box::new(installation)),
        ..*model
    }))
}

fn installation(path: &'static str, form: PlaceForm) -> Installation {
    let place = HookPlace {
        path,
        variable: None,
        form,
    };
    Installation {
        user: Some(place),
        project: Some(place),
        fails_closed: FailsClosed::Always,
        after: "",
        approval: None,
        folders: &[".acme"],
        also_reads: &[],
        off_switches: &[OffSwitch {
            keys: &["off"],
            value: OffValue::Bool(true),
            also_in: &[".acme/local.json"],
        }],
    }
}

const JSON: PlaceForm = PlaceForm::Json {
    keys: &["hooks"],
    entry: |_, line| json!({"matcher": "*", "hooks": [{"type": "command", "command": line}]}),
};

/// An agent with settings in JSON.
pub(crate) fn json_agent() -> &'static HostAgent {
    agent("acme", installation(".acme/settings.json", JSON))
}

/// The same agent after an upgrade that writes its entries in another way.
pub(crate) fn upgraded_agent() -> &'static HostAgent {
    let form = PlaceForm::Json {
        keys: &["hooks"],
        entry: |_, line| json!({"hooks": [{"command": line, "timeout": 60}]}),
    };
    agent("acme", installation(".acme/settings.json", form))
}

/// An agent with settings in TOML.
pub(crate) fn toml_agent() -> &'static HostAgent {
    let form = PlaceForm::Toml {
        list: "hooks",
        entry: |event, line| json!({"event": event.name, "command": line}),
    };
    agent("acme-toml", installation(".acme/config.toml", form))
}

/// An agent that reads files of Tenterhook's own.
pub(crate) fn file_agent() -> &'static HostAgent {
    let form = PlaceForm::Own {
        files: |shim| {
            let file = |name: &str, is_executable| OwnFile {
                path: name.to_owned(),
                text: format!("'{shim}' acme-files {name}\n"),
                is_executable,
            };
            vec![file("Pre", true), file("more/plugin.json", false)]
        },
    };
    agent("acme-files", installation(".acme/plugins/tenterhook", form))
}

/// An agent that runs only hooks that the person approved.
pub(crate) fn careful_agent() -> &'static HostAgent {
    static APPROVAL: SelfApproval = SelfApproval {
        path: ".acme/config.toml",
        variable: None,
        question: "Let Acme run these hooks?",
        by_hand: "run acme",
        value: |entry| ApprovalValue {
            tables: vec![
                "hooks".to_owned(),
                "state".to_owned(),
                format!("{}:{}:{}", entry.file, entry.list, entry.index),
            ],
            key: "hash",
            value: entry.element.to_string().len().to_string(),
        },
    };
    let mut installation = installation(".acme/hooks.json", JSON);
    installation.approval = Some(&APPROVAL);
    agent("acme-careful", installation)
}

/// An agent that also runs the settings of another one.
pub(crate) fn curious_agent() -> &'static HostAgent {
    let mut installation = installation(".curious/settings.json", JSON);
    installation.also_reads = &[".acme/settings.json"];
    agent("acme-curious", installation)
}
