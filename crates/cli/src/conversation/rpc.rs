//! `tenterhook run --mode rpc`: a program controls the conversation over JSON-RPC 2.0, with one message per line on
//! stdin and stdout.
//!
//! `caller.rs` reads requests, `method.rs` has the table of methods, and `server.rs` handles requests. `client.rs`
//! asks the program the questions that a person would be asked. `docs/reference/rpc.md` is the contract.

pub(super) mod caller;
pub(super) mod client;
mod method;
mod options;
mod server;
