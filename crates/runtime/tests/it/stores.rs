//! Stores of every backend behave alike (`docs/calculus.md` §6): types, labels, capacity, time to live, many
//! agents at once. What can go wrong with those that are kept elsewhere is an error in words.
#![cfg(unix)]

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;

use core_ir::{Data, KeyDecl, LabelSpec, Num, StoreDecl, Type};
use diagnostics::{FileId, Span};
use runtime::{StorePlace, StoreScope, Stores};
use std::any::Any;
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

/// A place for stores, and how an agent gets at it.
struct Backend {
    name: &'static str,
    /// The folder or server that has to live as long.
    _place: Option<Box<dyn Any>>,
    /// As another process would.
    agent: Box<dyn Fn() -> Stores>,
    /// True if agents of other processes use the same store.
    outlives: bool,
}

fn backends() -> Vec<Backend> {
    let shared = Stores::new();
    let mut all = vec![Backend {
        name: "in process",
        _place: None,
        agent: Box::new(move || shared.clone()),
        outlives: false,
    }];
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("m.db");
    all.push(Backend {
        name: "sqlite",
        _place: Some(Box::new(dir)),
        agent: Box::new(move || Stores::new().with_places([("s".into(), StorePlace::File(file.clone()))])),
        outlives: true,
    });
    #[cfg(feature = "postgres")]
    if let Some(server) = crate::support::postgres::PostgresServer::shared() {
        let address = server.fresh();
        all.push(Backend {
            name: "postgres",
            _place: Some(Box::new(server)),
            agent: Box::new(move || postgres::stores_at(&address)),
            outlives: true,
        });
    }
    #[cfg(feature = "redis")]
    if let Some(server) = crate::support::redis::RedisServer::start(&[]) {
        let address = server.address();
        all.push(Backend {
            name: "redis",
            _place: Some(Box::new(server)),
            agent: Box::new(move || redis::stores_at(&address)),
            outlives: true,
        });
    }
    all
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
    for (backend, expected) in
        [("redis", "`REDIS_URL`"), ("postgres", "`[stores.s]`"), ("etcd", "`etcd` is not configured")]
    {
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
