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
    match (as_data(text, ty), fields) {
        (Ok(data), _) => Ok(Some(data)),
        // A single string is accepted without JSON quotes.
        (Err(_), [(name, Type::Str)]) if !text.trim_start().starts_with('{') => {
            Ok(Some(Data::record([(name.clone(), Data::str(text))])))
        }
        (Err(why), _) => {
            let takes = || format!("`{}` takes {ty}, for example '{}'", runnable.name, example(ty));
            let help = why.help.unwrap_or_else(takes);
            Err(InputError::Wrong(format!("the input is wrong: {}", why.message), help))
        }
    }
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
