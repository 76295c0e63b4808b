use super::*;

fn s(text: &str) -> Data {
    Data::str(text)
}

fn n(text: &str) -> Data {
    Data::Num(text.parse().unwrap())
}

fn shown(value: &str, spec: &str) -> String {
    let value = value.parse().map_or_else(|_| s(value), Data::Num);
    format::format(&value, spec, 1000).unwrap_or_else(|e| format!("{e:?}"))
}

#[test]
fn format_specifications_are_those_of_cpython() {
    for (value, spec, expected) in [
        ("1234567.891", ",.2f", "1,234,567.89"),
        ("-3", "+d", "-3"),
        ("3", "+d", "+3"),
        ("42", "06d", "000042"),
        ("-42", "06d", "-00042"),
        ("1234", "010,d", "00,001,234"),
        ("0.5", "%", "50.000000%"),
        ("0.125", ".2f", "0.12"),
        ("12345", "e", "1.234500e+04"),
        ("0.0001", "g", "0.0001"),
        ("1234567", "g", "1.23457e+06"),
        ("255", "#x", "0xff"),
        ("ab", ">5", "   ab"),
        ("ab", "*^5", "*ab**"),
        ("abcdef", ".3", "abc"),
        ("999.99", ".3g", "1e+03"),
    ] {
        assert_eq!(shown(value, spec), expected, "{value} {spec}");
    }
}

#[test]
fn numbers_are_shown_as_python_shows_them() {
    for (value, expected) in
        [("2", "2"), ("0.5", "0.5"), ("1/3", "0.3333333333333333"), ("0.00001", "1e-05"), ("-1.25", "-1.25")]
    {
        assert_eq!(repr(&n(value)), expected);
    }
}

#[test]
fn sets_are_sorted_and_distinct() {
    let items = [n("3"), n("1"), Data::Bool(true), s("a")];
    assert_eq!(repr(&set(items.to_vec()).unwrap()), "{1, 3, 'a'}");
    assert_eq!(set(vec![Data::list([])]), type_error("unhashable type: 'list'"));
}

#[test]
fn keys_that_are_no_strings_make_pairs() {
    let keys = Data::list([n("1"), s("b")]);
    let values = Data::list([s("x"), s("y")]);
    let made = operate("dict", &[keys, values], 1000).unwrap();
    assert_eq!(repr(&made), "{1: 'x', 'b': 'y'}");
    assert_eq!(plain(&made).to_json().to_string(), r#"{"1":"x","b":"y"}"#);
}

/// Sorting a list whose items have no order ends with an exception, however long the list is; the sort of the
/// standard library may panic.
#[test]
fn items_without_an_order_are_a_type_error_or_a_set() {
    let mut state = 1_u64;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let member = |name: &str| {
        let class = Data::Tag("Kind".into(), s("enum").into());
        Data::record([(CLASS.into(), class), ("name".into(), s(name)), ("value".into(), s(name))])
    };
    let date = |of: &str, text: &str| {
        dates::call(&format!("{of}.fromisoformat"), &[s(text)], &[]).unwrap_or_else(|e| panic!("{e:?}"))
    };
    for length in (2..400).step_by(3) {
        let items: Vec<Data> = (0..length)
            .map(|_| match below(8) {
                0 | 1 => Data::Num((below(50) as i64).into()),
                2 => s(&below(50).to_string()),
                3 => Data::Null,
                4 => member(["A", "B", "C"][below(3) as usize]),
                5 => date("date", &format!("2025-01-{:02}", 1 + below(28))),
                6 => date("datetime", &format!("2025-01-{:02}T10:00:00", 1 + below(28))),
                _ => date("datetime", &format!("2025-01-{:02}T10:00:00+0{}:00", 1 + below(28), below(3))),
            })
            .collect();
        let kinds: std::collections::BTreeSet<String> = items
            .iter()
            .map(|i| format!("{:?}", (class(i), matches!(view(i), View::Moment(m) if m.kind().1))))
            .collect();
        let sorted =
            operate("b.sorted", &[Data::list([Data::list(items.clone())]), Data::record([])], 1 << 20);
        let is_ordered = kinds.len() == 1 && !matches!(class(&items[0]), "Kind" | "NoneType");
        assert_eq!(sorted.is_ok(), is_ordered, "{kinds:?}");
        // In a set each value stands once.
        let once = set(items.clone()).unwrap_or_else(|e| panic!("{e:?}"));
        let View::Set(kept) = view(&once) else { panic!("a set") };
        for (i, item) in kept.iter().enumerate() {
            assert!(kept[i + 1..].iter().all(|other| !equal(item, other)), "{item:?} stands twice");
        }
        assert!(items.iter().all(|item| kept.iter().any(|other| equal(item, other))));
    }
}
