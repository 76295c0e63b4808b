//! Functions of WebAssembly components as tools: what they get, give, and may use.
#![cfg(feature = "wasm")]

use crate::support::program::{call, decl, machine};
use core_ir::{Data, Name, Num, ToolDecl, Type};
use runtime::{CancellationToken, Environment, Handlers, Limits, Models, Scripted, Tools};
use std::path::Path;
use std::sync::Arc;

/// A component as text: it computes, keeps a number in its memory, never ends, grows, fails, and asks for a
/// clock.
const COMPONENT: &str = r#"
(component
  (import "clock" (func $clock (result s64)))
  (core func $lowered (canon lower (func $clock)))
  (core module $m
    (import "host" "clock" (func $clock (result i64)))
    (memory (export "memory") 1)
    (global $next (mut i32) (i32.const 1024))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (global.get $next))
      (global.set $next (i32.add (global.get $next) (local.get 3)))
      (local.get $at))
    (func (export "echo") (param i32 i32) (result i32)
      (i32.store (i32.const 16) (local.get 0))
      (i32.store (i32.const 20) (local.get 1))
      (i32.const 16))
    (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
    (func (export "sub") (param i32 i32) (result i32) (i32.sub (local.get 1) (local.get 0)))
    (func (export "count") (result i32)
      (i32.store (i32.const 64) (i32.add (i32.load (i32.const 64)) (i32.const 1)))
      (i32.load (i32.const 64)))
    (func (export "spin") (result i32) (loop $l (br $l)) (unreachable))
    (func (export "grow") (result i32) (memory.grow (i32.const 10000)))
    (func (export "even") (param i32) (result i32)
      (if (i32.and (local.get 0) (i32.const 1))
        (then
          (i32.store8 (i32.const 16) (i32.const 1))
          (i32.store (i32.const 20) (i32.const 128))
          (i32.store (i32.const 24) (i32.const 6)))
        (else
          (i32.store8 (i32.const 16) (i32.const 0))
          (i32.store (i32.const 20) (local.get 0))))
      (i32.const 16))
    (func (export "ask") (result i64) (call $clock))
    (data (i32.const 128) "is odd"))
  (core instance $i (instantiate $m (with "host" (instance (export "clock" (func $lowered))))))
  (func (export "echo") (param "text" string) (result string)
    (canon lift (core func $i "echo") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
  (func (export "add-up") (param "a" s32) (param "b" s32) (result s32) (canon lift (core func $i "add")))
  (type $box (record (field "left-edge" s32) (field "right" s32)))
  (export $shown "box" (type $box))
  (func (export "width") (param "of" $shown) (result s32) (canon lift (core func $i "sub")))
  (func (export "count") (result s32) (canon lift (core func $i "count")))
  (func (export "spin") (result s32) (canon lift (core func $i "spin")))
  (func (export "grow") (result s32) (canon lift (core func $i "grow")))
  (func (export "even") (param "n" s32) (result (result s32 (error string)))
    (canon lift (core func $i "even") (memory (core memory $i "memory"))))
  (func (export "ask") (result s64) (canon lift (core func $i "ask"))))
"#;

fn handler(dir: &Path, more: &[(&str, Data)]) -> Data {
    let file = dir.join("c.wat");
    std::fs::write(&file, COMPONENT).unwrap();
    let wasm = ("wasm".into(), Data::str(file.display().to_string()));
    Data::record(std::iter::once(wasm).chain(more.iter().map(|(n, d)| ((*n).into(), d.clone()))))
}

fn num(n: i64) -> Data {
    Data::Num(Num::from(n))
}

async fn run(tool: ToolDecl, args: Vec<(Name, Data)>) -> Result<Data, String> {
    let tools = Tools::new(&Environment::default());
    let script = Scripted::parse("[]").unwrap();
    let handlers = Handlers { tools, ..Handlers::new(Models::only(Arc::new(script))) };
    let m = machine(|b| call(b, tool, args));
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let report = runtime::run(m, &handlers, &limits, &cancel, &mut |_| {}).await;
    report.result.map(|v| v.data().unwrap()).map_err(|f| f.message)
}

#[tokio::test]
async fn functions_get_arguments_and_give_results_of_their_types() {
    let dir = tempfile::tempdir().unwrap();
    let with =
        |name, params: &[(&str, Type)], result| decl(name, params, result, Some(handler(dir.path(), &[])));
    let echo = with("echo", &[("text", Type::Str)], Type::Str);
    assert_eq!(run(echo, vec![("text".into(), Data::str("grüße"))]).await, Ok(Data::str("grüße")));
    let add = with("add_up", &[("a", Type::Num), ("b", Type::Num)], Type::Num);
    assert_eq!(run(add.clone(), vec![("a".into(), num(40)), ("b".into(), num(2))]).await, Ok(num(42)));
    let e = run(add, vec![("a".into(), num(1 << 40)), ("b".into(), num(2))]).await.unwrap_err();
    assert!(e.contains("1099511627776 does not fit its type"), "{e}");
    let fields = Type::record([("left_edge".into(), Type::Num), ("right".into(), Type::Num)]);
    let width = with("width", &[("of", fields)], Type::Num);
    let of = Data::record([("left_edge".into(), num(3)), ("right".into(), num(10))]);
    assert_eq!(run(width, vec![("of".into(), of)]).await, Ok(num(7)));
    let even = with("even", &[("n", Type::Num)], Type::Num);
    assert_eq!(run(even.clone(), vec![("n".into(), num(8))]).await, Ok(num(8)));
    let e = run(even, vec![("n".into(), num(7))]).await.unwrap_err();
    assert!(e.contains("is odd"), "{e}");
}

#[tokio::test]
async fn a_call_sees_nothing_of_another_one_and_nothing_of_the_world() {
    let dir = tempfile::tempdir().unwrap();
    let count = decl("count", &[], Type::Num, Some(handler(dir.path(), &[])));
    for _ in 0..2 {
        assert_eq!(run(count.clone(), vec![]).await, Ok(num(1)));
    }
    let ask = decl("ask", &[], Type::Num, Some(handler(dir.path(), &[])));
    let e = run(ask, vec![]).await.unwrap_err();
    assert!(e.contains("it was ended") && e.contains("clock"), "{e}");
}

#[tokio::test]
async fn fuel_and_memory_are_limited() {
    let dir = tempfile::tempdir().unwrap();
    let spin = decl("spin", &[], Type::Num, Some(handler(dir.path(), &[("fuel", num(100_000))])));
    let e = run(spin, vec![]).await.unwrap_err();
    assert!(e.contains("it used its fuel of 100000"), "{e}");
    let grow = decl("grow", &[], Type::Num, Some(handler(dir.path(), &[("memory", num(2))])));
    let e = run(grow, vec![]).await.unwrap_err();
    assert!(e.contains("it requested more memory than its 2 MiB"), "{e}");
    let grow = decl("grow", &[], Type::Num, Some(handler(dir.path(), &[("memory", num(1000))])));
    assert_eq!(run(grow, vec![]).await, Ok(num(1)));
}

#[tokio::test]
async fn declarations_that_do_not_fit_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let with = |name, params: &[(&str, Type)], result, more: &[(&str, Data)]| {
        decl(name, params, result, Some(handler(dir.path(), more)))
    };
    let cases = [
        (with("echo", &[("text", Type::Num)], Type::Str, &[]), num(1), "`text` is text"),
        (
            with("echo", &[("text", Type::Str)], Type::Num, &[]),
            Data::str("x"),
            "the result is declared as Num",
        ),
        (with("count", &[("x", Type::Num)], Type::Num, &[]), num(1), "takes 0 arguments"),
        (
            with("none", &[("x", Type::Num)], Type::Num, &[]),
            num(1),
            "has no function `none`; it has `box`, `echo`",
        ),
        (
            with("echo", &[("text", Type::Str)], Type::Str, &[("fuel", num(-1))]),
            Data::str("x"),
            "`fuel` is not",
        ),
        (
            with("echo", &[("text", Type::Str)], Type::Str, &[("env", Data::list([]))]),
            Data::str("x"),
            "gets neither",
        ),
    ];
    for (tool, arg, want) in cases {
        let name = tool.params[0].name.clone();
        let e = run(tool, vec![(name, arg)]).await.unwrap_err();
        assert!(e.contains(want), "{want}: {e}");
    }
    std::fs::write(dir.path().join("no.wasm"), "no component").unwrap();
    for (file, want) in [("no.wasm", "is not a component"), ("missing.wasm", "missing.wasm")] {
        let path = dir.path().join(file).display().to_string();
        let handler = Data::record([("wasm".into(), Data::str(path))]);
        let e = run(decl("t", &[], Type::Str, Some(handler)), vec![]).await.unwrap_err();
        assert!(e.contains(want), "{e}");
    }
}

/// Fuel for years. A tokio runtime ends when its blocking tasks have: if the component went on, this would
/// not.
#[test]
fn abandoned_call_is_canceled() {
    let dir = tempfile::tempdir().unwrap();
    let more = |timeout: &str| [("fuel", num(i64::MAX)), ("timeout", Data::Num(timeout.parse().unwrap()))];
    let late = decl("spin", &[], Type::Num, Some(handler(dir.path(), &more("0.1"))));
    let given_up = decl("spin", &[], Type::Num, Some(handler(dir.path(), &more("3600"))));
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let why = runtime.block_on(async {
            let given_up = tokio::spawn(run(given_up, vec![]));
            let why = run(late, vec![]).await.unwrap_err();
            given_up.abort();
            why
        });
        drop(runtime);
        done.send(why).unwrap();
    });
    let why = ended.recv_timeout(std::time::Duration::from_secs(120)).expect("the components stop");
    assert!(why.contains("no result within 0.1 s"), "{why}");
}
