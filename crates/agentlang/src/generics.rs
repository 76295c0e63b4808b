//! Types that a call of a `fn` decides: `fn first[T](xs: List[T]) -> Option[T]`.
//!
//! Inside of its `fn` such a type is a sum of one case that no program can write or look at, so that its
//! values can be handed on and compared, and nothing else. No term has it: what a run would check of it is
//! nothing.

use core_ir::{Name, Type};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The types that a call decides, by name.
pub(super) type Chosen = BTreeMap<Name, Type>;

/// The type of values of which only the caller knows more. They may be or hold numbers.
pub(super) fn opaque(name: &str) -> Type {
    Type::Variant([(Name::from(name), Type::Num)].into())
}

/// The name of a type that a call decides.
pub(super) fn name_of<'t>(ty: &'t Type, generics: &HashSet<String>) -> Option<&'t Name> {
    match ty {
        Type::Variant(cases) => match &cases[..] {
            [(name, Type::Num)] if generics.contains(&**name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// Returns true if a part of the type is decided by a call.
pub(super) fn mentions(ty: &Type, generics: &HashSet<String>) -> bool {
    if generics.is_empty() {
        return false;
    }
    stacker::maybe_grow(64 << 10, 1 << 20, || match ty {
        _ if name_of(ty, generics).is_some() => true,
        Type::List(t) | Type::Option(t) => mentions(t, generics),
        Type::Record(parts) | Type::Variant(parts) => parts.iter().any(|(_, t)| mentions(t, generics)),
        Type::Map(of) => mentions(&of.0, generics) || mentions(&of.1, generics),
        Type::Refined(r) => mentions(&r.0, generics),
        _ => false,
    })
}

/// The type with what `f` gives in place of each type that a call decides.
pub(super) fn replaced(ty: &Type, generics: &HashSet<String>, f: &dyn Fn(&Name) -> Type) -> Type {
    if !mentions(ty, generics) {
        return ty.clone();
    }
    let all = |parts: &[(Name, Type)]| -> Vec<(Name, Type)> {
        parts.iter().map(|(n, t)| (n.clone(), replaced(t, generics, f))).collect()
    };
    stacker::maybe_grow(64 << 10, 1 << 20, || match ty {
        t if name_of(t, generics).is_some() => name_of(t, generics).map_or(Type::Dyn, f),
        Type::List(t) => Type::list(replaced(t, generics, f)),
        Type::Option(t) => Type::option(replaced(t, generics, f)),
        Type::Map(of) => Type::map(replaced(&of.0, generics, f), replaced(&of.1, generics, f)),
        Type::Record(parts) => Type::record(all(parts)),
        Type::Variant(parts) => Type::Variant(all(parts).into()),
        // A condition holds of whatever the call decides: the length of a list bounds loops.
        Type::Refined(r) => Type::Refined(Arc::new((replaced(&r.0, generics, f), r.1.clone()))),
        other => other.clone(),
    })
}

/// Chooses the types that `declared` mentions so that `found` fits, as far as that says what they are. A type
/// that is chosen already becomes one that both may represent; `false` if there is none.
pub(super) fn choose(declared: &Type, found: &Type, generics: &HashSet<String>, chosen: &mut Chosen) -> bool {
    if let Some(name) = name_of(declared, generics) {
        let joined = match chosen.get(name) {
            None => Some(found.clone()),
            Some(before) => super::types::join(before, found),
        };
        return joined.map(|ty| chosen.insert(name.clone(), ty)).is_some();
    }
    stacker::maybe_grow(64 << 10, 1 << 20, || match (declared, found) {
        (Type::List(d), Type::List(f)) | (Type::Option(d), Type::Option(f)) => choose(d, f, generics, chosen),
        (Type::Map(d), Type::Map(f)) => {
            choose(&d.0, &f.0, generics, chosen) && choose(&d.1, &f.1, generics, chosen)
        }
        (Type::Refined(d), f) => choose(&d.0, f, generics, chosen),
        // `null` says nothing of what would be there.
        (Type::Option(_), Type::Null) => true,
        (Type::Option(d), f) => choose(d, f, generics, chosen),
        (Type::Record(d), Type::Record(f)) => d.iter().all(|(name, d)| {
            let found = f.iter().find(|(n, _)| n == name);
            found.is_none_or(|(_, f)| choose(d, f, generics, chosen))
        }),
        (d, Type::Rec(f)) => choose(d, &f.unfold(), generics, chosen),
        (d, Type::Dyn) => {
            let mut names = Vec::new();
            collect(d, generics, &mut names);
            names.into_iter().for_each(|name| {
                chosen.insert(name, Type::Dyn);
            });
            true
        }
        _ => true,
    })
}

/// The types that a call decides which a type mentions.
pub(super) fn collect(ty: &Type, generics: &HashSet<String>, out: &mut Vec<Name>) {
    stacker::maybe_grow(64 << 10, 1 << 20, || match ty {
        t if name_of(t, generics).is_some() => out.extend(name_of(t, generics).cloned()),
        Type::List(t) | Type::Option(t) => collect(t, generics, out),
        Type::Record(parts) | Type::Variant(parts) => {
            parts.iter().for_each(|(_, t)| collect(t, generics, out))
        }
        Type::Map(of) => {
            collect(&of.0, generics, out);
            collect(&of.1, generics, out);
        }
        Type::Refined(r) => collect(&r.0, generics, out),
        _ => {}
    });
}
