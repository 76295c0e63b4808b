//! Modules that are evaluated once for all that import them.

use crate::*;
use diagnostics::FileId;
use std::fmt::Write;
use std::sync::Arc;

fn modules(files: &[(String, String)]) -> Modules {
    let mut sources = Sources::new();
    for ((path, text), n) in files.iter().zip(1..) {
        sources.add(FileId(n), path, text.as_str().into());
    }
    Modules::new(sources)
}

fn owned(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(p, t)| (p.to_string(), t.to_string())).collect()
}

/// Everything that can be seen of a value, so deep.
fn shown(world: &World<'_>, value: &Value, depth: usize) -> String {
    let inner = |v: &Value| if depth > 3 { "…".into() } else { shown(world, v, depth + 1) };
    match &value.kind {
        PyKind::Object(id) => {
            let o = world.object(*id);
            let args: Vec<String> = o.args.iter().map(|a| inner(&a.value)).collect();
            let attrs: Vec<String> = o.attrs.iter().map(|(n, v)| format!("{n}={}", inner(v))).collect();
            let calls: Vec<&str> = o.calls.iter().map(|c| &*c.name).collect();
            format!("{}({}){{{}}}.{}", o.callee, args.join(" "), attrs.join(" "), calls.join("."))
        }
        PyKind::List(id) | PyKind::Either(id) => {
            format!("[{}]", world.list(*id).items.iter().map(inner).collect::<Vec<_>>().join(" "))
        }
        PyKind::Dict(id) => {
            let entries = world.dict(*id).entries.iter().map(|(k, v)| format!("{}:{}", inner(k), inner(v)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(" "))
        }
        PyKind::Function(id) => world.function(*id).qualified.to_string(),
        PyKind::Class(id) => world.class(*id).qualified.to_string(),
        PyKind::Text(id) => format!("{} pieces", world.pieces(*id).len()),
        PyKind::Env(id) => format!("env {:?}", world.env(*id).name),
        PyKind::Member(id, name) => format!("{}.{name}", world.object(*id).callee),
        PyKind::Bound(_, id) => format!("bound {}", world.function(*id).qualified),
        other => format!("{other:?}"),
    }
}

/// All that a module makes.
fn dump(world: &World<'_>, module: usize) -> String {
    let mut out = String::new();
    for (name, value) in world.globals(module) {
        writeln!(out, "{name} = {}", shown(world, value, 0)).unwrap();
    }
    for (id, _) in world.objects() {
        let value = Value::new(PyKind::Object(id), world.object(id).span);
        writeln!(out, "{} {}", shown(world, &value, 0), world.object(id).explored).unwrap();
    }
    writeln!(out, "{:?}", world.exceeded()).unwrap();
    out
}

/// Evaluates a module among others and prints its names and objects.
fn among(modules: &Modules, path: &str, text: &str) -> String {
    let main = Arc::new(Source::new(FileId(0), path, text.into()));
    modules.among(main, Limits::default(), None, |world, module| dump(&world, module))
}

/// The values of some names of a module, among others.
fn names(files: &[(&str, &str)], text: &str, names: &[&str]) -> Vec<String> {
    let main = Arc::new(Source::new(FileId(0), "main.py", text.into()));
    modules(&owned(files)).among(main, Limits::default(), None, |mut world, module| {
        let value = |w: &mut World<'_>, n: &&str| w.global(module, n).map(|v| shown(w, &v, 0));
        names.iter().map(|n| value(&mut world, n).unwrap_or_default()).collect()
    })
}

#[test]
fn changes_of_another_module_are_seen_by_its_importers() {
    let files = [
        ("base.py", "from m import Agent\nALL = []\nA = Agent('a')\nD = {}\nclass C: pass\n"),
        (
            "one.py",
            "import base\nfrom base import ALL, A, D, C\nALL.append(1)\nA.add(1)\nD['one'] = 1\nC.one = 1\nbase.X = 1\n",
        ),
        (
            "two.py",
            "from base import ALL, A, D, C\nALL.append(2)\nA.also(2)\nA.two = 2\nD['two'] = 2\nC.two = 2\n",
        ),
        ("both.py", "import one, two\nfrom base import ALL\nALL.append(3)\n"),
    ];
    let wanted = ["ALL", "A", "D", "x"];
    let text = |imports: &str| format!("{imports}\nfrom base import ALL, A, D, C\nx = [C.one, C.two]\n");
    let none = ["[]", "m.Agent(Str(\"a\")){}.", "{}"];
    assert_eq!(names(&files, &text(""), &wanted[..3]), none);
    let one = ["[Int(1)]", "m.Agent(Str(\"a\")){}.add", "{Str(\"one\"):Int(1)}"];
    assert_eq!(names(&files, &text("import one"), &wanted[..3]), one);
    let all = [
        "[Int(1) Int(2)]",
        "m.Agent(Str(\"a\")){two=Int(2)}.add.also",
        "{Str(\"one\"):Int(1) Str(\"two\"):Int(2)}",
        "[Int(1) Int(2)]",
    ];
    assert_eq!(names(&files, &text("import one, two"), &wanted), all);
    assert_eq!(names(&files, &text("import both"), &wanted[..1]), ["[Int(1) Int(2) Int(3)]"]);
    assert_eq!(names(&files, &text("import one, two, both"), &wanted[..1]), ["[Int(1) Int(2) Int(3)]"]);
    assert_eq!(names(&files, &text("import both, two"), &wanted[..1]), ["[Int(1) Int(2) Int(3)]"]);
}

#[test]
fn a_module_that_imports_what_imports_it_is_another_copy() {
    let files = [
        ("main.py", "from m import A\nX = A('stored')\nimport other\n"),
        ("other.py", "import main\nY = main.X\n"),
    ];
    let text = "from m import A\nimport other\nX = A('started')\nY = other.Y\nN = __name__\n";
    assert_eq!(
        names(&files, text, &["X", "Y", "N"]),
        ["m.A(Str(\"started\")){}.", "m.A(Str(\"stored\")){}.", "Str(\"__main__\")"]
    );
}

#[test]
fn a_cycle_is_evaluated_from_the_highest_package() {
    let files = [
        ("p/__init__.py", "B = 1\nfrom p.deep import D\nC = 2\n"),
        ("p/deep.py", "import p\nD = p.B\nE = p.C\n"),
    ];
    for first in ["from p.deep import D, E", "import p\nfrom p.deep import D, E"] {
        let found = names(&files, &format!("{first}\n"), &["D", "E"]);
        assert_eq!(found[0], "Int(1)");
        assert!(found[1].starts_with("Unknown"), "{found:?}");
    }
}

#[test]
fn abandoned_imports_are_reported_at_import() {
    let heavy = "x = 0\nfor a in range(999):\n  for b in range(999):\n    x = x + 1\nlate = 1\n";
    let files = owned(&[("heavy.py", heavy), ("between.py", "import heavy\n")]);
    for text in ["a = 1\nfrom heavy import late\nb = 2\n", "a = 1\nfrom between import x\nb = 2\n"] {
        let main = Arc::new(Source::new(FileId(0), "main.py", text.into()));
        modules(&files).among(main, Limits::default(), None, |world, module| {
            let span = world.exceeded().unwrap();
            assert_eq!(
                (span.file, &text[span.start as usize..][..4]),
                (FileId(0), &text[text.find(" import").unwrap() + 8..][..4])
            );
            assert!(!world.is_exhausted());
            let names: Vec<&str> = world.globals(module).into_iter().map(|(n, _)| n).collect();
            assert!(names.contains(&"b"), "the module itself is evaluated: {names:?}");
        });
    }
    let late = names(&[("heavy.py", heavy)], "from heavy import late\n", &["late"]);
    assert!(late[0].starts_with("Unknown"), "{late:?}");
}

/// A project of modules that import each other in layers and cycles, change what others made and make
/// objects.
fn project(size: usize) -> Vec<(String, String)> {
    let module = |i: usize| {
        let (a, b, c) = (i / 2, i / 3, (i * 7 + 3) % size);
        let cycle = if i.is_multiple_of(5) { format!("import m{c}\n") } else { String::new() };
        let imports = if i == 0 {
            String::new()
        } else {
            format!("import m{a}\nfrom m{b} import ALL as OTHER, make\nOTHER.append({i})\nmake({i})\n")
        };
        format!(
            "from agents import Agent\nALL = []\nimport functools\n{cycle}{imports}def make(x):\n    ALL.append(x)\n    return Agent('a{i}', x)\n\
             @functools.cache\ndef one():\n    return Agent('one{i}')\nA = make(m{a}.A if 'm{a}' else 0)\nB = [one(), one()]\n"
        )
    };
    (0..size).map(|i| (format!("m{i}.py"), module(i))).collect()
}

#[test]
fn results_are_independent_of_order_and_threads() {
    let files = project(60);
    let one_by_one = |order: Vec<usize>| {
        let shared = modules(&files);
        let mut made: Vec<(usize, String)> =
            order.into_iter().map(|i| (i, among(&shared, &files[i].0, &files[i].1))).collect();
        made.sort();
        made
    };
    let want = one_by_one((0..files.len()).collect());
    assert!(want.iter().map(|(_, d)| d.len()).sum::<usize>() > 10_000);
    assert!(want == one_by_one((0..files.len()).rev().collect()));
    let alone: Vec<(usize, String)> =
        (0..files.len()).map(|i| (i, among(&modules(&files), &files[i].0, &files[i].1))).collect();
    assert!(want == alone);
    for threads in [1, 2, 8, 8, 8, 8] {
        let shared = modules(&files);
        let made = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|s| {
            for t in 0..threads {
                let (shared, made, files) = (&shared, &made, &files);
                s.spawn(move || {
                    for i in (0..files.len()).skip(t).step_by(threads) {
                        let dump = among(shared, &files[i].0, &files[i].1);
                        made.lock().unwrap().push((i, dump));
                    }
                });
            }
        });
        let mut made = made.into_inner().unwrap();
        made.sort();
        assert!(want == made, "{threads} threads");
    }
}

#[test]
fn modules_without_cycles_make_what_one_module_makes() {
    let files = [
        ("a.py", "from m import A\nALL = []\ndef f(x):\n    ALL.append(x)\n    return A(x)\nfirst = f(1)\n"),
        (
            "b.py",
            "from a import *\nfrom a import ALL\nsecond = f(first)\nclass K:\n    x = second\n    def m(self): return self.x\n",
        ),
        ("c.py", "import b, a\nthird = a.f(b.K().m())\nd = {'x': third, **{'y': a.ALL}}\n"),
    ];
    let text = "from c import d, third\nimport b\nfourth = b.K().m()\nfourth.go(d)\ndef g(y): return third.call(y)\n";
    let mut sources = Sources::new();
    for ((path, text), n) in files.iter().zip(1..) {
        sources.add(FileId(n), path, (*text).into());
    }
    let main = sources.add(FileId(0), "main.py", text.into());
    let mut world = World::new(&sources, Limits::default());
    world.run(main);
    world.explore(main);
    let sorted = |dump: String| {
        let mut lines: Vec<String> = dump.lines().map(String::from).collect();
        lines.sort();
        lines
    };
    let shared = sorted(among(&modules(&owned(&files)), "main.py", text));
    assert_eq!(shared, sorted(dump(&world, main)));
}

#[test]
fn long_chains_and_wide_cycles_of_imports_end() {
    let chain: Vec<(String, String)> =
        (0..1_500).map(|i| (format!("m{i}.py"), format!("from m{} import X\n", i + 1))).collect();
    let _ = among(&modules(&chain), "main.py", "from m0 import X\n");
    let cycle: Vec<(String, String)> = (0..120)
        .map(|i| {
            (format!("m{i}.py"), (0..120).map(|j| format!("import m{j}\n")).collect::<String>() + "X = 1\n")
        })
        .collect();
    let found = among(&modules(&cycle), "main.py", "from m7 import X\n");
    assert!(found.contains("X = Int(1)"), "{found}");
}

#[test]
fn a_call_into_another_module_that_computes_too_much_is_given_up_and_said() {
    let heavy = "calls = []\ndef deep(n):\n    for a in range(900):\n        for b in range(900): n = n + 1\n    return n\ndef light(): return 'l'\n";
    let text = "import heavy\ndef one():\n    x = heavy.deep(1)\n    return x\ndef two():\n    return heavy.deep(2)\nA = heavy.light()\nB = one()\nC = heavy.deep(3)\nD = heavy.light()\n";
    let main = Arc::new(Source::new(FileId(0), "main.py", text.into()));
    modules(&owned(&[("heavy.py", heavy)])).among(main, Limits::default(), None, |mut world, module| {
        let span = world.exceeded().unwrap();
        assert_eq!(&text[span.start as usize..span.end as usize], "heavy.deep(1)");
        assert!(!world.is_exhausted(), "what comes after is evaluated");
        for (name, want) in [("A", "Str(\"l\")"), ("B", "Unknown"), ("C", "Unknown"), ("D", "Str(\"l\")")] {
            let value = world.global(module, name).unwrap();
            assert!(shown(&world, &value, 0).starts_with(want), "{name} {value:?}");
        }
    });
}
