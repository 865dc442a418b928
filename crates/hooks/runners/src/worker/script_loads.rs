//! Loads several scripts of one worker one after another.

use std::fmt;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::MutexGuard;

use super::connection::Connection;
use super::error::WorkerError;
use super::load_request::request_load;
use super::script::{Registered, Script};
use super::scripts::{Scripts, Worker};
use super::source_ahead::read_ahead;
use super::supervisor::State;

/// How many scripts a worker is asked to load at once. It has the next request when it is done with a script, so it
/// never waits for this process.
const MAX_REQUESTED: usize = 2;

/// Scripts that a worker loads, in order. Nothing else is loaded in the worker while this exists.
pub struct ScriptLoads<'a> {
    state: MutexGuard<'a, State<Scripts>>,
    connection: Arc<Connection>,
    answers: BoxStream<'static, Answer>,
}

/// The number of a script, the script, and what it registers.
type Answer = (usize, Script, Result<Registered, WorkerError>);

impl Worker {
    /// Loads or reloads scripts, one after another. If they are not awaited, the remaining scripts are not loaded.
    ///
    /// # Errors
    /// Fails if the worker cannot be started.
    #[expect(
        clippy::async_yields_async,
        reason = "a source is awaited before the request of the next script is made, and an answer is not"
    )]
    pub async fn load_all(&self, scripts: &[Script]) -> Result<ScriptLoads<'_>, WorkerError> {
        // The sources are read while the worker starts.
        let sources = read_ahead(scripts);
        let mut state = self.inner.state().await;
        let connection = self.inner.connect(&mut state).await?;
        let peer = &mut state.peer;
        let numbered: Vec<_> = scripts
            .iter()
            .map(|script| (peer.reserve(script), script.clone()))
            .collect();
        let (host, to) = (Arc::clone(&peer.host), Arc::clone(&connection));
        // A request is made only after the source of the script was awaited, so requests keep their order.
        let requests = stream::iter(numbered.into_iter().zip(sources)).then(
            move |((number, script), source)| {
                let (host, to) = (Arc::clone(&host), Arc::clone(&to));
                async move {
                    let source = match source {
                        Some(source) => source.await.ok(),
                        None => None,
                    };
                    async move {
                        let source = source.as_ref();
                        let loaded = request_load(&to, number, &script, source, &*host).await;
                        (number, script, loaded)
                    }
                }
            },
        );
        Ok(ScriptLoads {
            answers: requests.buffered(MAX_REQUESTED).boxed(),
            state,
            connection,
        })
    }
}

impl ScriptLoads<'_> {
    /// Returns the number of the next script and what it registers, or `None` after the last script.
    pub async fn next(&mut self) -> Option<Result<(usize, Registered), WorkerError>> {
        let (number, script, loaded) = self.answers.next().await?;
        Some(loaded.map(|registered| {
            self.connection.accept(number);
            let hooks = registered.hooks.clone();
            self.state.peer.put(number, &script, hooks);
            (number, registered)
        }))
    }

    /// Returns whether the worker still runs. If it has ended, the remaining scripts fail.
    pub fn is_running(&self) -> bool {
        self.connection.death().is_none()
    }
}

impl fmt::Debug for ScriptLoads<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptLoads")
            .field("is_running", &self.is_running())
            .finish_non_exhaustive()
    }
}
