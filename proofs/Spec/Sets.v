(** * The sets and the forms that a policy can name

    Each is an instance of [chooser] or [form] (Spec/Interp.v), which hold any
    function of the items and the arguments.  What texts are below a place, which
    tokens and sites a request names, whom a text names and which texts have a
    pattern are functions that nothing is assumed of.

    Source: docs/calculus.md section 10, docs/policies.md. *)

Require Import List String Bool PeanoNat.
Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp.
Import ListNotations.

(** ** Paths *)

(** A step from an item to the values in it: a field, each field ([{*}]), or the
    keys of a record ([{keys}]).  Lists on the way represent their items. *)
Inductive step := SField (f : string) | SEach | SKeys.

Fixpoint values_at (d : data) (path : list step) {struct d} : list data :=
  match d with
  | DCon CList ds => flat_map (fun d => values_at d path) ds
  | DCon (CRec fs) ds =>
      match path with
      | [] => [d]
      | SField f :: rest =>
          (fix at_field (fs : list string) (ds : list data) {struct ds} : list data :=
             match ds, fs with
             | x :: ds', g :: fs' => if String.eqb f g then values_at x rest else at_field fs' ds'
             | _, _ => []
             end) fs ds
      | SEach :: rest => flat_map (fun d => values_at d rest) ds
      | SKeys :: _ => map (fun f => DK (KStr f)) fs
      end
  | _ => match path with [] => [d] | _ => [] end
  end.

(** The labels that say what is there: of what is on the way, and of all that is at
    its end.  The parts beside it are not among them. *)
Section Label.
  Context {L : lattice}.

  Fixpoint label_at (V : lval L) (path : list step) {struct V} : L :=
    match V with
    | Lab l (VCon c Vs) =>
        match plain c with
        | CList => join l (joins (map (fun V => label_at V path) Vs))
        | CRec fs =>
            match path with
            | [] => deep_label V
            | SField f :: rest =>
                join l ((fix at_field (fs : list string) (Vs : list (lval L)) {struct Vs} : L :=
                   match Vs, fs with
                   | W :: Vs', g :: fs' => if String.eqb f g then label_at W rest else at_field fs' Vs'
                   | _, _ => bot
                   end) fs Vs)
            | SEach :: rest => join l (joins (map (fun V => label_at V rest) Vs))
            | SKeys :: _ => l
            end
        | _ => match path with [] => deep_label V | _ => l end
        end
    | Lab l _ => match path with [] => deep_label V | _ => l end
    end.
End Label.

Section Keys.
  Context {L : lattice}.
  Variable equal : data -> data -> bool.
  Variable longest : nat.      (* the most items of a list that is chosen item by item *)

  (** ** Sets *)

  (** An argument satisfies a rule; a list also if each of its items does. *)
  Definition each_of (good : data -> bool) (d : data) : bool :=
    good d ||
    match d with
    | DCon CList ds => Nat.leb 1 (List.length ds) && Nat.leb (List.length ds) longest && forallb good ds
    | _ => false
    end.

  Definition one_of (vs : list data) (d : data) : bool := each_of (fun d => existsb (equal d) vs) d.

  (** [tools.NAME().PATH], [request], [principals.NAME.KEY]: for one parameter a value
      of any item, for several the values of one item. *)
  Definition of_items (paths : list (data -> list data)) (items ds : list data) : bool :=
    match paths, ds with
    | [path], [d] => one_of (flat_map path items) d
    | _, _ => existsb (fun item => forallb (fun p => one_of (fst p item) (snd p)) (combine paths ds)) items
    end.

  Definition from_items (set : name) (who : option L) (ps : list (nat * (data -> list data))) : chooser L :=
    Chooser set who (map fst ps) (of_items (map snd ps)).

  (** [under:PLACE], [below(request)]: whether a text is in the set is a function of the
      text and of the items. *)
  Definition from_rule (set : name) (who : option L) (i : nat) (inside : list data -> data -> bool) : chooser L :=
    Chooser set who [i] (fun items ds => match ds with [d] => each_of (inside items) d | _ => false end).

  (** ** Forms *)

  (** [plain]: the form of an untrusted argument, which may have tokens of the request.
      Where somebody is asked instead ([if-refused]), not of one that is from a set. *)
  Definition plain_form (untrusted : L -> bool) (i : nat) (request : option name) (tells : L)
      (ok : list data -> data -> option string) : form L :=
    Form [i] request tells (existsb untrusted)
      (fun tokens looked ds =>
         match looked, ds with
         | [(_, false)], [d] => ok tokens d
         | _, _ => None
         end).

  (** [pattern]: the form of an argument that is not public and trusted. *)
  Definition closed_form (i : nat) (ok : data -> option string) : form L :=
    Form [i] None bot (existsb (fun l => negb (flows l bot)))
      (fun _ _ ds => match ds with [d] => ok d | _ => None end).

  (** [includes @to]: those whom other arguments name are among the readers of one. *)
  Definition readers_form (secrecy : L -> L) (named : list data -> L) (i : nat) (who : list nat) : form L :=
    Form (i :: who) None bot (fun _ => true)
      (fun _ looked ds =>
         match looked, ds with
         | (l, _) :: _, _ :: others => if flows (secrecy l) (named others) then None else Some "not a reader"%string
         | _, _ => None
         end).
End Keys.
