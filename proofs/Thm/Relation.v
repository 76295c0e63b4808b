(** * Equivalence up to an observer

    The observer sees labels that flow to [z].  Two labeled values are
    related when both are above the observer, or their labels are equal and
    visible and their contents are related; related closures have the same
    code, which contains only reclassifications that [pol] allows. *)

Require Import List String QArith Bool.
Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp.
Require Import Entail.Thm.Confinement.
Import ListNotations.

(** Allowing more axes permits more programs. *)
Lemma permits_mono : forall pol pol',
  (forall ax, pol ax = true -> pol' ax = true) ->
  forall e, permits pol e = true -> permits pol' e = true.
Proof.
  intros pol pol' M. fix IH 1.
  assert (IHs : forall es, forallb (permits pol) es = true ->
                           forallb (permits pol') es = true) by
    (induction es as [| e es IHes]; simpl; [auto |]; rewrite !andb_true_iff;
     intros [? ?]; auto).
  destruct e; simpl; rewrite ?andb_true_iff; auto; try (intuition auto; fail).
  intros (A & B & C). split; auto. split.
  - revert B. clear A C. induction bs as [| [k b] bs IHbs]; simpl; [auto |].
    rewrite !andb_true_iff. intros [? ?]. auto.
  - destruct d; auto.
Qed.

Lemma data_permits_mono : forall pol pol',
  (forall ax, pol ax = true -> pol' ax = true) ->
  forall d, data_permits pol d = true -> data_permits pol' d = true.
Proof.
  intros pol pol' M. fix IH 1.
  assert (IHs : forall ds, forallb (data_permits pol) ds = true ->
                           forallb (data_permits pol') ds = true) by
    (induction ds as [| d ds IHds]; simpl; [auto |]; rewrite !andb_true_iff;
     intros [? ?]; auto).
  destruct d; simpl; rewrite ?andb_true_iff; auto.
  intros [? ?]. split; auto. eapply permits_mono; eauto.
Qed.

(** Tools of which only runs are compared that make the same choices, in sight of the
    observer.  For most theorems there are none. *)
Definition no_tool (f : name) : bool := false.

Section Relation.
  Context {L : lattice} {agreed : name -> bool}.
  Variable pol : axis -> bool.
  Variable z : L.

  Notation low l := (flows l z = true).
  Notation high l := (flows l z = false).

  (** ** Values *)

  Inductive lrel : lval L -> lval L -> Prop :=
  | lrel_high : forall l1 v1 l2 v2, high l1 -> high l2 -> lrel (Lab l1 v1) (Lab l2 v2)
  | lrel_low : forall l v1 v2, low l -> vrel v1 v2 -> lrel (Lab l v1) (Lab l v2)
  with vrel : val L -> val L -> Prop :=
  | vrel_k : forall k, vrel (VK k) (VK k)
  | vrel_con : forall c vs1 vs2, lsrel vs1 vs2 -> vrel (VCon c vs1) (VCon c vs2)
  | vrel_clo : forall e env1 env2, permits pol e = true -> lsrel env1 env2 ->
      vrel (VClo env1 e) (VClo env2 e)
  with lsrel : list (lval L) -> list (lval L) -> Prop :=
  | lsrel_nil : lsrel [] []
  | lsrel_cons : forall V1 V2 vs1 vs2, lrel V1 V2 -> lsrel vs1 vs2 ->
      lsrel (V1 :: vs1) (V2 :: vs2).

  Scheme lrel_mind := Induction for lrel Sort Prop
    with vrel_mind := Induction for vrel Sort Prop
    with lsrel_mind := Induction for lsrel Sort Prop.
  Combined Scheme rel_mutind from lrel_mind, vrel_mind, lsrel_mind.

  Hint Constructors lrel vrel lsrel : core.

  Lemma rel_sym_all :
    (forall V1 V2, lrel V1 V2 -> lrel V2 V1) /\
    (forall v1 v2, vrel v1 v2 -> vrel v2 v1) /\
    (forall vs1 vs2, lsrel vs1 vs2 -> lsrel vs2 vs1).
  Proof.
    apply (rel_mutind
      (fun V1 V2 _ => lrel V2 V1) (fun v1 v2 _ => vrel v2 v1)
      (fun vs1 vs2 _ => lsrel vs2 vs1)); auto.
  Qed.

  Definition lrel_sym := proj1 rel_sym_all.
  Definition lsrel_sym := proj2 (proj2 rel_sym_all).

  (** Two labels that an observer cannot tell apart. *)
  Definition same_label (l1 l2 : L) : Prop := (l1 = l2 /\ low l1) \/ (high l1 /\ high l2).

  Lemma same_label_join : forall a1 a2 b1 b2,
    same_label a1 a2 -> same_label b1 b2 -> same_label (join a1 b1) (join a2 b2).
  Proof.
    intros a1 a2 b1 b2 [[-> A] | [A A']] [[-> B] | [B B']];
      try (right; split; first [apply join_false_l; assumption | apply join_false_r; assumption]).
    left. split; auto. apply join_true. auto.
  Qed.

  Lemma same_label_low : forall l, low l -> same_label l l.
  Proof. left. auto. Qed.

  Lemma lrel_label : forall V1 V2, lrel V1 V2 -> same_label (label_of V1) (label_of V2).
  Proof. intros V1 V2 []; simpl; [right | left]; auto. Qed.

  (** A value all of whose labels the observer sees is the same value. *)
  Lemma deep_rel :
    (forall V1 V2, lrel V1 V2 -> low (deep_label V1) ->
       deep_label V1 = deep_label V2 /\ strip V1 = strip V2) /\
    (forall v1 v2, vrel v1 v2 -> forall l, low (deep_label (Lab l v1)) ->
       deep_label (Lab l v1) = deep_label (Lab l v2) /\ strip (Lab l v1) = strip (Lab l v2)) /\
    (forall vs1 vs2, lsrel vs1 vs2 -> low (joins (map deep_label vs1)) ->
       joins (map deep_label vs1) = joins (map deep_label vs2) /\
       map strip vs1 = map strip vs2).
  Proof.
    apply (rel_mutind
      (fun V1 V2 _ => low (deep_label V1) ->
         deep_label V1 = deep_label V2 /\ strip V1 = strip V2)
      (fun v1 v2 _ => forall l, low (deep_label (Lab l v1)) ->
         deep_label (Lab l v1) = deep_label (Lab l v2) /\ strip (Lab l v1) = strip (Lab l v2))
      (fun vs1 vs2 _ => low (joins (map deep_label vs1)) ->
         joins (map deep_label vs1) = joins (map deep_label vs2) /\
         map strip vs1 = map strip vs2)).
    - intros l1 v1 l2 v2 A _ B. exfalso. simpl in B. apply join_true in B.
      destruct B. congruence.
    - intros l v1 v2 A _ IH B. apply IH. auto.
    - auto.
    - intros c vs1 vs2 _ IH l A. simpl in *. apply join_true in A. destruct A as [A B].
      destruct (IH B) as [E E']. rewrite E, E'. auto.
    - intros e env1 env2 _ _ IH l A. simpl in *. apply join_true in A. destruct A as [A B].
      destruct (IH B) as [E E']. rewrite E, E'. auto.
    - auto.
    - intros V1 V2 vs1 vs2 _ IH _ IHs A. simpl in *. apply join_true in A.
      destruct A as [A B]. destruct (IH A) as [E E'], (IHs B) as [Es Es'].
      rewrite E, E', Es, Es'. auto.
  Qed.

  Lemma lrel_deep : forall V1 V2, lrel V1 V2 ->
    (deep_label V1 = deep_label V2 /\ strip V1 = strip V2 /\ low (deep_label V1)) \/
    (high (deep_label V1) /\ high (deep_label V2)).
  Proof.
    intros V1 V2 R.
    destruct (flows (deep_label V1) z) eqn:A.
    - left. destruct (proj1 deep_rel _ _ R A). auto.
    - right. split; auto. destruct (flows (deep_label V2) z) eqn:B; auto.
      destruct (proj1 deep_rel _ _ (lrel_sym _ _ R) B). congruence.
  Qed.

  Lemma lsrel_deep : forall vs1 vs2, lsrel vs1 vs2 ->
    (joins (map deep_label vs1) = joins (map deep_label vs2) /\
     map strip vs1 = map strip vs2 /\ low (joins (map deep_label vs1))) \/
    (high (joins (map deep_label vs1)) /\ high (joins (map deep_label vs2))).
  Proof.
    intros vs1 vs2 R.
    destruct (flows (joins (map deep_label vs1)) z) eqn:A.
    - left. destruct (proj2 (proj2 deep_rel) _ _ R A). auto.
    - right. split; auto. destruct (flows (joins (map deep_label vs2)) z) eqn:B; auto.
      destruct (proj2 (proj2 deep_rel) _ _ (lsrel_sym _ _ R) B). congruence.
  Qed.

  Lemma lrel_deep_label : forall V1 V2, lrel V1 V2 ->
    same_label (deep_label V1) (deep_label V2).
  Proof. intros V1 V2 R. destruct (lrel_deep _ _ R) as [(A & _ & B) | A]; [left | right]; auto. Qed.

  (** Related values all of whose labels are visible are equal. *)
  Lemma deep_equal : 
    (forall V1 V2, lrel V1 V2 -> low (deep_label V1) -> V1 = V2) /\
    (forall v1 v2, vrel v1 v2 -> forall l, low (deep_label (Lab l v1)) -> v1 = v2) /\
    (forall vs1 vs2, lsrel vs1 vs2 -> low (joins (map deep_label vs1)) -> vs1 = vs2).
  Proof.
    apply (rel_mutind
      (fun V1 V2 _ => low (deep_label V1) -> V1 = V2)
      (fun v1 v2 _ => forall l, low (deep_label (Lab l v1)) -> v1 = v2)
      (fun vs1 vs2 _ => low (joins (map deep_label vs1)) -> vs1 = vs2)).
    - intros l1 v1 l2 v2 A _ B. exfalso. simpl in B. apply join_true in B.
      destruct B. congruence.
    - intros l v1 v2 A _ IH B. rewrite (IH l); auto.
    - auto.
    - intros c vs1 vs2 _ IH l A. simpl in A. apply join_true in A. destruct A as [_ A].
      rewrite IH; auto.
    - intros e env1 env2 _ _ IH l A. simpl in A. apply join_true in A. destruct A as [_ A].
      rewrite IH; auto.
    - auto.
    - intros V1 V2 vs1 vs2 _ IH _ IHs A. simpl in A. apply join_true in A. destruct A as [A B].
      rewrite IH, IHs; auto.
  Qed.

  Lemma lrel_visible : forall V1 V2, lrel V1 V2 ->
    (V1 = V2 /\ low (deep_label V1)) \/ (high (deep_label V1) /\ high (deep_label V2)).
  Proof.
    intros V1 V2 R. destruct (lrel_deep _ _ R) as [(_ & _ & A) | A]; auto.
    left. split; auto. exact (proj1 deep_equal _ _ R A).
  Qed.

  Lemma raise_rel : forall l1 l2 V1 V2,
    same_label l1 l2 -> lrel V1 V2 -> lrel (raise l1 V1) (raise l2 V2).
  Proof.
    intros l1 l2 V1 V2 S R. destruct R as [m1 v1 m2 v2 A B | m v1 v2 A R]; simpl.
    - constructor; apply join_false_r; auto.
    - destruct S as [[-> B] | [B C]].
      + apply lrel_low; auto. apply join_true; auto.
      + constructor; apply join_false_l; auto.
  Qed.

  Lemma lab_rel : forall l1 l2 v1 v2,
    same_label l1 l2 -> (low l1 -> vrel v1 v2) -> lrel (Lab l1 v1) (Lab l2 v2).
  Proof. intros l1 l2 v1 v2 [[-> A] | [A B]] V; auto. Qed.

  (** ** Lists of values *)

  Lemma lsrel_nth : forall vs1 vs2 i, lsrel vs1 vs2 ->
    (exists V1 V2, nth_error vs1 i = Some V1 /\ nth_error vs2 i = Some V2 /\ lrel V1 V2) \/
    (nth_error vs1 i = None /\ nth_error vs2 i = None).
  Proof.
    intros vs1 vs2 i R. revert i. induction R; intros [| i]; simpl; eauto 10.
  Qed.

  (** Lists of values that the observer does not see. *)
  Lemma lsrel_high : forall vs1 vs2, List.length vs1 = List.length vs2 ->
    Forall (fun V => high (label_of V)) vs1 -> Forall (fun V => high (label_of V)) vs2 -> lsrel vs1 vs2.
  Proof.
    induction vs1 as [| [l1 v1] vs1 IH]; intros [| [l2 v2] vs2] N A B; simpl in N; try discriminate; auto.
    inversion A; inversion B; subst. simpl in *. auto.
  Qed.

  Lemma argument_rel : forall m l fs vs1 vs2 p, low m -> low l -> lsrel vs1 vs2 ->
    lrel (argument m l fs vs1 p) (argument m l fs vs2 p).
  Proof.
    intros m l fs vs1 vs2 p B A R. unfold argument. destruct (position p fs) as [i |]; auto.
    destruct (lsrel_nth _ _ i R) as [(V1 & V2 & -> & -> & RV) | [-> ->]]; auto.
    apply raise_rel; auto using same_label_low.
  Qed.

  Lemma argument_high : forall l fs vs p, high l -> high (label_of (argument l l fs vs p)).
  Proof.
    intros l fs vs p A. unfold argument. destruct (position p fs) as [i |]; auto.
    destruct (nth_error vs i) as [[l' v] |]; auto. simpl. apply join_false_l. auto.
  Qed.

  Lemma arguments_high : forall ps l v, high l ->
    Forall (fun V => high (label_of V)) (arguments l ps (Lab l v)) /\ List.length (arguments l ps (Lab l v)) = List.length ps.
  Proof.
    intros ps l v A. unfold arguments.
    assert (M : forall f : string -> lval L, (forall p, high (label_of (f p))) ->
      Forall (fun V => high (label_of V)) (map f ps) /\ List.length (map f ps) = List.length ps).
    { intros f Hf. rewrite map_length. split; auto. clear -Hf. induction ps; simpl; constructor; auto. }
    assert (O : forall v, Forall (fun V => high (label_of V))
        (match ps with [_] => [Lab l v] | _ => map (fun _ => Lab l (VK KNull)) ps end) /\
      List.length (match ps with [_] => [Lab l v] | _ => map (fun _ => Lab l (VK KNull)) ps end) = List.length ps).
    { intros v'. destruct ps as [| p [| q ps]]; [apply M; auto | | apply M; auto]. split; auto. }
    destruct v as [k | c vs | env e]; [apply O | | apply O].
    destruct c; [apply O | apply O | | apply M; intros; apply argument_high; auto | apply O ..].
    destruct ps as [| p [| q ps]]; [| | apply M; intros; apply argument_high; auto].
    - apply M. intros. apply argument_high; auto.
    - destruct (position p fields); split; auto. constructor; auto using argument_high.
  Qed.

  (** Related values give related arguments, read at their label... *)
  Lemma arguments_rel_low : forall m ps l v1 v2, low m -> low l -> vrel v1 v2 ->
    lsrel (arguments m ps (Lab l v1)) (arguments m ps (Lab l v2)).
  Proof.
    intros m ps l v1 v2 B A R. unfold arguments.
    assert (M : forall f g : string -> lval L, (forall p, lrel (f p) (g p)) -> lsrel (map f ps) (map g ps)).
    { intros f g E. clear -E. induction ps; simpl; auto. }
    destruct R as [k | c vs1 vs2 R | e env1 env2 P R].
    + destruct ps as [| p [| q ps]]; auto.
    + destruct c; try (destruct ps as [| p [| q ps]]; auto; fail);
        [| apply M; intros; apply argument_rel; auto].
      destruct ps as [| p [| q ps]]; try (apply M; intros; apply argument_rel; auto; fail).
      destruct (position p fields); auto using argument_rel.
    + destruct ps as [| p [| q ps]]; auto.
  Qed.

  Lemma arguments_rel : forall ps V1 V2, lrel V1 V2 ->
    lsrel (arguments (label_of V1) ps V1) (arguments (label_of V2) ps V2).
  Proof.
    intros ps V1 V2 R. destruct R as [l1 v1 l2 v2 A B | l v1 v2 A R].
    - destruct (arguments_high ps l1 v1 A), (arguments_high ps l2 v2 B). apply lsrel_high; simpl in *; congruence.
    - apply arguments_rel_low; auto.
  Qed.

  Lemma lsrel_app : forall vs1 vs2 ws1 ws2,
    lsrel vs1 vs2 -> lsrel ws1 ws2 -> lsrel (vs1 ++ ws1) (vs2 ++ ws2).
  Proof. intros vs1 vs2 ws1 ws2 R. induction R; simpl; auto. Qed.

  Lemma lsrel_rev : forall vs1 vs2, lsrel vs1 vs2 -> lsrel (rev vs1) (rev vs2).
  Proof. intros vs1 vs2 R. induction R; simpl; auto using lsrel_app. Qed.

  Lemma lsrel_capture : forall e env1 env2, lsrel env1 env2 ->
    lsrel (capture env1 e) (capture env2 e).
  Proof.
    intros e env1 env2 R. unfold capture. generalize 1%nat.
    induction R; intros n; simpl; auto. constructor; auto.
    destruct (free n e); auto using bot_flows.
  Qed.

  Lemma set_nth_rel : forall i V1 V2 vs1 vs2, lrel V1 V2 -> lsrel vs1 vs2 ->
    (exists ws1 ws2, set_nth i V1 vs1 = Some ws1 /\ set_nth i V2 vs2 = Some ws2 /\ lsrel ws1 ws2) \/
    (set_nth i V1 vs1 = None /\ set_nth i V2 vs2 = None).
  Proof.
    intros i V1 V2 vs1 vs2 R Rs. revert i. induction Rs; intros [| i]; simpl; auto.
    - left. eauto 10.
    - destruct (IHRs i) as [(ws1 & ws2 & A & B & C) | [A B]]; rewrite A, B; simpl; eauto 10.
  Qed.

  Lemma update_rel : forall c k V1 V2 vs1 vs2, lrel V1 V2 -> lsrel vs1 vs2 ->
    (exists c' ws1 ws2, update c k V1 vs1 = Some (c', ws1) /\
       update c k V2 vs2 = Some (c', ws2) /\ lsrel ws1 ws2) \/
    (update c k V1 vs1 = None /\ update c k V2 vs2 = None).
  Proof.
    intros c k V1 V2 vs1 vs2 R Rs. unfold update. destruct (select c k) as [i |].
    - destruct (set_nth_rel i _ _ _ _ R Rs) as [(ws1 & ws2 & A & B & C) | [A B]];
        rewrite A, B; simpl; eauto 10.
    - destruct c; auto. destruct k; auto. left. repeat eexists.
      apply lsrel_app; auto.
  Qed.

  (** What the world returns, wrapped, is related to itself. *)
  Lemma wrap_rel : forall d, data_permits pol d = true -> vrel (wrap d) (wrap d).
  Proof.
    fix IH 1.
    assert (IHs : forall ds, forallb (data_permits pol) ds = true ->
      lsrel (map (fun d => Lab bot (wrap d)) ds) (map (fun d => Lab bot (wrap d)) ds)).
    { induction ds as [| d ds IHds]; simpl; auto. rewrite andb_true_iff. intros [? ?].
      constructor; auto. apply lrel_low; auto using bot_flows. }
    destruct d; simpl; auto. rewrite andb_true_iff. intros [? ?]. auto.
  Qed.

  (** ** States *)

  Definition crel (c1 c2 : conv L) : Prop :=
    (c1 = c2 /\ low (clab c1)) \/ (high (clab c1) /\ high (clab c2)).

  (** Sets agree where their labels are visible.  What ends a run at a call may be
      anything in either run; but where choices are agreed on, it ends a run that
      chooses otherwise than the other one, when both have shown the same. *)
  Definition frel_of (f1 f2 : frame L) : Prop :=
    (forall k, same_label (fst (sets f1 k)) (fst (sets f2 k)) /\
               (low (fst (sets f1 k)) -> snd (sets f1 k) = snd (sets f2 k))) /\
    (forall f u1 u2 args1 args2 t1 t2, agreed f = true -> visible z t1 = visible z t2 ->
       stops f1 f u1 args1 t1 = false -> stops f2 f u2 args2 t2 = false -> args1 = args2).

  Definition srel_of (s1 s2 : state L) : Prop :=
    crel (cv s1) (cv s2) /\
    ((remarks s1 = remarks s2 /\ frel_of (fixed s1) (fixed s2)) /\
     forall l, low l -> store s1 l = store s2 l) /\
    visible z (tr s1) = visible z (tr s2).

  Lemma visible_app : forall t1 t2 : list (event L),
    visible z (t1 ++ t2) = visible z t1 ++ visible z t2.
  Proof. intros. unfold visible. apply filter_app. Qed.

  (** Whoever sees less sees the same. *)
  Lemma visible_low : forall l (t1 t2 : list (event L)), low l ->
    visible z t1 = visible z t2 -> visible l t1 = visible l t2.
  Proof.
    intros l t1 t2 A E.
    assert (V : forall t, visible l (visible z t) = visible l t).
    { induction t as [| ev t IH]; simpl; auto.
      destruct (flows (channel ev) z) eqn:B; simpl; rewrite IH; auto.
      destruct (flows (channel ev) l) eqn:C; auto.
      rewrite (flows_trans L _ _ _ C A) in B. discriminate. }
    rewrite <- (V t1), <- (V t2), E. reflexivity.
  Qed.

  Lemma srel_conv : forall c1 c2 s1 s2,
    crel c1 c2 -> srel_of s1 s2 -> srel_of (set_conv c1 s1) (set_conv c2 s2).
  Proof. intros c1 c2 s1 s2 C (_ & S & T). split; [exact C | split; [exact S | exact T]]. Qed.

  Lemma srel_log : forall l1 l2 r1 r2 s1 s2,
    same_label l1 l2 -> (low l1 -> r1 = r2) -> srel_of s1 s2 ->
    srel_of (log l1 r1 s1) (log l2 r2 s2).
  Proof.
    intros l1 l2 r1 r2 s1 s2 [[-> A] | [A B]] R (C & S & T);
      (split; [exact C | split; [exact S |]]); simpl.
    - rewrite A, R, T; auto.
    - rewrite A, B, T; auto.
  Qed.

  Lemma srel_logs : forall t1 t2 s1 s2, visible z t1 = visible z t2 -> srel_of s1 s2 -> srel_of (logs t1 s1) (logs t2 s2).
  Proof.
    intros t1 t2 s1 s2 E (C & S & T). split; [exact C | split; [exact S |]]. simpl.
    rewrite !visible_app, E, T. auto.
  Qed.

  Lemma srel_set_account : forall l a1 a2 s1 s2,
    (low l -> a1 = a2) -> srel_of s1 s2 -> srel_of (set_account l a1 s1) (set_account l a2 s2).
  Proof.
    intros l a1 a2 s1 s2 R (C & [M S] & T). split; [exact C | split; [split; [exact M |] | exact T]].
    intros l' A. simpl. unfold same. destruct (flows l l') eqn:X; simpl; auto.
    destruct (flows l' l); auto. apply R. eapply flows_trans; eauto.
  Qed.

  (** ** Results *)

  (** A run that stopped where the observer cannot follow: out of fuel, or an
      error above the observer. *)
  Definition stuck (o : outcome L) : Prop :=
    match o with
    | Val _ => False
    | Err l _ => high l
    | Out => True
    end.

  Definition extends (s1 s2 : state L) : Prop :=
    exists t, visible z (tr s2) = t ++ visible z (tr s1).

  (** Two runs are related when both ended in sight of the observer and agree,
      or one is stuck, and what it has shown so far the other one has shown or
      will show too. *)
  Inductive rrel_of : result L -> result L -> Prop :=
  | rrel_val : forall V1 V2 s1 s2, lrel V1 V2 -> srel_of s1 s2 ->
      rrel_of (Val V1, s1) (Val V2, s2)
  | rrel_err : forall l m s1 s2, low l -> srel_of s1 s2 ->
      rrel_of (Err l m, s1) (Err l m, s2)
  | rrel_left : forall o1 o2 s1 s2, stuck o1 -> extends s1 s2 -> rrel_of (o1, s1) (o2, s2)
  | rrel_right : forall o1 o2 s1 s2, stuck o2 -> extends s2 s1 -> rrel_of (o1, s1) (o2, s2).

  Definition grows (s : state L) (r : result L) : Prop :=
    exists t, tr (snd r) = t ++ tr s.

  Lemma grows_refl : forall o s, grows s (o, s).
  Proof. intros. exists []. reflexivity. Qed.

  Lemma grows_trans : forall s s' r,
    (exists t, tr s' = t ++ tr s) -> grows s' r -> grows s r.
  Proof.
    intros s s' r [t E] [t' E']. exists (t' ++ t).
    rewrite E', E, app_assoc. reflexivity.
  Qed.

  Lemma grows_bind : forall s r k,
    grows s r -> (forall V s', grows s' (k V s')) -> grows s (bind r k).
  Proof.
    intros s [[V | l m |] s'] k G K; simpl; auto. eapply grows_trans; eauto.
  Qed.

  Lemma extends_refl : forall s1 s2, srel_of s1 s2 -> extends s1 s2.
  Proof. intros s1 s2 (_ & _ & T). exists []. auto. Qed.

  Lemma srel_sym_extends : forall s1 s2, srel_of s1 s2 -> extends s2 s1.
  Proof. intros s1 s2 (_ & _ & T). exists []. auto. Qed.

  Lemma extends_grows : forall s1 s2 r, extends s1 s2 -> grows s2 r -> extends s1 (snd r).
  Proof.
    intros s1 s2 r [t E] [t' E']. exists (visible z t' ++ t).
    rewrite E', visible_app, E, app_assoc. reflexivity.
  Qed.

  Lemma rrel_stuck_left : forall o1 s1 s2 r, stuck o1 -> extends s1 s2 -> grows s2 r ->
    rrel_of (o1, s1) r.
  Proof.
    intros o1 s1 s2 [o2 s2'] A E G. apply rrel_left; auto.
    apply (extends_grows _ _ _ E G).
  Qed.

  Lemma rrel_stuck_right : forall o2 s1 s2 r, stuck o2 -> extends s2 s1 -> grows s1 r ->
    rrel_of r (o2, s2).
  Proof.
    intros o2 s1 s2 [o1 s1'] A E G. apply rrel_right; auto.
    apply (extends_grows _ _ _ E G).
  Qed.

  Lemma rrel_bind : forall r1 r2 k1 k2,
    rrel_of r1 r2 ->
    (forall V1 V2 s1 s2, lrel V1 V2 -> srel_of s1 s2 -> rrel_of (k1 V1 s1) (k2 V2 s2)) ->
    (forall V s, grows s (k1 V s)) ->
    (forall V s, grows s (k2 V s)) ->
    rrel_of (bind r1 k1) (bind r2 k2).
  Proof.
    intros r1 r2 k1 k2 R K G1 G2. destruct R as [V1 V2 s1 s2 | l m s1 s2 | o1 o2 s1 s2 | o1 o2 s1 s2]; simpl.
    - auto.
    - apply rrel_err; auto.
    - assert (G : grows s2 (bind (o2, s2) k2)) by (apply grows_bind; auto using grows_refl).
      destruct o1; simpl in *; try contradiction; eapply rrel_stuck_left; eauto; simpl; auto.
    - assert (G : grows s1 (bind (o1, s1) k1)) by (apply grows_bind; auto using grows_refl).
      destruct o2; simpl in *; try contradiction; eapply rrel_stuck_right; eauto; simpl; auto.
  Qed.

  Lemma rrel_restore : forall c1 c2 r1 r2,
    crel c1 c2 -> rrel_of r1 r2 -> rrel_of (restore c1 r1) (restore c2 r2).
  Proof.
    intros c1 c2 r1 r2 C R. destruct R; unfold restore; simpl.
    - apply rrel_val; auto. apply srel_conv; auto.
    - apply rrel_err; auto. apply srel_conv; auto.
    - apply rrel_left; auto.
    - apply rrel_right; auto.
  Qed.

  (** Errors, and results above the observer. *)
  Lemma rrel_err_same : forall l1 l2 m s1 s2,
    same_label l1 l2 -> srel_of s1 s2 -> rrel_of (Err l1 m, s1) (Err l2 m, s2).
  Proof.
    intros l1 l2 m s1 s2 [[-> A] | [A B]] S; [apply rrel_err; auto |].
    apply rrel_left; simpl; auto using extends_refl.
  Qed.

  Lemma rrel_high : forall o1 o2 s1 s2,
    (match o1 with Val V => high (label_of V) | _ => stuck o1 end) ->
    (match o2 with Val V => high (label_of V) | _ => stuck o2 end) ->
    srel_of s1 s2 -> rrel_of (o1, s1) (o2, s2).
  Proof.
    intros o1 o2 s1 s2 A B S.
    destruct o1 as [V1 | |]; [| apply rrel_left; auto using extends_refl ..].
    destruct o2 as [V2 | |]; [| apply rrel_right; auto using srel_sym_extends ..].
    apply rrel_val; auto. destruct V1, V2. constructor; auto.
  Qed.
End Relation.

Notation frel := (@frel_of _ no_tool).
Notation srel := (@srel_of _ no_tool).
Notation rrel := (@rrel_of _ no_tool).
