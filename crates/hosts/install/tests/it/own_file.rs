//! Files that belong to Tenterhook alone.

use std::fs;

use crate::stage::{Stage, file_agent};

#[test]
fn a_file_of_someone_else_is_not_replaced() {
    let stage = Stage::new();
    stage.write(".acme/plugins/tenterhook/Pre", "mine");
    let error = stage.try_install(file_agent()).unwrap_err();
    assert!(
        error.to_string().contains("it belongs to someone else"),
        "{error}"
    );
    assert_eq!(stage.read(".acme/plugins/tenterhook/Pre"), "mine");
    assert!(!stage.home(".acme/plugins/tenterhook/more").exists());
    assert!(!stage.status(file_agent()).is_installed());
    stage.uninstall(file_agent());
    assert_eq!(stage.read(".acme/plugins/tenterhook/Pre"), "mine");
}

#[test]
fn a_file_that_someone_changed_is_kept_as_a_copy() {
    let stage = Stage::new();
    let before = stage.snapshot();
    stage.install(file_agent());
    stage.write(".acme/plugins/tenterhook/Pre", "changed");
    let error = stage.try_install(file_agent()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("it was changed after Tenterhook wrote it"),
        "{error}"
    );
    assert_eq!(stage.status(file_agent()).places[0].altered, ["Pre"]);
    let plan = stage.uninstall(file_agent());
    assert_eq!(stage.snapshot(), before);
    let copy = stage.installer().kept_copy(
        plan.changes
            .iter()
            .find(|it| it.path == plan.kept[0])
            .unwrap(),
    );
    assert_eq!(fs::read_to_string(copy).unwrap(), "changed");
}

#[test]
fn a_missing_file_is_written_again() {
    let stage = Stage::new();
    stage.install(file_agent());
    fs::remove_file(stage.home(".acme/plugins/tenterhook/Pre")).unwrap();
    assert_eq!(stage.status(file_agent()).places[0].missing, ["Pre"]);
    assert_eq!(stage.install(file_agent()).changes.len(), 1);
    assert!(stage.status(file_agent()).places[0].missing.is_empty());
}
