//! Helpers for the tests of the built-ins.

use std::sync::{Arc, LazyLock};

use tenterhook_engine::Dialect;
use tenterhook_systems::native::Native;

use tenterhook_runners::Services;

use super::row::BuiltinConfig;

static SERVICES: LazyLock<Services> = LazyLock::new(Services::default);
static DIALECT: LazyLock<Arc<dyn Dialect>> = LazyLock::new(Native::new);

/// Returns a configuration with only these arguments.
pub(super) fn setup(arguments: &[String]) -> BuiltinConfig<'_> {
    BuiltinConfig {
        arguments,
        env: &[],
        working_dir: None,
        services: &SERVICES,
        events: &[],
        dialect: &DIALECT,
    }
}
