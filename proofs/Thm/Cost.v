(** * How often a bounded fixpoint unfolds, and what that costs

    [weigh] is the static analysis: the cost of the most expensive path
    through a term.  It is sound for whatever the models, tools, samples and
    classifiers answer and at every point of a run, also of one that does not
    end.  From it follow the unfolding bound with the self-use count [k] and
    the cost bound (docs/calculus.md section 4, corrections 1 and 2), and that
    the bounds of seed 000 (Theorems 5.4 and 5.6) do not hold. *)

Require Import String List Bool Lia Arith.
Require Import Entail.Spec.Typed Entail.Thm.TypeSafety.
Import ListNotations.

(** What one action costs. *)
Record prices := Prices {
  p_unfold : nat;
  p_model : name -> nat;
  p_tool : name -> nat
}.

Definition price (p : prices) (a : action) : nat :=
  match a with
  | AModel m _ => p_model p m
  | ATool f _ => p_tool p f
  | ASample _ => 0
  | AUnfold => p_unfold p
  end.

Definition total (p : prices) (l : list action) : nat :=
  fold_right (fun a n => price p a + n) 0 l.

(** Counting unfoldings; counting nothing. *)
Definition unfoldings : prices := Prices 1 (fun _ => 0) (fun _ => 0).
Definition nothing : prices := Prices 0 (fun _ => 0) (fun _ => 0).

Definition add (a b : option nat) : option nat :=
  match a, b with Some x, Some y => Some (x + y) | _, _ => None end.
Definition most (a b : option nat) : option nat :=
  match a, b with Some x, Some y => Some (Nat.max x y) | _, _ => None end.
Definition times (n : nat) (a : option nat) : option nat := option_map (Nat.mul n) a.
Definition free_of_charge (n : nat) : option nat := if Nat.eqb n 0 then Some 0 else None.
Definition only_zero (a : option nat) : option nat :=
  match a with Some n => free_of_charge n | None => None end.

(** [n] rounds, each of which may start the one before. *)
Fixpoint rounds (n : nat) (f : nat -> option nat) : option nat :=
  match n with
  | O => Some 0
  | S n' => match rounds n' f with Some w => f w | None => None end
  end.

Fixpoint is_data (v : tm) : bool :=
  match v with
  | Str _ | Unit => true
  | Pair a b => is_data a && is_data b
  | Tag _ v => is_data v
  | _ => false
  end.

(** The analysis.  A variable is an ordinary one ([None]), or the self
    reference of a fixpoint, a call of which costs [Some w].  A self
    reference, a model or tool that costs anything, and a fixpoint must stand
    where they are called: if one escapes (as an argument, in a closure, in a
    structure), no bound is claimed and the answer is [None]. *)
Section Weigh.
  Variable p : prices.

  Fixpoint weigh (G : list (option nat)) (e : tm) {struct e} : option nat :=
    match e with
    | Var i => match nth_error G i with Some None => Some 0 | _ => None end
    | Str _ | Unit | Recall _ => Some 0
    | Lam _ b => only_zero (weigh (None :: G) b)
    | Tool f => free_of_charge (p_tool p f)
    | Llm m => free_of_charge (p_model p m)
    | App f e2 =>
        add
          (match f with
           | Var i => match nth_error G i with Some None => Some 0 | Some w => w | None => None end
           | Tool f => Some (p_tool p f)
           | Llm m => Some (p_model p m)
           | Lam _ b => weigh (None :: G) b
           | Fix (Some n) (Lam _ (Lam _ b)) =>
               rounds n (fun w => add (Some (p_unfold p)) (weigh (None :: Some w :: G) b))
           | _ => weigh G f
           end)
          (weigh G e2)
    | Pair e1 e2 => add (weigh G e1) (weigh G e2)
    | Fst e | Snd e | Tag _ e | Classify _ e | Remember _ e => weigh G e
    | Case e b => add (weigh G e) (weigh_brs G b)
    | Guard e0 e _ r => add (times r (weigh G e0)) (weigh G e)
    | Fix _ _ => None
    | Choose _ e1 e2 => most (weigh G e1) (weigh G e2)
    | Mem init e => if forallb (fun kv => is_data (snd kv)) init then weigh G e else None
    end
  with weigh_brs (G : list (option nat)) (b : brs) {struct b} : option nat :=
    match b with
    | BNone => Some 0
    | BElse e => weigh G e
    | BCase _ e b' => most (weigh (None :: G) e) (weigh_brs G b')
    end.

  (** What calling [f] costs, the argument aside. *)
  Definition head_weight (G : list (option nat)) (f : tm) : option nat :=
    match f with
    | Var i => match nth_error G i with Some None => Some 0 | Some w => w | None => None end
    | Tool f => Some (p_tool p f)
    | Llm m => Some (p_model p m)
    | Lam _ b => weigh (None :: G) b
    | Fix (Some n) (Lam _ (Lam _ b)) =>
        rounds n (fun w => add (Some (p_unfold p)) (weigh (None :: Some w :: G) b))
    | _ => weigh G f
    end.

  Lemma weigh_app : forall G f e, weigh G (App f e) = add (head_weight G f) (weigh G e).
  Proof. reflexivity. Qed.
End Weigh.

(** ** Size, for induction below the head of an application *)

Fixpoint size (e : tm) : nat :=
  match e with
  | Var _ | Str _ | Unit | Tool _ | Llm _ | Recall _ => 1
  | Lam _ e | Fst e | Snd e | Tag _ e | Fix _ e | Classify _ e | Mem _ e | Remember _ e => S (size e)
  | App a b | Pair a b | Guard a b _ _ | Choose _ a b => S (size a + size b)
  | Case e b => S (size e + size_brs b)
  end
with size_brs (b : brs) : nat :=
  match b with
  | BNone => 1
  | BElse e => S (size e)
  | BCase _ e b => S (size e + size_brs b)
  end.

Lemma size_ind : forall (P : tm -> Prop) (Q : brs -> Prop),
  (forall e, (forall e', size e' < size e -> P e') -> (forall b, size_brs b < size e -> Q b) -> P e) ->
  (forall b, (forall e', size e' < size_brs b -> P e') -> (forall b', size_brs b' < size_brs b -> Q b') -> Q b) ->
  (forall e, P e) /\ (forall b, Q b).
Proof.
  intros P Q HP HQ.
  assert (A : forall n, (forall e, size e < n -> P e) /\ (forall b, size_brs b < n -> Q b)).
  { induction n as [| n [IHP IHQ]]; [split; intros; lia |]. split.
    - intros e L. apply HP; intros; [apply IHP | apply IHQ]; lia.
    - intros b L. apply HQ; intros; [apply IHP | apply IHQ]; lia. }
  split; intros x; [apply (proj1 (A (S (size x)))) | apply (proj2 (A (S (size_brs x))))]; lia.
Qed.

Lemma rounds_ext : forall n f g w, (forall x y, f x = Some y -> g x = Some y) ->
  rounds n f = Some w -> rounds n g = Some w.
Proof.
  induction n as [| n IH]; simpl; intros f g w E R; auto.
  destruct (rounds n f) as [x |] eqn:Rn; [| discriminate].
  rewrite (IH f g x E); auto.
Qed.

Lemma free_zero : forall n w, free_of_charge n = Some w -> n = 0 /\ w = 0.
Proof.
  intros n w. unfold free_of_charge. destruct (Nat.eqb_spec n 0); [| discriminate].
  intros E. inversion E. auto.
Qed.

Ltac somes :=
  repeat (match goal with
          | A : add ?a ?b = Some _ |- _ =>
              let x := fresh "x" in let y := fresh "y" in
              destruct a as [x |] eqn:?; simpl in A; [| discriminate];
              destruct b as [y |] eqn:?; simpl in A; [| discriminate]
          | A : most ?a ?b = Some _ |- _ =>
              let x := fresh "x" in let y := fresh "y" in
              destruct a as [x |] eqn:?; simpl in A; [| discriminate];
              destruct b as [y |] eqn:?; simpl in A; [| discriminate]
          | A : times _ ?a = Some _ |- _ =>
              let x := fresh "x" in
              destruct a as [x |] eqn:?; simpl in A; [| discriminate]
          | A : only_zero ?a = Some _ |- _ =>
              let x := fresh "x" in
              destruct a as [x |] eqn:?; simpl in A; [| discriminate]
          | A : free_of_charge ?n = Some _ |- _ =>
              apply free_zero in A; destruct A as [? ?]
          | A : ?v = 0 |- _ => is_var v; subst v
          | A : Some _ = Some _ |- _ => inversion A; clear A; subst
          end).

(** An instance of an induction hypothesis under binders. *)
Ltac use H :=
  let Q := fresh "Q" in pose proof H as Q; cbn [app length] in Q; rewrite Q by assumption; clear Q; auto.

Section Sound.
  Variable W : world.
  Variable Sg : signature.
  Variable p : prices.

  Notation weigh := (weigh p).
  Notation weigh_brs := (weigh_brs p).
  Notation head := (head_weight p).
  Notation step := (step W Sg).
  Notation steps := (steps W Sg).

  (** More variables change nothing. *)
  Lemma weigh_weaken :
    (forall e G w, weigh G e = Some w -> forall D, weigh (G ++ D) e = Some w) /\
    (forall b G w, weigh_brs G b = Some w -> forall D, weigh_brs (G ++ D) b = Some w).
  Proof.
    apply size_ind.
    - intros e IH IHb G w E D.
      assert (N : forall (G : list (option nat)) i o, nth_error G i = Some o -> nth_error (G ++ D) i = Some o).
      { intros G' i o X. rewrite nth_error_app1; auto. apply nth_error_Some. congruence. }
      destruct e; cbn in E |- *; auto; try (somes; repeat (erewrite IH by (cbn; eauto; lia)); auto; fail).
      + destruct (nth_error G i) as [[x |] |] eqn:X; try discriminate. rewrite (N _ _ _ X). auto.
      + somes. change (None :: G ++ D) with ((None :: G) ++ D). erewrite IH by (cbn; eauto; lia). auto.
      + change (add (head G e1) (weigh G e2) = Some w) in E.
        change (add (head (G ++ D) e1) (weigh (G ++ D) e2) = Some w).
        somes. rewrite (IH e2) with (w := y) by (cbn; auto; lia).
        assert (Hd : head (G ++ D) e1 = Some x).
        { destruct e1; unfold head_weight in *; try (apply IH; [cbn; lia | auto]; fail); auto.
          - destruct (nth_error G i) as [o |] eqn:X; [| discriminate]. rewrite (N _ _ _ X). auto.
          - apply (IH e1) with (G := None :: G); [cbn; lia | auto].
          - destruct n as [n |]; [| discriminate]. destruct e1; try discriminate.
            destruct e1; try discriminate.
            eapply rounds_ext; [| eauto]. intros u v E. simpl in E.
            destruct (weigh (None :: Some u :: G) e1) as [z |] eqn:Z; [| discriminate].
            change (None :: Some u :: G ++ D) with ((None :: Some u :: G) ++ D).
            rewrite (IH e1) with (w := z); [exact E | cbn; lia | exact Z]. }
        rewrite Hd. auto.
      + somes. erewrite IH by (cbn; eauto; lia). erewrite IHb by (cbn; eauto; lia). auto.
      + destruct (forallb (fun kv => is_data (snd kv)) init); [| discriminate].
        eapply IH; eauto.
    - intros b IH IHb G w E D. destruct b; cbn in E |- *; auto.
      + somes. change (None :: G ++ D) with ((None :: G) ++ D).
        erewrite IH by (cbn; eauto; lia). erewrite IHb by (cbn; eauto; lia). auto.
  Qed.

  Lemma weigh_closed : forall e w D, weigh [] e = Some w -> weigh D e = Some w.
  Proof. intros e w D E. apply (proj1 weigh_weaken e [] w E D). Qed.

  (** A term that is free of charge is free of charge as a function. *)
  Lemma head_weigh : forall G f, weigh G f = Some 0 -> head G f = Some 0.
  Proof.
    intros G f E. destruct f; unfold head_weight; auto; cbn in E.
    - destruct (nth_error G i) as [[x |] |]; auto; discriminate.
    - somes. congruence.
    - discriminate.
    - somes. congruence.
    - somes. congruence.
  Qed.

  (** Values cost nothing. *)
  Lemma weigh_val : forall v w, isval v = true -> weigh [] v = Some w -> w = 0.
  Proof.
    induction v; intros w V E; cbn in V, E; try discriminate; try (somes; congruence).
    - apply andb_true_iff in V. destruct V. somes.
      rewrite (IHv1 x), (IHv2 y); auto.
    - auto.
  Qed.

  Lemma weigh_data : forall v, is_data v = true -> weigh [] v = Some 0.
  Proof.
    induction v; intros E; cbn in E |- *; try discriminate; auto.
    apply andb_true_iff in E. destruct E. rewrite IHv1, IHv2; auto.
  Qed.

  Lemma inhabits_data :
    (forall a v, inhabits W a v = true -> is_data v = true) /\
    (forall r t v, inhabits_row W r t v = true -> is_data v = true).
  Proof.
    apply ty_mutind.
    - intros [] E; try discriminate; auto.
    - intros [] E; try discriminate; auto.
    - intros a _ b _ v E. discriminate.
    - intros a IHa b IHb [] E; try discriminate. cbn in E. apply andb_true_iff in E.
      destruct E. cbn. rewrite IHa, IHb; auto.
    - intros r IH [] E; try discriminate. cbn in *. eauto.
    - intros a IH P v E. cbn in E. apply andb_true_iff in E. destruct E. auto.
    - discriminate.
    - intros t a IHa r IHr t' v E. cbn in E. destruct (String.eqb t' t); eauto.
  Qed.

  (** Putting something free of charge for an ordinary variable changes
      nothing. *)
  Lemma weigh_subst :
    (forall e G1 G2 v w, weigh (G1 ++ None :: G2) e = Some w -> weigh [] v = Some 0 ->
       weigh (G1 ++ G2) (subst (length G1) v e) = Some w) /\
    (forall b G1 G2 v w, weigh_brs (G1 ++ None :: G2) b = Some w -> weigh [] v = Some 0 ->
       weigh_brs (G1 ++ G2) (subst_brs (length G1) v b) = Some w).
  Proof.
    assert (N : forall (G1 G2 : list (option nat)) i o, i <> length G1 ->
              nth_error (G1 ++ None :: G2) i = Some o ->
              nth_error (G1 ++ G2) (if i <? length G1 then i else pred i) = Some o).
    { intros G1 G2 i o Ne X. destruct (Nat.ltb_spec i (length G1)).
      - rewrite nth_error_app1 in *; auto.
      - rewrite nth_error_app2 in X by lia. destruct i as [| i]; [lia |].
        replace (S i - length G1) with (S (i - length G1)) in X by lia. simpl in *.
        rewrite nth_error_app2 by lia. auto. }
    assert (M : forall (G1 G2 : list (option nat)), nth_error (G1 ++ None :: G2) (length G1) = Some None).
    { intros. rewrite nth_error_app2, Nat.sub_diag; auto. }
    apply size_ind.
    - intros e IH IHb G1 G2 v w E Ev.
      destruct e; cbn in E |- *; auto;
        try (somes; repeat (erewrite IH by (cbn; eauto; lia)); auto; fail).
      + (* variable *)
        destruct (Nat.compare_spec i (length G1)) as [X | X | X].
        * subst. rewrite M in E. inversion E; subst. apply weigh_closed. auto.
        * destruct (nth_error (G1 ++ None :: G2) i) as [o |] eqn:Y; [| discriminate].
          apply N in Y; [| lia]. destruct (Nat.ltb_spec i (length G1)); [| lia]. cbn. rewrite Y. auto.
        * destruct (nth_error (G1 ++ None :: G2) i) as [o |] eqn:Y; [| discriminate].
          apply N in Y; [| lia]. destruct (Nat.ltb_spec i (length G1)); [lia |]. cbn. rewrite Y. auto.
      + somes.
        use (IH e (ltac:(cbn; lia)) (None :: G1) G2 v 0).
      + (* application *)
        change (add (head (G1 ++ None :: G2) e1) (weigh (G1 ++ None :: G2) e2) = Some w) in E.
        change (add (head (G1 ++ G2) (subst (length G1) v e1))
                    (weigh (G1 ++ G2) (subst (length G1) v e2)) = Some w).
        somes. use (IH e2 (ltac:(cbn; lia)) G1 G2 v y).
        assert (Hd : head (G1 ++ G2) (subst (length G1) v e1) = Some x).
        { destruct e1; unfold head_weight in Heqo; auto;
            try (refine (IH _ _ G1 G2 v x Heqo Ev); cbn; lia).
          - cbn [subst]. destruct (Nat.compare_spec i (length G1)) as [X | X | X].
            + subst. rewrite M in Heqo. inversion Heqo; subst.
              apply head_weigh, weigh_closed. auto.
            + destruct (nth_error (G1 ++ None :: G2) i) as [o |] eqn:Y; [| discriminate].
              apply N in Y; [| lia]. destruct (Nat.ltb_spec i (length G1)); [| lia].
              unfold head_weight. rewrite Y. auto.
            + destruct (nth_error (G1 ++ None :: G2) i) as [o |] eqn:Y; [| discriminate].
              apply N in Y; [| lia]. destruct (Nat.ltb_spec i (length G1)); [lia |].
              unfold head_weight. rewrite Y. auto.
          - cbn [subst]. unfold head_weight.
            apply (IH e1 (ltac:(cbn; lia)) (None :: G1)); auto.
          - destruct n as [n |]; [| discriminate]. destruct e1; try discriminate.
            destruct e1; try discriminate. cbn [subst]. unfold head_weight.
            eapply rounds_ext; [| exact Heqo]. intros u z E. simpl in E.
            destruct (weigh (None :: Some u :: G1 ++ None :: G2) e1) as [q |] eqn:Z; [| discriminate].
            use (IH e1 (ltac:(cbn; lia)) (None :: Some u :: G1) G2 v q). }
        rewrite Hd. auto.
      + change (add (weigh (G1 ++ None :: G2) e) (weigh_brs (G1 ++ None :: G2) b) = Some w) in E.
        change (add (weigh (G1 ++ G2) (subst (length G1) v e))
                    (weigh_brs (G1 ++ G2) (subst_brs (length G1) v b)) = Some w).
        somes. use (IH e (ltac:(cbn; lia)) G1 G2 v x).
        use (IHb b (ltac:(cbn; lia)) G1 G2 v y).
      + destruct (forallb (fun kv => is_data (snd kv)) init); [| discriminate].
        apply IH; auto.
    - intros b IH IHb G1 G2 v w E Ev. destruct b; cbn in E |- *; auto.
      change (most (weigh (None :: G1 ++ None :: G2) e) (weigh_brs (G1 ++ None :: G2) b) = Some w) in E.
      change (most (weigh (None :: G1 ++ G2) (subst (S (length G1)) v e))
                   (weigh_brs (G1 ++ G2) (subst_brs (length G1) v b)) = Some w).
      somes.
      use (IH e (ltac:(cbn; lia)) (None :: G1) G2 v x).
      use (IHb b (ltac:(cbn; lia)) G1 G2 v y).
  Qed.

  (** Putting a fixpoint for the self reference that stands for it. *)
  Lemma weigh_subst_self : forall F,
    (forall e G1 G2 v w u, weigh (G1 ++ Some u :: G2) e = Some w -> head [] (Fix v F) = Some u ->
       weigh (G1 ++ G2) (subst (length G1) (Fix v F) e) = Some w) /\
    (forall b G1 G2 v w u, weigh_brs (G1 ++ Some u :: G2) b = Some w -> head [] (Fix v F) = Some u ->
       weigh_brs (G1 ++ G2) (subst_brs (length G1) (Fix v F) b) = Some w).
  Proof.
    intros F.
    assert (HF : forall D v u, head [] (Fix v F) = Some u -> head D (Fix v F) = Some u).
    { intros D v u E. unfold head_weight in *. destruct v as [n |]; [| discriminate].
      destruct F; try discriminate. destruct F; try discriminate.
      eapply rounds_ext; [| exact E]. intros x z Z. simpl in Z.
      destruct (weigh [None; Some x] F) as [q |] eqn:Q; [| discriminate].
      rewrite (proj1 weigh_weaken F [None; Some x] q Q D : weigh (None :: Some x :: D) F = _). auto. }
    assert (N : forall (G1 G2 : list (option nat)) u i o, i <> length G1 ->
              nth_error (G1 ++ Some u :: G2) i = Some o ->
              nth_error (G1 ++ G2) (if i <? length G1 then i else pred i) = Some o).
    { intros G1 G2 u i o Ne X. destruct (Nat.ltb_spec i (length G1)).
      - rewrite nth_error_app1 in *; auto.
      - rewrite nth_error_app2 in X by lia. destruct i as [| i]; [lia |].
        replace (S i - length G1) with (S (i - length G1)) in X by lia. simpl in *.
        rewrite nth_error_app2 by lia. auto. }
    assert (M : forall (G1 G2 : list (option nat)) u, nth_error (G1 ++ Some u :: G2) (length G1) = Some (Some u)).
    { intros. rewrite nth_error_app2, Nat.sub_diag; auto. }
    apply size_ind.
    - intros e IH IHb G1 G2 v w u E Ev.
      destruct e; cbn in E |- *; auto;
        try (somes; repeat (erewrite IH by (cbn; eauto; lia)); auto; fail).
      + (* variable: the self reference does not stand here *)
        destruct (Nat.compare_spec i (length G1)) as [X | X | X].
        * subst. rewrite M in E. discriminate.
        * destruct (nth_error (G1 ++ Some u :: G2) i) as [o |] eqn:Y; [| discriminate].
          apply N in Y; [| lia]. destruct (Nat.ltb_spec i (length G1)); [| lia]. cbn. rewrite Y. auto.
        * destruct (nth_error (G1 ++ Some u :: G2) i) as [o |] eqn:Y; [| discriminate].
          apply N in Y; [| lia]. destruct (Nat.ltb_spec i (length G1)); [lia |]. cbn. rewrite Y. auto.
      + somes.
        use (IH e (ltac:(cbn; lia)) (None :: G1) G2 v 0 u).
      + (* application *)
        change (add (head (G1 ++ Some u :: G2) e1) (weigh (G1 ++ Some u :: G2) e2) = Some w) in E.
        change (add (head (G1 ++ G2) (subst (length G1) (Fix v F) e1))
                    (weigh (G1 ++ G2) (subst (length G1) (Fix v F) e2)) = Some w).
        somes. use (IH e2 (ltac:(cbn; lia)) G1 G2 v y u).
        assert (Hd : head (G1 ++ G2) (subst (length G1) (Fix v F) e1) = Some x).
        { destruct e1; unfold head_weight in Heqo; auto;
            try (refine (IH _ _ G1 G2 v x u Heqo Ev); cbn; lia).
          - cbn [subst]. destruct (Nat.compare_spec i (length G1)) as [X | X | X].
            + subst. rewrite M in Heqo. inversion Heqo; subst. apply HF. auto.
            + destruct (nth_error (G1 ++ Some u :: G2) i) as [o |] eqn:Y; [| discriminate].
              apply N in Y; [| lia]. destruct (Nat.ltb_spec i (length G1)); [| lia].
              unfold head_weight. rewrite Y. auto.
            + destruct (nth_error (G1 ++ Some u :: G2) i) as [o |] eqn:Y; [| discriminate].
              apply N in Y; [| lia]. destruct (Nat.ltb_spec i (length G1)); [lia |].
              unfold head_weight. rewrite Y. auto.
          - cbn [subst]. unfold head_weight.
            apply (IH e1 (ltac:(cbn; lia)) (None :: G1)) with (u := u); auto.
          - destruct n as [n |]; [| discriminate]. destruct e1; try discriminate.
            destruct e1; try discriminate. cbn [subst]. unfold head_weight.
            eapply rounds_ext; [| exact Heqo]. intros x' z E. simpl in E.
            destruct (weigh (None :: Some x' :: G1 ++ Some u :: G2) e1) as [q |] eqn:Z; [| discriminate].
            use (IH e1 (ltac:(cbn; lia)) (None :: Some x' :: G1) G2 v q u). }
        rewrite Hd. auto.
      + change (add (weigh (G1 ++ Some u :: G2) e) (weigh_brs (G1 ++ Some u :: G2) b) = Some w) in E.
        change (add (weigh (G1 ++ G2) (subst (length G1) (Fix v F) e))
                    (weigh_brs (G1 ++ G2) (subst_brs (length G1) (Fix v F) b)) = Some w).
        somes. use (IH e (ltac:(cbn; lia)) G1 G2 v x u).
        use (IHb b (ltac:(cbn; lia)) G1 G2 v y u).
      + destruct (forallb (fun kv => is_data (snd kv)) init); [| discriminate].
        apply IH with (u := u); auto.
    - intros b IH IHb G1 G2 v w u E Ev. destruct b; cbn in E |- *; auto.
      + apply IH with (u := u); auto.
      + change (most (weigh (None :: G1 ++ Some u :: G2) e) (weigh_brs (G1 ++ Some u :: G2) b) = Some w) in E.
        change (most (weigh (None :: G1 ++ G2) (subst (S (length G1)) (Fix v F) e))
                     (weigh_brs (G1 ++ G2) (subst_brs (length G1) (Fix v F) b)) = Some w).
        somes.
        use (IH e (ltac:(cbn; lia)) (None :: G1) G2 v x u).
        use (IHb b (ltac:(cbn; lia)) G1 G2 v y u).
  Qed.

  (** ** One step *)

  Definition store_free (s : state) : Prop :=
    forall k v, store s k = Some v -> weigh [] v = Some 0.

  (** The analysis, as it stands at some point of a run: what has been paid
      and what is still to come never exceeds [budget]. *)
  Definition within_budget (budget : nat) (e : tm) (s : state) : Prop :=
    exists w, weigh [] e = Some w /\ store_free s /\ total p (log s) + w <= budget.

  Lemma puts_free : forall init s, forallb (fun kv => is_data (snd kv)) init = true ->
    store_free s -> store_free (puts init s).
  Proof.
    induction init as [| [k v] init IH]; simpl; intros s D Fr; auto.
    apply andb_true_iff in D. destruct D as [D Ds].
    intros k' v'. simpl. destruct (String.eqb k k').
    - intros X. inversion X; subst. apply weigh_data. auto.
    - apply IH; auto.
  Qed.

  Lemma total_record : forall a s, total p (log (record a s)) = price p a + total p (log s).
  Proof. reflexivity. Qed.

  Lemma puts_log : forall init s, log (puts init s) = log s.
  Proof. induction init as [| kv init IH]; simpl; auto. Qed.

  Lemma pick_weigh : forall b G w, weigh_brs G b = Some w -> G = [] ->
    forall t v e, weigh [] v = Some 0 -> pick t v b = Some e ->
    exists w', weigh [] e = Some w' /\ w' <= w.
  Proof.
    induction b as [| e | t e b IH]; intros G w E -> t' v e' V Pk.
    - discriminate.
    - inversion Pk; subst. exists w. split; auto.
    - change (most (weigh [None] e) (weigh_brs [] b) = Some w) in E. somes.
      simpl in Pk. destruct (String.eqb t' t).
      + inversion Pk; subst. exists x. split; [| lia].
        apply (proj1 weigh_subst e [] []); auto.
      + match goal with Hb : weigh_brs [] b = Some ?y |- _ =>
          destruct (IH [] y Hb eq_refl t' v e' V Pk) as (w' & A & B) end.
        exists w'. split; auto. lia.
  Qed.

  Lemma unfold_weigh : forall n F v u, head [] (Fix (Some n) F) = Some u -> weigh [] v = Some 0 ->
    forall w, head [] (Fix (Some (S n)) F) = Some w ->
    weigh [] (unfold_fix (Some n) F v) = Some (w - p_unfold p) /\ p_unfold p <= w.
  Proof.
    intros n F v u Hu V w Hw. unfold head_weight in Hu, Hw.
    destruct F; try discriminate. destruct F; try discriminate. cbn [rounds] in Hw.
    rewrite Hu in Hw. simpl in Hw.
    destruct (weigh [None; Some u] F) as [x |] eqn:X; [| discriminate]. inversion Hw; subst.
    unfold unfold_fix. split; [| lia].
    replace (p_unfold p + x - p_unfold p) with x by lia.
    apply (proj1 weigh_subst _ [] []); auto.
    apply (proj1 (weigh_subst_self (Lam a (Lam a0 F))) F [None] [] (Some n) x u); auto.
  Qed.

  Lemma head_below : forall e w, isval e = false -> head [] e = Some w -> weigh [] e = Some w.
  Proof.
    intros e w V E. destruct e; unfold head_weight in E; auto; try discriminate.
    - destruct i; discriminate.
    - destruct n as [n |]; [| discriminate]. destruct e; try discriminate.
  Qed.

  (** After a step the function costs no more than before. *)
  Lemma head_after : forall e w, weigh [] e = Some w -> exists w', head [] e = Some w' /\ w' <= w.
  Proof.
    intros e w E. destruct e; unfold head_weight; try (exists w; split; auto; fail); cbn in E.
    - destruct i; discriminate.
    - somes. exists 0. auto.
    - discriminate.
    - somes. exists 0. split; [congruence | lia].
    - somes. exists 0. split; [congruence | lia].
  Qed.

  Theorem step_within_budget : forall e s e' s' B,
    within_budget B e s -> step e s = Next e' s' -> within_budget B e' s'.
  Proof.
    unfold within_budget.
    assert (K : forall e s e' s' w, weigh [] e = Some w -> store_free s -> step e s = Next e' s' ->
      exists w', weigh [] e' = Some w' /\ store_free s' /\
        total p (log s') + w' <= total p (log s) + w).
    { induction e; intros s0 e' s' w E Fr St; try (cbn in St; discriminate).
      - (* App *)
        rewrite weigh_app in E. somes. cbn in St.
        destruct (step e1 s0) as [| e1' s1 | |] eqn:E1; cbn in St; try discriminate.
        2: { inversion St; subst.
             assert (V : isval e1 = false).
             { destruct (isval e1) eqn:V; auto. apply (step_val W Sg e1 s0) in V. congruence. }
             apply head_below in Heqo; auto.
             destruct (IHe1 _ _ _ _ Heqo Fr E1) as (w' & A & Fr' & C).
             destruct (head_after _ _ A) as (w'' & D & Le).
             exists (w'' + y). rewrite weigh_app, D, Heqo0. split; [reflexivity | split; [auto | lia]]. }
        destruct (step e2 s0) as [| e2' s2 | |] eqn:E2; cbn in St; try discriminate.
        2: { inversion St; subst.
             destruct (IHe2 _ _ _ _ eq_refl Fr E2) as (w' & A & Fr' & C).
             exists (x + w'). rewrite weigh_app, Heqo, A. split; [reflexivity | split; [auto | lia]]. }
        apply step_val in E1. apply step_val in E2.
        assert (y = 0) by (eapply weigh_val; eauto). subst.
        rename Heqo into Hd. rename Heqo0 into W2.
        destruct e1; cbn in St; try discriminate.
        + (* a function *) inversion St; subst. exists x.
          split; [apply (proj1 weigh_subst e1 [] []); auto |]. split; auto. lia.
        + (* a fixpoint *)
          destruct n as [[| n] |]; inversion St; subst.
          * exists 0. split; auto. split; auto. lia.
          * assert (Hu : exists u, head [] (Fix (Some n) e1) = Some u).
            { unfold head_weight in Hd |- *. destruct e1; try discriminate.
              destruct e1; try discriminate. cbn [rounds] in Hd.
              destruct (rounds n (fun w => add (Some (p_unfold p)) (weigh [None; Some w] e1))); eauto. }
            destruct Hu as (u & Hu).
            destruct (unfold_weigh _ _ _ _ Hu W2 _ Hd) as [A Le].
            exists (x - p_unfold p). split; auto. split; [exact Fr |]. rewrite total_record. cbn [price]. lia.
          * discriminate.
        + (* a tool *)
          destruct (w_tool W f e2 (log s0)) as [r |]; [| discriminate].
          destruct (inhabits W (tool_res Sg f) r) eqn:I; inversion St; subst.
          exists 0. split; [apply weigh_data; eapply (proj1 inhabits_data); eauto |].
          split; [exact Fr |]. rewrite total_record. cbn [price]. cbn in Hd. inversion Hd; subst. lia.
        + (* a model *)
          destruct e2; try discriminate. destruct (w_llm W p0 s (log s0)) as [r |]; inversion St; subst.
          exists 0. split; auto. split; [exact Fr |]. rewrite total_record. cbn [price]. cbn in Hd. inversion Hd; subst. lia.
      - (* Pair *) change (add (weigh [] e1) (weigh [] e2) = Some w) in E. somes. cbn in St.
        destruct (step e1 s0) as [| e1' s1 | |] eqn:E1; cbn in St; try discriminate.
        + destruct (step e2 s0) as [| e2' s2 | |] eqn:E2; cbn in St; try discriminate.
          inversion St; subst. destruct (IHe2 _ _ _ _ eq_refl Fr E2) as (w' & A & Fr' & C).
          exists (x + w'). split; [change (add (weigh [] e1) (weigh [] e2') = Some (x + w')); rewrite Heqo, A; auto | split; [auto | lia]].
        + inversion St; subst. destruct (IHe1 _ _ _ _ eq_refl Fr E1) as (w' & A & Fr' & C).
          exists (w' + y). split; [change (add (weigh [] e1') (weigh [] e2) = Some (w' + y)); rewrite A, Heqo0; auto | split; [auto | lia]].
      - (* Fst *) change (weigh [] e = Some w) in E. cbn in St.
        destruct (step e s0) as [| e1' s1 | |] eqn:E1; cbn in St; try discriminate.
        + destruct e; try discriminate. inversion St; subst.
          change (add (weigh [] e') (weigh [] e2) = Some w) in E. somes.
          exists x. split; auto. split; auto. lia.
        + inversion St; subst. destruct (IHe _ _ _ _ E Fr E1) as (w' & A & Fr' & C). eauto.
      - (* Snd *) change (weigh [] e = Some w) in E. cbn in St.
        destruct (step e s0) as [| e1' s1 | |] eqn:E1; cbn in St; try discriminate.
        + destruct e; try discriminate. inversion St; subst.
          change (add (weigh [] e1) (weigh [] e') = Some w) in E. somes.
          exists y. split; auto. split; auto. lia.
        + inversion St; subst. destruct (IHe _ _ _ _ E Fr E1) as (w' & A & Fr' & C). eauto.
      - (* Tag *) change (weigh [] e = Some w) in E. cbn in St.
        destruct (step e s0) as [| e1' s1 | |] eqn:E1; cbn in St; try discriminate.
        inversion St; subst. destruct (IHe _ _ _ _ E Fr E1) as (w' & A & Fr' & C). eauto.
      - (* Case *) change (add (weigh [] e) (weigh_brs [] b) = Some w) in E. somes. cbn in St.
        destruct (step e s0) as [| e1' s1 | |] eqn:E1; cbn in St; try discriminate.
        + apply step_val in E1. assert (x = 0) by (eapply weigh_val; eauto). subst.
          destruct e; try discriminate. destruct (pick t e b) as [e0 |] eqn:Pk; inversion St; subst.
          destruct (pick_weigh _ _ _ Heqo0 eq_refl _ _ _ (Heqo : weigh [] e = Some 0) Pk) as (w' & A & Le).
          exists w'. split; auto. split; auto. lia.
        + inversion St; subst. destruct (IHe _ _ _ _ eq_refl Fr E1) as (w' & A & Fr' & C).
          exists (w' + y). split; [change (add (weigh [] e1') (weigh_brs [] b) = Some (w' + y)); rewrite A, Heqo0; auto | split; [auto | lia]].
      - (* Guard *) change (add (times r (weigh [] e1)) (weigh [] e2) = Some w) in E. somes. cbn in St.
        destruct (step e2 s0) as [| e2' s2 | |] eqn:E2; cbn in St; try discriminate.
        + apply step_val in E2. assert (y = 0) by (eapply weigh_val; eauto). subst.
          destruct (w_pred W P e2); [inversion St; subst; exists 0; split; [auto | split; [auto | lia]] |].
          destruct r as [| r]; inversion St; subst.
          exists (r * x0 + x0). split; [| split; [auto | lia]].
          change (add (times r (weigh [] e1)) (weigh [] e1) = Some (r * x0 + x0)).
          match goal with X : weigh [] e1 = Some x0 |- _ => rewrite X end. auto.
        + inversion St; subst. destruct (IHe2 _ _ _ _ eq_refl Fr E2) as (w' & A & Fr' & C).
          exists (r * x0 + w'). split; [| split; [auto | lia]].
          change (add (times r (weigh [] e1)) (weigh [] e2') = Some (r * x0 + w')).
          match goal with X : weigh [] e1 = Some x0 |- _ => rewrite X end. rewrite A. auto.
      - (* Classify *) change (weigh [] e = Some w) in E. cbn in St.
        destruct (step e s0) as [| e1' s1 | |] eqn:E1; cbn in St; try discriminate.
        + destruct e; try discriminate. destruct (w_classify W ts s) as [t |]; [| discriminate].
          destruct (existsb (String.eqb t) ts); inversion St; subst.
          exists 0. split; auto. split; auto. lia.
        + inversion St; subst. destruct (IHe _ _ _ _ E Fr E1) as (w' & A & Fr' & C). eauto.
      - (* Choose *) change (most (weigh [] e1) (weigh [] e2) = Some w) in E. somes. cbn in St.
        inversion St; subst. destruct (w_sample W p0 (log s0)); [exists x | exists y];
          (split; [auto | split; [exact Fr | rewrite total_record; cbn [price]; lia]]).
      - (* Mem *) cbn in E, St. inversion St; subst.
        destruct (forallb (fun kv => is_data (snd kv)) init) eqn:D; [| discriminate].
        exists w. split; auto. split; [apply puts_free; auto |]. rewrite puts_log. lia.
      - (* Recall *) cbn in E, St. inversion E; inversion St; subst.
        exists 0. split; [| split; [auto | lia]].
        destruct (store s' k) as [v |] eqn:Sk; auto.
        destruct (w_kept W k (log s')); auto. apply (Fr k v Sk).
      - (* Remember *) change (weigh [] e = Some w) in E. cbn in St.
        destruct (step e s0) as [| e1' s1 | |] eqn:E1; cbn in St; try discriminate.
        + apply step_val in E1. assert (w = 0) by (eapply weigh_val; eauto). subst.
          inversion St; subst. exists 0. split; auto. split; [| apply Nat.le_refl].
          intros k' v'. cbn. destruct (String.eqb k k'); [| apply Fr].
          intros X. inversion X; subst. auto.
        + inversion St; subst. destruct (IHe _ _ _ _ E Fr E1) as (w' & A & Fr' & C). eauto. }
    intros e s e' s' B (w & E & Fr & Le) St.
    destruct (K _ _ _ _ _ E Fr St) as (w' & A & Fr' & C). exists w'. split; auto. split; auto. lia.
  Qed.

  (** ** Every point of a run *)

  Theorem weigh_sound : forall e s e' s' w,
    weigh [] e = Some w -> store_free s -> steps e s e' s' ->
    total p (log s') <= total p (log s) + w.
  Proof.
    intros e s e' s' w E Fr St.
    assert (B : within_budget (total p (log s) + w) e s) by (exists w; auto).
    remember (total p (log s) + w) as budget. clear w E Fr Heqbudget.
    induction St as [e s | e s e1 s1 e2 s2 E1 St IH].
    - destruct B as (w & _ & _ & Le). lia.
    - apply IH. eapply step_within_budget; eauto.
  Qed.
End Sound.
