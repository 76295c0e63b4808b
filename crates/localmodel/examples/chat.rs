//! A conversation with a local model: `cargo run -p localmodel --example chat -- "question"`.
//!
//! Options: `--model FILE`, `--schema FILE` (a JSON Schema for the reply),
//! `--system TEXT`, `--max-tokens N`, `--threads N`; `--pull` fetches the
//! default model first. Without a question it reads one per line from standard
//! input and keeps the conversation.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use localmodel::{LocalModel, Message, Options, Progress, Request, store::Store};
use std::error::Error;
use std::io::{BufRead, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (mut file, mut options) = (None, Options::default());
    let mut request = Request::new(Vec::new());
    let mut question = None;
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("`{arg}` needs a value"));
        match arg.as_str() {
            "--model" => file = Some(PathBuf::from(value()?)),
            "--schema" => {
                let text = std::fs::read_to_string(value()?)?;
                request.schema = Some(serde_json::from_str(&text)?);
            }
            "--pull" => {
                let path = Store::from_env()?.pull(&mut |progress| {
                    let percent = 100 * progress.done / progress.total.max(1);
                    eprint!("\r{:?}: {percent} % ", progress.stage);
                    ControlFlow::Continue(())
                })?;
                eprintln!("\n{}", path.display());
            }
            "--system" => request.messages.push(Message::system(value()?)),
            "--max-tokens" => request.max_tokens = value()?.parse()?,
            "--threads" => options.threads = Some(value()?.parse()?),
            _ => question = Some(arg),
        }
    }
    let file = match file {
        Some(file) => file,
        None => Store::from_env()?.default_model()?,
    };
    let start = Instant::now();
    let mut model = LocalModel::load_with(&file, &options)?;
    eprintln!("loaded in {:.2} s", start.elapsed().as_secs_f64());
    match question {
        Some(question) => answer(&mut model, &mut request, question),
        None => std::io::stdin().lock().lines().try_for_each(|line| answer(&mut model, &mut request, line?)),
    }
}

fn answer(model: &mut LocalModel, request: &mut Request, question: String) -> Result<(), Box<dyn Error>> {
    request.messages.push(Message::user(question));
    let start = Instant::now();
    let mut read = None;
    let reply = model.generate(request, &mut |progress| {
        if let Progress::Text { piece, .. } = progress {
            read.get_or_insert_with(|| start.elapsed());
            print!("{piece}");
            // A closed pipe is no reason to keep computing.
            if std::io::stdout().flush().is_err() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    let read = read.unwrap_or_default().as_secs_f64();
    let rest = start.elapsed().as_secs_f64() - read;
    println!();
    eprintln!(
        "{} tokens of prompt ({} remembered) and the first of the reply in {read:.2} s, \
         {} tokens of reply in {rest:.2} s: {:.1} per second, {:?}",
        reply.input_tokens,
        reply.cached_tokens,
        reply.output_tokens,
        (reply.output_tokens.max(1) - 1) as f64 / rest.max(1e-9),
        reply.finish,
    );
    request.messages.push(Message::assistant(reply.text));
    Ok(())
}
