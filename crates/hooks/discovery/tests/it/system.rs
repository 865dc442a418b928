//! Folders with scripts of other systems: which files are hooks, and in which order.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tenterhook_discovery::{FileState, FolderHooks, FolderName, FolderSearch};
use tenterhook_engine::event::PreToolUse;
use tenterhook_engine::{Engine, HookSpec, Layer, Origin, Scope};
use tenterhook_systems::{morphix, operator, pi};
use tenterhook_trust::{Approvals, Trust, TrustState};

use crate::folder::{Place, mode};

/// A file of morphix whose handler writes its name into the arguments.
fn morphix(name: &str) -> String {
    format!(
        "from core.hooks_registry import hooks_registry\n\n@hooks_registry.register('on_before_tool')\ndef {name}(ctx):\n    \
         ctx.parameters.setdefault('seen', []).append('{name} in ' + ctx.workspace)\n"
    )
}

const OPERATOR: &str = "def seen(event):\n    pass\n\nhooks = [('tool_call', seen)]\n";

fn write(dir: &Path, files: &[(&str, &str)]) {
    fs::create_dir_all(dir).unwrap();
    for (name, text) in files {
        fs::write(dir.join(name), text).unwrap();
    }
}

fn name(text: &str) -> FolderName {
    text.parse().unwrap()
}

/// A time limit that does not matter to a test. A busy machine must not be what ends it.
const AMPLE: Duration = Duration::from_mins(10);

fn search(place: &Place) -> FolderSearch {
    FolderSearch::of_layers(&place.layers())
        .trust(Trust::Caller)
        .deadline(AMPLE)
}

/// Returns the hooks of one event, in the order in which they run.
fn order(discovered: FolderHooks) -> Vec<String> {
    let hooks = engine(discovered).hooks();
    hooks.iter().map(|hook| hook.id.to_string()).collect()
}

fn engine(discovered: FolderHooks) -> Engine {
    let engine = Engine::new();
    engine.scope(Scope::Global).replace(discovered.specs);
    engine
}

fn place() -> Place {
    let place = Place::new();
    let core = place.project.join("core/hooks");
    write(
        &core,
        &[
            ("b.py", &morphix("b")),
            ("a.py", &morphix("a")),
            (
                "__init__.py",
                "import core.hooks_registry as hooks_registry\n",
            ),
            ("_lib.py", &morphix("lib")),
            ("react.py", "def useEffect():\n    raise SystemExit\n"),
            ("pre-commit", "#!/bin/sh\necho hooks_registry\n"),
            (
                "broken.py",
                "from core.hooks_registry import hooks_registry\nimport nowhere\n",
            ),
        ],
    );
    mode(&core.join("pre-commit"), 0o755);
    mode(&core.join("a.py"), 0o755);
    for workspace in ["main", "lab"] {
        let dir = place.project.join("workspaces").join(workspace);
        write(&dir.join("hooks"), &[("a.py", &morphix(workspace))]);
    }
    place
}

// M19: only the hooks of one workspace are loaded, after the hooks for all workspaces.
#[tokio::test]
async fn files_of_morphix_are_those_of_the_core_and_of_the_workspace() {
    let place = place();
    for (chosen, expected) in [
        (None, "main"),
        (Some(name("main")), "main"),
        (Some(name("lab")), "lab"),
    ] {
        let discovered = search(&place)
            .select(&morphix::WORKSPACE, chosen)
            .lenient(true)
            .discover()
            .await
            .unwrap();
        assert_eq!(
            order(discovered),
            ["a.py:a", "b.py:b", &format!("{expected}/a.py:{expected}")]
        );
    }
    let discovered = search(&place).lenient(true).discover().await.unwrap();
    let found: Vec<_> = discovered
        .files
        .iter()
        .map(|file| file.name.as_str())
        .collect();
    assert_eq!(
        found,
        ["a.py", "b.py", "broken.py", "main/a.py"],
        "what others have in folders of these names is none of them"
    );
    let [broken] = &discovered.broken[..] else {
        panic!("{:?}", discovered.broken);
    };
    let problem = &broken.problems[0];
    assert!(problem.message.contains("ModuleNotFoundError"), "{problem}");
    assert_eq!(problem.position.map(|position| position.line), Some(2));
    let nowhere = search(&place)
        .select(&morphix::WORKSPACE, Some(name("nowhere")))
        .lenient(true)
        .discover()
        .await
        .unwrap();
    assert_eq!(
        nowhere.warnings[0],
        "no project folder has a workspace `nowhere`: `workspaces/nowhere` does not exist"
    );
    assert_eq!(order(nowhere), ["a.py:a", "b.py:b"]);
}

// M1: the event has the name of the workspace.
#[tokio::test]
async fn handlers_of_morphix_are_told_the_workspace_of_the_event() {
    let place = place();
    let engine = engine(
        search(&place)
            .select(&morphix::WORKSPACE, Some(name("lab")))
            .lenient(true)
            .discover()
            .await
            .unwrap(),
    );
    let call = PreToolUse::new("shell");
    for (workspace, expected) in [(None, "main"), (Some("lab"), "lab")] {
        let origin = Origin::default().with_workspace(workspace.map(str::to_owned));
        let outcome = engine.dispatcher(origin).dispatch(call.clone()).await;
        let seen = ["a", "b", "lab"].map(|hook| format!("{hook} in {expected}"));
        let rewritten = outcome.rewritten().unwrap();
        assert_eq!(rewritten.tool_input["seen"], serde_json::json!(seen));
    }
}

#[tokio::test]
async fn a_file_of_morphix_needs_an_approval_of_its_own() {
    let place = place();
    let discover = || async {
        let approvals = Arc::new(Approvals::open(&place.data()).unwrap());
        let search = search(&place).trust(Trust::Review(approvals));
        search.lenient(true).discover().await.unwrap()
    };
    let first = discover().await;
    assert!(first.specs.is_empty());
    let items: Vec<_> = first
        .project_hooks
        .into_iter()
        .map(|brought| brought.item)
        .filter(|item| item.source == Path::new("workspaces/main/hooks"))
        .collect();
    Approvals::open(&place.data())
        .unwrap()
        .approve(&items)
        .unwrap();
    assert_eq!(order(discover().await), ["main/a.py:main"]);
    write(
        &place.project.join("workspaces/main/hooks"),
        &[("a.py", &morphix("other"))],
    );
    let states: Vec<_> = discover()
        .await
        .project_hooks
        .into_iter()
        .map(|brought| (brought.item.name, brought.state))
        .collect();
    let expected = [
        ("a.py", TrustState::Untrusted),
        ("b.py", TrustState::Untrusted),
        ("broken.py", TrustState::Untrusted),
        ("a.py", TrustState::Changed),
    ];
    assert_eq!(
        states,
        expected.map(|(name, state)| (name.to_owned(), state))
    );
}

// O34: files that begin with `_` are skipped, and all others are loaded.
#[tokio::test]
async fn files_of_an_operator_profile_run_before_those_of_the_project() {
    let place = Place::new();
    let profiles = place.home.join(".operator/profiles");
    write(
        &profiles.join("default/hooks"),
        &[("z.py", OPERATOR), ("a.py", OPERATOR), ("_x.py", OPERATOR)],
    );
    write(&profiles.join("work/hooks"), &[("a.py", OPERATOR)]);
    write(
        &place.project.join(".operator/hooks"),
        &[("a.py", OPERATOR)],
    );
    for (chosen, expected) in [
        (
            None,
            &["default/a.py:seen", "default/z.py:seen", "a.py:seen"][..],
        ),
        (Some(name("work")), &["work/a.py:seen", "a.py:seen"]),
        (Some(name("nobody")), &["a.py:seen"]),
    ] {
        let discovered = search(&place)
            .select(&operator::PROFILE, chosen.clone())
            .lenient(true)
            .discover()
            .await
            .unwrap();
        let warned = discovered.warnings.len();
        assert_eq!(
            warned,
            usize::from(chosen == Some(name("nobody"))),
            "{chosen:?}"
        );
        assert_eq!(order(discovered), expected);
    }
    // The user's own hooks need no approval.
    let own = search(&place)
        .trust(Trust::none())
        .lenient(true)
        .discover()
        .await
        .unwrap();
    let layers: Vec<_> = own.specs.iter().map(|spec| spec.source.layer).collect();
    assert_eq!(layers, [Layer::User; 2]);
    let project = own.files.iter().find(|file| file.layer == Layer::Project);
    assert_eq!(project.unwrap().state, FileState::Untrusted);
}

const PI: &str = "export default (pi) => { pi.on('tool_call', () => {}); };\n";
const LISTS: &str = r#"{"pi": {"extensions": ["./b.ts", "src/a.mjs", "gone.ts", "../../out.ts", "/etc/hostname", "b.ts"]}}"#;

/// Returns the files that were found, by name.
fn found(discovered: &FolderHooks) -> Vec<&str> {
    let files = discovered.files.iter();
    files.map(|file| file.name.as_str()).collect()
}

/// A folder in the folder of extensions, its files, and the expected extensions.
type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);

// P32: which files of a folder are extensions.
#[tokio::test]
async fn files_of_pi_are_found_by_its_rules() {
    let index: &[(&str, &str)] = &[("index.js", PI), ("index.ts", PI), ("other.ts", PI)];
    let rows: [Row<'_>; 12] = [
        (
            "",
            &[("b.ts", PI), ("a.js", PI), ("c.mjs", PI), ("_d.ts", PI)],
            &["_d.ts", "a.js", "b.ts", "c.mjs"],
        ),
        (
            "",
            &[
                ("a.py", ""),
                ("README.md", ""),
                ("a.d.ts", ""),
                ("a.cjs", PI),
                (".a.ts", PI),
            ],
            &[],
        ),
        ("ext", index, &["ext/index.ts"]),
        ("ext", &index[..1], &["ext/index.js"]),
        ("ext", &index[2..], &[]),
        ("ext/src", index, &[]),
        (
            "ext",
            &[("package.json", LISTS), ("b.ts", PI), ("index.ts", PI)],
            &["ext/b.ts", "ext/src/a.mjs", "ext/gone.ts"],
        ),
        (
            "ext",
            &[("package.json", LISTS), ("index.ts", PI)],
            &["ext/index.ts", "ext/b.ts", "ext/src/a.mjs", "ext/gone.ts"],
        ),
        (
            "ext",
            &[("package.json", "{}"), ("index.ts", PI)],
            &["ext/index.ts"],
        ),
        (
            "ext",
            &[("package.json", "{"), ("index.ts", PI)],
            &["ext/index.ts"],
        ),
        (
            "ext",
            &[
                ("package.json", r#"{"pi": {"extensions": "b.ts"}}"#),
                ("b.ts", PI),
            ],
            &[],
        ),
        (
            "ext",
            &[
                ("package.json", r#"{"pi": {"extensions": []}}"#),
                ("index.js", PI),
            ],
            &["ext/index.js"],
        ),
    ];
    for (dir, files, expected) in rows {
        let place = Place::new();
        write(&place.project.join("out"), &[("out.ts", PI)]);
        write(&place.project.join(".pi/extensions").join(dir), files);
        let discovered = search(&place)
            .trust(Trust::none())
            .lenient(true)
            .discover()
            .await
            .unwrap();
        assert_eq!(found(&discovered), expected, "{dir}: {files:?}");
        assert!(discovered.specs.is_empty());
    }
}

// P32: several entries in the order of the list, and links.
#[tokio::test]
async fn an_extension_of_pi_may_have_several_entries_and_be_linked() {
    let place = Place::new();
    let folder = place.project.join(".pi/extensions");
    let elsewhere = place.home.join("elsewhere");
    write(&elsewhere, &[("package.json", LISTS), ("b.ts", PI)]);
    write(&elsewhere.join("src"), &[("a.mjs", PI), ("c.ts", PI)]);
    write(&folder, &[("zed.ts", PI)]);
    symlink(&elsewhere, folder.join("ext")).unwrap();
    symlink(elsewhere.join("b.ts"), folder.join("a.ts")).unwrap();
    let discovered = search(&place)
        .trust(Trust::none())
        .lenient(true)
        .discover()
        .await
        .unwrap();
    let expected = ["a.ts", "ext/b.ts", "ext/src/a.mjs", "ext/gone.ts", "zed.ts"];
    assert_eq!(found(&discovered), expected);
    let gone = discovered.broken.iter().chain(&discovered.untrusted);
    let gone: Vec<&str> = gone
        .filter(|source| source.path.ends_with("gone.ts"))
        .map(|source| source.problems[0].message.as_str())
        .collect();
    assert_eq!(
        gone,
        ["the file does not exist, but `package.json` lists it"]
    );
}

fn review(place: &Place) -> Trust {
    Trust::Review(Arc::new(Approvals::open(&place.data()).unwrap()))
}

#[tokio::test]
async fn an_approval_of_an_extension_covers_its_folder_and_nothing_of_the_others() {
    let place = Place::new();
    let folder = place.project.join(".pi/extensions");
    write(&folder, &[("a.ts", PI), ("b.ts", PI)]);
    write(&folder.join("ext/lib"), &[("x.ts", "")]);
    write(
        &folder.join("ext/node_modules/dep"),
        &[("package.json", "{}"), ("main.js", "")],
    );
    write(&folder.join("ext"), &[("index.ts", PI), ("data.json", "")]);
    write(&folder.join("shared"), &[("y.ts", "")]);
    let discovered = search(&place)
        .trust(review(&place))
        .lenient(true)
        .discover()
        .await
        .unwrap();
    let files: Vec<Vec<String>> = discovered
        .project_hooks
        .iter()
        .map(|brought| {
            let own = brought.item.files.iter().map(|file| &file.path);
            let covered = brought.item.covered.iter().map(|file| &file.path);
            own.chain(covered)
                .map(|path| {
                    path.strip_prefix(".pi/extensions")
                        .unwrap()
                        .display()
                        .to_string()
                })
                .collect()
        })
        .collect();
    let expected: [&[&str]; 3] = [
        &["a.ts", "shared/y.ts"],
        &["b.ts", "shared/y.ts"],
        &[
            "ext/index.ts",
            "ext/data.json",
            "ext/lib/x.ts",
            "ext/node_modules/dep/main.js",
            "ext/node_modules/dep/package.json",
        ],
    ];
    assert_eq!(files, expected);
    let names: Vec<_> = discovered
        .project_hooks
        .iter()
        .map(|brought| brought.item.name.as_str())
        .collect();
    assert_eq!(names, ["a.ts", "b.ts", "ext/index.ts"]);
}

// P34: extensions of the command line come last, as pi's document requires.
#[tokio::test]
async fn extensions_are_loaded_from_project_user_and_command_line() {
    let place = Place::new();
    let project = place.project.join(".pi/extensions");
    write(&project, &[("p.ts", PI), ("named.ts", PI)]);
    write(
        &place.home.join(".pi/agent/extensions/g"),
        &[("index.js", PI)],
    );
    write(&place.home.join("e"), &[("index.ts", PI)]);
    write(&place.home.join("several"), &[("x.ts", PI), ("y.js", PI)]);
    let paths = ["e", "several", "several/x.ts"].map(|path| place.home.join(path));
    let named = project.join("named.ts");
    let search = search(&place).trust(Trust::none());
    let discovered = search
        .packages(&pi::FOLDER, paths.into_iter().chain([named.clone()]))
        .lenient(true)
        .discover()
        .await
        .unwrap();
    let expected = [
        "named.ts",
        "p.ts",
        "g/index.js",
        "e/index.ts",
        "several/x.ts",
        "several/y.js",
        "x.ts",
        "named.ts",
    ];
    assert_eq!(found(&discovered), expected);
    assert_eq!(discovered.files[0].state, FileState::Shadowed { by: named });
    let first = place.home.join("several/x.ts");
    assert_eq!(
        discovered.files[6].state,
        FileState::Shadowed { by: first },
        "the first of one path"
    );
    assert_eq!(
        discovered.project_hooks.len(),
        1,
        "who names a file approves it"
    );
}

#[tokio::test]
async fn an_extension_that_is_named_has_to_be_there() {
    let place = Place::new();
    write(&place.home.join("empty"), &[("README.md", "")]);
    for (path, problem) in [
        ("nowhere", "no such file or folder"),
        ("empty", "it has no extension, expected `index.ts`"),
    ] {
        let search = FolderSearch::of_folders([]).packages(&pi::FOLDER, [place.home.join(path)]);
        let discovered = search.lenient(true).discover().await.unwrap();
        let [broken] = discovered.broken.as_slice() else {
            panic!("{:?}", discovered.broken);
        };
        let message = &broken.problems[0].message;
        assert!(message.contains(problem), "{message}");
    }
}

/// An extension whose handler of tool calls writes its name into the arguments.
fn pi(name: &str) -> String {
    format!(
        "export default function (pi: any) {{\n  pi.on('tool_call', async (event: any): Promise<void> => {{\n    \
         event.input.seen = [...(event.input.seen ?? []), '{name}'];\n  }});\n}}\n"
    )
}

// P33, P34: broken extensions do not affect others; the order is project, user, command line.
#[tokio::test]
async fn handlers_of_pi_are_called_in_the_order_of_loading() {
    let place = Place::new();
    let project = place.project.join(".pi/extensions");
    write(
        &project,
        &[
            ("b.ts", &pi("b")),
            ("broken.ts", "export default 1;\n"),
            ("syntax.ts", "export {{;\n"),
        ],
    );
    write(
        &project.join("a"),
        &[(
            "index.ts",
            "import { name } from './lib/name.ts';\nexport default (pi: any) => { pi.on('tool_call', (event: any) => { event.input.seen = [name]; }); };\n",
        )],
    );
    write(
        &project.join("a/lib"),
        &[("name.ts", "export const name: string = 'a';\n")],
    );
    write(
        &place.home.join(".pi/agent/extensions"),
        &[(
            "user.js",
            "export default (pi) => { pi.on('tool_call', (event) => { event.input.seen.push('user'); }); };\n",
        )],
    );
    write(&place.home.join("named"), &[("index.ts", &pi("named"))]);
    write(
        &place.home.join("config/hooks"),
        &[(
            "guard.py",
            "from tenterhook import on\n@on('pre_tool_use')\ndef guard(event):\n    pass\n",
        )],
    );
    let quiet = "export default (pi: any) => { pi.registerCommand('hello', { description: 'x', handler: async () => {} }); pi.on('project_trust', () => {}); };\n";
    write(&project, &[("quiet.ts", quiet)]);
    let discovered = search(&place)
        .packages(&pi::FOLDER, [place.home.join("named")])
        .lenient(true)
        .discover()
        .await
        .unwrap();
    let problems: Vec<_> = discovered
        .files
        .iter()
        .filter(|file| matches!(file.state, FileState::Broken { .. }))
        .map(|file| file.name.as_str())
        .collect();
    assert_eq!(problems, ["broken.ts", "syntax.ts"]);
    let engine = engine(discovered);
    let hooks = engine.hooks();
    let sources: Vec<String> = hooks
        .iter()
        .map(|hook| {
            let file = hook.id.as_str().split(':').next().unwrap();
            format!("{file} {}", hook.event.as_ref().unwrap())
        })
        .collect();
    let expected = [
        "guard.py pre_tool_use",
        "a/index.ts pre_tool_use",
        "b.ts pre_tool_use",
        "user.js pre_tool_use",
        "named/index.ts pre_tool_use",
        "quiet.ts x-pi.project_trust",
    ];
    assert_eq!(sources, expected);
    let call = PreToolUse::new("shell");
    let outcome = engine.dispatcher(Origin::default()).dispatch(call).await;
    assert_eq!(outcome.failures(), []);
    let rewritten = outcome.rewritten().unwrap();
    assert_eq!(
        rewritten.tool_input["seen"],
        serde_json::json!(["a", "b", "user", "named"])
    );
}

/// A worker in one file. With the argument `hook` it declares itself a worker; as a worker, it speaks the
/// protocol.
const OWN_WORKER: &str = r"#!/usr/bin/env python3
import json, sys
if sys.argv[1] == 'hook':
    print('worker')
    sys.exit()
for line in sys.stdin:
    message = json.loads(line)
    method, params = message['method'], message.get('params')
    result = {}
    if method == 'initialize':
        result = {'protocol_version': 1, 'worker': {'name': 'mine', 'version': '1'}}
    elif method == 'script/load':
        result = {'hooks': [{'name': 'guard', 'event': 'pre_tool_use', 'matcher': 'shell'}]}
    elif method == 'event/handle':
        is_sudo = params['event']['tool_input']['cmd'].startswith('sudo ')
        result = {'decision': 'deny', 'reason': 'no sudo here'} if is_sudo else None
    if 'id' in message:
        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}), flush=True)
    if method == 'shutdown':
        sys.exit()
";

#[tokio::test]
async fn an_executable_may_be_a_worker_in_any_language() {
    let place = Place::new();
    let dir = place.home.join("config/hooks");
    write(&dir, &[("mine", OWN_WORKER)]);
    mode(&dir.join("mine"), 0o755);
    for round in ["asked", "remembered"] {
        let discovered = search(&place)
            .data_dir(Some(place.data()))
            .lenient(true)
            .discover()
            .await
            .unwrap();
        assert!(discovered.warnings.is_empty(), "{:?}", discovered.warnings);
        let engine = engine(discovered);
        let ids: Vec<String> = engine
            .hooks()
            .iter()
            .map(|hook| hook.id.to_string())
            .collect();
        assert_eq!(ids, ["mine:guard"], "{round}");
        let hooks = engine.dispatcher(Origin::default());
        let call = |cmd: &str| PreToolUse::new("shell").with_tool_input([("cmd", cmd)]);
        let outcome = hooks.dispatch(call("sudo ls")).await;
        assert_eq!(outcome.decision().reason(), Some("no sudo here"), "{round}");
        assert_eq!(
            hooks.dispatch(call("ls")).await.decision().reason(),
            None,
            "{round}"
        );
    }
}

#[tokio::test]
async fn a_script_that_says_so_has_a_worker_of_its_own() {
    let place = Place::new();
    let script = "import os\nfrom tenterhook import deny, on\n\n@on('pre_tool_use')\ndef guard(event):\n    return deny(str(os.getpid()))\n";
    let alone = format!("# tenterhook: isolate\n{script}");
    let dir = place.home.join("config/hooks");
    write(
        &dir,
        &[
            ("a.py", script),
            ("b.py", script),
            ("c.py", &alone),
            ("d.py", &alone),
        ],
    );
    let discovered = search(&place).lenient(true).discover().await.unwrap();
    let mut pids = Vec::new();
    for spec in discovered.specs {
        let engine = Engine::new();
        engine.register(HookSpec {
            timeout: AMPLE,
            ..spec
        });
        let outcome = engine
            .dispatcher(Origin::default())
            .dispatch(PreToolUse::default())
            .await;
        pids.push(outcome.decision().reason().unwrap().to_owned());
    }
    assert_eq!(pids.len(), 4);
    assert_eq!(pids[0], pids[1]);
    let others: std::collections::BTreeSet<&String> = pids.iter().collect();
    assert_eq!(others.len(), 3, "{pids:?}");
}

fn denied() -> PreToolUse {
    PreToolUse::new("shell")
}

/// Checks that files with this text do not affect the guards beside them.
async fn guards_hold_beside(bad: &str) {
    let guard = "export default (pi: any) => { pi.on('tool_call', async () => ({ block: true, reason: 'GUARD' })); };";
    let slow = format!("await new Promise((r) => setTimeout(r, 50));\n{guard}");
    let place = Place::new();
    let dir = place.home.join(".pi/agent/extensions");
    write(
        &dir,
        &[
            ("a.ts", bad),
            ("b.ts", bad),
            ("c.ts", bad),
            ("guard.ts", &slow),
            ("next.ts", guard),
        ],
    );
    let search = search(&place)
        .lenient(true)
        .deadline(Duration::from_secs(10));
    let discovered = search.discover().await.unwrap();
    let hooks: Vec<String> = discovered
        .specs
        .iter()
        .map(|spec| spec.id.to_string())
        .collect();
    assert_eq!(hooks, ["guard.ts:tool_call", "next.ts:tool_call"]);
    for spec in discovered.specs {
        let engine = Engine::new();
        engine.register(spec);
        let hooks = engine.dispatcher(Origin::default());
        let outcome = hooks.dispatch(denied()).await;
        assert_eq!(outcome.decision().reason(), Some("GUARD"));
    }
}

#[tokio::test]
async fn a_guard_is_in_force_beside_files_that_hang() {
    guards_hold_beside("export default (pi: any) => { for (;;); };").await;
}

#[tokio::test]
async fn a_guard_is_in_force_beside_files_that_exit() {
    guards_hold_beside("process.exit(3);").await;
}

#[tokio::test]
async fn a_guard_is_in_force_beside_files_that_break_later() {
    let text =
        "export default (pi: any) => { setTimeout(() => { throw new Error('later'); }, 0); };";
    guards_hold_beside(text).await;
}

#[tokio::test]
async fn scripts_are_asked_at_every_start() {
    let place = Place::new();
    let dir = place.home.join("config/hooks");
    let text = "import os\nfrom tenterhook import deny, on\n\n@on('stop')\ndef stop(event):\n    pass\n\nif os.path.exists('FLAG'):\n    \
                @on('pre_tool_use')\n    def guard(event):\n        return deny('GUARD')\n";
    let flag = place.home.join("flag");
    write(
        &dir,
        &[("a.py", &text.replace("FLAG", flag.to_str().unwrap()))],
    );
    for expected in [1, 2] {
        let discovered = search(&place)
            .data_dir(Some(place.data()))
            .lenient(true)
            .discover()
            .await
            .unwrap();
        assert_eq!(discovered.specs.len(), expected);
        fs::write(&flag, "").unwrap();
    }
}

#[tokio::test]
async fn an_executable_that_prints_json_is_no_worker() {
    let place = Place::new();
    let dir = place.home.join("config/hooks");
    let text = "#!/bin/sh\necho '{\"hooks\":[{\"name\":\"a\",\"event\":\"stop\"}]}'\n";
    write(&dir, &[("mine", text)]);
    mode(&dir.join("mine"), 0o755);
    let discovered = search(&place).lenient(true).discover().await.unwrap();
    assert!(discovered.specs.is_empty());
    let message = &discovered.broken[0].problems[0].message;
    assert!(message.contains("it printed JSON"), "{message}");
}

#[tokio::test]
async fn an_entry_of_an_approved_extension_may_load_another_one() {
    let place = Place::new();
    let folder = place.project.join(".pi/extensions/ext");
    let lists = r#"{"pi": {"extensions": ["a.ts", "b.ts"]}}"#;
    let a = "import './b.ts';\nexport default (pi) => { pi.on('tool_call', () => {}); };\n";
    write(
        &folder,
        &[("package.json", lists), ("a.ts", a), ("b.ts", PI)],
    );
    let search = || {
        let approvals = Arc::new(Approvals::open(&place.data()).unwrap());
        search(&place).trust(Trust::Review(approvals))
    };
    let brought = search()
        .lenient(true)
        .discover()
        .await
        .unwrap()
        .project_hooks;
    let items: Vec<_> = brought.into_iter().map(|brought| brought.item).collect();
    let mut approvals = Approvals::open(&place.data()).unwrap();
    approvals.approve(&items).unwrap();
    let discovered = search().lenient(true).discover().await.unwrap();
    assert_eq!(discovered.warnings, [""; 0]);
    assert_eq!(discovered.specs.len(), 2);
}
