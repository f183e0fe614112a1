//! Checks members: of libraries, of `ctx`, of handles.

use super::{
    super::{
        known,
        schemas::{Field, SchemaPart},
        tree::{Expr, ExprKind, ItemKey, Name},
        types::{Ctx, Type},
    },
    InferenceWalk, Rule,
};
use crate::logic::configure;
use crate::scripting::surface::{Item, ItemShape, Section, Ty, ctx_class};

/// The fields of `ctx` that are parts of the object.
const VIEWS: &[&str] = &[
    "annotations",
    "body",
    "labels",
    "meta",
    "new",
    "new_value",
    "old",
    "old_value",
    "spec",
    "status",
];

impl<'a> InferenceWalk<'_, 'a> {
    /// Returns the type of a member; reports it if it does not exist.
    pub(super) fn member(&mut self, holder: &Type, of: &Expr<'a>, name: Name<'a>) -> Type {
        match holder {
            Type::Section(section) => self.item_of(&section.items, (of, section.name), name),
            Type::Names(path, items) => {
                let path = path.to_string();
                self.item_of(items, (of, &path), name)
            }
            Type::Class(section) => self.class_member(section, of, name),
            Type::Ctx(ctx) => self.ctx_member(*ctx, of, name),
            Type::Std(library, members) => {
                let found = members.iter().find(|(it, _)| *it == name.text);
                match found {
                    Some((_, Some(arguments))) => {
                        Type::StdFunction(format!("{library}.{}", name.text).into(), *arguments)
                    }
                    Some((_, None)) => Type::Any,
                    None => {
                        let known = members.iter().map(|(it, _)| *it);
                        self.unknown(of, library, name, known.collect());
                        Type::Any
                    }
                }
            }
            Type::View => Type::View,
            Type::Place(is_certain) => {
                self.item_expected(*is_certain, of);
                Type::Any
            }
            Type::Object(schema, writes) => self.field(schema, *writes, of, name),
            Type::Any
            | Type::Whole
            | Type::Text
            | Type::Number
            | Type::Function(_)
            | Type::ListOf(_)
            | Type::Callable(..)
            | Type::StdFunction(..)
            | Type::Own(_)
            | Type::Module(_) => Type::Any,
        }
    }

    fn item_of(
        &mut self,
        items: &'static [Item],
        (of, path): (&Expr<'a>, &str),
        name: Name<'a>,
    ) -> Type {
        let Some(item) = items.iter().find(|it| it.name == name.text) else {
            let language = self.text.language;
            let known = items.iter().filter(|it| it.spoken.in_language(language));
            self.unknown(of, path, name, known.map(|it| it.name).collect());
            return Type::Any;
        };
        if !item.spoken.in_language(self.text.language) {
            let shown = self.written(of.span, path);
            let message = format!("there is no {shown}.{}", name.text);
            self.report(Rule::UnknownMember, name.span, message, Some(item.spoken.note()));
        }
        item_type(&format!("{path}.{}", name.text), item)
    }

    /// Reports a member that does not exist.
    pub(super) fn unknown(&mut self, of: &Expr<'a>, path: &str, name: Name<'a>, known: Vec<&str>) {
        if self.reports {
            let shown = self.written(of.span, path);
            let hint = known::hint(&format!("{shown}."), name.text, known);
            let message = format!("there is no {shown}.{}", name.text);
            self.report(Rule::UnknownMember, name.span, message, hint);
        }
    }

    fn class_member(&mut self, section: &'static Section, of: &Expr<'a>, name: Name<'a>) -> Type {
        let items = known::items(section);
        if let Some(item) = items.iter().find(|it| it.name == name.text) {
            return item_type(&format!("{}.{}", self.written(of.span, "it"), name.text), item);
        }
        if section.name == "Patch" {
            self.patch_member(of, name, &items);
            return Type::Any;
        }
        if let Some(others) = section.others {
            return known::type_of(others);
        }
        // Deprecated names work, too.
        let is_setting = section.name == "Settings" && configure::group(name.text).is_ok();
        let is_property = !self.is_lua() && known::rhai::PROPERTIES.contains(&name.text);
        if !items.is_empty() && !is_property && !is_setting {
            self.unknown(of, section.name, name, items.iter().map(|it| it.name).collect());
        }
        Type::Any
    }

    /// Checks a top-level field of the patch. Resources may have any, so only misspellings are reported. Returns whether it is such
    /// a field.
    fn patch_member(&mut self, of: &Expr<'a>, name: Name<'a>, items: &[&'static Item]) -> bool {
        let known = || items.iter().map(|it| it.name);
        let is_mistyped =
            !known::is_top_field(name.text) && known::typo(name.text, known()).is_some();
        if is_mistyped {
            self.unknown(of, "ctx.patch", name, known().collect());
        }
        is_mistyped
    }

    fn ctx_member(&mut self, ctx: Ctx, of: &Expr<'a>, name: Name<'a>) -> Type {
        if !ctx.is_certain() && self.program.fields.contains(name.text) {
            // It may be a table of the script that looks like a `ctx`.
            return Type::Any;
        }
        let classes = ctx.categories().filter_map(|it| known::class_section(ctx_class(it)));
        let item = classes.flat_map(known::items).find(|it| it.name == name.text);
        if let Some(item) = item {
            let known = self.part_of_object(ctx, name.text);
            return known.unwrap_or_else(|| ctx_type(item, name.text));
        }
        let own = |it: &&Section| it.name.ends_with("Ctx");
        let known_elsewhere = known::classes().filter(own).flat_map(|it| &it.items);
        if let Some(item) = known_elsewhere.into_iter().find(|it| it.name == name.text) {
            if ctx.is_certain() {
                let shown = self.written(of.span, "ctx");
                let message = format!("this kind of handler has no {shown}.{}", name.text);
                let hint = format!("only available in {}", having(name.text));
                self.report(Rule::OtherHandler, name.span, message, Some(hint));
            }
            return ctx_type(item, name.text);
        }
        let indexes = self.program.knowledge.indexes.as_deref();
        if indexes.is_some_and(|it| it.contains(name.text)) {
            return known::class("Index");
        }
        let is_mistyped = known::typo(name.text, known::kwargs()).is_some();
        let is_wrong = is_mistyped || (ctx.is_certain() && indexes.is_some());
        if is_wrong {
            self.unknown(of, "ctx", name, known::kwargs().collect());
        }
        Type::Any
    }

    /// Returns the schema of a kind, if it is known.
    fn schema(&self, kind: usize) -> Option<SchemaPart> {
        let definitions = self.program.knowledge.definitions.unwrap_or(|_| None);
        let kind = self.program.knowledge.kinds.get(kind)?;
        Some(SchemaPart::of(&kind.schema, definitions))
    }

    /// Returns the type of a field of `ctx` that is part of an object with a known schema.
    fn part_of_object(&self, ctx: Ctx, name: &str) -> Option<Type> {
        if matches!(name, "meta") {
            let definitions = self.program.knowledge.definitions.unwrap_or(|_| None);
            return Some(Type::Object(SchemaPart::of_metadata(definitions), false));
        }
        let schema = self.schema(ctx.kind?)?;
        match name {
            "body" => Some(Type::Object(schema, false)),
            "patch" => Some(Type::Object(schema, true)),
            "spec" | "status" => match schema.field(name) {
                Field::Known(part) => Some(Type::Object(part, false)),
                Field::Unknown(_) | Field::Open => None,
            },
            _ => None,
        }
    }

    /// Checks a field of an object with a known schema.
    fn field(&mut self, schema: &SchemaPart, writes: bool, of: &Expr<'a>, name: Name<'a>) -> Type {
        let otherwise = if writes { Type::Any } else { Type::View };
        if schema.is_root() {
            if writes && name.text == "status" {
                self.status_is_written(schema, name);
            }
            match name.text {
                "fns" if writes => return known::class("PatchFunctions"),
                "meta" | "metadata" => {
                    let definitions = self.program.knowledge.definitions.unwrap_or(|_| None);
                    return Type::Object(SchemaPart::of_metadata(definitions), writes);
                }
                "apiVersion" | "kind" => return otherwise,
                _ => {}
            }
        }
        match schema.field(name.text) {
            Field::Known(field) if field.is_text() && !writes => Type::Text,
            Field::Known(field) => Type::Object(field, writes),
            Field::Open => otherwise,
            Field::Unknown(known) => {
                let patch = known::class_section("Patch").filter(|_| writes && schema.is_root());
                if patch.is_some_and(|it| self.patch_member(of, name, &known::items(it))) {
                    return otherwise;
                }
                let is_property = !self.is_lua() && known::rhai::PROPERTIES.contains(&name.text);
                if self.reports && !is_property {
                    let shown = self.written(of.span, "the object");
                    let known = known.iter().map(String::as_str);
                    let hint = known::hint(&format!("{shown}."), name.text, known);
                    let message = format!("the schema has no field {shown}.{}", name.text);
                    self.report(Rule::UnknownField, name.span, message, hint);
                }
                otherwise
            }
        }
    }

    /// Checks the fields of a table that becomes part of an object.
    pub(super) fn fields_of(&mut self, schema: &SchemaPart, value: &Expr<'a>) {
        if !self.reports && self.probe.is_none() {
            return;
        }
        let ExprKind::Table(items) = &value.bare().kind else { return };
        for item in items {
            let (ItemKey::Name(name), inner) = (&item.key, &item.value) else { continue };
            self.note_member(&Type::Object(schema.clone(), true), *name);
            match schema.field(name.text) {
                Field::Known(field) => self.fields_of(&field, inner),
                Field::Open => {}
                Field::Unknown(known) => {
                    let hint = known::hint("", name.text, known.iter().map(String::as_str));
                    let message = format!("the schema has no field {} here", name.text);
                    self.report(Rule::UnknownField, name.span, message, hint);
                }
            }
        }
    }

    /// Checks a variable of a Rhai module.
    pub(super) fn module_variable(&mut self, module: usize, of: &Expr<'a>, name: Name<'a>) {
        let Some(exports) = self.program.exports.get(module) else { return };
        let is_known = exports.variables.contains(name.text)
            || exports.functions.contains_key(name.text)
            || !exports.is_closed;
        if !is_known {
            let known = exports.variables.iter().copied().collect();
            self.unknown(of, "the module", name, known);
        }
    }
}

/// Returns the kinds of handlers that have a field of `ctx`.
fn having(field: &str) -> String {
    let kinds = [
        ("ChangeCtx", "change handlers"),
        ("EventCtx", "`on_event`"),
        ("BackgroundCtx", "daemons and timers"),
        ("IndexCtx", "index functions"),
        ("AdmissionCtx", "admission handlers"),
        ("ConversionCtx", "`on_convert`"),
        ("ActivityCtx", "`on_startup` and other activities"),
        ("ObjectCtx", "handlers of objects"),
    ];
    let has = |class: &str| {
        known::class_section(class).is_some_and(|it| it.items.iter().any(|it| it.name == field))
    };
    let all = kinds.iter().filter(|(class, _)| has(class)).map(|(_, shown)| *shown);
    all.collect::<Vec<_>>().join(", ")
}

/// Returns the type of a field of `ctx`.
fn ctx_type(item: &'static Item, name: &str) -> Type {
    if VIEWS.contains(&name) {
        return Type::View;
    }
    match &item.shape {
        ItemShape::Value(Ty::Map) => Type::View,
        ItemShape::Value(ty) => known::type_of(*ty),
        ItemShape::Function(_) | ItemShape::Method(_) | ItemShape::Table(_) => Type::Any,
    }
}

/// Returns the type of an item of the surface.
pub(super) fn item_type(path: &str, item: &'static Item) -> Type {
    match &item.shape {
        ItemShape::Value(ty) => known::type_of(*ty),
        ItemShape::Table(items) => Type::Names(path.into(), items),
        ItemShape::Function(_) | ItemShape::Method(_) => Type::Callable(path.into(), item),
    }
}
