//! Journals on a Postgres server: who holds a run, and what becomes of it when a process, a connection or the
//! server goes.

use super::{Ledger, SCRIPT, about, begin, handlers, pay, program, run, text, with};
use crate::support::postgres::PostgresServer;
use crate::support::program::{call, code, decl};
use core_ir::{Data, Type};
use machine::ErrorCode;
use runtime::{
    Approvers, Authority, Decision, Environment, Journal, JournalError, JournalPlace, LiveBoard, RunStatus,
    SigningKey, Tools, Unfinished,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The journal at an address.
pub(super) fn place(address: &str) -> JournalPlace {
    JournalPlace::named(address.as_ref(), None).unwrap()
}

/// The journal at an address whose leases are this short, as if opened by another process: the address
/// differs, so nothing in memory is shared.
fn other_process(address: &str, lease: u32) -> JournalPlace {
    place(&format!("{address}&lease={lease}"))
}

fn refused(address: &str) -> JournalError {
    Journal::open(place(address)).map(|_| ()).unwrap_err()
}

#[tokio::test]
async fn a_process_that_lost_its_run_writes_nothing_more() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.fresh();
    let code = program("hello");
    let (old, new) = (place(&address), other_process(&address, 60));
    let session = begin(&old, &code);
    let id = session.id().to_string();
    let taken = || {
        Journal::existing(&new).unwrap().resume(
            &id,
            &about(&code),
            &Default::default(),
            false,
            Unfinished::Ask,
        )
    };
    let e = taken().map(|_| ()).unwrap_err();
    assert!(
        e.message.contains("another process executes run") && e.help.unwrap().contains("lease"),
        "{}",
        e.message
    );
    assert!(Journal::existing(&new).unwrap().is_at_work(&id));
    // As if it had not been renewed: the process was stopped, or cut off.
    let database = address.split("/d").nth(1).unwrap().split('?').next().unwrap();
    let database = format!("d{database}");
    server.sql(&database, "UPDATE entail.leases SET expires = now() - interval '1 second', holder = 'gone'");
    assert!(!Journal::existing(&new).unwrap().is_at_work(&id));
    let second = taken().unwrap();
    // The first goes on, and learns it when it writes: before its tool acts.
    let ledger = Ledger::default();
    let lost = run(&code, &with(handlers(SCRIPT, &ledger), session)).await.0.result.unwrap_err();
    assert!(lost.message.contains("another process has taken the run over"), "{lost:?}");
    assert_eq!(lost.code, ErrorCode::Cancelled);
    assert!(ledger.lock().unwrap().is_empty());
    assert_eq!(server.sql(&database, "SELECT count(*) FROM entail.entries"), "0");
    let (report, _) = run(&code, &with(handlers(SCRIPT, &ledger), second)).await;
    assert!(text(&report).starts_with(r#"["one""#));
    assert_eq!(ledger.lock().unwrap().len(), 3);
    assert_eq!(Journal::existing(&new).unwrap().run(&id).unwrap().status, RunStatus::Done);
}

/// The replies that arrive are those of the process that holds the run, the newest of each run, and no more
/// than that.
#[test]
fn replies_that_arrive_are_read_as_long_as_their_process_holds_the_run() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.fresh();
    let database = address.split(['/', '?']).nth(3).unwrap();
    let code = program("hello");
    let (old, new) = (place(&address), other_process(&address, 60));
    let session = begin(&old, &code);
    let id = session.id().to_string();
    let read = || LiveBoard::read(&new, &id);
    let until_read = |wanted: Option<&str>| {
        let reads = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            read().as_deref() == wanted
        });
        assert!(reads, "{:?} is not {wanted:?}", read());
    };
    let rows = || server.sql(database, "SELECT count(*) FROM entail.live");
    let board = LiveBoard::of(&old, &id).unwrap();
    assert_eq!(read(), None);
    for n in 0..=1000 {
        board.show(format!("'); DROP TABLE entail.live; -- \\u0000 {n}"));
    }
    until_read(Some("'); DROP TABLE entail.live; -- \\u0000 1000"));
    assert_eq!((LiveBoard::read(&new, "1"), LiveBoard::read(&new, "")), (None, None));
    board.show("é".repeat(3 << 20));
    until_read(None);
    board.show("of the first".into());
    until_read(Some("of the first"));
    // Its process stops for a while, and another one takes the run.
    server.sql(database, "UPDATE entail.leases SET expires = now() - interval '1 second', holder = 'gone'");
    assert_eq!(read(), None);
    let resumed = Journal::existing(&new).unwrap().resume(
        &id,
        &about(&code),
        &Default::default(),
        false,
        Unfinished::Ask,
    );
    assert_eq!(rows(), "0");
    let second = LiveBoard::of(&new, &id).unwrap();
    second.show("of the second".into());
    until_read(Some("of the second"));
    board.show("late".into());
    board.close();
    assert_eq!(read().as_deref(), Some("of the second"));
    second.close();
    assert_eq!((read(), rows()), (None, "0".into()));
    drop((session, resumed.unwrap()));
    // Nobody holds it now.
    let after = LiveBoard::of(&new, &id).unwrap();
    after.show("after the end".into());
    after.close();
    assert_eq!(rows(), "0");
}

#[tokio::test]
async fn of_many_that_want_a_run_one_gets_it() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.fresh();
    let code = program("hello");
    let session = begin(place(&address), &code);
    let id = session.id().to_string();
    drop(session);
    let contenders: Vec<_> = (0..8).map(|n| other_process(&address, 100 + n)).collect();
    let all: Vec<_> = contenders
        .into_iter()
        .map(|place| {
            let (id, about) = (id.clone(), about(&code));
            std::thread::spawn(move || {
                Journal::existing(&place)?.resume(&id, &about, &Default::default(), false, Unfinished::Ask)
            })
        })
        .collect();
    let all: Vec<_> = all.into_iter().map(|contender| contender.join().unwrap()).collect();
    assert_eq!(all.iter().filter(|held| held.is_ok()).count(), 1);
    for lost in all.iter().filter_map(|held| held.as_ref().err()) {
        assert!(lost.message.contains("another process executes run"), "{lost:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_renewed_as_long_as_its_process_lives() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.fresh();
    let code = program("hello");
    let session = begin(other_process(&address, 1), &code);
    let id = session.id().to_string();
    let other = Journal::existing(place(&address)).unwrap();
    // Several times its length.
    for _ in 0..30 {
        assert!(other.is_at_work(&id));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    drop(session);
    assert!(!other.is_at_work(&id));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_when_the_server_was_killed_and_started_again() {
    let Some(mut server) = PostgresServer::start(&[]) else { return };
    let address = server.fresh();
    let code = program("hello");
    let session = begin(place(&address), &code);
    let id = session.id().to_string();
    let ledger = Ledger::default();
    server.kill();
    let handlers_with = with(handlers(SCRIPT, &ledger), session);
    let goes_on = run(&code, &handlers_with);
    let again = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        tokio::task::block_in_place(|| server.start_again());
    };
    let ((report, _), ()) = tokio::join!(goes_on, again);
    assert!(text(&report).starts_with(r#"["one""#), "{report:?}");
    assert_eq!(ledger.lock().unwrap().len(), 3);
    drop(handlers_with);
    let info = Journal::existing(place(&address)).unwrap().run(&id).unwrap();
    assert_eq!((info.status, info.steps), (RunStatus::Done, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut_lose_nothing() {
    let Some(server) = PostgresServer::start(&[]) else { return };
    let address = server.fresh();
    let code = code(|b| {
        let pays: Vec<_> = (0..30).map(|n| pay(b, n)).collect();
        b.add(core_ir::Term::List(pays), crate::support::program::AT)
    });
    let ledger = Ledger::default();
    let handlers = with(handlers("[]", &ledger), begin(place(&address), &code));
    let work = run(&code, &handlers);
    let cuts = async {
        for _ in 0..20 {
            tokio::task::block_in_place(|| server.cut_connections());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let ((report, _), ()) = tokio::join!(work, cuts);
    assert!(report.result.is_ok(), "{report:?}");
    let paid = ledger.lock().unwrap().clone();
    assert_eq!(paid, (0..30).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[test]
fn databases_that_are_no_journals_are_refused_with_one_clear_error() {
    let Some(server) = PostgresServer::shared() else { return };
    let database = |name: &str, sql: &str| {
        server.sql("postgres", &format!("CREATE DATABASE {name}"));
        if !sql.is_empty() {
            server.sql(name, sql);
        }
        server.address(name)
    };
    let check = |e: JournalError, message: &str, help: &str| {
        assert!(e.message.contains(message), "{e:?}");
        assert!(e.help.clone().unwrap_or_default().contains(help), "{e:?}");
    };
    let foreign = database("foreign_one", "CREATE SCHEMA entail CREATE TABLE mine (a int)");
    check(refused(&foreign), "is not a journal", "another database");
    let newer = server.fresh();
    Journal::open(place(&newer)).unwrap();
    let name = newer.split(['/', '?']).nth(3).unwrap();
    server.sql(name, "INSERT INTO entail.journal_version VALUES (99, now())");
    check(refused(&newer), "has version 99, not 6", "the version of `entail` that made it");
    server.sql("postgres", "CREATE ROLE guest LOGIN");
    database("closed", "");
    check(
        refused(&server.address_of("guest", "closed")),
        "permission denied for database closed",
        "CREATE SCHEMA entail AUTHORIZATION guest",
    );
    check(refused(&server.address("nowhere")), "database \"nowhere\" does not exist", "createdb nowhere");
    check(refused(&server.address_of("nobody", "closed")), "role \"nobody\" does not exist", "PGPASSWORD");
    let latin = "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0";
    server.sql("postgres", latin);
    check(refused(&server.address("latin")), "has the encoding LATIN1, not UTF8", "UTF8");
    check(refused("postgres://me@127.0.0.1:9/x"), "cannot reach the Postgres server", "start it");
    check(refused("postgres://me@/x?host=/no/such/folder"), "cannot reach the Postgres server", "start it");
    check(refused("postgres://me@127.0.0.1:9/x?sslrootcert=/no/such"), "the certificates of `/no/such`", "");
    let none = Journal::existing(place(&server.fresh())).map(|_| ()).unwrap_err();
    check(none, "not found", "makes one");
}

/// A journal of the first version is brought up to date by whoever opens it first.
#[test]
fn a_journal_of_an_earlier_version_is_brought_up_to_date_once() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.fresh();
    let name = address.split(['/', '?']).nth(3).unwrap();
    Journal::open(place(&address)).unwrap();
    server.sql(
        name,
        "DROP TABLE entail.budgets, entail.programs, entail.elicited, entail.live; DROP INDEX entail.entries_open, entail.runs_list;
        ALTER TABLE entail.entries DROP COLUMN written; ALTER TABLE entail.runs DROP COLUMN ended;
        ALTER TABLE entail.approvals DROP COLUMN is_decided;
        DELETE FROM entail.journal_version WHERE version > 1",
    );
    let opened: Vec<_> = (0..4)
        .map(|n| {
            let place = other_process(&address, 50 + n);
            std::thread::spawn(move || {
                Journal::existing(place).map(|journal| journal.shared_day("a", 1).is_ok())
            })
        })
        .collect();
    for opened in opened {
        assert_eq!(opened.join().unwrap(), Ok(true));
    }
    assert_eq!(server.sql(name, "SELECT max(version) FROM entail.journal_version"), "6");
}

#[test]
fn addresses_that_are_wrong_are_refused_without_being_quoted() {
    for address in [
        "postgres://alice:planted@host/db",
        "postgres://alice:planted%40@host/db?host=/tmp",
        "postgres://alice@host/db?password=planted",
        "postgres://alice@host:planted/db",
        "postgres://alice@host/db?planted=1",
        "postgres://alice@host/db?lease=planted",
        "postgres://host/planted",
        "postgres:planted",
        "postgres://alice@host",
    ] {
        let e = JournalPlace::named(address.as_ref(), None).unwrap_err();
        assert!(!format!("{e:?}").contains("planted"), "{e:?}");
        let e = runtime::PostgresServer::at(address, None);
        assert!(!format!("{e:?}").contains("planted"), "{e:?}");
    }
}

#[tokio::test]
async fn a_password_is_needed_and_never_shown() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // The socket of its folder has that port in its name as well.
    let options = ["listen_addresses=127.0.0.1".to_string(), "password_encryption=scram-sha-256".into()];
    let Some(server) = PostgresServer::start_at(port, &options.each_ref().map(|o| &**o)) else { return };
    server.sql("postgres", "CREATE ROLE alice LOGIN PASSWORD 'planted-word'");
    server.sql("postgres", "CREATE DATABASE hers OWNER alice");
    server.demand_passwords();
    let address = format!("postgres://alice@127.0.0.1:{port}/hers");
    for wrong in [None, Some("planted-other")] {
        let place = JournalPlace::named(address.as_ref(), wrong).unwrap();
        let e = Journal::open(place).map(|_| ()).unwrap_err();
        assert!(e.message.contains("password") && e.help.as_ref().unwrap().contains("PGPASSWORD"), "{e:?}");
        assert!(!format!("{e:?}").contains("planted"), "{e:?}");
    }
    let place = JournalPlace::named(address.as_ref(), Some("planted-word")).unwrap();
    assert!(!format!("{place:?} {place}").contains("planted"), "{place:?}");
    let code = program("hello");
    let (report, _) = run(&code, &with(handlers(SCRIPT, &Ledger::default()), begin(&place, &code))).await;
    assert!(report.result.is_ok());
}

#[tokio::test]
async fn a_journal_that_was_changed_by_hand_is_refused() {
    let Some(server) = PostgresServer::shared() else { return };
    let code = program("a question");
    for (change, is_seen_late) in [
        ("UPDATE entail.messages SET body = replace(body, 'a question', 'another')", true),
        ("UPDATE entail.entries SET response = replace(response, 'one', 'two')", false),
        ("UPDATE entail.entries SET step = step + 1", false),
        ("UPDATE entail.entries SET usd = '0'", false),
        ("UPDATE entail.runs SET program = program || ' '", false),
        ("UPDATE entail.runs SET settings = '{}'", false),
        ("ALTER TABLE entail.entries ALTER COLUMN micros TYPE text", false),
    ] {
        let address = server.fresh();
        let (journal, name) = (place(&address), address.split(['/', '?']).nth(3).unwrap().to_string());
        let session = begin(&journal, &code);
        let id = session.id().to_string();
        run(&code, &with(handlers(SCRIPT, &Ledger::default()), session)).await;
        let existing = || Journal::existing(&journal).unwrap();
        assert_eq!(existing().check().unwrap().damaged, Vec::<String>::new());
        server.sql(&name, change);
        let why = match is_seen_late {
            true => existing().steps(&id).map(|_| ()).unwrap_err(),
            false => existing().replay(&id).map(|_| ()).unwrap_err(),
        };
        assert!(why.message.contains("it is damaged"), "{change}: {why:?}");
        assert!(why.help.unwrap().contains("backup"));
        assert_eq!(existing().check().unwrap().damaged, [id], "{change}");
    }
    let address = server.fresh();
    let (journal, name) = (place(&address), address.split(['/', '?']).nth(3).unwrap().to_string());
    drop(begin(&journal, &code));
    server.sql(&name, "DROP TABLE entail.messages");
    let e = Journal::existing(&journal).unwrap().check().unwrap_err();
    assert!(e.message.contains("does not exist"), "{e:?}");
}

#[tokio::test]
async fn nothing_of_a_secret_reaches_the_server() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.fresh();
    let name = address.split(['/', '?']).nth(3).unwrap();
    let environment = Environment::new([("PLANTED_KEY", super::KEY)]);
    let models = runtime::Models::new(Default::default(), environment.clone()).unwrap();
    let leak: runtime::CustomTool =
        Arc::new(|_| Box::pin(async { Ok(Data::str(format!("the key is {}", super::KEY))) }));
    let tools = Tools::new(&environment).with_custom("leak", leak);
    let code = code(|b| {
        let t = decl("leak", &[("x", Type::Str)], Type::Str, None);
        call(b, t, vec![("x".into(), Data::str(super::KEY))])
    });
    let about = runtime::RunIdentity::new(format!("name {}", super::KEY), &code, None, json!({}));
    let session = Journal::open(place(&address)).unwrap().begin(&about, models.redactor()).unwrap();
    let handlers = runtime::Handlers { tools, ..with(runtime::Handlers::new(models), session) };
    assert_eq!(text(&run(&code, &handlers).await.0), "\"the key is [redacted]\"");
    let all = server.sql(name, "SELECT * FROM entail.runs; SELECT * FROM entail.entries");
    assert!(all.contains("[redacted]") && !all.contains("planted"), "{all}");
}

/// Texts that Postgres can't hold are an error before the program sees anything of them.
#[tokio::test]
async fn a_text_with_nul_is_kept_or_refused() {
    let Some(server) = PostgresServer::shared() else { return };
    let journal = place(&server.fresh());
    // In JSON it is escaped.
    let code = program("a\0b");
    let session = begin(&journal, &code);
    let id = session.id().to_string();
    let (report, _) = run(&code, &with(handlers(SCRIPT, &Ledger::default()), session)).await;
    assert!(report.result.is_ok(), "{report:?}");
    let replayed = Journal::existing(&journal).unwrap().replay(&id).unwrap();
    let (again, _) = run(&code, &with(handlers("[]", &Ledger::default()), replayed)).await;
    assert_eq!(text(&again), text(&report));
    let about = runtime::RunIdentity::new("a\0b", &code, None, json!({}));
    let e = Journal::open(&journal).unwrap().begin(&about, &Default::default()).map(|_| ()).unwrap_err();
    assert!(e.message.contains("the character NUL"), "{e:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_another_process_wakes_the_run() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.fresh();
    let key = SigningKey::generate("alice").unwrap();
    let approvers = Approvers::new([("alice".to_string(), key.public())]);
    let code = code(|b| {
        let mut t = super::payment();
        t.approve = core_ir::Approve::Always;
        call(b, t, vec![("n".into(), Data::Num(1.into()))])
    });
    let session = begin(place(&address), &code);
    let id = session.id().to_string();
    let ledger = Ledger::default();
    let mut handlers = with(handlers("[]", &ledger), session);
    let desk = runtime::ApprovalDesk::new(place(&address), Duration::from_secs(3600));
    handlers.desk = Some(desk.with_approvers(approvers.clone()));
    let waits = tokio::spawn(async move { run(&code, &handlers).await.0 });
    let mut other = Journal::existing(other_process(&address, 60)).unwrap().with_approvers(approvers);
    let question = loop {
        match other.waiting(Some(&id)).unwrap().pop() {
            Some(question) => break question,
            None => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    assert!(ledger.lock().unwrap().is_empty());
    other.decide(&question.token, &Decision::Approve, &Authority::Key(&key)).unwrap();
    assert_eq!(text(&waits.await.unwrap()), "\"paid 1\"");
    assert_eq!(other.check().unwrap().forged, []);
}
