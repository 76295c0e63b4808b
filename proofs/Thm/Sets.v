(** * The sets and the forms of policies

    What each kind of set lets data choose, and where sets come from: a set that is
    read from an answer with labels part by part, by a path, tells no more than
    what is on the path. *)

Require Import List String QArith Bool Lia.
Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp Entail.Spec.Sets.
Require Import Entail.Thm.Confinement Entail.Thm.Relation Entail.Thm.Noninterference Entail.Thm.Flow Entail.Thm.Planned.
Import ListNotations.

(** ** What may be chosen *)

Section Chosen.
  Context {L : lattice}.
  Variable equal : data -> data -> bool.
  Variable longest : nat.

  Lemma each_of_inv : forall good d, each_of longest good d = true ->
    good d = true \/
    (exists ds, d = DCon CList ds /\ (1 <= List.length ds <= longest)%nat /\ Forall (fun d => good d = true) ds).
  Proof.
    intros good d E. unfold each_of in E. apply orb_true_iff in E. destruct E as [E | E]; auto.
    destruct d as [| [] ds |]; try discriminate. right. exists ds. split; auto.
    apply andb_true_iff in E. destruct E as [E X]. apply andb_true_iff in E. destruct E as [X1 X2].
    apply PeanoNat.Nat.leb_le in X1, X2. split; [lia |]. apply Forall_forall. rewrite forallb_forall in X. exact X.
  Qed.

  (** With one parameter one of the values that the set's items have for it; a list
      is at most [longest] of them. *)
  Theorem chosen_one : forall set who i path items d,
    holds (from_items (L := L) equal longest set who [(i, path)]) items [d] = true ->
    (exists v, In v (flat_map path items) /\ equal d v = true) \/
    (exists ds, d = DCon CList ds /\ (1 <= List.length ds <= longest)%nat /\
       Forall (fun d => exists v, In v (flat_map path items) /\ equal d v = true) ds).
  Proof.
    intros set who i path items d E. destruct (each_of_inv _ _ E) as [X | (ds & -> & N & X)].
    - left. apply existsb_exists in X. exact X.
    - right. exists ds. split; auto. split; auto. eapply Forall_impl; [| exact X].
      intros x Y. apply existsb_exists in Y. exact Y.
  Qed.

  (** With several parameters one of the items decides them all. *)
  Theorem chosen_together : forall set who ps items ds, (2 <= List.length ps)%nat ->
    holds (from_items (L := L) equal longest set who ps) items ds = true ->
    exists item, In item items /\
      forall p d, In (p, d) (combine (map snd ps) ds) -> one_of equal longest (p item) d = true.
  Proof.
    intros set who ps items ds N E. cbn [holds from_items] in E.
    assert (X : existsb (fun item => forallb (fun p => one_of equal longest (fst p item) (snd p)) (combine (map snd ps) ds)) items = true).
    { destruct ps as [| p [| q ps]]; simpl in N; try lia. exact E. }
    apply existsb_exists in X. destruct X as (item & I & X). exists item. split; auto.
    intros p d Ip. rewrite forallb_forall in X. apply (X (p, d) Ip).
  Qed.

  (** With a rule: a text that the rule takes, given the items that both worlds have
      alike, or a list of such texts. *)
  Theorem chosen_within : forall set who i inside items d,
    holds (from_rule (L := L) longest set who i inside) items [d] = true ->
    inside items d = true \/
    (exists ds, d = DCon CList ds /\ (1 <= List.length ds <= longest)%nat /\ Forall (fun d => inside items d = true) ds).
  Proof. intros set who i inside items d E. apply each_of_inv. exact E. Qed.
End Chosen.

(** ** Sets that are read *)

Section Read.
  Context {L : lattice}.
  Variable pol : axis -> bool.
  Variable z : L.
  Notation low l := (flows l z = true).
  Notation high l := (flows l z = false).

  (** What is at the end of a path says no more than what is on the path: neither
      do other parts of the answer, nor their labels. *)
  Definition path_alike (V1 V2 : lval L) : Prop :=
    forall path, low (label_at V1 path) ->
      label_at V1 path = label_at V2 path /\ values_at (strip V1) path = values_at (strip V2) path.

  Lemma parts_alike : forall path Vs1 Vs2, Forall2 path_alike Vs1 Vs2 ->
    low (joins (map (fun V => label_at V path) Vs1)) ->
    joins (map (fun V => label_at V path) Vs1) = joins (map (fun V => label_at V path) Vs2) /\
    flat_map (fun d => values_at d path) (map strip Vs1) = flat_map (fun d => values_at d path) (map strip Vs2).
  Proof.
    intros path Vs1 Vs2 A. induction A as [| V1 V2 Vs1 Vs2 E A IH]; simpl; auto. intros Lo.
    apply join_true in Lo. destruct Lo as [L1 L2]. destruct (E path L1) as [-> ->], (IH L2) as [-> ->]. auto.
  Qed.

  Lemma path_rel_all : forall V1 V2, lrel pol z V1 V2 -> path_alike V1 V2.
  Proof.
    pose (Pv := fun v1 v2 : val L => forall l, low l -> path_alike (Lab l v1) (Lab l v2)).
    assert (All : (forall V1 V2, lrel pol z V1 V2 -> path_alike V1 V2) /\
                  (forall v1 v2, vrel pol z v1 v2 -> Pv v1 v2) /\
                  (forall vs1 vs2, lsrel pol z vs1 vs2 -> Forall2 path_alike vs1 vs2)); [| apply All].
    apply (rel_mutind pol z (fun V1 V2 _ => path_alike V1 V2) (fun v1 v2 _ => Pv v1 v2)
             (fun vs1 vs2 _ => Forall2 path_alike vs1 vs2)); unfold Pv.
    - intros l1 v1 l2 v2 A _ path Lo. exfalso.
      assert (X : flows l1 (label_at (Lab l1 v1) path) = true).
      { destruct v1 as [k | c vs | env e]; simpl; [destruct path; simpl; auto using join_l, flows_refl | |
          destruct path; simpl; auto using join_l, flows_refl].
        destruct (plain c); try (destruct path as [| [] path]; simpl; auto using join_l, flows_refl); apply join_l. }
      rewrite (flows_trans L _ _ _ X Lo) in A. discriminate.
    - intros l v1 v2 A R IH. apply IH. exact A.
    - intros k l A path Lo. auto.
    - intros c vs1 vs2 R IH l A path Lo.
      assert (Rv : lrel pol z (Lab l (VCon c vs1)) (Lab l (VCon c vs2))) by (apply lrel_low; auto; constructor; exact R).
      assert (Deep : low (deep_label (Lab l (VCon c vs1))) ->
        deep_label (Lab l (VCon c vs1)) = deep_label (Lab l (VCon c vs2)) /\
        [strip (Lab l (VCon c vs1))] = [strip (Lab l (VCon c vs2))]).
      { intros X. destruct (proj1 (deep_rel pol z) _ _ Rv X) as [-> ->]. auto. }
      cbn [label_at strip values_at] in *. destruct (plain c) eqn:Pc.
      + destruct path; [apply Deep | split]; auto.
      + apply join_true in Lo. destruct Lo as [_ Lo]. destruct (parts_alike path _ _ IH Lo) as [-> ->]. auto.
      + destruct path as [| [f | |] path].
        * apply Deep. exact Lo.
        * apply join_true in Lo. destruct Lo as [_ Lo].
          assert (G : forall fs, low ((fix at_field (fs : list string) (Vs : list (lval L)) {struct Vs} : L :=
                match Vs, fs with
                | W :: Vs', g :: fs' => if String.eqb f g then label_at W path else at_field fs' Vs'
                | _, _ => bot end) fs vs1) ->
              (fix at_field (fs : list string) (Vs : list (lval L)) {struct Vs} : L :=
                match Vs, fs with
                | W :: Vs', g :: fs' => if String.eqb f g then label_at W path else at_field fs' Vs'
                | _, _ => bot end) fs vs1 =
              (fix at_field (fs : list string) (Vs : list (lval L)) {struct Vs} : L :=
                match Vs, fs with
                | W :: Vs', g :: fs' => if String.eqb f g then label_at W path else at_field fs' Vs'
                | _, _ => bot end) fs vs2 /\
              (fix at_field (fs : list string) (ds : list data) {struct ds} : list data :=
                match ds, fs with
                | x :: ds', g :: fs' => if String.eqb f g then values_at x path else at_field fs' ds'
                | _, _ => [] end) fs (map strip vs1) =
              (fix at_field (fs : list string) (ds : list data) {struct ds} : list data :=
                match ds, fs with
                | x :: ds', g :: fs' => if String.eqb f g then values_at x path else at_field fs' ds'
                | _, _ => [] end) fs (map strip vs2)).
          { clear -IH. induction IH as [| V1 V2 vs1 vs2 E _ IH]; intros fs Lo; simpl; auto.
            destruct fs as [| g fs]; auto. destruct (String.eqb f g); auto. }
          destruct (G fields Lo) as [-> ->]. auto.
        * apply join_true in Lo. destruct Lo as [_ Lo]. destruct (parts_alike path _ _ IH Lo) as [-> ->]. auto.
        * auto.
      + destruct path; [apply Deep | split]; auto.
      + destruct path; [apply Deep | split]; auto.
      + destruct path; [apply Deep | split]; auto.
      + destruct path; [apply Deep | split]; auto.
    - intros e env1 env2 P R _ l A path Lo.
      assert (Rv : lrel pol z (Lab l (VClo env1 e)) (Lab l (VClo env2 e))) by (apply lrel_low; auto; constructor; auto).
      destruct path; [| auto].
      change (values_at (strip (Lab l (VClo env1 e))) []) with [strip (Lab l (VClo env1 e))].
      change (values_at (strip (Lab l (VClo env2 e))) []) with [strip (Lab l (VClo env2 e))].
      change (label_at (Lab l (VClo env1 e)) []) with (deep_label (Lab l (VClo env1 e))) in *.
      change (label_at (Lab l (VClo env2 e)) []) with (deep_label (Lab l (VClo env2 e))).
      destruct (proj1 (deep_rel pol z) _ _ Rv Lo) as [-> ->]. auto.
    - constructor.
    - intros V1 V2 vs1 vs2 _ E _ IH. constructor; auto.
  Qed.

  (** So a set of what a path leads to, in answers that an observer cannot tell
      apart, is what the theorems ask of sets; with any label that covers what is on
      the path, and whatever further is done with its values. *)
  Theorem set_of_path : forall (A : Type) (g : list data -> A) V1 V2 path, lrel pol z V1 V2 ->
    same_label z (label_at V1 path) (label_at V2 path) /\
    (forall l, flows (label_at V1 path) l = true -> low l ->
       g (values_at (strip V1) path) = g (values_at (strip V2) path)).
  Proof.
    intros A g V1 V2 path R. split.
    - destruct (flows (label_at V1 path) z) eqn:E1; [destruct (path_rel_all _ _ R path E1); left; auto |].
      destruct (flows (label_at V2 path) z) eqn:E2; [| right; auto].
      destruct (path_rel_all _ _ (lrel_sym pol z _ _ R) path E2). left. split; congruence.
    - intros l Fl Lo. destruct (path_rel_all _ _ R path) as [_ ->]; auto. eapply flows_trans; eauto.
  Qed.

  (** The answer itself, labeled part by part, before the first step. *)
  Theorem set_of_answer : forall (H : host L) (A : Type) (g : list data -> A) f args k n path l l',
    (forall t, flows (label_at (fill H n f args k t [] l) path) l' = true) -> low l' ->
    forall t1 t2, visible z t1 = visible z t2 ->
    g (values_at (strip (fill H n f args k t1 [] l)) path) = g (values_at (strip (fill H n f args k t2 [] l)) path).
  Proof.
    intros H A g f args k n path l l' Fl Lo t1 t2 T.
    assert (R : lrel pol z (fill H n f args k t1 [] l) (fill H n f args k t2 [] l)).
    { apply fill_rel; auto. unfold same_label. destruct (flows l z); auto. }
    destruct (set_of_path A g _ _ path R) as [_ E]. apply (E l'); auto.
  Qed.
End Read.
