(** * The noninterference theorems, in the form a reader wants them

    Everything here is a corollary of [noninterference_low]. *)

Require Import List String QArith Bool.
Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp.
Require Import Entail.Thm.Confinement Entail.Thm.Relation Entail.Thm.Noninterference.
Import ListNotations.

(** The reclassifications allowed by a policy on axes. *)
Definition no_axis (ax : axis) : bool := false.
Definition only_endorse (ax : axis) : bool := match ax with Endorse => true | _ => false end.
Definition only_declassify (ax : axis) : bool := match ax with Declassify => true | _ => false end.

Section Flow.
  Context {L : lattice} {F : factoring L}.
  Variable H : host L.

  Notation low z l := (flows l z = true).

  (** What an observer at [z] can see of the end of a run: the result, the
      conversation, the store, and the trace. *)
  Definition agree (z : L) (V1 V2 : lval L) (s1 s2 : state L) : Prop :=
    (low z (label_of V1) \/ low z (label_of V2) -> label_of V1 = label_of V2) /\
    (low z (deep_label V1) \/ low z (deep_label V2) -> V1 = V2) /\
    (low z (clab (cv s1)) \/ low z (clab (cv s2)) -> cv s1 = cv s2) /\
    srel z s1 s2 /\
    visible z (tr s1) = visible z (tr s2).

  Lemma agree_intro : forall pol z V1 V2 s1 s2,
    lrel pol z V1 V2 -> srel z s1 s2 -> agree z V1 V2 s1 s2.
  Proof.
    intros pol z V1 V2 s1 s2 R S.
    assert (D := lrel_deep_label _ _ _ _ R).
    split; [| split; [| split; [| split]]].
    - intros E. destruct (lrel_label _ _ _ _ R) as [[A _] | [A B]]; auto.
      destruct E; congruence.
    - intros E. apply (proj1 (deep_equal pol z)); auto.
      destruct D as [[A B] | [A B]]; auto. destruct E; congruence.
    - intros E. destruct S as ([[A _] | [A B]] & _); auto. destruct E; congruence.
    - exact S.
    - apply S.
  Qed.

  (** ** The general form *)

  Section General.
    Variable pol : axis -> bool.
    Variable z : L.
    Hypothesis POL : forall ax, pol ax = true -> insulated F z ax.
    Hypothesis GEN : forall ax, policy H ax = true -> pol ax = true.
    Hypothesis PRE : lsrel pol z (prelude H) (prelude H).
    Hypothesis TOOLS : tools_keep H pol z.

    (** Two runs under the same or unobservable program-counter labels. *)
    Theorem noninterference_general : forall n1 n2 pc1 pc2 env1 env2 s1 s2 e,
      same_label z pc1 pc2 -> permits pol e = true ->
      lsrel pol z env1 env2 -> srel z s1 s2 ->
      rrel pol z
        (eval (F := F) H n1 pc1 env1 s1 e) (eval (F := F) H n2 pc2 env2 s2 e).
    Proof.
      intros n1 n2 pc1 pc2 env1 env2 s1 s2 e [[-> A] | [A B]] P R S.
      - eapply noninterference_low; eauto.
      - eapply high_results with (1 := POL) (2 := TOOLS) (3 := A) (4 := B) (5 := S); apply confinement.
    Qed.

    (** Termination-insensitive noninterference of results, conversations,
        store and trace. *)
    Theorem noninterference_values : forall n1 n2 pc env1 env2 s1 s2 e V1 V2 s1' s2',
      permits pol e = true ->
      lsrel pol z env1 env2 -> srel z s1 s2 ->
      eval (F := F) H n1 pc env1 s1 e = (Val V1, s1') ->
      eval (F := F) H n2 pc env2 s2 e = (Val V2, s2') ->
      agree z V1 V2 s1' s2'.
    Proof.
      intros n1 n2 pc env1 env2 s1 s2 e V1 V2 s1' s2' P R S E1 E2.
      assert (Sp : same_label z pc pc).
      { destruct (flows pc z) eqn:A; [left | right]; auto. }
      pose proof (noninterference_general n1 n2 pc pc _ _ _ _ e Sp P R S) as N.
      rewrite E1, E2 in N. inversion N; subst; simpl in *; try contradiction.
      eapply agree_intro; eauto.
    Qed.

    (** An error that the observer sees is the same error in both runs, and no
        run that ends well stands against it. *)
    Theorem noninterference_errors : forall n1 n2 pc env1 env2 s1 s2 e l m s1' o2 s2',
      permits pol e = true ->
      lsrel pol z env1 env2 -> srel z s1 s2 ->
      eval (F := F) H n1 pc env1 s1 e = (Err l m, s1') -> low z l ->
      eval (F := F) H n2 pc env2 s2 e = (o2, s2') -> ~ stuck z o2 ->
      o2 = Err l m /\ srel z s1' s2'.
    Proof.
      intros n1 n2 pc env1 env2 s1 s2 e l m s1' o2 s2' P R S E1 A E2 B.
      assert (Sp : same_label z pc pc).
      { destruct (flows pc z) eqn:C; [left | right]; auto. }
      pose proof (noninterference_general n1 n2 pc pc _ _ _ _ e Sp P R S) as N.
      rewrite E1, E2 in N. inversion N; subst; simpl in *; try congruence; auto.
    Qed.

    (** Progress-insensitive noninterference of traces: whatever the outcomes,
        and wherever the runs are cut off, what the observer has seen of one
        is a beginning of what it has seen of the other.  (Traces are stored
        newest first.) *)
    Theorem noninterference_traces : forall n1 n2 pc env1 env2 s1 s2 e,
      permits pol e = true ->
      lsrel pol z env1 env2 -> srel z s1 s2 ->
      extends z (snd (eval (F := F) H n1 pc env1 s1 e)) (snd (eval (F := F) H n2 pc env2 s2 e)) \/
      extends z (snd (eval (F := F) H n2 pc env2 s2 e)) (snd (eval (F := F) H n1 pc env1 s1 e)).
    Proof.
      intros n1 n2 pc env1 env2 s1 s2 e P R S.
      assert (Sp : same_label z pc pc).
      { destruct (flows pc z) eqn:C; [left | right]; auto. }
      destruct (noninterference_general n1 n2 pc pc _ _ _ _ e Sp P R S); simpl; auto.
      - left. eapply extends_refl; eauto.
      - left. eapply extends_refl; eauto.
    Qed.

    (** Whatever ends a run at a call, in either run: a count of calls may be any
        function of the whole history, different in the two worlds, since no
        program catches what it says.  The calls may be in branches of [par] and [each]. *)
    Definition counting (c : name -> L -> list data -> list (event L) -> bool) (s : state L) : state L :=
      State (cv s) (store s) (tr s) (remarks s) (Frame (sets (fixed s)) c).

    Lemma counting_rel : forall c1 c2 s1 s2, srel z s1 s2 -> srel z (counting c1 s1) (counting c2 s2).
    Proof.
      intros c1 c2 s1 s2 (C & [[M [Fr _]] S] & T). split; [exact C | split; [split; [split; [exact M |] | exact S] | exact T]].
      split; [exact Fr | discriminate].
    Qed.

    Theorem noninterference_counts : forall c1 c2 n1 n2 pc1 pc2 env1 env2 s1 s2 e,
      same_label z pc1 pc2 -> permits pol e = true ->
      lsrel pol z env1 env2 -> srel z s1 s2 ->
      rrel pol z
        (eval (F := F) H n1 pc1 env1 (counting c1 s1) e) (eval (F := F) H n2 pc2 env2 (counting c2 s2) e).
    Proof.
      intros c1 c2 n1 n2 pc1 pc2 env1 env2 s1 s2 e D P R S. apply noninterference_general; auto using counting_rel.
    Qed.

    (** Branches that run at the same time, each begun where the [par] begins, and
        ended by the count at whichever call, in either run at another one: an
        observer sees of each branch the same, or of one run a beginning of what it
        sees of the other. *)
    Theorem noninterference_races : forall pc1 pc2 env1 env2 s1 s2 es i e,
      same_label z pc1 pc2 -> forallb (permits pol) es = true ->
      lsrel pol z env1 env2 -> srel z s1 s2 -> nth_error es i = Some e ->
      forall c1 c2 n1 n2,
      rrel pol z
        (do_fork (eval (F := F) H n1) pc1 env1 (counting c1 s1) e) (do_fork (eval (F := F) H n2) pc2 env2 (counting c2 s2) e).
    Proof.
      intros pc1 pc2 env1 env2 s1 s2 es i e D P R S E c1 c2 n1 n2.
      assert (Pe : permits pol e = true) by (rewrite forallb_forall in P; apply P; eapply nth_error_In; eauto).
      unfold do_fork. apply rrel_restore; [apply S |]. apply noninterference_general; auto.
      apply srel_conv; [| apply counting_rel; exact S].
      assert (C : crel z (cv s1) (cv s2)) by apply S. simpl.
      destruct C as [[C A] | [A B]]; [| right; split; simpl; apply join_false_l; auto].
      destruct D as [[<- D] | [D1 D2]]; [left | right; split; simpl; apply join_false_r; auto].
      rewrite C. split; auto. simpl. apply join_true. rewrite <- C. auto.
    Qed.
  End General.

  (** ** Runs one after the other on a store *)

  (** What an observer cannot tell apart at the end of a run, it cannot tell
      apart at the beginning of the next, whatever initial values are declared, if
      it cannot tell the sets of [among] apart that the next run begins with.
      With the theorems above this holds for any number of runs, each in a world
      and at a time of its own. *)
  Theorem next_run_related : forall z f1 f2 inits s1 s2, frel z f1 f2 ->
    srel z s1 s2 -> srel z (next_run H f1 inits s1) (next_run H f2 inits s2).
  Proof.
    intros z f1 f2 inits s1 s2 Fr (_ & [_ S] & _). split; [| split; [split; [split |] |]]; auto.
    - left. split; auto. apply bot_flows.
    - intros l A. simpl. rewrite (S l A). reflexivity.
  Qed.

  (** ** Programs without reclassification: every observer *)

  Theorem noninterference : forall (z : L) n1 n2 pc env1 env2 s1 s2 e V1 V2 s1' s2',
    (forall ax, policy H ax = false) ->
    lsrel no_axis z (prelude H) (prelude H) -> tools_keep H no_axis z ->
    permits no_axis e = true ->
    lsrel no_axis z env1 env2 -> srel z s1 s2 ->
    eval (F := F) H n1 pc env1 s1 e = (Val V1, s1') ->
    eval (F := F) H n2 pc env2 s2 e = (Val V2, s2') ->
    agree z V1 V2 s1' s2'.
  Proof.
    intros z n1 n2 pc env1 env2 s1 s2 e V1 V2 s1' s2' G PR TK P R S E1 E2.
    apply (noninterference_values no_axis z) with (7 := S) (8 := E1) (9 := E2); auto.
    - discriminate.
    - intros ax A. rewrite G in A. discriminate.
  Qed.

  (** ** Delegation

      Sets from which only those may choose whose texts the observer sees: no
      endorsement is left that it could see, so a source that is not delegated
      has no say in what it sees, calls included. *)
  Theorem noninterference_delegated : forall (z : L) n1 n2 pc env1 env2 s1 s2 e,
    (forall f c, In c (among H f) -> exists l, chosen_by c = Some l /\ low z l) ->
    (forall f, approve H f = false) ->
    (forall f p, tool_policy H f = Some p -> permits no_axis p = true) ->
    (forall l, data_permits no_axis (from_label H l) = true) ->
    (forall ax, policy H ax = false) ->
    lsrel no_axis z (prelude H) (prelude H) -> permits no_axis e = true ->
    lsrel no_axis z env1 env2 -> srel z s1 s2 ->
    rrel no_axis z (eval (F := F) H n1 pc env1 s1 e) (eval (F := F) H n2 pc env2 s2 e).
  Proof.
    intros z n1 n2 pc env1 env2 s1 s2 e D A T Fl G PR P R S.
    apply noninterference_general; auto.
    - discriminate.
    - intros ax X. rewrite G in X. discriminate.
    - split; [| split; [exact T | split; [exact Fl |]]].
      + intros f X. rewrite A in X. discriminate.
      + intros f c I. right. left. eauto.
    - destruct (flows pc z) eqn:X; [left | right]; auto.
  Qed.

  (** ** The insulated forms *)

  (** Programs that endorse do not leak secrets: for an observer whom only
      secrecy restricts, endorsement does not matter. *)
  Theorem noninterference_insulated_secrecy :
    forall (z : L) n1 n2 pc env1 env2 s1 s2 e V1 V2 s1' s2',
    (forall i, flows i (integ F z) = true) ->
    policy H Declassify = false ->
    lsrel only_endorse z (prelude H) (prelude H) -> tools_keep H only_endorse z ->
    permits only_endorse e = true ->
    lsrel only_endorse z env1 env2 -> srel z s1 s2 ->
    eval (F := F) H n1 pc env1 s1 e = (Val V1, s1') ->
    eval (F := F) H n2 pc env2 s2 e = (Val V2, s2') ->
    agree z V1 V2 s1' s2'.
  Proof.
    intros z n1 n2 pc env1 env2 s1 s2 e V1 V2 s1' s2' T G PR TK P R S E1 E2.
    apply (noninterference_values only_endorse z) with (7 := S) (8 := E1) (9 := E2); auto.
    - intros [] A; [| discriminate]. apply secrecy_observer_insulated; auto.
    - intros [] A; auto. congruence.
  Qed.

  (** Dually, programs that declassify do not let untrusted data into trusted
      data. *)
  Theorem noninterference_insulated_integrity :
    forall (z : L) n1 n2 pc env1 env2 s1 s2 e V1 V2 s1' s2',
    (forall s, flows s (secr F z) = true) ->
    policy H Endorse = false ->
    lsrel only_declassify z (prelude H) (prelude H) -> tools_keep H only_declassify z ->
    permits only_declassify e = true ->
    lsrel only_declassify z env1 env2 -> srel z s1 s2 ->
    eval (F := F) H n1 pc env1 s1 e = (Val V1, s1') ->
    eval (F := F) H n2 pc env2 s2 e = (Val V2, s2') ->
    agree z V1 V2 s1' s2'.
  Proof.
    intros z n1 n2 pc env1 env2 s1 s2 e V1 V2 s1' s2' T G PR TK P R S E1 E2.
    apply (noninterference_values only_declassify z) with (7 := S) (8 := E1) (9 := E2); auto.
    - intros [] A; [discriminate |]. apply integrity_observer_insulated; auto.
    - intros [] A; auto. congruence.
  Qed.

  (** ** [fork] against the rule it replaces *)

  (** The LLMbda paper refuses [fork] unless [pc] flows to the conversation's
      label, and does not relabel the copy.  Whatever that rule accepts gives
      the same result here. *)
  Definition paper_fork (ev : L -> list (lval L) -> state L -> term -> result L)
      (pc : L) (env : list (lval L)) (s : state L) (e : term) : result L :=
    if flows pc (clab (cv s)) then restore (cv s) (ev pc env s e)
    else (Err (join pc (clab (cv s))) "fork refused", s).

  Theorem fork_conservative : forall ev pc env s e,
    flows pc (clab (cv s)) = true -> do_fork ev pc env s e = paper_fork ev pc env s e.
  Proof.
    intros ev pc env [[lc ms ls td] st t rs] e A. unfold do_fork, paper_fork. simpl in *. rewrite A.
    replace (join lc pc) with lc; [reflexivity |].
    apply flows_antisym; [apply join_l |]. apply join_true. split; auto. apply flows_refl.
  Qed.
End Flow.
