//! Upper bounds on labels before the run.

use super::SurfaceLowering;
use super::expr::by_of;
use super::variables::expressions_of;
use crate::decls::{ActionKind, AgentDecl, CallableKind, Flow, Param, Signature};
use core_ir::{EffectClass, LabelSpec, Lattice};
use syntax::agent::ast::{Block, Expr, ExprKind, Item, Run, Stmt, StmtKind};

/// An upper bound of a label, known before the run: whether the value may be untrusted, and secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Taint {
    pub(super) untrusted: bool,
    pub(super) secret: bool,
}

impl Taint {
    pub(super) const NONE: Taint = Taint { untrusted: false, secret: false };

    pub(super) fn join(self, other: Taint) -> Taint {
        Taint { untrusted: self.untrusted || other.untrusted, secret: self.secret || other.secret }
    }

    /// Returns the part that the bound of a parameter lets pass. Other values are refused before the call.
    pub(super) fn within(self, bound: &LabelSpec) -> Taint {
        match bound {
            LabelSpec::Axes { untrusted, secret } => {
                Taint { untrusted: self.untrusted && *untrusted, secret: self.secret && *secret }
            }
            LabelSpec::Exact(_) => self,
        }
    }

    pub(super) fn of(flow: &Flow) -> Taint {
        Taint { untrusted: flow.untrusted || flow.class == Some(EffectClass::Read), secret: flow.secret }
    }

    /// Returns an upper bound on a label of this lattice.
    pub(super) fn covering(lattice: &mut Lattice, spec: &LabelSpec) -> Taint {
        let most = |untrusted, secret| LabelSpec::Axes { untrusted, secret };
        let axes = [most(false, true), most(true, false)].map(|m| lattice.resolve(&m));
        match (spec, lattice.resolve(spec), axes) {
            (LabelSpec::Axes { untrusted, secret }, ..) => Taint { untrusted: *untrusted, secret: *secret },
            (_, Some(label), [Some(trusted), Some(public)]) => {
                Taint { untrusted: !lattice.flows(label, trusted), secret: !lattice.flows(label, public) }
            }
            // No label of the lattice; the machine refuses it.
            _ => Taint { untrusted: true, secret: true },
        }
    }
}

/// Returns the label of a tool's result. It is untrusted if the tool says so or reads the world.
pub(super) fn result_label(flow: &Flow) -> LabelSpec {
    let taint = Taint::of(flow);
    LabelSpec::Axes { untrusted: taint.untrusted, secret: taint.secret }
}

impl SurfaceLowering<'_> {
    /// Returns an upper bound on the label of an expression, besides the program counter.
    pub(super) fn taint(&self, e: &Expr) -> Taint {
        let mut taint = Taint::NONE;
        e.each_variable(&mut |name, _| {
            if let Some(held) = self.scope.names.get(name) {
                taint = taint.join(held.taint);
            }
        });
        taint
    }

    /// Returns an upper bound on the label of an expression's value. An endorsed one is trusted, though its
    /// failure is not.
    pub(super) fn taint_of_value(&self, e: &Expr) -> Taint {
        match &e.kind {
            ExprKind::Paren(inner) => self.taint_of_value(inner),
            ExprKind::Endorse(value, ..) => Taint { untrusted: false, ..self.taint(value) },
            _ => self.taint(e),
        }
    }

    pub(super) fn taint_of_block(&mut self, block: &Block) -> Taint {
        let mut taint = Taint::NONE;
        for stmt in &block.stmts {
            taint = taint.join(self.taint_of_stmt(stmt));
        }
        taint
    }

    /// Returns an upper bound on the labels of everything that a statement binds, and of its errors, besides
    /// the program counter: the labels of its reads and of its calls.
    pub(super) fn taint_of_stmt(&mut self, stmt: &Stmt) -> Taint {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            let mut taint = expressions_of(stmt).into_iter().fold(Taint::NONE, |t, e| t.join(self.taint(e)));
            let runs: &[Run] = match &stmt.kind {
                StmtKind::Run(run) => std::slice::from_ref(run),
                StmtKind::Parallel { runs, .. } => runs,
                StmtKind::Guard(name, ..) => {
                    return self.scope.names.get(&name.text).map_or(taint, |h| taint.join(h.taint));
                }
                _ => &[],
            };
            for run in runs {
                taint = taint.join(self.taint_of_run(run));
            }
            for block in crate::exits::blocks_of(stmt) {
                taint = taint.join(self.taint_of_block(block));
            }
            taint
        })
    }

    /// Returns an upper bound on the label of a call's result and of its errors.
    pub(super) fn taint_of_run(&mut self, run: &Run) -> Taint {
        let args =
            crate::check::arguments_of(run).into_iter().fold(Taint::NONE, |t, e| t.join(self.taint(e)));
        match self.c.decls.callable(&run.target.text) {
            Some(s) => self.added(s, by_of(run)).join(args),
            None => args,
        }
    }

    /// Returns the label that a callee adds to those of its arguments.
    pub(super) fn added(&mut self, s: &Signature, by: Option<&str>) -> Taint {
        match s.kind {
            CallableKind::Tool | CallableKind::Task => self.c.returns(s),
            CallableKind::Import => {
                let Some(unit) = self.unit(s) else { return Taint::NONE };
                let lattice = &mut Lattice::new(self.c.world.lattice);
                unit.code.tools.iter().fold(Taint::NONE, |t, tool| {
                    let label = self.c.world.results.get(&*tool.name).unwrap_or(&tool.label);
                    t.join(Taint::covering(lattice, label))
                })
            }
            CallableKind::AgentTask => {
                let Some(agent) = by.and_then(|a| self.c.decls.agents.get(a)) else {
                    return Taint::of(&s.flow);
                };
                let taint = Taint::of(&s.flow).join(self.agent_adds(agent));
                let keys = agent.memory.iter().flat_map(|m| &m.keys);
                keys.fold(taint, |t, k| t.join(self.memory_taint(agent, k)))
            }
            // It computes, and so adds nothing.
            CallableKind::Function => Taint::NONE,
            CallableKind::Pipeline => {
                if let Some(known) = self.results.get(&s.name.text) {
                    return *known;
                }
                let mut taint = s.params.iter().fold(Taint::NONE, |t, p| t.join(Taint::of(&p.flow)));
                // What a call of itself adds is what it adds.
                self.results.insert(s.name.text.clone(), Taint::NONE);
                if let Some(Item::Pipeline(p)) = self.c.program.items.get(s.item) {
                    for run in crate::check::runs_in(&p.body) {
                        if let Some(callee) = self.c.decls.callable(&run.target.text) {
                            let added =
                                stacker::maybe_grow(64 << 10, 1 << 20, || self.added(callee, by_of(run)));
                            taint = taint.join(added);
                        }
                    }
                }
                self.results.insert(s.name.text.clone(), taint);
                taint
            }
        }
    }

    /// Returns the label that an agent's tools, and the agents it asks or hands off to, add.
    fn agent_adds(&mut self, decl: &AgentDecl) -> Taint {
        let tools = decl.tools.iter().filter_map(|t| self.c.decls.tools.get(t));
        let own = tools.fold(Taint::NONE, |t, s| t.join(self.c.returns(s)));
        let others = decl.offers.iter().filter(|o| matches!(o.kind, ActionKind::Ask | ActionKind::HandOff));
        others.fold(own, |t, o| t.join(self.asked_adds(&o.name.text)))
    }

    /// Returns the label that an agent, or else a pipeline, adds to that of its input text.
    pub(super) fn asked_adds(&mut self, name: &str) -> Taint {
        let c = self.c;
        let Some(agent) = c.decls.agents.get(name) else {
            return match c.decls.callables.get(name) {
                // It may be asked whatever the model has heard of.
                Some(s) => stacker::maybe_grow(64 << 10, 1 << 20, || self.added(s, None)),
                None => Taint::NONE,
            };
        };
        // No pipeline has a name with a space in it.
        let key = format!("agent {name}");
        if let Some(known) = self.results.get(&key) {
            return *known;
        }
        let adds = stacker::maybe_grow(64 << 10, 1 << 20, || self.agent_adds(agent));
        let keys = agent.memory.iter().flat_map(|m| &m.keys);
        let adds = keys.fold(adds, |t, k| t.join(self.memory_taint(agent, k)));
        self.results.insert(key, adds);
        adds
    }

    /// The label of a key: what it says, and what the agent hears from others.
    pub(super) fn memory_taint(&mut self, decl: &AgentDecl, key: &Param) -> Taint {
        Taint { untrusted: key.flow.untrusted, secret: key.flow.secret }.join(self.agent_adds(decl))
    }
}
