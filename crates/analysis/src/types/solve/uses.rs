//! Meaning of each use: how it constrains the type that reaches it.

use super::*;

impl Solver {
    /// `a`, which is no variable, is used in a way that is no type.
    pub(super) fn used(&mut self, a: T, node: &Node, b: T, how: &Use, from: Why, to: Why) {
        // These look at the value as it is.
        match (node, how) {
            (Node::Option(x), Use::Filter { .. } | Use::Cases { .. }) => {
                self.work.push((*x, b, from, to));
                self.work.push((NULL, b, from, to));
                return;
            }
            (Node::Option(x), Use::Data | Use::Present { .. } | Use::Lacks { .. }) => {
                self.work.push((*x, b, from, to));
                return;
            }
            (Node::Refined(x, _), Use::Data) => {
                self.work.push((*x, b, from, to));
                return;
            }
            (_, Use::Filter { keep, result }) => {
                let base = match node {
                    Node::Refined(x, _) => self.node(*x).clone(),
                    other => other.clone(),
                };
                match &base {
                    // The type is not known yet.
                    Node::Refined(..) | Node::Var | Node::Dyn => self.work.push((a, *result, from, to)),
                    base if keep.has(Solver::kinds(base)) => self.work.push((a, *result, from, to)),
                    _ => {}
                }
                return;
            }
            (_, Use::Guard { pred, result }) => return self.guarded(a, node, b, (pred, *result), from, to),
            (Node::Refined(x, _), _) => {
                self.work.push((*x, b, from, to));
                return;
            }
            (Node::Option(x), _) => {
                self.may_be_null(b, from, to);
                self.work.push((*x, b, from, to));
                return;
            }
            _ => {}
        }
        match (how, node) {
            (Use::Present { name, result }, Node::Record { fields, exact }) => {
                let t = if fields.iter().any(|f| f.may_lack && f.name == *name) {
                    let fields = fields
                        .iter()
                        .map(|f| Field { may_lack: f.may_lack && f.name != *name, ..f.clone() })
                        .collect();
                    self.make(b, Node::Record { fields, exact: *exact }, to)
                } else {
                    a
                };
                self.work.push((t, *result, from, to));
            }
            (Use::Present { result, .. }, _) => self.work.push((a, *result, from, to)),
            (Use::Lacks { name, value, result }, _) => {
                let lacks = match node {
                    Node::Record { fields, .. } => {
                        fields.iter().find(|f| f.name == *name).is_none_or(|f| f.may_lack)
                    }
                    // `has` fails on what is no record.
                    _ => false,
                };
                if lacks {
                    self.work.push((*value, *result, from, to));
                }
            }
            (Use::Data, _) => self.data(a, node, b, from, to),
            (
                Use::Label,
                Node::List(_)
                | Node::Tuple(_)
                | Node::Record { .. }
                | Node::Lit(Data::Str(_))
                | Node::Str
                | Node::Enum(_),
            ) => {}
            (Use::Field { name, result }, Node::Record { fields, exact }) => {
                match fields.iter().find(|f| f.name == *name) {
                    Some(f) => {
                        if f.may_lack {
                            self.dynamic.push(to);
                        }
                        self.work.push((f.ty, *result, from, to));
                    }
                    None => self.no_field(a, *exact, name, from, to),
                }
            }
            (Use::With { name, value, result }, Node::Record { fields, exact }) => {
                let mut fields: Vec<Field> = fields.iter().filter(|f| f.name != *name).cloned().collect();
                fields.push(Field { name: name.clone(), ty: *value, may_lack: false });
                let t = self.make(b, Node::Record { fields: fields.into(), exact: *exact }, to);
                self.work.push((t, *result, from, to));
            }
            (Use::Index { index, key, result }, _) => {
                self.indexed(a, node, (*index, key.as_ref(), *result), from, to);
            }
            (Use::Plus { peer, result }, _) => match Solver::kinds(node) {
                k @ (Kinds::STR | Kinds::NUM) => {
                    let t = if k == Kinds::STR { STR } else { NUM };
                    self.work.push((*peer, t, to, to));
                    self.work.push((t, *result, from, to));
                }
                Kinds::LIST => {
                    let sum = self.list_of(b);
                    self.work.push((*peer, sum, to, to));
                    self.work.push((a, sum, from, to));
                    self.work.push((sum, *result, from, to));
                }
                _ => self.wrong_kind(a, "a number, a string or a list", from, to),
            },
            (Use::Order { peer }, _) => match Solver::kinds(node) {
                Kinds::STR => self.work.push((*peer, STR, to, to)),
                Kinds::NUM => self.work.push((*peer, NUM, to, to)),
                _ => self.wrong_kind(a, "a number or a string", from, to),
            },
            (Use::Sized, _) => {
                if !Kinds(Kinds::STR.0 | Kinds::LIST.0 | Kinds::RECORD.0).has(Solver::kinds(node)) {
                    self.wrong_kind(a, "a string, a list or a record", from, to);
                }
            }
            (Use::Slice { result }, _) => match (Solver::kinds(node), node) {
                (Kinds::STR, _) => self.work.push((STR, *result, from, to)),
                (_, Node::Tuple(_)) => {
                    let list = self.list_of(b);
                    self.work.push((a, list, from, to));
                    self.work.push((list, *result, from, to));
                }
                (Kinds::LIST, _) => self.work.push((a, *result, from, to)),
                _ => self.wrong_kind(a, "a string or a list", from, to),
            },
            (Use::Contains { item }, _) => match Solver::kinds(node) {
                Kinds::STR => self.work.push((*item, STR, to, to)),
                Kinds::LIST => {
                    self.work.push((a, DATA, from, to));
                    self.work.push((*item, DATA, to, to));
                }
                _ => self.wrong_kind(a, "a string or a list", from, to),
            },
            (Use::AnyRecord, Node::Record { .. } | Node::Args { .. }) => {}
            (Use::AnyRecord, _) => self.wrong_kind(a, "a record", from, to),
            (Use::Classify, _) => {
                if !matches!(node, Node::Variant(_)) && Solver::kinds(node) != Kinds::STR {
                    self.wrong_kind(a, "a string", from, to);
                }
            }
            (Use::Cases { branches, default }, _) => self.cases(a, node, branches, *default, from, to),
            (Use::Args { tool, params }, _) => self.arguments(a, node, tool, params, from, to),
            (Use::Label, _) => {
                self.wrong_kind(a, "a label, which is a list or a record", from, to);
            }
            (Use::Field { name, .. }, Node::Fun(..) | Node::Variant(_) | _) => {
                let found = self.show(a);
                let message = format!("there is no field `{name}` here: found {found}");
                self.mistake(codes::NO_FIELD, message, from, to);
            }
            (Use::With { .. }, _) => self.wrong_kind(a, "a record", from, to),
            // Handled above.
            (Use::Guard { .. } | Use::Filter { .. }, _) => {}
        }
    }

    /// Data without functions inside.
    pub(super) fn data(&mut self, a: T, node: &Node, b: T, from: Why, to: Why) {
        match node {
            Node::Fun(..) => {
                let found = self.show(a);
                let message = format!("a function is not data: found {found}");
                self.mistake(codes::FUNCTION_AS_DATA, message, from, to);
            }
            Node::List(t) => self.work.push((*t, b, from, to)),
            Node::Tuple(ts) => self.work.extend(ts.iter().map(|t| (*t, b, from, to))),
            Node::Pair(x, y) => self.work.extend([(*x, b, from, to), (*y, b, from, to)]),
            Node::Record { fields, .. } | Node::Args { fields, .. } => {
                self.work.extend(fields.iter().map(|f| (f.ty, b, from, to)));
            }
            Node::Variant(tags) => self.work.extend(tags.iter().map(|(_, t)| (*t, b, from, to))),
            _ => {}
        }
    }

    /// An index into a value: its type, its value if that is known, and the type of what is found there.
    fn indexed(
        &mut self,
        a: T,
        node: &Node,
        (index, key, result): (T, Option<&Data>, T),
        from: Why,
        to: Why,
    ) {
        let at = match key {
            Some(Data::Num(n)) => n.to_usize(),
            _ => None,
        };
        match node {
            Node::Tuple(ts) => {
                self.work.push((index, NUM, to, to));
                match (at, key) {
                    (Some(i), _) if i < ts.len() => self.work.push((ts[i], result, from, to)),
                    (_, Some(Data::Num(n))) => {
                        let message = format!("a list of {} has nothing at {n}", ts.len());
                        self.mistake(codes::NO_FIELD, message, from, to);
                    }
                    _ => self.work.extend(ts.iter().map(|t| (*t, result, from, to))),
                }
            }
            Node::List(t) => {
                self.work.push((index, NUM, to, to));
                self.work.push((*t, result, from, to));
            }
            Node::Record { fields, exact } => {
                self.work.push((index, STR, to, to));
                match key {
                    Some(Data::Str(name)) => match fields.iter().find(|f| *f.name == **name) {
                        Some(f) => {
                            if f.may_lack {
                                self.dynamic.push(to);
                            }
                            self.work.push((f.ty, result, from, to));
                        }
                        None => self.no_field(a, *exact, &Name::from(&**name), from, to),
                    },
                    _ if *exact => self.work.extend(fields.iter().map(|f| (f.ty, result, from, to))),
                    _ => self.work.push((DYN, result, from, to)),
                }
            }
            _ if Solver::kinds(node) == Kinds::STR => {
                self.work.push((index, NUM, to, to));
                self.work.push((STR, result, from, to));
            }
            _ => self.wrong_kind(a, "a list, a record or a string", from, to),
        }
    }

    pub(super) fn guarded(
        &mut self,
        a: T,
        node: &Node,
        b: T,
        (pred, result): (&Arc<Pred>, T),
        from: Why,
        to: Why,
    ) {
        if let Node::Fun(param, e, r) = node {
            let (param, e, r) = (*param, *e, *r);
            // The result of a guarded function is under the same guard, at every nesting level. There is one
            // use for each level, and, so that this ends, one for all deeper levels.
            let (guard, v) = match self.lists.get(&b).map(|g| (*g, self.node(*g).clone())) {
                Some((guard, Node::Use(how))) => match &*how {
                    Use::Guard { result, .. } => (guard, *result),
                    _ => return,
                },
                _ => {
                    let v = self.var();
                    let guard = self.uses(Use::Guard { pred: pred.clone(), result: v });
                    self.lists.insert(b, guard);
                    let level = self.levels.get(&b).copied().unwrap_or(0) + 1;
                    if level < MAX_LEVELS {
                        self.levels.insert(guard, level);
                    } else {
                        self.lists.insert(guard, guard);
                    }
                    (guard, v)
                }
            };
            self.guards.entry(b).or_default().may_pass = true;
            self.work.push((r, guard, from, to));
            let f = self.make(b, Node::Fun(param, e, v), to);
            self.work.push((f, result, from, to));
            return;
        }
        // Of several values that arrive some may pass, and it is what guards are for that others do not.
        match self.never(a, pred) {
            Some(why) => {
                let message = format!("this guard can never hold: {why}");
                let mistake = Mistake { code: codes::IMPOSSIBLE_GUARD, message, at: to, from, help: None };
                self.guards.entry(b).or_default().refused.get_or_insert(mistake);
            }
            None => self.guards.entry(b).or_default().may_pass = true,
        }
        let t = match (&**pred, node) {
            (Pred::True, _) => a,
            // A value that passed this guard passes it again.
            (_, Node::Refined(_, known)) if known == pred => a,
            _ => self.make(b, Node::Refined(a, pred.clone()), to),
        };
        self.work.push((t, result, from, to));
    }

    /// Returns the reason why no value of a type satisfies a predicate, if that is so.
    pub(super) fn never(&self, a: T, pred: &Pred) -> Option<String> {
        if let Node::Lit(d) = self.node(a) {
            return pred.holds(d).err();
        }
        let ty = self.reported(a)?;
        (pred::possible(pred, &ty) == Answer::No).then(|| format!("no {ty} satisfies `{pred}`"))
    }

    pub(super) fn cases(
        &mut self,
        a: T,
        node: &Node,
        branches: &[(Name, Option<T>)],
        default: bool,
        from: Why,
        to: Why,
    ) {
        let find = |tag: &str| branches.iter().find(|(n, _)| **n == *tag);
        let missing = |tags: Vec<&str>| {
            let names: Vec<String> = tags.iter().map(|t| format!("`{t}`")).collect();
            format!("no branch for {}", names.join(", "))
        };
        match node {
            Node::Variant(tags) => {
                for (tag, payload) in tags.iter() {
                    if let Some((_, Some(binder))) = find(tag) {
                        self.work.push((*payload, *binder, from, to));
                    }
                }
                let left: Vec<&str> =
                    tags.iter().map(|(n, _)| &**n).filter(|n| find(n).is_none()).take(5).collect();
                if !default && !left.is_empty() {
                    self.mistake(codes::NOT_EXHAUSTIVE, missing(left), from, to);
                }
            }
            Node::Enum(_) | Node::Lit(Data::Str(_)) => {
                let names: Vec<&str> = match node {
                    Node::Enum(e) => e.variants.iter().map(|v| &**v).collect(),
                    Node::Lit(Data::Str(s)) => vec![&**s],
                    _ => Vec::new(),
                };
                // The payload of a string is null.
                for name in &names {
                    if let Some((_, Some(binder))) = find(name) {
                        self.work.push((NULL, *binder, from, to));
                    }
                }
                let left: Vec<&str> = names.into_iter().filter(|n| find(n).is_none()).take(5).collect();
                if !default && !left.is_empty() {
                    self.mistake(codes::NOT_EXHAUSTIVE, missing(left), from, to);
                }
            }
            Node::Str => {
                self.work.extend(branches.iter().filter_map(|(_, b)| Some((NULL, (*b)?, from, to))));
                if !default {
                    let message = "a string may be anything, and there is no `_` branch".to_string();
                    self.mistake(codes::NOT_EXHAUSTIVE, message, from, to);
                }
            }
            _ if default => {}
            Node::Null => self.may_be_null(a, from, to),
            _ => self.wrong_kind(a, "a tag or a string", from, to),
        }
    }

    /// The argument of a tool. Source: `docs/calculus.md` §10 (`tool[f] V`).
    pub(super) fn arguments(&mut self, a: T, node: &Node, tool: &Name, params: &[Field], from: Why, to: Why) {
        let (record, planned) = match node {
            Node::Record { fields, exact } => (Some((fields.clone(), *exact)), false),
            Node::Args { tool: of, fields } if of == tool => (Some((fields.clone(), true)), true),
            Node::Args { tool: of, .. } => {
                let message = format!("these are the arguments of `{of}`, not of `{tool}`");
                return self.mistake(codes::ARGUMENTS, message, from, to);
            }
            _ => (None, false),
        };
        match (params, record) {
            ([], Some((fields, _))) if fields.is_empty() => {}
            ([], None) if matches!(node, Node::Null) => {}
            ([only], None) => self.work.push((a, only.ty, from, to)),
            ([only], Some((fields, exact))) if !planned && !fields.iter().any(|f| f.name == only.name) => {
                if !exact {
                    self.dynamic.push(to);
                }
                self.work.push((a, only.ty, from, to));
            }
            (_, None) => {
                let what = format!("a record of the arguments of `{tool}`");
                self.wrong_kind(a, &what, from, to);
            }
            (params, Some((fields, exact))) => {
                for p in params {
                    match fields.iter().find(|f| f.name == p.name) {
                        Some(f) => {
                            if f.may_lack && !p.may_lack {
                                self.dynamic.push(to);
                            }
                            self.work.push((f.ty, p.ty, from, to));
                        }
                        None if p.may_lack => {}
                        None => {
                            let message = format!("the argument `{}` of `{tool}` is missing", p.name);
                            self.mistake(codes::ARGUMENTS, message, from, to);
                        }
                    }
                }
                for f in fields.iter() {
                    if !params.iter().any(|p| p.name == f.name) {
                        let message = format!("`{tool}` has no parameter `{}`", f.name);
                        self.mistake(codes::ARGUMENTS, message, from, to);
                    }
                }
                if !exact {
                    // It may have fields that the type does not tell, and the tool takes no others.
                    self.dynamic.push(to);
                }
            }
        }
    }
}
