//! The pages in `docs/reference/`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tenterhook_engine::EventKind;
use tenterhook_systems::HOSTS;
use tenterhook_systems::pi::members::{INTERFACES, PiMemberState, VERSION};
use tenterhook_systems::tools::{CANONICAL_TOOLS, known_tool_names};
use tenterhook_terminal::reference::{
    EventPage, GROUPS, TextLine, ToolPage, find_tool, host_details, host_overview, host_table,
    list_lines, markdown, page_lines, tool_list_lines, tool_page_lines,
};

/// Set it to write the pages instead of comparing them.
const UPDATE: &str = "TENTERHOOK_INTERNAL__UPDATE_DOCS";

/// The lines around the generated part of a page that is otherwise written by hand.
const BEGIN: &str = "<!-- generated: the tables below come from the crate `reference` -->\n\n";
const END: &str = "<!-- end of the generated tables -->\n";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference")
}

/// Compares a page with the one that is written down, or writes it.
fn compare(path: &str, expected: &str) {
    compare_file(&folder().join(path), expected);
}

/// Compares a file with the one that is written down, or writes it.
pub(crate) fn compare_file(path: &Path, expected: &str) {
    let written = fs::read_to_string(path).unwrap_or_default();
    if written != expected && std::env::var_os(UPDATE).is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, expected).unwrap();
        return;
    }
    assert!(
        written == expected,
        "{} is out of date: run the test with {UPDATE}=1 and look at the difference",
        path.display()
    );
}

/// Compares the generated part of a page.
fn compare_part(path: &str, part: &str) {
    let written = fs::read_to_string(folder().join(path)).unwrap();
    let (before, rest) = written.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    compare(path, &format!("{before}{BEGIN}{part}{END}{after}"));
}

#[test]
fn the_host_matrix_is_what_the_tables_of_the_hosts_say() {
    let part = format!("{}\n{}", host_overview(), host_details());
    compare_part("host-matrix.md", &part);
}

#[test]
fn the_page_of_the_members_of_pi_is_what_the_table_says() {
    let mut part = format!("The members of pi {VERSION}:\n");
    for interface in INTERFACES {
        let (name, written) = (interface.name, interface.written);
        let description = interface.description;
        write!(
            part,
            "\n## {name}\n\n{description} Extensions usually call it `{written}`.\n\n| member | here | why not, and what to use instead |\n|---|---|---|\n",
        )
        .unwrap();
        for (member, state) in interface.members {
            let (state, reason) = match state {
                PiMemberState::Implemented => ("implemented", ""),
                PiMemberState::Bridged => ("bridged", ""),
                PiMemberState::Refused(reason) => ("refused", *reason),
            };
            writeln!(part, "| `{written}.{member}` | {state} | {reason} |").unwrap();
        }
    }
    part.push('\n');
    compare_part("pi-members.md", &part);
}

#[test]
fn every_host_has_a_page_with_its_table() {
    let names: BTreeSet<String> = HOSTS
        .iter()
        .map(|host| format!("{}.md", host.name))
        .collect();
    let found = fs::read_dir(folder().join("../how-to/hosts")).unwrap();
    let found = found.map(|entry| entry.unwrap().file_name().display().to_string());
    assert_eq!(
        found.collect::<BTreeSet<String>>(),
        names,
        "`docs/how-to/hosts` has one page for each host: copy the page of a similar one"
    );
    let readme = fs::read_to_string(folder().join("../../README.md")).unwrap();
    for host in HOSTS {
        assert!(readme.contains(host.title), "README lacks {}", host.title);
        let path = format!("../how-to/hosts/{}.md", host.name);
        compare_part(&path, &host_table(host));
        let page = fs::read_to_string(folder().join(&path)).unwrap();
        assert!(page.contains(&format!("# Guard {}", host.title)), "{path}");
    }
}

#[test]
fn the_pages_of_events_are_what_the_program_knows() {
    let pages = markdown::pages();
    for (path, page) in &pages {
        compare(path, page);
    }
    let expected: BTreeSet<String> = pages.into_iter().map(|(path, _)| path).collect();
    let found = fs::read_dir(folder().join("events")).unwrap();
    let found: BTreeSet<String> = found
        .map(|entry| format!("events/{}", entry.unwrap().file_name().display()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn the_list_of_events_is_the_catalogue() {
    compare_part("events.md", &markdown::index());
}

#[test]
fn the_page_of_names_is_what_the_tables_of_the_systems_say() {
    compare_part("names.md", &markdown::names());
}

#[test]
fn the_page_of_tools_is_what_the_tables_say() {
    compare_part("tools.md", &markdown::tools());
}

#[test]
fn every_canonical_tool_has_a_page_and_no_tool_has_two() {
    let pages = ToolPage::all();
    let names: BTreeSet<&str> = pages.iter().map(|page| page.name.as_str()).collect();
    assert_eq!(names.len(), pages.len());
    for tool in CANONICAL_TOOLS {
        let page = ToolPage::of(tool.name).unwrap();
        let arguments: BTreeSet<String> = page
            .arguments
            .into_iter()
            .map(|argument| {
                format!(
                    "{}{}",
                    argument.name,
                    if argument.required { "" } else { "?" }
                )
            })
            .collect();
        // The tables of the systems translate to the arguments that the tool has.
        let expected: BTreeSet<String> =
            tool.arguments.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(arguments, expected, "{}", tool.name);
    }
    // A call of a tool that the agent has is not taken for a misspelt one.
    let known = known_tool_names();
    assert!(names.iter().all(|name| known.contains(name)), "{known:?}");
    let shell = ToolPage::of("shell").unwrap();
    assert!(!shell.is_read_only && shell.is_of_agent);
    assert_eq!(shell.arguments[0].name, "cmd");
    assert_eq!(shell.arguments[0].meaning, "The command line.");
    assert!(
        shell
            .names
            .iter()
            .any(|row| (row.system, row.name) == ("pi", "bash"))
    );
    assert!(
        ToolPage::of("transfer_task")
            .unwrap()
            .meaning
            .ends_with("its answer.")
    );
}

#[test]
fn a_tool_is_found_by_the_name_of_every_system() {
    let find = |name: &str| {
        let found = find_tool(name).into_iter();
        found
            .map(|found| (found.name, found.systems))
            .collect::<Vec<_>>()
    };
    assert_eq!(find("shell"), [("shell".to_owned(), vec![])]);
    assert_eq!(
        find("bash"),
        [("shell".to_owned(), vec!["kodelet", "pi", "copilot"])]
    );
    assert_eq!(find("file_manager").len(), 4);
    assert!(find("apply_patch").len() > 1);
    assert_eq!(find("shel"), []);
}

#[test]
fn the_list_of_tools_fits_a_terminal_and_has_every_argument() {
    let text = |lines: Vec<TextLine>| {
        let lines = lines.into_iter().map(|line| match line {
            TextLine::Heading(text) | TextLine::Text(text) => text,
        });
        lines.collect::<Vec<String>>()
    };
    let list = text(tool_list_lines());
    assert!(
        list.iter().all(|line| line.chars().count() <= 80),
        "{list:#?}"
    );
    for page in ToolPage::all() {
        let lines = text(tool_page_lines(&page));
        assert!(list.contains(&format!(
            "  {}  ({})",
            page.name,
            if page.is_read_only {
                "only reads"
            } else {
                "may change files"
            }
        )));
        for argument in &page.arguments {
            let start = format!("  {}  ", argument.name);
            let is_shown = |line: &String| line.starts_with(start.trim_end());
            assert!(
                lines.iter().any(is_shown),
                "{}: {start}\n{lines:#?}",
                page.name
            );
        }
        assert!(lines.last().unwrap().ends_with(&page.example));
    }
}

#[test]
fn the_list_of_events_marks_those_that_run_never_fires() {
    let lines: Vec<String> = list_lines()
        .into_iter()
        .map(|line| match line {
            TextLine::Heading(text) | TextLine::Text(text) => text,
        })
        .collect();
    let has = |start: &str| lines.iter().any(|line| line.starts_with(start));
    for start in [
        "* channel_connect ",
        "  pre_tool_use ",
        "  x-<vendor>.<name> ",
        "  *         ",
    ] {
        assert!(has(start), "{start}\n{lines:#?}");
    }
}

#[test]
fn a_group_is_a_source_file_of_the_catalogue() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core/protocol/src/event");
    for group in GROUPS {
        let file = sources.join(format!("{}.rs", group.name));
        let source = fs::read_to_string(file).unwrap();
        for kind in group.events() {
            let name = format!("\"{}\"", kind.info().name);
            assert!(
                source.contains(&name),
                "{} is not in `{}.rs`",
                name,
                group.name
            );
        }
    }
    let files = fs::read_dir(sources).unwrap().count();
    assert_eq!(files, GROUPS.len());
}

#[test]
fn pages_in_the_terminal_have_no_markdown_and_fit_the_screen() {
    for kind in EventKind::ALL {
        check_lines(page_lines(&EventPage::of(*kind)));
    }
    check_lines(list_lines());
}

fn check_lines(lines: Vec<TextLine>) {
    for line in lines {
        let (TextLine::Heading(text) | TextLine::Text(text)) = line;
        assert!(!text.contains("|---"), "{text}");
        assert!(!text.contains("]("), "{text}");
        let is_json = text.trim_start().starts_with(['{', '"', '[']);
        assert!(is_json || text.chars().count() <= 80, "{text}");
        assert_eq!(text.trim_end(), text);
    }
}
