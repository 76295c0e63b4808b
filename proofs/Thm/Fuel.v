(** * Fuel

    More fuel changes nothing but an [Out].  So the interpreter defines one
    result, if any, for each program and state, and how much fuel a theorem
    mentions does not matter. *)

Require Import List String QArith Bool.
Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp.
Import ListNotations.
Local Open Scope nat_scope.

Section Fuel.
  Context {L : lattice} {F : factoring L}.
  Variable H : host L.

  Definition approx (r1 r2 : result L) : Prop := fst r1 = Out \/ r1 = r2.

  Lemma approx_refl : forall r, approx r r.
  Proof. right. auto. Qed.

  Lemma approx_bind : forall r1 r2 k1 k2, approx r1 r2 ->
    (forall V s, approx (k1 V s) (k2 V s)) -> approx (bind r1 k1) (bind r2 k2).
  Proof.
    intros [o1 s1] r2 k1 k2 [E | <-] K.
    - simpl in E. subst. left. reflexivity.
    - destruct o1; simpl; auto using approx_refl.
  Qed.

  Hint Resolve approx_refl approx_bind : core.

  Section Helpers.
    Variables ev1 ev2 : L -> list (lval L) -> state L -> term -> result L.
    Hypothesis EV : forall pc env s e, approx (ev1 pc env s e) (ev2 pc env s e).

    Lemma evals_fuel : forall es pc env c acc s,
      approx (evals ev1 pc env c acc s es) (evals ev2 pc env c acc s es).
    Proof. induction es; simpl; auto. Qed.

    Lemma with_label_fuel : forall pc env s e k1 k2,
      (forall n l s, approx (k1 n l s) (k2 n l s)) ->
      approx (with_label H ev1 pc env s e k1) (with_label H ev2 pc env s e k2).
    Proof.
      intros. unfold with_label. apply approx_bind; auto. intros.
      destruct (to_label H (strip V)); auto.
    Qed.

    Lemma restore_fuel : forall c r1 r2, approx r1 r2 -> approx (restore c r1) (restore c r2).
    Proof. intros c r1 r2 [E | ->]; [left | right]; auto. Qed.

    Lemma call_fuel : forall pc f V s,
      approx (call (F := F) H ev1 pc f V s) (call (F := F) H ev2 pc f V s).
    Proof.
      intros. unfold call, called. destruct (admits H f pc (tool_pc H f)); auto. destruct (foreign f V); auto.
      destruct (refused (F := F) H f _ _ _); auto. destruct (tool_accepts H f (strip V)); auto.
      destruct (misformed _ _ (forms H f)) as [[b m] |]; auto.
      unfold decide. destruct (tool_policy H f); auto. apply approx_bind; auto using restore_fuel.
    Qed.

    Lemma apply_fuel : forall V1 V2 s,
      approx (apply (F := F) H ev1 V1 V2 s) (apply (F := F) H ev2 V1 V2 s).
    Proof.
      intros [l v] V2 s. unfold apply. destruct v as [| c vs |]; auto.
      destruct c as [| | | | | n | f]; auto using call_fuel. destruct vs as [| ? [|]]; auto.
      destruct n as [[|] |]; auto.
    Qed.

    Lemma fork_fuel : forall pc env s e, approx (do_fork ev1 pc env s e) (do_fork ev2 pc env s e).
    Proof. intros. apply restore_fuel; auto. Qed.

    Lemma fresh_fuel : forall pc env s e, approx (do_fresh ev1 pc env s e) (do_fresh ev2 pc env s e).
    Proof. intros. apply restore_fuel; auto. Qed.

    Lemma recv_fuel : forall pc m md s, approx (do_recv H ev1 pc m md s) (do_recv H ev2 pc m md s).
    Proof.
      intros. unfold do_recv. destruct (flows pc (clab (cv s))); auto.
      destruct (flows (clab (cv s)) (clearance H m)); auto. destruct md; auto.
      unfold ask, question. destruct (refusal H _ _ _ _); auto. destruct (model H m _ _); auto. unfold run_reply.
      destruct (parse H s0); auto. destruct (permits (policy H) t); auto.
    Qed.

    Lemma within_fuel : forall n pc env s e,
      approx (do_within ev1 n pc env s e) (do_within ev2 n pc env s e).
    Proof.
      intros. unfold do_within. destruct (EV pc env (log pc (RWithin n) s) e) as [E | <-]; auto.
      destruct (ev1 pc env (log pc (RWithin n) s) e) as [o s1]. simpl in E. subst. left. reflexivity.
    Qed.

    Lemma try_fuel : forall all pc env s e1 e2,
      approx (do_try H ev1 all pc env s e1 e2) (do_try H ev2 all pc env s e1 e2).
    Proof.
      intros. unfold do_try. destruct (EV pc env s e1) as [E | <-].
      - destruct (ev1 pc env s e1) as [o s1]. simpl in E. subst. left. reflexivity.
      - destruct (ev1 pc env s e1) as [[V | l m |] s1]; auto. destruct (flows l pc && _); auto.
    Qed.

    Lemma pars_fuel : forall es pc env acc s,
      approx (pars ev1 pc env acc s es) (pars ev2 pc env acc s es).
    Proof.
      induction es as [| e es IH]; intros; auto. rewrite !pars_cons.
      destruct (fork_fuel pc env s e) as [E | <-].
      - destruct (do_fork ev1 pc env s e) as [o s1]. simpl in E. subst. left. reflexivity.
      - destruct (do_fork ev1 pc env s e) as [[V | l m |] s1]; auto.
        destruct (flows l pc); auto.
        destruct (IH pc env acc s1) as [E | <-]; auto.
        destruct (pars ev1 pc env acc s1 es) as [o s2]. simpl in E. subst. left. reflexivity.
    Qed.

    Lemma each_fuel : forall pc V1 V2 s, approx (do_each ev1 pc V1 V2 s) (do_each ev2 pc V1 V2 s).
    Proof. intros pc V1 [l v] s. unfold do_each. destruct v as [| [] |]; auto. apply pars_fuel. Qed.

    Lemma retry_fuel : forall pc m s f1 f2, (forall s', approx (f1 s') (f2 s')) ->
      approx (retry pc m s f1) (retry pc m s f2).
    Proof.
      intros pc m s f1 f2 A. unfold retry, forget.
      destruct (A (set_remarks (m :: remarks s) s)) as [E | ->]; [left | right]; simpl; auto.
    Qed.

    Lemma judge_fuel : forall env p k pc V s a1 a2,
      (forall l m s, approx (a1 l m s) (a2 l m s)) ->
      approx (judge H ev1 env p k pc V s a1) (judge H ev2 env p k pc V s a2).
    Proof.
      intros. unfold judge. apply approx_bind; auto. intros Vp s2.
      destruct (is_function _); auto. apply approx_bind; auto. intros Vb s3.
      unfold verdict. destruct Vb as [l [[| [] | | |] | |]]; auto.
    Qed.

    Lemma guard_fuel : forall n k env e p pc s,
      approx (guard H ev1 env e p k n pc s) (guard H ev2 env e p k n pc s).
    Proof.
      induction n; intros; simpl; apply approx_bind; auto; intros; apply judge_fuel; auto using retry_fuel.
    Qed.
  End Helpers.

  Theorem more_fuel : forall n m pc env s e, n <= m ->
    approx (eval (F := F) H n pc env s e) (eval (F := F) H m pc env s e).
  Proof.
    induction n as [| n IH]; intros m pc env s e Le; [left; reflexivity |].
    destruct m as [| m]; [inversion Le |]. apply le_S_n in Le.
    assert (EV : forall pc env s e, approx (eval (F := F) H n pc env s e) (eval (F := F) H m pc env s e)) by auto.
    destruct e; simpl; auto using evals_fuel, recv_fuel, fork_fuel, fresh_fuel, pars_fuel, guard_fuel, within_fuel, each_fuel.
    - repeat (apply approx_bind; auto; intros). apply apply_fuel; auto.
    - apply approx_bind; auto. intros [l v] s1. destruct (chosen v bs d); auto.
    - destruct (refusal H _ _ _ s); auto. destruct (sample H p (visible pc (tr s))); auto.
    - apply approx_bind; auto. intros. apply call_fuel; auto.
    - apply with_label_fuel; auto.
    - apply with_label_fuel; auto.
    - apply with_label_fuel; auto.
    - apply with_label_fuel; auto.
    - apply with_label_fuel; auto using try_fuel.
  Qed.

  (** A program has at most one result; one that too many calls end ([stops]) has none. *)
  Corollary result_unique : forall n m pc env s e r1 r2,
    eval (F := F) H n pc env s e = r1 -> eval (F := F) H m pc env s e = r2 ->
    fst r1 <> Out -> fst r2 <> Out -> r1 = r2.
  Proof.
    intros n m pc env s e r1 r2 <- <- N1 N2.
    destruct (Nat.le_ge_cases n m) as [Le | Le];
      [destruct (more_fuel n m pc env s e Le) | destruct (more_fuel m n pc env s e Le)];
      congruence.
  Qed.
End Fuel.
