//! Stores of every backend behave alike (`docs/calculus.md` §6): types, labels, capacity, time to live, many
//! agents at once. What can go wrong with those that are kept elsewhere is an error in words.
#![cfg(unix)]

use crate::support::redis::RedisServer;
use core_ir::{Data, KeyDecl, LabelSpec, Num, StoreDecl, Type};
use diagnostics::{FileId, Span};
use runtime::{StorePlace, StoreScope, Stores};
use std::time::Duration;

fn decl(keys: &[(&str, Option<i64>)], capacity: Option<u64>, ttl: Option<u64>) -> StoreDecl {
    let key = |(name, initial): &(&str, Option<i64>)| KeyDecl {
        name: (*name).into(),
        ty: Type::Num,
        label: LabelSpec::BOTTOM,
        initial: initial.map(|n| Data::Num(Num::from(n))),
    };
    StoreDecl {
        name: "s".into(),
        keys: keys.iter().map(key).collect(),
        capacity,
        ttl,
        backend: None,
        span: Span { file: FileId(0), start: 0, end: 0 },
    }
}

fn num(n: i64) -> Data {
    Data::Num(Num::from(n))
}

/// A place for stores: what has to live as long as they do, and how an agent gets at it.
struct Backend {
    name: &'static str,
    _dir: Option<tempfile::TempDir>,
    _server: Option<RedisServer>,
    /// As another process would.
    agent: Box<dyn Fn() -> Stores>,
    /// True if agents of other processes use the same store.
    outlives: bool,
}

fn backends() -> Vec<Backend> {
    let shared = Stores::new();
    let mut all = vec![Backend {
        name: "in process",
        _dir: None,
        _server: None,
        agent: Box::new(move || shared.clone()),
        outlives: false,
    }];
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("m.db");
    all.push(Backend {
        name: "sqlite",
        _dir: Some(dir),
        _server: None,
        agent: Box::new(move || Stores::new().with_places([("s".into(), StorePlace::File(file.clone()))])),
        outlives: true,
    });
    if let Some(server) = RedisServer::start(&[]) {
        let address = server.address();
        all.push(Backend {
            name: "redis",
            _dir: None,
            _server: Some(server),
            agent: Box::new(move || on_redis(&address)),
            outlives: true,
        });
    }
    all
}

fn on_redis(address: &str) -> Stores {
    let server = runtime::RedisServer::at(address).unwrap();
    Stores::new().with_places([("s".into(), StorePlace::Redis(server))])
}

#[tokio::test(start_paused = true)]
async fn entries_expire() {
    for backend in backends() {
        let s = (backend.agent)();
        let d = decl(&[("a", Some(1)), ("b", None)], None, Some(60));
        assert_eq!(s.recall(&d, 0), Ok(Some(num(1))), "{}", backend.name);
        tokio::time::advance(Duration::from_secs(40)).await;
        s.remember(&d, 1, num(2)).unwrap();
        tokio::time::advance(Duration::from_secs(40)).await;
        assert_eq!(s.clone().recall(&d, 1), Ok(Some(num(2))), "{}", backend.name);
        // What begins now finds the initial value where there is no entry.
        assert_eq!(s.recall(&d, 0), Ok(Some(num(1))), "{}", backend.name);
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(s.recall(&d, 1), Ok(None), "{}", backend.name);
        // A write begins its time anew.
        s.remember(&d, 0, num(3)).unwrap();
        tokio::time::advance(Duration::from_secs(40)).await;
        s.remember(&d, 0, num(4)).unwrap();
        tokio::time::advance(Duration::from_secs(40)).await;
        assert_eq!(s.recall(&d, 0), Ok(Some(num(4))), "{}", backend.name);
        // Nothing lives for no time, initial values included.
        let none =
            StoreDecl { ttl: Some(0), ..decl(&[("a", None), ("b", None), ("c", Some(1))], None, None) };
        s.remember(&none, 1, num(5)).unwrap();
        assert_eq!([s.recall(&none, 1), s.recall(&none, 2)], [Ok(None), Ok(None)], "{}", backend.name);
    }
}

/// §10, stores: limits stay with the entry. Another declaration, such as that of another version of the
/// program, does not change them.
#[tokio::test(start_paused = true)]
async fn a_declaration_does_not_change_how_long_entries_of_another_one_live() {
    for backend in backends() {
        let s = (backend.agent)();
        let keys = [("a", None), ("b", None)];
        let long = decl(&keys, None, Some(60));
        let short = decl(&keys, None, Some(1));
        s.remember(&long, 0, num(1)).unwrap();
        s.remember(&short, 1, num(2)).unwrap();
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(
            [s.recall(&short, 0), s.recall(&long, 1)],
            [Ok(Some(num(1))), Ok(None)],
            "{}",
            backend.name
        );
    }
}

/// §10, stores: initial values are entries that are older than all others, and nothing is born at its first
/// use.
#[tokio::test]
async fn initial_values_are_there_from_the_beginning_and_go_first() {
    for backend in backends() {
        let s = (backend.agent)();
        let d = decl(&[("a", Some(1)), ("b", Some(2)), ("c", None), ("d", None)], Some(3), None);
        let held = |s: &Stores| [0, 1, 2, 3].map(|key| s.recall(&d, key).unwrap());
        assert_eq!(held(&s), [Some(num(1)), Some(num(2)), None, None], "{}", backend.name);
        s.remember(&d, 2, num(3)).unwrap();
        assert_eq!(held(&s), [Some(num(1)), Some(num(2)), Some(num(3)), None], "{}", backend.name);
        s.remember(&d, 3, num(4)).unwrap();
        assert_eq!(held(&s), [Some(num(1)), None, Some(num(3)), Some(num(4))], "{}", backend.name);
        s.remember(&d, 0, num(5)).unwrap();
        assert_eq!(held(&s), [Some(num(5)), None, Some(num(3)), Some(num(4))], "{}", backend.name);
        // A value that was written is not replaced, and one that was evicted does not come again.
        assert_eq!(held(&(backend.agent)()), held(&s), "{}", backend.name);
        s.remember(&d, 1, num(6)).unwrap();
        assert_eq!(held(&s), [Some(num(5)), Some(num(6)), None, Some(num(4))], "{}", backend.name);
    }
}

/// Entries of one caller of one program are not another's, and none evicts another's. What is shared is
/// everybody's.
#[tokio::test]
async fn entries_of_a_scope_are_seen_in_no_other() {
    let names =
        [("", ""), ("a", "b"), ("a1:b", ""), ("", "a1:b"), ("1:a", "b"), ("ab", ""), ("", "ab"), ("b", "a")];
    for backend in backends() {
        let d = decl(&[("k", None), ("l", None)], Some(1), None);
        let agent = (backend.agent)();
        let scoped = |agent: &Stores, (caller, program): (&str, &str)| {
            agent.scoped(StoreScope { caller: caller.into(), program: program.into() })
        };
        agent.remember(&d, 0, num(100)).unwrap();
        for (i, name) in (0..).zip(names) {
            assert_eq!(scoped(&agent, name).recall(&d, 0), Ok(None), "{}: {name:?}", backend.name);
            scoped(&agent, name).remember(&d, 0, num(i)).unwrap();
        }
        scoped(&agent, ("ab", "")).remember(&d, 1, num(7)).unwrap();
        let other = (backend.agent)();
        for (i, name) in (0..).zip(names) {
            let expected = if name == ("ab", "") { None } else { Some(num(i)) };
            assert_eq!(scoped(&other, name).recall(&d, 0), Ok(expected), "{}: {name:?}", backend.name);
        }
        assert_eq!(other.recall(&d, 0), Ok(Some(num(100))), "{}", backend.name);
        // A scope replaces the one before.
        let twice = scoped(&scoped(&other, ("x", "y")), ("a", "b"));
        assert_eq!(twice.recall(&d, 0), Ok(Some(num(1))), "{}", backend.name);
        let shared = other.with_shared(["s".into()]);
        assert_eq!(scoped(&shared, ("a", "b")).recall(&d, 0), Ok(Some(num(100))), "{}", backend.name);
    }
}

#[tokio::test]
async fn a_full_store_expels_what_was_written_longest_ago() {
    for backend in backends() {
        let s = (backend.agent)();
        let d = decl(&[("a", Some(1)), ("b", None), ("c", None)], Some(2), None);
        s.remember(&d, 1, num(2)).unwrap();
        s.remember(&d, 0, num(3)).unwrap();
        s.remember(&d, 2, num(4)).unwrap();
        let held = [s.recall(&d, 0), s.recall(&d, 1), s.recall(&d, 2)];
        assert_eq!(held, [Ok(Some(num(3))), Ok(None), Ok(Some(num(4)))], "{}", backend.name);
        // A store of nothing holds nothing.
        let none = StoreDecl { capacity: Some(0), ..d };
        s.remember(&none, 0, num(5)).unwrap();
        assert_eq!(s.recall(&none, 0), Ok(None), "{}", backend.name);
    }
}

/// §10, stores: whether an entry is still there tells nothing of what was written under another label.
#[tokio::test]
async fn a_capacity_is_not_shared_between_labels() {
    for backend in backends() {
        let s = (backend.agent)();
        let mut d = decl(&[("a", None), ("secret", None), ("b", None)], Some(1), None);
        d.keys[1].label = LabelSpec::TOP;
        s.remember(&d, 0, num(1)).unwrap();
        s.remember(&d, 1, num(2)).unwrap();
        assert_eq!(
            [s.recall(&d, 0), s.recall(&d, 1)],
            [Ok(Some(num(1))), Ok(Some(num(2)))],
            "{}",
            backend.name
        );
        s.remember(&d, 2, num(3)).unwrap();
        assert_eq!([s.recall(&d, 0), s.recall(&d, 1)], [Ok(None), Ok(Some(num(2)))], "{}", backend.name);
    }
}

/// A key of the same name under another label is another account's: what is there is neither seen nor
/// changed, and says nothing.
#[tokio::test]
async fn a_key_under_another_label_is_another_entry() {
    for backend in backends() {
        let s = (backend.agent)();
        let d = decl(&[("a", None)], Some(1), None);
        let mut secret = d.clone();
        secret.keys[0].label = LabelSpec::TOP;
        s.remember(&secret, 0, num(1)).unwrap();
        assert_eq!(s.recall(&d, 0), Ok(None), "{}", backend.name);
        s.remember(&d, 0, num(2)).unwrap();
        assert_eq!(
            [s.recall(&secret, 0), s.recall(&d, 0)],
            [Ok(Some(num(1))), Ok(Some(num(2)))],
            "{}",
            backend.name
        );
    }
}

/// Every write is read whole, a key that one agent writes alone is read as it wrote it, and of a key that all
/// write the last write stays.
#[tokio::test]
async fn many_agents_on_one_store() {
    const AGENTS: u32 = 8;
    for backend in backends() {
        let names: Vec<String> = (0..AGENTS).map(|i| format!("own{i}")).collect();
        let mut keys: Vec<(&str, Option<i64>)> = names.iter().map(|n| (n.as_str(), None)).collect();
        keys.push(("all", None));
        let d = decl(&keys, None, None);
        let agents = (0..AGENTS).map(|agent| {
            let (s, d) = ((backend.agent)(), d.clone());
            std::thread::spawn(move || {
                for i in 0..20 {
                    let value = num(i64::from(agent) * 1000 + i);
                    s.remember(&d, agent, value.clone()).unwrap();
                    s.remember(&d, AGENTS, value.clone()).unwrap();
                    assert_eq!(s.recall(&d, agent), Ok(Some(value)));
                    let Ok(Some(Data::Num(n))) = s.recall(&d, AGENTS) else { panic!("somebody has written") };
                    let n = n.to_i64().unwrap();
                    assert!(n / 1000 < i64::from(AGENTS) && n % 1000 < 20);
                }
            })
        });
        agents.collect::<Vec<_>>().into_iter().for_each(|a| a.join().unwrap());
        let s = (backend.agent)();
        for agent in 0..AGENTS {
            assert_eq!(s.recall(&d, agent), Ok(Some(num(i64::from(agent) * 1000 + 19))), "{}", backend.name);
        }
        let Ok(Some(Data::Num(last))) = s.recall(&d, AGENTS) else { panic!("somebody has written") };
        assert_eq!(last.to_i64().unwrap() % 1000, 19, "{}", backend.name);
    }
}

#[tokio::test]
async fn a_key_gives_only_what_is_of_its_type() {
    for backend in backends() {
        let s = (backend.agent)();
        let d = decl(&[("a", None)], None, None);
        let third = Data::Num(Num::from(1).div(&Num::from(3)).unwrap());
        s.remember(&d, 0, third.clone()).unwrap();
        assert_eq!((backend.agent)().recall(&d, 0), Ok(Some(third)), "{}", backend.name);
        let mut wrong = d.clone();
        wrong.keys[0].ty = Type::Str;
        let why = s.recall(&wrong, 0).unwrap_err();
        assert!(why.contains("not of its type"), "{}: {why}", backend.name);
    }
}

/// Data of every kind comes back as it was.
#[tokio::test]
async fn stored_values_round_trip() {
    let nested = Data::record([
        ("text".into(), Data::str("a \"quoted\"\nline, \u{0} and ünïcode {1}")),
        ("list".into(), Data::List(vec![Data::Null, Data::Bool(true), num(-1)].into())),
        ("pair".into(), Data::Pair(std::sync::Arc::new((num(1), Data::str(""))))),
        ("tag".into(), Data::Tag("t".into(), std::sync::Arc::new(Data::Null))),
        ("large".into(), Data::Num("123456789012345678901234567890".parse().unwrap())),
    ]);
    for backend in backends() {
        let mut d = decl(&[("a key: with {marks}", None)], None, None);
        d.keys[0].ty = Type::Dyn;
        let s = (backend.agent)();
        s.remember(&d, 0, nested.clone()).unwrap();
        assert_eq!((backend.agent)().recall(&d, 0), Ok(Some(nested.clone())), "{}", backend.name);
    }
}

#[tokio::test]
async fn persistent_store_outlives_process() {
    for backend in backends().into_iter().filter(|b| b.outlives) {
        let d = decl(&[("a", None)], None, None);
        (backend.agent)().remember(&d, 0, num(7)).unwrap();
        assert_eq!((backend.agent)().recall(&d, 0), Ok(Some(num(7))), "{}", backend.name);
        // Two at once, as two processes would.
        let (one, other) = ((backend.agent)(), (backend.agent)());
        one.remember(&d, 0, num(1)).unwrap();
        other.remember(&d, 0, num(2)).unwrap();
        assert_eq!(one.recall(&d, 0), Ok(Some(num(2))), "{}", backend.name);
        // Stores of other names have nothing to do with it.
        let other_name = StoreDecl { name: "t".into(), ..d };
        assert_eq!(one.recall(&other_name, 0), Ok(None), "{}", backend.name);
    }
}

#[tokio::test]
async fn a_backend_that_there_is_not_is_an_error() {
    let mut d = decl(&[("a", None)], None, None);
    for (backend, expected) in [("redis", "`REDIS_URL`"), ("etcd", "`etcd` is not configured")] {
        d.backend = Some(backend.into());
        let why = Stores::new().recall(&d, 0).unwrap_err();
        assert!(why.contains(expected), "{why}");
        assert_eq!(Stores::only_here().recall(&d, 0), Ok(None));
    }
    assert!(Stores::new().recall(&decl(&[], None, None), 7).is_err());
    let dir = tempfile::tempdir().unwrap();
    let nowhere = StorePlace::File(dir.path().join("no/such/m.db"));
    let why = Stores::new().with_places([("s".into(), nowhere)]).recall(&d, 0).unwrap_err();
    assert!(why.contains("cannot use the memory"), "{why}");
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
    assert_eq!(on_redis(&server.address()).recall(&d, 0), Ok(Some(num(7))));
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
    let why = on_redis(&format!("redis://127.0.0.1:{port}")).recall(&d, 0).unwrap_err();
    let expected = format!("store `s`: cannot reach the Redis server `redis://127.0.0.1:{port}`");
    assert!(why.starts_with(&expected), "{why}");

    let Some(mut server) = RedisServer::start(&[]) else { return };
    let s = on_redis(&server.address());
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
    let s = on_redis(&server.address());
    s.remember(&d, 0, num(1)).unwrap();
    server.signal("-STOP");
    let (used, fresh) =
        (s.recall(&d, 0).unwrap_err(), on_redis(&server.address()).recall(&d, 0).unwrap_err());
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
    let s = on_redis(&server.address());
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
    let s = on_redis(&server.address());
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
    let with = |password: &str| on_redis(&format!("{}?pass={password}", server.address()));
    with("right-hush").remember(&d, 0, num(1)).unwrap();
    for stores in [with("wrong-hush"), on_redis(&server.address())] {
        let why = stores.recall(&d, 0).unwrap_err();
        assert!(why.contains("rejects the password, or requires one"), "{why}");
        assert!(!why.contains("hush"), "{why}");
    }
    // A full server refuses writes and says so.
    let Some(full) = RedisServer::start(&["--maxmemory", "1", "--maxmemory-policy", "noeviction"]) else {
        return;
    };
    let why = on_redis(&full.address()).remember(&d, 0, num(1)).unwrap_err();
    assert!(why.contains("refused") && why.contains("OOM"), "{why}");
}
