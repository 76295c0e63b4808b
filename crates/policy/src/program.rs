//! The block `policy { … }` of a program, as tables: what a policy file can say, the program says.
//!
//! Invariant: the policy file has the last word. What it says of a tool under a key replaces what the program
//! says under it, and nothing that the program says loosens a bound that the file states.
//! Invariant: a block and a file are read by the same code. Nothing here knows what a key means.

use super::tree::{Node, Spanned, Table, Value};
use super::{Policy, PolicyReader, PolicyUse, Signature, ToolPolicy, codes, function, no_function};
use core_ir::{Approve, Globals, Name, ToolDecl};
use diagnostics::{Diagnostic, FileId, Span, clip};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The table of a kept policy that has what the program says.
pub(super) const KEPT: &str = "program";

/// Keys of a block that are read together with the file, key by key.
const BY_KEY: &[&str] = &["output"];

/// The author of a rule of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The policy file.
    File,
    /// The block of the program.
    Program,
    /// The block of the program, but the policy file replaces it or keeps it from loosening a bound.
    SetAside,
}

/// A rule of a tool, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSource {
    /// The tool.
    pub tool: Name,
    /// The key.
    pub key: String,
    /// The parameter that it is about, if it is about one.
    pub param: Option<String>,
    /// Its author.
    pub author: Author,
    /// Its place.
    pub span: Span,
}

impl RuleSource {
    /// The key, and the parameter that it is about.
    pub fn rule(&self) -> String {
        self.param.as_ref().map_or(self.key.clone(), |param| format!("{} {param}", self.key))
    }
}

/// A part of a declaration that rules fill. What is filled last applies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot {
    Effect,
    Control,
    Argument(Name),
    Result,
    Parts,
    Approve,
    Among,
    AtMost,
    Plain,
    Pattern,
    Completes,
    Readers,
    Allow,
}

/// Statements of a file and of the policies of a name about a tool.
#[derive(Clone, Debug, Default)]
struct Stated {
    control: bool,
    all_arguments: bool,
    arguments: Vec<Name>,
    result: bool,
    approve: bool,
}

impl Stated {
    fn add(&mut self, says: &Signature) {
        self.control |= says.effect.is_some() || says.control.is_some();
        self.all_arguments |= says.effect.is_some() || says.arguments.is_some();
        self.arguments.extend(says.bounds.iter().map(|(name, ..)| name.clone()));
        self.result |= says.effect.is_some() || says.result.is_some() || !says.parts.is_empty();
        self.approve |= says.states_approval();
    }

    fn bounds(&self) -> bool {
        self.control || self.all_arguments || !self.arguments.is_empty()
    }

    fn argument(&self, name: &str) -> bool {
        self.all_arguments || self.arguments.iter().any(|a| **a == *name)
    }
}

/// The tables that are read: those of the file, and of the program what the file leaves open.
pub(super) fn merged(file: &Table, program: &Table, found: &mut Vec<Diagnostic>) -> Table {
    let mut out = Table::default();
    for (key, value) in file.iter().filter(|(key, _)| *key.get_ref() != KEPT) {
        // Keys of a table of TOML are distinct.
        out.insert(key.clone(), value.clone());
    }
    for (key, value) in program.iter().filter(|(key, _)| *key.get_ref() != "tools") {
        let Some(of_file) = file.get(key.get_ref()) else {
            out.insert(key.clone(), value.clone());
            continue;
        };
        match (value.get_ref(), of_file.get_ref()) {
            (Node::Table(more), Node::Table(_)) if BY_KEY.contains(&&**key.get_ref()) => {
                let Some(table) = out.table_at(key) else { continue };
                for (key, value) in more.iter() {
                    table.insert(key.clone(), value.clone());
                }
            }
            (Node::Text(own), Node::Text(other)) if key.get_ref() == "lattice" && own != other => {
                let message = format!(
                    "the program has the lattice `{}`, and the policy file `{}`",
                    clip(own),
                    clip(other)
                );
                let d = Diagnostic::error(codes::CONTRADICTION, message, value.span());
                found.push(d.remark(of_file.span(), "the policy file says so here").help(
                    "labels mean one thing in a run: let both name the same lattice, or only one of them",
                ));
            }
            _ => {}
        }
    }
    out
}

impl PolicyReader {
    /// The tools of a block.
    pub(super) fn own_tools(&mut self, program: &Table) -> Vec<ToolPolicy> {
        let Some(Node::Table(tools)) = program.get("tools").map(Spanned::get_ref) else { return Vec::new() };
        let of_tool = |(key, value): (&Spanned<String>, &Value)| {
            let says = self.signature(value);
            ToolPolicy { name: key.get_ref().as_str().into(), span: key.span(), says }
        };
        tools.iter().map(of_tool).collect()
    }
}

impl Policy {
    /// Reads a policy file for a program that has a block of its own.
    ///
    /// # Errors
    /// Everything that is wrong with the two, each with its place.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::{FileId, Span};
    /// use policy::Policy;
    /// use policy::tree::{Node, Spanned, Table};
    /// let at = Span { file: FileId(1), start: 0, end: 0 };
    /// let mut block = Table::default();
    /// block.insert(Spanned::new(at, "lattice".into()), Spanned::new(at, Node::Text("levels".into())));
    /// // The label is one of the lattice that the program names.
    /// let file = "[tools.search]\nresult = [\"internal\"]\n";
    /// assert!(Policy::parse(FileId(0), file).is_err());
    /// assert!(Policy::parse_with(FileId(0), file, &block).is_ok());
    /// ```
    pub fn parse_with(file: FileId, text: &str, block: &Table) -> Result<Policy, Vec<Diagnostic>> {
        Policy::read(file, text, Some(block), false)
    }

    /// The policy of a program that has a block, and no policy file.
    ///
    /// # Errors
    /// Everything that is wrong with the block.
    pub fn of_block(program: FileId, block: &Table) -> Result<Policy, Vec<Diagnostic>> {
        Policy::read(program, "", Some(block), false)
    }

    /// Reads a policy as a journal keeps it: the text of [`Policy::text`], with what the program says.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse_kept(file: FileId, text: &str) -> Result<Policy, Vec<Diagnostic>> {
        Policy::read(file, text, None, true)
    }

    /// Returns true if a block of the program is part of it.
    pub fn has_block(&self) -> bool {
        self.has_block
    }

    fn file_states_approval(&self, decl: &ToolDecl) -> bool {
        self.tools.iter().any(|t| *t.name == **decl.called() && t.says.states_approval())
    }

    /// Returns the statements of the file and of policies of a name about a tool.
    fn stated(&self, decl: &ToolDecl, uses: &[PolicyUse]) -> Stated {
        let mut out = Stated::default();
        for says in self.tools.iter().filter(|t| *t.name == **decl.called()).map(|t| &t.says) {
            out.add(says);
        }
        let is_named = self.tools.iter().any(|t| *t.name == **decl.called());
        if let Some(says) = self.unknown.as_ref().filter(|_| self.unknown_is_of_file)
            && !is_named
            && decl.is_unknown()
        {
            out.add(says);
        }
        for u in uses.iter().filter(|u| *u.tool == *decl.name) {
            let Some(says) = self.says(u) else { continue };
            match &u.param {
                None => out.add(says),
                Some(param) => {
                    out.approve |= says.states_approval();
                    if says.arguments.is_some() {
                        out.arguments.push(param.as_str().into());
                    }
                }
            }
        }
        out
    }

    /// Rules of the program about a tool, without those that loosen what is stated elsewhere.
    pub(super) fn own(&self, decl: &ToolDecl, uses: &[PolicyUse]) -> Option<Signature> {
        let table = self.own.iter().find(|t| *t.name == **decl.called())?;
        let stated = self.stated(decl, uses);
        let mut says = table.says.clone();
        if stated.approve {
            // Functions of several policies of a name add up, and so do questions.
            says.approve = None;
            says.when = says.when.filter(|_| !self.file_states_approval(decl));
        } else if stated.bounds() {
            // A person is asked beside the bounds, and endorses nothing that they refuse.
            if says.approve == Some(Approve::Always) {
                let span = says.keys.iter().find(|(k, _)| k == "approve").map_or(table.span, |(_, s)| *s);
                says.when = Some(("\\called. true".into(), span));
            }
            says.approve = None;
        }
        says.among.retain(|(among, _)| !among.params.iter().any(|(name, _)| stated.argument(name)));
        says.completes.retain(|(name, _)| !stated.result && !stated.argument(name));
        Some(says)
    }

    /// The rules of the file for a tool that has this table in it.
    pub(super) fn of_file<'a>(
        &'a self,
        table: Option<&'a ToolPolicy>,
        was_unknown: bool,
        has_own: bool,
    ) -> Option<&'a Signature> {
        match table {
            Some(table) => Some(&table.says),
            None => self.unknown.as_ref().filter(|_| was_unknown && (!has_own || self.unknown_is_of_file)),
        }
    }

    /// The rules of tools in order, each with its author and its place.
    ///
    /// A rule of the program is set aside if it is not among those that are applied, or if what is applied
    /// after it fills all that it fills.
    pub fn rules(&self, tools: &[Arc<ToolDecl>], uses: &[PolicyUse]) -> Vec<RuleSource> {
        let mut out: Vec<RuleSource> = Vec::new();
        for decl in tools {
            let name = decl.called();
            let mut add = |says: &Signature, author: &dyn Fn(&Rule) -> Author| {
                for rule in says.rules() {
                    let author = author(&rule);
                    let Rule { key, param, span } = rule;
                    out.push(RuleSource { tool: name.clone(), key, param, author, span });
                }
            };
            let of_file = self.tools.iter().find(|t| *t.name == **name);
            if let Some(table) = self.own.iter().find(|t| *t.name == **name) {
                let applied = self.own(decl, uses).unwrap_or_default();
                let later = self.filled_later(decl, uses);
                add(&table.says, &|rule| {
                    let fills = table.says.only(rule).fills(decl);
                    let is_replaced = !fills.is_empty() && fills.is_subset(&later);
                    match applied.has(rule) && !is_replaced {
                        true => Author::Program,
                        false => Author::SetAside,
                    }
                });
            }
            for u in uses.iter().filter(|u| *u.tool == *decl.name) {
                if let Some(says) = self.says(u) {
                    add(says, &|_| Author::File);
                }
            }
            if let Some(table) = of_file {
                add(&table.says, &|_| Author::File);
            }
        }
        out
    }

    /// The slots that are filled after the rules of the program have been.
    fn filled_later(&self, decl: &ToolDecl, uses: &[PolicyUse]) -> BTreeSet<Slot> {
        let mut scratch = decl.clone();
        let (_, mut filled) = self.put_named(&mut scratch, uses, &mut Vec::new());
        let table = self.tools.iter().find(|t| *t.name == **decl.called());
        if let Some(says) = self.of_file(table, decl.is_unknown(), true) {
            filled.extend(says.fills(decl));
        }
        filled
    }
}

impl Signature {
    /// Returns true if it says of which calls a person is asked.
    pub(super) fn states_approval(&self) -> bool {
        self.approve.is_some() || self.when.is_some()
    }

    /// The slots of a declaration that it fills, its function included.
    pub(super) fn fills(&self, decl: &ToolDecl) -> BTreeSet<Slot> {
        let mut filled = self.put(&mut decl.clone(), &mut Vec::new());
        filled.extend(self.allow.is_some().then_some(Slot::Allow));
        // A function that says of which calls a person is asked takes the place of other approval.
        filled.extend(self.when.is_some().then_some(Slot::Approve));
        filled
    }

    /// The rules with the parameter or part that each is about, in the order of the text.
    pub(super) fn rules(&self) -> Vec<Rule> {
        let mut out = Vec::new();
        for (key, span) in &self.keys {
            let parts: Vec<(String, Span)> = match key.as_str() {
                "bounds" => self.bounds.iter().map(|(n, _, s)| (n.to_string(), *s)).collect(),
                "plain" => self.plain.iter().map(|(n, _, s)| (n.to_string(), *s)).collect(),
                "pattern" => self.pattern.iter().map(|(n, _, s)| (n.to_string(), *s)).collect(),
                "completes" => self.completes.iter().map(|(n, s)| (n.to_string(), *s)).collect(),
                "among" => self
                    .among
                    .iter()
                    .flat_map(|(among, s)| among.params.iter().map(|(n, _)| (n.to_string(), *s)))
                    .collect(),
                _ => Vec::new(),
            };
            let rule = |param, span| Rule { key: key.clone(), param, span };
            match parts.is_empty() {
                true => out.push(rule(None, *span)),
                false => out.extend(parts.into_iter().map(|(part, s)| rule(Some(part), s))),
            }
        }
        // A parameter may have several sets.
        out.dedup();
        out
    }

    /// Returns whether it has a rule of another signature that it was made of.
    fn has(&self, rule: &Rule) -> bool {
        match (&*rule.key, &rule.param) {
            ("approve", _) => self.states_approval(),
            ("among", Some(name)) => {
                self.among.iter().any(|(among, _)| among.params.iter().any(|(n, _)| **n == **name))
            }
            ("completes", Some(name)) => self.completes.iter().any(|(n, _)| **n == **name),
            _ => true,
        }
    }

    /// One of its rules alone.
    pub(super) fn only(&self, rule: &Rule) -> Signature {
        let is_it = |name: &Name| rule.param.as_ref().is_none_or(|param| **param == **name);
        let mut out = Signature::default();
        match &*rule.key {
            "effect" => out.effect = self.effect,
            "control" => out.control = self.control.clone(),
            "arguments" => out.arguments = self.arguments.clone(),
            "bounds" => out.bounds = self.bounds.iter().filter(|(n, ..)| is_it(n)).cloned().collect(),
            "result" => out.result = self.result.clone(),
            "fields" => out.parts = self.parts.clone(),
            "readers" => {
                out.parts = self.parts.clone();
                out.includes = self.includes.clone();
            }
            "approve" => (out.approve, out.when) = (self.approve, self.when.clone()),
            "among" => {
                let about = |among: &core_ir::Among| among.params.iter().any(|(n, _)| is_it(n));
                out.among = self.among.iter().filter(|(among, _)| about(among)).cloned().collect();
            }
            "at_most" => out.at_most = self.at_most,
            "plain" => out.plain = self.plain.iter().filter(|(n, ..)| is_it(n)).cloned().collect(),
            "pattern" => out.pattern = self.pattern.iter().filter(|(n, ..)| is_it(n)).cloned().collect(),
            "completes" => out.completes = self.completes.iter().filter(|(n, _)| is_it(n)).cloned().collect(),
            "allow" => out.allow = self.allow.clone(),
            // What a guard keeps fills nothing that the block could say.
            _ => {}
        }
        out
    }
}

/// A rule of a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) key: String,
    /// The parameter that it is about, if it is about one.
    pub(super) param: Option<String>,
    pub(super) span: Span,
}

/// A function of a policy and the parameter that it is about; `None` for the call as a whole.
type Applied<'a> = (&'a (String, Span), Option<&'a str>);

/// Gives a tool the function that decides its calls, if anybody states one: each of the functions of program
/// and named policies must allow one, or that of the file, which replaces them. A person is asked about the
/// calls that any of them names.
///
/// Each text is read by itself, so that what is wrong is said of it and no text reaches out of its brackets.
pub(super) fn judge(
    decl: &mut ToolDecl,
    own: Option<&Signature>,
    named: &[(&PolicyUse, &Signature)],
    of_file: Option<&Signature>,
    globals: &Arc<Globals>,
    found: &mut Vec<Diagnostic>,
) {
    let of_own = |f: &dyn Fn(&Signature) -> Option<(String, Span)>| own.and_then(f);
    let (own_allow, own_when) = (of_own(&|s| s.allow.clone()), of_own(&|s| s.when.clone()));
    let mut allows: Vec<Applied<'_>> = own_allow.iter().map(|f| (f, None)).collect();
    allows.extend(named.iter().filter_map(|(u, says)| Some((says.allow.as_ref()?, u.param.as_deref()))));
    if let Some(allow) = of_file.and_then(|says| says.allow.as_ref()) {
        allows = vec![(allow, None)];
    }
    let mut whens: Vec<Applied<'_>> = own_when.iter().map(|f| (f, None)).collect();
    whens.extend(named.iter().filter_map(|(u, says)| Some((says.when.as_ref()?, u.param.as_deref()))));
    if let Some(says) = of_file.filter(|says| says.states_approval()) {
        whens = says.when.iter().map(|f| (f, None)).collect();
    }
    let before = found.len();
    for ((text, span), _) in allows.iter().chain(&whens) {
        if let Err(why) = function(text, globals) {
            found.push(no_function(&clip(decl.called()), &why, *span, globals));
        }
    }
    if found.len() > before {
        return;
    }
    if let ([((text, _), None)], []) = (&allows[..], &whens[..]) {
        decl.policy = function(text, globals).ok();
        return;
    }
    let applied = |text: &str, param: Option<&str>| {
        let given = param.map_or("called".to_string(), |p| format!("called.{p}"));
        format!("(\n{text}\n) {given}")
    };
    let mut parts: Vec<String> = allows.iter().map(|((text, _), param)| applied(text, *param)).collect();
    let asks = whens.iter().map(|((text, _), param)| applied(text, *param));
    parts.extend(asks.map(|call| format!("(if {call} then `ask else true)")));
    let Some(mut body) = parts.pop() else { return };
    // What one of them asks about, the others may still refuse.
    while let Some(first) = parts.pop() {
        body = format!(
            "let rest = (\\unused. {body}) in let verdict = {first} in \
             if verdict == true then rest null \
             else if verdict == `ask then (let last = rest null in if last == true then `ask else last) \
             else verdict"
        );
    }
    let at = allows.iter().chain(&whens).map(|((_, span), _)| *span).next_back();
    match function(&format!("\\called. {body}"), globals) {
        Ok(code) => decl.policy = Some(code),
        Err(why) => found.push(no_function(&decl.name, &why, at.unwrap_or(decl.span), globals)),
    }
}
