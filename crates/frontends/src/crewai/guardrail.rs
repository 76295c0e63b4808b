//! Guardrails: what a task gave is looked at, and the task is asked again with the reason.
//!
//! | source | term |
//! |---|---|
//! | `guardrail="no names"`, `LLMGuardrail(…)` | a question to `Guardrail Agent`, whose answer says whether it is `valid` |
//! | `guardrail=check`, what `check` computes being known | `` if test then `passed raw else `failed "…" `` |
//! | `guardrail=check`, otherwise | a tool of its name, which is given `{raw}` and gives the pair |
//! | `guardrail_max_retries` | `fix[n + 1]`, a turn an answer; when they are used up the run fails |
//! | `guardrails=[…]` | one after the other; each may have the task asked again |
//!
//! Source: CrewAI 1.15.30 `task.py` (`_invoke_guardrail_function`), `tasks/llm_guardrail.py`,
//! `translations/en.json` (`validation_error`).

use super::source::{CrewItem, CrewReader, Setting};
use crate::defaults;
use crate::langgraph::Of;
use crate::py::{self, field};
use core_ir::{Bound, Branch, Data, EffectClass, IfSugar, LabelSpec, ModelParams, Name, Num, Prim};
use core_ir::{Term, TermId, ToolDecl, ToolParam, Type};
use diagnostics::Span;
use frontend_kit::emit::{LoopBound, Part, Template, codes, undecided};
use frontend_kit::kit::{Budget, Kit};
use python::{PyKind, Value};
use std::sync::Arc;

/// System message of the judge, around the text of the role.
const JUDGE: &str = "You are Guardrail Agent. You are a expert at validating the output of a task. By providing effective feedback if the output is not valid.\nYour personal goal is: Validate the output of the task";

/// Prompt of the judge, around the result and the rule.
const QUESTION: [&str; 3] = [
    "\nCurrent Task: \n        Ensure the following task result complies with the given guardrail.\n\n        Task result:\n        ",
    "\n\n        Guardrail:\n        ",
    "\n\n        Your task:\n        - Confirm if the Task result complies with the guardrail.\n        - If not, provide clear feedback explaining what is wrong (e.g., by how much it violates the rule, or what specific part fails).\n        - Focus only on identifying issues — do not propose corrections.\n        - If the Task result complies with the guardrail, saying that is valid\n        \n\nProvide your complete response:",
];

/// Addition to the prompt of a retried task, around the reason and its result.
const AGAIN: [&str; 3] = [
    "\n\nThis is the context you're working with:\n### Previous attempt failed validation: ",
    "\n\n\n### Previous result:\n",
    "\n\n\nTry again, making sure to address the validation error.",
];

/// The variable that holds what the task gave.
const GAVE: &str = "$gave";
/// The variable that holds it as code sees it.
const OUTPUT: &str = "$output";
/// The state of the loop.
const STATE: &str = "$tried";
/// The function that asks the task, of what it is told beside its description.
const ASK: &str = "$ask";

/// Check of a task's result.
pub(super) enum Guardrail<'r> {
    /// A rule in words, and the model that judges.
    Rule { rule: Setting<'r>, llm: Option<Setting<'r>>, at: Span },
    /// A function of the project.
    Code { function: &'r Value, at: Span },
    /// An unknown guardrail.
    Unknown { why: String, at: Span },
}

impl Guardrail<'_> {
    fn at(&self) -> Span {
        match self {
            Guardrail::Rule { at, .. } | Guardrail::Code { at, .. } | Guardrail::Unknown { at, .. } => *at,
        }
    }
}

impl<'r> CrewReader<'r, '_> {
    /// The guardrails of a task, in order; `agent` carries it out, whose model judges.
    pub(super) fn guardrails(&self, thing: CrewItem<'r>, agent: Option<CrewItem<'r>>) -> Vec<Guardrail<'r>> {
        let written = self.get(thing, "guardrails").or_else(|| self.get(thing, "guardrail"));
        match written {
            None => Vec::new(),
            Some(Setting::Code(given)) => match self.world.items(given.value) {
                // An empty list leaves the other one in force.
                Some([]) => match self.get(thing, "guardrail") {
                    Some(Setting::Code(one)) => vec![self.guardrail(one.value, agent)],
                    _ => Vec::new(),
                },
                Some(items) => items.iter().map(|i| self.guardrail(i, agent)).collect(),
                None => vec![self.guardrail(given.value, agent)],
            },
            Some(Setting::Yaml(entry)) => {
                let at = frontend_kit::emit::value_span(&entry);
                match entry.value.text() {
                    Some(_) => {
                        let llm = agent.and_then(|a| self.get(a, "llm"));
                        vec![Guardrail::Rule { rule: Setting::Yaml(entry), llm, at }]
                    }
                    None => vec![Guardrail::Unknown { why: "a guardrail that is not a text".into(), at }],
                }
            }
        }
    }

    fn guardrail(&self, value: &'r Value, agent: Option<CrewItem<'r>>) -> Guardrail<'r> {
        let at = value.span;
        let settled = self.world.resolve_env(value);
        let llm = || agent.and_then(|a| self.get(a, "llm"));
        match &settled.kind {
            PyKind::Str(_) | PyKind::Text(_) => {
                let rule = Setting::Code(py::Given { value: settled, at });
                Guardrail::Rule { rule, llm: llm(), at }
            }
            PyKind::Function(_) | PyKind::Bound(..) => Guardrail::Code { function: settled, at },
            PyKind::Object(id) if self.world.object(*id).short() == "LLMGuardrail" => {
                let object = self.world.object(*id);
                match field(object, Some(0), "description") {
                    Some(rule) => {
                        let own = field(object, Some(1), "llm").map(Setting::Code);
                        Guardrail::Rule { rule: Setting::Code(rule), llm: own.or_else(llm), at }
                    }
                    None => Guardrail::Unknown { why: "a guardrail without a rule".into(), at },
                }
            }
            _ => Guardrail::Unknown { why: format!("a guardrail: {}", self.world.unknown_reason(value)), at },
        }
    }

    /// A task under its guardrails: `ask` is a function of what the task is told beside its description,
    /// `told` that at first.
    pub(super) fn guarded(
        &self,
        kit: &mut Kit<'_>,
        thing: CrewItem<'r>,
        guardrails: Vec<Guardrail<'r>>,
        ask: TermId,
        told: TermId,
    ) -> TermId {
        let head = self.head(thing);
        let default = defaults::bound(&defaults::CREWAI_GUARDRAIL, kit.versions);
        let written = ["guardrail_max_retries", "max_retries"].iter().find_map(|k| self.get(thing, k));
        let retries = match written {
            Some(Setting::Code(given)) => py::bound(self.world, Some(given), default),
            Some(Setting::Yaml(entry)) => default.or_written(Some(entry), kit.out),
            None => default,
        };
        let listed = self.switched_on(thing, "guardrails").is_some();
        let mut result: Option<TermId> = None;
        for (i, guardrail) in guardrails.into_iter().enumerate() {
            let name = if listed { format!("guardrail {i}") } else { "guardrail".to_string() };
            let begin = match result {
                None => self.again(kit, told, None, head),
                Some(before) => kit.b.add(Term::Tag("given".into(), Some(before)), head),
            };
            result = Some(self.tries(kit, (&guardrail, &name), begin, result.is_some(), &retries, head));
        }
        let Some(result) = result else { return kit.b.app(ask, told, head) };
        kit.b.let_in(vec![(ASK.into(), ask)], result, head)
    }

    /// `` `again {told, why} ``: the task is to be asked.
    fn again(&self, kit: &mut Kit<'_>, told: TermId, why: Option<TermId>, at: Span) -> TermId {
        let why = why.unwrap_or_else(|| kit.text("", at));
        let record = kit.b.add(Term::Record(vec![("told".into(), told), ("why".into(), why)]), at);
        kit.b.add(Term::Tag("again".into(), Some(record)), at)
    }

    /// The loop of one guardrail, which is called so when no answer passed. If `given`, it may begin with a
    /// result that is there already.
    fn tries(
        &self,
        kit: &mut Kit<'_>,
        (guardrail, name): (&Guardrail<'r>, &str),
        begin: TermId,
        given: bool,
        retries: &LoopBound,
        head: Span,
    ) -> TermId {
        let at = guardrail.at();
        let payload = |kit: &mut Kit<'_>, of: &str, name: &str| {
            let a = kit.b.var(of, at);
            kit.b.add(Term::Field(a, name.into()), at)
        };
        // What the task gave.
        let told = payload(kit, "a", "told");
        let function = kit.b.var(ASK, at);
        let asked = kit.b.app(function, told, at);
        let mut ways = vec![Branch { tag: "again".into(), binder: Some("a".into()), body: asked }];
        if given {
            let there = kit.b.var("r", at);
            ways.push(Branch { tag: "given".into(), binder: Some("r".into()), body: there });
        }
        let passed = kit.b.var("r", at);
        ways.push(Branch { tag: "final".into(), binder: Some("r".into()), body: passed });
        let state = kit.b.var(STATE, at);
        let gave = kit.b.add(Term::Case { scrutinee: state, branches: ways, default: None }, at);
        // What is thought of it.
        let verdict = self.verdict(kit, guardrail, at);
        let text = kit.b.var("text", at);
        let done = kit.b.add(Term::Tag("final".into(), Some(text)), at);
        let mut context = Template::new(at);
        context.text(AGAIN[0]).term(kit.b.var("why", at)).text(AGAIN[1]);
        context.term(kit.b.var(GAVE, at)).text(AGAIN[2]);
        let (context, why) = (context.build(&mut kit.b), kit.b.var("why", at));
        let next = self.again(kit, context, Some(why), at);
        let this = kit.b.var("self", at);
        let next = kit.b.app(this, next, at);
        let branches = vec![
            Branch { tag: "passed".into(), binder: Some("text".into()), body: done },
            Branch { tag: "failed".into(), binder: Some("why".into()), body: next },
        ];
        let body = kit.b.add(Term::Case { scrutinee: verdict, branches, default: None }, at);
        let body = kit.b.let_in(vec![(GAVE.into(), gave)], body, at);
        let body = kit.b.abs(STATE, None, body, at);
        let body = kit.b.abs("self", None, body, at);
        // The first answer is no retry.
        let (bound, stated) = match retries.bound {
            Bound::Finite(n) => (Bound::Finite(n.saturating_add(1)), n.to_string()),
            Bound::Infinite => (Bound::Infinite, "all".into()),
        };
        let fix_at = retries.span.unwrap_or(at);
        let fix = kit.fix(LoopBound { bound, ..retries.clone() }, body, fix_at);
        let ran = kit.b.app(fix, begin, at);
        let mut over = Template::new(at);
        over.text(&format!("Task failed {name} validation after {stated} retries. Last error: "));
        over.term(payload(kit, "a", "why"));
        let over = over.build(&mut kit.b);
        let over = kit.b.add(Term::Fail(over), at);
        let answer = kit.b.var("r", head);
        let mut branches = vec![
            Branch { tag: "final".into(), binder: Some("r".into()), body: answer },
            Branch { tag: "again".into(), binder: Some("a".into()), body: over },
        ];
        if given {
            let there = kit.b.var("r", head);
            branches.push(Branch { tag: "given".into(), binder: Some("r".into()), body: there });
        }
        kit.b.add(Term::Case { scrutinee: ran, branches, default: None }, head)
    }

    /// Lowers the verdict of a guardrail on `$gave`: `` `passed text `` or `` `failed why ``.
    fn verdict(&self, kit: &mut Kit<'_>, guardrail: &Guardrail<'r>, at: Span) -> TermId {
        match guardrail {
            Guardrail::Rule { rule, llm, .. } => self.judged(kit, rule, llm.as_ref(), at),
            Guardrail::Code { function, .. } => match self.computed(kit, function, at) {
                Some(verdict) => verdict,
                None => self.by_tool(kit, function, at),
            },
            Guardrail::Unknown { why, at } => kit.undecided(codes::NOT_COMPILED, why.clone(), *at),
        }
    }

    /// A model judges by a rule.
    fn judged(&self, kit: &mut Kit<'_>, rule: &Setting<'r>, llm: Option<&Setting<'r>>, at: Span) -> TermId {
        let mut params = ModelParams {
            purpose: Some("guardrail".into()),
            result: Some(Type::record([
                ("valid".into(), Type::Bool),
                ("feedback".into(), Type::option(Type::Str)),
            ])),
            ..ModelParams::default()
        };
        let model_at = self.model(kit, llm, &mut params).unwrap_or(at);
        let mut question = Template::new(at);
        question.text(QUESTION[0]).term(kit.b.var(GAVE, at)).text(QUESTION[1]);
        match rule {
            Setting::Code(given) => {
                py::fill(kit, self.world, given.value, &mut question, |text| vec![Part::Text(text)]);
            }
            Setting::Yaml(entry) => {
                question.text(entry.value.text().unwrap_or(""));
            }
        }
        question.text(QUESTION[2]);
        let (prompt, question) = (kit.text(JUDGE, at), question.build(&mut kit.b));
        let judge = kit.b.add(Term::Llm(prompt, Arc::new(params)), model_at);
        let said = kit.b.app(judge, question, at);
        let part = |kit: &mut Kit<'_>, name: &str| {
            let said = kit.b.var("$said", at);
            kit.b.add(Term::Field(said, name.into()), at)
        };
        let (valid, why, gave) = (part(kit, "valid"), part(kit, "feedback"), kit.b.var(GAVE, at));
        // As Python writes what is missing.
        let (missing, none) = (part(kit, "feedback"), kit.text("None", at));
        let missing = kit.b.add(Term::Prim(Prim::IsNull, vec![missing]), at);
        let why = kit.b.add(Term::Prim(Prim::ToStr, vec![why]), at);
        let why = kit.b.add(Term::If(missing, none, why, IfSugar::Plain), at);
        let verdict = either(kit, valid, gave, why, at);
        kit.b.let_in(vec![("$said".into(), said)], verdict, at)
    }

    /// Lowers the verdict of a function of the project, if all of it can be expressed.
    fn computed(&self, kit: &mut Kit<'_>, function: &Value, at: Span) -> Option<TermId> {
        let (value, given) = self.functions.result(self.world, function)?;
        let of: Of = (given, OUTPUT.into());
        // It is tried apart first: a part that is not known makes all of it a tool.
        let (mut out, mut budget) = (Vec::new(), Budget::new());
        let versions = frontend_kit::versions::Versions::default();
        let mut apart = Kit::new(&mut out, &mut budget, &versions);
        self.said(&mut apart, &of, value, at, 0)?;
        let (mut whole, mut parts) = (0usize, 0usize);
        apart.b.revise(|b, _, term| {
            match &term {
                Term::Var(name, _) if &**name == OUTPUT => whole += 1,
                Term::Field(on, name) if &**name == "raw" => {
                    parts += usize::from(matches!(b.term(*on), Term::Var(n, _) if &**n == OUTPUT));
                }
                _ => {}
            }
            term
        });
        drop(apart);
        if !out.is_empty() || whole != parts {
            return None;
        }
        let verdict = self.said(kit, &of, value, at, 0)?;
        let gave = kit.b.var(GAVE, at);
        let output = kit.b.add(Term::Record(vec![("raw".into(), gave)]), at);
        Some(kit.b.let_in(vec![(OUTPUT.into(), output)], verdict, at))
    }

    /// A pair that a function returns as a verdict.
    fn said(&self, kit: &mut Kit<'_>, of: &Of, value: &Value, at: Span, depth: usize) -> Option<TermId> {
        const MAX_DEPTH: usize = 60;
        if depth > MAX_DEPTH {
            return None;
        }
        if let Some((_, object)) = self.world.object_of(value)
            && let ("if", None, [test, yes, no]) = (&*object.callee, object.base, &object.args[..])
        {
            let test = self.functions.test(kit, self.world, of, &test.value);
            let yes = self.said(kit, of, &yes.value, at, depth + 1)?;
            let no = self.said(kit, of, &no.value, at, depth + 1)?;
            return Some(kit.b.add(Term::If(test, yes, no, IfSugar::Plain), at));
        }
        let [holds, data] = self.world.items(value)? else { return None };
        let is_output = |v: &Value| matches!(v.kind, PyKind::Object(id) if id == of.0);
        // Only a text takes the place of what the task gave.
        let text = |kit: &mut Kit<'_>| match &self.world.resolve_env(data).kind {
            _ if is_output(data) => kit.b.var(GAVE, at),
            PyKind::Str(_) | PyKind::Text(_) | PyKind::Member(..) | PyKind::Object(_) => {
                let term = self.functions.term(kit, self.world, of, data);
                as_text(kit, term, at)
            }
            _ => kit.b.var(GAVE, at),
        };
        let why = |kit: &mut Kit<'_>| {
            let term = self.functions.term(kit, self.world, of, data);
            as_text(kit, term, at)
        };
        Some(match self.world.resolve_env(holds).kind {
            PyKind::Bool(true) => {
                let text = text(kit);
                kit.b.add(Term::Tag("passed".into(), Some(text)), at)
            }
            PyKind::Bool(false) => {
                let why = why(kit);
                kit.b.add(Term::Tag("failed".into(), Some(why)), at)
            }
            _ => {
                let test = self.functions.test(kit, self.world, of, holds);
                let (text, why) = (text(kit), why(kit));
                either(kit, test, text, why, at)
            }
        })
    }

    /// Code that is not followed: a tool of its name.
    fn by_tool(&self, kit: &mut Kit<'_>, function: &Value, at: Span) -> TermId {
        let name = py::function_of(function).map_or("guardrail", |f| &*self.world.function(f).name);
        let name = Some(name).filter(|n| n.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
        let mut decl = ToolDecl::unknown(name.unwrap_or("guardrail").into(), at);
        decl.params = vec![ToolParam {
            name: "output".into(),
            ty: Type::record([("raw".into(), Type::Str)]),
            bound: LabelSpec::TOP,
            default: None,
        }];
        decl.effect = EffectClass::Pure;
        let message = format!("the check `{}` is compiled to a tool of that name", decl.name);
        kit.out.push(undecided(codes::NOT_COMPILED, message, at));
        let id = kit.declared(decl);
        let tool = kit.b.add(Term::Tool(id), at);
        let gave = kit.b.var(GAVE, at);
        let output = kit.b.add(Term::Record(vec![("raw".into(), gave)]), at);
        let arg = kit.b.add(Term::Record(vec![("output".into(), output)]), at);
        let pair = kit.b.app(tool, arg, at);
        let item = |kit: &mut Kit<'_>, n: i64| {
            let (pair, n) = (kit.b.var("$pair", at), kit.b.lit(Num::from(n), at));
            let item = kit.b.add(Term::Index(pair, n), at);
            kit.b.add(Term::Check("verdict".into(), Type::Dyn, item), at)
        };
        let (holds, data, again, why) = (item(kit, 0), item(kit, 1), item(kit, 1), item(kit, 1));
        let yes = kit.b.lit(Data::Bool(true), at);
        let holds = kit.b.add(Term::Prim(Prim::Eq, vec![holds, yes]), at);
        let is_text = kit.b.add(Term::Prim(Prim::IsStr, vec![again]), at);
        let (data, gave) = (kit.b.add(Term::Prim(Prim::ToStr, vec![data]), at), kit.b.var(GAVE, at));
        let text = kit.b.add(Term::If(is_text, data, gave, IfSugar::Plain), at);
        let why = kit.b.add(Term::Prim(Prim::ToStr, vec![why]), at);
        let verdict = either(kit, holds, text, why, at);
        kit.b.let_in(vec![("$pair".into(), pair)], verdict, at)
    }
}

/// A term as text, unless it is one as it stands.
fn as_text(kit: &mut Kit<'_>, term: TermId, at: Span) -> TermId {
    match kit.b.term(term) {
        Term::Lit(Data::Str(_)) | Term::Prim(Prim::Format, _) => term,
        _ => kit.b.add(Term::Prim(Prim::ToStr, vec![term]), at),
    }
}

/// `` if test then `passed text else `failed why ``.
fn either(kit: &mut Kit<'_>, test: TermId, text: TermId, why: TermId, at: Span) -> TermId {
    let passed = kit.b.add(Term::Tag(Name::from("passed"), Some(text)), at);
    let failed = kit.b.add(Term::Tag(Name::from("failed"), Some(why)), at);
    kit.b.add(Term::If(test, passed, failed, IfSugar::Plain), at)
}
