(** * The unfolding bound and the cost bound

    Corrections 1 and 2 of docs/calculus.md section 4: with [k] the most calls
    of the self reference on a path through the body, a fixpoint bounded by
    [n] unfolds at most [1 + k + ... + k^(n-1)] times; it costs at most that
    many times the most expensive path through the body.  The bounds of seed
    000, [n] unfoldings (Theorem 5.4) and [n] oracle calls (Theorem 5.6), fail
    for the bodies shown at the end. *)

Require Import String List Bool Lia Arith.
Require Import Entail.Spec.Typed Entail.Thm.TypeSafety Entail.Thm.Cost.
Import ListNotations.
Local Open Scope nat_scope.

(** [1 + k + ... + k^(n-1)]. *)
Fixpoint geo (k n : nat) : nat :=
  match n with O => 0 | S n' => 1 + k * geo k n' end.

Lemma geo_linear : forall k n, k <= 1 -> geo k n <= n.
Proof. induction n as [| n IH]; simpl; intros L; auto. specialize (IH L). nia. Qed.

Lemma geo_closed : forall k n, 1 <= k -> (k - 1) * geo k n = k ^ n - 1.
Proof.
  intros k n L. induction n as [| n IH]; simpl; [lia |].
  assert (1 <= k ^ n) by (apply Nat.neq_0_lt_0, Nat.pow_nonzero; lia).
  replace ((k - 1) * S (k * geo k n)) with (k - 1 + k * ((k - 1) * geo k n)) by lia.
  rewrite IH. nia.
Qed.

(** No fixpoint inside: one loop is counted at a time. *)
Fixpoint no_fix (e : tm) : bool :=
  match e with
  | Var _ | Str _ | Unit | Tool _ | Llm _ | Recall _ => true
  | Fix _ _ => false
  | Lam _ e | Fst e | Snd e | Tag _ e | Classify _ e | Mem _ e | Remember _ e => no_fix e
  | App a b | Pair a b | Guard a b _ _ | Choose _ a b => no_fix a && no_fix b
  | Case e b => no_fix e && no_fix_brs b
  end
with no_fix_brs (b : brs) : bool :=
  match b with
  | BNone => true
  | BElse e => no_fix e
  | BCase _ e b => no_fix e && no_fix_brs b
  end.

(** Variables marked [true] are the self reference, at [w] a call. *)
Definition selves (w : nat) (G : list bool) : list (option nat) :=
  map (fun b : bool => if b then Some w else None) G.

(** The self-use count of a body (under its two binders), and the cost of its
    most expensive path, calls of the self reference aside. *)
Definition self_uses (b : tm) : option nat := weigh nothing [None; Some 1] b.
Definition path_cost (p : prices) (b : tm) : option nat := weigh p [None; Some 0] b.

Section Bounds.
  Variable p : prices.

  Lemma selves_nth : forall w G i, nth_error (selves w G) i =
    option_map (fun b : bool => if b then Some w else None) (nth_error G i).
  Proof. intros w G. induction G as [| b G IH]; intros [| i]; simpl; auto. Qed.

  Lemma linear :
    (forall e G k c w, no_fix e = true -> weigh nothing (selves 1 G) e = Some k ->
       weigh p (selves 0 G) e = Some c ->
       exists x, weigh p (selves w G) e = Some x /\ x <= c + k * w) /\
    (forall b G k c w, no_fix_brs b = true -> weigh_brs nothing (selves 1 G) b = Some k ->
       weigh_brs p (selves 0 G) b = Some c ->
       exists x, weigh_brs p (selves w G) b = Some x /\ x <= c + k * w).
  Proof.
    apply size_ind.
    - intros e IH IHb G k c w N K C.
      assert (Two : forall e1 e2 k1 k2 c1 c2, size e1 < size e -> size e2 < size e ->
        no_fix e1 && no_fix e2 = true ->
        weigh nothing (selves 1 G) e1 = Some k1 -> weigh nothing (selves 1 G) e2 = Some k2 ->
        weigh p (selves 0 G) e1 = Some c1 -> weigh p (selves 0 G) e2 = Some c2 ->
        exists x1 x2, weigh p (selves w G) e1 = Some x1 /\ weigh p (selves w G) e2 = Some x2 /\
          x1 <= c1 + k1 * w /\ x2 <= c2 + k2 * w).
      { intros e1 e2 k1 k2 c1 c2 S1 S2 N' K1 K2 C1 C2. apply andb_true_iff in N'. destruct N' as [N1 N2].
        destruct (IH e1 S1 G k1 c1 w N1 K1 C1) as (x1 & A1 & B1).
        destruct (IH e2 S2 G k2 c2 w N2 K2 C2) as (x2 & A2 & B2). exists x1, x2. auto. }
      destruct e; try discriminate N;
        try (cbn in K, C; inversion K; inversion C; subst; exists 0; split; [reflexivity | lia]).
      + (* variable *) cbn in K, C |- *. rewrite selves_nth in *.
        destruct (nth_error G i) as [[|] |]; simpl in *; try discriminate.
        exists 0. split; auto. lia.
      + (* function *)
        change (only_zero (weigh nothing (selves 1 (false :: G)) e) = Some k) in K.
        change (only_zero (weigh p (selves 0 (false :: G)) e) = Some c) in C.
        destruct (weigh nothing (selves 1 (false :: G)) e) as [k' |] eqn:K'; [| discriminate].
        destruct (weigh p (selves 0 (false :: G)) e) as [c' |] eqn:C'; [| discriminate].
        cbn in K, C. apply free_zero in K. apply free_zero in C. destruct K, C; subst.
        destruct (IH e (ltac:(cbn; lia)) (false :: G) 0 0 w N K' C') as (x & A & B).
        assert (x = 0) by lia. subst. exists 0. split; [| lia].
        change (only_zero (weigh p (selves w (false :: G)) e) = Some 0). rewrite A. reflexivity.
      + (* application *)
        rewrite weigh_app in K, C |- *. somes. cbn in N. apply andb_true_iff in N. destruct N as [N1 N2].
        destruct (IH e2 (ltac:(cbn; lia)) G _ _ w N2 Heqo2 Heqo0) as (x2 & A2 & B2).
        assert (Hd : exists x1, head_weight p (selves w G) e1 = Some x1 /\ x1 <= x + x0 * w).
        { destruct e1; try discriminate N1; unfold head_weight in *;
            try (refine (IH _ _ G _ _ w N1 Heqo1 Heqo); cbn; lia).
          - rewrite selves_nth in *. destruct (nth_error G i) as [[|] |]; simpl in *; try discriminate;
              inversion Heqo; inversion Heqo1; subst; eexists; split; eauto; lia.
          - destruct (IH e1 (ltac:(cbn; lia)) (false :: G) _ _ w N1 Heqo1 Heqo) as (x1 & A & B).
            exists x1. split; auto.
          - inversion Heqo; inversion Heqo1; subst. eexists; split; eauto; lia.
          - inversion Heqo; inversion Heqo1; subst. eexists; split; eauto; lia. }
        destruct Hd as (x1 & A1 & B1). exists (x1 + x2). rewrite A1, A2. split; auto. nia.
      + (* pair *)
        change (add (weigh nothing (selves 1 G) e1) (weigh nothing (selves 1 G) e2) = Some k) in K.
        change (add (weigh p (selves 0 G) e1) (weigh p (selves 0 G) e2) = Some c) in C. somes.
        destruct (Two e1 e2 _ _ _ _ (ltac:(cbn; lia)) (ltac:(cbn; lia)) N Heqo1 Heqo2 Heqo Heqo0)
          as (x1 & x2 & A1 & A2 & B1 & B2).
        exists (x1 + x2). split; [| nia].
        change (add (weigh p (selves w G) e1) (weigh p (selves w G) e2) = Some (x1 + x2)).
        rewrite A1, A2. auto.
      + exact (IH e (ltac:(cbn; lia)) G k c w N K C).
      + exact (IH e (ltac:(cbn; lia)) G k c w N K C).
      + exact (IH e (ltac:(cbn; lia)) G k c w N K C).
      + (* case *)
        change (add (weigh nothing (selves 1 G) e) (weigh_brs nothing (selves 1 G) b) = Some k) in K.
        change (add (weigh p (selves 0 G) e) (weigh_brs p (selves 0 G) b) = Some c) in C. somes.
        cbn in N. apply andb_true_iff in N. destruct N as [N1 N2].
        destruct (IH e (ltac:(cbn; lia)) G _ _ w N1 Heqo1 Heqo) as (x1 & A1 & B1).
        destruct (IHb b (ltac:(cbn; lia)) G _ _ w N2 Heqo2 Heqo0) as (x2 & A2 & B2).
        exists (x1 + x2). split; [| nia].
        change (add (weigh p (selves w G) e) (weigh_brs p (selves w G) b) = Some (x1 + x2)).
        rewrite A1, A2. auto.
      + (* guard *)
        change (add (times r (weigh nothing (selves 1 G) e1)) (weigh nothing (selves 1 G) e2) = Some k) in K.
        change (add (times r (weigh p (selves 0 G) e1)) (weigh p (selves 0 G) e2) = Some c) in C.
        destruct (weigh nothing (selves 1 G) e1) as [k1 |] eqn:K1; [| discriminate].
        destruct (weigh nothing (selves 1 G) e2) as [k2 |] eqn:K2; [| discriminate].
        destruct (weigh p (selves 0 G) e1) as [c1 |] eqn:C1; [| discriminate].
        destruct (weigh p (selves 0 G) e2) as [c2 |] eqn:C2; [| discriminate].
        cbn in K, C. inversion K; inversion C; subst.
        destruct (Two e1 e2 _ _ _ _ (ltac:(cbn; lia)) (ltac:(cbn; lia)) N K1 K2 C1 C2)
          as (x1 & x2 & A1 & A2 & B1 & B2).
        exists (r * x1 + x2). split; [| nia].
        change (add (times r (weigh p (selves w G) e1)) (weigh p (selves w G) e2) = Some (r * x1 + x2)).
        rewrite A1, A2. auto.
      + (* tool *) exists c. split; [exact C | lia].
      + (* model *) exists c. split; [exact C | lia].
      + exact (IH e (ltac:(cbn; lia)) G k c w N K C).
      + (* choose *)
        change (most (weigh nothing (selves 1 G) e1) (weigh nothing (selves 1 G) e2) = Some k) in K.
        change (most (weigh p (selves 0 G) e1) (weigh p (selves 0 G) e2) = Some c) in C. somes.
        destruct (Two e1 e2 _ _ _ _ (ltac:(cbn; lia)) (ltac:(cbn; lia)) N Heqo1 Heqo2 Heqo Heqo0)
          as (x1 & x2 & A1 & A2 & B1 & B2).
        exists (Nat.max x1 x2). split; [| nia].
        change (most (weigh p (selves w G) e1) (weigh p (selves w G) e2) = Some (Nat.max x1 x2)).
        rewrite A1, A2. auto.
      + (* mem *) cbn in K, C |- *.
        destruct (forallb (fun kv => is_data (snd kv)) init); [| discriminate].
        exact (IH e (ltac:(cbn; lia)) G k c w N K C).
      + exact (IH e (ltac:(cbn; lia)) G k c w N K C).
    - intros b IH IHb G k c w N K C. destruct b.
      + cbn in K, C. inversion K; inversion C; subst. exists 0. split; [reflexivity | lia].
      + exact (IH e (ltac:(cbn; lia)) G k c w N K C).
      + change (most (weigh nothing (selves 1 (false :: G)) e) (weigh_brs nothing (selves 1 G) b) = Some k) in K.
        change (most (weigh p (selves 0 (false :: G)) e) (weigh_brs p (selves 0 G) b) = Some c) in C. somes.
        cbn in N. apply andb_true_iff in N. destruct N as [N1 N2].
        destruct (IH e (ltac:(cbn; lia)) (false :: G) _ _ w N1 Heqo1 Heqo) as (x1 & A1 & B1).
        destruct (IHb b (ltac:(cbn; lia)) G _ _ w N2 Heqo2 Heqo0) as (x2 & A2 & B2).
        exists (Nat.max x1 x2). split; [| nia].
        change (most (weigh p (selves w (false :: G)) e) (weigh_brs p (selves w G) b) = Some (Nat.max x1 x2)).
        rewrite A1, A2. auto.
  Qed.

  (** What the whole loop costs. *)
  Lemma loop_weight : forall n a1 a2 b k c, no_fix b = true ->
    self_uses b = Some k -> path_cost p b = Some c ->
    exists x, head_weight p [] (Fix (Some n) (Lam a1 (Lam a2 b))) = Some x /\
      x <= (p_unfold p + c) * geo k n.
  Proof.
    intros n a1 a2 b k c N K C. unfold head_weight.
    induction n as [| n (x & A & B)]; cbn [rounds geo].
    - exists 0. split; auto. lia.
    - rewrite A.
      destruct (proj1 linear b [false; true] k c x N K C) as (y & Y & Z).
      change (selves x [false; true]) with [None; Some x] in Y. rewrite Y. cbn [add].
      exists (p_unfold p + y). split; auto. nia.
  Qed.

  (** ** The theorems *)

  Variable W : world.
  Variable Sg : signature.
  Notation steps := (steps W Sg).

  (** At every point of a run of a bounded loop. *)
  Theorem loop_cost : forall n a1 a2 b v s e s' k c, no_fix b = true ->
    self_uses b = Some k -> path_cost p b = Some c ->
    weigh p [] v = Some 0 -> store_free p s ->
    steps (App (Fix (Some n) (Lam a1 (Lam a2 b))) v) s e s' ->
    total p (log s') <= total p (log s) + (p_unfold p + c) * geo k n.
  Proof.
    intros n a1 a2 b v s e s' k c N K C V Fr St.
    destruct (loop_weight n a1 a2 b k c N K C) as (x & A & B).
    assert (E : weigh p [] (App (Fix (Some n) (Lam a1 (Lam a2 b))) v) = Some (x + 0)).
    { rewrite weigh_app, A, V. reflexivity. }
    pose proof (weigh_sound W Sg p _ _ _ _ _ E Fr St). lia.
  Qed.
End Bounds.

Section Corollaries.
  Variable W : world.
  Variable Sg : signature.
  Notation steps := (steps W Sg).

  (** The unfolding bound.  A call of a model or tool is free here, so bodies
      may use them anywhere. *)
  Theorem unfolding_bound : forall n a1 a2 b v s e s' k c, no_fix b = true ->
    self_uses b = Some k -> path_cost unfoldings b = Some c ->
    weigh unfoldings [] v = Some 0 -> store_free unfoldings s ->
    steps (App (Fix (Some n) (Lam a1 (Lam a2 b))) v) s e s' ->
    total unfoldings (log s') <= total unfoldings (log s) + (1 + c) * geo k n.
  Proof. intros. eapply loop_cost; eauto. Qed.

  (** Without calls of anything that costs unfoldings, [c] is nought; then at
      most [n] unfoldings for an affine body, and [(k^n - 1) / (k - 1)]
      otherwise. *)
  Corollary unfolding_bound_affine : forall n a1 a2 b v s e s' k, no_fix b = true ->
    self_uses b = Some k -> k <= 1 -> path_cost unfoldings b = Some 0 ->
    weigh unfoldings [] v = Some 0 -> store_free unfoldings s ->
    steps (App (Fix (Some n) (Lam a1 (Lam a2 b))) v) s e s' ->
    total unfoldings (log s') <= total unfoldings (log s) + n.
  Proof.
    intros n a1 a2 b v s e s' k N K Le C V Fr St.
    pose proof (unfolding_bound _ _ _ _ _ _ _ _ _ _ N K C V Fr St).
    pose proof (geo_linear k n Le). lia.
  Qed.

  Corollary unfolding_bound_geometric : forall n a1 a2 b v s e s' k, no_fix b = true ->
    self_uses b = Some k -> 2 <= k -> path_cost unfoldings b = Some 0 ->
    weigh unfoldings [] v = Some 0 -> store_free unfoldings s ->
    steps (App (Fix (Some n) (Lam a1 (Lam a2 b))) v) s e s' ->
    (k - 1) * total unfoldings (log s') <= (k - 1) * total unfoldings (log s) + (k ^ n - 1).
  Proof.
    intros n a1 a2 b v s e s' k N K Le C V Fr St.
    pose proof (unfolding_bound _ _ _ _ _ _ _ _ _ _ N K C V Fr St).
    rewrite <- (geo_closed k n) by lia. nia.
  Qed.

  (** The cost bound: money, tokens or calls, at any prices. *)
  Theorem cost_bound : forall p n a1 a2 b v s e s' k c, no_fix b = true -> p_unfold p = 0 ->
    self_uses b = Some k -> path_cost p b = Some c ->
    weigh p [] v = Some 0 -> store_free p s ->
    steps (App (Fix (Some n) (Lam a1 (Lam a2 b))) v) s e s' ->
    total p (log s') <= total p (log s) + c * geo k n.
  Proof.
    intros p n a1 a2 b v s e s' k c N P K C V Fr St.
    pose proof (loop_cost p W Sg n a1 a2 b v s e s' k c N K C V Fr St) as Q.
    rewrite P in Q. exact Q.
  Qed.

  Corollary cost_bound_affine : forall p n a1 a2 b v s e s' k c, no_fix b = true -> p_unfold p = 0 ->
    self_uses b = Some k -> k <= 1 -> path_cost p b = Some c ->
    weigh p [] v = Some 0 -> store_free p s ->
    steps (App (Fix (Some n) (Lam a1 (Lam a2 b))) v) s e s' ->
    total p (log s') <= total p (log s) + n * c.
  Proof.
    intros p n a1 a2 b v s e s' k c N P K Le C V Fr St.
    pose proof (cost_bound p n a1 a2 b v s e s' k c N P K C V Fr St).
    pose proof (geo_linear k n Le). nia.
  Qed.

  (** ** The bounds of the seed fail *)

  (** [\s. \x. s (s x)], on strings. *)
  Definition twice : tm := Lam (TArr TStr TStr) (Lam TStr (App (Var 1) (App (Var 1) (Var 0)))).

  Lemma twice_typed : has W Sg false (fun _ => false) [] (Fix (Some 0) twice) (TArr TStr TStr).
  Proof.
    apply T_Fix; [discriminate |]. unfold twice.
    repeat (econstructor; try reflexivity).
  Qed.

  Lemma steps_app_arg : forall f e s e' s', isval f = true -> steps e s e' s' ->
    steps (App f e) s (App f e') s'.
  Proof.
    intros f e s e' s' V St. induction St as [e s | e s e1 s1 e2 s2 E St IH].
    - constructor.
    - eapply steps_next; [| exact IH]. cbn. apply (step_val W Sg f s) in V. rewrite V. cbn.
      rewrite E. reflexivity.
  Qed.

  Lemma steps_app : forall e1 s1 e2 s2 e3 s3,
    steps e1 s1 e2 s2 -> steps e2 s2 e3 s3 -> steps e1 s1 e3 s3.
  Proof. intros e1 s1 e2 s2 e3 s3 A. revert e3 s3. induction A; auto. intros. econstructor; eauto. Qed.

  (** It unfolds exactly [2^n - 1] times. *)
  Theorem twice_unfolds : forall n q s,
    exists s', steps (App (Fix (Some n) twice) (Str q)) s (Str q) s' /\
      total unfoldings (log s') = total unfoldings (log s) + (2 ^ n - 1).
  Proof.
    induction n as [| n IH]; intros q s.
    - exists s. split; [| simpl; lia]. eapply steps_next; [reflexivity | constructor].
    - destruct (IH q (record AUnfold s)) as (s1 & St1 & T1).
      destruct (IH q s1) as (s2 & St2 & T2).
      exists s2. split.
      + eapply steps_next; [reflexivity |].
        eapply steps_app; [| exact St2].
        apply (steps_app_arg (Fix (Some n) twice)); auto.
      + rewrite T2, T1. cbn [log record total fold_right price unfoldings p_unfold].
        change (fold_right (fun a n => price unfoldings a + n) 0 (log s)) with (total unfoldings (log s)).
        assert (1 <= 2 ^ n) by (apply Nat.neq_0_lt_0, Nat.pow_nonzero; lia).
        simpl. lia.
  Qed.

  (** Seed 000, Theorem 5.4 ("at most [n] unfoldings"), is false for it. *)
  Theorem seed_bound_fails : forall n q s, 2 <= n ->
    exists e s', steps (App (Fix (Some n) twice) (Str q)) s e s' /\
      total unfoldings (log s') > total unfoldings (log s) + n.
  Proof.
    intros n q s L. destruct (twice_unfolds n q s) as (s' & St & T). exists (Str q), s'.
    split; auto. rewrite T.
    assert (B : forall m, 2 <= m -> m + 2 <= 2 ^ m).
    { induction m as [| m IHm]; [lia |]. intros. destruct (Nat.eq_dec m 1); [subst; simpl; lia |].
      assert (m + 2 <= 2 ^ m) by (apply IHm; lia). simpl. lia. }
    specialize (B n L). lia.
  Qed.

  (** The analysis sees it: two self calls on a path. *)
  Example twice_uses :
    self_uses (App (Var 1) (App (Var 1) (Var 0))) = Some 2.
  Proof. reflexivity. Qed.

  (** A ReAct body, think and then one tool: [\s. \x. s (tool (llm x))]. *)
  Definition react (m f : name) : tm :=
    Lam (TArr TStr TStr) (Lam TStr (App (Var 1) (App (Tool f) (App (Llm m) (Var 0))))).

  Definition calls : prices := Prices 0 (fun _ => 1) (fun _ => 1).

  (** Its path costs two calls, so [2 n] are within our bound... *)
  Example react_path : forall m f,
    path_cost calls (App (Var 1) (App (Tool f) (App (Llm m) (Var 0)))) = Some 2.
  Proof. reflexivity. Qed.

  (** ...and one unfolding makes two, which is more than [n * max c] (seed 000,
      Theorem 5.6), whenever the model and the tool answer. *)
  Theorem seed_cost_bound_fails : forall m f q s r1 r2,
    tool_res Sg f = TStr ->
    w_llm W m q (AUnfold :: log s) = Some r1 ->
    w_tool W f (Str r1) (AModel m q :: AUnfold :: log s) = Some (Str r2) ->
    exists e s', steps (App (Fix (Some 1) (react m f)) (Str q)) s e s' /\
      total calls (log s') = total calls (log s) + 2.
  Proof.
    intros m f q s r1 r2 Tr A1 A2. eexists. eexists. split.
    - eapply steps_next; [reflexivity |].
      eapply steps_next; [cbn; rewrite A1; reflexivity |].
      eapply steps_next; [cbn; rewrite A2, Tr; reflexivity |].
      eapply steps_next; [reflexivity |]. constructor.
    - cbn [log record total fold_right price calls p_unfold p_model p_tool].
      change (fold_right (fun a n => price calls a + n) 0 (log s)) with (total calls (log s)). lia.
  Qed.
End Corollaries.
