//! Objects: construction, members of enumerations, and annotations as checks.

use super::calls::Arg;
use super::stmts::Bindings;
use super::types::{ClassKind, Shape};
use super::{Function, Lower, Val};
use crate::codes;
use crate::scope::{Taint, Ty, UNIQUE};
use core_ir::{Data, Name, Term};
use diagnostics::Span;
use ruff_python_ast::Expr;
use std::rc::Rc;

impl<'a> Lower<'a> {
    /// `Bill(total=1, kind="rent")`
    pub(crate) fn construct(&mut self, name: &str, args: Vec<Arg>, at: Span) -> Val {
        let Some(class) = self.classes.get(name).cloned() else { return self.unknown_name(name, at) };
        if class.is_enum() {
            let [arg] = &args[..] else {
                let what = format!("`{name}` takes the value of a member");
                return self.error(
                    codes::ARGUMENTS,
                    at,
                    what,
                    format!("write `{name}.NAME` or `{name}(value)`"),
                );
            };
            let members = self.lit(Data::list(class.members.iter().cloned()), at);
            let term = self.py("member", vec![members, arg.value.term], arg.value.taint, at);
            return self.val(term, Ty::Atom, arg.value.taint);
        }
        let known: Vec<&str> = class.fields.iter().map(|f| &*f.name).collect();
        let positions = if class.kind == ClassKind::Dataclass { known.len() } else { 0 };
        let mut given: Vec<Option<Val>> = vec![None; known.len()];
        let (mut order, mut bindings): (Vec<usize>, Bindings) = (Vec::new(), Vec::new());
        let mut values: Vec<(usize, Val)> = Vec::new();
        for (i, arg) in args.into_iter().enumerate() {
            let place = match &arg.name {
                None => (i < positions).then_some(i),
                Some(n) => known.iter().position(|k| k == n),
            };
            let Some(place) = place else {
                return self.no_parameter(&arg, ("", &format!("`{name}`")), &known);
            };
            if order.contains(&place) {
                return self.given_twice(known[place], arg.at);
            }
            if arg.value.function.is_some() {
                return self.refuse(arg.at, "a function as a part of a value", "call it first");
            }
            order.push(place);
            values.push((place, arg.value));
        }
        // Arguments are evaluated in their own order.
        let sorted = order.windows(2).all(|w| w[0] < w[1]);
        for (place, mut v) in values {
            if !sorted {
                let temporary = self.fresh("field");
                self.note_once(&temporary, v.term);
                bindings.push((temporary.clone(), v.term));
                v.term = self.var(&temporary, at);
            }
            given[place] = Some(v);
        }
        let (mut fields, mut tys) = (Vec::new(), Vec::new());
        let (mut taint, mut unique) = (Taint::NONE, UNIQUE);
        if class.kind != ClassKind::TypedDict {
            fields.push((Name::from(core_ir::py::CLASS), self.lit(class.tag(), at)));
        }
        let mut checks = Vec::new();
        for (field, v) in class.fields.iter().zip(given) {
            let v = match (v, &field.default) {
                (Some(v), _) => v,
                (None, Some(default)) => {
                    let ty = match default {
                        Data::Null => Ty::Null,
                        Data::Bool(_) => Ty::Bool,
                        Data::Num(_) => Ty::Num,
                        Data::Str(_) => Ty::Str,
                        _ => Ty::Any,
                    };
                    self.constant(default.clone(), ty, at)
                }
                (None, None) => {
                    let what = format!("`{name}` needs the argument `{}`", field.name);
                    return self.error(codes::ARGUMENTS, at, what, format!("it takes: {}", known.join(", ")));
                }
            };
            taint = taint.join(v.taint);
            unique = unique.min(self.store(&v).saturating_add(1));
            let ty = if class.kind == ClassKind::Model { self.shape_ty(&field.shape) } else { v.ty.clone() };
            if class.kind == ClassKind::Model {
                checks.push((field.clone(), v.ty.clone()));
            }
            fields.push((field.name.clone(), v.term));
            tys.push((field.name.clone(), ty));
        }
        let mut term = self.add(Term::Record(fields), at);
        if !checks.is_empty() {
            // A model checks its fields, and converts nothing.
            let object = self.fresh("object");
            bindings.push((object.clone(), term));
            for (field, ty) in checks {
                let bounds = Self::bounds_of(&field.shape);
                if bounds.is_none() && (field.shape == Shape::Any || certain(&ty, &field.shape)) {
                    continue;
                }
                let spec = self.shape_data(&field.shape);
                let spec = self.lit(spec, at);
                let value = self.field(&object, &field.name, at);
                let fits = self.total("conforms", vec![spec, value], at);
                let message = format!("1 validation error for {name}: `{}`", field.name);
                let failed = self.fail("ValidationError", &message, taint, at);
                let none = self.lit(Data::Null, at);
                let checked = self.choose(fits, none, failed, at);
                bindings.push(("_".into(), checked));
                if let Some(bounds) = bounds {
                    let bounds = self.lit(bounds, at);
                    let value = self.field(&object, &field.name, at);
                    let fits = self.total("bounded", vec![bounds, value], at);
                    let failed = self.fail("ValidationError", &message, taint, at);
                    let none = self.lit(Data::Null, at);
                    let checked = self.choose(fits, none, failed, at);
                    bindings.push(("_".into(), checked));
                }
            }
            term = self.var(&object, at);
        }
        let term = self.b.let_in(bindings, term, at);
        let tys: Rc<[(Name, Ty)]> = tys.into();
        let ty = match class.kind {
            ClassKind::TypedDict => Ty::Dict(Some(tys)),
            _ => Ty::Object(name.into(), tys),
        };
        Val { unique: unique.min(UNIQUE), ..self.val(term, ty, taint) }
    }

    /// The members of the enumeration that a value is.
    pub(crate) fn members(&self, v: &Val) -> Option<Data> {
        let Function::Class(name) = self.functions.get(v.function?)? else { return None };
        let class = self.classes.get(name).filter(|c| c.is_enum())?;
        Some(Data::list(class.members.iter().cloned()))
    }

    /// An enumeration as a value: the list of its members.
    pub(crate) fn enumerated(&mut self, v: Val, e: &Expr) -> Val {
        match self.members(&v) {
            Some(members) => {
                let at = self.at(e);
                self.constant(members, Ty::List(Rc::new(Ty::Atom)), at)
            }
            None => v,
        }
    }

    /// `x: T = e`: a value of another type is the error `TypeError`. The value keeps its labels.
    pub(crate) fn stated(
        &mut self,
        annotation: &'a Expr,
        target: &Expr,
        written: &Expr,
        v: Val,
        bindings: &mut Bindings,
    ) -> Val {
        let Some(shape) = self.shape(annotation, 0) else { return v };
        // `x: T = None` says that there is none yet.
        if v.function.is_some() || written.is_none_literal_expr() || shape == Shape::Any {
            return v;
        }
        if certain(&v.ty, &shape) {
            return v;
        }
        let at = self.at(written);
        // The name is not noted as a value that can be moved: its type is known after the check alone.
        let name = self.fresh("stated");
        bindings.push((name.clone(), v.term));
        let spec = self.shape_data(&shape);
        let (spec, shown) = (self.lit(spec, at), self.shown(annotation));
        let shown = self.lit(Data::str(shown), at);
        let what = self.shown(target);
        let what = self.lit(Data::str(what), at);
        let value = self.var(&name, at);
        let checked = self.py("checked", vec![spec, shown, what, value], v.taint, at);
        bindings.push(("_".into(), checked));
        let ty = match (&v.ty, self.shape_ty(&shape)) {
            (Ty::Object(..) | Ty::Dict(Some(_)), _) => v.ty.clone(),
            (known, ty) => narrowed(known, ty),
        };
        Val { term: self.var(&name, at), ty, ..v }
    }
}

/// Facts about a value after the check of an annotation. Where a number is stated, it may be a truth value.
fn narrowed(known: &Ty, stated: Ty) -> Ty {
    match (known, stated) {
        (Ty::Num | Ty::Bool, Ty::Num) => known.clone(),
        (_, Ty::Num) => Ty::Any,
        (Ty::List(known), Ty::List(item)) => Ty::List(Rc::new(narrowed(known, (*item).clone()))),
        (_, Ty::List(item)) => Ty::List(Rc::new(narrowed(&Ty::Any, (*item).clone()))),
        (_, Ty::Dict(Some(fields))) => Ty::Dict(Some(each_narrowed(&fields))),
        (_, Ty::Object(name, fields)) => Ty::Object(name, each_narrowed(&fields)),
        (_, ty) => ty,
    }
}

fn each_narrowed(fields: &[(Name, Ty)]) -> Rc<[(Name, Ty)]> {
    fields.iter().map(|(name, ty)| (name.clone(), narrowed(&Ty::Any, ty.clone()))).collect()
}

/// Returns true if a value of a known type certainly has a stated one.
fn certain(ty: &Ty, shape: &Shape) -> bool {
    match (ty, shape) {
        (_, Shape::Any) => true,
        (Ty::Str, Shape::Str) | (Ty::Bool, Shape::Bool) | (Ty::Num, Shape::Float) => true,
        (Ty::Null, Shape::None | Shape::Option(_)) => true,
        (Ty::List(item), Shape::List(inner)) => certain(item, inner),
        (Ty::Dict(_), Shape::Dict) | (Ty::Set, Shape::Set(_)) => {
            !matches!(shape, Shape::Set(inner) if **inner != Shape::Any)
        }
        (Ty::Object(name, _), Shape::Class(wanted)) => &**name == wanted,
        (ty, Shape::Option(inner)) => certain(ty, inner),
        _ => false,
    }
}
