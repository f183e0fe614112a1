//! `kopf.StatusProgressStorage(#{field: "status.x"})` and its siblings: values for `ctx.settings.persistence`.

use rhai::Dynamic;

use super::HostFn;
use crate::logic::configure::{STORAGES, storage};
use crate::scripting::rhai::{
    errors::problem,
    value::{plain, to_json},
};

/// The functions, for both spellings.
pub(super) fn functions() -> Vec<HostFn> {
    let constructor = |name: &'static str| {
        HostFn::new(name, 0..=1, move |_, arguments| {
            let parameters = arguments.into_iter().next().unwrap_or(Dynamic::UNIT);
            let parameters = to_json(&format!("kopf.{name}"), &parameters);
            let made = parameters.and_then(|it| storage(name, &it));
            made.map(|it| plain(&it)).map_err(problem)
        })
    };
    STORAGES.into_iter().map(constructor).collect()
}
