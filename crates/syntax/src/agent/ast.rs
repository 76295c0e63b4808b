//! The syntax tree of `.agent` programs.
//!
//! Invariant: every node has the span of exactly its own text.
//! Invariant: blocks and types nest at most [`MAX_HEIGHT`] deep, and no expression is higher than that, so
//! recursion over a tree is bounded (walkers still grow the stack at blocks).
//! Invariant: what the parser could not read is an `Error` node that has already been reported; no
//! later stage reports anything about it.

use diagnostics::Span;

/// The greatest height of an expression, and how deep blocks, types and brackets nest at most.
pub const MAX_HEIGHT: u32 = 256;

/// A name where it is written. The text is empty if a name was missing there. A name behind that of an import
/// is one with it: `lib.classify`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Its text.
    pub text: String,
    /// Where.
    pub span: Span,
}

/// A comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Where, without the line break.
    pub span: Span,
    /// True if nothing precedes it on its line.
    pub own_line: bool,
}

/// A string literal with its escapes resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrLit {
    /// The text it represents.
    pub value: String,
    /// Where, quotes included.
    pub span: Span,
}

/// A string with holes.
#[derive(Clone, Debug)]
pub struct Template {
    /// Text and holes in order.
    pub parts: Vec<TemplatePart>,
    /// Where, quotes included.
    pub span: Span,
}

impl Template {
    /// The expressions in its holes.
    pub fn holes(&self) -> impl Iterator<Item = &Expr> {
        self.parts.iter().filter_map(|p| match p {
            TemplatePart::Hole(e) => Some(e),
            TemplatePart::Text(_) => None,
        })
    }
}

/// A part of a [`Template`].
#[derive(Clone, Debug)]
pub enum TemplatePart {
    /// Text, escapes resolved.
    Text(StrLit),
    /// `{expression}`.
    Hole(Expr),
}

/// A number as written, for example `2.50`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Its text.
    pub text: String,
    /// Where.
    pub span: Span,
}

/// A program: declarations in source order.
#[derive(Clone, Debug)]
pub struct Program {
    /// The declarations.
    pub items: Vec<Item>,
    /// The names of declarations that could not be read.
    pub unread: Vec<Name>,
    /// The comments, in order.
    pub comments: Vec<Comment>,
    /// The whole text.
    pub span: Span,
}

/// A declaration.
#[derive(Clone, Debug)]
pub enum Item {
    /// `use "path";`, `use "path" as name;` or `use "path" { … };`
    Use(Use),
    /// `use crew "path" as name(…) -> type;`
    Import(Import),
    /// `const NAME: type = e;`
    Const(Const),
    /// `type Name = type;`
    Alias(Alias),
    /// `enum Name { a, b }`
    Enum(Enum),
    /// `type Name = A | B { field: type };`
    Sum(Sum),
    /// `agent name { … }`
    Agent(Agent),
    /// `tool name(…) -> type { … }`
    Tool(Callable),
    /// `task name(…) -> type by agent { … }`
    Task(Callable),
    /// `pipeline name(…) -> type { … }`
    Pipeline(Pipeline),
    /// `fn name(…) -> type { … }`: a function that computes, and touches nothing
    Function(Pipeline),
    /// `workflow name(…) -> type { … }`
    Workflow(Workflow),
    /// `test "name" { … }`
    Test(Test),
    /// `policy { … }`: what tools do, and what may reach them and models
    Policy(PolicyBlock),
}

impl Item {
    /// Place of the declaration.
    pub fn span(&self) -> Span {
        match self {
            Item::Use(i) => i.span,
            Item::Const(i) => i.span,
            Item::Import(i) => i.span,
            Item::Alias(i) => i.span,
            Item::Enum(i) => i.span,
            Item::Sum(i) => i.span,
            Item::Agent(i) => i.span,
            Item::Tool(i) | Item::Task(i) => i.span,
            Item::Pipeline(i) | Item::Function(i) => i.span,
            Item::Workflow(i) => i.span,
            Item::Test(i) => i.span,
            Item::Policy(i) => i.span,
        }
    }
}

/// `use "path";`, `use "path" as name;` or `use "path" { name, name as other };`, or one of these with `mcp`
/// before the name of a server, or `python` before the path of a module.
#[derive(Clone, Debug)]
pub struct Use {
    /// Kind of the import.
    pub source: UseSource,
    /// The path of a file or module, or the name of a server.
    pub path: StrLit,
    /// Names of the file that this one has, and how.
    pub names: UsedNames,
    /// The declaration.
    pub span: Span,
}

/// See [`Use`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UseSource {
    /// A file of the language.
    File,
    /// `mcp`: the tools of a server.
    Server,
    /// `python`: the functions of a module.
    Python,
}

/// See [`Use`].
#[derive(Clone, Debug)]
pub enum UsedNames {
    /// All of them, as they are.
    All,
    /// `as name`: all of them, behind `name.`.
    Behind(Name),
    /// `{ name, name as other }`: these.
    These(Vec<UsedName>),
}

/// `name` or `name as other` in a [`Use`].
#[derive(Clone, Debug)]
pub struct UsedName {
    /// Name in the imported file.
    pub name: Name,
    /// Name in this file, if it is another one.
    pub renamed: Option<Name>,
}

impl UsedName {
    /// Name in this file.
    pub fn local(&self) -> &Name {
        self.renamed.as_ref().unwrap_or(&self.name)
    }
}

/// `use crew "path" "unit" as name(…) -> type;`: something that a configuration of another framework defines,
/// as a task.
#[derive(Clone, Debug)]
pub struct Import {
    /// Kind of import: `crew`, `agent`, `graph` or `workflow`.
    pub kind: Name,
    /// The file or folder.
    pub path: StrLit,
    /// Name of the unit, if the configuration has several.
    pub unit: Option<StrLit>,
    /// Its name in this program.
    pub name: Name,
    /// Its inputs.
    pub params: Vec<Field>,
    /// The type of its result.
    pub result: TypeExpr,
    /// The declaration.
    pub span: Span,
}

/// `const NAME: type = e;`: a value with a name, for all of the program.
#[derive(Clone, Debug)]
pub struct Const {
    /// Its name.
    pub name: Name,
    /// Its declared type.
    pub ty: Option<TypeExpr>,
    /// Its value.
    pub value: Expr,
    /// The declaration.
    pub span: Span,
}

/// `type Name = type;`
#[derive(Clone, Debug)]
pub struct Alias {
    /// The new name.
    pub name: Name,
    /// Type that the name abbreviates.
    pub ty: TypeExpr,
    /// The declaration.
    pub span: Span,
}

/// `enum Name { a, b }`
#[derive(Clone, Debug)]
pub struct Enum {
    /// The name of the type.
    pub name: Name,
    /// The variants in order.
    pub variants: Vec<Name>,
    /// The declaration.
    pub span: Span,
}

/// `type Name = A | B { field: type };`: a value is one of the cases, with the fields of that case.
#[derive(Clone, Debug)]
pub struct Sum {
    /// The name of the type.
    pub name: Name,
    /// The cases in order.
    pub cases: Vec<Case>,
    /// The declaration.
    pub span: Span,
}

/// A case of a [`Sum`].
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: Name,
    /// Its fields; empty if it has none.
    pub fields: Vec<Field>,
    /// The name and the fields.
    pub span: Span,
}

/// `agent name { … }`
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its name.
    pub name: Name,
    /// The fields in order.
    pub fields: Vec<AgentField>,
    /// The declaration.
    pub span: Span,
}

/// A field of an agent.
#[derive(Clone, Debug)]
pub struct AgentField {
    /// Its name.
    pub name: Name,
    /// Its value.
    pub value: AgentValue,
}

/// The value of an agent's field.
#[derive(Clone, Debug)]
pub enum AgentValue {
    /// `model: "…"`, or `model: ["…", "…"]`: the first that can answers
    Model(Vec<StrLit>),
    /// `tools: [a, b]`, with the span of the list
    Tools(Vec<Name>, Span),
    /// `prompt: "…"`
    Prompt(Template),
    /// `max_steps: 12`
    MaxSteps(Number),
    /// `max_steps: unlimited`
    Unlimited(Span),
    /// `temperature: 0`
    Temperature(Number),
    /// `max_tokens: 4000`
    MaxTokens(Number),
    /// `settings: { top_p: 0.9, "x-trace": true }`: what the model's server is told beside that
    Settings(Vec<(Name, Expr)>, Span),
    /// `talk: conversation`, `talk: text` or `talk: actions`
    Talk(Name),
    /// `helpers: [cook, prices as "ask_prices"]`: who may be asked
    Helpers(Vec<Offered>, Span),
    /// `handoffs: [billing]`: who may go on instead
    Handoffs(Vec<Offered>, Span),
    /// `final_tools: [submit]`: tools whose result is the answer
    FinalTools(Vec<Name>, Span),
    /// `memory: { … }`
    Memory(Memory),
    /// `budget: { usd: 0.40, calls: 20 }`
    Budget(Vec<(Name, Number)>, Span),
    /// Reported already.
    Error,
}

/// `name` or `name as "called"`: an agent, task or pipeline that is offered to a model.
#[derive(Clone, Debug)]
pub struct Offered {
    /// Name in this program.
    pub name: Name,
    /// Name shown to the model, if it differs.
    pub called: Option<StrLit>,
}

/// `memory: { store: "local", keys: { notes: List[String] }, size: 20, ttl: 7200 }`
#[derive(Clone, Debug)]
pub struct Memory {
    /// Path of the store.
    pub store: Option<StrLit>,
    /// The keys with their types.
    pub keys: Vec<Field>,
    /// Maximal number of entries for each key.
    pub size: Option<Number>,
    /// Lifetime of an entry, in seconds.
    pub ttl: Option<Number>,
    /// The braces and what is between them.
    pub span: Span,
}

/// `catch name`, `catch error name` or `catch refusal name`.
#[derive(Clone, Debug)]
pub struct Catch {
    /// Which errors it is for.
    pub kind: CatchKind,
    /// The variable.
    pub name: Name,
}

/// See [`Catch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatchKind {
    /// Every error that may be caught; the variable is its message.
    Any,
    /// Errors of the program and of what it asked; the variable is `{code, message}`.
    Error,
    /// Refusals, too; the variable is `{code, message}`.
    Refusal,
}

/// `name: type` in a record type or a parameter list.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name.
    pub name: Name,
    /// The type.
    pub ty: TypeExpr,
    /// Flow words after the type (parameters and keys of a memory only).
    pub flow: Vec<FlowWord>,
    /// The value of a parameter that a call leaves out.
    pub default: Option<Expr>,
}

/// A word about what a tool does or what may flow through a parameter.
#[derive(Clone, Debug)]
pub struct FlowWord {
    /// Which.
    pub kind: FlowKind,
    /// Where.
    pub span: Span,
}

/// See [`FlowWord`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// `pure`: touches nothing.
    Pure,
    /// `reads`: looks at the world.
    Reads,
    /// `writes`: changes the world.
    Writes,
    /// `untrusted`: the value may be anybody's.
    Untrusted,
    /// `secret`: the value may not leave.
    Secret,
    /// `requires trusted`
    RequiresTrusted,
    /// `requires public`
    RequiresPublic,
    /// `policy NAME`
    Policy(Name),
}

/// A tool or a task.
#[derive(Clone, Debug)]
pub struct Callable {
    /// Its name.
    pub name: Name,
    /// Its parameters.
    pub params: Vec<Field>,
    /// Its result type.
    pub result: TypeExpr,
    /// `as "name"`: what a tool is called outside of the program.
    pub called: Option<StrLit>,
    /// Flow words after the result type.
    pub flow: Vec<FlowWord>,
    /// The span of `by agent`, on a task that an agent carries out.
    pub by_agent: Option<Span>,
    /// The agent.
    pub body: Body,
    /// The declaration.
    pub span: Span,
}

/// The body of a tool or task.
#[derive(Clone, Debug)]
pub struct Body {
    /// Content of the body.
    pub kind: BodyKind,
    /// `system "…"` before the prompt: instructions for this task alone.
    pub system: Option<Template>,
    /// `examples […]` before the prompt: inputs and outputs that the model is shown.
    pub examples: Option<Expr>,
    /// The braces and what is between them.
    pub span: Span,
}

/// See [`Body`].
#[derive(Clone, Debug)]
pub enum BodyKind {
    /// `{}`: the host supplies the behavior.
    Empty,
    /// `{ prompt "…" }`
    Prompt(Template),
    /// `{ exec "program" "argument" … }`
    Exec(Vec<Template>),
    /// `{ builtin "name" }`
    Builtin(StrLit),
    /// `{ http METHOD "url" }`
    Http(Name, Template),
    /// `{ mcp "server" "tool" }`, or `{ mcp "server" }` for the tool of its own name
    Mcp(StrLit, Option<StrLit>),
    /// `{ python "tools.py" "function" }`
    Python(StrLit, StrLit),
    /// Reported already.
    Error,
}

/// `pipeline name(…) -> type { … }` or `fn name[T](…) -> type { … }`
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// Its name.
    pub name: Name,
    /// The types that each call decides; only a `fn` has some.
    pub generics: Vec<Name>,
    /// Its inputs.
    pub params: Vec<Field>,
    /// Its result type.
    pub result: TypeExpr,
    /// Statements of the body.
    pub body: Block,
    /// The declaration.
    pub span: Span,
}

/// `workflow name(…) -> type { … }`
#[derive(Clone, Debug)]
pub struct Workflow {
    /// Its name.
    pub name: Name,
    /// Its inputs.
    pub params: Vec<Field>,
    /// Its result type.
    pub result: TypeExpr,
    /// Its steps in order.
    pub steps: Vec<Step>,
    /// The braces and what is between them.
    pub body_span: Span,
    /// The declaration.
    pub span: Span,
}

/// A step of a workflow.
#[derive(Clone, Debug)]
pub enum Step {
    /// `stage name = agent does task(…);`
    Stage {
        /// The variable.
        name: Name,
        /// The agent.
        agent: Name,
        /// What.
        task: Name,
        /// With which arguments.
        args: Vec<Expr>,
        /// The step.
        span: Span,
    },
    /// `review name = agent checks subject revise with reviser using task max_rounds n;`
    Review {
        /// The variable.
        name: Name,
        /// The reviewing agent.
        reviewer: Name,
        /// Reviewed variable.
        subject: Name,
        /// The revising agent.
        reviser: Name,
        /// The task that revises.
        task: Name,
        /// Maximal number of rounds.
        max_rounds: Number,
        /// The step.
        span: Span,
    },
    /// `return e;`
    Return(Expr, Span),
}

/// `test "name" { … }`
#[derive(Clone, Debug)]
pub struct Test {
    /// Its name.
    pub name: StrLit,
    /// The data set, with a run for each row.
    pub rows: Option<TestRows>,
    /// Repetition of each run, and the rate of those that must pass.
    pub samples: Option<TestSamples>,
    /// Statements of the test, without its mocks and expectations.
    pub body: Block,
    /// The tools that are not called for real, in order.
    pub mocks: Vec<Mock>,
    /// Conditions that the calls of the test must meet, in order.
    pub expectations: Vec<Expectation>,
    /// Texts that are injected into results of tools, in order.
    pub attacks: Vec<Attack>,
    /// Values that are compared with recorded ones, in order.
    pub snapshots: Vec<Snapshot>,
    /// The declaration.
    pub span: Span,
}

/// `expect snapshot e;`
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Hidden variable that the body binds to the value where the statement stands. No name of a program
    /// begins with `$`.
    pub variable: String,
    /// The value.
    pub value: Span,
    /// The statement.
    pub span: Span,
}

/// `attack "…" in tool page;`
#[derive(Clone, Debug)]
pub struct Attack {
    /// Injected text.
    pub text: StrLit,
    /// The tool whose results hold it.
    pub tool: Name,
    /// The statement.
    pub span: Span,
}

/// `for each row: Case of "cases.jsonl"`
#[derive(Clone, Debug)]
pub struct TestRows {
    /// Variable that holds the row.
    pub name: Name,
    /// Declared type of a row.
    pub ty: Option<TypeExpr>,
    /// Path of the data set, relative to the folder of the program.
    pub path: StrLit,
    /// The clause.
    pub span: Span,
}

/// `samples 20 pass >= 0.9`
#[derive(Clone, Debug)]
pub struct TestSamples {
    /// Number of runs.
    pub count: Number,
    /// Required rate of runs that pass.
    pub rate: Number,
    /// The clause.
    pub span: Span,
}

/// `policy { … }`
#[derive(Clone, Debug)]
pub struct PolicyBlock {
    /// The rules in order.
    pub rules: Vec<PolicyRule>,
    /// The braces and what is between them.
    pub body_span: Span,
    /// The declaration.
    pub span: Span,
}

/// A rule of a policy: `bound body secret;`, `approve when amount > 50;` or `tool pay { … }`.
#[derive(Clone, Debug)]
pub struct PolicyRule {
    /// Word that says what it is about.
    pub key: Name,
    /// The words and values after it.
    pub args: Vec<PolicyArg>,
    /// The condition: after `when`, or of `allow`.
    pub condition: Option<Expr>,
    /// `else "…"`: why a call is refused.
    pub reason: Option<StrLit>,
    /// The rules between braces, with the place of the braces.
    pub rules: Option<(Vec<PolicyRule>, Span)>,
    /// The rule, semicolon included.
    pub span: Span,
}

/// A word or a value of a rule.
#[derive(Clone, Debug)]
pub enum PolicyArg {
    /// A name, or a word about labels.
    Word(Name),
    /// `"…"`
    Text(StrLit),
    /// `3`
    Number(Number),
    /// A list or a record.
    Value(Expr),
}

impl PolicyArg {
    /// Where.
    pub fn span(&self) -> Span {
        match self {
            PolicyArg::Word(name) => name.span,
            PolicyArg::Text(text) => text.span,
            PolicyArg::Number(n) => n.span,
            PolicyArg::Value(e) => e.span,
        }
    }
}

/// `mock tool(a, _) => e;` or `mock tool fails "message";`
#[derive(Clone, Debug)]
pub struct Mock {
    /// The tool: a variable, or a call whose arguments are constants, `_`, or names for what is given.
    pub call: Expr,
    /// Answer to a call.
    pub answer: MockAnswer,
    /// Where, semicolon included.
    pub span: Span,
}

/// The answer of a mocked tool.
#[derive(Clone, Debug)]
pub enum MockAnswer {
    /// `=> e`
    Gives(Expr),
    /// `fails "message"`
    Fails(StrLit),
}

/// `expect call tool(…);`, `expect no call tool;` or `expect refused tool;`
#[derive(Clone, Debug)]
pub struct Expectation {
    /// Which.
    pub kind: ExpectKind,
    /// The tool: a variable, or a call whose arguments are constants or `_`.
    pub call: Expr,
    /// Where, semicolon included.
    pub span: Span,
}

/// See [`Expectation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectKind {
    /// `expect call`: at least one such call was made.
    Call,
    /// `expect no call`: none was made.
    NoCall,
    /// `expect refused`: a call was refused by the policy.
    Refused,
}

/// Statements in braces.
#[derive(Clone, Debug)]
pub struct Block {
    /// The statements.
    pub stmts: Vec<Stmt>,
    /// The braces and what is between them.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Kind of statement.
    pub kind: StmtKind,
    /// Where, semicolon included.
    pub span: Span,
}

/// See [`Stmt`].
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// `let x = run t with { … } …;` or `let x = t(…) …;`
    Run(Run),
    /// `let x = e;` or `let x: type = e;`
    Let(Name, Option<TypeExpr>, Expr),
    /// `parallel { … } join;`
    Parallel {
        /// At most how many at a time.
        max_concurrency: Option<Number>,
        /// The branches.
        runs: Vec<Run>,
    },
    /// `if e { … } else { … }`. An `else if` is a block of one statement.
    If(Expr, Block, Option<Block>),
    /// `if let x = e { … } else { … }`
    IfLet(Name, Expr, Block, Option<Block>),
    /// `while e max n { … }`
    While(Expr, Option<Number>, Block),
    /// `for x in e { … }`
    For(Name, Expr, Block),
    /// `parallel for x in e max_concurrency n { … }`
    ParallelFor(Name, Expr, Option<Number>, Block),
    /// `match e { a => { … } … }`, or `if let Case { … } = e { … } else { … }`, whose second arm is
    /// [`PatternForm::Else`]
    Match(Expr, Vec<Arm>),
    /// `try { … } catch x { … }`
    Try(Block, Catch, Block),
    /// `try { … } ensure { … }`. With a `catch` between, the first block is that `try` alone, as that of an
    /// `else if` is.
    Ensure(Block, Block),
    /// `assert e, "message";`
    Assert(Expr, Option<Template>),
    /// `guard x where e retry n;`
    Guard(Name, Expr, Option<Number>),
    /// `return e;`
    Return(Expr),
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// Reported already; the variables that it would have bound, so that their uses are not reported too.
    Error(Vec<Name>),
}

/// An arm of a `match`.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Values that it is for.
    pub pattern: Pattern,
    /// Statements of the arm.
    pub body: Block,
}

/// The pattern of a case of a `match`.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The variants, cases, texts or numbers it is for, numbers as they are written; empty for `_`.
    pub variants: Vec<Name>,
    /// How these are written.
    pub form: PatternForm,
    /// The fields of the only case that are bound.
    pub fields: Vec<PatternField>,
    /// The pattern as a whole.
    pub span: Span,
}

impl Pattern {
    /// Returns true for an `else` that is not there: an `if let Case { … } = e` without one.
    pub fn is_left_out(&self) -> bool {
        self.form == PatternForm::Else && self.span.start == self.span.end
    }
}

/// See [`Pattern`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternForm {
    /// As words, of which some may stand in quotes: `low | high`.
    Words,
    /// As strings: `"low" | "high"`.
    Texts,
    /// As numbers: `1 | 2`.
    Numbers,
    /// Not at all: the `else` of `if let Case { … } = e`, which is for all others. Without `else` it has no
    /// length.
    Else,
}

/// `field` or `field: name` in a pattern.
#[derive(Clone, Debug)]
pub struct PatternField {
    /// The field.
    pub field: Name,
    /// The variable that it is bound to.
    pub name: Name,
}

/// A call of a task, tool or pipeline.
#[derive(Clone, Debug)]
pub struct Run {
    /// The variable that takes the result.
    pub name: Name,
    /// The declared type of the variable.
    pub ty: Option<TypeExpr>,
    /// Name of the callee.
    pub target: Name,
    /// With which arguments.
    pub args: Args,
    /// The arguments with their brackets.
    pub args_span: Span,
    /// The clauses in order, each kind at most once.
    pub clauses: Vec<Clause>,
    /// From `let` to the semicolon.
    pub span: Span,
}

/// Arguments.
#[derive(Clone, Debug)]
pub enum Args {
    /// `with { name: e, … }`
    Named(Vec<(Name, Expr)>),
    /// `(e, …)`
    Positional(Vec<Expr>),
}

/// A clause of a [`Run`].
#[derive(Clone, Debug)]
pub struct Clause {
    /// Which.
    pub kind: ClauseKind,
    /// Where.
    pub span: Span,
}

/// See [`Clause`].
#[derive(Clone, Debug)]
pub enum ClauseKind {
    /// `by agent`
    By(Name),
    /// `retries n`
    Retries(Number),
    /// `timeout seconds`
    Timeout(Number),
    /// `on_fail abort`
    Abort,
    /// `on_fail use e`
    Use(Expr),
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Kind of expression.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
    /// The height of its tree.
    pub height: u32,
}

impl Expr {
    /// `every(x, list, condition)` or `some(…)` of a guard: whether it is `every`, the name, the list, the
    /// condition.
    pub fn quantified(&self) -> Option<(bool, Name, &Expr, &Expr)> {
        let ExprKind::Call(name, args) = &self.kind else { return None };
        let every = match name.text.as_str() {
            "every" => true,
            "some" => false,
            _ => return None,
        };
        match &args[..] {
            [Expr { kind: ExprKind::Var(item), span, .. }, list, condition] => {
                Some((every, Name { text: item.clone(), span: *span }, list, condition))
            }
            _ => None,
        }
    }

    /// The expressions directly inside of this one, in the order of the text.
    pub fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Field(e, _)
            | ExprKind::OptionalField(e, _)
            | ExprKind::Unary(_, e)
            | ExprKind::Paren(e)
            | ExprKind::Quarantine(e, _)
            | ExprKind::Lambda(_, e) => vec![e],
            ExprKind::Index(a, b) | ExprKind::Binary(_, _, a, b) => vec![a, b],
            ExprKind::Record(fields) | ExprKind::Map(fields) | ExprKind::Construct(_, fields) => {
                fields.iter().map(|(_, e)| e).collect()
            }
            ExprKind::Update(e, fields) => {
                std::iter::once(&**e).chain(fields.iter().map(|(_, e)| e)).collect()
            }
            ExprKind::List(es) | ExprKind::Call(_, es) => es.iter().collect(),
            ExprKind::Template(t) => t.holes().collect(),
            ExprKind::Endorse(e, es, other) => {
                std::iter::once(&**e).chain(es).chain(other.as_deref()).collect()
            }
            ExprKind::If(_, condition, then, other) => vec![condition, then, other],
            ExprKind::Match(e, arms) => std::iter::once(&**e).chain(arms.iter().map(|a| &a.value)).collect(),
            ExprKind::Block(lets, e) => lets.iter().map(|l| &l.value).chain([&**e]).collect(),
            ExprKind::Str(_)
            | ExprKind::Number(_)
            | ExprKind::Bool(_)
            | ExprKind::Null
            | ExprKind::Var(_)
            | ExprKind::Error => Vec::new(),
        }
    }

    /// Calls `f` with this expression and every one inside of it, an outer one first.
    pub fn walk<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        let mut work = vec![self];
        while let Some(e) = work.pop() {
            f(e);
            work.extend(e.children().into_iter().rev());
        }
    }

    /// Calls `f` with every variable of the environment that the expression reads and its place. Names that
    /// the expression itself binds are not among them.
    pub fn each_variable(&self, f: &mut dyn FnMut(&str, Span)) {
        enum Step<'a> {
            Read(&'a Expr),
            Bind(&'a str),
            Unbind(usize),
        }
        // Names that the expressions around this one bind.
        let mut bound: Vec<&str> = Vec::new();
        let mut work = vec![Step::Read(self)];
        while let Some(step) = work.pop() {
            let e = match step {
                Step::Bind(name) => {
                    bound.push(name);
                    continue;
                }
                Step::Unbind(n) => {
                    bound.truncate(bound.len() - n);
                    continue;
                }
                Step::Read(e) => e,
            };
            if let ExprKind::Call(_, args) = &e.kind
                && let (Some(_), [item, list, condition]) = (e.quantified(), &args[..])
                && let ExprKind::Var(item) = &item.kind
            {
                work.extend([Step::Unbind(1), Step::Read(condition), Step::Bind(item), Step::Read(list)]);
                continue;
            }
            match &e.kind {
                ExprKind::Var(name) => {
                    if !bound.contains(&name.as_str()) {
                        f(name, e.span);
                    }
                }
                ExprKind::Lambda(params, body) => {
                    work.extend([Step::Unbind(params.len()), Step::Read(body)]);
                    work.extend(params.iter().map(|p| Step::Bind(&p.text)));
                }
                ExprKind::If(Some(name), value, then, other) => {
                    work.extend([
                        Step::Read(other),
                        Step::Unbind(1),
                        Step::Read(then),
                        Step::Bind(&name.text),
                        Step::Read(value),
                    ]);
                }
                ExprKind::Block(lets, body) => {
                    work.extend([Step::Unbind(lets.len()), Step::Read(body)]);
                    for l in lets.iter().rev() {
                        work.extend([Step::Bind(&l.name.text), Step::Read(&l.value)]);
                    }
                }
                ExprKind::Match(of, arms) => {
                    for arm in arms.iter().rev() {
                        work.extend([Step::Unbind(arm.pattern.fields.len()), Step::Read(&arm.value)]);
                        work.extend(arm.pattern.fields.iter().map(|f| Step::Bind(&f.name.text)));
                    }
                    work.push(Step::Read(of));
                }
                _ => work.extend(e.children().into_iter().rev().map(Step::Read)),
            }
        }
    }
}

/// `let name = e;` in a block that has a value.
#[derive(Clone, Debug)]
pub struct Let {
    /// The variable.
    pub name: Name,
    /// Its declared type.
    pub ty: Option<TypeExpr>,
    /// Its value.
    pub value: Expr,
    /// From `let` to the semicolon.
    pub span: Span,
}

/// A case of a `match` that has a value.
#[derive(Clone, Debug)]
pub struct ValueArm {
    /// Values that it is for.
    pub pattern: Pattern,
    /// Its value.
    pub value: Expr,
}

/// See [`Expr`].
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A string.
    Str(String),
    /// A number, as written.
    Number(String),
    /// `true` or `false`
    Bool(bool),
    /// `null`
    Null,
    /// A variable.
    Var(String),
    /// `e.name`
    Field(Box<Expr>, Name),
    /// `e?.name`: null if `e` is null
    OptionalField(Box<Expr>, Name),
    /// `e[e]`
    Index(Box<Expr>, Box<Expr>),
    /// `{ name: e, … }`
    Record(Vec<(Name, Expr)>),
    /// `{ "key": e, … }`: a map
    Map(Vec<(Name, Expr)>),
    /// `Case { name: e, … }`: a value of a sum type
    Construct(Name, Vec<(Name, Expr)>),
    /// `{ ...e, name: e, … }`: the record with these fields set
    Update(Box<Expr>, Vec<(Name, Expr)>),
    /// `[e, …]`
    List(Vec<Expr>),
    /// `f"…"`
    Template(Template),
    /// `name(e, …)` or `e.name(…)`: a function of the language, or a `fn`
    Call(Name, Vec<Expr>),
    /// `x => e` or `(x, y) => e`
    Lambda(Vec<Name>, Box<Expr>),
    /// `if e { e } else { e }` or `if let x = e { e } else { e }`; both branches are blocks, or the second is
    /// an `if`
    If(Option<Name>, Box<Expr>, Box<Expr>, Box<Expr>),
    /// `match e { a => e, _ => e }` or `if let Case { … } = e { e } else { e }`
    Match(Box<Expr>, Vec<ValueArm>),
    /// `{ let x = e; e }`: a branch, or the body of a lambda or case
    Block(Vec<Let>, Box<Expr>),
    /// `!e` or `-e`
    Unary(UnaryOp, Box<Expr>),
    /// `e + e` and the like; the span is the operator's
    Binary(BinaryOp, Span, Box<Expr>, Box<Expr>),
    /// `(e)`
    Paren(Box<Expr>),
    /// `quarantine(e) as type`
    Quarantine(Box<Expr>, TypeExpr),
    /// `endorse e in [e, …] else e`
    Endorse(Box<Expr>, Vec<Expr>, Option<Box<Expr>>),
    /// Reported already.
    Error,
}

/// A prefix operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `!`
    Not,
    /// `-`
    Neg,
}

/// An infix operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is its own spelling")]
pub enum BinaryOp {
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Coalesce,
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

impl BinaryOp {
    /// All operators.
    pub const ALL: [BinaryOp; 14] = {
        use BinaryOp::*;
        [Or, And, Eq, Ne, Lt, Le, Gt, Ge, Coalesce, Add, Sub, Mul, Div, Rem]
    };

    /// Returns its spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            BinaryOp::Or => "||",
            BinaryOp::And => "&&",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::Coalesce => "??",
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Rem => "%",
        }
    }

    /// Returns its precedence; a higher one binds tighter. All operators are left-associative.
    pub fn precedence(self) -> u8 {
        match self {
            BinaryOp::Or => 1,
            BinaryOp::And => 2,
            BinaryOp::Eq | BinaryOp::Ne => 3,
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => 4,
            BinaryOp::Coalesce => 5,
            BinaryOp::Add | BinaryOp::Sub => 6,
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => 7,
        }
    }
}

/// A type as written.
#[derive(Clone, Debug)]
pub struct TypeExpr {
    /// Kind of type.
    pub kind: TypeKind,
    /// Where.
    pub span: Span,
}

/// See [`TypeExpr`].
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// `String`, `Number`, `Bool`, an alias or an enum
    Name(String),
    /// `List[type]`
    List(Box<TypeExpr>),
    /// `Option[type]`
    Option(Box<TypeExpr>),
    /// `Map[type, type]`: the keys and the values
    Map(Box<(TypeExpr, TypeExpr)>),
    /// `Obj{name: type, …}`
    Obj(Vec<Field>),
    /// `"low" | "high"` or `1 | 2`: strings or numbers
    Literals(Vec<Expr>),
    /// `type where condition`: the values of which the condition holds, which calls them `it`
    Where(Box<TypeExpr>, Box<Expr>),
    /// Reported already.
    Error,
}
