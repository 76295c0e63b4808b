//! Answers of people to questions of MCP servers while a call of their tools was open.
//!
//! A call that is made again after an interruption gets them without asking again. Those of a call that has
//! its result are only a record.

use super::db::{Database, DbError, Statement};
use super::session::Session;
use super::writer::{Write, Written};
use super::{check, hash, parse, wire};
use core_ir::LabelSpec;
use machine::{Call, RequestId};
use serde_json::{Map, Value as Json, json};
use std::collections::HashMap;

/// Content of a form and the label of what the person wrote.
pub(super) type Content = (Map<String, Json>, LabelSpec);

/// Answers by the call and the question.
pub(super) type Elicited = HashMap<(RequestId, String), Content>;

/// Names a question within a call: its text, and how often it was asked.
pub(crate) fn token_of(question: &str, times: u32) -> String {
    hash(&format!("{times}\n{question}"))
}

/// A call as a text, which names it in questions.
pub(crate) fn shown_call(call: &Call) -> String {
    wire::request(call).to_string()
}

/// The answers in the journal for calls without a result.
pub(super) fn of(db: &dyn Database, run: &str) -> Result<Elicited, DbError> {
    let sql = "SELECT strand, number, token, answer, checksum FROM elicited WHERE run = ?1 AND NOT EXISTS (
            SELECT 1 FROM entries WHERE entries.run = elicited.run AND entries.strand = elicited.strand
                AND entries.number = elicited.number AND entries.response IS NOT NULL)";
    let rows = db.all(&Statement::new(sql).with(run), |r| {
        let (strand, number): (i64, i64) = (r.get(0)?, r.get(1)?);
        let (token, answer): (String, String) = (r.get(2)?, r.get(3)?);
        if r.get::<[u8; 16]>(4)? != checksum(strand, number, &token, &answer) {
            return Err(DbError::damaged());
        }
        let id = RequestId {
            strand: strand.cast_unsigned(),
            number: u32::try_from(number).map_err(|_| DbError::damaged())?,
        };
        let mut answer = parse(&answer).map_err(|_| DbError::damaged())?;
        let label = wire::read_label(&answer["label"]).map_err(|_| DbError::damaged())?;
        match answer["content"].take() {
            Json::Object(content) => Ok(((id, token), (content, label))),
            _ => Err(DbError::damaged()),
        }
    })?;
    Ok(rows.into_iter().collect())
}

/// The statement that writes an answer.
pub(super) fn insert(run: &str, id: RequestId, token: &str, answer: &Json) -> Statement {
    let (strand, number, answer) = (id.strand.cast_signed(), i64::from(id.number), answer.to_string());
    let checksum = checksum(strand, number, token, &answer);
    Statement::new(
        "INSERT INTO elicited (run, strand, number, token, answer, checksum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (run, strand, number, token)
         DO UPDATE SET answer = excluded.answer, checksum = excluded.checksum",
    )
    .with(run)
    .with(strand)
    .with(number)
    .with(token)
    .with(answer)
    .with(checksum)
}

fn checksum(strand: i64, number: i64, token: &str, answer: &str) -> [u8; 16] {
    let numbers = [strand, number].map(i64::to_le_bytes);
    check(&[Some(&numbers[0]), Some(&numbers[1]), Some(token.as_bytes()), Some(answer.as_bytes())])
}

impl Session {
    /// The answer that a person gave to a question before the run was interrupted.
    pub(crate) fn elicited(&self, id: RequestId, token: &str) -> Option<Content> {
        self.elicited.get(&(id, token.to_string())).cloned()
    }

    /// Writes the answer to a question, which must not go to the server before it is on the disk.
    pub(crate) fn keep_elicited(
        &self,
        id: RequestId,
        token: &str,
        content: &Map<String, Json>,
        label: &LabelSpec,
    ) -> Option<Written> {
        let answer = json!({ "content": content, "label": wire::label_json(label) });
        let write = Write::Elicited { id, token: token.into(), answer };
        self.writer.as_ref().map(|w| w.write(write))
    }
}
