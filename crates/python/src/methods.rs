//! Methods of texts, lists and dictionaries.

use crate::eval::World;
use crate::value::*;
use diagnostics::Span;
use std::sync::Arc;

impl World<'_> {
    pub(crate) fn method(
        &mut self,
        on: &Value,
        name: &str,
        args: Vec<Arg>,
        open: Option<Span>,
        span: Span,
    ) -> Value {
        if let PyKind::Class(class) = on.kind
            && let Some((Value { kind: PyKind::Function(f), .. }, _)) = self.class_lookup(class, name)
        {
            // A method of the class is given the class.
            let class = Arg { name: None, value: on.clone(), span };
            let args = std::iter::once(class).chain(args).collect();
            return self.call_body(f, None, args, open, span);
        }
        let given = self.symbolic.then(|| args.clone());
        // A list that the environment's text was split into is changed as it is by default.
        let settled = match (&on.kind, &self.resolve_env(on).kind) {
            (PyKind::Env(_), PyKind::List(_) | PyKind::Dict(_)) => Some(self.resolve_env(on).kind.clone()),
            _ => None,
        };
        let result = match *settled.as_ref().unwrap_or(&on.kind) {
            PyKind::List(id) => self.list_method(id, name, &args, open, span),
            PyKind::Dict(id) => self.dict_method(id, name, &args, open, span),
            _ if open.is_none() => self.text_method(on, name, &args, span),
            _ => None,
        };
        match result {
            // What the environment says may be another text.
            Some(value) if settled.is_none() => self.env_dependent(&[on], value),
            Some(value) => value,
            None if given.is_some() && !matches!(on.kind, PyKind::Function(_)) => {
                self.symbolic_method(on, name, given.unwrap_or_default(), span)
            }
            None => match &on.kind {
                // A text whose method is not known here is a text that is not known.
                PyKind::Str(_) | PyKind::Text(_) | PyKind::Env(_) => {
                    Value::unknown(format!("the result of `.{}(…)`", crate::expr::clip(name)), span)
                }
                PyKind::Function(id) => {
                    let callee = format!("{}.{name}", self.function(*id).qualified);
                    let function = Arg { name: None, span: on.span, value: on.clone() };
                    let args = std::iter::once(function).chain(args).collect();
                    Value::new(PyKind::Object(self.new_object(callee.into(), args, open, span, None)), span)
                }
                _ => Value::unknown(format!("the result of `.{}(…)`", crate::expr::clip(name)), span),
            },
        }
    }

    fn list_method(
        &mut self,
        id: ListId,
        name: &str,
        args: &[Arg],
        open: Option<Span>,
        span: Span,
    ) -> Option<Value> {
        let maybe = self.conditions > 0;
        let none = Some(Value::new(PyKind::None, span));
        let first = args.first().map(|a| a.value.clone());
        match name {
            "append" | "add" => {
                let value = first?;
                self.record_append(id);
                self.note_alias(&value);
                self.list_mut(id).items.push(Value { maybe, ..value });
                none
            }
            "insert" => {
                let value = args.get(1)?.value.clone();
                let at = match first?.kind {
                    PyKind::Int(n) => usize::try_from(n).unwrap_or(0),
                    _ => usize::MAX,
                };
                self.note_alias(&value);
                self.record_items_write(id);
                let items = &mut self.list_mut(id).items;
                let at = at.min(items.len());
                items.insert(at, Value { maybe, ..value });
                none
            }
            "extend" | "update" => {
                self.extend(id, &first?, span);
                none
            }
            "copy" => {
                let List { items, kind, open } = self.list(id).clone();
                self.step(items.len(), span);
                Some(self.list_value(items, kind, open, span))
            }
            "clear" if !maybe && !self.is_guarded() => {
                self.record_items_write(id);
                self.list_mut(id).items.clear();
                self.list_mut(id).open = None;
                none
            }
            "index" | "count" => None,
            _ => {
                // `remove`, `pop`, `sort` and whatever else changes it in a way that is not followed.
                self.record_items_write(id);
                self.list_mut(id).open = Some(open.unwrap_or(span));
                None
            }
        }
    }

    fn dict_method(
        &mut self,
        id: DictId,
        name: &str,
        args: &[Arg],
        open: Option<Span>,
        span: Span,
    ) -> Option<Value> {
        let first = args.first().map(|a| a.value.clone());
        match name {
            "get" | "setdefault" => {
                let key = first?;
                if self.dict(id).has_spread() {
                    let default = args.get(1).map_or(Value::new(PyKind::None, span), |a| a.value.clone());
                    return match name {
                        "get" => Some(self.lookup_with_spread(id, &key, Some(default), span)),
                        _ => None,
                    };
                }
                let dict = self.dict(id);
                let found: Vec<Value> =
                    dict.entries.iter().filter(|(k, _)| self.same(k, &key)).map(|(_, v)| v.clone()).collect();
                let settled = dict.open.is_none() && key.as_str().is_some();
                let default = args.get(1).map_or(Value::new(PyKind::None, span), |a| a.value.clone());
                Some(match &found[..] {
                    [one] if settled && !one.maybe => one.clone(),
                    [] if settled => {
                        if name == "setdefault" {
                            self.put(id, key, default.clone());
                        }
                        default
                    }
                    [] if name == "get" && key.as_str().is_none() => {
                        let (rest, all) = (dict.open, dict.entries.iter().map(|(_, v)| v.clone()).collect());
                        let why = "an entry that is not known";
                        match self.one_of_parts(all, rest.map(|_| why), why, span) {
                            known @ Value { kind: PyKind::Either(_), .. } => {
                                self.either_of(vec![known, default], usize::MAX, span)
                            }
                            one if !matches!(one.kind, PyKind::Unknown(_)) => {
                                self.either(vec![one, default], span)
                            }
                            unknown => unknown,
                        }
                    }
                    _ => Value::unknown("an entry that is not known", span),
                })
            }
            "keys" | "values" | "items" => {
                let spread = self.dict(id).has_spread();
                let Dict { mut entries, mut open } = self.dict(id).clone();
                if spread {
                    entries.retain(|(k, _)| !Dict::is_spread(k));
                    open = open.or(Some(span));
                }
                self.step(entries.len(), span);
                let mut items = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    let maybe = value.maybe;
                    let item = match name {
                        "keys" => key,
                        "values" => value,
                        _ => self.list_value(vec![key, value], ListKind::Tuple, None, span),
                    };
                    items.push(Value { maybe, ..item });
                }
                Some(self.list_value(items, ListKind::List, open, span))
            }
            "update" => {
                for arg in args {
                    match &arg.name {
                        Some(name) => {
                            let key = Value::new(PyKind::Str(name.clone()), arg.span);
                            self.put(id, key, arg.value.clone());
                        }
                        None => self.update(id, &arg.value, span),
                    }
                }
                Some(Value::new(PyKind::None, span))
            }
            "copy" => {
                let dict = self.dict(id).clone();
                self.step(dict.entries.len(), span);
                let id = self.add_dict(dict);
                Some(Value::new(PyKind::Dict(id), span))
            }
            _ => {
                self.record_entry_write(id, None);
                self.dict_mut(id).open = Some(open.unwrap_or(span));
                None
            }
        }
    }

    fn text_method(&mut self, on: &Value, name: &str, args: &[Arg], span: Span) -> Option<Value> {
        if name == "format" {
            return self.str_format(on, args, span);
        }
        if name == "join" {
            let separator = on.as_str()?.to_string();
            let (items, open) = self.iterate(&args.first()?.value)?;
            let mut pieces = Vec::new();
            for (i, item) in items.into_iter().enumerate() {
                if i > 0 {
                    pieces.push(Piece::Text(separator.as_str().into()));
                }
                let why = self.unknown_reason(&item);
                let plain = !item.maybe;
                self.push_str(item, plain, why, &mut pieces);
            }
            if let Some(at) = open {
                let more = Value::unknown("more items", at);
                pieces.push(Piece::Hole(more, "more".into()));
            }
            return Some(self.join_pieces(pieces, span));
        }
        if matches!(on.kind, PyKind::Text(_))
            && matches!(name, "strip" | "lstrip" | "rstrip")
            && args.is_empty()
        {
            return Some(self.strip(on, name, span));
        }
        let PyKind::Str(text) = self.resolve_env(on).kind.clone() else { return None };
        if !self.charge_text(text.len(), span) {
            return None;
        }
        let argument = |i: usize| args.get(i).and_then(|a: &Arg| a.value.as_str());
        let kind = match (name, args.len()) {
            ("strip", 0) => PyKind::Str(text.trim_matches(blank).into()),
            ("lstrip", 0) => PyKind::Str(text.trim_start_matches(blank).into()),
            ("rstrip", 0) => PyKind::Str(text.trim_end_matches(blank).into()),
            ("strip", 1) => {
                let set = argument(0)?;
                PyKind::Str(text.trim_matches(|c| set.contains(c)).into())
            }
            ("lower", 0) => self.text_kind(text.to_lowercase().into(), span),
            ("upper", 0) => self.text_kind(text.to_uppercase().into(), span),
            // Other letters have more than two cases.
            ("title", 0) if text.is_ascii() => PyKind::Str(title_case(&text).into()),
            ("capitalize", 0) if text.is_ascii() => {
                let mut chars = text.chars();
                let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
                PyKind::Str(format!("{first}{}", chars.as_str().to_lowercase()).into())
            }
            ("replace", 2) => {
                let (from, to) = (argument(0)?, argument(1)?);
                let conditional_append = text.matches(from).count().saturating_mul(to.len());
                if self.text.saturating_add(conditional_append) > self.limits.text {
                    return None;
                }
                self.text_kind(text.replace(from, to).into(), span)
            }
            ("removeprefix", 1) => PyKind::Str(text.strip_prefix(argument(0)?).unwrap_or(&text).into()),
            ("removesuffix", 1) => PyKind::Str(text.strip_suffix(argument(0)?).unwrap_or(&text).into()),
            ("startswith", 1) => PyKind::Bool(text.starts_with(argument(0)?)),
            ("endswith", 1) => PyKind::Bool(text.ends_with(argument(0)?)),
            ("split", 0) => {
                let parts = text.split(blank).filter(|p| !p.is_empty());
                let count = parts.clone().count();
                return self.list_of_texts(count, || parts.map(Arc::from).collect(), ListKind::List, span);
            }
            ("split" | "rsplit", 1 | 2) => {
                let by = argument(0).filter(|by| !by.is_empty())?;
                let most = match args.get(1).map(|a| (&a.name, &a.value.kind)) {
                    None | Some((_, PyKind::Int(..0))) => usize::MAX,
                    Some((None, PyKind::Int(n))) => usize::try_from(*n).ok()?,
                    Some((Some(name), PyKind::Int(n))) if &**name == "maxsplit" => {
                        usize::try_from(*n).ok()?
                    }
                    _ => return None,
                };
                let most = most.saturating_add(1);
                let count = text.matches(by).count().min(most) + 1;
                let parts = || match name {
                    "split" => text.splitn(most, by).map(Arc::from).collect(),
                    _ => {
                        let mut parts: Vec<Arc<str>> = text.rsplitn(most, by).map(Arc::from).collect();
                        parts.reverse();
                        parts
                    }
                };
                return self.list_of_texts(count, parts, ListKind::List, span);
            }
            ("partition" | "rpartition", 1) => {
                let by = argument(0).filter(|by| !by.is_empty())?;
                let found = if name == "partition" { text.split_once(by) } else { text.rsplit_once(by) };
                let parts = match (found, name) {
                    (Some((before, after)), _) => [before, by, after],
                    (None, "partition") => [&*text, "", ""],
                    (None, _) => ["", "", &*text],
                };
                return self.list_of_texts(3, || parts.map(Arc::from).to_vec(), ListKind::Tuple, span);
            }
            // Python ends lines elsewhere, too.
            ("splitlines", 0) if !text.replace("\r\n", "\n").contains(ENDS) => {
                let count = text.lines().count();
                return self.list_of_texts(
                    count,
                    || text.lines().map(Arc::from).collect(),
                    ListKind::List,
                    span,
                );
            }
            _ => return None,
        };
        Some(Value::new(kind, span))
    }

    /// A list of texts, which are made only if there are steps enough.
    fn list_of_texts(
        &mut self,
        count: usize,
        texts: impl FnOnce() -> Vec<Arc<str>>,
        kind: ListKind,
        span: Span,
    ) -> Option<Value> {
        if !self.step(count, span) {
            return None;
        }
        let items = texts().into_iter().map(|p| Value::new(PyKind::Str(p), span)).collect();
        Some(self.list_value(items, kind, None, span))
    }

    fn strip(&mut self, on: &Value, name: &str, span: Span) -> Value {
        let Some(mut pieces) = self.text_of(on) else { return on.clone() };
        if let (true, Some(Piece::Text(t))) = (name != "rstrip", pieces.first_mut()) {
            *t = t.trim_start_matches(blank).into();
        }
        if let (true, Some(Piece::Text(t))) = (name != "lstrip", pieces.last_mut()) {
            *t = t.trim_end_matches(blank).into();
        }
        self.join_pieces(pieces, span)
    }

    /// `"…{name}…{}".format(…)`.
    fn str_format(&mut self, on: &Value, args: &[Arg], span: Span) -> Option<Value> {
        let mut pieces = Vec::new();
        let mut next = 0;
        for piece in self.text_of(on)? {
            match piece {
                Piece::Text(text) => self.format_piece(&text, args, &mut next, &mut pieces, span)?,
                hole => pieces.push(hole),
            }
        }
        Some(self.join_pieces(pieces, span))
    }

    fn format_piece(
        &mut self,
        text: &str,
        args: &[Arg],
        next: &mut usize,
        pieces: &mut Vec<Piece>,
        span: Span,
    ) -> Option<()> {
        let mut rest = text;
        let positional: Vec<&Arg> = args.iter().filter(|a| a.name.is_none()).collect();
        while let Some(at) = rest.find(['{', '}']) {
            if !self.step(1, span) {
                return None;
            }
            pieces.push(Piece::Text(rest[..at].into()));
            let brace = &rest[at..at + 1];
            if rest[at + 1..].starts_with(brace) {
                pieces.push(Piece::Text(brace.into()));
                rest = &rest[at + 2..];
                continue;
            }
            let end = (brace == "{").then(|| rest[at..].find('}')).flatten()?;
            let field = &rest[at + 1..at + end];
            rest = &rest[at + end + 1..];
            let name = field.split([':', '!']).next().unwrap_or("");
            let plain = name.len() == field.len();
            let arg = match name {
                "" => {
                    *next += 1;
                    positional.get(*next - 1).copied()
                }
                n => match n.parse::<usize>() {
                    Ok(i) => positional.get(i).copied(),
                    Err(_) => args.iter().find(|a| a.name.as_deref() == Some(n)),
                },
            };
            let value = arg.map_or_else(|| Value::unknown("a part of a format", span), |a| a.value.clone());
            self.push_str(value, plain, name.into(), pieces);
        }
        pieces.push(Piece::Text(rest.into()));
        Some(())
    }

    /// `"…%s…" % value`.
    pub(crate) fn percent_format(&mut self, text: &str, right: &Value, span: Span) -> Value {
        let values = match right.kind {
            PyKind::List(id) if self.list(id).kind == ListKind::Tuple => self.list(id).items.clone(),
            _ => vec![right.clone()],
        };
        let mut values = values.into_iter();
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('%') {
            if !self.step(1, span) {
                return Value::unknown("a value beyond the evaluation limit", span);
            }
            pieces.push(Piece::Text(rest[..at].into()));
            let after = &rest[at + 1..];
            let Some(c) = after.chars().next() else { break };
            rest = &after[c.len_utf8()..];
            match c {
                '%' => pieces.push(Piece::Text("%".into())),
                's' | 'd' => match values.next() {
                    Some(value) => {
                        let plain = c == 's' || matches!(value.kind, PyKind::Int(_));
                        self.push_str(value, plain, "%s".into(), &mut pieces);
                    }
                    None => return Value::unknown("a format without a value", span),
                },
                _ => return Value::unknown("a format that is not followed", span),
            }
        }
        pieces.push(Piece::Text(rest.into()));
        self.join_pieces(pieces, span)
    }

    /// Without the white space that all lines begin with.
    pub(crate) fn dedent(&mut self, value: &Value, trim: bool, span: Span) -> Value {
        let Some(pieces) = self.text_of(value) else { return value.clone() };
        let bytes = pieces.iter().map(|p| if let Piece::Text(t) = p { t.len() } else { 0 }).sum();
        if !self.charge_text(bytes, span) {
            return Value::unknown("a value beyond the evaluation limit", span);
        }
        // A hole within a line is no white space.
        let mut line_start = true;
        let mut least: Option<usize> = None;
        let mut indent = 0;
        for piece in &pieces {
            match piece {
                Piece::Text(t) => {
                    for c in t.chars() {
                        match c {
                            '\n' => (line_start, indent) = (true, 0),
                            ' ' | '\t' if line_start => indent += 1,
                            _ if line_start => {
                                least = Some(least.map_or(indent, |l| l.min(indent)));
                                line_start = false;
                            }
                            _ => {}
                        }
                    }
                }
                Piece::Hole(..) if line_start => {
                    least = Some(least.map_or(indent, |l| l.min(indent)));
                    line_start = false;
                }
                Piece::Hole(..) => {}
            }
        }
        let least = least.unwrap_or(0);
        let mut left = least;
        let mut out = Vec::with_capacity(pieces.len());
        for piece in pieces {
            match piece {
                Piece::Text(t) => {
                    let mut text = String::with_capacity(t.len());
                    for c in t.chars() {
                        match c {
                            '\n' => {
                                left = least;
                                text.push(c);
                            }
                            ' ' | '\t' if left > 0 => left -= 1,
                            _ => {
                                left = 0;
                                text.push(c);
                            }
                        }
                    }
                    out.push(Piece::Text(text.into()));
                }
                hole => {
                    left = 0;
                    out.push(hole);
                }
            }
        }
        let value = self.join_pieces(out, span);
        if trim { self.trimmed_lines(&value, span) } else { value }
    }

    fn trimmed_lines(&mut self, value: &Value, span: Span) -> Value {
        match &value.kind {
            PyKind::Str(s) => Value::new(PyKind::Str(s.trim_matches(blank).into()), span),
            _ => self.strip(value, "strip", span),
        }
    }
}

/// Line ends of `str.splitlines` that `str::lines` doesn't split at.
const ENDS: [char; 9] =
    ['\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];

/// Returns true for a white-space character by the rule of Python's `str.isspace`.
fn blank(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// As Python's `str.title`: the first letter of each word in upper case, the others in lower case.
fn title_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for c in text.chars() {
        if inside {
            out.extend(c.to_lowercase())
        } else {
            out.extend(c.to_uppercase())
        }
        inside = c.is_alphabetic();
    }
    out
}
