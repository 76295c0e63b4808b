//! The input of a run, as somebody types it.
//!
//! Entry point: [`read`].

use crate::Runnable;
use core_ir::{Data, InputMismatch, Name, Type};
use serde_json::{Value, json};

/// Reason why a text is no input of an entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputError {
    /// There is none, and one is needed. With an example.
    Missing(String, Value),
    /// It does not fit. With the remedy.
    Wrong(String, String),
}

/// Reads the input of an entry point: JSON of its type, or a text where it takes one.
///
/// # Errors
/// The text is missing or does not fit.
pub fn read(runnable: &Runnable, text: Option<&str>) -> Result<Option<Data>, InputError> {
    let Some(ty) = &runnable.input else {
        return Ok(text.map(|t| as_data(t, &Type::Dyn).unwrap_or_else(|_| Data::str(t))));
    };
    let fields: &[(Name, Type)] = if let Type::Record(fields) = ty { fields } else { &[] };
    let Some(text) = text else {
        if matches!(ty, Type::Record(_)) && fields.iter().all(|(_, t)| matches!(t, Type::Option(_))) {
            return Ok(Some(Data::record([])));
        }
        let message = format!("`{}` needs an input of type {ty}", runnable.name);
        return Err(InputError::Missing(message, example(ty)));
    };
    if *ty == Type::Str {
        return Ok(Some(Data::str(text)));
    }
    let wrong = |why: InputMismatch| {
        let takes = || format!("`{}` takes {ty}, for example '{}'", runnable.name, example(ty));
        InputError::Wrong(format!("the input is wrong: {}", why.message), why.help.unwrap_or_else(takes))
    };
    let data = match fields {
        // A single text or number is accepted as it is.
        [(name, single)] if is_plain(single) && !text.trim_start().starts_with('{') => plain(ty, name, text),
        _ => as_data(text, ty),
    };
    data.map(Some).map_err(wrong)
}

/// Returns whether values of a type are written as a text, a number or a truth value.
fn is_plain(mut ty: &Type) -> bool {
    loop {
        ty = match ty {
            Type::Option(inside) => inside,
            Type::Refined(refined) => &refined.0,
            _ => return matches!(ty, Type::Str | Type::Enum(_) | Type::Num | Type::Bool),
        };
    }
}

/// The only field of an input, written as it is, or else as JSON.
fn plain(ty: &Type, name: &Name, text: &str) -> Result<Data, InputMismatch> {
    let of = |value: Value| ty.read_input(&json!({&**name: value}));
    of(text.into()).or_else(|why| match serde_json::from_str(text) {
        Ok(value @ (Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null)) => of(value),
        _ => Err(why),
    })
}

fn as_data(text: &str, ty: &Type) -> Result<Data, InputMismatch> {
    let json: Value = serde_json::from_str(text)
        .map_err(|e| InputMismatch { message: format!("not JSON: {e}"), help: None })?;
    ty.read_input(&json)
}

/// JSON of a type, to show what is meant.
fn example(ty: &Type) -> Value {
    match ty {
        Type::Str | Type::Dyn => json!("…"),
        Type::Num => json!(1),
        Type::Bool => json!(true),
        Type::List(t) => json!([example(t)]),
        Type::Option(t) => example(t),
        Type::Record(fields) => {
            Value::Object(fields.iter().map(|(n, t)| (n.to_string(), example(t))).collect())
        }
        Type::Map(of) => match example(&of.0) {
            Value::String(key) => json!({key: example(&of.1)}),
            _ => json!({}),
        },
        Type::Enum(e) => e.variants.first().map_or(Value::Null, |v| json!(&**v)),
        Type::Refined(r) => example(&r.0),
        Type::Rec(r) => {
            r.bodies().iter().find(|(n, _)| n == r.name()).map_or(Value::Null, |(_, t)| example(t))
        }
        Type::Null | Type::Var(_) | Type::Variant(_) | Type::Pair(_) | Type::Fun(_) => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostics::FileId;

    /// Reads the input of a pipeline with a parameter of a type.
    fn given(ty: &str, text: &str) -> Result<String, InputError> {
        let program = format!(
            "type Mood = \"good\" | \"bad\"; enum Size {{ small, large }}\n\
                               pipeline main(x: {ty}) -> Any {{ return x; }}"
        );
        let (module, found) = agentlang::check(FileId(0), &program);
        let module = module.unwrap_or_else(|| panic!("{found:?}"));
        let runnable = crate::pipelines(&module, &mut Vec::new()).remove(0);
        let data = read(&runnable, Some(text))?.expect("an input");
        Ok(data.to_json()["x"].to_string())
    }

    #[test]
    fn a_single_text_or_number_is_taken_as_it_is() {
        for (ty, text, value) in [
            ("String", "12", "\"12\""),
            ("Date", "2024-12-09", "\"2024-12-09\""),
            ("Date", "\"2024-12-09\"", "\"2024-12-09\""),
            ("Option[Date]", "2024-12-09", "\"2024-12-09\""),
            ("Option[Date]", "null", "null"),
            ("Url", "https://example.org", "\"https://example.org\""),
            ("Int", "12", "12"),
            ("Number where it < 1", "0.5", "0.5"),
            ("Bool", "true", "true"),
            ("Mood", "bad", "\"bad\""),
            ("Size", "small", "\"small\""),
            ("Int", "{\"x\": 3}", "3"),
        ] {
            assert_eq!(given(ty, text).as_deref(), Ok(value), "{ty} {text}");
        }
    }

    #[test]
    fn a_single_text_that_does_not_fit_is_refused_at_its_place() {
        for (ty, text) in
            [("Date", "2024-13-09"), ("Int", "1.5"), ("Int", "twelve"), ("Mood", "odd"), ("Size", "[1]")]
        {
            match given(ty, text) {
                Err(InputError::Wrong(message, _)) => {
                    assert!(message.contains("$.x"), "{ty} {text}: {message}")
                }
                other => panic!("{ty} {text}: {other:?}"),
            }
        }
    }
}
