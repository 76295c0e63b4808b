(** * What the error-level lint rules say about terms

    Seed 000, Theorem 5.8, for the rules that are statements about evaluation.
    L004 for every body is in [Loops].  (L002, no model, is no statement about
    terms: without a model there is none.) *)

Require Import String List Bool Lia Arith.
Require Import Entail.Spec.Typed Entail.Thm.TypeSafety Entail.Thm.Algebra.
Import ListNotations.
Local Open Scope nat_scope.

Section Lint.
  Variable W : world.
  Variable G : signature.
  Notation step := (step W G).
  Notation steps := (steps W G).

  (** L001: of an agent that is told nothing the program says nothing: any
      function of its input may be what it computes, in some world. *)
  Theorem L001_anything : forall (g : string -> string) q s,
    exists W', w_tool W' = w_tool W /\ w_pred W' = w_pred W /\
      Typed.step W' G (App (Llm ""%string) (Str q)) s = Next (Str (g q)) (record (AModel ""%string q) s).
  Proof.
    intros g q s.
    exists (World (fun _ x _ => Some (g x)) (w_tool W) (w_sample W) (w_classify W) (w_pred W) (w_kept W)).
    repeat split.
  Qed.

  (** L003: a loop bounded by nought returns its input, whatever its body; it
      asks nothing of the world. *)
  Theorem L003_vacuous : forall F v, isval F = true -> isval v = true ->
    equiv W G (App (Fix (Some 0) F) v) v.
  Proof.
    intros F v VF V. apply equiv_step. intros s. cbn.
    apply (step_val W G F s) in VF. apply (step_val W G v s) in V. rewrite VF. cbn. rewrite V.
    reflexivity.
  Qed.

  (** L005: a dispatch without branches is stuck on every tag... *)
  Theorem L005_stuck : forall t v s, isval v = true -> step (Case (Tag t v) BNone) s = Stuck.
  Proof.
    intros t v s V. cbn. apply (step_val W G v s) in V. rewrite V. reflexivity.
  Qed.

  (** ...and has a type only if the tags to dispatch on are none. *)
  Theorem L005_untypable : forall ub S C r e t c,
    has W G ub S C e (TSum r) -> lookup t r = Some c ->
    ~ covers r BNone.
  Proof. intros ub S C r e t c _ E Cv. apply (Cv t c E Unit). reflexivity. Qed.

  (** L006: a composition of no stages gives its input back, in one step that
      asks nothing of the world. *)
  Theorem L006_identity : forall t v s, isval v = true -> step (App (ident t) v) s = Next v s.
  Proof. intros t v s V. cbn. apply (step_val W G v s) in V. rewrite V. reflexivity. Qed.

  (** L013: a dispatch that lacks a branch for a tag of its classifier, and
      has no default, is not typable; with a default it covers every tag. *)
  Theorem L013_default : forall r b e,
    covers r (BElse e) /\
    (forall t c, lookup t r = Some c -> pick t Unit b = None -> ~ covers r b).
  Proof.
    intros r b e. split.
    - intros t c _ v. discriminate.
    - intros t c E P Cv. exact (Cv t c E Unit P).
  Qed.

  (** L004: if every way through the body of a loop ends in another round, no
      round gives a result of its own; what comes out at the bound is the last
      argument.  Here for the body that does nothing else: [n] rounds, then
      the input.  Without a bound it does not end. *)
  Definition only_again : tm := Lam (TArr TStr TStr) (Lam TStr (App (Var 1) (Var 0))).

  Theorem L004_truncated : forall n q s, exists s',
    steps (App (Fix (Some n) only_again) (Str q)) s (Str q) s' /\
    log s' = repeat AUnfold n ++ log s /\ store s' = store s.
  Proof.
    induction n as [| n IH]; intros q s.
    - exists s. split; auto. eapply steps_next; [reflexivity | constructor].
    - destruct (IH q (record AUnfold s)) as (s' & St & Lg & Sr). exists s'. split; [| split; auto].
      + eapply steps_next; [reflexivity | exact St].
      + rewrite Lg. cbn [log record]. clear. induction n; cbn in *; congruence.
  Qed.

  Theorem L004_diverges : forall n q s, exists s',
    run W G n (App (Fix None only_again) (Str q)) s = (App (Fix None only_again) (Str q), s').
  Proof.
    induction n as [| n IH]; intros q s; [eexists; reflexivity |].
    cbn. apply (IH q (record AUnfold s)).
  Qed.
End Lint.
