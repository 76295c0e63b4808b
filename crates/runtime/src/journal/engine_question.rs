//! Questions whether a tool may be called, of runs whose answers an engine keeps.
//!
//! Entry point: [`EngineQuestion`]. It is the question of a journal ([`super::approvals`]) without a database
//! around it: the same name, and the same signed answers.
//!
//! Invariant: neither question nor answer proves anything by being kept by the engine. The question counts if
//! its name covers it, and the answer if an approver signed it for that name.

use super::approvals::{Answer, Decision, Forgery, KEYS, QuestionRow, Waiting};
use super::{JournalError, now_millis, signed};
use crate::Approval;
use crate::approve::Verdict;
use crate::keys::{Approvers, SigningKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use machine::RequestId;
use runs::{Decider, Via};
use serde_json::{Value as Json, json};
use std::time::Duration;

/// A question of a run that an engine keeps.
#[derive(Clone, Debug)]
pub struct EngineQuestion(QuestionRow);

impl EngineQuestion {
    /// The question whether this call may be made, asked at `asked` in milliseconds since 1970; `None` is
    /// now.
    pub(crate) fn new(
        run: &str,
        id: RequestId,
        approval: &Approval,
        asked: Option<i64>,
        lifetime: Duration,
    ) -> EngineQuestion {
        let lifetime = signed(u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX));
        EngineQuestion(QuestionRow::of(run, id, approval, asked.unwrap_or_else(now_millis), lifetime))
    }

    /// The question as JSON.
    pub fn to_json(&self) -> Json {
        let QuestionRow { run, id, token, tool, args, channel, is_decided, asked, expires, .. } = &self.0;
        json!({
            "run": run, "strand": format!("{:x}", id.strand), "number": id.number, "token": token, "tool": tool,
            "args": args, "channel": channel, "decided": is_decided, "asked": asked, "expires": expires,
        })
    }

    /// Reads [`EngineQuestion::to_json`]; `None` if it is not what a run wrote.
    pub fn from_json(json: &Json) -> Option<EngineQuestion> {
        let text = |name: &str| json.get(name)?.as_str().map(String::from);
        let time = |name: &str| json.get(name)?.as_i64();
        let number = json.get("number")?.as_u64().and_then(|n| u32::try_from(n).ok())?;
        let question = QuestionRow {
            run: text("run")?,
            id: RequestId { strand: u64::from_str_radix(&text("strand")?, 16).ok()?, number },
            token: text("token")?,
            tool: text("tool")?,
            args: text("args")?,
            channel: text("channel")?,
            is_decided: json.get("decided").and_then(Json::as_bool),
            asked: time("asked")?,
            expires: time("expires")?,
            used: false,
        };
        question.is_intact().then_some(EngineQuestion(question))
    }

    /// Time of the question, in milliseconds since 1970.
    pub(crate) fn asked(&self) -> i64 {
        self.0.asked
    }

    /// Time up to which it can be answered, in milliseconds since 1970.
    pub(crate) fn expires(&self) -> i64 {
        self.0.expires
    }

    /// Returns whether two questions are the same: of one request, about the same call, asked at one time.
    pub(crate) fn is(&self, other: &EngineQuestion) -> bool {
        self.0.token == other.0.token
    }

    /// The question for people.
    pub fn waiting(&self) -> Waiting {
        self.0.clone().waiting()
    }

    /// An answer, signed with the key of an approver, as text for the run, which reads it back.
    ///
    /// # Errors
    /// The question has expired, or the key is that of no approver.
    pub fn sign(
        &self,
        decision: &Decision,
        key: &SigningKey,
        approvers: &Approvers,
    ) -> Result<String, JournalError> {
        // The clock of another machine may be behind.
        let now = now_millis().max(self.0.asked);
        if self.0.expires <= now {
            return Err(JournalError::new("the question has expired"));
        }
        approvers.includes(key)?;
        let Answer { token, verdict, reason, approver, decided, signature } =
            Answer::signed(&self.0.token, decision, now, key);
        let answer = json!({
            "token": token, "verdict": verdict, "reason": reason, "approver": approver, "decided": decided,
            "signature": BASE64.encode(signature),
        });
        Ok(answer.to_string())
    }

    /// The verdict of an answer that one of these approvers signed, and when, in milliseconds since 1970.
    ///
    /// # Errors
    /// The answer counts for nothing, for this reason.
    pub(crate) fn verdict(&self, answer: &str, approvers: &Approvers) -> Result<(Verdict, i64), Forgery> {
        let answer = read_answer(answer).ok_or(Forgery::Signature)?;
        if answer.token != self.0.token {
            return Err(Forgery::NoQuestion);
        }
        let decision = answer.decision(approvers, self.0.asked, self.0.expires)?;
        let by = Some(Decider::new(answer.approver, Via::Key));
        Ok((Verdict { result: decision.result(&KEYS), by }, answer.decided))
    }

    /// Checks an answer before it is handed to the run.
    ///
    /// # Errors
    /// It counts for nothing, for this reason.
    pub fn check(&self, answer: &str, approvers: &Approvers) -> Result<(), Forgery> {
        self.verdict(answer, approvers).map(|_| ())
    }
}

fn read_answer(text: &str) -> Option<Answer> {
    let json: Json = serde_json::from_str(text).ok()?;
    let text = |name: &str| json.get(name)?.as_str().map(String::from);
    Some(Answer {
        token: text("token")?,
        verdict: text("verdict")?,
        reason: text("reason"),
        approver: text("approver")?,
        decided: json.get("decided")?.as_i64()?,
        signature: BASE64.decode(text("signature")?).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approve::Edit;
    use core_ir::Data;

    fn question(to: &str, asked: i64) -> EngineQuestion {
        let arg = crate::ApprovalArg {
            name: "to".into(),
            ty: core_ir::Type::Str,
            value: Data::str(to),
            label: Data::list([]),
            chains: Vec::new(),
        };
        let approval =
            Approval { tool: "pay".into(), args: vec![arg], is_decided: true, channel: Data::list([]) };
        let id = RequestId { strand: u64::MAX, number: 3 };
        EngineQuestion::new("r", id, &approval, Some(asked), Duration::from_secs(3600))
    }

    #[test]
    fn signed_answers_count_for_their_question_alone() {
        let key = SigningKey::generate("alice").unwrap();
        let approvers = Approvers::new([("alice".to_string(), key.public())]);
        let now = now_millis();
        let asked = question("bob", now);
        let read = EngineQuestion::from_json(&asked.to_json()).unwrap();
        let answer = read.sign(&Decision::Approve, &key, &approvers).unwrap();
        let (verdict, decided) = asked.verdict(&answer, &approvers).unwrap();
        assert_eq!((verdict.result, decided >= now), (Ok(None), true));
        let other = vec![("to".into(), Data::str("carol"))];
        let edited = read.sign(&Decision::Edit(other.clone()), &key, &approvers).unwrap();
        assert_eq!(asked.verdict(&edited, &approvers).unwrap().0.result, Ok(Some(Edit::trusted(other))));
        assert_eq!(asked.check(&edited.replace("carol", "mallory"), &approvers), Err(Forgery::Signature));
        let other = question("eve", now);
        assert_eq!(other.check(&answer, &approvers), Err(Forgery::NoQuestion));
        let forged = answer.replace(&asked.0.token, &other.0.token);
        assert_eq!(other.check(&forged, &approvers), Err(Forgery::Signature));
        assert_eq!(asked.check(&answer, &Approvers::default()), Err(Forgery::Approver));
        assert_eq!(asked.check("{}", &approvers), Err(Forgery::Signature));
        let stranger = SigningKey::generate("alice").unwrap();
        assert!(asked.sign(&Decision::Approve, &stranger, &approvers).is_err());
        assert!(question("bob", now - 3_600_000).sign(&Decision::Approve, &key, &approvers).is_err());
    }

    #[test]
    fn a_changed_question_is_none() {
        let mut json = question("bob", 1).to_json();
        json["args"] = json["args"].as_str().unwrap().replace("bob", "eve").into();
        assert!(EngineQuestion::from_json(&json).is_none());
    }
}
