(** * Termination

    A well-typed closed program whose fixpoints are all bounded comes to an
    end: with a value of its type or with a checked error.  Nothing is assumed
    of models and tools but that a call of them comes back (they are functions
    here).  The proof is by logical relations.  It needs stores to hold data
    only: with functions in the store the statement is false. *)

Require Import String List Bool Lia Arith.
Require Import Entail.Spec.Typed Entail.Thm.TypeSafety Entail.Thm.Algebra.
Import ListNotations.
Local Open Scope nat_scope.

(** ** Closed terms and simultaneous substitution *)

(** All variables are below [n].  (What [Mem] puts into the store is data.) *)
Fixpoint below (n : nat) (e : tm) : bool :=
  match e with
  | Var i => i <? n
  | Str _ | Unit | Tool _ | Llm _ | Recall _ => true
  | Lam _ e => below (S n) e
  | App a b | Pair a b | Guard a b _ _ | Choose _ a b => below n a && below n b
  | Fst e | Snd e | Tag _ e | Fix _ e | Classify _ e | Remember _ e | Mem _ e => below n e
  | Case e b => below n e && below_brs n b
  end
with below_brs (n : nat) (b : brs) : bool :=
  match b with
  | BNone => true
  | BElse e => below n e
  | BCase _ e b => below (S n) e && below_brs n b
  end.

(** Variables from [d] on are replaced by the closed values [g]; one that is
    not there is replaced by anything closed. *)
Fixpoint close (d : nat) (g : list tm) (e : tm) : tm :=
  match e with
  | Var i => if i <? d then Var i else nth (i - d) g Unit
  | Str _ | Unit | Tool _ | Llm _ | Recall _ => e
  | Lam a e => Lam a (close (S d) g e)
  | App a b => App (close d g a) (close d g b)
  | Pair a b => Pair (close d g a) (close d g b)
  | Fst e => Fst (close d g e)
  | Snd e => Snd (close d g e)
  | Tag t e => Tag t (close d g e)
  | Case e b => Case (close d g e) (close_brs d g b)
  | Guard a b P r => Guard (close d g a) (close d g b) P r
  | Fix n e => Fix n (close d g e)
  | Classify ts e => Classify ts (close d g e)
  | Choose p a b => Choose p (close d g a) (close d g b)
  | Mem init e => Mem init (close d g e)
  | Remember k e => Remember k (close d g e)
  end
with close_brs (d : nat) (g : list tm) (b : brs) : brs :=
  match b with
  | BNone => BNone
  | BElse e => BElse (close d g e)
  | BCase t e b => BCase t (close (S d) g e) (close_brs d g b)
  end.

Lemma subst_below :
  (forall e n j v, below n e = true -> n <= j -> subst j v e = e) /\
  (forall b n j v, below_brs n b = true -> n <= j -> subst_brs j v b = b).
Proof.
  apply tm_mutind; cbn [below below_brs subst subst_brs]; intros;
    rewrite ?andb_true_iff in *;
    repeat match goal with H : _ /\ _ |- _ => destruct H end;
    try (f_equal; eauto; fail).
  - apply Nat.ltb_lt in H. destruct (Nat.compare_spec i j); auto; lia.
  - f_equal. apply (H (S n)); auto. lia.
  - f_equal; eauto. apply (H (S n)); auto. lia.
Qed.

Lemma below_mono :
  (forall e n m, below n e = true -> n <= m -> below m e = true) /\
  (forall b n m, below_brs n b = true -> n <= m -> below_brs m b = true).
Proof.
  apply tm_mutind; cbn [below below_brs]; intros;
    rewrite ?andb_true_iff in *;
    repeat match goal with H : _ /\ _ |- _ => destruct H end;
    try (repeat split; eauto; fail).
  - apply Nat.ltb_lt in H. apply Nat.ltb_lt. lia.
  - apply (H (S n)); auto. lia.
  - split; eauto. apply (H (S n)); auto. lia.
Qed.

Lemma close_below :
  (forall e d g, Forall (fun v => below 0 v = true) g -> below d (close d g e) = true) /\
  (forall b d g, Forall (fun v => below 0 v = true) g -> below_brs d (close_brs d g b) = true).
Proof.
  apply tm_mutind; cbn [below below_brs close close_brs]; intros;
    rewrite ?andb_true_iff; auto.
  destruct (Nat.ltb_spec i d).
  - cbn. apply Nat.ltb_lt. auto.
  - apply (proj1 below_mono) with (n := 0); [| lia].
    destruct (nth_in_or_default (i - d) g Unit) as [I | ->]; auto.
    rewrite Forall_forall in H. auto.
Qed.

(** Substituting under one more binder. *)
Lemma subst_close :
  (forall e d g v, Forall (fun v => below 0 v = true) g ->
     subst d v (close (S d) g e) = close d (v :: g) e) /\
  (forall b d g v, Forall (fun v => below 0 v = true) g ->
     subst_brs d v (close_brs (S d) g b) = close_brs d (v :: g) b).
Proof.
  apply tm_mutind; cbn [subst subst_brs close close_brs]; intros; try (f_equal; auto; fail).
  destruct (Nat.ltb_spec i (S d)).
  - cbn [subst]. destruct (Nat.compare_spec i d) as [X | X | X].
    + subst. rewrite Nat.ltb_irrefl, Nat.sub_diag. reflexivity.
    + destruct (Nat.ltb_spec i d); [auto | lia].
    + lia.
  - destruct (Nat.ltb_spec i d); [lia |].
    replace (i - d) with (S (i - S d)) by lia. cbn [nth].
    apply (proj1 subst_below) with (n := 0); [| lia].
    destruct (nth_in_or_default (i - S d) g Unit) as [I | ->]; auto.
    rewrite Forall_forall in H. auto.
Qed.

Section Termination.
  Variable W : world.
  Variable G : signature.

  Notation has := (has W G false).
  Notation has_brs := (has_brs W G false).
  Notation step := (step W G).
  Notation eval := (eval W G).

  (** ** The relation *)

  Definition good (s : state) : Prop :=
    forall k v, store s k = Some v -> inhabits W (key_ty G k) v = true.

  (** Evaluation comes to an end, and a value that it gives is in [R]. *)
  Definition ends (R : tm -> Prop) (e : tm) : Prop :=
    forall s, good s -> exists o, eval e s o /\
      match o with Gives v s' => R v /\ below 0 v = true /\ good s' | Fails _ _ => True end.

  Fixpoint red (a : ty) (v : tm) : Prop :=
    match a with
    | TStr => exists q, v = Str q
    | TUnit => v = Unit
    | TArr a b => isval v = true /\
        forall w, red a w -> below 0 w = true -> ends (red b) (App v w)
    | TProd a b => exists v1 v2, v = Pair v1 v2 /\ red a v1 /\ red b v2
    | TSum r => exists t w, v = Tag t w /\ red_row r t w
    | TRef a P => red a v /\ w_pred W P v = true
    end
  with red_row (r : row) (t : name) (w : tm) : Prop :=
    match r with
    | RNil => False
    | RCons t' a r' => if String.eqb t t' then red a w else red_row r' t w
    end.

  Lemma red_row_lookup : forall r t w, red_row r t w <-> exists c, lookup t r = Some c /\ red c w.
  Proof.
    induction r as [| t' a r IH]; cbn [red_row lookup]; intros t w.
    - split; [contradiction | intros (c & E & _); discriminate].
    - destruct (String.eqb t t').
      + split; [eauto | intros (c & E & R); inversion E; subst; auto].
      + apply IH.
  Qed.

  Lemma red_val_mut :
    (forall a v, red a v -> isval v = true) /\ (forall r t w, red_row r t w -> isval w = true).
  Proof.
    apply ty_mutind; cbn [red red_row].
    - intros v (q & ->). auto.
    - intros v ->. auto.
    - intros a _ b _ v [V _]. auto.
    - intros a IHa b IHb v (v1 & v2 & -> & R1 & R2). cbn. rewrite IHa, IHb; auto.
    - intros r IH v (t & w & -> & R). cbn. eauto.
    - intros a IH P v [R _]. auto.
    - contradiction.
    - intros t a IHa r IHr t' w R. destruct (String.eqb t' t); eauto.
  Qed.

  Lemma red_val : forall a v, red a v -> isval v = true.
  Proof. apply red_val_mut. Qed.

  (** Data of a type is reducible, and the other way round. *)
  Lemma inhabits_red :
    (forall a v, inhabits W a v = true -> red a v /\ below 0 v = true) /\
    (forall r t v, inhabits_row W r t v = true -> red_row r t v /\ below 0 v = true).
  Proof.
    apply ty_mutind; cbn [red red_row].
    - intros [] I; try discriminate. eauto.
    - intros [] I; try discriminate. auto.
    - intros a _ b _ v I. discriminate.
    - intros a IHa b IHb [] I; try discriminate. cbn in I. apply andb_true_iff in I. destruct I as [I1 I2].
      destruct (IHa _ I1), (IHb _ I2). cbn. split; [eauto 10 |]. apply andb_true_iff. auto.
    - intros r IH [] I; try discriminate. cbn in I. destruct (IH _ _ I). split; eauto.
    - intros a IH P v I. cbn in I. apply andb_true_iff in I. destruct I as [I Pv].
      destruct (IH _ I). auto.
    - discriminate.
    - intros t a IHa r IHr t' v I. cbn in I. destruct (String.eqb t' t); auto.
  Qed.

  Lemma red_inhabits :
    (forall a v, ground a = true -> red a v -> inhabits W a v = true) /\
    (forall r t v, ground_row r = true -> red_row r t v -> inhabits_row W r t v = true).
  Proof.
    apply ty_mutind; cbn [red red_row ground ground_row].
    - intros v _ (q & ->). auto.
    - intros v _ ->. auto.
    - discriminate.
    - intros a IHa b IHb v Gr (v1 & v2 & -> & R1 & R2). apply andb_true_iff in Gr. destruct Gr.
      cbn. rewrite IHa, IHb; auto.
    - intros r IH v Gr (t & w & -> & R). cbn. auto.
    - intros a IH P v Gr [R Pv]. cbn. rewrite IH, Pv; auto.
    - contradiction.
    - intros t a IHa r IHr t' v Gr R. apply andb_true_iff in Gr. destruct Gr.
      cbn. destruct (String.eqb t' t); auto.
  Qed.

  (** ** Ends *)

  Lemma ends_val : forall (R : tm -> Prop) v, isval v = true -> R v -> below 0 v = true -> ends R v.
  Proof.
    intros R v V Rv B s Gs. exists (Gives v s). split; auto.
    apply eval_val. apply step_val. auto.
  Qed.

  Lemma ends_next : forall (R : tm -> Prop) e e',
    (forall s, exists s1, step e s = Next e' s1 /\ (good s -> good s1)) -> ends R e' -> ends R e.
  Proof.
    intros R e e' St En s Gs. destruct (St s) as (s1 & E & K).
    destruct (En s1 (K Gs)) as (o & Ev & P). exists o. split; auto. eapply eval_next; eauto.
  Qed.

  Lemma ends_fail : forall (R : tm -> Prop) e, (forall s, exists x, step e s = Fail x) -> ends R e.
  Proof.
    intros R e St s _. destruct (St s) as (x & E). exists (Fails x s).
    split; auto. apply eval_fail. auto.
  Qed.

  Lemma eval_is_val : forall e s v s', eval e s (Gives v s') -> isval v = true.
  Proof.
    intros e s v s' Ev. remember (Gives v s') as o eqn:X. revert v s' X.
    induction Ev; intros v' s' X; inversion X; subst; eauto.
    eapply step_val; eauto.
  Qed.

  Lemma ends_bind : forall f (R Q : tm -> Prop) e, strict W G f -> ends R e ->
    (forall v, R v -> isval v = true -> below 0 v = true -> ends Q (f v)) -> ends Q (f e).
  Proof.
    intros f R Q e St En K s Gs. destruct (En s Gs) as (o & Ev & P). destruct o as [v s1 | x s1].
    - destruct P as (Rv & B & Gs1).
      destruct (K v Rv (eval_is_val _ _ _ _ Ev) B s1 Gs1) as (o & Ev' & P'). exists o. split; auto.
      apply (eval_strict W G f St). left. eauto.
    - exists (Fails x s1). split; auto. apply (eval_strict W G f St). right. eauto.
  Qed.

  (** Contexts. *)
  Lemma strict_app_l : forall e2, strict W G (fun e => App e e2).
  Proof. intros e2 s. eexists. intros e. reflexivity. Qed.
  Lemma strict_pair_l : forall e2, strict W G (fun e => Pair e e2).
  Proof. intros e2 s. eexists. intros e. reflexivity. Qed.
  Lemma strict_pair_r : forall v, isval v = true -> strict W G (Pair v).
  Proof.
    intros v V s. exists (fun _ => IsVal). intros e. cbn.
    apply (step_val W G v s) in V. rewrite V. reflexivity.
  Qed.
  Lemma strict_fst : strict W G Fst.
  Proof. intros s. eexists. intros e. reflexivity. Qed.
  Lemma strict_snd : strict W G Snd.
  Proof. intros s. eexists. intros e. reflexivity. Qed.
  Lemma strict_tag : forall t, strict W G (Tag t).
  Proof. intros t s. exists (fun _ => IsVal). intros e. reflexivity. Qed.
  Lemma strict_case : forall b, strict W G (fun e => Case e b).
  Proof. intros b s. eexists. intros e. reflexivity. Qed.
  Lemma strict_fix : forall n, strict W G (Fix n).
  Proof. intros n s. exists (fun _ => IsVal). intros e. reflexivity. Qed.
  Lemma strict_classify : forall ts, strict W G (Classify ts).
  Proof. intros ts s. eexists. intros e. reflexivity. Qed.
  Lemma strict_remember : forall k, strict W G (Remember k).
  Proof. intros k s. exists (fun e => Next Unit (put k e s)). intros e. reflexivity. Qed.

  Lemma good_record : forall a s, good s -> good (record a s).
  Proof. auto. Qed.

  Lemma good_put : forall k v s, good s -> inhabits W (key_ty G k) v = true -> good (put k v s).
  Proof.
    intros k v s Gs I k' v'. cbn. destruct (String.eqb_spec k k'); [| apply Gs].
    intros X. inversion X; subst. auto.
  Qed.

  Lemma good_puts : forall init s,
    (forall k v, In (k, v) init -> inhabits W (key_ty G k) v = true) -> good s -> good (puts init s).
  Proof.
    induction init as [| [k v] init IH]; intros s I Gs; auto.
    apply good_put; [apply IH; auto |]; intros; apply I; cbn; auto.
  Qed.

  (** ** Applications *)

  Lemma isval_step : forall v, isval v = true -> forall s, step v s = IsVal.
  Proof. intros v V s. apply step_val. auto. Qed.

  Ltac stepped := cbn; rewrite ?isval_step by auto; cbn.

  Lemma app_value : forall (Q : tm -> Prop) f w, isval f = true -> isval w = true ->
    (forall s, step (App f w) s = beta W G f w s).
  Proof. intros Q f w Vf Vw s. stepped. reflexivity. Qed.

  (** A bounded fixpoint of a reducible functional is reducible. *)
  Lemma red_fix : forall a F, red (TArr (TArr a a) (TArr a a)) F -> below 0 F = true ->
    forall n, red (TArr a a) (Fix (Some n) F).
  Proof.
    intros a F [VF RF] BF. induction n as [| n IH]; (split; [exact VF |]); intros w Rw Bw;
      pose proof (red_val _ _ Rw) as Vw.
    - eapply ends_next with (e' := w); [| apply ends_val; auto].
      intros s. exists s. split; auto. rewrite (app_value (red a)); auto.
    - assert (Self : ends (red (TArr a a)) (App F (Fix (Some n) F))) by (apply RF; auto).
      eapply ends_next with (e' := unfold_fix (Some n) F w).
      { intros s. exists (record AUnfold s). split; [rewrite (app_value (red a)); auto | auto]. }
      assert (Slow : ends (red a) (App (App F (Fix (Some n) F)) w)).
      { apply (ends_bind (fun e => App e w) (red (TArr a a))); auto using strict_app_l.
        intros v [_ Rv] _ _. apply Rv; auto. }
      unfold unfold_fix. destruct F; auto. destruct F; auto.
      (* both arguments at once: the same, two steps further *)
      intros s Gs. destruct (Slow s Gs) as (o & Ev & P). exists o. split; auto.
      inversion Ev as [? ? E | ? ? ? E | ? ? e1 s1 ? E Ev1]; subst.
      + cbn in E. discriminate.
      + cbn in E. discriminate.
      + cbn in E. inversion E; subst.
        inversion Ev1 as [? ? E' | ? ? ? E' | ? ? e2 s2 ? E' Ev2]; subst;
          cbn in E'; rewrite (isval_step w Vw) in E'; cbn in E'; try discriminate.
        inversion E'; subst. exact Ev2.
  Qed.

  Lemma ends_guard : forall a P e0, ends (red a) e0 -> forall r e, ends (red a) e ->
    ends (red (TRef a P)) (Guard e0 e P r).
  Proof.
    intros a P e0 E0. induction r as [| r IH]; intros e E;
      (apply (ends_bind (fun e => Guard e0 e P _) (red a)); [apply strict_guard | auto |]);
      intros v Rv V B; destruct (w_pred W P v) eqn:Pv.
    - eapply ends_next with (e' := v); [| apply ends_val; cbn; auto].
      intros s. exists s. split; auto. stepped. rewrite Pv. reflexivity.
    - apply ends_fail. intros s. exists GuardFailed. cbn. rewrite isval_step by auto. cbn. rewrite Pv. reflexivity.
    - eapply ends_next with (e' := v); [| apply ends_val; cbn; auto].
      intros s. exists s. split; auto. stepped. rewrite Pv. reflexivity.
    - eapply ends_next with (e' := Guard e0 e0 P r); [| apply IH; auto].
      intros s. exists s. split; auto. stepped. rewrite Pv. reflexivity.
  Qed.

  Lemma covers_close : forall r b d g, covers r b -> covers r (close_brs d g b).
  Proof.
    intros r b d g Cv t a E v. specialize (Cv t a E v). revert Cv.
    induction b as [| e | t' e b IH]; cbn [pick close_brs]; auto; try discriminate.
    destruct (String.eqb t t'); [discriminate | auto].
  Qed.

  (** ** The fundamental lemma *)

  Definition fits (C : list ty) (g : list tm) : Prop :=
    Forall2 (fun a v => red a v /\ below 0 v = true) C g.

  Lemma fits_closed : forall C g, fits C g -> Forall (fun v => below 0 v = true) g.
  Proof. intros C g X. induction X; constructor; tauto. Qed.

  Lemma fits_nth : forall C g, fits C g -> forall i a, nth_error C i = Some a ->
    red a (nth i g Unit) /\ below 0 (nth i g Unit) = true.
  Proof.
    intros C g X. induction X as [| a v C g R X IH]; intros [| i] b E; try discriminate; cbn in *.
    - inversion E; subst. auto.
    - auto.
  Qed.

  (** Closed typed terms have nothing to replace. *)
  Lemma close_typed :
    (forall S C e a, has S C e a -> forall g d, length C <= d -> close d g e = e) /\
    (forall S C r b a, has_brs S C r b a -> forall g d, length C <= d -> close_brs d g b = b).
  Proof.
    apply (has_mutind W G false
      (fun S C e a _ => forall g d, length C <= d -> close d g e = e)
      (fun S C r b a _ => forall g d, length C <= d -> close_brs d g b = b));
      cbn [close close_brs]; intros; auto; try (f_equal; auto; fail).
    - assert (i < length C) by (apply nth_error_Some; congruence).
      destruct (Nat.ltb_spec i d); auto. lia.
    - f_equal. apply H. cbn. lia.
    - apply H. cbn. lia.
    - f_equal; auto. apply H. cbn. lia.
  Qed.

  Lemma fundamental :
    (forall S C e a, has S C e a -> forall g, fits C g -> ends (red a) (close 0 g e)) /\
    (forall S C r b a, has_brs S C r b a -> forall g, fits C g ->
       forall t c w e', lookup t r = Some c -> red c w -> below 0 w = true ->
         pick t w (close_brs 0 g b) = Some e' -> ends (red a) e').
  Proof.
    apply (has_mutind W G false
      (fun S C e a _ => forall g, fits C g -> ends (red a) (close 0 g e))
      (fun S C r b a _ => forall g, fits C g ->
         forall t c w e', lookup t r = Some c -> red c w -> below 0 w = true ->
           pick t w (close_brs 0 g b) = Some e' -> ends (red a) e')).
    - (* variable *) intros S C i a E g X. cbn [close]. rewrite Nat.sub_0_r.
      destruct (fits_nth _ _ X _ _ E) as [R B]. cbn. apply ends_val; auto. eapply red_val; eauto.
    - intros. apply ends_val; cbn; eauto.
    - intros. apply ends_val; cbn; eauto.
    - (* function *) intros S C a b e _ IH g X. pose proof (fits_closed _ _ X) as Cl. cbn [close].
      assert (B : below 0 (Lam a (close 1 g e)) = true) by (cbn; apply close_below; auto).
      apply ends_val; auto. split; auto. intros w Rw Bw.
      eapply ends_next with (e' := subst 0 w (close 1 g e)).
      + intros s. exists s. split; auto. rewrite (app_value (red b)); auto. eapply red_val; eauto.
      + rewrite (proj1 subst_close) by auto. apply IH. constructor; auto.
    - (* application *) intros S C a b e1 e2 _ IH1 _ IH2 g X. cbn [close].
      apply (ends_bind (fun e => App e (close 0 g e2)) (red (TArr a b))); auto using strict_app_l.
      intros f [_ Rf] Vf _. apply (ends_bind (App f) (red a)); auto.
      apply strict_app; auto.
    - (* pair *) intros S C a b e1 e2 _ IH1 _ IH2 g X. cbn [close].
      apply (ends_bind (fun e => Pair e (close 0 g e2)) (red a)); auto using strict_pair_l.
      intros v1 R1 V1 B1. apply (ends_bind (Pair v1) (red b)); auto using strict_pair_r.
      intros v2 R2 V2 B2. apply ends_val.
      + cbn. rewrite V1, V2. reflexivity.
      + exists v1, v2. auto.
      + cbn. rewrite B1, B2. reflexivity.
    - intros S C a b e _ IH g X. cbn [close].
      apply (ends_bind Fst (red (TProd a b))); auto using strict_fst.
      intros v (v1 & v2 & -> & R1 & R2) V B. cbn in V, B. apply andb_true_iff in V. apply andb_true_iff in B.
      destruct V, B. eapply ends_next with (e' := v1); [| apply ends_val; auto].
      intros s. exists s. split; auto. stepped. reflexivity.
    - intros S C a b e _ IH g X. cbn [close].
      apply (ends_bind Snd (red (TProd a b))); auto using strict_snd.
      intros v (v1 & v2 & -> & R1 & R2) V B. cbn in V, B. apply andb_true_iff in V. apply andb_true_iff in B.
      destruct V, B. eapply ends_next with (e' := v2); [| apply ends_val; auto].
      intros s. exists s. split; auto. stepped. reflexivity.
    - (* tag *) intros S C t a r e L _ IH g X. cbn [close].
      apply (ends_bind (Tag t) (red a)); auto using strict_tag.
      intros v R V B. apply ends_val; auto. exists t, v. split; auto.
      apply red_row_lookup. eauto.
    - (* case *) intros S C r a e b _ IH Cv _ IHb g X. cbn [close].
      apply (ends_bind (fun e => Case e (close_brs 0 g b)) (red (TSum r))); auto using strict_case.
      intros v (t & w & -> & R) V B. cbn in V, B. apply red_row_lookup in R. destruct R as (c & L & R).
      destruct (pick_covers _ _ _ _ w (covers_close _ _ 0 g Cv) L) as (e' & Pk).
      eapply ends_next with (e' := e'); [| eapply IHb; eauto].
      intros s. exists s. split; auto. stepped. rewrite Pk. reflexivity.
    - (* guard *) intros S C a P r e0 e _ IH0 _ IH g X. cbn [close]. apply ends_guard; auto.
    - (* fix *) intros S C n a e B _ IH g X. cbn [close].
      destruct n as [n |]; [| discriminate B; auto].
      apply (ends_bind (Fix (Some n)) (red (TArr (TArr a a) (TArr a a)))); auto using strict_fix.
      intros F RF VF BF. apply ends_val; auto. apply red_fix; auto.
    - (* tool *) intros S C f g X. cbn [close]. apply ends_val; auto. split; auto. intros w Rw Bw.
      pose proof (red_val _ _ Rw) as Vw. intros s Gs.
      destruct (w_tool W f w (log s)) as [r |] eqn:T.
      + destruct (inhabits W (tool_res G f) r) eqn:I.
        * destruct (proj1 inhabits_red _ _ I) as [R B].
          exists (Gives r (record (ATool f w) s)). split; auto.
          eapply eval_next; [rewrite (app_value (red (tool_res G f))); auto; cbn; rewrite T, I; reflexivity |].
          apply eval_val, isval_step. eapply red_val; eauto.
        * exists (Fails DecodeFailed s). split; auto. apply eval_fail.
          rewrite (app_value (red (tool_res G f))); auto. cbn. rewrite T, I. reflexivity.
      + exists (Fails ToolFailed s). split; auto. apply eval_fail.
        rewrite (app_value (red (tool_res G f))); auto. cbn. rewrite T. reflexivity.
    - (* model *) intros S C p g X. cbn [close]. apply ends_val; auto. split; auto. intros w [q ->] Bw s Gs.
      destruct (w_llm W p q (log s)) as [r |] eqn:T.
      + exists (Gives (Str r) (record (AModel p q) s)). split; [| cbn; eauto].
        eapply eval_next; [cbn; rewrite T; reflexivity |]. apply eval_val. reflexivity.
      + exists (Fails ModelFailed s). split; auto. apply eval_fail. cbn. rewrite T. reflexivity.
    - (* classify *) intros S C ts e _ IH g X. cbn [close].
      apply (ends_bind (Classify ts) (red TStr)); auto using strict_classify.
      intros v [q ->] _ _.
      destruct (w_classify W ts q) as [t |] eqn:T; [destruct (existsb (String.eqb t) ts) eqn:I |].
      + eapply ends_next with (e' := Tag t Unit).
        * intros s. exists s. split; auto. cbn. rewrite T, I. reflexivity.
        * apply ends_val; auto. exists t, Unit. split; auto. apply red_row_lookup.
          exists TUnit. split; [apply tags_row_lookup; auto | reflexivity].
      + apply ends_fail. intros s. cbn. rewrite T, I. eauto.
      + apply ends_fail. intros s. cbn. rewrite T. eauto.
    - (* choose *) intros S C p a e1 e2 _ IH1 _ IH2 g X s Gs. cbn [close].
      destruct (w_sample W p (log s)) eqn:B.
      + destruct (IH1 g X (record (ASample p) s) Gs) as (o & Ev & Q). exists o. split; auto.
        eapply eval_next; [cbn; rewrite B; reflexivity | auto].
      + destruct (IH2 g X (record (ASample p) s) Gs) as (o & Ev & Q). exists o. split; auto.
        eapply eval_next; [cbn; rewrite B; reflexivity | auto].
    - (* mem *) intros S C init a e I _ IH g X. cbn [close].
      eapply ends_next with (e' := close 0 g e); auto.
      intros s. exists (puts init s). split; auto using good_puts.
    - (* recall *) intros S C k K g X s Gs. cbn [close].
      assert (N : red (TOption (key_ty G k)) (Tag "none"%string Unit)).
      { exists "none"%string, Unit. split; auto. reflexivity. }
      destruct (store s k) as [v |] eqn:Sk; [destruct (w_kept W k (log s)) eqn:Kp |].
      + destruct (proj1 inhabits_red _ _ (Gs _ _ Sk)) as [R B].
        exists (Gives (Tag "some"%string v) s). split.
        * eapply eval_next; [cbn; rewrite Sk, Kp; reflexivity |].
          apply eval_val. apply isval_step. cbn. eapply red_val; eauto.
        * split; [| auto]. exists "some"%string, v. split; auto.
      + exists (Gives (Tag "none"%string Unit) s). split; auto.
        eapply eval_next; [cbn; rewrite Sk, Kp; reflexivity |]. apply eval_val. reflexivity.
      + exists (Gives (Tag "none"%string Unit) s). split; auto.
        eapply eval_next; [cbn; rewrite Sk; reflexivity |]. apply eval_val. reflexivity.
    - (* remember *) intros S C k e K Gr _ IH g X. cbn [close].
      apply (ends_bind (Remember k) (red (key_ty G k))); auto using strict_remember.
      intros v R V B s Gs. exists (Gives Unit (put k v s)). split.
      + eapply eval_next; [cbn; rewrite isval_step by auto; reflexivity |]. apply eval_val. reflexivity.
      + split; [reflexivity | split; auto]. apply good_put; auto. apply red_inhabits; auto.
    - (* a refined value *) intros S C a P v V Pv T IH g X.
      specialize (IH [] (Forall2_nil _)).
      rewrite (proj1 close_typed _ _ _ _ T) in IH |- * by (cbn; lia).
      intros s Gs.
      destruct (IH s Gs) as (o & Ev & Q). exists o. split; auto.
      inversion Ev as [? ? E | ? ? ? E | ? ? e1 s1 ? E Ev1]; subst;
        try (rewrite isval_step in E by auto; discriminate).
      destruct Q as (R & B & Gs'). cbn. auto.
    - (* forget *) intros S C a P e _ IH g X s Gs. destruct (IH g X s Gs) as (o & Ev & Q).
      exists o. split; auto. destruct o; auto. destruct Q as ([R _] & Q). auto.
    - intros S C r a g X t c w e' L R B Pk. discriminate.
    - intros S C r a e _ IH g X t c w e' L R B Pk. cbn in Pk. inversion Pk; subst. auto.
    - intros S C r a t c e b L _ IH _ IHb g X t' c' w e' L' R B Pk. cbn in Pk.
      destruct (String.eqb_spec t' t).
      + inversion Pk; subst. rewrite L in L'. inversion L'; subst.
        rewrite (proj1 subst_close) by (eapply fits_closed; eauto).
        apply IH. constructor; auto.
      + eapply IHb; eauto.
  Qed.

  (** ** The theorem *)

  (** Typed with [ub = false]: every fixpoint has a bound. *)
  Theorem termination : forall S e a s, has S [] e a -> store_ok W G S s ->
    exists o, eval e s o.
  Proof.
    intros S e a s T Ok.
    pose proof (proj1 fundamental _ _ _ _ T [] (Forall2_nil _)) as En.
    rewrite (proj1 close_typed _ _ _ _ T) in En by auto.
    assert (Gs : good s) by (intros k v E; apply (Ok k v E)).
    destruct (En s Gs) as (o & Ev & _). eauto.
  Qed.
End Termination.

(** ** Why keys hold data

    A function that looks itself up in the store goes round for ever, without
    any fixpoint. *)

Definition again (k : name) : tm :=
  Lam TStr (Case (Recall k) (BCase "some"%string (App (Var 0) (Var 1)) (BElse (Var 0)))).

Definition knot (k : name) (q : string) : tm :=
  App (Lam TUnit (App (again k) (Str q))) (Remember k (again k)).

Theorem function_in_store_diverges : forall W G k q s n, (forall l, w_kept W k l = true) ->
  exists e s', steps W G (knot k q) s e s' /\ run W G (3 * n) e s' = (e, s') /\
    exists e1 s1, step W G e s' = Next e1 s1.
Proof.
  intros W G k q s n K.
  exists (App (again k) (Str q)), (put k (again k) s). split; [| split].
  - eapply steps_next; [reflexivity |]. eapply steps_next; [reflexivity |]. constructor.
  - induction n as [| n IH]; [reflexivity |].
    replace (3 * S n) with (S (S (S (3 * n)))) by lia.
    cbn. rewrite String.eqb_refl, K. cbn. exact IH.
  - eexists. eexists. reflexivity.
Qed.
