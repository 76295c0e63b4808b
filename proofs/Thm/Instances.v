(** * The theorems at each lattice, and hosts that meet their hypotheses

    Every theorem of the flow part quantifies over lattices and hosts.  This
    file states them for the four lattices that ship, gives for each a host for
    which all hypotheses are proved, and runs programs in it to which the
    theorems apply. *)

Require Import List String QArith Bool.
Require Import Entail.Spec.Labels Entail.Spec.Lattices Entail.Spec.Syntax Entail.Spec.Interp Entail.Spec.Sets.
Require Import Entail.Thm.Confinement Entail.Thm.Relation Entail.Thm.Noninterference Entail.Thm.Flow.
Require Import Entail.Thm.Keys.
Import ListNotations.
Local Open Scope list_scope.

(** ** Hypotheses *)

Section Hypotheses.
  Context {B : bounded}.

  (** What the theorems assume of a host, for an observer and the
      reclassifications that programs may do. *)
  Definition admissible (H : host B) (pol : axis -> bool) (z : B) : Prop :=
    (forall ax, pol ax = true -> insulated (axes B) z ax) /\
    (forall ax, policy H ax = true -> pol ax = true) /\
    lsrel pol z (prelude H) (prelude H) /\
    tools_keep H pol z.

  (** A value is related to itself if its code reclassifies no more than [pol] allows. *)
  Lemma value_related : forall pol (z : B) (V : lval B), data_permits pol (strip V) = true -> lrel pol z V V.
  Proof.
    intros pol z. fix IH 1. intros [l v] P.
    assert (IHs : forall vs, forallb (data_permits pol) (map strip vs) = true -> lsrel pol z vs vs).
    { induction vs as [| V vs IHvs]; simpl; intros Q; [constructor |].
      apply andb_true_iff in Q. constructor; [apply IH | apply IHvs]; apply Q. }
    destruct (flows l z) eqn:A; [| apply lrel_high; auto].
    apply lrel_low; auto. destruct v as [k | c vs | env e]; simpl in P.
    - constructor.
    - constructor. apply IHs, P.
    - apply andb_true_iff in P. constructor; [| apply IHs]; apply P.
  Qed.

  Lemma values_related : forall pol (z : B) vs,
    forallb (fun V => data_permits pol (strip V)) vs = true -> lsrel pol z vs vs.
  Proof.
    intros pol z vs. induction vs as [| V vs IH]; simpl; [constructor |].
    rewrite andb_true_iff. intros [P Ps]. constructor; auto using value_related.
  Qed.

  (** Every observer is insulated from nothing, those whom secrecy alone
      restricts from endorsement, those whom integrity alone restricts from
      declassification. *)
  Lemma nothing_insulated : forall z : B, forall ax, no_axis ax = true -> insulated (axes B) z ax.
  Proof. discriminate. Qed.

  Lemma secrecy_insulated : forall s ax, only_endorse ax = true -> insulated (axes B) (in_secrecy s) ax.
  Proof.
    intros s [] E; [| discriminate]. apply secrecy_observer_insulated. intros i. unfold in_secrecy.
    rewrite integ_paired. apply top_integrity_greatest.
  Qed.

  Lemma integrity_insulated : forall i ax, only_declassify ax = true -> insulated (axes B) (in_integrity i) ax.
  Proof.
    intros i [] E; [discriminate |]. apply integrity_observer_insulated. intros s. unfold in_integrity.
    rewrite secr_paired. apply top_secrecy_greatest.
  Qed.
End Hypotheses.

(** ** The theorems at a lattice *)

Section Secure.
  Variable B : bounded.
  Notation eval := (eval (F := axes B)).

  (** [noninterference]: values, conversations, stores and traces. *)
  Definition values_agree (pol : axis -> bool) (z : B) : Prop :=
    forall (H : host B) n1 n2 pc env1 env2 s1 s2 e V1 V2 s1' s2',
    admissible H pol z -> permits pol e = true -> lsrel pol z env1 env2 -> srel z s1 s2 ->
    eval H n1 pc env1 s1 e = (Val V1, s1') -> eval H n2 pc env2 s2 e = (Val V2, s2') ->
    agree z V1 V2 s1' s2'.

  (** [noninterference_errors] *)
  Definition errors_agree (pol : axis -> bool) (z : B) : Prop :=
    forall (H : host B) n1 n2 pc env1 env2 s1 s2 e l m s1' o2 s2',
    admissible H pol z -> permits pol e = true -> lsrel pol z env1 env2 -> srel z s1 s2 ->
    eval H n1 pc env1 s1 e = (Err l m, s1') -> flows l z = true ->
    eval H n2 pc env2 s2 e = (o2, s2') -> ~ stuck z o2 ->
    o2 = Err l m /\ srel z s1' s2'.

  (** [noninterference_traces] *)
  Definition traces_agree (pol : axis -> bool) (z : B) : Prop :=
    forall (H : host B) n1 n2 pc env1 env2 s1 s2 e,
    admissible H pol z -> permits pol e = true -> lsrel pol z env1 env2 -> srel z s1 s2 ->
    extends z (snd (eval H n1 pc env1 s1 e)) (snd (eval H n2 pc env2 s2 e)) \/
    extends z (snd (eval H n2 pc env2 s2 e)) (snd (eval H n1 pc env1 s1 e)).

  (** [noninterference_keys] *)
  Definition keys_agree (pol : axis -> bool) (z : B) : Prop :=
    forall (H : host B) n1 n2 pc env1 env2 s1 s2 e,
    admissible H pol z -> permits pol e = true -> lsrel pol z env1 env2 -> srel z s1 s2 ->
    let k1 := keys (visible z (tr (snd (eval H n1 pc env1 s1 e)))) in
    let k2 := keys (visible z (tr (snd (eval H n2 pc env2 s2 e)))) in
    (exists ks, k2 = ks ++ k1) \/ (exists ks, k1 = ks ++ k2).

  Definition agrees (pol : axis -> bool) (z : B) : Prop :=
    values_agree pol z /\ errors_agree pol z /\ traces_agree pol z /\ keys_agree pol z.

  (** Confinement; programs that reclassify nothing, for every observer; programs
      that endorse, for every observer in secrecy; programs that declassify, for
      every observer in integrity. *)
  Definition secure : Prop :=
    (forall (H : host B) n pc env s e, confined (F := axes B) H pc s (eval H n pc env s e)) /\
    (forall z, agrees no_axis z) /\
    (forall s, agrees only_endorse (in_secrecy s)) /\
    (forall i, agrees only_declassify (in_integrity i)).

  Lemma agrees_always : forall pol z, agrees pol z.
  Proof.
    intros pol z. split; [| split; [| split]].
    - intros H n1 n2 pc env1 env2 s1 s2 e V1 V2 s1' s2' (PO & G & PR & TK) P R S E1 E2.
      exact (noninterference_values H pol z PO G PR TK _ _ _ _ _ _ _ _ _ _ _ _ P R S E1 E2).
    - intros H n1 n2 pc env1 env2 s1 s2 e l m s1' o2 s2' (PO & G & PR & TK) P R S E1 A E2 N.
      exact (noninterference_errors H pol z PO G PR TK _ _ _ _ _ _ _ _ _ _ _ _ _ P R S E1 A E2 N).
    - intros H n1 n2 pc env1 env2 s1 s2 e (PO & G & PR & TK) P R S.
      exact (noninterference_traces H pol z PO G PR TK _ _ _ _ _ _ _ _ P R S).
    - intros H n1 n2 pc env1 env2 s1 s2 e (PO & G & PR & TK) P R S.
      apply noninterference_keys with (pol := pol); auto.
  Qed.

  Theorem secure_always : secure.
  Proof.
    split; [| split; [| split]]; intros; auto using agrees_always. apply confinement.
  Qed.
End Secure.

Theorem two_axis_secure : secure two_axis.
Proof. apply secure_always. Qed.

Theorem endorsed_secure : secure endorsed.
Proof. apply secure_always. Qed.

Theorem sources_readers_secure : secure sources_readers.
Proof. apply secure_always. Qed.

Theorem levels_secure : secure levels.
Proof. apply secure_always. Qed.

(** ** A host that meets the hypotheses

    Its model replies with code, which uses the prelude and, where [pol] allows
    it, reclassifies; its tools have bounds, a policy, an approval, a confirmation
    and labels of parts; its store
    has a capacity and a lifetime, and other runs write to it; what it answers depends on what was asked before. *)

Section Witness.
  Context {B : bounded}.
  Variable pol : axis -> bool.
  Variables secret untrusted : B.

  Local Open Scope string_scope.

  Definition num (n : Z) : term := EK (KNum (n # 1)).
  Definition text (s : string) : term := EK (KStr s).
  Definition public : term := EK (KTag "").

  (** Variable 0 of the prelude is the identity, 1 a secret; then come the
      reclassifications that are allowed. *)
  Definition witness_prelude : list (lval B) :=
    [Lab bot (VClo [] (EVar 0)); Lab secret (VK (KStr "key"))] ++
    map (fun ax => Lab bot (VClo [] (EReclass ax public (EVar 0)))) (filter pol [Endorse; Declassify]).

  Definition same_data (a b : data) : bool := match a, b with DK k, DK k' => scalar_eqb k k' | _, _ => false end.

  Definition witness : host B := {|
    model := fun _ _ seen => inl (if Nat.even (List.length seen) then "apply" else "broken");
    further := fun _ _ => [];
    unasked := fun _ => None;
    offers := fun _ => false;
    parse := fun r =>
      if String.eqb r "apply" then
        inl (EApp (EVar (if pol Endorse || pol Declassify then 2 else 0)) (num 7))
      else inr "does not parse";
    decode := fun _ r => inl (DK (KStr r));
    tool_params := fun f => if existsb (String.eqb f) ["publish"; "checked"; "mail"; "order"; "file"; "vouch"] then ["x"] else [];
    tool_accepts := fun _ _ => None;
    tool_key := fun f _ seen => if Nat.even (List.length seen) then f else "again";
    completes := fun f => if String.eqb f "file" then [0%nat] else [];
    completed := fun f args _ _ => negb (existsb (same_data (DK (KNum 99))) args);
    tool := fun f _ _ _ => if String.eqb f "down" then None else Some 2%nat;
    content := fun f _ k path seen =>
      if String.eqb f "inbox" then
        match path with
        | [] =>
            AParts (CRec ["text"; "from"; "to"])
              [PartLabel [] (fun _ => untrusted); PartLabel [] (fun _ => bot); PartLabel [0%nat; 1%nat] (fun _ => secret)]
              [2%nat; 0%nat; 1%nat]
        | _ => AScalar (KStr "ann")
        end
      else AScalar (KNum (Z.of_nat (List.length seen + String.length k) # 1));
    misfit := fun f _ => if String.eqb f "typed" then Some "not of the type" else None;
    most := fun _ _ => untrusted;
    failure := fun _ _ _ seen => if Nat.even (List.length seen) then "no answer" else "again no answer";
    states := fun _ _ _ _ => bot;
    tool_policy := fun f =>
      if String.eqb f "checked" then Some (ELam (EGet (EGet (EVar 0) (text "x")) (text "value"))) else None;
    approve := fun f => existsb (String.eqb f) ["mail"; "order"; "vouch"] && pol Endorse;
    if_refused := fun f => String.eqb f "order";
    confirms := fun f => String.eqb f "vouch";
    among := fun f => if String.eqb f "order" && pol Endorse then [from_items same_data 3 "book" None [(0%nat, fun d => [d])]] else [];
    forms := fun f => if String.eqb f "checked" then [closed_form 0 (fun d => if same_data d (DK (KNum 13)) then Some "unlucky" else None)] else [];
    asking := fun f => if String.eqb f "order" then [plain_form (fun l => negb (flows l bot)) 0 (Some "book") bot (fun _ _ => None)] else [];
    anyone := untrusted;
    from_label := fun _ => DK (KStr "label");
    sample := fun _ seen => Nat.even (List.length seen);
    refuses := fun r _ => match r with RTool "broken" _ _ => Some "too late" | _ => None end;
    is_timeout := fun m => String.eqb m "too late";
    remark := fun _ _ => "try again";
    char_at := fun _ _ => None;
    prim := fun p =>
      if String.eqb p "flatten" then whole inl
      else if String.eqb p "length" then
        Looks [0%nat] (fun h => match h with Some (HCon CList n) => Gives (GData (DK (KNum (Z.of_nat n # 1)))) | _ => Fails "no list" end)
      else Fails "no such primitive";
    serialize := fun d => match d with DK (KStr s) => s | _ => "data" end;
    to_label := fun d =>
      match d with
      | DK (KTag "") => Some bot
      | DK (KTag "S") => Some secret
      | DK (KTag "U") => Some untrusted
      | _ => None
      end;
    tool_pc := fun f => if String.eqb f "file" then secret else bot;
    tool_args := fun f =>
      if String.eqb f "file" then [secret]
      else if existsb (String.eqb f) ["publish"; "checked"; "mail"; "order"; "vouch"] then [bot] else [];
    tool_res := fun f => if String.eqb f "read" then untrusted else if String.eqb f "file" then secret else bot;
    key_label := fun k => if String.eqb k "diary" then secret else bot;
    has_type := fun _ _ => true;
    key_type := fun k => k;
    now := fun _ seen => List.length seen;
    keep := fun _ now a => firstn 2 (filter (fun e => Nat.leb (now - fst (snd e)) 100) a);
    others := fun _ seen a => if Nat.even (List.length seen) then a else without "y" a;
    clearance := fun _ => join secret untrusted;
    policy := pol;
    prelude := witness_prelude
  |}.

  Lemma witness_tools : forall z, tools_keep witness pol z.
  Proof.
    intros z. split; [| split; [| split]]; simpl.
    - intros f E. apply andb_true_iff in E. apply E.
    - intros f p. destruct (String.eqb f "checked"); [| discriminate]. intros E. inversion E. reflexivity.
    - reflexivity.
    - intros f c. destruct (pol Endorse); auto. rewrite andb_false_r. contradiction.
  Qed.

  Lemma witness_prelude_related : forall z, lsrel pol z witness_prelude witness_prelude.
  Proof.
    intros z. apply values_related. unfold witness_prelude. rewrite forallb_app.
    apply andb_true_iff. split; [reflexivity |]. apply forallb_forall. intros V I. apply in_map_iff in I. destruct I as (ax & <- & I).
    apply filter_In in I. simpl. destruct I as [_ ->]. reflexivity.
  Qed.

  Lemma witness_admissible : forall z,
    (forall ax, pol ax = true -> insulated (axes B) z ax) -> admissible witness pol z.
  Proof.
    intros z P. split; [exact P |]. split; [auto |]. split; [apply witness_prelude_related | apply witness_tools].
  Qed.
End Witness.

(** For every lattice, and every observer of each form of the theorem, there is a host. *)
Theorem hypotheses_met : forall (B : bounded) (secret untrusted : B),
  (forall z, admissible (witness no_axis secret untrusted) no_axis z) /\
  (forall s, admissible (witness only_endorse secret untrusted) only_endorse (in_secrecy s)) /\
  (forall i, admissible (witness only_declassify secret untrusted) only_declassify (in_integrity i)).
Proof.
  intros B secret untrusted. split; [| split]; intros; apply witness_admissible.
  - apply nothing_insulated.
  - apply secrecy_insulated.
  - apply integrity_insulated.
Qed.

(** ** Programs to which the theorems apply *)

Section Tours.
  Context {B : bounded}.
  Variables secret untrusted : B.
  Local Open Scope string_scope.

  Definition ask : term := EAsk "m" (text "what now?").

  (** Variable 0 is a secret boolean, 1 an untrusted number.  A secret branch
      writes, files and reads, an untrusted one reads; public entries are written
      and evicted; what is refused is caught; generated code runs; branches,
      retries, limits. *)
  Definition tour : term :=
    ECon CPair [ERecall "first";
    ESeq (ERemember "x" (num 1)) (ESeq (ERemember "y" (num 2))
    (ESeq (EIf (EVar 0) (ESeq (ERemember "diary" (num 1)) (ESeq (ECall "file" (EVar 0)) (ERecall "x"))) (num 0))
    (ESeq (ERemember "z" (num 3))
    (ECon CList [
      ERecall "x"; ERecall "y"; ERecall "z"; ERecall "first"; ERecall "diary";
      EFresh ask; EFresh ask;
      ETry true public (ECall "publish" (EVar 0)) (EVar 0);
      ETry true (EK (KTag "S")) (EIf (EVar 0) (EFail (text "no")) (num 1)) (num 2);
      ECall "checked" (EK (KBool true));
      EWithin 5 (EPar [ECall "publish" (num 1); ECall "read" (EK KNull); EIf (EVar 0) (ERecall "diary") (num 0)]);
      ETry true public (EGuard (EFresh ask) (ELam (EK (KBool false))) 1) (EVar 0);
      ECase (EVar 1) [(KNum 1, ERecall "x")] (Some (num 0));
      ECall "inbox" (EK KNull); EPrim "length" (ECon CList [ECon CList [EVar 0; EVar 1]]);
      EVar 0; EVar 1]))))].

  (** The same, and what is untrusted is endorsed, mailed with an approval, and
      decided by generated code that endorses. *)
  Definition endorsing_tour : term :=
    ECon CList [tour; ECall "publish" (EReclass Endorse public (EVar 1)); ECall "mail" (EVar 1);
      ECall "publish" (ECall "vouch" (EVar 1)); EFresh ask].

  (** The same, and the secret is published, also by generated code. *)
  Definition declassifying_tour : term :=
    ECon CList [tour; ECall "publish" (EReclass Declassify public (EVar 0)); EFresh ask].

  Definition world (b : bool) (n : Z) : list (lval B) :=
    [Lab secret (VK (KBool b)); Lab untrusted (VK (KNum (n # 1)))].

  (** The key "first" has an initial value. *)
  Definition start : state B :=
    initial (Frame (fun _ => (bot, [DK (KNum 1)])) (fun f l a t => String.eqb f "file" && Nat.leb 99 (List.length t))) (fun l => if flows l bot then [("first", (0%nat, DK (KNum 9)))] else []).

  Definition toured (pol : axis -> bool) (e : term) (env : list (lval B)) : result B :=
    eval (F := axes B) (witness pol secret untrusted) 60 bot env start e.

  (** Both runs end with a value and agree for the observer; elsewhere they
      differ: in the length of the trace, and in what they see. *)
  Definition tour_holds (pol : axis -> bool) (e : term) (z : B) (env1 env2 : list (lval B)) : Prop :=
    match toured pol e env1, toured pol e env2 with
    | (Val V1, s1), (Val V2, s2) =>
        agree z V1 V2 s1 s2 /\ strip V1 <> strip V2 /\ tr s1 <> tr s2 /\
        (3 <= List.length (visible z (tr s1)))%nat
    | _, _ => False
    end.

  (** What remains to be computed. *)
  Definition tour_ends (pol : axis -> bool) (e : term) (z : B) (env1 env2 : list (lval B)) : Prop :=
    match toured pol e env1, toured pol e env2 with
    | (Val V1, s1), (Val V2, s2) =>
        strip V1 <> strip V2 /\ Nat.eqb (List.length (tr s1)) (List.length (tr s2)) = false /\
        Nat.leb 3 (List.length (visible z (tr s1))) = true
    | _, _ => False
    end.

  Lemma tour_by_theorem : forall pol e z env1 env2,
    (forall ax, pol ax = true -> insulated (axes B) z ax) ->
    permits pol e = true -> lsrel pol z env1 env2 ->
    tour_ends pol e z env1 env2 -> tour_holds pol e z env1 env2.
  Proof.
    intros pol e z env1 env2 PO P R. unfold tour_ends, tour_holds, toured.
    destruct (eval _ _ _ env1 _ _) as [[V1 | |] s1] eqn:E1; auto.
    destruct (eval _ _ _ env2 _ _) as [[V2 | |] s2] eqn:E2; auto.
    intros (D & T & N). split; [| split; [| split]]; auto.
    2: { intros X. rewrite X, PeanoNat.Nat.eqb_refl in T. discriminate. }
    2: { apply PeanoNat.Nat.leb_le. exact N. }
    eapply (proj1 (agrees_always B pol z)); eauto using witness_admissible.
    split; [left; split; auto; apply bot_flows |]. split; [split; [split |] |]; auto.
    split; [| discriminate]. intros k. split; auto. left. split; auto. apply bot_flows.
  Qed.

  (** Secrets and untrusted data differ for an observer who sees neither;
      secrets, for one whom secrecy alone restricts; untrusted data, for one whom
      integrity alone restricts. *)
  Definition tours : Prop :=
    tour_holds no_axis tour bot (world true 1) (world false 2) /\
    tour_holds only_endorse endorsing_tour (in_secrecy bot) (world true 1) (world false 1) /\
    tour_holds only_declassify declassifying_tour (in_integrity bot) (world true 1) (world true 2).

  Definition tours_end : Prop :=
    tour_ends no_axis tour bot (world true 1) (world false 2) /\
    tour_ends only_endorse endorsing_tour (in_secrecy bot) (world true 1) (world false 1) /\
    tour_ends only_declassify declassifying_tour (in_integrity bot) (world true 1) (world true 2).

  (** The label [secret] is one of secrecy, [untrusted] one of integrity. *)
  Lemma tours_by_theorem :
    flows secret bot = false -> flows untrusted bot = false ->
    flows secret (in_secrecy bot) = false -> flows untrusted (in_secrecy bot) = true ->
    flows secret (in_integrity bot) = true -> flows untrusted (in_integrity bot) = false ->
    tours_end -> tours.
  Proof.
    intros S0 U0 S1 U1 S2 U2 (T0 & T1 & T2).
    assert (D : forall pol z b n b' n',
      (flows secret z = true -> b = b') -> (flows untrusted z = true -> n = n') ->
      lsrel pol z (world b n) (world b' n')).
    { intros pol z b n b' n' X Y. unfold world. constructor; [| constructor; [| constructor]].
      - destruct (flows secret z) eqn:A; [rewrite X by auto; apply lrel_low | apply lrel_high]; auto; constructor.
      - destruct (flows untrusted z) eqn:A; [rewrite Y by auto; apply lrel_low | apply lrel_high]; auto; constructor. }
    split; [| split]; apply tour_by_theorem; auto using nothing_insulated, secrecy_insulated, integrity_insulated;
      apply D; auto; congruence.
  Qed.
End Tours.

Ltac tour_runs := apply tours_by_theorem; try reflexivity; vm_compute; repeat split; discriminate.

Example two_axis_tour : tours (B := two_axis) (false, true) (true, false).
Proof. tour_runs. Qed.

Example endorsed_tour : tours (B := endorsed) ((false, false), true) ((true, false), false).
Proof. tour_runs. Qed.

(** Readable by the first name only; from the second. *)
Example sources_readers_tour : tours (B := sources_readers) (Some 0%N, Some 1%N) (Some 2%N, None).
Proof. tour_runs. Qed.

Example levels_tour : tours (B := levels) (false, Confidential) (true, Public).
Proof. tour_runs. Qed.
