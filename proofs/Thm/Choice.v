(** * The bounded choice is about something

    Runs to which [bounded_choice_both] applies: of planned calls, and of a choice
    from a set. *)

Require Import List String QArith Bool.
Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp.
Require Import Entail.Thm.Relation Entail.Thm.Noninterference Entail.Thm.Flow Entail.Thm.Planned Entail.Thm.Runs.
Require Import Entail.Thm.Examples.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.

(** A world without approvals, and with sets for calls that the observer does not
    see: nothing in it is endorsed for who sees what is public and trusted. *)
Definition plan_world : host L := world_of false false (fun _ _ a => a).

Lemma plan_world_keeps : tools_keep plan_world no_axis pub.
Proof.
  split; [| split; [| split]].
  - discriminate.
  - intros f p E. simpl in E. destruct (String.eqb f "checked"); inversion E. reflexivity.
  - reflexivity.
  - intros f c I. right. right. unfold channel_for. simpl in I |- *.
    destruct (String.eqb f "pay") eqn:P; [apply String.eqb_eq in P; subst; auto |].
    destruct (String.eqb f "wire") eqn:W; [apply String.eqb_eq in W; subst; auto |]. contradiction.
Qed.

Definition trace_of (env : list (lval L)) (s : state L) (e : term) : list (event L) :=
  tr (snd (eval (F := F) plan_world 50 pub env s e)).

(** What the theorem says of the last call of a run, if the other run has shown as much. *)
Lemma call_offered : forall n1 n2 env1 env2 s e f args k older t2,
  permits no_axis e = true -> lsrel no_axis pub env1 env2 -> srel pub s s -> tr s = [] -> Forall (known []) env1 ->
  tr (snd (eval (F := F) plan_world n1 pub env1 s e)) = [] ++ Event unt (RTool f args k) :: older ->
  tr (snd (eval (F := F) plan_world n2 pub env2 s e)) = t2 ->
  (forall c u t, older = Event c (RDecided f u) :: t -> flows u pub = false) ->
  visible pub older = visible pub t2 ->
  (forall i, (i < List.length (tool_params plan_world f))%nat -> flows (bound_at (tool_args plan_world f) i) pub = true) ->
  offered plan_world pub t2 (fixed s) f args.
Proof.
  intros n1 n2 env1 env2 s e f args k older t2 P R S T K E1 E2 D V B.
  assert (O : offered plan_world pub (tr (snd (eval (F := F) plan_world n2 pub env2 s e))) (fixed s) f args \/
    decided_in_sight pub older f \/
    (exists u, u <> [] /\ visible pub older = u ++ visible pub (tr (snd (eval (F := F) plan_world n2 pub env2 s e))))).
  { apply (bounded_choice_both (F := F) plan_world (fun t => Forall_nil _) no_axis pub n1 n2 pub env1 env2 s s e [] unt f args k older);
      [discriminate | discriminate | constructor | apply plan_world_keeps | exact P | exact R | exact S
      | rewrite T; exact K | rewrite T; exact I | exact E1 | exact B]. }
  rewrite E2 in O. destruct O as [O | [(c & u & t & X & Lo) | (u & N & X)]]; [exact O | |].
  - rewrite (D c u t X) in Lo. discriminate.
  - exfalso. apply N. rewrite V in X. apply (app_inv_tail (visible pub t2) u []). symmetry. exact X.
Qed.

(** Untrusted data decides whether [pay] is called, in one of two worlds: in the
    other one, which makes no call, the same arguments were made. *)
Definition perhaps : term := ELet bill (EIf (EVar 1) (ECall "pay" (EVar 0)) (num 0)).
Definition called_trace := Eval vm_compute in trace_of (untrusted true) empty perhaps.
Definition other_trace := Eval vm_compute in trace_of (untrusted false) empty perhaps.

Example choice_of_planned :
  let args := [DK (KStr "bob"); DK (KNum 5)] in
  trace_of (untrusted true) empty perhaps = Event unt (RTool "pay" args "pay") :: tl called_trace /\
  trace_of (untrusted false) empty perhaps = other_trace /\
  existsb (fun ev : event L => match what ev with RTool _ _ _ => true | _ => false end) other_trace = false /\
  offered plan_world pub other_trace bare "pay" args.
Proof.
  cbv zeta. split; [runs |]. split; [runs |]. split; [runs |].
  apply (call_offered 50 50 (untrusted true) (untrusted false) empty perhaps "pay" _ "pay" (tl called_trace)).
  - reflexivity.
  - repeat constructor.
  - split; [left; split; reflexivity | split; [split; [split; [reflexivity |] |] |]]; try reflexivity.
    split; [intros l; split; [left; split; reflexivity | reflexivity] | discriminate].
  - reflexivity.
  - repeat constructor.
  - runs.
  - runs.
  - intros c u t X. symmetry. exact (f_equal (fun t => match t with Event _ (RDecided _ u) :: _ => flows u pub | _ => false end) X).
  - runs.
  - intros [| [| i]] N; try reflexivity. exfalso. simpl in N. do 2 apply PeanoNat.Nat.succ_lt_mono in N. inversion N.
Qed.

(** Untrusted data decides whether to pay, and whom: one of a set that both worlds
    share.  What the other world calls with is another one of it; with what is in no
    set, there is no call. *)
Definition pay_to : term :=
  ELet (ECon (CArgs "pay" ["to"; "n"]) [EVar 0; num 5]) (EIf (EVar 2) (ECall "pay" (EVar 0)) (num 0)).
Definition payee (k : string) : list (lval L) := with_text k ++ untrusted true.
Definition ann_trace := Eval vm_compute in trace_of (payee "ann") with_sets pay_to.
Definition bob_trace := Eval vm_compute in trace_of (payee "bob") with_sets pay_to.

Example choice_from_set :
  let args k := [DK (KStr k); DK (KNum 5)] in
  trace_of (payee "ann") with_sets pay_to = Event unt (RTool "pay" (args "ann") "pay") :: tl ann_trace /\
  trace_of (payee "bob") with_sets pay_to = Event unt (RTool "pay" (args "bob") "pay") :: tl bob_trace /\
  existsb (fun ev : event L => match what ev with RTool _ _ _ => true | _ => false end) (trace_of (payee "eve") with_sets pay_to) = false /\
  offered plan_world pub bob_trace (fixed with_sets) "pay" (args "ann") /\
  ~ offered plan_world pub bob_trace (fixed with_sets) "pay" (args "eve").
Proof.
  cbv zeta. split; [runs |]. split; [runs |]. split; [runs |].
  split.
  - apply (call_offered 50 50 (payee "ann") (payee "bob") with_sets pay_to "pay" _ "pay" (tl ann_trace)).
    + reflexivity.
    + repeat constructor.
    + split; [left; split; reflexivity | split; [split; [split; [reflexivity |] |] |]]; try reflexivity.
      split; [intros l; split; [left; split; reflexivity | reflexivity] | discriminate].
    + reflexivity.
    + repeat constructor.
    + runs.
    + runs.
    + intros c u t X. symmetry. exact (f_equal (fun t => match t with Event _ (RDecided _ u) :: _ => flows u pub | _ => false end) X).
    + runs.
    + intros [| [| i]] N; try reflexivity. exfalso. simpl in N. do 2 apply PeanoNat.Nat.succ_lt_mono in N. inversion N.
  - intros (fs & parts & P & A). specialize (A 0%nat "to"%string eq_refl).
    destruct A as [I | [[X _] | (c & Ic & _ & _ & Ho)]].
    + destruct P as [P | (ch & J)]; [rewrite P in I; exact I |].
      assert (All : Forall (fun ev : event L => match what ev with RArgs _ _ ps => ~ In ("to"%string, DK (KStr "eve")) ps | _ => True end)
        (visible pub bob_trace)).
      { vm_compute. repeat constructor; intros Y; repeat (destruct Y as [Y | Y]; [discriminate Y |]); exact Y. }
      rewrite Forall_forall in All. exact (All _ J I).
    + discriminate X.
    + destruct Ic as [<- | []]. vm_compute in Ho. discriminate Ho.
Qed.

(** ** A choice that the observer sees

    A world with sets for calls that everybody sees.  Who runs the program with
    another choice sees that; of runs that choose the same, nothing else. *)
Definition choice_world : host L := world_of false true (fun _ _ a => a).
Definition chosen_tools (f : name) : Datatypes.bool := existsb (String.eqb f) ["invite"; "save"; "visit"].

Lemma choice_world_keeps : tools_keep_of chosen_tools choice_world no_axis pub.
Proof.
  split; [| split; [| split]].
  - discriminate.
  - intros f p E. simpl in E. destruct (String.eqb f "checked"); inversion E. reflexivity.
  - reflexivity.
  - intros f c I. right. right. split; [| reflexivity]. unfold channel_for. simpl in I |- *.
    destruct (String.eqb f "pay") eqn:P; [left; apply String.eqb_eq in P; subst; reflexivity |].
    destruct (String.eqb f "wire") eqn:W; [left; apply String.eqb_eq in W; subst; reflexivity |].
    right. unfold chosen_tools. simpl.
    destruct (String.eqb f "save") eqn:S; [rewrite ?orb_true_r; reflexivity |].
    destruct (String.eqb f "visit") eqn:V; [rewrite ?orb_true_r; reflexivity |].
    destruct (String.eqb f "invite") eqn:N; [reflexivity | contradiction].
Qed.

(** The one choice: [ann], whatever was seen. *)
Definition only_ann : choices (L := L) := fun f seen args => match args with [DK (KStr k)] => String.eqb k "ann" | _ => false end.

Lemma only_ann_single : single only_ann.
Proof.
  intros f seen a1 a2 E1 E2. unfold only_ann in *.
  destruct a1 as [| [[| | | k1 |] | |] [|]]; try discriminate. destruct a2 as [| [[| | | k2 |] | |] [|]]; try discriminate.
  apply String.eqb_eq in E1, E2. congruence.
Qed.

(** Untrusted data chooses whom to invite, and something is published afterwards. *)
Definition invitation : term := ESeq (ECall "invite" (EVar 0)) (ECall "publish" (num 1)).
Definition seen_of (s : state L) (k : string) : list (event L) :=
  filter (fun ev => match what ev with RTool _ _ _ => true | _ => false end)
    (visible pub (tr (snd (eval (F := F) choice_world 50 pub (with_text k) s invitation)))).

Example choice_in_sight :
  let call f x := Event pub (RTool f [DK x] f) in
  let o := choosing pub chosen_tools only_ann with_sets in
  seen_of with_sets "ann" = [call "publish" (KNum 1); call "invite" (KStr "ann")] /\
  seen_of with_sets "bob" = [call "publish" (KNum 1); call "invite" (KStr "bob")] /\
  seen_of o "ann" = seen_of with_sets "ann" /\ seen_of o "bob" = [] /\ seen_of with_sets "eve" = [].
Proof. runs. Qed.

Example choice_alike : forall n1 n2 k1 k2,
  @rrel_of _ chosen_tools no_axis pub
    (eval (F := F) choice_world n1 pub (with_text k1) (choosing pub chosen_tools only_ann with_sets) invitation)
    (eval (F := F) choice_world n2 pub (with_text k2) (choosing pub chosen_tools only_ann with_sets) invitation).
Proof.
  intros n1 n2 k1 k2. apply noninterference_chosen.
  - discriminate.
  - discriminate.
  - constructor.
  - apply choice_world_keeps.
  - apply only_ann_single.
  - left. split; reflexivity.
  - reflexivity.
  - constructor; [apply lrel_high; reflexivity | constructor].
  - split; [left; split; reflexivity | split; [split; [split; [reflexivity |] |] |]]; try reflexivity.
    split; [intros l; split; [left; split; reflexivity | reflexivity] | discriminate].
Qed.

(** ** Another plan

    Untrusted data decides a payment, and the plan fails; the planner writes another
    one, which pays again.  Both run, on one history: the count of the first goes on. *)
Definition payment (e : term) : term :=
  ELet bill (ESeq (ECase (ECall "read" (EK KNull)) [] (Some (ECall "pay" (EVar 0)))) e).

Example replanned_counts :
  let start limit := initial (Frame (fun _ => (pub, [])) (at_most (F := F) (fun f => if String.eqb f "pay" then limit else None))) (fun _ => []) in
  let plans limit := replanned (F := F) world (fun l => negb (snd l)) (fun _ => 7%nat)
    (fun told => match told with [_] => Some (payment (num 1)) | _ => None end) 50 3 []
    (eval (F := F) world 50 pub [] (start limit) (payment (EFail (num 0)))) in
  let pays limit := List.length (filter (fun ev : event L => match what ev with RTool f _ _ => String.eqb f "pay" | _ => false end) (tr (snd (plans limit)))) in
  (fst (plans None) = Val (Lab pub (VK (KNum 1))) /\ pays None = 2%nat) /\
  (fst (plans (Some 1%nat)) = Out /\ pays (Some 1%nat) = 1%nat).
Proof. runs. Qed.
