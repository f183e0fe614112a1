#![doc = include_str!("README.md")]

pub mod cli;
pub mod logic;
pub mod ports;
pub mod scripting;
pub mod settings;
