(** * Planned calls use what was prepared

    Every [args] value that an expression gives, wherever it is inside, was
    made by [args{...}] earlier in the run, in sight of whoever sees its parts.  With
    noninterference of traces: an observer of the parts' labels sees the
    same prepared arguments in both worlds, and planned calls use no others. *)

Require Import List String QArith Bool.
Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp.
Require Import Entail.Thm.Confinement Entail.Thm.Relation Entail.Thm.Noninterference.
Import ListNotations.

Section Planned.
  Context {L : lattice} {F : factoring L}.
  Variable H : host L.
  Notation confined := (confined (F := F) H).

  Inductive known (t : list (event L)) : lval L -> Prop :=
  | known_k : forall l k, known t (Lab l (VK k))
  | known_con : forall l c vs, Forall (known t) vs ->
      (forall g fs, c = CArgs g fs -> exists l0,
         In (Event (deep_label (Lab l0 (VCon c vs))) (RArgs g (strip (Lab l0 (VCon c vs))))) t /\
         Forall (fun V => flows l0 (label_of V) = true) vs) ->
      known t (Lab l (VCon c vs))
  | known_clo : forall l env e, Forall (known t) env -> known t (Lab l (VClo env e)).

  Lemma known_more : forall t t', incl t t' -> forall V, known t V -> known t' V.
  Proof.
    intros t t' I. fix IH 2. intros V K. destruct K as [l k | l c vs A B | l env e A]; constructor.
    - clear B. induction A; constructor; auto.
    - intros g fs E. destruct (B g fs E) as (l0 & X & Y). exists l0. auto.
    - induction A; constructor; auto.
  Qed.

  Lemma known_all : forall t t' vs, incl t t' -> Forall (known t) vs -> Forall (known t') vs.
  Proof. intros t t' vs I A. induction A; constructor; eauto using known_more. Qed.

  Lemma known_raise : forall t l V, known t V -> known t (raise l V).
  Proof. intros t l V K. destruct K; simpl; constructor; auto. Qed.

  Lemma known_relabel : forall t l l' v, known t (Lab l v) -> known t (Lab l' v).
  Proof. intros t l l' v K. inversion K; subst; constructor; auto. Qed.

  Lemma plain_args : forall c g fs, plain c <> CArgs g fs.
  Proof. intros [] g fs; simpl; discriminate. Qed.

  Lemma known_wrap : forall t d l, known t (Lab l (wrap d)).
  Proof.
    intros t. fix IH 1. intros [k | c ds | env e] l; simpl; constructor.
    - induction ds; simpl; constructor; auto.
    - intros g fs E. exfalso. eapply plain_args; eauto.
    - induction env; simpl; constructor; auto.
  Qed.

  Lemma known_capture : forall t e env n, Forall (known t) env -> Forall (known t) (capture_from n env e).
  Proof.
    intros t e env n A. revert n. induction A; intros n; simpl; constructor; auto.
    destruct (free n e); auto. constructor.
  Qed.

  Lemma known_nth : forall t vs i V, Forall (known t) vs -> nth_error vs i = Some V -> known t V.
  Proof. intros t vs i V A E. apply nth_error_In in E. rewrite Forall_forall in A. auto. Qed.

  Lemma known_argument : forall t m l fs vs p, Forall (known t) vs -> known t (argument m l fs vs p).
  Proof.
    intros t m l fs vs p A. unfold argument. destruct (position p fs); [| constructor].
    destruct (nth_error vs n) eqn:E; [| constructor]. apply known_raise. eapply known_nth; eauto.
  Qed.

  Lemma known_arguments : forall t m ps V, known t V -> Forall (known t) (arguments m ps V).
  Proof.
    intros t m ps V K. unfold arguments.
    assert (M : forall g : string -> lval L, (forall p, known t (g p)) -> Forall (known t) (map g ps)).
    { intros g G. clear -G. induction ps; simpl; constructor; auto. }
    assert (O : forall l, Forall (known t) (match ps with [_] => [V] | _ => map (fun _ => Lab l (VK KNull)) ps end)).
    { intros l. destruct ps as [| p [| q ps]]; [constructor | repeat constructor; auto | apply M; constructor]. }
    destruct K as [l k | l c vs A B | l env e A]; try apply O. destruct c; try apply O.
    - destruct ps as [| p [| q ps]]; try (apply M; intros; apply known_argument; auto).
      destruct (position p fields); repeat constructor; auto using known_argument.
    - apply M. intros. apply known_argument; auto.
  Qed.

  (** What a planned call calls with was prepared. *)
  Theorem planned_prepared : forall t l g fs vs, known t (Lab l (VCon (CArgs g fs) vs)) ->
    exists ch, In (Event ch (RArgs g (DCon (CRec fs) (map strip vs)))) t /\
      (vs <> [] -> flows ch (joins (map deep_label vs)) = true).
  Proof.
    intros t l g fs vs K. inversion K as [| ? ? ? A B |]; subst. destruct (B g fs eq_refl) as (l0 & I & Lo).
    eexists. split; [exact I |]. intros N. simpl. apply join_true. split; [| apply flows_refl].
    destruct vs as [| V vs]; [congruence |]. inversion Lo; subst. simpl.
    apply flows_join_l. eapply flows_trans; [eassumption | apply label_deep].
  Qed.

  (** ** Evaluation keeps it *)

  Definition kn (s : state L) (r : result L) : Prop :=
    incl (tr s) (tr (snd r)) /\ match fst r with Val V => known (tr (snd r)) V | _ => True end.

  Lemma grows_incl : forall (s : state L) r, grows s r -> incl (tr s) (tr (snd r)).
  Proof. intros s r [t E]. rewrite E. apply incl_appr, incl_refl. Qed.

  Lemma kn_bind : forall (s : state L) r k, kn s r ->
    (forall V s', incl (tr s) (tr s') -> known (tr s') V -> kn s' (k V s')) -> kn s (bind r k).
  Proof.
    intros s [[V | l m |] s'] k [G K] B; simpl in *; try (split; simpl; auto; fail).
    destruct (B V s' G K) as [G' K']. split; auto. eapply incl_tran; eauto.
  Qed.

  Lemma kn_after : forall (s s' : state L) r, incl (tr s) (tr s') -> kn s' r -> kn s r.
  Proof. intros s s' r I [G K]. split; auto. eapply incl_tran; eauto. Qed.

  Lemma kn_err : forall (s s' : state L) l m, incl (tr s) (tr s') -> kn s (Err l m, s').
  Proof. intros. split; simpl; auto. Qed.

  Lemma kn_val : forall (s s' : state L) V, incl (tr s) (tr s') -> known (tr s') V -> kn s (Val V, s').
  Proof. intros. split; simpl; auto. Qed.

  Lemma incl_log : forall l r (s : state L), incl (tr s) (tr (log l r s)).
  Proof. intros. simpl. apply incl_tl, incl_refl. Qed.

  Lemma kn_refl : forall (s : state L) V, known (tr s) V -> kn s (Val V, s).
  Proof. intros. apply kn_val; auto using incl_refl. Qed.
  Lemma kn_err_refl : forall (s : state L) l m, kn s (Err l m, s).
  Proof. intros. apply kn_err. apply incl_refl. Qed.
  Hint Resolve incl_log incl_refl kn_refl kn_err_refl known_raise known_wrap : core.
  Hint Constructors known : core.

  Lemma known_list : forall t l vs, Forall (known t) vs -> known t (Lab l (VCon CList vs)).
  Proof. intros. constructor; auto. discriminate. Qed.
  Lemma known_rec : forall t l fs vs, Forall (known t) vs -> known t (Lab l (VCon (CRec fs) vs)).
  Proof. intros. constructor; auto. discriminate. Qed.
  Hint Resolve known_list known_rec : core.

  Lemma known_fill : forall t n f args k t0 path l, known t (fill H n f args k t0 path l).
  Proof.
    intros t. induction n as [| n IH]; intros f args k t0 path l; simpl; auto.
    destruct (content H f args k path _) as [x | [c specs]]; auto. constructor.
    - assert (A : forall specs before, Forall (known t) before ->
        Forall (known t) (filled H f (fill H n f args k t0) path l before specs)).
      { induction specs0 as [| [m dep] specs0 IHs]; intros before B; simpl; auto.
        apply IHs. apply Forall_app. auto. }
      apply A. auto.
    - intros g fs E. exfalso. eapply plain_args; eauto.
  Qed.

  Lemma accept_kn : forall l d s, kn s (accept H l d s).
  Proof. intros. unfold accept. destruct (data_permits (policy H) d); auto. Qed.
  Hint Resolve accept_kn : core.

  Lemma perform_kn : forall d f args k ch s, kn s (perform H d f args k ch s).
  Proof.
    intros. unfold perform. destruct (refusal H _ _ _ s); [apply kn_err; auto |].
    destruct (tool H f _ _ _); [apply kn_val; auto using known_fill | apply kn_err; auto].
  Qed.

  Lemma approval_kn : forall d f a args ls ch (s : state L) k,
    (forall s', incl (tr s) (tr s') -> kn s' (k s')) -> kn s (approval H d f a args ls ch s k).
  Proof.
    intros d f a args ls ch s k K. unfold approval. destruct a; auto.
    destruct (refusal H _ _ _ s); [apply kn_err; auto |].
    eapply kn_after; [| apply K]; auto.
  Qed.

  Lemma counted_kn : forall pc f ch (s : state L) k, kn s (k s) -> kn s (counted H pc f ch s k).
  Proof. intros. unfold counted. destruct (spent H f _); auto. Qed.

  Section Helpers.
    Variable ev : L -> list (lval L) -> state L -> term -> result L.
    Hypothesis CONF : forall pc env s e, confined pc s (ev pc env s e).
    Hypothesis EV : forall pc env s e, Forall (known (tr s)) env -> kn s (ev pc env s e).
    Hypothesis PRE : forall t, Forall (known t) (prelude H).

    Lemma evals_kn : forall es pc env c acc s,
      Forall (known (tr s)) env -> Forall (known (tr s)) acc -> Forall (fun V => flows pc (label_of V) = true) acc ->
      let r := evals ev pc env c acc s es in
      incl (tr s) (tr (snd r)) /\
      match fst r with
      | Val V => exists vs, V = Lab pc (VCon c vs) /\ Forall (known (tr (snd r))) vs /\
                   Forall (fun V => flows pc (label_of V) = true) vs
      | _ => True
      end.
    Proof.
      induction es as [| e es IH]; intros pc env c acc s A B C; simpl.
      - split; auto. exists (rev acc). split; auto. split; apply Forall_rev; auto.
      - pose proof (EV pc env s e A) as [I K]. pose proof (CONF pc env s e) as [O _].
        destruct (ev pc env s e) as [[V | l m |] s']; simpl in *; auto.
        specialize (IH pc env c (V :: acc) s'). simpl in IH.
        destruct IH as [I' K']; [eapply known_all; eauto | constructor; auto; eapply known_all; eauto | constructor; auto |].
        split; auto. eapply incl_tran; eauto.
    Qed.

    Lemma with_label_kn : forall pc env s e k, Forall (known (tr s)) env ->
      (forall n l s', incl (tr s) (tr s') -> kn s' (k n l s')) -> kn s (with_label H ev pc env s e k).
    Proof.
      intros pc env s e k A K. unfold with_label. apply kn_bind; auto. intros V s' I _.
      destruct (to_label H (strip V)); auto.
    Qed.

    Lemma restore_kn : forall c s r, kn s r -> kn s (restore c r).
    Proof. intros c s [[V | l m |] s'] K; exact K. Qed.

    Lemma set_conv_kn : forall c s r, kn (set_conv c s) r -> kn s r.
    Proof. intros c s r K. exact K. Qed.

    Lemma called_kn : forall pc f V k s, known (tr s) V -> kn s (called (F := F) H ev pc f V k s).
    Proof.
      intros pc f V k s K. unfold called. destruct (admits H f pc (tool_pc H f)); auto. destruct (foreign f V); auto.
      destruct (refused H f s _ _ _); auto. destruct (tool_accepts H f (strip V)); auto.
      unfold decide. destruct (tool_policy H f) as [p |].
      - apply kn_bind.
        + apply restore_kn. eapply set_conv_kn. apply EV. constructor; auto. unfold described. apply known_rec.
          pose proof (known_arguments (tr s) (label_of V) (tool_params H f) V K) as A. simpl.
          generalize (map deep_label (arguments (if admits (F := F) H f (label_of V) (tool_pc H f) then bot else label_of V) (tool_params H f) V)).
          induction A; intros lws; simpl; constructor; auto. unfold shown. apply known_rec. repeat constructor; auto.
        + intros W s1 _ _. destruct (admits H f _ _); auto. destruct (strip W) as [[| [] | | |] | |]; auto.
          apply counted_kn, approval_kn. intros. apply perform_kn.
      - apply counted_kn, approval_kn. intros. apply perform_kn.
    Qed.

    Lemma call_kn : forall pc f V s, known (tr s) V -> kn s (call (F := F) H ev pc f V s).
    Proof.
      intros pc f V s K. unfold call. eapply kn_after; [apply incl_log |]. apply called_kn.
      eapply known_more; [apply incl_log | exact K].
    Qed.

    Lemma apply_kn : forall V1 V2 s, known (tr s) V1 -> known (tr s) V2 -> kn s (apply (F := F) H ev V1 V2 s).
    Proof.
      intros V1 V2 s K1 K2. unfold apply. destruct K1 as [l k | l c vs A B | l env e A]; auto.
      destruct c as [| | | | | n | f]; auto using call_kn. destruct vs as [| Vf [| ? ?]]; auto.
      inversion A; subst.
      assert (X : forall n', known (tr s) (Lab l (VCon (CFix n') [Vf]))) by (intros; constructor; auto; discriminate).
      destruct n as [[| n] |]; auto.
    Qed.

    Lemma fork_kn : forall pc env s e, Forall (known (tr s)) env -> kn s (do_fork ev pc env s e).
    Proof. intros. apply restore_kn. eapply set_conv_kn. apply EV. auto. Qed.

    Lemma pars_kn : forall es pc env acc s, Forall (known (tr s)) env -> Forall (known (tr s)) acc ->
      kn s (pars ev pc env acc s es).
    Proof.
      induction es as [| e es IH]; intros pc env acc s A B; [simpl; apply kn_refl, known_list, Forall_rev; auto |].
      rewrite pars_cons. pose proof (fork_kn pc env s e A) as [I K].
      destruct (do_fork ev pc env s e) as [[V | l m |] s']; simpl in *.
      - eapply kn_after; [exact I |]. apply IH; [eapply known_all; eauto | constructor; auto; eapply known_all; eauto].
      - destruct (flows l pc); [| apply kn_err; auto].
        assert (A' : Forall (known (tr s')) env) by (eapply known_all; eauto).
        assert (B' : Forall (known (tr s')) acc) by (eapply known_all; eauto).
        destruct (IH pc env acc s' A' B') as [I' _].
        destruct (pars ev pc env acc s' es) as [[V | l' m' |] s'']; simpl in I';
          try destruct (flows l' pc); split; simpl; auto; eapply incl_tran; eauto.
      - split; simpl; auto.
    Qed.

    Lemma say_incl : forall m (s : state L), tr (say m s) = tr s.
    Proof. reflexivity. Qed.

    Lemma question_kn : forall pc m s k,
      (forall reply s', incl (tr s) (tr s') -> kn s' (k reply s')) -> kn s (question H pc m s k).
    Proof.
      intros pc m s k K. unfold question.
      destruct (refusal H _ _ _ s); [apply kn_err; simpl; auto using incl_tl, incl_refl |].
      destruct (model H m _ _); [| apply kn_err; simpl; auto using incl_tl, incl_refl].
      eapply kn_after; [| apply K]; simpl; auto using incl_tl, incl_refl.
    Qed.

    Lemma ask_kn : forall pc m s k,
      (forall reply s', incl (tr s) (tr s') -> kn s' (k reply s')) -> kn s (ask H pc m s k).
    Proof.
      intros pc m s k K. unfold ask. apply kn_after with (s' := tell s); [rewrite tell_tr; auto |].
      apply question_kn. intros reply s' I. apply K. rewrite tell_tr in I. auto.
    Qed.

    Lemma recv_data_kn : forall n pc m s, kn s (recv_data H pc m n s).
    Proof.
      induction n as [| n IH]; intros pc m s; simpl; unfold listen;
        (assert (K : forall reply s', incl (tr s) (tr s') -> kn s' (match decode H m reply with
           | inl d => accept H (join pc (clab (cv s))) d s' | inr e => (Err (join pc (clab (cv s))) e, expect [] s') end))
         by (intros; destruct (decode H m reply); auto; apply kn_err; auto)) || idtac.
      - destruct (if offers H m then later (cv s) else []) as [| reply rest].
        + destruct (unasked H m); [destruct (decode H m s0); auto; apply kn_err; auto | apply ask_kn; auto].
        + destruct (decode H m reply); [eapply kn_after; [| apply accept_kn]; auto | apply kn_err; auto].
      - destruct (if offers H m then later (cv s) else []) as [| reply rest].
        + destruct (unasked H m).
          * destruct (decode H m s0); auto. eapply kn_after; [| apply IH]; auto.
          * apply ask_kn. intros reply s' I. destruct (decode H m reply); auto. eapply kn_after; [| apply IH]; auto.
        + destruct (decode H m reply); [eapply kn_after; [| apply accept_kn]; auto |].
          eapply kn_after; [| apply IH]; auto.
    Qed.

    Lemma recv_kn : forall pc m md s, kn s (do_recv H ev pc m md s).
    Proof.
      intros pc m md s. unfold do_recv. destruct (flows pc (clab (cv s))); auto.
      destruct (flows (clab (cv s)) (clearance H m)); auto. destruct md; [| apply recv_data_kn].
      apply ask_kn. intros reply s' _. unfold run_reply.
      assert (Fd : forall m, kn s' (Val (Lab (clab (cv s)) (VCon CList [Lab (clab (cv s)) (VK (KBool false)); Lab (clab (cv s)) (VK (KStr m))])), s'))
        by (intros; apply kn_refl, known_list; repeat constructor).
      destruct (parse H reply); auto. destruct (permits (policy H) t); auto.
      apply kn_bind; [apply EV, PRE |]. intros V s'' I K. apply kn_refl, known_list. repeat constructor; auto.
    Qed.

    Lemma try_kn : forall all pc env s e1 e2, Forall (known (tr s)) env -> kn s (do_try H ev all pc env s e1 e2).
    Proof.
      intros all pc env s e1 e2 A. unfold do_try. pose proof (EV pc env s e1 A) as [I K].
      destruct (ev pc env s e1) as [[V | l m |] s']; simpl in *; [split; auto | | split; simpl; auto].
      destruct (flows l pc && _); [| apply kn_err; auto].
      eapply kn_after; [exact I |]. apply EV. constructor; auto. eapply known_all; eauto.
    Qed.

    Lemma within_kn : forall q pc env s e, Forall (known (tr s)) env -> kn s (do_within ev q pc env s e).
    Proof.
      intros q pc env s e A. unfold do_within, close.
      assert (A' : Forall (known (tr (log pc (RWithin q) s))) env) by (eapply known_all; [| exact A]; apply incl_log).
      pose proof (EV pc env (log pc (RWithin q) s) e A') as [I K].
      destruct (ev pc env _ e) as [[V | l m |] s']; simpl in *.
      - split; simpl; [| eapply known_more; [| exact K]; apply incl_tl, incl_refl].
        apply incl_tl. eapply incl_tran; [| exact I]. apply incl_tl, incl_refl.
      - apply kn_err. eapply incl_tran; [apply incl_tl, incl_refl | eapply incl_tran; [exact I |]].
        destruct (flows l pc); simpl; auto using incl_tl, incl_refl.
      - split; simpl; auto. eapply incl_tran; [| exact I]. apply incl_tl, incl_refl.
    Qed.

    Lemma each_kn : forall pc V1 V2 s, known (tr s) V1 -> known (tr s) V2 -> kn s (do_each ev pc V1 V2 s).
    Proof.
      intros pc V1 V2 s K1 K2. unfold do_each. destruct K2 as [l k | l c vs A B | l env e A]; auto.
      destruct c; auto. apply pars_kn; auto.
    Qed.

    Lemma forgotten_tr : forall pc ms (s : state L), tr (forgotten pc ms s) = tr s.
    Proof. intros. unfold forgotten. destruct (flows pc _ && _); reflexivity. Qed.

    Lemma guard_kn : forall n k env e p pc s, Forall (known (tr s)) env -> kn s (guard H ev env e p k n pc s).
    Proof.
      assert (Judge : forall env p k pc V s again, Forall (known (tr s)) env -> known (tr s) V ->
        (forall pc' m s', incl (tr s) (tr s') -> kn s' (again pc' m s')) -> kn s (judge H ev env p k pc V s again)).
      { intros env p k pc V s again A K Ag. unfold judge. apply kn_bind; auto. intros Vp s2 I2 K2.
        assert (KV : known (tr s2) V) by (eapply known_more; eauto).
        destruct (is_function _).
        - apply kn_refl. unfold guarded. constructor. repeat constructor; auto.
        - apply kn_bind; [apply EV; repeat constructor; auto |]. intros Vb s3 I3 K3. unfold verdict.
          assert (KV3 : known (tr s3) V) by (eapply known_more; eauto).
          destruct Vb as [l [[| [] | | |] | |]]; auto. apply Ag. eapply incl_tran; eauto. }
      induction n as [| n IH]; intros k env e p pc s A; simpl;
        (apply kn_bind; [auto |]; intros V s1 I K; apply Judge;
         [eapply known_all; [exact I | exact A] | auto |]);
        intros pc' m s3 I3; [auto |].
      unfold retry, forget.
      assert (A3 : Forall (known (tr (set_remarks (m :: remarks s3) s3))) env)
        by (eapply known_all; [| exact A]; eapply incl_tran; eauto).
      destruct (IH k env e p pc' (set_remarks (m :: remarks s3) s3) A3) as [I' K'].
      destruct (guard H ev env e p k n pc' _) as [o s4]. cbn [fst snd] in *.
      split; cbn [fst snd]; [rewrite forgotten_tr; exact I' | destruct o; auto; rewrite forgotten_tr; exact K'].
    Qed.
  End Helpers.

  Hypothesis PRE : forall t, Forall (known t) (prelude H).

  (** Whatever a run has, was prepared if it is the arguments of a planned call. *)
  Theorem args_prepared : forall n pc env s e, Forall (known (tr s)) env -> kn s (eval (F := F) H n pc env s e).
  Proof.
    induction n as [| n IH]; intros pc env s e A; [split; simpl; auto |].
    pose proof (confinement (F := F) H n) as C.
    assert (A' : forall s', incl (tr s) (tr s') -> Forall (known (tr s')) env) by (intros; eapply known_all; eauto).
    destruct e; simpl.
    - destruct (nth_error env i) eqn:E; auto. apply kn_refl, known_raise. eapply known_nth; eauto.
    - apply kn_refl. constructor. apply known_capture. auto.
    - apply kn_bind; auto. intros V1 s1 I1 K1. apply kn_bind; auto. intros V2 s2 I2 K2.
      apply apply_kn; auto. eapply known_more; eauto.
    - auto.
    - (* structure *)
      pose proof (evals_kn _ C IH es pc env c [] s A (Forall_nil _) (Forall_nil _)) as X. simpl in X. destruct X as [I K].
      destruct (evals (eval H n) pc env c [] s es) as [[V | l m |] s']; simpl in *; [| split; simpl; auto ..].
      destruct K as (vs & -> & K & Fl). unfold prepare. destruct c;
        try (apply kn_val; auto; constructor; auto; discriminate).
      apply kn_val; [eapply incl_tran; [exact I | apply incl_log] |]. constructor.
      + eapply known_all; [| exact K]. auto.
      + intros g fs E. exists pc. split; auto. inversion E; subst. simpl. left. reflexivity.
    - apply kn_bind; auto. intros V1 s1 I1 K1. apply kn_bind; auto. intros V2 s2 I2 K2.
      assert (K1' : known (tr s2) V1) by (eapply known_more; eauto). unfold do_get.
      destruct K1' as [l k | l c vs B _ | l env' e' B], V2 as [l2 [k2 | |]];
        try (destruct k); try (destruct k2);
        repeat match goal with
        | |- context [char_at H ?a ?b] => destruct (char_at H a b)
        | |- context [no_payload ?a ?b] => destruct (no_payload a b)
        | |- context [select ?a ?b] => destruct (select a b)
        | |- context [nth_error ?a ?b] => destruct (nth_error a b) eqn:?
        end; auto; apply kn_refl, known_raise; eapply known_nth; eauto.
    - apply kn_bind; auto. intros V1 s1 I1 K1. apply kn_bind; auto. intros V2 s2 I2 K2.
      apply kn_bind; [apply IH, A'; eapply incl_tran; eauto |]. intros V3 s3 I3 K3.
      assert (K1' : known (tr s3) V1) by (eapply known_more; [| exact K1]; eapply incl_tran; eauto). unfold do_set.
      destruct K1' as [l k | l c vs B _ | l env' e' B]; auto. destruct V2 as [l2 [k2 | |]]; auto.
      unfold update.
      assert (Sn : forall i (ws : list (lval L)), Forall (known (tr s3)) ws -> forall ws', set_nth i V3 ws = Some ws' -> Forall (known (tr s3)) ws').
      { induction i; intros ws Bw ws' Ew; destruct Bw; simpl in Ew; try discriminate; [inversion Ew; subst; auto |].
        destruct (set_nth i V3 l0) eqn:X; simpl in Ew; inversion Ew; subst. constructor; eauto. }
      destruct (select c k2) as [i |] eqn:Se.
      + destruct (set_nth i V3 vs) eqn:X; simpl; auto. apply kn_refl. constructor; [eapply Sn; eauto |].
        intros g fs ->. simpl in Se. destruct k2; discriminate.
      + destruct c; auto. destruct k2; auto. apply kn_refl, known_rec. apply Forall_app. auto.
    - apply kn_bind; auto. intros V s1 I K. destruct (prim H p (strip V)); auto.
    - apply kn_bind; auto. intros [l v] s1 I K. destruct (chosen v bs d); auto.
    - apply guard_kn; auto.
    - destruct (refusal H _ _ _ s); [apply kn_err; auto |].
      destruct (sample H p _); (eapply kn_after; [| apply IH, A']); auto.
    - apply kn_bind; auto. intros V s1 I K. apply call_kn; auto.
    - unfold do_recall. destruct (refusal H _ _ _ s); [apply kn_err; auto |].
      destruct (entry k _) as [[t d] |]; [| apply kn_val; auto].
      eapply kn_after; [| apply accept_kn]. destruct (flows pc _); simpl; auto using incl_tl, incl_refl.
    - apply kn_bind; auto. intros V s1 I K. unfold do_remember.
      destruct (flows _ _); auto. destruct (has_type H _ _); auto.
      destruct (refusal H _ _ _ s1); [apply kn_err; auto |].
      apply kn_val; [simpl; auto using incl_tl, incl_refl | apply known_rec; constructor].
    - apply kn_bind; auto. intros V s1 I K. unfold do_send. destruct (flows _ _); auto.
      apply kn_val; auto. apply known_rec. constructor.
    - apply recv_kn; auto.
    - apply fork_kn; auto.
    - apply restore_kn. eapply set_conv_kn. apply IH. auto.
    - unfold do_clear. destruct (flows _ _); auto. apply kn_val; auto. apply known_rec. constructor.
    - apply with_label_kn; auto.
    - apply with_label_kn; auto. intros. apply kn_bind; auto.
    - apply with_label_kn; auto. intros. apply kn_bind; auto. intros V s2 _ _.
      destruct (_ && _); auto. apply kn_refl, known_rec. constructor.
    - apply with_label_kn; auto. intros. apply kn_bind; auto. intros [l2 v] s2 _ K. apply kn_refl. eapply known_relabel; eauto.
    - apply with_label_kn; auto. intros. apply try_kn; auto.
    - apply within_kn; auto.
    - apply kn_bind; auto.
    - apply kn_bind; auto. intros V s1 I K. destruct (has_type H _ _); auto.
    - apply pars_kn; auto.
    - apply kn_bind; auto. intros V1 s1 I1 K1. apply kn_bind; auto. intros V2 s2 I2 K2.
      apply each_kn; auto. eapply known_more; eauto.
  Qed.

  (** The arguments of a planned call, where the call is made: an observer of
      their labels has seen them made... *)
  Corollary prepared_in_sight : forall z n pc env s e l g fs vs s',
    Forall (known (tr s)) env -> eval (F := F) H n pc env s e = (Val (Lab l (VCon (CArgs g fs) vs)), s') ->
    vs <> [] -> flows (joins (map deep_label vs)) z = true ->
    exists ch, In (Event ch (RArgs g (DCon (CRec fs) (map strip vs)))) (visible z (tr s')).
  Proof.
    intros z n pc env s e l g fs vs s' A E N Z. destruct (args_prepared n pc env s e A) as [_ K].
    rewrite E in K. simpl in K. destruct (planned_prepared _ _ _ _ _ K) as (ch & I & Lo).
    exists ch. unfold visible. apply filter_In. split; auto. simpl. eapply flows_trans; eauto.
  Qed.

  (** ...and sees the same made in any run that has shown as much: whether the
      call is made may differ between two worlds, what it can be made with does not. *)
  Corollary prepared_in_both : forall z n pc env s e l g fs vs s' s2,
    Forall (known (tr s)) env -> eval (F := F) H n pc env s e = (Val (Lab l (VCon (CArgs g fs) vs)), s') ->
    vs <> [] -> flows (joins (map deep_label vs)) z = true -> extends z s' s2 ->
    exists ch, In (Event ch (RArgs g (DCon (CRec fs) (map strip vs)))) (visible z (tr s2)).
  Proof.
    intros z n pc env s e l g fs vs s' s2 A E N Z [t X].
    destruct (prepared_in_sight z n pc env s e l g fs vs s' A E N Z) as (ch & I).
    exists ch. rewrite X. apply in_or_app. auto.
  Qed.
End Planned.
