//! The native half of the Python package: what the crate `entail` does, with JSON texts in and out. The other
//! half, which people see, is in `python/package`.
//!
//! Invariant: nothing here knows asyncio. A function of Python that takes its time is called with an
//! [`Answer`], which it gives whenever it likes, and gives back how it is canceled.
//! Invariant: the interpreter is let go of while programs are read, checked and run.

mod guard;

use entail::{
    Approver, BoxFuture, CancellationToken, Data, Edit, Error, Limits, ModelCall, ModelError, Models, Name,
    Partials, PlanStep, Price, Progress, Provider, Reply, Schema, Settings, Tokens, Work,
};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

pyo3::create_exception!(_entail, Failure, PyException, "What went wrong, as a JSON text.");

fn failure(error: &Error) -> PyErr {
    Failure::new_err(error.to_json().to_string())
}

fn wrong(why: impl Into<String>) -> PyErr {
    Failure::new_err(json!({"code": "usage", "message": why.into()}).to_string())
}

fn parsed(text: &str) -> PyResult<Value> {
    serde_json::from_str(text).map_err(|e| wrong(format!("this is no JSON: {e}")))
}

/// Of this file, or else of the nearest `entail.toml`.
fn settings(config: Option<&str>) -> Result<Settings, Error> {
    Ok(match config {
        Some(path) => Settings::load(path)?,
        None => Settings::nearest()?,
    })
}

/// The runtime of this process. One that was forked gets its own: threads do not follow.
fn runtime() -> PyResult<&'static Runtime> {
    static RUNTIME: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);
    let own = std::process::id();
    let mut kept = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((process, runtime)) = *kept
        && process == own
    {
        return Ok(runtime);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("entail").build();
    let runtime = runtime.map_err(|e| wrong(format!("cannot start the runtime: {e}")))?;
    // It lives as long as the process.
    let runtime: &'static Runtime = Box::leak(Box::new(runtime));
    *kept = Some((own, runtime));
    Ok(runtime)
}

/// Number of our threads in Python, and true if no more may enter.
static INSIDE: Mutex<(usize, bool)> = Mutex::new((0, false));
static LEFT: Condvar = Condvar::new();

/// Does something in Python; `None` once that is about to end. A thread that is in Python when the
/// interpreter is taken down crashes the process, and `try_attach` can't know what is about to happen.
fn in_python<R>(act: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    struct Inside;
    impl Drop for Inside {
        fn drop(&mut self) {
            INSIDE.lock().unwrap_or_else(PoisonError::into_inner).0 -= 1;
            LEFT.notify_all();
        }
    }
    {
        let mut inside = INSIDE.lock().unwrap_or_else(PoisonError::into_inner);
        if inside.1 {
            return None;
        }
        inside.0 += 1;
    }
    let _inside = Inside;
    Python::try_attach(act)
}

/// For the end of the interpreter: lets no thread of ours in any more, and waits until those that are there
/// have left.
#[pyfunction]
fn shut_down(py: Python<'_>) {
    py.detach(|| {
        let mut inside = INSIDE.lock().unwrap_or_else(PoisonError::into_inner);
        inside.1 = true;
        while inside.0 > 0 {
            inside = LEFT.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
    });
}

/// Slot for the answer of a Python function, filled once.
#[pyclass(frozen)]
struct Answer(Mutex<Option<oneshot::Sender<Result<String, String>>>>);

impl Answer {
    fn send(&self, answer: Result<String, String>) {
        if let Some(send) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Nobody waits any more: fine.
            let _ = send.send(answer);
        }
    }
}

#[pymethods]
impl Answer {
    /// Hands in the function's result as JSON text.
    fn give(&self, json: String) {
        self.send(Ok(json));
    }

    /// Hands in the failure of the function.
    fn fail(&self, why: String) {
        self.send(Err(why));
    }
}

/// Cancels a function of Python whose answer nobody waits for any more.
struct Cancel(Option<Py<PyAny>>);

impl Drop for Cancel {
    fn drop(&mut self) {
        let Some(cancel) = self.0.take() else { return };
        // Without an interpreter there is nothing to cancel, and what it says is nobody's concern.
        in_python(|py| {
            let _ = cancel.call0(py);
            drop(cancel);
        });
    }
}

/// Calls a function of Python with a JSON text, and waits for what it gives.
fn ask(function: Arc<Py<PyAny>>, argument: String) -> BoxFuture<Result<String, String>> {
    Box::pin(async move {
        let (send, receive) = oneshot::channel();
        let begun = in_python(|py| {
            let answer = Py::new(py, Answer(Mutex::new(Some(send))))?;
            function.call1(py, (argument, answer))
        });
        let mut cancel = match begun {
            None => return Err("Python is shutting down".into()),
            Some(Err(e)) => return Err(e.to_string()),
            Some(Ok(cancel)) => Cancel(Some(cancel)),
        };
        let answer = receive.await.unwrap_or_else(|_| Err("the function was given up".into()));
        cancel.0 = None;
        answer
    })
}

/// A model that is a function of Python.
struct Function {
    name: String,
    price: Option<Price>,
    ask: Arc<Py<PyAny>>,
}

impl Provider for Function {
    fn name(&self) -> &str {
        &self.name
    }

    fn price(&self) -> Option<Price> {
        self.price.clone()
    }

    fn ask(self: Arc<Self>, call: ModelCall, _: Progress) -> Work<entail::Answer> {
        let answer = ask(self.ask.clone(), call_json(&call).to_string());
        Work::Later(Box::pin(async move {
            let read = answer.await.and_then(|text| reply_of(&text));
            match read {
                Ok((reply, tokens)) => entail::Answer::new(Ok(reply), tokens),
                Err(why) => entail::Answer::failed(ModelError::new(why)),
            }
        }))
    }
}

/// A question to a model as JSON.
fn call_json(call: &ModelCall) -> Value {
    let message = |m: &entail::Message| {
        let mut json = json!({"role": m.role.as_str(), "content": &*m.content});
        if let Some(call) = &m.call {
            json["call"] = json!({"tool": &*call.0, "args": call.1.to_json()});
        }
        json
    };
    let tools = call.tools.iter().map(|t| {
        let schema = Schema::of_params(t.params.iter().map(|p| (&p.name, &p.ty)));
        json!({
            "name": &*t.name, "description": t.description.as_deref().unwrap_or(""),
            "parameters": schema.map_or(Value::Null, |s| s.json),
        })
    });
    json!({
        "messages": call.messages.iter().map(message).collect::<Vec<_>>(),
        "tools": tools.collect::<Vec<_>>(),
        "schema": call.result().and_then(Schema::of).map(|s| s.json),
        "purpose": call.purpose(),
        "model": call.params.as_ref().and_then(|p| p.model.as_deref()),
        "max_output": call.output_limit(),
        "attempt": call.attempt,
    })
}

/// A model's reply: a text, `{"tool", "args"}`, a list of these, or
/// `{"reply": one of these, "tokens": {"input", "output"}}`.
fn reply_of(text: &str) -> Result<(Reply, Tokens), String> {
    let json: Value = serde_json::from_str(text).map_err(|e| format!("the reply is no JSON: {e}"))?;
    let count = |name: &str| json.pointer(&format!("/tokens/{name}")).and_then(Value::as_u64).unwrap_or(0);
    let tokens = Tokens::new(count("input"), count("output"));
    let said = json.get("reply").unwrap_or(&json);
    let call = |json: &Value| -> Result<(Name, Data), String> {
        let tool = json.get("tool").and_then(Value::as_str);
        let tool =
            tool.ok_or_else(|| "a model's reply is a text, or a call with `tool` and `args`".to_string())?;
        let none = Value::Object(Map::new());
        let args = Data::from_json(json.get("args").unwrap_or(&none)).map_err(|e| e.to_string())?;
        Ok((tool.into(), args))
    };
    let reply = match said {
        Value::String(text) => Reply::Text(text.clone()),
        Value::Array(calls) if !calls.is_empty() => {
            Reply::ToolCalls(calls.iter().map(call).collect::<Result<_, _>>()?)
        }
        other => {
            let (name, args) = call(other)?;
            Reply::ToolCall { name, args }
        }
    };
    Ok((reply, tokens))
}

/// A program that was read and found right.
#[pyclass(frozen)]
struct Program(Arc<entail::Program>);

#[pymethods]
impl Program {
    /// Reads a file, or a project, with the policy that the settings name.
    #[staticmethod]
    fn load(py: Python<'_>, path: String, config: Option<String>) -> PyResult<Program> {
        let program = py.detach(|| entail::Program::load_with(&path, &settings(config.as_deref())?));
        Ok(Program(Arc::new(program.map_err(|e| failure(&e))?)))
    }

    /// Reads a text in the language `.agent`.
    #[staticmethod]
    fn from_source(py: Python<'_>, text: String) -> PyResult<Program> {
        let program = py.detach(|| entail::Program::from_source(&text));
        Ok(Program(Arc::new(program.map_err(|e| failure(&e))?)))
    }

    /// The pipelines, as a JSON text.
    fn pipelines(&self, py: Python<'_>) -> String {
        py.detach(|| {
            let pipelines = self.0.pipelines().iter().map(|p| {
                json!({
                    "name": p.name(), "default": p.is_default(), "input": p.input().map(ToString::to_string),
                    "output": p.output().to_string(), "input_schema": p.input_schema(),
                })
            });
            Value::Array(pipelines.collect()).to_string()
        })
    }

    /// All that is to be said about it, as a JSON text.
    fn check(&self, py: Python<'_>) -> String {
        py.detach(|| Value::Array(self.0.check().iter().map(|f| f.to_json().clone()).collect()).to_string())
    }

    /// Returns the bound of a pipeline's run as JSON text.
    fn bound(&self, py: Python<'_>, pipeline: Option<String>) -> PyResult<String> {
        let bound = py.detach(|| Ok(self.pipeline(pipeline.as_deref())?.bound_json().to_string()));
        bound.map_err(|e| failure(&e))
    }

    /// Checks that a world can handle every request of a pipeline.
    fn check_world(&self, pipeline: Option<String>, world: &World) -> PyResult<()> {
        self.pipeline(pipeline.as_deref()).and_then(|p| p.check_world(&world.0)).map_err(|e| failure(&e))
    }

    /// Begins a run. `told` is called with a JSON text for each event, if it is there, and `ended` with one
    /// at the end; both from other threads. With an exchange it is a run of its last plan. The outcome has
    /// the prompt for another one, if there may be one (`next`), and the events if nobody was told of them.
    fn start(
        &self,
        pipeline: Option<String>,
        input: String,
        world: &World,
        told: Option<Py<PyAny>>,
        ended: Py<PyAny>,
        planning: Option<Py<Planning>>,
    ) -> PyResult<Run> {
        // Mistakes are said at once, where that is possible.
        let name = self.pipeline(pipeline.as_deref()).map_err(|e| failure(&e))?.name().to_string();
        let input = parsed(&input)?;
        let program = self.0.clone();
        let planning = planning.map(|planning| planning.get().0.clone());
        let world = match &planning {
            Some(planning) => exchange_of(planning).world(&world.0),
            None => world.0.clone(),
        };
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let run = async move {
            let pipeline = program.pipeline(&name)?;
            let mut events = Vec::new();
            let mut partials = Partials::default();
            let mut tell = |event: entail::Event| {
                if told.is_none() && planning.is_none() {
                    return;
                }
                let partial = partials.json(&event);
                for json in entail::event_json(&event, true).into_iter().chain(partial) {
                    match &told {
                        // What a listener says is not part of the run.
                        Some(told) => drop(in_python(|py| drop(told.call1(py, (json.to_string(),))))),
                        None => events.push(json),
                    }
                }
            };
            let report = pipeline.report(&input, &world, &stop, &mut tell).await?;
            if !pipeline.is_plan() {
                let error = pipeline.error_of(&report).map(|e| e.to_json());
                return Ok::<_, Error>(json!({"report": pipeline.report_json(&report), "error": error}));
            }
            let next = planning.and_then(|planning| exchange_of(&planning).after(&report));
            // The answer of a plan is bounded by `[output]`.
            Ok(match pipeline.shown(&report) {
                Some(shown) => {
                    let error = pipeline.error_of(&shown).map(|e| e.to_json());
                    let report = pipeline.report_json(&shown);
                    json!({"report": report, "error": error, "next": next, "events": events})
                }
                None => {
                    let report = entail::withheld(&report.run);
                    json!({"error": report["error"], "report": report, "next": next, "events": events})
                }
            })
        };
        let run = runtime()?.spawn(run);
        runtime()?.spawn(async move {
            let outcome = match run.await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(error)) => json!({"error": error.to_json()}),
                Err(e) => {
                    let message = format!("internal error: {e}; please report this program");
                    json!({"error": {"code": "internal", "message": message}})
                }
            };
            in_python(|py| drop(ended.call1(py, (outcome.to_string(),))));
        });
        Ok(Run(cancel))
    }
}

impl Program {
    fn pipeline(&self, name: Option<&str>) -> Result<&entail::Pipeline, Error> {
        match name {
            Some(name) => self.0.pipeline(name),
            None => self.0.main(),
        }
    }
}

/// An exchange with a planner.
#[pyclass(frozen)]
struct Planning(Arc<Mutex<entail::Planning>>);

#[pymethods]
impl Planning {
    /// Begins an exchange, with the settings of the file that `config` names, or else the nearest. `setup` is
    /// a JSON text: `request`, `tools` (`name`, `description`, `takes`, `gives`), `sources`, `unpinned`,
    /// `policy`, `policy_text`, `max_rounds`, `replan`, `replan_errors`, `run_refused`, `python_tools`.
    #[new]
    fn new(py: Python<'_>, config: Option<String>, setup: String) -> PyResult<Planning> {
        let setup = parsed(&setup)?;
        let made = py.detach(|| {
            let settings = settings(config.as_deref()).map_err(|e| failure(&e))?;
            let made = runtime()?.block_on(entail::Planning::new(&settings, setup_of(&setup)));
            made.map_err(|e| failure(&e))
        });
        Ok(Planning(Arc::new(Mutex::new(made?))))
    }

    /// An exchange that goes on from here, for a run of its own.
    fn again(&self, py: Python<'_>) -> Planning {
        py.detach(|| Planning(Arc::new(Mutex::new(self.exchange().again()))))
    }

    /// Errors of runs that the planner was told, and the usage of all runs, as a JSON text; an empty object
    /// if it was told nothing.
    fn told(&self, py: Python<'_>) -> String {
        py.detach(|| {
            let mut told = json!({});
            self.exchange().add_told(&mut told);
            told.to_string()
        })
    }

    /// The prompt for the first plan.
    fn prompt(&self, py: Python<'_>) -> String {
        py.detach(|| self.exchange().prompt())
    }

    /// Takes what a planner replied: gives the next prompt with the mistakes, or the plan, as a JSON text,
    /// and with the latter the program.
    fn reply(&self, py: Python<'_>, reply: String) -> (String, Option<Program>) {
        py.detach(|| match self.exchange().reply(&reply) {
            PlanStep::Again { prompt, findings } => {
                (json!({"prompt": prompt, "findings": findings}).to_string(), None)
            }
            PlanStep::Done(plan) => described(*plan),
        })
    }

    /// Checks a plan that is there already.
    fn plan(&self, py: Python<'_>, text: String) -> (String, Option<Program>) {
        py.detach(|| described(self.exchange().plan(&text)))
    }

    /// The program that asks a model for a plan.
    #[staticmethod]
    fn question(py: Python<'_>, config: Option<String>, prompt: String) -> PyResult<Program> {
        let program = py.detach(|| Ok(entail::Planning::question(&settings(config.as_deref())?, &prompt)));
        Ok(Program(Arc::new(program.map_err(|e: Error| failure(&e))?)))
    }
}

impl Planning {
    fn exchange(&self) -> MutexGuard<'_, entail::Planning> {
        exchange_of(&self.0)
    }
}

fn exchange_of(planning: &Mutex<entail::Planning>) -> MutexGuard<'_, entail::Planning> {
    planning.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A plan as a JSON text, and as a program if it compiles.
fn described(plan: entail::Plan) -> (String, Option<Program>) {
    let json = json!({
        "plan": plan.text(),
        "errors": plan.errors().iter().map(|f| f.to_json().clone()).collect::<Vec<_>>(),
        "flow": plan.calls(),
        "problem": plan.problem().map(Error::to_json),
    });
    (json.to_string(), plan.into_program().map(|p| Program(Arc::new(p))))
}

fn setup_of(json: &Value) -> entail::PlanSetup {
    let text = |json: &Value, name: &str| json.get(name).and_then(Value::as_str).map(String::from);
    let list = |name: &str| json.get(name).and_then(Value::as_array).into_iter().flatten();
    let number = |name: &str| json[name].as_u64().map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let tool = |json: &Value| entail::PlanTool {
        name: text(json, "name").unwrap_or_default(),
        description: text(json, "description"),
        takes: json["takes"].clone(),
        gives: json.get("gives").filter(|g| !g.is_null()).cloned(),
    };
    entail::PlanSetup {
        request: text(json, "request").unwrap_or_default(),
        tools: list("tools").map(tool).collect(),
        sources: list("sources").filter_map(|f| f.as_str().map(String::from)).collect(),
        unpinned: json["unpinned"] == true,
        policy: text(json, "policy").map(Into::into),
        policy_text: text(json, "policy_text"),
        max_rounds: json["max_rounds"].as_u64(),
        replan: number("replan"),
        replan_errors: number("replan_errors"),
        run_refused: json["run_refused"] == true,
        python_tools: json["python_tools"] == true,
    }
}

/// A run that has begun.
#[pyclass(frozen)]
struct Run(CancellationToken);

#[pymethods]
impl Run {
    /// Ends it.
    fn cancel(&self) {
        self.0.cancel();
    }
}

/// A tool that is a function: its name, the JSON Schemas of its arguments and its result, the function.
type Tool = (String, Option<String>, Option<String>, Py<PyAny>);

/// Handlers of the requests of programs.
#[pyclass(frozen)]
struct World(entail::World);

#[pymethods]
impl World {
    /// Of the settings (`config` names the file, without one it is the nearest), with what else is given in
    /// their place. `options` is a JSON text: `model`, `script`, `seed`, `fuel`, and the limits.
    #[new]
    fn new(
        py: Python<'_>,
        config: Option<String>,
        options: String,
        model: Option<(String, Py<PyAny>)>,
        tools: Vec<Tool>,
        approver: Option<Py<PyAny>>,
    ) -> PyResult<World> {
        let options = parsed(&options)?;
        let made = py.detach(|| World::make(config.as_deref(), &options, model));
        let mut world = made.map_err(|e| failure(&e))?;
        for (name, takes, gives, function) in tools {
            let schema = |text: Option<String>| text.map(|t| parsed(&t)).transpose();
            let function = Arc::new(function);
            let act: entail::CustomTool = Arc::new(move |args: Vec<(Name, Data)>| {
                let args = Value::Object(args.iter().map(|(n, d)| (n.to_string(), d.to_json())).collect());
                let answer = ask(function.clone(), args.to_string());
                Box::pin(async move {
                    let json: Value = serde_json::from_str(&answer.await?)
                        .map_err(|e| format!("the result is not data: {e}"))?;
                    Data::from_json(&json).map_err(|e| e.to_string())
                })
            });
            world = world.tool_of_schemas(&name, schema(takes)?.as_ref(), schema(gives)?.as_ref(), act);
        }
        if let Some(approver) = approver {
            let approver = Arc::new(approver);
            world = world.approver(Approver::editing(move |call| {
                let args: Map<String, Value> =
                    call.args.iter().map(|a| (a.name.to_string(), a.value.to_json())).collect();
                let labels: Map<String, Value> =
                    call.args.iter().map(|a| (a.name.to_string(), a.label.to_json())).collect();
                let reasons = call.args.iter().map(|a| (a.name.to_string(), json!(a.reasons())));
                let why: Map<String, Value> = reasons.filter(|(_, r)| *r != json!([])).collect();
                let decided = call.is_decided;
                let asked =
                    json!({"tool": &*call.tool, "args": args, "labels": labels, "why": why, "decided": decided});
                let answer = ask(approver.clone(), asked.to_string());
                Box::pin(async move {
                    let answer = answer.await?;
                    match serde_json::from_str(&answer) {
                        Ok(Value::Bool(true)) => Ok(None),
                        Ok(Value::Bool(false)) => Err("it was refused".into()),
                        Ok(Value::String(why)) => Err(why),
                        Ok(Value::Object(edit)) => {
                            let arg = |(name, json): (String, Value)| {
                                let data = Data::from_json(&json).map_err(|e| format!("`{name}`: {e}"))?;
                                Ok::<_, String>((Name::from(name), data))
                            };
                            edit.into_iter().map(arg).collect::<Result<_, _>>().map(|args| Some(Edit::trusted(args)))
                        }
                        _ => Err(answer),
                    }
                })
            }));
        }
        Ok(World(world))
    }
}

impl World {
    fn make(
        config: Option<&str>,
        options: &Value,
        model: Option<(String, Py<PyAny>)>,
    ) -> Result<entail::World, Error> {
        let settings = settings(config)?;
        let mut world = if let Some((name, function)) = model {
            let price = if options["free"] == true { Some(Price::FREE) } else { None };
            let provider = Function { name, price, ask: Arc::new(function) };
            entail::World::of_settings(&settings, Models::only(Arc::new(provider)))?
        } else if let Some(script) = options.get("script") {
            let provider = entail::scripted(&script.to_string())?;
            entail::World::of_settings(&settings, Models::only(provider))?
        } else {
            entail::World::with_settings(&settings, options["model"].as_str())?
        };
        let count = |name: &str| options.get(name).and_then(Value::as_u64);
        let limits = &mut world.limits;
        let Limits { max_model_calls, max_tool_calls, max_tokens, .. } = limits.clone();
        limits.max_model_calls = count("max_calls").or(max_model_calls);
        limits.max_tool_calls = count("max_tool_calls").or(max_tool_calls);
        limits.max_tokens = count("max_tokens").or(max_tokens);
        if let Some(usd) = options.get("max_usd") {
            let text = usd.as_str().map_or_else(|| usd.to_string(), String::from);
            limits.max_usd = Some(entail::money(&text)?);
        }
        if let Some(seconds) = options.get("timeout") {
            let time = seconds.as_f64().and_then(|s| Duration::try_from_secs_f64(s).ok());
            let time = time.filter(|t| *t > Duration::ZERO);
            limits.timeout =
                Some(time.ok_or_else(|| Error::usage("`timeout` is no positive number of seconds"))?);
        }
        if options["stream"] == true {
            world = world.streaming();
        }
        if options["python_tools"] == true {
            world.handlers.tools = world.handlers.tools.allowing_python();
        }
        world.handlers.seed = count("seed").unwrap_or(0);
        world.fuel = count("fuel");
        Ok(world)
    }
}

/// The command line. `program` is how Python starts it, `args` begin with its name. Gives the exit status.
#[pyfunction]
fn command_line(py: Python<'_>, program: Vec<OsString>, args: Vec<OsString>) -> u8 {
    py.detach(|| entail::command_line_of(program, args))
}

/// Says which file this module is.
#[pyfunction]
fn carried_by(file: std::path::PathBuf) {
    entail::carried_by(file);
}

/// A command that only looks: its exit status and its results, as a JSON text.
#[pyfunction]
fn command(py: Python<'_>, args: Vec<String>) -> (u8, String) {
    py.detach(|| {
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let (status, lines) = entail::command(&words);
        (status, Value::Array(lines).to_string())
    })
}

#[pymodule]
mod _entail {
    #[pymodule_export]
    use super::{
        Answer, Failure, Planning, Program, Run, World, carried_by, command, command_line, shut_down,
    };

    #[pymodule_export]
    use super::guard::{GuardCall, PySession};

    #[pymodule_export]
    const SHIM: &str = entail::PYTHON_SHIM;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
