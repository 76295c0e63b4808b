(** * The bounded choice is about something

    Runs to which [bounded_choice_both] applies: of planned calls, and of a choice
    from a set. *)

Require Import List String QArith Bool.
Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp.
Require Import Entail.Thm.Relation Entail.Thm.Noninterference Entail.Thm.Flow Entail.Thm.Planned.
Require Import Entail.Thm.Examples.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.

(** A world without approvals, and with sets for calls that the observer does not
    see: nothing in it is endorsed for who sees what is public and trusted. *)
Definition plan_world : host L := world_of false (fun _ _ a => a).

Lemma plan_world_keeps : tools_keep plan_world no_axis pub.
Proof.
  split; [| split; [| split]].
  - discriminate.
  - intros f p E. simpl in E. destruct (String.eqb f "checked"); inversion E. reflexivity.
  - reflexivity.
  - intros f c I. right. right. simpl in I |- *.
    destruct (String.eqb f "pay") eqn:P; [apply String.eqb_eq in P; subst; auto |].
    destruct (String.eqb f "wire") eqn:W; [apply String.eqb_eq in W; subst; auto |]. contradiction.
Qed.

Definition trace_of (env : list (lval L)) (s : state L) (e : term) : list (event L) :=
  tr (snd (eval (F := F) plan_world 50 pub env s e)).

(** What the theorem says of the last call of a run, if the other run has shown as much. *)
Lemma call_offered : forall n1 n2 env1 env2 s e f args k older t2,
  permits no_axis e = true -> lsrel no_axis pub env1 env2 -> srel pub s s -> tr s = [] -> Forall (known []) env1 ->
  tr (snd (eval (F := F) plan_world n1 pub env1 s e)) = [] ++ Event unt (RTool f args k) :: older ->
  tr (snd (eval (F := F) plan_world n2 pub env2 s e)) = t2 ->
  (forall c u t, older = Event c (RDecided f u) :: t -> flows u pub = false) ->
  visible pub older = visible pub t2 ->
  (forall i, (i < List.length (tool_params plan_world f))%nat -> flows (bound_at (tool_args plan_world f) i) pub = true) ->
  offered plan_world pub t2 (fixed s) f args.
Proof.
  intros n1 n2 env1 env2 s e f args k older t2 P R S T K E1 E2 D V B.
  assert (O : offered plan_world pub (tr (snd (eval (F := F) plan_world n2 pub env2 s e))) (fixed s) f args \/
    decided_in_sight pub older f \/
    (exists u, u <> [] /\ visible pub older = u ++ visible pub (tr (snd (eval (F := F) plan_world n2 pub env2 s e))))).
  { apply (bounded_choice_both (F := F) plan_world (fun t => Forall_nil _) no_axis pub n1 n2 pub env1 env2 s s e [] unt f args k older);
      [discriminate | discriminate | constructor | apply plan_world_keeps | exact P | exact R | exact S
      | rewrite T; exact K | rewrite T; exact I | exact E1 | reflexivity | exact B]. }
  rewrite E2 in O. destruct O as [O | [(c & u & t & X & Lo) | (u & N & X)]]; [exact O | |].
  - rewrite (D c u t X) in Lo. discriminate.
  - exfalso. apply N. rewrite V in X. apply (app_inv_tail (visible pub t2) u []). symmetry. exact X.
Qed.

(** Untrusted data decides whether [pay] is called, in one of two worlds: in the
    other one, which makes no call, the same arguments were made. *)
Definition perhaps : term := ELet bill (EIf (EVar 1) (ECall "pay" (EVar 0)) (num 0)).
Definition called_trace := Eval vm_compute in trace_of (untrusted true) empty perhaps.
Definition other_trace := Eval vm_compute in trace_of (untrusted false) empty perhaps.

Example choice_of_planned :
  let args := [DK (KStr "bob"); DK (KNum 5)] in
  trace_of (untrusted true) empty perhaps = Event unt (RTool "pay" args "pay") :: tl called_trace /\
  trace_of (untrusted false) empty perhaps = other_trace /\
  existsb (fun ev : event L => match what ev with RTool _ _ _ => true | _ => false end) other_trace = false /\
  offered plan_world pub other_trace bare "pay" args.
Proof.
  cbv zeta. split; [runs |]. split; [runs |]. split; [runs |].
  apply (call_offered 50 50 (untrusted true) (untrusted false) empty perhaps "pay" _ "pay" (tl called_trace)).
  - reflexivity.
  - repeat constructor.
  - split; [left; split; reflexivity | split; [split; [split; [reflexivity |] |] |]]; try reflexivity.
    intros l. split; [left; split; reflexivity | reflexivity].
  - reflexivity.
  - repeat constructor.
  - runs.
  - runs.
  - intros c u t X. symmetry. exact (f_equal (fun t => match t with Event _ (RDecided _ u) :: _ => flows u pub | _ => false end) X).
  - runs.
  - intros [| [| i]] N; try reflexivity. exfalso. simpl in N. do 2 apply PeanoNat.Nat.succ_lt_mono in N. inversion N.
Qed.

(** Untrusted data decides whether to pay, and whom: one of a set that both worlds
    share.  What the other world calls with is another one of it; with what is in no
    set, there is no call. *)
Definition pay_to : term :=
  ELet (ECon (CArgs "pay" ["to"; "n"]) [EVar 0; num 5]) (EIf (EVar 2) (ECall "pay" (EVar 0)) (num 0)).
Definition payee (k : string) : list (lval L) := with_text k ++ untrusted true.
Definition ann_trace := Eval vm_compute in trace_of (payee "ann") with_sets pay_to.
Definition bob_trace := Eval vm_compute in trace_of (payee "bob") with_sets pay_to.

Example choice_from_set :
  let args k := [DK (KStr k); DK (KNum 5)] in
  trace_of (payee "ann") with_sets pay_to = Event unt (RTool "pay" (args "ann") "pay") :: tl ann_trace /\
  trace_of (payee "bob") with_sets pay_to = Event unt (RTool "pay" (args "bob") "pay") :: tl bob_trace /\
  existsb (fun ev : event L => match what ev with RTool _ _ _ => true | _ => false end) (trace_of (payee "eve") with_sets pay_to) = false /\
  offered plan_world pub bob_trace (fixed with_sets) "pay" (args "ann") /\
  ~ offered plan_world pub bob_trace (fixed with_sets) "pay" (args "eve").
Proof.
  cbv zeta. split; [runs |]. split; [runs |]. split; [runs |].
  split.
  - apply (call_offered 50 50 (payee "ann") (payee "bob") with_sets pay_to "pay" _ "pay" (tl ann_trace)).
    + reflexivity.
    + repeat constructor.
    + split; [left; split; reflexivity | split; [split; [split; [reflexivity |] |] |]]; try reflexivity.
      intros l. split; [left; split; reflexivity | reflexivity].
    + reflexivity.
    + repeat constructor.
    + runs.
    + runs.
    + intros c u t X. symmetry. exact (f_equal (fun t => match t with Event _ (RDecided _ u) :: _ => flows u pub | _ => false end) X).
    + runs.
    + intros [| [| i]] N; try reflexivity. exfalso. simpl in N. do 2 apply PeanoNat.Nat.succ_lt_mono in N. inversion N.
  - intros (fs & parts & P & A). specialize (A 0%nat "to"%string eq_refl).
    destruct A as [I | [[X _] | (c & Ic & _ & _ & Ho)]].
    + destruct P as [P | (ch & J)]; [rewrite P in I; exact I |].
      assert (All : Forall (fun ev : event L => match what ev with RArgs _ _ ps => ~ In ("to"%string, DK (KStr "eve")) ps | _ => True end)
        (visible pub bob_trace)).
      { vm_compute. repeat constructor; intros Y; repeat (destruct Y as [Y | Y]; [discriminate Y |]); exact Y. }
      rewrite Forall_forall in All. exact (All _ J I).
    + discriminate X.
    + destruct Ic as [<- | []]. vm_compute in Ho. discriminate Ho.
Qed.

