//! Reads the key `unknown_tools`: what happens with calls to tools that no table has and that carry a command line.
//!
//! The key stands for a hook with the built-in of the same name.

use tenterhook_engine::{EventKind, Matcher, Phase};
use tenterhook_systems::host::HostAgent;
use tenterhook_systems::native::Native;
use tenterhook_systems::{HOSTS, tools};

use crate::declaration::{DeclaredEvent, HookAction, HookDeclaration};
use crate::definition::Definition;
use crate::fields::{Fields, wrong};
use crate::report::Report;
use crate::tree::Node;

/// The name of the key and of the built-in.
pub(crate) const UNKNOWN_TOOLS: &str = "unknown_tools";
/// The key for every agent without one of its own.
const DEFAULT: &str = "default";
/// The values of the key.
const WORDS: [&str; 3] = ["see", "ask", "deny"];

/// Reads the key. Returns the hook that it stands for, without its definition.
pub(crate) fn read(report: &mut Report, file: &Fields<'_>) -> Option<HookDeclaration> {
    let entry = file.entry(UNKNOWN_TOOLS)?;
    let args = match entry.value.as_table() {
        Some(_) => of_agents(report, &entry.value)?,
        None => vec![word(report, UNKNOWN_TOOLS, &entry.value)?.to_owned()],
    };
    Some(HookDeclaration {
        span: entry.value.span,
        events: vec![DeclaredEvent {
            name: EventKind::PreToolUse.into(),
            span: entry.key_span,
            id: UNKNOWN_TOOLS.to_owned(),
            on_error: None,
        }],
        // A tool that no table has is the shell, if it carries a command line.
        matcher: Matcher::parse("shell").ok()?,
        agent: None,
        includes_unnamed: false,
        action: HookAction::Builtin {
            name: UNKNOWN_TOOLS.to_owned(),
            args,
        },
        action_span: entry.value.span,
        timeout: None,
        working_dir: None,
        env: Vec::new(),
        strict_output: false,
        prewarm: false,
        phase: Phase::Guard,
        priority: 0,
        definition: Definition::default(),
        dialect: Native::new(),
    })
}

/// Reads the values of single agents as arguments of the built-in.
fn of_agents(report: &mut Report, node: &Node) -> Option<Vec<String>> {
    let hosts = HOSTS.iter().map(|host| host.name);
    let names: Vec<&str> = [DEFAULT, tools::NATIVE_SYSTEM]
        .into_iter()
        .chain(hosts)
        .collect();
    let fields = Fields::read(
        report,
        node,
        "`unknown_tools`",
        &names,
        crate::fields::Empty::Wrong,
    )?;
    let mut args = Vec::new();
    for entry in fields.entries() {
        let name = entry.key.as_str();
        if !names.contains(&name) {
            continue;
        }
        let word = word(report, name, &entry.value)?;
        let system = HostAgent::by_name(name).map_or(name, |host| host.tools.system);
        args.push(match name {
            DEFAULT => word.to_owned(),
            _ => format!("{system}={word}"),
        });
    }
    Some(args)
}

fn word<'a>(report: &mut Report, key: &str, node: &'a Node) -> Option<&'a str> {
    let word = node.as_text().filter(|word| WORDS.contains(word));
    word.or_else(|| wrong(report, key, node, "`see`, `ask` or `deny`"))
}
