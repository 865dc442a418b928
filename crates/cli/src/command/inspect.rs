//! `tenterhook inspect`: shows journals on a web page.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use clap::Parser;
use tenterhook_files::{Durability, UnfinishedFile};
use tenterhook_inspect::{
    InspectedSource, Inspector, JournalFileError, LogLimits, RecordLog, export_html, export_jsonl,
    read_journals,
};
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::blocking::run_blocking;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::journal::path_of_today;
use tenterhook_setup::warning::warn;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output;
use tenterhook_terminal::output::plural::count;

use crate::inspector_page::InspectorPage;

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook inspect [OPTIONS] [JOURNAL]...")]
pub(crate) struct InspectArgs {
    /// The journals to show, merged by time. The default is today's journal in the user's state folder.
    #[arg(value_name = "JOURNAL")]
    pub(crate) journals: Vec<PathBuf>,

    /// Write the page with all records into FILE (`.html`), or the merged journal (`.jsonl`), and end.
    #[arg(long, value_name = "FILE", value_parser = export_file)]
    pub(crate) export: Option<ExportFile>,

    /// Serve the page at ADDR, an address of this machine. Port 0 is any free port.
    #[arg(
        long,
        value_name = "ADDR",
        default_value = "127.0.0.1:0",
        value_parser = own_address,
        conflicts_with = "export"
    )]
    pub(crate) listen: SocketAddr,
}

/// A file that an export is written to.
#[derive(Debug, Clone)]
pub(crate) struct ExportFile {
    path: PathBuf,
    is_page: bool,
}

fn export_file(text: &str) -> Result<ExportFile, String> {
    let path = PathBuf::from(text);
    let is_page = match path.extension().and_then(OsStr::to_str) {
        Some("html") => true,
        Some("jsonl") => false,
        _ => return Err("expected a name that ends in `.html` or `.jsonl`".to_owned()),
    };
    Ok(ExportFile { path, is_page })
}

fn own_address(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse().ok();
    let address = address.filter(|address: &SocketAddr| address.ip().is_loopback());
    address.ok_or_else(|| "expected an address of this machine such as `127.0.0.1:0`".to_owned())
}

pub(crate) async fn inspect(args: InspectArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let paths = journals(&args)?;
    let names = paths.iter().map(|path| path.display().to_string());
    let names: Vec<String> = names.collect();
    let token = interrupts.token();
    let log = run_blocking(&token, move || {
        read_journals(&paths, LogLimits::FILES).map_err(|error| unreadable(&error))
    });
    let log = Arc::new(log.await?);
    warn_of_left_out(&log);
    if let Some(file) = args.export {
        let records = log.counts().kept;
        let written = Arc::clone(&log);
        let path = file.path.display().to_string();
        run_blocking(&token, move || export(&file, &written)).await?;
        let records = count(records, "record");
        output::line(format_args!("Wrote {records} to `{}`.", escape_line(&path)));
        return Ok(Exit::Done);
    }
    let stop = interrupts.token();
    let inspector = Inspector::new(InspectedSource::Files(names), log);
    let page = InspectorPage::bind(args.listen, "tenterhook inspect").await?;
    let link = page.link()?;
    output::line(format_args!(
        "Open {link} in a browser. The link works once. Press Ctrl-C to end."
    ));
    page.serve(Arc::new(inspector), stop).await;
    Ok(Exit::Done)
}

/// Returns the files to show, each once.
fn journals(args: &InspectArgs) -> Result<Vec<PathBuf>, CliError> {
    if args.journals.is_empty() {
        let today = path_of_today().filter(|path| path.exists());
        return today.map(|path| vec![path]).ok_or_else(|| {
            CliError::new(Exit::Failed, "nothing was recorded today")
                .hint("name a journal, as in `tenterhook inspect FILE`, or run an agent first")
        });
    }
    let mut seen = BTreeSet::new();
    let mut files = args.journals.clone();
    files.retain(|path| {
        let is_new = seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone()));
        if !is_new {
            let path = escape_line(&path.display().to_string());
            warn(format_args!(
                "`{path}` is given more than once; it is read once"
            ));
        }
        is_new
    });
    Ok(files)
}

fn unreadable(error: &JournalFileError) -> CliError {
    let folder = "name the files, as in `tenterhook inspect FOLDER/*.jsonl`";
    let error_of = CliError::of(Exit::Failed, error);
    let is_missing = |source: &std::io::Error| source.kind() == std::io::ErrorKind::NotFound;
    match error {
        JournalFileError::NotAFile { .. } => error_of.hint(folder),
        JournalFileError::Unreadable { source, .. } if is_missing(source) => error_of
            .hint("check the name, or run `tenterhook inspect` without one to see today's journal"),
        JournalFileError::Unreadable { .. } | _ => error_of,
    }
}

fn warn_of_left_out(log: &RecordLog) {
    let counts = log.counts();
    if counts.unreadable > 0 {
        let lines = usize::try_from(counts.unreadable).unwrap_or(usize::MAX);
        warn(format_args!(
            "{} of the journal cannot be read and will not be shown",
            count(lines, "line")
        ));
    }
    if counts.dropped > 0 {
        warn(format_args!(
            "only the newest {} are shown; {} older ones are left out",
            count(counts.kept, "record"),
            counts.dropped
        ));
    }
}

fn export(file: &ExportFile, log: &RecordLog) -> Result<(), CliError> {
    let written = if file.is_page {
        write_chunks(&file.path, export_html(log))
    } else {
        write_chunks(&file.path, export_jsonl(log))
    };
    written.map_err(|error| {
        let path = file.path.display();
        CliError::new(Exit::Failed, format!("cannot write `{path}`")).cause(&error)
    })
}

/// Writes a file that only its owner can read. It replaces an earlier one when it is complete.
fn write_chunks(path: &Path, chunks: impl Iterator<Item = Bytes>) -> std::io::Result<()> {
    let mut file = UnfinishedFile::create(path)?;
    for chunk in chunks {
        file.write_all(&chunk)?;
    }
    file.replace(Durability::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_is_a_page_or_a_journal() {
        assert!(export_file("a/report.html").unwrap().is_page);
        assert!(!export_file("all.jsonl").unwrap().is_page);
        for name in ["report", "report.txt", ".html", ""] {
            assert!(export_file(name).is_err(), "{name}");
        }
    }

    #[test]
    fn only_this_machine_can_reach_the_page() {
        assert!(own_address("127.0.0.1:0").is_ok() && own_address("[::1]:80").is_ok());
        for address in ["0.0.0.0:0", "192.168.1.2:80", "localhost:1", "127.0.0.1"] {
            assert!(own_address(address).is_err(), "{address}");
        }
    }
}
