(** * Runs that choose, race, or follow one another

    What an observer learns of two worlds after a choice that it sees; of branches
    that get answers by what other branches have asked; and of a plan that is
    written after another one has failed. *)

Require Import List String QArith Bool.
Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp.
Require Import Entail.Thm.Confinement Entail.Thm.Relation Entail.Thm.Noninterference Entail.Thm.Flow Entail.Thm.Planned.
Import ListNotations.
Local Open Scope list_scope.

(** ** The same choices

    Of tools whose calls an observer sees, a set is an endorsement: what is chosen
    shows.  What else shows, is nothing: runs that make the same choices look alike. *)

Section Choices.
  Context {L : lattice} {F : factoring L}.
  Variable H : host L.
  Variable z : L.

  (** The choices, as far as the observer sees: whether it has seen so much and these
      arguments may come next.  There is one choice at each point. *)
  Definition choices := name -> list (event L) -> list data -> bool.
  Definition single (o : choices) : Prop :=
    forall f seen a1 a2, o f seen a1 = true -> o f seen a2 = true -> a1 = a2.

  (** A run as far as the calls of some tools are those: up to the first one that
      chooses otherwise. *)
  Definition choosing (agreed : name -> bool) (o : choices) (s : state L) : state L :=
    State (cv s) (store s) (tr s) (remarks s)
      (Frame (sets (fixed s))
         (fun f u args t => stops (fixed s) f u args t || (agreed f && negb (o f (visible z t) args)))).

  Lemma choosing_rel : forall agreed o s1 s2, single o -> srel z s1 s2 ->
    @srel_of _ agreed z (choosing agreed o s1) (choosing agreed o s2).
  Proof.
    intros agreed o s1 s2 Si (C & [[M [Fr _]] S] & T). split; [exact C | split; [split; [split; [exact M |] | exact S] | exact T]].
    split; [exact Fr |]. intros f u1 u2 a1 a2 t1 t2 A V E1 E2. simpl in E1, E2.
    apply orb_false_iff in E1, E2. destruct E1 as [_ E1], E2 as [_ E2]. rewrite A in E1, E2. simpl in E1, E2.
    apply negb_false_iff in E1, E2. rewrite V in E1. eapply Si; eauto.
  Qed.

  Section Alike.
    Variable pol : axis -> bool.
    Variable agreed : name -> bool.
    Hypothesis POL : forall ax, pol ax = true -> insulated F z ax.
    Hypothesis GEN : forall ax, policy H ax = true -> pol ax = true.
    Hypothesis PRE : lsrel pol z (prelude H) (prelude H).
    (** Tools with sets may be among those whose choices are agreed on; the observer
        does not see that a choice was refused. *)
    Hypothesis TOOLS : tools_keep_of agreed H pol z.

    (** Two worlds that look the same: as far as the runs choose alike, they look the
        same, in results, errors, conversations, stores and requests. *)
    Theorem noninterference_chosen : forall o n1 n2 pc1 pc2 env1 env2 s1 s2 e, single o ->
      same_label z pc1 pc2 -> permits pol e = true -> lsrel pol z env1 env2 -> srel z s1 s2 ->
      @rrel_of _ agreed pol z
        (eval (F := F) H n1 pc1 env1 (choosing agreed o s1) e) (eval (F := F) H n2 pc2 env2 (choosing agreed o s2) e).
    Proof.
      intros o n1 n2 pc1 pc2 env1 env2 s1 s2 e Si D P R S. pose proof (choosing_rel agreed o _ _ Si S) as S'.
      destruct D as [[-> A] | [A B]].
      - eapply noninterference_low; eauto.
      - eapply high_results with (1 := POL) (2 := TOOLS) (3 := A) (4 := B) (5 := S'); apply confinement.
    Qed.

    (** So does what the observer has seen of each, wherever the runs end. *)
    Corollary chosen_traces : forall o n1 n2 pc env1 env2 s1 s2 e, single o ->
      permits pol e = true -> lsrel pol z env1 env2 -> srel z s1 s2 ->
      let t1 := visible z (tr (snd (eval (F := F) H n1 pc env1 (choosing agreed o s1) e))) in
      let t2 := visible z (tr (snd (eval (F := F) H n2 pc env2 (choosing agreed o s2) e))) in
      (exists u, t2 = u ++ t1) \/ (exists u, t1 = u ++ t2).
    Proof.
      intros o n1 n2 pc env1 env2 s1 s2 e Si P R S t1 t2.
      assert (D : same_label z pc pc) by (unfold same_label; destruct (flows pc z); auto).
      destruct (noninterference_chosen o n1 n2 pc pc env1 env2 s1 s2 e Si D P R S) as [V1 V2 r1 r2 _ Sr | l m r1 r2 _ Sr | o1 o2 r1 r2 _ X | o1 o2 r1 r2 _ X];
        unfold t1, t2; simpl; auto; left; exists []; symmetry; apply Sr.
    Qed.
  End Alike.

  (** Such a run is a beginning of the run without the choices, or the reverse: an
      observer of everything cannot tell more. *)
  Definition every_axis (ax : axis) : bool := true.

  Lemma every_term : forall e, permits every_axis e = true.
  Proof.
    fix IH 1.
    assert (IHs : forall es, forallb (permits every_axis) es = true)
      by (induction es as [| e es IHes]; simpl; [reflexivity | rewrite IH, IHes; reflexivity]).
    destruct e; simpl; rewrite ?IH, ?IHs; try reflexivity.
    induction bs as [| [k b] bs IHbs]; simpl.
    - destruct d; [apply IH | reflexivity].
    - rewrite IH. simpl. exact IHbs.
  Qed.

  Theorem chosen_beginning : forall top agreed o n pc env s e, (forall l : L, flows l top = true) ->
    (forall l, data_permits every_axis (from_label H l) = true) ->
    lsrel every_axis top (prelude H) (prelude H) -> lsrel every_axis top env env ->
    let t1 := tr (snd (eval (F := F) H n pc env (choosing agreed o s) e)) in
    let t2 := tr (snd (eval (F := F) H n pc env s e)) in
    (exists u, t2 = u ++ t1) \/ (exists u, t1 = u ++ t2).
  Proof.
    intros top agreed o n pc env s e Top Fl PR R t1 t2.
    assert (All : forall t : list (event L), visible top t = t).
    { induction t as [| ev t IH]; simpl; auto. rewrite Top, IH. reflexivity. }
    assert (S : srel top s s).
    { split; [left; auto | split; [split; [split; [reflexivity |] |] | reflexivity]]; auto.
      split; [| discriminate]. intros k. split; auto. left. auto. }
    assert (TK : tools_keep H every_axis top).
    { split; [reflexivity | split; [intros; apply every_term | split; [exact Fl | left; reflexivity]]]. }
    assert (PO : forall ax, every_axis ax = true -> insulated F top ax) by (intros ax _ l1 l2 _; apply Top).
    assert (G : forall ax, policy H ax = true -> every_axis ax = true) by reflexivity.
    assert (D : same_label top pc pc) by (left; auto).
    assert (N := noninterference_counts (F := F) H every_axis top PO G PR TK
      (fun f u args t => stops (fixed s) f u args t || (agreed f && negb (o f (visible z t) args))) (stops (fixed s))
      n n pc pc env env s s e D (every_term e) R S).
    replace (counting (stops (fixed s)) s) with s in N by (destruct s as [c st t rs [se so]]; reflexivity).
    change (counting (fun f u args t => stops (fixed s) f u args t || (agreed f && negb (o f (visible z t) args))) s)
      with (choosing agreed o s) in N.
    unfold t1, t2. destruct N as [V1 V2 r1 r2 _ Sr | l m r1 r2 _ Sr | o1 o2 r1 r2 _ [u X] | o1 o2 r1 r2 _ [u X]]; simpl;
      rewrite ?All in *; eauto; left; exists []; assert (X := proj2 (proj2 Sr)); rewrite !All in X; auto.
  Qed.
End Choices.

(** ** Branches that race

    A branch may get answers that depend on what other branches have asked, if what
    it may see of that at each label is decided there: by its own requests that are
    visible at the label, and by what is the same in both worlds ([meanwhile]). *)

Section Races.
  Context {L : lattice} {F : factoring L}.

  Definition beside (meanwhile : list (event L) -> list (event L)) (H : host L) : host L :=
    let all t := meanwhile t ++ t in {|
    model := fun m ms t => model H m ms (all t);
    further := further H; unasked := unasked H; offers := offers H; parse := parse H; decode := decode H;
    tool_params := tool_params H; tool_accepts := tool_accepts H; tool_key := tool_key H;
    completes := completes H;
    completed := fun f args k t => completed H f args k (all t);
    tool := fun f args k t => tool H f args k (all t);
    content := fun f args k path t => content H f args k path (all t);
    misfit := misfit H; most := most H;
    failure := fun f args k t => failure H f args k (all t);
    states := fun f args k t => states H f args k (all t);
    tool_policy := tool_policy H; approve := approve H; if_refused := if_refused H; confirms := confirms H;
    among := among H; forms := forms H; asking := asking H; anyone := anyone H; from_label := from_label H;
    sample := fun p t => sample H p (all t);
    refuses := fun r t => refuses H r (all t);
    is_timeout := is_timeout H; remark := remark H; char_at := char_at H; prim := prim H; serialize := serialize H;
    to_label := to_label H; tool_pc := tool_pc H; tool_args := tool_args H; tool_res := tool_res H;
    key_label := key_label H; has_type := has_type H; key_type := key_type H;
    now := fun l t => now H l (all t);
    keep := keep H;
    others := fun l t => others H l (all t);
    clearance := clearance H; policy := policy H; prelude := prelude H |}.

  Theorem noninterference_beside : forall meanwhile (H : host L) pol z n1 n2 pc1 pc2 env1 env2 s1 s2 e,
    (forall ax, pol ax = true -> insulated F z ax) -> (forall ax, policy H ax = true -> pol ax = true) ->
    lsrel pol z (prelude H) (prelude H) -> tools_keep H pol z ->
    same_label z pc1 pc2 -> permits pol e = true -> lsrel pol z env1 env2 -> srel z s1 s2 ->
    rrel pol z
      (do_fork (eval (F := F) (beside meanwhile H) n1) pc1 env1 s1 e)
      (do_fork (eval (F := F) (beside meanwhile H) n2) pc2 env2 s2 e).
  Proof.
    intros meanwhile H pol z n1 n2 pc1 pc2 env1 env2 s1 s2 e PO G PR TK D P R S.
    apply (noninterference_races (beside meanwhile H) pol z PO G PR TK pc1 pc2 env1 env2 s1 s2 [e] 0 e D) with
      (c1 := stops (fixed s1)) (c2 := stops (fixed s2)) (n1 := n1) (n2 := n2) in S as X; auto.
    - destruct s1 as [c1 st1 t1 rs1 [se1 so1]], s2 as [c2 st2 t2 rs2 [se2 so2]]. exact X.
    - simpl. rewrite P. reflexivity.
  Qed.
End Races.

(** ** Another plan after an error

    A plan may end with an error that a planner is told; what it writes then runs on
    what the first left: its stores, and all that has happened, by which the world
    answers (recorded answers are used again) and calls are counted. *)

Section Replanned.
  Context {L : lattice} {F : factoring L}.
  Variable H : host L.

  Definition follow (fr : frame L) (s : state L) : state L := State (Conv bot [] [] 0) (store s) (tr s) [] fr.

  (** [may_tell]: the labels of errors that the planner may be told of.  [tells]: what
      it is told, a code and a line.  [plan]: what it writes, nothing if it gives up. *)
  Fixpoint replanned (may_tell : L -> bool) (tells : string -> nat) (plan : list nat -> option term) (n k : nat)
      (told : list nat) (r : result L) : result L :=
    match k, r with
    | S k', (Err l m, s) =>
        if may_tell l then
          match plan (tells m :: told) with
          | Some e => replanned may_tell tells plan n k' (tells m :: told) (eval (F := F) H n bot [] (follow (fixed s) s) e)
          | None => r
          end
        else r
    | _, _ => r
    end.

  Lemma replanned_grows : forall may_tell tells plan n k told s r, grows s r -> grows s (replanned may_tell tells plan n k told r).
  Proof.
    intros may_tell tells plan n k. induction k as [| k IH]; intros told s [[V | l m |] s'] G; simpl; auto.
    destruct (may_tell l); auto. destruct (plan _) as [e |]; auto. apply IH.
    eapply grows_trans with (s' := s'); [exact G |].
    destruct (confinement (F := F) H n bot [] (follow (fixed s') s') e) as [_ (_ & _ & t & T & _)]. exists t. exact T.
  Qed.

  (** An observer who sees the errors that are told sees the same plans in both
      worlds, and no more of their runs than of one. *)
  Theorem noninterference_replanned : forall pol z may_tell tells plan n k,
    (forall ax, pol ax = true -> insulated F z ax) -> (forall ax, policy H ax = true -> pol ax = true) ->
    lsrel pol z (prelude H) (prelude H) -> tools_keep H pol z ->
    (forall l, may_tell l = true -> flows l z = true) ->
    (forall told e, plan told = Some e -> permits pol e = true) ->
    forall told r1 r2, rrel pol z r1 r2 ->
    rrel pol z (replanned may_tell tells plan n k told r1) (replanned may_tell tells plan n k told r2).
  Proof.
    intros pol z may_tell tells plan n k PO G PR TK Te Pl. induction k as [| k IH]; intros told r1 r2 R; [exact R |].
    assert (Stuck : forall o s, stuck z o -> replanned may_tell tells plan n (S k) told (o, s) = (o, s)).
    { intros [V | l m |] s St; simpl in *; auto. destruct (may_tell l) eqn:E; auto. apply Te in E. congruence. }
    destruct R as [V1 V2 s1 s2 RV S | l m s1 s2 A S | o1 o2 s1 s2 St X | o1 o2 s1 s2 St X].
    - apply rrel_val; auto.
    - cbn [replanned]. destruct (may_tell l); [| apply rrel_err; auto].
      destruct (plan (tells m :: told)) as [e |] eqn:E; [| apply rrel_err; auto].
      apply IH. apply noninterference_low; eauto using bot_flows; [constructor |].
      destruct S as (_ & [[_ Fr] St] & T). split; [left; split; [reflexivity | apply bot_flows] |].
      split; [split; [split; [reflexivity | exact Fr] | exact St] | exact T].
    - rewrite (Stuck o1 s1 St). eapply rrel_stuck_left; eauto. apply replanned_grows, grows_refl.
    - rewrite (Stuck o2 s2 St). eapply rrel_stuck_right; eauto. apply replanned_grows, grows_refl.
  Qed.

  (** [at_most] bounds the calls of all these plans together. *)
  Theorem at_most_replanned : forall limit f c may_tell tells plan n k,
    (forall t, Forall (known t) (prelude H)) ->
    limit f = Some c ->
    forall told r, (forall g u args t, stops (fixed (snd r)) g u args t = at_most (F := F) limit g u args t) ->
    (decided (F := F) f (tr (snd r)) <= c)%nat ->
    (decided (F := F) f (tr (snd (replanned may_tell tells plan n k told r))) <= c)%nat.
  Proof.
    intros limit f c may_tell tells plan n k PR Li. induction k as [| k IH]; intros told r St B; [exact B |].
    destruct r as [[V | l m |] s]; try exact B. cbn [replanned]. destruct (may_tell l); [| exact B].
    destruct (plan (tells m :: told)) as [e |]; [| exact B]. apply IH.
    - intros g u args t. destruct (args_prepared (F := F) H PR n bot [] (follow (fixed s) s) e (Forall_nil _)) as [(_ & E & _) _].
      rewrite E. apply St.
    - apply at_most_bound with (limit := limit); auto.
  Qed.
End Replanned.

(** ** The answer

    The value of a run is given away up to a bound, and if it has the form of an
    answer where it is untrusted.  Nothing catches a refusal. *)

Section Answer.
  Context {L : lattice}.

  Definition answered (bound : L) (untrusted : L -> bool) (form : data -> option string) (r : result L) : result L :=
    match r with
    | (Val V, s) =>
        if flows (deep_label V) bound then
          match (if untrusted (deep_label V) then form (strip V) else None) with
          | Some m => (Err (deep_label V) m, s)
          | None => r
          end
        else (Err bound "the answer is not for everybody", s)
    | _ => r
    end.

  Theorem answered_rel : forall pol z bound untrusted form r1 r2, rrel pol z r1 r2 ->
    rrel pol z (answered bound untrusted form r1) (answered bound untrusted form r2).
  Proof.
    intros pol z bound untrusted form r1 r2 R.
    assert (Gr : forall o (s : state L), grows s (answered bound untrusted form (o, s))).
    { intros [V | l m |] s; simpl; auto using grows_refl.
      destruct (flows (deep_label V) bound); auto using grows_refl.
      destruct (if untrusted (deep_label V) then form (strip V) else None); auto using grows_refl. }
    assert (Stuck : forall o (s : state L), stuck z o -> answered bound untrusted form (o, s) = (o, s)) by (intros []; simpl; tauto).
    destruct R as [V1 V2 s1 s2 RV S | l m s1 s2 A S | o1 o2 s1 s2 St X | o1 o2 s1 s2 St X].
    - destruct (lrel_deep _ _ _ _ RV) as [(E1 & E2 & D) | [D1 D2]].
      + simpl. rewrite <- E1, <- E2. destruct (flows (deep_label V1) bound).
        * destruct (if untrusted (deep_label V1) then form (strip V1) else None); [apply rrel_err | apply rrel_val]; auto.
        * apply rrel_err_same; auto. unfold same_label. destruct (flows bound z); auto.
      + assert (K : forall V s, flows (deep_label V) z = false -> flows bound z = false ->
          (exists o, answered bound untrusted form (Val V, s) = (o, s) /\ stuck z o) \/
          answered bound untrusted form (Val V, s) = (Val V, s)).
        { intros V s D B. simpl. destruct (flows (deep_label V) bound); [| left; eexists; split; [reflexivity | exact B]].
          destruct (if untrusted (deep_label V) then form (strip V) else None); [left; eexists; split; [reflexivity | exact D] | auto]. }
        destruct (flows bound z) eqn:B.
        * assert (N : forall V : lval L, flows (deep_label V) z = false -> flows (deep_label V) bound = false).
          { intros V D. destruct (flows (deep_label V) bound) eqn:F; auto. rewrite (flows_trans L _ _ _ F B) in D. discriminate. }
          simpl. rewrite (N V1 D1), (N V2 D2). apply rrel_err; auto.
        * destruct (K V1 s1 D1 eq_refl) as [(o1 & -> & St1) | ->]; [| destruct (K V2 s2 D2 eq_refl) as [(o2 & -> & St2) | ->]].
          -- eapply rrel_stuck_left; [exact St1 | eapply extends_refl; exact S | apply Gr].
          -- apply rrel_right; [exact St2 | eapply srel_sym_extends; exact S].
          -- apply rrel_val; auto.
    - apply rrel_err; auto.
    - rewrite (Stuck o1 s1 St). eapply rrel_stuck_left; eauto.
    - rewrite (Stuck o2 s2 St). eapply rrel_stuck_right; eauto.
  Qed.
End Answer.
