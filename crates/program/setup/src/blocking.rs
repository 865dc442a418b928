//! Work that blocks a thread, such as reading files.

use tenterhook_agent::CancellationToken;

use crate::error::CliError;
use crate::exit::Exit;

/// Runs blocking work on its own thread, which does not keep the program from ending. Returns when `token` is
/// cancelled, although the work continues.
pub async fn run_blocking<T: Send + 'static>(
    token: &CancellationToken,
    work: impl FnOnce() -> Result<T, CliError> + Send + 'static,
) -> Result<T, CliError> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().spawn(move || sender.send(work()).ok());
    thread.map_err(|error| CliError::new(Exit::Failed, "cannot start a thread").cause(&error))?;
    tokio::select! {
        biased;
        () = token.cancelled() => Err(CliError::new(Exit::Interrupted, "interrupted")),
        result = receiver => result.unwrap_or_else(|_| {
            Err(CliError::new(Exit::Failed, "tenterhook panicked")
                .hint("this is a bug; please report it with the message above"))
        }),
    }
}
