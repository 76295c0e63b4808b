(** * Confinement

    What runs under [pc] has effects at or above [pc] only: its result or
    error carries a label above [pc]; the conversation is unchanged or was and
    is labeled above [pc]; the store changes only at labels above [pc]; the
    trace grows by requests on channels above [pc], calls that somebody
    approves excepted: they are above it in secrecy.  This holds for every
    term, reclassification included, and at every amount of fuel. *)

Require Import List String QArith Bool Lia.
Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp.
Import ListNotations.

Section Confinement.
  Context {L : lattice} {F : factoring L}.
  Variable H : host L.

  (** Where what runs under [pc] may be heard.  Approval vouches for integrity. *)
  Definition above (pc l : L) : Prop :=
    flows pc l = true \/ ((exists f, approve H f = true) /\ flows (mix F Endorse l pc) l = true).

  Lemma mix_flows : forall a b c, flows (mix F Endorse a b) c = flows (integ F a) (integ F c) && flows (secr F b) (secr F c).
  Proof. intros. simpl. rewrite (flows_factor L F), integ_paired, secr_paired. reflexivity. Qed.

  Lemma above_weaken : forall pc pc' l, flows pc pc' = true -> above pc' l -> above pc l.
  Proof.
    intros pc pc' l W [A | [E A]]; [left; eapply flows_trans; eauto | right; split; auto].
    rewrite mix_flows in *. rewrite (flows_factor L F), andb_true_iff in W.
    apply andb_true_iff in A. apply andb_true_iff. split; [apply A |].
    eapply flows_trans; [apply W | apply A].
  Qed.

  Lemma above_join_l : forall pc a b, above pc a -> above pc (join a b).
  Proof.
    intros pc a b [A | [E A]]; [left; apply flows_join_l; auto | right; split; auto].
    rewrite mix_flows in *. apply andb_true_iff in A. apply andb_true_iff. split; [apply flows_refl |].
    pose proof (join_l a b) as J. rewrite (flows_factor L F), andb_true_iff in J.
    eapply flows_trans; [apply A | apply J].
  Qed.

  Lemma admits_above : forall f l b, admits (F := F) H f l b = true -> above l b.
  Proof.
    intros f l b A. unfold admits in A. destruct (approve H f) eqn:E; [right | left]; eauto.
  Qed.

  Definition state_conf (pc : L) (s s' : state L) : Prop :=
    (cv s' = cv s \/
     (flows pc (clab (cv s)) = true /\ flows pc (clab (cv s')) = true)) /\
    ((remarks s' = remarks s /\ fixed s' = fixed s) /\
     forall l, flows pc l = false -> store s' l = store s l) /\
    (exists t, tr s' = t ++ tr s /\
       Forall (fun ev => above pc (channel ev)) t).

  Definition outcome_conf (pc : L) (o : outcome L) : Prop :=
    match o with
    | Val V => flows pc (label_of V) = true
    | Err l _ => flows pc l = true
    | Out => True
    end.

  Definition confined (pc : L) (s : state L) (r : result L) : Prop :=
    outcome_conf pc (fst r) /\ state_conf pc s (snd r).

  (** ** The relation on states is a preorder, antitone in [pc] *)

  Lemma state_conf_refl : forall pc s, state_conf pc s s.
  Proof. intros. repeat split; auto. exists []. split; auto. Qed.

  Lemma state_conf_trans : forall pc s1 s2 s3,
    state_conf pc s1 s2 -> state_conf pc s2 s3 -> state_conf pc s1 s3.
  Proof.
    intros pc s1 s2 s3 (C & [M S] & t & T & A) (C' & [M' S'] & t' & T' & A').
    split; [| split; [split |]].
    - destruct C as [C | [? ?]], C' as [C' | [? ?]]; rewrite ?C, ?C' in *; auto.
    - destruct M, M'. split; congruence.
    - intros k E. rewrite S', S; auto.
    - exists (t' ++ t). split.
      + rewrite T', T, app_assoc. reflexivity.
      + apply Forall_app. auto.
  Qed.

  Lemma state_conf_weaken : forall pc pc' s s',
    flows pc pc' = true -> state_conf pc' s s' -> state_conf pc s s'.
  Proof.
    intros pc pc' s s' W (C & [M S] & t & T & A). split; [| split; [split; [exact M |] |]].
    - destruct C as [C | [? ?]]; auto. right. split; eapply flows_trans; eauto.
    - intros l E. apply S. destruct (flows pc' l) eqn:E'; auto.
      rewrite (flows_trans L _ _ _ W E') in E. discriminate.
    - exists t. split; auto. eapply Forall_impl; [|exact A].
      simpl. intros ev E. eapply above_weaken; eauto.
  Qed.

  Lemma confined_weaken : forall pc pc' s r,
    flows pc pc' = true -> confined pc' s r -> confined pc s r.
  Proof.
    intros pc pc' s [o s'] W [O S]. split.
    - destruct o; simpl in *; auto; eapply flows_trans; eauto.
    - eapply state_conf_weaken; eauto.
  Qed.

  Lemma confined_after : forall pc s s' r,
    state_conf pc s s' -> confined pc s' r -> confined pc s r.
  Proof. intros pc s s' [o s''] S [O S']. split; auto. eapply state_conf_trans; eauto. Qed.

  Lemma confined_bind : forall pc s r k,
    confined pc s r ->
    (forall V s', flows pc (label_of V) = true -> state_conf pc s s' ->
       confined pc s' (k V s')) ->
    confined pc s (bind r k).
  Proof.
    intros pc s [[V | l m |] s'] k [O S] K; simpl in *; try (split; auto; fail).
    eapply confined_after; eauto.
  Qed.

  (** ** Single steps *)

  Lemma label_of_raise : forall l (V : lval L), label_of (raise l V) = join l (label_of V).
  Proof. intros l []. reflexivity. Qed.

  Lemma conf_set_conv : forall pc c s,
    flows pc (clab (cv s)) = true -> flows pc (clab c) = true ->
    state_conf pc s (set_conv c s).
  Proof. intros. repeat split; auto. exists []. split; auto. Qed.

  Lemma conf_log_above : forall pc l r s, above pc l -> state_conf pc s (log l r s).
  Proof.
    intros. repeat split; auto. exists [Event l r]. split; auto.
  Qed.

  Lemma conf_log : forall pc l r s, flows pc l = true -> state_conf pc s (log l r s).
  Proof. intros. apply conf_log_above. left. auto. Qed.

  Lemma conf_logs : forall pc t s, Forall (fun ev => flows pc (channel ev) = true) t -> state_conf pc s (logs t s).
  Proof.
    intros pc t s A. repeat split; auto. exists t. split; auto.
    eapply Forall_impl; [| exact A]. left. auto.
  Qed.

  Lemma conf_set_account : forall pc l a s, flows pc l = true -> state_conf pc s (set_account l a s).
  Proof.
    intros pc l a s E. repeat split; auto.
    - intros l' E'. simpl. unfold same. destruct (flows l l') eqn:X; auto.
      rewrite (flows_trans L _ _ _ E X) in E'. discriminate.
    - exists []. split; auto.
  Qed.

  Lemma confined_restore : forall pc c s r,
    cv s = c ->
    confined pc (set_conv c s) r ->
    confined pc s (restore c r).
  Proof.
    intros pc c s [o s'] E [O (C & [M S] & T)]. split; auto. simpl in *.
    split; [left; auto | split; auto].
  Qed.

  (** Running in another conversation and coming back. *)
  Lemma confined_isolated : forall pc c s r,
    confined pc (set_conv c s) r -> confined pc s (restore (cv s) r).
  Proof.
    intros pc c s [o s'] [O (C & [M S] & T)]. split; auto. simpl in *.
    split; [left; auto | split; auto].
  Qed.

  Lemma label_deep : forall V : lval L, flows (label_of V) (deep_label V) = true.
  Proof. intros []. simpl. apply join_l. Qed.

  Ltac lab := repeat (rewrite ?label_of_raise; simpl;
    first [ assumption
          | apply flows_refl
          | apply join_l
          | apply flows_join_l; solve [lab]
          | apply flows_join_r; solve [lab] ]).

  Ltac done := solve [split; [ simpl; lab | try apply state_conf_refl; auto ]].

  Lemma wrong_label : forall (p : L) (V1 V2 : lval L),
    flows (join p (join (label_of V1) (label_of V2)))
                        (join p (join (deep_label V1) (deep_label V2))) = true.
  Proof.
    intros p V1 V2. apply join_mono_r. apply join_true. split.
    - apply flows_join_l, label_deep.
    - apply flows_join_r, label_deep.
  Qed.

  Lemma get_conf : forall pc V1 V2 s,
    confined (join pc (join (label_of V1) (label_of V2))) s (do_get H pc V1 V2, s).
  Proof.
    intros. split; [| apply state_conf_refl]. unfold do_get.
    pose proof (wrong_label pc V1 V2) as W. destruct V1 as [l1 v1], V2 as [l2 v2]. simpl in W.
    destruct v1 as [k1 | c vs |]; try apply W.
    { assert (N : forall k2, outcome_conf (join pc (join l1 l2))
        (if no_payload k1 k2 then Val (Lab (join pc (join l1 l2)) (VK KNull))
         else Err (join pc (join (deep_label (Lab l1 (VK k1))) (deep_label (Lab l2 v2)))) "not a structure")).
      { intros k2. destruct (no_payload k1 k2); try apply W. apply flows_refl. }
      destruct v2 as [k2 | |]; try (destruct k1; apply W). specialize (N k2).
      destruct k1; try exact N. destruct k2; try exact N.
      destruct (char_at H s0 q); [apply flows_refl | apply W]. }
    destruct v2 as [k | |]; try apply W.
    destruct (select c k) as [i |]; try apply W.
    destruct (nth_error vs i); try apply W. simpl. rewrite label_of_raise. apply join_l.
  Qed.

  Lemma set_conf : forall pc V1 V2 V3 s,
    confined (join pc (join (label_of V1) (label_of V2))) s (do_set pc V1 V2 V3, s).
  Proof.
    intros. split; [| apply state_conf_refl]. unfold do_set.
    pose proof (wrong_label pc V1 V2) as W. destruct V1 as [l1 v1], V2 as [l2 v2]. simpl in W.
    destruct v1 as [| c vs |]; try apply W. destruct v2 as [k | |]; try apply W.
    destruct (update c k V3 vs) as [[? ?] |]; try apply W. apply flows_refl.
  Qed.

  Section Helpers.
    Variable ev : L -> list (lval L) -> state L -> term -> result L.
    Hypothesis EV : forall pc env s e, confined pc s (ev pc env s e).

    Lemma evals_conf : forall es pc env c acc s,
      confined pc s (evals ev pc env c acc s es).
    Proof.
      induction es; intros; simpl.
      - done.
      - apply confined_bind; auto.
    Qed.

    Lemma with_label_conf : forall pc env s e k,
      (forall n l s', confined pc s' (k n l s')) ->
      confined pc s (with_label H ev pc env s e k).
    Proof.
      intros. unfold with_label. apply confined_bind; auto. intros.
      destruct (to_label H (strip V)); auto. done.
    Qed.

    Lemma accept_conf : forall pc l d s, flows pc l = true -> confined pc s (accept H l d s).
    Proof.
      intros. unfold accept. destruct (data_permits (policy H) d); done.
    Qed.

    Lemma fill_label : forall n f args k t path l, label_of (fill H n f args k t path l) = l.
    Proof.
      intros [|] f args k t path l; simpl; auto. destruct (content H f args k path _); auto.
    Qed.

    Lemma see_above : forall k (l : L) V, flows l (fst (see l k V)) = true.
    Proof.
      induction k as [g | m | path k IH | path k IH]; intros l V; simpl; try apply flows_refl;
        destruct (way path V) as [m [W |]]; (eapply flows_trans; [| apply IH]); apply join_l.
    Qed.

    Lemma primitive_conf : forall pc p V s, confined pc s (primitive H pc p V s).
    Proof.
      intros pc p V s. unfold primitive. pose proof (see_above (prim H p) pc V) as A.
      destruct (see pc (prim H p) V) as [l [g | m]]; simpl in A.
      - destruct (given_permits (policy H) g); (split; [| apply state_conf_refl]); simpl; rewrite ?label_of_raise; lab.
      - split; [exact A | apply state_conf_refl].
    Qed.

    Lemma confirmed_conf : forall pc u d f a args s, flows pc u = true -> flows pc d = true ->
      confined pc s (confirmed (F := F) H pc u d f a args s).
    Proof.
      intros pc u d f a args s U D. unfold confirmed. eapply confined_after with (s' := log u (RDecided f u) s).
      - apply conf_log. exact U.
      - apply accept_conf. destruct a; lab.
    Qed.

    Lemma perform_conf : forall pc u d e f args kept k ch s, flows pc u = true -> flows pc d = true -> flows pc e = true ->
      above pc ch -> confined pc s (perform H u d e f args kept k ch s).
    Proof.
      intros pc u d e f args kept k ch s U A A' B. unfold perform.
      assert (C : state_conf pc s (log ch (RTool f args k) (log (join ch u) (RDecided f u) s))).
      { apply state_conf_trans with (s2 := log (join ch u) (RDecided f u) s); [apply conf_log; lab | apply conf_log_above; auto]. }
      destruct (refusal H _ _ _ s); [split; auto; simpl; lab |].
      destruct (if completed H f _ _ _ then tool H f _ _ _ else None) as [n |].
      - set (V := fill H n f kept k (tr s) [] _).
        assert (Lv : flows pc (label_of V) = true) by (unfold V; rewrite fill_label; lab).
        destruct (misfit H f (strip V)); split; auto. simpl. lab.
      - split; auto. simpl. lab.
    Qed.

    Lemma approval_conf : forall pc d l f a args ls ch s k, flows pc d = true -> flows pc l = true ->
      (forall s', confined pc s' (k s')) -> confined pc s (approval H d l f a args ls ch s k).
    Proof.
      intros pc d l f a args ls ch s k A B K. unfold approval. destruct a; auto.
      assert (C : state_conf pc s (log (join ch d) (RApprove f args ls) s)) by (apply conf_log; lab).
      destruct (refusal H _ _ _ s); [split; auto; simpl; lab |]. eapply confined_after; eauto.
    Qed.

    Lemma decide_conf : forall pc l f Vs lws ch s k,
      (forall d s', flows pc d = true -> confined pc s' (k d s')) ->
      confined pc s (decide (F := F) H ev pc l f Vs lws ch s k).
    Proof.
      intros pc l f Vs lws ch s k K. unfold decide. destruct (tool_policy H f) as [p |]; [| apply K; lab].
      apply confined_bind; [eapply confined_isolated; apply EV |]. intros W s1 _ _.
      destruct (admits H f _ ch); [| done].
      destruct (strip W) as [[| [] | | |] | |]; try done. apply K. lab.
    Qed.

    Lemma counted_conf : forall pc u f args s k,
      (forall s', confined pc s' (k s')) -> confined pc s (counted u f args s k).
    Proof.
      intros pc u f args s k K. unfold counted. destruct (stops (fixed s) f u args (tr s)); [| apply K].
      split; [exact I | apply state_conf_refl].
    Qed.

    Lemma called_conf : forall pc f V k s, confined pc s (called (F := F) H ev pc f V k s).
    Proof.
      intros. unfold called.
      destruct (admits H f pc (tool_pc H f)) eqn:E; [| done].
      destruct (foreign f V); [done |].
      destruct (refused H f s _ _); [done |].
      destruct (tool_accepts H f (strip V)); [done |].
      destruct (misformed s _ (forms H f)) as [[b m] |]; [done |].
      apply decide_conf. intros d s1 D. apply counted_conf. intros s2. apply approval_conf; [lab | lab |]. intros s3.
      apply counted_conf. intros s4. destruct (confirms H f); [apply confirmed_conf; lab |].
      apply perform_conf; [lab | lab | lab |]. apply above_join_l. eapply admits_above; eauto.
    Qed.

    Lemma call_conf : forall pc f V s, confined pc s (call (F := F) H ev pc f V s).
    Proof.
      intros. unfold call. eapply confined_after with (s' := log pc (RKey f) s).
      - apply conf_log; lab.
      - apply called_conf.
    Qed.

    Lemma apply_conf : forall V1 V2 s,
      confined (label_of V1) s (apply (F := F) H ev V1 V2 s).
    Proof.
      intros [l v] V2 s. unfold apply.
      destruct v as [k | c vs | env e]; auto; try done.
      destruct c as [| | | | | n | f]; try done; [| apply call_conf]. destruct vs as [| Vf [| ? ?]]; try done.
      destruct n as [[|n] |]; auto. done.
    Qed.

    Lemma send_conf : forall pc V s, confined pc s (do_send H pc V s).
    Proof.
      intros. unfold do_send. destruct (flows pc (clab (cv s))) eqn:E; [| done].
      split; simpl. lab. apply conf_set_conv; auto. simpl. lab.
    Qed.

    Lemma clear_conf : forall pc s, confined pc s (do_clear pc s).
    Proof.
      intros. unfold do_clear. destruct (flows pc (clab (cv s))) eqn:E; [| done].
      split; simpl. lab. apply conf_set_conv; auto. simpl. lab.
    Qed.

    Lemma say_conf : forall pc m s, flows pc (clab (cv s)) = true -> state_conf pc s (say m s).
    Proof. intros. apply conf_set_conv; auto. Qed.

    Lemma say_lab : forall m (s : state L), clab (cv (say m s)) = clab (cv s).
    Proof. reflexivity. Qed.

    Lemma expect_conf : forall pc ms s, flows pc (clab (cv s)) = true -> state_conf pc s (expect ms s).
    Proof. intros. apply conf_set_conv; auto. Qed.

    Lemma expect_lab : forall ms (s : state L), clab (cv (expect ms s)) = clab (cv s).
    Proof. reflexivity. Qed.

    Lemma tell_lab : forall s : state L, clab (cv (tell s)) = clab (cv s).
    Proof.
      intros s. unfold tell. destruct (remarks s); auto.
      destruct (Nat.eqb (told (cv s)) _); reflexivity.
    Qed.

    Lemma tell_tr : forall s : state L, tr (tell s) = tr s.
    Proof.
      intros s. unfold tell. destruct (remarks s); auto.
      destruct (Nat.eqb (told (cv s)) _); reflexivity.
    Qed.

    Lemma tell_conf : forall s, state_conf (clab (cv s)) s (tell s).
    Proof.
      intros s. unfold tell. destruct (remarks s); [apply state_conf_refl |].
      destruct (Nat.eqb (told (cv s)) _); [apply state_conf_refl |].
      apply conf_set_conv; simpl; lab.
    Qed.

    Lemma question_conf : forall pc m s k,
      (forall reply s', clab (cv s') = clab (cv s) -> confined (clab (cv s)) s' (k reply s')) ->
      confined (clab (cv s)) s (question H pc m s k).
    Proof.
      intros pc m s k K. unfold question.
      assert (C : state_conf (clab (cv s)) s (expect [] (log (clab (cv s)) (RModel m (msgs (cv s))) s))).
      { eapply state_conf_trans; [apply conf_log; lab | apply expect_conf; simpl; lab]. }
      destruct (refusal H _ _ _ s); [split; [simpl; lab | exact C] |].
      destruct (model H m _ _) as [reply | e].
      - eapply confined_after; [| apply K; reflexivity].
        eapply state_conf_trans; [exact C |].
        eapply state_conf_trans; [apply say_conf | apply expect_conf]; simpl; lab.
      - split; [simpl; lab | exact C].
    Qed.

    Lemma ask_conf : forall pc m s k,
      (forall reply s', clab (cv s') = clab (cv s) -> confined (clab (cv s)) s' (k reply s')) ->
      confined (clab (cv s)) s (ask H pc m s k).
    Proof.
      intros pc m s k K. unfold ask. eapply confined_after; [apply tell_conf |].
      rewrite <- (tell_lab s). apply question_conf. rewrite tell_lab. exact K.
    Qed.

    Lemma listen_conf : forall pc m s k,
      (forall reply s', clab (cv s') = clab (cv s) -> confined (clab (cv s)) s' (k reply s')) ->
      confined (clab (cv s)) s (listen H pc m s k).
    Proof.
      intros pc m s k K. unfold listen.
      destruct (if offers H m then later (cv s) else []) as [| reply rest];
        [destruct (unasked H m); [apply K; reflexivity | apply ask_conf; auto] |].
      eapply confined_after; [| apply K; reflexivity].
      eapply state_conf_trans; [apply say_conf | apply expect_conf]; simpl; lab.
    Qed.

    Lemma run_reply_conf : forall lc reply s, confined lc s (run_reply H ev lc reply s).
    Proof.
      intros. unfold run_reply. destruct (parse H reply); [| done].
      destruct (permits (policy H) t); [| done].
      apply confined_bind; auto. intros. done.
    Qed.

    Lemma recv_data_conf : forall n pc m s,
      confined (clab (cv s)) s (recv_data H pc m n s).
    Proof.
      induction n as [| n IH]; intros; simpl; apply listen_conf; intros reply s' E;
        (destruct (decode H m reply); [apply accept_conf; lab |]).
      - split; [simpl; lab |]. apply expect_conf. rewrite E. lab.
      - rewrite <- E. eapply confined_after;
          [eapply state_conf_trans; [apply expect_conf; lab | apply say_conf; simpl; lab] |].
        rewrite <- (expect_lab [] s'). rewrite <- (say_lab s0 (expect [] s')). apply IH.
    Qed.

    (** Whatever [recv] does is at or above the label of the conversation. *)
    Lemma recv_conf_conv : forall pc m md s,
      confined (clab (cv s)) s (do_recv H ev pc m md s).
    Proof.
      intros. unfold do_recv. destruct (flows pc (clab (cv s))) eqn:E; [| done].
      destruct (flows (clab (cv s)) (clearance H m)); [| done].
      destruct md; [| apply recv_data_conf].
      apply ask_conf. intros. apply run_reply_conf.
    Qed.

    Lemma recv_conf : forall pc m md s, confined pc s (do_recv H ev pc m md s).
    Proof.
      intros. destruct (flows pc (clab (cv s))) eqn:E.
      - eapply confined_weaken; [exact E | apply recv_conf_conv].
      - unfold do_recv. rewrite E. done.
    Qed.

    Lemma fork_conf : forall pc env s e, confined pc s (do_fork ev pc env s e).
    Proof. intros. unfold do_fork. eapply confined_isolated; apply EV. Qed.

    Lemma fresh_conf : forall pc env s e, confined pc s (do_fresh ev pc env s e).
    Proof. intros. unfold do_fresh. eapply confined_isolated; apply EV. Qed.

    Lemma try_conf : forall all pc env s e1 e2, confined pc s (do_try H ev all pc env s e1 e2).
    Proof.
      intros. unfold do_try. pose proof (EV pc env s e1) as C.
      destruct (ev pc env s e1) as [[V | l m |] s']; auto.
      destruct (flows l pc && (all || negb (is_timeout H m))); auto.
      eapply confined_after; [apply C | apply EV].
    Qed.

    Lemma close_conf : forall pc s r, confined pc s r -> confined pc s (close pc r).
    Proof.
      assert (C : forall pc s, state_conf pc s (log pc REnd s)) by (intros; apply conf_log; apply flows_refl).
      intros pc s [[V | l m |] s'] [O S]; unfold close; simpl in *; try (split; auto; fail).
      - split; auto. eapply state_conf_trans; eauto.
      - destruct (flows l pc); split; auto. eapply state_conf_trans; eauto.
    Qed.

    Lemma within_conf : forall n pc env s e, confined pc s (do_within ev n pc env s e).
    Proof.
      intros. apply close_conf. eapply confined_after; [| apply EV].
      apply conf_log. apply flows_refl.
    Qed.

    Lemma remember_conf : forall pc k V s, confined pc s (do_remember H pc k V s).
    Proof.
      intros. unfold do_remember.
      destruct (flows (join pc (deep_label V)) (key_label H k)) eqn:E; [| done].
      apply join_true in E. destruct E as [E _].
      destruct (has_type H (key_type H k) (strip V)); [| done].
      destruct (refusal H _ _ _ s); [split; [exact E | apply conf_log; exact E] |].
      split; simpl. lab.
      eapply state_conf_trans; [apply conf_log | apply conf_set_account]; auto.
    Qed.

    Lemma recall_conf : forall pc k s, confined pc s (do_recall H pc k s).
    Proof.
      intros. unfold do_recall.
      assert (C : state_conf pc s (log (join pc (key_label H k)) (RRecall k) s)).
      { apply conf_log. lab. }
      destruct (refusal H _ _ _ s); [split; [simpl; lab | exact C] |].
      destruct (entry k _) as [[t d] |]; [| split; [simpl; lab | exact C]].
      eapply confined_after; [| apply accept_conf; lab].
      destruct (flows pc (key_label H k)) eqn:E; auto.
      eapply state_conf_trans; [exact C | apply conf_set_account; auto].
    Qed.

    Lemma pars_conf : forall es pc env acc s, confined pc s (pars ev pc env acc s es).
    Proof.
      induction es as [| e es IH]; intros.
      - simpl. done.
      - rewrite pars_cons. pose proof (fork_conf pc env s e) as Ck.
        destruct (do_fork ev pc env s e) as [[V | l m |] s'] eqn:D;
          destruct Ck as [O S]; simpl in *.
        + eapply confined_after; [exact S | apply IH].
        + destruct (flows l pc); [| split; auto].
          specialize (IH pc env acc s').
          destruct (pars ev pc env acc s' es) as [[V | l' m' |] s''];
            destruct IH as [O' S']; simpl in *;
            assert (state_conf pc s s'') by (eapply state_conf_trans; eauto).
          * split; auto.
          * destruct (flows l' pc); split; auto.
          * split; auto.
        + split; auto.
    Qed.

    Lemma each_conf : forall pc V1 V2 s,
      confined (join pc (label_of V2)) s (do_each ev pc V1 V2 s).
    Proof.
      intros pc V1 [l v] s. unfold do_each. simpl.
      assert (B : confined (join pc l) s (Err (join pc (deep_label (Lab l v))) "not a list"%string, s)).
      { split; [| apply state_conf_refl]. simpl. apply join_mono_r. apply join_l. }
      destruct v as [| [] |]; try exact B. apply pars_conf.
    Qed.

    Lemma verdict_conf : forall pc V Vb s again,
      (forall l, flows pc l = true -> confined l s (again l)) ->
      confined (join pc (label_of Vb)) s (verdict pc V Vb s again).
    Proof.
      intros pc V [l v] s again A. unfold verdict. simpl.
      destruct v as [[| [] | | |] | |]; try done. apply A. lab.
    Qed.

    Lemma ev_above : forall pc pc' env s e, flows pc pc' = true -> confined pc s (ev pc' env s e).
    Proof. intros. eapply confined_weaken; eauto. Qed.

    Lemma forgotten_conf : forall pc m s s',
      state_conf pc (set_remarks m s) s' -> state_conf pc s (forgotten pc (remarks s) s').
    Proof.
      intros pc m s s' (C & [M S] & T). simpl in *. unfold forgotten.
      assert (K : forall t, fixed t = fixed s' -> store t = store s' -> tr t = tr s' ->
        (cv t = cv s \/ (flows pc (clab (cv s)) = true /\ flows pc (clab (cv t)) = true)) ->
        state_conf pc s (set_remarks (remarks s) t)).
      { intros t E0 E1 E2 D. split; [exact D | split; [split; [split; [reflexivity | simpl; rewrite E0; apply M] |] |]]; simpl.
        - rewrite E1. exact S.
        - rewrite E2. exact T. }
      destruct (flows pc (clab (cv s')) && _) eqn:E; apply K; auto.
      apply andb_true_iff in E. destruct E as [E _].
      right. simpl. split; auto. destruct C as [C | [C _]]; auto. rewrite <- C. exact E.
    Qed.

    Lemma retry_conf : forall pc m s attempt,
      (forall s', confined pc s' (attempt s')) -> confined pc s (retry pc m s attempt).
    Proof.
      intros pc m s attempt A. unfold retry, forget.
      destruct (A (set_remarks (m :: remarks s) s)) as [O S]. split; [exact O |].
      eapply forgotten_conf. exact S.
    Qed.

    Lemma judge_conf : forall env p k pc V s again,
      (forall l m s', flows pc l = true -> confined l s' (again l m s')) ->
      confined pc s (judge H ev env p k pc V s again).
    Proof.
      intros. unfold judge. apply confined_bind; auto. intros Vp s2 _ _.
      destruct (is_function _); [split; [apply flows_refl | apply state_conf_refl] |].
      apply confined_bind; auto. intros Vb s3 _ _.
      eapply confined_weaken; [| apply verdict_conf]; [lab |]. auto.
    Qed.

    Lemma guard_conf : forall n k env e p pc s, confined pc s (guard H ev env e p k n pc s).
    Proof.
      induction n; intros k env e p pc s; simpl; apply confined_bind; auto; intros V s1 E _;
        (eapply confined_weaken; [| apply judge_conf]; [lab |]); intros; auto using retry_conf.
      done.
    Qed.
  End Helpers.

  (** ** The theorem *)

  Theorem confinement : forall n pc env s e, confined pc s (eval (F := F) H n pc env s e).
  Proof.
    induction n as [| n IH]; intros; [split; simpl; auto using state_conf_refl |].
    assert (UP : forall pc pc' env s e, flows pc pc' = true ->
              confined pc s (eval (F := F) H n pc' env s e))
      by (intros; eapply confined_weaken; eauto).
    destruct e; simpl.
    - (* variable *) destruct (nth_error env i); done.
    - done.
    - (* application *)
      apply confined_bind; auto. intros V1 s1 E1 _.
      apply confined_bind; auto. intros V2 s2 _ _.
      eapply confined_weaken; [exact E1 |]. apply apply_conf; auto.
    - done.
    - apply confined_bind; [apply evals_conf; auto |]. intros V s' A _.
      split; [exact A |]. unfold prepare. simpl. destruct c; try apply state_conf_refl.
      destruct V as [l [| |]]; try apply state_conf_refl.
      apply conf_logs. apply Forall_forall. intros ev I. apply in_map_iff in I. destruct I as (m & <- & _). simpl in *. lab.
    - (* get *)
      apply confined_bind; auto. intros [l1 v1] s1 _ _.
      apply confined_bind; auto. intros [l2 v2] s2 _ _.
      eapply confined_weaken; [| apply get_conf]. lab.
    - (* set *)
      apply confined_bind; auto. intros [l1 v1] s1 _ _.
      apply confined_bind; auto. intros [l2 v2] s2 _ _.
      apply confined_bind; auto. intros V3 s3 _ _.
      eapply confined_weaken; [| apply set_conf]. lab.
    - (* prim *)
      apply confined_bind; auto. intros V s1 _ _. apply primitive_conf.
    - (* case *)
      apply confined_bind; auto. intros [l v] s1 _ _.
      destruct (chosen v bs d); [| done]. apply UP. lab.
    - apply guard_conf; auto.
    - (* choose *)
      eapply confined_after with (s' := log pc (RSample p) s).
      + apply conf_log. apply flows_refl.
      + destruct (refusal H _ _ _ s); [split; [apply flows_refl | apply state_conf_refl] |].
        destruct (sample H p _); auto.
    - (* call *) apply confined_bind; auto. intros. apply call_conf; auto.
    - apply recall_conf.
    - apply confined_bind; auto. intros. apply remember_conf.
    - apply confined_bind; auto. intros. apply send_conf.
    - apply recv_conf; auto.
    - apply fork_conf; auto.
    - apply fresh_conf; auto.
    - apply clear_conf.
    - (* label *) apply with_label_conf; auto. intros. apply UP. lab.
    - (* test *)
      apply with_label_conf; auto. intros m l s'.
      apply confined_bind; [apply UP; lab |]. intros. done.
    - (* assert *)
      apply with_label_conf; auto. intros m l s'.
      apply confined_bind; auto. intros V s2 _ _.
      destruct (flows m pc && flows (label_of V) l); done.
    - (* endorse, declassify *)
      apply with_label_conf; auto. intros m l s'.
      apply confined_bind; [apply UP; lab |]. intros [l2 v] s2 _ _. done.
    - (* try *)
      apply with_label_conf; auto. intros m l s'.
      eapply confined_weaken; [| apply try_conf; auto]. lab.
    - apply within_conf; auto.
    - (* fail *) apply confined_bind; auto. intros. done.
    - (* check *) apply confined_bind; auto. intros V s1 E _.
      destruct (has_type H t (strip V)); [split; auto using state_conf_refl | done].
    - apply pars_conf; auto.
    - (* each *)
      apply confined_bind; auto. intros V1 s1 _ _.
      apply confined_bind; auto. intros V2 s2 _ _.
      eapply confined_weaken; [| apply each_conf; auto]. lab.
  Qed.

  (** The form of the statement in the calculus: a result is labeled above
      [pc], and the conversation is unchanged or labeled above [pc] before
      and after. *)
  Corollary confinement_result : forall n pc env s e V s',
    eval (F := F) H n pc env s e = (Val V, s') ->
    flows pc (label_of V) = true /\
    (cv s' = cv s \/ (flows pc (clab (cv s)) = true /\ flows pc (clab (cv s')) = true)).
  Proof.
    intros n pc env s e V s' E. generalize (confinement n pc env s e). rewrite E.
    intros [O (C & _)]. auto.
  Qed.

  (** Nothing that happens can be taken back: the trace only grows. *)
  Corollary trace_grows : forall n pc env s e,
    exists t, tr (snd (eval (F := F) H n pc env s e)) = t ++ tr s.
  Proof.
    intros. destruct (confinement n pc env s e) as [_ (_ & _ & t & T & _)]. eauto.
  Qed.
End Confinement.
