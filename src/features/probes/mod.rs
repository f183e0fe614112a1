//! The HTTP endpoints of the operator: Kopf's liveness endpoint, `/healthz`, `/livez`, `/readyz`, and `/metrics`.
//!
//! `server.rs` serves HTTP, `routes.rs` responds, `report.rs` evaluates the health of the parts, `liveness.rs` runs the probe handlers,
//! `exposition.rs` writes the metrics that `calls.rs` and others count. Only the liveness path waits for a script.

mod calls;
mod endpoint;
mod exposition;
mod liveness;
mod pauses;
mod report;
mod routes;
mod server;
#[cfg(test)]
mod tests;

pub use self::{
    calls::CountedScripts,
    endpoint::{ProbeEndpoint, UrlError},
    liveness::Liveness,
    pauses::follow_pauses,
    routes::{ProbeResponse, Routes},
    server::{BindError, Listener},
};
