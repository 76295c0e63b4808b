//! Journaled steps a second, beside bare inserts of the same rows, on a Postgres server:
//! `cargo run --release -p runtime --no-default-features --features postgres --example journal_postgres
//! ADDRESS [RUNS] [STEPS]`.
//!
//! RUNS runs go on at once, each with STEPS answers of a model that answers at once. Then the rows of
//! `entries` are inserted again into a copy of the table, by eight clients (a journal has eight connections),
//! each row in a transaction of its own with a prepared statement. The database must be one that may be
//! written to: the schema `entail` gets the runs, and a table `bare` that is dropped again.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // It measures and prints; what can't go on may end it.

use core_ir::{Builder, Code, Data, Globals, ModelParams, Term};
use diagnostics::{FileId, Span};
use machine::{Config, Machine, Reply};
use runtime::{
    Answer, CancellationToken, Handlers, Journal, JournalPlace, Limits, ModelCall, Models, Price, Progress,
    Provider, RunIdentity, Tokens, Work,
};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio_postgres::NoTls;
use tokio_postgres::types::ToSql;

/// Clients of the bare inserts: the number of connections of a journal.
const CLIENTS: usize = 8;

const AT: Span = Span { file: FileId(0), start: 0, end: 0 };

/// Answers at once.
struct Model;

impl Provider for Model {
    fn name(&self) -> &str {
        "instant"
    }

    fn price(&self) -> Option<Price> {
        Some(Price::FREE)
    }

    fn ask(self: Arc<Self>, _: ModelCall, _: Progress) -> Work<Answer> {
        let reply = Reply::Text("an answer of some forty characters, as they are".into());
        Work::Now(Answer::new(Ok(reply), Tokens::new(100, 10)))
    }
}

/// A program that asks a model this number of times, each time anew.
fn program(steps: usize) -> Arc<Code> {
    let mut b = Builder::new();
    let asked = (0..steps).map(|n| {
        let prompt = b.lit("", AT);
        let model = b.add(Term::Llm(prompt, Arc::new(ModelParams::default())), AT);
        let question = b.lit(Data::str(format!("question {n} of the program")), AT);
        let ask = b.app(model, question, AT);
        b.add(Term::Fork(ask), AT)
    });
    let asked = asked.collect();
    let all = b.add(Term::List(asked), AT);
    b.finish(all, &Globals::none()).unwrap().into()
}

async fn journaled(place: JournalPlace, code: Arc<Code>, steps: u64) {
    let about = RunIdentity::new("bench", &code, None, serde_json::json!({}));
    let begin = move || Journal::open(&place).unwrap().begin(&about, &Default::default()).unwrap();
    let session = tokio::task::spawn_blocking(begin).await.unwrap();
    let mut handlers = Handlers::new(Models::only(Arc::new(Model)));
    handlers.journal = Some(Arc::new(Mutex::new(session)));
    let machine = Machine::new(code, None, Config::default());
    let (limits, stop) = (Limits::default(), CancellationToken::new());
    let report = runtime::run(machine, &handlers, &limits, &stop, &mut |_| {}).await;
    assert!(report.result.is_ok() && report.usage.model_calls == steps, "{report:?}");
}

/// Inserts every row of `entail.entries` into a copy of it. Gives their number and the seconds that it took.
async fn bare(address: &str) -> (usize, f64) {
    let connect = async || {
        let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
        tokio::spawn(async move { drop(connection.await) });
        client
    };
    let client = connect().await;
    let make =
        "DROP TABLE IF EXISTS entail.bare; CREATE TABLE entail.bare (LIKE entail.entries INCLUDING ALL)";
    client.batch_execute(make).await.unwrap();
    let rows = client.query("SELECT * FROM entail.entries", &[]).await.unwrap();
    let mut parts: Vec<Vec<_>> = (0..CLIENTS).map(|_| Vec::new()).collect();
    let count = rows.len();
    for (n, row) in rows.into_iter().enumerate() {
        parts[n % CLIENTS].push(row);
    }
    let mut ready = Vec::new();
    for part in parts {
        let client = connect().await;
        let insert =
            "INSERT INTO entail.bare VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
        let insert = client.prepare(insert).await.unwrap();
        ready.push((client, insert, part));
    }
    let began = Instant::now();
    let clients = ready.into_iter().map(|(client, insert, part)| {
        tokio::spawn(async move {
            for row in &part {
                let text = |n| row.get::<_, Option<String>>(n);
                let (number, bytes) = (|n| row.get::<_, i64>(n), |n| row.get::<_, Option<Vec<u8>>>(n));
                let values: [&(dyn ToSql + Sync); 13] = [
                    &text(0),
                    &number(1),
                    &number(2),
                    &number(3),
                    &text(4),
                    &bytes(5),
                    &text(6),
                    &text(7),
                    &number(8),
                    &number(9),
                    &text(10),
                    &number(11),
                    &bytes(12),
                ];
                client.execute(&insert, &values).await.unwrap();
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    let seconds = began.elapsed().as_secs_f64();
    client.batch_execute("DROP TABLE entail.bare").await.unwrap();
    (count, seconds)
}

/// Seconds of processor time of this process.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |n: usize| fields.get(n).and_then(|t| t.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

#[tokio::main]
async fn main() {
    let mut given = std::env::args().skip(1);
    let address = given.next().expect("the address of a database");
    let runs: usize = given.next().map_or(16, |n| n.parse().unwrap());
    let steps: usize = given.next().map_or(200, |n| n.parse().unwrap());
    let place = JournalPlace::named(address.as_ref(), None).unwrap();
    let opened = place.clone();
    tokio::task::spawn_blocking(move || drop(Journal::open(opened).unwrap())).await.unwrap();
    let code = program(steps);
    let (began, cpu) = (Instant::now(), processor_time());
    let all: Vec<_> =
        (0..runs).map(|_| tokio::spawn(journaled(place.clone(), code.clone(), steps as u64))).collect();
    for run in all {
        run.await.unwrap();
    }
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), processor_time() - cpu);
    let answers = (runs * steps) as f64;
    println!("{runs} runs, {steps} answers each");
    println!(
        "journaled: {:.0} answers a second, {:.2} ms of processor time each",
        answers / seconds,
        1e3 * cpu / answers
    );
    let (rows, seconds) = bare(&address).await;
    println!("bare inserts: {:.0} rows a second, {CLIENTS} clients", rows as f64 / seconds);
}
