#![doc = include_str!("README.md")]

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
pub mod testing;
pub mod webhooks;
