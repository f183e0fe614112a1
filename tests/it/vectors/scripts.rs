//! The suites of Kopf's helpers once more, through the functions of scripts: each vector becomes a script in both languages.

use std::{fmt::Write as _, sync::Arc};

use parking_lot::Mutex;

use kopf::{
    call::{CallServices, EventQueue, Logger, LoggerKind, Scripts as _, SharedPatch},
    logic::{handlers::outcome::CallEnd, object::Object},
    scripting::{Placement, Source},
    settings::Settings,
};
use serde_json::{Map, Value, json};

use super::{Vector, objects, run, same};
use crate::scripting::engines::{run_paused, try_load};

/// A language in which a vector becomes a script.
#[derive(Clone, Copy)]
enum Language {
    Lua,
    Rhai,
}

const LANGUAGES: [Language; 2] = [Language::Lua, Language::Rhai];

impl Language {
    fn file(self) -> &'static str {
        match self {
            Language::Lua => "handlers.lua",
            Language::Rhai => "handlers.rhai",
        }
    }

    /// Returns a value as the language writes it.
    fn literal(self, value: &Value) -> String {
        match (self, value) {
            (Language::Lua, Value::Null) => "kopf.null".into(),
            (Language::Rhai, Value::Null) => "()".into(),
            (_, Value::Bool(_) | Value::Number(_) | Value::String(_)) => value.to_string(),
            (Language::Lua, Value::Array(items)) => format!("kopf.array{{{}}}", self.all(items)),
            (Language::Rhai, Value::Array(items)) => format!("[{}]", self.all(items)),
            (_, Value::Object(fields)) => self.map(fields),
        }
    }

    fn all(self, items: &[Value]) -> String {
        items.iter().map(|it| self.literal(it)).collect::<Vec<_>>().join(", ")
    }

    fn map(self, fields: &Map<String, Value>) -> String {
        let mut text = match self {
            Language::Lua => "{".to_owned(),
            Language::Rhai => "#{".to_owned(),
        };
        for (key, value) in fields {
            let (key, value) = (Value::from(key.as_str()), self.literal(value));
            match self {
                Language::Lua => write!(text, "[{key}] = {value}, "),
                Language::Rhai => write!(text, "{key}: {value}, "),
            }
            .expect("a string takes all");
        }
        text + "}"
    }

    /// Returns a script with one handler, which returns this expression.
    fn script(self, declaration: &str, before: &str, expression: &str) -> String {
        match self {
            Language::Lua => {
                format!("kopf.{declaration}, function(ctx)\n{before}\nreturn {expression}\nend)")
            }
            Language::Rhai => {
                format!("kopf::{declaration}, |ctx| {{\n{before}\n{expression}\n}});")
            }
        }
    }
}

/// Runs the script of a vector. Returns its value, or its error.
fn call(language: Language, context: Option<&Value>, before: &str, expression: &str) -> CallEnd {
    called(language, context, (before, expression), &Arc::default())
}

fn called(
    language: Language,
    context: Option<&Value>,
    (before, expression): (&str, &str),
    services: &Arc<CallServices>,
) -> CallEnd {
    let declaration = match context {
        Some(_) => "on_update('kopfexamples', {id = 'it'}",
        None => "on_startup({id = 'it'}",
    };
    let declaration = match language {
        Language::Lua => declaration.to_owned(),
        Language::Rhai => declaration.replace("{id = 'it'}", "#{id: \"it\"}").replace('\'', "\""),
    };
    run_paused(async {
        let text = language.script(&declaration, before, expression);
        let source = Source::alone(language.file(), &text);
        let mut script = try_load(source, Placement::CurrentRuntime)
            .await
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        script.services = Arc::clone(services);
        let invocation = match context {
            Some(body) => {
                let change = script.change("it", body, &SharedPatch::default());
                let mut change = Arc::into_inner(change).expect("nobody else has it");
                // The properties of the object that the reactor knows, even if its body lacks them.
                let about = Object::from_value(body.clone()).header().reference();
                change.logger = Logger::of_object(LoggerKind::Full, Arc::new(about));
                Arc::new(change)
            }
            None => script.startup("it"),
        };
        script.host.call(invocation).await
    })
}

fn returned(ended: CallEnd) -> Result<Value, String> {
    match ended {
        CallEnd::Returned(value) => Ok(value.unwrap_or_default()),
        CallEnd::Keyed(entries) => Err(format!("the result has odd keys: {entries:?}")),
        CallEnd::Raised(raised) => Err(raised.message),
    }
}

/// Compares; only the presence of an error matters.
fn compare(vector: &Vector, ended: CallEnd, expected: &Value) -> Result<(), String> {
    match (returned(ended), vector.expects_error()) {
        (Err(_), true) => Ok(()),
        (Ok(value), true) => Err(format!("an error is expected, not {value}")),
        (Err(problem), false) => Err(problem),
        // Both languages have no nulls in maps.
        (Ok(value), false) => {
            same("result", &without_nulls(value), &without_nulls(expected.clone()))
        }
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .filter(|(_, it)| !it.is_null())
                .map(|(key, it)| (key, without_nulls(it)))
                .collect(),
        ),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

#[test]
fn hierarchies_in_both_languages() {
    run("hierarchies", |vector| {
        let input = &vector.input;
        let options = input["kwargs"].as_object().cloned().unwrap_or_default();
        let function = input["fn"].as_str().expect("a function");
        for language in LANGUAGES {
            let objects = language.literal(&input["objs"]);
            // An empty map would be taken as a positional argument: the owner, the labels.
            let options = if options.is_empty() {
                String::new()
            } else {
                format!(", {}", language.map(&options))
            };
            let expression = format!("kopf.{function}({objects}{options})");
            let ended = call(language, input.get("context"), "", &expression);
            compare(vector, ended, &vector.expected["objs"])?;
        }
        Ok(())
    });
}

#[test]
fn object_references_in_both_languages() {
    run("object-references", |vector| {
        let mut options = vector.input.as_object().cloned().unwrap_or_default();
        let body = options.remove("body").unwrap_or_default();
        let op = options.remove("op").unwrap_or_default();
        for language in LANGUAGES {
            let body = language.literal(&body);
            let expression = if op == "object" {
                format!("kopf.build_object_reference({body})")
            } else {
                format!("kopf.build_owner_reference({body}, {})", language.map(&options))
            };
            compare(vector, call(language, None, "", &expression), &vector.expected)?;
        }
        Ok(())
    });
}

#[test]
fn k8s_events_in_both_languages() {
    run("k8s-events", |vector| {
        let input = &vector.input;
        // The others are about the steps after the functions.
        if input["op"] != "call" {
            return Ok(());
        }
        for language in LANGUAGES {
            let posted = posted(language, input)?;
            // The errors of scripts have separate classes.
            let expected = vector.expected.to_string().replace("ValueError", "PermanentError");
            let expected = expected.replace("NoneType", "Error");
            let expected = serde_json::from_str(&expected).expect("it was JSON");
            same("posts", &posted, &expected)?;
        }
        Ok(())
    });
}

/// Returns the events that the call of a vector posts.
fn posted(language: Language, input: &Value) -> Result<Value, String> {
    let mut options = input["kwargs"].as_object().cloned().unwrap_or_default();
    // Neither language has a current error that is not named.
    let error = match (options.remove("in_except"), options.remove("exc")) {
        (Some(_), _) => Some("boo!".to_owned()),
        (None, Some(exc)) => Some(exc[1].as_str().unwrap_or_default().to_owned()),
        (None, None) => None,
    };
    let before = error.as_ref().map_or_else(String::new, |message| {
        let message = Value::from(message.as_str());
        match language {
            Language::Lua => {
                format!("local _, exc = pcall(error, kopf.PermanentError({message}))")
            }
            Language::Rhai => format!(
                "let exc = (); try {{ throw kopf.PermanentError({message}); }} catch (it) {{ exc = it; }}"
            ),
        }
    });
    let mut named = language.map(&options);
    if error.is_some() {
        named.truncate(named.len() - 1);
        named.push_str(match language {
            Language::Lua => "exc = exc}",
            Language::Rhai => "\"exc\": exc}",
        });
    }
    let function = input["fn"].as_str().expect("a function");
    let objects = language.literal(&input["objs"]);
    let expression = format!("kopf.{function}({objects}, {named})");
    let settings =
        Settings { posting: objects::settings(&input["settings"]), ..Settings::default() };
    let backoffs = settings.posting.default_backoffs.clone();
    let posts = EventQueue::new(Arc::new(Mutex::new(settings)));
    let services = Arc::new(CallServices { posts: posts.clone(), ..CallServices::default() });
    returned(called(language, None, (&before, &expression), &services))?;
    let mut inbox = posts.take().expect("nobody has taken it");
    let mut posted = Vec::new();
    while let Ok(post) = inbox.try_recv() {
        assert_eq!(post.backoffs, backoffs, "the usual backoffs");
        posted.push(objects::item(&post.note, &post.about, &post.backoffs));
    }
    Ok(json!(posted))
}
