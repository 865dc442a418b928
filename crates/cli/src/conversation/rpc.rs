//! `tenterhook run --mode rpc`: a program controls the conversation over JSON-RPC 2.0, with one message per line on
//! stdin and stdout.
//!
//! `method.rs` has the table of methods, and `server.rs` handles requests. [`tenterhook_terminal::rpc`] reads requests,
//! and asks the program the questions that a person would be asked. `docs/reference/rpc.md` is the contract.

mod method;
mod options;
mod server;
