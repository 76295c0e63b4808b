//! Keeps a reply inside a JSON Schema: which tokens may follow, where in the
//! value the reply stands, and how to end it shortly.
//!
//! The grammar itself is `llguidance`'s. This module narrows the schema so
//! that a small model can't ramble, follows the reply's path through the
//! schema so that enums can be chosen by likelihood, and completes a reply
//! without the model when its budget is spent.
//!
//! Invariant: whatever text [`Grammar`] accepts as complete validates against
//! the schema it was made of. Narrowing only removes values.

use crate::Error;
use crate::channel::Choice;
use crate::tokens::Tokenizer;
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use toktrie::{InferenceCapabilities, SimpleVob, TokEnv};

/// Characters of a string whose schema sets no `maxLength`.
pub(crate) const MAX_STRING: usize = 240;

/// Levels of a schema.
const MAX_DEPTH: usize = 64;

/// Values in a schema, all told.
const MAX_NODES: usize = 20_000;

/// Characters of a number, where the schema can be met with no more.
const MAX_NUMBER: usize = 18;

/// Tokens that completing a reply may take.
const MAX_CLOSING: usize = 4096;

/// Keyword for the descriptions of an `enum`'s values, in their order. Not of JSON Schema.
const ENUM_DESCRIPTIONS: &str = "enumDescriptions";

/// Labels beyond which an enum is written like any value.
const MAX_LABELS: usize = 64;

/// Builds grammars for one tokenizer.
pub(crate) struct Grammars {
    factory: ParserFactory,
    tokenizer: Arc<Tokenizer>,
}

impl Grammars {
    pub(crate) fn new(tokenizer: Arc<Tokenizer>) -> Result<Grammars, Error> {
        let env: TokEnv = tokenizer.clone();
        let capabilities = InferenceCapabilities { ff_tokens: true, ..InferenceCapabilities::default() };
        let slices = llguidance::earley::SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(&env, capabilities, &slices)
            .map_err(|e| Error::unsupported(format!("tokenizer: {e}")))?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Grammars { factory, tokenizer })
    }

    /// A grammar for the values of `schema`, at the start of a reply.
    pub(crate) fn start(&self, schema: &Value) -> Result<Grammar, Error> {
        let mut guided = match narrow(schema)? {
            Value::Object(map) => map,
            Value::Bool(true) => Map::new(),
            _ => return Err(Error::schema("no value satisfies it")),
        };
        let options = json!({
            "whitespace_flexible": false,
            "json_allowed_escapes": "nrt\"\\",
        });
        guided.insert("x-guidance".into(), options);
        let grammar = TopLevelGrammar::from_json_schema(Value::Object(guided));
        let mut matcher = Matcher::new(self.factory.create_parser(grammar));
        if let Some(error) = matcher.get_error() {
            return Err(Error::schema(first_line(&error)));
        }
        // Some contradictions appear only when the first token is requested.
        matcher.compute_mask().map_err(failed)?;
        Ok(Grammar {
            matcher,
            schema: schema.clone(),
            tokenizer: self.tokenizer.clone(),
            text: Vec::new(),
            place: JsonPosition::default(),
        })
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::schema(first_line(&error.to_string()))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// A reply under construction.
pub(crate) struct Grammar {
    matcher: Matcher,
    schema: Value,
    tokenizer: Arc<Tokenizer>,
    text: Vec<u8>,
    place: JsonPosition,
}

impl Grammar {
    /// Returns true if nothing can follow.
    pub(crate) fn is_finished(&self) -> bool {
        self.matcher.is_stopped()
    }

    /// The reply so far. A character may be unfinished.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Tokens that must follow; they are consumed.
    pub(crate) fn forced(&mut self) -> Result<Vec<u32>, Error> {
        let tokens = self.matcher.compute_ff_tokens();
        self.consume(&tokens)?;
        Ok(tokens)
    }

    /// The likeliest of the tokens that may follow, which is not consumed.
    pub(crate) fn best(&mut self, logits: &[f32]) -> Result<u32, Error> {
        let allowed = self.matcher.compute_mask().map_err(failed)?;
        // Where the grammar admits nothing else, the length of a number is not limited.
        best_of(&allowed, logits, |token| self.is_modest(token))
            .or_else(|| best_of(&allowed, logits, |_| true))
            .ok_or_else(|| Error::schema("no token of the model's vocabulary can follow"))
    }

    /// Returns true if a number stays short and without exponent after a token: `1e999999999` is valid JSON,
    /// but expensive for readers with exact arithmetic.
    fn is_modest(&self, token: u32) -> bool {
        let Some(written) = self.place.number(&self.text) else {
            return true;
        };
        let bytes = self.tokenizer.bytes(token);
        let digits = bytes.iter().take_while(|byte| is_number_byte(**byte)).count();
        let exponent = bytes[..digits].iter().any(|byte| byte.eq_ignore_ascii_case(&b'e'));
        digits == 0 || !exponent && written + digits <= MAX_NUMBER
    }

    pub(crate) fn consume(&mut self, tokens: &[u32]) -> Result<(), Error> {
        self.matcher.consume_tokens(tokens).map_err(failed)?;
        for &token in tokens {
            for &byte in self.tokenizer.bytes(token) {
                self.text.push(byte);
                self.place.advance(byte, &self.text);
            }
        }
        Ok(())
    }

    /// Returns the values that fit the text so far if the reply is in an enum or a boolean. Fewer than two
    /// are no choice.
    pub(crate) fn choices(&self) -> Vec<Choice> {
        let Some(written) = self.place.scalar(&self.text) else {
            return Vec::new();
        };
        let Some(choices) = self.place.find(&self.schema).and_then(choices) else {
            return Vec::new();
        };
        let fitting: Vec<Choice> = choices
            .into_iter()
            .filter_map(|choice| {
                let rest = choice.rest.as_bytes().strip_prefix(written)?;
                let rest = std::str::from_utf8(rest).ok()?.to_owned();
                (!rest.is_empty()).then_some(Choice { rest, ..choice })
            })
            .collect();
        match fitting.len() {
            2..=MAX_LABELS => fitting,
            _ => Vec::new(),
        }
    }

    /// Name of what is chosen: the field that the reply is at, or the title of the whole schema. None in an
    /// item of a list: the input decides what is said of the whole, but not of which item.
    pub(crate) fn field(&self) -> Option<String> {
        if self.place.path.iter().any(|step| matches!(step, Step::Item(_))) {
            return None;
        }
        match self.place.path.last() {
            Some(Step::Field(name)) => serde_json::from_slice(name).ok(),
            _ => Some(title(&self.schema).to_owned()),
        }
    }

    /// Consumes `text`, which must be able to follow, and returns its tokens.
    pub(crate) fn write(&mut self, text: &str) -> Result<Vec<u32>, Error> {
        let tokens = self.tokenizer.encode(text);
        let fits = self.matcher.validate_tokens(&tokens).map_err(failed)?;
        if fits < tokens.len() {
            return Err(Error::schema(format!("`{text}` can't follow")));
        }
        self.consume(&tokens)?;
        Ok(tokens)
    }

    /// Completes the reply without the model: strings and lists end, fields
    /// that are still required get the plainest value.
    pub(crate) fn close(&mut self) -> Result<Vec<u32>, Error> {
        let mut written = Vec::new();
        let mut turn = 0;
        while !self.matcher.is_stopped() && !self.matcher.is_accepting().map_err(failed)? {
            if written.len() >= MAX_CLOSING {
                return Err(Error::schema("a value of it can't be completed shortly"));
            }
            let mut tokens = self.matcher.compute_ff_tokens();
            if tokens.is_empty() {
                let allowed = self.matcher.compute_mask().map_err(failed)?;
                let best = self
                    .plainest(&allowed, turn)
                    .ok_or_else(|| Error::schema("no token of the vocabulary can follow"))?;
                tokens.push(best);
                turn += 1;
            }
            self.consume(&tokens)?;
            written.extend(tokens);
        }
        Ok(written)
    }

    /// The allowed token that leads to the end soonest: by [`JsonPosition::closing`],
    /// then the shortest. Where that tells nothing, as in the middle of a
    /// pattern, `turn` picks a different one each time, so that a loop in the
    /// pattern is left.
    fn plainest(&self, allowed: &SimpleVob, turn: usize) -> Option<u32> {
        let mut best: Vec<u32> = Vec::new();
        let mut best_rank = (usize::MAX, usize::MAX);
        allowed.iter_set_entries(|token| {
            let token = token as u32;
            if let [first, rest @ ..] = self.tokenizer.bytes(token) {
                let rank = (rest.len(), self.place.closing(*first, turn));
                if rank < best_rank {
                    best_rank = rank;
                    best.clear();
                }
                if rank == best_rank {
                    best.push(token);
                }
            }
        });
        (!best.is_empty()).then(|| best[turn % best.len()])
    }
}

/// The allowed token of the highest logit; of several the first. What is not
/// a number counts as the lowest.
fn best_of(allowed: &SimpleVob, logits: &[f32], also: impl Fn(u32) -> bool) -> Option<u32> {
    let mut best: Option<(u32, f32)> = None;
    allowed.iter_set_entries(|token| {
        let Some(&logit) = logits.get(token) else {
            return;
        };
        let logit = if logit.is_nan() { f32::NEG_INFINITY } else { logit };
        if best.is_none_or(|(_, most)| logit > most) && also(token as u32) {
            best = Some((token as u32, logit));
        }
    });
    best.map(|(token, _)| token)
}

fn is_number_byte(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')
}

/// Position in a compact JSON text relative to its end.
///
/// Expects text that a grammar for JSON accepts.
#[derive(Debug, Default)]
struct JsonPosition {
    /// The containers that are open.
    path: Vec<Step>,
    state: State,
    /// Start of the current or expected scalar or key.
    start: usize,
}

#[derive(Debug)]
enum Step {
    /// In an object, at the value of this key (as written, with its quotes).
    Field(Vec<u8>),
    /// In an array, at the element of this index.
    Item(usize),
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A value is awaited.
    #[default]
    Value,
    /// In a number, `true`, `false` or `null`.
    Bare,
    /// In a string, perhaps after a backslash.
    Text { key: bool, escaped: bool },
    /// Right after `{` or a comma in an object.
    Key,
    /// A colon is awaited.
    Colon,
    /// A value is complete.
    After,
}

impl JsonPosition {
    /// Takes the last byte of `text`.
    fn advance(&mut self, byte: u8, text: &[u8]) {
        let end = text.len();
        match self.state {
            State::Value => match byte {
                b'{' => {
                    self.path.push(Step::Field(Vec::new()));
                    self.state = State::Key;
                    self.start = end;
                }
                b'[' => {
                    self.path.push(Step::Item(0));
                    self.start = end;
                }
                b']' => self.leave(),
                b'"' => self.begin(end, State::Text { key: false, escaped: false }),
                _ => self.begin(end, State::Bare),
            },
            State::Bare => {
                if matches!(byte, b',' | b']' | b'}') {
                    self.separate(byte, end);
                }
            }
            State::Text { key, escaped: true } => {
                self.state = State::Text { key, escaped: false };
            }
            State::Text { key, .. } => match byte {
                b'\\' => self.state = State::Text { key, escaped: true },
                b'"' if key => {
                    if let Some(Step::Field(name)) = self.path.last_mut() {
                        *name = text[self.start..].to_vec();
                    }
                    self.state = State::Colon;
                }
                b'"' => self.state = State::After,
                _ => {}
            },
            State::Key => match byte {
                b'"' => self.begin(end, State::Text { key: true, escaped: false }),
                _ => self.leave(),
            },
            State::Colon => {
                self.state = State::Value;
                self.start = end;
            }
            State::After => self.separate(byte, end),
        }
    }

    fn begin(&mut self, end: usize, state: State) {
        self.start = end - 1;
        self.state = state;
    }

    fn leave(&mut self) {
        self.path.pop();
        self.state = State::After;
    }

    fn separate(&mut self, byte: u8, end: usize) {
        if byte != b',' {
            return self.leave();
        }
        self.start = end;
        self.state = match self.path.last_mut() {
            Some(Step::Item(index)) => {
                *index += 1;
                State::Value
            }
            _ => State::Key,
        };
    }

    /// Characters of the number the text ends in, none if one may begin.
    fn number(&self, text: &[u8]) -> Option<usize> {
        match self.state {
            State::Value => Some(0),
            State::Bare if is_number_byte(text[self.start]) => Some(text.len() - self.start),
            _ => None,
        }
    }

    /// Returns the text written so far of the current or expected scalar value.
    fn scalar<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        match self.state {
            State::Value | State::Bare | State::Text { key: false, .. } => text.get(self.start..),
            _ => None,
        }
    }

    /// The schema of the value the text stands at, where it is plain to see.
    fn find<'s>(&self, root: &'s Value) -> Option<&'s Value> {
        let mut schema = resolve(root, root)?;
        for step in &self.path {
            let next = match step {
                Step::Field(name) => {
                    let name: String = serde_json::from_slice(name).ok()?;
                    schema.get("properties")?.get(&name)?
                }
                Step::Item(index) => match schema.get("prefixItems").and_then(Value::as_array) {
                    Some(first) if *index < first.len() => &first[*index],
                    _ => schema.get("items")?,
                },
            };
            schema = resolve(root, next)?;
        }
        Some(schema)
    }

    /// Returns the distance from the end of the reply after a byte; zero is closest.
    fn closing(&self, byte: u8, turn: usize) -> usize {
        let order: &[u8] = match self.state {
            State::Text { .. } => b"\"",
            State::Value => b"]\"0123456789nft[{-",
            State::Key | State::Colon => b"}\":",
            State::After => b"}],",
            // Digits in an order that leaves a run of zeros.
            State::Bare if turn % 16 < 8 => b"}],1234567890",
            State::Bare => b"}],",
        };
        order.iter().position(|b| *b == byte).unwrap_or(order.len())
    }
}

/// Follows local references, a bounded number of times.
fn resolve<'s>(root: &'s Value, mut schema: &'s Value) -> Option<&'s Value> {
    for _ in 0..MAX_DEPTH {
        let Some(reference) = schema.get("$ref") else {
            return Some(schema);
        };
        schema = root.pointer(reference.as_str()?.strip_prefix('#')?)?;
    }
    None
}

/// The values of an enum or a boolean, if each shows by itself where it ends.
fn choices(schema: &Value) -> Option<Vec<Choice>> {
    let choice = |value: &Value, name: Option<&str>, description: Option<&str>| Choice {
        rest: value.to_string(),
        name: name.map(str::to_owned),
        description: description.filter(|d| !d.is_empty()).map(str::to_owned),
    };
    if let Some(values) = schema.get("enum") {
        let described = descriptions(schema).chain(std::iter::repeat(None));
        let values = values.as_array()?.iter().zip(described);
        return values
            .map(|(value, description)| match value {
                Value::String(name) => Some(choice(value, Some(name), description)),
                // "Yes" and "no" tell nothing of a text.
                Value::Bool(_) | Value::Null => Some(choice(value, None, None)),
                _ => None,
            })
            .collect();
    }
    (schema.get("type")? == "boolean" && schema.get("const").is_none())
        .then(|| [true, false].map(|value| choice(&Value::Bool(value), None, None)).into())
}

/// The title of a schema, or a word that suits any.
pub(crate) fn title(schema: &Value) -> &str {
    schema.get("title").and_then(Value::as_str).filter(|t| !t.is_empty()).unwrap_or("kind")
}

/// The descriptions of an enum's values, in their order.
fn descriptions(schema: &Value) -> impl Iterator<Item = Option<&str>> {
    let all = schema.get(ENUM_DESCRIPTIONS).and_then(Value::as_array);
    all.into_iter().flatten().map(Value::as_str)
}

/// The values of a schema that is nothing but an enum of strings. They remain to be written without quotes.
pub(crate) fn string_enum(schema: &Value) -> Option<Vec<Choice>> {
    let map = schema.as_object()?;
    let values = map.get("enum")?.as_array()?;
    if !map.keys().all(|key| key == "enum" || is_annotation(key) || key == "type")
        || map.get("type").is_some_and(|t| t != "string")
        || !values.iter().all(|value| value.as_str().is_some_and(|label| !label.is_empty()))
    {
        return None;
    }
    let named = choices(schema)?.into_iter();
    let named: Vec<Choice> = named.filter_map(|c| Some(Choice { rest: c.name.clone()?, ..c })).collect();
    (!named.is_empty()).then_some(named)
}

/// If a schema admits every string up to a length: that length.
pub(crate) fn plain_string(schema: &Value) -> Option<usize> {
    let map = schema.as_object()?;
    if map.get("type")? != "string"
        || !map.keys().all(|key| key == "type" || key == "maxLength" || is_annotation(key))
    {
        return None;
    }
    match map.get("maxLength") {
        None => Some(usize::MAX),
        Some(most) => usize::try_from(most.as_u64()?).ok(),
    }
}

fn is_annotation(key: &str) -> bool {
    matches!(
        key,
        "$schema" | "$id" | "$comment" | "title" | "description" | "default" | "examples" | ENUM_DESCRIPTIONS
    )
}

/// Adds bounds to a schema where a small model would ramble: strings get a `maxLength`, objects with declared
/// fields no others.
fn narrow(schema: &Value) -> Result<Value, Error> {
    let mut nodes = 0;
    narrow_at(schema, 0, true, &mut nodes)
}

fn narrow_at(schema: &Value, depth: usize, whole: bool, nodes: &mut usize) -> Result<Value, Error> {
    let Value::Object(map) = schema else {
        return Ok(schema.clone());
    };
    *nodes += map.len() + 1;
    if depth > MAX_DEPTH || *nodes > MAX_NODES {
        return Err(Error::schema(format!(
            "it is deeper than {MAX_DEPTH} levels or larger than {MAX_NODES} nodes"
        )));
    }
    // Beside these, a bound here would act on values that they describe.
    let composed = ["$ref", "allOf", "anyOf", "oneOf"].iter().any(|key| map.contains_key(*key));
    let mut out = Map::new();
    // The grammar knows no keyword that JSON Schema does not have.
    for (key, value) in map.iter().filter(|(key, _)| *key != ENUM_DESCRIPTIONS) {
        let mut below = |value: &Value, whole| narrow_at(value, depth + 1, whole, nodes);
        let value = match (key.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(parts),
            ) => {
                let parts: Result<Map<String, Value>, Error> =
                    parts.iter().map(|(name, part)| Ok((name.clone(), below(part, true)?))).collect();
                Value::Object(parts?)
            }
            ("anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(parts)) => {
                Value::Array(parts.iter().map(|part| below(part, true)).collect::<Result<_, _>>()?)
            }
            ("allOf", Value::Array(parts)) => {
                Value::Array(parts.iter().map(|part| below(part, false)).collect::<Result<_, _>>()?)
            }
            ("items" | "additionalProperties" | "additionalItems", part) => below(part, true)?,
            ("enum" | "const" | "default" | "examples", value) => {
                check_size(value, depth, nodes)?;
                value.clone()
            }
            (_, value) => {
                check_size(value, depth, nodes)?;
                value.clone()
            }
        };
        out.insert(key.clone(), value);
    }
    if whole && !composed && !map.contains_key("enum") && !map.contains_key("const") {
        let is = |name: &str| match map.get("type") {
            Some(Value::String(only)) => only == name,
            Some(Value::Array(several)) => several.iter().any(|one| one == name),
            _ => false,
        };
        if is("string") && !["maxLength", "pattern", "format"].iter().any(|key| map.contains_key(*key)) {
            let least = map.get("minLength").and_then(Value::as_u64).unwrap_or(0);
            out.insert("maxLength".into(), json!(least.max(MAX_STRING as u64)));
        }
        let declared = |name: &Value| {
            let name = name.as_str().unwrap_or_default();
            map.get("properties").is_some_and(|all| all.get(name).is_some())
        };
        let required = map.get("required").and_then(Value::as_array);
        if map.contains_key("properties")
            && required.is_none_or(|names| names.iter().all(declared))
            && !["additionalProperties", "patternProperties", "minProperties", "unevaluatedProperties"]
                .iter()
                .any(|key| map.contains_key(*key))
        {
            out.insert("additionalProperties".into(), Value::Bool(false));
        }
    }
    Ok(Value::Object(out))
}

/// Refuses values inside a schema that are too deep or large to walk.
fn check_size(value: &Value, depth: usize, nodes: &mut usize) -> Result<(), Error> {
    let mut open = vec![(value, depth)];
    while let Some((value, depth)) = open.pop() {
        *nodes += 1;
        if depth > MAX_DEPTH || *nodes > MAX_NODES {
            return Err(Error::schema(format!(
                "it is deeper than {MAX_DEPTH} levels or larger than {MAX_NODES} nodes"
            )));
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(map) => open.extend(map.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}
