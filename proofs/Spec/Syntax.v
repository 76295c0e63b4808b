(** * Terms, values and data of the core calculus

    Variables are de Bruijn indices into the environment.  Static labels,
    [let], [>>], [|], [@e], [quarantine], [llm p t], [tool[f]] as a value and
    [mem] are sugar (end of this file), as in docs/calculus.md section 2. *)

Require Import List String QArith Bool.
Require Import Entail.Spec.Labels.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.

Definition name := string.

Inductive scalar :=
| KNull
| KBool (b : bool)
| KNum (q : Q)
| KStr (s : string)
| KTag (t : string).

(** Shapes of structured data.  [CFix] is the value of [fix[n] e]: its only
    part is the value of [e]; [None] is the unbounded fixpoint.  [CTool] is
    [tool[f]] as a value. *)
Inductive con :=
| CPair
| CList
| CRec (fields : list string)
| CArgs (f : name) (fields : list string)   (* the arguments of a planned call of a tool: no data makes them *)
| CVariant (tag : string)
| CFix (n : option nat)
| CTool (f : name).

(** As data, the arguments of a call are a record. *)
Definition plain (c : con) : con := match c with CArgs _ fs => CRec fs | _ => c end.

(** How [recv] reads a reply: as code, or as data with a number of repairs. *)
Inductive mode := AsCode | AsData (repair : nat).

Inductive term :=
| EVar (i : nat)
| ELam (e : term)
| EApp (e1 e2 : term)
| EK (k : scalar)
| ECon (c : con) (es : list term)                    (* [e1,...], {f: e}, (e, e), fix[n] e *)
| EGet (e1 e2 : term)                                (* e.f, e.[e], fst, snd *)
| ESet (e1 e2 e3 : term)                             (* e.f := e *)
| EPrim (p : name) (e : term)
| ECase (e : term) (bs : list (scalar * term)) (d : option term)
| EGuard (e p : term) (retry : nat)
| EChoose (p : Q) (e1 e2 : term)
| ECall (f : name) (e : term)                        (* tool[f] applied to its arguments *)
| ERecall (k : name)
| ERemember (k : name) (e : term)
| ESend (e : term)
| ERecv (m : name) (md : mode)
| EFork (e : term)
| EFresh (e : term)
| EClear
| ELab (e1 e2 : term)                                (* l : e, e : e *)
| ETest (e1 e2 : term)                               (* e1 ? e2 *)
| EAssert (e1 e2 : term)
| EReclass (ax : axis) (e1 e2 : term)                (* endorse, declassify *)
| ETry (all : bool) (l e1 e2 : term)                 (* try[l] e1 catch x. e2; [false]: catch not timeout *)
| EWithin (n : Q) (e : term)                         (* within[n] e *)
| EFail (e : term)
| ECheck (t : name) (e : term)                       (* check[t] e *)
| EPar (es : list term)
| EEach (e1 e2 : term).                              (* each[n] e1 e2 *)

(** [permits pol e]: every reclassification in [e] is allowed by [pol]. *)
Fixpoint permits (pol : axis -> bool) (e : term) : bool :=
  match e with
  | EVar _ | EK _ | ERecall _ | ERecv _ _ | EClear => true
  | ELam e | EPrim _ e | ERemember _ e | ESend e | EFork e | EFresh e | EFail e | ECheck _ e
  | ECall _ e | EWithin _ e => permits pol e
  | EApp e1 e2 | EGet e1 e2 | EChoose _ e1 e2 | EGuard e1 e2 _
  | ELab e1 e2 | ETest e1 e2 | EAssert e1 e2 | EEach e1 e2 => permits pol e1 && permits pol e2
  | EReclass ax e1 e2 => pol ax && (permits pol e1 && permits pol e2)
  | ESet e1 e2 e3 | ETry _ e1 e2 e3 => permits pol e1 && (permits pol e2 && permits pol e3)
  | ECon _ es | EPar es => forallb (permits pol) es
  | ECase e bs d =>
      permits pol e && (forallb (fun b => permits pol (snd b)) bs
        && match d with Some e' => permits pol e' | None => true end)
  end.

(** [free i e]: variable [i] occurs free in [e]. *)
Fixpoint free (i : nat) (e : term) : bool :=
  match e with
  | EVar j => Nat.eqb i j
  | EK _ | ERecall _ | ERecv _ _ | EClear => false
  | ELam e => free (S i) e
  | EPrim _ e | ERemember _ e | ESend e | EFork e | EFresh e | EFail e | ECheck _ e
  | ECall _ e | EWithin _ e => free i e
  | EApp e1 e2 | EGet e1 e2 | EChoose _ e1 e2 | EGuard e1 e2 _
  | ELab e1 e2 | ETest e1 e2 | EAssert e1 e2 | EReclass _ e1 e2 | EEach e1 e2 => free i e1 || free i e2
  | ESet e1 e2 e3 => free i e1 || (free i e2 || free i e3)
  | ETry _ e1 e2 e3 => free i e1 || (free i e2 || free (S i) e3)
  | ECon _ es | EPar es => existsb (free i) es
  | ECase e bs d =>
      free i e || (existsb (fun b => free i (snd b)) bs
        || match d with Some e' => free i e' | None => false end)
  end.

(** Label-free data: what primitives, tools, models and label functions see.
    Functions appear as code with a stripped environment. *)
Inductive data :=
| DK (k : scalar)
| DCon (c : con) (ds : list data)
| DClo (env : list data) (e : term).

Fixpoint data_permits (pol : axis -> bool) (d : data) : bool :=
  match d with
  | DK _ => true
  | DCon _ ds => forallb (data_permits pol) ds
  | DClo env e => forallb (data_permits pol) env && permits pol e
  end.

(** ** What primitives look at

    A primitive looks at its operands step by step, and each step may depend on
    what it saw before: at the constructor of a part ([Looks]: a scalar, or how
    many parts there are), or at all of it ([Reads]).  It gives data that it
    made, and parts as they are.  A part is named by the positions that lead to
    it; [None] is one that is not there. *)
Inductive head :=
| HK (k : scalar)
| HCon (c : con) (parts : nat)
| HClo.

Inductive given :=
| GData (d : data)
| GPart (path : list nat)
| GCon (c : con) (gs : list given).

Inductive look :=
| Gives (g : given)
| Fails (message : string)
| Looks (path : list nat) (k : option head -> look)
| Reads (path : list nat) (k : option data -> look).

(** One that looks at everything. *)
Definition whole (f : data -> data + string) : look :=
  Reads [] (fun d =>
    match d with
    | Some d => match f d with inl r => Gives (GData r) | inr m => Fails m end
    | None => Fails "no operands"
    end).

Fixpoint given_permits (pol : axis -> bool) (g : given) : bool :=
  match g with
  | GData d => data_permits pol d
  | GPart _ => true
  | GCon _ gs => forallb (given_permits pol) gs
  end.

Section Values.
  Context {L : lattice}.

  (** Labeled values [l : v]; the parts of a structure and the captured
      environment of a closure are labeled themselves. *)
  Inductive lval :=
  | Lab (l : L) (v : val)
  with val :=
  | VK (k : scalar)
  | VCon (c : con) (vs : list lval)
  | VClo (env : list lval) (e : term).

  Definition label_of (V : lval) : L := match V with Lab l _ => l end.

  (** Reading a value joins the label of the reader's context. *)
  Definition raise (l : L) (V : lval) : lval :=
    match V with Lab l' v => Lab (join l l') v end.

  Definition joins (ls : list L) : L := fold_right join bot ls.

  Fixpoint deep_label (V : lval) : L :=
    match V with
    | Lab l v => join l
        match v with
        | VK _ => bot
        | VCon _ vs => joins (map deep_label vs)
        | VClo env _ => joins (map deep_label env)
        end
    end.

  Fixpoint strip (V : lval) : data :=
    match V with
    | Lab _ v =>
        match v with
        | VK k => DK k
        | VCon c vs => DCon (plain c) (map strip vs)
        | VClo env e => DClo (map strip env) e
        end
    end.

  (** [wrap] stamps the bottom label on every part. *)
  Fixpoint wrap (d : data) : val :=
    match d with
    | DK k => VK k
    | DCon c ds => VCon (plain c) (map (fun d => Lab bot (wrap d)) ds)
    | DClo env e => VClo (map (fun d => Lab bot (wrap d)) env) e
    end.

  (** A closure captures the variables its body uses and nothing else, so that
      [deep_label] of a function does not depend on bystanders. *)
  Fixpoint capture_from (i : nat) (env : list lval) (body : term) : list lval :=
    match env with
    | [] => []
    | V :: env' =>
        (if free i body then V else Lab bot (VK KNull)) :: capture_from (S i) env' body
    end.

  Definition capture (env : list lval) (body : term) : list lval :=
    capture_from 1 env body.

  (** The part at a path, and the labels of what it is in: that it is there is
      known to those who see them. *)
  Fixpoint way (path : list nat) (V : lval) : L * option lval :=
    match path with
    | [] => (bot, Some V)
    | i :: path' =>
        match V with
        | Lab l (VCon _ vs) =>
            match nth_error vs i with
            | Some W => let (m, r) := way path' W in (join l m, r)
            | None => (l, None)
            end
        | Lab l _ => (l, None)
        end
    end.

  Definition head_of (V : lval) : head :=
    match V with
    | Lab _ (VK k) => HK k
    | Lab _ (VCon c vs) => HCon (plain c) (List.length vs)
    | Lab _ (VClo _ _) => HClo
    end.

  (** What a primitive gives, and the label of what it saw. *)
  Fixpoint see (l : L) (k : look) (V : lval) : L * (given + string) :=
    match k with
    | Gives g => (l, inl g)
    | Fails m => (l, inr m)
    | Looks path k =>
        match way path V with
        | (m, Some W) => see (join l (join m (label_of W))) (k (Some (head_of W))) V
        | (m, None) => see (join l m) (k None) V
        end
    | Reads path k =>
        match way path V with
        | (m, Some W) => see (join l (join m (deep_label W))) (k (Some (strip W))) V
        | (m, None) => see (join l m) (k None) V
        end
    end.

  (** Parts are given as they are.  What they were in is known to whoever sees
      that they are given. *)
  Fixpoint give (g : given) (V : lval) : lval :=
    match g with
    | GData d => Lab bot (wrap d)
    | GPart path => match snd (way path V) with Some W => W | None => Lab bot (VK KNull) end
    | GCon c gs => Lab bot (VCon (plain c) (map (fun g => give g V) gs))
    end.

  Fixpoint ways (g : given) (V : lval) : L :=
    match g with
    | GData _ => bot
    | GPart path => fst (way path V)
    | GCon _ gs => joins (map (fun g => ways g V) gs)
    end.

End Values.

Arguments lval : clear implicits.
Arguments val : clear implicits.

(** ** Access to structured data *)

Definition scalar_eqb (a b : scalar) : bool :=
  match a, b with
  | KNull, KNull => true
  | KBool x, KBool y => Bool.eqb x y
  | KNum x, KNum y => Qeq_bool x y
  | KStr x, KStr y | KTag x, KTag y => String.eqb x y
  | _, _ => false
  end.

Definition index_of_num (q : Q) : option nat :=
  if (Qnum q <? 0)%Z then None
  else if Pos.eqb (Qden q) 1 then Some (Z.to_nat (Qnum q)) else None.

Fixpoint position (f : string) (fs : list string) : option nat :=
  match fs with
  | [] => None
  | g :: fs' => if String.eqb f g then Some 0%nat else option_map S (position f fs')
  end.

(** The position that selector [k] denotes in a structure of shape [c]. *)
Definition select (c : con) (k : scalar) : option nat :=
  match c, k with
  | CList, KNum q => index_of_num q
  | CPair, KTag t =>
      if String.eqb t "fst" then Some 0%nat else if String.eqb t "snd" then Some 1%nat else None
  | CVariant _, KTag t => if String.eqb t "payload" then Some 0%nat else None
  | CRec fs, KStr f => position f fs
  | _, _ => None
  end.

Fixpoint set_nth {A} (i : nat) (x : A) (xs : list A) : option (list A) :=
  match i, xs with
  | O, _ :: xs' => Some (x :: xs')
  | S i', y :: xs' => option_map (cons y) (set_nth i' x xs')
  | _, [] => None
  end.

(** A string that counts as a tag has the payload [null]. *)
Definition no_payload (k1 k2 : scalar) : bool :=
  match k1, k2 with KStr _, KTag t => String.eqb t "payload" | _, _ => false end.

(** Replacing a part; assigning an absent field of a record adds it. *)
Definition update {A} (c : con) (k : scalar) (x : A) (xs : list A) : option (con * list A) :=
  match select c k with
  | Some i => option_map (pair c) (set_nth i x xs)
  | None =>
      match c, k with
      | CRec fs, KStr f => Some (CRec (fs ++ [f]), xs ++ [x])
      | _, _ => None
      end
  end.

(** The branch that [case] takes. *)
Fixpoint branch (k : scalar) (bs : list (scalar * term)) (d : option term) : option term :=
  match bs with
  | [] => d
  | (k', e) :: bs' => if scalar_eqb k k' then Some e else branch k bs' d
  end.

(** What [case] dispatches on: a scalar, or the tag of a variant.  A string
    counts as the tag of that name. *)
Definition dispatch {L : lattice} (v : val L) : option scalar :=
  match v with
  | VK (KStr t) => Some (KTag t)
  | VK k => Some k
  | VCon (CVariant t) _ => Some (KTag t)
  | _ => None
  end.

Definition chosen {L : lattice} (v : val L) (bs : list (scalar * term)) (d : option term)
    : option term :=
  match dispatch v with Some k => branch k bs d | None => d end.

(** ** Sugar *)

Definition ELet (e1 e2 : term) : term := EApp (ELam e2) e1.
Definition EFst (e : term) : term := EGet e (EK (KTag "fst")).
Definition ESnd (e : term) : term := EGet e (EK (KTag "snd")).
Definition EPayload (e : term) : term := EGet e (EK (KTag "payload")).
Definition ESeq (e1 e2 : term) : term := ESnd (ECon CPair [e1; e2]).
Definition EIf (e e1 e2 : term) : term := ECase e [(KBool true, e1); (KBool false, e2)] None.
Definition EFix (n : option nat) (e : term) : term := ECon (CFix n) [e].
Definition EAsk (m : name) (e : term) : term := ELet (ESend e) (ERecv m AsCode).
Definition EQuarantine (m : name) (e : term) : term := EFresh (EAsk m e).
(** [llm p t], with the parameters in the model's name. *)
Definition ELlm (m : name) (system : string) : term :=
  ELam (EFresh (ELet (ESend (EK (KStr system))) (ELet (ESend (EVar 1)) (ERecv m (AsData 0))))).
Definition ETool (f : name) : term := ECon (CTool f) [].
