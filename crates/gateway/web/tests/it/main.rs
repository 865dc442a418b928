//! Tests of the hub, the server and its clients, with real connections on the loopback interface.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod clients;
mod echo_gateway;
mod follow;
mod http;
mod http_attacks;
mod http_server;
mod http_socket;
mod http_tls;
mod inspect;
mod pages;
mod socket;
mod stdio;
mod webhook;
