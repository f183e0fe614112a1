//! The scripts that the user of the test saves: good ones in both languages, and the same ones with every kind of mistake.

use std::collections::BTreeMap;

use fastrand::Rng;

/// The languages, by the extension of their files.
pub(super) const LANGUAGES: [&str; 2] = ["lua", "rhai"];

/// The shared part of the handlers. No handler changes because of it: it is the same in every edit.
const LUA_HEAD: &str = r#"
local function note(ctx, text)
    ctx.logger:info("load " .. text)
end

local function work(ctx, who)
    ctx.memo.count = (ctx.memo.count or 0) + 1
    local old = if ctx.old_value then ctx.old_value.spec.number else "none"
    local about = `{who}.{ctx.param} %s retry={ctx.retry} count={ctx.memo.count} old={old} new={ctx.spec.number}`
    if ctx.retry < ctx.spec.fails then
        note(ctx, string.format(about, "fails"))
        kopf.retry("not yet", 5)
    end
    note(ctx, string.format(about, "begins"))
    if ctx.spec.slow > 0 then
        kopf.sleep(ctx.spec.slow)
    end
    note(ctx, string.format(about, "ends"))
end
"#;

/// The same part in Rhai.
const RHAI_HEAD: &str = r#"
fn note(ctx, text) {
    ctx.logger.info("load " + text);
}

fn work(ctx, who) {
    ctx.memo.count = (ctx.memo.count ?? 0) + 1;
    let old = if ctx.old_value == () { "none" } else { ctx.old_value.spec.number };
    let about = `retry=${ctx.retry} count=${ctx.memo.count} old=${old} new=${ctx.spec.number}`;
    if ctx.retry < ctx.spec.fails {
        note(ctx, `${who}.${ctx.param} fails ${about}`);
        kopf.retry("not yet", 5);
    }
    note(ctx, `${who}.${ctx.param} begins ${about}`);
    if ctx.spec.slow > 0 {
        kopf.sleep(ctx.spec.slow);
    }
    note(ctx, `${who}.${ctx.param} ends ${about}`);
}
"#;

/// The handlers: name, source in Lua, source in Rhai. `CODE` and `PARAM` are their version.
const HANDLERS: [(&str, &str, &str); 8] = [
    (
        "made",
        r#"kopf.on_create("kopfexamples", { id = "lua_made", param = PARAM, labels = { by = "lua" } }, function(ctx)
    work(ctx, "made CODE")
end)"#,
        r#"kopf::on_create("kopfexamples", #{ id: "rhai_made", param: PARAM, labels: #{ by: "rhai" } }, |ctx| {
    work(ctx, "made CODE");
});"#,
    ),
    (
        "changed",
        r#"kopf.on_update("kopfexamples", { id = "lua_changed", param = PARAM, labels = { by = "lua" } }, function(ctx)
    work(ctx, "changed CODE")
end)"#,
        r#"kopf::on_update("kopfexamples", #{ id: "rhai_changed", param: PARAM, labels: #{ by: "rhai" } }, |ctx| {
    work(ctx, "changed CODE");
});"#,
    ),
    (
        "gone",
        r#"kopf.on_delete("kopfexamples", { id = "lua_gone", param = PARAM, labels = { by = "lua" } }, function(ctx)
    work(ctx, "gone CODE")
end)"#,
        r#"kopf::on_delete("kopfexamples", #{ id: "rhai_gone", param: PARAM, labels: #{ by: "rhai" } }, |ctx| {
    work(ctx, "gone CODE");
});"#,
    ),
    (
        "extra",
        r#"kopf.on_create("kopfexamples", { id = "lua_extra", param = PARAM, labels = { by = "lua", extra = "yes" } }, function(ctx)
    work(ctx, "extra CODE")
end)"#,
        r#"kopf::on_create("kopfexamples", #{ id: "rhai_extra", param: PARAM, labels: #{ by: "rhai", extra: "yes" } }, |ctx| {
    work(ctx, "extra CODE");
});"#,
    ),
    (
        "stay",
        r#"kopf.daemon("kopfexamples", { id = "lua_stay", param = PARAM, labels = { by = "lua", stays = "yes" } }, function(ctx)
    note(ctx, `stay CODE.{ctx.param} begins`)
    while not ctx.stopped:wait(300) do end
    note(ctx, `stay CODE.{ctx.param} ends {ctx.stopped.reason}`)
end)"#,
        r#"kopf::daemon("kopfexamples", #{ id: "rhai_stay", param: PARAM, labels: #{ by: "rhai", stays: "yes" } }, |ctx| {
    note(ctx, `stay CODE.${ctx.param} begins`);
    while !ctx.stopped.wait(300) { }
    note(ctx, `stay CODE.${ctx.param} ends ${ctx.stopped.reason}`);
});"#,
    ),
    (
        "tick",
        r#"kopf.timer("kopfexamples", { id = "lua_tick", param = PARAM, interval = 20, labels = { by = "lua", stays = "yes" } }, function(ctx)
    note(ctx, `tick CODE.{ctx.param} runs`)
end)"#,
        r#"kopf::timer("kopfexamples", #{ id: "rhai_tick", param: PARAM, interval: 20, labels: #{ by: "rhai", stays: "yes" } }, |ctx| {
    note(ctx, `tick CODE.${ctx.param} runs`);
});"#,
    ),
    (
        "index",
        r#"kopf.index("kopfexamples", { id = "lua_index", param = PARAM, labels = { by = "lua" } }, function(ctx)
    return { [ctx.name] = CODE }
end)"#,
        r#"kopf::index("kopfexamples", #{ id: "rhai_index", param: PARAM, labels: #{ by: "rhai" } }, |ctx| {
    let entry = #{};
    entry[ctx.name] = CODE;
    entry
});"#,
    ),
    (
        "seen",
        r#"kopf.on_event("kopfexamples", { id = "lua_seen", param = PARAM, labels = { by = "lua", probe = "yes" } }, function(ctx)
    local index = if ctx.lua_index then #ctx.lua_index else "none"
    note(ctx, `seen CODE.{ctx.param} runs index={index}`)
end)"#,
        r#"kopf::on_event("kopfexamples", #{ id: "rhai_seen", param: PARAM, labels: #{ by: "rhai", probe: "yes" } }, |ctx| {
    let index = if ctx.rhai_index == () { "none" } else { ctx.rhai_index.len() };
    note(ctx, `seen CODE.${ctx.param} runs index=${index}`);
});"#,
    ),
];

/// The handlers that detect lost or repeated calls: they are in every script.
const KEPT: [&str; 3] = ["made", "changed", "gone"];

/// A mistake in a script.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Flaw {
    Syntax,
    Raises,
    UnknownOption,
    SameId,
    /// It ends in the middle of a handler.
    HalfWritten,
    /// It is empty.
    Empty,
    /// Its start-up handler fails permanently.
    Refuses,
}

/// A start-up handler that does not fail permanently.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Start {
    Fine,
    Slow,
    Retried,
}

/// The version of a handler: of its function, and of its options.
pub(super) type Version = (u64, u64);

/// A script of one language as it is saved.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) language: usize,
    /// Counts the edits of both languages.
    pub(super) edit: u64,
    /// The versions of the declared handlers.
    pub(super) versions: BTreeMap<&'static str, Version>,
    pub(super) start: Option<(Start, u64)>,
    pub(super) flaw: Option<Flaw>,
}

impl Draft {
    /// Returns the first script of a language.
    pub(super) fn first(language: usize) -> Self {
        let versions = KEPT.iter().chain(&["stay"]).map(|it| (*it, (0, 0))).collect();
        Draft { language, edit: 0, versions, start: None, flaw: None }
    }

    /// Returns a good script after an edit of a user.
    pub(super) fn edited(&self, edit: u64, random: &mut Rng) -> Self {
        let mut draft = Draft { edit, flaw: None, ..self.clone() };
        match random.u32(0..100) {
            0..25 => draft.change_code(&KEPT, random),
            25..33 => draft.change_option(&KEPT, random),
            33..41 => draft.change_code(&["stay", "tick"], random),
            41..44 => draft.change_option(&["stay", "tick", "seen"], random),
            44..48 => draft.change_code(&["index", "seen", "extra"], random),
            48..56 => draft.toggle(random),
            56..62 => draft.start = Some((random.choice(STARTS).unwrap_or(Start::Fine), edit)),
            62..70 => draft.flaw = Some(Flaw::Refuses),
            _ => draft.flaw = random.choice(FLAWS),
        }
        draft
    }

    fn change_code(&mut self, names: &[&'static str], random: &mut Rng) {
        let edit = self.edit;
        let Some(name) = random.choice(names) else { return };
        self.versions.entry(name).and_modify(|it| it.0 = edit);
    }

    fn change_option(&mut self, names: &[&'static str], random: &mut Rng) {
        let edit = self.edit;
        let Some(name) = random.choice(names) else { return };
        self.versions.entry(name).and_modify(|it| it.1 = edit);
    }

    /// Adds a handler, or removes it.
    fn toggle(&mut self, random: &mut Rng) {
        let Some((name, ..)) = random.choice(&HANDLERS[KEPT.len()..]) else { return };
        if self.versions.remove(name).is_none() {
            self.versions.insert(name, (self.edit, 0));
        }
    }

    /// Returns whether it can be loaded.
    pub(super) fn loads(&self) -> bool {
        matches!(self.flaw, None | Some(Flaw::Refuses))
    }

    /// Returns the content of the file.
    pub(super) fn text(&self, random: &mut Rng) -> String {
        let is_lua = self.language == 0;
        let mut text = if is_lua { LUA_HEAD } else { RHAI_HEAD }.to_owned();
        for (name, lua, rhai) in HANDLERS {
            if let Some((code, param)) = self.versions.get(name) {
                let handler = if is_lua { lua } else { rhai };
                text.push_str(
                    &handler
                        .replace("CODE", &code.to_string())
                        .replace("PARAM", &param.to_string()),
                );
                text.push('\n');
            }
        }
        text.push_str(&self.begin());
        // Identifies the source that a generation was made of.
        let edit = self.edit;
        let mark = if is_lua {
            format!("kopf.on_cleanup({{ id = \"lua_mark\", param = {edit} }}, function() end)\n")
        } else {
            format!("kopf::on_cleanup(#{{ id: \"rhai_mark\", param: {edit} }}, || {{ }});\n")
        };
        text.push_str(&mark);
        match self.flaw {
            None | Some(Flaw::Refuses) => {}
            Some(Flaw::Empty) => text.clear(),
            Some(Flaw::HalfWritten) => {
                // Anywhere between the start of the first handler and the last parenthesis.
                let from =
                    text.find("kopf.on_create").or(text.find("kopf::on_create")).unwrap_or(0);
                let inside =
                    text.match_indices("function(ctx)").chain(text.match_indices("|ctx| {"));
                let inside: Vec<_> = inside.map(|(at, _)| at).filter(|it| *it > from).collect();
                let cut = random.choice(inside).unwrap_or(from) + random.usize(0..30);
                text.truncate(cut);
            }
            Some(flaw @ (Flaw::Syntax | Flaw::Raises | Flaw::UnknownOption | Flaw::SameId)) => {
                text.push_str(mistake(flaw, is_lua));
            }
        }
        text
    }

    fn begin(&self) -> String {
        let edit = self.edit;
        let (body, code) = match (self.flaw, self.start) {
            (Some(Flaw::Refuses), _) => ("kopf.fail(\"refused on purpose\")", edit),
            (_, None) => return String::new(),
            (_, Some((Start::Fine, code))) => ("kopf.sleep(0)", code),
            (_, Some((Start::Slow, code))) => ("kopf.sleep(2)", code),
            (_, Some((Start::Retried, code))) => ("RETRY", code),
        };
        if self.language == 0 {
            let body =
                body.replace("RETRY", "if ctx.retry == 0 then kopf.retry(\"not yet\", 2) end");
            format!(
                "kopf.on_startup({{ id = \"lua_begin\" }}, function(ctx) ctx.memo.code = {code} {body} end)\n"
            )
        } else {
            let body = body.replace("RETRY", "if ctx.retry == 0 { kopf.retry(\"not yet\", 2); }");
            format!(
                "kopf::on_startup(#{{ id: \"rhai_begin\" }}, |ctx| {{ ctx.memo.code = {code}; {body}; }});\n"
            )
        }
    }
}

const STARTS: [Start; 3] = [Start::Fine, Start::Slow, Start::Retried];

const FLAWS: [Flaw; 8] = [
    Flaw::Syntax,
    Flaw::Raises,
    Flaw::UnknownOption,
    Flaw::SameId,
    Flaw::HalfWritten,
    Flaw::HalfWritten,
    Flaw::HalfWritten,
    Flaw::Empty,
];

fn mistake(flaw: Flaw, is_lua: bool) -> &'static str {
    match (flaw, is_lua) {
        (Flaw::Raises, true) => "error('at the top level')\n",
        (Flaw::Raises, false) => "throw `at the top level`;\n",
        (Flaw::UnknownOption, true) => {
            "kopf.on_create('kopfexamples', { id = 'lua_more', retrys = 3 }, function() end)\n"
        }
        (Flaw::UnknownOption, false) => {
            "kopf::on_create(`kopfexamples`, #{ id: `rhai_more`, retrys: 3 }, || { });\n"
        }
        (Flaw::SameId, true) => {
            "kopf.on_create('kopfexamples', { id = 'lua_made' }, function() end)\n"
        }
        (Flaw::SameId, false) => "kopf::on_create(`kopfexamples`, #{ id: `rhai_made` }, || { });\n",
        (_, true) => "local broken = = 1\n",
        (_, false) => "let broken = = 1;\n",
    }
}
