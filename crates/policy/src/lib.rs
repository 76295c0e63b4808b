//! Policy files: flow signatures for tools and models that say nothing themselves.
//!
//! Entry points: [`Policy::parse`] reads a file, [`Policy::parse_with`] one with the block of a program, and
//! [`Policy::apply_to`] puts what they say into a program's tools.
//!
//! Invariant: pure and total; every mistake is a diagnostic with its place in the file.
//! Invariant: a policy that has a mistake is not applied at all. Half a policy protects nobody.
//! Invariant: what a policy does not mention stays as it was.
//! Invariant: no front end and no analysis is known here. A program is its terms and declarations.
//!
//! Source: `docs/calculus.md` §5; reference and examples in `docs/policies.md`.

mod check;
pub mod codes;
mod delegates;
mod filter;
mod handle;
mod memory;
mod named;
mod parts;
mod program;
mod sets;
mod starter;
pub mod tree;

pub use check::PolicyScope;
pub use delegates::Delegate;
pub use memory::{Memory, MemoryKey};
pub use named::PolicyUse;
pub use program::{Author, RuleSource};
pub use starter::starter;

use core_ir::{
    AmongSource, AnswerSink, Approve, Code, Data, EffectClass, Globals, LabelSpec, Lattice, LatticeKind,
    Name, Pattern, Person, Plain, Principal, Principals, Region, Term, ToolDecl, ToolParam, Type,
};
use diagnostics::{Diagnostic, FileId, Level, Sources, Span, clip, has_errors, nearest};
use program::Slot;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use toml::de::DeTable;
use tree::{Node, Table, Value};

/// The largest policy file that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// Policy of a run.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The file that it was read from, or the program without one.
    pub file: FileId,
    /// The lattice of the run.
    pub lattice: LatticeKind,
    /// Names that its labels may have.
    pub principals: Principals,
    /// The values of principals, by name and key.
    pub people: Vec<Person>,
    /// True if generated code may contain `endorse` and `declassify`.
    pub generated_endorse: bool,
    /// Clearance of models that aren't named.
    pub clearance: LabelSpec,
    /// Clearances of models by name.
    pub clearances: Vec<(Name, LabelSpec)>,
    /// Maximum label of data that leaves a run: results, errors and events, whoever they are shown to.
    pub output: LabelSpec,
    /// Bound and form of the answer.
    pub answer: AnswerSink,
    tools: Vec<ToolPolicy>,
    /// Sources whose data may choose calls in blocks of plans.
    delegates: Vec<Delegate>,
    /// Policies for `policy NAME` in programs.
    named: Vec<named::NamedPolicy>,
    /// Rules of the block of the program about its tools. The file has the last word.
    own: Vec<ToolPolicy>,
    /// True if a block of the program is part of it.
    has_block: bool,
    /// For tools of which nothing is known but the name, unless they are named.
    unknown: Option<Signature>,
    /// True if that is said by the file, and not by the program.
    unknown_is_of_file: bool,
    /// Keys that tools write and read, for whoever keeps labels.
    memory: BTreeMap<Name, Memory>,
    /// The file as it was read.
    text: Arc<str>,
}

/// Rules for a tool. Where they are silent, the declaration applies.
#[derive(Clone, Debug, Default)]
struct Signature {
    /// The keys that it has, with their places.
    keys: Vec<(String, Span)>,
    effect: Option<EffectClass>,
    control: Option<LabelSpec>,
    arguments: Option<LabelSpec>,
    bounds: Vec<(Name, LabelSpec, Span)>,
    result: Option<LabelSpec>,
    /// The labels of parts of the result, with their places; empty says nothing.
    parts: Vec<parts::PartRule>,
    approve: Option<Approve>,
    /// The sets, with their places; empty says nothing.
    among: Vec<sets::SetRule>,
    at_most: Option<u64>,
    /// Keys that it writes and reads.
    memory: Memory,
    /// Lists of its result of which a guard leaves out items.
    filter: Vec<filter::FilterRule>,
    /// Parts of its result that a guard gives a handle of.
    handle: Vec<handle::HandleRule>,
    /// Patterns of arguments, with their places.
    pattern: Vec<(Name, Pattern, Span)>,
    /// Parameters that only complete calls, with their places.
    completes: Vec<(Name, Span)>,
    /// Parameters whose readers must include those whom others name.
    includes: Vec<parts::IncludesRule>,
    /// Forms of untrusted text by parameter, with their places.
    plain: Vec<(Name, Plain, Span)>,
    /// A function in `.lam` that decides each call, with its place.
    allow: Option<(String, Span)>,
    /// A function in `.lam` that says whether a person is asked about a call, with its place.
    when: Option<(String, Span)>,
}

#[derive(Clone, Debug)]
struct ToolPolicy {
    name: Name,
    span: Span,
    says: Signature,
}

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the text.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// use policy::Policy;
    /// let policy = Policy::parse(FileId(0), "[tools.search]\neffect = \"read\"\n").unwrap();
    /// assert_eq!(policy.tool_names().collect::<Vec<_>>(), ["search"]);
    /// let wrong = Policy::parse(FileId(0), "[tools.search]\nefect = \"read\"\n").unwrap_err();
    /// assert_eq!(wrong[0].help, ["did you mean `effect`?"]);
    /// ```
    pub fn parse(file: FileId, text: &str) -> Result<Policy, Vec<Diagnostic>> {
        Policy::read(file, text, None, false)
    }

    /// Reads a policy. A kept one has the block of the program as a table of its own.
    fn read(
        file: FileId,
        text: &str,
        block: Option<&Table>,
        is_kept: bool,
    ) -> Result<Policy, Vec<Diagnostic>> {
        if text.len() > MAX_BYTES {
            let message = format!("a policy file of more than {MAX_BYTES} bytes");
            return Err(vec![Diagnostic::error(codes::SYNTAX, message, Span { file, start: 0, end: 0 })]);
        }
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut reader = PolicyReader {
            lattice: Lattice::new(LatticeKind::TwoAxis),
            principals: Principals::default(),
            people: Vec::new(),
            found: Vec::new(),
        };
        for e in &errors {
            let span = e.span().map_or(0..0, |s| s);
            let at = Span { file, start: span.start as u32, end: span.end as u32 };
            let d = Diagnostic::error(codes::SYNTAX, e.message().trim().to_lowercase(), at);
            reader.found.push(d);
        }
        let root = Table::of_toml(file, table.get_ref());
        let kept = match root.get(program::KEPT).map(tree::Spanned::get_ref) {
            Some(Node::Table(block)) if is_kept => Some(block.clone()),
            _ => None,
        };
        let policy = match block.or(kept.as_ref()) {
            None => Policy { text: text.into(), ..reader.policy(file, &root) },
            Some(block) => {
                let merged = program::merged(&root, block, &mut reader.found);
                let mut policy = reader.policy(file, &merged);
                policy.own = reader.own_tools(block);
                policy.has_block = true;
                policy.unknown_is_of_file = root.get("unknown_tools").is_some();
                let text = match kept {
                    Some(_) => text.to_string(),
                    None => {
                        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                        let lines = block.iter().map(|(key, value)| {
                            let mut line = Table::default();
                            line.insert(key.clone(), value.clone());
                            line.to_toml_lines()
                        });
                        format!("{text}{gap}[{}]\n{}", program::KEPT, lines.collect::<String>())
                    }
                };
                Policy { text: text.into(), ..policy }
            }
        };
        if has_errors(&reader.found) { Err(reader.found) } else { Ok(policy) }
    }

    /// The text of its file, as it was read. What the block of a program says follows as the table `program`,
    /// which [`Policy::parse_kept`] reads.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The tools that it names.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|t| &*t.name)
    }

    /// The policy for a program whose tools have longer names: the table of each of these tools, under its
    /// name with the prefix before it. Tools of sets in such a table get the prefix, too. Tables of other
    /// tools are left out.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// use policy::Policy;
    /// let policy = Policy::parse(FileId(0), "[tools.send]\neffect = \"write\"\n[tools.fetch]\n").unwrap();
    /// let longer = policy.prefixed([("send", "mail__")]);
    /// assert_eq!(longer.tool_names().collect::<Vec<_>>(), ["mail__send"]);
    /// ```
    #[must_use]
    pub fn prefixed<'a>(&self, tools: impl IntoIterator<Item = (&'a str, &'a str)>) -> Policy {
        let mut out = Policy { tools: Vec::new(), ..self.clone() };
        for (name, prefix) in tools {
            let Some(table) = self.tools.iter().find(|t| *t.name == *name) else { continue };
            let longer = |name: &Name| Name::from(format!("{prefix}{name}"));
            let mut table = table.clone();
            table.name = longer(&table.name);
            for (among, _) in &mut table.says.among {
                if let AmongSource::Tool(set) = &mut among.source {
                    *set = longer(set);
                }
            }
            out.tools.push(table);
        }
        out
    }

    /// The label of what a tool returns that a program declares and for which it names policies, if this says
    /// one: with the labels of all parts of it.
    pub fn result_of(&self, tool: &str, uses: &[PolicyUse]) -> Option<LabelSpec> {
        // In the order in which they have their say, the last first.
        let of_file = self.tools.iter().find(|t| *t.name == *tool).map(|t| &t.says);
        let of_program = self.own.iter().find(|t| *t.name == *tool).map(|t| &t.says);
        let all = || of_file.into_iter().chain(self.whole(tool, uses)).chain(of_program);
        let label = all().find_map(Signature::returns)?;
        let Some(says) = all().find(|says| !says.parts.is_empty()) else { return Some(label) };
        let mut lattice = Lattice::with_principals(self.lattice, &self.principals);
        let mut most = lattice.resolve(&label)?;
        for part in says.parts() {
            let label = part.and_then(|label| lattice.resolve(label)).unwrap_or_else(|| lattice.top());
            most = lattice.join(most, label);
        }
        Some(LabelSpec::Exact(lattice.data_of(most)))
    }

    /// Returns true if the policy bounds the inputs of a tool that a program declares with these policy
    /// names.
    pub fn bounds(&self, tool: &str, uses: &[PolicyUse]) -> bool {
        let own = self.tools.iter().chain(&self.own).filter(|t| *t.name == *tool).map(|t| &t.says);
        let named = uses.iter().filter(|u| u.tool == tool).filter_map(|u| self.says(u));
        own.chain(named).any(|s| {
            s.effect.is_some() || s.control.is_some() || s.arguments.is_some() || !s.bounds.is_empty()
        })
    }

    /// Returns true if the policy states the effect of an undeclared tool, or bounds its inputs.
    pub fn knows(&self, tool: &str) -> bool {
        self.bounds(tool, &[])
    }

    /// Puts the policy into the declarations of a program that names no policies. See [`Policy::apply_to`].
    pub fn apply(&self, code: &mut Code) -> Vec<Diagnostic> {
        self.apply_to(code, &[])
    }

    /// Puts the policy into the declarations of a program, which names policies at these places: what the
    /// program says itself, then the policies that it names, then the tables of the file, which have the last
    /// word. Names that look like a slip for one of the program are errors; others are taken to be about
    /// another program.
    pub fn apply_to(&self, code: &mut Code, uses: &[PolicyUse]) -> Vec<Diagnostic> {
        let mut found = self.check_named(uses);
        if !found.is_empty() {
            return found;
        }
        let names: Vec<Name> = code.tools.iter().map(|t| t.name.clone()).collect();
        let declared: HashSet<&Name> = names.iter().collect();
        let tables: HashMap<&str, &ToolPolicy> = self.tools.iter().map(|t| (&*t.name, t)).collect();
        for tool in &self.tools {
            if declared.contains(&tool.name) {
                continue;
            }
            // Tools that the policy names itself are no slips for each other.
            let others = names.iter().map(|n| &**n).filter(|n| !tables.contains_key(*n));
            if let Some(near) = nearest(&tool.name, others) {
                let message = format!("the program has no tool `{}`", clip(&tool.name));
                let d = Diagnostic::error(codes::UNKNOWN_NAME, message, tool.span);
                found.push(d.help(format!("did you mean `{near}`?")));
            }
        }
        let globals = code.globals().clone();
        for decl in &mut code.tools {
            let decl = Arc::make_mut(decl);
            // The program may say what it does, and the file has the last word all the same.
            let was_unknown = decl.is_unknown();
            let own = self.own(decl, uses);
            if let Some(says) = &own {
                says.put(decl, &mut found);
            }
            let (named, _) = self.put_named(decl, uses, &mut found);
            let table = tables.get(&**decl.called()).copied();
            let of_file = self.of_file(table, was_unknown, own.is_some());
            if let Some(says) = of_file {
                says.put(decl, &mut found);
            }
            if let Some(table) = table {
                table.says.check_filter(decl, &mut found);
                table.says.check_handle(decl, &mut found);
                let memory = self.memory.get(&table.name).unwrap_or(&table.says.memory);
                table.says.check_memory(memory, decl, &mut found);
            }
            program::judge(decl, own.as_ref(), &named, of_file, &globals, &mut found);
        }
        self.delegate(code, &mut found);
        self.check_sets(code, &mut found);
        found
    }
}

impl Signature {
    /// The label of the result, as said or as the effect brings it along.
    fn returns(&self) -> Option<LabelSpec> {
        if self.memory.reads.is_some() {
            return Some(LabelSpec::TOP);
        }
        self.result.clone().or_else(|| Some(careful(self.effect?).1))
    }

    /// Puts everything but its functions into a declaration. Returns the slots that it has filled.
    fn put(&self, decl: &mut ToolDecl, found: &mut Vec<Diagnostic>) -> BTreeSet<Slot> {
        let without_signature = decl.is_unknown();
        let mut filled = BTreeSet::new();
        let arguments =
            |decl: &ToolDecl| decl.params.iter().map(|p| Slot::Argument(p.name.clone())).collect::<Vec<_>>();
        if let Some(effect) = self.effect {
            let (bound, result) = careful(effect);
            decl.effect = effect;
            decl.control = bound.clone();
            decl.label = result;
            for p in &mut decl.params {
                p.bound = bound.clone();
            }
            filled.extend([Slot::Effect, Slot::Control, Slot::Result]);
            filled.extend(arguments(decl));
        }
        if let Some(control) = &self.control {
            decl.control = control.clone();
            filled.insert(Slot::Control);
        }
        if let Some(bound) = &self.arguments {
            for p in &mut decl.params {
                p.bound = bound.clone();
            }
            filled.extend(arguments(decl));
        }
        if let Some(result) = &self.result {
            decl.label = result.clone();
            filled.insert(Slot::Result);
        }
        if self.put_parts(decl, found) {
            filled.insert(Slot::Parts);
        }
        // Nobody keeps the labels of what was written.
        if self.memory.reads.is_some() {
            decl.label = LabelSpec::TOP;
            decl.parts = core_ir::ResultParts::default();
            filled.extend([Slot::Result, Slot::Parts]);
        }
        if let Some(approve) = self.approve {
            decl.approve = approve;
            filled.insert(Slot::Approve);
        }
        if !self.among.is_empty() {
            decl.among = self.among.iter().map(|(among, _)| among.clone()).collect();
            filled.insert(Slot::Among);
        }
        if let Some(most) = self.at_most {
            decl.at_most = Some(most);
            filled.insert(Slot::AtMost);
        }
        if !self.plain.is_empty() {
            decl.plain = self.plain.iter().map(|(name, form, _)| (name.clone(), *form)).collect();
            filled.insert(Slot::Plain);
        }
        if !self.pattern.is_empty() {
            decl.pattern = self.pattern.iter().map(|(n, p, _)| (n.clone(), p.clone())).collect();
            filled.insert(Slot::Pattern);
        }
        if !self.completes.is_empty() {
            decl.completes = self.completes.iter().map(|(n, _)| n.clone()).collect();
            filled.insert(Slot::Completes);
        }
        let spans =
            self.pattern.iter().map(|(n, _, s)| (n, s)).chain(self.completes.iter().map(|(n, s)| (n, s)));
        for (name, span) in spans {
            if !decl.params.iter().any(|p| p.name == *name) {
                found.push(no_parameter(decl, name, *span, without_signature));
            }
        }
        if !self.includes.is_empty() {
            decl.includes = self.includes.iter().map(|(name, who, _)| (name.clone(), who.clone())).collect();
            filled.insert(Slot::Readers);
        }
        for (name, who, span) in &self.includes {
            let missing = [name].into_iter().chain(who).find(|n| !decl.params.iter().any(|p| p.name == **n));
            found.extend(missing.map(|name| no_parameter(decl, name, *span, without_signature)));
        }
        for (name, bound, span) in &self.bounds {
            match decl.params.iter_mut().find(|p| p.name == *name) {
                Some(p) => {
                    p.bound = bound.clone();
                    filled.insert(Slot::Argument(name.clone()));
                }
                None => found.push(no_parameter(decl, name, *span, without_signature)),
            }
        }
        for (name, _, span) in &self.plain {
            match decl.params.iter().find(|p| p.name == *name) {
                Some(p) if !may_hold_text(&p.ty) => found.push(no_text(decl, p, "a form of text", *span)),
                Some(_) => {}
                None => found.push(no_parameter(decl, name, *span, without_signature)),
            }
        }
        filled
    }
}

/// Returns true if some value of the type is a text, or has one in it.
pub(crate) fn may_hold_text(ty: &Type) -> bool {
    match ty {
        Type::Num | Type::Bool | Type::Null | Type::Enum(_) => false,
        Type::Option(inner) | Type::List(inner) => may_hold_text(inner),
        Type::Refined(r) => may_hold_text(&r.0),
        // Others are few in parameters, and may.
        _ => true,
    }
}

/// The report of a rule about texts for a parameter that has none.
pub(crate) fn no_text(decl: &ToolDecl, param: &ToolParam, rule: &str, span: Span) -> Diagnostic {
    let message = format!(
        "{rule} says nothing about the parameter `{}` of `{}`, which is of type `{}`",
        clip(&param.name),
        decl.name,
        clip(&param.ty.to_string())
    );
    Diagnostic::error(codes::WRONG_VALUE, message, span)
        .help("remove it, or write it for a parameter of type `String`")
}

/// The report of a parameter that a tool does not have.
fn no_parameter(decl: &ToolDecl, name: &str, span: Span, without_signature: bool) -> Diagnostic {
    let names: Vec<&str> = decl.params.iter().map(|p| &*p.name).collect();
    let message = format!("the tool `{}` has no parameter `{}`", decl.name, clip(name));
    let d = Diagnostic::error(codes::UNKNOWN_NAME, message, span);
    match nearest(name, names.iter().copied()) {
        _ if without_signature => {
            d.help("its parameters are not known; `arguments = …` bounds all of its arguments")
        }
        Some(near) => d.help(format!("did you mean `{near}`?")),
        None => d.help(format!("it has: {}", names.join(", "))),
    }
}

/// The report of a policy function of a tool that is none.
fn no_function(tool: &str, why: &str, span: Span, globals: &Globals) -> Diagnostic {
    let message = format!("the policy function of `{tool}`: {why}");
    let d = Diagnostic::error(codes::FUNCTION, message, span);
    match globals.names().is_empty() {
        true => d.help("a program in `.agent` has no prelude: write `prim[contains](…)` and the like"),
        false => d,
    }
}

/// Reads a policy function. It may neither ask anything of the world nor reclassify.
fn function(text: &str, globals: &Arc<Globals>) -> Result<Arc<Code>, String> {
    let mut sources = Sources::new();
    let file = sources.add("", text);
    let parsed = syntax::lam::parse(file, text, globals, syntax::lam::Options::GENERATED);
    let Some(code) = parsed.code else {
        let first = parsed.diagnostics.iter().find(|d| d.level == Level::Error);
        return Err(first.map_or("it does not parse".into(), |d| d.message.clone()));
    };
    if !code.is_quiet() {
        return Err("it may not ask anything of models, tools, stores or chance".into());
    }
    if code.reaches(|t| matches!(t, Term::Endorse(..) | Term::Declassify(..))) {
        return Err("it must not reclassify its argument".into());
    }
    if !matches!(code.term(code.root()), Term::Abs(_)) {
        return Err("it must be a function, such as `\\a. a.to.value == \"alice\"`".into());
    }
    Ok(Arc::new(code))
}

/// The careful assumptions for an effect, as for a `.lam` declaration that says no more: the bound of control
/// and arguments, and the label of the result.
fn careful(effect: EffectClass) -> (LabelSpec, LabelSpec) {
    match effect {
        EffectClass::Pure => (LabelSpec::TOP, LabelSpec::BOTTOM),
        EffectClass::Read => (UNTRUSTED, UNTRUSTED),
        EffectClass::Write => (LabelSpec::BOTTOM, UNTRUSTED),
    }
}

/// Problem of a place that depends on where whoever reads it stands.
pub(crate) const ROOTLESS: &str =
    "this is no place: a path begins with `/`, an address with its scheme or `www.`";

const UNTRUSTED: LabelSpec = LabelSpec::Axes { untrusted: true, secret: false };

/// Reads the tables of the file.
struct PolicyReader {
    lattice: Lattice,
    /// The principals, as far as the file lists them.
    principals: Principals,
    /// The values that name principals, in the order of the file.
    people: Vec<Person>,
    found: Vec<Diagnostic>,
}

impl PolicyReader {
    fn wrong(&mut self, value: &Value, expected: &str) {
        let kind = value.get_ref().type_str();
        let d = Diagnostic::error(
            codes::WRONG_VALUE,
            format!("expected {expected}, found a value of kind {kind}"),
            value.span(),
        );
        self.found.push(d);
    }

    fn unknown_key(&mut self, key: &str, at: Span, known: &[&str]) {
        let d =
            Diagnostic::error(codes::UNKNOWN_KEY, format!("a policy has no key `{}` here", clip(key)), at);
        self.found.push(match nearest(key, known.iter().copied()) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d.help(format!("there is: {}", known.join(", "))),
        });
    }

    fn table<'v>(&mut self, value: &'v Value, what: &str) -> Option<&'v Table> {
        match value.get_ref() {
            Node::Table(t) => Some(t),
            _ => {
                self.wrong(value, what);
                None
            }
        }
    }

    fn boolean(&mut self, value: &Value) -> bool {
        match value.get_ref() {
            Node::Bool(b) => *b,
            _ => {
                self.wrong(value, "`true` or `false`");
                false
            }
        }
    }

    fn count(&mut self, value: &Value) -> Option<u64> {
        let what = "a whole number from 1 on, such as 3";
        match value.get_ref() {
            Node::Whole(Some(n)) if *n > 0 => return Some(*n),
            // The kind is right, and the number is not.
            Node::Whole(n) => {
                let found = if *n == Some(0) { "0, with which no call is ever made" } else { "another one" };
                let message = format!("expected {what}, found {found}");
                self.found.push(Diagnostic::error(codes::WRONG_VALUE, message, value.span()));
            }
            _ => self.wrong(value, what),
        }
        None
    }

    fn names(&mut self, value: &Value) -> BTreeSet<Name> {
        let Node::List(items) = value.get_ref() else {
            self.wrong(value, "a list of names");
            return BTreeSet::new();
        };
        let mut out = BTreeSet::new();
        for item in items.iter() {
            match item.get_ref() {
                Node::Text(s) => {
                    out.insert(Name::from(&**s));
                }
                _ => self.wrong(item, "a name"),
            }
        }
        out
    }

    fn policy(&mut self, file: FileId, root: &Table) -> Policy {
        const KEYS: &[&str] = &[
            "lattice",
            "generated_endorse",
            "principals",
            "places",
            "policies",
            "tools",
            "unknown_tools",
            "models",
            "output",
            "delegate",
        ];
        let mut policy = Policy {
            file,
            lattice: LatticeKind::TwoAxis,
            principals: Principals::default(),
            people: Vec::new(),
            generated_endorse: false,
            clearance: LabelSpec::TOP,
            clearances: Vec::new(),
            output: LabelSpec::TOP,
            answer: AnswerSink::default(),
            tools: Vec::new(),
            delegates: Vec::new(),
            named: Vec::new(),
            own: Vec::new(),
            has_block: false,
            unknown: None,
            unknown_is_of_file: true,
            memory: BTreeMap::new(),
            text: "".into(),
        };
        // Labels cannot be read before the lattice and its principals are known.
        for (key, value) in root.iter() {
            match &**key.get_ref() {
                "lattice" => {
                    policy.lattice = self.lattice(value);
                    self.lattice = Lattice::new(policy.lattice);
                }
                "principals" => self.principals(value),
                _ => {}
            }
        }
        // Their labels may name principals.
        if let Some((_, value)) = root.iter().find(|(k, _)| &**k.get_ref() == "places") {
            self.places(value);
        }
        policy.principals = self.principals.clone();
        policy.people = self.people.clone();
        for (key, value) in root.iter() {
            match &**key.get_ref() {
                "lattice" | "principals" | "places" => {}
                "generated_endorse" => policy.generated_endorse = self.boolean(value),
                "tools" => self.tools(value, &mut policy),
                "policies" => self.named(value, &mut policy),
                "unknown_tools" => policy.unknown = Some(self.signature(value)),
                "models" => self.models(value, &mut policy),
                "output" => self.output(value, &mut policy),
                "delegate" => self.delegates(value, &mut policy),
                other => self.unknown_key(other, key.span(), KEYS),
            }
        }
        self.unplaced(&policy);
        let principals = root.iter().find(|(k, _)| &**k.get_ref() == "principals").map(|(_, v)| v);
        if policy.lattice != LatticeKind::SourcesReaders
            && let Some(Node::Table(table)) = principals.map(tree::Spanned::get_ref)
        {
            let lists = table.iter().filter(|(k, _)| ["readers", "sources"].contains(&&**k.get_ref()));
            for (key, _) in lists {
                let d = Diagnostic::error(
                    codes::WRONG_VALUE,
                    "lists of readers and sources belong to the lattice `sources-readers`",
                    key.span(),
                );
                self.found.push(d.help("write `lattice = \"sources-readers\"`, or remove them"));
            }
        }
        policy
    }

    /// Reports labels that are those of places where no place has a label.
    fn unplaced(&mut self, policy: &Policy) {
        if !self.principals.places.is_empty() {
            return;
        }
        let named = policy.named.iter().map(named::NamedPolicy::says);
        let all = policy.tools.iter().map(|t| &t.says).chain(named).chain(&policy.unknown);
        for (name, span) in all.flat_map(Signature::places) {
            let message =
                format!("`${}` is the label of a place, and the policy has no `[places]`", clip(name));
            let d = Diagnostic::error(codes::WRONG_VALUE, message, span);
            self.found.push(d.help(
                "write which places are trusted: `[places]` with `\"/home/me/**\" = \"trusted\"`; without it \
                 everything is untrusted",
            ));
        }
    }

    fn lattice(&mut self, value: &Value) -> LatticeKind {
        let Node::Text(s) = value.get_ref() else {
            self.wrong(value, "the name of a lattice");
            return LatticeKind::TwoAxis;
        };
        if let Some(kind) = LatticeKind::named(s) {
            return kind;
        }
        let message = format!("there is no lattice `{}`", clip(s));
        let d = Diagnostic::error(codes::WRONG_VALUE, message, value.span());
        let names: Vec<&str> = LatticeKind::ALL.iter().map(|(name, _)| *name).collect();
        self.found.push(d.help(format!("there is: {}", names.join(", "))));
        LatticeKind::TwoAxis
    }

    fn principals(&mut self, value: &Value) {
        let Some(table) = self.table(value, "a table of principals") else { return };
        let mut named = Vec::new();
        for (key, value) in table.iter() {
            match &**key.get_ref() {
                "readers" => self.principals.readers = Some(self.names(value)),
                "sources" => self.principals.sources = Some(self.names(value)),
                name => {
                    self.principal(name.into(), value);
                    named.push(Name::from(name));
                }
            }
        }
        // Who has values may be in labels, whatever the lists say.
        for list in [&mut self.principals.readers, &mut self.principals.sources].into_iter().flatten() {
            list.extend(named.iter().cloned());
        }
    }

    /// The labels of places.
    fn places(&mut self, value: &Value) {
        let Some(table) = self.table(value, "a table with a label for each place") else { return };
        for (key, value) in table.iter() {
            let Some(label) = self.label(value) else { continue };
            let is_rootless = |text: &str| {
                text != "**" && Region::new(text.trim_end_matches('*')).is_ok_and(|r| r.is_rootless())
            };
            let added = match is_rootless(key.get_ref()) {
                true => Err(ROOTLESS),
                false => self.principals.places.add(key.get_ref(), label),
            };
            if let Err(why) = added {
                let message = format!("`{}`: {why}", clip(key.get_ref()));
                let d = Diagnostic::error(codes::WRONG_VALUE, message, key.span());
                self.found.push(d.help(
                    "write a path or an address, with `/**` at its end for all that is below: \"/home/me/**\"",
                ));
            }
        }
    }

    /// A principal: the values that name it, and perhaps that it is trusted.
    fn principal(&mut self, name: Name, value: &Value) {
        let Node::Table(table) = value.get_ref() else {
            return self.named_by(&[(None, value)], &Principal { name, trusted: false });
        };
        let (mut trusted, mut values) = (false, Vec::new());
        for (key, value) in table.iter() {
            match &**key.get_ref() {
                "trusted" => trusted = self.boolean(value),
                key => values.push((Some(Name::from(key)), value)),
            }
        }
        self.named_by(&values, &Principal { name, trusted });
    }

    fn named_by(&mut self, values: &[(Option<Name>, &Value)], principal: &Principal) {
        for (key, value) in values {
            let texts = match value.get_ref() {
                Node::List(texts) => texts.iter().collect(),
                _ => vec![*value],
            };
            for text in texts {
                let Node::Text(s) = text.get_ref() else {
                    self.wrong(text, "a text that names the principal, such as \"alice@example.org\"");
                    continue;
                };
                if s.is_empty() {
                    let d = Diagnostic::error(codes::WRONG_VALUE, "an empty text names nobody", text.span());
                    self.found.push(d.help("write a text that names the principal, or remove it"));
                    continue;
                }
                let (name, key, value) = (principal.name.clone(), key.clone(), Name::from(&**s));
                self.people.push(Person { name, key, value });
                let old = self.principals.values.insert(Name::from(&**s), principal.clone());
                if let Some(old) = old.filter(|old| old.name != principal.name) {
                    let message = format!("`{}` names `{}`, too", clip(s), clip(&old.name));
                    let d = Diagnostic::error(codes::WRONG_VALUE, message, text.span());
                    self.found.push(d.help("give the value to one of the two principals"));
                }
            }
        }
    }

    fn tools(&mut self, value: &Value, policy: &mut Policy) {
        let Some(table) = self.table(value, "a table with a table for each tool") else { return };
        for (key, value) in table.iter() {
            let span = key.span();
            let says = self.signature(value);
            policy.tools.push(ToolPolicy { name: key.get_ref().to_string().into(), span, says });
        }
    }

    fn signature(&mut self, value: &Value) -> Signature {
        const KEYS: &[&str] = &[
            "effect",
            "control",
            "arguments",
            "bounds",
            "among",
            "plain",
            "pattern",
            "completes",
            "result",
            "fields",
            "readers",
            "approve",
            "at_most",
            "writes",
            "reads",
            "filter",
            "handle",
            "allow",
        ];
        let (mut says, mut bound_sets) = (Signature::default(), Vec::new());
        let Some(table) = self.table(value, "a table such as { effect = \"read\" }") else { return says };
        for (key, value) in table.iter() {
            says.keys.push((key.get_ref().to_string(), key.span()));
            match &**key.get_ref() {
                "effect" => says.effect = self.effect(value),
                "control" => says.control = self.label(value),
                "arguments" => says.arguments = self.label(value),
                "result" => says.result = self.label(value),
                "fields" => self.fields(value, &mut says.parts),
                "readers" => self.readers(value, &mut says.parts, &mut says.includes),
                "approve" => match value.get_ref() {
                    Node::Table(table) => says.when = self.when(table, value),
                    _ => says.approve = self.approval(value),
                },
                "among" => says.among = self.among(value),
                "at_most" => says.at_most = self.count(value),
                "writes" => says.memory.writes = self.memory_key(value),
                "reads" => says.memory.reads = self.memory_key(value),
                "filter" => says.filter = self.filter(value),
                "handle" => says.handle = self.handle(value),
                "plain" => {
                    let Some(forms) = self.table(value, "a table with a form for each parameter") else {
                        continue;
                    };
                    for (name, form) in forms.iter() {
                        let span = name.span();
                        if let Some(form) = self.form(form) {
                            says.plain.push((name.get_ref().to_string().into(), form, span));
                        }
                    }
                }
                "pattern" => self.patterns(value, &mut says.pattern),
                "completes" => {
                    let Node::List(names) = value.get_ref() else {
                        self.wrong(value, "a list of parameters such as [\"code\"]");
                        continue;
                    };
                    for name in names.iter() {
                        match name.get_ref() {
                            Node::Text(s) => {
                                says.completes.push((Name::from(&**s), name.span()));
                            }
                            _ => self.wrong(name, "the name of a parameter"),
                        }
                    }
                }
                "allow" => match value.get_ref() {
                    Node::Text(text) => {
                        says.allow = Some((text.to_string(), value.span()));
                    }
                    _ => self.wrong(value, "a text with a function in `.lam`"),
                },
                "bounds" => {
                    let Some(bounds) = self.table(value, "a table with a bound for each parameter") else {
                        continue;
                    };
                    for (name, bound) in bounds.iter() {
                        let span = name.span();
                        let name = Name::from(name.get_ref().to_string());
                        // Trusted data, and what is below the place.
                        if let Node::Text(text) = bound.get_ref()
                            && text.starts_with("under:")
                        {
                            says.bounds.push((name.clone(), LabelSpec::BOTTOM, span));
                            bound_sets.extend(self.set_of(name, bound));
                        } else if let Some(label) = self.label(bound) {
                            says.bounds.push((name, label, span));
                        }
                    }
                }
                other => self.unknown_key(other, key.span(), KEYS),
            }
        }
        says.among.extend(bound_sets);
        for (name, span) in &says.completes {
            if !says.pattern.iter().any(|(n, ..)| n == name) {
                let message = format!("`{}` completes calls, and has no pattern", clip(name));
                let d = Diagnostic::error(codes::WRONG_VALUE, message, *span);
                self.found.push(d.help(format!(
                    "say which form it has, for whoever chooses it: `pattern = {{ {name} = \"[0-9]{{6}}\" }}`"
                )));
            }
        }
        says
    }

    /// `pattern`: a table with a regular expression for each parameter.
    fn patterns(&mut self, value: &Value, out: &mut Vec<(Name, Pattern, Span)>) {
        let Some(table) = self.table(value, "a table with a regular expression for each parameter") else {
            return;
        };
        for (name, pattern) in table.iter() {
            let Node::Text(text) = pattern.get_ref() else {
                self.wrong(pattern, "a regular expression such as \"[0-9]{6}\"");
                continue;
            };
            match Pattern::new(text) {
                Ok(pattern) => {
                    out.push((Name::from(&**name.get_ref()), pattern, name.span()));
                }
                Err(why) => {
                    let message = format!("`{}` is no regular expression: {why}", clip(text));
                    let d = Diagnostic::error(codes::WRONG_VALUE, message, pattern.span());
                    self.found.push(d.help("all of the argument must match it: `\"[0-9]{4,8}\"`"));
                }
            }
        }
    }

    /// Reads the form of untrusted text.
    fn form(&mut self, value: &Value) -> Option<Plain> {
        let text = match value.get_ref() {
            Node::Text(s) => &**s,
            _ => "",
        };
        let form = Plain::named(text);
        if form.is_none() {
            let message = "this is not a form of text";
            let d = Diagnostic::error(codes::WRONG_VALUE, message, value.span());
            self.found.push(d.help("write `\"no-links\"`"));
        }
        form
    }

    /// Reads `approve`: the calls that a person is asked about.
    fn approval(&mut self, value: &Value) -> Option<Approve> {
        match value.get_ref() {
            Node::Bool(true) => Some(Approve::Always),
            Node::Bool(false) => Some(Approve::Never),
            Node::Text(s) if **s == *"if-refused" => Some(Approve::IfRefused),
            _ => {
                self.wrong(value, "`true`, `false`, `\"if-refused\"` or `{ when = … }`");
                None
            }
        }
    }

    /// Reads `{ when = \a. … }`: the function that says of which calls a person is asked.
    fn when(&mut self, table: &Table, value: &Value) -> Option<(String, Span)> {
        for (key, _) in table.iter().filter(|(key, _)| *key.get_ref() != "when") {
            self.unknown_key(key.get_ref(), key.span(), &["when"]);
        }
        let Some(when) = table.get("when") else {
            self.wrong(value, "`{ when = \"…\" }` with a function in `.lam`");
            return None;
        };
        match when.get_ref() {
            Node::Text(text) => Some((text.clone(), when.span())),
            _ => {
                self.wrong(when, "a text with a function in `.lam`");
                None
            }
        }
    }

    fn effect(&mut self, value: &Value) -> Option<EffectClass> {
        let text = match value.get_ref() {
            Node::Text(s) => &**s,
            _ => "",
        };
        match text {
            "pure" => Some(EffectClass::Pure),
            "read" => Some(EffectClass::Read),
            "write" => Some(EffectClass::Write),
            _ => {
                let message = "an effect is `pure`, `read` or `write`";
                let d = Diagnostic::error(codes::WRONG_VALUE, message, value.span());
                self.found.push(match nearest(text, ["pure", "read", "write"]) {
                    Some(near) => d.help(format!("did you mean `{near}`?")),
                    None => d.help("`read` looks at the world, `write` changes it, `pure` does neither"),
                });
                None
            }
        }
    }

    fn models(&mut self, value: &Value, policy: &mut Policy) {
        let Some(table) = self.table(value, "a table with a table for each model") else { return };
        for (key, value) in table.iter() {
            let Some(model) = self.table(value, "a table such as { clearance = \"untrusted\" }") else {
                continue;
            };
            for (inner, value) in model.iter() {
                match &**inner.get_ref() {
                    "clearance" => {
                        let Some(label) = self.label(value) else { continue };
                        match &**key.get_ref() {
                            "*" => policy.clearance = label,
                            name => policy.clearances.push((name.into(), label)),
                        }
                    }
                    other => self.unknown_key(other, inner.span(), &["clearance"]),
                }
            }
        }
    }

    fn output(&mut self, value: &Value, policy: &mut Policy) {
        let Some(table) = self.table(value, "a table such as { clearance = \"untrusted\" }") else { return };
        for (key, value) in table.iter() {
            match &**key.get_ref() {
                "clearance" => {
                    // A bound that cannot be read admits nothing, and the file is refused anyway.
                    policy.output = self.label(value).unwrap_or(LabelSpec::BOTTOM);
                }
                "bound" => policy.answer.bound = self.label(value).unwrap_or(LabelSpec::BOTTOM),
                "plain" => policy.answer.plain = self.form(value),
                other => self.unknown_key(other, key.span(), &["clearance", "bound", "plain"]),
            }
        }
    }

    /// A label: words, or a label value of the lattice.
    fn label(&mut self, value: &Value) -> Option<LabelSpec> {
        let before = self.found.len();
        let spec = match value.get_ref() {
            Node::Text(words) => self.words(words, value),
            _ => data(value.get_ref()).map(LabelSpec::Exact),
        };
        if self.found.len() > before {
            return None;
        }
        let spec = spec.filter(|s| self.lattice.resolve(s).is_some());
        if spec.is_none() {
            let how = self.lattice.kind().example();
            let message = "this is not a label of the lattice";
            let d = Diagnostic::error(codes::WRONG_VALUE, message, value.span());
            let words = "words out of `trusted`, `untrusted`, `public`, `secret`";
            self.found.push(d.help(format!("write {words}, or a label: {how}")));
            return None;
        }
        if let Node::Table(table) = value.get_ref() {
            for (key, names) in table.iter() {
                let known = match &**key.get_ref() {
                    "readers" => self.principals.readers.clone(),
                    _ => self.principals.sources.clone(),
                };
                if let (Some(known), Node::List(_)) = (known, names.get_ref()) {
                    self.principals_of(key.get_ref(), names, &known);
                }
            }
        }
        spec.filter(|_| self.found.len() == before)
    }

    fn principals_of(&mut self, which: &str, names: &Value, known: &BTreeSet<Name>) {
        let Node::List(items) = names.get_ref() else { return };
        for item in items.iter() {
            let Node::Text(name) = item.get_ref() else { continue };
            if known.contains(&**name) {
                continue;
            }
            let message = format!("`{}` is none of the {which} among the principals", clip(name));
            let d = Diagnostic::error(codes::UNKNOWN_NAME, message, item.span());
            self.found.push(match nearest(name, known.iter().map(|k| &**k)) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d.help(format!("add it to `principals.{which}`")),
            });
        }
    }

    fn words(&mut self, words: &str, value: &Value) -> Option<LabelSpec> {
        let (spec, unknown) = label_words(words);
        for word in unknown {
            let message = format!("`{}` is not a label", clip(word));
            let d = Diagnostic::error(codes::WRONG_VALUE, message, value.span());
            self.found.push(match nearest(word, LABEL_WORDS) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d.help(format!("there is: {}", LABEL_WORDS.join(", "))),
            });
        }
        spec
    }
}

/// The words that labels are written with in policy files and settings.
pub const LABEL_WORDS: [&str; 5] = ["trusted", "untrusted", "public", "secret", "any"];

/// Reads a label in words, such as `untrusted secret`; `None` without any word. Also returns the words that
/// are not among [`LABEL_WORDS`].
///
/// # Examples
/// ```
/// use core_ir::LabelSpec;
/// use policy::label_words;
/// assert_eq!(label_words("any"), (Some(LabelSpec::TOP), vec![]));
/// assert_eq!(label_words("trusted secrt").1, ["secrt"]);
/// assert_eq!(label_words(" ").0, None);
/// ```
pub fn label_words(text: &str) -> (Option<LabelSpec>, Vec<&str>) {
    let (mut untrusted, mut secret, mut unknown) = (false, false, Vec::new());
    for word in text.split_whitespace() {
        match word {
            "trusted" | "public" => {}
            "untrusted" => untrusted = true,
            "secret" => secret = true,
            "any" => (untrusted, secret) = (true, true),
            other => unknown.push(other),
        }
    }
    ((!text.trim().is_empty()).then_some(LabelSpec::Axes { untrusted, secret }), unknown)
}

/// A TOML value as data, as far as labels need it.
fn data(value: &Node) -> Option<Data> {
    match value {
        Node::Text(s) => Some(Data::str(&**s)),
        Node::List(items) => {
            items.iter().map(|i| data(i.get_ref())).collect::<Option<Vec<_>>>().map(Data::list)
        }
        Node::Table(t) => {
            let fields = t.iter().map(|(k, v)| Some((Name::from(&**k.get_ref()), data(v.get_ref())?)));
            fields.collect::<Option<Vec<_>>>().map(Data::record)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
