//! The HTTPS server of admission webhooks: receives reviews from API servers, and passes them to the operator.
//!
//! `server.rs` opens the socket and publishes its address; `connection.rs` handles TLS and HTTP; `tls.rs` holds the current certificate;
//! `generated.rs`, `files.rs` and `secret.rs` are the sources of certificates; `peer.rs` describes the certificates of clients;
//! `this_machine.rs` and `tunnel.rs` find the published address. `local.rs` is the same without a network, for embedded servers.

mod connection;
mod files;
mod generated;
mod local;
mod peer;
mod secret;
mod server;
mod this_machine;
mod tls;
mod tunnel;

pub use self::{
    local::LocalWebhooks,
    server::{GuardedWebhooks, HttpsWebhooks},
};
