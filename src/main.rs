//! The `kopf` command; everything it does is in `cli/`.

use std::process::ExitCode;

fn main() -> ExitCode {
    kopf::cli::main()
}
