//! Tests of the model server, and of real agents if they are installed.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot continue has failed; tests of real agents print the matrix"
)]

mod agent_list;
mod matrix;
mod model_server;
mod offered_tools;
mod real_agents;
mod sandbox;
mod shared_guards;
