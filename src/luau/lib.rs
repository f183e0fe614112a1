//! The parts of a Luau VM that need its raw API. They know nothing of operators.
//!
//! A package of its own, because all unsafe code around Luau is here; its callers need none. It has four parts:
//! - JSON becomes native tables: at once ([`push`]), or level by level when a script reads them ([`levels`]). They can be cached
//!   ([`pushed`]).
//! - Built-ins are replaced by functions that know unfilled levels, and neither run long nor allocate too much at once ([`builtins`]).
//! - The host learns of long strings and deep calls ([`gauge`]), and interrupts the VM from any thread ([`interrupt`]).
//! - Coroutines are resumed ([`resume`]), and shrunk when they wait ([`slim`]).

pub mod builtins;
pub mod gauge;
mod host_string;
pub mod interrupt;
pub mod levels;
pub mod push;
pub mod pushed;
pub mod resume;
pub mod slim;
