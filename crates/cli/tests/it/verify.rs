//! `entail verify`: it accepts what was run, and names the step of what was altered since.
//!
//! Alterations are made to real journals of real runs, of each kind at each step where the kind applies.
//! Whoever can write the file can compute its checksums as well, so most of them do: then the course of the
//! run alone tells.
//!
//! Tests with the extracted interpreter need `make -C proofs interpreter`; without it they say so.

use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PASSPHRASE: &str = "correct horse battery";

/// Questions one after another, each with the answer to the one before.
const CHAIN: &str = r#"
task ask(q: String) -> String by agent { prompt "question {q}" }
agent asker { prompt: "You answer.", tools: [] }
pipeline main(q: String) -> List[String] {
    let a = run ask with { q: q } by asker;
    let b = run ask with { q: a } by asker;
    let c = run ask with { q: b } by asker;
    return [a, b, c];
}
"#;

/// Tools and models in branches.
const BRANCHES: &str = r#"
tool pay(n: Number, note: String) -> String writes {}
task ask(n: Number) -> String by agent { prompt "question {n}" }
agent asker { prompt: "You answer.", tools: [] }
pipeline main(note: String) -> List[String] {
    let a = run ask with { n: 1 } by asker;
    parallel max_concurrency 2 {
        let p = run pay with { n: 1, note: note };
        let q = run pay with { n: 2, note: a };
    } join;
    let b = run ask with { n: 2 } by asker;
    let r = run pay with { n: 3, note: b };
    return [a, p, q, b, r];
}
"#;

/// An agent that works with a tool.
const AGENT: &str = r#"
tool look_up(word: String) -> String {}
agent reader { prompt: "You look words up.", tools: [look_up] }
task answer(question: String) -> String by agent { prompt "{question}" }
pipeline main(question: String) -> String {
    let text = run answer with { question: question } by reader;
    return text;
}
"#;

/// A call that somebody has to approve, and what follows if not.
const APPROVED: &str = r#"
tool pay(to: String, note: String) -> String writes {}
task ask(q: String) -> String by agent { prompt "{q}" }
agent asker { prompt: "You answer.", tools: [] }
pipeline main(to: String) -> String {
    let note = run ask with { q: "a note" } by asker;
    let paid = run pay with { to: to, note: note };
    return paid;
}
"#;

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.env("XDG_CONFIG_HOME", dir.join("config"));
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ENTAIL_API_KEY", "ENTAIL_BASE_URL", "ENTAIL_MODEL"] {
        command.env_remove(name);
    }
    command.args(args).current_dir(dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn entail_given(dir: &Path, args: &[&str], input: &str) -> (i32, String, String) {
    let mut child = command(dir, args).spawn().unwrap();
    // Nobody need read it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let out = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap_or(-1), text(out.stdout), text(out.stderr))
}

fn entail(dir: &Path, args: &[&str]) -> (i32, String, String) {
    entail_given(dir, args, "")
}

/// The interpreter, if it is built.
#[allow(clippy::print_stderr, reason = "whoever runs the tests should know that one was not run")]
fn interpreter() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proofs/Extract/entail-interpreter");
    if !path.exists() {
        eprintln!("SKIPPED: `make -C proofs interpreter` builds {}", path.display());
        return None;
    }
    Some(path.canonicalize().unwrap())
}

/// A journal with one run.
struct Kept {
    dir: tempfile::TempDir,
    run: String,
}

impl Kept {
    /// Runs a program on a script.
    fn of(program: &str, input: &str, script: &Value) -> Kept {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("p.agent"), program).unwrap();
        std::fs::write(dir.path().join("s.json"), script.to_string()).unwrap();
        let ran = entail(
            dir.path(),
            &["run", "p.agent", input, "--script", "s.json", "--journal", "j", "--format", "json"],
        );
        let run = serde_json::from_str::<Value>(&ran.1).unwrap()["run"].as_str().unwrap().to_string();
        assert_eq!(ran.0, 0, "{ran:?}");
        Kept { dir, run }
    }

    fn chain() -> Kept {
        Kept::of(CHAIN, "hello", &json!(["one", "two", "three"]))
    }

    fn branches() -> Kept {
        let pay = |result: &str| json!({"call": "pay", "result": result});
        let script = json!(["one", "two", pay("paid first"), pay("paid second"), pay("paid third")]);
        Kept::of(BRANCHES, "a note", &script)
    }

    fn agent() -> Kept {
        let look = |word: &str| json!({"tool": "look_up", "args": {"word": word}});
        let found = |text: &str| json!({"call": "look_up", "result": text});
        let script =
            json!([look("bee"), look("wax"), "bees make wax", found("an insect"), found("a matter")]);
        Kept::of(AGENT, "what do bees make?", &script)
    }

    /// A call that somebody with a key has approved or denied.
    fn decided(answer: &[&str]) -> Kept {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path();
        std::fs::write(at.join("p.agent"), APPROVED).unwrap();
        std::fs::write(at.join("policy.toml"), "[tools.pay]\napprove = true\n").unwrap();
        let script = json!(["rent", {"call": "pay", "result": "paid"}]);
        std::fs::write(at.join("s.json"), script.to_string()).unwrap();
        let key = entail_given(at, &["approve", "--new-key", "alice", "--passphrase-stdin"], PASSPHRASE);
        assert_eq!(key.0, 0, "{key:?}");
        std::fs::write(at.join("entail.toml"), &key.1).unwrap();
        let common = ["--script", "s.json", "--policy", "policy.toml", "--journal", "j", "--format", "json"];
        let left = entail(at, &[&["run", "p.agent", "bob", "--approvals", "leave"][..], &common].concat());
        let run = serde_json::from_str::<Value>(&left.1).unwrap()["run"].as_str().unwrap().to_string();
        let approve = ["approve", &run, "--journal", "j", "--passphrase-stdin"];
        let said = entail_given(at, &[&approve[..], answer].concat(), PASSPHRASE);
        assert_eq!(said.0, 0, "{said:?}");
        // The first reply is in the journal.
        std::fs::write(at.join("s.json"), json!([{"call": "pay", "result": "paid"}]).to_string()).unwrap();
        entail(at, &[&["run", "p.agent", "--resume", &run][..], &common].concat());
        Kept { dir, run }
    }

    fn database(&self) -> Connection {
        Connection::open(self.dir.path().join("j/journal.db")).unwrap()
    }

    fn verify_with(&self, journal: &Path, more: &[&str]) -> (i32, Value) {
        let journal = journal.to_str().unwrap();
        let args = [&["verify", &self.run, "--journal", journal, "--format", "json"][..], more].concat();
        let ran = entail(self.dir.path(), &args);
        let report = serde_json::from_str(&ran.1).unwrap_or_else(|_| panic!("{ran:?}"));
        (ran.0, report)
    }

    fn verify(&self, more: &[&str]) -> (i32, Value) {
        self.verify_with(Path::new("j"), more)
    }

    /// The verification of a copy that was altered.
    fn altered(&self, alter: impl FnOnce(&Connection)) -> (i32, Value) {
        let copy = tempfile::tempdir_in(self.dir.path()).unwrap();
        let file = copy.path().join("journal.db");
        self.database().execute("VACUUM INTO ?1", [file.to_str().unwrap()]).unwrap();
        let db = Connection::open(&file).unwrap();
        // What a copy does not keep.
        db.pragma_update(None, "journal_mode", "WAL").unwrap();
        alter(&db);
        drop(db);
        self.verify_with(copy.path(), &[])
    }

    /// The answered requests in the order of the answers.
    fn entries(&self) -> Vec<Entry> {
        let db = self.database();
        let sql = "SELECT step, strand, request, response FROM entries ORDER BY step";
        let mut query = db.prepare(sql).unwrap();
        let rows = query.query_map([], |r| {
            let (request, response): (String, String) = (r.get(2)?, r.get(3)?);
            let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            Ok(Entry {
                step: r.get(0)?,
                strand: r.get(1)?,
                request: json(&request),
                response: json(&response),
            })
        });
        rows.unwrap().map(Result::unwrap).collect()
    }
}

#[derive(Clone)]
struct Entry {
    step: i64,
    strand: i64,
    request: Value,
    response: Value,
}

/// The hash of the journal's rows.
fn hash(parts: &[Option<Vec<u8>>]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for part in parts {
        match part {
            None => hash.update([0]),
            Some(bytes) => {
                hash.update([1]);
                hash.update((bytes.len() as u64).to_le_bytes());
                hash.update(bytes);
            }
        }
    }
    hash.finalize()[..16].try_into().unwrap()
}

/// Gives all rows of entries the checksums that they need.
fn reseal(db: &Connection) {
    let sql = "SELECT rowid, request, conversation, response, model, usd, step, strand, number,
        input_tokens, output_tokens, micros, written FROM entries";
    let mut query = db.prepare(sql).unwrap();
    let rows: Vec<(i64, [u8; 16])> = query
        .query_map([], |r| {
            let text = |i| r.get::<_, Option<String>>(i).map(|t| t.map(String::into_bytes));
            let mut parts = vec![text(1)?, r.get::<_, Option<Vec<u8>>>(2)?, text(3)?, text(4)?, text(5)?];
            for i in 6..12 {
                parts.push(Some(r.get::<_, i64>(i)?.to_le_bytes().to_vec()));
            }
            parts.extend(r.get::<_, Option<i64>>(12)?.map(|time| Some(time.to_le_bytes().to_vec())));
            Ok((r.get(0)?, hash(&parts)))
        })
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for (row, sum) in rows {
        db.execute("UPDATE entries SET checksum = ?2 WHERE rowid = ?1", (row, &sum[..])).unwrap();
    }
}

/// Gives the run the digest that it needs.
fn reseal_run(db: &Connection) {
    let row = db.query_row("SELECT program, input, settings FROM runs", [], |r| {
        Ok([r.get::<_, String>(0)?, r.get(1)?, r.get(2)?])
    });
    let digest = hash(&row.unwrap().map(|text| Some(text.into_bytes())));
    let hex = digest.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    db.execute("UPDATE runs SET digest = ?1", [hex]).unwrap();
}

fn set_response(db: &Connection, step: i64, response: &Value) {
    let n = db.execute(
        "UPDATE entries SET response = ?2 WHERE step = ?1 AND response IS NOT NULL",
        (step, response.to_string()),
    );
    assert_eq!(n.unwrap(), 1);
}

/// A response that says something else.
fn other_answer(response: &Value) -> Value {
    let mut other = response.clone();
    let at = ["reply", "data", "args"].into_iter().find(|f| response.get(f).is_some());
    match at {
        Some("args") => other["args"] = json!({"word": "honey"}),
        Some(at) => other[at] = "something else".into(),
        None => other = json!({"error": "it was refused"}),
    }
    other
}

/// The steps that findings name, with their kinds.
fn findings(report: &Value) -> Vec<(Option<i64>, String)> {
    let of = |f: &Value| (f["step"].as_i64(), f["kind"].as_str().unwrap().to_string());
    report["findings"].as_array().unwrap().iter().map(of).collect()
}

/// Alterations that were tried, by kind.
#[derive(Default)]
struct Tally(BTreeMap<&'static str, u32>);

impl Tally {
    /// A copy of a journal was altered: it is refuted, and the step is named.
    #[track_caller]
    fn named(&mut self, kind: &'static str, (status, report): (i32, Value), step: Option<i64>, found: &str) {
        assert_eq!((status, &report["verdict"]), (1, &json!("refuted")), "{kind}: {report}");
        let named = findings(&report);
        assert!(named.contains(&(step, found.to_string())), "{kind}: {step:?} {found}, but {report}");
        *self.0.entry(kind).or_default() += 1;
    }
}

fn kept() -> [Kept; 4] {
    [Kept::chain(), Kept::branches(), Kept::agent(), Kept::decided(&["--yes"])]
}

#[test]
fn each_step_of_an_altered_journal_is_named() {
    let mut tally = Tally::default();
    for kept in kept() {
        let entries = kept.entries();
        let last = entries.len() as i64;
        let is_sequential = entries.iter().all(|e| e.strand == entries[0].strand);
        for (i, entry) in entries.iter().enumerate() {
            let step = Some(entry.step);
            let other = other_answer(&entry.response);
            let answered = kept.altered(|db| set_response(db, entry.step, &other));
            tally.named("an answer", answered, step, "damaged");

            let requested = kept.altered(|db| {
                let mut request = entry.request.clone();
                match request.get_mut("args") {
                    Some(args) => args.as_object_mut().unwrap().values_mut().for_each(|v| *v = "eve".into()),
                    None => request["purpose"] = "another".into(),
                }
                db.execute(
                    "UPDATE entries SET request = ?2 WHERE step = ?1",
                    (entry.step, request.to_string()),
                )
                .unwrap();
                reseal(db);
            });
            tally.named("a value of a request, with checksums", requested, step, "request");

            let dropped = kept.altered(|db| {
                db.execute("DELETE FROM entries WHERE step = ?1", [entry.step]).unwrap();
            });
            tally.named("a dropped step", dropped, step, "missing");

            let doubled = kept.altered(|db| {
                let columns = "request, conversation, response, model, input_tokens, output_tokens, usd, micros, checksum, written";
                let sql = format!(
                    "INSERT INTO entries (run, step, strand, number, {columns})
                     SELECT run, ?2, strand, (SELECT max(number) + 1 FROM entries WHERE strand = ?3), {columns}
                     FROM entries WHERE step = ?1"
                );
                db.execute(&sql, (entry.step, last + 1, entry.strand)).unwrap();
                reseal(db);
            });
            tally.named("a duplicated step, with checksums", doubled, Some(last + 1), "extra");

            // What comes of an altered answer is asked for in a later step, or is the result.
            if entry.request["kind"] != "approve" {
                let said = said(&entry.response);
                let later = entries[i + 1..].iter().find(|e| mentions(&kept, e, &said));
                let resealed = kept.altered(|db| {
                    set_response(db, entry.step, &other);
                    reseal(db);
                });
                match later {
                    Some(later) => {
                        tally.named("an answer, with checksums", resealed, Some(later.step), "request")
                    }
                    None => tally.named("a last answer, with checksums", resealed, None, "result"),
                }
            }
            if let Some(next) = entries.get(i + 1).filter(|_| is_sequential) {
                let swapped = kept.altered(|db| {
                    for (from, to) in [(entry.step, -1), (next.step, entry.step), (-1, next.step)] {
                        db.execute("UPDATE entries SET step = ?2 WHERE step = ?1", [from, to]).unwrap();
                    }
                    reseal(db);
                });
                tally.named("the order, with checksums", swapped, step, "order");
            }
        }
        let outcome = kept.altered(|db| {
            db.execute("UPDATE runs SET outcome = '\"mine\"'", []).unwrap();
        });
        tally.named("the result", outcome, None, "result");
        let status = kept.altered(|db| {
            db.execute("UPDATE runs SET status = 'failed'", []).unwrap();
        });
        tally.named("the status", status, None, "result");
        let program = kept.altered(|db| {
            db.execute("UPDATE runs SET program = program || ' '", []).unwrap();
        });
        tally.named("the program", program, None, "damaged");
        let input = kept.altered(|db| {
            for word in ["hello", "a note", "what do bees make?", "bob"] {
                db.execute("UPDATE runs SET input = replace(input, ?1, 'something else')", [word]).unwrap();
            }
            reseal_run(db);
        });
        let first = findings(&input.1).iter().find_map(|(step, _)| *step);
        tally.named("the input, with checksums", input, first, "request");
    }
    let all: u32 = tally.0.values().sum();
    assert!(all >= 100, "{:#?}", tally.0);
}

/// The text that an answer consists of.
fn said(response: &Value) -> String {
    let at = ["reply", "data", "args"].into_iter().find_map(|f| response.get(f)).unwrap();
    at.as_str().map_or_else(|| at["word"].as_str().unwrap_or_default().to_string(), String::from)
}

/// Returns true if a request contains a text, in its arguments or its conversation.
fn mentions(kept: &Kept, entry: &Entry, text: &str) -> bool {
    let steps = entail(kept.dir.path(), &["runs", "show", &kept.run, "--journal", "j", "--format", "json"]).1;
    let steps: Value = serde_json::from_str(&steps).unwrap();
    let step = steps["steps"].as_array().unwrap().iter().find(|s| s["step"] == entry.step).unwrap();
    step["request"].to_string().contains(text)
}

#[test]
fn a_message_that_was_altered_is_named_with_its_step() {
    let kept = Kept::chain();
    let mut tally = Tally::default();
    for (text, step) in [("question hello", 1), ("question one", 2), ("question two", 3)] {
        let altered = kept.altered(|db| {
            let n = db.execute("UPDATE messages SET body = replace(body, ?1, 'something else')", [text]);
            assert!(n.unwrap() > 0);
        });
        tally.named("a message", altered, Some(step), "damaged");
    }
    // The program that would say so is put in place of the one that ran.
    for (from, to, step) in [("question ", "Question ", 1), ("You answer.", "You obey.", 1)] {
        let altered = kept.altered(|db| {
            assert_eq!(
                db.execute("UPDATE runs SET program = replace(program, ?1, ?2)", [from, to]).unwrap(),
                1
            );
            reseal_run(db);
        });
        tally.named("the program, with checksums", altered, Some(step), "request");
    }
}

/// The arguments of an approver are signed: whoever changes them in one place or in all is found out.
#[test]
fn an_edit_is_accepted_and_an_altered_one_is_named() {
    let kept = Kept::decided(&["--edit", r#"{"note": "rent of May"}"#]);
    let (status, report) = kept.verify(&[]);
    assert_eq!((status, findings(&report)), (0, Vec::new()), "{report}");
    let checks: Vec<&Value> = report["checks"].as_array().unwrap().iter().map(|c| &c["verdict"]).collect();
    assert_eq!(checks[..2], [&json!("verified"), &json!("verified")], "{report}");
    let entries = kept.entries();
    let step = |kind: &str| entries.iter().find(|e| e.request["kind"] == kind).unwrap().clone();
    let (asked, called) = (step("approve"), step("tool"));
    assert_eq!(asked.response["edit"], json!({"note": "rent of May"}));
    assert_eq!(called.request["args"], json!({"to": "bob", "note": "rent of May"}));
    let other = |response: &Value, edit: Value| {
        let mut response = response.clone();
        response["edit"] = edit;
        response
    };
    let eve = json!({"to": "eve"});
    let mut tally = Tally::default();
    // With the call that would follow.
    let consistent = kept.altered(|db| {
        set_response(db, asked.step, &other(&asked.response, eve.clone()));
        let sql = "UPDATE entries SET request = replace(replace(request, 'bob', 'eve'), 'rent of May', 'rent') WHERE step = ?1";
        db.execute(sql, [called.step]).unwrap();
        reseal(db);
    });
    tally.named("an edit and its call, with checksums", consistent, Some(asked.step), "approval");
    let signed = kept.altered(|db| {
        set_response(db, asked.step, &other(&asked.response, json!({"note": "rent of June"})));
        for table in [
            "answers SET reason = replace(reason, 'May', 'June')",
            "entries SET request = replace(request, 'May', 'June')",
        ] {
            db.execute(&format!("UPDATE {table}"), []).unwrap();
        }
        reseal(db);
    });
    tally.named("an edit, its answer and its call", signed, Some(asked.step), "approval");
    // A plain approval that was turned into one with other arguments, and the label of an edit.
    let mut plain = asked.response.clone();
    let label = plain.as_object_mut().unwrap().remove("label").unwrap();
    assert_eq!(label, json!({"untrusted": false, "secret": false}));
    plain.as_object_mut().unwrap().remove("edit");
    let unedited = kept.altered(|db| {
        set_response(db, asked.step, &plain);
        db.execute(
            "UPDATE entries SET request = replace(request, 'rent of May', 'rent') WHERE step = ?1",
            [called.step],
        )
        .unwrap();
        reseal(db);
    });
    tally.named("an edit that was taken away", unedited, Some(asked.step), "approval");
    let relabeled = kept.altered(|db| {
        let mut response = asked.response.clone();
        response["label"]["untrusted"] = true.into();
        set_response(db, asked.step, &response);
        reseal(db);
    });
    tally.named("the label of an edit", relabeled, Some(asked.step), "approval");
    let approved = Kept::decided(&["--yes"]);
    let asked = approved.entries().into_iter().find(|e| e.request["kind"] == "approve").unwrap();
    let edited = approved.altered(|db| {
        let mut response = other(&asked.response, eve.clone());
        response["label"] = label.clone();
        set_response(db, asked.step, &response);
        db.execute(
            "UPDATE entries SET request = replace(request, 'bob', 'eve') WHERE request LIKE '%\"tool\",%'",
            [],
        )
        .unwrap();
        reseal(db);
    });
    tally.named("an edit that nobody made", edited, Some(asked.step), "approval");
}

#[test]
fn a_refusal_that_was_turned_into_a_call_is_named() {
    let kept = Kept::decided(&["--deny"]);
    let (status, report) = kept.verify(&[]);
    assert_ne!(report["verdict"], "refuted", "{report}");
    assert_eq!(status, 0);
    let entries = kept.entries();
    let asked = entries.iter().find(|e| e.request["kind"] == "approve").unwrap().clone();
    let mut tally = Tally::default();
    let call = |db: &Connection| {
        // A call of the tool behind the question, with its answer.
        let columns = "conversation, model, input_tokens, output_tokens, usd, micros, checksum, written";
        let sql = format!(
            "INSERT INTO entries (run, step, strand, number, request, response, {columns})
             SELECT run, step + 1, strand, number + 1, replace(request, 'approve', 'tool'), '{{\"data\":\"paid\"}}', {columns}
             FROM entries WHERE step = ?1"
        );
        db.execute(&sql, [asked.step]).unwrap();
        db.execute("UPDATE runs SET status = 'done', outcome = '\"paid\"'", []).unwrap();
    };
    // The approver is said to have approved.
    let by = json!({"by": {"name": "alice", "via": "key"}});
    let forged = kept.altered(|db| {
        set_response(db, asked.step, &by);
        call(db);
        reseal(db);
    });
    tally.named("a refusal", forged, Some(asked.step), "approval");
    // The refusal stays, and the call is made.
    let made = kept.altered(|db| {
        call(db);
        reseal(db);
    });
    tally.named("a call behind a refusal", made, Some(asked.step + 1), "extra");
    // The signed answer is for another call.
    let other = kept.altered(|db| {
        db.execute("UPDATE approvals SET args = replace(args, 'bob', 'eve')", []).unwrap();
    });
    tally.named("a question", other, Some(asked.step), "approval");
    let label = kept.altered(|db| {
        let n =
            db.execute("UPDATE approvals SET args = replace(args, '\"label\":[]', '\"label\":[\"S\"]')", []);
        assert_eq!(n.unwrap(), 1);
    });
    tally.named("the label of a question", label, Some(asked.step), "label");
    // Nobody is said to have decided: that can't be known, and is said.
    let nobody = kept.altered(|db| {
        set_response(db, asked.step, &json!({}));
        call(db);
        reseal(db);
    });
    assert_eq!(nobody.1["verdict"], "unknown", "{}", nobody.1);
    assert!(nobody.1["unknown"][0]["what"].as_str().unwrap().contains("nobody signed"), "{}", nobody.1);
}

#[test]
fn runs_are_verified_by_the_record_the_machine_and_the_interpreter() {
    let Some(interpreter) = interpreter() else { return };
    let interpreter = interpreter.to_str().unwrap();
    for kept in [
        Kept::chain(),
        Kept::branches(),
        Kept::agent(),
        Kept::decided(&["--yes"]),
        Kept::decided(&["--deny"]),
    ] {
        let (status, report) = kept.verify(&["--interpreter", interpreter, "--strict"]);
        assert_eq!((status, &report["verdict"]), (0, &json!("verified")), "{report}");
        let by: Vec<&str> =
            report["checks"].as_array().unwrap().iter().map(|c| c["by"].as_str().unwrap()).collect();
        assert_eq!(by, ["record", "machine", "interpreter"]);
        assert_eq!(report["checks"][2]["end"], true);
        assert!(report["checks"][2]["interpreter"].as_str().unwrap().starts_with("sha256:"), "{report}");
    }
}

#[test]
#[allow(clippy::print_stderr, reason = "whoever runs the tests should know that one was not run")]
fn without_the_interpreter_nothing_is_verified() {
    if Path::new(env!("CARGO_BIN_EXE_entail")).with_file_name("entail-interpreter").exists() {
        eprintln!("SKIPPED: the interpreter is beside the program");
        return;
    }
    let kept = Kept::chain();
    let (status, report) = kept.verify(&[]);
    assert_eq!((status, &report["verdict"]), (0, &json!("unknown")), "{report}");
    assert_eq!(
        report["checks"][1],
        json!({"by": "machine", "verdict": "verified", "requests": 3, "end": true})
    );
    assert!(report["unknown"][0]["what"].as_str().unwrap().contains("there is no interpreter"), "{report}");
    assert_eq!(kept.verify(&["--strict"]).0, 1);
    let at = kept.dir.path();
    let named = entail(at, &["verify", &kept.run, "--journal", "j", "--interpreter", "none"]);
    assert!(named.0 == 2 && named.2.contains("there is no interpreter `none`"), "{named:?}");
    // Another program is none.
    let wrong = entail(at, &["verify", &kept.run, "--journal", "j", "--interpreter", "/bin/true"]);
    assert!(wrong.0 == 2 && wrong.2.contains("can't be used as the interpreter"), "{wrong:?}");
    let absent = entail(at, &["verify", "ffff", "--journal", "j"]);
    assert!(absent.0 == 2 && absent.2.contains("run `ffff` not found"), "{absent:?}");
    let none = entail(at, &["verify", &kept.run, "--journal", "elsewhere"]);
    assert!(none.0 == 2 && none.2.contains("not found"), "{none:?}");
}

#[test]
fn a_run_that_was_stopped_is_checked_as_far_as_it_came() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("p.agent"), CHAIN).unwrap();
    std::fs::write(dir.path().join("s.json"), json!(["one", "two"]).to_string()).unwrap();
    let ran = entail(
        dir.path(),
        &[
            "run",
            "p.agent",
            "hello",
            "--script",
            "s.json",
            "--journal",
            "j",
            "--format",
            "json",
            "--max-calls",
            "2",
        ],
    );
    assert_eq!(ran.0, 1, "{ran:?}");
    let run = serde_json::from_str::<Value>(&ran.1).unwrap()["run"].as_str().unwrap().to_string();
    let kept = Kept { dir, run };
    let (status, report) = kept.verify(&[]);
    assert_eq!((status, &report["findings"]), (0, &json!([])), "{report}");
    assert_eq!(report["checks"][1]["requests"], 2, "{report}");
    assert_eq!(report["checks"][1]["end"], false, "{report}");
    let Some(interpreter) = interpreter() else { return };
    let (status, report) = kept.verify(&["--interpreter", interpreter.to_str().unwrap()]);
    assert_eq!((status, &report["verdict"]), (0, &json!("verified")), "{report}");
    assert_eq!(report["checks"][2]["end"], false, "{report}");
}

/// A tool whose result is secret, and a model that is not told it.
const SECRET: &str = r#"
tool salary(name: String) -> String {}
task ask(q: String) -> String by agent { prompt "question {q}" }
agent asker { prompt: "You answer.", tools: [] }
pipeline main(q: String) -> Obj{a: String, s: String} {
    let a = run ask with { q: q } by asker;
    let s = run salary with { name: a };
    return { a: a, s: s };
}
"#;

/// A folder with a run of which a part is secret, and a key to sign with.
fn with_secret() -> Kept {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    std::fs::write(at.join("p.agent"), SECRET).unwrap();
    std::fs::write(at.join("policy.toml"), "[tools.salary]\nresult = \"secret\"\n").unwrap();
    let script = json!(["bob", {"call": "salary", "result": "ninety-thousand"}]);
    std::fs::write(at.join("s.json"), script.to_string()).unwrap();
    let key = entail_given(at, &["approve", "--new-key", "alice", "--passphrase-stdin"], PASSPHRASE);
    assert_eq!(key.0, 0, "{key:?}");
    std::fs::write(at.join("entail.toml"), &key.1).unwrap();
    let args = ["run", "p.agent", "hello", "--script", "s.json", "--policy", "policy.toml", "--journal", "j"];
    let ran = entail(at, &[&args[..], &["--format", "json"]].concat());
    let run = serde_json::from_str::<Value>(&ran.1).unwrap()["run"].as_str().unwrap().to_string();
    Kept { dir, run }
}

impl Kept {
    /// Signs a receipt of the run.
    fn receipt(&self, file: &str, more: &[&str]) -> String {
        let args = ["verify", &self.run, "--journal", "j", "--receipt", file, "--passphrase-stdin"];
        let signed = entail_given(self.dir.path(), &[&args[..], more].concat(), PASSPHRASE);
        assert_eq!(signed.0, 0, "{signed:?}");
        std::fs::read_to_string(self.dir.path().join(file)).unwrap()
    }

    /// Checks a receipt.
    fn check(&self, file: &str, more: &[&str]) -> (i32, Value) {
        let ran = entail(self.dir.path(), &[&["verify", file, "--format", "json"], more].concat());
        let report = serde_json::from_str(&ran.1).unwrap_or_else(|_| panic!("{ran:?}"));
        (ran.0, report)
    }
}

/// The verdict of a check.
fn verdict<'a>(report: &'a Value, by: &str) -> &'a str {
    let check = report["checks"].as_array().unwrap().iter().find(|c| c["by"] == by);
    check.unwrap_or_else(|| panic!("{report}"))["verdict"].as_str().unwrap()
}

#[test]
fn a_receipt_is_checked_by_somebody_who_has_nothing_else() {
    let kept = with_secret();
    kept.receipt("full.receipt", &[]);
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::copy(kept.dir.path().join("full.receipt"), elsewhere.path().join("full.receipt")).unwrap();
    let settings = std::fs::read_to_string(kept.dir.path().join("entail.toml")).unwrap();
    let key = settings.split('"').nth(1).unwrap();
    let check = |more: &[&str]| {
        let ran = entail(elsewhere.path(), &[&["verify", "full.receipt", "--format", "json"], more].concat());
        (ran.0, serde_json::from_str::<Value>(&ran.1).unwrap_or_else(|_| panic!("{ran:?}")))
    };
    let (status, report) = check(&["--key", key]);
    assert_eq!(status, 0, "{report}");
    for by in ["signature", "record", "machine"] {
        assert_eq!(verdict(&report, by), "verified", "{report}");
    }
    // Whose key it is, the file can't say.
    let (_, report) = check(&[]);
    assert_eq!(verdict(&report, "signature"), "unknown", "{report}");
    let other =
        entail_given(elsewhere.path(), &["approve", "--new-key", "eve", "--passphrase-stdin"], PASSPHRASE);
    let (status, report) = check(&["--key", other.1.split('"').nth(1).unwrap()]);
    assert_eq!((status, verdict(&report, "signature")), (1, "refuted"), "{report}");
    if let Some(interpreter) = interpreter() {
        let (status, report) =
            check(&["--key", key, "--strict", "--interpreter", interpreter.to_str().unwrap()]);
        assert_eq!((status, &report["verdict"]), (0, &json!("verified")), "{report}");
    }
}

#[test]
fn a_receipt_has_nothing_above_its_clearance() {
    let kept = with_secret();
    let (full, public) = (
        kept.receipt("full.receipt", &[]),
        kept.receipt("public.receipt", &["--clearance", "untrusted", "--openings", "open.json"]),
    );
    let secret = "ninety-thousand";
    assert!(full.contains(secret) && !public.contains(secret), "{public}");
    // Nor a hash that tells it to whoever guesses: equal values have different commitments.
    let again = kept.receipt("again.receipt", &["--clearance", "untrusted"]);
    let commitments = |receipt: &str| -> Vec<String> {
        receipt.split(r#""$redacted":"sha256:"#).skip(1).map(|rest| rest[..64].to_string()).collect()
    };
    let (first, second) = (commitments(&public), commitments(&again));
    assert!(first.len() >= 3 && first.iter().all(|hash| !second.contains(hash)), "{first:?} {second:?}");
    // What is left is checked, and what is not shown is said not to be.
    let (status, report) = kept.check("public.receipt", &[]);
    assert_eq!((status, &report["verdict"]), (0, &json!("unknown")), "{report}");
    assert_eq!(verdict(&report, "signature"), "verified");
    let what = report["unknown"].to_string();
    assert!(what.contains("the receipt does not show"), "{report}");
    // Whoever may see it all opens it.
    let (_, report) = kept.check("public.receipt", &["--openings", "open.json"]);
    assert_eq!((verdict(&report, "machine"), &report["findings"]), ("verified", &json!([])), "{report}");
    assert_eq!(report["checks"][2]["requests"], 2);
    // Openings with another value are not those of the receipt.
    let open = std::fs::read_to_string(kept.dir.path().join("open.json")).unwrap();
    std::fs::write(kept.dir.path().join("other.json"), open.replace(secret, "ten-thousand")).unwrap();
    let other = entail(kept.dir.path(), &["verify", "public.receipt", "--openings", "other.json"]);
    assert!(other.0 == 2 && other.2.contains("the openings are not those of this receipt"), "{other:?}");
}

#[test]
fn a_request_that_may_not_be_known_of_is_not_in_a_receipt() {
    // The model is told the secret: that it is asked is as secret.
    let program = SECRET.replace(
        "let s = run salary with { name: a };",
        "let t = run salary with { name: a };\n    let s = run ask with { q: t } by asker;",
    );
    let kept = with_secret();
    std::fs::write(kept.dir.path().join("p.agent"), program).unwrap();
    let script = json!(["bob", {"call": "salary", "result": "ninety-thousand"}, "much"]);
    std::fs::write(kept.dir.path().join("s.json"), script.to_string()).unwrap();
    let args = ["run", "p.agent", "hello", "--script", "s.json", "--policy", "policy.toml", "--journal", "j"];
    let ran = entail(kept.dir.path(), &[&args[..], &["--format", "json"]].concat());
    let run = serde_json::from_str::<Value>(&ran.1).unwrap()["run"].as_str().unwrap().to_string();
    let kept = Kept { run, ..kept };
    let public = kept.receipt("public.receipt", &["--clearance", "untrusted", "--openings", "open.json"]);
    let body: Value = serde_json::from_str(public.lines().nth(1).unwrap()).unwrap();
    assert_eq!(body["content"]["entries"].as_array().unwrap().len(), 2, "{body}");
    assert!(!public.contains("much") && !public.contains("ninety"), "{public}");
    assert_eq!(kept.check("public.receipt", &[]).1["verdict"], "unknown");
    let (_, report) = kept.check("public.receipt", &["--openings", "open.json"]);
    assert_eq!(
        (verdict(&report, "machine"), &report["checks"][2]["requests"]),
        ("verified", &json!(3)),
        "{report}"
    );
}

#[test]
fn a_receipt_that_was_altered_is_refuted() {
    let kept = with_secret();
    let full = kept.receipt("full.receipt", &[]);
    let altered = |from: &str, to: &str| {
        assert!(full.contains(from), "{from}");
        std::fs::write(kept.dir.path().join("x.receipt"), full.replacen(from, to, 1)).unwrap();
        entail(kept.dir.path(), &["verify", "x.receipt", "--format", "json"])
    };
    for (from, to) in [
        ("ninety-thousand", "ten-thousand"),
        ("question ", "Question "),
        (r#""status":"done""#, r#""status":"failed""#),
        ("secret", "public"),
        (r#""verdict":"verified""#, r#""verdict":"unknown""#),
    ] {
        let ran = altered(from, to);
        let report: Value = serde_json::from_str(&ran.1).unwrap_or_else(|_| panic!("{from}: {ran:?}"));
        assert_eq!((ran.0, verdict(&report, "signature")), (1, "refuted"), "{from}: {report}");
    }
    // The name of another signer, whose key is known, does not help.
    let ran = altered(r#""signer":"alice""#, r#""signer":"bob""#);
    assert_eq!(ran.0, 0, "{ran:?}");
    // What is none is refused.
    for (from, to, why) in [
        ("entail-receipt", "another", "this is no receipt"),
        (r#""version":1"#, r#""version":9"#, "a receipt of version 9"),
        (r#""entries":["#, r#""entries":[3,"#, "is not that of a run"),
        (r#""before":null"#, r#""before":7"#, "is not that of a run"),
        (r#","issued""#, r#"[[,"issued""#, "is not JSON"),
    ] {
        let ran = altered(from, to);
        assert!(ran.0 == 2 && ran.1.contains(why), "{why}: {ran:?}");
    }
    let deep = format!("{}\n{}", full.lines().next().unwrap(), "[".repeat(100_000));
    std::fs::write(kept.dir.path().join("x.receipt"), deep).unwrap();
    assert_eq!(entail(kept.dir.path(), &["verify", "x.receipt"]).0, 2);
    // A receipt is not written over.
    let args = ["verify", &kept.run, "--journal", "j", "--receipt", "full.receipt", "--passphrase-stdin"];
    let again = entail_given(kept.dir.path(), &args, PASSPHRASE);
    assert!(again.0 == 2 && again.2.contains("full.receipt"), "{again:?}");
}
