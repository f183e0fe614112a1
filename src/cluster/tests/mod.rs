//! The pure parts. `tests/it/cluster` tests everything else through the API.

mod connect;
mod decode;
mod dial;
mod failure;
mod lines;
mod login;
mod native;
mod reason;
mod recent;
mod retry;
mod service_account;
mod transport;
