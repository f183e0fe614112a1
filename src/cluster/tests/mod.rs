//! The pure parts. The rest is tested through the API, in `tests/it/cluster`.

mod decode;
mod failure;
mod lines;
mod retry;
mod url;
