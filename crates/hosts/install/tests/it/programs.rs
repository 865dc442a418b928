//! The copies of the programs that agents run, and what is left of them.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use tenterhook_install::{InstallError, InstallScope, Installer, ProgramState};

use crate::stage::{Stage, json_agent, write_program};

/// Returns the names of the folders of versions.
fn versions(stage: &Stage) -> Vec<PathBuf> {
    let folder = stage.machine.data.join("bin/versions");
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    found.sort();
    found
}

fn current(stage: &Stage) -> PathBuf {
    fs::canonicalize(stage.machine.data.join("bin/current")).unwrap()
}

/// Checks that the path in the configuration runs the shim of this build.
fn assert_runs(stage: &Stage, name: &str) {
    for path in [stage.machine.shim(), stage.machine.installed_program()] {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(name), "{}: {text}", path.display());
        assert!(Command::new(&path).status().unwrap().success());
    }
}

#[test]
fn agents_run_copies_that_outlive_the_folder_of_the_program() {
    let mut stage = Stage::new();
    stage.install(json_agent());
    assert_eq!(stage.state(), ProgramState::Current);
    fs::remove_dir_all(stage.machine.program.parent().unwrap()).unwrap();
    assert_runs(&stage, "the first");
    // A program that is gone cannot be compared, but agents have theirs.
    let version = "0.1.0".to_owned();
    assert!(matches!(stage.state(), ProgramState::Other { .. }));
    assert!(
        stage
            .state()
            .problem(&stage.machine)
            .unwrap()
            .contains(&version)
    );
    stage.machine.program = stage.machine.installed_program();
    assert_eq!(stage.state(), ProgramState::Current);
    stage.install(json_agent());
    assert_eq!(
        (stage.state(), versions(&stage).len()),
        (ProgramState::Current, 1)
    );
}

#[test]
fn an_upgrade_and_a_downgrade_keep_the_path_and_at_most_one_other_version() {
    let stage = Stage::new();
    stage.install(json_agent());
    let mut before = current(&stage);
    for name in ["the second", "the third", "the first", "the second"] {
        stage.build(name);
        assert!(matches!(stage.state(), ProgramState::Other { .. }));
        assert!(stage.install(json_agent()).changes.is_empty());
        assert_eq!(stage.state(), ProgramState::Current);
        assert_runs(&stage, name);
        let mut expected = vec![before, current(&stage)];
        expected.sort();
        assert_eq!(versions(&stage), expected);
        before = current(&stage);
    }
}

#[test]
fn hosts_can_start_the_shim_at_every_moment_of_an_upgrade() {
    let stage = Stage::new();
    stage.install(json_agent());
    let shim = stage.machine.shim();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let hosts: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut starts = 0;
                    while !is_done.load(Ordering::Relaxed) {
                        // A file that is missing for a moment would be an error.
                        assert!(Command::new(&shim).output().unwrap().status.success());
                        starts += 1;
                    }
                    starts
                })
            })
            .collect();
        for number in 0..20 {
            stage.build(&format!("build {number}"));
            stage.install(json_agent());
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(hosts.into_iter().all(|host| host.join().unwrap() > 0));
    });
    assert_eq!(stage.state(), ProgramState::Current);
}

#[test]
fn a_build_that_does_not_start_changes_nothing() {
    let stage = Stage::new();
    stage.install(json_agent());
    let before = versions(&stage);
    write_program(
        &stage.machine.program,
        "#!/bin/sh\necho no library >&2; exit 127\n",
    );
    let error = stage.try_install(json_agent()).unwrap_err();
    assert!(
        matches!(error, InstallError::UnusableCopy { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("no library"), "{error}");
    assert_eq!(versions(&stage), before);
    assert_runs(&stage, "the first");
}

#[test]
fn what_a_killed_installation_left_is_removed_by_the_next() {
    let stage = Stage::new();
    stage.install(json_agent());
    let left = stage.machine.data.join("bin/versions/.new-abc");
    write_program(&left.join("tenterhook"), "half of the");
    assert!(!stage.installer().install_programs().unwrap());
    assert_eq!(versions(&stage), [current(&stage)]);
    // It was killed after the version was complete, and before or between the links.
    let bin = stage.machine.data.join("bin");
    for lost in [
        &["current"][..],
        &["tenterhook-shim"],
        &["current", "tenterhook", "tenterhook-shim"],
    ] {
        for name in lost {
            fs::remove_file(bin.join(name)).unwrap();
        }
        assert!(matches!(stage.state(), ProgramState::Missing { .. }));
        assert!(stage.installer().install_programs().unwrap());
        assert_eq!(stage.state(), ProgramState::Current);
    }
}

#[test]
fn a_link_that_leads_elsewhere_or_a_plain_file_is_replaced() {
    let stage = Stage::new();
    let bin = stage.machine.data.join("bin");
    write_program(
        &bin.join("tenterhook-shim"),
        "#!/bin/sh\necho tenterhook-shim 0.0.1\n",
    );
    symlink(&stage.machine.program, bin.join("tenterhook")).unwrap();
    stage.install(json_agent());
    assert_runs(&stage, "the first");
    fs::remove_file(bin.join("current")).unwrap();
    symlink("/nowhere", bin.join("current")).unwrap();
    assert_eq!(
        stage.state(),
        ProgramState::Missing {
            path: stage.machine.shim()
        }
    );
    stage.install(json_agent());
    assert_eq!(stage.state(), ProgramState::Current);
}

#[test]
fn a_damaged_copy_is_noticed_and_replaced() {
    for name in ["tenterhook", "tenterhook-shim"] {
        let stage = Stage::new();
        stage.install(json_agent());
        let copy = current(&stage).join(name);
        let path = stage.machine.data.join("bin").join(name);
        fs::write(&copy, "").unwrap();
        let found = stage.state();
        assert!(
            matches!(&found, ProgramState::DoesNotStart { path: of, .. } if *of == path),
            "{found:?}"
        );
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(stage.state().name(), "does_not_start");
        stage.install(json_agent());
        assert_eq!(stage.state(), ProgramState::Current);
    }
}

#[test]
fn without_a_shim_that_belongs_to_it_the_program_is_the_shim() {
    let own = "#!/bin/sh\ncase $0 in *-shim) echo tenterhook-shim 0.1.0;; *) echo tenterhook 0.1.0;; esac\n";
    for shim in [
        None,
        Some("#!/bin/sh\necho 'tenterhook-shim 0.1.0 (protocol 0)'\n"),
    ] {
        let stage = Stage::new();
        write_program(&stage.machine.program, own);
        match shim {
            None => fs::remove_file(stage.source_shim()).unwrap(),
            Some(text) => write_program(&stage.source_shim(), text),
        }
        stage.install(json_agent());
        assert_eq!(stage.state(), ProgramState::Current);
        assert!(!Installer::has_small_shim(&stage.machine));
        let inode = |path: PathBuf| fs::metadata(path).unwrap().ino();
        assert_eq!(
            inode(stage.machine.shim()),
            inode(stage.machine.installed_program())
        );
        // A shim that is built later replaces it.
        stage.build("the second");
        write_program(&stage.machine.program, own);
        stage.install(json_agent());
        assert!(Installer::has_small_shim(&stage.machine));
    }
}

#[test]
fn nothing_is_left_when_the_last_agent_is_removed() {
    let stage = Stage::new();
    fs::create_dir_all(stage.project()).unwrap();
    let project = InstallScope::Project(stage.project());
    stage.try_install_in(json_agent(), &project).unwrap();
    stage.install(json_agent());
    stage.build("the second");
    stage.install(json_agent());
    stage.uninstall(json_agent());
    assert_runs(&stage, "the second");
    let installer = stage.installer();
    let plan = installer.plan_removal(json_agent(), &project).unwrap();
    installer.apply(&plan).unwrap();
    assert!(installer.remove_unused_programs().unwrap());
    assert!(!stage.machine.data.join("bin").exists());
    assert_eq!(
        stage.state(),
        ProgramState::Missing {
            path: stage.machine.shim()
        }
    );
}
