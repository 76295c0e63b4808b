
type __ = Obj.t

val implb : bool -> bool -> bool

val negb : bool -> bool

val option_map : ('a1 -> 'a2) -> 'a1 option -> 'a2 option

type ('a, 'b) sum =
| Inl of 'a
| Inr of 'b

val fst : ('a1 * 'a2) -> 'a1

val snd : ('a1 * 'a2) -> 'a2

val length : 'a1 list -> int

val app : 'a1 list -> 'a1 list -> 'a1 list

type comparison =
| Eq
| Lt
| Gt

val add : int -> int -> int

val eqb : bool -> bool -> bool

type lattice = { flows : (__ -> __ -> bool); join : (__ -> __ -> __); bot : __ }

type label = __

type factoring = { integrity : lattice; secrecy : lattice;
                   integ : (label -> label); secr : (label -> label);
                   paired : (label -> label -> label) }

type axis =
| Endorse
| Declassify

val mix : lattice -> factoring -> axis -> label -> label -> label

val two_point : lattice

val product : lattice -> lattice -> lattice

val product_factoring : lattice -> lattice -> factoring

val two_by_two : lattice

val two_by_two_factoring : factoring

module Nat :
 sig
 end

val hd : 'a1 -> 'a1 list -> 'a1

val tl : 'a1 list -> 'a1 list

val nth : int -> 'a1 list -> 'a1 -> 'a1

val nth_error : 'a1 list -> int -> 'a1 option

val rev : 'a1 list -> 'a1 list

val map : ('a1 -> 'a2) -> 'a1 list -> 'a2 list

val flat_map : ('a1 -> 'a2 list) -> 'a1 list -> 'a2 list

val fold_right : ('a2 -> 'a1 -> 'a1) -> 'a1 -> 'a2 list -> 'a1

val existsb : ('a1 -> bool) -> 'a1 list -> bool

val forallb : ('a1 -> bool) -> 'a1 list -> bool

val filter : ('a1 -> bool) -> 'a1 list -> 'a1 list

val find : ('a1 -> bool) -> 'a1 list -> 'a1 option

val combine : 'a1 list -> 'a2 list -> ('a1 * 'a2) list

val firstn : int -> 'a1 list -> 'a1 list

val seq : int -> int -> int list

module Pos :
 sig
  val succ : int -> int

  val add : int -> int -> int

  val add_carry : int -> int -> int

  val mul : int -> int -> int

  val compare_cont : comparison -> int -> int -> comparison

  val compare : int -> int -> comparison

  val eqb : int -> int -> bool

  val iter_op : ('a1 -> 'a1 -> 'a1) -> int -> 'a1 -> 'a1

  val to_nat : int -> int
 end

module Z :
 sig
  val mul : int -> int -> int

  val compare : int -> int -> comparison

  val ltb : int -> int -> bool

  val to_nat : int -> int
 end

val zeq_bool : int -> int -> bool

type q = { qnum : int; qden : int }

val qeq_bool : q -> q -> bool

type name = string

type scalar =
| KNull
| KBool of bool
| KNum of q
| KStr of string
| KTag of string

type con =
| CPair
| CList
| CRec of string list
| CArgs of name * string list
| CVariant of string
| CFix of int option
| CTool of name

val plain : con -> con

type mode =
| AsCode
| AsData of int

type term =
| EVar of int
| ELam of term
| EApp of term * term
| EK of scalar
| ECon of con * term list
| EGet of term * term
| ESet of term * term * term
| EPrim of name * term
| ECase of term * (scalar * term) list * term option
| EGuard of term * term * int
| EChoose of q * term * term
| ECall of name * term
| ERecall of name
| ERemember of name * term
| ESend of term
| ERecv of name * mode
| EFork of term
| EFresh of term
| EClear
| ELab of term * term
| ETest of term * term
| EAssert of term * term
| EReclass of axis * term * term
| ETry of bool * term * term * term
| EWithin of q * term
| EFail of term
| ECheck of name * term
| EPar of term list
| EEach of term * term

val permits : (axis -> bool) -> term -> bool

val free : int -> term -> bool

type data =
| DK of scalar
| DCon of con * data list
| DClo of data list * term

val data_permits : (axis -> bool) -> data -> bool

type head =
| HK of scalar
| HCon of con * int
| HClo

type given =
| GData of data
| GPart of int list
| GCon of con * given list

type look =
| Gives of given
| Fails of string
| Looks of int list * (head option -> look)
| Reads of int list * (data option -> look)

val given_permits : (axis -> bool) -> given -> bool

type lval =
| Lab of label * val0
and val0 =
| VK of scalar
| VCon of con * lval list
| VClo of lval list * term

val label_of : lattice -> lval -> label

val raise : lattice -> label -> lval -> lval

val joins : lattice -> label list -> label

val deep_label : lattice -> lval -> label

val strip : lattice -> lval -> data

val wrap : lattice -> data -> val0

val capture_from : lattice -> int -> lval list -> term -> lval list

val capture : lattice -> lval list -> term -> lval list

val way : lattice -> int list -> lval -> label * lval option

val head_of : lattice -> lval -> head

val see : lattice -> label -> look -> lval -> label * (given, string) sum

val give : lattice -> given -> lval -> lval

val ways : lattice -> given -> lval -> label

val scalar_eqb : scalar -> scalar -> bool

val index_of_num : q -> int option

val position : string -> string list -> int option

val select : con -> scalar -> int option

val set_nth : int -> 'a1 -> 'a1 list -> 'a1 list option

val no_payload : scalar -> scalar -> bool

val update : con -> scalar -> 'a1 -> 'a1 list -> (con * 'a1 list) option

val branch : scalar -> (scalar * term) list -> term option -> term option

val dispatch : lattice -> val0 -> scalar option

val chosen :
  lattice -> val0 -> (scalar * term) list -> term option -> term option

val eLet : term -> term -> term

val eFst : term -> term

val eSnd : term -> term

val ePayload : term -> term

val eSeq : term -> term -> term

val eIf : term -> term -> term -> term

type request =
| RModel of name * string list
| RKey of name
| RTool of name * data list * string
| RApprove of name * data list * label list
| RSample of q
| RRecall of name
| RRemember of name * data
| RArgs of name * string list * (string * data) list
| RDecided of name * label
| RWithin of q
| REnd

type event = { channel : label; what : request }

val visible : lattice -> label -> event list -> event list

type account = (name * (int * data)) list

val entry : name -> account -> (int * data) option

val without : name -> account -> account

type chooser = { from : name; chosen_by : label option;
                 chosen_for : int list;
                 holds : (data list -> data list -> bool) }

type form = { looks_at : int list; beside : name option; tells : label;
              applies : (label list -> bool);
              unfit : (data list -> (label * bool) list -> data list ->
                      string option) }

type part_label = { named : int list; says : (data list -> label) }

type answer =
| AScalar of scalar
| AParts of con * part_label list * int list

type host = { model : (name -> string list -> event list -> (string, string)
                      sum); further : (name -> string -> string list);
              unasked : (name -> string option); offers : (name -> bool);
              parse : (string -> (term, string) sum);
              decode : (name -> string -> (data, string) sum);
              tool_params : (name -> string list);
              tool_accepts : (name -> data -> string option);
              tool_key : (name -> label -> event list -> string);
              completes : (name -> int list);
              completed : (name -> data list -> string -> event list -> bool);
              tool : (name -> data list -> string -> event list -> int option);
              content : (name -> data list -> string -> int list -> event
                        list -> answer);
              misfit : (name -> data -> string option);
              most : (name -> data list -> label);
              failure : (name -> data list -> string -> event list -> string);
              states : (name -> data list -> string -> event list -> label);
              tool_policy : (name -> term option); approve : (name -> bool);
              if_refused : (name -> bool); confirms : (name -> bool);
              among : (name -> chooser list); forms : (name -> form list);
              asking : (name -> form list); anyone : label;
              from_label : (label -> data);
              sample : (q -> event list -> bool);
              refuses : (request -> event list -> string option);
              is_timeout : (string -> bool);
              remark : (data -> data -> string);
              char_at : (string -> q -> string option);
              prim : (name -> look); serialize : (data -> string);
              to_label : (data -> label option); tool_pc : (name -> label);
              tool_args : (name -> label list); tool_res : (name -> label);
              key_label : (name -> label); has_type : (name -> data -> bool);
              key_type : (name -> name); now : (label -> event list -> int);
              keep : (label -> int -> account -> account);
              others : (label -> event list -> account -> account);
              clearance : (name -> label); policy : (axis -> bool);
              prelude : lval list }

type conv = { clab : label; msgs : string list; later : string list;
              told : int }

type frame = { sets : (name -> label * data list);
               stops : (name -> label -> data list -> event list -> bool) }

type state = { cv : conv; store : (label -> account); tr : event list;
               remarks : string list; fixed : frame }

type outcome =
| Val of lval
| Err of label * string
| Out

type result = outcome * state

val bind : lattice -> result -> (lval -> state -> result) -> result

val set_conv : lattice -> conv -> state -> state

val same : lattice -> label -> label -> bool

val set_account : lattice -> label -> account -> state -> state

val present : lattice -> host -> label -> state -> account

val log : lattice -> label -> request -> state -> state

val logs : lattice -> event list -> state -> state

val set_remarks : lattice -> string list -> state -> state

val masks : int -> bool list list

val select_by : bool list -> 'a1 list -> 'a1 list

val made :
  lattice -> label -> name -> string list -> lval list -> bool list -> event

val prepare : lattice -> con -> lval -> state -> state

val restore : lattice -> conv -> result -> result

val unit_val : lattice -> val0

val accept : lattice -> host -> label -> data -> state -> result

val primitive : lattice -> host -> label -> name -> lval -> state -> result

val do_get : lattice -> host -> label -> lval -> lval -> outcome

val do_set : lattice -> label -> lval -> lval -> lval -> outcome

val evals :
  lattice -> (label -> lval list -> state -> term -> result) -> label -> lval
  list -> con -> lval list -> state -> term list -> result

val with_label :
  lattice -> host -> (label -> lval list -> state -> term -> result) -> label
  -> lval list -> state -> term -> (label -> label -> state -> result) ->
  result

val admits : lattice -> factoring -> host -> name -> label -> label -> bool

val bound_at : lattice -> label list -> int -> label

val argument_at : lattice -> lval list -> int -> lval

val may_choose : lattice -> chooser -> lval -> label -> bool

val admitted :
  lattice -> factoring -> state -> label list -> lval list -> chooser -> bool

val about : lattice -> int -> chooser -> bool

val chosen_from :
  lattice -> factoring -> host -> name -> state -> label list -> lval list ->
  int -> bool

val accepted :
  lattice -> factoring -> host -> name -> state -> label list -> lval list ->
  int -> bool

val bounds_of : lattice -> host -> name -> label list -> int -> label

val refused :
  lattice -> factoring -> host -> name -> state -> label list -> lval list ->
  label option

val looked : lattice -> form -> lval list -> label list

val found_unfit :
  lattice -> form -> state -> (int -> bool) -> lval list -> string option

val told_by : lattice -> form -> lval list -> label

val misformed :
  lattice -> state -> lval list -> form list -> (label * string) option

val told_of : lattice -> form list -> lval list -> label

val channel_of : lattice -> label list -> lval list -> label

val argument :
  lattice -> label -> label -> string list -> lval list -> string -> lval

val arguments : lattice -> label -> string list -> lval -> lval list

val refusal :
  lattice -> host -> label -> label -> request -> state -> string option

val stamp : lattice -> label -> lval list -> part_label -> label

val filled :
  lattice -> (int list -> label -> lval) -> int list -> label -> lval list ->
  part_label list -> lval list

val fill :
  lattice -> host -> int -> name -> data list -> string -> event list -> int
  list -> label -> lval

val lasting : lattice -> host -> name -> 'a1 list -> 'a1 list

val perform :
  lattice -> host -> label -> label -> label -> name -> data list -> data
  list -> string -> label -> state -> result

val confirmed :
  lattice -> factoring -> host -> label -> label -> label -> name -> bool ->
  data list -> state -> result

val approval :
  lattice -> host -> label -> label -> name -> bool -> data list -> label
  list -> label -> state -> (state -> result) -> result

val shown : lattice -> host -> label -> label -> lval -> label -> lval

val all_shown :
  lattice -> host -> label -> label -> lval list -> label list -> lval list

val described :
  lattice -> host -> label -> label -> name -> lval list -> label list -> lval

val decide :
  lattice -> factoring -> host -> (label -> lval list -> state -> term ->
  result) -> label -> label -> name -> lval list -> label list -> label ->
  state -> (label -> state -> result) -> result

val counted :
  lattice -> label -> name -> data list -> state -> (state -> result) ->
  result

val endorses : lattice -> host -> name -> bool

val clean :
  lattice -> factoring -> host -> name -> state -> label list -> lval list ->
  bool

val taken_from :
  lattice -> factoring -> host -> name -> state -> label list -> lval list ->
  int -> chooser option

val noted :
  lattice -> factoring -> host -> name -> state -> label list -> lval list ->
  int -> bool

val formed :
  lattice -> factoring -> host -> name -> state -> label list -> lval list ->
  lval list -> bool

val sets_label : lattice -> host -> name -> state -> label

val named_parts : lattice -> host -> name -> lval -> bool

val lasts : lattice -> host -> name -> lval -> bool

val kept_label :
  lattice -> host -> name -> label -> lval -> lval list -> label

val foreign : lattice -> name -> lval -> bool

val called :
  lattice -> factoring -> host -> (label -> lval list -> state -> term ->
  result) -> label -> name -> lval -> string -> state -> result

val call :
  lattice -> factoring -> host -> (label -> lval list -> state -> term ->
  result) -> label -> name -> lval -> state -> result

val apply :
  lattice -> factoring -> host -> (label -> lval list -> state -> term ->
  result) -> lval -> lval -> state -> result

val do_send : lattice -> host -> label -> lval -> state -> result

val say : lattice -> string -> state -> state

val expect : lattice -> string list -> state -> state

val tell : lattice -> state -> state

val question :
  lattice -> host -> label -> name -> state -> (string -> state -> result) ->
  result

val ask :
  lattice -> host -> label -> name -> state -> (string -> state -> result) ->
  result

val listen :
  lattice -> host -> label -> name -> state -> (string -> state -> result) ->
  result

val run_reply :
  lattice -> host -> (label -> lval list -> state -> term -> result) -> label
  -> string -> state -> result

val recv_data : lattice -> host -> label -> name -> int -> state -> result

val do_recv :
  lattice -> host -> (label -> lval list -> state -> term -> result) -> label
  -> name -> mode -> state -> result

val do_clear : lattice -> label -> state -> result

val do_fork :
  lattice -> (label -> lval list -> state -> term -> result) -> label -> lval
  list -> state -> term -> result

val do_fresh :
  lattice -> (label -> lval list -> state -> term -> result) -> label -> lval
  list -> state -> term -> result

val do_remember : lattice -> host -> label -> name -> lval -> state -> result

val do_recall : lattice -> host -> label -> name -> state -> result

val do_try :
  lattice -> host -> (label -> lval list -> state -> term -> result) -> bool
  -> label -> lval list -> state -> term -> term -> result

val close : lattice -> label -> result -> result

val do_within :
  lattice -> (label -> lval list -> state -> term -> result) -> q -> label ->
  lval list -> state -> term -> result

val pars :
  lattice -> (label -> lval list -> state -> term -> result) -> label -> lval
  list -> lval list -> state -> term list -> result

val applications : int -> term list

val do_each :
  lattice -> (label -> lval list -> state -> term -> result) -> label -> lval
  -> lval -> state -> result

val verdict :
  lattice -> label -> lval -> lval -> state -> (label -> result) -> result

val is_function : lattice -> val0 -> bool

val guarded : lattice -> label -> lval -> lval -> int -> lval

val reason : lattice -> host -> label -> lval -> lval -> string

val forgotten : lattice -> label -> string list -> state -> state

val forget : lattice -> label -> string list -> result -> result

val retry : lattice -> label -> string -> state -> (state -> result) -> result

val judge :
  lattice -> host -> (label -> lval list -> state -> term -> result) -> lval
  list -> term -> int -> label -> lval -> state -> (label -> string -> state
  -> result) -> result

val guard :
  lattice -> host -> (label -> lval list -> state -> term -> result) -> lval
  list -> term -> term -> int -> int -> label -> state -> result

val eval :
  lattice -> factoring -> host -> int -> label -> lval list -> state -> term
  -> result

val initial : lattice -> frame -> (label -> account) -> state

type step =
| SField of string
| SEach
| SKeys

val values_at : data -> step list -> data list

val each_of : int -> (data -> bool) -> data -> bool

val one_of : (data -> data -> bool) -> int -> data list -> data -> bool

val of_items :
  (data -> data -> bool) -> int -> (data -> data list) list -> data list ->
  data list -> bool

val from_items :
  lattice -> (data -> data -> bool) -> int -> name -> label option ->
  (int * (data -> data list)) list -> chooser

val closed_form : lattice -> int -> (data -> string option) -> form

val run : host -> int -> lval list -> state -> term -> result
