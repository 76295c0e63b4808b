//! Tools that are functions of WebAssembly components.
//!
//! Entry point: [`Wasm`], a handler; [`Components`] keeps what has been compiled. A component gets nothing
//! but its arguments: what it imports (files, clocks, chance, the network) is not there, and asking for it
//! ends the call.
//!
//! Invariant: each call has an instance of its own, so no call sees what another one left in memory.
//! Invariant: a call ends: it has so much fuel (one for each instruction, roughly) and so much memory and no
//! more.
//! Invariant: a call without a caller, because it is late or its run has ended, stops computing.
//! Invariant: arguments and results have the types that the component states, and those fit the declared
//! ones, or nothing is called.

use super::{ToolError, ToolLimits};
use crate::ConfigError;
use core_ir::{Data, Name, Num, ToolDecl, Type};
use diagnostics::clip_to as clip;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, ComponentExportIndex, Linker, Type as WasmType, Val};
use wasmtime::{Config, Engine, Store, StoreLimits, StoreLimitsBuilder, Trap, UpdateDeadline};

/// Fuel of a call if its handler does not say: a second or so.
const FUEL: u64 = 1_000_000_000;

/// Memory of a call if its handler does not say, in bytes.
const MEMORY: usize = 64 << 20;

/// Larger files are not compiled.
const MAX_FILE: u64 = 64 << 20;

/// Values nested deeper are refused; the types of components are finite, those of data are not.
const MAX_DEPTH: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Wasm {
    file: PathBuf,
    function: String,
    fuel: u64,
    memory: usize,
    timeout: Option<Duration>,
}

/// Components that were compiled, by their files.
pub(super) struct Components {
    engine: Option<Engine>,
    known: Mutex<HashMap<PathBuf, (SystemTime, u64, Component)>>,
}

impl Default for Components {
    fn default() -> Components {
        let mut config = Config::new();
        config.wasm_component_model(true).consume_fuel(true).epoch_interruption(true);
        Components { engine: Engine::new(&config).ok(), known: Mutex::default() }
    }
}

impl Components {
    /// The component in a file; compiled anew if the file has changed.
    fn get(&self, file: &Path) -> Result<(Engine, Component), String> {
        let engine = self.engine.clone().ok_or("WebAssembly does not work on this machine")?;
        let shown = clip(&file.display().to_string(), 100);
        let failed = |e: std::io::Error| format!("`{shown}`: {e}");
        let about = std::fs::metadata(file).map_err(failed)?;
        let (time, size) = (about.modified().map_err(failed)?, about.len());
        if !about.is_file() || size > MAX_FILE {
            return Err(format!("`{shown}` is not a file of at most {} MiB", MAX_FILE >> 20));
        }
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((t, s, component)) = known().get(file)
            && (*t, *s) == (time, size)
        {
            return Ok((engine, component.clone()));
        }
        let bytes = std::fs::read(file).map_err(failed)?;
        let component = Component::new(&engine, bytes)
            .map_err(|e| format!("`{shown}` is not a component: {}", clip(&format!("{e:#}"), 300)))?;
        known().insert(file.to_path_buf(), (time, size, component.clone()));
        Ok((engine, component))
    }
}

/// Reason for the end of a call that nobody waits for; never shown.
const GIVEN_UP: &str = "it was canceled";

/// Somebody who waits for a call. When they go, it is told to stop.
struct CallerGuard {
    given_up: Arc<AtomicBool>,
    engine: Option<Engine>,
}

impl Drop for CallerGuard {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::SeqCst);
        // All calls of the engine check now, and those with a caller continue. A finished call leaves nothing
        // behind.
        if let Some(engine) = &self.engine {
            engine.increment_epoch();
        }
    }
}

impl Wasm {
    pub(super) fn read(
        file: &Data,
        tool: &str,
        function: Option<&Data>,
        fuel: Option<&Data>,
        memory: Option<&Data>,
        timeout: Option<Duration>,
    ) -> Result<Wasm, String> {
        let Some(file) = file.as_str() else { return Err("`wasm` is not the name of a file".into()) };
        let function = match function {
            // Names of components have words with dashes between them.
            None => tool.replace(['_', '.'], "-"),
            Some(Data::Str(name)) => name.to_string(),
            Some(_) => return Err("`function` is not a name".into()),
        };
        let count = |data: &Data| match data {
            Data::Num(n) => n.to_i64().and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0),
            _ => None,
        };
        let fuel = match fuel {
            None => FUEL,
            Some(data) => count(data).ok_or("`fuel` is not a positive whole number")?,
        };
        let memory = match memory {
            None => MEMORY,
            Some(data) => count(data)
                .and_then(|n| usize::try_from(n).ok()?.checked_mul(1 << 20))
                .ok_or("`memory` is not a positive whole number of MiB")?,
        };
        Ok(Wasm { file: file.into(), function, fuel, memory, timeout })
    }

    /// The file of the component.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    pub(super) async fn call(
        self,
        decl: Arc<ToolDecl>,
        args: Vec<(Name, Data)>,
        limits: ToolLimits,
        components: Arc<Components>,
    ) -> Result<Data, ToolError> {
        let limit = self.timeout.unwrap_or(limits.timeout);
        let waited_for = CallerGuard { given_up: Arc::default(), engine: components.engine.clone() };
        let given_up = waited_for.given_up.clone();
        let work =
            tokio::task::spawn_blocking(move || self.run(&decl, &args, &limits, &components, &given_up));
        match tokio::time::timeout(limit, work).await {
            Ok(done) => done.map_err(|_| "it crashed".to_string())?,
            Err(_) => Err(ToolError::Late(format!("no result within {} s", limit.as_secs_f64()))),
        }
    }

    fn run(
        &self,
        decl: &ToolDecl,
        args: &[(Name, Data)],
        limits: &ToolLimits,
        components: &Components,
        given_up: &Arc<AtomicBool>,
    ) -> Result<Data, ToolError> {
        let (engine, component) = components.get(&self.file).map_err(ConfigError::new)?;
        let (ty, at) = self.find(&component).map_err(ConfigError::new)?;
        let Signature { params, results } = self.signature(&ty, decl).map_err(ConfigError::new)?;
        let values = params
            .iter()
            .zip(args)
            .map(|((name, ty), (_, data))| to_wasm(data, ty, 0).map_err(|why| format!("`{name}`: {why}")));
        let values = values.collect::<Result<Vec<Val>, String>>()?;

        let store = StoreLimitsBuilder::new()
            .memory_size(self.memory)
            .table_elements(100_000)
            .instances(100)
            .tables(100)
            .memories(100)
            .trap_on_grow_failure(true)
            .build();
        let mut store: Store<StoreLimits> = Store::new(&engine, store);
        store.limiter(|limits| limits);
        let ended = |e: wasmtime::Error| self.why(&e);
        store.set_fuel(self.fuel).map_err(ended)?;
        // Each new epoch checks whether this call was canceled.
        let stop = given_up.clone();
        store.epoch_deadline_callback(move |_| match stop.load(Ordering::SeqCst) {
            true => Ok(UpdateDeadline::Interrupt),
            false => Ok(UpdateDeadline::Continue(1)),
        });
        store.set_epoch_deadline(1);
        // Before the deadline was set an epoch went unnoticed.
        if given_up.load(Ordering::SeqCst) {
            return Err(GIVEN_UP.to_string().into());
        }
        let mut linker = Linker::new(&engine);
        linker.define_unknown_imports_as_traps(&component).map_err(ended)?;
        let instance = linker.instantiate(&mut store, &component).map_err(ended)?;
        let function =
            instance.get_func(&mut store, at).ok_or_else(|| "the function is not there".to_string())?;
        let mut out = vec![Val::Bool(false); results];
        function.call(&mut store, &values, &mut out).map_err(ended)?;
        let data = match out.into_iter().next() {
            None => Ok(Data::Null),
            Some(Val::Result(Err(why))) => {
                Err(match why.map(|v| from_wasm(*v, &mut limits.max_output.clone(), 0)) {
                    None => "it failed".into(),
                    Some(Ok(Data::Str(why))) => why.to_string(),
                    Some(Ok(other)) => other.to_json().to_string(),
                    Some(Err(why)) => why,
                })
            }
            Some(Val::Result(Ok(None))) => Ok(Data::Null),
            Some(Val::Result(Ok(Some(value)))) => from_wasm(*value, &mut limits.max_output.clone(), 0),
            Some(value) => from_wasm(value, &mut limits.max_output.clone(), 0),
        };
        Ok(data?)
    }

    /// The types of a function's parameters and results.
    ///
    /// # Errors
    /// They are not as they are declared.
    fn signature(&self, ty: &ComponentItem, decl: &ToolDecl) -> Result<Signature, String> {
        let ComponentItem::ComponentFunc(ty) = ty else {
            return Err(format!("`{}` of the component is not a function", clip(&self.function, 60)));
        };
        let params: Vec<(String, WasmType)> = ty.params().map(|(n, t)| (n.to_string(), t)).collect();
        if params.len() != decl.params.len() {
            return Err(format!(
                "the function takes {} arguments, and the declaration has {}",
                params.len(),
                decl.params.len()
            ));
        }
        for ((name, wasm), param) in params.iter().zip(&decl.params) {
            fits(&param.ty, wasm, 0).map_err(|why| {
                format!("the parameter `{}` is declared as {}, but `{name}` {why}", param.name, param.ty)
            })?;
        }
        let results: Vec<WasmType> = ty.results().collect();
        if let Some(wasm) = results.first().and_then(value_of) {
            fits(&decl.result, &wasm, 0)
                .map_err(|why| format!("the result is declared as {}, but it {why}", decl.result))?;
        }
        Ok(Signature { params, results: results.len() })
    }

    /// The function, of the component itself or of an interface that it exports:
    /// `namespace:package/interface#function`.
    fn find(&self, component: &Component) -> Result<(ComponentItem, ComponentExportIndex), String> {
        let (interface, name) = match self.function.rsplit_once('#') {
            Some((interface, name)) => (Some(interface), name),
            None => (None, &*self.function),
        };
        let within = match interface {
            None => None,
            Some(interface) => Some(
                component
                    .get_export_index(None, interface)
                    .ok_or_else(|| format!("the component has no interface `{}`", clip(interface, 100)))?,
            ),
        };
        component.get_export(within.as_ref(), name).ok_or_else(|| {
            let ty = component.component_type();
            let names: Vec<String> =
                ty.exports(component.engine()).map(|(name, _)| format!("`{}`", clip(name, 60))).collect();
            format!("the component has no function `{}`; it has {}", clip(name, 60), names.join(", "))
        })
    }

    fn why(&self, e: &wasmtime::Error) -> String {
        match e.downcast_ref::<Trap>() {
            Some(Trap::OutOfFuel) => format!("it used its fuel of {}", self.fuel),
            Some(Trap::Interrupt) => GIVEN_UP.into(),
            _ => {
                let text = format!("{e:#}");
                if text.contains("memory") && text.contains("grow") || text.contains("memory minimum size") {
                    return format!("it requested more memory than its {} MiB", self.memory >> 20);
                }
                format!("it was ended: {}", clip(&text, 300))
            }
        }
    }
}

/// Parameters of a function of a component, and the number of its results.
struct Signature {
    params: Vec<(String, WasmType)>,
    results: usize,
}

/// Returns the type of a function's result on success; `None` if it returns nothing.
fn value_of(ty: &WasmType) -> Option<WasmType> {
    match ty {
        WasmType::Result(result) => result.ok(),
        other => Some(other.clone()),
    }
}

/// Checks that values of a declared type and of a component's type convert to each other. Reports only
/// definite differences.
fn fits(declared: &Type, wasm: &WasmType, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err("is nested too deeply".into());
    }
    let is = |ok: bool, what: &str| if ok { Ok(()) } else { Err(format!("is {what}")) };
    let declared = match declared {
        Type::Refined(base) => &base.0,
        other => other,
    };
    if matches!(declared, Type::Dyn) {
        return Ok(());
    }
    match wasm {
        WasmType::Bool => is(matches!(declared, Type::Bool), "a truth value"),
        WasmType::S8
        | WasmType::U8
        | WasmType::S16
        | WasmType::U16
        | WasmType::S32
        | WasmType::U32
        | WasmType::S64
        | WasmType::U64
        | WasmType::Float32
        | WasmType::Float64 => is(matches!(declared, Type::Num), "a number"),
        WasmType::Char | WasmType::String => is(matches!(declared, Type::Str | Type::Enum(_)), "text"),
        WasmType::List(list) => match declared {
            Type::List(item) => {
                fits(item, &list.ty(), depth + 1).map_err(|why| format!("has items of which one {why}"))
            }
            _ => Err("is a list".into()),
        },
        WasmType::Option(inner) => match declared {
            Type::Option(item) => fits(item, &inner.ty(), depth + 1),
            Type::Null => Ok(()),
            other => fits(other, &inner.ty(), depth + 1),
        },
        WasmType::Record(record) => match declared {
            Type::Record(fields) => {
                for field in record.fields() {
                    match fields.iter().find(|(n, _)| same_name(n, field.name)) {
                        Some((_, ty)) => fits(ty, &field.ty, depth + 1)
                            .map_err(|why| format!("has a field `{}` that {why}", field.name))?,
                        None => return Err(format!("has the field `{}`", field.name)),
                    }
                }
                Ok(())
            }
            _ => Err("is a record".into()),
        },
        WasmType::Tuple(tuple) => match declared {
            Type::Pair(parts) if tuple.types().len() == 2 => [&parts.0, &parts.1]
                .into_iter()
                .zip(tuple.types())
                .try_for_each(|(d, t)| fits(d, &t, depth + 1)),
            _ => Err(format!("is a tuple of {}", tuple.types().len())),
        },
        WasmType::Enum(names) => match declared {
            Type::Str => Ok(()),
            Type::Enum(e) => {
                let missing = e.variants.iter().find(|v| !names.names().any(|n| same_name(v, n)));
                missing.map_or(Ok(()), |v| Err(format!("does not know `{v}`")))
            }
            _ => Err("is one of some names".into()),
        },
        WasmType::Variant(_) => is(matches!(declared, Type::Variant(_)), "a variant"),
        WasmType::Flags(_) => is(matches!(declared, Type::List(_)), "a set of names"),
        _ => Err("is of a kind that no data has".into()),
    }
}

/// A component writes words with dashes between them, which names here do not have.
fn same_name(here: &str, there: &str) -> bool {
    here == there || here.replace('_', "-") == there
}

fn to_wasm(data: &Data, ty: &WasmType, depth: usize) -> Result<Val, String> {
    if depth > MAX_DEPTH {
        return Err("it is nested too deeply".into());
    }
    fn whole<T: std::str::FromStr>(n: &Num) -> Result<T, String> {
        n.to_string().parse().map_err(|_| format!("{n} does not fit its type"))
    }
    let number = || match data {
        Data::Num(n) => Ok(n),
        other => Err(format!("it is {}, not a number", other.kind())),
    };
    let text = || data.as_str().ok_or_else(|| format!("it is {}, not text", data.kind()));
    Ok(match ty {
        WasmType::Bool => match data {
            Data::Bool(b) => Val::Bool(*b),
            other => return Err(format!("it is {}, not a truth value", other.kind())),
        },
        WasmType::S8 => Val::S8(whole(number()?)?),
        WasmType::U8 => Val::U8(whole(number()?)?),
        WasmType::S16 => Val::S16(whole(number()?)?),
        WasmType::U16 => Val::U16(whole(number()?)?),
        WasmType::S32 => Val::S32(whole(number()?)?),
        WasmType::U32 => Val::U32(whole(number()?)?),
        WasmType::S64 => Val::S64(whole(number()?)?),
        WasmType::U64 => Val::U64(whole(number()?)?),
        #[allow(clippy::cast_possible_truncation)] // It is the nearest, as for every number of this type.
        WasmType::Float32 => Val::Float32(number()?.to_f64() as f32),
        WasmType::Float64 => Val::Float64(number()?.to_f64()),
        WasmType::Char => {
            let text = text()?;
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => Val::Char(c),
                _ => return Err("it is not one character".into()),
            }
        }
        WasmType::String => Val::String(text()?.into()),
        WasmType::List(list) => match data {
            Data::List(items) => {
                let ty = list.ty();
                Val::List(items.iter().map(|i| to_wasm(i, &ty, depth + 1)).collect::<Result<_, _>>()?)
            }
            other => return Err(format!("it is {}, not a list", other.kind())),
        },
        WasmType::Option(inner) => match data {
            Data::Null => Val::Option(None),
            other => Val::Option(Some(Box::new(to_wasm(other, &inner.ty(), depth + 1)?))),
        },
        WasmType::Record(record) => {
            let Data::Record(fields) = data else {
                return Err(format!("it is {}, not a record", data.kind()));
            };
            let fields = record.fields().map(|f| {
                let given = fields.iter().find(|(n, _)| same_name(n, f.name)).map_or(&Data::Null, |(_, d)| d);
                let value = to_wasm(given, &f.ty, depth + 1).map_err(|why| format!("`{}`: {why}", f.name))?;
                Ok((f.name.to_string(), value))
            });
            Val::Record(fields.collect::<Result<_, String>>()?)
        }
        WasmType::Tuple(tuple) => {
            let parts: Vec<&Data> = match data {
                Data::Pair(p) => vec![&p.0, &p.1],
                Data::List(items) => items.iter().collect(),
                other => return Err(format!("it is {}, not a tuple", other.kind())),
            };
            if parts.len() != tuple.types().len() {
                return Err(format!("it has {} parts, not {}", parts.len(), tuple.types().len()));
            }
            let parts = parts.into_iter().zip(tuple.types()).map(|(d, t)| to_wasm(d, &t, depth + 1));
            Val::Tuple(parts.collect::<Result<_, _>>()?)
        }
        WasmType::Enum(names) => {
            let text = text()?;
            match names.names().find(|n| same_name(text, n)) {
                Some(name) => Val::Enum(name.to_string()),
                None => return Err(format!("`{}` is not one of its names", clip(text, 60))),
            }
        }
        WasmType::Variant(variant) => {
            let (name, payload) = match data {
                Data::Tag(name, payload) => (&**name, &**payload),
                Data::Str(name) => (&**name, &Data::Null),
                other => return Err(format!("it is {}, not a variant", other.kind())),
            };
            let mut cases = variant.cases();
            let Some(case) = cases.find(|c| same_name(name, c.name)) else {
                return Err(format!("`{}` is not one of its cases", clip(name, 60)));
            };
            let payload = match case.ty {
                None => None,
                Some(ty) => Some(Box::new(to_wasm(payload, &ty, depth + 1)?)),
            };
            Val::Variant(case.name.to_string(), payload)
        }
        WasmType::Flags(_) => match data {
            Data::List(items) => {
                let names = items.iter().map(|i| i.as_str().map(|n| n.replace('_', "-")));
                Val::Flags(names.collect::<Option<_>>().ok_or("it is not a list of names")?)
            }
            other => return Err(format!("it is {}, not a list of names", other.kind())),
        },
        _ => return Err("its type is one that no data has".into()),
    })
}

/// Converts the result of a component. `left` is the number of bytes that the result may still have.
fn from_wasm(value: Val, left: &mut usize, depth: usize) -> Result<Data, String> {
    let size = match &value {
        Val::String(text) => text.len() + 8,
        _ => 8,
    };
    *left = left.checked_sub(size).ok_or("its result is too large")?;
    if depth > MAX_DEPTH {
        return Err("its result is nested too deeply".into());
    }
    let number = |text: String| {
        text.parse::<Num>()
            .map(Data::Num)
            .map_err(|_| format!("its result is {text}, which is not a number of the type"))
    };
    Ok(match value {
        Val::Bool(b) => Data::Bool(b),
        Val::S8(n) => number(n.to_string())?,
        Val::U8(n) => number(n.to_string())?,
        Val::S16(n) => number(n.to_string())?,
        Val::U16(n) => number(n.to_string())?,
        Val::S32(n) => number(n.to_string())?,
        Val::U32(n) => number(n.to_string())?,
        Val::S64(n) => number(n.to_string())?,
        Val::U64(n) => number(n.to_string())?,
        Val::Float32(n) => number(n.to_string())?,
        Val::Float64(n) => number(n.to_string())?,
        Val::Char(c) => Data::str(c.to_string()),
        Val::String(text) => Data::str(text),
        Val::List(items) | Val::FixedLengthList(items) => Data::list(
            items.into_iter().map(|i| from_wasm(i, left, depth + 1)).collect::<Result<Vec<_>, _>>()?,
        ),
        Val::Option(None) => Data::Null,
        Val::Option(Some(inner)) => from_wasm(*inner, left, depth + 1)?,
        Val::Record(fields) => {
            let field = |(name, value): (String, Val)| {
                Ok((Name::from(&*name.replace('-', "_")), from_wasm(value, left, depth + 1)?))
            };
            Data::record(fields.into_iter().map(field).collect::<Result<Vec<_>, String>>()?)
        }
        Val::Tuple(parts) => {
            let mut parts =
                parts.into_iter().map(|p| from_wasm(p, left, depth + 1)).collect::<Result<Vec<_>, _>>()?;
            match (parts.pop(), parts.pop(), parts.is_empty()) {
                (Some(b), Some(a), true) => Data::Pair(Arc::new((a, b))),
                (b, a, _) => Data::list(parts.into_iter().chain(a).chain(b)),
            }
        }
        Val::Enum(name) => Data::str(name.replace('-', "_")),
        Val::Variant(name, payload) => {
            let payload = payload.map_or(Ok(Data::Null), |p| from_wasm(*p, left, depth + 1))?;
            Data::Tag(Name::from(&*name.replace('-', "_")), Arc::new(payload))
        }
        Val::Result(Ok(inner)) => Data::Tag(
            "ok".into(),
            Arc::new(inner.map_or(Ok(Data::Null), |v| from_wasm(*v, left, depth + 1))?),
        ),
        Val::Result(Err(inner)) => Data::Tag(
            "error".into(),
            Arc::new(inner.map_or(Ok(Data::Null), |v| from_wasm(*v, left, depth + 1))?),
        ),
        Val::Flags(names) => Data::list(names.into_iter().map(|n| Data::str(n.replace('-', "_")))),
        _ => return Err("its result is of a kind that no data has".into()),
    })
}
