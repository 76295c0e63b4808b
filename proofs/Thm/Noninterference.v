(** * Noninterference

    Two runs of one program from equivalent states are related ([rrel]): as
    far as both stay in sight of the observer they agree, on result,
    conversation, store and trace; and where one of them stops (out of fuel, or
    an error above the observer), the trace that the observer has seen is a
    prefix of what it sees of the other. *)

Require Import List String QArith Bool Lia.
Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp.
Require Import Entail.Thm.Confinement Entail.Thm.Relation.
Import ListNotations.

(** Tools keep the rule that [pol] is for the program: an approval is an
    endorsement, policies reclassify no more than the program may, and labels as
    data have no code inside.  A set of [among] is an endorsement, too, but for an
    observer who sees the labels of those who may choose from it, and for one who
    does not see that anyone's choice was refused, and nothing of the calls, or runs
    only that make the same choices. *)
Definition tools_keep_of {L : lattice} (agreed : name -> bool) (H : host L) (pol : axis -> bool) (z : L) : Prop :=
  (forall f, approve H f = true -> pol Endorse = true) /\
  (forall f p, tool_policy H f = Some p -> permits pol p = true) /\
  (forall l, data_permits pol (from_label H l) = true) /\
  (forall f c, In c (among H f) ->
     pol Endorse = true \/ (exists l, chosen_by c = Some l /\ flows l z = true) \/
     ((flows (channel_for H f) z = false \/ agreed f = true) /\ flows (anyone H) z = false)).

Notation tools_keep := (tools_keep_of no_tool).

Section Noninterference.
  Context {L : lattice} {F : factoring L}.
  Variable H : host L.
  Variable z : L.
  Variable pol : axis -> bool.
  Variable agreed : name -> bool.

  (** Reclassification that the program may do is invisible to the observer,
      and generated code may do no more than the program. *)
  Hypothesis POL : forall ax, pol ax = true -> insulated F z ax.
  Hypothesis GEN : forall ax, policy H ax = true -> pol ax = true.
  (** The prelude keeps the same rule. *)
  Hypothesis PRE : lsrel pol z (prelude H) (prelude H).
  Hypothesis TOOLS : tools_keep_of agreed H pol z.

  Notation low l := (flows l z = true).
  Notation high l := (flows l z = false).
  Notation lrel := (lrel pol z).
  Notation vrel := (vrel pol z).
  Notation lsrel := (lsrel pol z).
  Notation same_label := (same_label z).
  Notation srel := (@srel_of _ agreed z).
  Notation rrel := (@rrel_of _ agreed pol z).
  Notation confined := (confined (F := F) H).
  Notation evaluator := (L -> list (lval L) -> state L -> term -> result L).

  Hint Constructors Relation.lrel Relation.vrel Relation.lsrel : core.

  Lemma ext : forall s1 s2, srel s1 s2 -> extends z s1 s2.
  Proof. intros s1 s2 S. exact (extends_refl _ _ _ S). Qed.
  Lemma ext' : forall s1 s2, srel s1 s2 -> extends z s2 s1.
  Proof. intros s1 s2 S. exact (srel_sym_extends _ _ _ S). Qed.
  Hint Resolve ext ext' : core.

  (** Only the trace matters to a run that stops. *)
  Lemma ext_tr : forall s1 s2 t1 t2,
    srel s1 s2 -> tr t1 = tr s1 -> tr t2 = tr s2 -> extends z t1 t2.
  Proof. intros s1 s2 t1 t2 (_ & _ & E) E1 E2. exists []. rewrite E1, E2. auto. Qed.
  Lemma ext_tr' : forall s1 s2 t1 t2,
    srel s1 s2 -> tr t1 = tr s1 -> tr t2 = tr s2 -> extends z t2 t1.
  Proof. intros s1 s2 t1 t2 (_ & _ & E) E1 E2. exists []. rewrite E1, E2. auto. Qed.

  (** ** Runs above the observer *)

  Lemma above_high : forall pc l, above (F := F) H pc l -> high pc -> high l.
  Proof.
    intros pc l [A | [[f E] A]] B; [eapply high_up; eauto |].
    destruct (flows l z) eqn:C; auto.
    rewrite (POL Endorse (proj1 TOOLS _ E) l pc) in B; eauto using flows_trans.
  Qed.

  Lemma not_flows : forall a l, low l -> high a -> flows a l = false.
  Proof.
    intros a l A B. destruct (flows a l) eqn:E; auto.
    rewrite (flows_trans L _ _ _ E A) in B. discriminate.
  Qed.

  Lemma admits_low : forall f l b, low b -> admits (F := F) H f l b = true -> low l.
  Proof.
    intros f l b A B. destruct (flows l z) eqn:C; auto.
    rewrite (above_high _ _ (admits_above _ _ _ _ B) C) in A. discriminate.
  Qed.

  (** A visible bound cannot tell labels apart that the observer cannot. *)
  Lemma admits_same : forall f l1 l2 b, low b -> same_label l1 l2 ->
    admits (F := F) H f l1 b = admits (F := F) H f l2 b.
  Proof.
    intros f l1 l2 b A [[-> _] | [B1 B2]]; auto.
    transitivity false; [| symmetry].
    - destruct (admits H f l1 b) eqn:E; auto. apply admits_low in E; congruence.
    - destruct (admits H f l2 b) eqn:E; auto. apply admits_low in E; congruence.
  Qed.

  Lemma high_state : forall pc1 pc2 s1 s2 s1' s2',
    high pc1 -> high pc2 -> srel s1 s2 ->
    state_conf (F := F) H pc1 s1 s1' -> state_conf (F := F) H pc2 s2 s2' -> srel s1' s2'.
  Proof.
    intros pc1 pc2 s1 s2 s1' s2' A1 A2 (C & [M S] & T) (C1 & [M1 S1] & t1 & T1 & B1) (C2 & [M2 S2] & t2 & T2 & B2).
    assert (K : forall pc l, high pc -> low l -> flows pc l = false).
    { intros pc l A B. destruct (flows pc l) eqn:E; auto.
      rewrite (flows_trans L _ _ _ E B) in A. discriminate. }
    assert (V : forall pc t, high pc -> Forall (fun ev : event L => above (F := F) H pc (channel ev)) t ->
              visible z t = []).
    { intros pc t A B. induction B as [| ev t E B IH]; simpl; auto.
      rewrite (above_high _ _ E A). auto. }
    split; [| split; [split; [split |] |]].
    - unfold crel in *.
      destruct C1 as [-> | [D1 D1']], C2 as [-> | [D2 D2']]; auto;
        right;
        repeat match goal with
               | D : flows pc1 (clab _) = true |- _ => apply high_up with (2 := A1) in D
               | D : flows pc2 (clab _) = true |- _ => apply high_up with (2 := A2) in D
               end;
        destruct C as [[E E'] | [E E']]; split; auto; congruence.
    - destruct M as [M _], M1 as [M1 _], M2 as [M2 _]. congruence.
    - destruct M as [_ M], M1 as [_ M1], M2 as [_ M2]. rewrite M1, M2. exact M.
    - intros k B. rewrite S1, S2; auto.
    - rewrite T1, T2, !visible_app, (V _ _ A1 B1), (V _ _ A2 B2). auto.
  Qed.

  Lemma high_results : forall pc1 pc2 s1 s2 r1 r2,
    high pc1 -> high pc2 -> srel s1 s2 ->
    confined pc1 s1 r1 -> confined pc2 s2 r2 -> rrel r1 r2.
  Proof.
    intros pc1 pc2 s1 s2 [o1 s1'] [o2 s2'] A1 A2 S [O1 C1] [O2 C2].
    apply rrel_high.
    - destruct o1; simpl in *; eauto using high_up.
    - destruct o2; simpl in *; eauto using high_up.
    - eapply high_state with (1 := A1) (2 := A2); eauto.
  Qed.

  Lemma confined_grows : forall pc s r, confined pc s r -> grows s r.
  Proof. intros pc s r [_ (_ & _ & t & T & _)]. exists t. exact T. Qed.

  (** ** Lemmas about the helpers that do not evaluate *)

  Lemma unit_rel : vrel unit_val unit_val.
  Proof. unfold unit_val. auto. Qed.

  Lemma accept_rel : forall l1 l2 d1 d2 s1 s2,
    same_label l1 l2 -> (low l1 -> d1 = d2) -> srel s1 s2 ->
    rrel (accept H l1 d1 s1) (accept H l2 d2 s2).
  Proof.
    intros l1 l2 d1 d2 s1 s2 [[-> A] | [A B]] D S; unfold accept.
    - rewrite (D A). destruct (data_permits (policy H) d2) eqn:E.
      + apply rrel_val; auto. apply lrel_low; auto. apply wrap_rel.
        eapply data_permits_mono; eauto.
      + apply rrel_err; auto.
    - destruct (data_permits (policy H) d1), (data_permits (policy H) d2);
        apply rrel_high; auto.
  Qed.

  Lemma accept_grows : forall l d s, grows s (accept H l d s).
  Proof. intros. unfold accept. destruct (data_permits (policy H) d); apply grows_refl. Qed.

  Lemma joins_true : forall ls (l : L), low (joins ls) -> In l ls -> low l.
  Proof.
    induction ls as [| l' ls IH]; simpl; intros l A I; [contradiction |].
    apply join_true in A. destruct A as [A B]. destruct I as [-> | I]; auto.
  Qed.

  Lemma argument_at_rel : forall vs1 vs2 i, lsrel vs1 vs2 -> lrel (argument_at vs1 i) (argument_at vs2 i).
  Proof.
    intros vs1 vs2 i R. revert i. unfold argument_at. induction R; intros [| i]; simpl; auto using bot_flows.
  Qed.

  (** Sets may be where the program may endorse, or where the observer sees what
      those write who may choose. *)
  Definition seen (c : chooser L) : Prop := pol Endorse = true \/ exists l, chosen_by c = Some l /\ low l.

  Definition all_seen (f : name) : Prop := forall c, In c (among H f) -> seen c.

  Lemma seen_or_hidden : forall f, all_seen f \/ (endorses H f = true /\ (high (channel_for H f) \/ agreed f = true) /\ high (anyone H)).
  Proof.
    intros f.
    assert (G : forall cs, incl cs (among H f) -> (forall c, In c cs -> seen c) \/
      (cs <> [] /\ (high (channel_for H f) \/ agreed f = true) /\ high (anyone H))).
    { induction cs as [| c cs IH]; intros I; [left; intros c [] |].
      destruct (proj2 (proj2 (proj2 TOOLS)) f c (I c (or_introl eq_refl))) as [E | [E | E]].
      3: { right. split; [discriminate | exact E]. }
      all: destruct (IH (fun d Id => I d (or_intror Id))) as [A | (_ & A)];
        [left | right; split; [discriminate | exact A]].
      all: intros d [<- | Id]; [| auto]; unfold seen; auto. }
    destruct (G (among H f) (incl_refl _)) as [A | (N & A)]; [left; exact A | right].
    split; [| exact A]. unfold endorses. destruct (among H f); [congruence | apply orb_true_r].
  Qed.

  Lemma bounds_low : forall f bs i c p, low (bounds_of H f bs i) -> In c (among H f) -> about i c = true ->
    In p (chosen_for c) -> low (bound_at bs p).
  Proof.
    intros f bs i c p A I B Ip. unfold bounds_of in A. apply join_true in A. destruct A as [_ A].
    apply joins_true with (l := joins (map (bound_at bs) (chosen_for c))) in A.
    - eapply joins_true; [exact A |]. apply in_map_iff. eauto.
    - apply in_map_iff. exists c. rewrite B. auto.
  Qed.

  (** What a set admitted to a visible bound is visible. *)
  Lemma admitted_low : forall s bs Ws c p, seen c -> admitted (F := F) s bs Ws c = true ->
    In p (chosen_for c) -> low (bound_at bs p) -> low (deep_label (argument_at Ws p)).
  Proof.
    intros s bs Ws c p E A I B. unfold admitted in A. apply andb_true_iff in A. destruct A as [A _].
    rewrite forallb_forall in A. specialize (A p I). apply andb_true_iff in A. destruct A as [A C].
    destruct E as [E | (l & E & Lo)].
    - apply andb_true_iff in A. destruct A as [A _].
      apply (POL Endorse) with (l1 := bound_at bs p); [exact E |]. eapply flows_trans; eauto.
    - unfold may_choose in C. rewrite E in C. eapply flows_trans; [exact C |]. apply join_true. auto.
  Qed.

  Lemma chosen_low : forall f s bs Ws i, all_seen f -> low (bound_at bs i) ->
    chosen_from (F := F) H f s bs Ws i = true -> low (deep_label (argument_at Ws i)).
  Proof.
    intros f s bs Ws i Se B C. unfold chosen_from in C. apply existsb_exists in C. destruct C as (c & I & C).
    apply andb_true_iff in C. destruct C as [C A]. unfold about in C. apply existsb_exists in C.
    destruct C as (p & Ip & E). apply PeanoNat.Nat.eqb_eq in E. subst i.
    apply admitted_low with (s := s) (bs := bs) (c := c); eauto.
  Qed.

  (** Nor can a set tell apart what its bounds hide. *)
  Lemma admitted_same : forall s1 s2 bs Ws1 Ws2 c p, seen c -> srel s1 s2 -> lsrel Ws1 Ws2 ->
    In p (chosen_for c) -> (forall p, In p (chosen_for c) -> low (bound_at bs p)) ->
    admitted (F := F) s1 bs Ws1 c = admitted (F := F) s2 bs Ws2 c.
  Proof.
    intros s1 s2 bs Ws1 Ws2 c p E S R Ip B.
    assert (V : forall s Ws, admitted (F := F) s bs Ws c = true -> low (fst (sets (fixed s) (from c)))).
    { intros s Ws A. unfold admitted in A. apply andb_true_iff in A. destruct A as [A _].
      rewrite forallb_forall in A. specialize (A p Ip). apply andb_true_iff in A. destruct A as [A _].
      apply andb_true_iff in A. destruct A as [_ A]. eapply flows_trans; eauto. }
    assert (D : forall p, In p (chosen_for c) -> low (deep_label (argument_at Ws1 p)) \/ low (deep_label (argument_at Ws2 p)) ->
      argument_at Ws1 p = argument_at Ws2 p).
    { intros q _ Lo. destruct (lrel_visible _ _ _ _ (argument_at_rel _ _ q R)) as [[X _] | [X Y]]; auto.
      destruct Lo; congruence. }
    assert (G : forall W1 W2, (forall p, In p (chosen_for c) -> argument_at W1 p = argument_at W2 p) ->
      low (fst (sets (fixed s1) (from c))) \/ low (fst (sets (fixed s2) (from c))) ->
      admitted (F := F) s1 bs W1 c = admitted (F := F) s2 bs W2 c).
    { intros W1 W2 X Y. unfold admitted. destruct S as (_ & [[_ [Fr _]] _] & _). destruct (Fr (from c)) as [Fl Fd].
      assert (Lo : low (fst (sets (fixed s1) (from c)))) by (destruct Fl as [[_ Z] | [Z1 Z2]]; auto; destruct Y; congruence).
      destruct Fl as [[Fl _] | [Z _]]; [| congruence]. rewrite Fl, (Fd Lo). f_equal.
      - assert (M : forall ps, incl ps (chosen_for c) ->
          forallb (fun p => flows (mix F Endorse (bound_at bs p) (deep_label (argument_at W1 p))) (bound_at bs p)
            && flows (fst (sets (fixed s2) (from c))) (bound_at bs p)
            && may_choose c (argument_at W1 p) (bound_at bs p)) ps =
          forallb (fun p => flows (mix F Endorse (bound_at bs p) (deep_label (argument_at W2 p))) (bound_at bs p)
            && flows (fst (sets (fixed s2) (from c))) (bound_at bs p)
            && may_choose c (argument_at W2 p) (bound_at bs p)) ps).
        { induction ps as [| q ps IH]; intros I; cbn [forallb]; auto. rewrite (X q), IH; auto.
          - intros r Ir. apply I. right. exact Ir.
          - apply I. left. reflexivity. }
        apply M. intros q Iq. exact Iq.
      - f_equal. apply map_ext_in. intros q Iq. rewrite (X q Iq). reflexivity. }
    destruct (admitted (F := F) s1 bs Ws1 c) eqn:A1.
    - rewrite <- A1. apply G; eauto using admitted_low.
    - destruct (admitted (F := F) s2 bs Ws2 c) eqn:A2; auto.
      rewrite <- A1, <- A2. apply G; eauto using admitted_low.
  Qed.

  Lemma chosen_same : forall f s1 s2 bs Ws1 Ws2 i, all_seen f -> low (bounds_of H f bs i) ->
    srel s1 s2 -> lsrel Ws1 Ws2 ->
    chosen_from (F := F) H f s1 bs Ws1 i = chosen_from (F := F) H f s2 bs Ws2 i.
  Proof.
    intros f s1 s2 bs Ws1 Ws2 i Se B S R. unfold chosen_from.
    assert (M : forall cs, incl cs (among H f) ->
      existsb (fun c => about i c && admitted (F := F) s1 bs Ws1 c) cs =
      existsb (fun c => about i c && admitted (F := F) s2 bs Ws2 c) cs).
    { induction cs as [| c cs IH]; intros I; cbn [existsb]; auto.
      rewrite IH by (intros r Ir; apply I; right; exact Ir). f_equal.
      destruct (about i c) eqn:A; auto. cbn [andb].
      assert (Ic : In c (among H f)) by (apply I; left; reflexivity).
      pose proof A as A'. unfold about in A'. apply existsb_exists in A'. destruct A' as (p & Ip & _).
      eapply admitted_same; eauto using bounds_low. }
    apply M. intros c Ic. exact Ic.
  Qed.

  Lemma accepted_same : forall f s1 s2 bs Ws1 Ws2 i, all_seen f -> low (bounds_of H f bs i) ->
    srel s1 s2 -> lsrel Ws1 Ws2 ->
    accepted (F := F) H f s1 bs Ws1 i = accepted (F := F) H f s2 bs Ws2 i.
  Proof.
    intros f s1 s2 bs Ws1 Ws2 i Se B S R. unfold accepted.
    rewrite (chosen_same f s1 s2 bs Ws1 Ws2 i Se B S R). f_equal. apply admits_same.
    - unfold bounds_of in B. apply join_true in B. apply B.
    - eapply lrel_deep_label. apply argument_at_rel. exact R.
  Qed.

  Lemma arguments_count : forall m (V : lval L) ps, List.length (arguments m ps V) = List.length ps.
  Proof.
    intros m [l v] ps. unfold arguments. destruct v as [k | c vs | env e];
      try destruct c; rewrite ?map_length; auto; destruct ps as [| p [| q ps]]; simpl; rewrite ?map_length; auto.
    destruct (position p fields); auto.
  Qed.

  Lemma lsrel_length : forall vs1 vs2, lsrel vs1 vs2 -> List.length vs1 = List.length vs2.
  Proof. intros vs1 vs2 R. induction R; simpl; auto. Qed.

  Lemma refused_rel : forall f s1 s2 bs vs1 vs2, all_seen f -> srel s1 s2 -> lsrel vs1 vs2 ->
    refused (F := F) H f s1 bs vs1 = refused (F := F) H f s2 bs vs2 \/
    (exists b, refused (F := F) H f s1 bs vs1 = Some b /\ high b) \/
    (exists b, refused (F := F) H f s2 bs vs2 = Some b /\ high b).
  Proof.
    intros f s1 s2 bs vs1 vs2 Se S R. unfold refused. rewrite (lsrel_length _ _ R).
    induction (seq 0 (List.length vs2)) as [| i is IH]; simpl; auto.
    destruct (flows (bounds_of H f bs i) z) eqn:A.
    - rewrite (accepted_same f s1 s2 bs vs1 vs2 i Se A S R).
      destruct (accepted H f s2 bs vs2 i); simpl; auto.
    - destruct (accepted H f s1 bs vs1 i), (accepted H f s2 bs vs2 i); simpl; eauto.
  Qed.

  (** The channel depends on how many parameters there are only. *)
  Lemma channel_of_length : forall (vs1 vs2 : list (lval L)), List.length vs1 = List.length vs2 -> forall bs,
    channel_of bs vs1 = channel_of bs vs2.
  Proof.
    induction vs1; intros [| V2 vs2] E bs; simpl in *; try discriminate; f_equal; auto.
  Qed.

  Lemma arguments_length : forall m m' ps (V : lval L),
    List.length (arguments m ps V) = List.length (arguments m' ps V).
  Proof.
    intros m m' ps [l v]. unfold arguments. destruct v as [| [] |]; rewrite ?map_length; auto.
  Qed.

  Lemma strip_raise : forall m (V : lval L), strip (raise m V) = strip V.
  Proof. intros m []. reflexivity. Qed.

  Lemma arguments_strip : forall m m' ps (V : lval L),
    map strip (arguments m ps V) = map strip (arguments m' ps V).
  Proof.
    intros m m' ps [l v]. unfold arguments.
    assert (A : forall fs vs p, strip (argument m l fs vs p) = strip (argument m' l fs vs p)).
    { intros. unfold argument. destruct (position p fs); auto. destruct (nth_error vs n); auto.
      rewrite !strip_raise. auto. }
    destruct v as [| [] |]; auto. rewrite !map_map. auto using map_ext.
  Qed.

  Lemma channel_of_rel : forall vs1 vs2, lsrel vs1 vs2 -> forall bs,
    channel_of bs vs1 = channel_of bs vs2.
  Proof.
    intros vs1 vs2 R. induction R; intros bs; simpl; f_equal; auto.
  Qed.

  Lemma refused_none : forall f s bs Ws, refused (F := F) H f s bs Ws = None ->
    forall i, (i < List.length Ws)%nat -> accepted (F := F) H f s bs Ws i = true.
  Proof.
    intros f s bs Ws R i N. unfold refused in R.
    destruct (find (fun i => negb (accepted H f s bs Ws i)) (seq 0 (List.length Ws))) eqn:E; [discriminate |].
    apply find_none with (x := i) in E; [apply negb_false_iff in E; exact E |]. apply in_seq. lia.
  Qed.

  Lemma channel_bound : forall (vs : list (lval L)) bs i, (i < List.length vs)%nat ->
    flows (bound_at bs i) (channel_of bs vs) = true.
  Proof.
    induction vs as [| V vs IH]; intros bs i N; simpl in N; [lia |]. simpl. unfold bound_at in *.
    destruct i as [| i].
    - destruct bs; simpl; apply join_l.
    - apply flows_join_r. replace (nth (S i) bs bot) with (nth i (tl bs) bot); [apply IH; lia |].
      destruct bs; simpl; auto. destruct i; auto.
  Qed.

  Lemma joins_low : forall Ws : list (lval L), (forall i, (i < List.length Ws)%nat -> low (deep_label (argument_at Ws i))) ->
    low (joins (map deep_label Ws)).
  Proof.
    induction Ws as [| W Ws IH]; intros A; simpl; auto using bot_flows. apply join_true. split.
    - apply (A 0%nat). simpl. lia.
    - apply IH. intros i N. apply (A (S i)). simpl. lia.
  Qed.

  Lemma accepted_low : forall f s bs Ws i, all_seen f -> low (bound_at bs i) ->
    accepted (F := F) H f s bs Ws i = true -> low (deep_label (argument_at Ws i)).
  Proof.
    intros f s bs Ws i Se B A. unfold accepted in A. apply orb_true_iff in A.
    destruct A as [A | A]; eauto using admits_low, chosen_low.
  Qed.

  (** Arguments that a visible channel admitted are visible. *)
  Lemma channel_args : forall f s vs bs, all_seen f ->
    refused (F := F) H f s bs vs = None -> low (channel_of bs vs) -> low (joins (map deep_label vs)).
  Proof.
    intros f s vs bs Se A B. apply joins_low. intros i N. eapply accepted_low; [exact Se | |].
    - eapply flows_trans; [apply channel_bound; exact N | exact B].
    - eapply refused_none; eauto.
  Qed.

  (** What a low answer depends on is the same in both runs. *)
  Lemma refusal_low : forall ch l r s1 s2,
    low l -> srel s1 s2 -> refusal H ch l r s1 = refusal H ch l r s2.
  Proof.
    intros ch l r s1 s2 A S. unfold refusal. rewrite (visible_low _ _ _ _ A (proj2 (proj2 S))). auto.
  Qed.

  Lemma same_label_self : forall l, same_label l l.
  Proof. intros l. destruct (flows l z) eqn:E; [left | right]; auto. Qed.

  Lemma perform_grows : forall u d e f args kept k ch (s : state L), grows s (perform H u d e f args kept k ch s).
  Proof.
    intros. unfold perform.
    assert (G : forall o, grows s (o, log ch (RTool f args k) (log (join ch u) (RDecided f u) s)))
      by (intros; exists [Event ch (RTool f args k); Event (join ch u) (RDecided f u)]; reflexivity).
    destruct (refusal H _ _ _ s); auto. destruct (if completed H f _ _ _ then tool H f _ _ _ else None); auto.
    destruct (misfit H f _); auto.
  Qed.

  Lemma confirmed_grows : forall pc u d f a args (s : state L), grows s (confirmed (F := F) H pc u d f a args s).
  Proof.
    intros. unfold confirmed, accept. destruct (data_permits (policy H) _); exists [Event u (RDecided f u)]; reflexivity.
  Qed.

  Lemma deep_high : forall V, high (label_of V) -> high (deep_label V).
  Proof. intros V A. eapply high_up; [apply label_deep | exact A]. Qed.

  (** ** Primitives *)

  Lemma way_rel : forall path V1 V2, lrel V1 V2 ->
    same_label (fst (way path V1)) (fst (way path V2)) /\
    (low (fst (way path V1)) ->
     match snd (way path V1), snd (way path V2) with
     | Some W1, Some W2 => lrel W1 W2
     | None, None => True
     | _, _ => False
     end).
  Proof.
    induction path as [| i path IH]; intros V1 V2 R; simpl; [split; auto using same_label_self |].
    destruct R as [l1 v1 l2 v2 A B | l v1 v2 A R].
    - assert (K : forall l v, high l -> high (fst (match v with
        | VCon _ vs => match nth_error vs i with
                       | Some W => let (m, r) := way path W in (join l m, r)
                       | None => (l, None) end
        | _ => (l, @None (lval L)) end))).
      { intros l v E. destruct v as [| c vs |]; auto. destruct (nth_error vs i) as [W |]; auto.
        destruct (way path W). simpl. apply join_false_l; auto. }
      pose proof (K l1 v1 A) as K1. pose proof (K l2 v2 B) as K2. split; [right; auto |].
      intros X. congruence.
    - destruct R as [k | c vs1 vs2 R | e env1 env2 P R]; simpl; auto using same_label_self.
      destruct (lsrel_nth _ _ _ _ i R) as [(W1 & W2 & -> & -> & RW) | [-> ->]]; simpl; auto using same_label_self.
      destruct (IH _ _ RW) as [D K]. destruct (way path W1) as [m1 r1], (way path W2) as [m2 r2]. simpl in *.
      split; [apply same_label_join; auto using same_label_self |].
      intros X. apply join_true in X. apply K, X.
  Qed.

  Lemma see_high : forall k (l : L) V, high l -> high (fst (see l k V)).
  Proof. intros k l V A. eapply high_up; [apply see_above | exact A]. Qed.

  Lemma head_rel : forall V1 V2, lrel V1 V2 -> low (label_of V1) -> head_of V1 = head_of V2.
  Proof.
    intros V1 V2 R A. destruct R as [l1 v1 l2 v2 B _ | l v1 v2 _ R]; [simpl in A; congruence |].
    destruct R as [k | c vs1 vs2 R |]; simpl; auto. rewrite (lsrel_length _ _ R). reflexivity.
  Qed.

  (** Two runs see the same, step by step, until they look at something that the
      observer does not see; all that is found then has its label. *)
  Lemma see_rel : forall k l V1 V2, low l -> lrel V1 V2 ->
    (see l k V1 = see l k V2 /\ low (fst (see l k V1))) \/
    (high (fst (see l k V1)) /\ high (fst (see l k V2))).
  Proof.
    induction k as [g | m | path k IH | path k IH]; intros l V1 V2 A R; simpl; auto;
      destruct (way_rel path _ _ R) as [D K];
      destruct (way path V1) as [m1 r1], (way path V2) as [m2 r2]; simpl in D, K;
      (destruct D as [[<- B] | [B1 B2]];
       [| right; split; [destruct r1 | destruct r2]; apply see_high, join_false_r; auto using join_false_l]);
      specialize (K B); destruct r1 as [W1 |], r2 as [W2 |]; try contradiction;
      try (apply IH; auto; apply join_true; auto; fail).
    - destruct (lrel_label _ _ _ _ K) as [[E Lo] | [H1 H2]].
      + rewrite <- E, <- (head_rel _ _ K Lo). apply IH; auto. apply join_true. split; auto. apply join_true; auto.
      + right. split; apply see_high, join_false_r, join_false_r; auto.
    - destruct (lrel_deep _ _ _ _ K) as [(E & E' & Lo) | [H1 H2]].
      + rewrite <- E, <- E'. apply IH; auto. apply join_true. split; auto. apply join_true; auto.
      + right. split; apply see_high, join_false_r, join_false_r; auto.
  Qed.

  Lemma given_rel : forall g V1 V2, lrel V1 V2 ->
    same_label (ways g V1) (ways g V2) /\
    (low (ways g V1) -> given_permits pol g = true -> lrel (give g V1) (give g V2)).
  Proof.
    intros g V1 V2 R. revert g. fix IH 1. intros [d | path | c gs]; simpl.
    - split; auto using same_label_self. intros _ P. apply lrel_low; [apply bot_flows | apply wrap_rel; exact P].
    - destruct (way_rel path _ _ R) as [D K]. split; auto. intros A _. specialize (K A).
      destruct (snd (way path V1)), (snd (way path V2)); try contradiction; auto using bot_flows.
    - assert (IHs : same_label (joins (map (fun g => ways g V1) gs)) (joins (map (fun g => ways g V2) gs)) /\
        (low (joins (map (fun g => ways g V1) gs)) -> forallb (given_permits pol) gs = true ->
         lsrel (map (fun g => give g V1) gs) (map (fun g => give g V2) gs))).
      { induction gs as [| g gs IHgs]; simpl; [split; auto using same_label_self |].
        destruct (IH g) as [D K], IHgs as [Ds Ks]. split; [apply same_label_join; auto |].
        intros A P. apply join_true in A. apply andb_true_iff in P. destruct A, P. auto. }
      destruct IHs as [D K]. split; auto. intros A P. apply lrel_low; [apply bot_flows | auto].
  Qed.

  Lemma given_permits_mono : forall g, given_permits (policy H) g = true -> given_permits pol g = true.
  Proof.
    fix IH 1. intros [d | path | c gs]; simpl; auto.
    - apply data_permits_mono. exact GEN.
    - induction gs as [| g gs IHgs]; simpl; auto. rewrite !andb_true_iff. intros [X Y]. auto.
  Qed.

  Lemma primitive_rel : forall pc p V1 V2 s1 s2, low pc -> lrel V1 V2 -> srel s1 s2 ->
    rrel (primitive H pc p V1 s1) (primitive H pc p V2 s2).
  Proof.
    intros pc p V1 V2 s1 s2 A R S. unfold primitive.
    destruct (see_rel (prim H p) pc _ _ A R) as [[E Lo] | [H1 H2]].
    - rewrite <- E. destruct (see pc (prim H p) V1) as [l [g | m]]; simpl in Lo; [| apply rrel_err; auto].
      destruct (given_rel g _ _ R) as [D K].
      assert (J : same_label (join l (ways g V1)) (join l (ways g V2))) by (apply same_label_join; auto using same_label_self).
      destruct (given_permits (policy H) g) eqn:P; [| apply rrel_err_same; auto].
      destruct J as [[J B] | [B1 B2]].
      + rewrite <- J. apply rrel_val; auto. apply raise_rel; [left; auto |]. apply join_true in B. destruct B as [_ B].
        apply K; auto using given_permits_mono.
      + apply rrel_high; simpl; rewrite ?label_of_raise; auto using join_false_l.
    - destruct (see pc (prim H p) V1) as [l1 [g1 | m1]], (see pc (prim H p) V2) as [l2 [g2 | m2]]; simpl in H1, H2;
        try destruct (given_permits (policy H) g1); try destruct (given_permits (policy H) g2);
        apply rrel_high; simpl; rewrite ?label_of_raise; auto using join_false_l.
  Qed.

  Lemma primitive_grows : forall pc p V (s : state L), grows s (primitive H pc p V s).
  Proof.
    intros. unfold primitive. destruct (see pc (prim H p) V) as [l [g | m]]; [| apply grows_refl].
    destruct (given_permits (policy H) g); apply grows_refl.
  Qed.

  (** ** Answers *)

  Lemma arranged_rel : forall is vs1 vs2, lsrel vs1 vs2 -> lsrel (map (argument_at vs1) is) (map (argument_at vs2) is).
  Proof. induction is; intros vs1 vs2 R; simpl; auto using argument_at_rel. Qed.

  (** They are equal in what is at or below the observer, whatever function of other
      parts the label of a part is. *)
  Lemma stamp_rel : forall l before1 before2 p, low l -> lsrel before1 before2 ->
    same_label (stamp l before1 p) (stamp l before2 p).
  Proof.
    intros l before1 before2 p A R. unfold stamp. apply same_label_join; auto using same_label_self.
    destruct (lsrel_deep _ _ _ _ (arranged_rel (named p) _ _ R)) as [(<- & <- & _) | [B1 B2]]; auto using same_label_self.
    right. split; apply join_false_l; auto.
  Qed.

  Lemma filled_rel : forall fl1 fl2 path l,
    (forall path m1 m2, same_label m1 m2 -> lrel (fl1 path m1) (fl2 path m2)) -> low l ->
    forall labels before1 before2, lsrel before1 before2 ->
    lsrel (filled fl1 path l before1 labels) (filled fl2 path l before2 labels).
  Proof.
    intros fl1 fl2 path l Fl A. induction labels as [| p labels IH]; intros before1 before2 R; simpl; auto.
    apply IH. apply lsrel_app; auto. constructor; auto.
    rewrite (lsrel_length _ _ R). apply Fl. apply stamp_rel; auto.
  Qed.

  Lemma fill_rel : forall f args k t1 t2, visible z t1 = visible z t2 -> forall n path l1 l2, same_label l1 l2 ->
    lrel (fill H n f args k t1 path l1) (fill H n f args k t2 path l2).
  Proof.
    intros f args k t1 t2 T. induction n as [| n IH]; intros path l1 l2 D; simpl.
    - destruct D as [[<- A] | [A B]]; auto.
    - destruct D as [[<- A] | [A B]].
      + rewrite (visible_low _ _ _ _ A T). destruct (content H f args k path (visible l1 t2)) as [x | c labels order]; auto.
        apply lrel_low; auto. constructor. apply arranged_rel, filled_rel; auto.
      + destruct (content H f args k path (visible l1 t1)), (content H f args k path (visible l2 t2)); auto.
  Qed.

  (** The two runs may differ in what only completes the call: then whoever sees the
      answer sees the same, or one of the calls failed above that. *)
  Lemma perform_rel : forall f u1 u2 d1 d2 e1 e2 args1 args2 kept1 kept2 k ch s1 s2,
    same_label u1 u2 -> same_label d1 d2 -> same_label e1 e2 -> (low d1 -> args1 = args2 /\ kept1 = kept2 /\ e1 = e2) ->
    (low e1 -> kept1 = kept2) -> (low ch -> args1 = args2) -> srel s1 s2 ->
    rrel (perform H u1 d1 e1 f args1 kept1 k ch s1) (perform H u2 d2 e2 f args2 kept2 k ch s2).
  Proof.
    intros f u1 u2 d1 d2 e1 e2 args1 args2 kept1 kept2 k ch s1 s2 U D Ee A1 K A2 S. unfold perform.
    assert (S' : srel (log ch (RTool f args1 k) (log (join ch u1) (RDecided f u1) s1))
                      (log ch (RTool f args2 k) (log (join ch u2) (RDecided f u2) s2))).
    { apply srel_log; auto using same_label_self; [intros C; f_equal; auto |].
      apply srel_log; auto using same_label_self.
      - apply same_label_join; auto using same_label_self.
      - intros C. apply join_true in C. destruct U as [[<- _] | [U _]]; auto. destruct C. congruence. }
    set (r := tool_res H f).
    (* What becomes of a call that the world does not refuse. *)
    set (answered := fun d e own args kept (s : state L) =>
      match (if completed H f args k (visible (join r own) (tr s)) then tool H f kept k (visible (join r own) (tr s)) else None) with
      | Some n =>
          let V := fill H n f kept k (tr s) [] (join (join e r) own) in
          match misfit H f (strip V) with Some m => Err (join (join (join d r) own) (deep_label V)) m | None => Val V end
      | None => Err (join (join (join d r) own) (most H f args)) (failure H f args k (visible (join (join r own) (most H f args)) (tr s)))
      end).
    assert (Eq : forall d e own args kept (s s' : state L),
      match (if completed H f args k (visible (join r own) (tr s)) then tool H f kept k (visible (join r own) (tr s)) else None) with
      | Some n =>
          let V := fill H n f kept k (tr s) [] (join (join e r) own) in
          match misfit H f (strip V) with Some m => (Err (join (join (join d r) own) (deep_label V)) m, s') | None => (Val V, s') end
      | None => let m := most H f args in
          (Err (join (join (join d r) own) m) (failure H f args k (visible (join (join r own) m) (tr s))), s')
      end = (answered d e own args kept s, s')).
    { intros. unfold answered. destruct (if completed H f _ _ _ then _ else _); auto. cbv zeta. destruct (misfit H f _); auto. }
    (* A value, or an error above the observer, if what the call depends on is above. *)
    assert (Hi : forall d e own args kept s, high (join (join d r) own) ->
      (exists n, tool H f kept k (visible (join r own) (tr s)) = Some n /\
         answered d e own args kept s = Val (fill H n f kept k (tr s) [] (join (join e r) own))) \/
      stuck z (answered d e own args kept s)).
    { intros d e own args kept s A. unfold answered.
      destruct (completed H f args k _); [| right; simpl; apply join_false_l; exact A].
      destruct (tool H f kept k _) as [n |] eqn:T; [| right; simpl; apply join_false_l; exact A].
      cbv zeta. destruct (misfit H f _); [right; simpl; apply join_false_l; exact A | left; eauto]. }
    (* Everything is above the observer. *)
    assert (Hh : forall d e own args kept s, high (join (join d r) own) -> high (join (join e r) own) ->
      match answered d e own args kept s with Val V => high (label_of V) | _ => stuck z (answered d e own args kept s) end).
    { intros d e own args kept s A B. destruct (Hi d e own args kept s A) as [(n & _ & ->) | X].
      - rewrite fill_label. exact B.
      - destruct (answered d e own args kept s); auto. contradiction. }
    assert (HiA : high (join d1 r) -> high (join d2 r) -> high (join e1 r) -> high (join e2 r) ->
      rrel (perform H u1 d1 e1 f args1 kept1 k ch s1) (perform H u2 d2 e2 f args2 kept2 k ch s2)).
    { intros H1 H2 H3 H4. unfold perform. fold r. cbv zeta. rewrite !Eq.
      destruct (refusal H ch _ _ s1), (refusal H ch _ _ s2); apply rrel_high; auto;
        first [exact H1 | exact H2 | apply Hh; apply join_false_l; assumption]. }
    unfold perform in HiA. fold r in HiA. cbv zeta in *. rewrite !Eq in *.
    destruct (flows r z) eqn:B; [| apply HiA; apply join_false_r; auto].
    destruct D as [[<- D] | [D1 D2]].
    - clear HiA. destruct (A1 D) as (<- & <- & <-).
      assert (Lo : low (join d1 r)) by (apply join_true; auto).
      rewrite (refusal_low ch _ _ _ _ Lo S).
      destruct (refusal H ch _ _ s2); [apply rrel_err; auto |].
      rewrite (visible_low _ _ _ _ B (proj2 (proj2 S))).
      set (own := states H f kept1 k (visible r (tr s2))).
      destruct (flows own z) eqn:O; [| apply rrel_high; auto; apply Hh; apply join_false_r; exact O].
      assert (J : low (join r own)) by (apply join_true; auto).
      assert (Lo' : low (join (join d1 r) own)) by (apply join_true; auto).
      unfold answered. rewrite (visible_low _ _ _ _ J (proj2 (proj2 S))).
      destruct (if completed H f args1 k _ then _ else _) as [n |].
      + cbv zeta. set (V1 := fill H n f kept1 k (tr s1) [] _). set (V2 := fill H n f kept1 k (tr s2) [] _).
        assert (RV : lrel V1 V2) by (apply fill_rel; [apply S | apply same_label_self]).
        destruct (lrel_deep _ _ _ _ RV) as [(D1 & D2 & D3) | [D1 D2]].
        * rewrite <- D1, <- D2. destruct (misfit H f (strip V1)); [| apply rrel_val; auto].
          apply rrel_err; auto. apply join_true. auto.
        * destruct (misfit H f (strip V1)), (misfit H f (strip V2)).
          -- apply rrel_left; [simpl; apply join_false_r; exact D1 | auto].
          -- apply rrel_left; [simpl; apply join_false_r; exact D1 | auto].
          -- apply rrel_right; [simpl; apply join_false_r; exact D2 | auto].
          -- apply rrel_val; auto.
      + set (m := most H f args1). destruct (flows m z) eqn:M.
        * assert (J' : low (join (join r own) m)) by (apply join_true; auto).
          rewrite (visible_low _ _ _ _ J' (proj2 (proj2 S))). apply rrel_err; auto. apply join_true; auto.
        * apply rrel_left; [simpl; apply join_false_r; exact M | auto].
    - destruct Ee as [[<- Le] | [E1 E2]]; [| apply HiA; apply join_false_l; auto].
      clear HiA. specialize (K Le). subst kept2.
      set (own := states H f kept1 k (visible r (tr s1))).
      replace (states H f kept1 k (visible r (tr s2))) with own
        by (unfold own; rewrite (visible_low _ _ _ _ B (proj2 (proj2 S))); reflexivity).
      destruct (refusal H ch _ _ s1).
      { destruct (refusal H ch _ _ s2); (apply rrel_left; [simpl; apply join_false_l; exact D1 | auto]). }
      destruct (refusal H ch _ _ s2); [apply rrel_right; [simpl; apply join_false_l; exact D2 | auto] |].
      assert (Q1 : high (join (join d1 r) own)) by (apply join_false_l, join_false_l; exact D1).
      assert (Q2 : high (join (join d2 r) own)) by (apply join_false_l, join_false_l; exact D2).
      destruct (flows own z) eqn:O; [| apply rrel_high; auto; apply Hh; auto; apply join_false_r; exact O].
      assert (J : low (join r own)) by (apply join_true; auto).
      destruct (Hi d1 e1 own args1 kept1 s1 Q1) as [(n1 & T1 & ->) | X]; [| apply rrel_left; auto].
      destruct (Hi d2 e1 own args2 kept1 s2 Q2) as [(n2 & T2 & ->) | X]; [| apply rrel_right; auto].
      rewrite (visible_low _ _ _ _ J (proj2 (proj2 S))) in T1. rewrite T1 in T2. inversion T2; subst n2.
      apply rrel_val; auto. apply fill_rel; [apply S | apply same_label_self].
  Qed.

  (** A confirmation: what is asked for is the same in both runs, or the value that
      is given is above the observer. *)
  Lemma confirmed_rel : forall f pc u1 u2 d1 d2 a1 a2 args1 args2 s1 s2,
    same_label u1 u2 -> same_label d1 d2 -> (low d1 -> args1 = args2 /\ a1 = a2) ->
    (a1 = true -> approve H f = true) -> (a2 = true -> approve H f = true) -> srel s1 s2 ->
    rrel (confirmed (F := F) H pc u1 d1 f a1 args1 s1) (confirmed (F := F) H pc u2 d2 f a2 args2 s2).
  Proof.
    intros f pc u1 u2 d1 d2 a1 a2 args1 args2 s1 s2 U D A E1 E2 S. unfold confirmed. set (r := tool_res H f).
    assert (S' : srel (log u1 (RDecided f u1) s1) (log u2 (RDecided f u2) s2)).
    { apply srel_log; auto. intros C. destruct U as [[<- _] | [U _]]; auto. congruence. }
    assert (Hi : forall (a : bool) d, (a = true -> approve H f = true) -> high (join d r) ->
      high (if a then join pc (mix F Endorse bot (join d r)) else join d r)).
    { intros a d E B. destruct a; auto. apply join_false_r.
      destruct (flows (mix F Endorse bot (join d r)) z) eqn:X; auto.
      rewrite (POL Endorse (proj1 TOOLS _ (E eq_refl)) _ _ X) in B. discriminate. }
    assert (J : same_label (join d1 r) (join d2 r)) by (apply same_label_join; auto using same_label_self).
    destruct J as [[J B] | [B1 B2]].
    - assert (Lo : low d1) by (apply join_true in B; apply B). destruct (A Lo) as [<- <-]. rewrite <- J.
      apply accept_rel; auto using same_label_self.
    - apply accept_rel; auto; [right; auto |]. intros X. rewrite (Hi a1 d1 E1 B1) in X. discriminate.
  Qed.

  (** Sets that the observer sees all of. *)
  Lemma sets_label_rel : forall f s1 s2, srel s1 s2 -> same_label (sets_label H f s1) (sets_label H f s2).
  Proof.
    intros f s1 s2 (_ & [[_ [Fr _]] _] & _). unfold sets_label.
    induction (among H f) as [| c cs IH]; simpl; [apply same_label_self |].
    apply same_label_join; auto. apply Fr.
  Qed.

  Lemma admitted_sets : forall s1 s2 bs Ws c p, srel s1 s2 -> In p (chosen_for c) -> low (bound_at bs p) ->
    admitted (F := F) s1 bs Ws c = admitted (F := F) s2 bs Ws c.
  Proof.
    intros s1 s2 bs Ws c p S I B.
    assert (V : forall s, high (fst (sets (fixed s) (from c))) -> admitted (F := F) s bs Ws c = false).
    { intros s A. destruct (admitted (F := F) s bs Ws c) eqn:E; auto. unfold admitted in E.
      apply andb_true_iff in E. destruct E as [E _]. rewrite forallb_forall in E. specialize (E p I).
      apply andb_true_iff in E. destruct E as [E _]. apply andb_true_iff in E. destruct E as [_ E].
      rewrite (flows_trans L _ _ _ E B) in A. discriminate. }
    destruct S as (_ & [[_ [Fr _]] _] & _). destruct (Fr (from c)) as [[[E Lo] | [X Y]] D].
    - unfold admitted. rewrite E, (D Lo). reflexivity.
    - rewrite (V s1 X), (V s2 Y). reflexivity.
  Qed.

  (** So it is where the observer sees the bounds: what is in a set that it does not
      see does not matter there. *)
  Lemma taken_bounds : forall f s1 s2 bs Ws i, srel s1 s2 -> low (bound_at bs i) ->
    taken_from (F := F) H f s1 bs Ws i = taken_from (F := F) H f s2 bs Ws i.
  Proof.
    intros f s1 s2 bs Ws i S B. unfold taken_from. induction (among H f) as [| c cs IH]; auto. cbn [find].
    rewrite IH. destruct (about i c) eqn:A; auto. cbn [andb]. unfold about in A. apply existsb_exists in A.
    destruct A as (p & Ip & E). apply PeanoNat.Nat.eqb_eq in E. subst i. rewrite (admitted_sets s1 s2 bs Ws c p); auto.
  Qed.

  Lemma taken_sets : forall f s1 s2 bs Ws i, srel s1 s2 -> low (sets_label H f s1) ->
    taken_from (F := F) H f s1 bs Ws i = taken_from (F := F) H f s2 bs Ws i.
  Proof.
    intros f s1 s2 bs Ws i S A. unfold taken_from, sets_label in *. induction (among H f) as [| c cs IH]; auto.
    cbn [find]. simpl in A. apply join_true in A. destruct A as [A B]. rewrite (IH B).
    replace (admitted (F := F) s1 bs Ws c) with (admitted (F := F) s2 bs Ws c); auto.
    destruct S as (_ & [[_ [Fr _]] _] & _). destruct (Fr (from c)) as [[[E _] | [X _]] D]; [| congruence].
    unfold admitted. rewrite E, (D A). reflexivity.
  Qed.

  Lemma chosen_taken : forall f s bs Ws i,
    chosen_from (F := F) H f s bs Ws i = match taken_from (F := F) H f s bs Ws i with Some _ => true | None => false end.
  Proof.
    intros. unfold chosen_from, taken_from. induction (among H f) as [| c cs IH]; auto. cbn [find existsb].
    destruct (about i c && admitted (F := F) s bs Ws c); auto.
  Qed.

  Lemma clean_chosen : forall f s1 s2 bs Ws,
    (forall i, (i < List.length Ws)%nat -> taken_from (F := F) H f s1 bs Ws i = taken_from (F := F) H f s2 bs Ws i) ->
    clean (F := F) H f s1 bs Ws = clean (F := F) H f s2 bs Ws.
  Proof.
    intros f s1 s2 bs Ws T. unfold clean.
    assert (G : forall i, (i < List.length Ws)%nat -> chosen_from (F := F) H f s1 bs Ws i = chosen_from (F := F) H f s2 bs Ws i)
      by (intros; rewrite !chosen_taken, T; auto).
    assert (M : forall is, (forall i, In i is -> (i < List.length Ws)%nat) ->
      forallb (fun i => flows (deep_label (argument_at Ws i)) (bound_at bs i) || chosen_from (F := F) H f s1 bs Ws i) is =
      forallb (fun i => flows (deep_label (argument_at Ws i)) (bound_at bs i) || chosen_from (F := F) H f s2 bs Ws i) is).
    { induction is as [| i is IH]; intros I; cbn [forallb]; auto. rewrite G, IH; auto.
      - intros j Ij. apply I. right. exact Ij.
      - apply I. left. reflexivity. }
    apply M. intros i I. apply in_seq in I. lia.
  Qed.

  (** ** Forms *)

  Lemma looked_joins : forall (fm : form L) (Ws : list (lval L)), looked fm Ws = map deep_label (map (argument_at Ws) (looks_at fm)).
  Proof. intros. unfold looked. rewrite map_map. reflexivity. Qed.

  (** What a rule about forms finds is the same in both runs, or is above the observer. *)
  Lemma unfit_rel : forall fm s1 s2 c1 c2 Ws1 Ws2, srel s1 s2 -> lsrel Ws1 Ws2 -> map c1 (looks_at fm) = map c2 (looks_at fm) ->
    found_unfit fm s1 c1 Ws1 = found_unfit fm s2 c2 Ws2 \/
    (high (join (joins (looked fm Ws1)) (tells fm)) /\ high (join (joins (looked fm Ws2)) (tells fm))).
  Proof.
    intros fm s1 s2 c1 c2 Ws1 Ws2 S R C.
    assert (Ra : lsrel (map (argument_at Ws1) (looks_at fm)) (map (argument_at Ws2) (looks_at fm)))
      by (clear C; induction (looks_at fm); simpl; auto using argument_at_rel).
    rewrite !looked_joins. destruct (lsrel_deep _ _ _ _ Ra) as [(_ & _ & A) | [A B]];
      [| right; split; apply join_false_l; assumption].
    destruct (flows (tells fm) z) eqn:T; [| right; split; apply join_false_r; assumption].
    left. pose proof (proj2 (proj2 (deep_equal pol z)) _ _ Ra A) as E. unfold found_unfit. rewrite !looked_joins, <- E.
    replace (map (fun i => strip (argument_at Ws2 i)) (looks_at fm)) with (map strip (map (argument_at Ws2) (looks_at fm)))
      by (rewrite map_map; reflexivity).
    replace (map (fun i => strip (argument_at Ws1 i)) (looks_at fm)) with (map strip (map (argument_at Ws1) (looks_at fm)))
      by (rewrite map_map; reflexivity).
    rewrite <- E, <- C. destruct (beside fm) as [k |]; auto.
    destruct S as (_ & [[_ [Fr _]] _] & _). destruct (Fr k) as [[[El Lo] | [X Y]] D].
    - rewrite El, (D Lo). reflexivity.
    - rewrite !not_flows; auto.
  Qed.

  Lemma misformed_rel : forall fms s1 s2 Ws1 Ws2, srel s1 s2 -> lsrel Ws1 Ws2 ->
    misformed s1 Ws1 fms = misformed s2 Ws2 fms \/
    (exists b m, misformed s1 Ws1 fms = Some (b, m) /\ high b) \/
    (exists b m, misformed s2 Ws2 fms = Some (b, m) /\ high b).
  Proof.
    induction fms as [| fm fms IH]; intros s1 s2 Ws1 Ws2 S R; simpl; auto.
    destruct (unfit_rel fm s1 s2 (fun _ => false) (fun _ => false) _ _ S R eq_refl) as [E | [A B]].
    - rewrite <- E. destruct (found_unfit fm s1 _ Ws1) as [m |] eqn:E1; [| apply IH; auto].
      destruct (flows (join (joins (looked fm Ws1)) (tells fm)) z) eqn:X; [| right; left; eauto].
      left. f_equal. f_equal. f_equal. rewrite !looked_joins in *.
      apply join_true in X. destruct X as [X _].
      assert (Ra : lsrel (map (argument_at Ws1) (looks_at fm)) (map (argument_at Ws2) (looks_at fm)))
        by (clear -R; induction (looks_at fm); simpl; auto using argument_at_rel).
      rewrite (proj2 (proj2 (deep_equal pol z)) _ _ Ra X). reflexivity.
    - destruct (found_unfit fm s1 _ Ws1) as [m |]; [right; left; eauto |].
      destruct (found_unfit fm s2 _ Ws2) as [m |]; [right; right; eauto |]. apply IH; auto.
  Qed.

  Lemma formed_same : forall f s1 s2 bs Ns Ws, srel s1 s2 ->
    (forall i, (i < List.length Ns)%nat -> taken_from (F := F) H f s1 bs Ns i = taken_from (F := F) H f s2 bs Ns i) ->
    low (told_of (asking H f) Ws) ->
    formed (F := F) H f s1 bs Ns Ws = formed (F := F) H f s2 bs Ns Ws.
  Proof.
    intros f s1 s2 bs Ns Ws S G. unfold formed, told_of.
    assert (Gb : forall i, noted (F := F) H f s1 bs Ns i = noted (F := F) H f s2 bs Ns i).
    { intros i. unfold noted.
      assert (M : forall js, (forall j, In j js -> (j < List.length Ns)%nat) ->
        existsb (fun j => negb (flows (deep_label (argument_at Ns j)) (bound_at bs j)) &&
          match taken_from (F := F) H f s1 bs Ns j with Some c => about i c | None => false end) js =
        existsb (fun j => negb (flows (deep_label (argument_at Ns j)) (bound_at bs j)) &&
          match taken_from (F := F) H f s2 bs Ns j with Some c => about i c | None => false end) js).
      { induction js as [| j js IH]; intros I; cbn [existsb]; auto. rewrite G, IH; auto.
        - intros k Ik. apply I. right. exact Ik.
        - apply I. left. reflexivity. }
      apply M. intros j I. apply in_seq in I. lia. }
    induction (asking H f) as [| fm fms IH]; intros A; cbn [forallb]; auto. simpl in A. apply join_true in A.
    destruct A as [A B]. rewrite (IH B). f_equal.
    assert (E : found_unfit fm s1 (noted (F := F) H f s1 bs Ns) Ws = found_unfit fm s2 (noted (F := F) H f s2 bs Ns) Ws).
    { unfold found_unfit, told_by in *. destruct (applies fm (looked fm Ws)); auto.
      rewrite (map_ext _ _ Gb). destruct (beside fm) as [k |]; auto.
      destruct S as (_ & [[_ [Fr _]] _] & _). destruct (Fr k) as [[[El Lo] | [X Y]] D].
      - rewrite El, (D Lo). reflexivity.
      - rewrite !not_flows; auto. }
    rewrite E. reflexivity.
  Qed.

  Lemma told_app : forall fms1 fms2 Ws, low (told_of (fms1 ++ fms2) Ws) -> low (told_of fms2 Ws).
  Proof.
    induction fms1 as [| fm fms1 IH]; intros fms2 Ws A; simpl in *; auto. unfold told_of in *. simpl in A.
    apply join_true in A. apply IH, A.
  Qed.

  (** ** Arguments that only complete a call *)

  Lemma lasting_rel : forall f vs1 vs2, lsrel vs1 vs2 -> lsrel (lasting H f vs1) (lasting H f vs2).
  Proof.
    intros f vs1 vs2 R. unfold lasting. generalize 0%nat.
    induction R as [| V1 V2 vs1 vs2 RV R IH]; intros n; simpl; auto.
    destruct (negb (existsb (Nat.eqb n) (completes H f))); simpl; auto.
  Qed.

  Lemma lasting_strip : forall f (vs : list (lval L)), lasting H f (map strip vs) = map strip (lasting H f vs).
  Proof.
    intros f vs. unfold lasting. rewrite map_length. generalize 0%nat.
    induction vs as [| V vs IH]; intros n; simpl; auto.
    destruct (negb (existsb (Nat.eqb n) (completes H f))); simpl; rewrite IH; auto.
  Qed.

  Lemma lasting_in : forall f (vs : list (lval L)) i, existsb (Nat.eqb i) (completes H f) = false -> (i < List.length vs)%nat ->
    In (argument_at vs i) (lasting H f vs).
  Proof.
    intros f vs i E. unfold lasting, argument_at.
    assert (G : forall n j, (n + j)%nat = i -> (j < List.length vs)%nat ->
      In (nth j vs (Lab bot (VK KNull))) (map snd (filter (fun p => negb (existsb (Nat.eqb (fst p)) (completes H f))) (combine (seq n (List.length vs)) vs)))).
    { induction vs as [| V vs IH]; intros n j Ej Lj; simpl in Lj; [lia |]. simpl. destruct j as [| j].
      - replace n with i by lia. rewrite E. left. reflexivity.
      - destruct (negb _); [right |]; apply IH; lia. }
    intros Li. apply (G 0%nat i); auto.
  Qed.

  Definition outlasting (f : name) (fm : form L) : bool :=
    negb (existsb (fun i => existsb (Nat.eqb i) (completes H f)) (looks_at fm)).

  Lemma outlasting_told : forall f fms Ws1 Ws2, lsrel Ws1 Ws2 -> low (joins (map deep_label (lasting H f Ws1))) ->
    told_of (filter (outlasting f) fms) Ws1 = told_of (filter (outlasting f) fms) Ws2.
  Proof.
    intros f fms Ws1 Ws2 R A.
    assert (At : forall i, existsb (Nat.eqb i) (completes H f) = false -> argument_at Ws1 i = argument_at Ws2 i).
    { intros i E. destruct (PeanoNat.Nat.lt_ge_cases i (List.length Ws1)) as [Lt | Ge].
      - assert (Lo : low (deep_label (argument_at Ws1 i))).
        { eapply joins_true; [exact A |]. apply in_map, lasting_in; auto. }
        destruct (lrel_visible _ _ _ _ (argument_at_rel _ _ i R)) as [[X _] | [X _]]; auto. congruence.
      - unfold argument_at. rewrite !nth_overflow; auto. rewrite <- (lsrel_length _ _ R). exact Ge. }
    unfold told_of. induction fms as [| fm fms IH]; simpl; auto. destruct (outlasting f fm) eqn:O; auto.
    simpl. rewrite IH. f_equal. unfold told_by. replace (looked fm Ws2) with (looked fm Ws1); auto.
    unfold looked. apply map_ext_in. intros i I. rewrite At; auto. unfold outlasting in O. apply negb_true_iff in O.
    destruct (existsb (Nat.eqb i) (completes H f)) eqn:X; auto. rewrite <- O. symmetry. apply existsb_exists. eauto.
  Qed.

  Lemma lasts_rel : forall f V1 V2, lrel V1 V2 -> low (label_of V1) -> lasts H f V1 = lasts H f V2.
  Proof.
    intros f V1 V2 R A. unfold lasts. destruct (completes H f) as [| n0 ns0]; auto.
    destruct R as [l1 v1 l2 v2 B _ | l v1 v2 _ R]; [simpl in A; congruence |]. destruct R; reflexivity.
  Qed.

  Lemma kept_rel : forall f g1 g2 V1 V2 Ws1 Ws2, lrel V1 V2 -> same_label g1 g2 ->
    flows (label_of V1) g1 = true -> flows (label_of V2) g2 = true ->
    (low (label_of V1) -> lsrel Ws1 Ws2) ->
    same_label (kept_label H f g1 V1 Ws1) (kept_label H f g2 V2 Ws2).
  Proof.
    intros f g1 g2 V1 V2 Ws1 Ws2 RV G G1 G2 R. destruct (lrel_label _ _ _ _ RV) as [[E Lo] | [H1 H2]].
    - unfold kept_label. rewrite <- (lasts_rel f _ _ RV Lo), <- E. destruct (lasts H f V1); auto.
      apply same_label_join; [apply same_label_self |]. specialize (R Lo).
      destruct (lsrel_deep _ _ _ _ (lasting_rel f _ _ R)) as [(A & _ & B) | [A B]].
      + rewrite <- A. fold (outlasting f). rewrite (outlasting_told f _ _ _ R B). apply same_label_self.
      + right. split; apply join_false_l; auto.
    - right. unfold kept_label. split; [destruct (lasts H f V1) | destruct (lasts H f V2)];
        eauto using join_false_l, high_up.
  Qed.

  Lemma approval_grows : forall d l f a args ls ch (s : state L) k,
    (forall s', grows s' (k s')) -> grows s (approval H d l f a args ls ch s k).
  Proof.
    intros d l f a args ls ch s k K. unfold approval. destruct a; auto.
    destruct (refusal H _ _ _ s); [eexists [_]; reflexivity |].
    eapply grows_trans; [| apply K]. eexists [_]. reflexivity.
  Qed.

  Lemma srel_log_high : forall l r (s1 s2 : state L), high l -> srel s1 s2 ->
    srel (log l r s1) s2 /\ srel s1 (log l r s2).
  Proof.
    intros l r s1 s2 A (C & S & T). split; (split; [exact C | split; [exact S |]]); simpl; rewrite A; auto.
  Qed.

  (** Whether somebody is asked is seen by those who see the question, and those who
      see the answer. *)
  Lemma approval_rel : forall f d1 d2 l1 l2 a1 a2 args1 args2 ls1 ls2 ch s1 s2 k1 k2,
    same_label d1 d2 -> same_label l1 l2 -> (low d1 -> args1 = args2 /\ ls1 = ls2) ->
    (low (join ch d1) \/ low l1 -> a1 = a2) -> (low l1 -> low d1) -> srel s1 s2 ->
    (forall t1 t2, srel t1 t2 -> rrel (k1 t1) (k2 t2)) ->
    (forall s', grows s' (k1 s')) -> (forall s', grows s' (k2 s')) ->
    rrel (approval H d1 l1 f a1 args1 ls1 ch s1 k1) (approval H d2 l2 f a2 args2 ls2 ch s2 k2).
  Proof.
    intros f d1 d2 l1 l2 a1 a2 args1 args2 ls1 ls2 ch s1 s2 k1 k2 D Dl A B Ld S K G1 G2. unfold approval.
    assert (Dc : same_label (join ch d1) (join ch d2)) by (apply same_label_join; auto using same_label_self).
    assert (S' : srel (log (join ch d1) (RApprove f args1 ls1) s1) (log (join ch d2) (RApprove f args2 ls2) s2)).
    { apply srel_log; auto. intros C. apply join_true in C. destruct (A (proj2 C)) as (-> & ->). reflexivity. }
    destruct (flows l1 z) eqn:Lo.
    - destruct Dl as [[<- _] | [X _]]; [| congruence]. rewrite <- (B (or_intror eq_refl)). destruct a1; auto.
      destruct D as [[<- D] | [X _]]; [| rewrite (Ld eq_refl) in X; discriminate].
      destruct (A D) as (<- & <-). rewrite (refusal_low (join ch d1) l1 _ _ _ Lo S).
      destruct (refusal H (join ch d1) l1 _ s2); [apply rrel_err; auto | auto].
    - assert (Hi2 : high l2) by (destruct Dl as [[<- _] | [_ X]]; auto).
      destruct (flows (join ch d1) z) eqn:C.
      + rewrite <- (B (or_introl eq_refl)). destruct a1; auto.
        destruct (refusal H (join ch d1) l1 _ s1).
        { eapply rrel_stuck_left; [exact Lo | apply ext, S' |].
          destruct (refusal H (join ch d2) l2 _ s2); [apply grows_refl | apply G2]. }
        destruct (refusal H (join ch d2) l2 _ s2); auto.
        eapply rrel_stuck_right; [exact Hi2 | apply ext', S' | apply G1].
      + assert (C2 : high (join ch d2)) by (destruct Dc as [[<- _] | [_ X]]; auto).
        destruct (srel_log_high _ (RApprove f args1 ls1) _ _ C S) as [S1 _].
        destruct (srel_log_high _ (RApprove f args2 ls2) _ _ C2 S) as [_ S2].
        destruct a1, a2; auto.
        * destruct (refusal H (join ch d1) l1 _ s1).
          { eapply rrel_stuck_left; [exact Lo | apply ext, S' |].
            destruct (refusal H (join ch d2) l2 _ s2); [apply grows_refl | apply G2]. }
          destruct (refusal H (join ch d2) l2 _ s2); auto.
          eapply rrel_stuck_right; [exact Hi2 | apply ext', S' | apply G1].
        * destruct (refusal H (join ch d1) l1 _ s1); auto.
          eapply rrel_stuck_left; [exact Lo | apply ext, S1 | auto].
        * destruct (refusal H (join ch d2) l2 _ s2); auto.
          eapply rrel_stuck_right; [exact Hi2 | apply ext', S2 | auto].
  Qed.

  Lemma counted_grows : forall u f args (s : state L) k,
    (forall s', grows s' (k s')) -> grows s (counted u f args s k).
  Proof. intros. unfold counted. destruct (stops (fixed s) f u args (tr s)); auto using grows_refl. Qed.

  (** A run that ends because there were too many calls has shown a beginning of
      what the other one shows, whatever was counted. *)
  Lemma counted_rel : forall u1 u2 f a1 a2 s1 s2 k1 k2, srel s1 s2 ->
    (stops (fixed s1) f u1 a1 (tr s1) = false -> stops (fixed s2) f u2 a2 (tr s2) = false -> rrel (k1 s1) (k2 s2)) ->
    (forall s', grows s' (k1 s')) -> (forall s', grows s' (k2 s')) ->
    rrel (counted u1 f a1 s1 k1) (counted u2 f a2 s2 k2).
  Proof.
    intros u1 u2 f a1 a2 s1 s2 k1 k2 S K G1 G2. unfold counted.
    destruct (stops (fixed s1) f u1 a1 (tr s1)).
    { eapply rrel_stuck_left; [exact I | apply ext, S |].
      destruct (stops (fixed s2) f u2 a2 (tr s2)); auto using grows_refl. }
    destruct (stops (fixed s2) f u2 a2 (tr s2)); auto.
    eapply rrel_stuck_right; [exact I | apply ext', S | auto].
  Qed.

  Lemma shown_rel : forall pc l1 l2 V1 V2 m1 m2, low pc -> lrel V1 V2 ->
    same_label l1 l2 -> (low l1 -> same_label m1 m2) -> lrel (shown H pc l1 V1 m1) (shown H pc l2 V2 m2).
  Proof.
    intros pc l1 l2 V1 V2 m1 m2 A R D M. unfold shown. apply lrel_low; auto. constructor. constructor; auto.
    constructor; auto. destruct D as [[<- B] | [B1 B2]].
    - destruct (M B) as [[<- C] | [C1 C2]].
      + apply lab_rel; [apply same_label_self |]. intros _. apply wrap_rel. apply TOOLS.
      + constructor; apply join_false_r; auto.
    - constructor; apply join_false_l; auto.
  Qed.

  Lemma described_rel : forall pc f l1 l2 vs1 vs2 ms1 ms2, low pc -> lsrel vs1 vs2 ->
    same_label l1 l2 -> (low l1 -> Forall2 same_label ms1 ms2) ->
    lrel (described H pc l1 f vs1 ms1) (described H pc l2 f vs2 ms2).
  Proof.
    intros pc f l1 l2 vs1 vs2 ms1 ms2 A R D M. unfold described. apply lrel_low; auto. constructor.
    revert ms1 ms2 M. induction R; intros ms1 ms2 M; simpl; auto. constructor.
    - apply shown_rel; auto. intros B. destruct (M B); simpl; auto using same_label_self.
    - apply IHR. intros B. destruct (M B); simpl; auto.
  Qed.

  Lemma deep_labels_rel : forall vs1 vs2, lsrel vs1 vs2 ->
    Forall2 same_label (map deep_label vs1) (map deep_label vs2).
  Proof. intros vs1 vs2 R. induction R; simpl; auto. constructor; eauto using lrel_deep_label. Qed.

  Lemma conv_label : forall s1 s2, srel s1 s2 ->
    (cv s1 = cv s2 /\ low (clab (cv s1))) \/ (high (clab (cv s1)) /\ high (clab (cv s2))).
  Proof. intros s1 s2 (C & _). exact C. Qed.

  Lemma send_rel : forall pc V1 V2 s1 s2,
    low pc -> lrel V1 V2 -> srel s1 s2 -> rrel (do_send H pc V1 s1) (do_send H pc V2 s2).
  Proof.
    intros pc V1 V2 s1 s2 P R S. unfold do_send.
    destruct (conv_label _ _ S) as [[E A] | [A1 A2]].
    - rewrite <- E. destruct (flows pc (clab (cv s1))).
      + apply rrel_val; auto using unit_rel.
        apply srel_conv; auto.
        destruct (lrel_deep _ _ _ _ R) as [(D1 & D2 & D3) | [D1 D2]].
        * left. rewrite D1, D2. split; auto. simpl. apply join_true. rewrite <- D1. auto.
        * right. simpl. split; apply join_false_r; auto.
      + apply rrel_err; auto. apply join_true; auto.
    - assert (S' : srel
        (set_conv (Conv (join (clab (cv s1)) (deep_label V1))
           (msgs (cv s1) ++ [serialize H (strip V1)]) (later (cv s1)) (told (cv s1))) s1)
        (set_conv (Conv (join (clab (cv s2)) (deep_label V2))
           (msgs (cv s2) ++ [serialize H (strip V2)]) (later (cv s2)) (told (cv s2))) s2)).
      { apply srel_conv; auto. right. simpl. split; apply join_false_l; auto. }
      destruct (flows pc (clab (cv s1))), (flows pc (clab (cv s2))).
      + apply rrel_val; auto using unit_rel.
      + apply rrel_right; simpl; eauto using join_false_r, ext_tr'.
      + apply rrel_left; simpl; eauto using join_false_r, ext_tr.
      + apply rrel_left; simpl; eauto using join_false_r, ext_tr.
  Qed.

  Lemma clear_rel : forall pc s1 s2,
    low pc -> srel s1 s2 -> rrel (do_clear pc s1) (do_clear pc s2).
  Proof.
    intros pc s1 s2 P S. unfold do_clear.
    assert (S' : srel (set_conv (Conv pc [] [] 0) s1) (set_conv (Conv pc [] [] 0) s2)).
    { apply srel_conv; auto. left. auto. }
    destruct (conv_label _ _ S) as [[E A] | [A1 A2]].
    - rewrite <- E. destruct (flows pc (clab (cv s1))).
      + apply rrel_val; auto using unit_rel.
      + apply rrel_err; auto. apply join_true; auto.
    - destruct (flows pc (clab (cv s1))), (flows pc (clab (cv s2))).
      + apply rrel_val; auto using unit_rel.
      + apply rrel_right; simpl; eauto using join_false_r, ext_tr'.
      + apply rrel_left; simpl; eauto using join_false_r, ext_tr.
      + apply rrel_left; simpl; eauto using join_false_r, ext_tr.
  Qed.

  Lemma present_rel : forall l s1 s2, low l -> srel s1 s2 -> present H l s1 = present H l s2.
  Proof.
    intros l s1 s2 A S. unfold present. rewrite (visible_low _ _ _ _ A (proj2 (proj2 S))).
    f_equal. f_equal. apply S. auto.
  Qed.

  Lemma remember_rel : forall pc k V1 V2 s1 s2,
    low pc -> lrel V1 V2 -> srel s1 s2 ->
    rrel (do_remember H pc k V1 s1) (do_remember H pc k V2 s2).
  Proof.
    intros pc k V1 V2 s1 s2 P R S.
    pose proof (confined_grows _ _ _ (remember_conf H pc k V1 s1)) as G1.
    pose proof (confined_grows _ _ _ (remember_conf H pc k V2 s2)) as G2.
    unfold do_remember in *. set (lk := key_label H k) in *.
    destruct (lrel_deep _ _ _ _ R) as [(E1 & E2 & D) | [D1 D2]].
    - (* the value is visible *)
      rewrite <- E1, <- E2 in *. clear G1 G2.
      destruct (flows (join pc (deep_label V1)) lk).
      + destruct (has_type H (key_type H k) (strip V1)).
        * assert (Sk : same_label lk lk) by (destruct (flows lk z) eqn:K; [left | right]; auto).
          assert (S' : srel (log lk (RRemember k (strip V1)) s1) (log lk (RRemember k (strip V1)) s2))
            by (apply srel_log; auto).
          destruct (flows lk z) eqn:K.
          -- rewrite (refusal_low lk lk _ _ _ K S).
             destruct (refusal H lk lk _ s2); [apply rrel_err; auto |].
             apply rrel_val; auto using unit_rel.
             rewrite (present_rel lk _ _ K S), (visible_low _ _ _ _ K (proj2 (proj2 S))).
             apply srel_set_account; auto.
          -- destruct (refusal H lk lk _ s1), (refusal H lk lk _ s2).
             ++ apply rrel_left; auto.
             ++ apply rrel_left; [simpl; auto | apply ext_tr with (1 := S'); reflexivity].
             ++ apply rrel_right; [simpl; auto | apply ext_tr' with (1 := S'); reflexivity].
             ++ apply rrel_val; auto using unit_rel. apply srel_set_account; auto. congruence.
        * apply rrel_err; auto. apply join_true; auto.
      + apply rrel_err_same; auto. apply same_label_join; auto using same_label_low.
        destruct (flows lk z) eqn:K; [left | right]; auto.
    - (* it is not: then it cannot go to a visible key *)
      assert (Q1 : high (join pc (deep_label V1))) by (apply join_false_r; auto).
      assert (Q2 : high (join pc (deep_label V2))) by (apply join_false_r; auto).
      destruct (flows lk z) eqn:K.
      { assert (N : forall l, high l -> flows l lk = false).
        { intros l Hl. destruct (flows l lk) eqn:E; auto.
          rewrite (flows_trans L _ _ _ E K) in Hl. discriminate. }
        rewrite !N; auto. apply rrel_err; auto. apply join_true; auto. }
      assert (Ql : high (join pc lk)) by (apply join_false_r; auto).
      assert (Sl : srel (log lk (RRemember k (strip V1)) s1) (log lk (RRemember k (strip V2)) s2)).
      { apply srel_log; auto; [right; auto | congruence]. }
      assert (S' : forall a1 a2, srel (set_account lk a1 (log lk (RRemember k (strip V1)) s1))
                        (set_account lk a2 (log lk (RRemember k (strip V2)) s2))).
      { intros. apply srel_set_account; [congruence | exact Sl]. }
      destruct (flows (join pc (deep_label V1)) lk);
        [destruct (has_type H (key_type H k) (strip V1)) |];
        [| eapply rrel_stuck_left; [| apply ext, S | exact G2]; assumption ..].
      destruct (flows (join pc (deep_label V2)) lk);
        [destruct (has_type H (key_type H k) (strip V2)) |];
        [| eapply rrel_stuck_right; [| apply ext', S | exact G1]; assumption ..].
      destruct (refusal H lk lk _ s1), (refusal H lk lk _ s2).
      + apply rrel_left; auto.
      + apply rrel_left; [simpl; auto | apply ext_tr with (1 := Sl); reflexivity].
      + apply rrel_right; [simpl; auto | apply ext_tr' with (1 := Sl); reflexivity].
      + apply rrel_val; auto using unit_rel.
  Qed.

  Lemma recall_rel : forall pc k s1 s2,
    low pc -> srel s1 s2 -> rrel (do_recall H pc k s1) (do_recall H pc k s2).
  Proof.
    intros pc k s1 s2 P S. unfold do_recall.
    set (lk := key_label H k).
    destruct (flows lk z) eqn:K.
    - assert (J : low (join pc lk)) by (apply join_true; auto).
      assert (S' : srel (log (join pc lk) (RRecall k) s1) (log (join pc lk) (RRecall k) s2)).
      { apply srel_log; auto using same_label_low. }
      rewrite (refusal_low (join pc lk) (join pc lk) _ _ _ J S).
      destruct (refusal H _ _ _ s2); [apply rrel_err; auto |].
      rewrite (present_rel lk _ _ K S).
      destruct (entry k (present H lk s2)) as [[t d] |].
      + apply accept_rel; auto using same_label_low. destruct (flows pc lk); auto. apply srel_set_account; auto.
      + apply rrel_val; auto.
    - assert (J : high (join pc lk)) by (apply join_false_r; auto).
      assert (S' : srel (log (join pc lk) (RRecall k) s1) (log (join pc lk) (RRecall k) s2)).
      { apply srel_log; auto. right; auto. }
      assert (Sa : forall a1 a2, srel (set_account lk a1 (log (join pc lk) (RRecall k) s1))
                                      (set_account lk a2 (log (join pc lk) (RRecall k) s2))).
      { intros. apply srel_set_account; auto. congruence. }
      assert (Sl : forall a1, srel (set_account lk a1 (log (join pc lk) (RRecall k) s1))
                                      (log (join pc lk) (RRecall k) s2)).
      { intros a1. destruct S' as (Cr & [M St] & T). split; [exact Cr | split; [split; [exact M |] | exact T]].
        intros l' A. simpl. unfold same. destruct (flows lk l') eqn:X; simpl; [| apply St; auto].
        rewrite (flows_trans L _ _ _ X A) in K. discriminate. }
      assert (Sr : forall a2, srel (log (join pc lk) (RRecall k) s1)
                                      (set_account lk a2 (log (join pc lk) (RRecall k) s2))).
      { intros a2. destruct S' as (Cr & [M St] & T). split; [exact Cr | split; [split; [exact M |] | exact T]].
        intros l' A. simpl. unfold same. destruct (flows lk l') eqn:X; simpl; [| apply St; auto].
        rewrite (flows_trans L _ _ _ X A) in K. discriminate. }
      unfold accept.
      destruct (refusal H _ _ _ s1), (refusal H _ _ _ s2),
        (entry k (present H lk s1)) as [[? ?] |], (entry k (present H lk s2)) as [[? ?] |];
        repeat match goal with
               | |- context [data_permits ?p ?d] => destruct (data_permits p d)
               end;
        destruct (flows pc lk);
        apply rrel_high; auto.
  Qed.

  (** ** Lemmas about the helpers that evaluate *)

  Section Helpers.
    Variables ev1 ev2 : evaluator.
    Hypothesis C1 : forall pc env s e, confined pc s (ev1 pc env s e).
    Hypothesis C2 : forall pc env s e, confined pc s (ev2 pc env s e).
    Hypothesis EV : forall pc env1 env2 s1 s2 e,
      low pc -> permits pol e = true -> lsrel env1 env2 -> srel s1 s2 ->
      rrel (ev1 pc env1 s1 e) (ev2 pc env2 s2 e).

    Lemma grows1 : forall pc env s e, grows s (ev1 pc env s e).
    Proof. intros. eapply confined_grows, C1. Qed.
    Lemma grows2 : forall pc env s e, grows s (ev2 pc env s e).
    Proof. intros. eapply confined_grows, C2. Qed.

    (** At labels the observer cannot tell apart. *)
    Lemma ev_same : forall pc1 pc2 env1 env2 s1 s2 e,
      same_label pc1 pc2 -> permits pol e = true -> lsrel env1 env2 -> srel s1 s2 ->
      rrel (ev1 pc1 env1 s1 e) (ev2 pc2 env2 s2 e).
    Proof.
      intros pc1 pc2 env1 env2 s1 s2 e [[-> A] | [A B]] P R S; auto.
      eapply high_results with (1 := A) (2 := B); eauto.
    Qed.

    (** That arguments were made, and their parts, is seen alike. *)
    Lemma select_rel : forall m vs1 vs2, lsrel vs1 vs2 -> lsrel (select_by m vs1) (select_by m vs2).
    Proof.
      induction m as [| b m IH]; intros vs1 vs2 R; simpl; auto.
      destruct R; auto. destruct b; auto.
    Qed.

    Lemma made_rel : forall l f fs vs1 vs2 ms, low l -> lsrel vs1 vs2 ->
      visible z (map (made l f fs vs1) ms) = visible z (map (made l f fs vs2) ms).
    Proof.
      intros l f fs vs1 vs2 ms A R. unfold visible. induction ms as [| m ms IH]; simpl; auto. rewrite IH. unfold made.
      rewrite (lsrel_length _ _ R).
      destruct (lsrel_deep _ _ _ _ (select_rel m _ _ R)) as [(<- & <- & _) | [D1 D2]]; auto.
      rewrite !join_false_r; auto.
    Qed.

    Lemma made_high : forall l f fs vs ms, high l -> visible z (map (made l f fs vs) ms) = [].
    Proof.
      intros l f fs vs ms A. unfold visible. induction ms as [| m ms IH]; simpl; auto. rewrite join_false_l; auto.
    Qed.

    Lemma prepare_rel : forall c V1 V2 s1 s2, lrel V1 V2 -> srel s1 s2 -> srel (prepare c V1 s1) (prepare c V2 s2).
    Proof.
      intros c V1 V2 s1 s2 R S. unfold prepare. destruct c; auto.
      destruct R as [l1 v1 l2 v2 A B | l v1 v2 A R].
      - assert (K : forall l v (s : state L), high l -> exists t, visible z t = [] /\
          match v with VCon _ vs => logs (map (made l f fields vs) (masks (List.length vs))) s | _ => s end = logs t s).
        { intros l v s E. destruct v; [exists [] | | exists []]; try (split; auto; destruct s; reflexivity).
          eexists. split; [| reflexivity]. apply made_high; auto. }
        destruct (K l1 v1 s1 A) as (t1 & E1 & ->), (K l2 v2 s2 B) as (t2 & E2 & ->).
        apply srel_logs; congruence.
      - destruct R; auto. rewrite (lsrel_length _ _ H0). apply srel_logs; auto using made_rel.
    Qed.

    Lemma prepare_grows : forall c V (s : state L) o, grows s (o, prepare c V s).
    Proof.
      intros c V s o. unfold prepare. destruct c; try apply grows_refl. destruct V as [l [| |]]; try apply grows_refl.
      eexists. reflexivity.
    Qed.

    Lemma evals_rel : forall es pc env1 env2 c acc1 acc2 s1 s2,
      low pc -> forallb (permits pol) es = true -> lsrel env1 env2 ->
      lsrel acc1 acc2 -> srel s1 s2 ->
      rrel (evals ev1 pc env1 c acc1 s1 es) (evals ev2 pc env2 c acc2 s2 es).
    Proof.
      induction es as [| e es IH]; simpl; intros pc env1 env2 c acc1 acc2 s1 s2 A P R Ra S.
      - apply rrel_val; auto. apply lrel_low; auto using lsrel_rev.
      - apply andb_true_iff in P. destruct P as [P Ps]. apply rrel_bind with (1 := EV _ _ _ _ _ _ A P R S); auto.
        + intros; eapply confined_grows, evals_conf; auto.
        + intros; eapply confined_grows, evals_conf; auto.
    Qed.

    Lemma with_label_rel : forall pc env1 env2 s1 s2 e k1 k2,
      low pc -> permits pol e = true -> lsrel env1 env2 -> srel s1 s2 ->
      (forall n1 n2 l1 l2 s1 s2, srel s1 s2 ->
         (n1 = n2 /\ l1 = l2 /\ low n1) \/ (high n1 /\ high n2) ->
         rrel (k1 n1 l1 s1) (k2 n2 l2 s2)) ->
      (forall n l s, grows s (k1 n l s)) -> (forall n l s, grows s (k2 n l s)) ->
      rrel (with_label H ev1 pc env1 s1 e k1) (with_label H ev2 pc env2 s2 e k2).
    Proof.
      intros pc env1 env2 s1 s2 e k1 k2 A P R S K G1 G2. unfold with_label.
      apply rrel_bind with (1 := EV _ _ _ _ _ _ A P R S).
      - intros V1 V2 t1 t2 RV St.
        destruct (lrel_deep _ _ _ _ RV) as [(D1 & D2 & D3) | [D1 D2]].
        + rewrite <- D1, <- D2. destruct (to_label H (strip V1)); auto.
          apply rrel_err; auto. apply join_true; auto.
        + destruct (to_label H (strip V1)), (to_label H (strip V2)); auto.
          * eapply rrel_stuck_right; [| apply ext', St | apply G1].
            simpl. apply join_false_r; auto.
          * eapply rrel_stuck_left; [| apply ext, St | apply G2].
            simpl. apply join_false_r; auto.
          * apply rrel_err_same; auto. right. split; apply join_false_r; auto.
      - intros V s. destruct (to_label H (strip V)); auto using grows_refl.
      - intros V s. destruct (to_label H (strip V)); auto using grows_refl.
    Qed.

    Lemma decide_rel : forall pc f l1 l2 vs1 vs2 ms1 ms2 ch s1 s2 k1 k2,
      low pc -> lsrel vs1 vs2 -> same_label l1 l2 -> (low l1 -> Forall2 same_label ms1 ms2) -> srel s1 s2 ->
      (forall d1 d2 t1 t2, same_label d1 d2 -> srel t1 t2 -> rrel (k1 d1 t1) (k2 d2 t2)) ->
      (forall d s', grows s' (k1 d s')) -> (forall d s', grows s' (k2 d s')) ->
      rrel (decide (F := F) H ev1 pc l1 f vs1 ms1 ch s1 k1) (decide (F := F) H ev2 pc l2 f vs2 ms2 ch s2 k2).
    Proof.
      intros pc f l1 l2 vs1 vs2 ms1 ms2 ch s1 s2 k1 k2 A R Dl Ml S K G1 G2. unfold decide.
      destruct (tool_policy H f) as [p |] eqn:E; auto using same_label_low.
      apply rrel_bind.
      - apply rrel_restore; [apply S |]. apply EV; auto.
        + simpl. rewrite (proj1 (proj2 TOOLS) _ _ E). reflexivity.
        + constructor; auto using described_rel.
        + apply srel_conv; auto. left. auto.
      - intros W1 W2 t1 t2 RW St.
        destruct (lrel_deep _ _ _ _ RW) as [(D & <- & B) | [B1 B2]].
        + rewrite <- D. destruct (admits H f _ ch).
          * destruct (strip W1) as [[| [] | | |] | |];
              first [apply K; auto; apply same_label_low; apply join_true; auto
                    | apply rrel_err; auto; apply join_true; auto].
          * apply rrel_err; auto. apply join_true; auto.
        + assert (J1 : high (join pc (deep_label W1))) by (apply join_false_r; auto).
          assert (J2 : high (join pc (deep_label W2))) by (apply join_false_r; auto).
          destruct (admits H f _ ch);
            [destruct (strip W1) as [[| [] | | |] | |] |];
            try (eapply rrel_stuck_left; [exact J1 | apply ext, St |];
                 destruct (admits H f _ ch); [destruct (strip W2) as [[| [] | | |] | |] |];
                 auto using grows_refl);
            (destruct (admits H f _ ch); [destruct (strip W2) as [[| [] | | |] | |] |];
             try (eapply rrel_stuck_right; [exact J2 | apply ext', St | auto]);
             apply K; auto; right; auto).
      - intros. destruct (admits H f _ ch); [destruct (strip V) as [[| [] | | |] | |] |]; auto using grows_refl.
      - intros. destruct (admits H f _ ch); [destruct (strip V) as [[| [] | | |] | |] |]; auto using grows_refl.
    Qed.

    Lemma called_rel : forall pc f V1 V2 k s1 s2,
      low pc -> lrel V1 V2 -> srel s1 s2 ->
      rrel (called (F := F) H ev1 pc f V1 k s1) (called (F := F) H ev2 pc f V2 k s2).
    Proof.
      intros pc f V1 V2 k s1 s2 P RV S.
      pose proof (arguments_rel _ _ (tool_params H f) _ _ RV) as R.
      pose proof (lrel_label _ _ _ _ RV) as Dl.
      pose proof (confined_grows _ _ _ (called_conf H ev1 C1 pc f V1 k s1)) as G1.
      pose proof (confined_grows _ _ _ (called_conf H ev2 C2 pc f V2 k s2)) as G2.
      assert (Eq : low (deep_label V1) -> V1 = V2).
      { intros D. destruct (lrel_visible _ _ _ _ RV) as [[E _] | [D' _]]; auto. congruence. }
      unfold called in *.
      set (pl1 := admits (F := F) H f (label_of V1) (tool_pc H f)) in *.
      set (pl2 := admits (F := F) H f (label_of V2) (tool_pc H f)) in *.
      set (m1 := if pl1 then label_of V1 else tool_pc H f) in *.
      set (m2 := if pl2 then label_of V2 else tool_pc H f) in *.
      set (ws1 := arguments (if pl1 then bot else label_of V1) (tool_params H f) V1) in *.
      set (ws2 := arguments (if pl2 then bot else label_of V2) (tool_params H f) V2) in *.
      assert (Ls1 : List.length ws1 = List.length (arguments (label_of V1) (tool_params H f) V1))
        by (apply arguments_length).
      assert (Ss1 : map strip ws1 = map strip (arguments (label_of V1) (tool_params H f) V1))
        by (apply arguments_strip).
      assert (Ss2 : map strip ws2 = map strip (arguments (label_of V2) (tool_params H f) V2))
        by (apply arguments_strip).
      (* Either the compared arguments are related, or the control bound hides everything. *)
      assert (Two : (lsrel ws1 ws2 /\ same_label m1 m2) \/
        (high (tool_pc H f) /\ high m1 /\ high m2 /\ high (label_of V1))).
      { destruct RV as [l1 v1 l2 v2 A B | l v1 v2 A RV]; simpl in *.
        - destruct (flows (tool_pc H f) z) eqn:T.
          + left. unfold ws1, ws2, m1, m2, pl1, pl2.
            destruct (admits (F := F) H f l1 (tool_pc H f)) eqn:X; [apply admits_low in X; congruence |].
            destruct (admits (F := F) H f l2 (tool_pc H f)) eqn:Y; [apply admits_low in Y; congruence |].
            split; auto using same_label_self.
          + right. unfold m1, m2. destruct pl1, pl2; auto.
        - left. unfold ws1, ws2, m1, m2, pl1, pl2. split; auto using same_label_self.
          apply arguments_rel_low; auto. destruct (admits (F := F) H f l (tool_pc H f)); auto using bot_flows. }
      set (vs1 := arguments (label_of V1) (tool_params H f) V1) in *.
      set (vs2 := arguments (label_of V2) (tool_params H f) V2) in *.
      destruct (admits (F := F) H f pc (tool_pc H f)) eqn:PT.
      2: { apply rrel_err; auto. }
      assert (Fo : (foreign f V1 = true \/ foreign f V2 = true) ->
        rrel (called (F := F) H ev1 pc f V1 k s1) (called (F := F) H ev2 pc f V2 k s2)).
      { unfold called. fold pl1 pl2 m1 m2 ws1 ws2 vs1 vs2. rewrite PT in *. intros Fo.
        destruct (lrel_visible _ _ _ _ RV) as [[EV12 D] | [D1 D2]].
        - assert (E : foreign f V1 = true) by (destruct Fo as [E | E]; rewrite ?EV12 in *; auto).
          assert (E' : foreign f V2 = true) by (rewrite <- EV12; auto).
          rewrite E, E'. apply rrel_err_same; auto. apply same_label_join; auto using same_label_low.
          apply lrel_deep_label with (pol := pol). auto.
        - destruct (foreign f V1) eqn:E1.
          + eapply rrel_stuck_left; [apply join_false_r; auto | apply ext, S | exact G2].
          + destruct (foreign f V2) eqn:E2; [| destruct Fo; congruence].
            eapply rrel_stuck_right; [apply join_false_r; auto | apply ext', S | exact G1]. }
      unfold called in Fo. fold pl1 pl2 m1 m2 ws1 ws2 vs1 vs2 in Fo. rewrite PT in Fo.
      assert (Fd : (foreign f V1 = true \/ foreign f V2 = true) \/ (foreign f V1 = false /\ foreign f V2 = false))
        by (destruct (foreign f V1), (foreign f V2); auto).
      destruct Fd as [Fd | [F1 F2]]; [apply Fo, Fd |]. clear Fo. rewrite F1, F2 in *.
      set (w := if endorses H f then anyone H else bot) in *.
      assert (Hi1 : forall b, refused (F := F) H f s1 (tool_args H f) ws1 = Some b -> high (join m1 (join b w)) ->
        rrel (called (F := F) H ev1 pc f V1 k s1) (called (F := F) H ev2 pc f V2 k s2)).
      { intros b E B. unfold called. fold pl1 pl2 m1 m2 ws1 ws2 vs1 vs2. rewrite PT in *. rewrite ?F1, ?F2, E in *.
        eapply rrel_stuck_left; [| apply ext, S | exact G2]. simpl. apply join_false_r, B. }
      assert (Hi2 : forall b, refused (F := F) H f s2 (tool_args H f) ws2 = Some b -> high (join m2 (join b w)) ->
        rrel (called (F := F) H ev1 pc f V1 k s1) (called (F := F) H ev2 pc f V2 k s2)).
      { intros b E B. unfold called. fold pl1 pl2 m1 m2 ws1 ws2 vs1 vs2. rewrite PT in *. rewrite ?F1, ?F2, E in *.
        eapply rrel_stuck_right; [| apply ext', S | exact G1]. simpl. apply join_false_r, B. }
      unfold called in Hi1, Hi2. fold pl1 pl2 m1 m2 ws1 ws2 vs1 vs2 in Hi1, Hi2. rewrite PT, F1, F2 in Hi1, Hi2.
      assert (Ref : (exists b, refused (F := F) H f s1 (tool_args H f) ws1 = Some b /\ high (join m1 (join b w))) \/
                    (exists b, refused (F := F) H f s2 (tool_args H f) ws2 = Some b /\ high (join m2 (join b w))) \/
                    (refused (F := F) H f s1 (tool_args H f) ws1 = refused (F := F) H f s2 (tool_args H f) ws2 /\
                     same_label m1 m2) \/
                    (refused (F := F) H f s1 (tool_args H f) ws1 = None /\
                     refused (F := F) H f s2 (tool_args H f) ws2 = None)).
      { destruct (seen_or_hidden f) as [Se | (Ee & _ & Ha)].
        2: { assert (Hw : forall m b, high (join m (join b w)))
               by (intros; apply join_false_r, join_false_r; unfold w; rewrite Ee; exact Ha).
             destruct (refused (F := F) H f s1 _ ws1) as [b1 |]; [left; eauto |].
             destruct (refused (F := F) H f s2 _ ws2) as [b2 |]; [right; left; eauto |]. auto. }
        destruct Two as [[Rw Dm] | (T & M1 & M2 & _)].
        - destruct (refused_rel f _ _ (tool_args H f) _ _ Se S Rw)
            as [E | [(b & E & B) | (b & E & B)]]; eauto 8 using join_false_r, join_false_l.
        - destruct (refused (F := F) H f s1 _ ws1) as [b1 |]; [eauto using join_false_l |].
          destruct (refused (F := F) H f s2 _ ws2) as [b2 |]; [eauto 6 using join_false_l |]. auto. }
      destruct Ref as [(b & E & B) | [(b & E & B) | Ref]]; [eapply Hi1; eauto | eapply Hi2; eauto |].
      clear Hi1 Hi2.
      assert (None1 : (exists b, refused (F := F) H f s1 (tool_args H f) ws1 = Some b /\
                                 refused (F := F) H f s2 (tool_args H f) ws2 = Some b /\ same_label m1 m2) \/
         (refused (F := F) H f s1 (tool_args H f) ws1 = None /\
          refused (F := F) H f s2 (tool_args H f) ws2 = None)).
      { destruct Ref as [[E Dm] | Ref]; auto. rewrite E.
        destruct (refused (F := F) H f s2 _ ws2) as [b |]; eauto. }
      clear Ref. destruct None1 as [(b & E1 & E2 & Dm) | [E1 E2]]; rewrite E1, E2 in *.
      { apply rrel_err_same; auto. repeat apply same_label_join; auto using same_label_self. }
      rewrite <- (channel_of_rel _ _ R) in *.
      set (ch := join (tool_pc H f) (channel_of (tool_args H f) vs1)) in *.
      assert (Ch : low ch -> (agreed f = true -> map strip vs1 = map strip vs2) -> map strip vs1 = map strip vs2).
      { intros C Ga. unfold ch in C. apply join_true in C. destruct C as [C0 C].
        destruct Two as [[Rw _] | (T & _)]; [| congruence].
        rewrite <- Ss1, <- Ss2.
        destruct (lsrel_deep _ _ _ _ Rw) as [(_ & D & _) | [D _]]; auto.
        destruct (seen_or_hidden f) as [Se | (_ & [Ht | Ag] & _)]; [| | rewrite Ss1, Ss2; auto].
        - rewrite (channel_args f s1 ws1 (tool_args H f) Se E1) in D; [discriminate |].
          rewrite (channel_of_length ws1 vs1); auto.
        - exfalso. revert Ht. unfold channel_for. rewrite (channel_of_length _ vs1).
          + intros Ht. assert (X : low (join (tool_pc H f) (channel_of (tool_args H f) vs1))) by (apply join_true; auto). congruence.
          + unfold vs1. rewrite map_length. symmetry. apply arguments_count. }
      set (q := fun s : state L => if if_refused H f then sets_label H f s else bot) in *.
      set (ns1 := arguments (if flows (label_of V1) (tool_pc H f) then bot else label_of V1) (tool_params H f) V1) in *.
      set (ns2 := arguments (if flows (label_of V2) (tool_pc H f) then bot else label_of V2) (tool_params H f) V2) in *.
      set (as1 := fun s => approve H f && negb (if_refused H f && flows pc (tool_pc H f) && clean (F := F) H f s (tool_args H f) ns1 && formed (F := F) H f s (tool_args H f) ns1 ws1)) in *.
      set (as2 := fun s => approve H f && negb (if_refused H f && flows pc (tool_pc H f) && clean (F := F) H f s (tool_args H f) ns2 && formed (F := F) H f s (tool_args H f) ns2 ws2)) in *.
      set (u1 := join pc (label_of V1)) in *. set (u2 := join pc (label_of V2)) in *.
      set (t1 := told_of (forms H f ++ asking H f) ws1) in *. set (t2 := told_of (forms H f ++ asking H f) ws2) in *.
      set (g1 := join (deep_label V1) t1) in *. set (g2 := join (deep_label V2) t2) in *.
      set (x1 := map strip vs1) in *. set (x2 := map strip vs2) in *.
      set (y1 := if lasts H f V1 then lasting H f x1 else x1) in *. set (y2 := if lasts H f V2 then lasting H f x2 else x2) in *.
      set (l1 := kept_label H f g1 V1 ws1) in *. set (l2 := kept_label H f g2 V2 ws2) in *.
      assert (Same : V1 = V2 -> x1 = x2 /\ y1 = y2 /\ ws1 = ws2 /\ ns1 = ns2 /\ g1 = g2 /\ l1 = l2).
      { intros E. clear - E. subst V2. repeat split; reflexivity. }
      assert (Du : same_label u1 u2) by (apply same_label_join; auto using same_label_low).
      assert (Dg : same_label g1 g2).
      { destruct (lrel_visible _ _ _ _ RV) as [[E _] | [D1 D2]].
        - destruct (Same E) as (_ & _ & _ & _ & <- & _). apply same_label_self.
        - right. split; apply join_false_l; auto. }
      assert (Fg : forall (V : lval L) t, flows (label_of V) (join (deep_label V) t) = true)
        by (intros; apply flows_join_l, label_deep).
      assert (Rw : low (label_of V1) -> lsrel ws1 ws2).
      { intros Lo. destruct Two as [[Rw _] | (_ & _ & _ & N)]; [exact Rw | congruence]. }
      assert (Dk : same_label l1 l2) by (apply kept_rel; auto; apply Fg).
      assert (Kept : low l1 -> y1 = y2).
      { intros Lo. unfold l1, kept_label in Lo. unfold y1, y2.
        assert (Lv : low (label_of V1)).
        { destruct (lasts H f V1); [apply join_true in Lo; apply Lo |]. eapply flows_trans; [apply Fg | exact Lo]. }
        rewrite <- (lasts_rel f _ _ RV Lv). destruct (lasts H f V1).
        - apply join_true in Lo. destruct Lo as [_ Lo]. apply join_true in Lo. destruct Lo as [Lo _].
          rewrite <- Ss1, <- Ss2, !lasting_strip.
          destruct (lsrel_deep _ _ _ _ (lasting_rel f _ _ (Rw Lv))) as [(_ & E & _) | [A _]]; auto. congruence.
        - apply Same, Eq. unfold g1 in Lo. apply join_true in Lo. apply Lo. }
      assert (Dq : forall t1 t2, srel t1 t2 -> same_label (q t1) (q t2)).
      { intros r1 r2 St. unfold q. destruct (if_refused H f); auto using same_label_self, sets_label_rel. }
      assert (Told : low g1 -> low (told_of (asking H f) ws1)).
      { intros Lo. unfold g1, t1 in Lo. apply join_true in Lo. eapply told_app. apply Lo. }
      assert (Ask : forall r1 r2, srel r1 r2 -> V1 = V2 -> low g1 ->
        (forall i, (i < List.length ns1)%nat -> taken_from (F := F) H f r1 (tool_args H f) ns1 i = taken_from (F := F) H f r2 (tool_args H f) ns1 i) ->
        as1 r1 = as2 r2).
      { intros r1 r2 St E Lo G. destruct (Same E) as (_ & _ & Ew & En & _). unfold as1, as2. rewrite <- Ew, <- En.
        rewrite (clean_chosen f r1 r2 _ _ G), (formed_same f r1 r2 _ _ _ St G (Told Lo)). reflexivity. }
      assert (As : forall r1 r2, srel r1 r2 -> V1 = V2 -> low g1 -> low (q r1) -> as1 r1 = as2 r2).
      { intros r1 r2 St E Lo Q. unfold q in Q. destruct (if_refused H f) eqn:If.
        - apply Ask; auto. intros. apply taken_sets; auto.
        - unfold as1, as2. rewrite ?If. reflexivity. }
      assert (Ac : forall r1 r2, srel r1 r2 -> V1 = V2 -> low g1 -> low ch -> as1 r1 = as2 r2).
      { intros r1 r2 St E Lo C. apply Ask; auto. intros i N. apply taken_bounds; auto.
        eapply flows_trans; [| exact C]. apply flows_join_r.
        rewrite <- (channel_of_length ns1 vs1); [apply channel_bound; exact N | apply arguments_length]. }
      set (e1 := fun d s => join (join d g1) (if confirms H f then q s else bot)) in *.
      set (e2 := fun d s => join (join d g2) (if confirms H f then q s else bot)) in *.
      set (cf := if confirms H f then bot else ch) in *.
      set (p1 := fun v d a s => if confirms H f then confirmed (F := F) H pc u1 d f a x1 s
                                else perform H u1 d (join v l1) f x1 y1 k ch s) in *.
      set (p2 := fun v d a s => if confirms H f then confirmed (F := F) H pc u2 d f a x2 s
                                else perform H u2 d (join v l2) f x2 y2 k ch s) in *.
      assert (Gr1 : forall v d a s, grows s (p1 v d a s))
        by (intros; unfold p1; destruct (confirms H f); auto using confirmed_grows, perform_grows).
      assert (Gr2 : forall v d a s, grows s (p2 v d a s))
        by (intros; unfold p2; destruct (confirms H f); auto using confirmed_grows, perform_grows).
      assert (Rest : rrel
        (decide (F := F) H ev1 pc (label_of V1) f vs1 (map deep_label ws1) ch s1 (fun d s1 =>
           counted u1 f x1 s1 (fun s2 => approval H (e1 d s1) (join (join (e1 d s1) (tool_res H f)) (q s1)) f (as1 s1)
           x1 (map (fun W => join (label_of V1) (deep_label W)) ws1) cf s2 (fun s3 =>
           counted u1 f x1 s3 (fun s4 => p1 d (e1 d s1) (as1 s1) s4)))))
        (decide (F := F) H ev2 pc (label_of V2) f vs2 (map deep_label ws2) ch s2 (fun d s1 =>
           counted u2 f x2 s1 (fun s2 => approval H (e2 d s1) (join (join (e2 d s1) (tool_res H f)) (q s1)) f (as2 s1)
           x2 (map (fun W => join (label_of V2) (deep_label W)) ws2) cf s2 (fun s3 =>
           counted u2 f x2 s3 (fun s4 => p2 d (e2 d s1) (as2 s1) s4)))))).
      { apply decide_rel; auto.
        - intros Lo. apply deep_labels_rel; auto.
        - intros d1 d2 r1 r2 D St.
          assert (J : same_label (e1 d1 r1) (e2 d2 r2)).
          { unfold e1, e2. apply same_label_join; [apply same_label_join; auto |].
            destruct (confirms H f); auto using same_label_self. }
          assert (Sm : low (e1 d1 r1) -> V1 = V2 /\ low g1 /\ low d1 /\ (confirms H f = true -> low (q r1))).
          { intros Lo. unfold e1 in Lo. apply join_true in Lo. destruct Lo as [Lo Q]. apply join_true in Lo. destruct Lo as [Ld Lo].
            split; [unfold g1 in Lo; apply join_true in Lo; apply Eq, Lo |]. split; [exact Lo |]. split; [exact Ld |].
            intros C. rewrite C in Q. exact Q. }
          apply counted_rel; auto; [| intros; apply approval_grows; auto using counted_grows ..].
          intros _ _. apply approval_rel; auto using counted_grows.
          + apply same_label_join; [apply same_label_join; [exact J | apply same_label_self] | apply Dq; exact St].
          + intros Lo. destruct (Sm Lo) as (E12 & _). destruct (Same E12) as (-> & _ & -> & _). rewrite E12. auto.
          + intros [Lo | Lo]; apply join_true in Lo.
            * destruct Lo as [C Lo]. destruct (Sm Lo) as (E12 & Lg & _ & Q). unfold cf in C.
              destruct (confirms H f); [apply As | apply Ac]; auto.
            * destruct Lo as [Lo Q]. apply join_true in Lo. destruct Lo as [Lo _]. destruct (Sm Lo) as (E12 & Lg & _). apply As; auto.
          + intros Lo. apply join_true in Lo. destruct Lo as [Lo _]. apply join_true in Lo. apply Lo.
          + intros r3 r4 Sr. apply counted_rel; auto. intros St1 St2. unfold p1, p2. destruct (confirms H f) eqn:C.
            * apply confirmed_rel; auto.
              -- intros Lo. destruct (Sm Lo) as (E12 & Lg & _ & Q). split; [apply Same; exact E12 | apply As; auto].
              -- unfold as1. intros X. apply andb_true_iff in X. apply X.
              -- unfold as2. intros X. apply andb_true_iff in X. apply X.
            * apply perform_rel; auto.
              -- apply same_label_join; auto.
              -- intros Lo. destruct (Sm Lo) as (E12 & _ & Ld & _). destruct (Same E12) as (-> & -> & _ & _ & _ & ->).
                 split; auto. split; auto. destruct D as [[-> _] | [X _]]; [reflexivity | congruence].
              -- intros Lo. apply join_true in Lo. apply Kept, Lo.
              -- intros C'. apply Ch; auto. intros Ag.
                 destruct Sr as (_ & [[_ [_ Gd]] _] & Tr). eapply Gd; eauto.
        - intros. apply counted_grows. intros. apply approval_grows. auto using counted_grows.
        - intros. apply counted_grows. intros. apply approval_grows. auto using counted_grows. }
      destruct (lrel_visible _ _ _ _ RV) as [[EV12 D] | [D1 D2]].
      - assert (Es : strip V1 = strip V2) by (rewrite EV12; auto). rewrite <- Es in *.
        destruct (tool_accepts H f (strip V1)).
        { apply rrel_err_same; auto. apply same_label_join; auto using same_label_low.
          apply lrel_deep_label with (pol := pol). auto. }
        assert (Lo : low (label_of V1)) by (eapply flows_trans; [apply label_deep | exact D]).
        destruct (misformed_rel (forms H f) _ _ _ _ S (Rw Lo)) as [E | [(b & m & E & B) | (b & m & E & B)]].
        + rewrite E. destruct (misformed s2 ws2 (forms H f)) as [[b m] |]; [| exact Rest].
          apply rrel_err_same; auto. repeat apply same_label_join; auto using same_label_self.
        + rewrite E in *. eapply rrel_stuck_left; [apply join_false_r, join_false_r, B | apply ext, S | exact G2].
        + rewrite E in *. eapply rrel_stuck_right; [apply join_false_r, join_false_r, B | apply ext', S | exact G1].
      - assert (Q1 : high (join pc (deep_label V1))) by (apply join_false_r; auto).
        assert (Q2 : high (join pc (deep_label V2))) by (apply join_false_r; auto).
        destruct (tool_accepts H f (strip V1)).
        { eapply rrel_stuck_left; [exact Q1 | apply ext, S | exact G2]. }
        destruct (tool_accepts H f (strip V2)).
        { eapply rrel_stuck_right; [exact Q2 | apply ext', S | exact G1]. }
        destruct (lrel_label _ _ _ _ RV) as [[El Lo] | [H1 H2]].
        + destruct (misformed_rel (forms H f) _ _ _ _ S (Rw Lo)) as [E | [(b & m & E & B) | (b & m & E & B)]].
          * rewrite E. destruct (misformed s2 ws2 (forms H f)) as [[b m] |]; [| exact Rest].
            apply rrel_err_same; auto. repeat apply same_label_join; auto using same_label_self.
          * rewrite E in *. eapply rrel_stuck_left; [apply join_false_r, join_false_r, B | apply ext, S | exact G2].
          * rewrite E in *. eapply rrel_stuck_right; [apply join_false_r, join_false_r, B | apply ext', S | exact G1].
        + destruct (misformed s1 ws1 (forms H f)) as [[b m] |].
          { eapply rrel_stuck_left; [apply join_false_r, join_false_l, H1 | apply ext, S | exact G2]. }
          destruct (misformed s2 ws2 (forms H f)) as [[b m] |]; [| exact Rest].
          eapply rrel_stuck_right; [apply join_false_r, join_false_l, H2 | apply ext', S | exact G1].
    Qed.

    Lemma call_rel : forall pc f V1 V2 s1 s2,
      low pc -> lrel V1 V2 -> srel s1 s2 ->
      rrel (call (F := F) H ev1 pc f V1 s1) (call (F := F) H ev2 pc f V2 s2).
    Proof.
      intros pc f V1 V2 s1 s2 P RV S. unfold call.
      rewrite (visible_low _ _ _ _ P (proj2 (proj2 S))).
      apply called_rel; auto. apply srel_log; auto using same_label_self.
    Qed.

    Lemma apply_rel : forall V1 V2 W1 W2 s1 s2,
      lrel V1 V2 -> lrel W1 W2 -> srel s1 s2 ->
      rrel (apply (F := F) H ev1 V1 W1 s1) (apply (F := F) H ev2 V2 W2 s2).
    Proof.
      intros V1 V2 W1 W2 s1 s2 R RW S. destruct R as [l1 v1 l2 v2 A B | l v1 v2 A R].
      - eapply high_results with (1 := A) (2 := B) (3 := S).
        + apply (apply_conf H ev1 C1 (Lab l1 v1)).
        + apply (apply_conf H ev2 C2 (Lab l2 v2)).
      - assert (Bad : forall m, rrel (Err (deep_label (Lab l v1)) m, s1)
                                     (Err (deep_label (Lab l v2)) m, s2)).
        { intros. apply rrel_err_same; auto. apply lrel_deep_label with (pol := pol). auto. }
        destruct R as [k | c vs1 vs2 R | e env1 env2 P R]; unfold apply.
        + apply Bad.
        + destruct c as [| | | | | n | f]; try apply Bad; [| apply call_rel; auto using raise_rel, same_label_low].
          destruct R as [| F1 F2 vs1 vs2 Rf R]; try apply Bad.
          destruct R; [| apply Bad].
          assert (Env : forall n', lsrel [F1; Lab l (VCon (CFix n') [F1]); W1]
                                          [F2; Lab l (VCon (CFix n') [F2]); W2]) by auto 10.
          destruct n as [[| n] |].
          * apply rrel_val; auto. apply raise_rel; auto using same_label_low.
          * apply EV; auto.
          * apply EV; auto.
        + apply EV; auto.
    Qed.

    Lemma say_rel : forall m s1 s2, srel s1 s2 -> srel (say m s1) (say m s2).
    Proof.
      intros m s1 s2 S. apply srel_conv; auto.
      destruct (conv_label _ _ S) as [[E A] | [A1 A2]]; [left | right]; auto.
      rewrite <- E. auto.
    Qed.

    Lemma expect_rel : forall ms s1 s2, srel s1 s2 -> srel (expect ms s1) (expect ms s2).
    Proof.
      intros m s1 s2 S. apply srel_conv; auto.
      destruct (conv_label _ _ S) as [[E A] | [A1 A2]]; [left | right]; auto.
      rewrite <- E. auto.
    Qed.

    Lemma tell_same : forall s1 s2, cv s1 = cv s2 -> srel s1 s2 -> cv (tell s1) = cv (tell s2).
    Proof.
      intros s1 s2 E (_ & [[M _] _] & _). unfold tell. rewrite <- M, <- E.
      destruct (remarks s1); auto. destruct (Nat.eqb (told (cv s1)) _); auto.
    Qed.

    Lemma tell_rel : forall s1 s2, low (clab (cv s1)) -> cv s1 = cv s2 -> srel s1 s2 ->
      srel (tell s1) (tell s2).
    Proof.
      intros s1 s2 A E S. pose proof (tell_same _ _ E S) as Et.
      destruct S as (_ & [M S] & T).
      assert (K : forall s : state L, (remarks (tell s) = remarks s /\ fixed (tell s) = fixed s) /\ store (tell s) = store s).
      { intros s. unfold tell. destruct (remarks s) eqn:R; auto.
        destruct (Nat.eqb (told (cv s)) _); simpl; auto. }
      destruct (K s1) as [[R1 X1] K1], (K s2) as [[R2 X2] K2], M as [M Fr].
      split; [left; split; [exact Et | rewrite tell_lab; exact A] |].
      split; [split; [split; [congruence | rewrite X1, X2; exact Fr] | intros k B; rewrite K1, K2; auto] |].
      rewrite !tell_tr. exact T.
    Qed.

    (** In a visible conversation both runs ask the same and hear the same. *)
    Lemma question_rel : forall pc m s1 s2 k1 k2,
      low pc -> low (clab (cv s1)) -> cv s1 = cv s2 -> srel s1 s2 ->
      (forall reply t1 t2, srel t1 t2 -> cv t1 = cv t2 -> clab (cv t1) = clab (cv s1) ->
         rrel (k1 reply t1) (k2 reply t2)) ->
      rrel (question H pc m s1 k1) (question H pc m s2 k2).
    Proof.
      intros pc m s1 s2 k1 k2 P A E S K. unfold question. rewrite <- E.
      assert (S1 : srel (expect [] (log (clab (cv s1)) (RModel m (msgs (cv s1))) s1))
                        (expect [] (log (clab (cv s1)) (RModel m (msgs (cv s1))) s2)))
        by (apply expect_rel, srel_log; auto using same_label_low).
      assert (B : low (join pc (clab (cv s1)))) by (apply join_true; auto).
      rewrite (refusal_low _ _ _ _ _ B S).
      destruct (refusal H _ _ _ s2); [apply rrel_err; auto |].
      rewrite (visible_low _ _ _ _ A (proj2 (proj2 S))).
      destruct (model H m _ _) as [reply | e].
      - apply K; [apply expect_rel, say_rel; auto | unfold say, expect; simpl; rewrite E; auto | reflexivity].
      - apply rrel_err; auto.
    Qed.

    Lemma ask_rel : forall pc m s1 s2 k1 k2,
      low pc -> low (clab (cv s1)) -> cv s1 = cv s2 -> srel s1 s2 ->
      (forall reply t1 t2, srel t1 t2 -> cv t1 = cv t2 -> clab (cv t1) = clab (cv s1) ->
         rrel (k1 reply t1) (k2 reply t2)) ->
      rrel (ask H pc m s1 k1) (ask H pc m s2 k2).
    Proof.
      intros pc m s1 s2 k1 k2 P A E S K. unfold ask.
      apply question_rel; auto using tell_same, tell_rel.
      - rewrite tell_lab. exact A.
      - rewrite tell_lab. exact K.
    Qed.

    Lemma listen_rel : forall pc m s1 s2 k1 k2,
      low pc -> low (clab (cv s1)) -> cv s1 = cv s2 -> srel s1 s2 ->
      (forall reply t1 t2, srel t1 t2 -> cv t1 = cv t2 -> clab (cv t1) = clab (cv s1) ->
         rrel (k1 reply t1) (k2 reply t2)) ->
      rrel (listen H pc m s1 k1) (listen H pc m s2 k2).
    Proof.
      intros pc m s1 s2 k1 k2 P A E S K. unfold listen. rewrite <- E.
      destruct (if offers H m then later (cv s1) else []) as [| reply rest];
        [destruct (unasked H m); [apply K; auto | apply ask_rel; auto] |].
      apply K; [apply expect_rel, say_rel; auto | unfold say, expect; simpl; rewrite E; auto | reflexivity].
    Qed.

    Lemma run_reply_rel : forall lc reply s1 s2, low lc -> srel s1 s2 ->
      rrel (run_reply H ev1 lc reply s1) (run_reply H ev2 lc reply s2).
    Proof.
      intros lc reply s1 s2 A S. unfold run_reply.
      assert (Fail : forall m',
        rrel (Val (Lab lc (VCon CList [Lab lc (VK (KBool false)); Lab lc (VK (KStr m'))])), s1)
             (Val (Lab lc (VCon CList [Lab lc (VK (KBool false)); Lab lc (VK (KStr m'))])), s2)).
      { intros. apply rrel_val; auto 10. }
      destruct (parse H reply) as [e | e]; [| apply Fail].
      destruct (permits (policy H) e) eqn:Q; [| apply Fail].
      apply permits_mono with (1 := GEN) in Q.
      apply rrel_bind with (1 := EV _ _ _ _ _ _ A Q PRE S).
      - intros V1 V2 t1 t2 RV St. apply rrel_val; auto 10.
      - intros. apply grows_refl.
      - intros. apply grows_refl.
    Qed.

    Lemma recv_data_rel : forall n pc m s1 s2,
      low pc -> low (clab (cv s1)) -> cv s1 = cv s2 -> srel s1 s2 ->
      rrel (recv_data H pc m n s1) (recv_data H pc m n s2).
    Proof.
      induction n as [| n IH]; intros pc m s1 s2 P A E S; simpl;
        apply listen_rel; auto; intros reply t1 t2 St Et El; rewrite <- E;
        (assert (J : low (join pc (clab (cv s1)))) by (apply join_true; auto));
        (destruct (decode H m reply) as [d | e]; [apply accept_rel; auto using same_label_low |]).
      - apply rrel_err; auto using expect_rel.
      - apply IH; auto.
        + unfold say, expect. simpl. rewrite El. auto.
        + unfold say, expect. simpl. rewrite Et. auto.
        + apply say_rel, expect_rel; auto.
    Qed.

    Lemma recv_rel : forall pc m md s1 s2,
      low pc -> srel s1 s2 -> rrel (do_recv H ev1 pc m md s1) (do_recv H ev2 pc m md s2).
    Proof.
      intros pc m md s1 s2 P S.
      destruct (conv_label _ _ S) as [[E A] | [A1 A2]].
      2: { eapply high_results with (1 := A1) (2 := A2) (3 := S); apply recv_conf_conv; auto. }
      unfold do_recv. rewrite <- E.
      assert (B : low (join pc (clab (cv s1)))) by (apply join_true; auto).
      destruct (flows pc (clab (cv s1))); [| apply rrel_err; auto].
      destruct (flows (clab (cv s1)) (clearance H m)); [| apply rrel_err; auto].
      destruct md.
      - apply ask_rel; auto. intros. apply run_reply_rel; auto.
      - apply recv_data_rel; auto.
    Qed.

    Lemma fork_rel : forall pc env1 env2 s1 s2 e,
      low pc -> permits pol e = true -> lsrel env1 env2 -> srel s1 s2 ->
      rrel (do_fork ev1 pc env1 s1 e) (do_fork ev2 pc env2 s2 e).
    Proof.
      intros pc env1 env2 s1 s2 e A P R S. unfold do_fork.
      apply rrel_restore. apply S.
      apply EV; auto. apply srel_conv; auto.
      destruct (conv_label _ _ S) as [[E B] | [B1 B2]].
      - left. rewrite <- E. split; auto. apply join_true; auto.
      - right. split; apply join_false_l; auto.
    Qed.

    Lemma fresh_rel : forall pc env1 env2 s1 s2 e,
      low pc -> permits pol e = true -> lsrel env1 env2 -> srel s1 s2 ->
      rrel (do_fresh ev1 pc env1 s1 e) (do_fresh ev2 pc env2 s2 e).
    Proof.
      intros pc env1 env2 s1 s2 e A P R S. unfold do_fresh.
      apply rrel_restore. apply S.
      apply EV; auto. apply srel_conv; auto. left. auto.
    Qed.

    Lemma try_rel : forall all pc1 pc2 env1 env2 s1 s2 e1 e2,
      same_label pc1 pc2 -> permits pol e1 = true -> permits pol e2 = true ->
      lsrel env1 env2 -> srel s1 s2 ->
      rrel (do_try H ev1 all pc1 env1 s1 e1 e2) (do_try H ev2 all pc2 env2 s2 e1 e2).
    Proof.
      intros all pc1 pc2 env1 env2 s1 s2 e1 e2 [[-> A] | [A B]] P1 P2 R S.
      2: { eapply high_results with (1 := A) (2 := B) (3 := S); apply try_conf; auto. }
      rename pc2 into pc. unfold do_try.
      assert (High : forall l, high l -> flows l pc = false).
      { intros l B. destruct (flows l pc) eqn:E; auto.
        rewrite (flows_trans L _ _ _ E A) in B. discriminate. }
      destruct (EV _ _ _ _ _ _ A P1 R S)
        as [V1 V2 t1 t2 | l m t1 t2 B St | o1 o2 t1 t2 B X | o1 o2 t1 t2 B X].
      - apply rrel_val; auto.
      - destruct (flows l pc && _).
        + apply EV; auto.
        + apply rrel_err; auto.
      - assert (G : grows t2 match o2 with
          | Err l m => if flows l pc && (all || negb (is_timeout H m))
                       then ev2 pc (Lab l (VK (KStr m)) :: env2) t2 e2 else (Err l m, t2)
          | _ => (o2, t2) end).
        { destruct o2; try apply grows_refl.
          destruct (flows l pc && _); auto using grows_refl, grows2. }
        destruct o1; simpl in B; try contradiction; try rewrite (High _ B);
          (eapply rrel_stuck_left; [| exact X |]; [exact B |]); destruct o2; exact G.
      - assert (G : grows t1 match o1 with
          | Err l m => if flows l pc && (all || negb (is_timeout H m))
                       then ev1 pc (Lab l (VK (KStr m)) :: env1) t1 e2 else (Err l m, t1)
          | _ => (o1, t1) end).
        { destruct o1; try apply grows_refl.
          destruct (flows l pc && _); auto using grows_refl, grows1. }
        destruct o2; simpl in B; try contradiction; try rewrite (High _ B);
          (eapply rrel_stuck_right; [| exact X |]; [exact B |]); destruct o1; exact G.
    Qed.

    Lemma close_rel : forall pc r1 r2, low pc -> rrel r1 r2 -> rrel (close pc r1) (close pc r2).
    Proof.
      assert (G : forall pc o (s : state L), grows s (close pc (o, s))).
      { intros pc [V | l m |] s; unfold close; try destruct (flows l pc);
          try apply grows_refl; exists [Event pc REnd]; reflexivity. }
      intros pc r1 r2 A R.
      assert (High : forall l, high l -> flows l pc = false).
      { intros l B. destruct (flows l pc) eqn:E; auto.
        rewrite (flows_trans L _ _ _ E A) in B. discriminate. }
      destruct R as [V1 V2 s1 s2 RV S | l m s1 s2 Lo S | o1 o2 s1 s2 B X | o1 o2 s1 s2 B X].
      - apply rrel_val; auto. apply srel_log; auto using same_label_low.
      - unfold close. apply rrel_err; auto. destruct (flows l pc); auto.
        apply srel_log; auto using same_label_low.
      - specialize (G pc o2 s2).
        destruct o1 as [| l m |]; simpl in B; try contradiction; unfold close at 1; try rewrite (High _ B);
          eapply rrel_stuck_left; eauto; simpl; auto.
      - specialize (G pc o1 s1).
        destruct o2 as [| l m |]; simpl in B; try contradiction; unfold close at 2; try rewrite (High _ B);
          eapply rrel_stuck_right; eauto; simpl; auto.
    Qed.

    Lemma within_rel : forall n pc env1 env2 s1 s2 e,
      low pc -> permits pol e = true -> lsrel env1 env2 -> srel s1 s2 ->
      rrel (do_within ev1 n pc env1 s1 e) (do_within ev2 n pc env2 s2 e).
    Proof.
      intros n pc env1 env2 s1 s2 e A P R S. apply close_rel; auto. apply EV; auto.
      apply srel_log; auto using same_label_low.
    Qed.

    Lemma pars_rel : forall es pc env1 env2 acc1 acc2 s1 s2,
      low pc -> forallb (permits pol) es = true -> lsrel env1 env2 ->
      lsrel acc1 acc2 -> srel s1 s2 ->
      rrel (pars ev1 pc env1 acc1 s1 es) (pars ev2 pc env2 acc2 s2 es).
    Proof.
      induction es as [| e es IH]; intros pc env1 env2 acc1 acc2 s1 s2 A P R Ra S.
      - apply rrel_val; auto. apply lrel_low; auto using lsrel_rev.
      - assert (High : forall l, high l -> flows l pc = false).
        { intros l B. destruct (flows l pc) eqn:E; auto.
          rewrite (flows_trans L _ _ _ E A) in B. discriminate. }
        pose proof (pars_cons ev1 pc env1 acc1) as Q1.
        pose proof (pars_cons ev2 pc env2 acc2) as Q2.
        assert (G1 : forall es acc s, grows s (pars ev1 pc env1 acc s es))
          by (intros; eapply confined_grows, pars_conf; auto).
        assert (G2 : forall es acc s, grows s (pars ev2 pc env2 acc s es))
          by (intros; eapply confined_grows, pars_conf; auto).
        simpl in P. apply andb_true_iff in P. destruct P as [P Ps].
        rewrite Q1, Q2.
        destruct (fork_rel _ _ _ _ _ _ A P R S)
          as [V1 V2 t1 t2 RV St | l m t1 t2 B St | o1 o2 t1 t2 B X | o1 o2 t1 t2 B X].
        + apply IH; auto.
        + destruct (flows l pc); [| apply rrel_err; auto].
          destruct (IH pc env1 env2 acc1 acc2 t1 t2 A Ps R Ra St)
            as [V1 V2 u1 u2 RV Su | l' m' u1 u2 B' Su | o1 o2 u1 u2 B' X | o1 o2 u1 u2 B' X].
          * apply rrel_err; auto.
          * destruct (flows l' pc); apply rrel_err; auto.
          * destruct o1; simpl in B'; try contradiction; try rewrite (High _ B');
              destruct o2; try destruct (flows _ pc); apply rrel_left; auto.
          * destruct o2; simpl in B'; try contradiction; try rewrite (High _ B');
              destruct o1; try destruct (flows _ pc); apply rrel_right; auto.
        + destruct o1; simpl in B; try contradiction; try rewrite (High _ B);
            (eapply rrel_stuck_left; [| exact X |]; [exact B |]);
            (destruct o2; [apply G2 | | apply grows_refl]);
            (destruct (flows l0 pc) || destruct (flows l pc)); try apply grows_refl;
            match goal with |- context [pars ev2 pc env2 acc2 t2 es] =>
              generalize (G2 es acc2 t2); destruct (pars ev2 pc env2 acc2 t2 es) as [[] ?] end;
            intros [t E]; exists t; auto; destruct (flows _ pc); auto.
        + destruct o2; simpl in B; try contradiction; try rewrite (High _ B);
            (eapply rrel_stuck_right; [| exact X |]; [exact B |]);
            (destruct o1; [apply G1 | | apply grows_refl]);
            (destruct (flows l0 pc) || destruct (flows l pc)); try apply grows_refl;
            match goal with |- context [pars ev1 pc env1 acc1 t1 es] =>
              generalize (G1 es acc1 t1); destruct (pars ev1 pc env1 acc1 t1 es) as [[] ?] end;
            intros [t E]; exists t; auto; destruct (flows _ pc); auto.
    Qed.

    Lemma applications_permits : forall n, forallb (permits pol) (applications n) = true.
    Proof. intros n. unfold applications. induction (seq 0 n); simpl; auto. Qed.

    Lemma each_rel : forall pc V1 V2 W1 W2 s1 s2,
      low pc -> lrel V1 V2 -> lrel W1 W2 -> srel s1 s2 ->
      rrel (do_each ev1 pc V1 W1 s1) (do_each ev2 pc V2 W2 s2).
    Proof.
      intros pc V1 V2 W1 W2 s1 s2 A RV RW S.
      pose proof (each_conf H ev1 C1 pc V1 W1 s1) as G1.
      pose proof (each_conf H ev2 C2 pc V2 W2 s2) as G2.
      destruct RW as [l1 w1 l2 w2 B1 B2 | l w1 w2 B RW].
      - eapply high_results with (3 := S) (4 := G1) (5 := G2); simpl; apply join_false_r; auto.
      - assert (Lo : low (join pc l)) by (apply join_true; auto).
        assert (Bad : forall m, rrel (Err (join pc (deep_label (Lab l w1))) m, s1)
                                     (Err (join pc (deep_label (Lab l w2))) m, s2)).
        { intros. apply rrel_err_same; auto. apply same_label_join; auto using same_label_low.
          apply lrel_deep_label with (pol := pol). auto. }
        unfold do_each. destruct RW as [| c vs1 vs2 R |]; try apply Bad.
        destruct c; try apply Bad. rewrite (lsrel_length _ _ R).
        apply pars_rel; auto using applications_permits.
    Qed.

    Lemma verdict_grows : forall pc V Vb (s : state L) again,
      (forall l, grows s (again l)) -> grows s (verdict pc V Vb s again).
    Proof.
      intros pc V [l v] s again A. unfold verdict.
      destruct v as [[| [] | | |] | |]; auto using grows_refl.
    Qed.

    Lemma verdict_rel : forall pc V1 V2 W1 W2 s1 s2 again1 again2,
      low pc -> lrel V1 V2 -> lrel W1 W2 -> srel s1 s2 ->
      (forall l, flows pc l = true -> confined l s1 (again1 l)) ->
      (forall l, flows pc l = true -> confined l s2 (again2 l)) ->
      (forall l, low l -> rrel (again1 l) (again2 l)) ->
      rrel (verdict pc V1 W1 s1 again1) (verdict pc V2 W2 s2 again2).
    Proof.
      intros pc V1 V2 W1 W2 s1 s2 again1 again2 A RV RW S B1 B2 K.
      pose proof (verdict_conf H pc V1 W1 s1 again1 B1) as G1.
      pose proof (verdict_conf H pc V2 W2 s2 again2 B2) as G2.
      pose proof (same_label_join _ _ _ _ _ (same_label_low _ _ A) (lrel_label _ _ _ _ RW)) as J.
      destruct RW as [l1 v1 l2 v2 D1 D2 | l v1 v2 D RW].
      - eapply high_results with (3 := S) (4 := G1) (5 := G2); apply join_false_r; auto.
      - assert (D' : low (join pc l)) by (apply join_true; auto).
        unfold verdict. simpl in *.
        destruct RW as [k | |]; try (apply rrel_err; auto).
        destruct k as [| [] | | |]; try (apply rrel_err; auto); auto.
        apply rrel_val; auto. apply raise_rel; auto.
    Qed.

    (** What is said of a refusal that the observer sees is the same in both runs. *)
    Lemma reason_same : forall l W1 W2 V1 V2, low l -> lrel W1 W2 -> lrel V1 V2 ->
      reason H l W1 V1 = reason H l W2 V2.
    Proof.
      intros l W1 W2 V1 V2 A RW RV. unfold reason.
      destruct (lrel_deep _ _ _ _ RW) as [(D1 & D2 & D3) | [D1 D2]].
      - destruct (lrel_deep _ _ _ _ RV) as [(B1 & B2 & B3) | [B1 B2]].
        + rewrite D1, D2, B1, B2. reflexivity.
        + rewrite !(not_flows _ _ A); auto using join_false_r.
      - rewrite !(not_flows _ _ A); auto using join_false_l.
    Qed.

    Lemma forgotten_rel : forall pc ms s1 s2, srel s1 s2 ->
      srel (forgotten pc ms s1) (forgotten pc ms s2).
    Proof.
      assert (K : forall pc ms (s : state L), (store (forgotten pc ms s) = store s /\ fixed (forgotten pc ms s) = fixed s) /\
        tr (forgotten pc ms s) = tr s /\ clab (cv (forgotten pc ms s)) = clab (cv s)).
      { intros pc ms s. unfold forgotten. destruct (flows pc _ && negb _); auto. }
      intros pc ms s1 s2 (C & [M S] & T).
      destruct (K pc ms s1) as ([K1 X1] & T1 & L1), (K pc ms s2) as ([K2 X2] & T2 & L2), M as [M Fr].
      split; [| split; [split; [split; [reflexivity | rewrite X1, X2; exact Fr] | intros k B; rewrite K1, K2; auto] | rewrite T1, T2; exact T]].
      destruct C as [[E A] | [A1 A2]]; [left | right; rewrite L1, L2; auto].
      split; [| rewrite L1; exact A].
      unfold forgotten. rewrite E. destruct (flows pc _ && negb _); [reflexivity | exact E].
    Qed.

    Lemma retry_rel : forall pc m s1 s2 f1 f2, srel s1 s2 ->
      (forall t1 t2, srel t1 t2 -> rrel (f1 t1) (f2 t2)) ->
      rrel (retry pc m s1 f1) (retry pc m s2 f2).
    Proof.
      assert (X : forall pc ms (s t : state L), extends z s t ->
        extends z (forgotten pc ms s) (forgotten pc ms t)).
      { intros pc ms s t [u E]. exists u. unfold forgotten.
        destruct (flows pc (clab (cv s)) && _), (flows pc (clab (cv t)) && _); exact E. }
      intros pc m s1 s2 f1 f2 S A. unfold retry, forget.
      assert (M : remarks s1 = remarks s2) by apply S. rewrite <- M.
      assert (S' : srel (set_remarks (m :: remarks s1) s1) (set_remarks (m :: remarks s1) s2)).
      { destruct S as (C & [[_ Fr] S] & T). split; [exact C | split; [split; [split; [reflexivity | exact Fr] | exact S] | exact T]]. }
      destruct (A _ _ S') as [V1 V2 t1 t2 RV St | l n t1 t2 B St | o1 o2 t1 t2 B E | o1 o2 t1 t2 B E]; simpl.
      - apply rrel_val; auto using forgotten_rel.
      - apply rrel_err; auto using forgotten_rel.
      - apply rrel_left; auto.
      - apply rrel_right; auto.
    Qed.

    Lemma judge_grows : forall ev env p k pc V (s : state L) again,
      (forall pc env s e, confined pc s (ev pc env s e)) ->
      (forall l m s', grows s' (again l m s')) -> grows s (judge H ev env p k pc V s again).
    Proof.
      intros ev env p k pc V s again C A. unfold judge.
      apply grows_bind; [eapply confined_grows, C | intros Vp s2].
      destruct (is_function _); [apply grows_refl |].
      apply grows_bind; [eapply confined_grows, C | intros Vb s3]. apply verdict_grows. auto.
    Qed.

    Lemma judge_rel : forall env1 env2 p k pc V1 V2 s1 s2 again1 again2,
      low pc -> permits pol p = true -> lsrel env1 env2 -> lrel V1 V2 -> low (label_of V1) -> srel s1 s2 ->
      (forall l m s, flows pc l = true -> confined l s (again1 l m s)) ->
      (forall l m s, flows pc l = true -> confined l s (again2 l m s)) ->
      (forall l m t1 t2, low l -> srel t1 t2 -> rrel (again1 l m t1) (again2 l m t2)) ->
      (forall l m s, grows s (again1 l m s)) -> (forall l m s, grows s (again2 l m s)) ->
      rrel (judge H ev1 env1 p k pc V1 s1 again1) (judge H ev2 env2 p k pc V2 s2 again2).
    Proof.
      intros env1 env2 p k pc V1 V2 s1 s2 again1 again2 A P R RV Lo S B1 B2 K G1 G2. unfold judge.
      apply rrel_bind with (1 := EV _ _ _ _ _ _ A P R S).
      - intros W1 W2 t1 t2 RW St.
        assert (E : is_function (match V1 with Lab _ v => v end) = is_function (match V2 with Lab _ v => v end)).
        { destruct RV as [l1 v1 l2 v2 A1 _ | l v1 v2 _ Rv]; [simpl in Lo; congruence |].
          destruct Rv as [| c ? ? ? |]; auto. }
        rewrite <- E. destruct (is_function _).
        { apply rrel_val; auto. unfold guarded. apply lrel_low; auto. }
        assert (Re : lsrel [W1; V1] [W2; V2]) by auto.
        apply rrel_bind with (1 := EV _ _ _ _ _ (EApp (EVar 0) (EVar 1)) A eq_refl Re St).
        + intros X1 X2 w1 w2 RX Sw. apply verdict_rel; auto.
          intros l Ll. cbv beta. rewrite (reason_same _ _ _ _ _ Ll RW RV). auto.
        + intros. apply verdict_grows. auto.
        + intros. apply verdict_grows. auto.
      - intros Vp t. destruct (is_function _); [apply grows_refl |].
        apply grows_bind; [apply grows1 | intros]. apply verdict_grows. auto.
      - intros Vp t. destruct (is_function _); [apply grows_refl |].
        apply grows_bind; [apply grows2 | intros]. apply verdict_grows. auto.
    Qed.

    Lemma guard_rel : forall n k pc env1 env2 s1 s2 e p,
      low pc -> permits pol e = true -> permits pol p = true ->
      lsrel env1 env2 -> srel s1 s2 ->
      rrel (guard H ev1 env1 e p k n pc s1) (guard H ev2 env2 e p k n pc s2).
    Proof.
      assert (Failed : forall (pc' : L) V (s : state L),
        confined pc' s (Err (join pc' (deep_label V)) "guard failed"%string, s)).
      { intros. split; [simpl; apply join_l | apply state_conf_refl]. }
      assert (Re1 : forall n k env e p pc m (s : state L),
        confined pc s (retry pc m s (guard H ev1 env e p k n pc))).
      { intros. apply retry_conf. intros. apply guard_conf. auto. }
      assert (Re2 : forall n k env e p pc m (s : state L),
        confined pc s (retry pc m s (guard H ev2 env e p k n pc))).
      { intros. apply retry_conf. intros. apply guard_conf. auto. }
      induction n as [| n IH]; intros k pc env1 env2 s1 s2 e p A Pe Pp R S; simpl;
        (apply rrel_bind with (1 := EV _ _ _ _ _ _ A Pe R S);
         [ intros V1 V2 t1 t2 RV St
         | intros V t; apply judge_grows; auto; intros;
           first [apply grows_refl | eapply confined_grows, Re1]
         | intros V t; apply judge_grows; auto; intros;
           first [apply grows_refl | eapply confined_grows, Re2] ]);
        (destruct (lrel_label _ _ _ _ RV) as [[E Lo] | [H1 H2]];
         [ rewrite <- E; apply judge_rel; auto;
           [ apply join_true; auto | .. ]
         | assert (J1 : high (join pc (label_of V1))) by (apply join_false_r; auto);
           assert (J2 : high (join pc (label_of V2))) by (apply join_false_r; auto);
           eapply high_results with (1 := J1) (2 := J2) (3 := St); apply judge_conf; auto ]);
        intros; try apply grows_refl; try (eapply confined_grows; first [apply Re1 | apply Re2]; fail);
        try (first [apply Re1 | apply Re2]; fail); try (apply retry_rel; auto; fail); auto.
      apply rrel_err_same; auto.
      apply same_label_join; auto using same_label_low. exact (lrel_deep_label _ _ _ _ RV).
    Qed.
  End Helpers.

  (** ** The theorem *)

  Lemma branch_permits : forall k bs d e,
    forallb (fun b => permits pol (snd b)) bs = true ->
    match d with Some e' => permits pol e' | None => true end = true ->
    branch k bs d = Some e -> permits pol e = true.
  Proof.
    induction bs as [| [k' e'] bs IH]; simpl; intros d e P Pd E.
    - rewrite E in Pd. auto.
    - apply andb_true_iff in P. destruct P as [P Ps].
      destruct (scalar_eqb k k'); [inversion E; subst; auto | eauto].
  Qed.

  Lemma chosen_permits : forall (v : val L) bs d e,
    forallb (fun b => permits pol (snd b)) bs = true ->
    match d with Some e' => permits pol e' | None => true end = true ->
    chosen v bs d = Some e -> permits pol e = true.
  Proof.
    intros v bs d e P Pd E. unfold chosen in E. destruct (dispatch v).
    - eapply branch_permits; eauto.
    - subst. auto.
  Qed.

  (** A comparison with a visible label cannot tell related labels apart. *)
  Lemma flows_same : forall l1 l2 l, low l -> same_label l1 l2 -> flows l1 l = flows l2 l.
  Proof.
    intros l1 l2 l A [[-> _] | [B1 B2]]; auto.
    assert (N : forall a, high a -> flows a l = false).
    { intros a Ha. destruct (flows a l) eqn:E; auto.
      rewrite (flows_trans L _ _ _ E A) in Ha. discriminate. }
    rewrite !N; auto.
  Qed.

  (** A structure and a selector: both visible, or the joint label is not. *)
  Lemma get_labels : forall pc V1 V2 W1 W2, low pc -> lrel V1 V2 -> lrel W1 W2 ->
    (exists l1 l2 v1 v2 w1 w2,
       V1 = Lab l1 v1 /\ V2 = Lab l1 v2 /\ W1 = Lab l2 w1 /\ W2 = Lab l2 w2 /\
       low (join pc (join l1 l2)) /\ vrel v1 v2 /\ vrel w1 w2) \/
    (high (join pc (join (label_of V1) (label_of W1))) /\
     high (join pc (join (label_of V2) (label_of W2)))).
  Proof.
    intros pc V1 V2 W1 W2 A RV RW.
    destruct RV as [l1 v1 l2 v2 B1 B2 | l v1 v2 B RV].
    { right. simpl. split; apply join_false_r, join_false_l; auto. }
    destruct RW as [m1 w1 m2 w2 D1 D2 | m w1 w2 D RW].
    { right. simpl. split; apply join_false_r, join_false_r; auto. }
    left. exists l, m, v1, v2, w1, w2. repeat split; auto.
    apply join_true. split; auto. apply join_true; auto.
  Qed.

  Ltac perms :=
    repeat match goal with
           | P : _ && _ = true |- _ => apply andb_true_iff in P; destruct P
           end.

  (** Growth of a continuation: it is made of evaluations and returns. *)
  Ltac grow :=
    intros;
    repeat first
      [ apply grows_refl
      | eapply confined_grows, confinement
      | apply grows_bind; [| intros]
      | eapply confined_grows, apply_conf; intros; apply confinement
      | eapply confined_grows, evals_conf; intros; apply confinement
      | eapply confined_grows, call_conf; intros; apply confinement
      | eapply confined_grows, send_conf
      | eapply confined_grows, remember_conf
      | eapply confined_grows, try_conf; intros; apply confinement
      | eapply confined_grows, each_conf; intros; apply confinement
      | apply accept_grows
      | apply primitive_grows
      | match goal with |- grows _ (match ?x with _ => _ end) => destruct x end
      | match goal with |- grows _ (if ?x then _ else _) => destruct x end ].

  Theorem noninterference_low : forall n1 n2 pc env1 env2 s1 s2 e,
    low pc -> permits pol e = true -> lsrel env1 env2 -> srel s1 s2 ->
    rrel (eval (F := F) H n1 pc env1 s1 e) (eval (F := F) H n2 pc env2 s2 e).
  Proof.
    induction n1 as [| n1 IH]; intros n2 pc env1 env2 s1 s2 e A P R S.
    { eapply rrel_stuck_left; [| apply ext, S |]; simpl; auto. grow. }
    destruct n2 as [| n2].
    { eapply rrel_stuck_right; [| apply ext', S |]; [simpl; auto |].
      eapply confined_grows, confinement. }
    specialize (IH n2).
    pose proof (confinement (F := F) H n1) as C1.
    pose proof (confinement (F := F) H n2) as C2.
    destruct e; simpl in P; perms.
    - (* variable *) simpl.
      destruct (lsrel_nth _ _ _ _ i R) as [(V1 & V2 & E1 & E2 & RV) | [E1 E2]]; rewrite E1, E2.
      + apply rrel_val; auto. apply raise_rel; auto using same_label_low.
      + apply rrel_err; auto.
    - (* lambda *) apply rrel_val; auto. apply lrel_low; auto. constructor; auto.
      apply lsrel_capture; auto.
    - (* application *) simpl.
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [apply IH; auto | intros V1 V2 t1 t2 RV St | grow | grow].
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [apply IH; auto | intros W1 W2 u1 u2 RW Su | grow | grow].
      apply apply_rel; auto.
    - (* constant *) apply rrel_val; auto.
    - (* structure *) simpl.
      apply rrel_bind with (r1 := evals _ _ _ _ _ _ _) (r2 := evals _ _ _ _ _ _ _); [apply evals_rel; auto | | |].
      + intros V1 V2 t1 t2 RV St. apply rrel_val; auto using prepare_rel.
      + intros. apply prepare_grows.
      + intros. apply prepare_grows.
    - (* get *) simpl.
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [apply IH; auto | intros V1 V2 t1 t2 RV St | grow | grow].
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [apply IH; auto | intros W1 W2 u1 u2 RW Su | grow | grow].
      pose proof (same_label_join _ _ _ _ _ (same_label_low _ _ A) (same_label_join _ _ _ _ _
        (lrel_deep_label _ _ _ _ RV) (lrel_deep_label _ _ _ _ RW))) as D.
      destruct (get_labels _ _ _ _ _ A RV RW) as [J | (J1 & J2)].
      + destruct J as (l1 & l2 & v1 & v2 & w1 & w2 & -> & -> & -> & -> & Lo & Rv & Rw).
        unfold do_get.
        destruct Rv as [k | c vs1 vs2 Rs | ? ? ? ? ?]; [| | apply rrel_err_same; auto].
        { destruct Rw as [k2 | |]; [| destruct k; apply rrel_err_same; auto ..].
          destruct k; try destruct k2;
            try match goal with |- context [char_at H ?t ?q] => destruct (char_at H t q) end;
            try match goal with |- context [no_payload ?x ?y] => destruct (no_payload x y) end;
            first [apply rrel_val; auto; fail | apply rrel_err_same; auto]. }
        destruct Rw as [k | |]; [| apply rrel_err_same; auto ..].
        destruct (select c k) as [i |]; [| apply rrel_err_same; auto].
        destruct (lsrel_nth _ _ _ _ i Rs) as [(X1 & X2 & E1 & E2 & RX) | [E1 E2]]; rewrite E1, E2.
        * apply rrel_val; auto. apply raise_rel; auto using same_label_low.
        * apply rrel_err_same; auto.
      + eapply high_results with (1 := J1) (2 := J2) (3 := Su); apply get_conf.
    - (* set *) simpl.
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [apply IH; auto | intros V1 V2 t1 t2 RV St | grow | grow].
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [apply IH; auto | intros W1 W2 u1 u2 RW Su | grow | grow].
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [apply IH; auto | intros X1 X2 w1 w2 RX Sw | grow | grow].
      pose proof (same_label_join _ _ _ _ _ (same_label_low _ _ A) (same_label_join _ _ _ _ _
        (lrel_deep_label _ _ _ _ RV) (lrel_deep_label _ _ _ _ RW))) as D.
      destruct (get_labels _ _ _ _ _ A RV RW) as [J | (J1 & J2)].
      + destruct J as (l1 & l2 & v1 & v2 & y1 & y2 & -> & -> & -> & -> & Lo & Rv & Rw).
        unfold do_set.
        destruct Rv as [k | c vs1 vs2 Rs | ? ? ? ? ?];
          [apply rrel_err_same; auto | | apply rrel_err_same; auto].
        destruct Rw as [k | |]; [| apply rrel_err_same; auto ..].
        destruct (update_rel _ _ c k _ _ _ _ RX Rs)
          as [(c' & ws1 & ws2 & E1 & E2 & Rs') | [E1 E2]]; rewrite E1, E2.
        * apply rrel_val; auto.
        * apply rrel_err_same; auto.
      + eapply high_results with (1 := J1) (2 := J2) (3 := Sw); apply set_conf.
    - (* primitive *) simpl.
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [apply IH; auto | intros V1 V2 t1 t2 RV St | grow | grow].
      apply primitive_rel; auto.
    - (* case *) simpl.
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [apply IH; auto | intros V1 V2 t1 t2 RV St | grow | grow].
      destruct RV as [l1 v1 l2 v2 B1 B2 | l v1 v2 B RV].
      + assert (J1 : high (join pc l1)) by (apply join_false_r; auto).
        assert (J2 : high (join pc l2)) by (apply join_false_r; auto).
        eapply high_results with (1 := J1) (2 := J2) (3 := St).
        * destruct (chosen v1 bs d); auto;
            (split; [exact (join_mono_r pc _ _ (label_deep (Lab l1 v1))) | apply state_conf_refl]).
        * destruct (chosen v2 bs d); auto;
            (split; [exact (join_mono_r pc _ _ (label_deep (Lab l2 v2))) | apply state_conf_refl]).
      + assert (J : low (join pc l)) by (apply join_true; auto).
        assert (D : same_label (join pc (deep_label (Lab l v1))) (join pc (deep_label (Lab l v2)))).
        { apply same_label_join; auto using same_label_low.
          apply lrel_deep_label with (pol := pol). auto. }
        assert (E : chosen v1 bs d = chosen v2 bs d) by (destruct RV; auto).
        rewrite <- E. destruct (chosen v1 bs d) as [e' |] eqn:Eb; [| apply rrel_err_same; auto].
        apply IH; auto. eapply chosen_permits; eauto.
    - (* guard *) simpl. apply guard_rel; auto.
    - (* choose *) simpl.
      assert (S' : srel (log pc (RSample p) s1) (log pc (RSample p) s2))
        by (apply srel_log; auto using same_label_low).
      rewrite (refusal_low _ _ _ _ _ A S).
      destruct (refusal H _ _ _ s2); [apply rrel_err; auto |].
      rewrite (visible_low _ _ _ _ A (proj2 (proj2 S))).
      destruct (sample H p (visible pc (tr s2))); apply IH; auto.
    - (* tool *) simpl.
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [apply IH; auto | intros V1 V2 t1 t2 RV St | grow | grow].
      apply call_rel; auto.
    - (* recall *) simpl. apply recall_rel; auto.
    - (* remember *) simpl.
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [apply IH; auto | intros V1 V2 t1 t2 RV St | grow | grow].
      apply remember_rel; auto.
    - (* send *) simpl.
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [apply IH; auto | intros V1 V2 t1 t2 RV St | grow | grow].
      apply send_rel; auto.
    - (* recv *) simpl. apply recv_rel; auto.
    - (* fork *) simpl. apply fork_rel; auto.
    - (* fresh *) simpl. apply fresh_rel; auto.
    - (* clear *) simpl. apply clear_rel; auto.
    - (* label *) simpl. apply with_label_rel; auto; [| grow | grow].
      intros m1 m2 l1 l2 t1 t2 St [(<- & <- & B) | [B1 B2]].
      + apply ev_same; auto. destruct (flows (join pc (join m1 l1)) z) eqn:E; [left | right]; auto.
      + apply ev_same; auto. right. split; apply join_false_r, join_false_l; auto.
    - (* test *) simpl. apply with_label_rel; auto; [| grow | grow].
      intros m1 m2 l1 l2 t1 t2 St Sm.
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [ apply ev_same; auto | intros V1 V2 u1 u2 RV Su | grow | grow ].
      + apply same_label_join; auto using same_label_low.
        destruct Sm as [(<- & _ & B) | B]; [left | right]; auto.
      + destruct Sm as [(<- & <- & B) | [B1 B2]].
        * apply rrel_val; auto. apply lab_rel.
          -- destruct (flows (join pc (join m1 l1)) z) eqn:E; [left | right]; auto.
          -- intros J. apply join_true in J. destruct J as [_ J].
             apply join_true in J. destruct J as [_ J].
             rewrite (flows_same _ _ _ J (lrel_label _ _ _ _ RV)). auto.
        * apply rrel_val; auto. constructor; apply join_false_r, join_false_l; auto.
    - (* assert *) simpl. apply with_label_rel; auto; [| grow | grow].
      intros m1 m2 l1 l2 t1 t2 St Sm.
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [apply IH; auto | intros V1 V2 u1 u2 RV Su | grow | grow].
      destruct Sm as [(<- & <- & B) | [B1 B2]].
      + destruct (flows m1 pc); simpl.
        2: { apply rrel_err_same; auto.
             destruct (flows (join pc (join m1 l1)) z) eqn:E; [left | right]; auto. }
        destruct (flows l1 z) eqn:J.
        * rewrite (flows_same _ _ _ J (lrel_label _ _ _ _ RV)).
          destruct (flows (label_of V2) l1).
          -- apply rrel_val; auto using unit_rel.
          -- apply rrel_err; auto. apply join_true; split; auto. apply join_true; auto.
        * assert (J' : high (join pc (join m1 l1))) by (apply join_false_r, join_false_r; auto).
          destruct (flows (label_of V1) l1), (flows (label_of V2) l1).
          -- apply rrel_val; auto using unit_rel.
          -- apply rrel_right; auto.
          -- apply rrel_left; auto.
          -- apply rrel_left; auto.
      + assert (N : forall m, high m -> flows m pc = false).
        { intros m B. destruct (flows m pc) eqn:E; auto.
          rewrite (flows_trans L _ _ _ E A) in B. discriminate. }
        rewrite !N; auto. simpl. apply rrel_err_same; auto.
        right. split; apply join_false_r, join_false_l; auto.
    - (* reclassification *) simpl. apply with_label_rel; auto; [| grow | grow].
      intros m1 m2 l1 l2 t1 t2 St Sm.
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [ apply ev_same; auto | intros V1 V2 u1 u2 RV Su | grow | grow ].
      + apply same_label_join; auto using same_label_low.
        destruct Sm as [(<- & _ & B) | B]; [left | right]; auto.
      + destruct Sm as [(<- & <- & B) | [B1 B2]].
        * destruct RV as [a1 v1 a2 v2 B1 B2 | a v1 v2 B1 RV].
          -- apply rrel_val; auto.
             assert (N : forall a, high a -> high (join pc (join m1 (mix F ax l1 a)))).
             { intros a Ha. apply join_false_r, join_false_r.
               destruct (flows (mix F ax l1 a) z) eqn:E; auto.
               rewrite (POL ax) in Ha; eauto. }
             constructor; auto.
          -- apply rrel_val; auto. apply lab_rel; auto.
             destruct (flows (join pc (join m1 (mix F ax l1 a))) z) eqn:E; [left | right]; auto.
        * destruct V1 as [a1 v1], V2 as [a2 v2].
          apply rrel_val; auto. constructor; apply join_false_r, join_false_l; auto.
    - (* try *) simpl. apply with_label_rel; auto; [| grow | grow].
      intros m1 m2 l1 l2 t1 t2 St [(<- & <- & B) | [B1 B2]]; apply try_rel; auto.
      + destruct (flows (join pc (join m1 l1)) z) eqn:E; [left | right]; auto.
      + right. split; apply join_false_r, join_false_l; auto.
    - (* within *) simpl. apply within_rel; auto.
    - (* fail *) simpl.
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [apply IH; auto | intros V1 V2 t1 t2 RV St | grow | grow].
      destruct (lrel_deep _ _ _ _ RV) as [(D1 & D2 & D3) | [D1 D2]].
      + rewrite <- D1, <- D2. apply rrel_err; auto. apply join_true; auto.
      + apply rrel_left; auto. simpl. apply join_false_r; auto.
    - (* check *) simpl.
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [apply IH; auto | intros V1 V2 t1 t2 RV St | grow | grow].
      destruct (lrel_deep _ _ _ _ RV) as [(D1 & D2 & D3) | [D1 D2]].
      + rewrite <- D1, <- D2. destruct (has_type H t (strip V1)).
        * apply rrel_val; auto.
        * apply rrel_err; auto. apply join_true; auto.
      + destruct (has_type H t (strip V1)), (has_type H t (strip V2)).
        * apply rrel_val; auto.
        * apply rrel_right; auto. simpl. apply join_false_r; auto.
        * apply rrel_left; auto. simpl. apply join_false_r; auto.
        * apply rrel_left; auto. simpl. apply join_false_r; auto.
    - (* par *) simpl. apply pars_rel; auto.
    - (* each *) simpl.
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [apply IH; auto | intros V1 V2 t1 t2 RV St | grow | grow].
      apply rrel_bind with (r1 := eval _ _ _ _ _ _) (r2 := eval _ _ _ _ _ _);
        [apply IH; auto | intros W1 W2 u1 u2 RW Su | grow | grow].
      apply each_rel; auto.
  Qed.
End Noninterference.
