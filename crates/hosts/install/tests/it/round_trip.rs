//! What is installed and removed again leaves no trace.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tenterhook_install::{InstallScope, Installer};
use tenterhook_systems::HOSTS;
use tenterhook_systems::host::installation::PlaceForm;

use crate::stage::{Stage, file_agent, json_agent, toml_agent, upgraded_agent};

/// Settings as people have them.
const SETTINGS: &[&str] = &[
    "",
    "{}",
    "{}\n",
    "{\"model\":\"opus\",\"hooks\":{}}",
    "// mine\n{\n    \"model\": \"opus\", // the large one\n    \"hooks\": {\n        \"PreToolUse\": [\n            {\"hooks\": [{\"type\": \"command\", \"command\": \"./guard.sh\"}]},\n        ],\n    },\n}\n",
    "\u{feff}{\r\n\t\"permissions\": {\"allow\": [\"Bash(ls:*)\"]},\r\n\t\"hooks\": {\r\n\t\t\"Stop\": []\r\n\t}\r\n}",
];

#[test]
fn every_agent_of_the_table_comes_and_goes_without_a_trace() {
    for &host in HOSTS {
        let Some(place) = host.installation.user else {
            continue;
        };
        let texts = match place.form {
            PlaceForm::Json { .. } => SETTINGS,
            PlaceForm::Toml { .. } => &[
                "",
                "model = \"x\" # mine\n\n[[hooks]]\nevent = \"Stop\"\ncommand = \"mine\"",
                "a = 1\r\n",
            ],
            PlaceForm::Own { .. } => &[],
        };
        let stage = Stage::new();
        let before = stage.snapshot();
        let plan = stage.install(host);
        assert!(!plan.changes.is_empty(), "{host:?}");
        assert!(stage.install(host).changes.is_empty(), "{host:?}");
        let status = stage.status(host);
        assert!(
            status.is_installed() && status.places[0].missing.is_empty(),
            "{status:?}"
        );
        stage.uninstall(host);
        assert_eq!(stage.snapshot(), before, "{host:?}");
        for text in texts {
            let path = stage.write(place.path, text);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            let before = stage.snapshot();
            stage.install(host);
            assert!(
                stage
                    .read(place.path)
                    .contains("/data/bin/tenterhook-shim' ")
            );
            assert!(stage.install(host).changes.is_empty(), "{host:?}: {text}");
            stage.uninstall(host);
            assert_eq!(stage.snapshot(), before, "{host:?}: {text}");
        }
    }
}

#[test]
fn files_of_tenterhook_and_their_folders_are_removed() {
    let stage = Stage::new();
    let other = stage.write(".acme/plugins/other.json", "{}");
    let before = stage.snapshot();
    let plan = stage.install(file_agent());
    let script = stage.home(".acme/plugins/tenterhook/Pre");
    assert_eq!(
        fs::metadata(&script).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert_eq!(plan.changes.len(), 2);
    assert!(stage.install(file_agent()).changes.is_empty());
    stage.uninstall(file_agent());
    assert_eq!(stage.snapshot(), before);
    assert!(other.exists());
}

#[test]
fn the_shim_stays_until_no_agent_uses_it() {
    let stage = Stage::new();
    stage.install(json_agent());
    stage.install(toml_agent());
    let shim = stage.machine.shim();
    let link = stage.machine.installed_program();
    assert_eq!(
        fs::metadata(&shim).unwrap().permissions().mode() & 0o777,
        0o755
    );
    stage.uninstall(json_agent());
    assert!(shim.exists());
    stage.uninstall(toml_agent());
    assert!(!shim.exists() && !link.exists() && !stage.machine.data.join("bin").exists());
    assert!(!stage.machine.data.join("install").exists());
}

#[test]
fn an_upgrade_replaces_the_entries_that_it_wrote() {
    let stage = Stage::new();
    stage.write(
        ".acme/settings.json",
        "{\"hooks\": {\"PreToolUse\": [{\"mine\": 1}]}}\n",
    );
    let before = stage.snapshot();
    stage.install(json_agent());
    let old = stage.status(upgraded_agent());
    assert_eq!(old.places[0].outdated.len(), HOSTS[0].events.len());
    stage.install(upgraded_agent());
    let text = stage.read(".acme/settings.json");
    assert!(
        text.contains("timeout") && !text.contains("matcher"),
        "{text}"
    );
    assert!(stage.install(upgraded_agent()).changes.is_empty());
    stage.uninstall(upgraded_agent());
    assert_eq!(stage.snapshot(), before);
}

#[test]
fn a_project_has_its_own_file_and_record() {
    let stage = Stage::new();
    let scope = InstallScope::Project(stage.project());
    fs::create_dir_all(stage.project()).unwrap();
    stage.try_install_in(json_agent(), &scope).unwrap();
    let file = stage.project().join(".acme/settings.json");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o644
    );
    assert!(stage.snapshot().is_empty());
    stage.install(json_agent());
    let installer = stage.installer();
    let plan = installer.plan_removal(json_agent(), &scope).unwrap();
    installer.apply(&plan).unwrap();
    assert!(!stage.project().join(".acme").exists());
    assert!(
        stage.home(".acme/settings.json").exists() && !installer.remove_unused_programs().unwrap()
    );
}

#[test]
fn an_environment_variable_moves_the_configuration() {
    let mut stage = Stage::new();
    let Some((host, (name, below))) = HOSTS
        .iter()
        .find_map(|host| Some((*host, host.installation.user?.variable?)))
    else {
        return;
    };
    let folder = stage.home("elsewhere");
    stage
        .machine
        .variables
        .insert(name.to_owned(), folder.clone());
    stage.install(host);
    assert!(folder.join(below).exists());
}

#[test]
fn the_shim_gets_the_folders_of_the_user_whatever_a_project_says_later() {
    let mut stage = Stage::new();
    let config = stage.home("settings");
    let variables = &mut stage.machine.variables;
    variables.insert("TENTERHOOK_CONFIG_DIR".to_owned(), config.clone());
    let installer = Installer::open(stage.machine.clone()).unwrap();
    assert!(installer.install_programs().unwrap());
    let folders = stage.machine.data.join("bin/tenterhook-shim.env");
    let text = fs::read_to_string(&folders).unwrap();
    let expected = format!(
        "HOME={}\nTENTERHOOK_CONFIG_DIR={}\nTENTERHOOK_DATA_DIR={}\n",
        stage.machine.home.display(),
        config.display(),
        stage.machine.data.display()
    );
    assert_eq!(text, expected);
    assert!(!installer.install_programs().unwrap());
}
