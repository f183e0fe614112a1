//! The syntax tree of a script: one for both languages, with only the parts that the checks need.

/// A range in a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Span {
    /// The offset of its first byte.
    pub(super) at: usize,
    /// Its length in bytes.
    pub(super) len: usize,
}

/// A name in a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'a> {
    pub(super) text: &'a str,
    pub(super) span: Span,
}

/// An expression with its range.
#[derive(Debug)]
pub(super) struct Expr<'a> {
    pub(super) kind: ExprKind<'a>,
    pub(super) span: Span,
}

/// The kinds of expressions.
#[derive(Debug)]
pub(super) enum ExprKind<'a> {
    Nil,
    Bool(bool),
    /// A number, as it is written.
    Number(&'a str),
    /// A string, as it is written, with its quotes.
    Text(&'a str),
    /// A string with expressions in it.
    Interpolated(Vec<Expr<'a>>),
    Name(&'a str),
    /// `of.name`, or `of::name` in Rhai.
    Member(Box<Expr<'a>>, Name<'a>, MemberAccess),
    /// A value by its key: `of[key]`.
    Index(Box<Expr<'a>>, Box<Expr<'a>>),
    Call(Box<Expr<'a>>, Vec<Expr<'a>>),
    /// `of:name(…)` in Lua, `of.name(…)` in Rhai.
    Method(Box<Expr<'a>>, Name<'a>, Vec<Expr<'a>>),
    Function(Box<FunctionNode<'a>>),
    /// A table in Lua, a map in Rhai.
    Table(Vec<TableItem<'a>>),
    /// A list in Rhai.
    List(Vec<Expr<'a>>),
    Not(Box<Expr<'a>>),
    /// A unary operator: `-x`, `#x`.
    Unary(Box<Expr<'a>>),
    Binary(&'a str, Box<Expr<'a>>, Box<Expr<'a>>),
    /// An expression in parentheses.
    Parens(Box<Expr<'a>>),
    /// `if` as an expression: the condition and both values.
    Choice(Box<[Expr<'a>; 3]>),
    /// A statement as an expression, in Rhai.
    Block(Vec<Stmt<'a>>),
    /// The rest of the arguments: `...`.
    Rest,
}

/// The kind of access to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberAccess {
    /// Access to a member: `a.b`.
    Plain,
    /// Access unless the value is nil: `a?.b`.
    Safe,
    /// Access to a module: `a::b`.
    Scoped,
}

/// One item of a table.
#[derive(Debug)]
pub(super) struct TableItem<'a> {
    pub(super) key: ItemKey<'a>,
    pub(super) value: Expr<'a>,
}

/// The key of an item.
#[derive(Debug)]
pub(super) enum ItemKey<'a> {
    /// The next index of a list.
    Place,
    Name(Name<'a>),
    Computed(Expr<'a>),
}

/// A function literal, or the function of a statement.
#[derive(Debug)]
pub(super) struct FunctionNode<'a> {
    /// Its id in the source.
    pub(super) id: usize,
    pub(super) parameters: Vec<Name<'a>>,
    /// Whether the first parameter, `self`, is implicit.
    pub(super) is_method: bool,
    pub(super) body: Vec<Stmt<'a>>,
}

/// A statement of a block.
#[derive(Debug)]
pub(super) enum Stmt<'a> {
    /// A declaration: `local a, b = …`, `let a = …`.
    Declare(Vec<Name<'a>>, Vec<Expr<'a>>),
    Assign(Vec<Expr<'a>>, Vec<Expr<'a>>),
    Expr(Expr<'a>),
    /// `function a.b:c() end`: the target, and the function.
    Function(Expr<'a>, FunctionNode<'a>),
    /// A local function: `local function f() end`.
    LocalFunction(Name<'a>, FunctionNode<'a>),
    /// `fn f() {}` in Rhai, which is visible in the whole source.
    NamedFunction(Name<'a>, FunctionNode<'a>),
    Block(Vec<Stmt<'a>>),
    While(Expr<'a>, Vec<Stmt<'a>>),
    /// `repeat … until`: the condition sees the variables of the block.
    Repeat(Vec<Stmt<'a>>, Expr<'a>),
    /// Conditions with their blocks; the block of `else`.
    If(Vec<(Expr<'a>, Vec<Stmt<'a>>)>, Option<Vec<Stmt<'a>>>),
    /// A numeric loop: `for i = a, b do`.
    Count(Name<'a>, Vec<Expr<'a>>, Vec<Stmt<'a>>),
    /// A loop over items: `for a, b in … do`.
    Each(Vec<Name<'a>>, Vec<Expr<'a>>, Vec<Stmt<'a>>),
    Return(Vec<Expr<'a>>),
    /// `break`, `continue`, and definitions of types.
    Jump,
    /// `import "x" as y` in Rhai.
    Import(Expr<'a>, Option<Name<'a>>),
    /// `try {} catch (e) {}` in Rhai.
    Try(Vec<Stmt<'a>>, Option<Name<'a>>, Vec<Stmt<'a>>),
    /// `switch` in Rhai: the compared value, then patterns, conditions and values.
    Switch(Vec<Expr<'a>>),
}

/// The tree of a source.
#[derive(Debug)]
pub(super) struct SyntaxTree<'a> {
    pub(super) body: Vec<Stmt<'a>>,
}

impl<'a> Expr<'a> {
    /// Returns the expression inside of parentheses.
    pub(super) fn bare(&self) -> &Expr<'a> {
        let mut it = self;
        while let ExprKind::Parens(inner) = &it.kind {
            it = inner;
        }
        it
    }

    /// Returns the content of a plain string.
    pub(super) fn literal(&self) -> Option<&'a str> {
        let ExprKind::Text(text) = self.bare().kind else { return None };
        plain(text)
    }
}

/// Returns the content of a string without escapes.
pub(super) fn plain(text: &str) -> Option<&str> {
    let inner = text.get(1..text.len().checked_sub(1)?)?;
    (text.starts_with(['"', '\'', '`']) && !inner.contains('\\')).then_some(inner)
}
