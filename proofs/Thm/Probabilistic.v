(** * Noninterference for sampled models

    A finitely supported random world is a finite list of deterministic worlds
    with weights: draw one, then run.  Since a world's answers may depend on
    the requests it has already seen ([host]), models that are sampled anew at
    every call are covered, as long as a run makes boundedly many calls.

    The theorem is termination-insensitive: in one of two equivalent starts an
    observable event is at most as likely as in the other one, plus the
    probability that the other run does not end in sight of the observer. *)

Require Import List String QArith Bool Lia Arith.
Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp.
Require Import Entail.Thm.Relation Entail.Thm.Noninterference Entail.Thm.Flow.
Import ListNotations.
Local Open Scope nat_scope.

Section Probabilistic.
  Context {L : lattice} {F : factoring L}.
  Variable z : L.

  (** The labels whose accounts are looked at: any finite list. *)
  Variable accounts : list L.

  (** What the observer sees of a run that ended in its sight: the accounts are
      those of visible labels. *)
  Inductive sight :=
  | SeenVal (l : option L) (V : option (lval L)) (c : option (conv L)) (a : list account) (t : list (event L))
  | SeenErr (l : L) (m : string) (c : option (conv L)) (a : list account) (t : list (event L)).

  Definition seen_store (s : state L) : list account :=
    map (store s) (filter (fun l => flows l z) accounts).

  Lemma seen_store_rel : forall s1 s2, srel z s1 s2 -> seen_store s1 = seen_store s2.
  Proof.
    intros s1 s2 (_ & [_ S] & _). apply map_ext_in. intros l I. apply filter_In in I. apply S, I.
  Qed.

  Definition if_low {A} (l : L) (x : A) : option A := if flows l z then Some x else None.

  Definition observe (r : result L) : option sight :=
    let s := snd r in
    let c := if_low (clab (cv s)) (cv s) in
    let t := visible z (tr s) in
    match fst r with
    | Val V => Some (SeenVal (if_low (label_of V) (label_of V)) (if_low (deep_label V) V) c (seen_store s) t)
    | Err l m => if flows l z then Some (SeenErr l m c (seen_store s) t) else None
    | Out => None
    end.

  Lemma observe_conv : forall c1 c2 : conv L, crel z c1 c2 ->
    if_low (clab c1) c1 = if_low (clab c2) c2.
  Proof.
    unfold if_low. intros c1 c2 [[-> A] | [A B]]; [reflexivity |]. rewrite A, B. reflexivity.
  Qed.

  Lemma observe_rel : forall pol r1 r2 a b, rrel pol z r1 r2 ->
    observe r1 = Some a -> observe r2 = Some b -> a = b.
  Proof.
    intros pol r1 r2 a b R A B. unfold observe in *.
    destruct R as [V1 V2 s1 s2 RV Sr | l m s1 s2 Lo Sr | o1 o2 s1 s2 St _ | o1 o2 s1 s2 St _];
      simpl in *.
    - rewrite (seen_store_rel _ _ Sr) in A. destruct Sr as (C & _ & T).
      inversion A; inversion B; subst. rewrite T, (observe_conv _ _ C). f_equal.
      + unfold if_low. destruct (lrel_label _ _ _ _ RV) as [[-> X] | [X Y]]; [reflexivity |].
        rewrite X, Y. reflexivity.
      + unfold if_low. destruct (lrel_deep_label _ _ _ _ RV) as [[D X] | [X Y]].
        * rewrite <- D, X. f_equal. apply (proj1 (deep_equal pol z)); auto.
        * rewrite X, Y. reflexivity.
    - rewrite (seen_store_rel _ _ Sr) in A. destruct Sr as (C & _ & T).
      rewrite Lo in *. inversion A; inversion B; subst. rewrite T, (observe_conv _ _ C). reflexivity.
    - destruct o1; simpl in St; try contradiction; try rewrite St in A; discriminate.
    - destruct o2; simpl in St; try contradiction; try rewrite St in B; discriminate.
  Qed.

  (** A random world: weights and worlds. *)
  Definition random := list (nat * host L).

  (** The weight of the draws for which [A] holds of the run. *)
  Fixpoint mass (Om : random) (A : host L -> bool) : nat :=
    match Om with
    | [] => 0
    | (w, H) :: Om' => (if A H then w else 0) + mass Om' A
    end.

  Definition seen (A : sight -> bool) (r : result L) : bool :=
    match observe r with Some a => A a | None => false end.
  Definition unseen (r : result L) : bool :=
    match observe r with Some _ => false | None => true end.

  Theorem probabilistic_noninterference :
    forall pol (Om : random) n1 n2 pc env1 env2 s1 s2 e (A : sight -> bool),
    (forall ax, pol ax = true -> insulated F z ax) ->
    (forall w H, In (w, H) Om ->
       (forall ax, policy H ax = true -> pol ax = true) /\
       lsrel pol z (prelude H) (prelude H) /\ tools_keep H pol z /\
       srel z s1 s2) ->
    permits pol e = true -> lsrel pol z env1 env2 ->
    mass Om (fun H => seen A (eval (F := F) H n1 pc env1 s1 e)) <=
    mass Om (fun H => seen A (eval (F := F) H n2 pc env2 s2 e)) +
    mass Om (fun H => unseen (eval (F := F) H n2 pc env2 s2 e)).
  Proof.
    intros pol Om n1 n2 pc env1 env2 s1 s2 e A POL Ws P R.
    induction Om as [| [w H] Om IH]; simpl; auto.
    assert (Tl : mass Om (fun H => seen A (eval (F := F) H n1 pc env1 s1 e)) <=
      mass Om (fun H => seen A (eval (F := F) H n2 pc env2 s2 e)) +
      mass Om (fun H => unseen (eval (F := F) H n2 pc env2 s2 e))).
    { apply IH. intros w' H' I. apply (Ws w' H'). simpl. auto. }
    destruct (Ws w H (or_introl eq_refl)) as (GEN & PRE & TK & S).
    assert (N : rrel pol z (eval (F := F) H n1 pc env1 s1 e) (eval (F := F) H n2 pc env2 s2 e)).
    { apply noninterference_general; auto. destruct (flows pc z) eqn:X; [left | right]; auto. }
    unfold seen at 1 3, unseen at 1.
    destruct (observe (eval (F := F) H n1 pc env1 s1 e)) as [a |] eqn:O1; [| lia].
    destruct (observe (eval (F := F) H n2 pc env2 s2 e)) as [b |] eqn:O2.
    - rewrite (observe_rel _ _ _ _ _ N O1 O2). destruct (A b); lia.
    - destruct (A a); lia.
  Qed.
End Probabilistic.
