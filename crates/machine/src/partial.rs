//! The part of a typed reply that has arrived.
//!
//! Entry point: [`PartialReply`], fed with the text of a reply as it grows.
//!
//! Invariant: every value that it gives grows out of the one before: texts and lists get longer, records get
//! more fields, and nothing else changes. The last one of a reply that decodes is what the program gets.
//! Invariant: a value is shown only if its type takes it. A number, an enumeration or a text with a condition
//! is shown when it is whole, a plain text as it grows.
//! Invariant: what is kept is no longer than the reply, and at most [`MAX_BYTES`]. Whatever is no JSON ends
//! the showing, and nothing else.

use core_ir::{Data, Type};
use serde_json::{Map, Value as Json};

/// The most bytes of a reply that are read. Of a longer one the rest is not shown.
pub const MAX_BYTES: usize = 1 << 20;

/// The deepest nesting that is read.
const MAX_DEPTH: usize = 100;

/// The field in which an answer is that is no object, where an endpoint takes objects only.
const WRAPPER: &str = "value";

/// Marks of the reasoning that a reply may begin with.
const REASONING: (&str, &str) = ("<think>", "</think>");

/// A step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// A field of an object.
    Field(String),
    /// An item of a list, from 0.
    Item(usize),
}

/// The part of a typed reply that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialValue {
    /// The value so far.
    pub value: Json,
    /// The way to the part that is being written: that part and those around it may grow, all others are
    /// whole. `None` when the value is whole.
    pub open: Option<Vec<PathStep>>,
}

impl PartialValue {
    /// Returns the way to the part that is being written as JSON: names and numbers.
    pub fn open_json(&self) -> Json {
        let step = |step: &PathStep| match step {
            PathStep::Field(name) => Json::from(name.as_str()),
            PathStep::Item(at) => Json::from(*at),
        };
        self.open.as_ref().map_or(Json::Null, |path| path.iter().map(step).collect())
    }
}

/// A typed reply that arrives in pieces.
///
/// # Examples
/// ```
/// use core_ir::Type;
/// use machine::partial::PartialReply;
/// let ty = Type::record([("title".into(), Type::Str), ("year".into(), Type::Num)]);
/// let mut reply = PartialReply::of(&ty).unwrap();
/// reply.push(r#"Sure: {"title": "The ho"#);
/// assert_eq!(reply.value().unwrap().value, serde_json::json!({"title": "The ho"}));
/// reply.push(r#"bbit", "year": 19"#);
/// assert_eq!(reply.value().unwrap().value, serde_json::json!({"title": "The hobbit"}));
/// reply.push("37}");
/// let whole = reply.value().unwrap();
/// assert_eq!((whole.value["year"].as_u64(), whole.open), (Some(1937), None));
/// ```
#[derive(Clone, Debug)]
pub struct PartialReply {
    ty: Type,
    state: State,
    /// Text before the value, as far as it may be the beginning of reasoning.
    head: String,
    bytes: usize,
    reader: Reader,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It may begin with reasoning.
    Head,
    /// In the reasoning.
    Reasoning,
    /// The value has not begun.
    Prose,
    Value,
    Whole,
    /// It is no value, or too long.
    Ended,
}

impl PartialReply {
    /// A reply of a type that has parts; `None` for others, which are there or not.
    pub fn of(ty: &Type) -> Option<PartialReply> {
        has_parts(ty).then(|| PartialReply {
            ty: ty.clone(),
            state: State::Head,
            head: String::new(),
            bytes: 0,
            reader: Reader::default(),
        })
    }

    /// Adds a piece of the reply. Returns true if the value may have grown.
    pub fn push(&mut self, piece: &str) -> bool {
        self.bytes = self.bytes.saturating_add(piece.len());
        if self.bytes > MAX_BYTES {
            self.state = State::Ended;
        }
        let mut grown = false;
        for c in piece.chars() {
            match self.state {
                State::Head => self.head(c),
                State::Reasoning => {
                    self.head.push(c);
                    if self.head.ends_with(REASONING.1) {
                        self.state = State::Prose;
                    }
                    // The end alone is looked for.
                    if self.head.len() > 256 {
                        let last = self.head.char_indices().rev().nth(REASONING.1.len());
                        self.head = self.head.split_off(last.map_or(0, |(at, _)| at));
                    }
                }
                State::Prose => self.prose(c),
                State::Value => {
                    grown = true;
                    self.value_char(c);
                }
                State::Whole | State::Ended => break,
            }
        }
        grown
    }

    fn head(&mut self, c: char) {
        if self.head.is_empty() && c.is_whitespace() {
            return;
        }
        self.head.push(c);
        if self.head == REASONING.0 {
            self.state = State::Reasoning;
        } else if !REASONING.0.starts_with(&*self.head) {
            self.state = State::Prose;
            for c in std::mem::take(&mut self.head).chars() {
                match self.state {
                    State::Prose => self.prose(c),
                    State::Value => self.value_char(c),
                    _ => {}
                }
            }
        }
    }

    /// Looks for the beginning of the value. One of an object is no beginning of a list, and none of a list
    /// one of an object, but for the object that an answer is wrapped in.
    fn prose(&mut self, c: char) {
        if c == '{' || c == '[' && !is_object(&self.ty) {
            self.reader = Reader::default();
            self.state = State::Value;
            self.value_char(c);
        }
    }

    fn value_char(&mut self, c: char) {
        match self.reader.push(c) {
            Ok(()) if self.reader.root.is_some() => self.state = State::Whole,
            Ok(()) => {}
            // It was prose with a bracket in it.
            Err(Broken) if self.reader.has_nothing() => self.state = State::Prose,
            Err(Broken) => self.state = State::Ended,
        }
    }

    /// The value so far; `None` if there is none yet.
    pub fn value(&self) -> Option<PartialValue> {
        if !matches!(self.state, State::Value | State::Whole) {
            return None;
        }
        let (json, path) = self.reader.snapshot()?;
        let (mut json, mut open) = (json, if self.state == State::Whole { None } else { Some(&path[..]) });
        if !is_object(&self.ty)
            && let Json::Object(fields) = &mut json
        {
            // Only what an answer is wrapped in has this field alone.
            let is_wrapper = fields.len() == 1 && fields.contains_key(WRAPPER);
            if is_wrapper {
                json = fields.remove(WRAPPER)?;
                open = match open {
                    Some([_, rest @ ..]) => Some(rest),
                    // The wrapper is whole but for its end.
                    _ => None,
                };
            } else if !matches!(base(&self.ty), Type::Dyn) {
                return None;
            }
        }
        if open.is_none()
            && let Ok(data) = self.ty.read(&json)
            && self.ty.check(&data).is_ok()
        {
            return Some(PartialValue { value: data.to_json(), open: None });
        }
        let value = shown(&json, open, &self.ty)?;
        // What the type does not take as a whole is never whole.
        Some(PartialValue { value, open: Some(open.map_or_else(Vec::new, <[_]>::to_vec)) })
    }
}

fn base(ty: &Type) -> &Type {
    match ty {
        Type::Refined(refined) => base(&refined.0),
        Type::Option(inner) => base(inner),
        other => other,
    }
}

/// Returns whether values of a type are objects in JSON.
fn is_object(ty: &Type) -> bool {
    matches!(base(ty), Type::Record(_) | Type::Map(_))
}

fn has_parts(ty: &Type) -> bool {
    matches!(base(ty), Type::Record(_) | Type::Map(_) | Type::List(_))
}

/// The part of a value that its type takes; `open` leads to what is being written in it.
fn shown(json: &Json, open: Option<&[PathStep]>, ty: &Type) -> Option<Json> {
    let within = |step: &PathStep| match open {
        Some([first, rest @ ..]) if first == step => Some(rest),
        _ => None,
    };
    match (ty, json) {
        (Type::Refined(refined), Json::Object(_) | Json::Array(_)) if open.is_some() => {
            shown(json, open, &refined.0)
        }
        (Type::Option(inner), _) if !json.is_null() => shown(json, open, inner),
        (Type::Str, Json::String(_)) => Some(json.clone()),
        (Type::Record(fields), Json::Object(all)) => {
            let mut out = Map::new();
            for (name, value) in all {
                let Some((_, ty)) = fields.iter().find(|(field, _)| **field == **name) else { continue };
                if let Some(value) = shown(value, within(&PathStep::Field(name.clone())), ty) {
                    out.insert(name.clone(), value);
                }
            }
            Some(Json::Object(out))
        }
        (Type::Map(of), Json::Object(all)) => {
            let mut out = Map::new();
            for (name, value) in all {
                if of.0.check(&Data::str(name.as_str())).is_ok()
                    && let Some(value) = shown(value, within(&PathStep::Field(name.clone())), &of.1)
                {
                    out.insert(name.clone(), value);
                }
            }
            Some(Json::Object(out))
        }
        (Type::List(item), Json::Array(all)) => {
            let items = all.iter().enumerate();
            // Behind one that is not shown none is: places would not be those of the whole list.
            let items = items.map_while(|(at, value)| shown(value, within(&PathStep::Item(at)), item));
            Some(Json::Array(items.collect()))
        }
        _ if open.is_some() => None,
        _ => {
            let data = ty.read(json).ok()?;
            ty.check(&data).ok()?;
            Some(data.to_json())
        }
    }
}

/// A text that is no JSON.
struct Broken;

/// Reads JSON character by character.
#[derive(Clone, Debug, Default)]
struct Reader {
    /// The value, once it is whole.
    root: Option<Json>,
    /// The lists and objects that are not closed, the outermost first.
    stack: Vec<Frame>,
    token: Token,
}

#[derive(Clone, Debug)]
enum Frame {
    Object { fields: Map<String, Json>, key: Option<String>, next: Next },
    List { items: Vec<Json>, next: Next },
}

/// Parts that may follow in a list or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The first item or key, or the end.
    First,
    /// A key of an object.
    Key,
    Colon,
    Value,
    /// A comma or the end.
    Comma,
}

#[derive(Clone, Debug, Default)]
enum Token {
    #[default]
    None,
    Text(Text),
    /// A number or a word.
    Scalar(String),
}

/// A text that is being read.
#[derive(Clone, Debug, Default)]
struct Text {
    is_key: bool,
    /// As it stands, without the quotes.
    raw: String,
    /// Length of the part of `raw` that ends with no escape.
    whole: usize,
    escape: Escape,
    /// True behind the first half of a pair.
    is_half: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum Escape {
    #[default]
    None,
    Slash,
    /// Digits of a code, and the code so far.
    Code(u8, u32),
}

impl Text {
    /// Adds a character. Returns true at the end of the text.
    fn push(&mut self, c: char) -> Result<bool, Broken> {
        match self.escape {
            Escape::None if c == '\\' => {
                self.raw.push(c);
                self.escape = Escape::Slash;
                return Ok(false);
            }
            Escape::None if self.is_half || u32::from(c) < 0x20 => return Err(Broken),
            Escape::None if c == '"' => return Ok(true),
            Escape::None => self.raw.push(c),
            Escape::Slash if c == 'u' => {
                self.raw.push(c);
                self.escape = Escape::Code(0, 0);
                return Ok(false);
            }
            Escape::Slash if self.is_half || !"\"\\/bfnrt".contains(c) => return Err(Broken),
            Escape::Slash => {
                self.raw.push(c);
                self.escape = Escape::None;
            }
            Escape::Code(count, code) => {
                let code = code * 16 + c.to_digit(16).ok_or(Broken)?;
                self.raw.push(c);
                if count < 3 {
                    self.escape = Escape::Code(count + 1, code);
                    return Ok(false);
                }
                self.escape = Escape::None;
                match (self.is_half, code) {
                    (true, 0xdc00..=0xdfff) => self.is_half = false,
                    (false, 0xd800..=0xdbff) => {
                        self.is_half = true;
                        return Ok(false);
                    }
                    (true, _) | (false, 0xdc00..=0xdfff) => return Err(Broken),
                    (false, _) => {}
                }
            }
        }
        self.whole = self.raw.len();
        Ok(false)
    }

    /// The text so far.
    fn text(&self) -> Option<String> {
        let raw = self.raw.get(..self.whole)?;
        serde_json::from_str(&format!("\"{raw}\"")).ok()
    }
}

impl Reader {
    /// Returns true if nothing was read that could be shown.
    fn has_nothing(&self) -> bool {
        match &self.stack[..] {
            [] => true,
            [Frame::Object { fields, key, .. }] => fields.is_empty() && key.is_none(),
            [Frame::List { items, .. }] => items.is_empty(),
            _ => false,
        }
    }

    fn push(&mut self, c: char) -> Result<(), Broken> {
        match &mut self.token {
            Token::Text(text) => {
                if text.push(c)? {
                    let (read, is_key) = (text.text().ok_or(Broken)?, text.is_key);
                    self.token = Token::None;
                    return if is_key { self.key(read) } else { self.put(Json::String(read)) };
                }
                return Ok(());
            }
            Token::Scalar(scalar) if !matches!(c, ',' | ']' | '}') && !c.is_ascii_whitespace() => {
                scalar.push(c);
                return Ok(());
            }
            Token::Scalar(scalar) => {
                let read = serde_json::from_str::<Json>(scalar).map_err(|_| Broken)?;
                self.token = Token::None;
                self.put(read)?;
            }
            Token::None => {}
        }
        if c.is_ascii_whitespace() {
            return Ok(());
        }
        self.structure(c)
    }

    fn structure(&mut self, c: char) -> Result<(), Broken> {
        let next = match self.stack.last_mut() {
            None => Next::Value,
            Some(Frame::Object { next, .. } | Frame::List { next, .. }) => *next,
        };
        let is_object = matches!(self.stack.last(), Some(Frame::Object { .. }));
        match (next, c) {
            (Next::First | Next::Key, '"') if is_object => {
                self.token = Token::Text(Text { is_key: true, ..Text::default() });
            }
            (Next::First | Next::Comma, '}') if is_object => self.close()?,
            (Next::First | Next::Comma, ']') if !is_object && !self.stack.is_empty() => self.close()?,
            (Next::Colon, ':') => self.set(Next::Value),
            (Next::Comma, ',') => self.set(if is_object { Next::Key } else { Next::Value }),
            (Next::First, _) if is_object => return Err(Broken),
            (Next::First | Next::Value, '{' | '[') => {
                if self.stack.len() == MAX_DEPTH {
                    return Err(Broken);
                }
                let next = Next::First;
                self.stack.push(match c {
                    '{' => Frame::Object { fields: Map::new(), key: None, next },
                    _ => Frame::List { items: Vec::new(), next },
                });
            }
            (Next::First | Next::Value, '"') => self.token = Token::Text(Text::default()),
            (Next::First | Next::Value, '-' | '0'..='9' | 't' | 'f' | 'n') => {
                self.token = Token::Scalar(c.to_string());
            }
            _ => return Err(Broken),
        }
        Ok(())
    }

    fn set(&mut self, to: Next) {
        if let Some(Frame::Object { next, .. } | Frame::List { next, .. }) = self.stack.last_mut() {
            *next = to;
        }
    }

    fn key(&mut self, read: String) -> Result<(), Broken> {
        match self.stack.last_mut() {
            // A name that is there twice would take back what was shown.
            Some(Frame::Object { fields, key, next }) if !fields.contains_key(&read) => {
                (*key, *next) = (Some(read), Next::Colon);
                Ok(())
            }
            _ => Err(Broken),
        }
    }

    /// Puts a whole value where it belongs.
    fn put(&mut self, value: Json) -> Result<(), Broken> {
        match self.stack.last_mut() {
            None => self.root = Some(value),
            Some(Frame::Object { fields, key, next }) => {
                fields.insert(key.take().ok_or(Broken)?, value);
                *next = Next::Comma;
            }
            Some(Frame::List { items, next }) => {
                items.push(value);
                *next = Next::Comma;
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), Broken> {
        let value = match self.stack.pop() {
            Some(Frame::Object { fields, .. }) => Json::Object(fields),
            Some(Frame::List { items, .. }) => Json::Array(items),
            None => return Err(Broken),
        };
        self.put(value)
    }

    /// The value so far, and the way to what is being written.
    fn snapshot(&self) -> Option<(Json, Vec<PathStep>)> {
        if let Some(root) = &self.root {
            return Some((root.clone(), Vec::new()));
        }
        let mut inner = match &self.token {
            Token::Text(text) if !text.is_key => Some(Json::String(text.text()?)),
            _ => None,
        };
        let is_written = inner.is_some() || matches!(self.token, Token::Scalar(_));
        let mut path = Vec::new();
        for (depth, frame) in self.stack.iter().enumerate().rev() {
            // What is being written is in the innermost one, or is it.
            let is_around = depth + 1 < self.stack.len() || is_written;
            inner = Some(match frame {
                Frame::Object { fields, key, .. } => {
                    let mut fields = fields.clone();
                    if let (Some(key), true) = (key, is_around) {
                        path.push(PathStep::Field(key.clone()));
                        if let Some(value) = inner {
                            fields.insert(key.clone(), value);
                        }
                    }
                    Json::Object(fields)
                }
                Frame::List { items, .. } => {
                    let mut items = items.clone();
                    if is_around {
                        path.push(PathStep::Item(items.len()));
                        items.extend(inner);
                    }
                    Json::Array(items)
                }
            });
        }
        path.reverse();
        inner.map(|value| (value, path))
    }
}
