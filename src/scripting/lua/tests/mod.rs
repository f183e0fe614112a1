//! A VM that does not respond, and calls that are interrupted just before they wait.

mod inline;
mod levels;

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use kopf_json::shared::SharedJson;
use kopf_luau::push::Style;
use mlua::{Function as LuaFunction, Lua, MultiValue, Value as LuaValue};
use serde_json::Value;
use tokio::{io::AsyncReadExt as _, net::TcpListener};
use tokio_util::sync::CancellationToken;

use super::{
    host_table::Tools,
    watchdog::{CpuBudget, Watchdog},
    world::World,
};
use crate::call::{
    Callers, Cause, Invocation, Logger, LoggerKind, Memo, ObjectCause, ObjectDetail, Scripts as _,
};
use crate::logic::{
    handlers::{
        function::ScriptId,
        handler::Handler,
        outcome::{CallEnd, Raised, RaisedKind},
    },
    object::{Object, ObjectRef, resource::Resource},
};
use crate::scripting::{Placement, ScriptHost, Source, Terms, actor::script::VmLimits};
use crate::settings::{Sandbox, Settings};
use crate::telemetry::{Metrics, RestartLabels};

/// Adds four functions to scripts of unit tests.
///
/// `block(port)` never reaches the interrupt: it connects, sends a byte when it begins, and returns when the other side closes the
/// connection. `wait_late(value)` yields to other calls and returns the value; its call is interrupted just before it yields.
/// `filled(table)` returns a frozen copy that was never lazy. `thread()` returns the name of the thread that runs the call.
pub(super) fn install(lua: &Lua, tools: &Tools) -> mlua::Result<()> {
    let block = |_: &Lua, port: u16| {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.write_all(b"!")?;
        stream.read_to_end(&mut Vec::new())?;
        Ok(())
    };
    lua.globals().set("block", lua.create_function(block)?)?;
    let begin = |lua: &Lua, value: LuaValue| {
        let world = World::of(lua)?;
        world.wait_for(async move {
            tokio::task::yield_now().await;
            Ok(MultiValue::from_iter([value]))
        });
        world.meter.end_slice();
        Ok(())
    };
    let filled = |lua: &Lua, value: LuaValue| {
        let world = World::of(lua)?;
        let value = world.read_as("filled", &value)?;
        world.push(lua, &value, Style::Frozen)
    };
    lua.globals().set("filled", lua.create_function(filled)?)?;
    let thread = |_: &Lua, ()| Ok(std::thread::current().name().map(str::to_owned));
    lua.globals().set("thread", lua.create_function(thread)?)?;
    let wait_late: LuaFunction = tools.pausing.call(lua.create_function(begin)?)?;
    lua.globals().set("wait_late", wait_late)
}

/// Returns a call of a handler about this object.
pub(super) fn call_about(handler: &Arc<Handler>, object: Object) -> Invocation {
    Invocation {
        handler: handler.for_scripts(),
        attempt: None,
        cause: Cause::Object(ObjectCause {
            resource: Arc::default(),
            object: Arc::new(object),
            patch: Arc::default(),
            detail: ObjectDetail::Index,
        }),
        memo: Memo::default(),
        logger: Logger::of_object(LoggerKind::Full, Arc::new(ObjectRef::default())),
        services: Arc::default(),
        children: None,
        callers: Callers::default(),
    }
}

#[tokio::test]
async fn a_call_that_is_interrupted_before_it_waits_gets_what_it_has_waited_for() {
    let text = "
        kopf.on_event('kopfexamples', function(resource)
            local got = {}
            for i = 1, 3 do got[i] = wait_late(resource.kind .. i) end
            error(table.concat(got, ' '))
        end)";
    let terms = Terms::of(Placement::Threads, &Settings::default());
    let sources = vec![Source::alone("handlers.lua", text)];
    let (host, handlers) = ScriptHost::load(sources, terms).await.expect("it loads");
    let function = &handlers.first().expect("a handler").function;
    let ask = |kind: &str| {
        let resource = Resource { kind: kind.into(), ..Resource::default() };
        host.choose(function.clone(), Arc::new(resource))
    };
    let got = tokio::join!(ask("A"), ask("B"), ask("C"));
    let message = |it: Result<bool, Raised>| it.expect_err("it raises").message;
    assert_eq!(message(got.0), "A1 A2 A3");
    assert_eq!(message(got.1), "B1 B2 B3");
    assert_eq!(message(got.2), "C1 C2 C3");
}

#[tokio::test]
async fn what_a_patch_receives_builds_no_tree_of_the_object() {
    let text = "
        kopf.on_create('kopfexamples', function(ctx)
            local status = ctx.patch.status
            status.text = 'x'; status.number = 1; status.list = {}; status.map = {}
        end)";
    let source = Source::alone("handlers.lua", text);
    let loaded = super::load(ScriptId(1), &source, &Placement::Threads.into()).await;
    let loaded = loaded.expect("it loads");
    let handler = Arc::new(loaded.handlers.into_iter().next().expect("a handler"));
    let body = r#"{"metadata":{"name":"a"},"status":{"number":1.0,"list":[2],"map":{"a":2}}}"#;
    let call = Arc::new(call_about(&handler, Object::parse(body.into()).expect("an object")));
    let end = loaded.engine.call(Arc::clone(&call)).await;
    assert!(matches!(end, CallEnd::Returned(_)), "{end:?}");
    let Cause::Object(cause) = &call.cause else { panic!("not about an object") };
    let written = Value::Object(cause.patch.lock().merge.clone()).to_string();
    assert_eq!(written, r#"{"status":{"text":"x","number":1.0,"list":[],"map":{}}}"#);
    assert!(matches!(cause.current().shared_body(), SharedJson::Tape(_)));
}

/// Runs this native function as one slice of one call.
fn compute(lua: &Lua, watchdog: &Watchdog, native: impl FnOnce()) {
    let function = lua.create_function(|_, ()| Ok(())).expect("a function");
    let coroutine = lua.create_thread(function).expect("a coroutine");
    let _slice = watchdog.begin(&coroutine, CpuBudget::default());
    native();
}

#[test]
fn a_native_that_does_not_come_back_is_told_outside() {
    let lua = Lua::new();
    let limits = VmLimits { sandbox: Sandbox::default(), cpu: Duration::from_millis(50) };
    let stuck = CancellationToken::new();
    let watchdog = Watchdog::of(&lua, &Rc::new(limits), stuck.clone()).expect("a thread");
    // Never reaches the interrupt, and never waits.
    compute(&lua, &watchdog, || {
        while !stuck.is_cancelled() {
            std::hint::spin_loop();
        }
    });
    assert!(stuck.is_cancelled());
}

#[test]
fn writing_to_a_slow_reader_is_not_being_stuck() {
    let lua = Lua::new();
    let limits = VmLimits { sandbox: Sandbox::default(), cpu: Duration::from_millis(50) };
    let stuck = CancellationToken::new();
    let watchdog = Watchdog::of(&lua, &Rc::new(limits), stuck.clone()).expect("a thread");
    let began = tokio::time::Instant::now();
    compute(&lua, &watchdog, || {
        watchdog.meter().outside(|| {
            while began.elapsed() < Duration::from_millis(2500) {
                std::hint::spin_loop();
            }
        });
    });
    assert!(!stuck.is_cancelled());
}

/// Returns a script that counts its calls, which shows which VM responds.
fn counting(id: &str, port: u16) -> Source {
    let text = format!(
        "local calls = 0
        kopf.on_event('kopfexamples', {{ id = '{id}' }}, function(resource)
            calls += 1
            if resource.kind == 'Blocks' then block({port}) end
            return calls == 1
        end)"
    );
    Source::alone(format!("{id}.lua"), text)
}

#[tokio::test]
async fn a_script_that_is_stuck_in_a_native_goes_on_with_another_vm_and_nobody_else_notices() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let metrics = Metrics::default();
    let terms =
        Terms { metrics: metrics.clone(), ..Terms::of(Placement::Threads, &Settings::default()) };
    let sources = vec![counting("stuck", port), counting("beside", port)];
    let (host, handlers) = ScriptHost::load(sources, terms).await.expect("they load");
    let ask = |id: &str, kind: &str| {
        let handler = handlers.iter().find(|it| &*it.id == id).expect("a handler");
        let resource = Resource { kind: kind.into(), ..Resource::default() };
        host.choose(handler.function.clone(), Arc::new(resource))
    };
    assert_eq!(ask("beside", "Pod").await, Ok(true));

    let mut blocked = ask("stuck", "Blocks");
    let begun = async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        assert_eq!(stream.read_u8().await.expect("a byte"), b'!');
        stream
    };
    let stream = tokio::select! {
        biased; // neither happens without the other
        ended = &mut blocked => panic!("it does not block: {ended:?}"),
        stream = begun => stream,
    };
    // From here to the end of the test, the native function does not return.
    let mut served = 0;
    let raised = loop {
        assert_eq!(ask("beside", "Pod").await, Ok(false), "the same VM as before");
        served += 1;
        let pause = tokio::time::timeout(Duration::from_millis(10), &mut blocked).await;
        if let Ok(ended) = pause {
            break ended.expect_err("the call fails");
        }
    };
    assert!(served > 1, "the script beside it went on meanwhile");
    assert!(matches!(raised.kind, RaisedKind::Temporary(Some(_))), "{:?}", raised.kind);
    expect_test::expect!["the script was restarted during the call; the call is retried"]
        .assert_eq(&raised.message);

    assert_eq!(ask("stuck", "Pod").await, Ok(true), "the first call of a new VM");
    assert_eq!(ask("stuck", "Pod").await, Ok(false));
    assert_eq!(ask("beside", "Pod").await, Ok(false));
    let restarts = |script: &str, reason| {
        let labels = RestartLabels { script: script.into(), reason };
        metrics.vm_restarts.get_or_create(&labels).get()
    };
    assert_eq!((restarts("stuck.lua", "stuck"), restarts("beside.lua", "stuck")), (1, 0));
    drop(stream);
}
