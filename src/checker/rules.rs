//! The rules: their names, their levels, their explanations.

use crate::settings::Strict;

/// The rule that a finding violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A variable or a global that does not exist.
    UnknownVariable,
    /// A function that does not exist.
    UnknownFunction,
    /// A member of a library, of `ctx` or of a handle that does not exist.
    UnknownMember,
    /// An option that a function does not have.
    UnknownOption,
    /// A field that the schema of the resource does not have.
    UnknownField,
    /// Too few or too many arguments.
    Arguments,
    /// A literal of the wrong type.
    Type,
    /// A field of `ctx` that this kind of handler does not have.
    OtherHandler,
    /// An assignment to something that is read-only.
    ReadOnly,
    /// A condition that is always true.
    AlwaysTrue,
    /// A loop that waits for the end without a pause.
    BusyLoop,
    /// A handler that causes itself.
    UpdateLoop,
    /// A key that is used like an item.
    LoopVariable,
    /// A result that is a whole object.
    WholeObject,
    /// External calls in handlers without bounds.
    UnboundedRetries,
    /// Timers without an interval.
    TimerInterval,
    /// Writing a status that is not a subresource.
    StatusSubresource,
    /// Hosts, variables and files that are not granted.
    NotGranted,
    /// Values of Secrets that are stored and logged.
    PlainSecrets,
    /// Webhooks for the operator itself.
    OwnWrites,
}

/// The level of a finding, which decides whether its script is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleLevel {
    /// A name that does not exist: the code cannot work.
    Name,
    /// A value or a call that is probably wrong.
    Type,
    /// Code that is valid, but probably a mistake.
    Lint,
}

impl RuleLevel {
    /// Returns whether a finding of this level rejects its script.
    pub fn rejects(self, strict: Strict) -> bool {
        match strict {
            Strict::Off => false,
            Strict::Names => self == RuleLevel::Name,
            Strict::Types => self != RuleLevel::Lint,
        }
    }
}

/// A rule with its name, its level and its explanation.
type RuleRow = (Rule, &'static str, RuleLevel, &'static str);

const fn row(rule: Rule, name: &'static str, level: RuleLevel, doc: &'static str) -> RuleRow {
    (rule, name, level, doc)
}

const ROWS: [RuleRow; 20] = [
    row(
        Rule::UnknownVariable,
        "unknown-variable",
        RuleLevel::Name,
        "The variable is not declared in any scope around this line, and the script never assigns a global with this name. \
                 Lua reads it as nil; Rhai raises an error.",
    ),
    row(
        Rule::UnknownFunction,
        "unknown-function",
        RuleLevel::Name,
        "No function with this name is defined in the script, its modules, the language or the libraries. The call fails \
                 when the line is reached.",
    ),
    row(
        Rule::UnknownMember,
        "unknown-member",
        RuleLevel::Name,
        "The library, `ctx` or the handle has no member with this name. Reading it is an error or nil; writing it into \
                 `ctx.patch` changes a field that the resource probably does not have.",
    ),
    row(
        Rule::UnknownOption,
        "unknown-option",
        RuleLevel::Name,
        "The function does not have this option. The call fails when the line is reached.",
    ),
    row(
        Rule::UnknownField,
        "unknown-field",
        RuleLevel::Type,
        "The schema of the resource does not have this field. The server drops it when it is written, and it is always \
                 missing when it is read.",
    ),
    row(
        Rule::Arguments,
        "wrong-arguments",
        RuleLevel::Type,
        "The function takes fewer or more arguments. The call fails when the line is reached.",
    ),
    row(
        Rule::Type,
        "wrong-type",
        RuleLevel::Type,
        "The function or the option expects a value of another type.",
    ),
    row(
        Rule::OtherHandler,
        "other-handler",
        RuleLevel::Type,
        "Only other kinds of handlers have this field of `ctx`, such as `ctx.stopped` of daemons. Here, it is nil.",
    ),
    row(
        Rule::ReadOnly,
        "read-only",
        RuleLevel::Type,
        "`ctx` and the parts of the object are read-only: change the object through `ctx.patch`, keep data in `ctx.memo`, \
                 or change a `kopf.copy`.",
    ),
    row(
        Rule::AlwaysTrue,
        "always-true",
        RuleLevel::Lint,
        "A number or a string is a condition. In Lua, only nil and false count as false: 0, \"\" and the length of \
                 an empty list are true. In Rhai, a condition must be true or false, and anything else is an error. \
                 `ctx.stopped` is a flag with methods: `ctx.stopped:is_set()` returns its value.",
    ),
    row(
        Rule::BusyLoop,
        "busy-loop",
        RuleLevel::Lint,
        "The loop runs until the handler must stop, and contains no call that waits. The handler uses CPU time until it reaches the \
                 limit of a call, while other handlers of the script wait. Pause with \
                 `ctx.stopped:wait(\"5s\")`, which also returns whether to stop.",
    ),
    row(
        Rule::UpdateLoop,
        "update-loop",
        RuleLevel::Lint,
        "The handler changes its own object each time it is called: it counts a field, or writes the time or \
                 something random. Each of these changes calls the same handler again, in an endless loop.",
    ),
    row(
        Rule::LoopVariable,
        "loop-variable",
        RuleLevel::Lint,
        "In Luau, the first variable of `for … in` is the position or the key; the second one is the item.",
    ),
    row(
        Rule::WholeObject,
        "whole-object",
        RuleLevel::Lint,
        "The result of a handler is stored in the status of its object. A whole object is large, is sent with each event, and \
                 may contain secrets.",
    ),
    row(
        Rule::UnboundedRetries,
        "unbounded-retries",
        RuleLevel::Lint,
        "The handler calls another server, which may be unreachable for a long time. Without `retries` or \
                 `timeout`, the handler is called again until it succeeds, and the object is never finished.",
    ),
    row(
        Rule::TimerInterval,
        "timer-interval",
        RuleLevel::Lint,
        "Without `interval` and `idle`, a timer calls its function once for each object, as a creation handler \
                 would.",
    ),
    row(
        Rule::StatusSubresource,
        "status-subresource",
        RuleLevel::Lint,
        "The CRD has no `subresources.status`. Then each change of the status counts as a change of the object: \
                 metadata.generation grows, and anyone who may change the object may also change its status.",
    ),
    row(
        Rule::NotGranted,
        "not-granted",
        RuleLevel::Lint,
        "The script uses a host, a variable or a file that it has no permission for. The call fails when the line \
                 is reached. `kopf check --suggest-grants` prints the options.",
    ),
    row(
        Rule::PlainSecrets,
        "plain-secrets",
        RuleLevel::Lint,
        "A handler of changes of Secrets stores their values in annotations and logs them, because \
                 persistence.plain_secrets is set.",
    ),
    row(
        Rule::OwnWrites,
        "own-writes",
        RuleLevel::Lint,
        "The webhook reviews what the operator itself writes. While no replica of the operator responds, these \
                 requests fail, and it cannot start. Exclude its namespace with `namespace_selector`, or set \
                 `ignore_failures`.",
    ),
];

impl Rule {
    /// Returns all rules, in the order of the table.
    pub fn all() -> impl Iterator<Item = Rule> {
        ROWS.iter().map(|it| it.0)
    }

    fn row(self) -> &'static RuleRow {
        let [first, ..] = &ROWS;
        ROWS.iter().find(|it| it.0 == self).unwrap_or(first)
    }

    /// Returns the name, as in `kopf: allow(NAME)`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns the rule with this name.
    pub fn find(name: &str) -> Option<Rule> {
        Rule::all().find(|it| it.name() == name)
    }

    /// Returns the level of its findings.
    pub fn level(self) -> RuleLevel {
        self.row().2
    }

    /// Returns the explanation, for `kopf check --explain`.
    pub fn doc(self) -> &'static str {
        self.row().3
    }
}
