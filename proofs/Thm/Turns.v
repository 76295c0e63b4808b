(** * Branches that take turns

    What a branch may see of the others ([noninterference_beside], Thm/Runs.v) is not
    decided at each label where branches take turns: a request that the observer does
    not see takes a turn.
    Each branch by itself shows the same in both worlds; which of their requests
    comes first depends on the secret, and so does the answer of a tool that says how
    many came before. *)

Require Import List String QArith Bool.
Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp.
Require Import Entail.Thm.Relation Entail.Thm.Examples.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.

Fixpoint turns {A} (a b : list A) : list A :=
  match a, b with
  | x :: a', y :: b' => x :: y :: turns a' b'
  | [], _ => b
  | _, [] => a
  end.

Definition first_branch : term := ESeq (EIf (EVar 0) (ECall "hide" (num 0)) (num 0)) (ECall "publish" (num 1)).
Definition second_branch : term := ECall "publish" (num 2).

(** The requests of a branch, the first one first. *)
Definition requests (secret : Datatypes.bool) (e : term) : list (event L) :=
  rev (filter (fun ev : event L => match what ev with RTool _ _ _ => true | _ => false end)
    (tr (snd (run [Lab sec (VK (KBool secret))] e)))).

(** How many public requests came before the one of the first branch. *)
Fixpoint before_mine (t : list (event L)) : nat :=
  match t with
  | ev :: t' => match what ev with RTool _ [DK (KNum q)] _ => if Qeq_bool q (1 # 1) then 0%nat else S (before_mine t') | _ => S (before_mine t') end
  | [] => 0%nat
  end.

Example racing_branches_leak :
  let own secret e := visible pub (requests secret e) in
  let all secret := visible pub (turns (requests secret first_branch) (requests secret second_branch)) in
  own true first_branch = own false first_branch /\ own true second_branch = own false second_branch /\
  before_mine (all true) = 1%nat /\ before_mine (all false) = 0%nat.
Proof. runs. Qed.

