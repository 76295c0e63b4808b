//! Stores on a Postgres server: servers that are missing, killed, or hold something else.

use super::{decl, num};
use crate::support::postgres::PostgresServer;
use runtime::{StorePlace, Stores};

pub fn stores_at(address: &str) -> Stores {
    let server = runtime::PostgresServer::at(address, None).unwrap();
    Stores::new().with_places([("s".into(), StorePlace::Postgres(server))])
}

#[test]
fn missing_or_killed_server_is_an_error_and_one_that_is_back_is_used() {
    let d = decl(&[("a", None)], None, None);
    let why = stores_at("postgres://me@127.0.0.1:9/x").recall(&d, 0).unwrap_err();
    let expected = "store `s`: cannot reach the Postgres server `postgres://me@127.0.0.1:9/x`";
    assert!(why.starts_with(expected) && why.contains("help"), "{why}");

    let Some(mut server) = PostgresServer::start(&[]) else { return };
    let s = stores_at(&server.fresh());
    s.remember(&d, 0, num(1)).unwrap();
    server.kill();
    let why = s.recall(&d, 0).unwrap_err();
    assert!(why.contains("Postgres server"), "{why}");
    server.start_again();
    assert_eq!(s.recall(&d, 0), Ok(Some(num(1))));
}

#[test]
fn agents_that_write_at_once_lose_nothing_of_each_other() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.fresh();
    let keys: Vec<String> = (0..8).map(|n| format!("k{n}")).collect();
    let keys: Vec<(&str, Option<_>)> = keys.iter().map(|key| (key.as_str(), None)).collect();
    let d = decl(&keys, None, None);
    std::thread::scope(|all| {
        for key in 0..8 {
            let (address, d) = (&address, &d);
            all.spawn(move || {
                // As another process: its connections are its own.
                let s = stores_at(&format!("{address}&lease={}", 20 + key));
                for n in 0..20 {
                    s.remember(d, key, num(n)).unwrap();
                }
            });
        }
    });
    let s = stores_at(&address);
    for key in 0..8 {
        assert_eq!(s.recall(&d, key), Ok(Some(num(19))));
    }
}

#[test]
fn entries_of_another_kind_are_an_error() {
    let Some(server) = PostgresServer::shared() else { return };
    let address = server.fresh();
    let name = address.split(['/', '?']).nth(3).unwrap();
    let d = decl(&[("a", None)], None, None);
    let s = stores_at(&address);
    s.remember(&d, 0, num(1)).unwrap();
    server.sql(name, "UPDATE entail_stores.entries SET value = 'no JSON'");
    let why = s.recall(&d, 0).unwrap_err();
    assert!(why.starts_with("key `a` of store `s`"), "{why}");
    server.sql(name, "DROP SCHEMA entail_stores CASCADE");
    let why = s.recall(&d, 0).unwrap_err();
    assert!(why.contains("does not exist"), "{why}");
    // A journal beside the stores is a journal of its own.
    let place = runtime::JournalPlace::named(address.as_ref(), None).unwrap();
    assert!(runtime::Journal::open(place).is_ok());
}
