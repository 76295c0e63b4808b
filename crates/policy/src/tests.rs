use super::*;
use core_ir::{Approve, Builder, Globals, Term, ToolParam, Type};
use diagnostics::Sources;

const AT: Span = Span { file: FileId(0), start: 0, end: 0 };

/// A program with the tools `send_mail(to, body)`, `search(query)` and one of which nothing is known.
fn program() -> Code {
    let mut b = Builder::new();
    let param =
        |name: &str| ToolParam { name: name.into(), ty: Type::Str, bound: LabelSpec::BOTTOM, default: None };
    for (name, params) in [("send_mail", vec![param("to"), param("body")]), ("search", vec![param("query")])]
    {
        b.tool(ToolDecl { params, result: Type::Str, ..ToolDecl::unknown(name.into(), AT) });
    }
    let id = b.tool(ToolDecl::unknown("mystery".into(), AT));
    let root = b.add(Term::Tool(id), AT);
    b.finish(root, &Globals::none()).unwrap()
}

/// References to policies in the program.
fn uses() -> Vec<PolicyUse> {
    let named = |param: Option<&str>, policy: &str| PolicyUse {
        tool: "send_mail".into(),
        param: param.map(String::from),
        policy: policy.into(),
        span: AT,
    };
    vec![named(None, "outgoing"), named(Some("to"), "people")]
}

fn said(text: &str) -> Vec<Diagnostic> {
    match Policy::parse(FileId(0), text) {
        Ok(policy) => {
            let mut code = program();
            // Most of the files are about something else.
            let uses = if text.contains("[policies.") { uses() } else { Vec::new() };
            policy.apply_to(&mut code, &uses)
        }
        Err(found) => found,
    }
}

#[test]
fn policies_of_a_name_are_put_where_they_are_named() {
    let text = "[policies.outgoing]\neffect = \"write\"\narguments = \"untrusted\"\n\
                allow = '\\a. if a.body.value == \"\" then \"an empty mail\" else true'\n\
                [policies.people]\narguments = \"trusted\"\napprove = true\nallow = '\\v. v.value != \"all\"'\n";
    let policy = Policy::parse(FileId(0), text).unwrap();
    assert_eq!(policy.policy_names().collect::<Vec<_>>(), ["outgoing", "people"]);
    let mut code = program();
    assert_eq!(policy.apply_to(&mut code, &uses()), []);
    let mail = &code.tools[0];
    assert_eq!(mail.params[0].bound, LabelSpec::BOTTOM);
    assert_eq!(mail.params[1].bound, UNTRUSTED);
    assert_eq!(mail.approve, Approve::Always);
    // Both functions decide.
    let judge = core_ir::print_code(mail.policy.as_ref().unwrap());
    assert!(judge.contains("an empty mail") && judge.contains("\"all\""), "{judge}");
    assert!(code.tools[1].policy.is_none() && !code.tools[1].approve.may_ask());
    // What is said of the tool by its own name has the last word.
    let more = format!("{text}[tools.send_mail]\napprove = false\nallow = '\\a. false'\n");
    let policy = Policy::parse(FileId(0), &more).unwrap();
    let mut code = program();
    assert_eq!(policy.apply_to(&mut code, &uses()), []);
    assert!(!code.tools[0].approve.may_ask());
    assert!(!core_ir::print_code(code.tools[0].policy.as_ref().unwrap()).contains("all"));
}

#[test]
fn a_policy_that_is_not_there_or_does_not_fit_is_not_applied() {
    let found = said("[policies.outgoin]\n[policies.people]\n");
    assert_eq!((found[0].code, &*found[0].help[0]), ("A086", "did you mean `outgoin`?"));
    let found = said("[policies.people]\n");
    assert!(found[0].help[0].contains("[policies.outgoing]"), "{found:?}");
    // Two that say the same of one tool.
    let text = "[policies.outgoing]\ncontrol = \"any\"\n[policies.people]\ncontrol = \"trusted\"\n";
    let policy = Policy::parse(FileId(0), text).unwrap();
    let both: Vec<PolicyUse> = uses().into_iter().map(|u| PolicyUse { param: None, ..u }).collect();
    let found = policy.apply_to(&mut program(), &both);
    assert_eq!((found.len(), found[0].code), (1, "S206"), "{found:?}");
    // No text reaches out of its own function.
    let text = "[policies.outgoing]\nallow = '\\a. true) called in (\\a. true'\n[policies.people]\nallow = '\\a. false'\n";
    assert!(said(text).iter().all(|d| d.code == "S205") && !said(text).is_empty());
}

#[test]
fn each_wrong_example_gives_its_code_and_each_right_one_does_not() {
    // The examples of a block are programs, which a test of the language reads. Types are known elsewhere.
    let elsewhere = [codes::CONTRADICTION, codes::WRONG_FUNCTION];
    for e in codes::EXPLANATIONS.iter().filter(|e| !elsewhere.contains(&e.code)) {
        let codes = |text| {
            let found = said(text);
            let checked = if diagnostics::has_errors(&found) { Vec::new() } else { check_codes(text) };
            found.iter().map(|d| d.code).chain(checked).collect::<Vec<_>>()
        };
        assert!(codes(e.wrong).contains(&e.code), "{}: {:?}", e.code, said(e.wrong));
        assert_eq!(codes(e.right), [""; 0], "{}", e.code);
    }
}

#[test]
fn a_signature_is_put_into_the_declaration() {
    let text = "[tools.send_mail]\neffect = \"write\"\nbounds = { to = \"trusted\", body = \"secret\" }\n\
                control = [\"S\"]\n[tools.search]\neffect = \"read\"\nresult = \"trusted\"\n";
    let policy = Policy::parse(FileId(0), text).unwrap();
    let mut code = program();
    assert_eq!(policy.apply(&mut code), []);
    let (mail, search) = (&code.tools[0], &code.tools[1]);
    assert_eq!(mail.params[0].bound, LabelSpec::BOTTOM);
    assert_eq!(mail.params[1].bound, LabelSpec::Axes { untrusted: false, secret: true });
    assert_eq!(mail.control, LabelSpec::Exact(Data::list([Data::str("S")])));
    // What follows from the effect, and what is said besides.
    assert_eq!((search.effect, &search.control), (EffectClass::Read, &UNTRUSTED));
    assert_eq!((&search.params[0].bound, &search.label), (&UNTRUSTED, &LabelSpec::BOTTOM));
    assert!(code.tools[2].is_unknown());
}

#[test]
fn tools_of_which_nothing_is_known_have_a_section_of_their_own() {
    let policy = Policy::parse(FileId(0), "[unknown_tools]\neffect = \"read\"").unwrap();
    let mut code = program();
    policy.apply(&mut code);
    assert_eq!(code.tools[2].effect, EffectClass::Read);
    assert_eq!(code.tools[0].effect, EffectClass::Write);
    let found = said("[tools.mystery]\nbounds = { to = \"trusted\" }");
    assert!(found[0].help[0].contains("`arguments = …`"), "{found:?}");
}

#[test]
fn models_have_clearances() {
    let text = "[models.\"*\"]\nclearance = \"untrusted\"\n[models.local]\nclearance = \"any\"";
    let policy = Policy::parse(FileId(0), text).unwrap();
    assert_eq!(policy.clearance, UNTRUSTED);
    assert_eq!(policy.clearances, [("local".into(), LabelSpec::TOP)]);
}

#[test]
fn principals_are_known_by_name() {
    let text = |reader: &str| {
        format!(
            "lattice = \"sources-readers\"\n[principals]\nreaders = [\"alice\", \"bob\"]\n\
             [tools.search]\nresult = {{ sources = [\"web\"], readers = [\"{reader}\"] }}"
        )
    };
    assert_eq!(said(&text("alice")), []);
    let found = said(&text("alixe"));
    assert_eq!((found[0].code, &*found[0].help[0]), ("S204", "did you mean `alice`?"));
    let found = said("[principals]\nreaders = [\"a\"]");
    assert_eq!(found[0].code, "S203");
    let found = said("[tools.search]\nresult = { sources = [\"web\"] }");
    assert!(found[0].help[0].contains("[\"U\", \"S\"]"), "{found:?}");
}

#[test]
fn mistakes_have_places() {
    let text = "lattice = \"three\"\n\n[tools.send_mail]\nbounds = { too = \"trusted\" }\nresult = \"untrustworthy\"\n";
    let mut sources = Sources::new();
    let file = sources.add("policy.toml", text);
    let found = Policy::parse(file, text).unwrap_err();
    let places: Vec<String> = found.iter().map(|d| sources.place(d.span.unwrap())).collect();
    assert_eq!(places, ["policy.toml:1:11", "policy.toml:5:10"]);
    let text = text.replace("three", "two-axis").replace("untrustworthy", "untrusted");
    let found = Policy::parse(file, &text).unwrap().apply(&mut program());
    assert_eq!((found[0].code, &*found[0].help[0]), ("S204", "did you mean `to`?"));
}

#[test]
fn hostile_files_end_in_diagnostics() {
    for text in ["[", "a = [[[[[[", "tools = 1", "[tools]\nx = 1", "models.x = 1", "\u{0}", "[tools.a.b.c.d]"]
    {
        assert!(!Policy::parse(FileId(0), text).err().unwrap_or_default().is_empty(), "{text}");
    }
    let deep = format!("lattice = {}", "[".repeat(100_000));
    assert!(Policy::parse(FileId(0), &deep).is_err());
    assert!(Policy::parse(FileId(0), &"#".repeat(MAX_BYTES + 1)).is_err());
}

#[test]
fn output_has_a_clearance() {
    let policy = Policy::parse(FileId(0), "[output]\nclearance = \"untrusted\"\n").unwrap();
    assert_eq!(policy.output, UNTRUSTED);
    assert_eq!(Policy::parse(FileId(0), "").unwrap().output, LabelSpec::TOP);
    let wrong = said("[output]\nclearence = \"any\"\n");
    assert_eq!(wrong[0].help, ["did you mean `clearance`?"]);
    let wrong = said("[output]\nclearance = \"untrustd\"\n");
    assert_eq!(wrong[0].help, ["did you mean `untrusted`?"]);
}

#[test]
fn plain_names_forms_of_text() {
    use core_ir::{AnswerSink, Plain};
    let policy = Policy::parse(
        FileId(0),
        "[tools.send_mail]\nplain = { body = \"no-links\" }\n[output]\nbound = \"untrusted\"\nplain = \"no-links\"\n",
    );
    let policy = policy.unwrap();
    let bound = LabelSpec::Axes { untrusted: true, secret: false };
    assert_eq!(policy.answer, AnswerSink { bound, plain: Some(Plain::NoLinks) });
    // The clearance is another rule.
    assert_eq!(policy.output, LabelSpec::TOP);
    let mut code = program();
    assert_eq!(policy.apply(&mut code), []);
    assert_eq!(code.tools[0].plain[..], [("body".into(), Plain::NoLinks)]);
    assert!(code.tools[1].plain.is_empty());
    for (wrong, code, help) in [
        ("[tools.send_mail]\nplain = { body = \"links\" }\n", codes::WRONG_VALUE, "write `\"no-links\"`"),
        ("[output]\nplain = true\n", codes::WRONG_VALUE, "write `\"no-links\"`"),
        ("[output]\nbond = \"any\"\n", codes::UNKNOWN_KEY, "did you mean `bound`?"),
    ] {
        let found = Policy::parse(FileId(0), wrong).unwrap_err();
        assert_eq!((found.len(), found[0].code, &*found[0].help[0]), (1, code, help), "{wrong}");
    }
    let slip = Policy::parse(FileId(0), "[tools.send_mail]\nplain = { bdy = \"no-links\" }\n").unwrap();
    let found = slip.apply(&mut program());
    assert_eq!(
        (found.len(), found[0].code, &*found[0].help[0]),
        (1, codes::UNKNOWN_NAME, "did you mean `body`?")
    );
}

/// A tool of a plan's block that the data of these sources may choose the calls of.
fn delegated(code: &mut Code, tool: &str, to: &[&str]) {
    let to = to.iter().map(|n| Name::from(*n)).collect();
    let decl = code.tools.iter().find(|t| *t.name == *tool).unwrap();
    let mark = core_ir::Delegated { tool: tool.into(), to };
    let name = format!("{tool} for them").into();
    let own = ToolDecl { name, delegated: Some(mark.into()), ..ToolDecl::clone(decl) };
    code.tools.push(Arc::new(own));
}

#[test]
fn a_delegation_raises_the_bounds_of_the_block_alone() {
    let text = "lattice = \"sources-readers\"\n[tools.send_mail]\neffect = \"write\"\nat_most = 5\n\
                [[delegate]]\nto = { sources = [\"bob\", \"alice\"] }\ntools = [\"send_mail\"]\nat_most = 2\n\
                among = { to = \"request\" }\n";
    let policy = Policy::parse(FileId(0), text).unwrap();
    let mut code = program();
    delegated(&mut code, "send_mail", &["alice", "bob"]);
    assert_eq!(policy.apply(&mut code), []);
    let (plain, block) = (&code.tools[0], &code.tools[3]);
    assert_eq!((plain.at_most, plain.among.len(), &plain.control), (Some(5), 0, &LabelSpec::BOTTOM));
    let mut lattice = Lattice::new(LatticeKind::SourcesReaders);
    let label = |sources: &[&str]| {
        let sources = Data::list(sources.iter().map(|s| Data::str(*s)));
        LabelSpec::Exact(Data::record([("sources".into(), sources), ("readers".into(), Data::str("*"))]))
    };
    let theirs = lattice.resolve(&label(&["alice", "bob"]));
    assert_eq!(lattice.resolve(&block.control), theirs);
    // What is chosen from a set keeps its bound.
    assert_eq!(
        (lattice.resolve(&block.params[0].bound), block.among.len()),
        (Some(core_ir::Label::BOTTOM), 1)
    );
    assert_eq!((lattice.resolve(&block.params[1].bound), block.at_most), (theirs, Some(2)));
    // Others may choose nothing.
    for (tool, to) in [("send_mail", &["alice"][..]), ("search", &["alice", "bob"])] {
        let mut code = program();
        delegated(&mut code, tool, to);
        let found = policy.apply(&mut code);
        assert_eq!(found.iter().map(|d| d.code).collect::<Vec<_>>(), [codes::DELEGATION], "{tool}");
    }
}

#[test]
fn a_wrong_delegation_is_an_error() {
    for (wrong, code) in [
        ("tools = [\"search\"]\nat_most = 1", codes::DELEGATION),
        ("to = \"untrusted\"\nat_most = 1", codes::DELEGATION),
        ("to = \"trusted\"\ntools = [\"search\"]\nat_most = 1", codes::WRONG_VALUE),
        ("to = { source = \"a\" }\ntools = [\"search\"]\nat_most = 1", codes::WRONG_VALUE),
        ("to = { source = 3 }\ntools = [\"search\"]\nat_most = 1", codes::WRONG_VALUE),
        ("to = \"untrusted\"\ntools = [\"search\"]\nat_most = 101", codes::WRONG_VALUE),
        ("to = \"untrusted\"\ntools = [\"search\"]\nat_most = 1\nfor = 2", codes::UNKNOWN_KEY),
    ] {
        let found = Policy::parse(FileId(0), &format!("[[delegate]]\n{wrong}\n")).unwrap_err();
        assert_eq!((found.len(), found[0].code), (1, code), "{wrong}: {found:?}");
    }
    let unknown = "lattice = \"sources-readers\"\n[principals]\nsources = [\"web\"]\n[[delegate]]\n\
                   to = { source = \"alice\" }\ntools = [\"search\"]\nat_most = 1\n";
    assert_eq!(Policy::parse(FileId(0), unknown).unwrap_err()[0].code, codes::UNKNOWN_NAME);
    assert!(Policy::parse(FileId(0), "delegate = 3\n").is_err());
}

#[test]
fn at_most_is_a_number_of_calls() {
    let policy = Policy::parse(FileId(0), "[tools.send_mail]\nat_most = 3\n").unwrap();
    let mut code = program();
    assert_eq!(policy.apply(&mut code), []);
    assert_eq!((code.tools[0].at_most, code.tools[1].at_most), (Some(3), None));
    for wrong in ["-1", "1.5", "true", "\"3\""] {
        let found = Policy::parse(FileId(0), &format!("[tools.send_mail]\nat_most = {wrong}\n")).unwrap_err();
        assert_eq!(found.len(), 1, "{wrong}");
    }
}

/// The sets of a tool of `program` that also has `contacts()`.
fn sets(text: &str) -> Result<Vec<core_ir::Among>, Vec<Diagnostic>> {
    let policy = Policy::parse(FileId(0), text)?;
    let mut code = program();
    let contacts = ToolDecl {
        params: Vec::new(),
        effect: EffectClass::Read,
        ..ToolDecl::unknown("address.book".into(), AT)
    };
    code.tools.push(Arc::new(contacts));
    let found = policy.apply(&mut code);
    if found.is_empty() { Ok(code.tools[0].among.to_vec()) } else { Err(found) }
}

#[test]
fn among_names_sets() {
    use core_ir::{Among, AmongSource};
    let book = AmongSource::Tool("address.book".into());
    let single = |source: AmongSource, param: &str, path: &[&str]| Among {
        source,
        params: vec![(param.into(), path.iter().filter_map(|f| core_ir::SetStep::parse(f)).collect())],
    };
    let found = sets("[tools.send_mail]\namong = { to = \"request | tools.address.book().work.email\" }\n");
    let expected =
        vec![single(AmongSource::Request, "to", &[]), single(book.clone(), "to", &["work", "email"])];
    assert_eq!(found.unwrap(), expected);
    let found = sets(
        "[tools.send_mail]\namong = { to = \"tools.address.book().{*}.email | tools.address.book().{keys}\" }\n",
    );
    let steps = |path: &[&str]| single(book.clone(), "to", path);
    assert_eq!(found.unwrap(), [steps(&["{*}", "email"]), steps(&["{keys}"])]);
    let found = sets(
        "[tools.send_mail]\namong = [{ to = \"request\" }, { to = \"tools.address.book().email\", \
         body = \"tools.address.book().greeting\" }]\n",
    );
    // In the order of the names.
    let both = vec![
        ("body".into(), vec![core_ir::SetStep::Field("greeting".into())]),
        ("to".into(), vec![core_ir::SetStep::Field("email".into())]),
    ];
    let both = Among { source: book, params: both };
    assert_eq!(found.unwrap(), [single(AmongSource::Request, "to", &[]), both]);
}

/// The first tool of the program under a policy, or the code of the first finding.
fn read(text: &str) -> Result<Arc<ToolDecl>, &'static str> {
    let policy = Policy::parse(FileId(0), text).map_err(|found| found[0].code)?;
    let mut code = program();
    match policy.apply(&mut code).first() {
        Some(d) => Err(d.code),
        None => Ok(code.tools[0].clone()),
    }
}

#[test]
fn readers_of_an_argument_include_those_whom_others_name() {
    let text = "lattice = \"sources-readers\"\n[tools.send_mail]\nreaders = { body = \"includes @to\" }\n";
    let mail = read(text).unwrap();
    assert_eq!(mail.includes, [("body".into(), ["to".into()].into())].into());
    assert!(mail.parts.is_empty());
    for (wrong, code) in [
        (text.replace("sources-readers", "two-axis"), codes::WRONG_VALUE),
        (text.replace("@to", "to"), codes::WRONG_VALUE),
        (text.replace("@to", "$to"), codes::WRONG_VALUE),
        (text.replace("@to", "@too"), codes::UNKNOWN_NAME),
        (text.replace("body =", "text ="), codes::UNKNOWN_NAME),
    ] {
        assert_eq!(read(&wrong).unwrap_err(), code, "{wrong}");
    }
}

#[test]
fn completing_arguments_have_a_pattern() {
    let text = "[tools.send_mail]\ncompletes = [\"to\"]\npattern = { to = \"[0-9]{6}\" }\n";
    let mail = read(text).unwrap();
    assert_eq!((&*mail.completes[0], mail.pattern[0].1.as_str()), ("to", "[0-9]{6}"));
    for (wrong, code) in [
        (text.replace("{ to", "{ body"), codes::WRONG_VALUE),
        (text.replace("\"[0-9]{6}\"", "\"[0-9\""), codes::WRONG_VALUE),
        (text.replace("\"[0-9]{6}\"", "\"a)|(b\""), codes::WRONG_VALUE),
        (text.replace("\"to\"", "\"too\"").replace("{ to", "{ too"), codes::UNKNOWN_NAME),
    ] {
        assert_eq!(read(&wrong).unwrap_err(), code, "{wrong}");
    }
}

#[test]
fn sets_are_stated() {
    use core_ir::{Among, AmongSource, Data, Region};
    const PEOPLE: &str =
        "[principals]\nann = { email = [\"a@x\", \"a@y\"], iban = \"DE1\" }\nbob = \"b@x\"\n";
    let sources = |set: &str| {
        let found = sets(&format!("{PEOPLE}[tools.send_mail]\namong = {{ to = \"{set}\" }}\n")).unwrap();
        found.into_iter().map(|a: Among| a.source).collect::<Vec<_>>()
    };
    let values = |all: &[&str]| [AmongSource::Values(all.iter().map(|v| Data::str(*v)).collect())];
    assert_eq!(sources("principals.ann.email"), values(&["a@x", "a@y"]));
    assert_eq!(sources("principals.ann"), values(&["a@x", "a@y", "DE1"]));
    assert_eq!(sources("principals.{*}.iban"), values(&["DE1"]));
    assert_eq!(sources("principals.{*}"), values(&["a@x", "a@y", "DE1", "b@x"]));
    let below = AmongSource::Below(Region::new("/downloads/").unwrap());
    assert_eq!(sources("below(request) | under:/downloads/"), [AmongSource::Sites, below.clone()]);
    let absent = AmongSource::Values([core_ir::Data::Null].into());
    assert_eq!(sources("absent | under:/downloads/"), [absent, below.clone()]);
    // As a bound it is trusted data, and what is below.
    let policy = "[tools.send_mail]\nbounds = { to = \"under:/downloads/\" }\n";
    assert_eq!(sets(policy).unwrap(), [Among { source: below, params: vec![("to".into(), Vec::new())] }]);
}

#[test]
fn a_wrong_set_is_an_error() {
    for (wrong, code, help) in [
        ("{ too = \"request\" }", codes::UNKNOWN_NAME, "did you mean `to`?"),
        ("{ to = \"tools.adress.book()\" }", codes::UNKNOWN_NAME, "did you mean `address.book`?"),
        ("{ to = \"tools.search()\" }", codes::WRONG_VALUE, "a set is read before the first step"),
        ("{ to = \"principals.me.email\" }", codes::UNKNOWN_NAME, "add it to `[principals]`"),
        ("{ to = \"under:\" }", codes::WRONG_VALUE, "write a path or an address"),
        ("{ to = \"under:/a/../b\" }", codes::WRONG_VALUE, "write a path or an address"),
        ("[{ to = \"below(request)\", body = \"below(request)\" }]", codes::WRONG_VALUE, "write `[{ to = "),
        ("{ to = \"contacts\" }", codes::WRONG_VALUE, "write `request`, `tools.NAME()`"),
        ("{ to = \"tools.address.book().{keys}.a\" }", codes::WRONG_VALUE, "write `request`, `tools.NAME()`"),
        ("{ to = \"tools.address.book().\" }", codes::WRONG_VALUE, "write `request`, `tools.NAME()`"),
        ("[{ to = \"request\", body = \"request\" }]", codes::WRONG_VALUE, "write `[{ to = "),
        (
            "[{ body = \"request | tools.address.book()\", to = \"request\" }]",
            codes::WRONG_VALUE,
            "write a table of the list for each source",
        ),
    ] {
        let found = sets(&format!("[tools.send_mail]\namong = {wrong}\n")).unwrap_err();
        assert_eq!((found.len(), found[0].code), (1, code), "{wrong}: {found:?}");
        assert!(found[0].help.iter().any(|h| h.starts_with(help)), "{wrong}: {:?}", found[0].help);
    }
    assert_eq!(sets("[tools.send_mail]\namong = 3\n").unwrap_err()[0].code, codes::WRONG_VALUE);
}

#[test]
fn approval_is_always_or_if_refused() {
    let approval = |text: &str| {
        let policy = Policy::parse(FileId(0), text).unwrap();
        let mut code = program();
        let uses = if text.contains("[policies.") { uses() } else { Vec::new() };
        assert_eq!(policy.apply_to(&mut code, &uses), []);
        code.tools[0].approve
    };
    assert_eq!(approval("[tools.send_mail]\napprove = \"if-refused\"\n"), Approve::IfRefused);
    assert_eq!(approval("[tools.send_mail]\napprove = true\n"), Approve::Always);
    // Who always asks prevails.
    let both = "[policies.outgoing]\napprove = \"if-refused\"\n[policies.people]\napprove = ";
    assert_eq!(approval(&format!("{both}true\n")), Approve::Always);
    assert_eq!(approval(&format!("{both}\"if-refused\"\n")), Approve::IfRefused);
    assert!(Policy::parse(FileId(0), "[tools.send_mail]\napprove = \"sometimes\"\n").is_err());
}

/// A program with the tool `mails` of a typed result and the tool `look` of any.
fn mail_program() -> Code {
    let mut b = Builder::new();
    let mail = Type::record([
        ("id".into(), Type::Str),
        ("sender".into(), Type::Str),
        ("to".into(), Type::list(Type::Str)),
        ("body".into(), Type::Str),
    ]);
    let query = ToolParam { name: "query".into(), ty: Type::Str, bound: LabelSpec::BOTTOM, default: None };
    let params = vec![query];
    let result = Type::list(mail);
    b.tool(ToolDecl { params: params.clone(), result, ..ToolDecl::unknown("mails".into(), AT) });
    let id = b.tool(ToolDecl { params, ..ToolDecl::unknown("look".into(), AT) });
    let root = b.add(Term::Tool(id), AT);
    b.finish(root, &Globals::none()).unwrap()
}

/// The labels of parts that a signature gives a tool of [`mail_program`], and what is wrong with them.
fn parts_of(tool: &str, keys: &str) -> (Vec<String>, Vec<Diagnostic>) {
    let text = format!("[tools.{tool}]\neffect = \"read\"\n{keys}\n[places]\n\"**\" = \"untrusted\"\n");
    let policy = match Policy::parse(FileId(0), &text) {
        Ok(policy) => policy,
        Err(found) => return (Vec::new(), found),
    };
    let mut code = mail_program();
    let found = policy.apply(&mut code);
    let decl = code.tools.iter().find(|t| &*t.name == tool).unwrap();
    let names = |names: &[core_ir::LabelName]| {
        let all: Vec<String> = names.iter().map(ToString::to_string).collect();
        all.join("+")
    };
    let shown = |r: &core_ir::PartLabel| {
        let label = match &r.label {
            LabelSpec::Axes { untrusted: true, .. } => "untrusted",
            LabelSpec::Axes { secret: true, .. } => "secret",
            LabelSpec::Axes { .. } => "trusted",
            LabelSpec::Exact(_) => "exact",
        };
        format!("{} {label} {} {}", r.path, names(&r.source), names(&r.readers)).trim().to_string()
    };
    (decl.parts.iter().map(shown).collect(), found)
}

#[test]
fn parts_of_a_result_are_labeled() {
    let (parts, found) = parts_of(
        "mails",
        "fields = { \"[].body\" = \"untrusted\", \"[].id\" = [\"S\"], \"[].to\" = { label = \"secret\", source = \"@sender\" } }",
    );
    assert_eq!(found, []);
    assert_eq!(parts, ["[].body untrusted", "[].id exact", "[].to secret @sender"]);
    let (parts, found) =
        parts_of("look", "fields = { \"a[]{*}.b\" = { source = \"$query\" }, \"{keys}\" = \"untrusted\" }");
    assert_eq!(found, []);
    assert_eq!(parts, ["untrusted", "a[]{*}.b trusted $query"]);
}

#[test]
fn readers_of_a_record_are_those_of_its_fields() {
    let (parts, found) = parts_of(
        "mails",
        "fields = { \"[].body\" = { source = \"@sender\" }, \"[].sender\" = \"untrusted\" }\n\
         readers = { \"[]\" = \"@to + @sender\", \"[].id\" = \"@sender\" }",
    );
    assert_eq!(found, []);
    assert_eq!(
        parts,
        [
            "[].body trusted @sender @to+@sender",
            "[].id trusted  @sender",
            "[].sender untrusted",
            "[]{*} trusted  @to+@sender"
        ]
    );
    // Of a part that is a field, `@` is beside it.
    let (parts, found) = parts_of("mails", "readers = { \"[].body\" = \"@to\" }");
    assert_eq!((parts, found), (vec!["[].body trusted  @to".to_string()], vec![]));
}

#[test]
fn labels_of_parts_that_are_not_there_are_errors() {
    for (keys, code, help) in [
        ("fields = { \"[].bdy\" = \"trusted\" }", codes::PART, "did you mean `body`?"),
        ("fields = { \"id\" = \"trusted\" }", codes::PART, "its type is"),
        ("fields = { \"[].title\" = \"trusted\" }", codes::PART, "there is: id, sender, to, body"),
        ("fields = { \"[].body\" = { source = \"@snder\" } }", codes::PART, "did you mean `sender`?"),
        ("readers = { \"[]\" = \"@cc\" }", codes::PART, "there is: id"),
        ("fields = { \"[].body\" = { source = \"$qery\" } }", codes::UNKNOWN_NAME, "did you mean `$query`?"),
        ("fields = { \"[].body\" = { source = \"@body\" } }", codes::PART, "state the label"),
        (
            "fields = { \"[].body\" = { source = \"@id\" }, \"[].id\" = { source = \"@body\" } }",
            codes::PART,
            "state the label",
        ),
        ("fields = { \"[]body\" = \"trusted\" }", codes::WRONG_VALUE, "write `[]` for the items"),
        ("fields = { \"[].body\" = { source = \"sender\" } }", codes::WRONG_VALUE, "write `@field`"),
        (
            "fields = { \"[].body\" = { sorce = \"@sender\", label = \"trusted\" } }",
            codes::UNKNOWN_KEY,
            "did you mean `source`?",
        ),
        ("fields = { \"[].body\" = \"trustd\" }", codes::WRONG_VALUE, "did you mean `trusted`?"),
    ] {
        let (_, found) = parts_of("mails", keys);
        assert!(!found.is_empty(), "{keys}");
        assert_eq!(found[0].code, code, "{keys}: {found:?}");
        assert!(found[0].help.iter().any(|h| h.starts_with(help)), "{keys}: {found:?}");
        assert!(found[0].span.is_some_and(|s| s.end > s.start), "{keys}: {found:?}");
    }
}

#[test]
fn principals_have_values() {
    let text = "[principals]\nme = { email = \"me@x\", trusted = true }\n\
                alice = { email = [\"a@x\", \"a@y\"], iban = \"A1\" }\nbob = \"b@x\"\n";
    let policy = Policy::parse(FileId(0), text).unwrap();
    let known = &policy.principals.values;
    let named: Vec<String> = known.iter().map(|(v, p)| format!("{v} {} {}", p.name, p.trusted)).collect();
    assert_eq!(
        named,
        ["A1 alice false", "a@x alice false", "a@y alice false", "b@x bob false", "me@x me true"]
    );
    // Lists of readers and sources include them.
    let text = format!("lattice = \"sources-readers\"\n{text}readers = [\"carol\"]");
    let policy = Policy::parse(FileId(0), &text).unwrap();
    let readers: Vec<Name> = policy.principals.readers.unwrap().into_iter().collect();
    assert_eq!(readers, ["alice", "bob", "carol", "me"].map(Name::from));
    for (wrong, help) in [
        ("a = \"x\"\nb = [\"x\"]", "give the value to one"),
        ("a = 3", ""),
        ("a = { email = \"\" }", "write a text"),
        ("a = { email = \"x\", trusted = 1 }", ""),
    ] {
        let found = Policy::parse(FileId(0), &format!("[principals]\n{wrong}")).unwrap_err();
        assert_eq!(found[0].code, codes::WRONG_VALUE, "{wrong}");
        assert!(help.is_empty() || found[0].help[0].starts_with(help), "{found:?}");
    }
}

#[test]
fn places_have_labels() {
    let text = "[places]\n\"/home/me/**\" = \"trusted\"\n\"**\" = \"untrusted\"\n";
    let policy = Policy::parse(FileId(0), text).unwrap();
    let places = &policy.principals.places;
    assert_eq!(places.label("/home/me/a"), Some(&LabelSpec::BOTTOM));
    assert_eq!(places.label("/etc/a"), Some(&UNTRUSTED));
    for (wrong, code) in [
        ("\"/a/../b\" = \"trusted\"", codes::WRONG_VALUE),
        ("\"/a*\" = \"trusted\"", codes::WRONG_VALUE),
        ("\"/a\" = \"trusted\"\n\"//a\" = \"trusted\"", codes::WRONG_VALUE),
        ("\"/a\" = \"trustd\"", codes::WRONG_VALUE),
    ] {
        let found = Policy::parse(FileId(0), &format!("[places]\n{wrong}")).unwrap_err();
        assert_eq!(found[0].code, code, "{wrong}");
    }
}

/// Rules that mean nothing are mistakes, and say so: in the file, or once the tools are known.
#[test]
fn a_rule_that_means_nothing_is_refused() {
    let wrong = |text: &str, code: &str, says: &str| {
        let found = Policy::parse(FileId(0), text).expect_err(text);
        assert_eq!(found.len(), 1, "{text}\n{found:?}");
        assert!(found[0].code == code && found[0].message.contains(says), "{text}\n{found:?}");
    };
    let delegate = "[[delegate]]\nto = \"untrusted\"\ntools = [\"a\"]\nat_most = 1\n";
    wrong(&delegate.repeat(2), codes::DELEGATION, "`untrusted` has two tables `[[delegate]]`");
    wrong(&delegate.replace("= 1", "= 0"), codes::WRONG_VALUE, "no call is ever made");
    wrong(
        "[tools.a]\nat_most = 0\n",
        codes::WRONG_VALUE,
        "from 1 on, such as 3, found 0, with which no call",
    );
    wrong(
        "[tools.a]\nat_most = -1\n",
        codes::WRONG_VALUE,
        "a whole number from 1 on, such as 3, found another one",
    );
    wrong("[tools.a]\nat_most = 1.5\n", codes::WRONG_VALUE, "found a value of kind float");
    wrong(
        "[tools.a]\nbounds = { path = \"under:downloads\" }\n",
        codes::WRONG_VALUE,
        "a path begins with `/`",
    );
    wrong("[tools.a]\namong = { path = \"under:./in\" }\n", codes::WRONG_VALUE, "a path begins with `/`");
    wrong("[places]\n\"relative/**\" = \"trusted\"\n", codes::WRONG_VALUE, "a path begins with `/`");
    let placed = "[tools.a]\nfields = { \"[]\" = { source = \"$path\" } }\n";
    wrong(placed, codes::WRONG_VALUE, "`$path` is the label of a place, and the policy has no `[places]`");
    for right in [
        "[tools.a]\nbounds = { path = \"under:/downloads\" }\namong = { url = \"under:www.shop.example/\" }\n",
        "[places]\n\"www.shop.example/**\" = \"trusted\"\n\"**\" = \"untrusted\"\n",
        &format!("{placed}[places]\n\"/home/**\" = \"trusted\"\n"),
    ] {
        assert!(Policy::parse(FileId(0), right).is_ok(), "{right}");
    }
    // The type of the parameter is known with the tool.
    let param = |(name, ty): (&str, Type)| ToolParam {
        name: name.into(),
        ty,
        bound: LabelSpec::BOTTOM,
        default: None,
    };
    let at = Span { file: FileId(1), start: 0, end: 0 };
    let params: Vec<_> =
        [("n", Type::Num), ("s", Type::Str), ("ns", Type::list(Type::Num)), ("d", Type::Dyn)]
            .map(param)
            .into();
    let decl = ToolDecl { params, effect: EffectClass::Write, ..ToolDecl::unknown("a".into(), at) };
    let found = |text: &str| {
        let mut b = Builder::new();
        b.tool(decl.clone());
        let root = b.lit(Data::Null, at);
        let mut code = b.finish(root, &Globals::none()).unwrap();
        Policy::parse(FileId(0), text).unwrap().apply(&mut code)
    };
    for key in [
        "plain = { KEY = \"no-links\" }",
        "bounds = { KEY = \"under:/in\" }",
        "among = { KEY = \"below(request)\" }",
    ] {
        let of = |param: &str| found(&format!("[tools.a]\n{}\n", key.replace("KEY", param)));
        for number in ["n", "ns"] {
            let found = of(number);
            assert!(found.len() == 1 && found[0].code == codes::WRONG_VALUE, "{key}: {found:?}");
            assert!(
                found[0].message.contains(&format!("says nothing about the parameter `{number}` of `a`")),
                "{found:?}"
            );
        }
        assert_eq!((of("s"), of("d")), (Vec::new(), Vec::new()), "{key}");
    }
}

/// The block of a program, as the tables of a text.
fn block(text: &str) -> Table {
    let (table, errors) = DeTable::parse_recoverable(text);
    assert!(errors.is_empty(), "{errors:?}");
    Table::of_toml(FileId(1), table.get_ref())
}

/// The tool `send_mail` under a policy file and the block of a program.
fn mail_under(file: &str, own: &str) -> ToolDecl {
    let policy = Policy::parse_with(FileId(0), file, &block(own)).unwrap();
    let mut code = program();
    assert_eq!(policy.apply_to(&mut code, &[]), []);
    (*code.tools[0]).clone()
}

const OWN: &str = "[tools.send_mail]\neffect = \"write\"\nbounds = { body = \"untrusted\" }\n\
                   among = { to = \"request\" }\nat_most = 2\nallow = '\\a. \"the program\"'\n";

#[test]
fn a_block_alone_is_a_policy() {
    let policy = Policy::of_block(FileId(1), &block(OWN)).unwrap();
    let mut code = program();
    assert_eq!(policy.apply_to(&mut code, &[]), []);
    let mail = &code.tools[0];
    assert_eq!((&mail.params[0].bound, &mail.params[1].bound), (&LabelSpec::BOTTOM, &UNTRUSTED));
    assert_eq!((mail.among.len(), mail.at_most), (1, Some(2)));
    assert!(mail.policy.is_some() && policy.bounds("send_mail", &[]));
}

#[test]
fn the_file_replaces_what_the_block_says_under_a_key() {
    let mail = mail_under("[tools.send_mail]\nat_most = 5\nallow = '\\a. \"the file\"'\n", OWN);
    assert_eq!(mail.at_most, Some(5));
    let judge = core_ir::print_code(mail.policy.as_ref().unwrap());
    assert!(judge.contains("the file") && !judge.contains("the program"), "{judge}");
    // The other keys are those of the block.
    assert_eq!((&mail.params[1].bound, mail.among.len()), (&UNTRUSTED, 1));
    // The effect brings its bounds along.
    let mail = mail_under("[tools.send_mail]\neffect = \"write\"\n", OWN);
    assert_eq!(mail.params[1].bound, LabelSpec::BOTTOM);
}

#[test]
fn a_set_of_the_block_admits_nothing_where_the_file_states_the_bound() {
    for file in ["bounds = { to = \"trusted\" }", "arguments = \"trusted\"", "effect = \"write\""] {
        let mail = mail_under(&format!("[tools.send_mail]\n{file}\n"), OWN);
        assert_eq!(mail.among.len(), 0, "{file}");
    }
    let mail = mail_under("[tools.send_mail]\ncontrol = \"trusted\"\nbounds = { body = \"any\" }\n", OWN);
    assert_eq!(mail.among.len(), 1);
}

#[test]
fn an_approval_of_the_block_endorses_nothing_that_the_file_bounds() {
    let asks = "[tools.send_mail]\napprove = true\n";
    assert_eq!(mail_under("", asks).approve, Approve::Always);
    // A person is asked beside the bounds of the file.
    let bounded = "[tools.send_mail]\narguments = \"trusted\"\n";
    let mail = mail_under(bounded, asks);
    assert_eq!((mail.approve, mail.may_ask()), (Approve::Never, true));
    assert!(!mail_under(bounded, "[tools.send_mail]\napprove = \"if-refused\"\n").may_ask());
    // The file may say it itself, or that nobody is asked.
    let silent = "[tools.send_mail]\napprove = false\n";
    let mail = mail_under("[tools.send_mail]\napprove = \"if-refused\"\n", asks);
    assert_eq!(mail.approve, Approve::IfRefused);
    assert!(!mail_under(silent, asks).may_ask());
    let when = "[tools.send_mail]\napprove = { when = '\\a. a.to.value == \"all\"' }\n";
    assert!(mail_under("", when).may_ask() && !mail_under(silent, when).may_ask());
}

#[test]
fn completes_of_the_block_loosens_no_result_that_the_file_states() {
    let own = "[tools.send_mail]\ncompletes = [\"body\"]\npattern = { body = \"[0-9]{6}\" }\n";
    assert_eq!(mail_under("", own).completes.len(), 1);
    for file in ["result = \"untrusted\"", "effect = \"read\"", "bounds = { body = \"untrusted\" }"] {
        let mail = mail_under(&format!("[tools.send_mail]\n{file}\n"), own);
        assert_eq!(mail.completes.len(), 0, "{file}");
    }
}

#[test]
fn a_file_without_a_lattice_has_that_of_the_block() {
    let file = "[tools.send_mail]\narguments = [\"internal\"]\n";
    assert_eq!(Policy::parse(FileId(0), file).unwrap_err()[0].code, codes::WRONG_VALUE);
    let levels = block("lattice = \"levels\"\n");
    let policy = Policy::parse_with(FileId(0), file, &levels).unwrap();
    assert_eq!(policy.lattice, LatticeKind::Levels);
    // Two lattices contradict each other; the place is that in the program.
    let found = Policy::parse_with(FileId(0), "lattice = \"two-axis\"\n", &levels).unwrap_err();
    assert_eq!((found[0].code, found[0].span.unwrap().file), (codes::CONTRADICTION, FileId(1)));
    assert_eq!(found[0].remarks.len(), 1);
}

#[test]
fn tables_that_are_not_about_tools_are_those_of_the_file() {
    let own = "[models]\nlocal = { clearance = \"any\" }\n\
               [output]\nbound = \"trusted\"\nclearance = \"trusted\"\n";
    let file = "[models.\"*\"]\nclearance = \"untrusted\"\n[output]\nclearance = \"untrusted\"\n";
    let policy = Policy::parse_with(FileId(0), file, &block(own)).unwrap();
    assert_eq!((&policy.clearance, policy.clearances.len()), (&UNTRUSTED, 0));
    assert_eq!((&policy.output, &policy.answer.bound), (&UNTRUSTED, &LabelSpec::BOTTOM));
}

#[test]
fn a_kept_policy_has_the_block() {
    let file = "# rules\n[tools.send_mail]\nat_most = 5";
    let own = format!("lattice = \"levels\"\n{OWN}[output]\nbound = [\"internal\"]\n");
    let policy = Policy::parse_with(FileId(0), file, &block(&own)).unwrap();
    assert!(policy.text().starts_with(file));
    let kept = Policy::parse_kept(FileId(0), policy.text()).unwrap();
    assert_eq!((kept.lattice, &kept.answer), (policy.lattice, &policy.answer));
    assert_eq!(kept.text(), policy.text());
    let under = |policy: &Policy| {
        let mut code = program();
        assert_eq!(policy.apply_to(&mut code, &[]), []);
        core_ir::print_code(&code)
    };
    assert_eq!(under(&kept), under(&policy));
    // A file that somebody writes has no such table.
    assert_eq!(Policy::parse(FileId(0), policy.text()).unwrap_err()[0].code, codes::UNKNOWN_KEY);
}

#[test]
fn every_function_must_allow_a_call_that_another_leaves_to_a_person() {
    let own = "[tools.send_mail]\nallow = '\\a. `ask'\napprove = { when = '\\a. true' }\n";
    let named = "[policies.outgoing]\nallow = '\\a. \"no\"'\n[policies.people]\n";
    let policy = Policy::parse_with(FileId(0), named, &block(own)).unwrap();
    let mut code = program();
    assert_eq!(policy.apply_to(&mut code, &uses()), []);
    let judge = core_ir::print_code(code.tools[0].policy.as_ref().unwrap());
    assert!(judge.contains("\"no\"") && judge.contains("`ask"), "{judge}");
}

#[test]
fn the_author_of_each_rule_is_known() {
    let file = "[tools.send_mail]\nbounds = { to = \"trusted\" }\nat_most = 5\n";
    let policy = Policy::parse_with(FileId(0), file, &block(OWN)).unwrap();
    let rules = policy.rules(&program().tools, &[]);
    let names: Vec<String> = rules.iter().map(RuleSource::rule).collect();
    let of = |(name, r): (_, &RuleSource)| (name, r.author, r.span.file.0);
    let mut shown: Vec<_> = names.iter().map(String::as_str).zip(&rules).map(of).collect();
    shown.sort_by_key(|(rule, _, file)| (*file, *rule));
    assert_eq!(
        shown,
        [
            ("at_most", Author::File, 0),
            ("bounds to", Author::File, 0),
            ("allow", Author::Program, 1),
            ("among to", Author::SetAside, 1),
            ("at_most", Author::SetAside, 1),
            ("bounds body", Author::Program, 1),
            ("effect", Author::Program, 1),
        ]
    );
}

/// The rules of the block that are set aside.
fn set_aside(file: &str, own: &str, uses: &[PolicyUse]) -> Vec<String> {
    let policy = Policy::parse_with(FileId(0), file, &block(own)).unwrap();
    assert_eq!(policy.apply_to(&mut program(), uses), []);
    let rules = policy.rules(&program().tools, uses);
    rules.iter().filter(|r| r.author == Author::SetAside).map(RuleSource::rule).collect()
}

#[test]
fn rules_that_are_not_applied_are_set_aside() {
    // A place below which data may lead is a set of the file, which replaces that of the block.
    let own = "[tools.send_mail]\namong = { to = \"request\" }\n";
    let file = "[tools.send_mail]\nbounds = { body = \"under:/notes/\" }\n";
    assert_eq!(set_aside(file, own, &[]), ["among to"]);
    assert_eq!(mail_under(file, own).among.len(), 1);
    // Questions of the block and of a policy that the program names add up.
    let own = "[tools.send_mail]\napprove = { when = '\\a. true' }\n";
    let file = "[policies.outgoing]\napprove = { when = '\\a. false' }\n[policies.people]\n";
    assert_eq!(set_aside(file, own, &uses()), [""; 0]);
    assert_eq!(set_aside("[tools.send_mail]\napprove = false\n", own, &[]), ["approve"]);
    // The file says who may decide it, and not what it returns.
    let file = "[tools.send_mail]\ncontrol = \"any\"\n";
    assert_eq!(set_aside(file, "[tools.send_mail]\neffect = \"read\"\n", &[]), [""; 0]);
    assert_eq!(set_aside(file, "[tools.send_mail]\ncontrol = \"trusted\"\n", &[]), ["control"]);
}

fn check_codes(text: &str) -> Vec<&'static str> {
    let uses = if text.contains("[policies.") { uses() } else { Vec::new() };
    let policy = Policy::parse(FileId(0), text).unwrap();
    let tools = program().tools;
    let found = policy.check(PolicyScope { tools: &tools, uses: &uses, is_complete: true });
    found.iter().map(|d| d.code).collect()
}

/// Codes and places of what is found of a policy and the program.
fn checked(text: &str, uses: &[PolicyUse]) -> Vec<(&'static str, String)> {
    let policy = Policy::parse(FileId(0), text).unwrap();
    let tools = program().tools;
    let found = policy.check(PolicyScope { tools: &tools, uses, is_complete: true });
    found
        .iter()
        .map(|d| {
            let at = d.span.unwrap();
            (d.code, text[at.start as usize..at.end as usize].to_string())
        })
        .collect()
}

fn check_finds(text: &str, uses: &[PolicyUse], expected: &[(&str, &str)]) {
    let found = checked(text, uses);
    let found: Vec<(&str, &str)> = found.iter().map(|(code, at)| (*code, &**at)).collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn rules_about_nothing_are_found_at_their_place() {
    check_finds("[tools.send_mail]\neffect = \"write\"\n", &[], &[]);
    check_finds("[tools.book]\neffect = \"write\"\n", &[], &[("S210", "book")]);
    // A guard has names for messages of the protocol.
    check_finds("[tools.\"mcp:resources/read\"]\neffect = \"read\"\n", &[], &[]);
    let named = "[policies.outgoing]\n[policies.people]\n[policies.other]\n";
    check_finds(named, &uses(), &[("S210", "other")]);
    let policy = Policy::parse(FileId(0), "[tools.book]\n").unwrap();
    assert_eq!(policy.check(PolicyScope { tools: &[], uses: &[], is_complete: false }), []);
}

#[test]
fn rules_that_others_replace_are_found_at_their_place() {
    let both =
        "[tools.send_mail]\narguments = \"trusted\"\nbounds = { to = \"trusted\", body = \"secret\" }\n";
    check_finds(both, &[], &[("S211", "arguments")]);
    check_finds("[tools.send_mail]\narguments = \"trusted\"\nbounds = { to = \"any\" }\n", &[], &[]);
    let named = "[policies.outgoing]\ncontrol = \"any\"\nat_most = 1\n[policies.people]\n\
                 [tools.send_mail]\neffect = \"write\"\n";
    check_finds(named, &uses(), &[("S211", "control")]);
}

#[test]
fn rules_of_the_file_for_unknown_tools_hold_for_those_that_the_block_describes() {
    let own = "[tools.mystery]\neffect = \"read\"\napprove = \"if-refused\"\nat_most = 2\n";
    let mystery = |file: &str| {
        let policy = Policy::parse_with(FileId(0), file, &block(own)).unwrap();
        let mut code = program();
        assert_eq!(policy.apply_to(&mut code, &[]), []);
        (*code.tools[2]).clone()
    };
    assert_eq!((mystery("").effect, mystery("").approve), (EffectClass::Read, Approve::IfRefused));
    let strict = mystery("[unknown_tools]\neffect = \"write\"\n");
    assert_eq!((strict.effect, &strict.control), (EffectClass::Write, &LabelSpec::BOTTOM));
    assert_eq!((strict.approve, strict.at_most), (Approve::Never, Some(2)));
}
