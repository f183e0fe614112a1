#![doc = include_str!("README.md")]

pub mod call;
pub mod checker;
pub mod cli;
pub mod cluster;
pub mod features;
pub mod handling;
pub mod heap;
pub mod logic;
pub mod ports;
pub mod reactor;
pub mod scripting;
pub mod settings;
pub mod sources;
pub mod telemetry;
pub mod testing;
pub mod webhooks;
