//! The parser of Rhai.

use super::{
    super::tree::{
        Expr, ExprKind, FunctionNode, ItemKey, MemberAccess, Name, Span, Stmt, TableItem,
    },
    TokenReader, span,
};
use crate::scripting::TokenKind;

/// Binary operators with their binding powers; all but `**` are left-associative.
const OPERATORS: &[(&str, u8)] = &[
    ("||", 1),
    ("|", 1),
    ("^", 1),
    ("&&", 2),
    ("&", 2),
    ("==", 3),
    ("!=", 3),
    ("in", 4),
    ("<", 5),
    (">", 5),
    ("<=", 5),
    (">=", 5),
    ("??", 6),
    ("..", 7),
    ("..=", 7),
    ("+", 8),
    ("-", 8),
    ("*", 9),
    ("/", 9),
    ("%", 9),
    ("**", 10),
    ("<<", 11),
    (">>", 11),
];
const POWER: u8 = 10;

const ASSIGNING: &[&str] =
    &["=", "+=", "-=", "*=", "/=", "%=", "**=", "&=", "|=", "^=", "<<=", ">>="];
/// Begin statements, even where an expression is expected.
const BLOCKS: &[&str] = &["if", "switch", "while", "loop", "for", "do", "try", "{"];

impl<'a> TokenReader<'_, 'a> {
    pub(super) fn rhai_statements(&mut self) -> Option<Vec<Stmt<'a>>> {
        self.nested(|reader| {
            let mut body = Vec::new();
            while reader.token().is_some() && !reader.is("}") {
                if reader.eat(";") {
                    continue;
                }
                let (is_block, before) = (reader.is_one_of(BLOCKS), reader.at);
                let Some(statement) = reader.rhai_statement() else {
                    reader.leave_out(before)?;
                    continue;
                };
                body.push(statement);
                let is_function = matches!(body.last(), Some(Stmt::NamedFunction(..)));
                let is_end = reader.token().is_none() || reader.is("}");
                if !reader.eat(";") && !is_end && !is_block && !is_function {
                    if !reader.recovers {
                        return None;
                    }
                    reader.report_broken();
                    reader.at = reader.at.max(before + 1);
                }
            }
            Some(body)
        })
    }

    fn braces(&mut self) -> Option<Vec<Stmt<'a>>> {
        self.expect("{")?;
        let body = self.rhai_statements()?;
        self.expect("}")?;
        Some(body)
    }

    fn rhai_statement(&mut self) -> Option<Stmt<'a>> {
        let token = self.token()?;
        match token.text {
            _ if token.kind != TokenKind::Keyword && !token.is("{") => self.rhai_expr_statement(),
            "let" | "const" => {
                self.at += 1;
                let name = self.name()?;
                let value = if self.eat("=") { vec![self.rhai_expr()?] } else { Vec::new() };
                Some(Stmt::Declare(vec![name], value))
            }
            "export" => {
                self.at += 1;
                if self.is("let") || self.is("const") {
                    return self.rhai_statement();
                }
                let value = self.rhai_expr()?;
                if self.eat("as") {
                    self.name()?;
                }
                Some(Stmt::Expr(value))
            }
            "import" => {
                self.at += 1;
                let path = self.rhai_expr()?;
                let name = if self.eat("as") { Some(self.name()?) } else { None };
                Some(Stmt::Import(path, name))
            }
            "private" | "fn" => {
                self.eat("private");
                self.expect("fn")?;
                self.named_function()
            }
            "return" | "throw" | "break" => {
                self.at += 1;
                let is_end = self.token().is_none() || self.is(";") || self.is("}");
                let value = if is_end { None } else { Some(self.rhai_expr()?) };
                Some(match (token.text, value) {
                    ("return", value) => Stmt::Return(value.into_iter().collect()),
                    (_, Some(value)) => Stmt::Block(vec![Stmt::Expr(value), Stmt::Jump]),
                    (_, None) => Stmt::Jump,
                })
            }
            "continue" => {
                self.at += 1;
                Some(Stmt::Jump)
            }
            _ if token.is_one_of(BLOCKS) => {
                let start = self.here();
                let statement = self.block_statement()?;
                if !self.continues_value() {
                    return Some(statement);
                }
                // `if a { b } else { c }.len()`
                let value = self.since(start, ExprKind::Block(vec![statement]));
                let value = self.chain_from(start, value)?;
                let first = self.rhai_binary_from(0, start, value)?;
                self.assigned(first)
            }
            _ => self.rhai_expr_statement(),
        }
    }

    /// Returns whether an expression continues after a block.
    fn continues_value(&self) -> bool {
        self.is(".") || self.is("?.")
    }

    fn named_function(&mut self) -> Option<Stmt<'a>> {
        let mut name = self.name().or_else(|| self.text_as_name())?;
        if self.eat(".") {
            name = self.name()?;
        }
        self.expect("(")?;
        let mut parameters = Vec::new();
        while !self.is(")") {
            parameters.push(self.name()?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        let body = self.braces()?;
        Some(Stmt::NamedFunction(name, self.function(parameters, false, body)))
    }

    fn text_as_name(&mut self) -> Option<Name<'a>> {
        let token = self.token().filter(|it| it.kind == TokenKind::Text)?;
        self.at += 1;
        Some(Name { text: token.text, span: span(&token) })
    }

    fn block_statement(&mut self) -> Option<Stmt<'a>> {
        let token = self.token()?;
        if token.is("{") {
            return self.braces().map(Stmt::Block);
        }
        self.at += 1;
        match token.text {
            "if" => self.rhai_if(),
            "while" => {
                let condition = self.rhai_expr()?;
                Some(Stmt::While(condition, self.braces()?))
            }
            "loop" => {
                let always = self.since(token.at, ExprKind::Bool(true));
                Some(Stmt::While(always, self.braces()?))
            }
            "do" => {
                let body = self.braces()?;
                if !self.eat("while") {
                    self.expect("until")?;
                }
                let condition = self.rhai_expr()?;
                Some(Stmt::While(condition, body))
            }
            "for" => self.rhai_for(),
            "switch" => self.switch(),
            "try" => {
                let body = self.braces()?;
                self.expect("catch")?;
                let mut name = None;
                if self.eat("(") {
                    name = Some(self.name()?);
                    self.expect(")")?;
                }
                Some(Stmt::Try(body, name, self.braces()?))
            }
            _ => None,
        }
    }

    fn rhai_if(&mut self) -> Option<Stmt<'a>> {
        let mut branches = Vec::new();
        loop {
            let condition = self.rhai_expr()?;
            branches.push((condition, self.braces()?));
            if !self.eat("else") {
                return Some(Stmt::If(branches, None));
            }
            if !self.eat("if") {
                return Some(Stmt::If(branches, Some(self.braces()?)));
            }
        }
    }

    fn rhai_for(&mut self) -> Option<Stmt<'a>> {
        let mut names = Vec::new();
        if self.eat("(") {
            names.push(self.name()?);
            self.expect(",")?;
            names.push(self.name()?);
            self.expect(")")?;
        } else {
            names.push(self.name()?);
        }
        self.expect("in")?;
        let values = vec![self.rhai_expr()?];
        Some(Stmt::Each(names, values, self.braces()?))
    }

    fn switch(&mut self) -> Option<Stmt<'a>> {
        let mut all = vec![self.rhai_expr()?];
        self.expect("{")?;
        while !self.is("}") {
            let start = self.here();
            if self.is_name("_") {
                self.at += 1;
            } else {
                // Above `|`, which separates patterns.
                all.push(self.rhai_binary(1)?);
                while self.eat("|") {
                    all.push(self.rhai_binary(1)?);
                }
            }
            if self.eat("if") {
                all.push(self.rhai_expr()?);
            }
            self.expect("=>")?;
            let is_block = self.is_one_of(BLOCKS);
            let value = Box::new(self.rhai_statement()?);
            all.push(self.since(start, ExprKind::Block(vec![*value])));
            if !self.eat(",") && !is_block {
                break;
            }
        }
        self.expect("}")?;
        Some(Stmt::Switch(all))
    }

    fn rhai_expr_statement(&mut self) -> Option<Stmt<'a>> {
        let first = self.rhai_expr()?;
        self.assigned(first)
    }

    /// Reads the assignment to a value, if there is one.
    fn assigned(&mut self, first: Expr<'a>) -> Option<Stmt<'a>> {
        if !self.is_one_of(ASSIGNING) {
            return Some(Stmt::Expr(first));
        }
        self.at += 1;
        let value = self.rhai_expr()?;
        Some(Stmt::Assign(vec![first], vec![value]))
    }

    fn rhai_expr(&mut self) -> Option<Expr<'a>> {
        self.rhai_binary(0)
    }

    fn rhai_binary(&mut self, least: u8) -> Option<Expr<'a>> {
        self.nested(|reader| {
            let start = reader.here();
            let left = reader.rhai_unary()?;
            reader.rhai_binary_from(least, start, left)
        })
    }

    /// Reads the operators after a value.
    fn rhai_binary_from(&mut self, least: u8, start: usize, left: Expr<'a>) -> Option<Expr<'a>> {
        let (mut left, mut row) = (left, 0);
        loop {
            // `a !in b`
            let is_not = self.is("!") && self.is_ahead(1, "in");
            self.at += usize::from(is_not);
            let Some((operator, power)) = self.rhai_operator(least) else { return Some(left) };
            self.at += 1;
            self.link(&mut row)?;
            let power = if operator == "**" { POWER - 1 } else { power };
            let other = self.rhai_binary(power)?;
            let kind = ExprKind::Binary(operator, Box::new(left), Box::new(other));
            left = self.since(start, kind);
        }
    }

    fn rhai_operator(&self, least: u8) -> Option<(&'static str, u8)> {
        let token = self.token()?;
        OPERATORS.iter().find(|(it, power)| *power > least && token.is(it)).copied()
    }

    fn rhai_unary(&mut self) -> Option<Expr<'a>> {
        let start = self.here();
        if self.eat("!") {
            let inner = Box::new(self.nested(Self::rhai_unary)?);
            return Some(self.since(start, ExprKind::Not(inner)));
        }
        if self.eat("-") || self.eat("+") {
            let inner = Box::new(self.nested(Self::rhai_unary)?);
            return Some(self.since(start, ExprKind::Unary(inner)));
        }
        self.chain()
    }

    /// Reads a value with its members, indexes and calls.
    fn chain(&mut self) -> Option<Expr<'a>> {
        let start = self.here();
        let value = self.primary()?;
        self.chain_from(start, value)
    }

    fn chain_from(&mut self, start: usize, value: Expr<'a>) -> Option<Expr<'a>> {
        let (mut value, mut row) = (value, 0);
        loop {
            self.link(&mut row)?;
            let is_safe = self.is("?.");
            let kind = if is_safe || self.is(".") {
                self.at += 1;
                let name = self.word()?;
                if self.is("(") {
                    let arguments = self.rhai_arguments()?;
                    ExprKind::Method(Box::new(value), name, arguments)
                } else {
                    let access = if is_safe { MemberAccess::Safe } else { MemberAccess::Plain };
                    ExprKind::Member(Box::new(value), name, access)
                }
            } else if self.eat("::") {
                let name = self.word()?;
                ExprKind::Member(Box::new(value), name, MemberAccess::Scoped)
            } else if self.eat("[") || self.eat("?[") {
                let key = self.rhai_expr()?;
                self.expect("]")?;
                ExprKind::Index(Box::new(value), Box::new(key))
            } else if self.is("(") && is_callable(&value) {
                ExprKind::Call(Box::new(value), self.rhai_arguments()?)
            } else if self.is("!") && self.is_ahead(1, "(") && is_callable(&value) {
                // Shares the variables of the caller.
                self.at += 1;
                ExprKind::Call(Box::new(value), self.rhai_arguments()?)
            } else {
                return Some(value);
            };
            value = self.since(start, kind);
        }
    }

    fn rhai_arguments(&mut self) -> Option<Vec<Expr<'a>>> {
        self.expect("(")?;
        let all = self.items(")")?;
        self.expect(")")?;
        Some(all)
    }

    fn items(&mut self, end: &str) -> Option<Vec<Expr<'a>>> {
        let mut all = Vec::new();
        while !self.is(end) {
            all.push(self.rhai_expr()?);
            if !self.eat(",") {
                break;
            }
        }
        Some(all)
    }

    fn primary(&mut self) -> Option<Expr<'a>> {
        let start = self.here();
        let Some(token) = self.token() else { return self.missing() };
        if token.is_one_of(BLOCKS) {
            let statement = self.nested(Self::block_statement)?;
            return Some(self.since(start, ExprKind::Block(vec![statement])));
        }
        let kind = match token.text {
            _ if token.kind == TokenKind::Text => return self.text(Self::rhai_expr),
            _ if token.kind == TokenKind::Number => ExprKind::Number(token.text),
            _ if token.kind == TokenKind::Name => ExprKind::Name(token.text),
            "this" => ExprKind::Name("this"),
            "true" | "false" => ExprKind::Bool(token.text == "true"),
            "(" => {
                self.at += 1;
                let kind = if self.is(")") {
                    ExprKind::Nil
                } else {
                    ExprKind::Parens(Box::new(self.rhai_expr()?))
                };
                self.expect(")")?;
                return Some(self.since(start, kind));
            }
            "[" => {
                self.at += 1;
                let kind = ExprKind::List(self.items("]")?);
                self.expect("]")?;
                return Some(self.since(start, kind));
            }
            "#{" => return self.map(),
            "|" | "||" => {
                let function = ExprKind::Function(Box::new(self.closure()?));
                return Some(self.since(start, function));
            }
            _ => return self.missing(),
        };
        self.at += 1;
        Some(self.since(start, kind))
    }

    fn closure(&mut self) -> Option<FunctionNode<'a>> {
        let mut parameters = Vec::new();
        if !self.eat("||") {
            self.expect("|")?;
            while !self.is("|") {
                parameters.push(self.name()?);
                if !self.eat(",") {
                    break;
                }
            }
            self.expect("|")?;
        }
        let statement = self.nested(Self::rhai_statement)?;
        Some(self.function(parameters, false, vec![statement]))
    }

    fn map(&mut self) -> Option<Expr<'a>> {
        let start = self.here();
        self.expect("#{")?;
        let mut items = Vec::new();
        while !self.is("}") {
            let token = self.next()?;
            let text = match token.kind {
                TokenKind::Text => super::super::tree::plain(token.text).unwrap_or_default(),
                TokenKind::Name | TokenKind::Keyword => token.text,
                TokenKind::Number | TokenKind::Symbol => return None,
            };
            let quote = usize::from(token.kind == TokenKind::Text);
            let span = Span { at: token.at + quote, len: text.len() };
            self.expect(":")?;
            let value = self.rhai_expr()?;
            items.push(TableItem { key: ItemKey::Name(Name { text, span }), value });
            if !self.eat(",") {
                break;
            }
        }
        self.expect("}")?;
        Some(self.since(start, ExprKind::Table(items)))
    }
}

/// Returns whether parentheses after this value are a call.
fn is_callable(value: &Expr<'_>) -> bool {
    matches!(&value.kind, ExprKind::Name(_) | ExprKind::Member(_, _, MemberAccess::Scoped))
}
