//! Requests of a run to the world, and the use of their answers.

use super::{Cleared, Edited, Frame, Mode, Pending, Question, State, Strand, Waiting, local, message_cost};
use crate::record::Fields;
use crate::value::{Body, Kind, Node, NotData, Ref, Tool, Value};
use crate::{
    Answers, Args, Asked, Call, CallCount, Choice, ErrorCode, Machine, NOBODY, Part, Place, Remark, Reply,
    Response, decode,
};
use core_ir::{
    ASK_VERDICT, Among, AmongSource, Approve, Candidate, Code, Data, END, Label, Lattice, ModelParams, Name,
    Plain, Recv, Role, SetSize, Step, Term, What,
};
use diagnostics::{Span, clip};
use std::sync::Arc;

const MISMATCH: &str = "the handler gave an answer of the wrong kind";

impl Machine {
    /// `recv`, and what `llm` does after sending.
    pub(super) fn receive(
        &mut self,
        s: &mut Strand,
        mode: Mode,
        attempt: u32,
        span: Span,
    ) -> Option<Question> {
        if !self.may_touch_conversation(s, "recv", span) {
            return None;
        }
        let lc = s.conversation.label;
        if !self.driver_clears {
            let params = match &mode {
                Mode::Code => None,
                Mode::Data(params, _) => Some(&**params),
            };
            let models = self.config.routes.candidates(params);
            if !models.iter().any(|m| self.may_see(m, lc)) {
                self.uncleared(s, &models, span);
                return None;
            }
        }
        let (params, tools) = match &mode {
            Mode::Code => (None, Vec::new()),
            Mode::Data(params, code) => {
                if !params.tools.is_empty()
                    && let Some((name, args)) = s.conversation.pending.as_mut().and_then(|p| p.pop())
                {
                    self.replied(s, mode, attempt, span, Reply::ToolCall { name, args });
                    return None;
                }
                if params.waiting {
                    let none = Data::Tag(core_ir::NOTHING_WAITS.into(), Arc::new(Data::Null));
                    s.give(Value::from_data(&mut self.lattice, lc, &none));
                    return None;
                }
                (Some(params.clone()), params.tools.iter().map(|t| code.tool(*t).clone()).collect())
            }
        };
        s.conversation.pending = None;
        self.tell_edits(s);
        self.remark(s);
        let call = Call::Model { messages: s.conversation.messages.share(), params, tools, attempt };
        let pending = Pending::Model { mode, attempt };
        let given = if self.lattice.keeps_origins() { vec![(Part::Conversation, lc)] } else { Vec::new() };
        Some(Question {
            pending,
            call,
            channel: lc,
            answer: self.lattice.join(s.pc, lc),
            inputs: lc,
            span,
            given,
            choices: Box::default(),
            counts: CallCount::No,
        })
    }

    /// No model that could answer may see the conversation.
    fn uncleared(&mut self, s: &mut Strand, models: &[Candidate], span: Span) {
        let lc = s.conversation.label;
        let label = self.lattice.join(s.pc, lc);
        // The first clearance of each model that does not admit the conversation.
        let broken: Vec<(&Name, Label)> = models
            .iter()
            .filter_map(|m| {
                let broken = self.clearances.of(m).find(|l| !self.lattice.flows(lc, **l))?;
                Some((&m.name, *broken))
            })
            .collect();
        let shown = self.lattice.show(lc);
        let each = |(name, most): &(&Name, Label)| {
            let which = if name.is_empty() { "the model".into() } else { format!("the model `{name}`") };
            format!("{which} may see {} at most", self.lattice.show(*most))
        };
        let message = match &broken[..] {
            [one] => format!("the conversation is labeled {shown}, but {}", each(one)),
            all => {
                let all: Vec<String> = all.iter().map(each).collect();
                format!("the conversation is labeled {shown}, but no model may see it: {}", all.join(", "))
            }
        };
        s.fail(ErrorCode::Flow, label, span, message);
        s.permanently();
        if let Some((name, clearance)) = broken.first() {
            s.refused(Part::Conversation, Some(*name).filter(|n| !n.is_empty()), lc, *clearance);
        }
    }

    /// Tells the conversation why the last attempt of the guard around was refused, once, if it may know.
    fn remark(&mut self, s: &mut Strand) {
        let Some(remark) = s.remark.clone() else { return };
        let told = s.conversation.told.as_ref().is_some_and(|told| Arc::ptr_eq(told, &remark));
        if told || !self.lattice.flows(remark.label, s.conversation.label) {
            return;
        }
        self.charge(message_cost(&remark.text));
        s.message(Role::User, remark.text.as_str().into(), None);
        s.conversation.told = Some(remark);
    }

    /// Tells the conversation of the calls that were approved with other arguments, if it may know.
    fn tell_edits(&mut self, s: &mut Strand) {
        let lc = s.conversation.label;
        for edit in s.conversation.edits.take().into_iter().flat_map(|edits| *edits) {
            if self.lattice.flows(edit.label, lc) {
                self.charge(message_cost(&edit.text));
                s.message(Role::User, edit.text.as_str().into(), None);
            } else {
                s.conversation.edits.get_or_insert_default().push(edit);
            }
        }
    }

    /// Notes what was refused.
    fn refused(&mut self, s: &Strand) {
        if let State::Raise(failure) = &s.state {
            self.note_refused(failure);
        }
    }

    /// `tool[f] V`.
    pub(super) fn call_tool(&mut self, s: &mut Strand, node: Ref, v: Value, span: Span) -> Option<Question> {
        self.check_call(s, node, v, span, None)
    }

    /// `tool[f] V`, or what follows from an approval with other arguments, which are in `V`.
    fn check_call(
        &mut self,
        s: &mut Strand,
        node: Ref,
        v: Value,
        span: Span,
        edited: Option<Edited>,
    ) -> Option<Question> {
        let tool = tool_of(&node);
        let decl = &*tool.decl;
        if !self.admits(tool, s.pc, tool.control) {
            let (pc, bound) = (self.lattice.show(s.pc), self.lattice.show(tool.control));
            let message = format!(
                "`{}` may be called under labels up to {bound}, but whether it is called here depends on {pc}",
                decl.name
            );
            s.fail(ErrorCode::Flow, s.pc, span, message);
            s.explain(s.pc_from, format!("what runs here depends on a value labeled {pc}"));
            let bound = self.enforced(tool, tool.control);
            s.refused(Part::Control, Some(&decl.name), s.pc, bound);
            self.refused(s);
            return None;
        }
        // The label of the record. If it flows to the control bound, a planned call counts it as control, and
        // compares each argument without it. Which it is, is a fact about the record, so a refusal says `m`.
        let counts_as_control = self.admits(tool, v.label, tool.control);
        let m = if counts_as_control { v.label } else { tool.control };
        let (fields, is_args) = match v.body() {
            Some(Body::Record(fields)) => (Some(fields), false),
            Some(Body::Args(of, fields)) if of.name == decl.name => (Some(fields), true),
            Some(Body::Args(of, _)) => {
                let label = self.blame(s.pc, &v);
                let message = format!("`{}`: these are the arguments of a call of `{}`", decl.name, of.name);
                s.fail(ErrorCode::Type, label, span, message);
                return None;
            }
            _ => (None, false),
        };
        let planned = is_args && counts_as_control;
        let named = is_args || is_named(decl, fields);
        let offered = Offered { v: &v, fields, named, planned };
        let mut choices = Vec::new();
        let is_shown = decl.approve.may_ask() || decl.policy.is_some() || self.lattice.keeps_origins();
        let mut compared = Vec::new();
        for (param, bound) in decl.params.iter().zip(&tool.bounds) {
            let label = offered.label(&mut self.lattice, &param.name);
            if is_shown {
                compared.push(label);
            }
            if !self.admits(tool, label, *bound) {
                if let Some(choice) = self.chosen(tool, &param.name, &offered) {
                    note_choice(&mut choices, choice);
                    continue;
                }
                let (found, allowed) = (self.lattice.show(label), self.lattice.show(*bound));
                let message = format!(
                    "the argument `{}` of `{}` must be labeled {allowed} at most{}",
                    param.name,
                    decl.name,
                    if decl.among.is_empty() { "" } else { ", or be in one of its sets" }
                );
                let broke = label;
                let mut label =
                    self.lattice.mark(*bound, Label::BOTTOM, *bound, || local(What::Refused, span));
                label = self.lattice.join(label, m);
                label = self.lattice.join(s.pc, label);
                for among in decl.among.iter().filter(|a| a.params.iter().any(|(n, _)| *n == param.name)) {
                    // The arguments that are chosen together were compared, as far as their bounds admit.
                    for (name, _) in &among.params {
                        let other = decl.params.iter().position(|p| p.name == *name);
                        let other = other.map(|i| tool.bounds[i]);
                        label = self.lattice.join(label, other.unwrap_or_default());
                    }
                }
                if decl.approve.may_ask() || !decl.among.is_empty() {
                    // The refusal says something about secrecy only, but may have been brought about by
                    // anyone.
                    let top = self.lattice.top();
                    let anyone = self.lattice.reclassify(top, Label::BOTTOM);
                    label = self.lattice.join(label, anyone);
                }
                s.fail(ErrorCode::Flow, label, span, message);
                s.explain(span, format!("this argument is labeled {found}"));
                let bound = self.enforced(tool, *bound);
                s.refused(Part::Argument(param.name.clone()), Some(&decl.name), broke, bound);
                self.refused(s);
                return None;
            }
        }
        let args = self.arguments(decl, &offered);
        let given = self.blame(s.pc, &v);
        let given = self.lattice.join(given, edited.map(|e| e.label).unwrap_or_default());
        let args = match args {
            Ok(args) => args,
            Err((kind, message)) => {
                s.fail(kind, given, span, format!("`{}`: {message}", decl.name));
                return None;
            }
        };
        let mut asks = match decl.approve {
            _ if edited.is_some() => false,
            Approve::Never => false,
            Approve::Always => true,
            Approve::IfRefused => {
                // As if nobody could be asked.
                let offered =
                    Offered { planned: is_args && self.lattice.flows(v.label, tool.control), ..offered };
                !self.lattice.flows(s.pc, tool.control) || !self.is_clean(tool, &offered, &mut choices)
            }
        };
        let (seen, seen_with_result) =
            self.admits_texts(s, tool, &offered, &args, (&choices, span), &mut asks)?;
        if !self.admits_patterns(s, tool, &offered, &args, span)
            || !self.admits_readers(s, tool, &offered, &args, span)
        {
            return None;
        }
        let mut given = self.lattice.join(given, seen);
        if decl.confirms {
            // Whether the value is vouched for tells what is in the sets, and so does the question.
            let sets = self.sets_label(decl);
            given = self.lattice.join(given, sets);
        }
        let label = self.lattice.join(given, tool.result);
        // What an approver wrote may depend on every argument.
        let value = match decl.completes.is_empty() || !offered.named || edited.is_some() {
            true => label,
            false => {
                let given = self.given_without(&offered, decl, s.pc);
                let given = self.lattice.join(given, seen_with_result);
                self.lattice.join(given, tool.result)
            }
        };
        let counts = decl.at_most.is_some() && !self.is_trusted(s.pc, v.label);
        // Whoever is asked sees the label of the record, too: it decided that the call happens.
        let (control, labels) = match is_shown {
            true => {
                let control = self.lattice.join(s.pc, v.label);
                (control, compared.iter().map(|l| self.lattice.join(*l, v.label)).collect())
            }
            false => (Label::BOTTOM, Vec::new()),
        };
        let call = Cleared {
            tool: node.clone(),
            args,
            labels,
            control,
            given,
            label,
            value,
            asks,
            edited,
            applied: v.clone(),
            choices,
            counts,
            span,
        };
        if !is_shown {
            return self.make(s, call);
        }
        let shown: Vec<(Name, Value)> = match decl.policy {
            None => Vec::new(),
            Some(_) => decl
                .params
                .iter()
                .map(|p| {
                    let value = offered
                        .argument(&p.name)
                        .map_or(Value::new(v.label, Kind::Null), |a| a.read(&mut self.lattice, v.label));
                    (p.name.clone(), value)
                })
                .collect(),
        };
        let Some(policy) = decl.policy.clone() else { return self.proceed(s, call) };
        let record = self.described(s.pc, v.label, shown, &compared);
        // The policy decides in a conversation of its own, at the program counter of the call.
        s.begin_region();
        s.kont.push(Frame::Policy(Box::new(call)));
        self.open(s, END);
        s.kont.push(Frame::FixArg(record, span));
        let root = policy.instructions().root();
        s.enter(Some(policy), (s.pc, span), root, s.stack.len());
        None
    }

    /// Looks at the untrusted texts of the parameters that take plain text only; `None` if one is refused.
    /// With approval of what is refused, somebody is asked about it. Gives the label of the request, if its
    /// tokens were looked at, for the call and for the result of one that succeeds.
    ///
    /// An argument out of a set has been chosen from what is vouched for, and is not looked at.
    fn admits_texts(
        &mut self,
        s: &mut Strand,
        tool: &Tool,
        offered: &Offered<'_>,
        args: &[(Name, Data)],
        (choices, span): (&[Choice], Span),
        asks: &mut bool,
    ) -> Option<(Label, Label)> {
        let decl = &*tool.decl;
        let is_approved = decl.approve == Approve::IfRefused;
        let (mut seen, mut seen_with_result) = (Label::BOTTOM, Label::BOTTOM);
        for (name, form) in &decl.plain {
            let Some(at) = decl.params.iter().position(|p| p.name == *name) else { continue };
            let own = offered.label(&mut self.lattice, name);
            if self.is_trusted(Label::BOTTOM, own) {
                continue;
            }
            let in_set = choices.iter().any(|c| c.params.contains(name));
            let (request, tokens) = self.request_tokens(tool.bounds[at]);
            if !in_set || is_approved {
                // Whether a set has the argument must not show in the label of an approved call.
                seen = self.lattice.join(seen, request);
                // Whether a text is looked at depends on its label. The result must not tell of an argument
                // that only completes the call.
                if !decl.completes.contains(name) {
                    seen_with_result = self.lattice.join(seen_with_result, request);
                }
            }
            let Some((_, data)) = args.get(at).filter(|_| !in_set) else { continue };
            self.charge(Plain::cost(data));
            if let Some(link) = form.refused(data, &tokens) {
                if is_approved {
                    *asks = true;
                    continue;
                }
                // The verdict says what the argument is like, and no less than the record.
                let verdict = self.lattice.join(s.pc, offered.v.label);
                let verdict = self.lattice.join(verdict, own);
                let verdict = self.lattice.join(verdict, seen);
                let (kind, found, tool) = (link.kind.describe(), clip(&link.text), &decl.name);
                let message = format!(
                    "`{tool}`: the argument `{name}` is untrusted and has {kind} that is not in the request: `{found}`"
                );
                let trusted = self.lattice.reclassify(Label::BOTTOM, own);
                let broken = (Part::Form(Some(name.clone())), own, trusted);
                self.deny(s, tool, broken, verdict, (span, message));
                return None;
            }
        }
        Some((seen, seen_with_result))
    }

    /// Refuses a call because of an argument: the part, its label and the bound that it breaks.
    fn deny(
        &mut self,
        s: &mut Strand,
        tool: &Name,
        (part, label, bound): (Part, Label, Label),
        verdict: Label,
        (span, message): (Span, String),
    ) {
        self.note_denied(tool);
        s.fail(ErrorCode::Policy, verdict, span, message);
        s.refused(part, Some(tool), label, bound);
        self.refused(s);
    }

    /// The label of all that a call is given but the arguments that only complete it.
    fn given_without(&mut self, offered: &Offered<'_>, decl: &core_ir::ToolDecl, pc: Label) -> Label {
        let mut given = self.lattice.join(pc, offered.v.label);
        for param in decl.params.iter().filter(|p| !decl.completes.contains(&p.name)) {
            let own = offered.label(&mut self.lattice, &param.name);
            given = self.lattice.join(given, own);
        }
        given
    }

    /// Looks at the closed forms of arguments; false if one has not its form.
    fn admits_patterns(
        &mut self,
        s: &mut Strand,
        tool: &Tool,
        offered: &Offered<'_>,
        args: &[(Name, Data)],
        span: Span,
    ) -> bool {
        let decl = &*tool.decl;
        for (name, pattern) in &decl.pattern {
            let own = offered.label(&mut self.lattice, name);
            let Some((_, data)) = args.iter().find(|(n, _)| n == name) else { continue };
            if own == Label::BOTTOM {
                continue;
            }
            self.charge(Plain::cost(data));
            if pattern.matches(data) {
                continue;
            }
            let verdict = self.lattice.join(s.pc, offered.v.label);
            let verdict = self.lattice.join(verdict, own);
            let (tool, pattern) = (&decl.name, clip(pattern.as_str()));
            let message = format!("`{tool}`: the argument `{name}` does not match the pattern `{pattern}`");
            let broken = (Part::Pattern(name.clone()), own, Label::BOTTOM);
            self.deny(s, tool, broken, verdict, (span, message));
            return false;
        }
        true
    }

    /// Compares who may read an argument with those whom other arguments name; false if one is refused.
    fn admits_readers(
        &mut self,
        s: &mut Strand,
        tool: &Tool,
        offered: &Offered<'_>,
        args: &[(Name, Data)],
        span: Span,
    ) -> bool {
        let decl = &*tool.decl;
        for (name, who) in &decl.includes {
            let own = offered.label(&mut self.lattice, name);
            // The verdict says which label the argument has and what the others say, and no less than the
            // record.
            let mut verdict = self.lattice.join(s.pc, offered.v.label);
            verdict = self.lattice.join(verdict, own);
            let mut named = Some(Vec::new());
            for other in who {
                let label = offered.label(&mut self.lattice, other);
                verdict = self.lattice.join(verdict, label);
                let said = args.iter().find(|(n, _)| n == other);
                let said = said.and_then(|(_, data)| self.config.principals.all_readers(data));
                named = named.zip(said).map(|(all, more)| all.into_iter().chain(more).collect());
            }
            // Whom nobody knows is not told what is not public; nor are readers in lattices without them.
            let bound = named.and_then(|names| {
                let names = Data::list(names.iter().map(|n| Data::str(&**n)));
                let label = [("sources".into(), Data::list([])), ("readers".into(), names)];
                self.lattice.resolve(&core_ir::LabelSpec::Exact(Data::record(label)))
            });
            let bound = bound.unwrap_or_default();
            let secrecy = self.lattice.reclassify(Label::BOTTOM, own);
            if self.lattice.flows(secrecy, bound) {
                continue;
            }
            let (tool, names) = (&decl.name, who.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>());
            let message = format!(
                "`{tool}`: not everybody whom {} names may read the argument `{name}`",
                names.join(" or ")
            );
            let broken = (Part::Readers(name.clone()), own, bound);
            self.deny(s, tool, broken, verdict, (span, message));
            return false;
        }
        true
    }

    /// The choice that lets an argument pass which its bound refuses for its integrity: it is in a set whose
    /// whole label flows to the bound.
    fn chosen(&mut self, tool: &Tool, param: &Name, offered: &Offered<'_>) -> Option<Choice> {
        // Taken out for as long as the lattice is needed, too.
        let sets = self.sets.take()?;
        let about = |a: &&Among| a.params.iter().any(|(n, _)| n == param);
        let choice = tool.decl.among.iter().filter(about).find_map(|among| {
            let label = sets.label(&mut self.lattice, among)?;
            self.chosen_from(tool, among, (label, sets.items(among)?), offered)
        });
        self.sets = Some(sets);
        choice
    }

    fn chosen_from(
        &mut self,
        tool: &Tool,
        among: &Among,
        (label, (items, ty)): (Label, (&[Data], &core_ir::Type)),
        offered: &Offered<'_>,
    ) -> Option<Choice> {
        let mut args = Vec::with_capacity(among.params.len());
        for (name, _) in &among.params {
            let at = tool.decl.params.iter().position(|p| p.name == *name)?;
            let bound = tool.bounds[at];
            let own = offered.label(&mut self.lattice, name);
            // Secrecy is never vouched for.
            let secrecy = self.lattice.reclassify(bound, own);
            if !self.lattice.flows(secrecy, bound) || !self.lattice.flows(label, bound) {
                return None;
            }
            if let Some(choosers) = tool.choosers {
                let most = self.lattice.join(bound, choosers);
                if !self.lattice.flows(own, most) {
                    return None;
                }
            }
            args.push(match offered.argument(name) {
                Some(a) => self.data(a).ok()?,
                None => Data::Null,
            });
        }
        self.charge(items.len() as u64);
        let mut of = among.choices(items, ty, &args.iter().collect::<Vec<_>>())?;
        if let (AmongSource::Request, [(name, _)]) = (&among.source, &among.params[..])
            && let Some(param) = tool.decl.params.iter().find(|p| p.name == *name)
        {
            // A request has tokens of several types.
            let mut ty = &param.ty;
            while let core_ir::Type::Option(inner) | core_ir::Type::List(inner) = ty {
                ty = inner;
            }
            of = SetSize::Values(items.iter().filter(|token| ty.check(token).is_ok()).count());
        }
        Some(Choice { params: among.params.iter().map(|(n, _)| n.clone()).collect(), of })
    }

    /// Returns whether each argument flows to its bound in full, or is in a set.
    fn is_clean(&mut self, tool: &Tool, offered: &Offered<'_>, choices: &mut Vec<Choice>) -> bool {
        tool.decl.params.iter().zip(&tool.bounds).all(|(param, bound)| {
            let label = offered.label(&mut self.lattice, &param.name);
            if self.lattice.flows(label, *bound) {
                return true;
            }
            let choice = self.chosen(tool, &param.name, offered);
            let is_chosen = choice.is_some();
            choice.into_iter().for_each(|choice| note_choice(choices, choice));
            is_chosen
        })
    }

    /// The label of the sets that decide whether somebody is asked.
    fn sets_label(&mut self, decl: &core_ir::ToolDecl) -> Label {
        let mut all = Label::BOTTOM;
        if decl.approve == Approve::IfRefused {
            for among in &decl.among {
                let label = self.sets.as_ref().and_then(|s| s.label(&mut self.lattice, among));
                all = self.lattice.join(all, label.unwrap_or_default());
            }
        }
        all
    }

    /// Returns whether data of a label may be where a tool allows up to `bound`. Approval vouches for where
    /// it comes from, not for who may see it.
    fn admits(&mut self, tool: &Tool, label: Label, bound: Label) -> bool {
        let label = if tool.decl.approve.may_ask() { self.lattice.reclassify(bound, label) } else { label };
        self.lattice.flows(label, bound)
    }

    /// The bound that refuses: with approval no integrity is refused.
    fn enforced(&mut self, tool: &Tool, bound: Label) -> Label {
        let top = self.lattice.top();
        if tool.decl.approve.may_ask() { self.lattice.reclassify(top, bound) } else { bound }
    }

    /// The arguments as data in the order of the parameters, or why they are not.
    fn arguments(
        &mut self,
        decl: &core_ir::ToolDecl,
        offered: &Offered<'_>,
    ) -> Result<Vec<(Name, Data)>, (ErrorCode, String)> {
        let Offered { named, fields, v, .. } = *offered;
        let wrong = |message: String| Err((ErrorCode::Type, message));
        match (named, fields) {
            (true, None) if !(decl.params.is_empty() && matches!(v.kind, Kind::Null)) => {
                return wrong(format!("expected a record of arguments, found {}", v.kind()));
            }
            (true, Some(fields)) => {
                let known = |n: &Name| decl.params.iter().any(|p| p.name == *n);
                if let Some((n, _)) = fields.iter().find(|(n, _)| !known(n)) {
                    return wrong(format!("there is no parameter `{n}`"));
                }
            }
            _ => {}
        }
        let mut args = Vec::with_capacity(decl.params.len());
        for param in &decl.params {
            let data = match offered.argument(&param.name) {
                Some(a) => self.data(a),
                None if matches!(param.ty, core_ir::Type::Option(_)) => Ok(Data::Null),
                None => return wrong(format!("the argument `{}` is missing", param.name)),
            };
            match data {
                Ok(data) => match self.checked(&param.ty, &data) {
                    Ok(()) => args.push((param.name.clone(), data)),
                    Err((path, cause)) => {
                        return wrong(format!("argument `{}`: {path}: {cause}", param.name));
                    }
                },
                Err(NotData::Function) => {
                    return wrong(format!("argument `{}`: {}", param.name, NotData::Function.message()));
                }
                Err(e) => return Err((ErrorCode::Limit, e.message())),
            }
        }
        Ok(args)
    }

    /// The record that a policy is applied to: for each argument its value and the label that is compared
    /// with the bound. `record` is the label of the record that the arguments came in.
    fn described(&mut self, pc: Label, record: Label, shown: Vec<(Name, Value)>, labels: &[Label]) -> Value {
        let fields = shown
            .into_iter()
            .zip(labels)
            .map(|((name, value), label)| {
                // What label data has is known to those who may see the data.
                let data = self.lattice.data_of(*label);
                let seen = self.lattice.join(record, *label);
                let shown = Value::from_data(&mut self.lattice, seen, &data);
                let both = vec![("value".into(), value), ("label".into(), shown)];
                (name, Value::node(&mut self.lattice, pc, Body::Record(both.into())))
            })
            .collect();
        Value::node(&mut self.lattice, pc, Body::Record(fields))
    }

    /// The policy of a tool has decided.
    pub(super) fn judged(&mut self, s: &mut Strand, call: Cleared, verdict: Value) -> Option<Question> {
        let edited = call.edited;
        let question = self.verdict(s, call, verdict);
        self.raised_after_edit(s, edited);
        question
    }

    fn verdict(&mut self, s: &mut Strand, mut call: Cleared, verdict: Value) -> Option<Question> {
        let tool = call.tool.clone();
        let tool = tool_of(&tool);
        let (name, span) = (&tool.decl.name, call.span);
        let label = self.blame(s.pc, &verdict);
        // Whether the call is made is seen by whoever sees the call.
        if !self.admits(tool, label, tool.channel) {
            let (found, channel) = (self.lattice.show(label), self.lattice.show(tool.channel));
            let message =
                format!("what the policy of `{name}` says depends on {found}, but {channel} sees the call");
            s.fail(ErrorCode::Flow, label, span, message);
            s.refused(Part::Verdict, Some(name), label, tool.channel);
            return None;
        }
        let asks = matches!(verdict.body(), Some(Body::Tag(tag, _)) if **tag == *ASK_VERDICT);
        match &verdict.kind {
            _ if asks || matches!(verdict.kind, Kind::Bool(true)) => {
                call.asks |= asks;
                call.given = self.lattice.join(call.given, label);
                call.label = self.lattice.join(call.label, label);
                call.value = self.lattice.join(call.value, label);
                return self.proceed(s, call);
            }
            Kind::Bool(false) => {
                self.note_denied(name);
                s.fail(ErrorCode::Policy, label, span, format!("the policy of `{name}` refuses the call"));
            }
            Kind::Str(why) => {
                self.note_denied(name);
                s.fail(
                    ErrorCode::Policy,
                    label,
                    span,
                    format!("the policy of `{name}` refuses the call: {why}"),
                );
            }
            _ => {
                let message = format!(
                    "the policy of `{name}` must give a boolean or a reason, found {}",
                    verdict.kind()
                );
                s.fail(ErrorCode::Type, label, span, message);
            }
        }
        None
    }

    /// Answers a question where it stands, if somebody can; gives it back if not.
    pub(super) fn answered_at_once(
        &mut self,
        s: &mut Strand,
        question: Question,
        world: &mut dyn Answers,
    ) -> Option<Question> {
        let is_repeated = question.counts == CallCount::Repeated;
        if self.lattice.keeps_origins() || !question.choices.is_empty() || is_repeated {
            return Some(question);
        }
        s.stands();
        let (channel, answer, span) = (question.channel, question.answer, question.span);
        let asked = Asked { channel, answer, span, lattice: &self.lattice, strand: s };
        let response = match &question.call {
            Call::Tool { tool, args } => world.tool(&asked, tool, Args::new(tool, args)).map(Response::Tool),
            Call::Recall { store, key } => world.recall(&asked, store, *key).map(Response::Recall),
            Call::Remember { store, key, value } => {
                world.remember(&asked, store, *key, value).map(Response::Remember)
            }
            Call::Sample { probability, draw } => {
                world.sample(&asked, probability, *draw).map(Response::Sample)
            }
            Call::Model { .. } | Call::Approve { .. } => None,
        };
        let Some(response) = response else { return Some(question) };
        let Question { pending, call, answer, span, .. } = question;
        let number = s.requests;
        s.made(&self.lattice, &call);
        s.state = State::Waiting;
        s.waiting = Some(Waiting { number, pending, answer, span });
        self.answer(s, number, response);
        None
    }

    /// Asks for approval, if the tool wants it, or makes the call.
    fn proceed(&mut self, s: &mut Strand, call: Cleared) -> Option<Question> {
        let tool = tool_of(&call.tool);
        if call.edited.is_some() {
            return self.make_approved(s, call);
        }
        if !call.asks {
            return self.make(s, call);
        }
        // Nobody is asked for a call that there can't be.
        let Some(counts) = self.call_count(&tool.decl, call.counts) else {
            self.used_up(s, &call.tool, call.span);
            return None;
        };
        let asked = Call::Approve {
            tool: tool.decl.clone(),
            args: call.args.clone(),
            labels: call.labels.clone().into(),
            control: call.control,
        };
        // Nothing is called after a confirmation: who sees the question are those who may see the value.
        let called = if tool.decl.confirms { Label::BOTTOM } else { tool.channel };
        let channel = self.lattice.join(called, call.given);
        // Who is asked only where needed tells what is in the sets.
        let sets = self.sets_label(&tool.decl);
        let answer = self.lattice.join(call.label, sets);
        let (span, given, inputs) = (call.span, self.given(&call), call.given);
        Some(Question {
            pending: Pending::Approve(Box::new(call)),
            call: asked,
            channel,
            answer,
            inputs,
            span,
            given,
            choices: Box::default(),
            counts,
        })
    }

    /// The call, which somebody has approved. The answer vouches for where the value of a confirmation comes
    /// from, not for who may see it.
    fn make_approved(&mut self, s: &mut Strand, mut call: Cleared) -> Option<Question> {
        if tool_of(&call.tool).decl.confirms {
            let secrecy = self.lattice.reclassify(Label::BOTTOM, call.label);
            call.label = self.lattice.join(s.pc, secrecy);
        }
        self.make(s, call)
    }

    /// A call was approved with other arguments. It is checked as the tool applied to the value with these
    /// arguments is, and made if it passes; nobody is asked again.
    ///
    /// Whoever approved it has seen everything that the question showed, so that the new arguments are as
    /// secret as all of that. Where they come from is the approver.
    fn edited(
        &mut self,
        s: &mut Strand,
        call: Cleared,
        args: Vec<(Name, Data)>,
        (by, answer): (&core_ir::LabelSpec, Label),
    ) -> Option<Question> {
        let Cleared { tool, applied, given, span, .. } = call;
        let own = self.lattice.resolve_or_top(by);
        let decided = self.lattice.join(given, own);
        let label = self.lattice.reclassify(own, decided);
        let label = self.answered_by(s, label, given, own, || What::Edited, span);
        for (_, data) in &args {
            self.charge_data(data);
        }
        let written: Vec<(Name, Value)> = args
            .iter()
            .map(|(n, data)| (n.clone(), Value::of_answer(&mut self.lattice, label, data.clone())))
            .collect();
        let with = |fields: &Fields| {
            written.iter().fold(fields.clone(), |fields, (name, value)| fields.with(name, value.clone()))
        };
        let body = match applied.body() {
            Some(Body::Args(of, fields)) => Body::Args(of.clone(), with(fields)),
            Some(Body::Record(fields)) if is_named(&tool_of(&tool).decl, Some(fields)) => {
                Body::Record(with(fields))
            }
            // The one argument itself, if there is one.
            _ => {
                let only = tool_of(&tool).decl.params.first().map(|p| (p.name.clone(), applied.clone()));
                Body::Record(with(&only.into_iter().collect()))
            }
        };
        let value = Value::node(&mut self.lattice, applied.label, body);
        let args = Data::record(args);
        let text = format!(
            "The call of `{}` was approved with changed arguments: {}",
            tool_of(&tool).decl.name,
            args.to_json()
        );
        let told = Arc::new(Remark { label: decided, text });
        s.conversation.edits.get_or_insert_default().push(told);
        let edited = Edited { label: decided, answer: self.lattice.join(answer, decided) };
        let question = self.check_call(s, tool, value, span, Some(edited));
        self.raised_after_edit(s, Some(edited));
        question
    }

    /// An error that follows from an approval with other arguments says no less than the answer.
    pub(super) fn raised_after_edit(&mut self, s: &mut Strand, edited: Option<Edited>) {
        if let (State::Raise(failure), Some(edited)) = (&mut s.state, edited) {
            failure.label = self.lattice.join(failure.label, edited.answer);
        }
    }

    /// The call, which is counted, if there may be one more. A confirmation gives its first argument.
    fn make(&mut self, s: &mut Strand, mut call: Cleared) -> Option<Question> {
        let decl = &tool_of(&call.tool).decl;
        let Some(counts) = self.call_count(decl, call.counts) else {
            self.used_up(s, &call.tool, call.span);
            return None;
        };
        if counts == CallCount::More {
            let counted = self.counted.get_or_insert_default();
            match counted.iter_mut().find(|(n, _)| *n == decl.name) {
                Some((_, calls)) => *calls += 1,
                None => counted.push((decl.name.clone(), 1)),
            }
        }
        if tool_of(&call.tool).decl.confirms {
            let confirmed = match call.args.is_empty() {
                true => Data::Null,
                false => call.args.swap_remove(0).1,
            };
            s.give(Value::of_answer(&mut self.lattice, call.label, confirmed));
            return None;
        }
        let given = self.given(&call);
        let places = self.places(tool_of(&call.tool), &call.args);
        Some(Question { given, counts, ..call.question(places) })
    }

    /// How a further call of a tool counts, if there may be one; `decided` says that untrusted data decides
    /// it.
    fn call_count(&self, decl: &core_ir::ToolDecl, decided: bool) -> Option<CallCount> {
        let Some(most) = decl.at_most.filter(|_| decided) else { return Some(CallCount::No) };
        let calls = |of: &[(Name, u64)]| of.iter().find(|(n, _)| *n == decl.name).map_or(0, |(_, n)| *n);
        if calls(self.counted_calls()) < most {
            Some(CallCount::More)
        } else if calls(&self.config.counted) > 0 {
            Some(CallCount::Repeated)
        } else {
            None
        }
    }

    /// Ends the run at a request that is no call of an earlier run; false if the strand does not wait for it.
    pub(crate) fn is_used_up(&mut self, s: &mut Strand, number: u32) -> bool {
        let Some(Waiting { pending, span, .. }) = s.waiting.take_if(|w| w.number == number) else {
            return false;
        };
        match pending {
            Pending::Tool(tool, ..) => self.used_up(s, &tool, span),
            Pending::Approve(call) => self.used_up(s, &call.tool, call.span),
            // Nothing else counts.
            pending => s.fail(pending.error(), s.pc, span, MISMATCH),
        }
        true
    }

    /// Ends the run: in branches the order of responses decides which call is the last, so no program may
    /// catch the error.
    fn used_up(&mut self, s: &mut Strand, tool: &Node, span: Span) {
        let tool = tool_of(tool);
        let label = self.lattice.join(s.pc, tool.channel);
        let (name, most) = (&tool.decl.name, tool.decl.at_most.unwrap_or_default());
        let message =
            format!("`{name}` was called as often as untrusted data may decide (`at_most` is {most})");
        s.fail(ErrorCode::Budget, label, span, message);
    }

    /// Returns whether trusted data alone decides what runs at `pc` with a record of this label.
    pub(crate) fn is_trusted(&mut self, pc: Label, record: Label) -> bool {
        let label = self.lattice.join(pc, record);
        !self.lattice.is_untrusted(label)
    }

    /// The arguments with their labels, if the run explains flow.
    fn given(&self, call: &Cleared) -> Vec<(Part, Label)> {
        if !self.lattice.keeps_origins() {
            return Vec::new();
        }
        call.args
            .iter()
            .zip(&call.labels)
            .map(|((name, _), label)| (Part::Argument(name.clone()), *label))
            .collect()
    }

    /// The label of an answer that came from the world: the request is where it comes from.
    pub(super) fn answered_by(
        &mut self,
        s: &Strand,
        label: Label,
        before: Label,
        own: Label,
        what: impl FnOnce() -> What,
        span: Span,
    ) -> Label {
        self.lattice.mark(label, before, own, || {
            // The strand waits for its last request only.
            let number = s.requests.saturating_sub(1);
            let place = Place { branch: s.place.clone(), number }.path();
            Step { what: what(), span, request: Some((s.id, number)), place: Some(place) }
        })
    }

    /// `remember k V`.
    pub(super) fn remember(
        &mut self,
        s: &mut Strand,
        store: Arc<core_ir::StoreDecl>,
        key: u32,
        v: Value,
        span: Span,
    ) -> Option<Question> {
        let decl = &store.keys[key as usize];
        let bound = self.lattice.resolve(&decl.label).unwrap_or_default();
        let deep = self.blame(s.pc, &v);
        if !self.lattice.flows(deep, bound) {
            let label = self.lattice.mark(bound, Label::BOTTOM, bound, || local(What::Refused, span));
            let label = self.lattice.join(s.pc, label);
            let message =
                format!("the key `{}` holds values labeled {} at most", decl.name, self.lattice.show(bound));
            let found = format!("this value is labeled {}", self.lattice.show(deep));
            s.fail(ErrorCode::StoreRefused, label, span, message);
            s.explain(span, found);
            s.refused(Part::Value, Some(&decl.name), deep, bound);
            return None;
        }
        match self.data(&v) {
            Ok(value) => match self.checked(&decl.ty, &value) {
                Ok(()) => {
                    let (pending, call) = (Pending::Remember, Call::Remember { store, key, value });
                    let given =
                        if self.lattice.keeps_origins() { vec![(Part::Value, deep)] } else { Vec::new() };
                    return Some(Question {
                        pending,
                        call,
                        channel: bound,
                        answer: bound,
                        inputs: bound,
                        span,
                        given,
                        choices: Box::default(),
                        counts: CallCount::No,
                    });
                }
                Err((path, cause)) => {
                    s.fail(ErrorCode::Type, deep, span, format!("the key `{}`: {path}: {cause}", decl.name));
                }
            },
            Err(e) => self.not_data(s, &v, e, span),
        }
        None
    }

    /// Takes the response to request `number` of a strand; false if it does not wait for that.
    pub(crate) fn answer(&mut self, s: &mut Strand, number: u32, response: Response) -> bool {
        let Some(Waiting { pending, answer: label, span, .. }) = s.waiting.take_if(|w| w.number == number)
        else {
            return false;
        };
        let error = pending.error();
        match (pending, response) {
            (Pending::Model { mode, attempt }, Response::Model(Ok(reply))) => {
                let model = || match &mode {
                    Mode::Data(params, _) => What::Model(params.model.clone().unwrap_or_else(|| "".into())),
                    Mode::Code => What::Model("".into()),
                };
                let lc = s.conversation.label;
                s.conversation.label = self.answered_by(s, lc, lc, Label::BOTTOM, model, span);
                self.replied(s, mode, attempt, span, reply);
            }
            (Pending::Tool(tool, places, value), Response::Tool(result)) => {
                let (tool, labels) = ((tool_of(&tool), &*places), (label, value));
                let result = result.map_err(|why| (ErrorCode::Tool, why));
                if let Some(value) = self.result(s, tool, labels, Label::BOTTOM, span, result) {
                    s.give(value);
                }
            }
            (Pending::Tool(tool, places, value), Response::ToolTimeout(why)) => {
                let (tool, labels) = ((tool_of(&tool), &*places), (label, value));
                let late = Err((ErrorCode::ToolTimeout, why));
                if let Some(value) = self.result(s, tool, labels, Label::BOTTOM, span, late) {
                    s.give(value);
                }
            }
            (Pending::Tool(tool, places, value), Response::LabeledTool(result, own)) => {
                let own = self.lattice.resolve_or_top(&own);
                let (tool, labels) = ((tool_of(&tool), &*places), (label, value));
                let result = result.map_err(|why| (ErrorCode::Tool, why));
                if let Some(value) = self.result(s, tool, labels, own, span, result) {
                    s.give(value);
                }
            }
            (Pending::Approve(call), Response::Approve(Ok(()))) => {
                if let Some(question) = self.make_approved(s, *call) {
                    self.ask_again(s, question);
                }
            }
            (Pending::Approve(call), Response::Edited { args, label: by }) => {
                match self.edited(s, *call, args, (&by, label)) {
                    Some(question) => self.ask_again(s, question),
                    // The policy of the tool decides next.
                    None if matches!(s.state, State::Waiting) => s.state = State::Run,
                    None => {}
                }
            }
            (Pending::Approve(call), Response::Approve(Err(why))) => {
                let message = format!("`{}`: not approved: {why}", tool_of(&call.tool).decl.name);
                s.fail(error, label, span, message);
                s.permanently();
            }
            (Pending::Approve(call), Response::Unattended) => {
                let message = format!("`{}`: not approved: {NOBODY}", tool_of(&call.tool).decl.name);
                s.fail(error, label, span, message);
                s.unattended();
            }
            (Pending::Recall { store, key }, Response::Recall(result)) => {
                if let Some(value) = self.found(s, (store, key), label, span, result) {
                    s.give(value);
                }
            }
            (Pending::Remember, Response::Remember(result)) => {
                if let Some(value) = self.kept(s, label, span, result) {
                    s.give(value);
                }
            }
            (Pending::Sample { left, right }, Response::Sample(first)) => {
                s.go(if first { left } else { right });
            }
            (Pending::Model { .. }, Response::Model(Err(message))) => s.fail(error, label, span, message),
            (Pending::Model { .. }, Response::Permanent(message)) => {
                s.fail(error, label, span, message);
                s.permanently();
            }
            (Pending::Model { .. }, Response::Uncleared(models)) => self.uncleared(s, &models, span),
            (_, Response::Late(which)) => {
                let limit = s.deadlines.scopes().nth(which as usize);
                match limit.map(|limit| (limit.span, limit.deadline.seconds.clone())) {
                    Some((at, seconds)) => {
                        s.fail(ErrorCode::Timeout, label, span, format!("no answer within {seconds} s"));
                        s.explain(at, "this limit had passed");
                    }
                    None => s.fail(error, label, span, MISMATCH),
                }
            }
            _ => s.fail(error, label, span, MISMATCH),
        }
        true
    }

    /// The label of the answer to `recall k`, and of the channel.
    pub(super) fn recalls(&mut self, key: &core_ir::KeyDecl, pc: Label) -> Label {
        let label = self.lattice.resolve_or_top(&key.label);
        self.lattice.join(label, pc)
    }

    /// The value of a key of a store of the current code: a strand that waits stays in its code. `None` if
    /// there is an error.
    fn found(
        &mut self,
        s: &mut Strand,
        (store, key): (core_ir::StoreId, u32),
        label: Label,
        span: Span,
        result: Result<Option<Data>, String>,
    ) -> Option<Value> {
        let data = match result {
            Ok(data) => data,
            Err(message) => {
                s.fail(ErrorCode::Store, label, span, message);
                return None;
            }
        };
        let decl = &s.code.store(store).keys[key as usize];
        let label = self.recalled(s, decl, label, span);
        let Some(data) = data else { return Some(Value::new(label, Kind::Null)) };
        self.charge_data(&data);
        let mut steps = 0;
        let checked = decl.ty.check_counting(&data, &mut steps);
        self.charge(steps);
        match checked {
            Ok(()) => Some(Value::of_answer(&mut self.lattice, label, data)),
            Err((path, cause)) => {
                let message = format!("what the key `{}` holds: {path}: {cause}", decl.name);
                s.fail(ErrorCode::Type, label, span, message);
                None
            }
        }
    }

    /// The value of `remember k V`. Nothing if there is an error.
    fn kept(
        &mut self,
        s: &mut Strand,
        label: Label,
        span: Span,
        result: Result<(), String>,
    ) -> Option<Value> {
        match result {
            Ok(()) => Some(Value::unit(s.pc)),
            Err(message) => {
                s.fail(ErrorCode::Store, label, span, message);
                None
            }
        }
    }

    /// The label of what a key holds.
    fn recalled(&mut self, s: &Strand, key: &core_ir::KeyDecl, label: Label, span: Span) -> Label {
        if !self.lattice.keeps_origins() {
            return label;
        }
        let own = self.lattice.resolve(&key.label).unwrap_or_default();
        self.answered_by(s, label, s.pc, own, || What::Key(key.name.clone()), span)
    }

    /// The value of a tool that returned, or failed; it may have stated a label of its own. Nothing if there
    /// is an error.
    fn result(
        &mut self,
        s: &mut Strand,
        (tool, places): (&Tool, &[(Name, Label)]),
        (label, value): (Label, Label),
        own: Label,
        span: Span,
        result: Result<Data, (ErrorCode, String)>,
    ) -> Option<Value> {
        let decl = &tool.decl;
        let of_failure = self.lattice.join(label, own);
        // That it succeeds is known at its label: a call that fails goes on above it, or not at all.
        let before = if result.is_ok() { value } else { label };
        let label = self.lattice.join(before, own);
        let own = self.lattice.join(tool.result, own);
        let label = self.answered_by(s, label, before, own, || What::Tool(decl.name.clone()), span);
        match result {
            Ok(data) => {
                self.charge_data(&data);
                let checked = self.checked(&decl.result, &data);
                let value = match decl.parts.is_empty() {
                    true => Value::of_answer(&mut self.lattice, label, data),
                    false => self.stamped(s, tool, places, (label, span), &data),
                };
                match checked {
                    Ok(()) => return Some(value),
                    Err((path, cause)) => {
                        // The check looked at every part.
                        let label = value.deep_label(&mut self.lattice);
                        let label = self.lattice.join(label, of_failure);
                        let message = format!("the result of `{}`: {path}: {cause}", decl.name);
                        s.fail(ErrorCode::Type, label, span, message);
                    }
                }
            }
            Err((code, message)) => {
                let label = self.of_failure(tool, places, label);
                s.fail(code, label, span, format!("`{}`: {message}", decl.name));
            }
        }
        None
    }

    /// Makes a request when the strand runs next: it was waiting and asks again.
    fn ask_again(&mut self, s: &mut Strand, question: Question) {
        s.begin_region();
        s.kont.push(Frame::Ask(Box::new(question)));
        s.give(Value::new(s.pc, Kind::Null));
    }

    /// The form in generated code that this run does not admit.
    fn forbidden(&mut self, code: &Code) -> Option<&'static str> {
        self.charge(code.len() as u64);
        let tool = |term: &Term| match term {
            Term::Tool(_) | Term::Args(..) => true,
            Term::Llm(_, params) | Term::Recv(Recv::Data(params)) => !params.tools.is_empty(),
            _ => false,
        };
        if code.iter().any(|(_, term)| tool(term)) {
            return Some("tool");
        }
        // A declaration of its own would be a second one of a store, the program's or another program's.
        if code.iter().any(|(_, term)| matches!(term, Term::Mem(..))) {
            return Some("mem");
        }
        // What it must not contain, it must not borrow from the prelude either.
        if self.config.generated_endorse {
            None
        } else if code.reaches(|t| matches!(t, Term::Endorse(..))) {
            Some("endorse")
        } else if code.reaches(|t| matches!(t, Term::Declassify(..))) {
            Some("declassify")
        } else {
            None
        }
    }

    /// A model's reply arrived.
    fn replied(&mut self, s: &mut Strand, mode: Mode, attempt: u32, span: Span, mut reply: Reply) {
        let lc = s.conversation.label;
        if let Reply::ToolCalls(calls) = &mut reply {
            let mut calls = std::mem::take(calls);
            calls.reverse();
            reply = match calls.pop() {
                Some((name, args)) => Reply::ToolCall { name, args },
                None => Reply::Text(String::new()),
            };
            s.conversation.pending = (!calls.is_empty()).then(|| Box::new(calls));
        }
        match &reply {
            Reply::Text(text) => {
                self.charge(message_cost(text));
                s.message(Role::Assistant, text.as_str().into(), None);
            }
            Reply::ToolCall { name, args } => {
                let text = args.to_json().to_string();
                self.charge_data(args);
                s.message(Role::Assistant, text.into(), Some(Arc::new((name.clone(), args.clone()))));
            }
            Reply::ToolCalls(_) => {}
        }
        match mode {
            Mode::Code => {
                let Reply::Text(text) = reply else {
                    let message = "the model called a tool where code was expected";
                    let label = self.lattice.join(s.pc, lc);
                    return s.fail(ErrorCode::Model, label, span, message);
                };
                let parsed = match &self.config.parser {
                    Some(parser) => parser.parse(&text),
                    None => Err("this run reads no generated code".to_string()),
                };
                let parsed = parsed.and_then(|code| match self.forbidden(&code) {
                    None => Ok(code),
                    Some(what) => Err(format!("generated code may not contain `{what}`")),
                });
                match parsed {
                    Ok(code) => {
                        let root = code.instructions().root();
                        s.enter(Some(code), (lc, span), root, s.stack.len());
                        s.kont.push(Frame::Generated);
                        s.state = State::Run;
                    }
                    Err(message) => {
                        let no = Value::new(lc, Kind::Bool(false));
                        let parts = vec![no, Value::str(lc, message)];
                        s.give(Value::node(&mut self.lattice, lc, Body::List(parts.into())));
                    }
                }
            }
            Mode::Data(params, code) => match decode_reply(&reply, &params, &code) {
                Ok(data) => {
                    self.charge_data(&data);
                    s.give(Value::from_data(&mut self.lattice, lc, &data));
                }
                Err(why) if attempt < params.repair => {
                    s.conversation.pending = None;
                    let text = format!(
                        "That reply cannot be used: {why}. Reply again, with nothing but the corrected answer."
                    );
                    s.message(Role::User, text.into(), None);
                    if let Some(question) = self.receive(s, Mode::Data(params, code), attempt + 1, span) {
                        self.ask_again(s, question);
                    }
                }
                Err(why) => {
                    s.conversation.pending = None;
                    let label = self.lattice.join(s.pc, lc);
                    s.fail(
                        ErrorCode::Decode,
                        label,
                        span,
                        format!("the model's reply cannot be used: {why}"),
                    );
                }
            },
        }
    }
}

/// Returns whether a tool gets the arguments by their names, and not the bare value.
fn is_named(decl: &core_ir::ToolDecl, fields: Option<&Fields>) -> bool {
    match (&decl.params[..], fields) {
        ([only], Some(fields)) => fields.get(&only.name).is_some(),
        ([_], None) => false,
        _ => true,
    }
}

/// The value that a tool is applied to.
#[derive(Clone, Copy)]
struct Offered<'v> {
    v: &'v Value,
    /// The fields of a record, or of the arguments of a planned call.
    fields: Option<&'v Fields>,
    /// True if each parameter gets the field of its name; false for the bare value.
    named: bool,
    /// True if the label of the record counts as control.
    planned: bool,
}

impl<'v> Offered<'v> {
    /// The argument for a parameter.
    fn argument(&self, name: &Name) -> Option<&'v Value> {
        match (self.named, self.fields) {
            (false, _) => Some(self.v),
            (true, Some(fields)) => fields.get(name),
            (true, None) => None,
        }
    }

    /// The label of an argument that is compared with the bound.
    fn label(&self, lattice: &mut Lattice, name: &Name) -> Label {
        match self.argument(name) {
            Some(a) if self.planned => a.deep_label(lattice),
            Some(a) => a.deep_label_in(lattice, self.v.label),
            // One that is missing counts as `null`, for that it is missing is a fact about the record.
            None => self.v.label,
        }
    }
}

/// Adds a choice, unless it is known from another of its parameters.
fn note_choice(choices: &mut Vec<Choice>, choice: Choice) {
    if !choices.contains(&choice) {
        choices.push(choice);
    }
}

/// A reply as the parameters want it.
fn decode_reply(reply: &Reply, params: &ModelParams, code: &Code) -> Result<Data, String> {
    let offered = || params.tools.iter().map(|t| code.tool(*t));
    match reply {
        Reply::Text(text) => {
            let data = decode::decode(text, params.result.as_ref())?;
            Ok(if params.tools.is_empty() { data } else { Data::Tag("final".into(), Arc::new(data)) })
        }
        Reply::ToolCall { name, args } => {
            let Some(tool) = offered().find(|t| t.name == *name) else {
                let names: Vec<&str> = offered().map(|t| &*t.name).collect();
                let names = if names.is_empty() { "none".to_string() } else { names.join(", ") };
                return Err(format!("there is no tool `{}`; offered: {names}", clip(name)));
            };
            if !tool.params.is_empty() && !matches!(args, Data::Record(_)) {
                let found = clip(&args.to_json().to_string());
                return Err(format!("the arguments of `{name}` are no JSON object: {found}"));
            }
            for param in &tool.params {
                match (args.field(&param.name), &param.ty) {
                    (Some(data), ty) => ty.check(data).map_err(|(path, cause)| {
                        format!("the argument `{}` of `{name}`: {path}: {cause}", param.name)
                    })?,
                    (None, core_ir::Type::Option(_)) => {}
                    (None, _) => return Err(format!("the argument `{}` of `{name}` is missing", param.name)),
                }
            }
            Ok(Data::Tag(tool.name.clone(), Arc::new(args.clone())))
        }
        Reply::ToolCalls(_) => Err("several tool calls at once".to_string()),
    }
}

impl Cleared {
    /// The call itself.
    fn question(self, places: Box<[(Name, Label)]>) -> Question {
        let tool = tool_of(&self.tool);
        let call = Call::Tool { tool: tool.decl.clone(), args: self.args };
        let (channel, answer, inputs, span) = (tool.channel, self.label, self.given, self.span);
        let (pending, choices) = (Pending::Tool(self.tool, places, self.value), self.choices.into());
        let (given, counts) = (Vec::new(), CallCount::No);
        Question { pending, call, channel, answer, inputs, span, given, choices, counts }
    }
}

/// The tool of a node that is one.
fn tool_of(node: &Node) -> &Tool {
    match &node.body {
        Body::Tool(tool) => tool,
        // INVARIANT: `Cleared::tool` and `Pending::Tool` are only ever made of tools.
        _ => unreachable!("a tool"),
    }
}
