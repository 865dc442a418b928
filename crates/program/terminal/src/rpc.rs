//! A program that uses the agent over JSON-RPC 2.0, with one message per line on stdin and stdout.
//!
//! [`RpcCaller`] reads its requests. [`RpcClient`] asks it the questions that a person would be asked. The command line
//! has the methods.

mod caller;
mod client;

pub use self::caller::RpcCaller;
pub use self::client::RpcClient;
