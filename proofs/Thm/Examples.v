(** * Runs of small programs, and rules that leak

    The first part runs programs in a concrete world, so that the theorems are
    seen not to be about an empty definition.  The second part shows why some
    rules are what they are: each variant is defined, and two runs that differ
    in a secret only are told apart by a public observer. *)

Require Import List String QArith Bool.
Require Import Entail.Spec.Labels Entail.Spec.Syntax Entail.Spec.Interp Entail.Spec.Sets.
Require Import Entail.Thm.Relation Entail.Thm.Planned.
Import ListNotations.
Open Scope string_scope.

(** Equations that hold by running both sides.  Nothing is printed on the way. *)
Ltac runs :=
  cbv zeta; repeat apply conj; match goal with |- _ = ?b => vm_cast_no_check (eq_refl b) end.

(** Integrity first: (untrusted, secret). *)
Definition L := two_by_two.
Definition F : factoring L := two_by_two_factoring.
Definition pub : L := (false, false).
Definition sec : L := (false, true).
Definition unt : L := (true, false).
Definition is_untrusted (l : L) := fst l.

Definition num (n : Z) : term := EK (KNum (n # 1)).
Definition bool (b : bool) : term := EK (KBool b).

(** A field of a record, if it has it. *)
Definition field (f : string) (d : data) : list data :=
  match d with
  | DCon (CRec fs) ds =>
      match position f fs with Some i => match nth_error ds i with Some x => [x] | None => [] end | None => [] end
  | _ => []
  end.

(** Labels of parts: one that is stated, and the sources and the readers that other
    parts name. *)
Definition stated (l : L) : part_label L := PartLabel [] (fun _ => l).
Definition source (d : data) : L := match d with DK (KStr "me") => pub | _ => unt end.
Definition readers (d : data) : L := match d with DK (KStr "all") => pub | _ => sec end.

(** Data is compared as it is.  A text is below another one that it begins with; a
    code has six characters; a link is what begins with [http] and is no token. *)
Definition same_data (a b : data) : Datatypes.bool := match a, b with DK k, DK k' => scalar_eqb k k' | _, _ => false end.
Definition below (places : list data) (d : data) : Datatypes.bool :=
  existsb (fun p => match p, d with DK (KStr a), DK (KStr b) => String.prefix a b | _, _ => false end) places.
Definition is_code (d : data) : option string :=
  match d with DK (KStr s) => if Nat.eqb (String.length s) 6 then None else Some "no code" | _ => Some "no code" end.
Definition no_link (tokens : list data) (d : data) : option string :=
  if below [DK (KStr "http")] d && negb (existsb (same_data d) tokens) then Some "a link" else None.

(** The number of items of a list, and its first item as it is. *)
Definition length_of : look :=
  Looks [0%nat] (fun h => match h with Some (HCon CList n) => Gives (GData (DK (KNum (Z.of_nat n # 1)))) | _ => Fails "no list" end).
Definition first_of : look :=
  Looks [0%nat] (fun h => match h with
    | Some (HCon CList (S _)) => Gives (GCon (CVariant "ok") [GPart [0%nat; 0%nat]])
    | Some (HCon CList O) => Gives (GCon (CVariant "raise") [GData (DK KNull)])
    | _ => Fails "no list" end).

(** A world: the model answers "7" to anything, which parses as the number 7;
    the tool [publish] takes public data, [hide] may be called under secrets and
    gives public data, [read] gives untrusted data; labels
    are written as tags.  [asks], [sets]: whether there are tools that endorse what
    everybody sees, by an approval or a set. *)
Definition world_of (asks sets : Datatypes.bool) (others : L -> list (event L) -> account -> account) : host L := {|
  model := fun _ _ _ => inl "7";
  further := fun _ _ => [];
  unasked := fun _ => None;
  offers := fun _ => false;
  parse := fun r => if String.eqb r "7" then inl (num 7) else inr "does not parse";
  decode := fun _ r => inl (DK (KStr r));
  tool_params := fun f => if existsb (String.eqb f) ["pay"; "wire"] then ["to"; "n"] else if existsb (String.eqb f) ["publish"; "checked"; "mail"; "hide"; "ask"; "invite"; "confirm"; "save"; "visit"; "post"; "quote"] then ["x"]
    else if String.eqb f "order" then ["x"; "code"] else if String.eqb f "tell" then ["x"; "to"] else [];
  tool_accepts := fun _ _ => None;
  tool_key := fun f pc seen => f;
  completes := fun f => if String.eqb f "order" then [1%nat] else [];
  completed := fun f args _ _ => negb (String.eqb f "order") || existsb (same_data (DK (KStr "123456"))) args;
  tool := fun f _ _ seen => if String.eqb f "down" then None else Some 5%nat;
  (* [search] gives a list of one mail: who sent it, to whom, and what it says, which is as secret as
     who reads it; [thread] one whose text is labeled by two fields that stand after it; [typed] a record that
     has not its type; the others say how many calls they have seen *)
  content := fun f _ _ path seen =>
    if String.eqb f "search" then
      match path with
      | [] => AParts CList [stated pub] [0%nat]
      | [_] =>
          AParts (CRec ["id"; "to"; "body"])
            [stated pub; stated unt; PartLabel [1%nat] (fun ds => readers (hd (DK KNull) ds))] [0%nat; 1%nat; 2%nat]
      | [_; 0%nat] => AScalar (KNum 17)
      | [_; 1%nat] => AScalar (KStr "S")
      | _ => AScalar (KStr "hello")
      end
    else if String.eqb f "thread" then
      match path with
      | [] =>
          AParts (CRec ["body"; "from"; "to"])
            [stated pub; stated pub;
             PartLabel [0%nat; 1%nat] (fun ds => match ds with [from; to] => join (source from) (readers to) | _ => join unt sec end)]
            [2%nat; 0%nat; 1%nat]
      | [0%nat] => AScalar (KStr "eve")
      | [1%nat] => AScalar (KStr "all")
      | _ => AScalar (KStr "hello")
      end
    else if String.eqb f "typed" then
      match path with [] => AParts (CRec ["n"]) [stated unt] [0%nat] | _ => AScalar (KStr "seven") end
    else AScalar (KNum (Z.of_nat (List.length seen) # 1));
  misfit := fun f _ => if String.eqb f "typed" then Some "not a number" else None;
  most := fun f _ => if String.eqb f "down" then unt else pub;
  failure := fun _ _ _ _ => "no answer";
  states := fun _ _ _ _ => pub;
  tool_policy := fun f =>
    if String.eqb f "checked"
    then Some (ELam (EGet (EGet (EVar 0) (EK (KStr "x"))) (EK (KStr "value")))) else None;
  approve := fun f => asks && existsb (String.eqb f) ["mail"; "ask"; "confirm"; "quote"];
  if_refused := fun f => existsb (String.eqb f) ["ask"; "confirm"; "quote"];
  confirms := fun f => String.eqb f "confirm";
  (* [pay] may pay to one of a set, [wire] to one of a set what stands beside it there, [invite] some of a set *)
  among := fun f =>
    if String.eqb f "pay" then [from_items same_data 3 "people" None [(0%nat, fun d => [d])]]
    else if String.eqb f "wire" then [from_items same_data 3 "payees" None [(0%nat, field "to"); (1%nat, field "n")]]
    else if sets && String.eqb f "save" then [from_rule 3 "place" None 0 below]
    else if sets && String.eqb f "visit" then [from_rule 3 "request" None 0 below]
    else if sets && String.eqb f "invite" then [from_items same_data 3 "people" None [(0%nat, fun d => [d])]] else [];
  forms := fun f =>
    if String.eqb f "order" then [closed_form 1 is_code]
    else if String.eqb f "post" then [plain_form is_untrusted 0 (Some "request") pub no_link]
    else if String.eqb f "tell" then [readers_form (fun l : L => (false, snd l)) (fun ds => readers (hd (DK KNull) ds)) 0 [1%nat]]
    else [];
  asking := fun f => if asks && String.eqb f "quote" then [plain_form is_untrusted 0 (Some "request") pub no_link] else [];
  anyone := unt;
  from_label := fun _ => DK KNull;
  sample := fun _ seen => Nat.even (List.length seen);
  refuses := fun r _ => match r with RTool "broken" _ _ => Some "too late" | _ => None end;
  is_timeout := fun m => String.eqb m "too late";
  remark := fun _ _ => "try again";
  char_at := fun _ _ => None;
  prim := fun p => if String.eqb p "length" then length_of else if String.eqb p "first" then first_of else Fails "no such primitive";
  serialize := fun d => match d with DK (KStr s) => s | _ => "data" end;
  to_label := fun d =>
    match d with
    | DK (KTag "U") => Some unt
    | DK (KTag "S") => Some sec
    | DK (KTag "") => Some pub
    | _ => None
    end;
  tool_pc := fun f => if String.eqb f "confirm" then (true, true) else if existsb (String.eqb f) ["pay"; "wire"] then unt else if String.eqb f "hide" then sec else pub;
  tool_args := fun f =>
    if existsb (String.eqb f) ["pay"; "wire"] then [pub; pub]
    else if existsb (String.eqb f) ["hide"; "confirm"] then [sec]
    else if existsb (String.eqb f) ["publish"; "checked"; "mail"; "ask"; "invite"; "save"; "visit"] then [pub]
    else if existsb (String.eqb f) ["post"; "quote"] then [unt]
    else if String.eqb f "order" then [pub; unt] else if String.eqb f "tell" then [(true, true); pub] else [];
  tool_res := fun f => if String.eqb f "read" then unt else pub;
  key_label := fun k => if existsb (String.eqb k) ["public"; "x"; "y"; "z"] then pub else sec;
  has_type := fun _ _ => true;
  key_type := fun k => k;
  now := fun _ seen => List.length seen;
  keep := fun l now a => firstn 2 (filter (fun e => Nat.leb (now - fst (snd e)) 9) a);
  others := others;
  clearance := fun _ => (true, true);
  policy := fun _ => false;
  prelude := []
|}.

(** Nobody else uses the stores. *)
Definition world_with := world_of true true.
Definition world : host L := world_with (fun _ _ a => a).

(** Sets that hold nothing, and nothing that ends a run. *)
Definition bare : frame L := Frame (fun _ => (pub, [])) (fun _ _ _ _ => false).
Definition empty : state L := initial bare (fun _ => []).
Definition run (env : list (lval L)) (e : term) : result L := eval (F := F) world 50 pub env empty e.

(** A question, and the answer as code. *)
Example ask_model :
  fst (run [] (EAsk "m" (EK (KStr "how many?")))) =
  Val (Lab pub (VCon CList [Lab pub (VK (KBool true)); Lab pub (VK (KNum 7))])).
Proof. runs. Qed.

(** The answer is as untrusted as the conversation. *)
Example ask_untrusted :
  fst (run [] (EAsk "m" (ECall "read" (EK KNull)))) =
  Val (Lab unt (VCon CList [Lab unt (VK (KBool true)); Lab unt (VK (KNum 7))])).
Proof. runs. Qed.

(** Three unfoldings of a fixpoint whose body calls itself once. *)
Example fix_runs_out :
  fst (run [] (EApp (EFix (Some 3%nat)
    (ELam (ELam (EApp (EVar 1) (ECon CList [EVar 0]))))) (num 0))) =
  Val (Lab pub (VCon CList [Lab pub (VCon CList [Lab pub (VCon CList [Lab pub (VK (KNum 0))])])])).
Proof. runs. Qed.

(** A secret cannot be published; the refusal is public and can be caught. *)
Example refusal_is_public :
  fst (run [Lab sec (VK (KNum 1))]
    (ETry true (EK (KTag "")) (ECall "publish" (EVar 0)) (EVar 0))) =
  Val (Lab pub (VK (KStr "argument refused by the tool's bound"))).
Proof. runs. Qed.

(** An error that depends on a secret cannot be caught in public. *)
Example not_caught :
  fst (run [Lab sec (VK (KBool true))]
    (ETry true (EK (KTag "")) (EIf (EVar 0) (EFail (EK (KStr "no"))) (num 1)) (num 2))) =
  Err sec "no".
Proof. runs. Qed.

(** A time limit that has passed goes through a [catch not timeout]. *)
Example timeout_passes :
  fst (run [] (ETry true (EK (KTag ""))
    (EWithin 5 (ETry false (EK (KTag "")) (ECall "broken" (EK KNull)) (num 1))) (EVar 0))) =
  Val (Lab pub (VK (KStr "too late"))).
Proof. runs. Qed.

(** A further attempt of a guard is told why there is one; what comes after the guard is not. *)
Example retry_is_told :
  let asked := EAsk "m" (EK (KStr "how many?")) in
  map what (rev (tr (snd (run []
    (ESeq (ETry true (EK (KTag "")) (EGuard asked (ELam (bool false)) 1) (num 0)) asked))))) =
  [RModel "m" ["how many?"];
   RModel "m" ["how many?"; "7"; "how many?"; "try again"];
   RModel "m" ["how many?"; "7"; "how many?"; "try again"; "7"; "how many?"]]%list.
Proof. runs. Qed.

(** A policy looks at the argument: it admits what is true. *)
Example policy_admits :
  fst (run [] (ECall "checked" (EK (KBool true)))) = Val (Lab pub (VK (KNum 1))) /\
  fst (run [] (ECall "checked" (EK (KBool false)))) = Err pub "the tool's policy refuses the call" /\
  tr (snd (run [] (ECall "checked" (EK (KBool false))))) = [Event pub (RKey "checked")].
Proof. runs. Qed.

(** Untrusted data goes to a tool that somebody approves, and is shown on a
    channel as untrusted as it is; secret data does not. *)
Example approved :
  tr (snd (run [Lab unt (VK (KNum 1))] (ECall "mail" (EVar 0)))) =
    [Event pub (RTool "mail" [DK (KNum 1)] "mail"); Event unt (RDecided "mail" unt); Event unt (RApprove "mail" [DK (KNum 1)] [unt]);
     Event pub (RKey "mail")] /\
  fst (run [Lab sec (VK (KNum 1))] (ECall "mail" (EVar 0))) = Err unt "argument refused by the tool's bound" /\
  fst (run [Lab unt (VK (KNum 1))] (ECall "publish" (EVar 0))) = Err pub "argument refused by the tool's bound".
Proof. runs. Qed.

(** Labels part by part: the body is as untrusted as whom the mail names. *)
Example labels_per_field :
  fst (run [] (ECall "search" (EK KNull))) =
  Val (Lab pub (VCon CList [Lab pub (VCon (CRec ["id"; "to"; "body"])
    [Lab pub (VK (KNum 17)); Lab unt (VK (KStr "S")); Lab ((true, true) : L) (VK (KStr "hello"))])])).
Proof. runs. Qed.

(** A label by two fields, from whom and to whom, that stand after the part: it has
    what both say. *)
Example labels_of_several :
  fst (run [] (ECall "thread" (EK KNull))) =
  Val (Lab pub (VCon (CRec ["body"; "from"; "to"])
    [Lab unt (VK (KStr "hello")); Lab pub (VK (KStr "eve")); Lab pub (VK (KStr "all"))])).
Proof. runs. Qed.

(** A part's label that leaves out the label of the part it depends on: two
    answers that differ in what is untrusted only are told apart by their labels. *)
Example stamp_without_own_label_leaks :
  let answer who := [Lab unt (VK (KStr who)); Lab (readers (DK (KStr who))) (VK (KStr "hello"))] in
  same_label pub unt unt /\ ~ lsrel (fun _ => false) pub (answer "me") (answer "all").
Proof.
  cbv zeta. split; [right; split; reflexivity |]. intros R.
  assert (D : forall V1 V2 vs1 vs2, lsrel (fun _ => false) pub (V1 :: vs1) (V2 :: vs2) ->
    same_label pub (label_of V1) (label_of V2) /\ lsrel (fun _ => false) pub vs1 vs2).
  { intros V1 V2 vs1 vs2 X. inversion X; subst. split; auto. eapply lrel_label; eauto. }
  destruct (D _ _ _ _ (proj2 (D _ _ _ _ R))) as [[[X _] | [_ X]] _]; discriminate X.
Qed.

(** The type of an answer is a fact about all of its parts, and the text of a failure
    may quote all of them. *)
Example type_of_all_parts :
  fst (run [] (ECall "typed" (EK KNull))) = Err unt "not a number" /\
  fst (run [] (ECall "down" (EK KNull))) = Err unt "no answer".
Proof. runs. Qed.

(** A type error that has the label of the container: two answers that the observer
    cannot tell apart, of which one is refused in public. *)
Example type_at_container_leaks :
  let answer k := Lab pub (VCon (CRec ["n"]) [Lab sec (VK k)]) in
  let check V := match strip V with DCon _ [DK (KNum _)] => None | _ => Some (label_of V) end in
  lrel (fun _ => false) pub (answer (KNum 7)) (answer (KStr "seven")) /\
  check (answer (KNum 7)) = None /\ check (answer (KStr "seven")) = Some pub /\
  deep_label (answer (KStr "seven")) = sec.
Proof.
  cbv zeta. split; [| runs].
  apply lrel_low; [reflexivity |]. repeat constructor.
Qed.

(** ** Primitives look at constructors

    How many items there are, and which one is first, is known to whoever sees the
    list; the item keeps its label. *)
Definition of_list (p : string) (V : lval L) : outcome L :=
  fst (run [V] (EPrim p (ECon CList [EVar 0]))).
Example constructors_only :
  let secrets := Lab pub (VCon CList [Lab sec (VK (KNum 1))]) in
  of_list "length" secrets = Val (Lab pub (VK (KNum 1))) /\
  of_list "first" secrets = Val (Lab pub (VCon (CVariant "ok") [Lab sec (VK (KNum 1))])) /\
  of_list "first" (Lab pub (VCon CList [])) = Val (Lab pub (VCon (CVariant "raise") [Lab pub (VK KNull)])) /\
  of_list "length" (Lab sec (VK (KNum 1))) = Err sec "no list".
Proof. runs. Qed.

(** A rule that looks at constructors only if no part is the arguments of a planned
    call: the label of the result tells what a secret part is like. *)
Fixpoint has_args (d : lval L) : Datatypes.bool :=
  match d with
  | Lab _ (VCon (CArgs _ _) _) => true
  | Lab _ (VCon _ vs) => existsb has_args vs
  | _ => false
  end.
Example form_of_a_part_leaks :
  let all v := Lab pub (VCon CList [Lab sec v]) in
  let plain := all (VK KNull) in
  let planned := all (VCon (CArgs "pay" []) []) in
  let label V := if has_args V then deep_label V else label_of V in
  lrel (fun _ => false) pub plain planned /\ label plain = pub /\ label planned = sec /\
  of_list "first" planned = Val (Lab pub (VCon (CVariant "ok") [Lab sec (VCon (CArgs "pay" []) [])])).
Proof.
  cbv zeta. split; [| runs].
  apply lrel_low; [reflexivity |]. repeat constructor.
Qed.

(** ** Planned calls

    Untrusted data decides whether [pay] is called, not with what.  The record
    is made before the branch; one that is made in the branch has untrusted parts. *)
Definition bill : term := ECon (CArgs "pay" ["to"; "n"]) [EK (KStr "bob"); num 5].
Definition untrusted (b : Datatypes.bool) : list (lval L) := [Lab unt (VK (KBool b))].

Example planned_call :
  let call := ELet bill (EIf (EVar 1) (ECall "pay" (EVar 0)) (num 0)) in
  let parts fs ds := RArgs "pay" ["to"; "n"] (combine fs ds) in
  let to := DK (KStr "bob") in let n := DK (KNum 5) in
  tr (snd (run (untrusted true) call)) =
    [Event unt (RTool "pay" [to; n] "pay"); Event unt (RDecided "pay" unt); Event unt (RKey "pay");
     Event pub (parts ["to"; "n"] [to; n]); Event pub (parts ["to"] [to]);
     Event pub (parts ["n"] [n]); Event pub (parts [] [])] /\
  fst (run (untrusted true) (EIf (EVar 0) (ECall "pay" bill) (num 0))) = Err unt "argument refused by the tool's bound".
Proof. runs. Qed.

(** Records of any other origin are treated as they were before there were planned calls. *)
Lemma unplanned : forall m ps (V : lval L), (forall l g fs vs, V <> Lab l (VCon (CArgs g fs) vs)) ->
  arguments m ps V = arguments (label_of V) ps V.
Proof. intros m ps [l [| [] |]] N; auto. exfalso. eapply N. reflexivity. Qed.

(** Why only what [CArgs] makes is planned.  The parts of what comes from outside
    are labeled by the whole: under the variant, by which the label of any
    record counts as control, its parts pass as trusted. *)
Example planned_data_forges :
  let forged : lval L := Lab unt (wrap (DCon (CRec ["to"; "n"]) [DK (KStr "eve"); DK (KNum 9999)])) in
  let parts := match forged with Lab _ (VCon _ vs) => vs | _ => [] end in
  flows (label_of forged) (tool_pc world "pay") = true /\
  refused (F := F) world "t" empty (tool_args world "pay") parts = None /\
  fst (run [forged] (ECall "pay" (EVar 0))) = Err unt "argument refused by the tool's bound".
Proof. runs. Qed.

(** An approval where it is needed: for arguments that are untrusted, and for a
    record that untrusted data chose, although secrecy alone would make it control. *)
Example asked_if_refused :
  let asked env e := List.length (filter (fun ev => match what ev with RApprove _ _ _ => true | _ => false end) (tr (snd (run env e)))) in
  let record k := ECon (CArgs "ask" ["x"]) [num k] in
  asked [] (ECall "ask" (record 1%Z)) = 0%nat /\
  asked [Lab unt (VK (KNum 1))] (ECall "ask" (EVar 0)) = 1%nat /\
  asked (untrusted true) (ELet (record 1%Z) (ELet (record 2%Z) (ECall "ask" (EIf (EVar 2) (EVar 0) (EVar 1))))) = 1%nat.
Proof. runs. Qed.

(** [among]: what is not trusted itself, but one of a trusted set. *)
Definition people : list data := [DK (KStr "bob"); DK (KStr "ann")].
Definition payees : list data :=
  map (fun p => DCon (CRec ["to"; "n"]) [DK (KStr (fst p)); DK (KNum (snd p))]) [("bob", 5); ("ann", 7)].
Definition with_sets : state L :=
  initial (Frame (fun k => (pub, if String.eqb k "payees" then payees else if String.eqb k "place" then [DK (KStr "/d/")]
    else if String.eqb k "request" then [DK (KStr "http:a/"); DK (KStr "http:b/c")] else people)) (fun _ _ _ _ => false)) (fun _ => []).
Definition with_text (k : string) : list (lval L) := [Lab unt (VK (KStr k))].

Example among_admits :
  let pay k := eval (F := F) world 50 pub (with_text k) with_sets (ECall "pay" (ECon (CArgs "pay" ["to"; "n"]) [EVar 0; num 5])) in
  hd_error (tr (snd (pay "ann"))) = Some (Event unt (RTool "pay" [DK (KStr "ann"); DK (KNum 5)] "pay")) /\
  fst (pay "eve") = Err unt "argument refused by the tool's bound".
Proof. runs. Qed.

(** Parameters that are chosen together: what stands beside the recipient in the
    set, and not what stands beside another one. *)
Example among_together :
  let wire k n := fst (eval (F := F) world 50 pub [Lab unt (VK (KStr k)); Lab unt (VK (KNum n))] with_sets
    (ECall "wire" (ECon (CArgs "wire" ["to"; "n"]) [EVar 0; EVar 1]))) in
  wire "ann" 7 = Val (Lab unt (VK (KNum 5))) /\
  wire "ann" 5 = Err unt "argument refused by the tool's bound".
Proof. runs. Qed.

(** A list is chosen item by item; an empty one is not, nor one that is too long. *)
Example among_items :
  let invite ks := fst (eval (F := F) world 50 pub [] with_sets
    (ECall "invite" (ELab (EK (KTag "U")) (ECon CList (map (fun k => EK (KStr k)) ks))))) in
  let no := Err unt "argument refused by the tool's bound" in
  invite ["ann"; "bob"; "ann"] = Val (Lab unt (VK (KNum 1))) /\
  invite ["ann"; "eve"] = no /\ invite [] = no /\ invite ["ann"; "ann"; "ann"; "ann"] = no.
Proof. runs. Qed.

(** [under:PLACE] and [below(request)]: a rule about the text and the items. *)
Example below_a_place :
  let call f k := fst (eval (F := F) world 50 pub (with_text k) with_sets (ECall f (EVar 0))) in
  let no := Err unt "argument refused by the tool's bound" in
  call "save" "/d/x" = Val (Lab unt (VK (KNum 1))) /\ call "save" "/e/x" = no /\
  call "visit" "http:a/cart" = Val (Lab unt (VK (KNum 1))) /\ call "visit" "http:evil/" = no.
Proof. runs. Qed.

(** [{*}], [{keys}] and single fields: what a path leads to, and its label, which
    that of another field does not raise. *)
Example paths_of_answers :
  let rec fs (ds : list (lval L)) := Lab pub (VCon (CRec fs) ds) in
  let text l k := Lab (l : L) (VK (KStr k)) in
  let list ds := Lab pub (VCon CList ds) in
  let V := list [rec ["name"; "note"] [text pub "ann"; text unt "x"]; rec ["name"; "note"] [text sec "bob"; text unt "y"]] in
  let path p := (label_at V p, values_at (strip V) p) in
  path [SField "name"] = (sec, [DK (KStr "ann"); DK (KStr "bob")]) /\
  path [SField "note"] = (unt, [DK (KStr "x"); DK (KStr "y")]) /\
  path [SKeys] = (pub, [DK (KStr "name"); DK (KStr "note"); DK (KStr "name"); DK (KStr "note")]) /\
  path [SEach] = ((true, true), [DK (KStr "ann"); DK (KStr "x"); DK (KStr "bob"); DK (KStr "y")]) /\
  path [SField "gone"] = (pub, []).
Proof. runs. Qed.

(** [completes] with [pattern]: an untrusted code leaves the answer trusted.  Without
    its form, or if it is wrong, the error is as untrusted as the code. *)
Example completed_call :
  let order l k := fst (run [Lab (l : L) (VK (KStr k))] (ECall "order" (ECon (CArgs "order" ["x"; "code"]) [num 1; EVar 0]))) in
  order unt "123456" = Val (Lab pub (VK (KNum 3))) /\
  order unt "654321" = Err unt "no answer" /\
  order unt "12" = Err unt "no code" /\
  order pub "12" = Err pub "no answer".
Proof. runs. Qed.

(** [plain]: an untrusted text without a link, or with one of the request; and
    [if-refused]: somebody is asked about others. *)
Example plain_text :
  let call f k := eval (F := F) world 50 pub (with_text k) with_sets (ECall f (EVar 0)) in
  let asked k := existsb (fun ev : event L => match what ev with RApprove _ _ _ => true | _ => false end) (tr (snd (call "quote" k))) in
  fst (call "post" "hello") = Val (Lab unt (VK (KNum 1))) /\
  fst (call "post" "http:b/c") = Val (Lab unt (VK (KNum 1))) /\
  fst (call "post" "http:evil") = Err unt "a link" /\
  asked "hello" = false /\ asked "http:b/c" = false /\ asked "http:evil" = true /\
  fst (call "quote" "http:evil") = Val (Lab unt (VK (KNum 2))).
Proof. runs. Qed.

(** [includes @to]: what is secret goes to those only whom it may be known to. *)
Example included_readers :
  let tell l k := fst (run [Lab (l : L) (VK (KNum 1)); Lab pub (VK (KStr k))] (ECall "tell" (ECon (CArgs "tell" ["x"; "to"]) [EVar 0; EVar 1]))) in
  tell sec "all" = Err sec "not a reader" /\
  match tell unt "all" with Val (Lab l _) => Some l | _ => None end = Some unt /\
  match tell sec "ann" with Val (Lab l _) => Some l | _ => None end = Some sec.
Proof. runs. Qed.

(** Why a form of an argument that only completes a call adds nothing to the answer:
    whether the form is looked at depends on the argument's label, and that can tell
    of a secret.  Both arguments are above a public observer, and the label of the
    request is above it, too. *)
Example told_of_code_leaks :
  let fm := plain_form is_untrusted 0 (Some "request") sec no_link in
  let code l := [Lab (l : L) (VK (KStr "123456"))] in
  lrel (fun _ => false) pub (hd (Lab pub (VK KNull)) (code (true, true))) (hd (Lab pub (VK KNull)) (code sec)) /\
  told_of [fm] (code (true, true)) = sec /\ told_of [fm] (code sec) = pub.
Proof. cbv zeta. split; [apply lrel_high; reflexivity | runs]. Qed.

(** Nor may such an argument name the label of a part of the answer. *)
Example place_of_code_leaks :
  let code k := Lab sec (VK (KStr k)) in
  let named V := stamp pub [] (PartLabel [] (fun _ => source (strip V))) in
  lrel (fun _ => false) pub (code "me") (code "eve") /\ named (code "me") = pub /\ named (code "eve") = unt.
Proof. cbv zeta. split; [apply lrel_high; reflexivity | runs]. Qed.

(** Delegation: who may choose from the set, and nobody else; secrecy is not endorsed. *)
Example delegated_choice :
  let ok who l := admitted (F := F) with_sets [pub] [Lab (l : L) (VK (KStr "ann"))]
    (from_items same_data 3 "people" (Some who) [(0%nat, fun d => [d])]) in
  ok unt unt = true /\ ok pub unt = false /\ ok unt (true, true) = false.
Proof. runs. Qed.

(** [at_most]: untrusted data decides one call, and the second ends the run, which
    no program catches.  Calls that it does not decide are neither counted nor refused. *)
Example at_most_ends :
  let once := initial (Frame (fun _ => (pub, [])) (at_most (F := F) (fun f => if String.eqb f "pay" then Some 1%nat else None))) (fun _ => []) in
  let pays u n := ELet bill (ETry true (EK (KTag "")) (ECon CList (repeat (if u : Datatypes.bool then EIf (EVar 1) (ECall "pay" (EVar 0)) (num 0) else ECall "pay" (EVar 0)) n)) (num 0)) in
  let kind e n := match fst (eval (F := F) world 20 pub (untrusted true) once e) with Val _ => 0%nat | Err _ _ => 1%nat | Out => n end in
  kind (pays true 1%nat) 2%nat = 0%nat /\ kind (pays true 2%nat) 2%nat = 2%nat /\ kind (pays false 3%nat) 2%nat = 0%nat.
Proof. runs. Qed.

(** A confirmation: nothing is called, and what is given is the value.  It is trusted
    if somebody was asked and approved, and as secret as it was. *)
Example confirmed_value :
  let both : L := (true, true) in
  let confirm l := run [Lab l (VK (KNum 1))] (ECall "confirm" (EVar 0)) in
  fst (confirm unt) = Val (Lab pub (VK (KNum 1))) /\
  hd_error (tl (tr (snd (confirm unt)))) = Some (Event unt (RApprove "confirm" [DK (KNum 1)] [unt])) /\
  fst (confirm both) = Val (Lab sec (VK (KNum 1))) /\
  fst (confirm sec) = Val (Lab sec (VK (KNum 1))) /\
  existsb (fun e : event L => match what e with RApprove _ _ _ => true | _ => false end) (tr (snd (confirm sec))) = false.
Proof. runs. Qed.

(** Why a tool reads what it is applied to: untrusted data chooses the tool, and the
    record was made for another one.  Without reading it, its parts would pass. *)
Example chosen_tool_forges :
  let record := Lab pub (wrap (DCon (CRec ["to"; "n"]) [DK (KStr "bob"); DK (KNum 5)])) in
  let check V := refused (F := F) world "pay" empty (tool_args world "pay") (arguments (label_of V) ["to"; "n"] V) in
  check record = None /\ check (raise unt record) = Some pub /\
  fst (run [record; Lab unt (VK (KBool true))] (EApp (EIf (EVar 1) (ETool "pay") (ETool "publish")) (EVar 0))) =
    Err unt "argument refused by the tool's bound".
Proof. runs. Qed.

(** A confirmation with a secret set: who asks only where it is needed asks if the
    set has not the value, on a channel of those who see the value. *)
Example asked_by_secret_set_leaks :
  let z : L := unt in
  let s ds : state L := initial (Frame (fun _ => (sec, ds)) (fun _ _ _ _ => false)) (fun _ => []) in
  let asked ds := negb (clean (F := F) world "wire" (s ds) [sec; sec] [Lab ((true, false) : L) (VK (KStr "bob")); Lab pub (VK (KNum 5))]) in
  let bob := DCon (CRec ["to"; "n"]) [DK (KStr "bob"); DK (KNum 5)] in
  srel z (s [bob]) (s []) /\ asked [bob] = false /\ asked [] = true /\
  flows (join bot unt) z = true /\ flows (sets_label world "wire" (s [])) z = false.
Proof.
  cbv zeta. split; [| runs]. repeat split; auto.
  - left. repeat split.
  - right. split; reflexivity.
  - simpl. discriminate.
  - discriminate.
Qed.

(** Variants that leak.  [label_c] labels the refusal of the record's label by
    the control bound [c], [label_a] that of an argument by its bound. *)
Definition checks (label_c : L) (label_a : L -> L -> L) (c : L) (bounds : list L) (ps : list string) (V : lval L) : option L :=
  let l := label_of V in
  if flows l c
  then option_map (label_a l) (refused (F := F) world "t" empty bounds (arguments bot ps V))
  else Some label_c.

Definition at_once (fs : list string) (l : L) (parts : list L) : lval L :=
  Lab l (VCon (CArgs "t" fs) (map (fun m => Lab m (VK KNull)) parts)).
Definition alike := lrel (fun _ => false) pub.

(** A refusal by the control bound that is labeled [pc]: control may be secret,
    the record is secret, or secret and untrusted. *)
Example control_refusal_at_pc_leaks :
  let V1 := at_once ["a"; "b"] sec [pub; pub] in
  let V2 := at_once ["a"; "b"] (true, true) [pub; pub] in
  let check := checks pub (fun _ b => b) sec [sec; sec] ["a"; "b"] in
  alike V1 V2 /\ check V1 = None /\ check V2 = Some pub.
Proof. vm_compute. repeat split. apply lrel_high; reflexivity. Qed.

(** A refusal of an argument that is labeled [pc] and its bound: the record is
    secret, its parts are public in one run, secret in the other. *)
Example argument_refusal_at_bound_leaks :
  let V1 := at_once ["a"; "b"] sec [pub; pub] in
  let V2 := at_once ["a"; "b"] sec [pub; sec] in
  let check := checks sec (fun _ b => b) sec [pub; pub] ["a"; "b"] in
  alike V1 V2 /\ check V1 = None /\ check V2 = Some pub.
Proof. vm_compute. repeat split. apply lrel_high; reflexivity. Qed.

(** A tool with one parameter: a bare value is data, a record with the
    parameter's field is control.  Which of them it is, is a secret. *)
Definition checks_bare (V : lval L) : option L :=
  match V with
  | Lab l (VCon (CArgs _ ["a"]) _) => checks pub (fun _ b => b) pub [sec] ["a"] V
  | _ => refused (F := F) world "t" empty [sec] [V]
  end.
Example bare_or_record_leaks :
  let V1 := Lab sec (VK KNull) in
  let V2 := at_once ["a"] sec [pub] in
  alike V1 V2 /\ checks_bare V1 = None /\ checks_bare V2 = Some pub.
Proof. vm_compute. repeat split. apply lrel_high; reflexivity. Qed.

(** A policy that sees the parts alone: its verdict is public, the record is not. *)
Example policy_of_parts_leaks :
  let verdict b := fst (run [described world pub pub "checked"
      (arguments pub ["x"] (Lab sec (VCon (CArgs "checked" ["x"]) [Lab pub (VK (KBool b))]))) [pub]]
    (EGet (EGet (EVar 0) (EK (KStr "x"))) (EK (KStr "value")))) in
  alike (Lab sec (VCon (CArgs "checked" ["x"]) [Lab pub (VK (KBool true))])) (Lab sec (VCon (CArgs "checked" ["x"]) [Lab pub (VK (KBool false))])) /\
  verdict true = Val (Lab pub (VK (KBool true))) /\ verdict false = Val (Lab pub (VK (KBool false))).
Proof. vm_compute. repeat split. apply lrel_high; reflexivity. Qed.

(** A count that is told at [pc]: whether a call on a secret channel happened. *)
Example count_at_pc_leaks :
  let t1 := [Event sec (RTool "once" [] "once")] in
  let used := existsb (fun e : event L => match what e with RTool g _ _ => String.eqb g "once" | _ => false end) in
  visible pub t1 = visible pub [] /\ used t1 = true /\ used [] = false.
Proof. runs. Qed.

(** A set that is trusted but secret: the public channel tells whether it holds the argument. *)
Example secret_set_leaks :
  let found ds := holds (from_items (L := L) same_data 3 "people" None [(0%nat, fun d => [d])]) ds [DK (KStr "bob")] in
  let s ds : state L := initial (Frame (fun _ => (sec, ds)) (fun _ _ _ _ => false)) (fun _ => []) in
  srel pub (s [DK (KStr "bob")]) (s []) /\ found [DK (KStr "bob")] = true /\ found [] = false.
Proof.
  split; [| runs]. repeat split; auto.
  - left. repeat split.
  - right. split; reflexivity.
  - simpl. discriminate.
  - discriminate.
Qed.

(** ** Why a missing argument counts as [null] at the label of the record

    The variant: only arguments that are there are checked.  A tool all whose
    arguments are optional is called, or refused in public. *)

Fixpoint refused_if_there (bounds : list L) (fs : list string) (ps : list string) (Vs : list (lval L)) : option L :=
  match ps, Vs with
  | p :: ps', V :: Vs' =>
      if match position p fs with Some _ => negb (flows (deep_label V) (hd bot bounds)) | None => false end
      then Some (hd bot bounds) else refused_if_there (tl bounds) fs ps' Vs'
  | _, _ => None
  end.

Example missing_unchecked_leaks :
  let V1 := Lab sec (VCon (CRec []) []) in
  let V2 := Lab sec (VCon (CRec ["a"]) [Lab sec (VK KNull)]) in
  let check fs V := refused_if_there [pub; pub] fs ["a"; "b"] (arguments (label_of V) ["a"; "b"] V) in
  lrel (fun _ => false) pub V1 V2 /\ check [] V1 = None /\ check ["a"] V2 = Some pub /\
  refused (F := F) world "t" empty [pub; pub] (arguments pub ["a"; "b"] V1) = Some pub /\
  refused (F := F) world "t" empty [pub; pub] (arguments sec ["a"; "b"] V2) = Some pub.
Proof. vm_compute. repeat split. apply lrel_high; reflexivity. Qed.

(** ** Stores: an account per label

    Two entries fit under a label.  Three secret ones are written, or none; the
    public one stays, and its age does not count them. *)
Definition write (k : string) (n : Z) : term := ERemember k (num n).
Example accounts_apart :
  let result b := run [Lab sec (VK (KBool b))] (ESeq (write "public" 1)
    (ESeq (EIf (EVar 0) (ESeq (write "a" 1) (ESeq (write "b" 2) (write "c" 3))) (num 0)) (ERecall "public"))) in
  fst (result true) = Val (Lab pub (VK (KNum 1))) /\ fst (result false) = Val (Lab pub (VK (KNum 1))) /\
  map fst (store (snd (result true)) sec) = ["c"; "b"].
Proof. runs. Qed.

(** A use counts where [pc] flows to the key's label: the first use of [x], which
    is public, keeps it; one that a secret decides on changes nothing. *)
Example uses_from_below :
  let first := ESeq (write "x" 1) (write "y" 2) in
  let then_ := ESeq (write "z" 3) (ECon CList [ERecall "x"; ERecall "y"]) in
  let result b e := fst (run [Lab sec (VK (KBool b))] (ESeq first (ESeq e then_))) in
  let both x y : outcome L := Val (Lab pub (VCon CList [Lab pub (VK x); Lab pub (VK y)])) in
  result true (ERecall "x") = both (KNum 1) KNull /\
  result true (EIf (EVar 0) (ERecall "x") (num 0)) = both KNull (KNum 2) /\
  result false (EIf (EVar 0) (ERecall "x") (num 0)) = both KNull (KNum 2).
Proof. runs. Qed.

(** Initial values are in the first state, and age: 10 requests later [x] is gone. *)
Example initial_values :
  let start : state L := initial bare (fun l => if same l pub then [("x", (0%nat, DK (KNum 1)))] else []) in
  let after n := fst (eval (F := F) world 50 pub [] start
    (ESeq (EPar (repeat (ERecall "public") n)) (ERecall "x"))) in
  after 9%nat = Val (Lab pub (VK (KNum 1))) /\ after 10%nat = Val (Lab pub (VK KNull)).
Proof. runs. Qed.

(** Several runs on one store at the same time: the other ones write [x] as soon
    as this run has called something on a public channel. *)
Example another_run_writes :
  let w := world_with (fun l seen a => if same l pub && Nat.leb 1 (List.length seen) then ("x", (0%nat, DK (KNum 8))) :: a else a) in
  let both e := fst (eval (F := F) w 50 pub [] empty (ECon CPair [ERecall "x"; e])) in
  both (ERecall "x") = Val (Lab pub (VCon CPair [Lab pub (VK KNull); Lab pub (VK (KNum 8))])).
Proof. runs. Qed.

(** Variants that leak.  Another run that learns of secret requests, and writes what
    is public; *)
Example secret_signal_leaks :
  let signaled (t : list (event L)) := entry "x" (match t with [] => [] | _ => [("x", (0%nat, DK (KNum 8)))] end) in
  let t := [Event sec (RRecall "diary")] in
  visible pub t = visible pub [] /\ signaled t <> signaled [] /\ signaled (visible pub t) = signaled [].
Proof. vm_compute. repeat split; discriminate. Qed.

(** one capacity for two labels; *)
Definition one (k : string) : name * (nat * data) := (k, (0%nat, DK KNull)).
Example shared_capacity_leaks :
  let holds secrets := entry "public" (firstn 2 (map one secrets ++ [one "public"])) in
  holds ["a"; "b"] = None /\ holds [] = Some (0%nat, DK KNull).
Proof. runs. Qed.

(** a use that a secret decided on counts as a use: the next public write evicts the other entry; *)
Example secret_use_leaks :
  let after (a : account) := entry "x" (firstn 2 (one "z" :: a)) in
  let a := [one "y"; one "x"] in
  after (one "x" :: without "x" a) = Some (0%nat, DK KNull) /\ after a = None.
Proof. runs. Qed.

(** a clock that runs while what is secret is done. *)
Example shared_clock_leaks :
  let t := repeat (Event sec (RRemember "a" (DK KNull))) 20 in
  let gone (now : nat) := match keep world pub now [one "public"] with [] => true | _ => false end in
  visible pub t = visible pub [] /\ gone (List.length t) = true /\ gone (List.length (@nil (event L))) = false /\
  gone (now world pub (visible pub t)) = false.
Proof. runs. Qed.

(** ** Why an error above [pc] ends a [par] at once

    The variant: every branch runs to its end, and the first error in order is
    the result. *)

Fixpoint pars_to_end (ev : L -> list (lval L) -> state L -> term -> result L)
    (pc : L) (env : list (lval L)) (s : state L) (es : list term) : result L :=
  match es with
  | [] => (Val (Lab pc (VCon CList [])), s)
  | e :: es' =>
      let (o, s') := do_fork ev pc env s e in
      let (o', s'') := pars_to_end ev pc env s' es' in
      (match o with Val _ => o' | _ => o end, s'')
  end.

(** One branch writes a public key unless the secret stops it; the other one
    publishes the key. *)
Definition leaky_branches : list term :=
  [ ESeq (EIf (EVar 0) (EFail (EK (KStr "stop"))) (num 0)) (ERemember "public" (num 1));
    ECall "publish" (ERecall "public") ].

Definition secret (b : Datatypes.bool) : list (lval L) := [Lab sec (VK (KBool b))].
Definition ev := eval (F := F) world 50.

Definition kind (e : event L) : nat :=
  match what e with RTool _ _ _ => 1 | RRemember _ _ => 2 | RRecall _ => 3 | _ => 4 end.

Example par_to_end_leaks :
  exists env1 env2,
    lsrel (fun _ => false) pub env1 env2 /\
    let s1 := snd (pars_to_end ev pub env1 empty leaky_branches) in
    let s2 := snd (pars_to_end ev pub env2 empty leaky_branches) in
    ~ extends pub s1 s2 /\ ~ extends pub s2 s1.
Proof.
  exists (secret true), (secret false). split.
  - repeat constructor.
  - (* what is asked, as numbers: to compute the events themselves takes long *)
    assert (K : forall a b, extends pub a b ->
      exists u, map kind (visible pub (tr b)) = (u ++ map kind (visible pub (tr a)))%list).
    { intros a b [t E]. exists (map kind t). rewrite E. apply map_app. }
    cbv zeta. split; intros X; apply K in X; destruct X as [u E]; vm_compute in E;
      destruct u as [| ? [| ? [| ? [| ? [| ? [| ? ?]]]]]]; inversion E.
Qed.

(** The rule as it is: with the secret that stops the first branch, the second
    one does not start. *)
Example par_stops :
  visible pub (tr (snd (pars ev pub (secret true) [] empty leaky_branches))) = [] /\
  List.length (visible pub (tr (snd (pars ev pub (secret false) [] empty leaky_branches)))) = 5%nat.
Proof. runs. Qed.

(** ** Why the retry of a guard runs under the label of the verdict

    The variant: the retry runs at the old [pc], the result is not raised. *)

Fixpoint guard_unraised (ev : L -> list (lval L) -> state L -> term -> result L)
    (env : list (lval L)) (e p : term) (n : nat) (pc : L) (s : state L) : result L :=
  bind (ev pc env s e) (fun V s1 =>
  bind (ev pc env s1 p) (fun Vp s2 =>
  bind (ev pc [Vp; V] s2 (EApp (EVar 0) (EVar 1))) (fun Vb s3 =>
    match Vb with
    | Lab _ (VK (KBool true)) => (Val V, s3)
    | Lab _ (VK (KBool false)) =>
        match n with
        | O => (Err (join pc (deep_label V)) "guard failed", s3)
        | S n' => guard_unraised ev env e p n' pc s3
        end
    | _ => (Err pc "not a boolean", s3)
    end))).

(** The public tool is called twice or once. *)
Example guard_unraised_leaks :
  exists env1 env2 e p,
    lsrel (fun _ => false) pub env1 env2 /\
    visible pub (tr (snd (guard_unraised ev env1 e p 1 pub empty))) <>
    visible pub (tr (snd (guard_unraised ev env2 e p 1 pub empty))) /\
    exists V s, guard_unraised ev env2 e p 1 pub empty = (Val V, s).
Proof.
  exists (secret false), (secret true),
    (ESeq (ECall "publish" (num 1)) (EVar 0)), (ELam (EVar 0)).
  split; [repeat constructor | split].
  - vm_compute. discriminate.
  - vm_compute. eauto.
Qed.

(** Its error can be caught in public although the predicate looked at a
    secret. *)
Example guard_unraised_error_leaks :
  exists env1 env2 e p V s s',
    lsrel (fun _ => false) pub env1 env2 /\
    guard_unraised ev env1 e p 0 pub empty = (Err pub "guard failed", s) /\
    guard_unraised ev env2 e p 0 pub empty = (Val V, s').
Proof.
  exists (secret false), (secret true), (num 1), (ELam (EVar 1)).
  do 3 eexists. split; [repeat constructor | split]; vm_compute; reflexivity.
Qed.

(** ** Why [endorse] joins the label of its label argument

    The variant: the result is labeled without it, and the value is evaluated at
    [pc].  The observer sees
    everything that is not secret. *)

Definition endorse_unraised (ev : L -> list (lval L) -> state L -> term -> result L)
    (pc : L) (env : list (lval L)) (s : state L) (e1 e2 : term) : result L :=
  with_label world ev pc env s e1 (fun n l s1 =>
  bind (ev pc env s1 e2) (fun V s2 =>
    match V with Lab l2 v => (Val (Lab (join pc (mix F Endorse l l2)) v), s2) end)).

Example endorse_unraised_leaks :
  let z : L := (true, false) in
  exists env1 env2 e1 e2 V1 V2 s1 s2,
    lsrel (fun ax => match ax with Endorse => true | _ => false end) z env1 env2 /\
    endorse_unraised ev pub env1 empty e1 e2 = (Val V1, s1) /\
    endorse_unraised ev pub env2 empty e1 e2 = (Val V2, s2) /\
    flows (label_of V1) z = true /\ flows (label_of V2) z = true /\ label_of V1 <> label_of V2.
Proof.
  exists [Lab sec (VK (KTag "U"))], [Lab sec (VK (KTag ""))], (EVar 0), (num 1).
  do 4 eexists. split; [repeat constructor |].
  split; [vm_compute; reflexivity |]. split; [vm_compute; reflexivity |].
  vm_compute. repeat split; discriminate.
Qed.
