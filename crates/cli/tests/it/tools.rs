//! `tenterhook tools`.

use crate::stage::{Ran, Test};

fn tools(args: &[&str]) -> Ran {
    let args = args.iter().copied();
    Test::new().args(["tools"]).args(args).run()
}

#[test]
fn the_list_has_every_tool_with_its_arguments_and_its_other_names() {
    let ran = tools(&[]);
    let (stdout, stderr, status) = ran.all();
    assert_eq!((stderr, status), ("", 0));
    for line in [
        "  shell  (may change files)\n",
        "    cmd      string, required. The command line.\n",
        "kodelet `bash`",
        "Tools that other agents have\n",
        "`tenterhook tools NAME` shows one tool.",
    ] {
        assert!(stdout.contains(line), "{line}\n{stdout}");
    }
}

#[test]
fn every_systems_name_leads_to_the_tool() {
    let ran = tools(&["bash"]);
    let (stdout, stderr, status) = ran.all();
    assert_eq!((stderr, status), ("", 0));
    let start =
        "`bash` is the name of `shell` in kodelet, pi and copilot.\n\nshell\n  Runs a command line";
    assert!(stdout.starts_with(start), "{stdout}");
    assert!(
        stdout.contains("  kodelet       `bash`: `command` → `cmd`; `timeout`\n"),
        "{stdout}"
    );
    let report = tools(&["terminal", "--json"]).json();
    assert_eq!(report["tools"][0]["name"], "shell");
    assert_eq!(report["tools"][0]["names"].as_array().unwrap().len(), 16);
}

#[test]
fn the_example_of_every_tool_is_a_call_that_fire_accepts() {
    let report = tools(&["--json"]).json();
    let tools = report["tools"].as_array().unwrap();
    assert!(tools.len() > 10);
    for tool in tools {
        let example = tool["example"].as_str().unwrap();
        let words = tenterhook_shell::commands(example).remove(0);
        let ran = Test::new()
            .args(words.iter().skip(1).map(String::as_str))
            .run();
        let (_, stderr, status) = ran.all();
        assert_eq!((stderr, status), ("", 0), "{example}");
    }
}

#[test]
fn a_name_of_several_tools_shows_how_a_call_selects_one() {
    let ran = tools(&["file_manager"]);
    let (stdout, stderr, status) = ran.all();
    assert_eq!((stderr, status), ("", 0));
    for line in [
        "`file_manager` stands for several tools\n",
        "  delete_file  morphix: `file_manager` (`action`: delete): `path` or `file_path`\n",
    ] {
        assert!(stdout.contains(line), "{line}\n{stdout}");
    }
    let patch = tools(&["apply_patch"]);
    assert!(patch.all().0.contains("`input`: a patch of several files"));
}

#[test]
fn an_unknown_name_is_a_usage_error_with_the_nearest_one() {
    let expected = "error: unknown tool `shel`; did you mean `shell`?\n\
                    hint: `tenterhook tools` lists the tools\n";
    assert_eq!(tools(&["shel"]).all(), ("", expected, 64));
    let expected = "error: unknown tool `weather`\nhint: `tenterhook tools` lists the tools\n";
    assert_eq!(tools(&["weather"]).all(), ("", expected, 64));
}
