//! The pure parts. The rest is tested through the API, in `tests/it/cluster`.

mod connect;
mod decode;
mod dial;
mod failure;
mod lines;
mod login;
mod native;
mod reason;
mod retry;
mod service_account;
mod transport;
mod url;
