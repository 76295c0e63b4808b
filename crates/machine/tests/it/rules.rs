//! Limits and resumption, on terms built by hand. The rules themselves are compared with a reference
//! evaluator in `testkit`.

use core_ir::{
    Bound, Builder, Catches, Data, Globals, IfSugar, LabelSpec, ModelParams, Num, Prim, Recv, Role, Term,
    TermId, Type,
};
use diagnostics::{FileId, Span};
use machine::{
    Call, Config, ErrorCode, Failure, Machine, Output, Reply, Request, RequestId, Response, Value,
};
use std::sync::Arc;

const AT: Span = Span { file: FileId(0), start: 0, end: 0 };

/// Runs a term; `world` answers its requests.
fn run_with(
    config: Config,
    build: impl FnOnce(&mut Builder) -> TermId,
    mut world: impl FnMut(&Request) -> Response,
) -> (Machine, Result<Value, Failure>) {
    let mut b = Builder::new();
    let root = build(&mut b);
    let code = b.finish(root, &Globals::none()).unwrap();
    let mut machine = Machine::new(Arc::new(code), None, config);
    loop {
        match machine.poll() {
            Output::Request(id, request) => {
                let response = world(&request);
                machine.handle(id, response);
            }
            Output::Working => {}
            Output::Waiting => panic!("every request was answered"),
            Output::Done(result) => return (machine, result),
        }
    }
}

fn shown(build: impl FnOnce(&mut Builder) -> TermId) -> String {
    let (machine, result) = run_with(Config::default(), build, |_| panic!("no request expected"));
    match result {
        Ok(v) => machine.reify(&v).to_string(),
        Err(f) => format!("{} {} {}", f.code.as_str(), machine.lattice().show(f.label), f.message),
    }
}

fn num(b: &mut Builder, n: i64) -> TermId {
    b.lit(Num::from(n), AT)
}

fn label(b: &mut Builder, letters: &[&str]) -> TermId {
    let items = letters.iter().map(|l| b.lit(*l, AT)).collect();
    b.add(Term::List(items), AT)
}

fn relabel(b: &mut Builder, letters: &[&str], e: TermId) -> TermId {
    let l = label(b, letters);
    b.add(Term::Relabel(l, e), AT)
}

/// `fix[n] (λs. λx. if x == 0 then x else step)`, where `step` may use `s` and `x`.
fn countdown(b: &mut Builder, bound: Bound, step: impl FnOnce(&mut Builder) -> TermId) -> TermId {
    let x = b.var("x", AT);
    let zero = num(b, 0);
    let done = b.add(Term::Prim(Prim::Eq, vec![x, zero]), AT);
    let x = b.var("x", AT);
    let step = step(b);
    let body = b.add(Term::If(done, x, step, IfSugar::Plain), AT);
    let f = b.abs("x", None, body, AT);
    let f = b.abs("s", None, f, AT);
    b.add(Term::Fix { bound, origin: None, body: f }, AT)
}

fn again(b: &mut Builder) -> TermId {
    let x = b.var("x", AT);
    let one = num(b, 1);
    let less = b.add(Term::Prim(Prim::Sub, vec![x, one]), AT);
    let s = b.var("s", AT);
    b.app(s, less, AT)
}

#[test]
fn a_million_deep_recursion_does_not_touch_the_host_stack() {
    // 1 + (1 + (1 + …)): no call is in tail position.
    let result = shown(|b| {
        let f = countdown(b, Bound::Infinite, |b| {
            let inner = again(b);
            let one = num(b, 1);
            b.add(Term::Prim(Prim::Add, vec![one, inner]), AT)
        });
        let n = num(b, 1_000_000);
        b.app(f, n, AT)
    });
    assert_eq!(result, "1000000");
}

#[test]
fn a_loop_in_tail_position_needs_no_space() {
    let config = Config { max_frames: 100, ..Config::default() };
    let (machine, result) = run_with(
        config,
        |b| {
            let f = countdown(b, Bound::Infinite, again);
            let n = num(b, 100_000);
            b.app(f, n, AT)
        },
        |_| panic!("no request expected"),
    );
    assert_eq!(machine.reify(&result.unwrap()).to_string(), "0");
}

#[test]
fn a_value_nested_a_million_deep_is_dropped_without_recursion() {
    let result = shown(|b| {
        let f = countdown(b, Bound::Infinite, |b| {
            let inner = again(b);
            let one = num(b, 1);
            b.add(Term::Pair(one, inner), AT)
        });
        let n = num(b, 1_000_000);
        let deep = b.app(f, n, AT);
        b.add(Term::Fst(deep), AT)
    });
    assert_eq!(result, "1");
}

/// Each part is held twice, by the same pair, list or closure: the count of its holders did not say that the
/// last of them goes.
#[test]
fn a_value_whose_parts_are_shared_is_dropped_without_recursion() {
    let kinds: [fn(&mut Builder, TermId, TermId) -> TermId; 3] = [
        |b, p, q| b.add(Term::Pair(p, q), AT),
        |b, p, q| b.add(Term::List(vec![p, q]), AT),
        |b, p, q| {
            let both = b.add(Term::Pair(p, q), AT);
            let f = b.abs("y", None, both, AT);
            let r = b.var("p", AT);
            b.add(Term::List(vec![f, r]), AT)
        },
    ];
    for wrap in kinds {
        let result = shown(|b| {
            // fix[inf] (λself. λn. λp. if n == 0 then 1 else self (n - 1) (p, p))
            let (n, zero) = (b.var("n", AT), num(b, 0));
            let done = b.add(Term::Prim(Prim::Eq, vec![n, zero]), AT);
            let (s, n, less) = (b.var("s", AT), b.var("n", AT), num(b, 1));
            let less = b.add(Term::Prim(Prim::Sub, vec![n, less]), AT);
            let next = b.app(s, less, AT);
            let (p, q) = (b.var("p", AT), b.var("p", AT));
            let both = wrap(b, p, q);
            let next = b.app(next, both, AT);
            let one = num(b, 1);
            let body = b.add(Term::If(done, one, next, IfSugar::Plain), AT);
            let f = b.abs("p", None, body, AT);
            let f = b.abs("n", None, f, AT);
            let f = b.abs("s", None, f, AT);
            let f = b.add(Term::Fix { bound: Bound::Infinite, origin: None, body: f }, AT);
            let (times, start) = (num(b, 200_000), num(b, 0));
            let f = b.app(f, times, AT);
            b.app(f, start, AT)
        });
        assert_eq!(result, "1");
    }
}

#[test]
fn a_value_that_is_exponentially_large_when_written_out_is_refused() {
    let result = shown(|b| {
        let zero = num(b, 0);
        let mut bindings = vec![("p0".into(), zero)];
        for i in 1..=60 {
            let (a, c) = (b.var(format!("p{}", i - 1), AT), b.var(format!("p{}", i - 1), AT));
            bindings.push((format!("p{i}").into(), b.add(Term::Pair(a, c), AT)));
        }
        let p = b.var("p60", AT);
        let text = b.add(Term::Prim(Prim::ToStr, vec![p]), AT);
        b.let_in(bindings, text, AT)
    });
    assert_eq!(result, "limit [] value larger than the size limit");
}

#[test]
fn e_fix_unfolds_at_most_n_times_and_then_is_the_identity() {
    let counted = |n: u64| {
        shown(|b| {
            let f = countdown(b, Bound::Finite(n), again);
            let ten = num(b, 10);
            b.app(f, ten, AT)
        })
    };
    assert_eq!((counted(0), counted(3), counted(99)), ("10".into(), "7".into(), "0".into()));
}

/// `if v == 0 then v else step`.
fn until_zero(b: &mut Builder, variable: &str, step: impl FnOnce(&mut Builder, TermId) -> TermId) -> TermId {
    let v = b.var(variable, AT);
    let zero = num(b, 0);
    let is_zero = b.add(Term::Prim(Prim::Eq, vec![v, zero]), AT);
    let (v, one) = (b.var(variable, AT), num(b, 1));
    let less = b.add(Term::Prim(Prim::Sub, vec![v, one]), AT);
    let step = step(b, less);
    let v = b.var(variable, AT);
    b.add(Term::If(is_zero, v, step, IfSugar::Plain), AT)
}

/// `(fix[9] (λs. λx. λy. if y == 0 then y else s 8 (y - 1))) 5 3`: the last function needs `s` and not `x`.
#[test]
fn e_fix_gives_itself_to_a_function_that_captures_only_that() {
    let result = shown(|b| {
        let body = until_zero(b, "y", |b, less| {
            let (s, eight) = (b.var("s", AT), num(b, 8));
            let s = b.app(s, eight, AT);
            b.app(s, less, AT)
        });
        let f = ["y", "x", "s"].into_iter().fold(body, |body, name| b.abs(name, None, body, AT));
        let f = b.add(Term::Fix { bound: Bound::Finite(9), origin: None, body: f }, AT);
        let (five, three) = (num(b, 5), num(b, 3));
        let f = b.app(f, five, AT);
        b.app(f, three, AT)
    });
    assert_eq!(result, "0");
}

/// `(λg. (fix[9] g) 2) (λs. λx. if x == 0 then x else s (x - 1))`: of `g` nothing says that it is that of a
/// fixpoint.
#[test]
fn e_fix_of_a_variable_calls_its_function() {
    let result = shown(|b| {
        let body = until_zero(b, "x", |b, less| {
            let s = b.var("s", AT);
            b.app(s, less, AT)
        });
        let g = ["x", "s"].into_iter().fold(body, |body, name| b.abs(name, None, body, AT));
        let called = b.var("g", AT);
        let f = b.add(Term::Fix { bound: Bound::Finite(9), origin: None, body: called }, AT);
        let two = num(b, 2);
        let applied = b.app(f, two, AT);
        let f = b.abs("g", None, applied, AT);
        b.app(f, g, AT)
    });
    assert_eq!(result, "0");
}

#[test]
fn fuel_ends_every_run_and_cannot_be_caught() {
    let config = Config { fuel: 10_000, ..Config::default() };
    let (_, result) = run_with(
        config,
        |b| {
            let s = b.var("s", AT);
            let x = b.var("x", AT);
            let call = b.app(s, x, AT);
            let f = b.abs("x", None, call, AT);
            let f = b.abs("s", None, f, AT);
            let f = b.add(Term::Fix { bound: Bound::Infinite, origin: None, body: f }, AT);
            let one = num(b, 1);
            let body = b.app(f, one, AT);
            let (l, handler) = (label(b, &["U", "S"]), num(b, 0));
            b.add(Term::Try { label: l, body, catches: Catches::All, name: "m".into(), handler }, AT)
        },
        |_| panic!("no request expected"),
    );
    assert_eq!(result.unwrap_err().code, ErrorCode::Fuel);
}

#[test]
fn send_under_a_secret_condition_is_refused_and_points_at_the_if() {
    let place = Span { file: FileId(0), start: 7, end: 9 };
    let (machine, result) = run_with(
        Config::default(),
        |b| {
            let yes = b.lit(true, AT);
            let secret = relabel(b, &["S"], yes);
            let text = b.lit("hello", AT);
            let send = b.add(Term::Send(Role::User, text), AT);
            let no = b.lit(Data::Null, AT);
            b.add(Term::If(secret, send, no, IfSugar::Plain), place)
        },
        |_| panic!("no request expected"),
    );
    let failure = result.unwrap_err();
    assert_eq!(failure.code, ErrorCode::Flow);
    assert!(
        failure.message.contains(r#"["S"]"#) && failure.message.contains("labeled []"),
        "{}",
        failure.message
    );
    assert_eq!(failure.notes[0].0, place);
    assert_eq!(machine.lattice().show(failure.label), r#"["S"]"#);
}

#[test]
fn an_error_is_caught_where_its_label_flows_and_nowhere_else() {
    let caught = |letters: &[&str]| {
        shown(|b| {
            let text = b.lit("no", AT);
            let text = relabel(b, &["S"], text);
            let body = b.add(Term::Fail(text), AT);
            let (l, handler) = (label(b, letters), b.var("m", AT));
            b.add(Term::Try { label: l, body, catches: Catches::All, name: "m".into(), handler }, AT)
        })
    };
    assert_eq!(caught(&["S"]), r#"["S"]:"no""#);
    assert_eq!(caught(&["S", "U"]), r#"["U","S"]:"no""#);
    assert_eq!(caught(&["U"]), r#"fail ["U","S"] no"#);
}

#[test]
fn a_reply_that_does_not_decode_is_quoted_back_as_often_as_allowed() {
    let params = ModelParams { result: Some(Type::Num), repair: 2, ..ModelParams::default() };
    let mut asked = Vec::new();
    let mut replies = ["two", "2,", "2"].into_iter();
    let (machine, result) = run_with(
        Config::default(),
        |b| {
            let prompt = b.lit("Count.", AT);
            let llm = b.add(Term::Llm(prompt, Arc::new(params.clone())), AT);
            let text = b.lit("a b", AT);
            let text = relabel(b, &["U"], text);
            b.app(llm, text, AT)
        },
        |request| {
            let Call::Model { messages, attempt, .. } = &request.call else { panic!("a model call") };
            asked.push((messages.len(), *attempt, messages.last().unwrap().content.to_string()));
            Response::Model(Ok(Reply::Text(replies.next().unwrap().into())))
        },
    );
    assert_eq!(machine.reify(&result.unwrap()).to_string(), r#"["U"]:2"#);
    assert_eq!(asked.iter().map(|a| (a.0, a.1)).collect::<Vec<_>>(), [(2, 0), (4, 1), (6, 2)]);
    assert!(asked[1].2.contains("not JSON"), "{}", asked[1].2);
    assert!(machine.conversation().1.is_empty(), "an llm leaves nothing in the caller's conversation");
}

#[test]
fn branches_of_par_ask_at_the_same_time_and_answer_in_any_order() {
    let ask = |b: &mut Builder, text: &str| {
        let prompt = b.lit("", AT);
        let llm = b.add(Term::Llm(prompt, Arc::new(ModelParams::default())), AT);
        let text = b.lit(text, AT);
        b.app(llm, text, AT)
    };
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut b = Builder::new();
        let branches = ["a", "b", "c"].map(|t| ask(&mut b, t)).to_vec();
        let root = b.add(Term::Par(None, branches), AT);
        let code = b.finish(root, &Globals::none()).unwrap();
        let mut machine = Machine::new(Arc::new(code), None, Config::default());
        let mut open: Vec<(RequestId, String)> = Vec::new();
        loop {
            match machine.poll() {
                Output::Request(id, Request { call: Call::Model { messages, .. }, .. }) => {
                    open.push((id, messages.iter().map(|m| m.content.to_uppercase()).collect::<String>()));
                }
                Output::Waiting => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(open.len(), 3);
        for i in order {
            let (id, text) = open[i].clone();
            machine.handle(id, Response::Model(Ok(Reply::Text(text))));
        }
        let Output::Done(Ok(v)) = machine.poll() else { panic!("done") };
        assert_eq!(machine.reify(&v).to_string(), r#"["A", "B", "C"]"#);
    }
}

#[test]
fn an_error_says_which_branch_it_comes_from() {
    let branch_of_failure = |failing: Option<usize>| {
        let mut b = Builder::new();
        let half = Num::from(1).div(&Num::from(2)).unwrap();
        let (one, other) = (b.lit("one", AT), b.lit("other", AT));
        let drawn = b.add(Term::Choose(half, one, other), AT);
        let fails = b.add(Term::Fail(drawn), AT);
        let root = match failing {
            None => fails,
            Some(i) => {
                let mut branches = vec![num(&mut b, 1), num(&mut b, 2)];
                branches[i] = fails;
                b.add(Term::Par(None, branches), AT)
            }
        };
        let code = b.finish(root, &Globals::none()).unwrap();
        let mut machine = Machine::new(Arc::new(code), None, Config::default());
        loop {
            match machine.poll() {
                Output::Request(id, _) => machine.handle(id, Response::Sample(true)),
                Output::Working => {}
                Output::Done(Err(failure)) => break failure.strand,
                other => panic!("it fails: {other:?}"),
            }
        }
    };
    let (itself, first, second) =
        (branch_of_failure(None), branch_of_failure(Some(0)), branch_of_failure(Some(1)));
    assert_eq!(itself, 0);
    assert!(first != 0 && second != 0 && first != second);
}

#[test]
fn par_starts_no_more_branches_than_its_bound_admits() {
    let mut b = Builder::new();
    let half = Num::from(1).div(&Num::from(2)).unwrap();
    let branches = (0..5)
        .map(|_| {
            let (x, y) = (num(&mut b, 1), num(&mut b, 2));
            b.add(Term::Choose(half.clone(), x, y), AT)
        })
        .collect();
    let root = b.add(Term::Par(Some(2), branches), AT);
    let code = b.finish(root, &Globals::none()).unwrap();
    let mut machine = Machine::new(Arc::new(code), None, Config::default());
    let mut open = std::collections::VecDeque::new();
    let mut most = 0;
    let done = loop {
        match machine.poll() {
            Output::Request(id, _) => open.push_back(id),
            Output::Waiting => {
                most = most.max(open.len());
                machine.handle(open.pop_front().unwrap(), Response::Sample(true));
            }
            Output::Working => {}
            Output::Done(d) => break d,
        }
    };
    assert_eq!((most, machine.reify(&done.unwrap()).to_string()), (2, "[1, 1, 1, 1, 1]".into()));
}

#[test]
fn a_model_sees_only_what_its_clearance_admits() {
    let config =
        Config { clearance: LabelSpec::Axes { untrusted: true, secret: false }, ..Config::default() };
    let (_, result) = run_with(
        config,
        |b| {
            let text = b.lit("my password", AT);
            let text = relabel(b, &["S"], text);
            let send = b.add(Term::Send(Role::User, text), AT);
            let recv = b.add(Term::Recv(Recv::Code), AT);
            b.let_in(vec![("_".into(), send)], recv, AT)
        },
        |_| panic!("the model must not be asked"),
    );
    assert_eq!(result.unwrap_err().code, ErrorCode::Flow);
}

#[test]
fn a_named_model_sees_what_its_own_clearance_admits() {
    let public = LabelSpec::Axes { untrusted: true, secret: false };
    let ask = |model: Option<&str>| {
        let config = Config {
            clearance: public.clone(),
            clearances: vec![("local".into(), LabelSpec::TOP), ("odd".into(), LabelSpec::Exact(Data::Null))],
            ..Config::default()
        };
        let params = ModelParams { model: model.map(Into::into), ..ModelParams::default() };
        let (_, result) = run_with(
            config,
            |b| {
                let prompt = b.lit("", AT);
                let llm = b.add(Term::Llm(prompt, params.into()), AT);
                let text = b.lit("my password", AT);
                let text = relabel(b, &["S"], text);
                b.app(llm, text, AT)
            },
            |_| Response::Model(Ok(Reply::Text("ok".into()))),
        );
        result.map(|_| ()).map_err(|e| e.code)
    };
    assert_eq!(ask(Some("local")), Ok(()));
    assert_eq!(ask(Some("remote")), Err(ErrorCode::Flow));
    assert_eq!(ask(None), Err(ErrorCode::Flow));
    // A clearance that is no label of the lattice admits nothing.
    assert_eq!(ask(Some("odd")), Err(ErrorCode::Flow));
}

#[test]
fn without_a_parser_a_reply_received_as_code_does_not_parse() {
    let (machine, result) = run_with(
        Config::default(),
        |b| {
            let text = b.lit("hi", AT);
            b.ask(text, AT)
        },
        |_| Response::Model(Ok(Reply::Text("1".into()))),
    );
    let shown = machine.reify(&result.unwrap()).to_string();
    assert_eq!(shown, r#"[false, "this run reads no generated code"]"#);
    assert_eq!(machine.conversation().1.len(), 2);
}

#[test]
fn mismatched_and_unsolicited_responses_are_ignored() {
    let half = Num::from(1).div(&Num::from(2)).unwrap();
    let (_, result) = run_with(
        Config::default(),
        |b| {
            let (x, y) = (num(b, 1), num(b, 2));
            b.add(Term::Choose(half, x, y), AT)
        },
        |_| Response::Tool(Ok(Data::Null)),
    );
    assert_eq!(result.unwrap_err().code, ErrorCode::Unknown);
    let mut b = Builder::new();
    let root = num(&mut b, 1);
    let code = b.finish(root, &Globals::none()).unwrap();
    let mut machine = Machine::new(Arc::new(code), None, Config::default());
    machine.handle(RequestId { strand: 7, number: 7 }, Response::Sample(true));
    assert!(matches!(machine.poll(), Output::Done(Ok(_))));
    machine.handle(RequestId { strand: 0, number: 0 }, Response::Sample(true));
    assert!(matches!(machine.poll(), Output::Done(Ok(_))));
}

/// A draw of a coin whose sides are numbers, and what was asked meanwhile.
fn draws(build: impl FnOnce(&mut Builder) -> TermId) -> Vec<u64> {
    let mut seen = Vec::new();
    let (_, result) = run_with(Config::default(), build, |request| {
        let Call::Sample { draw, .. } = &request.call else { panic!("a sample") };
        if request.channel == core_ir::Label::BOTTOM {
            seen.push(*draw);
        }
        Response::Sample(true)
    });
    result.unwrap();
    seen
}

#[test]
fn public_draws_do_not_depend_on_secret_ones() {
    let program = |secret: bool| {
        draws(move |b| {
            let half = Num::from(1).div(&Num::from(2)).unwrap();
            let toss = |b: &mut Builder| {
                let (x, y) = (num(b, 1), num(b, 2));
                b.add(Term::Choose(half.clone(), x, y), AT)
            };
            let condition = b.lit(secret, AT);
            let condition = relabel(b, &["S"], condition);
            let (drawn, not_drawn) = (toss(b), num(b, 0));
            let parallel = b.add(Term::Par(None, vec![drawn]), AT);
            let high = b.add(Term::If(condition, parallel, not_drawn, IfSugar::Plain), AT);
            let low = toss(b);
            let low_branch = toss(b);
            let low_par = b.add(Term::Par(None, vec![low_branch]), AT);
            b.add(Term::List(vec![high, low, low_par]), AT)
        })
    };
    assert_eq!(program(true), program(false));
    assert_eq!(program(true).len(), 2);
}

#[test]
fn a_secret_error_in_a_branch_stops_the_others_at_once() {
    let mut b = Builder::new();
    let half = Num::from(1).div(&Num::from(2)).unwrap();
    let text = b.lit("no", AT);
    let text = relabel(&mut b, &["S"], text);
    let failing = b.add(Term::Fail(text), AT);
    let (x, y) = (num(&mut b, 1), num(&mut b, 2));
    let asking = b.add(Term::Choose(half, x, y), AT);
    let root = b.add(Term::Par(None, vec![failing, asking]), AT);
    let code = b.finish(root, &Globals::none()).unwrap();
    let mut machine = Machine::new(Arc::new(code), None, Config::default());
    let Output::Done(Err(failure)) = machine.poll() else { panic!("ended without asking") };
    assert_eq!(failure.code, ErrorCode::Fail);
}

#[test]
fn a_refusal_that_may_be_caught_does_not_name_the_label_of_the_data() {
    let (_, result) = run_with(
        Config::default(),
        |b| {
            let (bound, one) = (label(b, &[]), num(b, 1));
            let data = relabel(b, &["S"], one);
            b.add(Term::Assert(bound, data), AT)
        },
        |_| panic!("no request expected"),
    );
    let failure = result.unwrap_err();
    assert!(!failure.message.contains('S') && failure.notes[0].1.contains('S'), "{failure:?}");
}

#[test]
fn the_conversation_is_kept_when_a_branch_ends_the_run() {
    let (machine, result) = run_with(
        Config::default(),
        |b| {
            let hello = b.lit("hello", AT);
            let send = b.add(Term::Send(Role::User, hello), AT);
            let text = b.lit("no", AT);
            let text = relabel(b, &["S"], text);
            let failing = b.add(Term::Fail(text), AT);
            let par = b.add(Term::Par(None, vec![failing]), AT);
            let fork = b.add(Term::Fork(par), AT);
            b.let_in(vec![("_".into(), send)], fork, AT)
        },
        |_| panic!("no request expected"),
    );
    assert_eq!(result.unwrap_err().code, ErrorCode::Fail);
    assert_eq!(machine.conversation().1.len(), 1);
}

#[test]
fn a_run_that_is_ended_from_outside_points_at_what_it_waited_for() {
    let place = Span { file: FileId(0), start: 3, end: 5 };
    let end = |stop: bool| {
        let mut b = Builder::new();
        let half = Num::from(1).div(&Num::from(2)).unwrap();
        let (x, y) = (num(&mut b, 1), num(&mut b, 2));
        let root = b.add(Term::Choose(half, x, y), place);
        let code = b.finish(root, &Globals::none()).unwrap();
        let mut machine = Machine::new(Arc::new(code), None, Config::default());
        let Output::Request(id, _) = machine.poll() else { panic!("a request") };
        let reason = machine::Stop { reason: machine::StopReason::Budget, message: "enough".into() };
        if stop {
            machine.handle(id, Response::Stop(reason));
        } else {
            machine.cancel(reason);
        }
        let Output::Done(Err(failure)) = machine.poll() else { panic!("ended") };
        (failure.code, failure.span)
    };
    assert_eq!(end(true), (ErrorCode::Budget, place));
    assert_eq!(end(false), (ErrorCode::Budget, place));
}

#[test]
fn requests_carry_the_time_limits_around_them_in_branches_too() {
    let limits = |request: &Request| -> Vec<(u64, String)> {
        request.deadlines.iter().map(|d| (d.scope, d.seconds.to_string())).collect()
    };
    let place = Span { file: FileId(0), start: 3, end: 5 };
    let toss = |b: &mut Builder| {
        let (x, y) = (num(b, 1), num(b, 2));
        b.add(Term::Choose(Num::ONE, x, y), AT)
    };
    let build = |b: &mut Builder| {
        // within[9] [toss, par [toss, within[1] toss]], then toss outside
        let (first, second, third, last) = (toss(b), toss(b), toss(b), toss(b));
        let inner = b.add(Term::Within(Num::from(1), third), AT);
        let par = b.add(Term::Par(None, vec![second, inner]), AT);
        let list = b.add(Term::List(vec![first, par]), AT);
        let outer = b.add(Term::Within(Num::from(9), list), place);
        b.add(Term::List(vec![outer, last]), AT)
    };
    let run = || {
        let mut seen = Vec::new();
        let (_, result) = run_with(Config::default(), build, |request| {
            seen.push(limits(request));
            Response::Sample(true)
        });
        assert!(result.is_ok());
        seen
    };
    let seen = run();
    let seconds: Vec<Vec<&str>> = seen.iter().map(|r| r.iter().map(|l| &*l.1).collect()).collect();
    assert_eq!(seconds, [vec!["9"], vec!["9"], vec!["1", "9"], vec![]]);
    // One scope is one scope in all its branches, and in every run.
    assert!(seen[0][0].0 == seen[1][0].0 && seen[0][0].0 == seen[2][1].0 && seen[2][0].0 != seen[0][0].0);
    assert_eq!(seen, run());

    let (_, result) = run_with(Config::default(), build, |_| Response::Late(0));
    let failure = result.unwrap_err();
    assert_eq!((failure.code, &*failure.message), (ErrorCode::Timeout, "no answer within 9 s"));
    assert_eq!(failure.notes, [(place, "this limit had passed".to_string())]);
}

#[test]
fn the_place_of_a_request_does_not_grow_with_the_depth_of_branches() {
    // Each branch tosses a coin and has a branch of its own: places that grew with it would take memory in
    // the square of 5,000.
    let mut longest = 0;
    let mut ids = std::collections::HashSet::new();
    let (_, result) = run_with(
        Config::default(),
        |b| {
            let f = countdown(b, Bound::Infinite, |b| {
                let sides = [num(b, 0), num(b, 1)];
                let half = Num::from(1).div(&Num::from(2)).unwrap();
                let toss = b.add(Term::Choose(half, sides[0], sides[1]), AT);
                let next = again(b);
                let both = b.let_in(vec![("_".into(), toss)], next, AT);
                b.add(Term::Par(None, vec![both]), AT)
            });
            let n = num(b, 5_000);
            b.app(f, n, AT)
        },
        |request| {
            longest = longest.max(request.place.path().len());
            ids.insert(request.place.path());
            Response::Sample(true)
        },
    );
    assert!(result.is_ok(), "{result:?}");
    assert!(longest < 400, "{longest}");
    assert!(ids.len() > 90, "{}", ids.len());
}

/// Branches that do nothing but compute are carried out in place. Nobody can tell: what is drawn in a later
/// `par` is what it would be had they been strands.
#[test]
fn inline_branches_draw_as_strands() {
    let drawn = |strand: bool| {
        let mut draws = Vec::new();
        let build = |b: &mut Builder| {
            let one = num(b, 1);
            let first = if strand { b.add(Term::Fork(one), AT) } else { one };
            let first = b.add(Term::Par(None, vec![first]), AT);
            let (heads, tails) = (num(b, 1), num(b, 0));
            let half = Num::from(1).div(&Num::from(2)).unwrap();
            let toss = b.add(Term::Choose(half, heads, tails), AT);
            let second = b.add(Term::Par(None, vec![toss]), AT);
            b.add(Term::List(vec![first, second]), AT)
        };
        let (_, result) = run_with(Config::default(), build, |r| {
            let Call::Sample { draw, .. } = &r.call else { panic!("a sample") };
            draws.push((*draw, r.place.path()));
            Response::Sample(true)
        });
        assert!(result.is_ok());
        draws
    };
    assert_eq!(drawn(false), drawn(true));
}

#[test]
fn branches_in_place_run_to_their_end_and_the_first_error_counts() {
    let failing = |b: &mut Builder, text: &str| {
        let message = b.lit(text, AT);
        let length = b.add(Term::Prim(Prim::Length, vec![message]), AT);
        b.add(Term::Field(length, text.into()), AT)
    };
    let par = |b: &mut Builder| {
        let (first, second) = (failing(b, "one"), failing(b, "two"));
        let fine = num(b, 3);
        b.add(Term::Par(None, vec![fine, first, second]), AT)
    };
    assert_eq!(shown(par), "index [] no field `one` in a number");
    let caught = shown(|b| {
        let body = par(b);
        let label = label(b, &[]);
        let handler = b.var("e", AT);
        b.add(Term::Try { label, body, name: "e".into(), handler, catches: Catches::All }, AT)
    });
    assert_eq!(caught, "\"no field `one` in a number\"");
    // An error above the program counter of the `par` ends the run; where a `try` has raised that, it is
    // caught.
    let above = |at: &'static [&'static str]| {
        shown(move |b| {
            let secret = num(b, 1);
            let secret = relabel(b, &["S"], secret);
            let failing = b.add(Term::Field(secret, "x".into()), AT);
            let inner = b.add(Term::Par(None, vec![failing]), AT);
            let body = b.add(Term::Par(None, vec![inner]), AT);
            let (label, handler) = (label(b, at), b.lit("caught", AT));
            b.add(Term::Try { label, body, name: "e".into(), handler, catches: Catches::All }, AT)
        })
    };
    assert_eq!(above(&[]), "index [\"S\"] no field `x` in a number");
    assert_eq!(above(&["S"]), "[\"S\"]:\"caught\"");
}

#[test]
fn a_tag_that_is_sent_as_the_models_own_is_a_call() {
    let mut asked = Vec::new();
    let (_, result) = run_with(
        Config::default(),
        |b| {
            let city = b.lit("Bonn", AT);
            let args = b.add(Term::Record(vec![("city".into(), city)]), AT);
            let call = b.add(Term::Tag("weather".into(), Some(args)), AT);
            let sent = b.add(Term::Send(Role::Assistant, call), AT);
            let rain = b.lit("rain", AT);
            let result = b.add(Term::Send(Role::Tool, rain), AT);
            // Said by anybody else it is a text.
            let tag = b.add(Term::Tag("weather".into(), None), AT);
            let text = b.add(Term::Send(Role::User, tag), AT);
            let recv = b.add(Term::Recv(Recv::Data(Arc::new(ModelParams::default()))), AT);
            b.let_in(vec![("_".into(), sent), ("_".into(), result), ("_".into(), text)], recv, AT)
        },
        |request| {
            if let Call::Model { messages, .. } = &request.call {
                asked = messages.iter().map(|m| (m.role, m.content.to_string(), m.call.clone())).collect();
            }
            Response::Model(Ok(Reply::Text("yes".into())))
        },
    );
    assert!(result.is_ok());
    let args = Data::record([("city".into(), Data::str("Bonn"))]);
    assert_eq!(asked[0].0, Role::Assistant);
    assert_eq!(asked[0].2.as_deref(), Some(&("weather".into(), args)));
    assert_eq!((asked[1].1.as_str(), &asked[1].2), ("rain", &None));
    assert_eq!((asked[2].1.as_str(), &asked[2].2), ("`weather", &None));
}
