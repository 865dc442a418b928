//! Links, owners, modes, sizes and encodings of files.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use tenterhook_install::InstallError;

use crate::stage::{Stage, json_agent};

fn refusal(stage: &Stage) -> String {
    let before = stage.snapshot();
    let error = stage.try_install(json_agent()).unwrap_err();
    assert_eq!(stage.snapshot(), before, "nothing was changed");
    assert!(!error.hint().is_empty());
    tenterhook_engine::error_chain(&error)
}

#[test]
fn a_link_stays_and_its_target_is_changed() {
    let stage = Stage::new();
    let target = stage.write("dotfiles/acme.json", "{}\n");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).unwrap();
    fs::create_dir_all(stage.home(".acme")).unwrap();
    symlink("../dotfiles/acme.json", stage.home(".acme/settings.json")).unwrap();
    let before = stage.snapshot();
    stage.install(json_agent());
    assert!(stage.home(".acme/settings.json").is_symlink());
    assert!(
        fs::read_to_string(&target)
            .unwrap()
            .contains("tenterhook-shim")
    );
    assert_eq!(
        fs::metadata(&target).unwrap().permissions().mode() & 0o777,
        0o644
    );
    stage.uninstall(json_agent());
    assert_eq!(stage.snapshot(), before);
}

#[test]
fn a_link_to_nothing_is_refused() {
    let stage = Stage::new();
    fs::create_dir_all(stage.home(".acme")).unwrap();
    symlink("nowhere.json", stage.home(".acme/settings.json")).unwrap();
    assert!(refusal(&stage).contains("it is a link to a file that does not exist"));
}

#[test]
fn a_folder_or_a_file_of_another_user_is_refused() {
    let stage = Stage::new();
    fs::create_dir_all(stage.home(".acme/settings.json")).unwrap();
    assert!(refusal(&stage).contains("it is not a regular file"));
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let stage = Stage::new();
    let path = stage.write(".acme/settings.json", "{}");
    std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
    assert!(refusal(&stage).contains("it belongs to another user"));
}

#[test]
fn the_group_of_a_file_stays() {
    use std::os::unix::fs::MetadataExt as _;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let stage = Stage::new();
    let path = stage.write(".acme/settings.json", "{}");
    std::os::unix::fs::chown(&path, None, Some(54321)).unwrap();
    stage.install(json_agent());
    assert_eq!(fs::metadata(&path).unwrap().gid(), 54321);
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    let stage = Stage::new();
    stage.write(".acme/settings.json", "{}");
    let folder = stage.home(".acme");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).unwrap();
    // An administrator can write it all the same.
    if fs::write(folder.join("probe"), "").is_err() {
        let error = stage.try_install(json_agent()).unwrap_err();
        assert!(matches!(error, InstallError::Write { .. }), "{error}");
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn text_that_is_not_settings_is_refused_with_the_position() {
    for (text, problem) in [
        ("{\"a\": 1,,}", "line 1, column 9"),
        ("[]", "the file is a list, expected an object"),
        ("{\"hooks\": []}", "`hooks` is a list, expected an object"),
        (
            "{\n\"hooks\": {\"PreToolUse\": \"x\"}}",
            "line 2: `hooks.PreToolUse` is a string, expected a list",
        ),
    ] {
        let stage = Stage::new();
        stage.write(".acme/settings.json", text);
        let message = refusal(&stage);
        assert!(
            message.contains(problem) && message.contains(".acme/settings.json"),
            "{message}"
        );
        let status = stage.status(json_agent());
        assert!(
            status.places[0].problem.is_some() || problem.contains("PreToolUse"),
            "{status:?}"
        );
    }
    let stage = Stage::new();
    fs::create_dir_all(stage.home(".acme")).unwrap();
    fs::write(stage.home(".acme/settings.json"), [0xff, 0xfe, b'{']).unwrap();
    assert!(refusal(&stage).contains("it is not UTF-8 text"));
}

#[test]
fn a_huge_file_is_refused() {
    let stage = Stage::new();
    let path = stage.write(".acme/settings.json", "{}");
    fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(9 << 20)
        .unwrap();
    let error = stage.try_install(json_agent()).unwrap_err();
    assert!(
        error.to_string().contains("it is larger than 8 MiB"),
        "{error}"
    );
}
