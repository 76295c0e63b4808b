(** * Labels

    A label says who may see a value (secrecy) and who may have influenced it
    (integrity).  [flows a b] reads "a may flow to b" and is decidable, since
    the monitor computes it.  Nothing below depends on which lattice a run
    uses: every theorem quantifies over [lattice].

    Source: docs/calculus.md section 1; the LLMbda calculus (seed 002). *)

Require Import Bool Setoid.

Record lattice : Type := Lattice {
  label :> Type;
  flows : label -> label -> bool;
  join : label -> label -> label;
  bot : label;
  flows_refl : forall a, flows a a = true;
  flows_trans : forall a b c, flows a b = true -> flows b c = true -> flows a c = true;
  flows_antisym : forall a b, flows a b = true -> flows b a = true -> a = b;
  join_lub : forall a b c, flows (join a b) c = flows a c && flows b c;
  bot_flows : forall a, flows bot a = true
}.

Arguments flows {_} _ _.
Arguments join {_} _ _.
Arguments bot {_}.

Section Facts.
  Context {L : lattice}.
  Implicit Types a b c : L.

  Lemma join_l : forall a b, flows a (join a b) = true.
  Proof.
    intros a b. generalize (flows_refl L (join a b)).
    rewrite join_lub, andb_true_iff. tauto.
  Qed.

  Lemma join_r : forall a b, flows b (join a b) = true.
  Proof.
    intros a b. generalize (flows_refl L (join a b)).
    rewrite join_lub, andb_true_iff. tauto.
  Qed.

  Lemma join_true : forall a b c,
    flows (join a b) c = true <-> flows a c = true /\ flows b c = true.
  Proof. intros. rewrite join_lub. apply andb_true_iff. Qed.

  Lemma join_false_l : forall a b c, flows a c = false -> flows (join a b) c = false.
  Proof. intros a b c E. rewrite join_lub, E. reflexivity. Qed.

  Lemma join_false_r : forall a b c, flows b c = false -> flows (join a b) c = false.
  Proof. intros a b c E. rewrite join_lub, E. apply andb_false_r. Qed.

  Lemma flows_join_l : forall a b c, flows a b = true -> flows a (join b c) = true.
  Proof. intros. eapply flows_trans; eauto. apply join_l. Qed.

  Lemma flows_join_r : forall a b c, flows a c = true -> flows a (join b c) = true.
  Proof. intros. eapply flows_trans; eauto. apply join_r. Qed.

  Lemma join_mono_r : forall a b c, flows b c = true -> flows (join a b) (join a c) = true.
  Proof.
    intros. apply join_true. split; [apply join_l | apply flows_join_r; assumption].
  Qed.

  Lemma high_up : forall a b z, flows a b = true -> flows a z = false -> flows b z = false.
  Proof.
    intros a b z Hab Haz. destruct (flows b z) eqn:E; auto.
    rewrite (flows_trans L a b z Hab E) in Haz. discriminate.
  Qed.
End Facts.

(** ** The factoring into integrity and secrecy *)

Record factoring (L : lattice) : Type := Factoring {
  integrity : lattice;
  secrecy : lattice;
  integ : L -> integrity;
  secr : L -> secrecy;
  paired : integrity -> secrecy -> L;
  integ_paired : forall i s, integ (paired i s) = i;
  secr_paired : forall i s, secr (paired i s) = s;
  flows_factor : forall a b : L,
    flows a b = flows (integ a) (integ b) && flows (secr a) (secr b)
}.

Arguments integrity {_} _.
Arguments secrecy {_} _.
Arguments integ {_} _ _.
Arguments secr {_} _ _.
Arguments paired {_} _ _ _.

(** The two reclassifications: [Endorse] replaces the integrity of a value and
    keeps its secrecy; [Declassify] does the converse. *)
Inductive axis := Endorse | Declassify.

(** [mix F ax l1 l2]: the label of a value labeled [l2] after
    reclassification toward [l1]. *)
Definition mix {L} (F : factoring L) (ax : axis) (l1 l2 : L) : L :=
  match ax with
  | Endorse => paired F (integ F l1) (secr F l2)
  | Declassify => paired F (integ F l2) (secr F l1)
  end.

(** An observer [z] is insulated from an axis when no reclassification on
    that axis can bring a value down to it. *)
Definition insulated {L} (F : factoring L) (z : L) (ax : axis) : Prop :=
  forall l1 l2, flows (mix F ax l1 l2) z = true -> flows l2 z = true.

(** Observers who are restricted in secrecy only are insulated from [Endorse]:
    endorsement cannot weaken secrecy. *)
Lemma secrecy_observer_insulated : forall L (F : factoring L) (z : L),
  (forall i, flows i (integ F z) = true) -> insulated F z Endorse.
Proof.
  intros L F z T l1 l2 Hm. simpl in Hm.
  rewrite (flows_factor L F) in Hm. apply andb_true_iff in Hm. destruct Hm as [_ Hs].
  rewrite secr_paired in Hs.
  rewrite (flows_factor L F), T, Hs. reflexivity.
Qed.

(** Dually, observers restricted in integrity only are insulated from
    [Declassify]: declassification cannot launder untrusted data. *)
Lemma integrity_observer_insulated : forall L (F : factoring L) (z : L),
  (forall s, flows s (secr F z) = true) -> insulated F z Declassify.
Proof.
  intros L F z T l1 l2 Hm. simpl in Hm.
  rewrite (flows_factor L F) in Hm. apply andb_true_iff in Hm. destruct Hm as [Hi _].
  rewrite integ_paired in Hi.
  rewrite (flows_factor L F), T, Hi. reflexivity.
Qed.

(** ** Instances *)

(** Two points: [false] flows to everything, [true] only to itself. *)
Definition two_point : lattice.
Proof.
  refine (Lattice bool implb orb false _ _ _ _ _);
    intros; repeat match goal with b : bool |- _ => destruct b end;
    simpl in *; auto; discriminate.
Defined.

Definition product (A B : lattice) : lattice.
Proof.
  refine (Lattice (A * B)
    (fun x y => flows (fst x) (fst y) && flows (snd x) (snd y))
    (fun x y => (join (fst x) (fst y), join (snd x) (snd y)))
    (bot, bot) _ _ _ _ _).
  - intros [a b]; simpl. rewrite !flows_refl. reflexivity.
  - intros [a b] [c d] [e f]; simpl. rewrite !andb_true_iff. intros [? ?] [? ?].
    split; eapply flows_trans; eauto.
  - intros [a b] [c d]; simpl. rewrite !andb_true_iff. intros [? ?] [? ?].
    f_equal; apply flows_antisym; auto.
  - intros [a b] [c d] [e f]; simpl. rewrite !join_lub.
    destruct (flows a e), (flows c e), (flows b f), (flows d f); reflexivity.
  - intros [a b]; simpl. rewrite !bot_flows. reflexivity.
Defined.

Definition product_factoring (A B : lattice) : factoring (product A B).
Proof.
  refine (Factoring (product A B) A B fst snd (fun i s => (i, s)) _ _ _); reflexivity.
Defined.

(** The default lattice of the tool: untrusted x secret. *)
Definition two_by_two : lattice := product two_point two_point.
Definition two_by_two_factoring : factoring two_by_two := product_factoring _ _.
