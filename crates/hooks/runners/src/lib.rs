//! Ways to reach a handler: commands, workers, HTTP and models, and the templates that prompts are
//! made from.
//!
//! Each way is a feature. An embedder that registers only functions compiles none of them.
//!
//! | feature | main type | a handler is |
//! |---|---|---|
//! | `command` | `CommandHandler` | a command or an executable, started for each event |
//! | `workers` | `worker::WorkerHandler` | a script or an extension in a long-lived process |
//! | `http` | `http::HttpHandler` | a web service that gets each event as a POST request |
//! | `model` | `model::ModelHandler` | a question to a model, made from a [`template`] |
//!
//! [`recipe`] has the handlers that recipes select by name. [`Services`] is what handlers need from
//! the program that runs them.

#![forbid(unsafe_code)]

#[cfg(feature = "command")]
mod command;
#[cfg(any(feature = "http", feature = "model", all(unix, feature = "workers")))]
mod exchange;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "model")]
pub mod model;
pub mod recipe;
mod services;
pub mod template;
#[cfg(all(unix, feature = "workers"))]
pub mod worker;

#[cfg(feature = "command")]
pub use command::CommandHandler;
pub use services::Services;
