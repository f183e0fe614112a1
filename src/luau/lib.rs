//! The parts of a Luau VM that need its raw API. They know nothing of operators.
//!
//! A package of its own, because all unsafe code around Luau is here. Every public function is safe to call with any arguments. The
//! package has four parts:
//! - JSON becomes native tables: at once ([`push`]), or level by level when a script reads them ([`levels`]). They can be cached
//!   ([`pushed`]).
//! - Built-ins are replaced by functions that know unfilled levels, take little time, and allocate little ([`builtins`]).
//! - The host learns of long strings and deep calls ([`gauge`]), and interrupts the VM from any thread ([`interrupt`]).
//! - Coroutines that wait are shrunk ([`slim`]).

pub mod builtins;
pub mod gauge;
mod host_string;
pub mod interrupt;
pub mod levels;
pub mod push;
pub mod pushed;
pub mod slim;
