//! Functions of modules, methods, and functions as values.

use super::calls::{Arg, method_type};
use super::loops::Stop;
use super::stmts::Bindings;
use super::types::keyword;
use super::{Function, Lower, Val};
use crate::codes;
use crate::scope::{Taint, Ty, UNIQUE};
use core_ir::py::PyError;
use core_ir::{Data, EffectClass, LabelSpec, Name, Prim, Term, TermId, ToolDecl, Type};
use diagnostics::{Span, nearest};
use ruff_python_ast::{Expr, ExprAttribute, ExprCall, Operator};
use std::rc::Rc;

/// Variable that holds the time of the run, in seconds since 1970.
pub(crate) const NOW: &str = "$now";
/// Tool that gives the time.
const CLOCK: &str = "clock";

/// Methods of values of plans that leave their object as it is.
pub(crate) const METHODS: &[&str] = &[
    "astimezone",
    "capitalize",
    "casefold",
    "center",
    "copy",
    "count",
    "date",
    "dict",
    "difference",
    "end",
    "endswith",
    "find",
    "findall",
    "finditer",
    "format",
    "format_map",
    "fullmatch",
    "get",
    "group",
    "groupdict",
    "groups",
    "index",
    "intersection",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isdisjoint",
    "isidentifier",
    "islower",
    "isnumeric",
    "isocalendar",
    "isoformat",
    "isoweekday",
    "isspace",
    "issubset",
    "issuperset",
    "istitle",
    "isupper",
    "items",
    "join",
    "json",
    "keys",
    "ljust",
    "lower",
    "lstrip",
    "match",
    "model_copy",
    "model_dump",
    "model_dump_json",
    "most_common",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "search",
    "span",
    "split",
    "splitlines",
    "start",
    "startswith",
    "strftime",
    "strip",
    "sub",
    "swapcase",
    "symmetric_difference",
    "time",
    "timestamp",
    "title",
    "toordinal",
    "total_seconds",
    "tzname",
    "union",
    "upper",
    "utcoffset",
    "values",
    "weekday",
    "zfill",
];

/// Returns true if the values of a built-in class have the method.
pub(crate) fn has_method(class: &str, method: &str) -> bool {
    let object = match class {
        "str" => Data::str(""),
        _ => match core_ir::py::apply(&format!("b.{class}"), &[Data::list([]), Data::record([])], 1 << 10) {
            Ok(Data::Tag(_, value)) => Data::clone(&value),
            _ => return false,
        },
    };
    matches!(core_ir::py::apply("method", &[object, Data::str(method)], 1 << 10), Ok(Data::Tag(tag, _)) if &*tag == "ok")
}

/// The operation of a function of a module, and the type of its result.
pub(crate) fn operation(full: &str) -> Option<(String, Ty)> {
    Some(match full {
        "math.floor" | "math.ceil" | "math.trunc" | "math.sqrt" | "math.prod" | "math.gcd" => {
            let ty = if full == "math.prod" { Ty::Any } else { Ty::Num };
            (format!("b.{}", full.trim_start_matches("math.")), ty)
        }
        "math.fabs" => ("b.abs".into(), Ty::Num),
        "math.pow" => ("b.pow".into(), Ty::Num),
        "json.dumps" => ("b.dumps".into(), Ty::Str),
        "json.loads" => ("b.loads".into(), Ty::Any),
        "collections.Counter" => ("b.Counter".into(), Ty::Any),
        "collections.OrderedDict" => ("b.dict".into(), Ty::Dict(None)),
        "dataclasses.asdict" => ("b.asdict".into(), Ty::Dict(None)),
        "dataclasses.replace" => ("b.replace".into(), Ty::Any),
        "datetime.datetime"
        | "datetime.date"
        | "datetime.time"
        | "datetime.timedelta"
        | "datetime.timezone"
        | "datetime.datetime.fromisoformat"
        | "datetime.date.fromisoformat"
        | "datetime.time.fromisoformat"
        | "datetime.datetime.strptime"
        | "datetime.datetime.combine"
        | "datetime.datetime.fromtimestamp"
        | "datetime.datetime.utcfromtimestamp"
        | "datetime.date.fromtimestamp"
        | "datetime.date.fromordinal"
        | "datetime.datetime.fromordinal" => (format!("b.{full}"), Ty::Atom),
        _ => return None,
    })
}

/// The help for a function of a module that plans do not have.
fn remedy(full: &str) -> String {
    let module = full.split('.').next().unwrap_or("");
    let known: &[&str] = match module {
        "math" => &["floor", "ceil", "trunc", "fabs", "sqrt", "pow", "prod", "gcd", "pi"],
        "json" => &["dumps", "loads"],
        "re" => &["search", "match", "fullmatch", "findall", "finditer", "sub", "split", "compile"],
        "collections" => &["Counter", "defaultdict", "OrderedDict"],
        "dataclasses" => &["dataclass", "field", "asdict", "replace"],
        "datetime" => &["datetime", "date", "time", "timedelta", "timezone"],
        _ => &[],
    };
    let last = full.rsplit('.').next().unwrap_or("");
    match nearest(last, known.iter().copied()) {
        _ if full == "collections.namedtuple" => "write a `@dataclass`".into(),
        _ if full == "collections.deque" => "use a list".into(),
        _ if full == "json.load" || full == "json.dump" => {
            "use `json.loads` and `json.dumps` on texts".into()
        }
        Some(near) => format!("did you mean `{module}.{near}`?"),
        None if known.is_empty() => "use the functions of the plan language".into(),
        None => format!("`{module}` has {}", known.join(", ")),
    }
}

impl<'a> Lower<'a> {
    /// The call that asks for the time, once for the run.
    pub(crate) fn time(&mut self, at: Span) -> TermId {
        let mut name = CLOCK.to_string();
        while self.tools.contains_key(&name) {
            name.push('_');
        }
        let id = self.b.tool(ToolDecl {
            params: Vec::new(),
            result: Type::Num,
            effect: EffectClass::Read,
            control: LabelSpec::TOP,
            label: LabelSpec::BOTTOM,
            description: Some("The time, in seconds since the beginning of 1970.".into()),
            handler: Some(Data::record([("builtin".into(), Data::str("clock.unix"))])),
            ..ToolDecl::unknown(name.into(), at)
        });
        let tool = self.add(Term::Tool(id), at);
        let none = self.add(Term::Record(Vec::new()), at);
        self.b.app(tool, none, at)
    }

    /// `datetime.now()` and the like: all from the one time of the run.
    fn now(&mut self, full: &str, c: &'a ExprCall, at: Span) -> Val {
        self.asks_time = true;
        let zone = c.arguments.args.first().or_else(|| keyword(c, "tz"));
        let kind = match (full, zone) {
            ("datetime.date.today", _) => "date",
            (_, Some(_)) => "utc",
            _ => "datetime",
        };
        let kind = self.lit(Data::str(kind), at);
        let seconds = self.var(&NOW.into(), at);
        let term = self.total("now", vec![kind, seconds], at);
        match zone {
            Some(e) => {
                let zone = self.argument(e);
                let args = vec![Arg { name: None, value: zone, at }];
                self.call_method(term, "astimezone", args, Taint::NONE, at)
            }
            None => self.val(term, Ty::Atom, Taint::NONE),
        }
    }

    pub(crate) fn unknown_member(&mut self, full: &str, at: Span) -> Val {
        self.refuse(at, format!("`{full}` is not part of the plan language"), remedy(full))
    }

    /// A call of a function of a module.
    pub(crate) fn module_call(&mut self, full: &str, c: &'a ExprCall, at: Span) -> Val {
        match full {
            "datetime.datetime.now"
            | "datetime.datetime.today"
            | "datetime.datetime.utcnow"
            | "datetime.date.today" => return self.now(full, c, at),
            "collections.defaultdict" => return self.default_dict(c, at),
            _ if full.starts_with("re.") => return self.regex(full, c, at),
            _ => {}
        }
        let Some((op, ty)) = operation(full) else { return self.unknown_member(full, at) };
        if let [Expr::Generator(g)] = &c.arguments.args[..] {
            if full != "collections.Counter" {
                return self.refuse(
                    at,
                    "a generator as this argument",
                    "write a list comprehension: `[… for … in …]`",
                );
            }
            let args = self.add(Term::List(Vec::new()), at);
            let named = self.add(Term::Record(Vec::new()), at);
            let first = self.py(&op, vec![args, named], Taint::NONE, at);
            let (term, taint) = self.comprehension(&g.generators, first, Stop::Never, at, &mut |l, acc| {
                let v = l.argument(&g.elt);
                l.store(&v);
                let acc = l.var(acc, at);
                let one = l.add(Term::List(vec![v.term]), at);
                let args = l.add(Term::List(vec![one]), at);
                let named = l.add(Term::Record(Vec::new()), at);
                let changed = l.py("mut.update", vec![acc, args, named], v.taint, at);
                (l.add(Term::Field(changed, "self".into()), at), v.taint)
            });
            return self.val(term, ty, taint);
        }
        let (mut terms, mut taint) = (Vec::new(), Taint::NONE);
        let mut bindings = Vec::new();
        for a in &c.arguments.args {
            let v = self.argument(a);
            taint = taint.join(v.taint);
            self.share_parts(&v);
            let name = self.fresh("arg");
            bindings.push((name.clone(), v.term));
            terms.push(self.var(&name, at));
        }
        let args = self.add(Term::List(terms), at);
        let named = self.keywords(c, "", &mut bindings);
        taint = taint.join(named.taint);
        let named = self.add(Term::Record(named.fields), at);
        let term = self.py(&op, vec![args, named], taint, at);
        let term = self.b.let_in(bindings, term, at);
        let unique =
            if matches!(full, "dataclasses.replace" | "dataclasses.asdict" | "collections.OrderedDict") {
                1
            } else {
                UNIQUE
            };
        Val { unique, ..self.val(term, ty, taint) }
    }

    /// `defaultdict(list)`
    fn default_dict(&mut self, c: &'a ExprCall, at: Span) -> Val {
        let factory = match c.arguments.args.first() {
            Some(Expr::Name(n)) if self.lookup(n.id.as_str()).is_none() => n.id.as_str(),
            _ => "",
        };
        if !matches!(factory, "list" | "dict" | "set" | "int" | "float" | "str" | "bool")
            || !c.arguments.keywords.is_empty()
        {
            return self.refuse(
                at,
                "this factory of a `defaultdict`",
                "use `defaultdict(list)`, `defaultdict(int)` or the like; for another value use `d.get(key, value)`",
            );
        }
        let (mut terms, mut taint) = (vec![self.lit(Data::str(factory), at)], Taint::NONE);
        for a in c.arguments.args.iter().skip(1) {
            let v = self.argument(a);
            taint = taint.join(v.taint);
            self.share_parts(&v);
            terms.push(v.term);
        }
        let unique = if terms.len() > 1 { 1 } else { UNIQUE };
        let args = self.add(Term::List(terms), at);
        let named = self.add(Term::Record(Vec::new()), at);
        let term = self.py("b.defaultdict", vec![args, named], taint, at);
        Val { unique, ..self.val(term, Ty::Any, taint) }
    }

    // ── regular expressions ──

    /// The text of a pattern that is written in the plan.
    fn pattern(&self, e: &Expr) -> Option<String> {
        match e {
            Expr::StringLiteral(s) => Some(s.value.to_str().to_string()),
            Expr::Name(n) => {
                let (_, known) = self.lookup(n.id.as_str())?;
                match self.b.term(*self.bound_once.get(&known.core)?) {
                    Term::Lit(Data::Str(s)) if !known.maybe_unbound => Some(s.to_string()),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The letters of flags such as `re.IGNORECASE | re.M`.
    fn flags(&self, e: &Expr) -> Option<String> {
        match e {
            Expr::BinOp(b) if b.op == Operator::BitOr => Some(self.flags(&b.left)? + &self.flags(&b.right)?),
            Expr::NumberLiteral(_) => None,
            e => Some(
                match self.module_path(e)?.as_str() {
                    "re.I" | "re.IGNORECASE" => "i",
                    "re.M" | "re.MULTILINE" => "m",
                    "re.S" | "re.DOTALL" => "s",
                    "re.U" | "re.UNICODE" => "",
                    _ => return None,
                }
                .into(),
            ),
        }
    }

    fn regex(&mut self, full: &str, c: &'a ExprCall, at: Span) -> Val {
        let name = full.trim_start_matches("re.");
        // How many arguments come before the flags.
        let count = match name {
            "search" | "match" | "fullmatch" | "findall" | "finditer" => 2,
            "sub" => 4,
            "split" => 3,
            "compile" => 1,
            _ => return self.unknown_member(full, at),
        };
        let args = &c.arguments.args;
        let written = args.first().or_else(|| keyword(c, "pattern"));
        let Some(pattern) = written.and_then(|e| self.pattern(e)) else {
            return self.refuse(
                at,
                "a pattern that is not written in the plan",
                "write the pattern as a string; to look for a text use `in`, `.find` or `.split`",
            );
        };
        let flags = match args.get(count).or_else(|| keyword(c, "flags")) {
            None => Some(String::new()),
            Some(e) => self.flags(e),
        };
        let Some(flags) = flags.filter(|_| args.len() <= count + 1) else {
            return self.refuse(at, "these flags of `re`", "there are `re.I`, `re.M` and `re.S`");
        };
        let pattern = if flags.is_empty() { pattern } else { format!("(?{flags}){pattern}") };
        let probe = [Data::list([Data::str(pattern.as_str()), Data::str("")]), Data::record([])];
        let known = match core_ir::py::apply("re.search", &probe, 1 << 20) {
            Ok(Data::Tag(tag, _)) => &*tag != "raise",
            Err(PyError::Unsupported(_)) => false,
            _ => true,
        };
        if !known {
            return self.refuse(
                at,
                "this pattern is not part of the plan language",
                "patterns match in linear time: they have no look-around and no references to groups",
            );
        }
        let mut terms = vec![self.lit(Data::str(pattern), at)];
        let mut taint = Taint::NONE;
        for a in args.iter().take(count).skip(1) {
            let v = self.argument(a);
            taint = taint.join(v.taint);
            terms.push(v.term);
        }
        let mut fields = Vec::new();
        for k in &c.arguments.keywords {
            let Some(arg) = &k.arg else { continue };
            match arg.as_str() {
                "flags" | "pattern" => {}
                key @ ("string" | "repl" | "count" | "maxsplit") => {
                    let v = self.argument(&k.value);
                    taint = taint.join(v.taint);
                    fields.push((Name::from(key), v.term));
                }
                key => {
                    let what = format!("`{full}` has no parameter `{key}`");
                    return self.error(codes::ARGUMENTS, at, what, "it takes a pattern, a text and flags");
                }
            }
        }
        let given = terms.len() + fields.len();
        let least = match name {
            "compile" => 1,
            "sub" => 3,
            _ => 2,
        };
        if given < least {
            let what = format!("`{full}` needs {least} arguments");
            return self.error(codes::ARGUMENTS, at, what, "give it the pattern and the text");
        }
        let list = self.add(Term::List(terms), at);
        let named = self.add(Term::Record(fields), at);
        let term = self.py(&format!("re.{name}"), vec![list, named], taint, at);
        let ty = match name {
            "sub" => Ty::Str,
            "findall" | "split" => Ty::List(Rc::new(Ty::Any)),
            "finditer" => Ty::List(Rc::new(Ty::Atom)),
            "compile" => Ty::Atom,
            // Nothing, or a match.
            _ => Ty::Any,
        };
        self.val(term, ty, taint)
    }

    // ── functions as values ──

    fn function(&mut self, f: Function<'a>, at: Span) -> Val {
        let id = self.functions.len();
        self.functions.push(f);
        let term = self.lit(Data::Null, at);
        Val { function: Some(id), ..self.val(term, Ty::Any, Taint::NONE) }
    }

    /// `str.lower`
    pub(crate) fn unbound_method(&mut self, a: &'a ExprAttribute) -> Option<Val> {
        let Expr::Name(n) = &*a.value else { return None };
        let class = ["str", "list", "dict", "set"].into_iter().find(|c| *c == n.id.as_str())?;
        let method = a.attr.as_str();
        if self.lookup(class).is_some() || !METHODS.contains(&method) {
            return None;
        }
        let at = self.at(a);
        if !has_method(class, method) {
            let what = format!("`{class}` has no method `{method}`");
            return Some(self.refuse(at, what, "use a method of this class, or a `lambda`"));
        }
        Some(self.function(Function::Unbound(class, method.to_string()), at))
    }

    /// A method of a value as a function. The value is bound to a name, and must have the method.
    pub(crate) fn bound_method(
        &mut self,
        object: Val,
        method: &str,
        bindings: &mut Bindings,
        at: Span,
    ) -> Val {
        if !METHODS.contains(&method) {
            return self.refuse(
                at,
                format!("the method `{method}` as a function"),
                "write a `lambda`, such as `lambda x: d.get(x)`",
            );
        }
        let name = self.fresh("object");
        bindings.push((name.clone(), object.term));
        self.must_have(&name, method, object.taint, bindings, at);
        self.function(Function::Method(name, method.into(), object.taint), at)
    }

    /// An expression that must be a function.
    pub(crate) fn function_value(&mut self, e: &'a Expr) -> Val {
        let at = self.at(e);
        if let Some(full) = self.module_path(e) {
            if operation(&full).is_none() {
                return self.unknown_member(&full, at);
            }
            return self.function(Function::Module(full), at);
        }
        if let Expr::Attribute(a) = e
            && let Some(f) = self.unbound_method(a)
        {
            return f;
        }
        self.expr(e)
    }

    /// A call of a method by its name.
    pub(crate) fn call_method(
        &mut self,
        object: TermId,
        method: &str,
        args: Vec<Arg>,
        taint: Taint,
        at: Span,
    ) -> Val {
        let mut taint = taint;
        let (mut terms, mut fields) = (Vec::new(), Vec::new());
        for a in args {
            taint = taint.join(a.value.taint);
            self.share_parts(&a.value);
            match a.name {
                Some(name) => fields.push((Name::from(name), a.value.term)),
                None => terms.push(a.value.term),
            }
        }
        let list = self.add(Term::List(terms), at);
        let named = self.add(Term::Record(fields), at);
        let term = self.py(&format!("m.{method}"), vec![object, list, named], taint, at);
        Val { unique: 0, ..self.val(term, method_type(method, &Ty::Any), taint) }
    }

    /// `map(f, xs)` or `filter(f, xs)` as an argument of a function that first makes a list of it.
    pub(crate) fn mapped(&mut self, outer: &str, e: &'a Expr) -> Option<Val> {
        let Expr::Call(c) = e else { return None };
        let Expr::Name(n) = &*c.func else { return None };
        let name = n.id.as_str();
        let shadowed = self.lookup(name).is_some() || self.tools.contains_key(name);
        if shadowed || !matches!(name, "map" | "filter") || !c.arguments.keywords.is_empty() {
            return None;
        }
        let [f, items] = &c.arguments.args[..] else { return None };
        // The items of these are made one at a time, between other work: only a function without effects
        // whose results they all take is the same.
        let harmless = matches!(f, Expr::Name(n) if self.lookup(n.id.as_str()).is_none()
            && !self.tools.contains_key(n.id.as_str())
            && matches!(n.id.as_str(), "int" | "float" | "len" | "abs" | "ord"));
        let made = name == "map"
            && (harmless
                || matches!(f, Expr::Name(n) if self.lookup(n.id.as_str()).is_none()
            && !self.tools.contains_key(n.id.as_str()) && matches!(n.id.as_str(), "str" | "repr" | "bool")));
        match outer {
            "list" | "tuple" | "sorted" | "join" => {}
            "set" | "sum" | "min" | "max" if harmless => {}
            _ => return None,
        }
        let at = self.at(e);
        let none = name == "filter" && f.is_none_literal_expr();
        let mut bindings = Vec::new();
        let f = if none {
            None
        } else {
            let f = match f {
                Expr::Attribute(a) if self.module_path(f).is_none() => match self.unbound_method(a) {
                    Some(f) => f,
                    None => {
                        let object = self.argument(&a.value);
                        self.bound_method(object, a.attr.as_str(), &mut bindings, at)
                    }
                },
                f => self.function_value(f),
            };
            match f.function {
                Some(id) => Some(id),
                None => {
                    return Some(self.refuse(
                        at,
                        format!("the first argument of `{name}` is no function"),
                        "write a `lambda`",
                    ));
                }
            }
        };
        let list = self.argument(items);
        let roots = list.roots.clone();
        let list = self.items_of(list, at);
        self.share_parts(&list);
        let name_of = self.fresh("items");
        bindings.push((name_of.clone(), list.term));
        let (keys, taint) = match f {
            Some(id) => self.map_items(id, &name_of, list.taint, at),
            None => (self.var(&name_of, at), list.taint),
        };
        let taint = taint.join(list.taint);
        let term = if name == "map" {
            keys
        } else {
            let all = self.var(&name_of, at);
            self.py("selected", vec![all, keys], taint, at)
        };
        let term = self.b.let_in(bindings, term, at);
        // Items that are kept, or given back by the function, are parts of the list that they come from.
        let roots = if made { Vec::new() } else { roots };
        Some(Val { unique: 1, roots, ..self.val(term, Ty::List(Rc::new(Ty::Any)), taint) })
    }

    /// `next((… for … in …), default)`
    pub(crate) fn next_of(&mut self, c: &'a ExprCall, at: Span) -> Val {
        let help = "write `next((x for x in xs if …), None)`, or an index";
        let (Some(Expr::Generator(g)), true, true) =
            (c.arguments.args.first(), c.arguments.args.len() <= 2, c.arguments.keywords.is_empty())
        else {
            return self.refuse(at, "`next` of something else than a generator", help);
        };
        let default = c.arguments.args.get(1);
        let plain = |e: &Expr| match e {
            Expr::UnaryOp(u) => u.operand.is_number_literal_expr(),
            e => e.is_literal_expr() || e.is_name_expr(),
        };
        if default.is_some_and(|e| !plain(e)) {
            return self.refuse(at, "this default of `next`", "bind it to a variable before");
        }
        let first = self.placeholder(Data::list([]), at);
        let mut ty: Option<Ty> = None;
        let (found, mut taint) = self.comprehension(&g.generators, first, Stop::Filled, at, &mut |l, acc| {
            let v = l.argument(&g.elt);
            l.store(&v);
            ty = Some(match ty.take() {
                Some(t) => t.join(&v.ty),
                None => v.ty.clone(),
            });
            let acc = l.var(acc, at);
            (l.add(Term::Prim(Prim::Append, vec![acc, v.term]), at), v.taint)
        });
        let name = self.fresh("found");
        let list = self.var(&name, at);
        let length = self.add(Term::Prim(Prim::Length, vec![list]), at);
        let zero = self.number(0, at);
        let none = self.add(Term::Prim(Prim::Eq, vec![length, zero]), at);
        let pc = self.pc;
        self.pc = pc.join(taint);
        let (other, other_ty) = match default {
            Some(e) => {
                let v = self.argument(e);
                self.store(&v);
                taint = taint.join(v.taint);
                (v.term, v.ty)
            }
            None => (self.fail("StopIteration", "", taint, at), Ty::Any),
        };
        self.pc = pc;
        let (list, index) = (self.var(&name, at), self.number(0, at));
        let item = self.add(Term::Index(list, index), at);
        let term = self.choose(none, other, item, at);
        let term = self.b.let_in(vec![(name, found)], term, at);
        let ty = ty.map_or(Ty::Any, |t| t.join(&other_ty));
        Val { unique: if ty.scalar() { UNIQUE } else { 0 }, ..self.val(term, ty, taint) }
    }

    /// `[*a, b]` as a list.
    pub(crate) fn joined(&mut self, elts: &'a [Expr], at: Span) -> Val {
        let (mut lists, mut taint) = (Vec::new(), Taint::NONE);
        for e in elts {
            match e {
                Expr::Starred(s) => {
                    let v = self.argument(&s.value);
                    taint = taint.join(v.taint);
                    self.share_parts(&v);
                    // Each is iterated in its turn.
                    let items = self.items_of(Val { roots: Vec::new(), ..v }, at);
                    lists.push(items.term);
                }
                e => {
                    let v = self.argument(e);
                    taint = taint.join(v.taint);
                    self.store(&v);
                    lists.push(self.add(Term::List(vec![v.term]), at));
                }
            }
        }
        let term = self.py("concat", lists, taint, at);
        Val { unique: 1, ..self.val(term, Ty::List(Rc::new(Ty::Any)), taint) }
    }
}
