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
