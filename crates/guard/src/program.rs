//! The core programs of a turn.

use core_ir::{
    Among, AmongSource, Branch, Builder, Code, Data, EffectClass, Globals, KeyDecl, LabelSpec, ModelParams,
    Name, Recv, Region, Role, StoreDecl, StoreId, Term, TermId, ToolDecl, ToolParam, Type,
};
use diagnostics::{Diagnostic, Span};
use policy::Policy;
use serde_json::Value;
use std::sync::Arc;

const UNTRUSTED: LabelSpec = LabelSpec::Axes { untrusted: true, secret: false };

/// A parameter of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// True if a call may leave it out.
    pub optional: bool,
}

/// A tool, as far as it is known before a policy says more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSpec {
    /// Its name, as the policy calls it.
    pub name: Name,
    /// Its parameters; `None` if they are not known. Then its arguments are one parameter `input`.
    pub params: Option<Vec<Param>>,
    /// True if it is known to only look things up: the bounds and the label of `effect = "read"`. Otherwise
    /// it is taken to change the world.
    pub reads: bool,
}

impl ToolSpec {
    /// A tool with these parameters, all required, of which nothing else is known.
    pub fn new<'a>(name: &str, params: impl IntoIterator<Item = &'a str>) -> ToolSpec {
        let params = params.into_iter().map(|n| Param { name: n.into(), optional: false }).collect();
        ToolSpec { name: name.into(), params: Some(params), reads: false }
    }

    /// A tool whose arguments this JSON Schema describes: its parameters are the properties, as far as it has
    /// any.
    pub fn of_schema(name: &str, schema: &Value) -> ToolSpec {
        let params = schema["properties"].as_object().map(|properties| {
            let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
            let param = |n: &String| Param {
                name: n.as_str().into(),
                optional: !required.iter().any(|r| r.as_str() == Some(n)),
            };
            properties.keys().map(param).collect()
        });
        ToolSpec { name: name.into(), params, reads: false }
    }

    /// The declaration. The values of arguments and results are checked by the server, so their types are
    /// open: labels, forms and sets are compared here.
    fn declaration(&self, at: Span) -> ToolDecl {
        let mut decl = ToolDecl::unknown(self.name.clone(), at);
        if let Some(params) = &self.params {
            let param = |p: &Param| ToolParam {
                name: p.name.clone(),
                ty: if p.optional { Type::option(Type::Dyn) } else { Type::Dyn },
                bound: LabelSpec::BOTTOM,
                default: None,
            };
            decl.params = params.iter().map(param).collect();
        }
        if self.reads {
            decl.effect = EffectClass::Read;
            decl.control = UNTRUSTED;
            decl.params.iter_mut().for_each(|p| p.bound = UNTRUSTED);
        }
        decl
    }
}

/// Programs of a turn with the tools of a session.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    /// Each tool as the policy says.
    pub(crate) checked: Arc<Code>,
    /// Each tool without anything that could refuse a call; results have the same labels.
    pub(crate) open: Arc<Code>,
    /// No call: the model is shown the conversation.
    pub(crate) shown: Arc<Code>,
    /// True if a set is made of the request.
    pub(crate) asks_request: bool,
}

impl Programs {
    /// The programs, or what is wrong with the policy for these tools. `request` is the set `request` of the
    /// policy.
    pub(crate) fn new(
        tools: &[ToolSpec],
        policy: &Policy,
        model: &Name,
        request: &[Data],
        at: Span,
    ) -> Result<Programs, Vec<Diagnostic>> {
        let mut checked = declared(tools, policy, at)?;
        let asks_request = checked.tools.iter().any(|tool| tool.among.iter().any(is_of_request));
        state_request(&mut checked, request);
        let mut open = checked.clone();
        for tool in &mut open.tools {
            admit(Arc::make_mut(tool));
        }
        let shown = shown(model, at).into();
        Ok(Programs { checked: checked.into(), open: open.into(), shown, asks_request })
    }
}

/// The program of a turn, with what the policy says in the declarations of the tools.
pub(crate) fn declared(tools: &[ToolSpec], policy: &Policy, at: Span) -> Result<Code, Vec<Diagnostic>> {
    applied(turn(tools, None, at), policy)
}

fn applied(mut code: Code, policy: &Policy) -> Result<Code, Vec<Diagnostic>> {
    let found = policy.apply(&mut code);
    if diagnostics::has_errors(&found) { Err(found) } else { Ok(code) }
}

/// A call whose arguments name handles, which are keys of a store with these labels.
pub(crate) struct HandleCall<'a> {
    pub(crate) tool: &'a str,
    pub(crate) args: &'a Data,
    pub(crate) keys: &'a [(Name, LabelSpec)],
}

/// The program of a turn in which the arguments of one call recall what they name:
/// `λx. mem σ (let _ = send x in let r = case x of {f a ⇒ tool[f] {p: recall #h1, q: a.q}, …} in send r)`.
pub(crate) fn with_handles(
    tools: &[ToolSpec],
    policy: &Policy,
    request: &[Data],
    call: &HandleCall<'_>,
    at: Span,
) -> Result<Code, Vec<Diagnostic>> {
    let mut code = applied(turn(tools, Some(call), at), policy)?;
    state_request(&mut code, request);
    Ok(code)
}

/// The program that tells the model what it has a handle of:
/// `λx. mem σ (let _ = send x in send (recall #h1))`.
pub(crate) fn opening((name, label): (&Name, &LabelSpec), at: Span) -> Code {
    let mut b = Builder::new();
    let store = store(&mut b, &[(name.clone(), label.clone())], at);
    let asked = say(&mut b, Role::Assistant, "x", at);
    let value = b.add(Term::Recall(name.clone(), None), at);
    let told = b.add(Term::Send(Role::Tool, value), at);
    let all = b.let_in(vec![("_".into(), asked)], told, at);
    let all = b.add(Term::Mem(store, all), at);
    let root = b.abs("x", None, all, at);
    closed(b, root)
}

/// A store with a key for each handle.
fn store(b: &mut Builder, keys: &[(Name, LabelSpec)], at: Span) -> StoreId {
    let key = |(name, label): &(Name, LabelSpec)| KeyDecl {
        name: name.clone(),
        ty: Type::Dyn,
        label: label.clone(),
        initial: None,
    };
    let keys = keys.iter().map(key).collect();
    b.store(StoreDecl { name: "handles".into(), keys, capacity: None, ttl: None, backend: None, span: at })
}

/// A value with the values of handles in place of their names.
fn recalled(b: &mut Builder, data: &Data, keys: &[(Name, LabelSpec)], at: Span) -> TermId {
    match data {
        Data::Str(text) if keys.iter().any(|(name, _)| **name == **text) => {
            b.add(Term::Recall(Name::from(&**text), None), at)
        }
        Data::List(items) => {
            let items = items.iter().map(|item| recalled(b, item, keys, at)).collect();
            b.add(Term::List(items), at)
        }
        Data::Record(fields) => {
            let field = |(name, value): &(Name, Data)| (name.clone(), recalled(b, value, keys, at));
            let fields = fields.iter().map(field).collect();
            b.add(Term::Record(fields), at)
        }
        // The branch has the label of the call, and so has a literal in it.
        other => b.lit(other.clone(), at),
    }
}

/// Puts the values of the set `request` into the declarations.
fn state_request(code: &mut Code, request: &[Data]) {
    for tool in code.tools.iter_mut().filter(|tool| tool.among.iter().any(is_of_request)) {
        let tool = Arc::make_mut(tool);
        tool.among = tool.among.iter().flat_map(|among| stated(among, request)).collect();
    }
}

/// Returns whether a set is made of the request.
fn is_of_request(among: &Among) -> bool {
    matches!(among.source, AmongSource::Request | AmongSource::Sites)
}

/// A set with its values, which are those of the session and not of the single turn.
fn stated(among: &Among, request: &[Data]) -> Vec<Among> {
    let of = |source: AmongSource| Among { source, params: among.params.clone() };
    match among.source {
        AmongSource::Request => vec![of(AmongSource::Values(request.into()))],
        AmongSource::Sites => {
            let sites = request.iter().filter_map(Data::as_str).flat_map(Region::sites);
            sites.map(|site| of(AmongSource::Below(site))).collect()
        }
        _ => vec![among.clone()],
    }
}

/// Removes what could refuse a call.
fn admit(decl: &mut ToolDecl) {
    for p in &mut decl.params {
        p.bound = LabelSpec::TOP;
    }
    *decl = ToolDecl {
        params: std::mem::take(&mut decl.params),
        control: LabelSpec::TOP,
        label: decl.label.clone(),
        parts: std::mem::take(&mut decl.parts),
        ..ToolDecl::unknown(decl.name.clone(), decl.span)
    };
}

fn say(b: &mut Builder, role: Role, name: &str, at: Span) -> TermId {
    let said = b.var(name, at);
    b.add(Term::Send(role, said), at)
}

fn closed(b: Builder, root: TermId) -> Code {
    // INVARIANT: every variable is bound, and the terms are less than ten deep.
    b.finish(root, &Globals::none()).unwrap_or_else(|_| unreachable!("a closed term"))
}

/// `λx. let _ = send x in let r = case x of {f a ⇒ tool[f] a, …} in send r`.
/// With a call whose arguments name handles, that call recalls them.
fn turn(tools: &[ToolSpec], with: Option<&HandleCall<'_>>, at: Span) -> Code {
    let mut b = Builder::new();
    let mut branches = Vec::with_capacity(tools.len());
    for tool in tools {
        let id = b.tool(tool.declaration(at));
        let function = b.add(Term::Tool(id), at);
        let args = match with.filter(|call| *tool.name == *call.tool) {
            Some(call) => recalled(&mut b, call.args, call.keys, at),
            None => b.var("a", at),
        };
        let body = b.app(function, args, at);
        branches.push(Branch { tag: tool.name.clone(), binder: Some("a".into()), body });
    }
    let called = say(&mut b, Role::Assistant, "x", at);
    let scrutinee = b.var("x", at);
    let result = b.add(Term::Case { scrutinee, branches, default: None }, at);
    let told = say(&mut b, Role::Tool, "r", at);
    let mut all = b.let_in(vec![("_".into(), called), ("r".into(), result)], told, at);
    if let Some(call) = with {
        let store = store(&mut b, call.keys, at);
        all = b.add(Term::Mem(store, all), at);
    }
    let root = b.abs("x", None, all, at);
    closed(b, root)
}

/// `λx. let _ = send x in recv[θ]`.
pub(crate) fn shown(model: &Name, at: Span) -> Code {
    let mut b = Builder::new();
    let said = say(&mut b, Role::Tool, "x", at);
    let params = ModelParams { model: Some(model.clone()), ..ModelParams::default() };
    let next = b.add(Term::Recv(Recv::Data(Arc::new(params))), at);
    let all = b.let_in(vec![("_".into(), said)], next, at);
    let root = b.abs("x", None, all, at);
    closed(b, root)
}
