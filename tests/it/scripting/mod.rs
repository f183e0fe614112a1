//! The engines through their public interface: values, modules, memory, every name that scripts can use.

mod border;
pub(crate) mod engines;
mod generations;
mod modules;
mod rhai;
mod stubs;
mod surface;
