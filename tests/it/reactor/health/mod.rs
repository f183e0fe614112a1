//! Logins, probes, health and metrics of a whole operator, on the embedded server and the paused clock; both languages.

mod cluster;
mod ending;
mod endpoint;
mod login;
mod metrics;
mod probes;
mod series;
mod starting;
mod streams;
