//! Creates a [`Handler`] from a declaration of a script: options, ids, and the errors of declarations.
//!
//! Both languages convert their values to [`Argument`]s; everything after that is shared. The contract is
//! `tests/vectors/handler-ids.json`, and `selectors.json` for the positional arguments.

mod argument;
mod execution;
mod options;
mod reconcile;
mod schedules;
#[cfg(test)]
mod tests;
mod values;

use std::sync::Arc;

use serde_json::Value;

pub use self::argument::{Argument, Declaration, DeclareError, DeclaredSize, Marker};
pub use self::execution::{SubHandlerExecution, chooser};
pub use self::options::{OptionSpec, OptionType, hint as option_hint, options_of};
use self::values::Options;
use super::{
    function::Function,
    handler::{Admission, Background, Category, Conversion, Filters, Handler, Kind, Limits, Parts},
    selector::Selector,
};

/// Maximum nesting of sub-handlers. Each one runs within its parent.
const SUB_LEVELS_MAX: u8 = 16;

/// Maximum bytes of an id, including those of its parents and its field. Each record of progress is stored under a hash of its id.
const ID_MAX: usize = 512;

/// Creates a handler from a declaration at the top level of a script.
pub fn declare(declaration: Declaration) -> Result<Handler, DeclareError> {
    let Declaration { kind, selectors, options, function, location } = declaration;
    if kind == Kind::Sub {
        return Err(DeclareError::new(
            "sub-handlers can only be declared while a handler runs",
            "call it in a handler of on_create, on_update, on_delete, on_resume or on_field, or in a sub-handler",
        ));
    }
    let options = Options::of(kind, &options)?;
    if kind == Kind::Field && !options.has("field") {
        return Err(DeclareError::new("on_field needs a field", "add `field = \"spec.…\"`"));
    }
    let selector = match kind.category() {
        Category::Activity if selectors.is_empty() || kind == Kind::Test || kind.is_scheduled() => {
            None
        }
        Category::Activity => {
            return Err(format!(
                "kopf.{} takes no resource: it does not handle objects",
                kind.declared_by()
            )
            .into());
        }
        Category::Indexing
        | Category::Watching
        | Category::Spawning
        | Category::Changing
        | Category::Admission
        | Category::Conversion => Some(selector(&selectors, &options)?),
    };
    let is_test = kind == Kind::Test;
    let base = if is_test { titled(&selectors)? } else { base_id(kind, &function, &options)? };
    let mut handler = assemble(kind, function, location, &options, selector)?;
    if kind.is_scheduled() {
        schedules::apply(&mut handler.background, kind, (&selectors, &base), &options)?;
    }
    if let Some(Conversion { from, to }) = &handler.admission.conversion {
        handler.id = format!("{base}/{from}-{to}").into();
        return Ok(handler);
    }
    let id = match &handler.filters.field {
        Some(field) if kind != Kind::Index => with_suffix(&base, &field.join(".")),
        Some(_) | None => base,
    };
    handler.id = bounded(id)?;
    Ok(handler)
}

/// Creates a sub-handler from a declaration inside a running change handler, or inside another sub-handler.
pub fn declare_sub(declaration: Declaration, parent: &Handler) -> Result<Handler, DeclareError> {
    let Declaration { kind, selectors, options, function, location } = declaration;
    if parent.kind.category() != Category::Changing || kind != Kind::Sub {
        return Err("sub-handlers are only supported for resource-changing handlers".into());
    }
    if !selectors.is_empty() {
        return Err("a sub-handler takes no resource: it handles the object of its parent".into());
    }
    let options = Options::of(kind, &options)?;
    let base = base_id(kind, &function, &options)?;
    if parent.level >= SUB_LEVELS_MAX {
        return Err(too_many_levels(&base, parent));
    }
    let mut handler = assemble(kind, function, location, &options, None)?;
    handler.level = parent.level + 1;
    let compares = handler.filters.old.is_some() || handler.filters.new.is_some();
    if compares && !matches!(parent.kind, Kind::Update | Kind::Field | Kind::Sub) {
        return Err("filters old=/new= can only be used in update handlers".into());
    }
    handler.parent_needs_change = parent.needs_change();
    let id = if parent.id.is_empty() { base } else { format!("{}/{base}", parent.id) };
    handler.id = bounded(id)?;
    Ok(handler)
}

/// Returns the id, unless it is too long.
fn bounded(id: String) -> Result<Arc<str>, DeclareError> {
    if id.len() <= ID_MAX {
        return Ok(id.into());
    }
    Err(DeclareError::new(
        format!("the id '{}' is longer than {ID_MAX} bytes: {}", shown(&id), id.len()),
        "set a shorter `id`; that of a sub-handler includes its parents",
    ))
}

/// Returns the start of an id, which is enough to recognize it.
fn shown(id: &str) -> String {
    const BYTES_MAX: usize = 60;
    match id.get(..id.floor_char_boundary(BYTES_MAX)) {
        Some(start) if start.len() < id.len() => format!("{start}…"),
        Some(_) | None => id.to_owned(),
    }
}

fn too_many_levels(base: &str, parent: &Handler) -> DeclareError {
    let (base, around) = (shown(base), shown(&parent.id));
    DeclareError::new(
        format!(
            "sub-handlers are nested deeper than {SUB_LEVELS_MAX} levels: '{base}' in '{around}'"
        ),
        "check whether a sub-handler declares itself",
    )
}

/// Returns the title of a test: its only positional argument.
fn titled(arguments: &[Argument]) -> Result<String, DeclareError> {
    if let [Argument::Value(Value::String(title))] = arguments {
        return Ok(title.clone());
    }
    Err(DeclareError::new(
        "kopf.test: the first argument must be a string that describes the test",
        "kopf.test(\"DESCRIPTION\", OPTIONS, FUNCTION); OPTIONS can be omitted",
    ))
}

/// Returns the option `id`, else the name of the function, else the name of the declaration.
fn base_id(kind: Kind, function: &Function, options: &Options<'_>) -> Result<String, DeclareError> {
    let name = if function.name.is_empty() { kind.name() } else { &function.name };
    let Some(id) = options.text("id")? else { return Ok(name.to_owned()) };
    if matches!(kind.category(), Category::Changing) {
        check_id(&id)?;
    }
    Ok(id)
}

/// Checks an id. Progress is stored under the id, in the name of an annotation. With an invalid name, Kubernetes would reject every
/// patch, and the handler would never finish.
fn check_id(id: &str) -> Result<(), DeclareError> {
    let plain = |it: char| it.is_ascii_alphanumeric();
    let inside = |it: char| plain(it) || matches!(it, '-' | '_' | '.' | '/');
    // An empty id counts as absent.
    let bounded = id.is_empty() || (id.starts_with(plain) && id.ends_with(plain));
    if bounded && id.chars().all(inside) {
        return Ok(());
    }
    let message = format!("the id {id:?} cannot be a part of the name of an annotation");
    let hint = "use ASCII letters and digits, and `-`, `_`, `.`, `/` between them";
    Err(DeclareError::new(message, hint))
}

/// Appends the field to the id, so that one function can watch several fields with separate progress.
fn with_suffix(base: &str, suffix: &str) -> String {
    if suffix.is_empty() { base.to_owned() } else { format!("{base}/{suffix}") }
}

fn selector(positional: &[Argument], options: &Options<'_>) -> Result<Selector, DeclareError> {
    let keywords = Selector {
        group: options.text("group")?,
        version: options.text("version")?,
        kind: options.text("kind")?,
        plural: options.text("plural")?,
        singular: options.text("singular")?,
        shortcut: options.text("shortcut")?,
        category: options.text("category")?,
        any_name: None,
        function: None,
    };
    Selector::parse(positional, keywords)
}

fn assemble(
    kind: Kind,
    function: Function,
    location: String,
    options: &Options<'_>,
    selector: Option<Selector>,
) -> Result<Handler, DeclareError> {
    Ok(Handler {
        id: Arc::default(),
        function,
        kind,
        selector,
        filters: filters(options)?,
        limits: Limits {
            errors: options.errors()?,
            timeout: options.duration("timeout")?,
            retries: options.count("retries")?,
            backoff: options.duration("backoff")?,
        },
        param: options.data("param")?,
        deleted: options.flag("deleted")?,
        optional: options.flag("optional")?,
        parent_needs_change: false,
        level: 0,
        background: Background {
            initial_delay: options.initial_delay()?,
            times: schedules::times(options)?,
            missed: schedules::missed(options)?,
            interval: options.duration("interval")?,
            sharp: options.flag("sharp")?,
            idle: options.duration("idle")?,
            is_exclusive: options.flag("exclusive")?,
            cancellation_backoff: options.duration("cancellation_backoff")?,
            cancellation_timeout: options.duration("cancellation_timeout")?,
            cancellation_polling: options.duration("cancellation_polling")?,
            without_finalizer: options.has("finalizer") && !options.flag("finalizer")?,
        },
        admission: Admission {
            operations: options.operations()?,
            subresource: options.text("subresource")?,
            persistent: options.flag("persistent")?,
            side_effects: options.flag("side_effects")?,
            ignore_failures: options.flag("ignore_failures")?,
            match_conditions: options.match_conditions()?,
            namespace_selector: options.namespace_selector()?,
            match_policy: options.match_policy()?,
            reinvocation: options.flag("reinvocation")?,
            conversion: (kind == Kind::Convert).then(|| conversion(options)).transpose()?,
        },
        reconcile: (kind == Kind::Reconcile)
            .then(|| reconcile::read(options).map(Arc::new))
            .transpose()?,
        parent: reconcile::parent(options)?,
        relation: None,
        location: location.into(),
        code: 0,
        parts: Parts::default(),
        for_scripts: None,
    })
}

/// Returns the versions of a conversion handler.
fn conversion(options: &Options<'_>) -> Result<Conversion, DeclareError> {
    let hint = "write both versions, such as `from = \"v1\", to = \"v2\"`";
    let version = |name: &str| {
        let text = options.text(name)?.unwrap_or_default();
        if text.is_empty() {
            return Err(DeclareError::new(format!("on_convert needs the option `{name}`"), hint));
        }
        if !text.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit()) {
            let message =
                format!("on_convert: `{name}` must be a version without a group, not {text:?}");
            return Err(DeclareError::new(message, hint));
        }
        Ok(text)
    };
    let (from, to) = (version("from")?, version("to")?);
    if from == to {
        let message = format!("on_convert: `from` and `to` are the same version {from}");
        return Err(DeclareError::new(message, hint));
    }
    Ok(Conversion { from, to })
}

fn filters(options: &Options<'_>) -> Result<Filters, DeclareError> {
    let filters = Filters {
        labels: options.criteria("labels")?,
        annotations: options.criteria("annotations")?,
        field: options.field("field")?,
        value: options.criterion("value")?,
        old: options.criterion("old")?,
        new: options.criterion("new")?,
        when: options.callback("when")?,
    };
    let compares = filters.old.is_some() || filters.new.is_some();
    if filters.field.is_none() && (filters.value.is_some() || compares) {
        return Err(DeclareError::new(
            "value/old/new filters are specified without a mandatory field",
            "name the field that they compare: `field = \"spec.…\"`",
        ));
    }
    if filters.value.is_some() && compares {
        return Err("either value= or old=/new= can be defined, not both".into());
    }
    Ok(filters)
}
