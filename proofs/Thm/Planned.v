(** * What a call may be made with

    Every [args] value that an expression gives, wherever it is inside, was
    made by [args{...}] earlier in the run, in sight of whoever sees its parts.
    Every call that a run makes was checked: its arguments are in their bounds
    or in sets that were fixed before the run, it was not one too many, and it
    was approved where somebody must.  With noninterference of traces: whoever
    sees the bounds of a tool's parameters has seen, in both worlds, all that
    the calls of the tool can be made with. *)

Require Import List String QArith Bool Lia.
Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp.
Require Import Entail.Thm.Confinement Entail.Thm.Relation Entail.Thm.Noninterference Entail.Thm.Flow.
Import ListNotations.

Section Planned.
  Context {L : lattice} {F : factoring L}.
  Variable H : host L.
  Notation confined := (confined (F := F) H).

  Inductive known (t : list (event L)) : lval L -> Prop :=
  | known_k : forall l k, known t (Lab l (VK k))
  | known_con : forall l c vs, Forall (known t) vs ->
      (forall g fs, c = CArgs g fs -> exists l0,
         incl (map (made l0 g fs vs) (masks (List.length vs))) t /\
         Forall (fun V => flows l0 (label_of V) = true) vs) ->
      known t (Lab l (VCon c vs))
  | known_clo : forall l env e, Forall (known t) env -> known t (Lab l (VClo env e)).

  Lemma known_more : forall t t', incl t t' -> forall V, known t V -> known t' V.
  Proof.
    intros t t' I. fix IH 2. intros V K. destruct K as [l k | l c vs A B | l env e A]; constructor.
    - clear B. induction A; constructor; auto.
    - intros g fs E. destruct (B g fs E) as (l0 & X & Y). exists l0. split; auto. eapply incl_tran; eauto.
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

  (** What a planned call calls with was prepared: who sees some of the parts has
      seen them made together. *)
  Theorem planned_prepared : forall t l g fs vs m, known t (Lab l (VCon (CArgs g fs) vs)) ->
    In m (masks (List.length vs)) -> select_by m vs <> [] ->
    exists ch, In (Event ch (RArgs g (firstn (List.length vs) fs) (combine (select_by m fs) (map strip (select_by m vs))))) t /\
      flows ch (joins (map deep_label (select_by m vs))) = true.
  Proof.
    intros t l g fs vs m K I N. inversion K as [| ? ? ? A B |]; subst. destruct (B g fs eq_refl) as (l0 & X & Lo).
    exists (join l0 (joins (map deep_label (select_by m vs)))). split.
    - apply X. apply in_map_iff. exists m. auto.
    - apply join_true. split; [| apply flows_refl].
      assert (S : Forall (fun V => flows l0 (label_of V) = true) (select_by m vs)).
      { clear -Lo. revert m. induction Lo; intros [| [] m]; simpl; auto. }
      destruct S as [| V Vs S _]; [congruence |]. simpl.
      apply flows_join_l. eapply flows_trans; [exact S | apply label_deep].
  Qed.

  (** ** What every call was checked for *)

  (** The check of a call of [f] with arguments [args], on channel [ch], given what
      happened before: [u] is the label of what decided the call.  Where somebody
      must approve, it is approved, or nothing is refused. *)
  Record checked_with (pc : L) (V : lval L) (st : state L) (fr : frame L) (t : list (event L)) (ch : L)
      (f : name) (args : list data) : Prop := Checked {
    its_known : known t V;
    its_label : flows pc (label_of V) = true;
    its_args : args = map strip (arguments (label_of V) (tool_params H f) V);
    its_tool : foreign f V = false;
    its_channel : ch = join (tool_pc H f) (channel_of (tool_args H f) (arguments (label_of V) (tool_params H f) V));
    its_control : admits (F := F) H f pc (tool_pc H f) = true;
    its_frame : fixed st = fr;
    its_bounds : refused (F := F) H f st (tool_args H f)
      (arguments (if admits (F := F) H f (label_of V) (tool_pc H f) then bot else label_of V) (tool_params H f) V) = None;
    its_forms : misformed st
      (arguments (if admits (F := F) H f (label_of V) (tool_pc H f) then bot else label_of V) (tool_params H f) V) (forms H f) = None;
    its_count : exists t', t = Event (join ch (join pc (label_of V))) (RDecided f (join pc (label_of V))) :: t' /\
      (approve H f = true ->
       (exists c ls t'', t' = Event c (RApprove f args ls) :: t'') \/
       (if_refused H f = true /\ flows pc (tool_pc H f) = true /\
        clean (F := F) H f st (tool_args H f)
          (arguments (if flows (label_of V) (tool_pc H f) then bot else label_of V) (tool_params H f) V) = true))
  }.

  Definition checked fr t ch f args : Prop := exists pc V st, checked_with pc V st fr t ch f args.

  Fixpoint calls_ok (fr : frame L) (t : list (event L)) : Prop :=
    match t with
    | [] => True
    | ev :: t' =>
        match what ev with
        | RTool f args _ => checked fr t' (channel ev) f args
        | RDecided f u => exists args, stops fr f u args t' = false
        | _ => True
        end /\ calls_ok fr t'
    end.

  (** ** Evaluation keeps it *)

  (** A number that no history exceeds in which each call was let through by [stops]. *)
  Definition counts_as (fr : frame L) (c : list (event L) -> nat) (n : nat) : Prop :=
    (forall ch r t, match r with RDecided _ _ => False | _ => True end -> (c t <= n)%nat -> (c (Event ch r :: t) <= n)%nat) /\
    (forall ch f u args t, stops fr f u args t = false -> (c t <= n)%nat -> (c (Event ch (RDecided f u) :: t) <= n)%nat).

  Definition goes (s s' : state L) : Prop :=
    incl (tr s) (tr s') /\ fixed s' = fixed s /\ (calls_ok (fixed s) (tr s) -> calls_ok (fixed s) (tr s')) /\
    (forall c n, counts_as (fixed s) c n -> (c (tr s) <= n)%nat -> (c (tr s') <= n)%nat).

  Definition kn (s : state L) (r : result L) : Prop :=
    goes s (snd r) /\ match fst r with Val V => known (tr (snd r)) V | _ => True end.

  Definition quiet (r : request L) : Prop := match r with RTool _ _ _ | RDecided _ _ => False | _ => True end.

  Lemma goes_refl : forall s, goes s s.
  Proof. intros. repeat split; auto. apply incl_refl. Qed.

  Lemma goes_same : forall s s' : state L, tr s' = tr s -> fixed s' = fixed s -> goes s s'.
  Proof. intros s s' E1 E2. unfold goes. rewrite E1. repeat split; auto. apply incl_refl. Qed.

  Lemma goes_trans : forall s1 s2 s3, goes s1 s2 -> goes s2 s3 -> goes s1 s3.
  Proof.
    intros s1 s2 s3 (A1 & B1 & C1 & D1) (A2 & B2 & C2 & D2). rewrite B1 in C2, D2.
    split; [eapply incl_tran; eauto |]. split; [congruence |]. split; [auto |]. intros c n X Y. auto.
  Qed.

  Lemma goes_step : forall l r (s s' : state L), tr s' = Event l r :: tr s -> fixed s' = fixed s -> quiet r -> goes s s'.
  Proof.
    intros l r s s' E1 E2 Q. unfold goes. rewrite E1. split; [apply incl_tl, incl_refl |]. split; auto.
    split; [simpl; intros C; split; auto; destruct r; auto; contradiction |].
    intros c n [P1 _] X. apply P1; auto. destruct r; auto.
  Qed.

  Ltac go := first [ apply goes_refl | apply goes_same; reflexivity
                   | eapply goes_step; [reflexivity | reflexivity | exact I] ].
  Hint Extern 1 (goes _ _) => go : core.

  Lemma goes_logs : forall l g fs (vs : list (lval L)) ms s, goes s (logs (map (made l g fs vs) ms) s).
  Proof.
    intros. split; [simpl; apply incl_appr, incl_refl |]. split; auto. simpl.
    split; [intros C; induction ms; simpl; auto |]. intros c n [Q1 _] X. induction ms; simpl; auto. apply Q1; auto.
  Qed.

  Lemma known_goes : forall s s' V, goes s s' -> known (tr s) V -> known (tr s') V.
  Proof. intros s s' V (I & _) K. eapply known_more; eauto. Qed.

  Lemma all_goes : forall s s' vs, goes s s' -> Forall (known (tr s)) vs -> Forall (known (tr s')) vs.
  Proof. intros s s' vs (I & _) K. eapply known_all; eauto. Qed.

  Lemma kn_bind : forall (s : state L) r k, kn s r ->
    (forall V s', goes s s' -> known (tr s') V -> kn s' (k V s')) -> kn s (bind r k).
  Proof.
    intros s [[V | l m |] s'] k [G K] B; simpl in *; try (split; simpl; auto; fail).
    destruct (B V s' G K) as [G' K']. split; auto. eapply goes_trans; eauto.
  Qed.

  Lemma kn_after : forall (s s' : state L) r, goes s s' -> kn s' r -> kn s r.
  Proof. intros s s' r I [G K]. split; auto. eapply goes_trans; eauto. Qed.

  Lemma kn_err : forall (s s' : state L) l m, goes s s' -> kn s (Err l m, s').
  Proof. intros. split; simpl; auto. Qed.

  Lemma kn_val : forall (s s' : state L) V, goes s s' -> known (tr s') V -> kn s (Val V, s').
  Proof. intros. split; simpl; auto. Qed.

  Lemma kn_refl : forall (s : state L) V, known (tr s) V -> kn s (Val V, s).
  Proof. intros. apply kn_val; auto using goes_refl. Qed.
  Lemma kn_err_refl : forall (s : state L) l m, kn s (Err l m, s).
  Proof. intros. apply kn_err. apply goes_refl. Qed.
  Hint Resolve kn_refl kn_err_refl known_raise known_wrap : core.
  Hint Constructors known : core.

  Lemma known_list : forall t l vs, Forall (known t) vs -> known t (Lab l (VCon CList vs)).
  Proof. intros. constructor; auto. discriminate. Qed.
  Lemma known_rec : forall t l fs vs, Forall (known t) vs -> known t (Lab l (VCon (CRec fs) vs)).
  Proof. intros. constructor; auto. discriminate. Qed.
  Hint Resolve known_list known_rec : core.

  Lemma known_fill : forall t n f args k t0 path l, known t (fill H n f args k t0 path l).
  Proof.
    intros t. induction n as [| n IH]; intros f args k t0 path l; simpl; auto.
    destruct (content H f args k path _) as [x | c labels order]; auto. constructor.
    - assert (A : forall labels before, Forall (known t) before ->
        Forall (known t) (filled (fill H n f args k t0) path l before labels)).
      { intros ps. induction ps as [| p ps IHs]; intros before B; simpl; auto.
        apply IHs. apply Forall_app. auto. }
      specialize (A labels [] (Forall_nil _)). generalize dependent (filled (fill H n f args k t0) path l [] labels).
      intros vs A. induction order as [| i order IHo]; simpl; constructor; auto.
      unfold argument_at. destruct (nth_in_or_default i vs (Lab bot (VK KNull))) as [I | ->]; auto.
      rewrite Forall_forall in A. auto.
    - intros g fs E. exfalso. eapply plain_args; eauto.
  Qed.

  Lemma accept_kn : forall l d s, kn s (accept H l d s).
  Proof. intros. unfold accept. destruct (data_permits (policy H) d); auto. Qed.
  Hint Resolve accept_kn : core.

  Lemma perform_kn : forall u d e f args kept k ch s,
    stops (fixed s) f u args (tr s) = false ->
    checked (fixed s) (Event (join ch u) (RDecided f u) :: tr s) ch f args ->
    kn s (perform H u d e f args kept k ch s).
  Proof.
    intros u d e f args kept k ch s St Ch. unfold perform.
    set (s' := log ch (RTool f args k) (log (join ch u) (RDecided f u) s)).
    assert (G : goes s s').
    { split; [simpl; apply incl_tl, incl_tl, incl_refl |]. split; auto. simpl. split; [intros C; eauto |].
      intros c n [Q1 Q2] X. apply Q1; auto. eapply Q2; eauto. }
    destruct (refusal H _ _ _ s); [apply kn_err; auto |].
    destruct (if completed H f _ _ _ then tool H f _ _ _ else None); [| apply kn_err; auto].
    cbv zeta. destruct (misfit H f _); [apply kn_err | apply kn_val]; auto using known_fill.
  Qed.

  Lemma confirmed_kn : forall pc u d f a args s, stops (fixed s) f u args (tr s) = false ->
    kn s (confirmed (F := F) H pc u d f a args s).
  Proof.
    intros pc u d f a args s St. unfold confirmed. eapply kn_after; [| apply accept_kn].
    split; [simpl; apply incl_tl, incl_refl |]. split; auto. simpl. split; [eauto |].
    intros c n [_ Q2] X. eapply Q2; eauto.
  Qed.

  Lemma known_way : forall t path V W, known t V -> snd (way path V) = Some W -> known t W.
  Proof.
    intros t. induction path as [| i path IH]; intros V W K E; simpl in E; [inversion E; subst; exact K |].
    destruct K as [l k | l c vs A B | l env e A]; try discriminate.
    destruct (nth_error vs i) as [X |] eqn:N; [| discriminate].
    specialize (IH X W (known_nth _ _ _ _ A N)). destruct (way path X). simpl in *. auto.
  Qed.

  Lemma known_give : forall t V, known t V -> forall g, known t (give g V).
  Proof.
    intros t V K. fix IH 1. intros [d | path | c gs]; simpl; auto.
    - destruct (snd (way path V)) eqn:E; auto. eapply known_way; eauto.
    - constructor.
      + induction gs; simpl; constructor; auto.
      + intros g fs E. exfalso. eapply plain_args; eauto.
  Qed.

  Lemma primitive_kn : forall pc p V s, known (tr s) V -> kn s (primitive H pc p V s).
  Proof.
    intros pc p V s K. unfold primitive. destruct (see pc (prim H p) V) as [l [g | m]]; auto.
    destruct (given_permits (policy H) g); auto using known_give.
  Qed.

  Lemma approval_kn : forall d l f a args ls ch (s : state L) k,
    (a = false -> kn s (k s)) ->
    (a = true -> forall s', tr s' = Event (join ch d) (RApprove f args ls) :: tr s -> fixed s' = fixed s -> kn s' (k s')) ->
    kn s (approval H d l f a args ls ch s k).
  Proof.
    intros d l f a args ls ch s k K1 K2. unfold approval. destruct a; auto.
    destruct (refusal H _ _ _ s); [apply kn_err; auto |].
    eapply kn_after; [| apply K2]; auto.
  Qed.

  Lemma counted_kn : forall u f args (s : state L) k, (stops (fixed s) f u args (tr s) = false -> kn s (k s)) ->
    kn s (counted u f args s k).
  Proof.
    intros. unfold counted. destruct (stops (fixed s) f u args (tr s)); auto. split; simpl; auto.
  Qed.

  (** Only what is fixed before the run is looked at. *)
  Lemma chosen_fixed : forall f s1 s2 bs Ws i, fixed s1 = fixed s2 ->
    chosen_from (F := F) H f s1 bs Ws i = chosen_from (F := F) H f s2 bs Ws i.
  Proof. intros f s1 s2 bs Ws i E. unfold chosen_from, admitted. rewrite E. reflexivity. Qed.

  Lemma refused_fixed : forall f s1 s2 bs Ws, fixed s1 = fixed s2 ->
    refused (F := F) H f s1 bs Ws = refused (F := F) H f s2 bs Ws.
  Proof.
    intros f s1 s2 bs Ws E. unfold refused. f_equal. induction (seq 0 (List.length Ws)) as [| i is IH]; simpl; auto.
    assert (A : accepted (F := F) H f s1 bs Ws i = accepted (F := F) H f s2 bs Ws i)
      by (unfold accepted; rewrite (chosen_fixed f s1 s2 bs Ws i E); reflexivity).
    rewrite A, IH. reflexivity.
  Qed.

  Lemma misformed_fixed : forall (s1 s2 : state L) Ws fms, fixed s1 = fixed s2 -> misformed s1 Ws fms = misformed s2 Ws fms.
  Proof.
    intros s1 s2 Ws fms E. induction fms as [| fm fms IH]; simpl; auto. unfold found_unfit. rewrite E, IH. reflexivity.
  Qed.

  Section Helpers.
    Variable ev : L -> list (lval L) -> state L -> term -> result L.
    Hypothesis CONF : forall pc env s e, confined pc s (ev pc env s e).
    Hypothesis EV : forall pc env s e, Forall (known (tr s)) env -> kn s (ev pc env s e).
    Hypothesis PRE : forall t, Forall (known t) (prelude H).

    Lemma evals_kn : forall es pc env c acc s,
      Forall (known (tr s)) env -> Forall (known (tr s)) acc -> Forall (fun V => flows pc (label_of V) = true) acc ->
      let r := evals ev pc env c acc s es in
      goes s (snd r) /\
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
        destruct IH as [I' K']; [eapply all_goes; eauto | constructor; auto; eapply all_goes; eauto | constructor; auto |].
        split; auto. eapply goes_trans; eauto.
    Qed.

    Lemma with_label_kn : forall pc env s e k, Forall (known (tr s)) env ->
      (forall n l s', goes s s' -> kn s' (k n l s')) -> kn s (with_label H ev pc env s e k).
    Proof.
      intros pc env s e k A K. unfold with_label. apply kn_bind; auto. intros V s' I _.
      destruct (to_label H (strip V)); auto.
    Qed.

    Lemma restore_kn : forall c s r, kn s r -> kn s (restore c r).
    Proof. intros c s [[V | l m |] s'] K; exact K. Qed.

    Lemma set_conv_kn : forall c s r, kn (set_conv c s) r -> kn s r.
    Proof. intros c s r K. exact K. Qed.

    Lemma called_kn : forall pc f V k s, known (tr s) V -> flows pc (label_of V) = true ->
      kn s (called (F := F) H ev pc f V k s).
    Proof.
      intros pc f V k s K Lv. unfold called. destruct (admits H f pc (tool_pc H f)) eqn:PT; auto.
      destruct (foreign f V) eqn:Fo; auto.
      destruct (refused H f s _ _) eqn:R; auto. destruct (tool_accepts H f (strip V)); auto.
      set (Ws := arguments (if admits (F := F) H f (label_of V) (tool_pc H f) then bot else label_of V) (tool_params H f) V) in *.
      set (Ns := arguments (if flows (label_of V) (tool_pc H f) then bot else label_of V) (tool_params H f) V) in *.
      destruct (misformed s Ws (forms H f)) as [[b m] |] eqn:Mf; auto.
      set (asked := fun s1 => approve H f && negb (if_refused H f && flows pc (tool_pc H f) &&
             clean (F := F) H f s1 (tool_args H f) Ns && formed (F := F) H f s1 (tool_args H f) Ns Ws)).
      set (ch := join (tool_pc H f) (channel_of (tool_args H f) (arguments (label_of V) (tool_params H f) V))).
      set (args := map strip (arguments (label_of V) (tool_params H f) V)).
      set (kept := if lasts H f V then lasting H f args else args).
      assert (Rest : forall d e l s1, goes s s1 -> kn s1
        (counted (join pc (label_of V)) f args s1 (fun s2 => approval H d l f (asked s1) args
          (map (fun W => join (label_of V) (deep_label W)) Ws)
          (if confirms H f then bot else ch) s2 (fun s3 =>
        counted (join pc (label_of V)) f args s3 (fun s4 =>
          if confirms H f then confirmed (F := F) H pc (join pc (label_of V)) d f (asked s1) args s4
          else perform H (join pc (label_of V)) d e f args kept k ch s4))))).
      { intros d e l s1 G. apply counted_kn. intros _. apply approval_kn.
        - intros A. apply counted_kn. intros St. destruct (confirms H f); [apply confirmed_kn; exact St |].
          apply perform_kn; auto. exists pc, V, s1. constructor; auto.
          + eapply known_more; [| eapply known_goes; eauto]. apply incl_tl, incl_refl.
          + rewrite <- R. apply refused_fixed. apply G.
          + rewrite <- Mf. apply misformed_fixed. apply G.
          + exists (tr s1). split; auto. intros E. right. unfold asked in A. rewrite E in A. simpl in A. apply negb_false_iff in A.
            apply andb_true_iff in A. destruct A as [A A4]. apply andb_true_iff in A. destruct A as [A A3].
            apply andb_true_iff in A. destruct A as [A1 A2]. auto.
        - intros _ s2 E1 E2. apply counted_kn. intros St. destruct (confirms H f); [apply confirmed_kn; exact St |].
          apply perform_kn; auto. exists pc, V, s2. constructor; auto.
          + eapply known_more; [| eapply known_goes; eauto]. rewrite E1. apply incl_tl, incl_tl, incl_refl.
          + rewrite <- R. apply refused_fixed. rewrite E2. apply G.
          + rewrite <- Mf. apply misformed_fixed. rewrite E2. apply G.
          + exists (tr s2). split; auto. intros _. left. rewrite E1. eauto. }
      unfold decide. destruct (tool_policy H f) as [p |].
      - apply kn_bind.
        + apply restore_kn. eapply set_conv_kn. apply EV. constructor; auto. unfold described. apply known_rec.
          pose proof (known_arguments (tr s) (label_of V) (tool_params H f) V K) as A. simpl.
          generalize (map deep_label Ws).
          clear Rest.
          induction A; intros lws; simpl; constructor; auto. unfold shown. apply known_rec. repeat constructor; auto.
        + intros W s1 G _. destruct (admits H f (join pc (deep_label W)) _); auto. destruct (strip W) as [[| [] | | |] | |]; auto.
          exact (Rest _ _ _ s1 G).
      - exact (Rest _ _ _ s (goes_refl s)).
    Qed.

    Lemma call_kn : forall pc f V s, known (tr s) V -> flows pc (label_of V) = true ->
      kn s (call (F := F) H ev pc f V s).
    Proof.
      intros pc f V s K Lv. unfold call. eapply kn_after with (s' := log pc (RKey f) s); [auto |].
      apply called_kn; auto. eapply known_goes; [| exact K]. auto.
    Qed.

    Lemma apply_kn : forall V1 V2 s, known (tr s) V1 -> known (tr s) V2 -> kn s (apply (F := F) H ev V1 V2 s).
    Proof.
      intros V1 V2 s K1 K2. unfold apply. destruct K1 as [l k | l c vs A B | l env e A]; auto.
      destruct c as [| | | | | n | f]; auto.
      2: { apply call_kn; auto. rewrite label_of_raise. apply join_l. }
      destruct vs as [| Vf [| ? ?]]; auto.
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
      - eapply kn_after; [exact I |]. apply IH; [eapply all_goes; eauto | constructor; auto; eapply all_goes; eauto].
      - destruct (flows l pc); [| apply kn_err; auto].
        assert (A' : Forall (known (tr s')) env) by (eapply all_goes; eauto).
        assert (B' : Forall (known (tr s')) acc) by (eapply all_goes; eauto).
        destruct (IH pc env acc s' A' B') as [I' _].
        destruct (pars ev pc env acc s' es) as [[V | l' m' |] s'']; simpl in I';
          try destruct (flows l' pc); split; simpl; auto; eapply goes_trans; eauto.
      - split; simpl; auto.
    Qed.

    Lemma say_incl : forall m (s : state L), tr (say m s) = tr s.
    Proof. reflexivity. Qed.

    Lemma question_kn : forall pc m s k,
      (forall reply s', goes s s' -> kn s' (k reply s')) -> kn s (question H pc m s k).
    Proof.
      intros pc m s k K. unfold question.
      destruct (refusal H _ _ _ s); [apply kn_err; simpl; auto |].
      destruct (model H m _ _); [| apply kn_err; auto].
      eapply kn_after; [| apply K]; auto.
    Qed.

    Lemma tell_goes : forall s : state L, goes s (tell s).
    Proof.
      intros s. apply goes_same; [apply tell_tr |]. unfold tell. destruct (remarks s); auto.
      destruct (Nat.eqb (told (cv s)) _); reflexivity.
    Qed.

    Lemma ask_kn : forall pc m s k,
      (forall reply s', goes s s' -> kn s' (k reply s')) -> kn s (ask H pc m s k).
    Proof.
      intros pc m s k K. unfold ask. apply kn_after with (s' := tell s); [apply tell_goes |].
      apply question_kn. intros reply s' I. apply K. eapply goes_trans; [apply tell_goes | exact I].
    Qed.

    Lemma recv_data_kn : forall n pc m s, kn s (recv_data H pc m n s).
    Proof.
      induction n as [| n IH]; intros pc m s; simpl; unfold listen;
        (assert (K : forall reply s', goes s s' -> kn s' (match decode H m reply with
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
      eapply kn_after; [exact I |]. apply EV. constructor; auto. eapply all_goes; eauto.
    Qed.

    Lemma within_kn : forall q pc env s e, Forall (known (tr s)) env -> kn s (do_within ev q pc env s e).
    Proof.
      intros q pc env s e A. unfold do_within, close.
      assert (G : goes s (log pc (RWithin q) s)) by auto.
      pose proof (EV pc env (log pc (RWithin q) s) e (all_goes _ _ _ G A)) as [I K].
      destruct (ev pc env _ e) as [[V | l m |] s']; cbn [fst snd] in *.
      - assert (G' : goes s' (log pc REnd s')) by auto.
        split; cbn [fst snd]; [| eapply known_goes; eauto]. eapply goes_trans; [| exact G']. eapply goes_trans; eauto.
      - apply kn_err. eapply goes_trans; [exact G |]. eapply goes_trans; [exact I |].
        destruct (flows l pc); auto.
      - split; simpl; auto. eapply goes_trans; eauto.
    Qed.

    Lemma each_kn : forall pc V1 V2 s, known (tr s) V1 -> known (tr s) V2 -> kn s (do_each ev pc V1 V2 s).
    Proof.
      intros pc V1 V2 s K1 K2. unfold do_each. destruct K2 as [l k | l c vs A B | l env e A]; auto.
      destruct c; auto. apply pars_kn; auto.
    Qed.

    Lemma forgotten_goes : forall pc ms (s : state L), goes s (forgotten pc ms s).
    Proof. intros. unfold forgotten. destruct (flows pc _ && _); auto. Qed.

    Lemma guard_kn : forall n k env e p pc s, Forall (known (tr s)) env -> kn s (guard H ev env e p k n pc s).
    Proof.
      assert (Judge : forall env p k pc V s again, Forall (known (tr s)) env -> known (tr s) V ->
        (forall pc' m s', goes s s' -> kn s' (again pc' m s')) -> kn s (judge H ev env p k pc V s again)).
      { intros env p k pc V s again A K Ag. unfold judge. apply kn_bind; auto. intros Vp s2 I2 K2.
        assert (KV : known (tr s2) V) by (eapply known_goes; eauto).
        destruct (is_function _).
        - apply kn_refl. unfold guarded. constructor. repeat constructor; auto.
        - apply kn_bind; [apply EV; repeat constructor; auto |]. intros Vb s3 I3 K3. unfold verdict.
          assert (KV3 : known (tr s3) V) by (eapply known_goes; eauto).
          destruct Vb as [l [[| [] | | |] | |]]; auto. apply Ag. eapply goes_trans; eauto. }
      induction n as [| n IH]; intros k env e p pc s A; simpl;
        (apply kn_bind; [auto |]; intros V s1 I K; apply Judge;
         [eapply all_goes; [exact I | exact A] | auto |]);
        intros pc' m s3 I3; [auto |].
      unfold retry, forget.
      assert (G : goes s (set_remarks (m :: remarks s3) s3)) by (eapply goes_trans; [| eapply goes_trans; [exact I3 |]]; eauto).
      destruct (IH k env e p pc' (set_remarks (m :: remarks s3) s3) (all_goes _ _ _ G A)) as [I' K'].
      destruct (guard H ev env e p k n pc' _) as [o s4]. cbn [fst snd] in *.
      assert (G4 := forgotten_goes pc' (remarks s3) s4).
      split; cbn [fst snd].
      - eapply goes_trans; [| exact G4]. eapply goes_trans; [| exact I']. auto.
      - destruct o; auto. eapply known_goes; eauto.
    Qed.
  End Helpers.

  Hypothesis PRE : forall t, Forall (known t) (prelude H).

  (** Whatever a run has, was prepared if it is the arguments of a planned call. *)
  Theorem args_prepared : forall n pc env s e, Forall (known (tr s)) env -> kn s (eval (F := F) H n pc env s e).
  Proof.
    induction n as [| n IH]; intros pc env s e A; [split; simpl; auto |].
    pose proof (confinement (F := F) H n) as C.
    assert (A' : forall s', goes s s' -> Forall (known (tr s')) env) by (intros; eapply all_goes; eauto).
    destruct e; simpl.
    - destruct (nth_error env i) eqn:E; auto. apply kn_refl, known_raise. eapply known_nth; eauto.
    - apply kn_refl. constructor. apply known_capture. auto.
    - apply kn_bind; auto. intros V1 s1 I1 K1. apply kn_bind; auto. intros V2 s2 I2 K2.
      apply apply_kn; auto. eapply known_goes; eauto.
    - auto.
    - (* structure *)
      pose proof (evals_kn _ C IH es pc env c [] s A (Forall_nil _) (Forall_nil _)) as X. simpl in X. destruct X as [I K].
      destruct (evals (eval H n) pc env c [] s es) as [[V | l m |] s']; simpl in *; [| split; simpl; auto ..].
      destruct K as (vs & -> & K & Fl). unfold prepare. destruct c;
        try (apply kn_val; auto; constructor; auto; discriminate).
      assert (G := goes_logs pc f fields vs (masks (List.length vs)) s').
      apply kn_val; [eapply goes_trans; eauto |]. constructor.
      + eapply all_goes; eauto.
      + intros g fs E. exists pc. split; auto. inversion E; subst. simpl. apply incl_appl, incl_refl.
    - apply kn_bind; auto. intros V1 s1 I1 K1. apply kn_bind; auto. intros V2 s2 I2 K2.
      assert (K1' : known (tr s2) V1) by (eapply known_goes; eauto). unfold do_get.
      destruct K1' as [l k | l c vs B _ | l env' e' B], V2 as [l2 [k2 | |]];
        try (destruct k); try (destruct k2);
        repeat match goal with
        | |- context [char_at H ?a ?b] => destruct (char_at H a b)
        | |- context [no_payload ?a ?b] => destruct (no_payload a b)
        | |- context [select ?a ?b] => destruct (select a b)
        | |- context [nth_error ?a ?b] => destruct (nth_error a b) eqn:?
        end; auto; apply kn_refl, known_raise; eapply known_nth; eauto.
    - apply kn_bind; auto. intros V1 s1 I1 K1. apply kn_bind; auto. intros V2 s2 I2 K2.
      apply kn_bind; [apply IH, A'; eapply goes_trans; eauto |]. intros V3 s3 I3 K3.
      assert (K1' : known (tr s3) V1) by (eapply known_goes; [| exact K1]; eapply goes_trans; eauto). unfold do_set.
      destruct K1' as [l k | l c vs B _ | l env' e' B]; auto. destruct V2 as [l2 [k2 | |]]; auto.
      unfold update.
      assert (Sn : forall i (ws : list (lval L)), Forall (known (tr s3)) ws -> forall ws', set_nth i V3 ws = Some ws' -> Forall (known (tr s3)) ws').
      { induction i; intros ws Bw ws' Ew; destruct Bw; simpl in Ew; try discriminate; [inversion Ew; subst; auto |].
        destruct (set_nth i V3 l0) eqn:X; simpl in Ew; inversion Ew; subst. constructor; eauto. }
      destruct (select c k2) as [i |] eqn:Se.
      + destruct (set_nth i V3 vs) eqn:X; simpl; auto. apply kn_refl. constructor; [eapply Sn; eauto |].
        intros g fs ->. simpl in Se. destruct k2; discriminate.
      + destruct c; auto. destruct k2; auto. apply kn_refl, known_rec. apply Forall_app. auto.
    - apply kn_bind; auto. intros V s1 I K. apply primitive_kn; auto.
    - apply kn_bind; auto. intros [l v] s1 I K. destruct (chosen v bs d); auto.
    - apply guard_kn; auto.
    - destruct (refusal H _ _ _ s); [apply kn_err; auto |].
      destruct (sample H p _); (eapply kn_after; [| apply IH, A']); auto.
    - pose proof (C pc env s e) as [Lv _]. pose proof (IH pc env s e A) as [I K].
      destruct (eval (F := F) H n pc env s e) as [[V | l m |] s1]; simpl in *; [| split; simpl; auto ..].
      eapply kn_after; [exact I |]. apply call_kn; auto.
    - unfold do_recall. destruct (refusal H _ _ _ s); [apply kn_err; auto |].
      destruct (entry k _) as [[t d] |]; [| apply kn_val; auto].
      eapply kn_after; [| apply accept_kn]. destruct (flows pc _); auto.
    - apply kn_bind; auto. intros V s1 I K. unfold do_remember.
      destruct (flows _ _); auto. destruct (has_type H _ _); auto.
      destruct (refusal H _ _ _ s1); [apply kn_err; auto |].
      apply kn_val; [go | apply known_rec; constructor].
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
      apply each_kn; auto. eapply known_goes; eauto.
  Qed.

  (** The parts of a planned call, where it is made: who sees some of them has seen
      them made together... *)
  Corollary prepared_in_sight : forall z n pc env s e l g fs vs m s',
    Forall (known (tr s)) env -> eval (F := F) H n pc env s e = (Val (Lab l (VCon (CArgs g fs) vs)), s') ->
    In m (masks (List.length vs)) -> select_by m vs <> [] -> flows (joins (map deep_label (select_by m vs))) z = true ->
    exists ch, In (Event ch (RArgs g (firstn (List.length vs) fs) (combine (select_by m fs) (map strip (select_by m vs))))) (visible z (tr s')).
  Proof.
    intros z n pc env s e l g fs vs m s' A E M N Z. destruct (args_prepared n pc env s e A) as [_ K].
    rewrite E in K. simpl in K. destruct (planned_prepared _ _ _ _ _ m K M N) as (ch & I & Lo).
    exists ch. unfold visible. apply filter_In. split; auto. simpl. eapply flows_trans; eauto.
  Qed.

  (** ...and sees the same made in any run that has shown as much: whether the
      call is made may differ between two worlds, what it can be made with does not. *)
  Corollary prepared_in_both : forall z n pc env s e l g fs vs m s' s2,
    Forall (known (tr s)) env -> eval (F := F) H n pc env s e = (Val (Lab l (VCon (CArgs g fs) vs)), s') ->
    In m (masks (List.length vs)) -> select_by m vs <> [] -> flows (joins (map deep_label (select_by m vs))) z = true ->
    extends z s' s2 ->
    exists ch, In (Event ch (RArgs g (firstn (List.length vs) fs) (combine (select_by m fs) (map strip (select_by m vs))))) (visible z (tr s2)).
  Proof.
    intros z n pc env s e l g fs vs m s' s2 A E M N Z [t X].
    destruct (prepared_in_sight z n pc env s e l g fs vs m s' A E M N Z) as (ch & I).
    exists ch. rewrite X. apply in_or_app. auto.
  Qed.

  (** ** Each call of a run *)

  Lemma calls_ok_at : forall fr newer ev older, calls_ok fr (newer ++ ev :: older) -> calls_ok fr (ev :: older).
  Proof. intros fr newer. induction newer as [| e newer IH]; simpl; intros ev older C; auto. apply IH, C. Qed.

  Theorem every_call_checked : forall n pc env s e newer ch f args k older,
    Forall (known (tr s)) env -> calls_ok (fixed s) (tr s) ->
    tr (snd (eval (F := F) H n pc env s e)) = newer ++ Event ch (RTool f args k) :: older ->
    checked (fixed s) older ch f args.
  Proof.
    intros n pc env s e newer ch f args k older A C E. destruct (args_prepared n pc env s e A) as [(_ & _ & G & _) _].
    specialize (G C). rewrite E in G. apply calls_ok_at in G. apply G.
  Qed.

  (** Every call has the forms of its tool, whatever they are, in its arguments as they
      were compared. *)
  Corollary every_call_formed : forall n pc env s e newer ch f args k older,
    Forall (known (tr s)) env -> calls_ok (fixed s) (tr s) ->
    tr (snd (eval (F := F) H n pc env s e)) = newer ++ Event ch (RTool f args k) :: older ->
    exists Ws st, args = map strip Ws /\ fixed st = fixed s /\ misformed st Ws (forms H f) = None.
  Proof.
    intros n pc env s e newer ch f args k older A C E.
    destruct (every_call_checked n pc env s e newer ch f args k older A C E) as (pc' & V & st & K).
    eexists. exists st. split; [| split; [apply K | apply (its_forms _ _ _ _ _ _ _ _ K)]].
    rewrite (its_args _ _ _ _ _ _ _ _ K). apply arguments_strip.
  Qed.

  (** Where somebody must approve, the call was approved just before, or nothing
      about it is refused. *)
  Corollary every_call_approved : forall n pc env s e newer ch f args k older,
    Forall (known (tr s)) env -> calls_ok (fixed s) (tr s) ->
    tr (snd (eval (F := F) H n pc env s e)) = newer ++ Event ch (RTool f args k) :: older ->
    approve H f = true -> if_refused H f = false ->
    exists ev c ls t, older = ev :: Event c (RApprove f args ls) :: t.
  Proof.
    intros n pc env s e newer ch f args k older A C E Ap If.
    destruct (every_call_checked n pc env s e newer ch f args k older A C E) as (pc' & V & st & K).
    destruct (its_count _ _ _ _ _ _ _ _ K) as (t' & -> & D).
    destruct (D Ap) as [(c & ls & t & ->) | [X _]]; [eauto | congruence].
  Qed.

  (** ** The bounded choice *)

  (** What an observer sees of the parts of a record. *)
  Definition seen_by (z : L) (vs : list (lval L)) : list bool := map (fun V => flows (deep_label V) z) vs.

  (** A set that the observer sees holds argument [i], with those that the set is also for. *)
  Definition picked (z : L) (fr : frame L) (f : name) (args : list data) (i : nat) : Prop :=
    exists c, In c (among H f) /\ about i c = true /\ flows (fst (sets fr (from c))) z = true /\
      holds c (snd (sets fr (from c))) (map (fun j => nth j args (DK KNull)) (chosen_for c)) = true.

  (** Arguments that the program made of a tool, as far as the observer has seen
      them, and otherwise values of sets; what is left out is [null]. *)
  Definition offered (z : L) (t : list (event L)) (fr : frame L) (f : name) (args : list data) : Prop :=
    exists fs parts,
      (parts = [] \/ exists c, In (Event c (RArgs f fs parts)) (visible z t)) /\
      forall i p, nth_error (tool_params H f) i = Some p ->
        In (p, nth i args (DK KNull)) parts \/ (nth i args (DK KNull) = DK KNull /\ ~ In p fs) \/ picked z fr f args i.

  (** What decided the call, and with which record, is data that the observer sees. *)
  Definition decided_in_sight (z : L) (t : list (event L)) (f : name) : Prop :=
    exists c u t', t = Event c (RDecided f u) :: t' /\ flows u z = true.

  Lemma masks_all : forall m : list bool, In m (masks (List.length m)).
  Proof.
    induction m as [| b m IH]; simpl; auto. apply in_or_app.
    destruct b; [left | right]; apply in_map_iff; eauto.
  Qed.

  Lemma selected_low : forall z vs, flows (joins (map deep_label (select_by (seen_by z vs) vs))) z = true.
  Proof.
    intros z vs. induction vs as [| V vs IH]; simpl; auto using bot_flows.
    destruct (flows (deep_label V) z) eqn:E; auto. simpl. apply join_true. auto.
  Qed.

  Lemma selected_part : forall m (fs : list string) (vs : list (lval L)) j p V, nth_error fs j = Some p -> nth_error vs j = Some V ->
    nth_error m j = Some true -> In (p, strip V) (combine (select_by m fs) (map strip (select_by m vs))).
  Proof.
    induction m as [| b m IH]; intros fs vs [| j] p V E1 E2 E3; simpl in E3; try discriminate;
      destruct fs as [| q fs], vs as [| W vs]; simpl in E1, E2; try discriminate; simpl.
    - inversion E1; inversion E2; inversion E3; subst. left. reflexivity.
    - destruct b; [right |]; eauto.
  Qed.

  Lemma position_nth : forall p fs j, position p fs = Some j -> nth_error fs j = Some p.
  Proof.
    intros p fs. induction fs as [| q fs IH]; simpl; intros j E; [discriminate |].
    destruct (String.eqb p q) eqn:X.
    - inversion E; subst. apply String.eqb_eq in X. subst. reflexivity.
    - destruct (position p fs); simpl in E; [| discriminate]. inversion E; subst. simpl. auto.
  Qed.

  Lemma position_none : forall p fs, position p fs = None -> ~ In p fs.
  Proof.
    intros p fs. induction fs as [| q fs IH]; simpl; intros E; auto. destruct (String.eqb p q) eqn:X; [discriminate |].
    destruct (position p fs); [discriminate |]. apply String.eqb_neq in X. intros [Y | Y]; [congruence | exact (IH eq_refl Y)].
  Qed.

  Lemma position_first : forall p fs j n, position p fs = Some j -> (n <= j)%nat -> ~ In p (firstn n fs).
  Proof.
    intros p fs. induction fs as [| q fs IH]; intros j n E N; [destruct n; auto |].
    destruct n as [| n]; auto. simpl in E. destruct (String.eqb p q) eqn:X; [inversion E; subst; lia |].
    apply String.eqb_neq in X. destruct (position p fs) as [k |]; simpl in E; [| discriminate]. inversion E; subst j.
    simpl. intros [Y | Y]; [congruence |]. apply (IH k n eq_refl); auto. lia.
  Qed.

  Lemma in_firstn : forall (A : Type) n (xs : list A) x, In x (firstn n xs) -> In x xs.
  Proof. induction n; intros [| y xs] x I; simpl in *; try contradiction. destruct I; auto. Qed.

  Lemma chosen_picked : forall z f st fr Ws args i, fixed st = fr -> args = map strip Ws ->
    flows (bound_at (tool_args H f) i) z = true ->
    chosen_from (F := F) H f st (tool_args H f) Ws i = true -> picked z fr f args i.
  Proof.
    intros z f st fr Ws args i <- -> B C. unfold chosen_from in C. apply existsb_exists in C. destruct C as (c & I & C).
    apply andb_true_iff in C. destruct C as [Ab C]. exists c. split; auto. split; auto.
    unfold admitted in C. apply andb_true_iff in C. destruct C as [C Ho]. split.
    - unfold about in Ab. apply existsb_exists in Ab. destruct Ab as (p & Ip & E). apply PeanoNat.Nat.eqb_eq in E. subst i.
      rewrite forallb_forall in C. specialize (C p Ip). apply andb_true_iff in C. destruct C as [C _].
      apply andb_true_iff in C. destruct C as [_ C]. eapply flows_trans; eauto.
    - rewrite <- Ho. f_equal. apply map_ext. intros q.
      change (DK KNull) with (strip (Lab (bot : L) (VK KNull))). apply map_nth.
  Qed.

  (** What does not come as arguments of a planned call is read at the label of what
      it comes in. *)
  Lemma arguments_read : forall (V : lval L) ps i, (forall l g fs vs, V <> Lab l (VCon (CArgs g fs) vs)) ->
    (i < List.length ps)%nat -> flows (label_of V) (label_of (argument_at (arguments (label_of V) ps V) i)) = true.
  Proof.
    intros V ps i No N.
    assert (A : forall l fs vs p, flows l (label_of (argument (L := L) l l fs vs p)) = true).
    { intros l fs vs p. unfold argument. destruct (position p fs) as [j |]; [| apply flows_refl].
      destruct (nth_error vs j); [rewrite label_of_raise; apply join_l | apply flows_refl]. }
    assert (M : forall l (g : string -> lval L), (forall p, flows l (label_of (g p)) = true) ->
      flows l (label_of (argument_at (map g ps) i)) = true).
    { intros l g G. unfold argument_at. destruct (nth_error ps i) as [p |] eqn:E.
      - erewrite nth_error_nth; [apply (G p) |]. rewrite nth_error_map, E. reflexivity.
      - apply nth_error_None in E. lia. }
    assert (O : forall (l : L) (v : val L), flows l (label_of (argument_at
        (match ps with [_] => [Lab l v] | _ => map (fun _ => Lab l (VK KNull)) ps end) i)) = true).
    { intros l v. destruct ps as [| p [| q ps]]; try (apply M; intros; apply flows_refl).
      destruct i as [| i]; [apply flows_refl | simpl in N; lia]. }
    destruct V as [l [k | c vs | env e]]; unfold arguments; cbn [label_of]; [apply O | | apply O].
    destruct c; try apply O; [| exfalso; eapply No; reflexivity].
    destruct ps as [| p [| q ps]]; try (apply M; intros; apply A).
    destruct (position p fields).
    - destruct i as [| i]; [apply A | simpl in N; lia].
    - destruct i as [| i]; [apply flows_refl | simpl in N; lia].
  Qed.

  (** If an observer sees each argument as it was compared, or sees a set that holds it,
      then the arguments were offered, or the observer sees what decided the call. *)
  Lemma compared_offered : forall z fr older ch f args pc V st m, checked_with pc V st fr older ch f args ->
    (forall i, (i < List.length (tool_params H f))%nat ->
      flows (deep_label (argument_at (arguments m (tool_params H f) V) i)) z = true \/ picked z fr f args i) ->
    offered z older fr f args \/ decided_in_sight z older f.
  Proof.
    intros z fr older ch f args pc V st m K Ac. destruct K as [Kn Lv Ar Fo _ _ Fr Re Mf Co].
    set (ps := tool_params H f) in *. set (Ws := arguments m ps V) in *.
    assert (Two : (exists l fs vs, V = Lab l (VCon (CArgs f fs) vs)) \/ (forall l g fs vs, V <> Lab l (VCon (CArgs g fs) vs))).
    { destruct V as [l [k | c vs | env e]]; try (right; discriminate). destruct c; try (right; discriminate). left.
      simpl in Fo. apply negb_false_iff in Fo. apply String.eqb_eq in Fo. subst f0. eauto. }
    destruct Two as [(l & fs & vs & ->) | No].
    - left. exists (firstn (List.length vs) fs), (combine (select_by (seen_by z vs) fs) (map strip (select_by (seen_by z vs) vs))). split.
      + destruct (select_by (seen_by z vs) vs) as [| W ws] eqn:S; [left; simpl; destruct (select_by _ fs); auto |].
        right. destruct (planned_prepared _ _ _ _ _ (seen_by z vs) Kn) as (c & I & Lo).
        * replace (List.length vs) with (List.length (seen_by z vs)) by apply map_length. apply masks_all.
        * rewrite S. discriminate.
        * exists c. unfold visible. apply filter_In. rewrite <- S. split; auto. simpl.
          eapply flows_trans; [exact Lo | apply selected_low].
      + intros i p E. assert (N : (i < List.length ps)%nat) by (apply nth_error_Some; unfold ps; rewrite E; discriminate).
        assert (Ei : nth i args (DK KNull) = strip (argument l l fs vs p)).
        { rewrite Ar. unfold arguments. cbn [label_of]. rewrite map_map. apply nth_error_nth.
          unfold ps. rewrite nth_error_map, E. reflexivity. }
        assert (Ew : argument_at Ws i = argument m l fs vs p).
        { unfold argument_at, Ws, arguments. apply nth_error_nth. unfold ps. rewrite nth_error_map, E. reflexivity. }
        rewrite Ei. unfold argument in Ei, Ew |- *.
        destruct (position p fs) as [j |] eqn:P.
        2: { right. left. split; auto. intros I. exact (position_none _ _ P (in_firstn _ _ _ _ I)). }
        destruct (nth_error vs j) as [W |] eqn:Ej.
        2: { right. left. split; auto. apply nth_error_None in Ej. eapply position_first; eauto. }
        destruct (Ac i N) as [A | A]; [left | auto].
        rewrite strip_raise. apply selected_part with (j := j); auto using position_nth.
        unfold seen_by. rewrite nth_error_map, Ej. simpl. f_equal. rewrite Ew in A.
        eapply flows_trans; [| exact A]. destruct W as [lw w]. simpl. apply join_true.
        split; [apply flows_join_l, join_r | apply join_r].
    - (* the record is in sight, or every argument is from a set *)
      assert (Sm : Ws = arguments (label_of V) ps V).
      { unfold Ws. destruct V as [l [k | c vs | env e]]; auto. destruct c; auto. exfalso. eapply No. reflexivity. }
      assert (Some_or_all : forall n, (n <= List.length ps)%nat ->
        (exists i, (i < List.length ps)%nat /\ flows (deep_label (argument_at Ws i)) z = true) \/
        (forall i, (i < n)%nat -> picked z fr f args i)).
      { induction n as [| n IHn]; intros Le; [right; intros; lia |]. destruct IHn as [X | X]; [lia | auto |].
        destruct (Ac n) as [Y | Y]; [lia | left; exists n; split; [lia | exact Y] |].
        right. intros i N. destruct (PeanoNat.Nat.eq_dec i n) as [-> |]; auto. apply X. lia. }
      destruct (Some_or_all _ (le_n _)) as [(i & N & Lo) | All].
      + right. destruct Co as (t' & -> & _). do 3 eexists. split; [reflexivity |].
        assert (Lz : flows (label_of V) z = true).
        { rewrite Sm in Lo. eapply flows_trans; [apply (arguments_read V ps i No N) |].
          eapply flows_trans; [apply label_deep | exact Lo]. }
        apply join_true. split; auto. eapply flows_trans; eauto.
      + left. exists [], []. split; auto. intros i p E. right. right. apply All.
        apply nth_error_Some. unfold ps. rewrite E. discriminate.
  Qed.

  (** An approval vouches for where arguments come from: whoever is restricted in
      secrecy only sees what was compared as if nobody were asked. *)
  Lemma admits_seen : forall z f l b, approve H f = false \/ insulated F z Endorse ->
    admits (F := F) H f l b = true -> flows b z = true -> flows l z = true.
  Proof.
    intros z f l b I A B. unfold admits in A. destruct (approve H f).
    - destruct I as [I | I]; [discriminate |]. apply (I b l). eapply flows_trans; eauto.
    - eapply flows_trans; eauto.
  Qed.

  (** Whatever untrusted or secret data decides, a call is made with arguments that
      an observer of the tool's bounds has seen offered. *)
  Lemma checked_offered : forall z fr older ch f args, checked fr older ch f args ->
    approve H f = false \/ insulated F z Endorse ->
    (forall i, (i < List.length (tool_params H f))%nat -> flows (bound_at (tool_args H f) i) z = true) ->
    offered z older fr f args \/ decided_in_sight z older f.
  Proof.
    intros z fr older ch f args (pc & V & st & K) I B. eapply compared_offered; [exact K |]. intros i N.
    destruct K as [_ _ Ar _ _ _ Fr Re _ _].
    set (Ws := arguments (if admits (F := F) H f (label_of V) (tool_pc H f) then bot else label_of V) (tool_params H f) V) in *.
    assert (X : accepted (F := F) H f st (tool_args H f) Ws i = true).
    { eapply refused_none; eauto. unfold Ws. rewrite arguments_count. exact N. }
    unfold accepted in X. apply orb_true_iff in X. destruct X as [X | X].
    - left. eapply admits_seen; eauto.
    - right. apply chosen_picked with (st := st) (Ws := Ws); auto. rewrite Ar. apply arguments_strip.
  Qed.

  (** Somebody approved the call, with just these arguments, before it was made. *)
  Definition approved (t : list (event L)) (f : name) (args : list data) : Prop :=
    exists ev c ls t', t = ev :: Event c (RApprove f args ls) :: t'.

  (** Of a tool with an approval, for every observer: if nobody was asked, everything was
      compared in full. *)
  Lemma checked_approved : forall z fr older ch f args, checked fr older ch f args -> approve H f = true ->
    (forall i, (i < List.length (tool_params H f))%nat -> flows (bound_at (tool_args H f) i) z = true) ->
    offered z older fr f args \/ decided_in_sight z older f \/ approved older f args.
  Proof.
    intros z fr older ch f args (pc & V & st & K) Ap B.
    destruct (its_count _ _ _ _ _ _ _ _ K) as (t' & Eo & D).
    destruct (D Ap) as [(c & ls & t & Et) | (_ & _ & Cl)].
    - right. right. unfold approved. rewrite Eo, Et. eauto.
    - set (m := if flows (label_of V) (tool_pc H f) then bot else label_of V) in *.
      destruct (compared_offered z fr older ch f args pc V st m K) as [O | O]; auto. intros i N.
      unfold clean in Cl. rewrite forallb_forall in Cl.
      assert (X := Cl i). rewrite in_seq, arguments_count in X. specialize (X ltac:(lia)).
      apply orb_true_iff in X. destruct X as [X | X].
      + left. eapply flows_trans; [exact X | auto].
      + right. eapply chosen_picked; [apply K | | auto | exact X].
        rewrite (its_args _ _ _ _ _ _ _ _ K). apply arguments_strip.
  Qed.

  Theorem bounded_choice : forall z n pc env s e newer ch f args k older,
    Forall (known (tr s)) env -> calls_ok (fixed s) (tr s) ->
    tr (snd (eval (F := F) H n pc env s e)) = newer ++ Event ch (RTool f args k) :: older ->
    approve H f = false \/ insulated F z Endorse ->
    (forall i, (i < List.length (tool_params H f))%nat -> flows (bound_at (tool_args H f) i) z = true) ->
    offered z older (fixed s) f args \/ decided_in_sight z older f.
  Proof. intros. eapply checked_offered; eauto using every_call_checked. Qed.

  (** Of tools with an approval, [if_refused] or not: what nobody approved was offered. *)
  Theorem bounded_choice_approved : forall z n pc env s e newer ch f args k older,
    Forall (known (tr s)) env -> calls_ok (fixed s) (tr s) ->
    tr (snd (eval (F := F) H n pc env s e)) = newer ++ Event ch (RTool f args k) :: older ->
    approve H f = true ->
    (forall i, (i < List.length (tool_params H f))%nat -> flows (bound_at (tool_args H f) i) z = true) ->
    offered z older (fixed s) f args \/ decided_in_sight z older f \/ approved older f args.
  Proof. intros. eapply checked_approved; eauto using every_call_checked. Qed.

  (** What is offered in one world is offered in any other that has shown as much
      and has the same sets as far as the observer sees them. *)
  Lemma picked_both : forall z fr1 fr2 f args i, frel z fr1 fr2 -> picked z fr1 f args i -> picked z fr2 f args i.
  Proof.
    intros z fr1 fr2 f args i Fr (c & I & Ab & Lo & Ho). exists c. split; auto. split; auto.
    destruct (proj1 Fr (from c)) as [[[E _] | [X _]] D]; [| congruence]. rewrite <- E, <- (D Lo). auto.
  Qed.

  Lemma offered_both : forall z fr1 fr2 (t1 t2 : list (event L)) f args, frel z fr1 fr2 ->
    (exists u, visible z t2 = u ++ visible z t1) -> offered z t1 fr1 f args -> offered z t2 fr2 f args.
  Proof.
    intros z fr1 fr2 t1 t2 f args Fr [u E] (fs & parts & P & A). exists fs, parts. split.
    - destruct P as [P | (c & I)]; [left; auto | right]. exists c. rewrite E. apply in_or_app. auto.
    - intros i p X. destruct (A i p X) as [? | [? | ?]]; eauto using picked_both.
  Qed.

  (** The bounded choice, in two worlds that differ above the observer.  A call of
      one of them that data above the observer decided was offered in the other, too;
      or the other stopped when the observer had seen less of it than stands before
      the call.  It holds of tools with an approval, too: observers to whom two worlds
      with such tools look the same are restricted in secrecy only ([tools_keep]). *)
  Theorem bounded_choice_both : forall pol z n1 n2 pc env1 env2 s1 s2 e newer ch f args k older,
    (forall ax, pol ax = true -> insulated F z ax) ->
    (forall ax, policy H ax = true -> pol ax = true) ->
    lsrel pol z (prelude H) (prelude H) -> tools_keep H pol z -> permits pol e = true ->
    lsrel pol z env1 env2 -> srel z s1 s2 ->
    Forall (known (tr s1)) env1 -> calls_ok (fixed s1) (tr s1) ->
    tr (snd (eval (F := F) H n1 pc env1 s1 e)) = newer ++ Event ch (RTool f args k) :: older ->
    (forall i, (i < List.length (tool_params H f))%nat -> flows (bound_at (tool_args H f) i) z = true) ->
    let t2 := tr (snd (eval (F := F) H n2 pc env2 s2 e)) in
    offered z t2 (fixed s2) f args \/ decided_in_sight z older f \/
    (exists u, u <> [] /\ visible z older = u ++ visible z t2).
  Proof.
    intros pol z n1 n2 pc env1 env2 s1 s2 e newer ch f args k older POL GEN PR TK P R S A C E B t2.
    assert (Fr : frel z (fixed s1) (fixed s2)) by apply S.
    assert (I : approve H f = false \/ insulated F z Endorse).
    { destruct (approve H f) eqn:Ap; auto. right. apply POL. apply TK with (f := f). exact Ap. }
    destruct (bounded_choice z n1 pc env1 s1 e newer ch f args k older A C E I B) as [O | O]; [| auto].
    assert (Older : exists w, visible z (tr (snd (eval (F := F) H n1 pc env1 s1 e))) = w ++ visible z older).
    { rewrite E, visible_app. simpl. destruct (flows ch z); [| eauto].
      exists (visible z newer ++ [Event ch (RTool f args k)]). rewrite <- app_assoc. reflexivity. }
    destruct Older as [w W].
    destruct (noninterference_traces (F := F) H pol z POL GEN PR TK n1 n2 pc _ _ _ _ e P R S) as [[u X] | [u X]];
      fold t2 in X; rewrite W in X.
    - left. eapply offered_both; eauto. exists (u ++ w). rewrite <- app_assoc. exact X.
    - apply app_eq_app in X. destruct X as (v & [[_ X] | [_ X]]); [left; eauto using offered_both |].
      destruct v as [| ev v]; [left; eapply offered_both; eauto; exists []; auto |].
      right. right. exists (ev :: v). split; [discriminate | exact X].
  Qed.

  (** ** Counts *)

  Definition untrusted (l : L) : bool := negb (flows (integ F l) (integ F bot)).

  (** The calls of a tool that untrusted data decided. *)
  Definition decided (f : name) (t : list (event L)) : nat :=
    List.length (filter (fun ev => match what ev with RDecided g u => String.eqb f g && untrusted u | _ => false end) t).

  (** The rule of [at_most]: no more than so many of them; other calls are neither
      counted nor refused. *)
  Definition at_most (limit : name -> option nat) (f : name) (u : L) (args : list data) (t : list (event L)) : bool :=
    match limit f with Some n => untrusted u && Nat.leb n (decided f t) | None => false end.

  (** The bound holds of any history in which each such call was compared with all
      that stood before it, whichever branches the calls are of, and in whatever
      order these ran. *)
  Theorem at_most_races : forall limit f n (t : list (event L)), limit f = Some n ->
    (forall newer c u older, t = newer ++ Event c (RDecided f u) :: older -> exists args, at_most limit f u args older = false) ->
    (decided f t <= n)%nat.
  Proof.
    intros limit f n t Li. induction t as [| [c r] t IH]; intros A; [unfold decided; simpl; lia |].
    assert (B : (decided f t <= n)%nat) by (apply IH; intros newer c' u older ->; apply (A (Event c r :: newer) c'); reflexivity).
    unfold decided in *. simpl. destruct r; try exact B.
    destruct (String.eqb f f0) eqn:E; [| exact B]. apply String.eqb_eq in E. subst f0.
    destruct (untrusted l) eqn:U; [| exact B]. destruct (A [] c l t eq_refl) as (args & A'). clear A. rename A' into A. unfold at_most in A.
    rewrite Li, U in A. simpl in A. apply PeanoNat.Nat.leb_gt in A. unfold decided in A. simpl. lia.
  Qed.

  Lemma at_most_counts : forall fr limit f n, (forall g u args t, stops fr g u args t = at_most limit g u args t) ->
    limit f = Some n -> counts_as fr (decided f) n.
  Proof.
    intros fr limit f n St Li. split.
    - intros ch r t Q B. unfold decided in *. simpl. destruct r; try exact B. contradiction.
    - intros ch g u args t S B. rewrite St in S. unfold at_most in S. unfold decided. simpl.
      destruct (String.eqb f g && untrusted u) eqn:E; [| exact B].
      apply andb_true_iff in E. destruct E as [E U]. apply String.eqb_eq in E. subst g. rewrite Li, U in S. simpl in S.
      apply PeanoNat.Nat.leb_gt in S. unfold decided in S. simpl. lia.
  Qed.

  (** The bound holds of all that has happened, in runs before this one, too. *)
  Theorem at_most_bound : forall limit f n m pc env s e,
    (forall g u args t, stops (fixed s) g u args t = at_most limit g u args t) -> limit f = Some n ->
    Forall (known (tr s)) env -> (decided f (tr s) <= n)%nat ->
    (decided f (tr (snd (eval (F := F) H m pc env s e))) <= n)%nat.
  Proof.
    intros limit f n m pc env s e St Li A C. destruct (args_prepared m pc env s e A) as [(_ & _ & _ & G) _].
    apply G; auto. eapply at_most_counts; eauto.
  Qed.

  (** Each call has its entry in the count. *)
  Fixpoint untrusted_calls (f : name) (t : list (event L)) : nat :=
    match t with
    | Event _ (RTool g _ _) :: ((Event _ (RDecided h u) :: _) as t') =>
        ((if String.eqb f g && untrusted u then 1 else 0) + untrusted_calls f t')%nat
    | _ :: t' => untrusted_calls f t'
    | [] => 0%nat
    end.

  Theorem calls_counted : forall fr f t, calls_ok fr t -> (untrusted_calls f t <= decided f t)%nat.
  Proof.
    intros fr f.
    assert (G : forall t, calls_ok fr t -> (untrusted_calls f t <= decided f t)%nat /\
      forall ch g args k, checked fr t ch g args ->
        (untrusted_calls f (Event ch (RTool g args k) :: t) <= decided f t)%nat).
    { induction t as [| [c r] t IH]; intros C.
      - split; [simpl; unfold decided; simpl; lia |]. intros ch g args k (pc & V & st & K).
        destruct (its_count _ _ _ _ _ _ _ _ K) as (t' & X & _). discriminate.
      - simpl in C. destruct C as [C1 C2]. destruct (IH C2) as [I1 I2].
        assert (D : (decided f t <= decided f (Event c r :: t))%nat).
        { unfold decided. simpl. destruct r; auto. destruct (String.eqb f f0 && untrusted l); simpl; lia. }
        assert (U : (untrusted_calls f (Event c r :: t) <= decided f t)%nat).
        { destruct r; try exact I1. apply I2. exact C1. }
        split; [lia |]. intros ch g args k (pc & V & st & K).
        destruct (its_count _ _ _ _ _ _ _ _ K) as (t' & X & _). inversion X; subst c r t'. clear X.
        cbn [untrusted_calls]. unfold decided in *. cbn [filter what]. cbn [untrusted_calls] in U.
        destruct (String.eqb f g && untrusted (join pc (label_of V))); cbn [List.length]; lia. }
    intros t C. apply G, C.
  Qed.

  (** ** Confirmations *)

  Lemma plain_plain : forall c, plain (plain c) = plain c.
  Proof. intros []; reflexivity. Qed.

  Lemma strip_wrap_strip : forall (V : lval L) l, strip (Lab l (wrap (strip V)) : lval L) = strip V.
  Proof.
    fix IH 1.
    assert (A : forall vs : list (lval L), map strip (map (fun d => Lab bot (wrap d) : lval L) (map strip vs)) = map strip vs).
    { induction vs as [| W vs IHvs]; [reflexivity |]. cbn [map]. rewrite IHvs. f_equal. apply IH. }
    intros [m [k | c vs | env e]] l; simpl; auto; rewrite ?plain_plain; f_equal; apply A.
  Qed.

  (** What a confirmation gives is the value that it was asked for, with its label,
      but where somebody approved just that, and was told what its label is. *)
  Theorem confirmed_shown : forall ev pc f V k s W s', confirms H f = true ->
    called (F := F) H ev pc f V k s = (Val W, s') ->
    let args := map strip (arguments (label_of V) (tool_params H f) V) in
    strip W = nth 0 args (DK KNull) /\
    (flows (deep_label V) (label_of W) = true \/
     exists c, In (Event c (RApprove f args
       (map (fun W => join (label_of V) (deep_label W))
         (arguments (if admits (F := F) H f (label_of V) (tool_pc H f) then bot else label_of V) (tool_params H f) V)))) (tr s')).
  Proof.
    intros ev pc f V k s W s' C E args. unfold called in E. rewrite C in E.
    destruct (admits H f pc (tool_pc H f)); [| discriminate]. destruct (foreign f V); [discriminate |].
    destruct (refused H f s _ _); [discriminate |]. destruct (tool_accepts H f (strip V)); [discriminate |].
    set (Ws := arguments (if admits (F := F) H f (label_of V) (tool_pc H f) then bot else label_of V) (tool_params H f) V) in *.
    set (Ns := arguments (if flows (label_of V) (tool_pc H f) then bot else label_of V) (tool_params H f) V) in *.
    destruct (misformed s Ws (forms H f)) as [[b m] |]; [discriminate |].
    fold args in E. cbv zeta in E.
    set (as0 := fun s1 => approve H f && negb (if_refused H f && flows pc (tool_pc H f) && clean (F := F) H f s1 (tool_args H f) Ns
                                               && formed (F := F) H f s1 (tool_args H f) Ns Ws)) in E.
    assert (G : forall u d q ls s1, flows (deep_label V) d = true ->
      counted u f args s1 (fun s2 => approval H d q f (as0 s1) args ls bot s2
        (fun s3 => counted u f args s3 (fun s4 => confirmed (F := F) H pc u d f (as0 s1) args s4))) = (Val W, s') ->
      strip W = nth 0 args (DK KNull) /\
      (flows (deep_label V) (label_of W) = true \/ exists c, In (Event c (RApprove f args ls)) (tr s'))).
    { intros u d q ls s1 D X. set (a := as0 s1) in X.
      assert (K : forall s4, counted u f args s4 (fun s4 => confirmed (F := F) H pc u d f a args s4) = (Val W, s') ->
        strip W = nth 0 args (DK KNull) /\ incl (tr s4) (tr s') /\ (a = false -> flows (deep_label V) (label_of W) = true)).
      { intros s4 Y. unfold counted in Y. destruct (stops _ _ _ _ _); [discriminate |]. unfold confirmed, accept in Y.
        destruct (data_permits _ _); inversion Y; subst W s'. split; [| split].
        - unfold args. change (DK KNull) with (strip (Lab (bot : L) (VK KNull))). rewrite map_nth. apply strip_wrap_strip.
        - simpl. apply incl_tl, incl_refl.
        - intros ->. simpl. apply flows_join_l. exact D. }
      unfold counted in X at 1. destruct (stops _ _ _ _ _); [discriminate |]. unfold approval in X.
      destruct a eqn:Ea.
      - destruct (refusal H _ _ _ s1); [discriminate |]. destruct (K _ X) as (St & In' & _). split; auto.
        right. eexists. apply In'. left. reflexivity.
      - destruct (K _ X) as (St & _ & Fl). auto. }
    unfold decide in E. destruct (tool_policy H f).
    - unfold bind in E. destruct (restore _ _) as [[Wp | |] s1]; try discriminate.
      match type of E with (if ?b then _ else _) = _ => destruct b end; [| discriminate].
      destruct (strip Wp) as [[| [] | | |] | |]; try discriminate.
      eapply G; [| exact E]. apply flows_join_l, flows_join_r, join_l.
    - eapply G; [| exact E]. apply flows_join_l, flows_join_r, join_l.
  Qed.
End Planned.
