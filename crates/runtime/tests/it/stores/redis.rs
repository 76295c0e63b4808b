//! Stores on a Redis server: addresses, passwords, servers that are missing, stop, or keep foreign data.

use super::{decl, num};
use crate::support::redis::RedisServer;
use core_ir::LabelSpec;
use runtime::{StorePlace, Stores};
use std::time::Duration;

pub fn stores_at(address: &str) -> Stores {
    let server = runtime::RedisServer::at(address).unwrap();
    Stores::new().with_places([("s".into(), StorePlace::Redis(server))])
}

/// The key of the account of the public entries of the store `s` (docs/settings.md).
fn account_of_s() -> String {
    let label = format!("{:?}", LabelSpec::BOTTOM);
    format!("entail:account:0:1:s{}:{label}", label.len())
}

#[tokio::test]
async fn a_program_that_says_redis_gets_the_server_of_the_environment() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let mut d = decl(&[("a", None)], None, None);
    d.backend = Some("redis".into());
    let at = runtime::RedisServer::at(&server.address()).unwrap();
    Stores::new().with_redis(Some(at)).remember(&d, 0, num(7)).unwrap();
    let entry = server.cli(&["HGET", &account_of_s(), "a"]);
    assert!(entry.contains("\"v\":\"7\""), "{entry}");
    // One that has a place is there, whatever the program says.
    d.backend = None;
    assert_eq!(stores_at(&server.address()).recall(&d, 0), Ok(Some(num(7))));
}

#[test]
fn an_address_is_checked_and_shown_without_its_password() {
    for wrong in ["", "localhost", "http://localhost:6379", "redis://", "redis://localhost/x"] {
        assert!(runtime::RedisServer::at(wrong).is_err(), "{wrong}");
    }
    let server = runtime::RedisServer::at("redis://user:hush@localhost:7/2").unwrap();
    assert!(server.has_password());
    assert_eq!(format!("{server:?}"), r#"RedisServer("redis://localhost:7/2")"#);
    let why = runtime::RedisServer::at("redis://user:hush@localhost/x").unwrap_err();
    assert!(!why.contains("hush"), "{why}");
}

#[tokio::test]
async fn missing_or_stopped_server_is_an_error() {
    let d = decl(&[("a", None)], None, None);
    // Bound and not listening: nobody else gets the port.
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port();
    drop(held);
    let why = stores_at(&format!("redis://127.0.0.1:{port}")).recall(&d, 0).unwrap_err();
    let expected = format!("store `s`: cannot reach the Redis server `redis://127.0.0.1:{port}`");
    assert!(why.starts_with(&expected), "{why}");

    let Some(mut server) = RedisServer::start(&[]) else { return };
    let s = stores_at(&server.address());
    s.remember(&d, 0, num(1)).unwrap();
    server.end(true);
    // Another one in its place: it is asked, and knows nothing.
    assert_eq!(s.recall(&d, 0), Ok(None));
    s.remember(&d, 0, num(2)).unwrap();
    server.end(false);
    let why = s.recall(&d, 0).unwrap_err();
    assert!(why.contains("cannot reach the Redis server `unix://"), "{why}");
    let why = s.remember(&d, 0, num(3)).unwrap_err();
    assert!(why.contains("cannot reach the Redis server `unix://"), "{why}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_an_error_and_recovers() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let d = decl(&[("a", None)], None, None);
    let s = stores_at(&server.address());
    s.remember(&d, 0, num(1)).unwrap();
    server.signal("-STOP");
    let (used, fresh) =
        (s.recall(&d, 0).unwrap_err(), stores_at(&server.address()).recall(&d, 0).unwrap_err());
    server.signal("-CONT");
    assert!(used.contains("did not answer within 5 s"), "{used}");
    assert!(fresh.contains("did not answer within 5 s"), "{fresh}");
    assert_eq!(s.recall(&d, 0), Ok(Some(num(1))));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_signal_does_not_end_the_wait_for_a_server() {
    let Some(server) = RedisServer::start(&[]) else { return };
    // The handler that the runtime has for the ends of tools.
    let _handler = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::child()).unwrap();
    let d = decl(&[("a", None)], None, None);
    let s = stores_at(&server.address());
    s.remember(&d, 0, num(1)).unwrap();
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    let thread = thread.file_name().unwrap();
    server.signal("-STOP");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..5 {
                std::thread::sleep(Duration::from_millis(50));
                std::process::Command::new("kill").arg("-CHLD").arg(thread).status().unwrap();
            }
            server.signal("-CONT");
        });
        assert_eq!(s.recall(&d, 0), Ok(Some(num(1))));
    });
}

#[tokio::test]
async fn foreign_redis_data_is_an_error() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let d = decl(&[("a", None), ("b", None)], None, None);
    let s = stores_at(&server.address());
    server.cli(&["SET", &account_of_s(), "x"]);
    let why = s.recall(&d, 0).unwrap_err();
    assert!(why.contains("keys of another kind where the store's should be"), "{why}");
    server.cli(&["DEL", &account_of_s()]);
    let entry = |value: &str| format!(r#"{{"v":"{value}","n":1}}"#);
    let wrong = [
        ("{".to_string(), "key `a` of store `s`: what it holds is not an entry"),
        (entry("{"), "key `a` of store `s`"),
        (entry(r#"\"text\""#), "not of its type"),
    ];
    for (text, expected) in wrong {
        server.cli(&["HSET", &account_of_s(), "a", &text]);
        let why = s.recall(&d, 0).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
    // The others are not touched by it.
    s.remember(&d, 1, num(2)).unwrap();
    assert_eq!(s.recall(&d, 1), Ok(Some(num(2))));
}

#[tokio::test]
async fn a_password_is_needed_and_never_shown() {
    let Some(server) = RedisServer::start(&["--requirepass", "right-hush"]) else { return };
    let d = decl(&[("a", None)], None, None);
    let with = |password: &str| stores_at(&format!("{}?pass={password}", server.address()));
    with("right-hush").remember(&d, 0, num(1)).unwrap();
    for stores in [with("wrong-hush"), stores_at(&server.address())] {
        let why = stores.recall(&d, 0).unwrap_err();
        assert!(why.contains("rejects the password, or requires one"), "{why}");
        assert!(!why.contains("hush"), "{why}");
    }
    // A full server refuses writes and says so.
    let Some(full) = RedisServer::start(&["--maxmemory", "1", "--maxmemory-policy", "noeviction"]) else {
        return;
    };
    let why = stores_at(&full.address()).remember(&d, 0, num(1)).unwrap_err();
    assert!(why.contains("refused") && why.contains("OOM"), "{why}");
}
