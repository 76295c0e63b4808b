(** * Loops that nothing ends

    L004 for every body: if each way through the body of a fixpoint calls the
    self reference, then without a bound no run ends in a value, and with a bound
    [n] every run that ends in one has unfolded at least [n] times.  (The rule
    in seed 000, section 5.4; docs/rules/L004a and L004b.) *)

Require Import String List Bool Lia Arith.
Require Import Entail.Spec.Typed Entail.Thm.TypeSafety Entail.Thm.Cost Entail.Thm.Termination.
Import ListNotations.
Local Open Scope nat_scope.

(** [always d e]: whoever evaluates [e] to a value applies variable [d] on the
    way.  This is what the rule looks for. *)
Fixpoint always (d : nat) (e : tm) : bool :=
  match e with
  | App e1 e2 =>
      (match e1 with Var i => i =? d | _ => false end) || (always d e1 || always d e2)
  | Pair a b => always d a || always d b
  | Fst e | Snd e | Tag _ e | Classify _ e | Remember _ e | Mem _ e | Fix _ e | Guard _ e _ _ => always d e
  | Choose _ a b => always d a && always d b
  | Case e b => always d e || always_brs d b
  | _ => false
  end
with always_brs (d : nat) (b : brs) : bool :=
  match b with
  | BNone => true
  | BElse e => always d e
  | BCase _ e b => always (S d) e && always_brs d b
  end.

Section Loops.
  Variable W : world.
  Variable G : signature.
  Notation step := (step W G).
  Notation steps := (steps W G).

  (** The same of a term that is being evaluated, of the function [f]. *)
  Inductive goes (f : tm) : tm -> Prop :=
  | goes_self : forall e, goes f (App f e)
  | goes_app1 : forall e1 e2, goes f e1 -> goes f (App e1 e2)
  | goes_app2 : forall e1 e2, goes f e2 -> goes f (App e1 e2)
  | goes_pair1 : forall a b, goes f a -> goes f (Pair a b)
  | goes_pair2 : forall a b, goes f b -> goes f (Pair a b)
  | goes_fst : forall e, goes f e -> goes f (Fst e)
  | goes_snd : forall e, goes f e -> goes f (Snd e)
  | goes_tag : forall t e, goes f e -> goes f (Tag t e)
  | goes_classify : forall ts e, goes f e -> goes f (Classify ts e)
  | goes_remember : forall k e, goes f e -> goes f (Remember k e)
  | goes_mem : forall i e, goes f e -> goes f (Mem i e)
  | goes_fix : forall n e, goes f e -> goes f (Fix n e)
  | goes_guard : forall a e P r, goes f e -> goes f (Guard a e P r)
  | goes_choose : forall p a b, goes f a -> goes f b -> goes f (Choose p a b)
  | goes_case : forall e b, goes f e -> goes f (Case e b)
  | goes_branches : forall e b, goes_brs f b -> goes f (Case e b)
  with goes_brs (f : tm) : brs -> Prop :=
  | goes_none : goes_brs f BNone
  | goes_else : forall e, goes f e -> goes_brs f (BElse e)
  | goes_branch : forall t e b, goes f e -> goes_brs f b -> goes_brs f (BCase t e b).

  Scheme goes_mind := Induction for goes Sort Prop
    with goes_brs_mind := Induction for goes_brs Sort Prop.
  Combined Scheme goes_mutind from goes_mind, goes_brs_mind.

  Hint Constructors goes goes_brs : core.

  (** The syntactic check implies it, once the self reference is put in. *)
  Lemma always_goes : forall f,
    (forall e d, always d e = true -> goes f (subst d f e)) /\
    (forall b d, always_brs d b = true -> goes_brs f (subst_brs d f b)).
  Proof.
    intros f. apply tm_mutind; cbn [always always_brs subst subst_brs]; intros;
      rewrite ?orb_true_iff, ?andb_true_iff in *; try discriminate;
      repeat match goal with
             | H : _ \/ _ |- _ => destruct H
             | H : _ /\ _ |- _ => destruct H
             end; auto.
    destruct e1; try discriminate. apply Nat.eqb_eq in H1. subst. cbn. rewrite Nat.compare_refl. auto.
  Qed.

  (** Substitution elsewhere does not take it away. *)
  Lemma goes_subst : forall f, below 0 f = true ->
    (forall e, goes f e -> forall j v, goes f (subst j v e)) /\
    (forall b, goes_brs f b -> forall j v, goes_brs f (subst_brs j v b)).
  Proof.
    intros f C. apply (goes_mutind f
      (fun e _ => forall j v, goes f (subst j v e)) (fun b _ => forall j v, goes_brs f (subst_brs j v b)));
      intros; cbn [subst subst_brs]; auto.
    replace (subst j v f) with f; auto.
    symmetry. apply (proj1 subst_below f 0); auto. lia.
  Qed.

  Lemma goes_pick : forall f, below 0 f = true -> forall b, goes_brs f b ->
    forall t v e, pick t v b = Some e -> goes f e.
  Proof.
    intros f C b. induction b as [| e0 | t0 e0 b IH]; intros Gb t v e P; cbn in P; try discriminate;
      inversion Gb; subst.
    - inversion P; subst. auto.
    - destruct (String.eqb t t0); [inversion P; subst; apply (proj1 (goes_subst f C)); auto | eauto].
  Qed.

  (** No value is still to call. *)
  Lemma goes_not_value : forall f e, goes f e -> isval e = false.
  Proof.
    intros f e Ge. induction Ge; cbn; auto; try rewrite IHGe; auto using andb_false_r.
  Qed.

  (** A step keeps it, or is the call. *)
  Lemma goes_step : forall f, below 0 f = true -> isval f = true ->
    forall e, goes f e -> forall s e' s', step e s = Next e' s' ->
    goes f e' \/
    exists v e1, isval v = true /\ beta W G f v s = Next e1 s' /\ forall g, goes g e1 -> goes g e'.
  Proof.
    intros f C V e Ge.
    assert (Val : forall e s, goes f e -> step e s <> IsVal).
    { intros e0 s G0 E. apply step_val in E. rewrite (goes_not_value _ _ G0) in E. discriminate. }
    (* a subterm that goes on, in a context *)
    assert (Ctx : forall e c k s e' s',
      (forall e' s', step e s = Next e' s' -> goes f e' \/
        exists v e1, isval v = true /\ beta W G f v s = Next e1 s' /\ forall g, goes g e1 -> goes g e') ->
      goes f e -> (forall g e, goes g e -> goes g (c e)) ->
      within (step e s) c k = Next e' s' ->
      goes f e' \/ exists v e1, isval v = true /\ beta W G f v s = Next e1 s' /\ forall g, goes g e1 -> goes g e').
    { intros e0 c k s e' s' IH G0 Cc E. specialize (Val e0 s G0).
      destruct (step e0 s) as [| e1 s1 | |] eqn:S0; cbn in E; try congruence.
      inversion E; subst. destruct (IH _ _ eq_refl) as [A | (v & e2 & Vv & B & A)]; auto.
      right. exists v, e2. auto. }
    induction Ge; intros s e' s' E; cbn in E.
    - (* the call itself *)
      assert (Sf : step f s = IsVal) by (apply step_val; auto). rewrite Sf in E. cbn in E.
      destruct (step e s) as [| e1 s1 | |] eqn:Se; cbn in E; try discriminate.
      + right. exists e, e'. split; [eapply step_val; eauto | auto].
      + inversion E; subst. auto.
    - eapply Ctx with (c := fun x => App x e2); eauto.
    - destruct (step e1 s) as [| e3 s3 | |] eqn:S1; cbn in E; try discriminate.
      + eapply Ctx with (c := fun e2' => App e1 e2'); eauto.
      + inversion E; subst. auto.
    - eapply Ctx with (c := fun a' => Pair a' b); eauto.
    - destruct (step a s) as [| e3 s3 | |] eqn:S1; cbn in E; try discriminate.
      + eapply Ctx with (c := fun b' => Pair a b'); eauto.
      + inversion E; subst. auto.
    - eapply Ctx with (c := Fst); eauto.
    - eapply Ctx with (c := Snd); eauto.
    - eapply Ctx with (c := Tag t); eauto.
    - eapply Ctx with (c := Classify ts); eauto.
    - eapply Ctx with (c := Remember k); eauto.
    - inversion E; subst. auto.
    - eapply Ctx with (c := Fix n); eauto.
    - eapply Ctx with (c := fun e'' => Guard a e'' P r); eauto.
    - inversion E; subst. destruct (w_sample W p (log s)); auto.
    - eapply Ctx with (c := fun e'' => Case e'' b); eauto.
    - destruct (step e s) as [| e3 s3 | |] eqn:S1; cbn in E; try discriminate.
      + destruct e; try discriminate. destruct (pick t e b) as [e4 |] eqn:P; try discriminate.
        inversion E; subst. left. eapply goes_pick; eauto.
      + inversion E; subst. auto.
  Qed.

  (** ** The theorems *)

  Section Body.
    Variables (a b : ty) (e : tm).
    Hypothesis Closed : below 2 e = true.
    Hypothesis Always : always 1 e = true.

    Definition loop (n : option nat) : tm := Fix n (Lam a (Lam b e)).

    Lemma loop_closed : forall n, below 0 (loop n) = true.
    Proof. intros. exact Closed. Qed.

    Lemma unfolded_goes : forall n v, goes (loop n) (unfold_fix n (Lam a (Lam b e)) v).
    Proof.
      intros n v. cbn. apply (proj1 (goes_subst _ (loop_closed n))).
      apply (proj1 (always_goes (loop n))). exact Always.
    Qed.

    (** Without a bound: no value, ever. *)
    Theorem L004_no_value : forall v s e' s',
      steps (App (loop None) v) s e' s' -> isval e' = false.
    Proof.
      intros v s e' s' St. apply (goes_not_value (loop None)).
      assert (G0 : goes (loop None) (App (loop None) v)) by auto.
      remember (App (loop None) v) as e0 eqn:X. clear X.
      induction St as [e0 s | e0 s e1 s1 e2 s2 E St IH]; auto. apply IH.
      destruct (goes_step _ (loop_closed None) eq_refl _ G0 _ _ _ E) as [A | (w & e3 & Vw & B & A)]; auto.
      apply A. cbn in B. inversion B; subst. apply unfolded_goes.
    Qed.

    Lemma total_more : forall x l, total unfoldings l <= total unfoldings (x :: l).
    Proof. intros. unfold total. cbn [fold_right]. lia. Qed.

    Lemma step_grows : forall t s t' s', step t s = Next t' s' ->
      total unfoldings (log s) <= total unfoldings (log s').
    Proof.
      assert (B : forall f v s t' s', beta W G f v s = Next t' s' ->
        total unfoldings (log s) <= total unfoldings (log s')).
      { intros f v s t' s' E. destruct f; cbn in E; try discriminate.
        - inversion E; subst. auto.
        - destruct n as [[| n] |]; inversion E; subst; auto; apply total_more.
        - destruct (w_tool W f v (log s)) as [r |]; try discriminate.
          destruct (inhabits W (tool_res G f) r); try discriminate. inversion E; subst. apply total_more.
        - destruct v; try discriminate. destruct (w_llm W p s0 (log s)); try discriminate.
          inversion E; subst. apply total_more. }
      assert (P : forall init s, log (puts init s) = log s).
      { induction init as [| [k v] init IH]; intros s; [reflexivity | exact (IH s)]. }
      intros t. induction t; intros st t' s' E; cbn in E; try discriminate;
        repeat match type of E with
               | within (step ?x ?y) _ _ = _ =>
                   let S := fresh "S" in destruct (step x y) eqn:S; cbn in E; try discriminate
               end;
        try (inversion E; subst; eauto; fail).
      all: repeat match type of E with
                  | match ?x with _ => _ end = _ => destruct x; try discriminate
                  end; inversion E; subst; cbn [log]; rewrite ?P; auto using total_more.
    Qed.

    (** With a bound: every value costs all of it. *)
    Theorem L004_runs_to_the_bound : forall n v s w s',
      steps (App (loop (Some n)) v) s w s' -> isval w = true ->
      total unfoldings (log s) + n <= total unfoldings (log s').
    Proof.
      intros n v s w s' St Vw.
      assert (G0 : goes (loop (Some n)) (App (loop (Some n)) v)) by auto.
      remember (App (loop (Some n)) v) as e0 eqn:X. clear X.
      revert n G0. induction St as [e0 s | e0 s e1 s1 e2 s2 E St IH]; intros n G0.
      - rewrite (goes_not_value _ _ G0) in Vw. discriminate.
      - pose proof (step_grows _ _ _ _ E) as Gr.
        destruct (goes_step _ (loop_closed (Some n)) eq_refl _ G0 _ _ _ E) as [A | (x & e3 & Vx & B & A)].
        + specialize (IH Vw n A). lia.
        + destruct n as [| n].
          * assert (total unfoldings (log s1) <= total unfoldings (log s2)).
            { clear -St. induction St as [| ? ? ? ? ? ? E]; auto. apply step_grows in E. lia. }
            lia.
          * cbn in B. inversion B; subst.
            assert (G1 : goes (loop (Some n)) e1) by (apply A, unfolded_goes).
            specialize (IH Vw n G1).
            assert (Once : total unfoldings (log (record AUnfold s)) = S (total unfoldings (log s))) by reflexivity.
            lia.
    Qed.
  End Body.

  (** The body that does nothing else is such a one, and the ReAct body is not. *)
  Example only_again_always : always 1 (App (Var 1) (Var 0)) = true.
  Proof. reflexivity. Qed.

  Example with_an_end : forall c,
    always 1 (Case (Classify ["done"; "more"]%string (App (Llm c) (Var 0)))
      (BCase "done"%string (Var 1) (BElse (App (Var 1) (Var 0))))) = false.
  Proof. reflexivity. Qed.
End Loops.
