//! The engines through their public interface: values, modules, memory, every name that scripts can use.

mod border;
mod generations;
pub(crate) mod lua;
mod modules;
mod rhai;
mod stubs;
mod surface;
