//! Checks calls of methods.

use super::{
    super::{
        known,
        tree::{Expr, Name},
        types::Type,
    },
    InferenceWalk, Rule,
};
use crate::scripting::surface::{ItemShape, Section};

impl<'a> InferenceWalk<'_, 'a> {
    /// Checks a call of a method: `of:name(…)` in Lua, `of.name(…)` in Rhai.
    pub(super) fn method(&mut self, of: &Expr<'a>, name: Name<'a>, arguments: &[Expr<'a>]) -> Type {
        let holder = self.expr(of);
        self.note_member(&holder, name);
        self.activity += usize::from(self.may_wait(&holder, name.text));
        if name.text == "set" {
            // The call may add a function with this name to a map.
            self.next.fields.extend(arguments.first().and_then(Expr::literal));
        }
        if self.is_lua() {
            self.method_of_lua(&holder, of, name, arguments)
        } else {
            self.method_of_rhai(&holder, of, name, arguments)
        }
    }

    fn method_of_lua(
        &mut self,
        holder: &Type,
        of: &Expr<'a>,
        name: Name<'a>,
        arguments: &[Expr<'a>],
    ) -> Type {
        match holder {
            Type::Class(section) => return self.method_of_class(section, of, name, arguments),
            Type::Section(section) => {
                let is_known = section.items.iter().any(|it| it.name == name.text);
                let message = format!("functions of {} are called with a dot", section.name);
                if is_known {
                    let hint = format!("write `{}.{}(…)`", section.name, name.text);
                    self.report(Rule::Arguments, name.span, message, Some(hint));
                } else {
                    self.member(holder, of, name);
                }
            }
            Type::Text => self.method_of_text(name),
            Type::Ctx(_) => drop(self.member(holder, of, name)),
            Type::Own(_) => self.escape(holder),
            Type::Place(true) => self.item_expected(true, of),
            _ => {}
        }
        self.values(arguments);
        Type::Any
    }

    fn method_of_text(&mut self, name: Name<'a>) {
        let members = known::lua::LIBRARIES.iter().find(|(it, _)| *it == "string");
        let members = members.map_or(&[][..], |(_, it)| *it);
        if !members.iter().any(|(it, _)| *it == name.text) {
            let hint = known::hint("", name.text, members.iter().map(|(it, _)| *it));
            let message = format!("strings have no method `{}`", name.text);
            self.report(Rule::UnknownFunction, name.span, message, hint);
        }
    }

    /// Checks a call of a method of a handle.
    fn method_of_class(
        &mut self,
        section: &'static Section,
        of: &Expr<'a>,
        name: Name<'a>,
        arguments: &[Expr<'a>],
    ) -> Type {
        let items = known::items(section);
        let language = self.text.language;
        let spoken = |it: &&&crate::scripting::surface::Item| it.spoken.in_language(language);
        let item = items.iter().find(|it| it.name == name.text).filter(|it| spoken(it));
        if let Some(item) = item
            && let ItemShape::Method(_) = item.shape
        {
            let sign = if self.is_lua() { ":" } else { "." };
            let path = format!("{}{sign}{}", self.written(of.span, section.name), name.text);
            return self.call_of_surface(&path, item, name.span, arguments);
        }
        self.values(arguments);
        let is_open = section.others.is_some() || item.is_some() || items.is_empty();
        if !is_open && self.reports {
            let sign = if self.is_lua() { ":" } else { "." };
            let shown = self.written(of.span, section.name);
            let is_method = |it: &&&crate::scripting::surface::Item| {
                spoken(it) && matches!(it.shape, ItemShape::Method(_))
            };
            let known = items.iter().filter(is_method).map(|it| it.name);
            let hint = known::hint(&format!("{shown}{sign}"), name.text, known);
            let message = format!("there is no {shown}{sign}{}", name.text);
            self.report(Rule::UnknownMember, name.span, message, hint);
        }
        Type::Any
    }

    fn method_of_rhai(
        &mut self,
        holder: &Type,
        of: &Expr<'a>,
        name: Name<'a>,
        arguments: &[Expr<'a>],
    ) -> Type {
        match holder {
            Type::Section(_) | Type::Names(..) => {
                if self.functions.contains_key(name.text) {
                    // The engine calls the function of the script, or rejects the call.
                    self.values(arguments);
                    return Type::Any;
                }
                let member = self.member(holder, of, name);
                if let Type::Callable(path, item) = member {
                    return self.call_of_surface(&path, item, name.span, arguments);
                }
                self.values(arguments);
                return Type::Any;
            }
            Type::Class(section) if !self.is_anywhere(name.text) => {
                return self.method_of_class(section, of, name, arguments);
            }
            Type::Class(section) => {
                let item = section.items.iter().find(|it| it.name == name.text);
                if let Some(item) = item
                    && let ItemShape::Method(_) = item.shape
                {
                    let path = format!("{}.{}", self.written(of.span, section.name), name.text);
                    return self.call_of_surface(&path, item, name.span, arguments);
                }
            }
            Type::Ctx(_) if !known::is_of_rhai(name.text) => drop(self.member(holder, of, name)),
            _ => self.generic_method(name),
        }
        self.values(arguments);
        Type::Any
    }

    /// Checks the name of a method of an unknown value.
    fn generic_method(&mut self, name: Name<'a>) {
        let is_known = self.is_anywhere(name.text)
            || known::is_method(name.text)
            || self.variable(name.text).is_some()
            || self.program.fields.contains(name.text);
        if is_known || !self.reports {
            return;
        }
        let known = known::rhai::FUNCTIONS.iter().map(|(it, _)| *it);
        let known = known.chain(self.functions.keys().copied());
        let hint = known::hint("", name.text, known);
        let message = format!("there is no method `{}`", name.text);
        self.report(Rule::UnknownFunction, name.span, message, hint);
    }

    /// Returns whether the language or the script has a function with this name, which is a method of every value.
    fn is_anywhere(&self, name: &str) -> bool {
        known::is_of_rhai(name) || self.functions.contains_key(name)
    }
}
