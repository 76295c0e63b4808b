//! Receipts: signed files with what a third party needs to check a run.
//!
//! Entry points: [`Receipt::issue`] and [`Receipt::parse`], then [`Receipt::record`].
//!
//! A receipt has two lines: who signed, with the signature; and the body, a JSON object. The signature is of
//! the second line as it stands. A receipt may be for somebody who may not see everything: what is labeled
//! above a clearance is replaced by a commitment, a hash of it with a salt, and requests of whose existence
//! only others may know are left out. [`Openings`] hold what was left out, for whoever may see it.
//!
//! Invariant: of what is above the clearance nothing is in a receipt but such hashes, and one of the whole.
//! Invariant: reading a receipt ends on any input.

use super::{Check, Checker, Finding, FindingKind, Record, Unchecked, Verdict, Verification};
use core_ir::exchange::{data_from_json, data_json, label_json};
use core_ir::{Data, LabelSpec, Lattice};
use machine::{Config, RequestId, Response};
use runtime::{
    AFTER_RUN, Approvers, KeptEntry, KeptMessages, KeptQuestion, POLICY_CHANGED, POLICY_TEXT, PublicKey,
    REDACTED, RunStatus, SigningKey, hex, salt,
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use verify::{End, Replay};

/// Name of the format.
const FORMAT: &str = "entail-receipt";

/// The version of the format.
const VERSION: u64 = 1;

/// The largest receipt that is read, in bytes.
pub const MAX_BYTES: u64 = 256 << 20;

/// Reason why there is no receipt, or why it can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptError {
    /// The problem.
    pub message: String,
    /// The remedy, if there is one.
    pub help: Option<String>,
}

impl ReceiptError {
    fn new(message: impl Into<String>) -> ReceiptError {
        ReceiptError { message: message.into(), help: None }
    }
}

impl fmt::Display for ReceiptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReceiptError {}

/// Who signs a receipt, and when.
pub struct Signer<'a> {
    /// The key.
    pub key: &'a SigningKey,
    /// The time, in seconds since 1970.
    pub at: u64,
}

/// A receipt that was read.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// Name of who signed it, as they say.
    pub signer: String,
    /// The key that is said to have signed it.
    pub key: PublicKey,
    signature: Vec<u8>,
    text: String,
    body: Value,
}

/// The values that a receipt does not show.
#[derive(Clone, Debug)]
pub struct Openings(Value);

impl Openings {
    /// Reads openings.
    ///
    /// # Errors
    /// The text is none.
    pub fn parse(text: &str) -> Result<Openings, ReceiptError> {
        let json: Value = serde_json::from_str(text).unwrap_or_default();
        match json["format"] == "entail-openings" && json["full"].is_object() {
            true => Ok(Openings(json)),
            false => Err(ReceiptError::new("this is no file of openings")),
        }
    }
}

impl fmt::Display for Openings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.0)
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = json!({
            "format": FORMAT, "version": VERSION, "signer": self.signer, "key": self.key.to_string(),
            "signature": hex(&self.signature),
        });
        writeln!(f, "{head}\n{}", self.text)
    }
}

impl Receipt {
    /// Signs what was checked of a run. With a clearance, what is labeled above it is left out, and returned.
    ///
    /// # Errors
    /// Something is wrong with the run, it can't be run again, or the system gives no random numbers.
    pub fn issue(
        record: &Record,
        verification: &Verification,
        course: Option<(&Replay, &Config)>,
        clearance: Option<&LabelSpec>,
        signer: &Signer<'_>,
    ) -> Result<(Receipt, Option<Openings>), ReceiptError> {
        if verification.verdict() == Verdict::Refuted {
            return Err(ReceiptError::new("something is wrong with the run, so there is no receipt of it"));
        }
        let full = content(record);
        let report = verification.to_json();
        let mut body = json!({
            "format": FORMAT, "version": VERSION, "issued": signer.at, "clearance": clearance.map(label_json),
            "checks": report["checks"], "unknown": report["unknown"],
        });
        let openings = match clearance {
            None => {
                body["content"] = full;
                None
            }
            Some(clearance) => {
                let (replay, config) = course.ok_or_else(|| {
                    ReceiptError::new("the labels of the run are not known: it can't be run again")
                })?;
                let mut hiding = Hiding::new(config, clearance)?;
                body["content"] = hiding.content(&full, record, replay)?;
                body["full"] = hiding.commit(&full)?;
                // Steps say how many requests there were.
                body["unknown"] = json!([]);
                for check in body["checks"].as_array_mut().into_iter().flatten() {
                    check.as_object_mut().map(|check| check.remove("requests"));
                }
                Some(Openings(json!({"format": "entail-openings", "full": full, "salts": hiding.salts})))
            }
        };
        let text = body.to_string();
        let (signature, key) = (signer.key.sign_receipt(&text), signer.key.public());
        let signer = signer.key.name().to_string();
        Ok((Receipt { signer, key, signature, text, body }, openings))
    }

    /// Reads a receipt.
    ///
    /// # Errors
    /// The text is none.
    pub fn parse(text: &str) -> Result<Receipt, ReceiptError> {
        let none = || ReceiptError::new("this is no receipt of `entail verify --receipt`");
        let (head, rest) = text.split_once('\n').ok_or_else(none)?;
        let body_text = rest.strip_suffix('\n').unwrap_or(rest);
        let head: Value = serde_json::from_str(head).map_err(|_| none())?;
        if head["format"] != FORMAT {
            return Err(none());
        }
        if head["version"] != VERSION {
            let message = format!("this is a receipt of version {}, not {VERSION}", head["version"]);
            return Err(ReceiptError::new(message));
        }
        let key = head["key"].as_str().and_then(|key| key.parse().ok()).ok_or_else(none)?;
        let signature = head["signature"].as_str().and_then(unhex).ok_or_else(none)?;
        let body = serde_json::from_str(body_text)
            .map_err(|e| ReceiptError::new(format!("the body of the receipt is not JSON: {e}")))?;
        let signer = head["signer"].as_str().unwrap_or_default().to_string();
        Ok(Receipt { signer, key, signature, text: body_text.to_string(), body })
    }

    /// Returns true if something is left out of it.
    pub fn is_redacted(&self) -> bool {
        !self.body["clearance"].is_null()
    }

    /// The record that it is of, with what openings add; and the check of its signature. `trusted` is the key
    /// that the verifier knows, if it knows one.
    ///
    /// # Errors
    /// Its body is not that of a receipt, or the openings are of another one.
    pub fn record(
        &self,
        openings: Option<&Openings>,
        trusted: Option<&PublicKey>,
        approvers: Approvers,
    ) -> Result<(Record, Verification), ReceiptError> {
        let by = Checker::Signature;
        let mut signed = Verification { checks: Vec::new(), findings: Vec::new(), unchecked: Vec::new() };
        let mut wrong = |message: &str| {
            let finding = Finding { step: None, kind: FindingKind::Damaged, message: message.into() };
            signed.findings.push((by, finding));
        };
        if !self.key.verifies_receipt(&self.text, &self.signature) {
            wrong("the signature is not that of the receipt");
        }
        match trusted {
            Some(key) if *key != self.key => wrong("another key signed the receipt"),
            Some(_) => {}
            None => {
                let what = format!("whose key signed it: name the key of `{}` with `--key`", self.signer);
                signed.unchecked.push(Unchecked { by, step: None, what });
            }
        }
        let verdict = match (signed.findings.is_empty(), signed.unchecked.is_empty()) {
            (false, _) => Verdict::Refuted,
            (true, false) => Verdict::Unknown,
            (true, true) => Verdict::Verified,
        };
        signed.checks.push(Check { by, verdict, requests: 0, end: false, identity: None });
        let opened = match openings {
            Some(openings) => self.opened(openings)?,
            None => &self.body["content"],
        };
        let is_redacted = self.is_redacted() && openings.is_none();
        let steps = opened["settings"]["fuel"].as_u64().unwrap_or(0);
        if verdict != Verdict::Verified && steps > Config::default().fuel {
            let message =
                format!("the receipt asks for {steps} steps, and its signature is not known to be good");
            let help = Some(format!("name the key of `{}` with `--key`", self.signer));
            return Err(ReceiptError { message, help });
        }
        let record = read(opened, approvers, is_redacted)
            .ok_or_else(|| ReceiptError::new("the body of the receipt is not that of a run"))?;
        Ok((record, signed))
    }

    /// The whole content, if it is what the receipt commits to and shows parts of.
    fn opened<'a>(&self, openings: &'a Openings) -> Result<&'a Value, ReceiptError> {
        let other = || ReceiptError::new("the openings are not those of this receipt");
        let (full, salts) = (&openings.0["full"], &openings.0["salts"]);
        if !commits(&self.body["full"], full, salts) {
            return Err(other());
        }
        let shown = &self.body["content"];
        let parts = ["program", "policy", "name", "run", "input", "end"];
        let same = parts.into_iter().all(|part| shows(&shown[part], &full[part], salts));
        // What is shown are some of the requests, in their order.
        let mut all = full["entries"].as_array().into_iter().flatten();
        let mut each = shown["entries"].as_array().into_iter().flatten();
        let is_part = each.all(|entry| {
            all.any(|candidate| {
                let parts = ["strand", "request", "response", "model"];
                parts.into_iter().all(|part| shows(&entry[part], &candidate[part], salts))
            })
        });
        if same && is_part { Ok(full) } else { Err(other()) }
    }
}

/// The parts of a record, as JSON.
fn content(record: &Record) -> Value {
    let mut links: HashMap<[u8; 16], usize> = HashMap::new();
    let mut messages = Vec::new();
    let mut entries = Vec::new();
    for (id, entry) in &record.entries {
        // What was in flight is no answer.
        if entry.response.is_none() {
            continue;
        }
        let conversation =
            entry.conversation.and_then(|end| place(&record.messages, end, &mut links, &mut messages));
        entries.push(json!({
            "step": entry.step, "strand": format!("{:x}", id.strand), "number": id.number,
            "request": entry.request, "conversation": conversation, "response": entry.response,
            "model": entry.model, "question": record.questions.get(id).map(KeptQuestion::to_json),
        }));
    }
    entries.sort_by_key(|entry| entry["step"].as_u64());
    let settings: Map<String, Value> =
        ["seed", "fuel", "request", "planned", AFTER_RUN, POLICY_TEXT, POLICY_CHANGED]
            .into_iter()
            .filter_map(|name| Some((name.to_string(), record.settings.get(name)?.clone())))
            .collect();
    json!({
        "run": record.run, "name": record.name, "program": record.program, "settings": settings,
        "input": record.input.as_ref().map(data_json), "inputLabel": label_json(&record.input_label),
        "end": {"status": record.status.as_str(), "outcome": record.outcome}, "changedTo": record.changed_to,
        "messages": messages, "entries": entries,
    })
}

/// The place of a message among those that are written; it and those before it are added. Links are hashes of
/// what a receipt may not show, so none is written.
fn place(
    all: &KeptMessages,
    end: [u8; 16],
    places: &mut HashMap<[u8; 16], usize>,
    out: &mut Vec<Value>,
) -> Option<usize> {
    let mut new = Vec::new();
    let mut at = Some(end);
    while let Some(link) = at.filter(|link| !places.contains_key(link)) {
        let (before, body) = all.message(&link)?;
        new.push((link, before, body));
        at = before;
    }
    for (link, before, body) in new.into_iter().rev() {
        places.insert(link, out.len());
        out.push(json!({"before": before.and_then(|b| places.get(&b)), "body": body}));
    }
    places.get(&end).copied()
}

/// Reads what [`content`] writes.
fn read(content: &Value, approvers: Approvers, is_redacted: bool) -> Option<Record> {
    let text = |name: &str| content[name].as_str().map(String::from);
    let hidden = |value: &Value| value.get(REDACTED).is_some();
    let run = text("run")?;
    let mut messages = KeptMessages::default();
    let mut links = Vec::new();
    for message in content["messages"].as_array()? {
        let before = match message["before"].as_u64() {
            None => None,
            Some(n) => Some(*links.get(usize::try_from(n).ok()?)?),
        };
        links.push(messages.add(before, message["body"].as_str()?.to_string()));
    }
    let (mut entries, mut questions) = (BTreeMap::new(), HashMap::new());
    for entry in content["entries"].as_array()? {
        let strand = u64::from_str_radix(entry["strand"].as_str()?, 16).ok()?;
        let id = RequestId { strand, number: u32::try_from(entry["number"].as_u64()?).ok()? };
        let conversation = match entry["conversation"].as_u64() {
            None => None,
            Some(n) => Some(*links.get(usize::try_from(n).ok()?)?),
        };
        if !entry["question"].is_null() {
            questions.insert(id, KeptQuestion::from_json(&run, id, &entry["question"])?);
        }
        let kept = KeptEntry {
            step: entry["step"].as_u64()?,
            request: entry["request"].clone(),
            conversation,
            response: (!entry["response"].is_null()).then(|| entry["response"].clone()),
            model: entry["model"].as_str()?.to_string(),
        };
        entries.insert(id, kept);
    }
    let input = match &content["input"] {
        Value::Null => None,
        value if hidden(value) => None,
        value => Some(data_from_json(value).ok()?),
    };
    let label = &content["inputLabel"];
    let input_label = match (label.get("exact"), label["untrusted"].as_bool(), label["secret"].as_bool()) {
        (Some(exact), _, _) => LabelSpec::Exact(data_from_json(exact).ok()?),
        (None, Some(untrusted), Some(secret)) => LabelSpec::Axes { untrusted, secret },
        _ => return None,
    };
    let end = &content["end"];
    // An end that is not shown has no status.
    let status = match end.get("status") {
        None => RunStatus::Running,
        Some(word) => RunStatus::of(word.as_str()?)?,
    };
    let mut settings = content["settings"].clone();
    if hidden(&content["input"]) || hidden(&settings["request"]) {
        settings["hidden"] = true.into();
    }
    Some(Record {
        run,
        name: text("name")?,
        program: text("program")?,
        input,
        input_label,
        settings,
        status,
        outcome: end.get("outcome").filter(|outcome| !outcome.is_null()).cloned(),
        entries,
        messages,
        questions,
        changed_to: content["changedTo"].as_u64().unwrap_or(0),
        damage: Vec::new(),
        approvers,
        is_redacted,
    })
}

/// Leaves out of a content what is above a clearance.
struct Hiding {
    lattice: Lattice,
    clearance: core_ir::Label,
    /// The salt of each commitment, in hexadecimal digits.
    salts: Map<String, Value>,
}

impl Hiding {
    fn new(config: &Config, clearance: &LabelSpec) -> Result<Hiding, ReceiptError> {
        let mut lattice = Lattice::with_principals(config.lattice, &config.principals);
        let label = lattice.resolve(clearance);
        let clearance =
            label.ok_or_else(|| ReceiptError::new("the clearance is no label of the lattice of the run"))?;
        Ok(Hiding { lattice, clearance, salts: Map::new() })
    }

    /// Returns true if a label may be seen. One that the lattice does not have is above all others.
    fn sees(&mut self, label: &Data) -> bool {
        let label = self.lattice.label_of(label);
        label.is_some_and(|label| self.lattice.flows(label, self.clearance))
    }

    /// Returns true if a label in words may be seen.
    fn sees_spec(&mut self, label: &LabelSpec) -> bool {
        let label = self.lattice.resolve(label);
        label.is_some_and(|label| self.lattice.flows(label, self.clearance))
    }

    /// The commitment in place of a value.
    fn commit(&mut self, value: &Value) -> Result<Value, ReceiptError> {
        let salt = salt().map_err(|e| ReceiptError::new(e.to_string()))?;
        let salt = hex(&salt);
        let hash = commitment(&salt, value);
        self.salts.insert(hash.clone(), salt.into());
        Ok(json!({ REDACTED: hash }))
    }

    fn content(&mut self, full: &Value, record: &Record, course: &Replay) -> Result<Value, ReceiptError> {
        let mut shown = full.clone();
        if !self.sees_spec(&record.input_label) {
            shown["input"] = self.commit(&full["input"])?;
            if let Some(request) = full["settings"].get("request") {
                shown["settings"]["request"] = self.commit(request)?;
            }
        }
        let sees_end = match &course.end {
            End::Ended(Ok(value)) => self.sees_all(value),
            End::Ended(Err(_)) => course.error_label.as_ref().is_some_and(|label| self.sees(label)),
            // That it was left is known to whoever knows of its last request.
            End::Open | End::Wrong => true,
        };
        if !sees_end {
            shown["end"] = self.commit(&full["end"])?;
        }
        let steps: HashMap<(String, u64), &verify::Step> = course
            .steps
            .iter()
            .map(|s| ((format!("{:x}", s.id.strand), u64::from(s.id.number)), s))
            .collect();
        let (mut entries, mut numbers) = (Vec::new(), HashMap::new());
        for entry in full["entries"].as_array().into_iter().flatten() {
            let strand = entry["strand"].as_str().unwrap_or_default().to_string();
            let step = steps.get(&(strand.clone(), entry["number"].as_u64().unwrap_or(u64::MAX)));
            // Of what the program did not ask for, no label is known.
            let Some(step) = step.filter(|step| self.sees(&step.channel)) else { continue };
            let mut entry = entry.clone();
            if !self.sees(&step.inputs) {
                for part in ["args", "value"] {
                    if let Some(value) = entry["request"].get(part).cloned() {
                        entry["request"][part] = self.commit(&value)?;
                    }
                }
            }
            // The name of a question is a hash of everything in it.
            entry["question"] = Value::Null;
            let stated = match &step.response {
                Some(Response::LabeledTool(_, label) | Response::Edited { label, .. }) => {
                    self.sees_spec(label)
                }
                _ => true,
            };
            if !(stated && self.sees(&step.answer)) {
                let response = entry["response"].clone();
                entry["response"] = self.commit(&response)?;
                entry["model"] = "".into();
            }
            // Numbers tell how many there are that are not shown.
            let number: &mut u64 = numbers.entry(strand).or_default();
            entry["number"] = (*number).into();
            *number += 1;
            entries.push(entry);
            let step = entries.len();
            if let Some(entry) = entries.last_mut() {
                entry["step"] = step.into();
            }
        }
        // Steps that are not shown would count.
        shown["changedTo"] = 0.into();
        shown["messages"] = self.messages(full, &mut entries);
        shown["entries"] = entries.into();
        Ok(shown)
    }

    /// The messages of these entries alone.
    fn messages(&self, full: &Value, entries: &mut [Value]) -> Value {
        let all = full["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let (mut out, mut places): (Vec<Value>, HashMap<usize, usize>) = (Vec::new(), HashMap::new());
        for entry in entries {
            let Some(end) = entry["conversation"].as_u64().and_then(|n| usize::try_from(n).ok()) else {
                continue;
            };
            let mut new = Vec::new();
            let mut at = Some(end);
            while let Some(n) = at.filter(|n| !places.contains_key(n)) {
                new.push(n);
                at = all.get(n).and_then(|m| m["before"].as_u64()).and_then(|n| usize::try_from(n).ok());
            }
            for n in new.into_iter().rev() {
                let mut message = all.get(n).cloned().unwrap_or_default();
                let before = message["before"].as_u64().and_then(|n| usize::try_from(n).ok());
                message["before"] = before.and_then(|n| places.get(&n)).copied().into();
                places.insert(n, out.len());
                out.push(message);
            }
            entry["conversation"] = places.get(&end).copied().into();
        }
        out.into()
    }

    /// Returns true if a value may be seen with everything in it.
    fn sees_all(&mut self, value: &machine::Reified) -> bool {
        use machine::ReifiedKind as Kind;
        self.sees(&value.label)
            && match &value.kind {
                Kind::Scalar(_) => true,
                Kind::List(items) => items.iter().all(|item| self.sees_all(item)),
                Kind::Record(fields) | Kind::Args(_, fields) => fields.iter().all(|(_, v)| self.sees_all(v)),
                Kind::Pair(pair) => self.sees_all(&pair.0) && self.sees_all(&pair.1),
                Kind::Tag(_, payload) => self.sees_all(payload),
                Kind::Function(captured) => self.sees(captured),
                Kind::TooDeep => false,
            }
    }
}

/// The hash of a value with a salt.
fn commitment(salt: &str, value: &Value) -> String {
    let digest = Sha256::digest(format!("entail value 1\n{salt}\n{value}").as_bytes());
    format!("sha256:{}", hex(&digest))
}

/// Returns true if a commitment is one to a value.
fn commits(shown: &Value, value: &Value, salts: &Value) -> bool {
    let Some(hash) = shown.get(REDACTED).and_then(Value::as_str) else { return false };
    salts[hash].as_str().is_some_and(|salt| commitment(salt, value) == hash)
}

/// Returns true if what is shown is a value, but for commitments.
fn shows(shown: &Value, value: &Value, salts: &Value) -> bool {
    match (shown, value) {
        _ if shown.get(REDACTED).is_some() => commits(shown, value, salts),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| shows(v, w, salts)))
        }
        _ => shown == value,
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
