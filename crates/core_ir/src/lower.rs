//! Lowering: a term as a sequence of instructions of a stack machine.
//!
//! Entry point: [`Code::instructions`]. Source: `docs/decisions/009-one-evaluator.md`.
//!
//! An activation is a stretch of a stack: the argument and what the function captured, other locals and
//! temporaries. Each term becomes instructions that leave its value on top. The names of a `let` or a `case`
//! are temporaries that stay there while they are in scope. A function is a *region*, and so is a part of a
//! term that something waits for (the body of a `try`, a branch of a `par`): it ends with [`Op::End`].
//!
//! Invariant: the height of the stack at each instruction is known ([`Instruction::height`]), and is the same
//! on each way to it. [`Instructions::verify`] checks this and that jumps and operands are in range.
//! Invariant: the instructions hold indices alone, so a state that refers to them can be written down.

use crate::{Branch, Code, Prim, Slot, Term, TermId};

/// Source of the value that an instruction uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A temporary at this index of the activation, which is taken off: it is on top, or below another
    /// operand that is.
    Taken(u32),
    /// A captured value or a local at this index of the activation.
    Local(u32),
    /// The prelude definition of this index.
    Global(u32),
    /// The literal that this term is.
    Literal(TermId),
}

impl Operand {
    /// Returns true if the value is taken off the stack.
    #[inline]
    pub fn is_taken(self) -> bool {
        matches!(self, Operand::Taken(_))
    }
}

/// Operation of an [`Instruction`]. "Its value" is the value of the instruction's term.
// Without a tag of its own, finding out which operation it is takes longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// Ends a region with the value on top.
    End,
    /// Pushes an operand.
    Push(Operand),
    /// Pushes the function that the term is.
    Closure,
    /// Pushes the tag without payload that the term is.
    EmptyTag,
    /// Pushes a record or list of this many values on top.
    Structure(u32),
    /// Applies a primitive to the only operand.
    Prim1(Prim, Operand),
    /// Applies a primitive to two operands.
    Prim2(Prim, Operand, Operand),
    /// Applies a primitive to this many values on top.
    PrimN(Prim, u32),
    /// A part of a value: a field of a record, or a side of a pair.
    Part(Operand),
    /// The part at a key: an item of a list or text, or a field of a record.
    Item(Operand, Operand),
    /// Another form with one subterm that only computes.
    Unary(Operand),
    /// Another form with two subterms that only computes.
    Binary(Operand, Operand),
    /// The condition of an `if`. The first branch follows.
    If {
        /// The condition.
        condition: Operand,
        /// The second branch.
        otherwise: u32,
        /// The [`Op::Join`] behind the branches; [`END`] if the branches end the region.
        join: u32,
    },
    /// Decides a `case` by the value on top.
    Case {
        /// Index into [`Instructions::target`] of the first branch; the default follows the last branch.
        targets: u32,
        /// As in [`Op::If`].
        join: u32,
    },
    /// Goes on elsewhere.
    Jump(u32),
    /// Ends the stretch at a raised program counter that this instruction is the end of, if there is one.
    Join,
    /// Takes this many values below the top off the stack.
    Slide(u32),
    /// The value on top is the value of a definition of a `let`: the one of this index.
    Define(u32),
    /// Applies a function to an argument.
    Apply(Operand, Operand),
    /// Looks at a function and this many arguments on top. If the function takes more arguments, goes on
    /// behind the [`Op::Pad`] that follows. If not, applies it.
    Bind(u32),
    /// Pushes this many marks for arguments that are applied already.
    Pad(u32),
    /// Applies a function to this many arguments, at least two.
    Call(u32),
    /// The first subterm of a form that does more than compute has its value.
    First {
        /// Where evaluation goes on after the form; for `e : e` as `join` in [`Op::If`].
        after: u32,
        /// The handler of a `try`.
        handler: u32,
    },
    /// Both subterms of `assert` or `each` have their values.
    Second,
    /// Begins a region: of `guard`, `within`, `fork` or `fresh`.
    Open {
        /// Where evaluation goes on after the region.
        after: u32,
    },
    /// `choose`: the first branch follows.
    Choose {
        /// The second branch.
        right: u32,
    },
    /// `par`.
    Par {
        /// Index into [`Instructions::target`] of the first branch.
        targets: u32,
        /// Where evaluation goes on after the branches.
        after: u32,
    },
    /// A form without subterms that are evaluated.
    Leaf,
}

/// The [`Op::End`] that no region owns: the first instruction of each code.
pub const END: u32 = 0;

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// The operation.
    pub op: Op,
    /// The term that it is for.
    pub term: TermId,
    /// Number of terms whose evaluation it counts.
    pub cost: u32,
    /// Number of values of the activation before it.
    pub height: u32,
}

/// A function that was lowered.
#[derive(Clone, Debug)]
pub struct Function {
    /// The `λ`.
    pub term: TermId,
    /// Where its body begins.
    pub body: u32,
    /// The place of each captured value where the function is made. They are in the order in which they stand
    /// in the activation, without the argument.
    pub captures: Box<[Operand]>,
    /// The place of the argument in the activation.
    pub argument: u32,
    /// True if it is written as the function of a fixpoint.
    pub is_fixpoint: bool,
    /// Number of functions around, each of which returns the next one at once. Their arguments are the first
    /// values of the activation, in order; the argument of a fixpoint's function comes behind that of this
    /// one, and then what the outermost one captured.
    pub whole: u32,
    /// Number of functions that it leads to, each returned by the one before at once: `λy. e` of `λx. λy. e`.
    returned: u32,
}

/// The instructions of a [`Code`].
#[derive(Clone, Debug)]
pub struct Instructions {
    all: Vec<Instruction>,
    targets: Vec<u32>,
    /// The function of each term that is one: an index into `functions`.
    numbers: Vec<u32>,
    /// A function that another one returns at once comes after it.
    functions: Vec<Function>,
    root: u32,
}

impl Instructions {
    /// All instructions.
    #[inline]
    pub fn all(&self) -> &[Instruction] {
        &self.all
    }

    /// Returns the instruction where the whole term begins.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// Returns a function.
    // INVARIANT: a `TermId` of a function has an index, and is only meaningful for its own code.
    #[inline]
    pub fn function(&self, function: TermId) -> &Function {
        &self.functions[self.numbers[function.0 as usize] as usize]
    }

    /// Returns a function and those that it returns at once, as far as that is known without evaluating: of
    /// `λx. λy. e` itself and `λy. e`.
    #[inline]
    pub fn returned(&self, function: TermId) -> &[Function] {
        let first = self.numbers[function.0 as usize] as usize;
        let all = &self.functions[first..];
        &all[..=all[0].returned as usize]
    }

    /// Returns a place in the code that an instruction refers to by index.
    #[inline]
    pub fn target(&self, index: u32) -> u32 {
        self.targets[index as usize]
    }

    /// Returns the function that a region without inner regions applies last, if it is no temporary.
    pub fn applied(&self, region: u32) -> Option<Operand> {
        let ops = self.all[region as usize..].iter().map(|i| i.op).take_while(|op| *op != Op::End);
        match ops.last() {
            Some(Op::Apply(function, _)) if !function.is_taken() => Some(function),
            _ => None,
        }
    }

    pub(crate) fn of(code: &Code) -> Instructions {
        let mut lowering = Lowering {
            code,
            out: Instructions {
                all: Vec::with_capacity(code.len()),
                targets: Vec::new(),
                numbers: vec![END; code.len()],
                functions: Vec::new(),
                root: END,
            },
            locals: Vec::new(),
            captured: Vec::new(),
            around: None,
            fixed: None,
            height: 0,
            pending: 0,
            functions: Vec::new(),
        };
        lowering.height = 1;
        lowering.emit(Op::End, code.root(), 0);
        lowering.height = 0;
        lowering.out.root = lowering.next();
        lowering.region(code.root());
        while let Some((function, captured)) = lowering.functions.pop() {
            let Term::Abs(abs) = code.term(function) else { continue };
            let number = lowering.out.numbers[function.0 as usize] as usize;
            let body = lowering.next();
            let lowered = &mut lowering.out.functions[number];
            lowered.body = body;
            lowering.locals = vec![lowered.argument];
            lowering.height = captured.len() as u32 + 1;
            lowering.captured = captured;
            lowering.around = Some((abs.body, number));
            lowering.region(abs.body);
        }
        let mut out = lowering.out;
        out.order();
        debug_assert_eq!(out.verify(code), Ok(()));
        out
    }

    /// Orders the functions: those that are returned at once behind the one that returns them.
    fn order(&mut self) {
        let returned = |function: &Function| match self.all[function.body as usize..] {
            [Instruction { op: Op::Closure, term, .. }, Instruction { op: Op::End, .. }, ..] => Some(term),
            _ => None,
        };
        let number = |term: TermId| self.numbers[term.0 as usize] as usize;
        let next: Vec<Option<usize>> = self.functions.iter().map(|f| returned(f).map(number)).collect();
        let mut is_first = vec![true; next.len()];
        next.iter().flatten().for_each(|f| is_first[*f] = false);
        let mut order = Vec::with_capacity(next.len());
        for first in (0..next.len()).filter(|f| is_first[*f]) {
            order.extend(std::iter::successors(Some(first), |f| next[*f]));
        }
        let mut functions: Vec<Option<Function>> = self.functions.drain(..).map(Some).collect();
        self.functions.extend(order.iter().filter_map(|f| functions[*f].take()));
        let mut below = 0;
        for (at, was) in order.iter().enumerate().rev() {
            below = if next[*was].is_some() { below + 1 } else { 0 };
            let function = &mut self.functions[at];
            function.returned = below;
            self.numbers[function.term.0 as usize] = at as u32;
        }
    }

    /// Checks the invariants of the module for the instructions of a code.
    ///
    /// # Errors
    /// The first instruction that breaks one, and how.
    pub fn verify(&self, code: &Code) -> Result<(), String> {
        let wrong = |at: usize, what: &str| Err(format!("{at}: {what}: {:?}", self.all[at]));
        // Height at each instruction that was reached.
        let mut seen: Vec<Option<u32>> = vec![None; self.all.len()];
        let mut work = vec![(self.root, 0)];
        let entry = |function: TermId| match code.term(function) {
            Term::Abs(abs) => (self.function(function).body, abs.captures.len() as u32 + 1),
            _ => (END, 0),
        };
        while let Some((at, height)) = work.pop() {
            let index = at as usize;
            let Some(instruction) = self.all.get(index) else {
                return Err(format!("{at} is behind the last instruction"));
            };
            match seen[index] {
                Some(before) if before == height => continue,
                Some(_) => return wrong(index, "is reached with different stacks"),
                None => seen[index] = Some(height),
            }
            if at == END || instruction.height != height {
                return wrong(index, "is reached with another height");
            }
            let mut taken = 0;
            // The last operand first.
            let mut operand = |o: Operand| match o {
                Operand::Taken(i) => {
                    taken += 1;
                    i + taken == height
                }
                Operand::Local(i) => i < height,
                Operand::Global(_) => true,
                Operand::Literal(term) => matches!(code.term(term), Term::Lit(_)),
            };
            let operands = match instruction.op {
                Op::Push(o) => !o.is_taken() && operand(o),
                Op::Closure => {
                    work.push(entry(instruction.term));
                    self.function(instruction.term).captures.iter().all(|o| !o.is_taken() && operand(*o))
                }
                Op::Prim1(_, o) | Op::Part(o) | Op::Unary(o) | Op::If { condition: o, .. } => operand(o),
                Op::Prim2(_, a, b) | Op::Item(a, b) | Op::Binary(a, b) | Op::Apply(a, b) => {
                    operand(b) && operand(a)
                }
                Op::Structure(n) | Op::PrimN(_, n) => {
                    taken = n;
                    true
                }
                Op::Bind(n) | Op::Call(n) | Op::Slide(n) => {
                    taken = n + 1;
                    true
                }
                Op::End | Op::Case { .. } | Op::First { .. } | Op::Join | Op::Define(_) | Op::Pad(_) => {
                    taken = 1;
                    true
                }
                Op::Second => {
                    taken = 2;
                    true
                }
                _ => true,
            };
            if !operands {
                return wrong(index, "has an operand out of range");
            }
            let Some(rest) = height.checked_sub(taken) else {
                return wrong(index, "takes more than there is");
            };
            let next = at + 1;
            // A place that is `END` is left to the frame around.
            let mut go = |to: u32, height: u32| {
                if to != END {
                    work.push((to, height));
                }
            };
            match instruction.op {
                Op::End => {}
                Op::If { otherwise, .. } => {
                    go(next, rest);
                    go(otherwise, rest);
                }
                Op::Case { targets, .. } => {
                    let Term::Case { branches, default, .. } = code.term(instruction.term) else {
                        return wrong(index, "is of another term");
                    };
                    for (branch, target) in branches.iter().zip(targets..) {
                        go(self.target(target), rest + u32::from(branch.binder.is_some()));
                    }
                    if default.is_some() {
                        go(self.target(targets + branches.len() as u32), rest);
                    }
                }
                Op::Jump(to) => go(to, height),
                Op::Join | Op::Define(_) => go(next, height),
                Op::Slide(_) => go(next, rest + 1),
                Op::Bind(_) => {
                    go(next, rest + 1);
                    go(next + 1, height);
                }
                Op::Pad(n) => go(next, height + n),
                Op::First { after, handler } => match code.term(instruction.term) {
                    Term::Send(..) | Term::Remember(..) => go(next, rest + 1),
                    Term::Relabel(..) => go(next, rest),
                    Term::Assert(..) => go(next, height),
                    Term::Try { .. } => {
                        go(next, rest);
                        go(handler, rest + 1);
                        go(after, rest + 1);
                    }
                    _ => {
                        go(next, rest);
                        go(after, rest + 1);
                    }
                },
                Op::Open { after } => {
                    go(next, rest);
                    go(after, rest + 1);
                }
                Op::Choose { right } => {
                    go(next, rest);
                    go(right, rest);
                }
                Op::Par { targets, after } => {
                    let Term::Par(_, branches) = code.term(instruction.term) else {
                        return wrong(index, "is of another term");
                    };
                    for target in targets..targets + branches.len() as u32 {
                        go(self.target(target), rest);
                    }
                    go(after, rest + 1);
                }
                _ => go(next, rest + 1),
            }
        }
        Ok(())
    }
}

/// State of lowering one code.
struct Lowering<'a> {
    code: &'a Code,
    out: Instructions,
    /// The place of each local of the activation.
    locals: Vec<u32>,
    /// The place of each captured value of the activation.
    captured: Vec<u32>,
    /// Body and number of the function.
    around: Option<(TermId, usize)>,
    /// The term that the last `fix` is of.
    fixed: Option<TermId>,
    height: u32,
    /// Number of terms whose evaluation the next instruction counts.
    pending: u32,
    /// The functions whose bodies are to be lowered, with the place of each captured value.
    functions: Vec<(TermId, Vec<u32>)>,
}

impl Lowering<'_> {
    fn next(&self) -> u32 {
        self.out.all.len() as u32
    }

    /// Adds an instruction that changes the height of the stack by this much.
    fn emit(&mut self, op: Op, term: TermId, change: i64) -> u32 {
        let cost = std::mem::take(&mut self.pending);
        self.out.all.push(Instruction { op, term, cost, height: self.height });
        self.height = (i64::from(self.height) + change) as u32;
        self.next() - 1
    }

    /// The instructions of a term whose value ends the region.
    fn region(&mut self, id: TermId) {
        self.term(id, true);
    }

    /// Room in the table of targets.
    fn reserve(&mut self, count: usize) -> u32 {
        let first = self.out.targets.len() as u32;
        self.out.targets.resize(first as usize + count, END);
        first
    }

    fn aim(&mut self, target: u32) {
        self.out.targets[target as usize] = self.next();
    }

    /// An operand: nothing is emitted for variables and literals.
    fn operand(&mut self, id: TermId) -> Operand {
        match self.direct(id) {
            Some(operand) => {
                self.pending += 1;
                operand
            }
            None => {
                self.term(id, false);
                Operand::Taken(self.height - 1)
            }
        }
    }

    fn direct(&self, id: TermId) -> Option<Operand> {
        match self.code.term(id) {
            Term::Var(_, slot) => Some(self.slot(*slot)),
            Term::Lit(_) => Some(Operand::Literal(id)),
            _ => None,
        }
    }

    fn slot(&self, slot: Slot) -> Operand {
        match slot {
            // INVARIANT: a resolved variable is in scope.
            Slot::Local(i) => Operand::Local(self.locals[i as usize]),
            Slot::Captured(i) => Operand::Local(self.captured[i as usize]),
            Slot::Global(i) => Operand::Global(i),
        }
    }

    /// The place of a function's argument, and [`Function::whole`], if it captures these slots.
    fn whole(&self, id: TermId, slots: &[(Operand, u32)]) -> (u32, u32) {
        let Some((body, number)) = self.around else { return (0, 0) };
        let around = &self.out.functions[number];
        let all = (0..=around.captures.len() as u32).map(Operand::Local);
        if body != id || !slots.iter().map(|(slot, _)| *slot).eq(all) {
            return (0, 0);
        }
        (if around.is_fixpoint { 0 } else { around.argument + 1 }, around.whole + 1)
    }

    /// Number of operands that are taken off the stack.
    fn taken(operands: &[Operand]) -> i64 {
        operands.iter().filter(|o| o.is_taken()).count() as i64
    }

    /// Two operands. Reading a variable or literal later makes no difference, so only others are evaluated.
    fn operands(&mut self, a: TermId, b: TermId) -> (Operand, Operand) {
        (self.operand(a), self.operand(b))
    }

    /// The instructions of a term; `ends` if its value ends the region.
    fn term(&mut self, id: TermId, ends: bool) {
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || self.term_here(id, ends));
    }

    fn term_here(&mut self, id: TermId, ends: bool) {
        if let Some(operand) = self.direct(id) {
            self.pending += 1;
            self.emit(Op::Push(operand), id, 1);
            return self.end(id, ends);
        }
        if let Term::App(..) = self.code.term(id) {
            self.application(id);
            return self.end(id, ends);
        }
        self.pending += 1;
        let code = self.code;
        match code.term(id) {
            // These are handled above.
            Term::Var(..) | Term::Lit(_) | Term::App(..) => {}
            Term::Abs(abs) => {
                let mut slots: Vec<_> = abs.captures.iter().map(|slot| self.slot(*slot)).zip(0..).collect();
                slots.sort_by_key(|(slot, _)| match slot {
                    Operand::Local(place) => *place,
                    // INVARIANT: definitions of the prelude are not captured, but found by their index.
                    _ => u32::MAX,
                });
                let (argument, whole) = self.whole(id, &slots);
                let mut captured = vec![0; slots.len()];
                for ((_, index), place) in slots.iter().zip((0..).filter(|place| *place != argument)) {
                    captured[*index as usize] = place;
                }
                self.out.numbers[id.0 as usize] = self.out.functions.len() as u32;
                self.out.functions.push(Function {
                    term: id,
                    body: END,
                    captures: slots.into_iter().map(|(slot, _)| slot).collect(),
                    argument,
                    is_fixpoint: self.fixed == Some(id),
                    whole,
                    returned: 0,
                });
                self.emit(Op::Closure, id, 1);
                self.functions.push((id, captured));
            }
            Term::Tag(_, None) => {
                self.emit(Op::EmptyTag, id, 1);
            }
            Term::Record(fields) | Term::Args(_, fields) => {
                fields.iter().for_each(|(_, e)| self.term(*e, false));
                let count = fields.len() as u32;
                self.emit(Op::Structure(count), id, 1 - i64::from(count));
            }
            Term::List(items) => {
                items.iter().for_each(|e| self.term(*e, false));
                let count = items.len() as u32;
                self.emit(Op::Structure(count), id, 1 - i64::from(count));
            }
            Term::Prim(prim, args) => match args[..] {
                [a] => {
                    let a = self.operand(a);
                    self.emit(Op::Prim1(*prim, a), id, 1 - Self::taken(&[a]));
                }
                [a, b] => {
                    let (a, b) = self.operands(a, b);
                    self.emit(Op::Prim2(*prim, a, b), id, 1 - Self::taken(&[a, b]));
                }
                _ => {
                    args.iter().for_each(|e| self.term(*e, false));
                    let count = args.len() as u32;
                    self.emit(Op::PrimN(*prim, count), id, 1 - i64::from(count));
                }
            },
            Term::Field(e, _) | Term::Fst(e) | Term::Snd(e) => {
                let e = self.operand(*e);
                self.emit(Op::Part(e), id, 1 - Self::taken(&[e]));
            }
            Term::Fix { body: e, .. } => {
                self.fixed = Some(*e);
                let e = self.operand(*e);
                self.emit(Op::Unary(e), id, 1 - Self::taken(&[e]));
            }
            Term::Tag(_, Some(e))
            | Term::Classify(_, e)
            | Term::Llm(e, _)
            | Term::Fail(e)
            | Term::Check(_, _, e) => {
                let e = self.operand(*e);
                self.emit(Op::Unary(e), id, 1 - Self::taken(&[e]));
            }
            Term::Index(a, b) => {
                let (a, b) = self.operands(*a, *b);
                self.emit(Op::Item(a, b), id, 1 - Self::taken(&[a, b]));
            }
            Term::With(a, _, b) | Term::Pair(a, b) => {
                let (a, b) = self.operands(*a, *b);
                self.emit(Op::Binary(a, b), id, 1 - Self::taken(&[a, b]));
            }
            Term::If(condition, then, otherwise, _) => {
                let condition = self.operand(*condition);
                let taken = Self::taken(&[condition]);
                let at = self.emit(Op::If { condition, otherwise: END, join: END }, id, -taken);
                let height = self.height;
                self.term(*then, ends);
                let jump = (!ends).then(|| self.emit(Op::Jump(END), id, 0));
                let second = self.next();
                self.height = height;
                self.term(*otherwise, ends);
                let join = self.joined(id, ends, jump);
                self.out.all[at as usize].op = Op::If { condition, otherwise: second, join };
                return;
            }
            Term::Case { scrutinee, branches, default } => {
                self.term(*scrutinee, false);
                let targets = self.reserve(branches.len() + 1);
                let at = self.emit(Op::Case { targets, join: END }, id, -1);
                let height = self.height;
                let mut jumps = Vec::new();
                for (i, Branch { binder, body, .. }) in branches.iter().enumerate() {
                    self.aim(targets + i as u32);
                    self.height = height;
                    match binder {
                        Some(_) => self.scoped(1, *body, ends),
                        None => self.term(*body, ends),
                    }
                    if !ends && (default.is_some() || i + 1 < branches.len()) {
                        jumps.push(self.emit(Op::Jump(END), id, 0));
                    }
                }
                if let Some(body) = default {
                    self.aim(targets + branches.len() as u32);
                    self.height = height;
                    self.term(*body, ends);
                }
                self.height = height + 1;
                let join = self.joined(id, ends, jumps);
                self.out.all[at as usize].op = Op::Case { targets, join };
                return;
            }
            Term::Let { bindings, body, .. } => {
                let outer = self.locals.len();
                for (i, (_, e)) in bindings.iter().enumerate() {
                    let place = self.height;
                    self.term(*e, false);
                    self.emit(Op::Define(i as u32), id, 0);
                    self.locals.push(place);
                }
                self.term(*body, ends);
                self.locals.truncate(outer);
                if !ends {
                    let count = bindings.len() as u32;
                    self.emit(Op::Slide(count), id, -i64::from(count));
                }
                return;
            }
            Term::Mem(_, e) => return self.term(*e, ends),
            Term::Send(_, e) | Term::Remember(_, _, e) => {
                self.term(*e, false);
                self.emit(Op::First { after: END, handler: END }, id, 0);
            }
            Term::Relabel(label, e) => {
                self.term(*label, false);
                let at = self.emit(Op::First { after: END, handler: END }, id, -1);
                self.term(*e, ends);
                let after = self.joined(id, ends, None);
                self.out.all[at as usize].op = Op::First { after, handler: END };
                return;
            }
            Term::Assert(label, e) => {
                self.term(*label, false);
                self.emit(Op::First { after: END, handler: END }, id, 0);
                self.term(*e, false);
                self.emit(Op::Second, id, -1);
            }
            Term::Each(_, f, items) => {
                self.term(*f, false);
                self.term(*items, false);
                self.emit(Op::Second, id, -1);
            }
            Term::Test(label, e) | Term::Endorse(label, e) | Term::Declassify(label, e) => {
                self.term(*label, false);
                let at = self.emit(Op::First { after: END, handler: END }, id, -1);
                let height = self.height;
                self.region(*e);
                self.height = height + 1;
                self.out.all[at as usize].op = Op::First { after: self.next(), handler: END };
            }
            Term::Try { label, body, handler, .. } => {
                self.term(*label, false);
                let at = self.emit(Op::First { after: END, handler: END }, id, -1);
                let height = self.height;
                self.region(*body);
                self.height = height;
                let begin = self.next();
                self.scoped(1, *handler, ends);
                let after = self.joined(id, ends, None);
                // Where the region of the handler ends, so does what is around.
                self.out.all[at as usize].op = Op::First { after, handler: begin };
                return;
            }
            Term::Guard { term: e, .. } | Term::Within(_, e) | Term::Fork(e) | Term::Fresh(e) => {
                let at = self.emit(Op::Open { after: END }, id, 0);
                let height = self.height;
                self.region(*e);
                self.height = height + 1;
                self.out.all[at as usize].op = Op::Open { after: self.next() };
            }
            Term::Choose(_, left, right) => {
                let at = self.emit(Op::Choose { right: END }, id, 0);
                let height = self.height;
                self.term(*left, ends);
                let jump = (!ends).then(|| self.emit(Op::Jump(END), id, 0));
                self.out.all[at as usize].op = Op::Choose { right: self.next() };
                self.height = height;
                self.term(*right, ends);
                self.joined(id, ends, jump);
                return;
            }
            Term::Par(_, branches) => {
                let targets = self.reserve(branches.len());
                let at = self.emit(Op::Par { targets, after: END }, id, 0);
                let height = self.height;
                for (target, branch) in (targets..).zip(branches) {
                    self.aim(target);
                    self.height = height;
                    self.region(*branch);
                }
                self.height = height + 1;
                self.out.all[at as usize].op = Op::Par { targets, after: self.next() };
            }
            Term::Recall(..) | Term::Tool(_) | Term::Recv(_) | Term::Clear | Term::Unknown(_) => {
                self.emit(Op::Leaf, id, 1);
            }
        }
        self.end(id, ends);
    }

    /// The instruction after a term whose value is on top.
    fn end(&mut self, id: TermId, ends: bool) {
        if ends {
            self.emit(Op::End, id, 0);
        }
    }

    /// A term in whose scope the values on top are the next locals.
    fn scoped(&mut self, count: u32, body: TermId, ends: bool) {
        let outer = self.locals.len();
        for _ in 0..count {
            self.locals.push(self.height);
            self.height += 1;
        }
        self.term(body, ends);
        self.locals.truncate(outer);
        if !ends {
            self.emit(Op::Slide(count), body, -i64::from(count));
        }
    }

    /// The place where branches meet, and the jumps to it.
    fn joined(&mut self, id: TermId, ends: bool, jumps: impl IntoIterator<Item = u32>) -> u32 {
        if ends {
            return END;
        }
        let join = self.emit(Op::Join, id, 0);
        for jump in jumps {
            self.out.all[jump as usize].op = Op::Jump(join);
        }
        join
    }

    /// The instructions of an application. The function and all arguments of `f a b` are on the stack before
    /// the call. The stages of a composition are a list, however long.
    fn application(&mut self, id: TermId) {
        let code = self.code;
        let mut spine = Vec::new();
        let mut at = id;
        loop {
            let (mut args, mut function) = (Vec::new(), at);
            while let Term::App(f, x) = code.term(function) {
                self.pending += 1;
                args.push((function, *x));
                function = *f;
            }
            args.reverse();
            // INVARIANT: the loop is entered with applications only.
            let Some((_, last)) = args.pop() else { break };
            if args.is_empty()
                && !matches!(code.term(last), Term::App(..))
                && let Some(f) = self.direct(function)
            {
                self.pending += 1;
                let x = self.operand(last);
                self.emit(Op::Apply(f, x), at, 1 - Self::taken(&[x]));
                break;
            }
            self.term(function, false);
            let count = args.len() as u32;
            let mut rest = args.iter().map(|(app, x)| (*app, *x)).chain([(at, last)]);
            let mut before = None;
            for (bound, (app, x)) in (0..).zip(rest.by_ref()) {
                if let Some(before) = before.filter(|_| !self.is_constant(x)) {
                    self.emit(Op::Bind(bound), before, -i64::from(bound));
                    self.emit(Op::Pad(bound), before, i64::from(bound));
                }
                before = Some(app);
                if bound == count {
                    break;
                }
                self.term(x, false);
            }
            spine.push((at, count + 1));
            match code.term(last) {
                Term::App(..) => at = last,
                _ => {
                    self.term(last, false);
                    break;
                }
            }
        }
        for (app, count) in spine.into_iter().rev() {
            let top = self.height - 1;
            let op = match count {
                1 => Op::Apply(Operand::Taken(top - 1), Operand::Taken(top)),
                _ => Op::Call(count),
            };
            self.emit(op, app, -i64::from(count));
        }
    }

    /// Returns whether evaluating a term is neither an error nor an effect, so that it may come early.
    fn is_constant(&self, id: TermId) -> bool {
        matches!(self.code.term(id), Term::Var(..) | Term::Lit(_) | Term::Abs(_) | Term::Tag(_, None))
    }
}
