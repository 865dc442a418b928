//! `tenterhook tools`: the list of tools, and everything about one.

use clap::Parser;
use serde_json::json;
use tenterhook_cases::listed;
use tenterhook_discovery::unknown_tool;
use tenterhook_terminal::output;
use tenterhook_terminal::reference::{
    ToolNameMatch, ToolPage, find_tool, tool_list_lines, tool_name_lines, tool_page_lines,
};

use crate::command::events::show;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook tools [OPTIONS] [NAME]")]
pub(crate) struct ToolsArgs {
    /// The tool, by our name or by the name that another hook system has for it. Lists all tools if you leave it out.
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn tools(args: &ToolsArgs) -> Result<Exit, CliError> {
    let Some(name) = &args.name else {
        if args.json {
            output::json(&json!({ "tools": ToolPage::all() }));
        } else {
            show(tool_list_lines());
            output::line(
                "\n`tenterhook tools NAME` shows one tool. MCP servers and extensions add others.",
            );
        }
        return Ok(Exit::Done);
    };
    let found = find_tool(name);
    if found.is_empty() {
        let message = unknown_tool(name);
        let message = message.unwrap_or_else(|| format!("unknown tool `{name}`"));
        return Err(CliError::new(Exit::Usage, message).hint("`tenterhook tools` lists the tools"));
    }
    if args.json {
        let pages = found.iter().filter_map(|found| ToolPage::of(&found.name));
        output::json(&json!({ "tools": pages.collect::<Vec<_>>() }));
    } else {
        show_found(name, &found);
    }
    Ok(Exit::Done)
}

fn show_found(name: &str, found: &[ToolNameMatch]) {
    let [only] = found else {
        show(tool_name_lines(name, found));
        output::line("\n`tenterhook tools NAME` shows one of them.");
        return;
    };
    if !only.systems.is_empty() {
        let systems = listed(&only.systems);
        output::line(format_args!(
            "`{name}` is the name of `{}` in {systems}.\n",
            only.name
        ));
    }
    if let Some(page) = ToolPage::of(&only.name) {
        show(tool_page_lines(&page));
    }
}
