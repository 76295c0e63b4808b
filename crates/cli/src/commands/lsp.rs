//! `entail lsp`: the language server on standard input and output.

use crate::ui::{Exit, Ui};
use std::io::{BufReader, BufWriter};

/// Runs the command. As the protocol wants it, the exit status is 0 if the client has said `shutdown`.
pub fn lsp(ui: &Ui) -> Exit {
    let (mut input, mut output) = (BufReader::new(std::io::stdin()), BufWriter::new(std::io::stdout()));
    match ::lsp::serve(&mut input, &mut output) {
        Ok(true) => Exit::Done,
        Ok(false) => Exit::Failed,
        Err(e) => ui.usage(&format!("the client does not speak the protocol: {e}"), None),
    }
}
