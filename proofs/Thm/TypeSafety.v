(** * Type safety of the typed calculus

    Weakening, store weakening, substitution, canonical forms, progress,
    preservation (one step and many), and type safety in the form of
    docs/calculus.md section 4.7: a well-typed closed program gives a value of
    its type, or one of the checked errors, or is still running.  Nothing is
    assumed about models, tools, classifiers, predicates and samples. *)

Require Import String List Bool Lia Arith.
Require Import Entail.Spec.Typed.
Import ListNotations.

Section Safety.
  Variable W : world.
  Variable G : signature.
  Variable ub : bool.

  Notation has := (has W G ub).
  Notation has_brs := (has_brs W G ub).
  Notation step := (step W G).
  Notation steps := (steps W G).
  Notation store_ok := (store_ok W G).

  Hint Constructors Typed.has Typed.has_brs : core.

  (** ** Values and steps *)

  Lemma beta_not_val : forall f v s, beta W G f v s <> IsVal.
  Proof.
    intros f v s. destruct f; simpl; try discriminate.
    - destruct n as [[|] |]; discriminate.
    - destruct (w_tool W f v (log s)); try discriminate.
      destruct (inhabits W (tool_res G f) t); discriminate.
    - destruct v; try discriminate. destruct (w_llm W p s0 (log s)); discriminate.
  Qed.

  Lemma step_val : forall e s, step e s = IsVal <-> isval e = true.
  Proof.
    intros e s. induction e; simpl; try (split; congruence).
    - (* App *) split; [| discriminate].
      destruct (step e1 s); simpl; try discriminate. destruct (step e2 s); simpl; try discriminate.
      intros E. exfalso. eapply beta_not_val; eauto.
    - (* Pair *) rewrite andb_true_iff, <- IHe1, <- IHe2.
      destruct (step e1 s); simpl; destruct (step e2 s); simpl; intuition congruence.
    - split; [| discriminate]. destruct (step e s); simpl; try discriminate. destruct e; discriminate.
    - split; [| discriminate]. destruct (step e s); simpl; try discriminate. destruct e; discriminate.
    - rewrite <- IHe. destruct (step e s); simpl; intuition congruence.
    - split; [| discriminate]. destruct (step e s); simpl; try discriminate.
      destruct e; try discriminate. destruct (pick t e b); discriminate.
    - split; [| discriminate]. destruct (step e2 s); simpl; try discriminate.
      destruct (w_pred W P e2); try discriminate. destruct r; discriminate.
    - rewrite <- IHe. destruct (step e s); simpl; intuition congruence.
    - split; [| discriminate]. destruct (step e s); simpl; try discriminate.
      destruct e; try discriminate. destruct (w_classify W ts s0); try discriminate.
      destruct (existsb (String.eqb n) ts); discriminate.
    - split; [| discriminate]. destruct (step e s); simpl; discriminate.
  Qed.

  (** ** Weakening *)

  Lemma weakening_mut :
    (forall S C e a, has S C e a -> forall D, has S (C ++ D) e a) /\
    (forall S C r b a, has_brs S C r b a -> forall D, has_brs S (C ++ D) r b a).
  Proof.
    apply (has_mutind W G ub
      (fun S C e a _ => forall D, has S (C ++ D) e a)
      (fun S C r b a _ => forall D, has_brs S (C ++ D) r b a)); eauto.
    intros S' C' i a' E D. constructor. rewrite nth_error_app1; auto.
    apply nth_error_Some. congruence.
  Qed.

  Theorem weakening : forall S C e a, has S C e a -> forall D, has S (C ++ D) e a.
  Proof. apply weakening_mut. Qed.

  Corollary weakening_closed : forall S C e a, has S [] e a -> has S C e a.
  Proof. intros S C e a T. apply (weakening _ _ _ _ T C). Qed.

  Lemma store_weakening_mut :
    (forall S C e a, has S C e a -> forall S', subkeys S S' -> has S' C e a) /\
    (forall S C r b a, has_brs S C r b a -> forall S', subkeys S S' -> has_brs S' C r b a).
  Proof.
    apply (has_mutind W G ub
      (fun S C e a _ => forall S', subkeys S S' -> has S' C e a)
      (fun S C r b a _ => forall S', subkeys S S' -> has_brs S' C r b a)); eauto.
    intros S0 C0 init a0 e0 I _ IH S' Sub. constructor; auto.
    apply IH. intros k. unfold add_keys. rewrite !orb_true_iff. intuition.
  Qed.

  (** Keys in scope may be added. *)
  Theorem store_weakening : forall S C e a, has S C e a ->
    forall S', subkeys S S' -> has S' C e a.
  Proof. apply store_weakening_mut. Qed.

  (** ** Substitution *)

  (** Terms without free variables from [j] on do not change. *)
  Lemma subst_closed_mut :
    (forall S C e a, has S C e a -> forall j v, length C <= j -> subst j v e = e) /\
    (forall S C r b a, has_brs S C r b a -> forall j v, length C <= j -> subst_brs j v b = b).
  Proof.
    apply (has_mutind W G ub
      (fun S C e a _ => forall j v, length C <= j -> subst j v e = e)
      (fun S C r b a _ => forall j v, length C <= j -> subst_brs j v b = b));
      auto; simpl; intros; try (f_equal; auto with arith; fail).
    - assert (i < length C) by (apply nth_error_Some; congruence).
      destruct (Nat.compare_spec i j); auto; lia.
  Qed.

  Lemma subst_closed : forall S C e a, has S C e a ->
    forall j v, length C <= j -> subst j v e = e.
  Proof. apply subst_closed_mut. Qed.

  Lemma covers_subst : forall r b j v, covers r b -> covers r (subst_brs j v b).
  Proof.
    intros r b j w Cv t a E v. specialize (Cv t a E).
    induction b; simpl in *; auto; try discriminate.
    destruct (String.eqb t t0); [discriminate |]. auto.
  Qed.

  Lemma substitution_mut :
    (forall S C0 e a, has S C0 e a -> forall C c D v, C0 = C ++ c :: D -> has S [] v c ->
       has S (C ++ D) (subst (length C) v e) a) /\
    (forall S C0 r b a, has_brs S C0 r b a -> forall C c D v, C0 = C ++ c :: D -> has S [] v c ->
       has_brs S (C ++ D) r (subst_brs (length C) v b) a).
  Proof.
    apply (has_mutind W G ub
      (fun S C0 e a _ => forall C c D v, C0 = C ++ c :: D -> has S [] v c ->
         has S (C ++ D) (subst (length C) v e) a)
      (fun S C0 r b a _ => forall C c D v, C0 = C ++ c :: D -> has S [] v c ->
         has_brs S (C ++ D) r (subst_brs (length C) v b) a)); simpl; eauto.
    - (* variable *)
      intros S C0 i a E C c D v -> Tv.
      destruct (Nat.compare_spec i (length C)) as [X | X | X].
      + subst. rewrite nth_error_app2, Nat.sub_diag in E; auto. inversion E; subst.
        apply weakening_closed; auto.
      + constructor. rewrite nth_error_app1 in *; auto.
      + constructor. destruct i as [| i]; [lia |]. simpl.
        rewrite nth_error_app2 in * by lia.
        replace (Datatypes.S i - length C) with (Datatypes.S (i - length C)) in E by lia. auto.
    - intros S C0 a b e _ IH C c D v -> Tv. constructor.
      apply (IH (a :: C) c D v); auto.
    - intros S C0 r a e b _ IHe Cv _ IHb C c D v -> Tv. econstructor; eauto using covers_subst.
    - intros S C0 init a e I _ IH C c D v -> Tv. constructor; auto.
      apply IH with (c := c); auto. eapply store_weakening; eauto.
      intros k. unfold add_keys. rewrite orb_true_iff. auto.
    - intros S C0 a P v V Pv T _ C c D w -> Tw.
      rewrite (subst_closed _ _ _ _ T) by (simpl; lia). auto.
    - intros S C0 r a t c e b E _ IHe _ IHb C c' D v -> Tv. econstructor; eauto.
      apply (IHe (c :: C) c' D v); auto.
  Qed.

  Theorem substitution : forall S C c D e a v,
    has S (C ++ c :: D) e a -> has S [] v c -> has S (C ++ D) (subst (length C) v e) a.
  Proof. intros. eapply (proj1 substitution_mut); eauto. Qed.

  Corollary substitution_top : forall S c e a v,
    has S [c] e a -> has S [] v c -> has S [] (subst 0 v e) a.
  Proof. intros. apply (substitution S [] c [] e a v); auto. Qed.

  (** ** Canonical forms *)

  (** Refinements say nothing about the shape of a value. *)
  Fixpoint unref (a : ty) : ty := match a with TRef a _ => unref a | _ => a end.

  Theorem canonical_forms : forall S C v a, has S C v a -> isval v = true ->
    match unref a with
    | TStr => exists s, v = Str s
    | TUnit => v = Unit
    | TArr _ _ => (exists b e, v = Lam b e) \/ (exists n F, v = Fix n F) \/
                  (exists f, v = Tool f) \/ (exists p, v = Llm p)
    | TProd _ _ => exists v1 v2, v = Pair v1 v2
    | TSum r => exists t v' c, v = Tag t v' /\ lookup t r = Some c
    | TRef _ _ => False
    end.
  Proof.
    intros S C v a T. induction T; simpl; intros V; try discriminate; eauto 10; exact (IHT V).
  Qed.

  Lemma inv_lam : forall S C a e t, has S C (Lam a e) t ->
    exists b, unref t = TArr a b /\ has S (a :: C) e b.
  Proof.
    intros S C a e t T. remember (Lam a e) as x eqn:X. revert X.
    induction T; intros X; inversion X; subst; simpl; eauto.
    destruct IHT as (b & E & T'); auto. exists b. split; auto.
    apply (weakening _ _ _ _ T' C).
  Qed.

  Lemma inv_pair : forall S C v1 v2 t, has S C (Pair v1 v2) t ->
    exists a b, unref t = TProd a b /\ has S C v1 a /\ has S C v2 b.
  Proof.
    intros S C v1 v2 t T. remember (Pair v1 v2) as x eqn:X. revert X.
    induction T; intros X; inversion X; subst; simpl; eauto 10.
    destruct IHT as (b & c & E & T1 & T2); auto. exists b, c.
    split; auto using weakening_closed.
  Qed.

  Lemma inv_tag : forall S C t v a, has S C (Tag t v) a ->
    exists r c, unref a = TSum r /\ lookup t r = Some c /\ has S C v c.
  Proof.
    intros S C t v a T. remember (Tag t v) as x eqn:X. revert X.
    induction T; intros X; inversion X; subst; simpl; eauto 10.
    destruct IHT as (r & c & E & E' & T'); auto. exists r, c.
    split; auto using weakening_closed.
  Qed.

  Lemma inv_fix : forall S C n F t, has S C (Fix n F) t ->
    exists a, unref t = TArr a a /\ (n = None -> ub = true) /\
      has S C F (TArr (TArr a a) (TArr a a)).
  Proof.
    intros S C n F t T. remember (Fix n F) as x eqn:X. revert X.
    induction T; intros X; inversion X; subst; simpl; eauto 10.
    destruct IHT as (b & E & B & T'); auto. exists b.
    split; auto using weakening_closed.
  Qed.

  Lemma inv_tool : forall S C f t, has S C (Tool f) t -> unref t = TArr (tool_arg G f) (tool_res G f).
  Proof.
    intros S C f t T. remember (Tool f) as x eqn:X. revert X.
    induction T; intros X; inversion X; subst; simpl; auto.
  Qed.

  Lemma inv_llm : forall S C p t, has S C (Llm p) t -> unref t = TArr TStr TStr.
  Proof.
    intros S C p t T. remember (Llm p) as x eqn:X. revert X.
    induction T; intros X; inversion X; subst; simpl; auto.
  Qed.

  (** ** Data of ground types *)

  Lemma lookup_inhabits : forall r t c v, lookup t r = Some c ->
    inhabits W c v = true -> inhabits_row W r t v = true.
  Proof.
    induction r as [| t' a r IH]; simpl; intros t c v E I; [discriminate |].
    destruct (String.eqb t t'); [inversion E; subst; auto | eauto].
  Qed.

  Lemma inhabits_typed_mut :
    (forall a v, inhabits W a v = true -> isval v = true /\ forall S C, has S C v a) /\
    (forall r t v, inhabits_row W r t v = true ->
       isval v = true /\ exists c, lookup t r = Some c /\ forall S C, has S C v c).
  Proof.
    apply ty_mutind.
    - intros [] I; simpl in I; try discriminate. split; auto.
    - intros [] I; simpl in I; try discriminate. split; auto.
    - intros a _ b _ v I. simpl in I. discriminate.
    - intros a IHa b IHb [] I; simpl in I; try discriminate.
      apply andb_true_iff in I. destruct I as [I1 I2].
      destruct (IHa _ I1) as [V1 T1], (IHb _ I2) as [V2 T2]. simpl. rewrite V1, V2. auto.
    - intros r IH [] I; simpl in I; try discriminate.
      destruct (IH _ _ I) as [V (c & E & T)]. split; auto. intros. econstructor; eauto.
    - intros a IH P v I. simpl in I. apply andb_true_iff in I. destruct I as [I Pv].
      destruct (IH _ I) as [V T]. split; auto.
    - intros t v I. discriminate.
    - intros t' a IHa r IHr t v I. simpl in *. destruct (String.eqb t t').
      + destruct (IHa _ I) as [V T]. eauto.
      + auto.
  Qed.

  Lemma inhabits_typed : forall a v S C, inhabits W a v = true -> has S C v a.
  Proof. intros a v S C I. apply (proj1 inhabits_typed_mut a v I). Qed.

  Lemma inhabits_val : forall a v, inhabits W a v = true -> isval v = true.
  Proof. intros a v I. apply (proj1 inhabits_typed_mut a v I). Qed.

  Lemma lookup_ground : forall r t c, ground_row r = true -> lookup t r = Some c -> ground c = true.
  Proof.
    induction r as [| t' a r IH]; simpl; intros t c E L; [discriminate |].
    apply andb_true_iff in E. destruct E as [Ea Er].
    destruct (String.eqb t t'); [inversion L; subst; auto | eauto].
  Qed.

  (** What a program may put into a store is data that its type describes. *)
  Lemma typed_inhabits : forall S C v a, has S C v a -> isval v = true -> ground a = true ->
    inhabits W a v = true.
  Proof.
    intros S C v a T. induction T; simpl; intros V Gr; try discriminate; auto.
    - apply andb_true_iff in V. apply andb_true_iff in Gr. destruct V, Gr.
      rewrite IHT1, IHT2; auto.
    - eapply lookup_inhabits; eauto. apply IHT; auto. eapply lookup_ground; eauto.
    - rewrite IHT, H0; auto.
    - simpl in IHT. specialize (IHT V Gr). apply andb_true_iff in IHT. tauto.
  Qed.

  (** ** Progress *)

  Lemma pick_covers : forall r b t c v, covers r b -> lookup t r = Some c ->
    exists e, pick t v b = Some e.
  Proof.
    intros r b t c v Cv E. specialize (Cv t c E v). destruct (pick t v b); eauto. congruence.
  Qed.

  (** A value in the position of a subterm that is not stuck. *)
  Ltac sub IH :=
    let E := fresh "E" in
    match type of IH with
    | step ?e ?s <> Stuck =>
        destruct (step e s) as [| ? ? | ? |] eqn:E; simpl; try discriminate; try congruence
    end.

  Theorem progress : forall S e a s, has S [] e a -> step e s <> Stuck.
  Proof.
    intros S e a s T. remember [] as C eqn:X. revert X.
    induction T; intros X; subst; simpl; try discriminate.
    - destruct i; discriminate.
    - (* App *)
      specialize (IHT1 eq_refl). specialize (IHT2 eq_refl). sub IHT1. sub IHT2.
      apply step_val in E. apply step_val in E0.
      destruct (canonical_forms _ _ _ _ T1 E) as [(c & f & ->) | [(n & F & ->) | [(f & ->) | (p & ->)]]];
        simpl; try discriminate.
      + destruct n as [[|] |]; discriminate.
      + destruct (w_tool W f e2 (log s)); [destruct (inhabits W _ _) |]; discriminate.
      + apply inv_llm in T1. simpl in T1. inversion T1; subst.
        destruct (canonical_forms _ _ _ _ T2 E0) as (q & ->).
        destruct (w_llm W p q (log s)); discriminate.
    - specialize (IHT1 eq_refl). specialize (IHT2 eq_refl). sub IHT1. sub IHT2.
    - specialize (IHT eq_refl). sub IHT. apply step_val in E.
      destruct (canonical_forms _ _ _ _ T E) as (v1 & v2 & ->). discriminate.
    - specialize (IHT eq_refl). sub IHT. apply step_val in E.
      destruct (canonical_forms _ _ _ _ T E) as (v1 & v2 & ->). discriminate.
    - specialize (IHT eq_refl). sub IHT.
    - specialize (IHT eq_refl). sub IHT. apply step_val in E.
      destruct (canonical_forms _ _ _ _ T E) as (t & v & c & -> & L).
      destruct (pick_covers _ _ _ _ v H L) as (e' & ->). discriminate.
    - specialize (IHT2 eq_refl). sub IHT2. destruct (w_pred W P e); [discriminate |].
      destruct r; discriminate.
    - specialize (IHT eq_refl). sub IHT.
    - specialize (IHT eq_refl). sub IHT. apply step_val in E.
      destruct (canonical_forms _ _ _ _ T E) as (q & ->).
      destruct (w_classify W ts q) as [t |]; [destruct (existsb (String.eqb t) ts) |]; discriminate.
    - specialize (IHT eq_refl). sub IHT.
    - auto.
    - auto.
  Qed.

  (** ** Preservation *)

  Lemma store_ok_record : forall S a s, store_ok S s -> store_ok S (record a s).
  Proof. auto. Qed.

  Lemma store_ok_put : forall S k v s, store_ok S s -> S k = true ->
    inhabits W (key_ty G k) v = true -> store_ok S (put k v s).
  Proof.
    intros S k v s Ok K I k' v'. simpl. destruct (String.eqb_spec k k').
    - intros X. inversion X; subst. auto.
    - auto.
  Qed.

  Lemma store_ok_puts : forall S init s,
    (forall k v, In (k, v) init -> inhabits W (key_ty G k) v = true) ->
    store_ok S s -> store_ok (add_keys init S) (puts init s).
  Proof.
    intros S init s I Ok.
    assert (A : forall l, (forall kv, In kv l -> In kv init) ->
              store_ok (add_keys init S) (puts l s)).
    { induction l as [| [k v] l IH]; simpl; intros Sub.
      - intros k v E. destruct (Ok k v E) as [K I']. unfold add_keys. rewrite K. auto.
      - apply store_ok_put; auto.
        unfold add_keys. apply orb_true_iff. right. apply existsb_exists.
        exists (k, v). split; auto. apply String.eqb_refl. }
    apply A. auto.
  Qed.

  Lemma pick_typed : forall S C r b a, has_brs S C r b a -> C = [] ->
    forall t c v e, lookup t r = Some c -> has S [] v c -> pick t v b = Some e -> has S [] e a.
  Proof.
    intros S C r b a T. induction T; intros X t' c' v e' E Tv Pk; subst; simpl in Pk.
    - discriminate.
    - inversion Pk; subst; auto.
    - destruct (String.eqb_spec t' t).
      + inversion Pk; subst. rewrite H in E. inversion E; subst.
        eapply substitution_top; eauto.
      + eapply IHT; eauto.
  Qed.

  Lemma tags_row_lookup : forall ts t, existsb (String.eqb t) ts = true ->
    lookup t (tags_row ts) = Some TUnit.
  Proof.
    induction ts as [| t' ts IH]; simpl; intros t E; [discriminate |].
    destruct (String.eqb t t'); auto.
  Qed.

  Lemma unfold_typed : forall S n F v a, (n = None -> ub = true) ->
    has S [] F (TArr (TArr a a) (TArr a a)) -> has S [] v a ->
    has S [] (unfold_fix n F v) a.
  Proof.
    intros S n F v a B TF Tv.
    assert (Ts : has S [] (Fix n F) (TArr a a)) by auto.
    destruct F as [| | | b f | | | | | | | | | | | | | | |]; simpl; eauto.
    destruct f as [| | | c f | | | | | | | | | | | | | | |]; simpl; eauto.
    destruct (inv_lam _ _ _ _ _ TF) as (b' & E & Tf). simpl in E. inversion E; subst.
    destruct (inv_lam _ _ _ _ _ Tf) as (c' & E' & Tf'). simpl in E'. inversion E'; subst.
    eapply substitution_top; eauto.
    match goal with Tf : has _ [?c; TArr ?c ?c] _ _ |- _ =>
      apply (substitution S [c] (TArr c c) []); auto end.
  Qed.

  Theorem preservation : forall S e a s e' s',
    has S [] e a -> store_ok S s -> step e s = Next e' s' ->
    exists S', subkeys S S' /\ store_ok S' s' /\ has S' [] e' a.
  Proof.
    intros S e a s e' s' T. remember [] as C eqn:X. revert X s e' s'.
    assert (Refl : forall S, subkeys S S) by (intros ? ?; auto).
    assert (Done : forall S s' e' a, store_ok S s' -> has S [] e' a ->
              exists S', subkeys S S' /\ store_ok S' s' /\ has S' [] e' a)
      by (intros S0 s0 e0 a0 Ok T'; exists S0; auto).
    Ltac inner IH St Ok :=
      match type of St with
      | within (step ?e ?s) _ _ = _ =>
          let E := fresh "E" in
          let Sub := fresh "Sub" in
          destruct (step e s) as [| ? ? | ? |] eqn:E; simpl in St;
          [ apply step_val in E
          | inversion St; subst; clear St;
            destruct (IH eq_refl _ _ _ Ok E) as (?S' & Sub & ? & ?);
            exists S'; split; [exact Sub | split; [assumption |]]
          | discriminate | discriminate ]
      end.
    induction T; intros X s0 e' s' Ok St; subst; simpl in St; try discriminate.
    - (* App *)
      inner IHT1 St Ok.
      2: { econstructor; eauto. eapply store_weakening; eauto. }
      inner IHT2 St Ok.
      2: { econstructor; eauto. eapply store_weakening; eauto. }
      destruct (canonical_forms _ _ _ _ T1 E) as [(c & f & ->) | [(n & F & ->) | [(f & ->) | (p & ->)]]];
        simpl in St.
      + inversion St; subst. destruct (inv_lam _ _ _ _ _ T1) as (b' & Eq & Tf).
        simpl in Eq. inversion Eq; subst. apply Done; auto. eapply substitution_top; eauto.
      + destruct (inv_fix _ _ _ _ _ T1) as (c & Eq & B & TF). simpl in Eq. inversion Eq; subst.
        destruct n as [[| n] |]; inversion St; subst; apply Done; auto;
          apply unfold_typed; auto; discriminate.
      + apply inv_tool in T1. simpl in T1. inversion T1; subst.
        destruct (w_tool W f e2 (log s0)) as [r |]; [| discriminate].
        destruct (inhabits W (tool_res G f) r) eqn:I; inversion St; subst.
        apply Done; auto. apply inhabits_typed; auto.
      + apply inv_llm in T1. simpl in T1. inversion T1; subst.
        destruct (canonical_forms _ _ _ _ T2 E0) as (q & ->).
        destruct (w_llm W p q (log s0)); inversion St; subst. apply Done; auto.
    - (* Pair *)
      inner IHT1 St Ok.
      2: { econstructor; eauto. eapply store_weakening; eauto. }
      inner IHT2 St Ok.
      2: { econstructor; eauto. eapply store_weakening; eauto. }
      discriminate.
    - inner IHT St Ok; [| eauto].
      destruct (canonical_forms _ _ _ _ T E) as (v1 & v2 & ->). inversion St; subst.
      destruct (inv_pair _ _ _ _ _ T) as (a' & b' & Eq & T1 & T2). simpl in Eq. inversion Eq; subst.
      apply Done; auto.
    - inner IHT St Ok; [| eauto].
      destruct (canonical_forms _ _ _ _ T E) as (v1 & v2 & ->). inversion St; subst.
      destruct (inv_pair _ _ _ _ _ T) as (a' & b' & Eq & T1 & T2). simpl in Eq. inversion Eq; subst.
      apply Done; auto.
    - inner IHT St Ok; [discriminate | eauto].
    - (* Case *)
      inner IHT St Ok.
      2: { econstructor; eauto.
           eapply (proj2 (conj I (fun H => H))).
           clear - H0 Sub. revert S' Sub.
           induction H0; intros; econstructor; eauto using store_weakening. }
      destruct (canonical_forms _ _ _ _ T E) as (t & v & c & -> & Lk).
      destruct (inv_tag _ _ _ _ _ T) as (r' & c' & Eq & Lk' & Tv). simpl in Eq. inversion Eq; subst.
      destruct (pick t v b) as [e0 |] eqn:Pk; inversion St; subst.
      apply Done; auto. eapply pick_typed; eauto.
    - (* Guard *)
      inner IHT2 St Ok.
      2: { constructor; auto. eapply store_weakening; eauto. }
      destruct (w_pred W P e) eqn:Pv.
      + inversion St; subst. apply Done; auto.
      + destruct r; inversion St; subst. apply Done; auto.
    - inner IHT St Ok; [discriminate | eauto].
    - (* Classify *)
      inner IHT St Ok; [| eauto].
      destruct (canonical_forms _ _ _ _ T E) as (q & ->).
      destruct (w_classify W ts q) as [t |]; [| discriminate].
      destruct (existsb (String.eqb t) ts) eqn:Ex; inversion St; subst.
      apply Done; auto. econstructor; eauto using tags_row_lookup.
    - (* Choose *) inversion St; subst. apply Done; auto. destruct (w_sample W p (log s0)); auto.
    - (* Mem *) inversion St; subst. exists (add_keys init S). split; [| split]; auto.
      + intros k K. unfold add_keys. rewrite K. auto.
      + apply store_ok_puts; auto.
    - (* Recall *) inversion St; subst. apply Done; auto.
      assert (N : has S [] (Tag "none"%string Unit) (TOption (key_ty G k))) by (econstructor; eauto; reflexivity).
      destruct (store s' k) as [v |] eqn:Sk; auto.
      destruct (w_kept W k (log s')); auto.
      destruct (Ok k v Sk) as [_ I]. econstructor; [| apply inhabits_typed; eauto]. reflexivity.
    - (* Remember *)
      inner IHT St Ok; [| constructor; auto].
      inversion St; subst. apply Done; auto.
      apply store_ok_put; auto. eapply typed_inhabits; eauto.
    - (* refined values do not step *)
      apply step_val with (s := s0) in H. congruence.
    - (* forget *)
      destruct (IHT eq_refl _ _ _ Ok St) as (S' & Sub & Ok' & T'). eauto 10.
  Qed.

  Theorem preservation_steps : forall S e a s e' s',
    has S [] e a -> store_ok S s -> steps e s e' s' ->
    exists S', subkeys S S' /\ store_ok S' s' /\ has S' [] e' a.
  Proof.
    intros S e a s e' s' T Ok St. revert S T Ok.
    induction St as [e s | e s e1 s1 e2 s2 E _ IH]; intros S T Ok.
    - exists S. split; auto. intros k K; auto.
    - destruct (preservation _ _ _ _ _ _ T Ok E) as (S1 & Sub1 & Ok1 & T1).
      destruct (IH _ T1 Ok1) as (S2 & Sub2 & Ok2 & T2).
      exists S2. split; auto. intros k K. auto.
  Qed.

  (** ** Type safety *)

  (** Wherever evaluation of a well-typed closed program has got to: it has a
      value of the type, or raises one of the checked errors, or goes on.
      There is no other way to stop. *)
  Theorem type_safety : forall S e a s e' s',
    has S [] e a -> store_ok S s -> steps e s e' s' ->
    (isval e' = true /\ exists S', subkeys S S' /\ has S' [] e' a) \/
    (exists x, step e' s' = Fail x) \/
    (exists e'' s'', step e' s' = Next e'' s'').
  Proof.
    intros S e a s e' s' T Ok St.
    destruct (preservation_steps _ _ _ _ _ _ T Ok St) as (S' & Sub & Ok' & T').
    pose proof (progress _ _ _ s' T') as P.
    destruct (step e' s') as [| e'' s'' | x |] eqn:E.
    - left. apply step_val in E. eauto.
    - right. right. eauto.
    - right. left. eauto.
    - congruence.
  Qed.

  (** A value of a refined type satisfies every predicate of the type: nothing
      that a guard let through has to be checked again. *)
  Fixpoint holds (a : ty) (v : tm) : Prop :=
    match a with TRef a P => w_pred W P v = true /\ holds a v | _ => True end.

  Theorem refined_value : forall S C v a, has S C v a -> isval v = true -> holds a v.
  Proof.
    intros S C v a T. induction T; simpl; intros V; try discriminate; auto.
    apply IHT. auto.
  Qed.

  (** Evaluation is deterministic: the world is a parameter. *)
  Theorem steps_deterministic : forall e s e1 s1 e2 s2,
    steps e s e1 s1 -> steps e s e2 s2 -> step e1 s1 = IsVal -> step e2 s2 = IsVal ->
    e1 = e2 /\ s1 = s2.
  Proof.
    intros e s e1 s1 e2 s2 St1. revert e2 s2.
    induction St1 as [e s | e s e' s' e1 s1 E St1 IH]; intros e2 s2 St2 V1 V2.
    - inversion St2; subst; auto. congruence.
    - inversion St2 as [| ? ? e'' s'' ? ? E']; subst; [congruence |].
      rewrite E in E'. inversion E'; subst. eauto.
  Qed.
End Safety.
