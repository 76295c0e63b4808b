//! Types as JSON Schemas: what a type has, its schema accepts, and what an exact schema accepts, the type
//! has.

use core_ir::{Comparison, Data, EnumType, Measure, Name, Num, Pred, Type};
use proptest::prelude::*;
use runtime::Schema;
use serde_json::{Value as Json, json};
use std::sync::Arc;

const NAMES: &[&str] = &["a", "b", "c d", "é", "value", "$ref"];

fn name() -> impl Strategy<Value = Name> {
    prop::sample::select(NAMES).prop_map(Name::from)
}

fn fields<T: std::fmt::Debug>(
    item: impl Strategy<Value = T>,
    least: usize,
) -> impl Strategy<Value = Vec<(Name, T)>> {
    prop::collection::vec((name(), item), least..4).prop_map(|mut v| {
        let mut seen = Vec::new();
        v.retain(|(n, _)| {
            !seen.contains(n) && {
                seen.push(n.clone());
                true
            }
        });
        v
    })
}

fn num(n: i64) -> Num {
    Num::from(n)
}

/// A type together with a way to make data of it.
#[derive(Clone, Debug)]
enum Shape {
    Plain(Type),
    List(Box<Shape>),
    Option(Box<Shape>),
    Record(Vec<(Name, Shape)>),
    Variant(Vec<(Name, Shape)>),
    Pair(Box<(Shape, Shape)>),
    /// A map: the type of its keys, some of them, and the values.
    Map(Type, Vec<Name>, Box<Shape>),
    /// A refined type: the type, and data that it has.
    Refined(Type, Vec<Data>),
}

impl Shape {
    fn ty(&self) -> Type {
        let all = |fs: &[(Name, Shape)]| fs.iter().map(|(n, s)| (n.clone(), s.ty())).collect();
        match self {
            Shape::Plain(t) | Shape::Refined(t, _) => t.clone(),
            Shape::List(s) => Type::list(s.ty()),
            Shape::Option(s) => Type::option(s.ty()),
            Shape::Record(fs) => Type::Record(all(fs)),
            Shape::Variant(fs) => Type::Variant(all(fs)),
            Shape::Pair(p) => Type::Pair(Arc::new((p.0.ty(), p.1.ty()))),
            Shape::Map(key, _, value) => Type::map(key.clone(), value.ty()),
        }
    }

    fn data(&self) -> BoxedStrategy<Data> {
        match self {
            Shape::Plain(Type::Str) => "[a-c{}\"\\\\ é]{0,6}".prop_map(Data::str).boxed(),
            Shape::Plain(Type::Num) => prop_oneof![
                any::<i64>().prop_map(num),
                (-999i64..999).prop_map(|n| num(n).div(&num(8)).unwrap())
            ]
            .prop_map(Data::Num)
            .boxed(),
            Shape::Plain(Type::Bool) => any::<bool>().prop_map(Data::Bool).boxed(),
            Shape::Plain(Type::Enum(e)) => {
                prop::sample::select(e.variants.clone()).prop_map(|v| Data::str(&*v)).boxed()
            }
            Shape::Plain(_) => Just(Data::Null).boxed(),
            Shape::Refined(_, data) => prop::sample::select(data.clone()).boxed(),
            Shape::List(s) => prop::collection::vec(s.data(), 0..3).prop_map(Data::list).boxed(),
            Shape::Option(s) => prop_oneof![Just(Data::Null), s.data()].boxed(),
            Shape::Record(fs) => {
                let parts: Vec<_> = fs.iter().map(|(n, s)| (Just(n.clone()), s.data())).collect();
                parts.prop_map(Data::record).boxed()
            }
            Shape::Variant(fs) => {
                let fs = fs.clone();
                prop::sample::select(fs)
                    .prop_flat_map(|(n, s)| s.data().prop_map(move |d| Data::Tag(n.clone(), Arc::new(d))))
                    .boxed()
            }
            Shape::Map(_, keys, value) => {
                let keys = prop::sample::subsequence(keys.clone(), 0..=keys.len());
                let entries = keys.prop_flat_map({
                    let value = value.clone();
                    move |keys| keys.into_iter().map(|k| (Just(k), value.data())).collect::<Vec<_>>()
                });
                entries.prop_map(Data::record).boxed()
            }
            Shape::Pair(p) => (p.0.data(), p.1.data()).prop_map(|p| Data::Pair(Arc::new(p))).boxed(),
        }
    }
}

fn refined() -> impl Strategy<Value = Shape> {
    let cmp = |m, c, n| Pred::Compare(m, c, num(n));
    let both = |a, b| Pred::And(Arc::new((a, b)));
    let ints = |ns: &[i64]| -> Vec<Data> { ns.iter().map(|n| Data::Num(num(*n))).collect() };
    let texts = |ts: &[&str]| -> Vec<Data> { ts.iter().map(|t| Data::str(*t)).collect() };
    let record = Type::record([("n".into(), Type::Num), ("l".into(), Type::list(Type::Num))]);
    let of_record = |n: i64, l: &[i64]| {
        Data::record([("n".into(), Data::Num(num(n))), ("l".into(), Data::list(ints(l)))])
    };
    let cases: Vec<(Type, Pred, Vec<Data>)> = vec![
        (
            Type::Num,
            both(cmp(Measure::Value, Comparison::Ge, 0), cmp(Measure::Value, Comparison::Lt, 10)),
            ints(&[0, 9]),
        ),
        (Type::Num, Pred::OneOf(ints(&[1, 2]).into()), ints(&[1, 2])),
        (Type::Num, cmp(Measure::Value, Comparison::Ne, 3), ints(&[2])),
        (Type::Num, Pred::Compare(Measure::Value, Comparison::Gt, num(1).div(&num(3)).unwrap()), ints(&[1])),
        (
            Type::Str,
            both(cmp(Measure::Length, Comparison::Gt, 1), cmp(Measure::Length, Comparison::Le, 3)),
            texts(&["ab", "é{}"]),
        ),
        (Type::Str, Pred::Matches("^[a-z]{2,3}-\\d+$".into()), texts(&["ab-1", "abc-007"])),
        (Type::Str, Pred::Matches("(?i)^x\\w$".into()), texts(&["XY"])),
        (Type::Str, Pred::Contains("a.b".into()), texts(&["a.b", "xa.by"])),
        (Type::Str, cmp(Measure::Words, Comparison::Eq, 2), texts(&["a b"])),
        (Type::Str, Pred::Not(Arc::new(Pred::Contains("x".into()))), texts(&["a"])),
        (
            Type::list(Type::Num),
            both(
                cmp(Measure::Length, Comparison::Eq, 2),
                Pred::Every(Arc::new(cmp(Measure::Value, Comparison::Ge, 0))),
            ),
            vec![Data::list(ints(&[0, 5]))],
        ),
        (
            record,
            both(
                Pred::Field("n".into(), Arc::new(cmp(Measure::Value, Comparison::Eq, 4))),
                Pred::Field("l".into(), Arc::new(cmp(Measure::Length, Comparison::Ge, 1))),
            ),
            vec![of_record(4, &[1])],
        ),
    ];
    prop::sample::select(cases)
        .prop_map(|(base, pred, data)| Shape::Refined(Type::Refined(Arc::new((base, pred))), data))
}

/// A type of keys, and some of them.
fn keys() -> impl Strategy<Value = (Type, Vec<Name>)> {
    let names = |all: &[&str]| -> Vec<Name> { all.iter().map(|n| Name::from(*n)).collect() };
    let e = EnumType::new("E", names(&["a", "b c"]));
    let pattern = |p: &str| Type::Refined(Arc::new((Type::Str, Pred::Matches(p.into()))));
    prop::sample::select(vec![
        (Type::Str, names(&["", "a", "é\"", "$ref"])),
        (Type::Enum(Arc::new(e)), names(&["a", "b c"])),
        (pattern("^x[0-9]+$"), names(&["x1", "x22"])),
        (pattern("(?i)^x$"), names(&["x", "X"])),
    ])
}

fn shape() -> impl Strategy<Value = Shape> {
    let e = Type::Enum(Arc::new(EnumType::new("E", vec!["a".into(), "b c".into(), "\"".into()])));
    let leaf = prop_oneof![
        4 => prop::sample::select(vec![Type::Str, Type::Num, Type::Bool, Type::Null, e]).prop_map(Shape::Plain),
        1 => refined(),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|s| Shape::List(Box::new(s))),
            inner.clone().prop_map(|s| Shape::Option(Box::new(s))),
            fields(inner.clone(), 0).prop_map(Shape::Record),
            fields(inner.clone(), 1).prop_map(Shape::Variant),
            (inner.clone(), inner.clone()).prop_map(|p| Shape::Pair(Box::new(p))),
            (keys(), inner).prop_map(|((key, all), s)| Shape::Map(key, all, Box::new(s))),
        ]
    })
}

/// JSON like a given one, but for one place.
fn changed(json: Json, place: usize, new: &Json) -> Json {
    fn go(json: &mut Json, at: &mut usize, new: &Json) {
        if *at == 0 {
            *json = new.clone();
        }
        *at = at.wrapping_sub(1);
        match json {
            Json::Array(items) => items.iter_mut().for_each(|i| go(i, at, new)),
            Json::Object(fields) => fields.values_mut().for_each(|i| go(i, at, new)),
            _ => {}
        }
    }
    let mut json = json;
    let mut at = place;
    go(&mut json, &mut at, new);
    json
}

fn valid(schema: &Schema, json: &Json) -> bool {
    jsonschema::draft202012::new(&schema.json).expect("a valid schema").is_valid(json)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn data_of_the_type_validates_and_reads_back(
        (shape, data) in shape().prop_flat_map(|s| { let d = s.data(); (Just(s), d) })
    ) {
        let ty = shape.ty();
        prop_assert_eq!(ty.check(&data), Ok(()));
        let schema = Schema::of(&ty).unwrap();
        let json = data.to_json();
        prop_assert!(valid(&schema, &json), "{} {}", schema.json, json);
        let wrapped = json!({"value": json.clone()});
        prop_assert!(valid(&schema.clone().wrapped(), &wrapped));
        let back = ty.read(&json).unwrap();
        prop_assert_eq!(ty.check(&back), Ok(()));
        prop_assert_eq!(back.to_json(), json);
    }

    #[test]
    fn data_that_an_exact_schema_accepts_has_the_type(
        (shape, data) in shape().prop_flat_map(|s| { let d = s.data(); (Just(s), d) }),
        place in 0usize..8,
        new in prop::sample::select(vec![json!(null), json!(7), json!("a"), json!([]), json!({}), json!({"a": null}), json!([1, 2]), json!(0.5)]),
    ) {
        let ty = shape.ty();
        let schema = Schema::of(&ty).unwrap();
        let json = changed(data.to_json(), place, &new);
        if schema.exact && valid(&schema, &json) {
            prop_assert_eq!(ty.check(&ty.read(&json).unwrap()), Ok(()), "{}", json);
        }
    }

    #[test]
    fn strict_schemas_keep_the_rules(shape in shape()) {
        let schema = Schema::of(&shape.ty()).unwrap();
        if schema.strict {
            prop_assert_eq!(crate::support::strict(&schema.wrapped().json), Ok(()));
        }
    }
}

#[test]
fn schemas_state_strictness_and_exactness() {
    let of = |t: &Type| Schema::of(t).map(|s| (s.strict, s.exact));
    assert_eq!(of(&Type::fun(Type::Str, core_ir::EffectRow::pure(), Type::Str)), None);
    assert_eq!(of(&Type::list(Type::Dyn)), Some((false, true)));
    let pair = |a, b| Type::Pair(Arc::new((a, b)));
    assert_eq!(of(&pair(Type::Num, Type::Num)), Some((true, true)));
    assert_eq!(of(&pair(Type::Num, Type::Str)), Some((false, true)));
    let words = Pred::Compare(Measure::Words, Comparison::Eq, num(3));
    assert_eq!(of(&Type::Refined(Arc::new((Type::Str, words)))), Some((true, false)));
    let mut deep = Type::Num;
    for _ in 0..10_000 {
        deep = Type::list(deep);
    }
    assert_eq!(of(&deep), Some((false, false)));
    std::mem::forget(deep); // Dropping it would recurse; nothing makes such a type.
}

/// `Comment = {text: Str, replies: List Comment, best: Option Comment}`
fn comment() -> Type {
    let own = || Type::Var("Comment".into());
    let body = Type::record([
        ("text".into(), Type::Str),
        ("replies".into(), Type::list(own())),
        ("best".into(), Type::option(own())),
    ]);
    let ty = core_ir::RecType::new("Comment".into(), [("Comment".into(), body)].into());
    Type::Rec(Arc::new(ty.unwrap()))
}

#[test]
fn recursive_types_refer_to_themselves() {
    let comment = comment();
    let own = json!({"$ref": "#/$defs/Comment"});
    let object = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "replies": {"type": "array", "items": own},
            "best": {"anyOf": [own, {"type": "null"}]},
        },
        "required": ["text", "replies", "best"],
        "additionalProperties": false,
    });
    let list = Schema::of(&Type::list(comment.clone())).unwrap();
    assert_eq!(list.json, json!({"type": "array", "items": own, "$defs": {"Comment": object}}));
    assert!(list.strict && list.exact);
    let whole = Schema::of(&comment).unwrap();
    assert!(whole.is_object());
    let leaf = json!({"text": "a", "replies": [], "best": null});
    let mut deep = leaf.clone();
    for _ in 0..30 {
        deep = json!({"text": "b", "replies": [leaf, deep], "best": null});
    }
    let wrong: Json = serde_json::from_str(&deep.to_string().replacen("\"a\"", "1", 1)).unwrap();
    assert!(valid(&whole, &deep) && !valid(&whole, &wrong));
    let wrapped = list.wrapped();
    assert!(valid(&wrapped, &json!({"value": [deep]})) && !valid(&wrapped, &json!({"value": [wrong]})));
    assert_eq!(crate::support::strict(&whole.json), Ok(()));
    for (json, fits) in [(&deep, true), (&wrong, false)] {
        assert_eq!(comment.check(&comment.read(json).unwrap()).is_ok(), fits);
    }
}

/// Data that is nested too deep is an error, and nothing runs out of stack.
#[test]
fn hostile_data_of_a_recursive_type_is_refused() {
    let comment = comment();
    let leaf = r#"{"text": "a", "replies": [], "best": null}"#;
    let deep = |n: usize| {
        let open = r#"{"text": "a", "replies": [], "best": "#.repeat(n);
        serde_json::from_str::<Json>(&format!("{open}{leaf}{}", "}".repeat(n))).ok()
    };
    assert!(comment.read(&deep(100).unwrap()).is_ok_and(|d| comment.check(&d).is_ok()));
    // The parser of JSON has a limit of its own.
    assert_eq!(deep(1_000), None);
    let mut built = serde_json::from_str::<Json>(leaf).unwrap();
    for _ in 0..600 {
        built = json!({"text": "a", "replies": [built], "best": null});
    }
    assert!(comment.read(&built).is_err());
}

#[test]
fn maps_are_told_with_their_keys() {
    let of = |key: Type| Schema::of(&Type::map(key, Type::Num)).unwrap();
    let number = json!({"type": "number"});
    let any = of(Type::Str);
    assert_eq!(any.json, json!({"type": "object", "additionalProperties": number}));
    assert!(any.exact && !any.strict);
    let e = Type::Enum(Arc::new(EnumType::new("E", vec!["a".into(), "b".into()])));
    let named =
        json!({"type": "object", "properties": {"a": number, "b": number}, "additionalProperties": false});
    assert_eq!(of(e).json, named);
    let pattern = Type::Refined(Arc::new((Type::Str, Pred::Matches("^x".into()))));
    let matched =
        json!({"type": "object", "patternProperties": {"^x": number}, "additionalProperties": false});
    assert_eq!(of(pattern).json, matched);
    let few = Pred::Compare(Measure::Length, Comparison::Le, num(2));
    let few = Type::Refined(Arc::new((Type::map(Type::Str, Type::Num), few)));
    assert_eq!(
        Schema::of(&few).unwrap().json,
        json!({"type": "object", "additionalProperties": number, "maxProperties": 2})
    );
}

#[test]
fn an_optional_enum_admits_null() {
    let e = Type::Enum(Arc::new(EnumType::new("E", vec!["a".into()])));
    let schema = Schema::of(&Type::option(e)).unwrap();
    assert_eq!(schema.json, json!({"type": ["string", "null"], "enum": ["a", null]}));
    assert!(valid(&schema, &json!(null)) && valid(&schema, &json!("a")) && !valid(&schema, &json!("b")));
}

#[test]
fn whole_numbers_and_days_are_told() {
    let integer = Data::record([("type".into(), Data::str("integer"))]);
    let whole = Pred::Schema(Arc::new(core_ir::Schema::new(&integer).unwrap()));
    let int = Type::Refined(Arc::new((Type::Num, whole)));
    let schema = Schema::of(&Type::option(int.clone())).unwrap();
    assert_eq!(schema.json, json!({"type": ["integer", "null"]}));
    assert!(schema.strict && schema.exact);
    let least = Pred::Compare(Measure::Value, Comparison::Ge, num(1));
    let schema = Schema::of(&Type::Refined(Arc::new((int, least)))).unwrap();
    assert_eq!(schema.json, json!({"type": "integer", "minimum": 1}));
    let decimal = Type::Refined(Arc::new((Type::Num, Pred::decimal())));
    let schema = Schema::of(&decimal).unwrap();
    assert_eq!(schema.json, json!({"type": "number"}));
    assert!(schema.strict && schema.exact);
    for format in &core_ir::FORMATS {
        let ty = Type::Refined(Arc::new((Type::Str, Pred::Matches(format.pattern.into()))));
        let schema = Schema::of(&ty).unwrap();
        assert!(schema.exact && schema.json["pattern"] == format.pattern, "{}", format.name);
    }
}

/// Providers are told the descriptions of variants in one text, those of values that a refinement excludes
/// left out.
#[test]
fn descriptions_of_variants_are_in_the_schema() {
    let e = EnumType::new("E", vec!["a".into(), "b".into(), "c".into()]);
    let e = Type::Enum(Arc::new(e.described([Some("the first".into()), None, Some("the last".into())])));
    let schema = Schema::of(&Type::option(e.clone())).unwrap();
    let told = json!({
        "type": ["string", "null"], "enum": ["a", "b", "c", null], "description": "a: the first\nc: the last",
    });
    assert_eq!(schema.json, told);
    assert!(schema.strict && schema.exact);
    let some = Pred::OneOf(["c", "b"].map(Data::str).into());
    let schema = Schema::of(&Type::Refined(Arc::new((e, some)))).unwrap();
    assert_eq!(schema.json, json!({"type": "string", "enum": ["c", "b"], "description": "c: the last"}));
}
