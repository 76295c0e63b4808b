(** * Idempotency keys

    A request of a tool carries a key, which is the same when the request is
    repeated.  It is a part of the request ([RTool]), and the tool may answer by
    it: [tool] and [states] of the host are given the key.  So the theorems of
    [Thm/Flow.v] hold of keys.  What makes them true is that a key is a function
    of the tool, the program counter of the call, and what is visible at that
    program counter ([tool_key]).  The program counter flows to the channel of
    the call and to the label of its answer. *)

Require Import List String QArith Bool Lia.
Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp.
Require Import Entail.Thm.Confinement Entail.Thm.Relation Entail.Thm.Noninterference Entail.Thm.Flow.
Require Import Entail.Thm.Examples.
Import ListNotations.
Local Open Scope list_scope.

Section Keys.
  Context {L : lattice} {F : factoring L}.

  (** The calls in a trace, newest first, with their keys. *)
  Definition keys (t : list (event L)) : list (name * string) :=
    flat_map (fun ev => match what ev with RTool f _ k => [(f, k)] | _ => [] end) t.

  Variable z : L.

  Theorem keys_equal : forall t1 t2 : list (event L),
    visible z t1 = visible z t2 -> keys (visible z t1) = keys (visible z t2).
  Proof. intros t1 t2 E. rewrite E. reflexivity. Qed.

  (** In two worlds that differ above the observer only, the calls that it sees
      have the same keys, wherever the runs are cut off. *)
  Theorem noninterference_keys : forall (H : host L) pol n1 n2 pc env1 env2 s1 s2 e,
    (forall ax, pol ax = true -> insulated F z ax) ->
    (forall ax, policy H ax = true -> pol ax = true) ->
    lsrel pol z (prelude H) (prelude H) -> tools_keep H pol z ->
    permits pol e = true ->
    lsrel pol z env1 env2 -> srel z s1 s2 ->
    let k1 := keys (visible z (tr (snd (eval (F := F) H n1 pc env1 s1 e)))) in
    let k2 := keys (visible z (tr (snd (eval (F := F) H n2 pc env2 s2 e)))) in
    (exists ks, k2 = ks ++ k1) \/ (exists ks, k1 = ks ++ k2).
  Proof.
    intros H pol n1 n2 pc env1 env2 s1 s2 e POL GEN PRE TK P R S k1 k2.
    unfold k1, k2, keys.
    destruct (noninterference_traces (F := F) H pol z POL GEN PRE TK n1 n2 pc _ _ _ _ e P R S) as [[u E] | [u E]];
      rewrite E, flat_map_app; [left | right]; eexists; reflexivity.
  Qed.
End Keys.

(** ** One key, one call *)

Section Number.
  Context {L : lattice}.

  Definition begins (ev : event L) : Datatypes.bool :=
    match what ev with RKey _ => true | _ => false end.

  (** The number of calls that have begun at a program counter. *)
  Definition number (pc : L) (t : list (event L)) : nat :=
    List.length (filter (fun ev => same (channel ev) pc && begins ev) (visible pc t)).

  (** It depends on nothing but what is visible there, so it may be in a key. *)
  Theorem number_visible : forall pc (t : list (event L)), number pc (visible pc t) = number pc t.
  Proof.
    intros pc t. unfold number. f_equal. f_equal. unfold visible.
    induction t as [| ev t IH]; simpl; auto.
    destruct (flows (channel ev) pc) eqn:A; simpl; auto. rewrite A, IH. reflexivity.
  Qed.

  (** With the program counter and this number in it, two calls have different
      keys: a later call at the same program counter has a greater number. *)
  Theorem keys_differ : forall pc f (between earlier : list (event L)),
    (number pc earlier < number pc (between ++ Event pc (RKey f) :: earlier))%nat.
  Proof.
    intros pc f between earlier. unfold number, visible.
    assert (A : flows pc pc = true) by apply flows_refl.
    assert (B : same pc pc = true) by (unfold same; rewrite A; reflexivity).
    rewrite !filter_app, app_length. cbn [filter channel]. rewrite A.
    cbn [filter channel begins what]. rewrite B. simpl. lia.
  Qed.
End Number.

(** ** Why the count is one of the program counter *)

(** The variant: the key counts all requests.  A program that calls a secret
    tool, or not, before it publishes: the public trace is the same, the key is
    not.  By the rule it is. *)
Definition published : list (event Examples.L) -> list nat :=
  fix go t := match t with
  | [] => []
  | ev :: t' => match what ev with RTool "publish" _ _ => [List.length t'] | _ => go t' end
  end.

Definition hides (b : Datatypes.bool) (last : term) : list (event Examples.L) :=
  tr (snd (Examples.run [Lab sec (VK (KBool b))]
    (ESeq (EIf (EVar 0) (ECall "hide" (Examples.num 1)) (Examples.num 0)) last))).

Example global_counter_leaks :
  let t b := hides b (ECall "publish" (Examples.num 1)) in
  visible pub (t true) = visible pub (t false) /\
  published (t true) = [5%nat] /\ published (t false) = [2%nat] /\
  number pub (t true) = number pub (t false).
Proof. vm_compute. auto 10. Qed.

(** The variant: the key counts the calls on the channel of the call.  The last
    call of [hide] is on a secret channel, and its result is public.  If the tool
    answers by its key, public data depends on the secret.  By the rule the
    number is that of the calls at the public program counter. *)
Example channel_counter_leaks :
  let t b := hides b (ECall "hide" (Examples.num 2)) in
  let calls b := List.length (keys (visible sec (t b))) in
  flows (tool_res Examples.world "hide") pub = true /\
  visible pub (t true) = visible pub (t false) /\
  calls true = 2%nat /\ calls false = 1%nat /\
  number pub (t true) = number pub (t false).
Proof. vm_compute. auto 10. Qed.
