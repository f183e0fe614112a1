//! `kopf.adopt` and its siblings. Values of this language are passed as copies: the changed objects are what is returned.

use rhai::Dynamic;

use super::HostFn;
use crate::scripting::{
    hierarchy::{HELPERS, Helper},
    rhai::{
        errors::problem,
        present,
        value::{plain, to_json},
    },
};

/// The functions, for both spellings.
pub(super) fn functions() -> Vec<HostFn> {
    let one = |helper: &'static Helper| {
        HostFn::new(helper.name, 0..=super::ARGUMENTS_MAX, move |_, arguments| {
            let place = format!("kopf.{}", helper.name);
            let mut arguments = arguments.into_iter();
            let objects = arguments.next().unwrap_or_default();
            let objects = to_json(&place, &objects).map_err(problem)?;
            let read = |it: Dynamic| {
                let json = to_json(&place, &it).map_err(problem)?;
                Ok((!it.is_unit()).then_some(json))
            };
            let rest = arguments.map(read).collect::<Result<_, Box<rhai::EvalAltResult>>>()?;
            let present = present::get();
            present.as_deref().inspect(|it| present::parse(it));
            let changed = helper.call(objects, rest, present.as_deref());
            changed.map(|it| plain(&it)).map_err(problem)
        })
    };
    HELPERS.iter().map(one).collect()
}
