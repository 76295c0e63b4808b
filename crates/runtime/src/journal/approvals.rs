//! Questions that wait for a person, in the file of the journal, so that they can be answered by another
//! process and after this one has ended.
//!
//! Entry points: [`ApprovalDesk`] for a run that asks, [`Journal::waiting`] and [`Journal::decide`] for
//! approvers.
//!
//! Whoever can write the file can write anything into it, the tools of the run among them. So a row counts
//! for nothing by being there. An answer counts if it is signed with a key that the run has known since it
//! began, or if it was given in the memory of the run's own process.
//!
//! Invariant: the name of a question covers all its content: the run, the request, the tool, the arguments
//! with their labels, and the time. An answer refers to that name, so it approves no other call, and a
//! repeated call is a new question.
//! Invariant: a question whose row does not match its name is ignored. So approvers always see the call that
//! they approve.
//! Invariant: a question that has expired can't be approved, nor can an approval be used that has.

use super::db::{Database, DbError, Row, Statement};
use super::{Journal, JournalError, JournalPlace, hash, now_millis, parse, signed, wire};
use crate::Approval;
use crate::approve::{Edit, Verdict};
use crate::keys::{Approvers, SigningKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use core_ir::exchange::data_json;
use core_ir::{Data, LabelSpec, Name};
use machine::RequestId;
use runs::{Decider, Via};
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Deletes the questions of a run, and their answers.
pub(super) fn forget(run: &str) -> [Statement; 2] {
    [
        "DELETE FROM answers WHERE token IN (SELECT token FROM approvals WHERE run = ?1)",
        "DELETE FROM approvals WHERE run = ?1",
    ]
    .map(|sql| Statement::new(sql).with(run))
}

/// A question that waits, or has waited, for an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// Names the question; a beginning of it that no other question has is enough.
    pub token: String,
    /// The run that asks.
    pub run: String,
    /// The request of the run.
    pub id: RequestId,
    /// The tool that it wants to call.
    pub tool: String,
    /// With which arguments: a list of objects with `name`, `value` and `label`.
    pub args: Json,
    /// Label of the decision to ask; null if it is not known.
    pub channel: Json,
    /// True if untrusted data decided that the call is made ([`Approval::is_decided`]); `None` if it is not
    /// known.
    pub is_decided: Option<bool>,
    /// Time of the question, in milliseconds since 1970.
    pub asked: i64,
    /// Until when it can be answered.
    pub expires: i64,
}

/// Decision of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The call may be made.
    Approve,
    /// The call may be made with these arguments in place of its own, by the names of their parameters.
    Edit(Vec<(Name, Data)>),
    /// It may not, and perhaps why.
    Deny(Option<String>),
}

impl Decision {
    /// The word for it.
    pub fn verdict(&self) -> &'static str {
        match self {
            Decision::Approve => "approved",
            Decision::Edit(_) => EDITED,
            Decision::Deny(_) => "denied",
        }
    }

    /// Returns what is stored in [`Answer`] beside the verdict: the arguments, or the reason.
    fn words(&self) -> Option<String> {
        match self {
            Decision::Approve => None,
            Decision::Edit(args) => Some(wire::edit_json(args).to_string()),
            Decision::Deny(reason) => reason.clone(),
        }
    }

    /// The decision of somebody whose words have this label.
    pub(super) fn result(self, label: &LabelSpec) -> Result<Option<Edit>, String> {
        match self {
            Decision::Approve => Ok(None),
            Decision::Edit(args) => Ok(Some(Edit { args, label: label.clone() })),
            Decision::Deny(None) => Err("it was refused".into()),
            Decision::Deny(Some(reason)) => Err(format!("it was refused: {reason}")),
        }
    }
}

/// Authority that makes an answer count.
#[derive(Clone, Debug)]
pub enum Authority<'a> {
    /// The signature of an approver whose public key the run knows. The answer goes into the journal, for any
    /// process.
    Key(&'a SigningKey),
    /// The process that answers is the one that the run is, or will be, in: the answer goes into its memory.
    Process {
        /// The memory, which the desk of the run shares: [`ApprovalDesk::with_answers`].
        answers: &'a Answers,
        /// Party that decided.
        by: Decider,
        /// Label of what this party writes.
        label: LabelSpec,
    },
}

/// Answers in the memory of a process, to questions of the runs in it. A clone is the same memory.
#[derive(Clone, Default)]
pub struct Answers(Arc<Mutex<HashMap<String, UnclaimedAnswer>>>);

/// An answer that its run has not taken yet.
struct UnclaimedAnswer {
    decision: Decision,
    by: Decider,
    label: LabelSpec,
    /// Time after which the answer expires, in milliseconds since 1970.
    expires: i64,
}

impl Answers {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, UnclaimedAnswer>> {
        // A panic while it was held leaves an answer that is there or not.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an answer, unless there is one.
    fn give(&self, token: &str, held: UnclaimedAnswer) -> bool {
        let mut all = self.lock();
        let now = now_millis();
        all.retain(|_, h| h.expires > now);
        if all.contains_key(token) {
            return false;
        }
        all.insert(token.to_string(), held);
        true
    }

    fn has(&self, token: &str) -> bool {
        self.lock().contains_key(token)
    }

    fn take(&self, token: &str) -> Option<Verdict> {
        let held = self.lock().remove(token)?;
        Some(Verdict { result: held.decision.result(&held.label), by: Some(held.by) })
    }
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock().keys()).finish()
    }
}

/// Verdict of an approval with other arguments.
const EDITED: &str = "edited";

/// Label of what approvers write whose keys are in the settings: it is trusted and public.
pub(super) const KEYS: LabelSpec = LabelSpec::BOTTOM;

/// A question of a run as its journal keeps it, with the answers to it.
#[derive(Clone, Debug)]
pub struct KeptQuestion {
    question: QuestionRow,
    answers: Vec<Answer>,
}

impl KeptQuestion {
    /// The tool that the run wants to call.
    pub fn tool(&self) -> &str {
        &self.question.tool
    }

    /// With which arguments: a list of objects with `name`, `value` and `label`.
    pub fn args(&self) -> Json {
        parse(&self.question.args).unwrap_or_default()
    }

    /// Label of the decision to ask; null if it is not known.
    pub fn channel(&self) -> Json {
        parse(&self.question.channel).unwrap_or_default()
    }

    /// Returns true if it is what the run wrote.
    pub fn is_intact(&self) -> bool {
        self.question.is_intact()
    }

    /// The decision of the first answer that one of these approvers signed, with its reason if it denies.
    pub fn signed(&self, approvers: &Approvers) -> Option<Result<Option<Edit>, String>> {
        let QuestionRow { token, asked, expires, .. } = &self.question;
        let of_question = self.answers.iter().filter(|answer| answer.token == *token);
        of_question
            .filter_map(|answer| answer.decision(approvers, *asked, *expires).ok())
            .map(|decision| decision.result(&KEYS))
            .next()
    }

    /// The question and its answers as JSON.
    pub fn to_json(&self) -> Json {
        let QuestionRow { token, tool, args, channel, is_decided, asked, expires, .. } = &self.question;
        let answer = |a: &Answer| {
            json!({"verdict": a.verdict, "reason": a.reason, "approver": a.approver, "decided": a.decided,
                "signature": BASE64.encode(&a.signature)})
        };
        json!({
            "token": token, "tool": tool, "args": args, "channel": channel, "decided": is_decided, "asked": asked,
            "expires": expires,
            "answers": self.answers.iter().map(answer).collect::<Json>(),
        })
    }

    /// Reads [`KeptQuestion::to_json`], for a request of a run.
    pub fn from_json(run: &str, id: RequestId, json: &Json) -> Option<KeptQuestion> {
        let text = |json: &Json, name: &str| json.get(name)?.as_str().map(String::from);
        let time = |json: &Json, name: &str| json.get(name)?.as_i64();
        let token = text(json, "token")?;
        let answer = |json: &Json| {
            Some(Answer {
                token: token.clone(),
                verdict: text(json, "verdict")?,
                reason: text(json, "reason"),
                approver: text(json, "approver")?,
                decided: time(json, "decided")?,
                signature: BASE64.decode(json.get("signature")?.as_str()?).ok()?,
            })
        };
        let answers = json.get("answers")?.as_array()?.iter().map(answer).collect::<Option<Vec<_>>>()?;
        let question = QuestionRow {
            run: run.to_string(),
            id,
            token: token.clone(),
            tool: text(json, "tool")?,
            args: text(json, "args")?,
            channel: text(json, "channel")?,
            is_decided: json.get("decided").and_then(Json::as_bool),
            asked: time(json, "asked")?,
            expires: time(json, "expires")?,
            used: true,
        };
        Some(KeptQuestion { question, answers })
    }
}

/// A row of the journal by which a call was to be approved, and which no approver wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forged {
    /// The run, if the row belongs to one.
    pub run: Option<String>,
    /// The question that the row names.
    pub token: String,
    /// The approver that the row names, if it names one.
    pub approver: Option<String>,
    /// Reason that the row counts as forged.
    pub why: Forgery,
}

/// Reason that a row counts as forged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// It names an unknown approver.
    Approver,
    /// The signature is not the approver's for these words.
    Signature,
    /// It was signed before the question was asked, or after it had expired.
    Time,
    /// There is no such question.
    NoQuestion,
    /// The question is not the one that the run asked: its row was changed.
    Question,
    /// The run is said to have been approved by a key, and no answer is signed.
    NoAnswer,
}

impl Forgery {
    /// The word for it in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Forgery::Approver => "approver",
            Forgery::Signature => "signature",
            Forgery::Time => "time",
            Forgery::NoQuestion => "no_question",
            Forgery::Question => "question",
            Forgery::NoAnswer => "no_answer",
        }
    }
}

/// A row of the table of answers.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) token: String,
    pub(super) verdict: String,
    /// The reason of a refusal; of an approval with other arguments, these as JSON.
    pub(super) reason: Option<String>,
    pub(super) approver: String,
    pub(super) decided: i64,
    pub(super) signature: Vec<u8>,
}

impl Answer {
    const COLUMNS: &str = "token, verdict, reason, approver, decided, signature";

    fn read(r: &Row<'_>) -> Result<Answer, DbError> {
        Ok(Answer {
            token: r.get(0)?,
            verdict: r.get(1)?,
            reason: r.get(2)?,
            approver: r.get(3)?,
            decided: r.get(4)?,
            signature: r.get(5)?,
        })
    }

    fn insert(&self) -> Statement {
        Statement::new(
            "INSERT INTO answers (token, verdict, reason, approver, decided, signature)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )
        .with(&*self.token)
        .with(&*self.verdict)
        .with(self.reason.as_deref())
        .with(&*self.approver)
        .with(self.decided)
        .with(self.signature.clone())
    }

    pub(super) fn signed(token: &str, decision: &Decision, decided: i64, key: &SigningKey) -> Answer {
        let mut answer = Answer {
            token: token.to_string(),
            verdict: decision.verdict().to_string(),
            reason: decision.words(),
            approver: key.name().to_string(),
            decided,
            signature: Vec::new(),
        };
        answer.signature = key.sign(&answer.message());
        answer
    }

    /// Returns the message that is signed. The first element keeps a signature for something else from being
    /// valid for an answer.
    fn message(&self) -> Vec<u8> {
        let all =
            json!(["entail approval 1", self.token, self.verdict, self.reason, self.approver, self.decided]);
        all.to_string().into_bytes()
    }

    /// Returns the decision of the answer, if an approver gave it while the question could be answered.
    pub(super) fn decision(
        &self,
        approvers: &Approvers,
        asked: i64,
        expires: i64,
    ) -> Result<Decision, Forgery> {
        let key = approvers.key(&self.approver).ok_or(Forgery::Approver)?;
        if !key.verifies(&self.message(), &self.signature) {
            return Err(Forgery::Signature);
        }
        if self.decided < asked || self.decided >= expires {
            return Err(Forgery::Time);
        }
        Ok(match &*self.verdict {
            "approved" => Decision::Approve,
            EDITED => match self.reason.as_deref().and_then(|args| wire::read_edit(&parse(args).ok()?)) {
                Some(args) => Decision::Edit(args),
                None => Decision::Deny(Some("its other arguments can't be read".into())),
            },
            _ => Decision::Deny(self.reason.clone()),
        })
    }
}

/// The answers to a question, the oldest first.
fn answers(db: &dyn Database, token: &str) -> Result<Vec<Answer>, DbError> {
    let sql = format!("SELECT {} FROM answers WHERE token = ?1 ORDER BY rowid", Answer::COLUMNS);
    db.all(&Statement::new(sql).with(token), Answer::read)
}

/// Returns the verdict of the first valid answer of an approver.
fn first_answer(
    db: &dyn Database,
    approvers: &Approvers,
    (token, asked, expires): (&str, i64, i64),
) -> Result<Option<Verdict>, DbError> {
    Ok(answers(db, token)?.into_iter().find_map(|answer| {
        let decision = answer.decision(approvers, asked, expires).ok()?;
        Some(Verdict { result: decision.result(&KEYS), by: Some(Decider::new(answer.approver, Via::Key)) })
    }))
}

/// A row of the table of questions.
#[derive(Clone, Debug)]
pub(super) struct QuestionRow {
    pub(super) run: String,
    pub(super) id: RequestId,
    pub(super) token: String,
    pub(super) tool: String,
    pub(super) args: String,
    pub(super) channel: String,
    pub(super) is_decided: Option<bool>,
    pub(super) asked: i64,
    pub(super) expires: i64,
    pub(super) used: bool,
}

impl QuestionRow {
    const COLUMNS: &str = "run, strand, number, token, tool, args, asked, expires, used IS NOT NULL, channel, \
         is_decided";

    fn read(r: &Row<'_>) -> Result<QuestionRow, DbError> {
        let strand = r.get::<i64>(1)?.cast_unsigned();
        Ok(QuestionRow {
            run: r.get(0)?,
            id: RequestId { strand, number: r.get(2)? },
            token: r.get(3)?,
            tool: r.get(4)?,
            args: r.get(5)?,
            asked: r.get(6)?,
            expires: r.get(7)?,
            used: r.get(8)?,
            channel: r.get(9)?,
            is_decided: r.get(10)?,
        })
    }

    /// The name of what it says.
    fn name(&self) -> String {
        let QuestionRow { run, id, tool, args, channel, is_decided, asked, .. } = self;
        let strand = format!("{:x}", id.strand);
        // Questions of before have no channel, or don't say what decided them.
        let said = match (channel.as_str(), is_decided) {
            ("", None) => json!([run, strand, id.number, tool, args, asked]),
            (channel, None) => json!([run, strand, id.number, tool, args, asked, channel]),
            (channel, Some(is)) => json!([run, strand, id.number, tool, args, asked, channel, is]),
        };
        hash(&said.to_string())
    }

    /// Returns whether the row is as the run wrote it.
    pub(super) fn is_intact(&self) -> bool {
        self.token == self.name()
    }

    pub(super) fn of(
        run: &str,
        id: RequestId,
        approval: &Approval,
        asked: i64,
        lifetime: i64,
    ) -> QuestionRow {
        let arg = |a: &crate::ApprovalArg| json!({"name": &*a.name, "value": data_json(&a.value), "label": data_json(&a.label)});
        let args: Json = approval.args.iter().map(arg).collect();
        let mut question = QuestionRow {
            run: run.to_string(),
            id,
            token: String::new(),
            tool: approval.tool.to_string(),
            args: args.to_string(),
            channel: data_json(&approval.channel).to_string(),
            is_decided: Some(approval.is_decided),
            asked,
            expires: asked.saturating_add(lifetime),
            used: false,
        };
        question.token = question.name();
        question
    }

    /// The row of a request.
    fn at(db: &dyn Database, run: &str, id: RequestId) -> Result<Option<QuestionRow>, DbError> {
        let sql = format!(
            "SELECT {} FROM approvals WHERE run = ?1 AND strand = ?2 AND number = ?3",
            QuestionRow::COLUMNS
        );
        let query = Statement::new(sql).with(run).with(id.strand.cast_signed()).with(id.number);
        db.first(&query, QuestionRow::read)
    }

    fn insert(&self) -> Statement {
        Statement::new(
            "INSERT INTO approvals (run, strand, number, token, tool, args, asked, expires, channel, is_decided)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )
        .with(&*self.run)
        .with(self.id.strand.cast_signed())
        .with(self.id.number)
        .with(&*self.token)
        .with(&*self.tool)
        .with(&*self.args)
        .with(self.asked)
        .with(self.expires)
        .with(&*self.channel)
        .with(self.is_decided.map(i64::from))
    }

    /// The first answer of an approver.
    fn answer(&self, db: &dyn Database, approvers: &Approvers) -> Result<Option<Verdict>, DbError> {
        first_answer(db, approvers, (&self.token, self.asked, self.expires))
    }

    pub(super) fn waiting(self) -> Waiting {
        let args = parse(&self.args).unwrap_or_default();
        let channel = parse(&self.channel).unwrap_or_default();
        let QuestionRow { run, id, token, tool, is_decided, asked, expires, .. } = self;
        Waiting { token, run, id, tool, args, channel, is_decided, asked, expires }
    }
}

/// The rows of questions under a condition.
fn questions(
    db: &dyn Database,
    condition: &str,
    values: impl FnOnce(Statement) -> Statement,
) -> Result<Vec<QuestionRow>, DbError> {
    let sql =
        format!("SELECT {} FROM approvals WHERE {condition} ORDER BY asked, token", QuestionRow::COLUMNS);
    db.all(&values(Statement::new(sql)), QuestionRow::read)
}

/// The questions of this name.
fn of_token(db: &dyn Database, token: &str) -> Result<Vec<QuestionRow>, DbError> {
    questions(db, "token = ?1", |query| query.with(token))
}

/// A question was answered.
fn used(token: &str, now: i64) -> Statement {
    Statement::new("UPDATE approvals SET used = ?2 WHERE token = ?1").with(token).with(now)
}

impl Approvers {
    /// Checks that the answers that this key signs count.
    pub(super) fn includes(&self, key: &SigningKey) -> Result<(), JournalError> {
        if self.key(key.name()) == Some(&key.public()) {
            return Ok(());
        }
        let what = format!("`{}` is not an approver or has another key", key.name());
        let help = format!(
            "add `[approvers.{}]` with `key = \"{}\"` to `entail.toml`; a run that has begun keeps the approvers that it had",
            key.name(),
            key.public()
        );
        Err(JournalError::new(what).with_help(help))
    }
}

impl Journal {
    /// With the approvers whose signed answers count. Without them none does.
    #[must_use]
    pub fn with_approvers(self, approvers: Approvers) -> Journal {
        Journal { approvers, ..self }
    }

    /// The questions of a run, with the answers to them.
    pub(super) fn kept_questions(&self, run: &str) -> Result<HashMap<RequestId, KeptQuestion>, DbError> {
        let rows = questions(&*self.db, "run = ?1", |query| query.with(run))?;
        let kept = |question: QuestionRow| {
            let answers = answers(&*self.db, &question.token)?;
            Ok((question.id, KeptQuestion { question, answers }))
        };
        rows.into_iter().map(kept).collect()
    }

    /// The questions of a run, or of all runs, that wait for an answer, the oldest first.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn waiting(&self, run: Option<&str>) -> Result<Vec<Waiting>, JournalError> {
        let read = || {
            let condition = "used IS NULL AND expires > ?1 AND (?2 IS NULL OR run = ?2)";
            let mut waiting = Vec::new();
            for question in questions(&*self.db, condition, |query| query.with(now_millis()).with(run))? {
                if question.is_intact() && question.answer(&*self.db, &self.approvers)?.is_none() {
                    waiting.push(question.waiting());
                }
            }
            Ok(waiting)
        };
        read().map_err(|e| self.failed(&e))
    }

    /// A question by its whole name, whether it waits or not.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn question(&self, token: &str) -> Result<Option<Waiting>, JournalError> {
        let found = of_token(&*self.db, token).map_err(|e| self.failed(&e))?;
        Ok(found.into_iter().find(QuestionRow::is_intact).map(QuestionRow::waiting))
    }

    /// Answers a question, once. A signed answer is written here, another one is handed to the run in memory.
    ///
    /// # Errors
    /// There is no such question, or it has expired, or it was answered before, or the key is that of no
    /// approver.
    pub fn decide(
        &mut self,
        token: &str,
        decision: &Decision,
        authority: &Authority<'_>,
    ) -> Result<(), JournalError> {
        let answered = || JournalError::new("the question has been answered already");
        let found = of_token(&*self.db, token).map_err(|e| self.failed(&e))?;
        let Some(question) = found.into_iter().find(QuestionRow::is_intact) else {
            return Err(JournalError::new("unknown question; the run may have moved on"));
        };
        let before = question.answer(&*self.db, &self.approvers).map_err(|e| self.failed(&e))?;
        if question.used || before.is_some() {
            return Err(answered());
        }
        // The clock of another machine may be behind.
        let now = now_millis().max(question.asked);
        if question.expires <= now {
            return Err(JournalError::new("the question has expired; resume the run to ask it again"));
        }
        match authority {
            Authority::Process { answers, by, label } => {
                let (decision, by, label) = (decision.clone(), by.clone(), label.clone());
                let held = UnclaimedAnswer { decision, by, label, expires: question.expires };
                if answers.give(token, held) { Ok(()) } else { Err(answered()) }
            }
            Authority::Key(key) => {
                self.approvers.includes(key)?;
                let answer = Answer::signed(token, decision, now, key);
                let mut write = vec![answer.insert()];
                write.extend(self.db.wake(token));
                let written = self.db.write(None, &write);
                written.map(|_| ()).map_err(|e| self.failed(&e))
            }
        }
    }

    /// The rows by which a call was to be approved, and which no approver wrote.
    pub(super) fn forged(&self) -> Result<Vec<Forged>, DbError> {
        let questions = questions(&*self.db, "TRUE", |query| query)?;
        let mut forged = Vec::new();
        let mut add = |run: Option<&str>, token: &str, approver: Option<String>, why| {
            forged.push(Forged { run: run.map(String::from), token: token.to_string(), approver, why });
        };
        for question in questions.iter().filter(|q| !q.is_intact()) {
            add(Some(&question.run), &question.token, None, Forgery::Question);
        }
        let sql = format!("SELECT {} FROM answers ORDER BY rowid", Answer::COLUMNS);
        for answer in self.db.all(&Statement::new(sql), Answer::read)? {
            let question = questions.iter().find(|q| q.token == answer.token && q.is_intact());
            let why = match question {
                None => Forgery::NoQuestion,
                Some(q) => match answer.decision(&self.approvers, q.asked, q.expires) {
                    Ok(_) => continue,
                    Err(why) => why,
                },
            };
            add(question.map(|q| &*q.run), &answer.token, Some(answer.approver), why);
        }
        // Answers that a run has recorded.
        let query = Statement::new(
            "SELECT run, strand, number, request, response FROM entries
             WHERE conversation IS NULL AND response IS NOT NULL",
        );
        let mut told = Vec::new();
        self.db.each(&query, &mut |r| {
            let (request, response): (String, String) = (r.get(3)?, r.get(4)?);
            if parse(&request).is_ok_and(|r| r["kind"] != "approve") {
                return Ok(());
            }
            let Ok(response) = parse(&response) else { return Ok(()) };
            if let Some(by) = wire::decider(&response).filter(|by| by.via == Via::Key) {
                let id = RequestId { strand: r.get::<i64>(1)?.cast_unsigned(), number: r.get(2)? };
                told.push((r.get::<String>(0)?, id, by, wire::approved(&response)));
            }
            Ok(())
        })?;
        for (run, id, by, recorded) in told {
            let question = questions.iter().find(|q| q.run == run && q.id == id && q.is_intact());
            let answer = question.map(|q| q.answer(&*self.db, &self.approvers)).transpose()?.flatten();
            if answer.is_none_or(|answer| answer.result.ok() != recorded) {
                let token = question.map_or("", |q| &q.token);
                add(Some(&run), token, Some(by.name), Forgery::NoAnswer);
            }
        }
        Ok(forged)
    }
}

/// Storage of a run's questions until they are answered.
#[derive(Clone)]
pub struct ApprovalDesk {
    place: JournalPlace,
    lifetime: Duration,
    stays: bool,
    /// Approvers whose signed answers count.
    approvers: Approvers,
    /// Answers given in this process.
    answers: Answers,
    journal: Arc<Mutex<Option<Journal>>>,
}

/// A question on the desk. What decides whether an answer counts is here, not in the file.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    token: String,
    /// Time of the question, in milliseconds since 1970.
    asked: i64,
    /// Time after which the question can't be answered.
    expires: i64,
}

impl ApprovalDesk {
    /// Interval between two checks of a run for new answers.
    const LOOK: Duration = Duration::from_millis(250);

    /// The desk of a journal. Questions can be answered for `lifetime`.
    pub fn new(journal: impl Into<JournalPlace>, lifetime: Duration) -> ApprovalDesk {
        ApprovalDesk {
            place: journal.into(),
            lifetime,
            stays: true,
            approvers: Approvers::default(),
            answers: Answers::default(),
            journal: Arc::default(),
        }
    }

    /// The run does not stay to wait: it ends, and is resumed when its question has been answered.
    #[must_use]
    pub fn leaving(self) -> ApprovalDesk {
        ApprovalDesk { stays: false, ..self }
    }

    /// With the approvers whose signed answers count, from now on and whatever the settings say later.
    #[must_use]
    pub fn with_approvers(self, approvers: Approvers) -> ApprovalDesk {
        ApprovalDesk { approvers, ..self }
    }

    /// With the memory into which this process answers.
    #[must_use]
    pub fn with_answers(self, answers: Answers) -> ApprovalDesk {
        ApprovalDesk { answers, ..self }
    }

    pub(crate) fn stays(&self) -> bool {
        self.stays
    }

    fn with<T>(&self, f: impl FnOnce(&dyn Database) -> Result<T, DbError>) -> Result<T, String> {
        let mut slot = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let journal = match &mut *slot {
            Some(journal) => journal,
            None => slot.insert(Journal::existing(&self.place).map_err(|e| e.message)?),
        };
        f(&*journal.db).map_err(|e| format!("the journal `{}` can't be used: {}", self.place, e.cause))
    }

    fn lifetime(&self) -> i64 {
        signed(u64::try_from(self.lifetime.as_millis()).unwrap_or(u64::MAX))
    }

    /// Puts a question on the desk. The same question of the same run that lies there already, and has not
    /// expired, is that one: it may have been answered while the run was away.
    pub(crate) fn put(&self, run: &str, id: RequestId, approval: &Approval) -> Result<Question, String> {
        let (now, lifetime) = (now_millis(), self.lifetime());
        let asked = |at| QuestionRow::of(run, id, approval, at, lifetime);
        let question = self.with(|db| {
            let mut write = Vec::new();
            if let Some(lying) = QuestionRow::at(db, run, id)? {
                let same = asked(lying.asked);
                if !lying.used && same.token == lying.token && same.asked <= now && same.expires > now {
                    return Ok(same);
                }
                // Expired questions, and those of an earlier version of the program, are deleted.
                write.push(Statement::new("DELETE FROM answers WHERE token = ?1").with(&lying.token));
                let delete =
                    Statement::new("DELETE FROM approvals WHERE run = ?1 AND strand = ?2 AND number = ?3");
                write.push(delete.with(run).with(id.strand.cast_signed()).with(id.number));
            }
            let question = asked(now);
            write.push(question.insert());
            db.write(None, &write)?;
            Ok(question)
        })?;
        Ok(Question { token: question.token, asked: question.asked, expires: question.expires })
    }

    /// The answer, if there is one that can be used; taking it is using it.
    pub(crate) fn take(&self, question: &Question) -> Option<Verdict> {
        let now = now_millis();
        if question.expires <= now {
            return Some(Verdict::refused("it was not approved in time"));
        }
        let looked = self.with(|db| {
            let found = match self.answers.take(&question.token) {
                Some(verdict) => Some(verdict),
                None => {
                    let about = (&*question.token, question.asked, question.expires);
                    first_answer(db, &self.approvers, about)?
                }
            };
            if found.is_some() {
                db.write(None, &[used(&question.token, now)])?;
            }
            Ok(found)
        });
        looked.unwrap_or_else(|why| Some(Verdict::refused(why)))
    }

    /// Returns the approval of this request that an approver has signed and that still holds, perhaps with
    /// other arguments. The journal's own record that the run was told so proves nothing: anyone who can
    /// write the journal can write it.
    pub(crate) fn signed(&self, run: &str, id: RequestId, approval: &Approval) -> Option<Option<Edit>> {
        let now = now_millis();
        let looked = self.with(|db| {
            let Some(lying) = QuestionRow::at(db, run, id)? else { return Ok(None) };
            let same = QuestionRow::of(run, id, approval, lying.asked, self.lifetime());
            if same.token != lying.token || same.expires <= now {
                return Ok(None);
            }
            Ok(same.answer(db, &self.approvers)?.and_then(|v| v.result.ok()))
        });
        looked.ok().flatten()
    }

    /// Notes that the question was answered elsewhere.
    pub(crate) fn note(&self, question: &Question) {
        // The answer itself is in the journal; that it does not show here as well is no reason to stop.
        let _ = self.with(|db| db.write(None, &[used(&question.token, now_millis())]));
    }

    /// Waits for the answer. The table is queried only after another connection has written to the database,
    /// so that very many questions can wait.
    pub(crate) async fn wait(&self, question: &Question) -> Verdict {
        loop {
            // Before looking, so that nothing is written unseen in between.
            let then = match self.version(question) {
                Ok(then) => then,
                Err(why) => return Verdict::refused(why),
            };
            if let Some(answer) = self.take(question) {
                return answer;
            }
            while self.version(question).is_ok_and(|now| now == then)
                && !self.answers.has(&question.token)
                && now_millis() < question.expires
            {
                tokio::time::sleep(Self::LOOK).await;
            }
        }
    }

    /// Returns a number that changes whenever another connection's answer becomes visible.
    fn version(&self, question: &Question) -> Result<i64, String> {
        self.with(|db| db.version(&question.token))
    }
}

impl fmt::Debug for ApprovalDesk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApprovalDesk")
            .field("place", &self.place)
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::path::Path;

    /// Length and time of the database and its log.
    fn files(journal: &Path) -> [(File, u64, std::time::SystemTime); 2] {
        [journal.to_path_buf(), journal.with_extension("db-wal")].map(|path| {
            let file = File::options().write(true).open(path).unwrap();
            let about = file.metadata().unwrap();
            (file, about.len(), about.modified().unwrap())
        })
    }

    /// A journal with a desk, and a key that the desk knows.
    struct ApprovalJournal {
        _dir: tempfile::TempDir,
        journal: Journal,
        desk: ApprovalDesk,
        key: SigningKey,
    }

    const ID: RequestId = RequestId { strand: 0, number: 1 };

    fn office() -> ApprovalJournal {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j.db");
        let key = SigningKey::generate("alice").unwrap();
        let approvers = Approvers::new([("alice".to_string(), key.public())]);
        let journal = Journal::open(&path).unwrap().with_approvers(approvers.clone());
        let desk = ApprovalDesk::new(&path, Duration::from_secs(3600)).with_approvers(approvers);
        ApprovalJournal { _dir: dir, journal, desk, key }
    }

    fn paying(whom: &str) -> Approval {
        let arg = crate::ApprovalArg {
            name: "to".into(),
            ty: core_ir::Type::Str,
            value: core_ir::Data::str(whom),
            label: core_ir::Data::list([]),
            chains: Vec::new(),
        };
        Approval { tool: "pay".into(), args: vec![arg], is_decided: false, channel: core_ir::Data::list([]) }
    }

    impl ApprovalJournal {
        fn put(&self, number: u32, whom: &str) -> Question {
            self.desk.put("r", RequestId { number, ..ID }, &paying(whom)).unwrap()
        }

        fn write(&self, answer: &Answer) {
            self.journal.db.write(None, &[answer.insert()]).unwrap();
        }

        fn forged(&self) -> Vec<Forgery> {
            self.journal.forged().unwrap().iter().map(|f| f.why).collect()
        }
    }

    /// Rows that a tool with access to the journal file can write. None of them counts as an answer: the
    /// question goes on waiting, and a check names them.
    #[test]
    fn rows_that_no_approver_signed_approve_nothing() {
        let office = office();
        let question = office.put(1, "bob");
        let now = now_millis();
        let mallory = SigningKey::generate("mallory").unwrap();
        let other = office.put(2, "eve");
        let of_other = Answer::signed(&other.token, &Decision::Approve, now, &office.key);
        let denial = Answer::signed(&question.token, &Decision::Deny(None), now, &office.key);
        let with_token = |token: &str, answer: &Answer| Answer {
            token: token.to_string(),
            verdict: "approved".into(),
            reason: None,
            approver: answer.approver.clone(),
            decided: answer.decided,
            signature: answer.signature.clone(),
        };
        let early = Answer::signed(&question.token, &Decision::Approve, question.asked - 1, &office.key);
        let late = Answer::signed(&question.token, &Decision::Approve, question.expires, &office.key);
        let stranger = Answer::signed(&question.token, &Decision::Approve, now, &mallory);
        let in_her_name = Answer::signed(&question.token, &Decision::Approve, now, &mallory.named("alice"));
        let unsigned = Answer { signature: Vec::new(), ..with_token(&question.token, &denial) };
        let forgeries = [
            (unsigned, Forgery::Signature),
            (in_her_name, Forgery::Signature),
            (with_token(&question.token, &denial), Forgery::Signature),
            (with_token(&question.token, &of_other), Forgery::Signature),
            (stranger, Forgery::Approver),
            (early, Forgery::Time),
            (late, Forgery::Time),
            (with_token("0123", &of_other), Forgery::NoQuestion),
        ];
        for (n, (answer, why)) in forgeries.iter().enumerate() {
            office.write(answer);
            assert_eq!(office.desk.take(&question), None, "{why:?}");
            assert_eq!(office.forged()[n], *why);
        }
        assert_eq!(office.journal.waiting(None).unwrap().len(), 2);
        // The approver is still heard.
        let ApprovalJournal { mut journal, desk, key, .. } = office;
        journal.decide(&question.token, &Decision::Approve, &Authority::Key(&key)).unwrap();
        assert_eq!(desk.take(&question).unwrap().result, Ok(None));
    }

    /// Other arguments are under the signature, and so is that there are some.
    #[test]
    fn nobody_changes_what_an_approver_wrote() {
        let mut office = office();
        let question = office.put(1, "bob");
        let to = |whom: &str| vec![("to".into(), Data::str(whom))];
        let edit = Decision::Edit(to("carol"));
        let signed = Answer::signed(&question.token, &edit, now_millis(), &office.key);
        let plain = Answer::signed(&question.token, &Decision::Approve, now_millis(), &office.key);
        let denial = Decision::Deny(Some(r#"{"to":"mallory"}"#.into()));
        let denied = Answer::signed(&question.token, &denial, now_millis(), &office.key);
        let other = Some(r#"{"to":"mallory"}"#.to_string());
        let forgeries = [
            Answer { reason: other.clone(), ..signed.clone() },
            Answer { verdict: "approved".into(), ..signed.clone() },
            Answer { verdict: "approved".into(), reason: None, ..signed.clone() },
            Answer { verdict: EDITED.into(), reason: other, ..plain },
            Answer { verdict: EDITED.into(), ..denied },
        ];
        for (n, answer) in forgeries.iter().enumerate() {
            office.write(answer);
            assert_eq!(office.desk.take(&question), None, "{answer:?}");
            assert_eq!(office.forged()[n], Forgery::Signature);
        }
        office.journal.decide(&question.token, &edit, &Authority::Key(&office.key)).unwrap();
        let twice = office.journal.decide(&question.token, &Decision::Approve, &Authority::Key(&office.key));
        assert!(twice.is_err());
        // As long as it holds, it is an approval of this call with these arguments.
        let approval = paying("bob");
        let found = office.desk.signed("r", ID, &approval);
        assert_eq!(found, Some(Some(Edit::trusted(to("carol")))));
        assert_eq!(office.desk.signed("r", ID, &paying("carol")), None);
        assert_eq!(office.desk.take(&question).unwrap().result, Ok(Some(Edit::trusted(to("carol")))));
    }

    #[test]
    fn an_answer_is_used_for_one_asking() {
        let mut office = office();
        let question = office.put(1, "bob");
        office.journal.decide(&question.token, &Decision::Approve, &Authority::Key(&office.key)).unwrap();
        let answer = answers(&*office.journal.db, &question.token).unwrap().pop().unwrap();
        assert_eq!(office.desk.take(&question).unwrap().result, Ok(None));
        // The same call, asked again: a copy of the row is an answer to what was asked before.
        while now_millis() == question.asked {}
        let again = office.put(1, "bob");
        assert_ne!(again.token, question.token);
        office.write(&answer);
        office.write(&Answer { token: again.token.clone(), ..answer });
        assert_eq!(office.desk.take(&again), None);
        assert_eq!(office.forged(), [Forgery::NoQuestion, Forgery::Signature]);
    }

    #[test]
    fn nobody_is_shown_another_call_than_the_one_that_they_answer() {
        let mut office = office();
        let question = office.put(1, "mallory");
        let shown = office.journal.waiting(None).unwrap();
        assert_eq!(shown[0].args[0]["value"], "mallory");
        let forge = Statement::new("UPDATE approvals SET args = replace(args, 'mallory', 'bob')");
        office.journal.db.write(None, &[forge]).unwrap();
        assert_eq!(office.journal.waiting(None).unwrap(), []);
        assert!(
            office.journal.decide(&question.token, &Decision::Approve, &Authority::Key(&office.key)).is_err()
        );
        assert_eq!((office.desk.take(&question), office.forged()), (None, vec![Forgery::Question]));
    }

    #[test]
    fn a_question_says_whether_untrusted_data_decided_the_call() {
        let office = office();
        let decided = Approval { is_decided: true, ..paying("bob") };
        office.desk.put("r", ID, &decided).unwrap();
        let shown = || office.journal.waiting(None).unwrap().iter().map(|w| w.is_decided).collect::<Vec<_>>();
        assert_eq!(shown(), [Some(true)]);
        let kept = office.journal.kept_questions("r").unwrap();
        let read = KeptQuestion::from_json("r", ID, &kept[&ID].to_json()).unwrap();
        assert!(read.is_intact());
        for other in ["0", "NULL"] {
            let forge = Statement::new(format!("UPDATE approvals SET is_decided = {other}"));
            office.journal.db.write(None, &[forge]).unwrap();
            assert_eq!((shown(), office.forged()), (Vec::new(), vec![Forgery::Question]), "{other}");
        }
        // A journal of before doesn't say it.
        let before =
            QuestionRow { is_decided: None, ..QuestionRow::of("r", ID, &decided, now_millis(), 9999) };
        let before = QuestionRow { token: before.name(), ..before };
        office.journal.db.write(None, &[Statement::new("DELETE FROM approvals"), before.insert()]).unwrap();
        assert_eq!(shown(), [None]);
    }

    #[test]
    fn an_answer_in_memory_is_taken_once_and_is_nowhere_else() {
        let mut office = office();
        let question = office.put(1, "bob");
        let answers = Answers::default();
        let by = Decider::new("carol", Via::Caller);
        let authority = Authority::Process { answers: &answers, by: by.clone(), label: KEYS };
        office.journal.decide(&question.token, &Decision::Approve, &authority).unwrap();
        assert!(office.journal.decide(&question.token, &Decision::Deny(None), &authority).is_err());
        assert_eq!(office.desk.take(&question), None, "another process");
        let desk = office.desk.clone().with_answers(answers.clone());
        assert_eq!(desk.take(&question), Some(Verdict { result: Ok(None), by: Some(by) }));
        assert_eq!(desk.take(&question), None);
        assert!(office.journal.decide(&question.token, &Decision::Deny(None), &authority).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_seen_that_the_files_do_not_show() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j.db");
        let key = SigningKey::generate("alice").unwrap();
        let approvers = Approvers::new([("alice".to_string(), key.public())]);
        let mut answers = Journal::open(&path).unwrap().with_approvers(approvers.clone());
        let desk = ApprovalDesk::new(&path, Duration::from_secs(3600)).with_approvers(approvers);
        let approval = Approval {
            tool: "pay".into(),
            args: Vec::new(),
            is_decided: false,
            channel: core_ir::Data::list([]),
        };
        let question = desk.put("r", RequestId { strand: 0, number: 1 }, &approval).unwrap();
        // The next write goes to the start of the log, which keeps its length.
        answers.db.each(&Statement::new("PRAGMA wal_checkpoint(RESTART)"), &mut |_| Ok(())).unwrap();
        let token = question.token.clone();
        let mut waits = tokio::spawn(async move { desk.wait(&question).await });
        assert!(tokio::time::timeout(ApprovalDesk::LOOK * 2, &mut waits).await.is_err());
        let before = files(&path);
        answers.decide(&token, &Decision::Approve, &Authority::Key(&key)).unwrap();
        for ((file, length, time), (_, now, _)) in before.iter().zip(files(&path)) {
            assert_eq!(*length, now);
            file.set_modified(*time).unwrap();
        }
        let answer = tokio::time::timeout(Duration::from_secs(60), waits).await;
        let by = Some(Decider::new("alice", Via::Key));
        assert_eq!(answer.unwrap().unwrap(), Verdict { result: Ok(None), by });
    }
}
