(** * The four lattices that ship

    Each is proved to be a [lattice] with a [factoring] into integrity and
    secrecy, and to have a greatest element on both axes.  [two_by_two], the
    default, is in [Labels].

    Source: docs/calculus.md section 1. *)

Require Import Bool NArith.
Require Import Entail.Spec.Labels.

(** ** Lattices from their join *)

(** An idempotent commutative monoid with decidable equality is a lattice:
    [a] flows to [b] if their join is [b]. *)
Section Semilattice.
  Variable A : Type.
  Variable eqb : A -> A -> bool.
  Variable op : A -> A -> A.
  Variable e : A.
  Hypothesis eqb_true : forall a b, eqb a b = true <-> a = b.
  Hypothesis assoc : forall a b c, op (op a b) c = op a (op b c).
  Hypothesis comm : forall a b, op a b = op b a.
  Hypothesis idem : forall a, op a a = a.
  Hypothesis unit : forall a, op e a = a.

  Definition semilattice : lattice.
  Proof.
    refine (Lattice A (fun a b => eqb (op a b) b) op e _ _ _ _ _).
    - intros a. apply eqb_true, idem.
    - intros a b c. rewrite !eqb_true. intros X Y. rewrite <- Y at 1. rewrite <- assoc, X. exact Y.
    - intros a b. rewrite !eqb_true. intros X Y. rewrite <- Y, comm. exact X.
    - intros a b c. apply eq_true_iff_eq. rewrite andb_true_iff, !eqb_true. split.
      + intros X. split; rewrite <- X.
        * rewrite <- !assoc, idem. reflexivity.
        * rewrite <- assoc, (comm b (op a b)), (assoc a b b), idem. reflexivity.
      + intros [X Y]. rewrite assoc, Y. exact X.
    - intros a. apply eqb_true, unit.
  Defined.
End Semilattice.

(** A greatest element. *)
Definition greatest {L : lattice} (t : L) : Prop := forall l, flows l t = true.

(** A factored lattice with greatest elements on both axes: what the insulated
    theorems need, and what a program may be given as [⊤]. *)
Record bounded : Type := Bounded {
  labels :> lattice;
  axes : factoring labels;
  top_integrity : integrity axes;
  top_secrecy : secrecy axes;
  top_integrity_greatest : greatest top_integrity;
  top_secrecy_greatest : greatest top_secrecy
}.

Arguments axes : clear implicits.

Definition top (B : bounded) : B := paired (axes B) (top_integrity B) (top_secrecy B).

Lemma top_greatest : forall B : bounded, greatest (top B).
Proof.
  intros B l. unfold top. rewrite (flows_factor B (axes B)), integ_paired, secr_paired.
  rewrite top_integrity_greatest, top_secrecy_greatest. reflexivity.
Qed.

(** Observers whom one axis alone restricts. *)
Definition in_secrecy {B : bounded} (s : secrecy (axes B)) : B := paired (axes B) (top_integrity B) s.
Definition in_integrity {B : bounded} (i : integrity (axes B)) : B := paired (axes B) i (top_secrecy B).

(** A product is bounded by the greatest elements of its factors. *)
Definition bounded_product (I S : lattice) (i : I) (s : S) (gi : greatest i) (gs : greatest s) : bounded :=
  Bounded (product I S) (product_factoring I S) i s gi gs.

Lemma two_point_greatest : greatest (L := two_point) true.
Proof. intros []; reflexivity. Qed.

Lemma product_greatest : forall (A B : lattice) (a : A) (b : B),
  greatest a -> greatest b -> greatest (L := product A B) (a, b).
Proof. intros A B a b X Y [x y]. simpl. rewrite X, Y. reflexivity. Qed.

(** ** Two axes

    Subsets of U and S: [(untrusted, secret)]. *)
Definition two_axis : bounded := bounded_product two_point two_point true true two_point_greatest two_point_greatest.

(** ** Two axes and the endorsed bit

    Subsets of U, S and E: [((untrusted, endorsed), secret)].  E counts as integrity. *)
Definition endorsed : bounded :=
  bounded_product (product two_point two_point) two_point (true, true) true
    (product_greatest two_point two_point true true two_point_greatest two_point_greatest) two_point_greatest.

(** ** Sources and readers

    A set of names is all of them ([None]), or finite: the bits of a number, where
    each name has a bit, as in the machine. *)
Definition names := option N.

Definition names_eqb (a b : names) : bool :=
  match a, b with
  | Some a, Some b => N.eqb a b
  | None, None => true
  | _, _ => false
  end.

Lemma names_eqb_true : forall a b, names_eqb a b = true <-> a = b.
Proof.
  intros [a |] [b |]; simpl; try (split; congruence). rewrite N.eqb_eq. split; congruence.
Qed.

Definition union (a b : names) : names :=
  match a, b with Some a, Some b => Some (N.lor a b) | _, _ => None end.

Definition intersection (a b : names) : names :=
  match a, b with
  | Some a, Some b => Some (N.land a b)
  | None, x | x, None => x
  end.

(** Whom data is from: more sources are higher. *)
Definition sources : lattice.
Proof.
  refine (semilattice names names_eqb union (Some 0%N) names_eqb_true _ _ _ _).
  - intros [a |] [b |] [c |]; simpl; auto. rewrite N.lor_assoc. reflexivity.
  - intros [a |] [b |]; simpl; auto. rewrite N.lor_comm. reflexivity.
  - intros [a |]; simpl; auto. rewrite N.lor_diag. reflexivity.
  - intros [a |]; simpl; auto.
Defined.

(** Who may read it: fewer readers are higher. *)
Definition readers : lattice.
Proof.
  refine (semilattice names names_eqb intersection None names_eqb_true _ _ _ _).
  - intros [a |] [b |] [c |]; simpl; auto. rewrite N.land_assoc. reflexivity.
  - intros [a |] [b |]; simpl; auto. rewrite N.land_comm. reflexivity.
  - intros [a |]; simpl; auto. rewrite N.land_diag. reflexivity.
  - intros [a |]; simpl; auto.
Defined.

Lemma all_sources_greatest : greatest (L := sources) None.
Proof. intros [a |]; reflexivity. Qed.

Lemma no_reader_greatest : greatest (L := readers) (Some 0%N).
Proof. intros [a |]; simpl; auto. rewrite N.land_0_r. reflexivity. Qed.

Definition sources_readers : bounded :=
  bounded_product sources readers None (Some 0%N) all_sources_greatest no_reader_greatest.

(** The order is inclusion: of sources, and of readers the other way around. *)
Definition holds (n : N) (a : names) : Prop := match a with Some a => N.testbit a n = true | None => True end.

Lemma sources_inclusion : forall a b : sources, a <> None ->
  (flows a b = true <-> (forall n, holds n a -> holds n b)).
Proof.
  intros [a |] [b |] Fin; try congruence; simpl.
  - rewrite N.eqb_eq. split.
    + intros E n A. rewrite <- E, N.lor_spec, A. reflexivity.
    + intros I. apply N.bits_inj. intros n. rewrite N.lor_spec.
      destruct (N.testbit a n) eqn:A; auto. rewrite (I n A). reflexivity.
  - split; auto.
Qed.

Lemma readers_inclusion : forall a b : readers, b <> None ->
  (flows a b = true <-> (forall n, holds n b -> holds n a)).
Proof.
  intros [a |] [b |] Fin; try congruence; simpl.
  - rewrite N.eqb_eq. split.
    + intros E n B. rewrite <- E, N.land_spec in B. apply andb_true_iff in B. apply B.
    + intros I. apply N.bits_inj. intros n. rewrite N.land_spec.
      destruct (N.testbit b n) eqn:B; [rewrite (I n B) | rewrite andb_false_r]; reflexivity.
  - rewrite N.eqb_refl. split; auto.
Qed.

(** ** Levels of secrecy

    Untrusted, and one of four levels. *)
Inductive level := Public | Internal | Confidential | Secret.

Definition rank (l : level) : nat :=
  match l with Public => 0 | Internal => 1 | Confidential => 2 | Secret => 3 end.

Definition level_eqb (a b : level) : bool := Nat.eqb (rank a) (rank b).
Definition higher (a b : level) : level := if Nat.leb (rank a) (rank b) then b else a.

Definition level_lattice : lattice.
Proof.
  refine (semilattice level level_eqb higher Public _ _ _ _ _).
  - intros [] []; unfold level_eqb; simpl; split; congruence.
  - intros [] [] []; reflexivity.
  - intros [] []; reflexivity.
  - intros []; reflexivity.
  - intros []; reflexivity.
Defined.

Lemma secret_greatest : greatest (L := level_lattice) Secret.
Proof. intros []; reflexivity. Qed.

Definition levels : bounded :=
  bounded_product two_point level_lattice true Secret two_point_greatest secret_greatest.
