(** * Equations between programs

    Composition is a monoid up to observation (results, errors, the store and
    the log of requests), and a few rewrites that the optimizer uses.  Seed
    000, Theorem 5.7, which claims the laws up to results only. *)

Require Import String List Bool.
Require Import Entail.Spec.Typed Entail.Thm.TypeSafety.
Import ListNotations.

Section Algebra.
  Variable W : world.
  Variable G : signature.

  Notation step := (step W G).

  Inductive outcome := Gives (v : tm) (s : state) | Fails (x : error) (s : state).

  (** Evaluation to the end. *)
  Inductive eval : tm -> state -> outcome -> Prop :=
  | eval_val : forall e s, step e s = IsVal -> eval e s (Gives e s)
  | eval_fail : forall e s x, step e s = Fail x -> eval e s (Fails x s)
  | eval_next : forall e s e1 s1 o, step e s = Next e1 s1 -> eval e1 s1 o -> eval e s o.

  (** Programs with the same outcomes in every state. *)
  Definition equiv (e1 e2 : tm) : Prop := forall s o, eval e1 s o <-> eval e2 s o.

  Lemma equiv_refl : forall e, equiv e e.
  Proof. intros e s o. tauto. Qed.
  Lemma equiv_sym : forall e1 e2, equiv e1 e2 -> equiv e2 e1.
  Proof. intros e1 e2 E s o. symmetry. apply E. Qed.
  Lemma equiv_trans : forall e1 e2 e3, equiv e1 e2 -> equiv e2 e3 -> equiv e1 e3.
  Proof. intros e1 e2 e3 A B s o. rewrite (A s o). apply B. Qed.

  (** A context whose hole is evaluated first. *)
  Definition strict (f : tm -> tm) : Prop :=
    forall s, exists k, forall e, step (f e) s = within (step e s) f (k e).

  Lemma eval_strict : forall f, strict f -> forall e s o,
    eval (f e) s o <->
    (exists v s1, eval e s (Gives v s1) /\ eval (f v) s1 o) \/
    (exists x s1, eval e s (Fails x s1) /\ o = Fails x s1).
  Proof.
    intros f St e s o. split.
    - intros E. remember (f e) as fe eqn:X. revert e X.
      induction E as [fe s E | fe s x E | fe s fe1 s1 o E Ev IH]; intros e X; subst;
        destruct (St s) as [k K]; pose proof (K e) as Ke; rewrite E in Ke;
        destruct (step e s) as [| e1 s1' | x' |] eqn:Es; simpl in Ke; try discriminate.
      + left. exists e, s. split; [constructor; auto |]. apply eval_val. auto.
      + left. exists e, s. split; [constructor; auto |]. apply eval_fail. auto.
      + right. inversion Ke; subst. exists x', s. split; auto. apply eval_fail. auto.
      + left. exists e, s. split; [constructor; auto |]. eapply eval_next; eauto.
      + inversion Ke; subst. destruct (IH e1 eq_refl) as [(v & s2 & A & B) | (x & s2 & A & B)].
        * left. exists v, s2. split; auto. eapply eval_next; eauto.
        * right. exists x, s2. split; auto. eapply eval_next; eauto.
    - intros [(v & s1 & A & B) | (x & s1 & A & ->)].
      + remember (Gives v s1) as g eqn:X. revert v s1 X B.
        induction A as [e s E | e s x E | e s e1 s1' o' E Ev IH]; intros v s2 X B; inversion X; subst; auto.
        destruct (St s) as [k K]. eapply eval_next; [rewrite K, E; reflexivity |]. eauto.
      + remember (Fails x s1) as g eqn:X. revert x s1 X.
        induction A as [e s E | e s x' E | e s e1 s1' o' E Ev IH]; intros x s2 X; inversion X; subst.
        * destruct (St s2) as [k K]. apply eval_fail. rewrite K, E. reflexivity.
        * destruct (St s) as [k K]. eapply eval_next; [rewrite K, E; reflexivity |]. eauto.
  Qed.

  (** Contexts that agree on values agree. *)
  Lemma strict_ext : forall f g, strict f -> strict g ->
    (forall v, isval v = true -> equiv (f v) (g v)) -> forall e, equiv (f e) (g e).
  Proof.
    intros f g Sf Sg V e s o. rewrite (eval_strict f Sf), (eval_strict g Sg).
    assert (Q : forall v s1, eval e s (Gives v s1) -> isval v = true).
    { intros v s1 E. remember (Gives v s1) as o' eqn:X. revert v s1 X.
      induction E; intros v s' X; inversion X; subst; eauto.
      eapply step_val; eauto. }
    split; (intros [(v & s1 & A & B) | C]; [left; exists v, s1; split; auto | right; auto]);
      apply (V v (Q _ _ A)); auto.
  Qed.

  Lemma strict_cong : forall f, strict f -> forall e1 e2, equiv e1 e2 -> equiv (f e1) (f e2).
  Proof.
    intros f St e1 e2 E s o. rewrite !(eval_strict f St).
    split; (intros [(v & s1 & A & B) | (x & s1 & A & B)]; [left | right]; repeat eexists; eauto; apply E; auto).
  Qed.

  Lemma strict_app : forall f, isval f = true -> strict (App f).
  Proof.
    intros f V s. exists (fun e => beta W G f e s). intros e. simpl.
    apply (step_val W G f s) in V. rewrite V. reflexivity.
  Qed.

  Lemma strict_id : strict (fun e => e).
  Proof. intros s. exists (fun _ => IsVal). intros e. destruct (step e s); reflexivity. Qed.

  Lemma strict_comp : forall f g, strict f -> strict g -> strict (fun e => f (g e)).
  Proof.
    intros f g Sf Sg s. destruct (Sf s) as [kf Kf], (Sg s) as [kg Kg].
    exists (fun e => within (kg e) f (kf (g e))). intros e. rewrite Kf, Kg.
    destruct (step e s); reflexivity.
  Qed.

  Lemma equiv_step : forall e e', (forall s, step e s = Next e' s) -> equiv e e'.
  Proof.
    intros e e' E s o. split; intros Ev.
    - inversion Ev; subst; rewrite E in *; try discriminate.
      match goal with X : Next _ _ = Next _ _ |- _ => inversion X; subst end. auto.
    - eapply eval_next; eauto.
  Qed.

  (** ** The monoid of composition *)

  Definition closed (e : tm) : Prop := forall j v, subst j v e = e.

  (** Typed closed terms are closed. *)
  Lemma typed_closed : forall ub S e a, has W G ub S [] e a -> closed e.
  Proof. intros ub S e a T j v. eapply subst_closed; eauto. simpl. auto with arith. Qed.

  Definition fun_equiv (f g : tm) : Prop :=
    forall v, isval v = true -> equiv (App f v) (App g v).

  Lemma comp_app : forall t f g v, closed f -> closed g -> isval v = true ->
    equiv (App (comp t f g) v) (App g (App f v)).
  Proof.
    intros t f g v Cf Cg V. apply equiv_step. intros s. simpl.
    apply (step_val W G v s) in V. rewrite V. simpl. rewrite Cf, Cg. reflexivity.
  Qed.

  Lemma comp_closed : forall t f g, closed f -> closed g -> closed (comp t f g).
  Proof. intros t f g Cf Cg j v. simpl. rewrite Cf, Cg. reflexivity. Qed.

  Theorem comp_assoc : forall t1 t1' t2 t2' a b c,
    closed a -> closed b -> closed c -> isval b = true -> isval c = true ->
    fun_equiv (comp t1 (comp t1' a b) c) (comp t2 a (comp t2' b c)).
  Proof.
    intros t1 t1' t2 t2' a b c Ca Cb Cc Vb Vc v V.
    eapply equiv_trans; [apply comp_app; auto using comp_closed |].
    eapply equiv_trans; [| apply equiv_sym, comp_app; auto using comp_closed].
    eapply equiv_trans; [apply strict_cong; [apply strict_app; auto | apply comp_app; auto] |].
    apply (strict_ext (fun e => App c (App b e)) (App (comp t2' b c))).
    - apply (strict_comp (App c) (App b)); apply strict_app; auto.
    - apply strict_app. reflexivity.
    - intros w Vw. apply equiv_sym, comp_app; auto.
  Qed.

  Lemma ident_app : forall t e, equiv (App (ident t) e) e.
  Proof.
    intros t e. apply (strict_ext (App (ident t)) (fun e => e)).
    - apply strict_app. reflexivity.
    - apply strict_id.
    - intros v V. apply equiv_step. intros s. simpl.
      apply (step_val W G v s) in V. rewrite V. reflexivity.
  Qed.

  Theorem comp_id_right : forall t t' a, closed a -> fun_equiv (comp t a (ident t')) a.
  Proof.
    intros t t' a Ca v V.
    eapply equiv_trans; [apply comp_app; auto; intros j w; reflexivity |].
    apply ident_app.
  Qed.

  Theorem comp_id_left : forall t t' a, closed a -> isval a = true ->
    fun_equiv (comp t (ident t') a) a.
  Proof.
    intros t t' a Ca Va v V.
    eapply equiv_trans; [apply comp_app; auto; intros j w; reflexivity |].
    apply strict_cong; [apply strict_app; auto | apply ident_app].
  Qed.

  (** ** Rewrites *)

  Theorem case_known : forall t v b e, isval v = true -> pick t v b = Some e ->
    equiv (Case (Tag t v) b) e.
  Proof.
    intros t v b e V P. apply equiv_step. intros s. simpl.
    apply (step_val W G v s) in V. rewrite V. simpl. rewrite P. reflexivity.
  Qed.

  Theorem fst_pair : forall v1 v2, isval v1 = true -> isval v2 = true ->
    equiv (Fst (Pair v1 v2)) v1.
  Proof.
    intros v1 v2 V1 V2. apply equiv_step. intros s. simpl.
    apply (step_val W G v1 s) in V1. apply (step_val W G v2 s) in V2.
    rewrite V1. simpl. rewrite V2. reflexivity.
  Qed.

  Theorem snd_pair : forall v1 v2, isval v1 = true -> isval v2 = true ->
    equiv (Snd (Pair v1 v2)) v2.
  Proof.
    intros v1 v2 V1 V2. apply equiv_step. intros s. simpl.
    apply (step_val W G v1 s) in V1. apply (step_val W G v2 s) in V2.
    rewrite V1. simpl. rewrite V2. reflexivity.
  Qed.

  Lemma strict_guard : forall e0 P r, strict (fun e => Guard e0 e P r).
  Proof. intros e0 P r s. eexists. intros e. reflexivity. Qed.

  (** A guard without retries, on a value. *)
  Lemma guard_value : forall e0 P v s o, isval v = true ->
    eval (Guard e0 v P 0) s o <->
    (if w_pred W P v then o = Gives v s else o = Fails GuardFailed s).
  Proof.
    intros e0 P v s o V.
    assert (E : step (Guard e0 v P 0) s = if w_pred W P v then Next v s else Fail GuardFailed).
    { simpl. apply (step_val W G v s) in V. rewrite V. destruct (w_pred W P v); reflexivity. }
    apply (step_val W G v s) in V.
    destruct (w_pred W P v); split.
    - intros Ev. inversion Ev; subst; rewrite E in *; try discriminate.
      match goal with X : Next _ _ = Next _ _ |- _ => inversion X; subst end.
      match goal with X : eval _ _ _ |- _ => inversion X; subst; rewrite V in *; try discriminate end.
      auto.
    - intros ->. eapply eval_next; eauto. apply eval_val. auto.
    - intros Ev. inversion Ev; subst; rewrite E in *; try discriminate.
      match goal with X : Fail _ = Fail _ |- _ => inversion X; subst end. auto.
    - intros ->. apply eval_fail. auto.
  Qed.

  (** Adjacent guards conjoin. *)
  Theorem guard_guard : forall P Q R e,
    (forall v, w_pred W R v = w_pred W P v && w_pred W Q v) ->
    equiv (guard (guard e P 0) Q 0) (guard e R 0).
  Proof.
    intros P Q R e Conj. unfold guard at 1 3.
    apply (strict_ext (fun x => Guard (guard e P 0) (Guard e x P 0) Q 0) (fun x => Guard e x R 0)).
    - apply (strict_comp (fun x => Guard (guard e P 0) x Q 0) (fun x => Guard e x P 0));
        apply strict_guard.
    - apply strict_guard.
    - intros v V s o. cbv beta. rewrite (guard_value e R v s o V).
      rewrite (eval_strict (fun x => Guard (guard e P 0) x Q 0)) by apply strict_guard.
      rewrite Conj. split.
      + intros [(w & s1 & A & B) | (x & s1 & A & ->)].
        * apply guard_value in A; auto. destruct (w_pred W P v); [| discriminate].
          inversion A; subst. apply guard_value in B; auto.
        * apply guard_value in A; auto. destruct (w_pred W P v); inversion A; subst. auto.
      + destruct (w_pred W P v) eqn:Pv; simpl.
        * intros E. left. exists v, s. split.
          -- apply guard_value; auto. rewrite Pv. auto.
          -- apply guard_value; auto.
        * intros ->. right. exists GuardFailed, s. split; auto.
          apply guard_value; auto. rewrite Pv. auto.
  Qed.
End Algebra.
