//! The `kopf` command.

fn main() {}
