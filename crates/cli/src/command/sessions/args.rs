//! The options of `tenterhook sessions`, and the folder of sessions that `tenterhook run` shares with it.

use std::path::PathBuf;

use crate::session_dir_args::SessionDirArgs;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,

    /// The folder that the agent worked in.
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,

    #[command(flatten)]
    pub(crate) dir: SessionDirArgs,

    /// Print a single JSON object.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the sessions, the most recently written first.
    List,
    /// Show the tree of a session, one entry per line.
    Show {
        /// The session's id, or the beginning of it.
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Print the conversation of a session in full, as Markdown.
    Export {
        /// The session's id, or the beginning of it.
        #[arg(value_name = "ID")]
        id: String,
    },
}
