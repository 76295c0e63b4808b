(** * The interpreter as a program

    Extracts the definition of evaluation of the untyped calculus, at the
    default lattice (untrusted x secret), for [driver.ml].  Overrides of the
    extraction are all here: booleans, lists, options, pairs and strings are
    OCaml's; naturals and integers are OCaml's [int], so numbers beyond 62 bits
    are out of reach of the driver, which refuses them. *)

Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp Entail.Spec.Sets.
Require Import ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlZInt ExtrOcamlNativeString.

Definition lab : Type := two_by_two.
Definition run (H : host two_by_two) (fuel : nat) (env : list (lval two_by_two))
    (s : state two_by_two) (e : term) : result two_by_two :=
  eval (F := two_by_two_factoring) H fuel bot env s e.

Extraction "interp.ml" run initial from_items closed_form values_at ELet EIf ESeq EFst ESnd EPayload.
