//! The parser of Luau.

use super::{
    super::tree::{Expr, ExprKind, FunctionNode, ItemKey, MemberAccess, Stmt, TableItem},
    TokenReader,
};
use crate::scripting::TokenKind;

/// Binary operators with their binding powers to the left and to the right.
const OPERATORS: &[(&str, u8, u8)] = &[
    ("or", 1, 1),
    ("and", 2, 2),
    ("<", 3, 3),
    (">", 3, 3),
    ("<=", 3, 3),
    (">=", 3, 3),
    ("~=", 3, 3),
    ("==", 3, 3),
    ("..", 9, 8),
    ("+", 10, 10),
    ("-", 10, 10),
    ("*", 11, 11),
    ("/", 11, 11),
    ("//", 11, 11),
    ("%", 11, 11),
    ("^", 14, 13),
];
const UNARY: u8 = 12;

const ENDS: &[&str] = &["end", "else", "elseif", "until"];
const COMPOUND: &[&str] = &["+=", "-=", "*=", "/=", "//=", "%=", "^=", "..="];

impl<'a> TokenReader<'_, 'a> {
    pub(super) fn lua_block(&mut self) -> Option<Vec<Stmt<'a>>> {
        self.nested(|reader| {
            let mut body = Vec::new();
            while reader.token().is_some() && !reader.is_one_of(ENDS) {
                if reader.eat(";") {
                    continue;
                }
                let before = reader.at;
                match reader.statement() {
                    Some(statement) => body.push(statement),
                    None => reader.leave_out(before)?,
                }
                reader.at = reader.at.max(before + usize::from(reader.recovers));
            }
            Some(body)
        })
    }

    fn statement(&mut self) -> Option<Stmt<'a>> {
        let token = self.token()?;
        if self.skip_type_statement()? {
            // Types are not checked.
            return Some(Stmt::Jump);
        }
        let statement = match token.text {
            "local" if self.eat("local") => self.local()?,
            "if" if self.eat("if") => self.branches()?,
            "while" if self.eat("while") => {
                let condition = self.lua_expr()?;
                Stmt::While(condition, self.do_block()?)
            }
            "do" if self.is("do") => Stmt::Block(self.do_block()?),
            "for" if self.eat("for") => self.for_loop()?,
            "repeat" if self.eat("repeat") => {
                let body = self.lua_block()?;
                self.expect("until")?;
                Stmt::Repeat(body, self.lua_expr()?)
            }
            "function" if self.eat("function") => self.function_statement()?,
            "return" if self.eat("return") => {
                let is_end = self.token().is_none() || self.is_one_of(ENDS) || self.is(";");
                Stmt::Return(if is_end { Vec::new() } else { self.lua_list()? })
            }
            "break" if self.eat("break") => Stmt::Jump,
            "continue" if self.is_name("continue") && !self.continues() => {
                self.at += 1;
                Stmt::Jump
            }
            "@" if self.eat("@") => {
                self.name()?;
                return self.statement();
            }
            _ => self.lua_expr_statement()?,
        };
        Some(statement)
    }

    /// Returns whether the next token is a name, and not a keyword: the token after it decides.
    fn continues(&self) -> bool {
        let Some(after) = self.ahead(1) else { return false };
        after.kind == TokenKind::Text
            || after.is_one_of(&["=", ".", ":", "(", "[", "{", ","])
            || after.is_one_of(COMPOUND)
    }

    /// Skips `type X = …` and `export type X = …`.
    fn skip_type_statement(&mut self) -> Option<bool> {
        let is_exported = self.is_name("export")
            && self.ahead(1).is_some_and(|it| it.kind == TokenKind::Name && it.text == "type");
        let type_at = usize::from(is_exported);
        let is_type =
            self.ahead(type_at).is_some_and(|it| it.kind == TokenKind::Name && it.text == "type");
        let is_named = self.ahead(type_at + 1).is_some_and(|it| it.kind == TokenKind::Name);
        if !is_type || !is_named {
            return Some(false);
        }
        self.at += type_at + 2;
        if self.is("<") {
            self.skip_angles()?;
        }
        self.expect("=")?;
        self.skip_type()?;
        Some(true)
    }

    fn local(&mut self) -> Option<Stmt<'a>> {
        if self.eat("function") {
            let name = self.name()?;
            return Some(Stmt::LocalFunction(name, self.lua_function(false)?));
        }
        let mut names = Vec::new();
        loop {
            names.push(self.name()?);
            if self.eat(":") {
                self.skip_type()?;
            }
            if !self.eat(",") {
                break;
            }
        }
        let values = if self.eat("=") { self.lua_list()? } else { Vec::new() };
        Some(Stmt::Declare(names, values))
    }

    fn branches(&mut self) -> Option<Stmt<'a>> {
        let (mut branches, mut otherwise) = (Vec::new(), None);
        loop {
            let condition = self.lua_expr()?;
            self.expect("then")?;
            branches.push((condition, self.lua_block()?));
            if self.eat("elseif") {
                continue;
            }
            if self.eat("else") {
                otherwise = Some(self.lua_block()?);
            }
            self.expect("end")?;
            return Some(Stmt::If(branches, otherwise));
        }
    }

    fn do_block(&mut self) -> Option<Vec<Stmt<'a>>> {
        self.expect("do")?;
        let body = self.lua_block()?;
        self.expect("end")?;
        Some(body)
    }

    fn for_loop(&mut self) -> Option<Stmt<'a>> {
        let mut names = Vec::new();
        loop {
            names.push(self.name()?);
            if self.eat(":") {
                self.skip_type()?;
            }
            if !self.eat(",") {
                break;
            }
        }
        if self.eat("=") {
            let bounds = self.lua_list()?;
            return Some(Stmt::Count(*names.first()?, bounds, self.do_block()?));
        }
        self.expect("in")?;
        let values = self.lua_list()?;
        Some(Stmt::Each(names, values, self.do_block()?))
    }

    fn function_statement(&mut self) -> Option<Stmt<'a>> {
        let start = self.here();
        let name = self.name()?;
        let mut target = self.since(start, ExprKind::Name(name.text));
        let mut is_method = false;
        while self.is(".") || self.is(":") {
            is_method = self.eat(":");
            if !is_method {
                self.expect(".")?;
            }
            let member = self.word()?;
            let kind = ExprKind::Member(Box::new(target), member, MemberAccess::Plain);
            target = self.since(start, kind);
        }
        Some(Stmt::Function(target, self.lua_function(is_method)?))
    }

    /// Reads a function from its parameters on.
    fn lua_function(&mut self, is_method: bool) -> Option<FunctionNode<'a>> {
        if self.is("<") {
            self.skip_angles()?;
        }
        self.expect("(")?;
        let mut parameters = Vec::new();
        while !self.is(")") {
            if !self.eat("...") {
                parameters.push(self.name()?);
            }
            if self.eat(":") {
                self.skip_type()?;
            }
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        if self.eat(":") {
            self.skip_type()?;
        }
        let body = self.lua_block()?;
        self.expect("end")?;
        Some(self.function(parameters, is_method, body))
    }

    fn lua_expr_statement(&mut self) -> Option<Stmt<'a>> {
        let first = self.suffixed()?;
        if self.is_one_of(COMPOUND) {
            self.at += 1;
            let value = self.lua_expr()?;
            return Some(Stmt::Assign(vec![first], vec![value]));
        }
        if !self.is("=") && !self.is(",") {
            return Some(Stmt::Expr(first));
        }
        let mut targets = vec![first];
        while self.eat(",") {
            targets.push(self.suffixed()?);
        }
        self.expect("=")?;
        Some(Stmt::Assign(targets, self.lua_list()?))
    }

    fn lua_list(&mut self) -> Option<Vec<Expr<'a>>> {
        let mut all = vec![self.lua_expr()?];
        while self.eat(",") {
            all.push(self.lua_expr()?);
        }
        Some(all)
    }

    pub(super) fn lua_expr(&mut self) -> Option<Expr<'a>> {
        self.binary(0)
    }

    fn binary(&mut self, least: u8) -> Option<Expr<'a>> {
        self.nested(|reader| {
            let start = reader.here();
            let mut left = reader.unary()?;
            let mut row = 0;
            while let Some((operator, _, right)) = reader.operator(least) {
                reader.link(&mut row)?;
                reader.at += 1;
                let other = reader.binary(right)?;
                let kind = ExprKind::Binary(operator, Box::new(left), Box::new(other));
                left = reader.since(start, kind);
            }
            Some(left)
        })
    }

    fn operator(&self, least: u8) -> Option<(&'static str, u8, u8)> {
        let token = self.token()?;
        OPERATORS.iter().find(|(it, left, _)| *left > least && token.is(it)).copied()
    }

    fn unary(&mut self) -> Option<Expr<'a>> {
        let start = self.here();
        if self.eat("not") {
            let inner = Box::new(self.binary(UNARY)?);
            return Some(self.since(start, ExprKind::Not(inner)));
        }
        if self.eat("-") || self.eat("#") {
            let inner = Box::new(self.binary(UNARY)?);
            return Some(self.since(start, ExprKind::Unary(inner)));
        }
        let mut value = self.simple()?;
        while self.eat("::") {
            self.skip_type()?;
            value = self.since(start, ExprKind::Parens(Box::new(value)));
        }
        Some(value)
    }

    fn simple(&mut self) -> Option<Expr<'a>> {
        let start = self.here();
        let Some(token) = self.token() else { return self.missing() };
        let kind = match token.text {
            _ if token.kind == TokenKind::Number => ExprKind::Number(token.text),
            _ if token.kind == TokenKind::Text => return self.text(Self::lua_expr),
            "nil" if token.is("nil") => ExprKind::Nil,
            "true" | "false" if token.kind == TokenKind::Keyword => {
                ExprKind::Bool(token.text == "true")
            }
            "..." if token.is("...") => ExprKind::Rest,
            "{" if token.is("{") => return self.table(),
            "function" if self.eat("function") => {
                let function = ExprKind::Function(Box::new(self.lua_function(false)?));
                return Some(self.since(start, function));
            }
            "if" if self.eat("if") => return self.choice(start),
            _ => return self.suffixed(),
        };
        self.at += 1;
        Some(self.since(start, kind))
    }

    fn choice(&mut self, start: usize) -> Option<Expr<'a>> {
        let condition = self.lua_expr()?;
        self.expect("then")?;
        let first = self.lua_expr()?;
        let inner = self.here();
        let second = if self.eat("elseif") {
            self.nested(|reader| reader.choice(inner))?
        } else {
            self.expect("else")?;
            self.lua_expr()?
        };
        let kind = ExprKind::Choice(Box::new([condition, first, second]));
        Some(self.since(start, kind))
    }

    fn table(&mut self) -> Option<Expr<'a>> {
        let start = self.here();
        self.expect("{")?;
        let mut items = Vec::new();
        while !self.is("}") {
            let is_named = self.token()?.kind == TokenKind::Name && self.is_ahead(1, "=");
            let key = if is_named {
                let name = self.name()?;
                self.expect("=")?;
                ItemKey::Name(name)
            } else if self.eat("[") {
                let key = self.lua_expr()?;
                self.expect("]")?;
                self.expect("=")?;
                ItemKey::Computed(key)
            } else {
                ItemKey::Place
            };
            let value = self.lua_expr()?;
            items.push(TableItem { key, value });
            if !self.eat(",") && !self.eat(";") {
                break;
            }
        }
        self.expect("}")?;
        Some(self.since(start, ExprKind::Table(items)))
    }

    fn suffixed(&mut self) -> Option<Expr<'a>> {
        self.nested(|reader| {
            let start = reader.here();
            let mut value = if reader.eat("(") {
                let inner = reader.lua_expr()?;
                reader.expect(")")?;
                reader.since(start, ExprKind::Parens(Box::new(inner)))
            } else if let Some(name) = reader.name() {
                reader.since(start, ExprKind::Name(name.text))
            } else {
                return reader.missing();
            };
            let mut row = 0;
            while reader.is_suffix() {
                reader.link(&mut row)?;
                let kind = reader.suffix(Box::new(value))?;
                value = reader.since(start, kind);
            }
            Some(value)
        })
    }

    fn is_suffix(&self) -> bool {
        self.is_one_of(&[".", "[", ":", "(", "{"]) || self.is_text()
    }

    /// Reads the suffix of a value: a member, an index, a call.
    fn suffix(&mut self, value: Box<Expr<'a>>) -> Option<ExprKind<'a>> {
        if self.eat(".") {
            return Some(ExprKind::Member(value, self.word()?, MemberAccess::Plain));
        }
        if self.eat("[") {
            let key = Box::new(self.lua_expr()?);
            self.expect("]")?;
            return Some(ExprKind::Index(value, key));
        }
        if self.eat(":") {
            let name = self.word()?;
            return Some(ExprKind::Method(value, name, self.arguments()?));
        }
        Some(ExprKind::Call(value, self.arguments()?))
    }

    fn is_text(&self) -> bool {
        self.token().is_some_and(|it| it.kind == TokenKind::Text)
    }

    fn arguments(&mut self) -> Option<Vec<Expr<'a>>> {
        if self.is_text() {
            return Some(vec![self.text(Self::lua_expr)?]);
        }
        if self.is("{") {
            return Some(vec![self.table()?]);
        }
        if self.recovers && !self.is("(") {
            self.report_broken();
            return Some(Vec::new());
        }
        self.expect("(")?;
        let all = if self.is(")") { Vec::new() } else { self.lua_list()? };
        self.expect(")")?;
        Some(all)
    }

    /// Skips a type annotation.
    fn skip_type(&mut self) -> Option<()> {
        self.nested(|reader| {
            if !reader.eat("|") {
                reader.eat("&");
            }
            loop {
                reader.skip_simple_type()?;
                while reader.eat("?") {}
                if reader.eat("->") {
                    return reader.skip_type();
                }
                if !reader.eat("|") && !reader.eat("&") {
                    return Some(());
                }
            }
        })
    }

    fn skip_simple_type(&mut self) -> Option<()> {
        self.eat("...");
        if self.is("<") {
            self.skip_angles()?;
        }
        if self.is("(") {
            return self.skip_balanced("(", ")");
        }
        if self.is("{") {
            return self.skip_balanced("{", "}");
        }
        let token = self.next()?;
        if token.kind == TokenKind::Text || token.is_one_of(&["nil", "true", "false"]) {
            return Some(());
        }
        if token.kind != TokenKind::Name {
            return None;
        }
        if token.text == "typeof" && self.is("(") {
            return self.skip_balanced("(", ")");
        }
        while self.eat(".") {
            self.name()?;
        }
        if self.is("<") { self.skip_angles() } else { Some(()) }
    }

    fn skip_angles(&mut self) -> Option<()> {
        self.skip_balanced("<", ">")
    }

    fn skip_balanced(&mut self, open: &str, close: &str) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            let token = self.next()?;
            if token.is(open) {
                depth += 1;
            } else if token.is(close) {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(());
                }
            }
        }
    }
}
