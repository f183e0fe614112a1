//! The pages of the program text: released when they are not needed, or replaced by a huge page.

mod huge;
#[cfg(target_os = "linux")]
mod mappings;
mod release;

pub(super) use self::{huge::move_when_busy, release::release};
