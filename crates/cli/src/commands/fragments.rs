//! Which formers of the calculus a unit uses: seed 000, Table 9, counted on real configurations.

use core_ir::{AbsSugar, Code, Term};

/// Number of formers.
pub const MANY: usize = 10;

/// Their names in the order of [`of`]; `conv` is a conversation (`send`, `recv`, `fork`, `fresh`).
pub const NAMES: [&str; MANY] = ["llm", "tool", ">>", "case", "if", "fix", "par", "guard", "mem", "conv"];

/// Which of them occur in a term.
pub fn of(code: &Code) -> [bool; MANY] {
    let mut used = [false; MANY];
    for (_, term) in code.iter() {
        let former = match term {
            Term::Llm(..) | Term::Recv(_) => 0,
            Term::Tool(_) => 1,
            Term::Abs(abs) if abs.sugar == AbsSugar::Compose => 2,
            Term::Case { .. } | Term::Classify(..) => 3,
            Term::If(..) => 4,
            Term::Fix { .. } => 5,
            Term::Par(..) | Term::Each(..) => 6,
            Term::Guard { .. } => 7,
            Term::Mem(..) => 8,
            Term::Send(..) | Term::Fork(_) | Term::Fresh(_) => 9,
            _ => continue,
        };
        used[former] = true;
    }
    used
}
