//! The program as a user sees it: arguments, files and stdin go in; stdout, stderr and the exit status come out.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod agent_file;
mod allow;
mod approved;
mod below;
mod builtins;
mod burst;
mod call;
mod chat_client;
mod check;
mod client;
mod conformance;
mod contract;
mod covered;
mod demo;
mod doctor;
mod drawing;
mod events;
mod extension;
#[cfg(unix)]
mod extension_commands;
#[cfg(unix)]
mod fake_telegram;
mod fault;
mod fire;
mod fire_script;
mod folder;
mod gate;
#[cfg(unix)]
mod gateway;
#[cfg(unix)]
mod gateway_backup;
#[cfg(unix)]
mod gateway_crash;
#[cfg(target_os = "linux")]
mod gateway_day;
#[cfg(unix)]
mod gateway_extension_attacks;
mod gateway_extensions;
mod gateway_extra;
#[cfg(unix)]
mod gateway_hook_reload;
#[cfg(unix)]
mod gateway_hooks;
#[cfg(unix)]
mod gateway_kills;
mod gateway_reload;
#[cfg(unix)]
mod gateway_stop;
#[cfg(unix)]
mod gateway_voice;
#[cfg(unix)]
mod gateway_watch;
mod http;
mod import;
mod init;
mod input;
#[cfg(unix)]
mod inspect;
mod install;
#[cfg(unix)]
mod installed_programs;
mod interrupt;
mod killed;
mod lifecycle;
mod limits;
mod list;
mod loading;
mod messages;
mod model;
mod models;
mod named_call;
#[cfg(target_os = "linux")]
mod opened;
mod outcome;
mod permission;
mod pi_members;
mod pi_models;
mod pi_render;
mod pi_ui;
mod program;
mod prompt;
mod protect;
mod protected;
mod question;
mod readme;
mod recipe;
mod record;
mod replay;
mod script;
mod script_restarts;
mod search_path;
mod secret;
mod service;
mod session;
mod shell_files;
#[cfg(unix)]
mod shim;
#[cfg(unix)]
mod shim_faults;
#[cfg(unix)]
mod shim_stage;
mod snapshot;
mod source;
mod speech_server;
mod stage;
#[cfg(unix)]
mod status;
mod stored;
mod terminal;
mod test_command;
mod tools;
mod trace;
mod trust;
mod unapproved;
mod unknown_tools;

use std::fs;
use std::path::Path;

#[test]
fn no_test_file_is_forgotten() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = fs::read_to_string(folder.join("main.rs")).unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(
            name == "main" || main.contains(&format!("mod {name};")),
            "`{name}` has no `mod` line"
        );
    }
}
