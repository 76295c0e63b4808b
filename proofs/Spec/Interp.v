(** * The definition of evaluation

    A fuel-based interpreter.  [eval H n pc env s e] runs [e] under the
    program-counter label [pc]; running out of fuel is an outcome of its own
    ([Out]), which no program can catch.  Each clause is one row of the table
    in docs/calculus.md section 3; where the two differ, the README of this folder
    says why. *)

Require Import List String QArith Bool.
Require Import Entail.Spec.Labels Entail.Spec.Syntax.
Import ListNotations.

Section Interp.
  Context {L : lattice} {F : factoring L}.
  Local Notation lval := (lval L).
  Local Notation val := (val L).

  (** ** The world *)

  (** What a run asks of the world, and the scopes of time limits, which it tells.
      Three are told to nobody, and are there for the theorems: [RKey], where a
      call gets its idempotency key; [RArgs], that a program made arguments of a
      planned call: the fields, and some of the parts; [RDecided], the label of
      what decided that a call is made, and with which record. *)
  Inductive request :=
  | RModel (m : name) (messages : list string)
  | RKey (f : name)
  | RTool (f : name) (args : list data) (key : string)
  | RApprove (f : name) (args : list data) (labels : list L)
  | RSample (p : Q)
  | RRecall (k : name)
  | RRemember (k : name) (d : data)
  | RArgs (f : name) (fields : list string) (parts : list (string * data))
  | RDecided (f : name) (l : L)
  | RWithin (n : Q)
  | REnd.

  (** A request and the label of the channel it goes over: who can see it. *)
  Record event := Event { channel : L; what : request }.

  (** What an observer at [z] sees of a trace (newest event first). *)
  Definition visible (z : L) (t : list event) : list event :=
    filter (fun ev => flows (channel ev) z) t.

  (** What a store holds under one label, the last used first: keys, when they
      were written, and their data.  There is one account per label; nothing is
      counted over two labels. *)
  Definition account := list (name * (nat * data)).

  Definition entry (k : name) (a : account) : option (nat * data) :=
    option_map snd (find (fun e => String.eqb k (fst e)) a).
  Definition without (k : name) (a : account) : account :=
    filter (fun e => negb (String.eqb k (fst e))) a.

  (** Where arguments of a tool may be from ([among]): a set; who may choose from
      it, anybody or ([delegate]) whoever the label names; the parameters that are
      chosen together, each by its position; and which arguments the set holds, given
      its items: any function of these and of the arguments. *)
  Record chooser := Chooser {
    from : name;
    chosen_by : option L;
    chosen_for : list nat;
    holds : list data -> list data -> bool
  }.

  (** The form of arguments ([plain], [pattern], [includes]): a rule about the labels
      and the data of some parameters.  It may look at a set, as [plain] at the tokens
      of the request, whose label is then joined to what is found ([tells]).  The
      labels alone decide whether the rule applies. *)
  Record form := Form {
    looks_at : list nat;
    beside : option name;
    tells : L;
    applies : list L -> bool;
    unfit : list data -> list (L * bool) -> list data -> option string
  }.

  (** The label of a part of an answer: any function of what parts before it say,
      whose own labels are joined to it.  It says who may see the part, or whom it
      is from: a label that is stated, those that an argument names, the sources or
      the readers that parts name. *)
  Record part_label := PartLabel { named : list nat; says : list data -> L }.

  (** What is at a path of an answer: a scalar, or a container.  Its parts are
      labeled one after the other, and then put in their order ([order]: for each
      position, which of them). *)
  Inductive answer :=
  | AScalar (k : scalar)
  | AParts (c : con) (labels : list part_label) (order : list nat).

  (** Everything abstract: models, tools, primitives, samples and policy.
      None of these functions is assumed to have any property.  A response is
      a function of the request and of the requests that were visible at the
      label of the response: that is the assumption about the world, and it is
      built into the interpreter by the arguments these functions are given.
      [inl] is success, [inr] the message of a failure.  [refuses] is the other
      way in which a request fails, which every kind of request has: the model or
      the store is broken, or a time limit has passed.  It may depend on what is
      visible both at the channel of the request and at the label of the answer;
      the time limits around a request are among that ([RWithin], [REnd]). *)
  Record host := Host {
    model : name -> list string -> list event -> string + string;
    further : name -> string -> list string;      (* the other calls of a reply with several *)
    unasked : name -> option string;              (* what is received, without asking, if no call waits *)
    offers : name -> bool;                        (* whether it is asked with tools *)
    parse : string -> term + string;
    decode : name -> string -> data + string;
    tool_params : name -> list string;
    tool_accepts : name -> data -> option string;   (* missing, unknown or ill-typed arguments *)
    tool_key : name -> L -> list event -> string;   (* the idempotency key of a call at a program counter *)
    completes : name -> list nat;           (* parameters that the answer of a call that succeeds does not depend on *)
    completed : name -> list data -> string -> list event -> bool;    (* whether they are right *)
    tool : name -> list data -> string -> list event -> option nat;   (* how deep the answer is, if there is one *)
    content : name -> list data -> string -> list nat -> list event -> answer;
    misfit : name -> data -> option string; (* what is wrong with the type or the size of an answer *)
    most : name -> list data -> L;          (* raises the text of a failure, which may quote every part *)
    failure : name -> list data -> string -> list event -> string;
    states : name -> list data -> string -> list event -> L; (* the label that it states with what it returns *)
    tool_policy : name -> option term;      (* a closed function of the arguments and their labels *)
    approve : name -> bool;                 (* whether somebody is asked before a call *)
    if_refused : name -> bool;              (* only where the bounds alone would refuse the call *)
    confirms : name -> bool;                (* whether nothing is called: the first argument is given back *)
    among : name -> list chooser;           (* the sets that arguments may be from *)
    forms : name -> list form;              (* forms of arguments without which a call is refused *)
    asking : name -> list form;             (* forms without which somebody is asked, where that is done at all *)
    anyone : L;                             (* raises a refusal that says nothing of integrity *)
    from_label : L -> data;
    sample : Q -> list event -> bool;
    refuses : request -> list event -> option string;
    is_timeout : string -> bool;            (* what [catch not timeout] does not take *)
    remark : data -> data -> string;        (* why a predicate refused a result, in words *)
    char_at : string -> Q -> option string;
    prim : name -> look;
    serialize : data -> string;
    to_label : data -> option L;
    tool_pc : name -> L;
    tool_args : name -> list L;
    tool_res : name -> L;
    key_label : name -> L;
    has_type : name -> data -> bool;
    key_type : name -> name;
    now : L -> list event -> nat;           (* the time, an input: what is visible at the label decides *)
    keep : L -> nat -> account -> account;  (* capacity, time-to-live: any function of the account and the time *)
    others : L -> list event -> account -> account; (* what other runs have done to an account by now *)
    clearance : name -> L;
    policy : axis -> bool;                  (* what generated code may reclassify *)
    prelude : list lval
  }.

  Variable H : host.

  (** ** States and outcomes *)

  (** [later]: calls of the last reply that were not received yet.  [told]: which
      of the remarks in force was the last to be told, counted from the outermost
      one; 0 if none of them was, or one that is over. *)
  Record conv := Conv { clab : L; msgs : list string; later : list string; told : nat }.

  (** What is fixed before the first step.  [sets]: what the sets of [among] hold,
      each with its label; one that could not be read holds nothing.  [stops]:
      whether a call of a tool ends the run instead, given the label of what
      decided the call, the arguments, and everything that has happened ([at_most]). *)
  Record frame := Frame {
    sets : name -> L * list data;
    stops : name -> L -> list data -> list event -> bool
  }.

  (** [remarks]: why guards around here try again, the innermost first. *)
  Record state := State {
    cv : conv;
    store : L -> account;
    tr : list event;
    remarks : list string;
    fixed : frame
  }.

  Inductive outcome :=
  | Val (V : lval)
  | Err (l : L) (message : string)
  | Out.     (* out of fuel, or ended by [stops]: no program catches it *)

  Definition result : Type := outcome * state.

  Definition bind (r : result) (k : lval -> state -> result) : result :=
    match r with
    | (Val V, s) => k V s
    | (Err l m, s) => (Err l m, s)
    | (Out, s) => (Out, s)
    end.

  Definition set_conv (c : conv) (s : state) : state := State c (store s) (tr s) (remarks s) (fixed s).
  Definition same (a b : L) : bool := flows a b && flows b a.
  Definition set_account (l : L) (a : account) (s : state) : state :=
    State (cv s) (fun l' => if same l l' then a else store s l') (tr s) (remarks s) (fixed s).

  (** What is there now: what other runs have made of it, without what has
      expired or had to go. *)
  Definition present (l : L) (s : state) : account :=
    keep H l (now H l (visible l (tr s))) (others H l (visible l (tr s)) (store s l)).
  Definition log (l : L) (r : request) (s : state) : state :=
    State (cv s) (store s) (Event l r :: tr s) (remarks s) (fixed s).
  Definition logs (t : list event) (s : state) : state :=
    State (cv s) (store s) (t ++ tr s) (remarks s) (fixed s).
  Definition set_remarks (ms : list string) (s : state) : state :=
    State (cv s) (store s) (tr s) ms (fixed s).

  (** That a program made arguments of a planned call, and with which parts, is
      known to those who see these parts: an event for each selection of them. *)
  Fixpoint masks (n : nat) : list (list bool) :=
    match n with
    | O => [[]]
    | S n' => map (cons true) (masks n') ++ map (cons false) (masks n')
    end.

  Fixpoint select_by {A} (m : list bool) (xs : list A) : list A :=
    match m, xs with
    | b :: m', x :: xs' => if b then x :: select_by m' xs' else select_by m' xs'
    | _, _ => []
    end.

  Definition made (l : L) (f : name) (fs : list string) (vs : list lval) (m : list bool) : event :=
    Event (join l (joins (map deep_label (select_by m vs))))
          (RArgs f (firstn (List.length vs) fs) (combine (select_by m fs) (map strip (select_by m vs)))).

  Definition prepare (c : con) (V : lval) (s : state) : state :=
    match c, V with
    | CArgs f fs, Lab l (VCon _ vs) => logs (map (made l f fs vs) (masks (List.length vs))) s
    | _, _ => s
    end.

  (** Leaving an isolated conversation puts the outer one back, whatever the
      outcome was. *)
  Definition restore (c : conv) (r : result) : result := (fst r, set_conv c (snd r)).

  Definition unit_val : val := VCon (CRec []) [].

  (** Code that a model, tool or primitive produced obeys [policy]. *)
  Definition accept (l : L) (d : data) (s : state) : result :=
    if data_permits (policy H) d
    then (Val (Lab l (wrap d)), s)
    else (Err l "generated code may not reclassify", s).

  (** A primitive: its result has the label of what it looked at. *)
  Definition primitive (pc : L) (p : name) (V : lval) (s : state) : result :=
    match see pc (prim H p) V with
    | (l, inl g) =>
        let l := join l (ways g V) in
        if given_permits (policy H) g then (Val (raise l (give g V)), s)
        else (Err l "generated code may not reclassify", s)
    | (l, inr m) => (Err l m, s)
    end.

  (** Reading a part joins the labels of the structure and of the selector. *)
  Definition do_get (pc : L) (V1 V2 : lval) : outcome :=
    let wrong m := Err (join pc (join (deep_label V1) (deep_label V2))) m in
    match V1, V2 with
    | Lab l1 (VCon c vs), Lab l2 (VK k) =>
        match select c k with
        | Some i =>
            match nth_error vs i with
            | Some V => Val (raise (join pc (join l1 l2)) V)
            | None => wrong "index out of range"%string
            end
        | None => wrong "no such field"%string
        end
    | Lab l1 (VK (KStr t)), Lab l2 (VK (KNum q)) =>
        match char_at H t q with
        | Some c => Val (Lab (join pc (join l1 l2)) (VK (KStr c)))
        | None => wrong "index out of range"%string
        end
    | Lab l1 (VK k1), Lab l2 (VK k2) =>
        if no_payload k1 k2 then Val (Lab (join pc (join l1 l2)) (VK KNull))
        else wrong "not a structure"%string
    | _, _ => wrong "not a structure"%string
    end.

  Definition do_set (pc : L) (V1 V2 V3 : lval) : outcome :=
    let wrong m := Err (join pc (join (deep_label V1) (deep_label V2))) m in
    match V1, V2 with
    | Lab l1 (VCon c vs), Lab l2 (VK k) =>
        match update c k V3 vs with
        | Some (c', vs') => Val (Lab (join pc (join l1 l2)) (VCon c' vs'))
        | None => wrong "no such field"%string
        end
    | _, _ => wrong "not a structure"%string
    end.

  (** ** Helpers, each over the evaluator for subterms *)

  Section Helpers.
    Variable ev : L -> list lval -> state -> term -> result.

    (** Left to right; the values arrive as the parts of one structure. *)
    Fixpoint evals (pc : L) (env : list lval) (c : con) (acc : list lval)
        (s : state) (es : list term) : result :=
      match es with
      | [] => (Val (Lab pc (VCon c (rev acc))), s)
      | e :: es' => bind (ev pc env s e) (fun V s' => evals pc env c (V :: acc) s' es')
      end.

    (** [flatten V1 = n : v1] and [toLabel v1 = l] for the label expressions. *)
    Definition with_label (pc : L) (env : list lval) (s : state) (e : term)
        (k : L -> L -> state -> result) : result :=
      bind (ev pc env s e) (fun V s' =>
        let n := deep_label V in
        match to_label H (strip V) with
        | Some l => k n l s'
        | None => (Err (join pc n) "not a label", s')
        end).

    (** Whether data labeled [l] may be where tool [f] allows up to [b].
        Approval vouches for where it comes from, not for who may see it. *)
    Definition admits (f : name) (l b : L) : bool :=
      flows (if approve H f then mix F Endorse b l else l) b.

    Definition bound_at (bounds : list L) (i : nat) : L := nth i bounds bot.
    Definition argument_at (Ws : list lval) (i : nat) : lval := nth i Ws (Lab bot (VK KNull)).

    Definition may_choose (c : chooser) (W : lval) (b : L) : bool :=
      match chosen_by c with Some l => flows (deep_label W) (join b l) | None => true end.

    (** [among]: an argument that its bound refuses for its integrity alone is
        accepted if a set, which was fixed before the program began, holds it,
        together with the arguments that the set is also for; the whole label of
        the set must flow to the bounds of all of them.  If not anybody may choose
        from the set, only the label of who may is endorsed. *)
    Definition admitted (s : state) (bounds : list L) (Ws : list lval) (c : chooser) : bool :=
      let a := sets (fixed s) (from c) in
      forallb (fun i => flows (mix F Endorse (bound_at bounds i) (deep_label (argument_at Ws i))) (bound_at bounds i)
                        && flows (fst a) (bound_at bounds i)
                        && may_choose c (argument_at Ws i) (bound_at bounds i)) (chosen_for c)
      && holds c (snd a) (map (fun i => strip (argument_at Ws i)) (chosen_for c)).

    Definition about (i : nat) (c : chooser) : bool := existsb (fun j => Nat.eqb j i) (chosen_for c).

    Definition chosen_from (f : name) (s : state) (bounds : list L) (Ws : list lval) (i : nat) : bool :=
      existsb (fun c => about i c && admitted s bounds Ws c) (among H f).

    Definition accepted (f : name) (s : state) (bounds : list L) (Ws : list lval) (i : nat) : bool :=
      admits f (deep_label (argument_at Ws i)) (bound_at bounds i) || chosen_from f s bounds Ws i.

    (** The bound of an argument, joined with those of the arguments that its sets
        are also for: those were compared with the set. *)
    Definition bounds_of (f : name) (bounds : list L) (i : nat) : L :=
      join (bound_at bounds i)
        (joins (map (fun c => if about i c then joins (map (bound_at bounds) (chosen_for c)) else bot) (among H f))).

    (** The label of the bounds that refuse the first argument that is refused;
        [None] if all pass.  A parameter without a bound admits public, trusted
        data only. *)
    Definition refused (f : name) (s : state) (bounds : list L) (Ws : list lval) : option L :=
      option_map (bounds_of f bounds)
        (find (fun i => negb (accepted f s bounds Ws i)) (seq 0 (List.length Ws))).

    (** What a rule about forms finds of arguments: the labels that it says something
        of, and what is wrong.  [chosen]: which arguments are from a set. *)
    Definition looked (fm : form) (Ws : list lval) : list L := map (fun i => deep_label (argument_at Ws i)) (looks_at fm).

    Definition found_unfit (fm : form) (s : state) (chosen : nat -> bool) (Ws : list lval) : option string :=
      if applies fm (looked fm Ws) then
        unfit fm
          (match beside fm with
           | Some k => if flows (fst (sets (fixed s) k)) (tells fm) then snd (sets (fixed s) k) else []
           | None => []
           end)
          (combine (looked fm Ws) (map chosen (looks_at fm)))
          (map (fun i => strip (argument_at Ws i)) (looks_at fm))
      else None.

    Definition told_by (fm : form) (Ws : list lval) : L := if applies fm (looked fm Ws) then tells fm else bot.

    (** The first form that an argument has not: the label of that, and the text. *)
    Fixpoint misformed (s : state) (Ws : list lval) (fms : list form) : option (L * string) :=
      match fms with
      | [] => None
      | fm :: rest =>
          match found_unfit fm s (fun _ => false) Ws with
          | Some m => Some (join (joins (looked fm Ws)) (tells fm), m)
          | None => misformed s Ws rest
          end
      end.

    Definition told_of (fms : list form) (Ws : list lval) : L := joins (map (fun fm => told_by fm Ws) fms).

    Fixpoint channel_of (bounds : list L) (Vs : list lval) : L :=
      match Vs with
      | [] => bot
      | _ :: Vs' => join (hd bot bounds) (channel_of (tl bounds) Vs')
      end.

    (** The argument for each parameter, read at the label of the record that it
        comes in; those of a planned call are read at [m].  One that is missing is
        [null] at the label of the record: that it is
        missing is a fact about the record.  A tool with one parameter takes the
        bare value, unless that is a record with a field of that name. *)
    Definition argument (m l : L) (fs : list string) (vs : list lval) (p : string) : lval :=
      match position p fs with
      | Some i => match nth_error vs i with Some V => raise m V | None => Lab l (VK KNull) end
      | None => Lab l (VK KNull)
      end.

    Definition arguments (m : L) (ps : list string) (V : lval) : list lval :=
      match V with
      | Lab l (VCon (CArgs _ fs) vs) => map (argument m l fs vs) ps
      | Lab l (VCon (CRec fs) vs) =>
          match ps with
          | [p] => match position p fs with Some _ => [argument l l fs vs p] | None => [V] end
          | _ => map (argument l l fs vs) ps
          end
      | Lab l _ => match ps with [_] => [V] | _ => map (fun _ => Lab l (VK KNull)) ps end
      end.

    (** The channel of a call: whoever sees the bounds of all parameters sees it. *)
    Definition channel_for (f : name) : L :=
      join (tool_pc H f) (channel_of (tool_args H f) (map (fun _ => Lab bot (VK KNull)) (tool_params H f))).

    (** Whether the world refuses a request on channel [ch] whose answer is
        labeled [l]. *)
    Definition refusal (ch l : L) (r : request) (s : state) : option string :=
      refuses H r (visible ch (visible l (tr s))).

    (** An answer is labeled part by part.  What is at a part depends on what is
        visible at its label; the label of a part is at least that of what it
        is in, and of the parts that it depends on. *)
    Definition stamp (l : L) (before : list lval) (p : part_label) : L :=
      let Ws := map (argument_at before) (named p) in
      join l (join (joins (map deep_label Ws)) (says p (map strip Ws))).

    Fixpoint filled (fl : list nat -> L -> lval) (path : list nat) (l : L)
        (before : list lval) (labels : list part_label) : list lval :=
      match labels with
      | [] => before
      | p :: rest =>
          filled fl path l (before ++ [fl (path ++ [List.length before]) (stamp l before p)]) rest
      end.

    Fixpoint fill (n : nat) (f : name) (args : list data) (k : string) (t : list event) (path : list nat) (l : L) : lval :=
      match n with
      | O => Lab l (VK KNull)
      | S n' =>
          match content H f args k path (visible l t) with
          | AScalar x => Lab l (VK x)
          | AParts c labels order =>
              Lab l (VCon (plain c) (map (argument_at (filled (fill n' f args k t) path l [] labels)) order))
          end
      end.

    (** Arguments without those that only complete a call. *)
    Definition lasting {A} (f : name) (xs : list A) : list A :=
      map snd (filter (fun p => negb (existsb (Nat.eqb (fst p)) (completes H f))) (combine (seq 0 (List.length xs)) xs)).

    (** The call itself; [u] is the label of what decided that it is made, and with
        which record, [d] that of everything that it depends on, [e] that of what the
        answer depends on if the call succeeds, with [kept], the arguments that do not
        only complete it; [k] is its idempotency key, which the tool is given.
        The tool may state a label, which is joined to that of what it returns;
        which, depends on what is visible at the declared one.  Its type and size are
        facts about all of the answer, and the text of a failure may quote all of it. *)
    Definition perform (u d e : L) (f : name) (args kept : list data) (k : string) (ch : L) (s : state) : result :=
      let r := tool_res H f in
      let s' := log ch (RTool f args k) (log (join ch u) (RDecided f u) s) in
      match refusal ch (join d r) (RTool f args k) s with
      | Some m => (Err (join d r) m, s')
      | None =>
          let own := states H f kept k (visible r (tr s)) in
          let l := join (join d r) own in
          match (if completed H f args k (visible (join r own) (tr s)) then tool H f kept k (visible (join r own) (tr s)) else None) with
          | Some n =>
              let V := fill n f kept k (tr s) [] (join (join e r) own) in
              match misfit H f (strip V) with
              | Some m => (Err (join l (deep_label V)) m, s')
              | None => (Val V, s')
              end
          | None =>
              let m := most H f args in
              (Err (join l m) (failure H f args k (visible (join (join r own) m) (tr s))), s')
          end
      end.

    (** A confirmation calls nothing.  If somebody was asked, the answer vouches for
        where the value is from, not for who may see it. *)
    Definition confirmed (pc u d : L) (f : name) (asked : bool) (args : list data) (s : state) : result :=
      let l := join d (tool_res H f) in
      accept (if asked then join pc (mix F Endorse bot l) else l) (nth 0 args (DK KNull)) (log u (RDecided f u) s).

    (** Somebody is asked, on a channel that sees the labels of the arguments
        too; not to approve is to refuse the request.  [l] is the label of the answer. *)
    Definition approval (d l : L) (f : name) (asked : bool) (args : list data) (labels : list L) (ch : L)
        (s : state) (k : state -> result) : result :=
      if asked then
        let q := RApprove f args labels in
        match refusal (join ch d) l q s with
        | Some m => (Err l m, log (join ch d) q s)
        | None => k (log (join ch d) q s)
        end
      else k s.

    (** What a policy sees of an argument: the value read at the label [l] of the
        record, and the label [lw] that is compared with the bound.  What label data has is known to
        those who may see the data. *)
    Definition shown (pc l : L) (V : lval) (lw : L) : lval :=
      Lab pc (VCon (CRec ["value"; "label"]%string)
        [V; Lab (join l lw) (wrap (from_label H lw))]).

    Fixpoint all_shown (pc l : L) (Vs : list lval) (lws : list L) : list lval :=
      match Vs with
      | [] => []
      | V :: Vs' => shown pc l V (hd bot lws) :: all_shown pc l Vs' (tl lws)
      end.

    Definition described (pc l : L) (f : name) (Vs : list lval) (lws : list L) : lval :=
      Lab pc (VCon (CRec (tool_params H f)) (all_shown pc l Vs lws)).

    (** The policy of a tool decides in a conversation of its own.  Whether the
        call is made is seen by whoever sees the call. *)
    Definition decide (pc l : L) (f : name) (Vs : list lval) (lws : list L) (ch : L) (s : state)
        (k : L -> state -> result) : result :=
      match tool_policy H f with
      | None => k pc s
      | Some p =>
          bind (restore (cv s)
                 (ev pc [described pc l f Vs lws] (set_conv (Conv pc [] [] 0) s) (EApp p (EVar 0))))
            (fun W s1 =>
              let d := join pc (deep_label W) in
              if admits f d ch then
                match strip W with
                | DK (KBool true) => k d s1
                | _ => (Err d "the tool's policy refuses the call", s1)
                end
              else (Err d "what the tool's policy says is seen by too many", s1))
      end.

    (** Too many calls, by whatever was counted, end the run, and no program catches
        that: which of several branches makes the last call depends on the order of
        responses, and who counts may count what nobody sees. *)
    Definition counted (u : L) (f : name) (args : list data) (s : state) (k : state -> result) : result :=
      if stops (fixed s) f u args (tr s) then (Out, s) else k s.

    (** Whether a bound is less than what it says, in integrity. *)
    Definition endorses (f : name) : bool :=
      approve H f || match among H f with [] => false | _ => true end.

    (** Whether the bounds, without an approval, accept every argument. *)
    Definition clean (f : name) (s : state) (bounds : list L) (Ws : list lval) : bool :=
      forallb (fun i => flows (deep_label (argument_at Ws i)) (bound_at bounds i) || chosen_from f s bounds Ws i)
        (seq 0 (List.length Ws)).

    (** The set that an argument is taken to be from, and whether an argument is, by
        itself or together with another one, from a set because its bound would refuse it. *)
    Definition taken_from (f : name) (s : state) (bounds : list L) (Ws : list lval) (i : nat) : option chooser :=
      find (fun c => about i c && admitted s bounds Ws c) (among H f).

    Definition noted (f : name) (s : state) (bounds : list L) (Ws : list lval) (i : nat) : bool :=
      existsb (fun j => negb (flows (deep_label (argument_at Ws j)) (bound_at bounds j)) &&
                        match taken_from f s bounds Ws j with Some c => about i c | None => false end)
        (seq 0 (List.length Ws)).

    (** Whether the arguments have the forms that nobody is asked about; those that
        are from a set may be known to the rule. *)
    Definition formed (f : name) (s : state) (bounds : list L) (Ns Ws : list lval) : bool :=
      forallb (fun fm => match found_unfit fm s (noted f s bounds Ns) Ws with None => true | Some _ => false end) (asking H f).

    (** Who asks only where it is needed tells what is in the sets. *)
    Definition sets_label (f : name) (s : state) : L :=
      joins (map (fun c => fst (sets (fixed s) (from c))) (among H f)).

    (** Whether each parameter gets the part of its name: a tool with one parameter
        may be given a bare value instead. *)
    Definition named_parts (f : name) (V : lval) : bool :=
      match V with
      | Lab _ (VCon (CArgs _ _) _) => true
      | Lab _ (VCon (CRec fs) _) =>
          match tool_params H f with [p] => match position p fs with Some _ => true | None => false end | _ => true end
      | _ => false
      end.

    (** What the answer of a call that succeeds depends on. *)
    Definition lasts (f : name) (V : lval) : bool :=
      match completes H f with [] => false | _ => named_parts f V end.

    Definition kept_label (f : name) (d : L) (V : lval) (Ws : list lval) : L :=
      if lasts f V then join (label_of V) (join (joins (map deep_label (lasting f Ws)))
        (told_of (filter (fun fm => negb (existsb (fun i => existsb (Nat.eqb i) (completes H f)) (looks_at fm))) (forms H f ++ asking H f)) Ws))
      else d.

    (** Arguments name the tool that they are for. *)
    Definition foreign (f : name) (V : lval) : bool :=
      match V with Lab _ (VCon (CArgs g _) _) => negb (String.eqb f g) | _ => false end.

    (** If the label [l] of the arguments of a planned call flows to the control
        bound, it counts as control: the parts alone are compared with
        their bounds.  If not, and for records of any other origin, whose parts
        may be labeled by the record alone, each part is read at [l] first.
        Which it is, is a fact about the record: a refusal is labeled with [l]
        or, where it does not flow to the control bound, with that. *)
    Definition called (pc : L) (f : name) (V : lval) (k : string) (s : state) : result :=
      let l := label_of V in
      let planned := admits f l (tool_pc H f) in
      let m := if planned then l else tool_pc H f in
      let Vs := arguments l (tool_params H f) V in
      let Ws := arguments (if planned then bot else l) (tool_params H f) V in
      (* as they would be compared if nobody were asked *)
      let Ns := arguments (if flows l (tool_pc H f) then bot else l) (tool_params H f) V in
      let ch := join (tool_pc H f) (channel_of (tool_args H f) Vs) in
      let u := join pc l in
      if admits f pc (tool_pc H f) then
        if foreign f V then (Err (join pc (deep_label V)) "the arguments of another tool", s) else
        match refused f s (tool_args H f) Ws with
        | Some b => (Err (join pc (join m (join b (if endorses f then anyone H else bot))))
                       "argument refused by the tool's bound", s)
        | None =>
            match tool_accepts H f (strip V) with
            | Some m => (Err (join pc (deep_label V)) m, s)
            | None =>
            match misformed s Ws (forms H f) with
            | Some (b, m) => (Err (join pc (join l b)) m, s)
            | None =>
                decide pc l f Vs (map deep_label Ws) ch s (fun v s1 =>
                  let q := if if_refused H f then sets_label f s1 else bot in
                  let g := join (deep_label V) (told_of (forms H f ++ asking H f) Ws) in
                  let d := join (join v g) (if confirms H f then q else bot) in
                  let asked := approve H f && negb (if_refused H f && flows pc (tool_pc H f) && clean f s1 (tool_args H f) Ns
                                                    && formed f s1 (tool_args H f) Ns Ws) in
                  let args := map strip Vs in
                  counted u f args s1 (fun s1 =>
                  approval d (join (join d (tool_res H f)) q) f asked
                    args (map (fun W => join l (deep_label W)) Ws) (if confirms H f then bot else ch) s1 (fun s2 =>
                  counted u f args s2 (fun s3 =>
                  if confirms H f then confirmed pc u d f asked args s3
                  else perform u d (join v (kept_label f g V Ws)) f args (if lasts f V then lasting f args else args) k ch s3))))
            end end
        end
      else (Err pc "call refused by the tool's bound", s).

    (** The key of a call is a function of the tool, the program counter, and
        what is visible there: that the call begins among it, so the calls that
        have begun at one program counter can be counted. *)
    Definition call (pc : L) (f : name) (V : lval) (s : state) : result :=
      called pc f V (tool_key H f pc (visible pc (tr s))) (log pc (RKey f) s).

    (** The body runs at the label of the function.  A fixpoint applies its
        functional to itself with one unfolding less.  A tool reads its argument there,
        as a function would. *)
    Definition apply (V1 V2 : lval) (s : state) : result :=
      match V1 with
      | Lab l (VClo env e) => ev l (V2 :: env) s e
      | Lab l (VCon (CFix n) [Vf]) =>
          match n with
          | Some O => (Val (raise l V2), s)
          | Some (S n') =>
              ev l [Vf; Lab l (VCon (CFix (Some n')) [Vf]); V2] s
                 (EApp (EApp (EVar 0) (EVar 1)) (EVar 2))
          | None =>
              ev l [Vf; Lab l (VCon (CFix None) [Vf]); V2] s
                 (EApp (EApp (EVar 0) (EVar 1)) (EVar 2))
          end
      | Lab l (VCon (CTool f) _) => call l f (raise l V2) s
      | _ => (Err (deep_label V1) "not a function", s)
      end.

    Definition do_send (pc : L) (V : lval) (s : state) : result :=
      let lc := clab (cv s) in
      if flows pc lc
      then (Val (Lab pc unit_val),
            set_conv (Conv (join lc (deep_label V))
                           (msgs (cv s) ++ [serialize H (strip V)]) (later (cv s)) (told (cv s))) s)
      else (Err (join pc lc) "send refused", s).

    Definition say (m : string) (s : state) : state :=
      set_conv (Conv (clab (cv s)) (msgs (cv s) ++ [m]) (later (cv s)) (told (cv s))) s.

    Definition expect (ms : list string) (s : state) : state :=
      set_conv (Conv (clab (cv s)) (msgs (cv s)) ms (told (cv s))) s.

    (** Who is asked in a further attempt of a guard is told why there is one,
        once in a conversation. *)
    Definition tell (s : state) : state :=
      match remarks s with
      | [] => s
      | m :: _ =>
          let c := cv s in
          let n := List.length (remarks s) in
          if Nat.eqb (told c) n then s
          else set_conv (Conv (clab c) (msgs c ++ [m]) (later c) n) s
      end.

    (** One request to a model; [k] gets the reply. *)
    Definition question (pc : L) (m : name) (s : state) (k : string -> state -> result) : result :=
      let lc := clab (cv s) in
      let s1 := expect [] (log lc (RModel m (msgs (cv s))) s) in
      match refusal lc (join pc lc) (RModel m (msgs (cv s))) s with
      | Some e => (Err (join pc lc) e, s1)
      | None =>
          match model H m (msgs (cv s)) (visible lc (tr s)) with
          | inl reply => k reply (expect (further H m reply) (say reply s1))
          | inr e => (Err (join pc lc) e, s1)
          end
      end.

    Definition ask (pc : L) (m : name) (s : state) (k : string -> state -> result) : result :=
      question pc m (tell s) k.

    (** Of several calls in a reply each is received as if the model had said
        it then, without asking.  Who wants only calls that wait asks nobody. *)
    Definition listen (pc : L) (m : name) (s : state) (k : string -> state -> result) : result :=
      match (if offers H m then later (cv s) else []) with
      | reply :: rest => k reply (expect rest (say reply s))
      | [] => match unasked H m with Some nothing => k nothing s | None => ask pc m s k end
      end.

    (** Parsed code runs in the prelude's environment only, at the
        conversation's label. *)
    Definition run_reply (lc : L) (reply : string) (s : state) : result :=
      let failed m :=
        (Val (Lab lc (VCon CList [Lab lc (VK (KBool false)); Lab lc (VK (KStr m))])), s) in
      match parse H reply with
      | inr m => failed m
      | inl e =>
          if permits (policy H) e then
            bind (ev lc (prelude H) s e) (fun V s' =>
              (Val (Lab lc (VCon CList [Lab lc (VK (KBool true)); V])), s'))
          else failed "generated code may not reclassify"%string
      end.

    (** A reply that does not decode is answered with the error, [n] times. *)
    Fixpoint recv_data (pc : L) (m : name) (n : nat) (s : state) : result :=
      listen pc m s (fun reply s1 =>
        let lc := clab (cv s) in
        match decode H m reply with
        | inl d => accept (join pc lc) d s1
        | inr e =>
            match n with
            | O => (Err (join pc lc) e, expect [] s1)
            | S n' => recv_data pc m n' (say e (expect [] s1))
            end
        end).

    Definition do_recv (pc : L) (m : name) (md : mode) (s : state) : result :=
      let lc := clab (cv s) in
      if flows pc lc then
        if flows lc (clearance H m) then
          match md with
          | AsCode => ask pc m s (fun reply s1 => run_reply lc reply s1)
          | AsData n => recv_data pc m n s
          end
        else (Err (join pc lc) "the model is not cleared for this conversation", s)
      else (Err (join pc lc) "recv refused", s).

    Definition do_clear (pc : L) (s : state) : result :=
      if flows pc (clab (cv s))
      then (Val (Lab pc unit_val), set_conv (Conv pc [] [] 0) s)
      else (Err (join pc (clab (cv s))) "clear refused", s).

    (** An isolated copy of the conversation, relabeled to [lc + pc]. *)
    Definition do_fork (pc : L) (env : list lval) (s : state) (e : term) : result :=
      let c := cv s in
      restore c (ev pc env (set_conv (Conv (join (clab c) pc) (msgs c) (later c) (told c)) s) e).

    Definition do_fresh (pc : L) (env : list lval) (s : state) (e : term) : result :=
      restore (cv s) (ev pc env (set_conv (Conv pc [] [] 0) s) e).

    (** Stores keep data; the label of a key never changes. *)
    Definition do_remember (pc : L) (k : name) (V : lval) (s : state) : result :=
      let lk := key_label H k in
      if flows (join pc (deep_label V)) lk then
        if has_type H (key_type H k) (strip V)
        then
          match refusal lk lk (RRemember k (strip V)) s with
          | Some m => (Err lk m, log lk (RRemember k (strip V)) s)
          | None =>
              let s' := log lk (RRemember k (strip V)) s in
              let time := now H lk (visible lk (tr s)) in
              (Val (Lab pc unit_val),
               set_account lk (keep H lk time ((k, (time, strip V)) :: without k (present lk s))) s')
          end
        else (Err (join pc (deep_label V)) "not of the key's type", s)
      else (Err (join pc lk) "remember refused", s).

    Definition do_recall (pc : L) (k : name) (s : state) : result :=
      let lk := key_label H k in
      let l := join pc lk in
      let s' := log l (RRecall k) s in
      match refusal l l (RRecall k) s with
      | Some m => (Err l m, s')
      | None =>
          match entry k (present lk s) with
          | Some (t, d) =>
              (* that it was used is known to the account only if it may know of the use *)
              accept l d (if flows pc lk then set_account lk ((k, (t, d)) :: without k (present lk s)) s' else s')
          | None => (Val (Lab l (VK KNull)), s')
          end
      end.

    (** An error is caught here only if its label flows to the label of the
        [try]; the handler runs in the conversation as it stood at the error. *)
    Definition do_try (all : bool) (pc : L) (env : list lval) (s : state) (e1 e2 : term) : result :=
      match ev pc env s e1 with
      | (Err l m, s') =>
          if flows l pc && (all || negb (is_timeout H m)) then ev pc (Lab l (VK (KStr m)) :: env) s' e2 else (Err l m, s')
      | r => r
      end.

    (** The scope of a time limit is told to whoever measures.  An error that
        does not flow to [pc] ends everything that could end the scope: no [try]
        around here may catch it. *)
    Definition close (pc : L) (r : result) : result :=
      match r with
      | (Val V, s) => (Val V, log pc REnd s)
      | (Err l m, s) => (Err l m, if flows l pc then log pc REnd s else s)
      | (Out, s) => (Out, s)
      end.

    Definition do_within (n : Q) (pc : L) (env : list lval) (s : state) (e : term) : result :=
      close pc (ev pc env (log pc (RWithin n) s) e).

    (** Branches run as forks, one after the other.  A branch whose error may
        flow to [pc] does not stop the others, and the first such error is the
        result; any other error ends the whole [par] at once. *)
    Fixpoint pars (pc : L) (env : list lval) (acc : list lval)
        (s : state) (es : list term) : result :=
      match es with
      | [] => (Val (Lab pc (VCon CList (rev acc))), s)
      | e :: es' =>
          match do_fork pc env s e with
          | (Val V, s') => pars pc env (V :: acc) s' es'
          | (Err l m, s') =>
              if flows l pc then
                match pars pc env acc s' es' with
                | (Val _, s'') => (Err l m, s'')
                | (Err l' m', s'') => if flows l' pc then (Err l m, s'') else (Err l' m', s'')
                | (Out, s'') => (Out, s'')
                end
              else (Err l m, s')
          | (Out, s') => (Out, s')
          end
      end.

    Lemma pars_cons : forall pc env acc s e es,
      pars pc env acc s (e :: es) =
      match do_fork pc env s e with
      | (Val V, s') => pars pc env (V :: acc) s' es
      | (Err l m, s') =>
          if flows l pc then
            match pars pc env acc s' es with
            | (Val _, s'') => (Err l m, s'')
            | (Err l' m', s'') => if flows l' pc then (Err l m, s'') else (Err l' m', s'')
            | (Out, s'') => (Out, s'')
            end
          else (Err l m, s')
      | (Out, s') => (Out, s')
      end.
    Proof. reflexivity. Qed.

    (** The branches of an [each]: variable 0, the function, applied to each of
        the variables after it. *)
    Definition applications (n : nat) : list term :=
      map (fun i => EApp (EVar 0) (EVar (S i))) (seq 0 n).

    Definition do_each (pc : L) (V1 V2 : lval) (s : state) : result :=
      match V2 with
      | Lab l (VCon CList Ws) => pars (join pc l) (V1 :: Ws) [] s (applications (List.length Ws))
      | _ => (Err (join pc (deep_label V2)) "not a list", s)
      end.

    (** [guard e P retry n] is [if P v then v else guard e P retry (n-1)]:
        another attempt runs under the label of the verdict. *)
    Definition verdict (pc : L) (V Vb : lval) (s : state) (again : L -> result) : result :=
      let pc' := join pc (label_of Vb) in
      match Vb with
      | Lab _ (VK (KBool true)) => (Val (raise pc' V), s)
      | Lab _ (VK (KBool false)) => again pc'
      | _ => (Err pc' "the predicate of a guard must give a boolean", s)
      end.

    (** A function is guarded instead: each of its results must satisfy the
        predicate. *)
    Definition is_function (v : val) : bool :=
      match v with VClo _ _ | VCon (CFix _) _ | VCon (CTool _) _ => true | _ => false end.

    Definition guarded (l : L) (V Vp : lval) (k : nat) : lval :=
      Lab l (VClo [V; Vp] (EGuard (EApp (EVar 1) (EVar 0)) (EVar 2) k)).

    (** Why a result was refused: in words about the predicate and the result, if
        the label of the verdict covers them. *)
    Definition reason (pc : L) (Vp V : lval) : string :=
      if flows (join (deep_label Vp) (deep_label V)) pc then remark H (strip Vp) (strip V)
      else ""%string.

    (** A further attempt, with its remark, which is over when the attempt is,
        however it ends. *)
    Definition forgotten (pc : L) (ms : list string) (s : state) : state :=
      let c := cv s in
      set_remarks ms
        (if flows pc (clab c) && negb (Nat.leb (told c) (List.length ms))
         then set_conv (Conv (clab c) (msgs c) (later c) 0) s else s).

    Definition forget (pc : L) (ms : list string) (r : result) : result :=
      (fst r, forgotten pc ms (snd r)).

    Definition retry (pc : L) (m : string) (s : state) (attempt : state -> result) : result :=
      forget pc (remarks s) (attempt (set_remarks (m :: remarks s) s)).

    (** What becomes of a value.  The predicate is looked at under its label,
        since whether it is a function decides what the predicate is for. *)
    Definition judge (env : list lval) (p : term) (k : nat) (pc : L) (V : lval) (s : state)
        (again : L -> string -> state -> result) : result :=
      bind (ev pc env s p) (fun Vp s2 =>
      if is_function (match V with Lab _ v => v end) then (Val (guarded pc V Vp k), s2) else
      bind (ev pc [Vp; V] s2 (EApp (EVar 0) (EVar 1))) (fun Vb s3 =>
        verdict pc V Vb s3 (fun pc' => again pc' (reason pc' Vp V) s3))).

    (** [k] retries, of which [n] are left. *)
    Fixpoint guard (env : list lval) (e p : term) (k n : nat)
        (pc : L) (s : state) : result :=
      bind (ev pc env s e) (fun V s1 =>
        judge env p k (join pc (label_of V)) V s1 (fun pc' m s3 =>
          match n with
          | O => (Err (join pc' (deep_label V)) "guard failed", s3)
          | S n' => retry pc' m s3 (guard env e p k n' pc')
          end)).
  End Helpers.

  (** ** Evaluation *)

  Fixpoint eval (n : nat) (pc : L) (env : list lval) (s : state) (e : term)
      {struct n} : result :=
    match n with
    | O => (Out, s)
    | S n' =>
      let ev := eval n' in
      match e with
      | EVar i =>
          match nth_error env i with
          | Some V => (Val (raise pc V), s)
          | None => (Err pc "unbound variable", s)
          end
      | ELam b => (Val (Lab pc (VClo (capture env b) b)), s)
      | EApp e1 e2 =>
          bind (ev pc env s e1) (fun V1 s1 =>
          bind (ev pc env s1 e2) (fun V2 s2 => apply ev V1 V2 s2))
      | EK k => (Val (Lab pc (VK k)), s)
      | ECon c es => bind (evals ev pc env c [] s es) (fun V s' => (Val V, prepare c V s'))
      | EGet e1 e2 =>
          bind (ev pc env s e1) (fun V1 s1 =>
          bind (ev pc env s1 e2) (fun V2 s2 => (do_get pc V1 V2, s2)))
      | ESet e1 e2 e3 =>
          bind (ev pc env s e1) (fun V1 s1 =>
          bind (ev pc env s1 e2) (fun V2 s2 =>
          bind (ev pc env s2 e3) (fun V3 s3 => (do_set pc V1 V2 V3, s3))))
      | EPrim p e1 =>
          bind (ev pc env s e1) (fun V s1 => primitive pc p V s1)
      | ECase e1 bs d =>
          bind (ev pc env s e1) (fun V s1 =>
            match V with Lab l v =>
              match chosen v bs d with
              | Some e2 => ev (join pc l) env s1 e2
              | None => (Err (join pc (deep_label V)) "no branch matches", s1)
              end
            end)
      | EGuard e1 p k => guard ev env e1 p k k pc s
      | EChoose p e1 e2 =>
          let s' := log pc (RSample p) s in
          match refusal pc pc (RSample p) s with Some m => (Err pc m, s') | None =>
          if sample H p (visible pc (tr s)) then ev pc env s' e1 else ev pc env s' e2
          end
      | ECall f e1 => bind (ev pc env s e1) (fun V s1 => call ev pc f V s1)
      | ERecall k => do_recall pc k s
      | ERemember k e1 => bind (ev pc env s e1) (fun V s1 => do_remember pc k V s1)
      | ESend e1 => bind (ev pc env s e1) (fun V s1 => do_send pc V s1)
      | ERecv m md => do_recv ev pc m md s
      | EFork e1 => do_fork ev pc env s e1
      | EFresh e1 => do_fresh ev pc env s e1
      | EClear => do_clear pc s
      | ELab e1 e2 =>
          with_label ev pc env s e1 (fun n l s1 => ev (join pc (join n l)) env s1 e2)
      | ETest e1 e2 =>
          with_label ev pc env s e1 (fun n l s1 =>
          bind (ev (join pc n) env s1 e2) (fun V s2 =>
            (Val (Lab (join pc (join n l)) (VK (KBool (flows (label_of V) l)))), s2)))
      | EAssert e1 e2 =>
          with_label ev pc env s e1 (fun n l s1 =>
          bind (ev pc env s1 e2) (fun V s2 =>
            if flows n pc && flows (label_of V) l
            then (Val (Lab pc unit_val), s2)
            else (Err (join pc (join n l)) "assertion failed", s2)))
      | EReclass ax e1 e2 =>
          with_label ev pc env s e1 (fun n l s1 =>
          bind (ev (join pc n) env s1 e2) (fun V s2 =>
            match V with Lab l2 v =>
              (Val (Lab (join pc (join n (mix F ax l l2))) v), s2)
            end))
      | ETry all e1 e2 e3 =>
          with_label ev pc env s e1 (fun n l s1 =>
            do_try ev all (join pc (join n l)) env s1 e2 e3)
      | EFail e1 =>
          bind (ev pc env s e1) (fun V s1 =>
            (Err (join pc (deep_label V)) (serialize H (strip V)), s1))
      | ECheck t e1 =>
          bind (ev pc env s e1) (fun V s1 =>
            if has_type H t (strip V) then (Val V, s1)
            else (Err (join pc (deep_label V)) "not of the type", s1))
      | EWithin q e1 => do_within ev q pc env s e1
      | EPar es => pars ev pc env [] s es
      | EEach e1 e2 =>
          bind (ev pc env s e1) (fun V1 s1 =>
          bind (ev pc env s1 e2) (fun V2 s2 => do_each ev pc V1 V2 s2))
      end
    end.

  (** A whole program: public context, empty conversation.  What stores hold when
      it begins, initial values included, is a part of the first state. *)
  Definition initial (fr : frame) (st : L -> account) : state := State (Conv bot [] [] 0) st [] [] fr.

  (** A run on the store that another one left.  Keys that have no entry when it
      begins get their initial values, which come last. *)
  Definition absent (a : account) (e : name * (nat * data)) : bool :=
    match entry (fst e) a with Some _ => false | None => true end.
  Definition next_run (fr : frame) (inits : L -> account) (s : state) : state :=
    initial fr (fun l =>
      let a := keep H l (now H l []) (store s l) in
      keep H l (now H l []) (a ++ filter (absent a) (inits l))).

End Interp.

Arguments conv : clear implicits.
Arguments state : clear implicits.
Arguments outcome : clear implicits.
Arguments result : clear implicits.
Arguments request : clear implicits.
Arguments event : clear implicits.
Arguments host : clear implicits.
Arguments Conv {L} _ _ _ _.
Arguments State {L} _ _ _ _ _.
Arguments frame : clear implicits.
Arguments Frame {L} _ _.
Arguments chooser : clear implicits.
Arguments Chooser {L} _ _ _ _.
Arguments form : clear implicits.
Arguments Form {L} _ _ _ _ _.
Arguments part_label : clear implicits.
Arguments PartLabel {L} _ _.
Arguments answer : clear implicits.
Arguments AScalar {L} _.
Arguments AParts {L} _ _ _.
Arguments Val {L} _.
Arguments Err {L} _ _.
Arguments Out {L}.
Arguments Event {L} _ _.

(* Proofs reason about the helpers through lemmas. *)
Global Arguments accept : simpl never.
Global Arguments with_label : simpl never.
Global Arguments call : simpl never.
Global Arguments admits : simpl never.
Global Arguments perform : simpl never.
Global Arguments primitive : simpl never.
Global Arguments confirmed : simpl never.
Global Arguments approval : simpl never.
Global Arguments decide : simpl never.
Global Arguments do_send : simpl never.
Global Arguments do_get : simpl never.
Global Arguments do_set : simpl never.
Global Arguments say : simpl never.
Global Arguments expect : simpl never.
Global Arguments listen : simpl never.
Global Arguments ask : simpl never.
Global Arguments question : simpl never.
Global Arguments tell : simpl never.
Global Arguments reason : simpl never.
Global Arguments retry : simpl never.
Global Arguments run_reply : simpl never.
Global Arguments do_recv : simpl never.
Global Arguments do_clear : simpl never.
Global Arguments do_fork : simpl never.
Global Arguments do_fresh : simpl never.
Global Arguments verdict : simpl never.
Global Arguments do_try : simpl never.
Global Arguments do_within : simpl never.
Global Arguments close : simpl never.
Global Arguments refusal : simpl never.
Global Arguments arguments : simpl never.
Global Arguments guarded : simpl never.
Global Arguments judge : simpl never.
Global Arguments do_each : simpl never.
Global Arguments do_remember : simpl never.
Global Arguments do_recall : simpl never.
