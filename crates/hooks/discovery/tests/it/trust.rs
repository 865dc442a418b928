//! Project hooks run only as they were approved.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tenterhook_discovery::{
    FileState, FolderHooks, FolderSearch, Layers, LoadOptions, Loaded, load_file, load_files,
};
use tenterhook_engine::{Engine, Layer, Origin, Scope, events};
use tenterhook_protocol::event::PreToolUse;
use tenterhook_trust::{Approvals, Divergence, Trust, TrustError, TrustState};

use crate::folder::{Place, executable, mode};

/// A hook file of a project with one guard that is a script, which leaves a mark when it runs.
struct Guarded {
    place: Place,
}

const HOOKS: &str = "\
hooks:
  - name: guard
    event: pre_tool_use
    command: sh .tenterhook/guard.sh
";

impl Guarded {
    fn new() -> Self {
        let place = Place::new();
        let guarded = Self { place };
        guarded.write(".tenterhook/hooks.yaml", HOOKS);
        guarded.write(".tenterhook/guard.sh", &guarded.script("approved"));
        guarded
    }

    /// Creates a project whose guard denies.
    fn denying() -> Self {
        let guarded = Self::new();
        let script = guarded.script("approved") + "echo no >&2\nexit 2\n";
        guarded.write(".tenterhook/guard.sh", &script);
        guarded
    }

    /// Returns a script that leaves a mark with this name.
    fn script(&self, mark: &str) -> String {
        format!(
            "#!/bin/sh\necho {mark} >> '{}'\n",
            self.place.home.join(mark).display()
        )
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.place.project.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn marks(&self, mark: &str) -> usize {
        let text = fs::read_to_string(self.place.home.join(mark)).unwrap_or_default();
        text.lines().count()
    }

    fn approvals(&self) -> Approvals {
        Approvals::open(&self.place.data()).unwrap()
    }

    fn options(&self) -> LoadOptions {
        LoadOptions {
            trust: Trust::Review(Arc::new(self.approvals())),
            directory: self.place.project.clone(),
            ..LoadOptions::of_process()
        }
    }

    fn load(&self) -> Loaded {
        self.load_from(&self.place.project)
    }

    fn load_from(&self, project: &Path) -> Loaded {
        let path = project.join(".tenterhook/hooks.yaml");
        load_file(&path, Layer::Project, &self.options()).unwrap()
    }

    fn state(&self) -> TrustState {
        self.load().project_hooks[0].state
    }

    fn approve(&self) {
        let items: Vec<_> = self
            .load()
            .project_hooks
            .into_iter()
            .map(|brought| brought.item)
            .collect();
        self.approvals().approve(&items).unwrap();
    }

    fn dispatcher(&self, loaded: &Loaded) -> tenterhook_engine::Dispatcher {
        let engine = Engine::builder().build();
        engine.scope(Scope::Global).replace(loaded.specs.clone());
        engine.dispatcher(Origin::new("", self.place.project.clone()))
    }

    /// Runs the loaded hooks, and returns whether they let a tool run.
    async fn runs(&self, loaded: &Loaded) -> bool {
        let event = || PreToolUse::new("shell");
        let outcome = self.dispatcher(loaded).dispatch_with(event).await;
        outcome.decision().reason().is_none()
    }
}

#[tokio::test]
async fn a_hook_of_a_project_runs_once_it_is_approved() {
    let guarded = Guarded::new();
    let before = guarded.load();
    assert!(before.specs.is_empty());
    assert_eq!(before.project_hooks[0].state, TrustState::Untrusted);
    assert!(guarded.runs(&before).await);
    assert_eq!(guarded.marks("approved"), 0);
    guarded.approve();
    let after = guarded.load();
    assert_eq!(after.project_hooks[0].state, TrustState::Trusted);
    assert!(guarded.runs(&after).await);
    assert_eq!(guarded.marks("approved"), 1);
    let shown = after.specs[0].handling.describe();
    assert_eq!(
        shown, "sh .tenterhook/guard.sh",
        "people see what was written"
    );
}

#[tokio::test]
async fn whatever_changes_needs_an_approval_and_the_approved_version_runs_until_then() {
    type Change = fn(&Guarded);
    let changes: [(&str, Change); 8] = [
        ("one byte of the script", |guarded| {
            let script = guarded.script("approved") + " ";
            guarded.write(".tenterhook/guard.sh", &script);
        }),
        ("the command", |guarded| {
            guarded.write(
                ".tenterhook/hooks.yaml",
                &HOOKS.replace("guard.sh", "guard.sh -x"),
            );
        }),
        ("the event", |guarded| {
            guarded.write(
                ".tenterhook/hooks.yaml",
                &HOOKS.replace("pre_tool", "post_tool"),
            );
        }),
        ("a matcher", |guarded| {
            guarded.write(
                ".tenterhook/hooks.yaml",
                &format!("{HOOKS}    matcher: shell\n"),
            );
        }),
        ("a timeout", |guarded| {
            guarded.write(
                ".tenterhook/hooks.yaml",
                &format!("{HOOKS}    timeout: 1s\n"),
            );
        }),
        ("a variable", |guarded| {
            guarded.write(
                ".tenterhook/hooks.yaml",
                &format!("{HOOKS}    env: {{A: b}}\n"),
            );
        }),
        ("a link in the place of the script", |guarded| {
            let script = guarded.place.project.join(".tenterhook/guard.sh");
            let other = guarded.place.project.join("other.sh");
            fs::rename(&script, &other).unwrap();
            symlink(&other, &script).unwrap();
        }),
        ("a source beside the script", |guarded| {
            guarded.write(".tenterhook/lib.sh", "echo");
        }),
    ];
    for (what, change) in changes {
        let guarded = Guarded::new();
        guarded.approve();
        assert_eq!(guarded.state(), TrustState::Trusted, "{what}");
        change(&guarded);
        assert_eq!(guarded.state(), TrustState::Changed, "{what}");
        let loaded = guarded.load();
        assert_eq!(loaded.diverged[0].denies, None, "{what}");
        assert_eq!(loaded.diverged[0].divergence, Divergence::Changed, "{what}");
        guarded.runs(&loaded).await;
        assert_eq!(guarded.marks("approved"), 1, "{what}");
        guarded.approve();
        assert_eq!(guarded.state(), TrustState::Trusted, "{what}");
    }
}

#[test]
fn a_link_that_is_swapped_takes_the_approval_away_even_for_the_same_bytes() {
    let guarded = Guarded::new();
    let script = guarded.place.project.join(".tenterhook/guard.sh");
    for copy in ["one.sh", "two.sh"] {
        fs::copy(&script, guarded.place.project.join(copy)).unwrap();
    }
    let link = |to: &str| {
        fs::remove_file(&script).unwrap();
        symlink(guarded.place.project.join(to), &script).unwrap();
    };
    link("one.sh");
    guarded.approve();
    assert_eq!(guarded.state(), TrustState::Trusted);
    link("two.sh");
    assert_eq!(guarded.state(), TrustState::Changed);
}

#[test]
fn an_approval_is_for_one_folder() {
    let guarded = Guarded::new();
    guarded.approve();
    let other = guarded.place.home.join("other");
    fs::create_dir_all(other.join(".git")).unwrap();
    fs::create_dir_all(other.join(".tenterhook")).unwrap();
    for file in ["hooks.yaml", "guard.sh"] {
        let file = Path::new(".tenterhook").join(file);
        fs::copy(guarded.place.project.join(&file), other.join(&file)).unwrap();
    }
    assert_eq!(
        guarded.load_from(&other).project_hooks[0].state,
        TrustState::Untrusted
    );
    // A link that replaces the approved folder is not that folder either.
    let moved = guarded.place.home.join("moved");
    fs::rename(&guarded.place.project, &moved).unwrap();
    symlink(&other, &guarded.place.project).unwrap();
    assert_eq!(guarded.state(), TrustState::Untrusted);
}

#[tokio::test]
async fn a_session_goes_on_with_what_was_approved_when_it_began() {
    let guarded = Guarded::new();
    guarded.approve();
    let loaded = guarded.load();
    guarded.write(".tenterhook/guard.sh", &guarded.script("evil"));
    assert!(guarded.runs(&loaded).await);
    fs::remove_file(guarded.place.project.join(".tenterhook/guard.sh")).unwrap();
    assert!(guarded.runs(&loaded).await);
    assert_eq!((guarded.marks("approved"), guarded.marks("evil")), (2, 0));
}

#[tokio::test]
async fn an_untrusted_gate_denies_where_the_user_wants_that() {
    let guarded = Guarded::new();
    guarded.write(
        ".tenterhook/hooks.d/more.yaml",
        "hooks: [{name: log, event: post_tool_use, command: 'true'}]\n",
    );
    let options = LoadOptions {
        deny_untrusted: true,
        ..guarded.options()
    };
    let load = |path: &str| {
        let path = guarded.place.project.join(path);
        load_file(&path, Layer::Project, &options).unwrap()
    };
    let loaded = load(".tenterhook/hooks.yaml");
    assert!(!guarded.runs(&loaded).await);
    assert_eq!(loaded.specs[0].policy.because, "an untrusted gate denies");
    assert!(
        load(".tenterhook/hooks.d/more.yaml").specs.is_empty(),
        "an observer has nothing to deny"
    );
    assert_eq!(guarded.marks("approved"), 0);
}

#[test]
fn approvals_are_taken_back() {
    let guarded = Guarded::new();
    guarded.approve();
    let revoke = |name: &str| {
        let wanted = |approved: &tenterhook_trust::ApprovalRecord| approved.name == name;
        guarded
            .approvals()
            .revoke(&guarded.place.project, wanted)
            .unwrap()
    };
    assert_eq!(revoke("other"), 0);
    assert_eq!(guarded.state(), TrustState::Trusted);
    assert_eq!(revoke("guard"), 1);
    assert_eq!(guarded.state(), TrustState::Untrusted);
}

#[test]
fn what_was_approved_before_can_be_shown() {
    let guarded = Guarded::new();
    guarded.approve();
    guarded.write(".tenterhook/guard.sh", &guarded.script("evil"));
    let item = guarded.load().project_hooks[0].item.clone();
    let approvals = guarded.approvals();
    let before = approvals.before(&item).unwrap();
    let copies = approvals.copies_of(&item.project, before);
    let text = fs::read_to_string(copies.join(&before.files[0].path));
    assert_eq!(text.unwrap(), guarded.script("approved"));
}

#[test]
fn a_file_of_approvals_that_others_could_have_written_is_refused() {
    let guarded = Guarded::new();
    guarded.approve();
    let file = guarded.approvals().path();
    let mode_of = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode_of(&file), mode_of(file.parent().unwrap())),
        (0o600, 0o700)
    );
    let open = || Approvals::open(&guarded.place.data());
    for (path, bad) in [
        (file.as_path(), 0o602),
        (&file, 0o620),
        (file.parent().unwrap(), 0o777),
    ] {
        mode(path, bad);
        let error = open().unwrap_err();
        assert!(
            matches!(&error, TrustError::Writable { mode, .. } if *mode == bad),
            "{error}"
        );
        mode(path, if path == file { 0o600 } else { 0o700 });
    }
    let text = fs::read_to_string(&file).unwrap();
    for (what, text) in [
        ("damaged", "{".to_owned()),
        (
            "of another version",
            text.replace("\"version\": 3", "\"version\": 9"),
        ),
        ("of another user", text.replace("\"user\": ", "\"user\": 4")),
    ] {
        fs::write(&file, text).unwrap();
        assert!(matches!(open(), Err(TrustError::Invalid { .. })), "{what}");
    }
    fs::remove_file(&file).unwrap();
    symlink("/dev/null", &file).unwrap();
    assert!(open().is_err(), "a link");
}

async fn discover(place: &Place, deny: bool) -> FolderHooks {
    let approvals = Arc::new(Approvals::open(&place.data()).unwrap());
    FolderSearch::of_layers(&place.layers())
        .trust(Trust::Review(approvals))
        .data_dir(Some(place.data()))
        .deny_untrusted(deny)
        .lenient(true)
        .discover()
        .await
        .unwrap()
}

fn approve(place: &Place, discovered: FolderHooks) {
    let items: Vec<_> = discovered
        .project_hooks
        .into_iter()
        .map(|brought| brought.item)
        .collect();
    Approvals::open(&place.data())
        .unwrap()
        .approve(&items)
        .unwrap();
}

#[tokio::test]
async fn an_executable_of_a_project_is_asked_and_run_once_it_is_approved() {
    let place = Place::new();
    let folder = place.project.join(".kodelet/hooks");
    let path = place.hook(&folder, "guard", "before_tool_call");
    let first = discover(&place, false).await;
    assert!(first.specs.is_empty());
    assert_eq!(place.asked(), 0);
    approve(&place, first);
    let second = discover(&place, false).await;
    assert_eq!(second.specs.len(), 1);
    assert_eq!(place.asked(), 1);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text + "\n").unwrap();
    let third = discover(&place, true).await;
    assert!(matches!(third.files[0].state, FileState::Hook { .. }));
    assert_eq!(third.diverged[0].divergence, Divergence::Changed);
    assert!(third.project_hooks[0].is_approved_in_force);
    assert_eq!(place.asked(), 1, "the approved version is known");
    assert_eq!(third.specs.len(), 1);
    fs::remove_dir_all(place.project.join(".kodelet")).unwrap();
    let fourth = discover(&place, false).await;
    assert_eq!(fourth.diverged[0].divergence, Divergence::Missing);
    assert_eq!(fourth.specs.len(), 1);
    assert_eq!(fourth.specs[0].event, third.specs[0].event);
}

#[tokio::test]
async fn an_approved_executable_whose_copy_is_damaged_denies_what_it_guarded() {
    let place = Place::new();
    let folder = place.project.join(".kodelet/hooks");
    let path = place.hook(&folder, "guard", "before_tool_call");
    approve(&place, discover(&place, false).await);
    assert_eq!(discover(&place, false).await.specs.len(), 1);
    fs::remove_file(&path).unwrap();
    fs::remove_dir_all(place.data().join("trust/files")).unwrap();
    let found = discover(&place, false).await;
    let denied = found.specs.iter().map(|spec| spec.event.clone().unwrap());
    let denied: Vec<String> = denied.map(|event| event.as_str().to_owned()).collect();
    assert_eq!(denied, ["pre_tool_use"], "its approved version said so");
    let reason = found.diverged[0].denies.as_deref().unwrap();
    assert!(reason.contains("cannot be read"), "{reason}");
    assert_eq!(place.asked(), 1, "nothing of it runs");
}

#[tokio::test]
async fn an_executable_that_nobody_knows_denies_what_it_might_guard() {
    let place = Place::new();
    place.hook(&place.project.join(".kodelet/hooks"), "guard", "turn_end");
    let discovered = discover(&place, true).await;
    let denied: Vec<_> = discovered
        .specs
        .iter()
        .map(|spec| spec.event.clone().unwrap())
        .collect();
    let denied: Vec<_> = denied
        .iter()
        .map(tenterhook_engine::EventName::as_str)
        .collect();
    assert_eq!(denied, ["user_prompt_submit", "pre_tool_use"]);
    assert_eq!(place.asked(), 0);
}

#[tokio::test]
async fn an_approved_file_that_does_not_say_what_it_is_for_denies_under_strict() {
    let place = Place::new();
    let silent = "#!/bin/sh\nexit 3\n";
    executable(&place.project.join(".kodelet/hooks"), "ours", silent);
    executable(&place.home.join(".kodelet/hooks"), "mine", silent);
    let found = async |strict| {
        let approvals = Arc::new(Approvals::open(&place.data()).unwrap());
        let search = FolderSearch::of_layers(&place.layers()).trust(Trust::Review(approvals));
        search
            .strict(strict)
            .lenient(true)
            .discover()
            .await
            .unwrap()
    };
    let denying = |discovered: &FolderHooks| {
        let mut names: Vec<String> = discovered
            .specs
            .iter()
            .map(|spec| spec.id.to_string())
            .collect();
        names.dedup();
        names
    };
    let first = found(true).await;
    assert_eq!(denying(&first), ["mine"]);
    approve(&place, first);
    assert_eq!(denying(&found(true).await), ["ours", "mine"]);
    let lenient = found(false).await;
    assert!(lenient.specs.is_empty());
    assert_eq!(lenient.broken.len(), 2, "{:?}", lenient.broken);
}

#[tokio::test]
async fn sources_beside_an_executable_are_approved_and_run_with_it() {
    let place = Place::new();
    let folder = place.project.join(".kodelet/hooks");
    executable(
        &folder,
        "guard",
        "#!/bin/sh\n. \"$(dirname \"$0\")/lib/name.sh\"\n",
    );
    fs::create_dir_all(folder.join("lib")).unwrap();
    fs::write(folder.join("lib/name.sh"), "echo turn_end\n").unwrap();
    approve(&place, discover(&place, false).await);
    assert_eq!(discover(&place, false).await.specs.len(), 1);
    fs::write(folder.join("lib/name.sh"), "echo agent_stop\n").unwrap();
    let changed = discover(&place, false).await;
    assert_eq!(changed.project_hooks[0].state, TrustState::Changed);
    let event = changed.specs[0].event.as_ref().unwrap();
    assert_eq!(event.as_str(), "turn_end", "the approved source is loaded");
}

#[tokio::test]
async fn a_script_whose_interpreter_the_project_brings_is_none() {
    let place = Place::new();
    let folder = place.project.join(".kodelet/hooks");
    let own = place.project.join("interpreter");
    for (name, interpreter) in [("relative", "interpreter"), ("own", own.to_str().unwrap())] {
        executable(&folder, name, &format!("#!{interpreter}\n"));
    }
    let discovered = discover(&place, false).await;
    for file in &discovered.files {
        let state = file.state.describe();
        assert!(state.contains("is a file of the project"), "{state}");
    }
    assert!(discovered.project_hooks.is_empty());
}

/// Keeps changing a file until it is stopped: by replacing it, by writing into it, and by a link.
fn keep_changing(path: &Path, texts: &[String; 2], stop: &AtomicBool) {
    let aside = path.with_extension("aside");
    let targets = texts.each_ref().map(|text| {
        let target = path.with_extension(format!("target{}", text.len()));
        fs::write(&target, text).unwrap();
        target
    });
    let mut round = 0;
    while !stop.load(Ordering::Relaxed) {
        let which = round % 2;
        match round % 16 {
            14 | 15 => symlink(&targets[which], &aside).unwrap(),
            _ => fs::write(&aside, &texts[which]).unwrap(),
        }
        fs::rename(&aside, path).unwrap();
        if round % 16 < 2 {
            fs::write(path, &texts[1 - which]).unwrap();
        }
        round += 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_races_the_check_never_gets_its_bytes_run() {
    const ROUNDS: usize = 1_000;
    let guarded = Guarded::new();
    guarded.approve();
    let path = guarded.place.project.join(".tenterhook/guard.sh");
    let texts = [guarded.script("approved"), guarded.script("evil")];
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (path, stop) = (path.clone(), Arc::clone(&stop));
        std::thread::spawn(move || keep_changing(&path, &texts, &stop))
    };
    let options = guarded.options();
    let file = guarded.place.project.join(".tenterhook/hooks.yaml");
    let mut changed = 0;
    for _ in 0..ROUNDS {
        let loaded = load_file(&file, Layer::Project, &options).unwrap();
        guarded.runs(&loaded).await;
        changed += loaded.diverged.len();
    }
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    assert_eq!(guarded.marks("evil"), 0);
    assert_eq!(guarded.marks("approved"), ROUNDS);
    assert!(changed > 0, "the writer was never seen");
}

#[test]
fn every_event_can_be_withheld() {
    // A project may have hooks on every event, but none runs before it is approved.
    let guarded = Guarded::new();
    let hooks = events().map(|info| format!("  - {{event: {}, command: 'true'}}\n", info.name));
    let hooks: Vec<String> = hooks.collect();
    guarded.write(
        ".tenterhook/hooks.yaml",
        &format!("hooks:\n{}", hooks.concat()),
    );
    let loaded = guarded.load();
    assert!(loaded.specs.is_empty() && loaded.wired.is_empty());
    assert_eq!(loaded.project_hooks.len(), events().count());
}

#[tokio::test]
async fn a_changed_gate_guards_as_approved_whatever_it_says_now() {
    let options = |guarded: &Guarded, deny_untrusted| LoadOptions {
        deny_untrusted,
        ..guarded.options()
    };
    for changed in [
        HOOKS.replace("pre_tool_use", "turn_end"),
        format!("{HOOKS}    matcher: nothing\n"),
        format!("{HOOKS}    agent: nobody\n"),
        HOOKS.replace("name: guard", "name: other"),
        "hooks: []\n".to_owned(),
        "hooks: [".to_owned(),
    ] {
        for deny_untrusted in [false, true] {
            // A new name means a new hook, which denies if untrusted gates deny.
            if deny_untrusted && changed.contains("other") {
                continue;
            }
            let guarded = Guarded::denying();
            guarded.approve();
            guarded.write(".tenterhook/hooks.yaml", &changed);
            let path = guarded.place.project.join(".tenterhook/hooks.yaml");
            let options = options(&guarded, deny_untrusted);
            let loaded = load_file(&path, Layer::Project, &options).unwrap();
            assert!(!guarded.runs(&loaded).await, "{changed}");
            assert_eq!(guarded.marks("approved"), 1, "{changed}");
            let [hook] = loaded.diverged.as_slice() else {
                panic!("{:?}", loaded.diverged);
            };
            assert_eq!(
                (hook.denies.as_deref(), &*hook.approved.name),
                (None, "guard")
            );
        }
    }
}

#[tokio::test]
async fn a_gate_that_only_the_changed_version_has_denies_where_that_is_wanted() {
    let guarded = Guarded::new();
    guarded.approve();
    let changed = HOOKS.replace("pre_tool_use", "user_prompt_submit");
    guarded.write(".tenterhook/hooks.yaml", &changed);
    let options = LoadOptions {
        deny_untrusted: true,
        ..guarded.options()
    };
    let path = guarded.place.project.join(".tenterhook/hooks.yaml");
    let loaded = load_file(&path, Layer::Project, &options).unwrap();
    let events = loaded.specs.iter().map(|spec| spec.event.clone().unwrap());
    let events: Vec<String> = events.map(|event| event.as_str().to_owned()).collect();
    assert_eq!(events, ["pre_tool_use", "user_prompt_submit"]);
}

#[tokio::test]
async fn an_approved_hook_whose_files_are_all_gone_runs_from_its_copies() {
    let guarded = Guarded::denying();
    guarded.approve();
    fs::remove_dir_all(guarded.place.project.join(".tenterhook")).unwrap();
    let loaded = guarded.load();
    assert!(!guarded.runs(&loaded).await);
    assert_eq!(guarded.marks("approved"), 1);
    assert_eq!(loaded.diverged[0].divergence, Divergence::Missing);
}

#[tokio::test]
async fn an_approval_of_the_first_version_counts_as_long_as_it_fits_and_denies_then() {
    let guarded = Guarded::new();
    guarded.approve();
    let file = guarded.approvals().path();
    let mut book: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    book["version"] = 1.into();
    let project = guarded.place.project.to_str().unwrap();
    let approved = book["projects"][project][0].as_object_mut().unwrap();
    for key in ["root", "hook_file", "repository"] {
        assert!(approved.remove(key).is_some(), "{key}");
    }
    fs::write(&file, book.to_string()).unwrap();
    let loaded = guarded.load();
    assert!(guarded.runs(&loaded).await);
    assert_eq!(guarded.marks("approved"), 1);
    guarded.write(".tenterhook/guard.sh", &guarded.script("evil"));
    let loaded = guarded.load();
    assert!(!guarded.runs(&loaded).await);
    assert_eq!((guarded.marks("approved"), guarded.marks("evil")), (1, 0));
    let reason = loaded.diverged[0].denies.as_deref().unwrap();
    assert!(reason.contains("older version of tenterhook"), "{reason}");
    // Approving it again makes the approval complete.
    guarded.write(".tenterhook/guard.sh", &guarded.script("approved"));
    guarded.approve();
    guarded.write(".tenterhook/guard.sh", &guarded.script("evil"));
    assert_eq!(guarded.load().diverged[0].denies, None);
}

#[tokio::test]
async fn a_file_that_the_command_reads_from_the_project_is_no_approved_copy() {
    let guarded = Guarded::new();
    guarded.write("verdict", "deny");
    guarded.write(
        ".tenterhook/hooks.yaml",
        "hooks: [{name: guard, event: pre_tool_use, command: sh -c 'cat ./verdict'}]\n",
    );
    guarded.approve();
    guarded.write("verdict", "{}");
    let loaded = guarded.load();
    assert!(
        !guarded.runs(&loaded).await,
        "it denies, since it would read the changed file"
    );
    let reason = loaded.diverged[0].denies.as_deref().unwrap();
    assert!(
        reason.contains("reads `verdict` from the project"),
        "{reason}"
    );
}

#[tokio::test]
async fn nothing_takes_the_place_of_a_script_that_is_not_there() {
    let guarded = Guarded::new();
    guarded.write(
        ".tenterhook/hooks.yaml",
        "hooks:\n  - {name: guard, event: pre_tool_use, command: sh later.sh}\n  - {name: other, event: pre_tool_use, command: ./later.sh || true}\n",
    );
    guarded.approve();
    let loaded = guarded.load();
    assert_eq!(loaded.specs.len(), 2);
    guarded.write("later.sh", &guarded.script("evil"));
    guarded.runs(&loaded).await;
    assert_eq!(guarded.marks("evil"), 0);
}

#[test]
fn approving_again_what_is_trusted_changes_nothing() {
    let guarded = Guarded::new();
    guarded.approve();
    guarded.approve();
    let loaded = guarded.load();
    let item = &loaded.project_hooks[0].item;
    let approvals = guarded.approvals();
    let before = approvals.before(item).unwrap();
    let copies = approvals.copies_of(&item.project, before);
    let text = fs::read_to_string(copies.join(&before.files[0].path));
    assert_eq!(text.unwrap(), guarded.script("approved"));
}

#[tokio::test]
async fn scripts_of_a_project_do_not_share_a_process_with_those_of_the_user() {
    let place = Place::new();
    let guard = "import _rules\nfrom tenterhook import deny, on\n@on('pre_tool_use')\ndef guard(event):\n    return deny('no') if _rules.forbids(event) else None\n";
    let user = place.home.join("config/hooks");
    let project = place.project.join(".tenterhook/hooks");
    for (dir, rules) in [(&user, "True"), (&project, "False")] {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("guard.py"), guard).unwrap();
        fs::write(
            dir.join("_rules.py"),
            format!("forbids = lambda event: {rules}\n"),
        )
        .unwrap();
    }
    let discovered = FolderSearch::of_layers(&place.layers())
        .trust(Trust::Caller)
        .lenient(true)
        .discover()
        .await
        .unwrap();
    let engine = Engine::builder().build();
    // The guards of user and project do not shadow each other, so keep only the user's guard.
    let users = discovered
        .specs
        .into_iter()
        .filter(|spec| spec.source.layer == Layer::User);
    engine.scope(Scope::Global).replace(users.collect());
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(PreToolUse::default())
        .await;
    let is_shadowed = engine.hooks().is_empty();
    assert!(is_shadowed || outcome.decision().reason() == Some("no"));
}

/// Settings of a coding agent with a guard that denies.
const SETTINGS: &str =
    r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 2"}]}]}}"#;

#[tokio::test]
async fn an_imported_hook_of_a_project_runs_once_it_is_approved_and_stays_in_force() {
    let guarded = Guarded::new();
    let import = "import: ../.claude/settings.json\n";
    guarded.write(".tenterhook/hooks.yaml", import);
    guarded.write(".claude/settings.json", SETTINGS);
    let before = guarded.load();
    assert!(before.specs.is_empty());
    let item = &before.project_hooks[0].item;
    assert_eq!(item.project, guarded.place.project);
    assert_eq!(item.source, Path::new(".claude/settings.json"));
    guarded.approve();
    assert!(!guarded.runs(&guarded.load()).await);
    // A change needs a new approval, and the approved guard stays.
    guarded.write(
        ".claude/settings.json",
        &SETTINGS.replace("exit 2", "exit 0"),
    );
    assert!(!guarded.runs(&guarded.load()).await);
    fs::remove_dir_all(guarded.place.project.join(".claude")).unwrap();
    assert!(!guarded.runs(&guarded.load()).await);
    // Even if nothing imports the file any more, its approved guard is found.
    guarded.write(".tenterhook/hooks.yaml", "hooks: []\n");
    let layers = Layers {
        start: Some(guarded.place.project.clone()),
        ..Layers::default()
    };
    let files = layers.hook_files(&guarded.options().trust);
    let loaded = load_files(files, &guarded.options()).unwrap();
    assert!(!guarded.runs(&loaded).await);
}
