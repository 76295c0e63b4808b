(** * Idempotency keys

    A request carries a key, which is the same when the request is repeated.
    The key is a function of the request and of the earlier requests that are
    visible on its channel.  So whoever sees the request learns nothing from the
    key.  A key that counts all requests leaks. *)

Require Import List String QArith Bool Lia.
Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp.
Require Import Entail.Thm.Confinement Entail.Thm.Relation Entail.Thm.Noninterference Entail.Thm.Flow.
Require Import Entail.Thm.Examples.
Import ListNotations.
Local Open Scope list_scope.

Section Keys.
  Context {L : lattice} {F : factoring L}.
  Variable K : Type.

  (** [key r seen]: any function of the request (its tool among it), and of the
      earlier requests that are visible at [view] of the channel.  [view] is the
      identity, or the channel's secrecy alone, for tools that somebody approves.
      The run's identifier is a constant of the function. *)
  Variable key : request L -> list (event L) -> K.
  Variable view : L -> L.

  Definition key_of (ev : event L) (earlier : list (event L)) : K :=
    key (what ev) (visible (view (channel ev)) earlier).

  (** A trace, newest first, with the key of each request. *)
  Fixpoint keyed (t : list (event L)) : list (event L * K) :=
    match t with
    | [] => []
    | ev :: t' => (ev, key_of ev t') :: keyed t'
    end.

  (** What an observer sees who is told the keys of the requests that it sees. *)
  Definition keyed_visible (z : L) (t : list (event L)) : list (event L * K) :=
    filter (fun p => flows (channel (fst p)) z) (keyed t).

  Variable z : L.
  Hypothesis VIEW : forall c, flows c z = true -> flows (view c) z = true.

  Lemma visible_twice : forall l (t : list (event L)), flows l z = true -> visible l (visible z t) = visible l t.
  Proof.
    intros l t A. induction t as [| ev t IH]; simpl; auto.
    destruct (flows (channel ev) z) eqn:B; simpl; rewrite IH; auto.
    destruct (flows (channel ev) l) eqn:C; auto.
    rewrite (flows_trans L _ _ _ C A) in B. discriminate.
  Qed.

  (** The keys that an observer is told are a function of the requests that it sees. *)
  Lemma keys_of_visible : forall t, keyed_visible z t = keyed (visible z t).
  Proof.
    induction t as [| ev t IH]; auto. unfold keyed_visible in *. simpl.
    destruct (flows (channel ev) z) eqn:A; simpl; auto.
    rewrite IH. unfold key_of. rewrite visible_twice; auto.
  Qed.

  Theorem keys_equal : forall t1 t2 : list (event L),
    visible z t1 = visible z t2 -> keyed_visible z t1 = keyed_visible z t2.
  Proof. intros t1 t2 E. rewrite !keys_of_visible, E. reflexivity. Qed.

  Lemma keyed_app : forall t u, exists ks, keyed (u ++ t) = ks ++ keyed t.
  Proof.
    induction u as [| ev u [ks IH]]; [exists []; auto |].
    exists ((ev, key_of ev (u ++ t)) :: ks). simpl. rewrite IH. reflexivity.
  Qed.

  (** In two worlds that differ above the observer only, the requests that it
      sees have the same keys, wherever the runs are cut off. *)
  Theorem noninterference_keys : forall (H : host L) pol n1 n2 pc env1 env2 s1 s2 e,
    (forall ax, pol ax = true -> insulated F z ax) ->
    (forall ax, policy H ax = true -> pol ax = true) ->
    lsrel pol z (prelude H) (prelude H) -> tools_keep H pol ->
    permits pol e = true ->
    lsrel pol z env1 env2 -> srel z s1 s2 ->
    let t1 := tr (snd (eval (F := F) H n1 pc env1 s1 e)) in
    let t2 := tr (snd (eval (F := F) H n2 pc env2 s2 e)) in
    (exists ks, keyed_visible z t2 = ks ++ keyed_visible z t1) \/
    (exists ks, keyed_visible z t1 = ks ++ keyed_visible z t2).
  Proof.
    intros H pol n1 n2 pc env1 env2 s1 s2 e POL GEN PRE TK P R S t1 t2.
    rewrite !keys_of_visible.
    destruct (noninterference_traces (F := F) H pol z POL GEN PRE TK n1 n2 pc _ _ _ _ e P R S) as [[u E] | [u E]];
      fold t1 t2 in E; rewrite E; [left | right]; apply keyed_app.
  Qed.
End Keys.

(** For the tools that somebody approves, the view is the channel's secrecy, and
    the observer is one whom secrecy alone restricts. *)
Lemma secrecy_view : forall (L : lattice) (F : factoring L) (top : integrity F) (z : L),
  (forall i, flows i (integ F z) = true) ->
  forall c, flows c z = true -> flows (paired F top (secr F c)) z = true.
Proof.
  intros L F top z T c A. rewrite (flows_factor L F) in *. apply andb_true_iff in A.
  rewrite integ_paired, secr_paired, T. apply A.
Qed.

(** ** One key, one request

    With the number of earlier requests in it, two requests on one channel have
    different keys.  Which of the visible requests are counted may be chosen, if
    the earlier one of the two is: all, or the calls of tools that write on the
    same channel. *)
Theorem keys_differ : forall (L : lattice) (view : L -> L) (counted : L -> event L -> Datatypes.bool)
    (e1 e2 : event L) between earlier,
  (forall c, flows c (view c) = true) -> channel e1 = channel e2 -> counted (channel e2) e1 = true ->
  let count ev t := List.length (filter (counted (channel ev)) (visible (view (channel ev)) t)) in
  (count e1 earlier < count e2 (between ++ e1 :: earlier))%nat.
Proof.
  intros L view counted e1 e2 between earlier V E C count. unfold count, visible.
  rewrite !filter_app, app_length. simpl. rewrite <- E in *. rewrite V. simpl. rewrite C. simpl. lia.
Qed.

(** ** Why the count is one of the channel *)

(** The variant: the key counts all requests.  A program that writes a secret, or
    not, before it publishes: the public trace is the same, the key is not. *)
Fixpoint numbered (t : list (event Examples.L)) : list (event Examples.L * nat) :=
  match t with [] => [] | ev :: t' => (ev, List.length t') :: numbered t' end.

Example global_counter_leaks :
  let t b := tr (snd (Examples.run [Lab sec (VK (KBool b))]
    (ESeq (EIf (EVar 0) (Examples.write "a" 1) (Examples.num 0)) (ECall "publish" (Examples.num 1))))) in
  let published := Event pub (RTool "publish"%string [DK (KNum 1)]) in
  let told numbers := filter (fun p => flows (channel (fst p)) pub) numbers in
  visible pub (t true) = [published] /\ visible pub (t false) = [published] /\
  told (numbered (t true)) = [(published, 1%nat)] /\ told (numbered (t false)) = [(published, 0%nat)] /\
  keyed_visible _ (fun _ seen => List.length seen) (fun c => c) pub (t true) = [(published, 0%nat)] /\
  keyed_visible _ (fun _ seen => List.length seen) (fun c => c) pub (t false) = [(published, 0%nat)].
Proof. vm_compute. auto 10. Qed.
