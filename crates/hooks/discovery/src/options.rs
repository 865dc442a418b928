//! The options of loading hooks.

use std::path::PathBuf;

use tenterhook_engine::Layer;
use tenterhook_hookfile::Environment;
use tenterhook_runners::Services;
use tenterhook_trust::{Approvals, Trust};

use crate::disabled::DisabledSources;

/// The options of loading hooks.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Loads the files without errors, and returns the others in
    /// [`Loaded::broken`](crate::Loaded::broken). If false, a broken file makes the whole load fail.
    pub lenient: bool,
    /// The expected working directory of events. Executables are looked up from here, to warn about
    /// missing ones.
    pub directory: PathBuf,
    /// The environment variables that files may use.
    pub environment: Environment,
    /// The services of this program that handlers may use.
    pub services: Services,
    /// Decides which hooks of the project layer run. Other layers need no approval.
    pub trust: Trust,
    /// Makes gates of the project layer that may not run deny, instead of leaving them out.
    pub deny_untrusted: bool,
    /// The files that the user has disabled. They are not read.
    pub disabled: DisabledSources,
    /// The name of the agent that runs the session, if it runs hooks of its own. The files with these hooks are
    /// not imported, so that no hook runs twice.
    pub host: Option<&'static str>,
}

impl LoadOptions {
    /// Returns options with the working directory and the environment variables of this process.
    ///
    /// They trust no hook of the project layer, because a repository may come from anyone. Set
    /// [`trust`](Self::trust) to the user's approvals to run the hooks that the user approved.
    pub fn of_process() -> Self {
        Self {
            lenient: false,
            directory: std::env::current_dir().unwrap_or_default(),
            environment: Environment::of_process(),
            services: Services::default(),
            trust: Trust::none(),
            deny_untrusted: false,
            disabled: DisabledSources::default(),
            host: None,
        }
    }

    /// Returns the approvals if they decide about the hooks of a layer.
    pub(crate) fn approvals(&self, layer: Layer) -> Option<&Approvals> {
        (layer == Layer::Project)
            .then(|| self.trust.approvals())
            .flatten()
    }
}
