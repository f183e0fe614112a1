//! `kopf.ConnectionInfo(#{…})`, `kopf.login_with_kubeconfig(ctx)` and its sibling.

use rhai::Dynamic;

use super::HostFn;
use crate::scripting::{
    logins::{NATIVE, connection_info, login_with},
    rhai::{
        context::Ctx,
        errors::problem,
        value::{plain, to_json},
    },
};

/// The functions, for both spellings.
pub(super) fn functions() -> Vec<HostFn> {
    let info = HostFn::new("ConnectionInfo", 1..=1, |_, arguments| {
        let fields = arguments.into_iter().next().unwrap_or(Dynamic::UNIT);
        let fields = to_json("kopf.ConnectionInfo", &fields).map_err(problem)?;
        connection_info(fields).map(|it| plain(&it)).map_err(problem)
    });
    let natives = NATIVE.into_iter().map(|(name, method)| {
        HostFn::new(name, 0..=1, move |_, arguments| {
            let ctx = arguments.first().and_then(Dynamic::read_lock::<Ctx>);
            let login = login_with(&method, ctx.as_ref().map(|it| it.invocation()));
            Ok(login.map_or(Dynamic::UNIT, |it| plain(&it)))
        })
    });
    natives.chain([info]).collect()
}
