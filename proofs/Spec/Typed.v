(** * The typed calculus

    The formers of lambda-A (seed 000, section 3) with the corrections of
    docs/calculus.md section 4.  Direct style: [case] and [guard] take a value,
    not a function.  Substitution semantics: evaluation substitutes closed
    values only, so that nothing is ever shifted.

    A step is a function: progress says that it never answers [Stuck], and
    there is no second definition of evaluation to keep in agreement. *)

Require Import List String Bool.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.

Definition name := string.

(** ** Types *)

Inductive ty :=
| TStr
| TUnit
| TArr (a b : ty)
| TProd (a b : ty)
| TSum (r : row)                       (* < l : t, ... > *)
| TRef (a : ty) (P : name)             (* { x : t | P } *)
with row :=
| RNil
| RCons (t : name) (a : ty) (r : row).

Fixpoint lookup (t : name) (r : row) : option ty :=
  match r with
  | RNil => None
  | RCons t' a r' => if String.eqb t t' then Some a else lookup t r'
  end.

Definition TOption (a : ty) : ty := TSum (RCons "none" TUnit (RCons "some" a RNil)).
Definition TBool : ty := TSum (RCons "true" TUnit (RCons "false" TUnit RNil)).

(** Types of data: no function inside.  Stores and replies of the world hold
    data only.  (A key of function type would give recursion without [fix].) *)
Fixpoint ground (a : ty) : bool :=
  match a with
  | TStr | TUnit => true
  | TArr _ _ => false
  | TProd a b => ground a && ground b
  | TSum r => ground_row r
  | TRef a _ => ground a
  end
with ground_row (r : row) : bool :=
  match r with
  | RNil => true
  | RCons _ a r' => ground a && ground_row r'
  end.

(** ** Terms *)

Inductive tm :=
| Var (i : nat)
| Str (s : string)
| Unit
| Lam (a : ty) (e : tm)
| App (e1 e2 : tm)
| Pair (e1 e2 : tm)
| Fst (e : tm)
| Snd (e : tm)
| Tag (t : name) (e : tm)
| Case (e : tm) (b : brs)
| Guard (e0 e : tm) (P : name) (r : nat)   (* [e0] starts over; [e] is under way; [r] retries left *)
| Fix (n : option nat) (e : tm)            (* [None]: unbounded *)
| Tool (f : name)
| Llm (p : name)
| Classify (ts : list name) (e : tm)
| Choose (p : name) (e1 e2 : tm)
| Mem (init : list (name * tm)) (e : tm)
| Recall (k : name)
| Remember (k : name) (e : tm)
with brs :=
| BNone
| BElse (e : tm)
| BCase (t : name) (e : tm) (b : brs).     (* binds the payload *)

(** [guard e P retry r]. *)
Definition guard (e : tm) (P : name) (r : nat) : tm := Guard e e P r.

(** Composition of closed functions; [a] is the type of the input. *)
Definition comp (a : ty) (f g : tm) : tm := Lam a (App g (App f (Var 0))).
Definition ident (a : ty) : tm := Lam a (Var 0).

Fixpoint isval (e : tm) : bool :=
  match e with
  | Str _ | Unit | Lam _ _ | Tool _ | Llm _ => true
  | Pair a b => isval a && isval b
  | Tag _ e | Fix _ e => isval e
  | _ => false
  end.

(** Replacing variable [j] by a closed term. *)
Fixpoint subst (j : nat) (v e : tm) : tm :=
  match e with
  | Var i => match Nat.compare i j with Eq => v | Lt => Var i | Gt => Var (pred i) end
  | Str _ | Unit | Tool _ | Llm _ | Recall _ => e
  | Lam a e => Lam a (subst (S j) v e)
  | App e1 e2 => App (subst j v e1) (subst j v e2)
  | Pair e1 e2 => Pair (subst j v e1) (subst j v e2)
  | Fst e => Fst (subst j v e)
  | Snd e => Snd (subst j v e)
  | Tag t e => Tag t (subst j v e)
  | Case e b => Case (subst j v e) (subst_brs j v b)
  | Guard e0 e P r => Guard (subst j v e0) (subst j v e) P r
  | Fix n e => Fix n (subst j v e)
  | Classify ts e => Classify ts (subst j v e)
  | Choose p e1 e2 => Choose p (subst j v e1) (subst j v e2)
  | Mem init e => Mem init (subst j v e)
  | Remember k e => Remember k (subst j v e)
  end
with subst_brs (j : nat) (v : tm) (b : brs) : brs :=
  match b with
  | BNone => BNone
  | BElse e => BElse (subst j v e)
  | BCase t e b => BCase t (subst (S j) v e) (subst_brs j v b)
  end.

(** The branch for a tag, with the payload put in. *)
Fixpoint pick (t : name) (v : tm) (b : brs) : option tm :=
  match b with
  | BNone => None
  | BElse e => Some e
  | BCase t' e b' => if String.eqb t t' then Some (subst 0 v e) else pick t v b'
  end.

(** ** The world *)

(** What a run did, newest first. *)
Inductive action :=
| AModel (p : name) (s : string)
| ATool (f : name) (v : tm)
| ASample (p : name)
| AUnfold.

(** Models, tools, samples, classifiers and predicates are arbitrary
    functions; [None] is a failure. *)
Record world := World {
  w_llm : name -> string -> list action -> option string;
  w_tool : name -> tm -> list action -> option tm;
  w_sample : name -> list action -> bool;
  w_classify : list name -> string -> option name;
  w_pred : name -> tm -> bool;
  w_kept : name -> list action -> bool
}.

(** Types of tools and keys. *)
Record signature := Signature {
  tool_arg : name -> ty;
  tool_res : name -> ty;
  key_ty : name -> ty
}.

(** The checked errors. *)
Inductive error := GuardFailed | ClassifyFailed | ToolFailed | ModelFailed | DecodeFailed.

Record state := State { store : name -> option tm; log : list action }.

Definition record (a : action) (s : state) : state := State (store s) (a :: log s).
Definition put (k : name) (v : tm) (s : state) : state :=
  State (fun k' => if String.eqb k k' then Some v else store s k') (log s).
Definition puts (init : list (name * tm)) (s : state) : state :=
  fold_right (fun kv s => put (fst kv) (snd kv) s) s init.

Inductive answer :=
| IsVal
| Next (e : tm) (s : state)
| Fail (x : error)
| Stuck.

Section Step.
  Variable W : world.
  Variable G : signature.

  (** Data of a type, decided: what is checked of a tool's reply. *)
  Fixpoint inhabits (a : ty) (v : tm) : bool :=
    match a, v with
    | TStr, Str _ => true
    | TUnit, Unit => true
    | TProd a b, Pair v1 v2 => inhabits a v1 && inhabits b v2
    | TSum r, Tag t v => inhabits_row r t v
    | TRef a P, _ => inhabits a v && w_pred W P v
    | _, _ => false
    end
  with inhabits_row (r : row) (t : name) (v : tm) : bool :=
    match r with
    | RNil => false
    | RCons t' a r' => if String.eqb t t' then inhabits a v else inhabits_row r' t v
    end.

  (** A subterm in evaluation position: it goes first. *)
  Definition within (r : answer) (f : tm -> tm) (k : answer) : answer :=
    match r with
    | IsVal => k
    | Next e s => Next (f e) s
    | Fail x => Fail x
    | Stuck => Stuck
    end.

  (** One unfolding; a functional that is literally [\self. \x. e] takes both
      arguments at once. *)
  Definition unfold_fix (n : option nat) (F v : tm) : tm :=
    match F with
    | Lam _ (Lam _ e) => subst 0 v (subst 1 (Fix n F) e)
    | _ => App (App F (Fix n F)) v
    end.

  Definition beta (f v : tm) (s : state) : answer :=
    match f with
    | Lam _ e => Next (subst 0 v e) s
    | Fix (Some O) _ => Next v s
    | Fix (Some (S n)) F => Next (unfold_fix (Some n) F v) (record AUnfold s)
    | Fix None F => Next (unfold_fix None F v) (record AUnfold s)
    | Llm p =>
        match v with
        | Str q =>
            match w_llm W p q (log s) with
            | Some r => Next (Str r) (record (AModel p q) s)
            | None => Fail ModelFailed
            end
        | _ => Stuck
        end
    | Tool g =>
        match w_tool W g v (log s) with
        | Some r =>
            if inhabits (tool_res G g) r then Next r (record (ATool g v) s) else Fail DecodeFailed
        | None => Fail ToolFailed
        end
    | _ => Stuck
    end.

  Fixpoint step (e : tm) (s : state) : answer :=
    match e with
    | Var _ => Stuck
    | Str _ | Unit | Lam _ _ | Tool _ | Llm _ => IsVal
    | App e1 e2 =>
        within (step e1 s) (fun e1' => App e1' e2)
       (within (step e2 s) (fun e2' => App e1 e2')
       (beta e1 e2 s))
    | Pair e1 e2 =>
        within (step e1 s) (fun e1' => Pair e1' e2)
       (within (step e2 s) (fun e2' => Pair e1 e2')
        IsVal)
    | Fst e => within (step e s) Fst (match e with Pair v _ => Next v s | _ => Stuck end)
    | Snd e => within (step e s) Snd (match e with Pair _ v => Next v s | _ => Stuck end)
    | Tag t e => within (step e s) (Tag t) IsVal
    | Case e b =>
        within (step e s) (fun e' => Case e' b)
          (match e with
           | Tag t v => match pick t v b with Some e' => Next e' s | None => Stuck end
           | _ => Stuck
           end)
    | Guard e0 e P r =>
        within (step e s) (fun e' => Guard e0 e' P r)
          (if w_pred W P e then Next e s
           else match r with O => Fail GuardFailed | S r' => Next (Guard e0 e0 P r') s end)
    | Fix n e => within (step e s) (Fix n) IsVal
    | Classify ts e =>
        within (step e s) (Classify ts)
          (match e with
           | Str q =>
               match w_classify W ts q with
               | Some t => if existsb (String.eqb t) ts then Next (Tag t Unit) s else Fail ClassifyFailed
               | None => Fail ClassifyFailed
               end
           | _ => Stuck
           end)
    | Choose p e1 e2 =>
        Next (if w_sample W p (log s) then e1 else e2) (record (ASample p) s)
    | Mem init e => Next e (puts init s)
    | Recall k =>
        Next (match store s k with
              | Some v => if w_kept W k (log s) then Tag "some" v else Tag "none" Unit
              | None => Tag "none" Unit
              end) s
    | Remember k e => within (step e s) (Remember k) (Next Unit (put k e s))
    end.

  (** Many steps. *)
  Inductive steps : tm -> state -> tm -> state -> Prop :=
  | steps_refl : forall e s, steps e s e s
  | steps_next : forall e s e1 s1 e2 s2,
      step e s = Next e1 s1 -> steps e1 s1 e2 s2 -> steps e s e2 s2.

  (** The same, run for at most [n] steps. *)
  Fixpoint run (n : nat) (e : tm) (s : state) : tm * state :=
    match n with
    | O => (e, s)
    | S n' => match step e s with Next e' s' => run n' e' s' | _ => (e, s) end
    end.

  (** ** Typing *)

  (** [ub]: whether [fix] without a bound is allowed.  [S k]: key [k] is in
      scope. *)
  Variable ub : bool.

  Definition keys := name -> bool.
  Definition add_keys (init : list (name * tm)) (S : keys) : keys :=
    fun k => S k || existsb (fun kv => String.eqb k (fst kv)) init.

  Fixpoint tags_row (ts : list name) : row :=
    match ts with [] => RNil | t :: ts' => RCons t TUnit (tags_row ts') end.

  (** Every tag of the type has a branch. *)
  Definition covers (r : row) (b : brs) : Prop :=
    forall t a, lookup t r = Some a -> forall v, pick t v b <> None.

  Inductive has : keys -> list ty -> tm -> ty -> Prop :=
  | T_Var : forall S C i a, nth_error C i = Some a -> has S C (Var i) a
  | T_Str : forall S C s, has S C (Str s) TStr
  | T_Unit : forall S C, has S C Unit TUnit
  | T_Lam : forall S C a b e, has S (a :: C) e b -> has S C (Lam a e) (TArr a b)
  | T_App : forall S C a b e1 e2, has S C e1 (TArr a b) -> has S C e2 a -> has S C (App e1 e2) b
  | T_Pair : forall S C a b e1 e2, has S C e1 a -> has S C e2 b -> has S C (Pair e1 e2) (TProd a b)
  | T_Fst : forall S C a b e, has S C e (TProd a b) -> has S C (Fst e) a
  | T_Snd : forall S C a b e, has S C e (TProd a b) -> has S C (Snd e) b
  | T_Tag : forall S C t a r e, lookup t r = Some a -> has S C e a -> has S C (Tag t e) (TSum r)
  | T_Case : forall S C r a e b, has S C e (TSum r) -> covers r b -> has_brs S C r b a ->
      has S C (Case e b) a
  | T_Guard : forall S C a P r e0 e, has S C e0 a -> has S C e a -> has S C (Guard e0 e P r) (TRef a P)
  | T_Fix : forall S C n a e, (n = None -> ub = true) ->
      has S C e (TArr (TArr a a) (TArr a a)) -> has S C (Fix n e) (TArr a a)
  | T_Tool : forall S C f, has S C (Tool f) (TArr (tool_arg G f) (tool_res G f))
  | T_Llm : forall S C p, has S C (Llm p) (TArr TStr TStr)
  | T_Classify : forall S C ts e, has S C e TStr -> has S C (Classify ts e) (TSum (tags_row ts))
  | T_Choose : forall S C p a e1 e2, has S C e1 a -> has S C e2 a -> has S C (Choose p e1 e2) a
  | T_Mem : forall S C init a e,
      (forall k v, In (k, v) init -> inhabits (key_ty G k) v = true) ->
      has (add_keys init S) C e a -> has S C (Mem init e) a
  | T_Recall : forall S C k, S k = true -> has S C (Recall k) (TOption (key_ty G k))
  | T_Remember : forall S C k e, S k = true -> ground (key_ty G k) = true ->
      has S C e (key_ty G k) -> has S C (Remember k e) TUnit
  | T_Refine : forall S C a P v, isval v = true -> w_pred W P v = true ->
      has S [] v a -> has S C v (TRef a P)
  | T_Forget : forall S C a P e, has S C e (TRef a P) -> has S C e a
  with has_brs : keys -> list ty -> row -> brs -> ty -> Prop :=
  | TB_None : forall S C r a, has_brs S C r BNone a
  | TB_Else : forall S C r a e, has S C e a -> has_brs S C r (BElse e) a
  | TB_Case : forall S C r a t c e b, lookup t r = Some c -> has S (c :: C) e a ->
      has_brs S C r b a -> has_brs S C r (BCase t e b) a.

  (** A store that respects the types of the keys in scope. *)
  Definition store_ok (S : keys) (s : state) : Prop :=
    forall k v, store s k = Some v -> S k = true /\ inhabits (key_ty G k) v = true.

  Definition subkeys (S S' : keys) : Prop := forall k, S k = true -> S' k = true.
End Step.

Scheme has_mind := Induction for has Sort Prop
  with has_brs_mind := Induction for has_brs Sort Prop.
Combined Scheme has_mutind from has_mind, has_brs_mind.

Scheme tm_mind := Induction for tm Sort Prop
  with brs_mind := Induction for brs Sort Prop.
Combined Scheme tm_mutind from tm_mind, brs_mind.

Scheme ty_mind := Induction for ty Sort Prop
  with row_mind := Induction for row Sort Prop.
Combined Scheme ty_mutind from ty_mind, row_mind.
