use super::*;
use proptest::prelude::*;

fn read(text: &str, format: Option<Format>) -> Loaded {
    load(FileId(7), &Arc::from(text), format, &Limits::default())
}

fn yaml(text: &str) -> Document {
    let mut loaded = read(text, Some(Format::Yaml));
    assert_eq!(loaded.diagnostics, vec![], "{text}");
    assert_eq!(loaded.documents.len(), 1, "{text}");
    loaded.documents.remove(0)
}

fn json(text: &str) -> Document {
    let mut loaded = read(text, Some(Format::Json));
    assert_eq!(loaded.diagnostics, vec![], "{text}");
    loaded.documents.remove(0)
}

fn at(text: &str, span: Span) -> &str {
    assert_eq!(span.file, FileId(7));
    &text[span.start as usize..span.end as usize]
}

/// The single diagnostic of a text: its code, the text it points to, its message.
fn only(text: &str, format: Option<Format>) -> (&'static str, String, String) {
    let loaded = read(text, format);
    assert_eq!(loaded.diagnostics.len(), 1, "{:?}", loaded.diagnostics);
    let d = &loaded.diagnostics[0];
    (d.code, at(text, d.span.unwrap()).to_string(), d.message.clone())
}

#[test]
fn yaml_spans_are_byte_offsets() {
    for (bom, newline) in [("", "\n"), ("\u{feff}", "\r\n"), ("", "\r\n"), ("\u{feff}", "\n")] {
        let text = format!(
            "{bom}größe: \"höhe\"{newline}liste:{newline}  - éins # kommentar{newline}  - {{ä: 5, b: [1, 2]}}{newline}text: |{newline}  zeile ü{newline}  zwei{newline}{newline}ende:   {newline}last: 'x'{newline}"
        );
        let doc = yaml(&text);
        let root = doc.root();
        let get = |k: &str| root.get(k).unwrap();
        assert_eq!(at(&text, get("größe").span()), "\"höhe\"");
        assert_eq!(get("größe").as_str(), Some("höhe"));
        assert_eq!(at(&text, root.entry("größe").unwrap().key.span()), "größe");
        let items: Vec<_> = get("liste").items().collect();
        assert_eq!(at(&text, items[0].span()), "éins");
        assert_eq!(at(&text, items[1].span()), "{ä: 5, b: [1, 2]}");
        assert_eq!(at(&text, items[1].get("ä").unwrap().span()), "5");
        assert_eq!(at(&text, items[1].get("b").unwrap().span()), "[1, 2]");
        assert_eq!(get("text").as_str(), Some("zeile ü\nzwei\n"));
        assert!(at(&text, get("text").span()).starts_with("zeile ü"));
        assert!(at(&text, get("text").span()).ends_with("zwei"));
        assert!(get("ende").is_null());
        assert_eq!(&text[..get("ende").span().start as usize].chars().next_back(), &Some(':'));
        assert_eq!(at(&text, get("last").span()), "'x'");
        assert!(at(&text, get("liste").span()).ends_with('}'));
        assert_eq!(
            at(&text, root.span()).trim_start_matches('\u{feff}'),
            text.trim_start_matches('\u{feff}').trim_end()
        );
    }
}

#[test]
fn json_spans_comments_and_trailing_commas() {
    let text = "\u{feff}// head\n{\"a\": [1, 2.50, -3e2,], /* mid */ \"b\": {\"ü\": \"x\\n\\ud83d\\ude00\\/\",},\n\"c\": null, \"d\": true,}\n";
    let doc = json(text);
    let root = doc.root();
    let a: Vec<_> = root.get("a").unwrap().items().collect();
    assert_eq!(a.iter().map(|n| at(text, n.span())).collect::<Vec<_>>(), ["1", "2.50", "-3e2"]);
    assert_eq!(a[1].number(), Some("2.50"));
    assert_eq!(root.at(&["b", "ü"]).unwrap().as_str(), Some("x\n😀/"));
    assert_eq!(at(text, root.get("b").unwrap().span()), "{\"ü\": \"x\\n\\ud83d\\ude00\\/\",}");
    assert!(root.get("c").unwrap().is_null());
    assert_eq!(root.get("d").unwrap().as_bool(), Some(true));
    // The same text under another name.
    assert!(!read(text, Some(Format::Yaml)).failed());
    assert!(!read(text, None).failed());
}

#[test]
fn scalars_of_yaml() {
    let text = "a: 20\nb: '20'\nc: yes\nd: \"yes\"\ne: ~\nf: !!str 20\ng: 1_000\nh: 0x10\ni: !custom v\nj: on-call\nk: True\nl: !include x.md\nm: &m on\n";
    assert_eq!(
        only(text, Some(Format::Yaml)),
        (codes::INCLUDE, "!include x.md".into(), "`x.md` is not read: `!include` is not part of YAML".into())
    );
    let doc = read(text, Some(Format::Yaml)).documents.remove(0);
    let get = |k: &str| doc.root().get(k).unwrap();
    assert_eq!(get("a").as_u64(), Some(20));
    assert_eq!((get("b").as_u64(), get("b").as_str()), (None, Some("20")));
    assert_eq!((get("c").as_bool(), get("c").as_str()), (Some(true), Some("yes")));
    assert_eq!(get("d").as_bool(), None);
    assert!(get("e").is_null());
    assert_eq!(get("f").as_str(), Some("20"));
    assert_eq!((get("g").as_u64(), get("h").as_u64()), (Some(1000), Some(16)));
    assert_eq!((get("i").tag(), get("i").as_str()), (Some("!custom"), Some("v")));
    assert_eq!(get("j").as_bool(), None);
    assert_eq!(get("k").as_bool(), Some(true));
    assert_eq!((get("l").tag(), get("l").as_str()), (Some("!include"), Some("x.md")));
    assert_eq!(get("a").tag(), None);
    assert_eq!(get("m").as_bool(), Some(true));
}

#[test]
fn quoted_texts_may_go_on_at_any_column() {
    let text = "a:\n  b: 'it''s\n\nso\nlong  '\n  c: \"x\\\"\n y\\n\nz\"\n  d: plain\n";
    let doc = yaml(text);
    let of = |key: &str| {
        let node = doc.root().at(&["a", key]).unwrap();
        (node.as_str().unwrap().to_string(), &text[node.span().start as usize..node.span().end as usize])
    };
    assert_eq!(of("b"), ("it's\nso long  ".to_string(), "'it''s\n\nso\nlong  '"));
    assert_eq!(of("c"), ("x\" y\n z".to_string(), "\"x\\\"\n y\\n\nz\""));
    assert_eq!(of("d"), ("plain".to_string(), "plain"));
}

#[test]
fn brackets_may_close_at_the_column_of_their_key() {
    let text = "steps:\n  - name: a\n    args: [\n      'x',\n      'y'\n    ]\n  - name: b\n    with: {\n      k: v\n\n    }\nend: 1\n";
    let doc = yaml(text);
    let steps: Vec<_> = doc.root().get("steps").unwrap().items().collect();
    let args: Vec<_> = steps[0].get("args").unwrap().items().map(|a| a.as_str().unwrap()).collect();
    assert_eq!(args, ["x", "y"]);
    assert_eq!(steps[1].at(&["with", "k"]).unwrap().as_str(), Some("v"));
    assert_eq!(at(text, doc.root().get("end").unwrap().span()), "1");
    // In a comment the bracket would be lost.
    let commented = "s:\n  - a: 1\n    b: [\n      'x' # y\n    ]\n";
    assert_eq!(only(commented, Some(Format::Yaml)).0, codes::SYNTAX);
}

#[test]
fn aliases_and_merge_keys_share() {
    let text = "base: &b {x: 1, y: 2}\nother: &o {y: 3, z: 4}\nuse:\n  <<: [*b, *o]\n  x: 9\nagain:\n  <<: *b\nlist: [*b, *b]\n";
    let doc = yaml(text);
    let root = doc.root();
    let used = root.get("use").unwrap();
    let numbers: Vec<_> =
        used.entries().map(|e| (e.name().to_string(), e.value.as_u64().unwrap(), e.merged)).collect();
    assert_eq!(numbers, [("x".into(), 9, false), ("y".into(), 2, true), ("z".into(), 4, true)]);
    assert_eq!(used.get("z").unwrap().as_u64(), Some(4));
    assert_eq!(root.at(&["again", "y"]).unwrap().as_u64(), Some(2));
    let list: Vec<_> = root.get("list").unwrap().items().collect();
    assert_eq!(list[0].id(), list[1].id());
    assert_eq!(at(text, list[1].span()), "*b");
    assert_eq!(at(text, list[1].definition()), "&b {x: 1, y: 2}");
    assert!(used.get("<<").is_none());
    assert_eq!(only("a: {<<: 5}", Some(Format::Yaml)).0, codes::ALIAS);
    assert_eq!(yaml("a: {'<<': 5}").root().at(&["a", "<<"]).unwrap().as_u64(), Some(5));
}

#[test]
fn a_node_that_contains_itself_is_refused() {
    assert_eq!(only("a: &a [1, *a]", Some(Format::Yaml)).0, codes::ALIAS);
    assert_eq!(only("--- &a x\n--- *a\n", Some(Format::Yaml)).0, codes::ALIAS);
    assert_eq!(only("a: *nowhere", Some(Format::Yaml)).0, codes::SYNTAX);
}

#[test]
fn an_alias_bomb_stays_small() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for i in 1..200 {
        let prior = format!("*a{}", i - 1);
        text.push_str(&format!("a{i}: &a{i} [{}]\n", vec![prior; 9].join(", ")));
    }
    let doc = yaml(&text);
    assert!(doc.len() < 200 * 13);
    assert!(doc.root().descendants().count() <= doc.len());
    // A chain of merges, each of which merges the one before twice.
    let mut text = String::from("a0: &a0 {k0: 0}\n");
    for i in 1..2000 {
        text.push_str(&format!("a{i}: &a{i} {{<<: [*a{0}, *a{0}], k{i}: 1}}\n", i - 1));
    }
    let loaded = read(&text, Some(Format::Yaml));
    assert_eq!(loaded.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), [codes::LIMIT]);
    let root = loaded.documents[0].root();
    assert_eq!(root.at(&["a100", "k0"]).unwrap().as_u64(), Some(0));
    assert_eq!(root.at(&["a100", "nope"]).map(|n| n.kind()), None);
}

#[test]
fn duplicate_keys_name_both_places() {
    for text in ["a: 1\nb: 2\na: 3\n", "{\"a\": 1, \"b\": 2, \"a\": 3}"] {
        let loaded = read(text, None);
        let d = &loaded.diagnostics[0];
        assert_eq!((d.code, loaded.diagnostics.len()), (codes::DUPLICATE_KEY, 1));
        assert!(d.span.unwrap().start > d.remarks[0].span.start);
        assert_eq!(loaded.documents[0].root().get("a").unwrap().as_u64(), Some(3));
        assert_eq!(loaded.documents[0].root().entries().count(), 2);
    }
    let mut many: String = (0..5000).map(|i| format!("k{}: {i}\n", i % 4990)).collect();
    many.push_str("last: 1\n");
    let loaded = read(&many, Some(Format::Yaml));
    assert_eq!(loaded.diagnostics.len(), 10);
    let root = loaded.documents[0].root();
    assert_eq!(root.get("k3").unwrap().as_u64(), Some(4993));
    assert_eq!(root.get("k4000").unwrap().as_u64(), Some(4000));
    assert!(root.get("k").is_none() && root.get("zzz").is_none());
    assert_eq!(root.entries().count(), 4991);
}

#[test]
fn a_key_that_is_given_more_than_twice_is_reported_at_the_one_that_is_used() {
    for text in ["a: 1\nb: 0\na: 2\nb: 0\na: 3\n", "{\"a\": 1, \"b\": 0, \"a\": 2, \"b\": 0, \"a\": 3}"] {
        let loaded = read(text, None);
        let said: Vec<&str> = loaded.diagnostics.iter().map(|d| &*d.message).collect();
        let used: Vec<Option<u64>> =
            ["a", "b"].iter().map(|k| loaded.documents[0].root().get(k).unwrap().as_u64()).collect();
        assert_eq!(used, [Some(3), Some(0)]);
        assert_eq!(
            said,
            [
                "duplicate key `b`; only this one is used",
                "duplicate key `a` is given 3 times; only this one is used"
            ]
        );
        let keys = loaded.diagnostics.iter().map(|d| d.span.unwrap().start as usize);
        let quote = usize::from(text.starts_with('{'));
        let last = [text.rfind('b').unwrap() - quote, text.rfind('a').unwrap() - quote];
        assert_eq!(keys.collect::<Vec<_>>(), last);
    }
}

#[test]
fn several_documents() {
    let loaded = read("---\na: 1\n---\n# nothing\n---\nb: 2\n...\n", Some(Format::Yaml));
    assert_eq!(loaded.diagnostics, vec![]);
    assert_eq!(loaded.documents.len(), 2);
    assert_eq!(loaded.documents[1].root().get("b").unwrap().as_u64(), Some(2));
    let loaded = read("a: 1\n---\nb: [\n", Some(Format::Yaml));
    assert_eq!((loaded.documents.len(), loaded.diagnostics.len()), (1, 1));
}

#[test]
fn nothing_is_no_document() {
    for text in ["", "\n\n", "# only a remark\n", "---\n", "\u{feff}", "   "] {
        for format in [None, Some(Format::Yaml), Some(Format::Json)] {
            let loaded = read(text, format);
            if format == Some(Format::Json) && text.contains(['#', '-']) {
                continue;
            }
            assert_eq!((loaded.documents.len(), loaded.diagnostics.len()), (0, 0), "{text:?} {format:?}");
        }
    }
}

#[test]
fn templates_are_one_diagnostic() {
    for text in [
        "{{- if .Values.on }}\nkind: Agent\n{{- end }}\n",
        "kind: Agent\nmetadata:\n  name: {{ .Values.name }}-agent\n",
        "kind: Agent\nspec:\n  a: 1\n  {{- toYaml .Values.x | nindent 2 }}\n",
        "a: 1\n{% for x in y %}\n- b\n{% endfor %}\n",
    ] {
        let (code, place, _) = only(text, Some(Format::Yaml));
        assert_eq!(code, codes::TEMPLATE, "{text}");
        assert!(place.starts_with("{{") || place.starts_with("{%"));
    }
    // A placeholder alone happens to parse; it is text.
    let text = "name: {{ .Values.name }}\nb: {{x}}\n";
    assert_eq!(only(text, Some(Format::Yaml)).1, "{{ .Values.name }}");
    let doc = read(text, Some(Format::Yaml)).documents.remove(0);
    assert_eq!(doc.root().get("name").unwrap().as_str(), Some("{{ .Values.name }}"));
    assert_eq!(doc.root().get("b").unwrap().as_str(), Some("{{x}}"));
    // Quoted placeholders are no template.
    assert_eq!(only("a: '{{ x }}'\nb: [\n", Some(Format::Yaml)).0, codes::SYNTAX);
}

#[test]
fn pasted_files_are_left_out_by_name() {
    let text = "# head\n!include ../größe.yaml\n\napps:\n  - name: ä\n    broker: {<<: *shared, x: *other}\n";
    let loaded = read(text, Some(Format::Yaml));
    assert_eq!(loaded.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), [codes::INCLUDE]);
    let doc = &loaded.documents[0];
    assert_eq!(doc.includes()[0].path, "../größe.yaml");
    assert_eq!(at(text, doc.includes()[0].span), "!include ../größe.yaml");
    let plain = read("!include a.yaml\nb: 1\n", Some(Format::Yaml));
    assert_eq!(plain.documents[0].root().get("b").unwrap().as_u64(), Some(1));
    let apps: Vec<_> = doc.root().get("apps").unwrap().items().collect();
    assert_eq!(at(text, apps[0].get("name").unwrap().span()), "ä");
}

#[test]
fn json_syntax_errors() {
    let f = Some(Format::Json);
    for (text, place, message) in [
        ("{\"a\" 1}", "1", "expected `:`, found `1`"),
        ("{\"a\": 1 \"b\": 2}", "\"", "expected `,` or `}`"),
        ("[1 2]", "2", "expected `,` or `]`"),
        ("{a: 1}", "a", "expected a key in double quotes"),
        ("[1, tru]", "t", "`tru` is neither"),
        ("[01]", "0", "`01` is neither"),
        ("[\"a", "\"", "no closing quote"),
        ("[\"a\nb\"]", "\n", "control character"),
        ("[\"\\x\"]", "\\", "unknown escape"),
        ("[1, 2", "", "the file ends here"),
        ("{\"a\":]", "]", "expected a value"),
        ("/* x", "/", "no end"),
        ("nope", "n", "`nope` is neither"),
    ] {
        let (code, at, said) = only(text, f);
        assert_eq!((code, at.as_str()), (codes::SYNTAX, place), "{text}");
        assert!(said.contains(message), "{text}: {said}");
    }
    let (code, place, _) = only("{\"a\": 1}\n{\"b\": 2}", f);
    assert_eq!((code, place.as_str()), (codes::TRAILING, "{"));
    assert_eq!(read("{\"a\": 1}\n{\"b\": 2}", f).documents.len(), 1);
}

#[test]
fn depth_is_limited() {
    for unit in ["[", "{\"a\":", "- ", "{a: ", "? "] {
        let text = unit.repeat(100_000);
        for format in [None, Some(Format::Yaml), Some(Format::Json)] {
            let loaded = read(&text, format);
            assert_eq!(loaded.diagnostics.len(), 1, "{unit} {format:?} {:?}", loaded.diagnostics);
            assert!(loaded.documents.is_empty());
        }
        assert_eq!(read(&text, Some(Format::Yaml)).diagnostics[0].code, codes::LIMIT, "{unit}");
    }
    let mut block = String::new();
    for i in 0..3000 {
        block.push_str(&" ".repeat(i));
        block.push_str("a:\n");
    }
    assert_eq!(only(&block, Some(Format::Yaml)).0, codes::LIMIT);
}

#[test]
fn size_is_limited() {
    let small = Limits { bytes: 100, depth: 10, nodes: 20 };
    let long: Arc<str> = Arc::from("a".repeat(101));
    let loaded = load(FileId(0), &long, None, &small);
    assert_eq!(loaded.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), [codes::LIMIT]);
    assert_eq!(decode(FileId(0), long.as_bytes(), &small).unwrap_err().code, codes::LIMIT);
    // What the parser would have to keep in memory as a whole.
    for long in [format!("[{}]", "a, b, ".repeat(400_000)), format!("a: '{}'", "b ".repeat(2_000_000))] {
        assert_eq!(only(&long, Some(Format::Yaml)).0, codes::LIMIT);
    }
    let long: String = (0..100_000).map(|i| format!("- ä{i}: {{x: {i}}}\n")).collect();
    let items = yaml(&long);
    let last = items.root().items().last().unwrap();
    assert_eq!(at(&long, last.span()), "ä99999: {x: 99999}");
    for format in [Format::Json, Format::Yaml] {
        let many: Arc<str> = Arc::from(format!("[{}1]", "1,".repeat(30)));
        let loaded = load(FileId(0), &many, Some(format), &small);
        assert_eq!(loaded.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), [codes::LIMIT]);
    }
}

#[test]
fn bytes_that_are_no_text() {
    let limits = Limits::default();
    for (bytes, place) in [(&b"a: \xff\n"[..], 3), (b"\xff\xfea\0", 0), (b"\x7fELF\0", 4), (b"ok: \xc3", 4)] {
        let d = decode(FileId(0), bytes, &limits).unwrap_err();
        assert_eq!((d.code, d.span.unwrap().start), (codes::NOT_TEXT, place));
    }
    assert_eq!(read("a\0b", Some(Format::Yaml)).diagnostics[0].code, codes::NOT_TEXT);
    assert_eq!(&*decode(FileId(0), "\u{feff}ä".as_bytes(), &limits).unwrap(), "\u{feff}ä");
}

/// Every accessor on every node, once; spans must lie within the text and within their parent.
fn examine(text: &str, doc: &Document) {
    let whole = doc.root().span();
    for node in doc.root().descendants() {
        let span = node.definition();
        assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?}");
        assert!(span.start >= whole.start && span.end <= whole.end, "{span:?} in {whole:?}");
        let _ =
            (node.kind(), node.as_str(), node.as_bool(), node.as_u64(), node.tag(), node.head(), node.end());
        assert!(node.items().len() <= doc.len());
        for entry in node.entries().take(1000) {
            if let Some(name) = entry.key.text() {
                let found = node.entry(name).map(|e| e.value.id());
                assert_eq!(found, Some(entry.value.id()), "{name}");
            }
        }
    }
}

fn total(bytes: &[u8]) {
    let limits = Limits { bytes: 1 << 16, depth: 40, nodes: 5000 };
    let Ok(text) = decode(FileId(0), bytes, &limits) else { return };
    for format in [None, Some(Format::Yaml), Some(Format::Json)] {
        let loaded = load(FileId(0), &text, format, &limits);
        for d in &loaded.diagnostics {
            let span = d.span.unwrap();
            assert!(span.start <= span.end && span.start as usize <= text.len() + 1, "{d:?}");
        }
        for doc in &loaded.documents {
            examine(&text, doc);
        }
    }
}

const SEEDS: &[&str] = &[
    "agentId: a\ntype: react\nmodel: {name: qwen, temperature: 0.7}\nreact: {maxSteps: 20}\nmcp:\n  localTools: [terminate]\n",
    "a: &x {k: |\n  text\n  more\n  }\nb: {<<: *x, c: 'd''e'}\n--- !t\n- \"\\u00e9\"\n- >-\n  folded\n  text\n...\n",
    "{\"a\": [1, 2, {\"b\": \"c\\n\"}], \"ü\": null} // x",
    "? [a, b]\n: {c: d, e}\n? |\n  key\n: - x\n  -\n  - - y\n    - z\n%TAG ! tag:x,2000:\n",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        total(&bytes);
    }

    #[test]
    fn any_text_of_yaml_characters(text in "[-\\[\\]{}:,?&*!|>'\"%@#` \t\r\na-c0-1é<.~\\\\]{0,120}") {
        total(text.as_bytes());
    }

    #[test]
    fn damaged_files(seed in 0..SEEDS.len(), edits in proptest::collection::vec((any::<u16>(), any::<u8>(), 0..3u8), 1..8)) {
        let mut bytes = SEEDS[seed].as_bytes().to_vec();
        for (place, byte, how) in edits {
            let place = place as usize % (bytes.len() + 1);
            match how {
                0 => bytes.insert(place, byte),
                1 if place < bytes.len() => bytes[place] = byte,
                _ => bytes.truncate(place.max(1)),
            }
        }
        total(&bytes);
    }

    /// Written JSON reads back the same, as JSON and as YAML.
    #[test]
    fn strings_survive(strings in proptest::collection::vec("\\PC{0,20}", 0..6)) {
        let quoted: Vec<String> = strings.iter().map(|s| format!("\"{}\"", s.replace('\\', "\\\\").replace('"', "\\\""))).collect();
        let text = format!("[{}]", quoted.join(", "));
        for format in [Some(Format::Json), Some(Format::Yaml), None] {
            let loaded = read(&text, format);
            prop_assert_eq!(&loaded.diagnostics, &vec![]);
            let read: Vec<_> = loaded.documents[0].root().items().map(|n| n.as_str().unwrap().to_string()).collect();
            prop_assert_eq!(&read, &strings);
        }
    }
}

#[test]
fn a_flow_collection_ends_with_its_bracket_whatever_follows() {
    for text in
        ["a: [x]", "a: [x]  # why\n", "a: [x] # why", "a: [x,\n  y] # why\nb: 1\n", "a: {x: [y] } #\nb: 2\n"]
    {
        let text: Arc<str> = text.into();
        let loaded = load(FileId(0), &text, Some(Format::Yaml), &Limits::default());
        let span = loaded.documents[0].root().get("a").unwrap().span();
        let shown = &text[span.start as usize..span.end as usize];
        assert!(shown.ends_with([']', '}']) && shown.starts_with(['[', '{']), "{shown:?} of {text:?}");
    }
}
