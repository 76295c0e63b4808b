//! Pipelines, imports and tools as functions and declarations of a term.

use super::taint::Taint;
use super::taint::result_label;
use super::{Callable, Caller, SurfaceLowering};
use crate::decls::{CallableKind, Signature};
use core_ir::{
    Bound, BoundOrigin, Data, EffectClass, IfSugar, LabelSpec, Name, Prim, Term, TermId, ToolDecl, ToolId,
    ToolParam, Type,
};
use diagnostics::Span;
use syntax::agent::ast::{self, BodyKind, ExprKind, Item, Template, TemplatePart};

/// A template with its holes as they are written, `{name}`, and braces doubled.
pub(super) fn holes_as_text(t: &Template) -> Data {
    let mut out = String::new();
    for p in &t.parts {
        match p {
            TemplatePart::Text(s) => out.push_str(&s.value.replace('{', "{{").replace('}', "}}")),
            TemplatePart::Hole(e) => {
                if let ExprKind::Var(x) = &e.kind {
                    out.push('{');
                    out.push_str(x);
                    out.push('}');
                }
            }
        }
    }
    Data::str(out)
}

/// Returns the handler of a body for the runtime: `{exec: [word, …]}`, `{builtin: name}`, `{http: {method,
/// url}}`, `{mcp: {server, tool}}` or `{python: {file, name}}`. Words and URLs contain holes
/// `{parameter}`; literal braces are doubled.
pub(super) fn handler(body: &BodyKind) -> Option<Data> {
    let one = |name: &str, value: Data| Some(Data::record([(Name::from(name), value)]));
    match body {
        BodyKind::Exec(words) => one("exec", Data::list(words.iter().map(holes_as_text))),
        BodyKind::Builtin(name) => one("builtin", Data::str(name.value.as_str())),
        BodyKind::Http(method, url) => one(
            "http",
            Data::record([
                ("method".into(), Data::str(method.text.as_str())),
                ("url".into(), holes_as_text(url)),
            ]),
        ),
        BodyKind::Mcp(server, tool) => one(
            "mcp",
            match tool {
                Some(tool) => Data::record([
                    ("server".into(), Data::str(server.value.as_str())),
                    ("tool".into(), Data::str(tool.value.as_str())),
                ]),
                // The tool of its own name.
                None => Data::str(server.value.as_str()),
            },
        ),
        BodyKind::Python(file, function) => one(
            "python",
            Data::record([
                ("file".into(), Data::str(file.value.as_str())),
                ("name".into(), Data::str(function.value.as_str())),
            ]),
        ),
        BodyKind::Empty | BodyKind::Prompt(_) | BodyKind::Error => None,
    }
}

impl SurfaceLowering<'_> {
    /// The variable of the function of a pipeline that may call itself so often, as far as that is known.
    pub(super) fn pipeline_function(&mut self, s: &Signature, given: Taint, calls: Option<u64>) -> Name {
        // A `fn` calls itself by the variable of its fixpoint.
        if s.kind == CallableKind::Function
            && let Some((again, _)) = self.again.get(&s.name.text)
        {
            return again.clone();
        }
        let key = Callable { name: s.name.text.clone(), agent: None, given, pc: self.pc, calls };
        if let Some(name) = self.functions.get(&key) {
            return name.clone();
        }
        let name = self.b.fresh(&s.name.text);
        self.functions.insert(key, name.clone());
        // What it calls is defined first; the checker has ruled out cycles of several.
        if let Some(Item::Pipeline(p) | Item::Function(p)) = self.c.program.items.get(s.item) {
            let term =
                stacker::maybe_grow(128 << 10, 1 << 20, || self.pipeline(p, given, calls, Caller::Program));
            self.definitions.push((name.clone(), term));
        }
        name
    }

    /// The function of a pipeline; of one that calls itself, the fixpoint that calls itself so often at most.
    pub(super) fn pipeline(
        &mut self,
        p: &ast::Pipeline,
        given: Taint,
        calls: Option<u64>,
        caller: Caller,
    ) -> TermId {
        let name = &p.name.text;
        let unbounded = match (self.c.facts.descents.get(name), self.c.facts.into_parts.get(name)) {
            (Some(descent), _) => {
                format!("`{name}` counts `{}` down, which is known only when it runs", descent.param)
            }
            (None, Some(param)) => {
                format!("`{name}` goes into `{param}`, whose depth is known only when it runs")
            }
            (None, None) => return self.pipeline_once(p, given, false, caller),
        };
        // One function for all calls: with whatever one of them may be given, under whatever may decide it.
        let added = self.c.decls.callables.get(name).map_or(Taint::NONE, |s| self.added(s, None));
        let given = given.join(added);
        let pc = self.pc;
        self.pc = pc.join(given);
        let again = self.b.fresh(name);
        self.again.insert(name.clone(), (again.clone(), calls.is_some()));
        let body = self.pipeline_once(p, given, calls.is_some(), caller);
        self.again.remove(name);
        self.pc = pc;
        let body = self.b.abs(again, None, body, p.name.span);
        let (bound, origin) = match calls {
            Some(n) => (Bound::Finite(n), None),
            None => (Bound::Infinite, Some(BoundOrigin::Default(unbounded.into()))),
        };
        self.b.add(Term::Fix { bound, origin, body }, p.name.span)
    }

    /// Returns the unit of an import.
    pub(super) fn unit(&self, s: &Signature) -> Option<&frontend_kit::Unit> {
        let Item::Import(import) = self.c.program.items.get(s.item)? else { return None };
        self.c.files.unit(import.span)
    }

    /// The variable of the function that an import became: the unit, given what it takes, and what it gives
    /// checked.
    pub(super) fn import_function(&mut self, s: &Signature) -> Name {
        let key = Callable {
            name: s.name.text.clone(),
            agent: None,
            given: Taint::NONE,
            pc: Taint::NONE,
            calls: None,
        };
        if let Some(name) = self.functions.get(&key) {
            return name.clone();
        }
        let name = self.b.fresh(&s.name.text);
        self.functions.insert(key, name.clone());
        let Some(unit) = self.unit(s) else { return name };
        let (code, at) = (unit.code.clone(), s.name.span);
        let is_text = crate::imports::inputs(unit).is_none();
        // Outermost, where nothing of the program is bound.
        let function = self.b.graft(&code);
        let grafted = self.b.fresh(&format!("{}_unit", s.name.text));
        self.definitions.push((grafted.clone(), function));
        let args = self.b.fresh("args");
        let mut input = self.b.var(args.clone(), at);
        if let (true, Some(only)) = (is_text, s.params.first()) {
            input = self.b.add(Term::Field(input, only.name.text.as_str().into()), at);
        }
        let function = self.b.var(grafted, at);
        let called = self.b.app(function, input, at);
        let called = if matches!(s.result, Type::Record(_) | Type::List(_) | Type::Num | Type::Bool) {
            self.decoded(called, at)
        } else {
            called
        };
        let what = format!("the result of `{}`", s.name.text);
        let checked = self.b.add(Term::Check(what.into(), s.result.clone(), called), at);
        let function = self.b.abs(args, None, checked, at);
        self.definitions.push((name.clone(), function));
        name
    }

    /// Decodes a text as JSON. Any other value stays as it is.
    pub(super) fn decoded(&mut self, value: TermId, at: Span) -> TermId {
        let got = self.b.fresh("got");
        let (tested, read, other) =
            (self.b.var(got.clone(), at), self.b.var(got.clone(), at), self.b.var(got.clone(), at));
        let test = self.b.add(Term::Prim(Prim::IsStr, vec![tested]), at);
        let read = self.b.add(Term::Prim(Prim::FromJson, vec![read]), at);
        let chosen = self.b.add(Term::If(test, read, other, IfSugar::Plain), at);
        self.b.let_in(vec![(got, value)], chosen, at)
    }

    /// The declaration of a tool, or of a task that no agent carries out.
    pub(super) fn tool(&mut self, s: &Signature) -> Option<ToolId> {
        let key = (s.kind == CallableKind::Tool, s.name.text.clone());
        if let Some(id) = self.tools.get(&key) {
            return Some(*id);
        }
        let (Item::Tool(c) | Item::Task(c)) = self.c.program.items.get(s.item)? else { return None };
        let class = s.flow.class.unwrap_or_default();
        let said = s.flow.requires_trusted || s.flow.requires_public;
        // A tool that may change the world takes only trusted and public data unless it says otherwise. A
        // task is the program's own code and takes everything.
        let careful = class == EffectClass::Write && (s.kind == CallableKind::Tool || s.flow.class.is_some());
        let control = match (said, careful) {
            (true, _) => {
                LabelSpec::Axes { untrusted: !s.flow.requires_trusted, secret: !s.flow.requires_public }
            }
            (false, true) => LabelSpec::BOTTOM,
            (false, false) => LabelSpec::TOP,
        };
        let params = s
            .params
            .iter()
            .map(|p| {
                let own = p.flow.requires_trusted || p.flow.requires_public;
                let bound =
                    LabelSpec::Axes { untrusted: !p.flow.requires_trusted, secret: !p.flow.requires_public };
                ToolParam {
                    name: p.name.text.as_str().into(),
                    ty: p.ty.clone(),
                    bound: if own { bound } else { control.clone() },
                    default: None,
                }
            })
            .collect();
        let id = self.b.tool(ToolDecl {
            params,
            result: s.result.clone(),
            effect: class,
            control,
            label: result_label(&s.flow),
            description: self.c.files.comment_above(c.span),
            handler: handler(&c.body.kind),
            ..ToolDecl::unknown(self.c.decls.handler_name(s).into(), c.span)
        });
        self.tools.insert(key, id);
        Some(id)
    }
}
