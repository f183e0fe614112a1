//! The `kopf` command; everything it does is in `cli/`.

use std::process::ExitCode;

fn main() -> ExitCode {
    kopf::heap::keep_free_blocks();
    kopf::cli::main()
}
