//! Programs that the type checker accepts do not get stuck and return values of the inferred type.
//!
//! `ENTAIL_CASES=1000000` tries that many programs.

use crate::common::{cases, out_of_fuel, run_machine};
use analysis::types;
use core_ir::{Builder, Code, Data, EffectRow, StoreDecl, Term, TermId, ToolDecl, Type};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use testkit::drive::Order;
use testkit::generate::{Program, Script, Style, programs};
use testkit::outcome::{Failure, Outcome, Tree, TreeNode};
use testkit::world::Call;

/// Returns true if no well-typed program can have the error. Values of the right type may still be out of
/// range (an index, a divisor, a string that is not a number).
fn is_stuck(e: &Failure) -> bool {
    match e.code {
        "not_a_function" | "no_branch" | "unknown" => true,
        // A `check`, the result of a tool, and what a store holds, are decided by the run.
        "type" => !["value: ", "the result of ", "what the key "].iter().any(|of| e.message.starts_with(of)),
        "prim" => {
            e.message.contains("functions")
                || e.message.contains("needs")
                    && !e.message.contains("indices")
                    && !e.message.contains("two integers")
        }
        "index" => !e.message.contains("has nothing at"),
        _ => false,
    }
}

/// A value as data, if no function is in it.
fn data(tree: &Tree) -> Option<Data> {
    Some(match &tree.node {
        TreeNode::Scalar(d) => d.clone(),
        TreeNode::List(items) => Data::List(items.iter().map(data).collect::<Option<_>>()?),
        TreeNode::Record(fields) | TreeNode::Args(_, fields) => {
            Data::Record(fields.iter().map(|(n, t)| Some((n.clone(), data(t)?))).collect::<Option<_>>()?)
        }
        TreeNode::Pair(p) => Data::Pair(std::sync::Arc::new((data(&p.0)?, data(&p.1)?))),
        TreeNode::Tag(n, t) => Data::Tag(n.clone(), std::sync::Arc::new(data(t)?)),
        TreeNode::Function(_) => return None,
    })
}

/// Checks that the effects of a run are within the inferred ones.
fn within(outcome: &Outcome, effects: &EffectRow, sets: usize) -> Result<(), TestCaseError> {
    use core_ir::Effect;
    let EffectRow::Only(set) = effects else { return Ok(()) };
    // The reads of sets are made before the first step of the term.
    for (call, _) in outcome.requests.iter().skip(sets) {
        let effect = match call {
            Call::Model { params, .. } => {
                Effect::Llm(params.as_ref().and_then(|p| p.model.clone()).unwrap_or_else(|| "".into()))
            }
            Call::Tool { name, .. } => Effect::Tool(name.clone()),
            Call::Recall { key, .. } | Call::Remember { key, .. } => Effect::State(key.clone()),
            Call::Sample { .. } => Effect::Sample,
            // Asking a person is no effect of its own: the tool that it is for is.
            _ => continue,
        };
        prop_assert!(set.contains(&effect), "{} is not among {}", effect, effects);
    }
    // A run without fuel ends anywhere.
    let spoke = !outcome.conversation.is_empty() && !out_of_fuel(outcome);
    prop_assert!(!spoke || set.contains(&Effect::Conversation), "a conversation is not among {}", effects);
    Ok(())
}

/// Marker before the type in the message of a step that broke it.
const STEP: &str = "step";

/// Returns true if a value of this type has no part that the type does not tell of.
fn tells_all(ty: &Type) -> bool {
    match ty {
        Type::Str | Type::Num | Type::Bool | Type::Null | Type::Enum(_) => true,
        Type::List(of) | Type::Option(of) => tells_all(of),
        Type::Pair(of) | Type::Map(of) => tells_all(&of.0) && tells_all(&of.1),
        Type::Variant(of) => of.iter().all(|(_, ty)| tells_all(ty)),
        Type::Refined(of) => tells_all(&of.0),
        Type::Dyn | Type::Record(_) | Type::Fun(_) | Type::Rec(_) | Type::Var(_) => false,
    }
}

/// The program with a `check` of its type around every subterm whose type is known, and such as is wanted.
fn stepwise(code: &Code, steps: &[(TermId, Type)], wanted: fn(&Type) -> bool) -> Code {
    // A subterm that is looked at twice has the types of both.
    let mut types: HashMap<TermId, Vec<&Type>> = HashMap::new();
    for (id, ty) in steps {
        let known = types.entry(*id).or_default();
        if !known.contains(&ty) {
            known.push(ty);
        }
    }
    let mut b = Builder::new();
    for tool in &code.tools {
        b.tool(ToolDecl::clone(tool));
    }
    for store in &code.stores {
        b.store(StoreDecl::clone(store));
    }
    let mut new: Vec<TermId> = Vec::with_capacity(code.len());
    for (id, term) in code.iter() {
        let mut copy = term.clone().map_children(&mut |c| new[c.0 as usize]);
        match &mut copy {
            // With something between their parts they are no longer what the notation represents.
            Term::Abs(abs) => (abs.sugar, abs.captures) = (core_ir::AbsSugar::Plain, Box::default()),
            Term::Let { sugar, .. } => *sugar = core_ir::LetSugar::Plain,
            Term::If(.., sugar) => *sugar = core_ir::IfSugar::Plain,
            Term::Recall(_, key) | Term::Remember(_, key, _) => *key = None,
            _ => {}
        }
        let mut copy = b.add(copy, code.span(id));
        if let Some([ty]) = types.get(&id).map(Vec::as_slice)
            && wanted(ty)
        {
            copy = b.add(Term::Check(STEP.into(), Type::clone(ty), copy), code.span(id));
        }
        new.push(copy);
    }
    b.finish(new[code.root().0 as usize], code.globals()).expect("the same names")
}

/// Preservation, step by step (seed 000, Theorem 5.2): what each subterm gives is of the subterm's type,
/// whenever it is evaluated. A run in which every such value is looked at is the same run.
fn preserved(
    program: &Program,
    code: &Code,
    steps: &[(TermId, Type)],
    plain: &Outcome,
) -> Result<(), TestCaseError> {
    let watched = |wanted| {
        let watched = Arc::new(stepwise(code, steps, wanted));
        crate::common::run_code(program, &watched, &mut Script::new(program), Order::AtOnce)
    };
    let outcome = watched(|_| true);
    // Looking costs fuel, and a value may be too large to be looked at, or have a function in a part that its
    // type does not tell of.
    let cut = |o: &Outcome| {
        let other =
            |e: &Failure| e.code == "fuel" || e.code == "limit" || e.message.contains("found a function");
        o.result.as_ref().is_err_and(other)
    };
    if cut(&outcome) || cut(plain) {
        return Ok(());
    }
    if let Err(e) = &outcome.result {
        prop_assert!(!e.message.starts_with(STEP), "a step does not preserve its type: {}", e.message);
    }
    // One that the program caught shows in what came of it; but so does that a function was found, or the
    // fuel that looking took.
    let is_try = |(_, term): (_, &Term)| matches!(term, Term::Try { .. });
    if code.iter().any(is_try) && crate::common::same(program, plain, &outcome).is_err() {
        let outcome = watched(tells_all);
        return if cut(&outcome) { Ok(()) } else { crate::common::same(program, plain, &outcome) };
    }
    crate::common::same(program, plain, &outcome)
}

fn safe(program: &Program) -> Result<(), TestCaseError> {
    let code = program.code();
    let (typing, steps) = types::check_steps(&code);
    prop_assert!(typing.complete);
    if diagnostics::has_errors(&typing.diagnostics) {
        return Ok(());
    }
    let outcome = run_machine(program, None, &mut Script::new(program), Order::AtOnce);
    // What a model writes is not checked before it is run.
    if typing.is_static() {
        if let Err(e) = &outcome.result {
            prop_assert!(!is_stuck(e), "stuck: {:?}", e);
        }
        if let Ok(tree) = &outcome.result
            && let Some(d) = data(tree)
        {
            prop_assert!(!matches!(typing.ty, core_ir::Type::Fun(_)), "{} is no {}", tree, typing.ty);
            let fits = typing.ty.check(&d);
            prop_assert!(fits.is_ok(), "{} is no {}: {:?}", tree, typing.ty, fits);
        }
        preserved(program, &code, &steps, &outcome)?;
    }
    within(&outcome, &typing.effects, code.set_reads().len())?;
    let bound = analysis::cost::bound(&code, false);
    let count = |of: fn(&Call) -> bool| outcome.requests.iter().filter(|(c, _)| of(c)).count() as u64;
    let (models, tools) =
        (count(|c| matches!(c, Call::Model { .. })), count(|c| matches!(c, Call::Tool { .. })));
    prop_assert!(
        bound.model_calls.most.is_none_or(|m| models <= m),
        "{} models, {}",
        models,
        bound.model_calls
    );
    prop_assert!(bound.tool_calls.most.is_none_or(|m| tools <= m), "{} tools, {}", tools, bound.tool_calls);
    // Store typing: whatever is remembered is of its key's type.
    for (call, _) in &outcome.requests {
        if let Call::Remember { store, key, value } = call {
            let decl = program.stores.iter().find(|s| s.name == *store);
            let key = decl.and_then(|s| s.keys.iter().find(|k| k.name == *key));
            prop_assert!(key.is_some_and(|k| k.ty.check(value).is_ok()), "{:?}", call);
        }
    }
    Ok(())
}

fn many(usually: u32) -> ProptestConfig {
    let cases_of = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    match cases_of("ENTAIL_CASES") {
        Some(n) => ProptestConfig { cases: n, ..cases(n) },
        None => cases(usually),
    }
}

fn typed() -> Style {
    Style { wild: 0, typed: true, ..Style::default() }
}

proptest! {
    #![proptest_config(many(5_000))]

    #[test]
    fn well_typed_programs_are_never_stuck(program in programs(typed())) {
        safe(&program)?;
    }


    #[test]
    fn accepted_programs_are_never_stuck(program in programs(Style::default())) {
        safe(&program)?;
    }
}

proptest! {
    #![proptest_config(cases(1_000))]

    /// One part of a well-typed program is replaced by something else: it is rejected, or still safe.
    #[test]
    fn mutants_are_rejected_or_safe(program in programs(typed()), at in any::<u16>(), by in 0..6u8) {
        safe(&program.with(mutated(&program.ast, at as usize, by)))?;
    }

    #[test]
    fn wild_programs_that_are_accepted_are_never_stuck(program in programs(Style { wild: 30, ..Style::default() })) {
        safe(&program)?;
    }
}

/// The tree with another former at one place.
fn mutated(ast: &testkit::generate::Ast, at: usize, by: u8) -> testkit::generate::Ast {
    use testkit::generate::{Ast, Op};
    fn go(ast: &Ast, left: &mut usize, new: &Ast) -> Ast {
        if *left == 0 {
            *left = usize::MAX;
            return new.clone();
        }
        *left -= 1;
        Ast::new(ast.op.clone(), ast.kids.iter().map(|k| go(k, left, new)).collect::<Vec<_>>())
    }
    let new = match by {
        0 => Ast::lit(true),
        1 => Ast::lit("text"),
        2 => Ast::lit(core_ir::Num::ONE),
        3 => Ast::lit(Data::Null),
        4 => Ast::new(Op::Lam, [Ast::var(0)]),
        _ => Ast::new(Op::List, [Ast::lit("item")]),
    };
    go(ast, &mut (at % ast.size()), &new)
}

/// The properties above are not empty: most programs are accepted, and most of those are known throughout.
#[test]
fn most_well_typed_programs_are_accepted_and_run_to_a_value() {
    let mut runner = TestRunner::deterministic();
    let (mut accepted, mut known, mut values, mut rejected, mut watched, mut terms) = (0, 0, 0, 0, 0, 0);
    let total = 1_000;
    for _ in 0..total {
        let program = programs(typed()).new_tree(&mut runner).expect("a program").current();
        let code = program.code();
        let (typing, steps) = types::check_steps(&code);
        watched += steps.iter().map(|(id, _)| id).collect::<HashSet<_>>().len();
        terms += code.len();
        if !typing.diagnostics.is_empty() {
            continue;
        }
        accepted += 1;
        known += usize::from(typing.is_static());
        let outcome = run_machine(&program, None, &mut Script::new(&program), Order::AtOnce);
        values += usize::from(outcome.result.is_ok());
        let mutant = program.with(mutated(&program.ast, accepted * 7, (accepted % 6) as u8));
        rejected += usize::from(!types::check(&mutant.code(), None).diagnostics.is_empty());
    }
    let seen = format!(
        "{accepted} accepted, {known} known, {values} values, {rejected} mutants rejected, {watched} of {terms} subterms watched"
    );
    assert!(watched * 3 > terms, "{seen}");
    assert!(accepted * 10 > total * 7 && known * 10 > accepted * 7 && values * 2 > accepted, "{seen}");
    assert!(rejected * 5 > accepted, "{seen}");
}

/// Terms generated for a type are well typed. A few are rejected for reasons other than their type: branches
/// that share a key, a guard that no value satisfies, or an index beyond a list of known length.
///
/// A strict generator was once given up for a rejection that nobody explained (the last seed). The rejections
/// there were had four causes: guards on curried functions (the checker, below), and in the generator tools
/// used as functions of other types, strings in a `case` without `_`, and hidden variables.
#[test]
fn generated_programs_pass_or_fail_for_known_reasons() {
    use analysis::types::codes;
    let mut rejected = 0;
    for seed in (0..3_000).chain([12_206_975_254_572_688_034]) {
        let program = testkit::generate::of_seed(seed, &typed());
        let typing = types::check(&program.code(), None);
        rejected += usize::from(!typing.diagnostics.is_empty());
        for d in &typing.diagnostics {
            let other = [codes::PAR_STATE, codes::IMPOSSIBLE_GUARD].contains(&d.code);
            let beyond = d.code == codes::NO_FIELD && d.message.contains("has nothing at");
            assert!(other || beyond, "{seed}: {} {}\n{program:?}", d.code, d.message);
        }
    }
    assert!(rejected < 600, "{rejected}");
}

/// A function in a part that the type does not tell of is found by looking, not by the program, which may
/// catch what comes of that.
#[test]
fn type_inspection_is_not_a_program_step() {
    for seed in [17_618_494_750_464_277_715, 15_930_560_943_368_356_999] {
        safe(&testkit::generate::of_seed(seed, &typed())).unwrap();
    }
    let hidden = Type::record([]);
    assert!(!tells_all(&Type::list(hidden)) && tells_all(&Type::list(Type::Str)));
}

/// A guard on a curried function guards what it gives in the end; the checker once took what is in between
/// for that.
#[test]
fn a_guarded_function_may_return_a_function() {
    let typing = types::check(&crate::common::lam(r"(guard (\x. \y. 'a') any) 1 2"), None);
    assert_eq!(typing.diagnostics, []);
    assert_eq!(typing.ty.to_string(), "Str");
    let typing = types::check(&crate::common::lam(r"prim[upper]((guard (\x. \y. 'a') any) 1)"), None);
    assert!(diagnostics::has_errors(&typing.diagnostics));
}
