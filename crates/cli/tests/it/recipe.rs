//! `run --recipe` and `run --no-hooks`.

use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::stage::Test;

/// A hook that creates one file when it is asked for its event, and another file when it runs.
fn marks(event: &str) -> String {
    format!(
        "#!/bin/sh\n[ \"$1\" = hook ] && {{ echo asked >> marks; echo {event}; exit; }}\ncat >> seen; echo >> seen\n"
    )
}

const COMPACT: &str = "turns: [{text: all of it}, {text: and on}]";

/// Returns the last request to the model: the role and text of each message except the system prompt.
fn asked_last(text: &str) -> Vec<String> {
    let event: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let messages = event["messages"].as_array().unwrap().iter().skip(1);
    messages
        .map(|message| {
            let part = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
            format!("{}: {}", part("role"), part("content"))
        })
        .collect()
}

const ASKED: &str =
    "hooks: [{event: before_llm_call, command: cat >> asked.log; echo >> asked.log}]";

#[test]
fn the_shipped_recipe_compacts_a_conversation() {
    let ran = Test::new()
        .args(["run", "--recipe", "compact", "--no-journal", "be brief"])
        .script(COMPACT)
        .hooks(ASKED)
        .executable("../home/.kodelet/hooks/turn", &marks("turn_end"))
        .run();
    assert_eq!(
        (ran.stdout.as_str(), ran.status),
        ("all of it\n", 0),
        "{}",
        ran.stderr
    );
    let asked = asked_last(&ran.file("asked.log"));
    assert!(
        asked[0].starts_with("user: Write a summary of this conversation"),
        "{asked:?}"
    );
    assert!(asked[0].ends_with("\n\nbe brief"), "{asked:?}");
    let turn = &ran.lines("seen")[0];
    assert_eq!(
        (&turn["recipe_name"], &turn["turn_number"]),
        (&"compact".into(), &1.into())
    );
}

#[test]
fn a_recipe_of_the_project_has_tools_and_handlers_of_its_own() {
    let recipe = "---\nallowed_tools: [read_file]\nhooks: {turn_end: {handler: swap_context}}\n---\nLook at it.\n";
    let script =
        "turns: [{tool_calls: [{name: shell, arguments: {cmd: touch ran}}]}, {text: it is so}]";
    let ran = Test::new()
        .args(["run", "--recipe", "look", "--no-journal", "--yes"])
        .executable(".kodelet/recipes/look.md", recipe)
        .script(script)
        .hooks(ASKED)
        .run();
    assert_eq!(
        (ran.stdout.lines().last(), ran.status),
        (Some("it is so"), 0),
        "{}",
        ran.stderr
    );
    assert!(!ran.path("work/ran").exists());
    let asked = asked_last(&ran.file("asked.log"));
    assert!(
        asked
            .last()
            .unwrap()
            .contains("The tool `shell` is disabled."),
        "{asked:?}"
    );
}

// kodelet's own recipe `intro.md` has this restriction. Tenterhook has no tool `thinking`.
#[test]
fn a_recipe_that_allows_a_tool_which_is_missing_here_runs_with_a_warning_and_the_other_tools() {
    let recipe = |tools: &str| {
        format!(
            "---\nname: Personal Introduction\ndescription: Writes an introduction\nallowed_tools: \"{tools}\"\n\
             allowed_commands: []\n---\n\nMy name is {{{{.name}}}}, a {{{{.occupation}}}}.\n"
        )
    };
    let script = "turns: [{tool_calls: [{name: write_file, arguments: {path: introduction.txt, content: Ada}}]}, \
                  {tool_calls: [{name: read_file, arguments: {path: introduction.txt}}]}, {text: done}]";
    let run = |tools: &str| {
        Test::new()
            .args(["run", "--no-journal", "--yes", "--recipe", "intro"])
            .args(["--arg", "name=Ada", "--arg", "occupation=programmer"])
            .executable(".kodelet/recipes/intro.md", &recipe(tools))
            .script(script)
            .hooks(ASKED)
            .run()
    };
    let ran = run("thinking,file_write");
    assert_eq!((ran.stdout.lines().last(), ran.status), (Some("done"), 0));
    let warning =
        "warning: the recipe `intro` allows the tool `thinking`, which this agent does not have\n";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    assert_eq!(ran.file("introduction.txt"), "Ada");
    let asked = asked_last(&ran.file("asked.log"));
    let refused = "The tool `read_file` is disabled.";
    assert!(asked.last().unwrap().contains(refused), "{asked:?}");
    // If no tool is left, the agent has none.
    let ran = run("thinking");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(!ran.path("work/introduction.txt").exists());
}

#[test]
fn a_plugin_s_recipe_gets_arguments_and_limits_commands_and_is_named_as_it_was_called() {
    let recipe = "---\nname: Say Hello\nworkflow: true\nallowed_tools: bash\nallowed_commands: echo *\narguments: {mood: {default: well}}\n---\nI am {{.name}}, {{.mood}}. {{bash \"echo\" .name}}{{bash \"no-such-program\"}}\n";
    let script =
        "turns: [{tool_calls: [{name: shell, arguments: {cmd: touch ran}}]}, {text: done}]";
    let test = |flags: &[&str]| {
        Test::new()
            .args([
                "run",
                "--no-journal",
                "--yes",
                "--recipe",
                "org/repo/say/hello",
            ])
            .args(["--arg", "name=Ada"])
            .args(flags.iter().copied())
            .executable(".kodelet/plugins/org@repo/recipes/say/hello.md", recipe)
            .executable("../home/.kodelet/hooks/turn", &marks("turn_end"))
            .script(script)
            .hooks(ASKED)
            .run()
    };
    let ran = test(&["--recipe-commands"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let asked = asked_last(&ran.file("asked.log"));
    let expected = "user: I am Ada, well. Ada[ERROR executing command 'no-such-program': ";
    assert!(asked[0].starts_with(expected), "{asked:?}");
    let refused = "`touch ran` is not one of the commands that this agent may run";
    assert!(asked.last().unwrap().contains(refused), "{asked:?}");
    assert!(!ran.path("work/ran").exists());
    assert_eq!(ran.lines("seen")[0]["recipe_name"], "org/repo/say/hello");
    let ran = test(&[]);
    let (stderr, status) = ran.refusal();
    assert!(
        stderr.contains("add `--recipe-commands`") && status == 64,
        "{stderr}"
    );
}

// A project may contain a recipe, and links to and from it. None of them makes the recipe the user's own.
#[test]
fn a_project_s_recipe_runs_no_command_if_a_path_through_the_user_s_folder_leads_to_it() {
    let recipe = "Look. {{bash \"touch\" \"ran\"}}\n";
    let own = "../home/.kodelet/recipes";
    let test = |recipe_of: &dyn Fn(&Test) -> String| {
        let test = Test::new()
            .file("attack.md", recipe)
            .file(".kodelet/recipes/named.md", recipe)
            .file(&format!("{own}/own.md"), recipe)
            .file("../config/recipes/configured.md", recipe)
            .script("turns: [{text: done}]");
        let recipes = test.home().join(".kodelet/recipes");
        symlink(test.work().join("attack.md"), recipes.join("link.md")).unwrap();
        symlink(test.work(), recipes.join("folder")).unwrap();
        let called = recipe_of(&test);
        test.args(["run", "--no-journal", "--recipe", &called])
            .run()
    };
    let absolute = |path: &'static str| {
        move |test: &Test| {
            let home = test.home();
            let path = home.join(".kodelet/recipes").join(path);
            path.to_str().unwrap().to_owned()
        }
    };
    let relative = |path: &'static str| move |_: &Test| path.to_owned();
    let attacks: [&dyn Fn(&Test) -> String; 9] = [
        &relative("named"),
        &relative("link"),
        &relative("folder/attack"),
        &relative("./attack.md"),
        &relative("../home/.kodelet/recipes/../../../work/attack.md"),
        &relative("../home/.kodelet/recipes/folder/attack.md"),
        &absolute("../../../work/attack.md"),
        &absolute("link.md"),
        &absolute("folder/attack.md"),
    ];
    for attack in attacks {
        let ran = test(attack);
        let (stderr, status) = ran.refusal();
        assert!(stderr.contains("add `--recipe-commands`"), "{stderr}");
        assert_eq!(status, 64);
        assert!(!ran.path("work/ran").exists(), "{stderr}");
    }
    let of_the_user: [&dyn Fn(&Test) -> String; 4] = [
        &relative("own"),
        &relative("configured"),
        &relative("../home/.kodelet/recipes/own.md"),
        &absolute("own.md"),
    ];
    for own in of_the_user {
        let ran = test(own);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        assert!(ran.path("work/ran").exists());
    }
}

#[test]
fn a_recipe_that_is_not_there_or_broken_is_refused() {
    let ran = Test::new()
        .args(["run", "--recipe", "compct"])
        .script(COMPACT)
        .run();
    let expected = "error: there is no recipe `compct`\nhint: available: compact\n";
    assert_eq!(ran.refusal(), (expected, 64));
    let ran = Test::new()
        .args(["run", "--recipe", "./r.md"])
        .file(
            "r.md",
            "---\nhooks: {turn_end: {handler: swapcontext}}\n---\nx\n",
        )
        .script(COMPACT)
        .run();
    let (stderr, status) = ran.refusal();
    assert!(
        stderr.contains("there is no handler `swapcontext`"),
        "{stderr}"
    );
    assert!(stderr.contains("swap_context") && status == 3, "{stderr}");
}

// K-H2, K-H13: without hooks, no executable is called, and a recipe is only a prompt.
#[test]
fn without_hooks_nothing_is_even_asked() {
    let test = |flag: &[&str]| {
        Test::new()
            .args(["run", "--recipe", "compact", "--no-journal"])
            .args(flag.iter().copied())
            .executable("../home/.kodelet/hooks/turn", &marks("turn_end"))
            .executable("../home/.kodelet/hooks/user", &marks("user_message_send"))
            .executable(".kodelet/hooks/local", &marks("turn_end"))
            .script(COMPACT)
            .run()
    };
    let ran = test(&["--no-hooks"]);
    assert_eq!((ran.stdout.as_str(), ran.status), ("all of it\n", 0));
    assert_eq!(ran.stderr, "warning: no hooks run\n");
    assert!(!ran.path("work/marks").exists() && !ran.path("work/seen").exists());
    let ran = test(&[]);
    assert!(ran.path("work/seen").exists());
    let ran = Test::new()
        .args(["run", "go", "--no-hooks", "--hook-stop", "true"])
        .run();
    let (stderr, status) = ran.refusal();
    assert!(
        stderr.contains("cannot be used with") && status == 64,
        "{stderr}"
    );
}

#[test]
fn without_hooks_an_agent_file_still_says_who_runs() {
    let agent = "agents: {root: {instruction: Be kind., model: 'scripted:script.yaml', hooks: {pre_tool_use: [{hooks: [{type: command, command: exit 2}]}]}}}";
    let script =
        "turns: [{tool_calls: [{name: shell, arguments: {cmd: touch ran}}]}, {text: done}]";
    let ran = Test::new()
        .args([
            "run",
            "go",
            "--yes",
            "--no-journal",
            "--no-hooks",
            "--hooks",
            "agent.yaml",
        ])
        .file("agent.yaml", agent)
        .file("script.yaml", script)
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.path("work/ran").exists());
}

// K-H14: a model call by the program itself is not a message of the user.
#[test]
fn a_compaction_is_no_message_of_the_user() {
    let ran = Test::new()
        .args(["run", "--no-journal"])
        .stdin("hello\n/compact\n")
        .script("turns: [{text: hi}, {summary: short}]")
        .executable("../home/.kodelet/hooks/user", &marks("user_message_send"))
        .run();
    let messages: Vec<Value> = ran
        .lines("seen")
        .iter()
        .map(|event| event["message"].clone())
        .collect();
    assert_eq!(messages, ["hello"]);
}

// K-H22: the hooks of two calls of one answer run in parallel, because each waits for the other.
#[test]
fn hooks_of_parallel_calls_meet() {
    let meets = "#!/bin/sh
[ \"$1\" = hook ] && { echo before_tool_call; exit; }
case $(cat) in *'\"file_path\":\"a\"'*) mine=a;; *) mine=b;; esac
touch met-$mine
while [ ! -e met-a ] || [ ! -e met-b ]; do sleep 0.01; done
";
    let script = "turns: [{tool_calls: [{name: read_file, arguments: {path: a}}, {name: read_file, arguments: {path: b}}]}, {text: done}]";
    let ran = Test::new()
        .args(["run", "go", "--yes", "--no-journal"])
        .file("a", "one")
        .file("b", "two")
        .script(script)
        .executable("../home/.kodelet/hooks/meets", meets)
        .run();
    assert_eq!(
        (ran.stdout.lines().last(), ran.status),
        (Some("done"), 0),
        "{}",
        ran.stderr
    );
    assert!(ran.path("work/met-a").exists() && ran.path("work/met-b").exists());
}

// K-H17: the user sees the reason.
#[test]
fn a_blocked_message_says_so() {
    let blocks = "#!/bin/sh\n[ \"$1\" = hook ] && { echo user_message_send; exit; }\necho '{\"blocked\":true,\"reason\":\"r\"}'\n";
    let ran = Test::new()
        .args(["run", "go", "--no-journal"])
        .script("turns: [{text: never}]")
        .executable("../home/.kodelet/hooks/blocks", blocks)
        .run();
    assert!(
        ran.stderr.contains("message blocked by hook: r"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.status, 2);
}
