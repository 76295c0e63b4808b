
type __ = Obj.t

(** val implb : bool -> bool -> bool **)

let implb b1 b2 =
  if b1 then b2 else true

(** val negb : bool -> bool **)

let negb = function
| true -> false
| false -> true

(** val option_map : ('a1 -> 'a2) -> 'a1 option -> 'a2 option **)

let option_map f = function
| Some a -> Some (f a)
| None -> None

type ('a, 'b) sum =
| Inl of 'a
| Inr of 'b

(** val fst : ('a1 * 'a2) -> 'a1 **)

let fst = function
| (x, _) -> x

(** val snd : ('a1 * 'a2) -> 'a2 **)

let snd = function
| (_, y) -> y

(** val length : 'a1 list -> int **)

let rec length = function
| [] -> 0
| _ :: l' -> Stdlib.Int.succ (length l')

(** val app : 'a1 list -> 'a1 list -> 'a1 list **)

let rec app l m =
  match l with
  | [] -> m
  | a :: l1 -> a :: (app l1 m)

type comparison =
| Eq
| Lt
| Gt

module Coq__1 = struct
 (** val add : int -> int -> int **)let rec add = (+)
end
include Coq__1

(** val eqb : bool -> bool -> bool **)

let eqb b1 b2 =
  if b1 then b2 else if b2 then false else true

type lattice = { flows : (__ -> __ -> bool); join : (__ -> __ -> __); bot : __ }

type label = __

type factoring = { integrity : lattice; secrecy : lattice;
                   integ : (label -> label); secr : (label -> label);
                   paired : (label -> label -> label) }

type axis =
| Endorse
| Declassify

(** val mix : lattice -> factoring -> axis -> label -> label -> label **)

let mix _ f ax l1 l2 =
  match ax with
  | Endorse -> f.paired (f.integ l1) (f.secr l2)
  | Declassify -> f.paired (f.integ l2) (f.secr l1)

(** val two_point : lattice **)

let two_point =
  { flows = (Obj.magic implb); join = (Obj.magic (||)); bot =
    (Obj.magic false) }

(** val product : lattice -> lattice -> lattice **)

let product a b =
  { flows = (fun x y ->
    (&&) (a.flows (fst (Obj.magic x)) (fst (Obj.magic y)))
      (b.flows (snd (Obj.magic x)) (snd (Obj.magic y)))); join = (fun x y ->
    Obj.magic ((a.join (fst (Obj.magic x)) (fst (Obj.magic y))),
      (b.join (snd (Obj.magic x)) (snd (Obj.magic y))))); bot =
    (Obj.magic (a.bot, b.bot)) }

(** val product_factoring : lattice -> lattice -> factoring **)

let product_factoring a b =
  { integrity = a; secrecy = b; integ = (Obj.magic fst); secr =
    (Obj.magic snd); paired = (fun i s -> Obj.magic (i, s)) }

(** val two_by_two : lattice **)

let two_by_two =
  product two_point two_point

(** val two_by_two_factoring : factoring **)

let two_by_two_factoring =
  product_factoring two_point two_point

module Nat =
 struct
 end

(** val hd : 'a1 -> 'a1 list -> 'a1 **)

let hd default = function
| [] -> default
| x :: _ -> x

(** val tl : 'a1 list -> 'a1 list **)

let tl = function
| [] -> []
| _ :: m -> m

(** val nth : int -> 'a1 list -> 'a1 -> 'a1 **)

let rec nth n l default =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> match l with
              | [] -> default
              | x :: _ -> x)
    (fun m -> match l with
              | [] -> default
              | _ :: t -> nth m t default)
    n

(** val nth_error : 'a1 list -> int -> 'a1 option **)

let rec nth_error l n =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> match l with
              | [] -> None
              | x :: _ -> Some x)
    (fun n0 -> match l with
               | [] -> None
               | _ :: l0 -> nth_error l0 n0)
    n

(** val rev : 'a1 list -> 'a1 list **)

let rec rev = function
| [] -> []
| x :: l' -> app (rev l') (x :: [])

(** val map : ('a1 -> 'a2) -> 'a1 list -> 'a2 list **)

let rec map f = function
| [] -> []
| a :: t -> (f a) :: (map f t)

(** val flat_map : ('a1 -> 'a2 list) -> 'a1 list -> 'a2 list **)

let rec flat_map f = function
| [] -> []
| x :: t -> app (f x) (flat_map f t)

(** val fold_right : ('a2 -> 'a1 -> 'a1) -> 'a1 -> 'a2 list -> 'a1 **)

let rec fold_right f a0 = function
| [] -> a0
| b :: t -> f b (fold_right f a0 t)

(** val existsb : ('a1 -> bool) -> 'a1 list -> bool **)

let rec existsb f = function
| [] -> false
| a :: l0 -> (||) (f a) (existsb f l0)

(** val forallb : ('a1 -> bool) -> 'a1 list -> bool **)

let rec forallb f = function
| [] -> true
| a :: l0 -> (&&) (f a) (forallb f l0)

(** val filter : ('a1 -> bool) -> 'a1 list -> 'a1 list **)

let rec filter f = function
| [] -> []
| x :: l0 -> if f x then x :: (filter f l0) else filter f l0

(** val find : ('a1 -> bool) -> 'a1 list -> 'a1 option **)

let rec find f = function
| [] -> None
| x :: tl0 -> if f x then Some x else find f tl0

(** val combine : 'a1 list -> 'a2 list -> ('a1 * 'a2) list **)

let rec combine l l' =
  match l with
  | [] -> []
  | x :: tl0 ->
    (match l' with
     | [] -> []
     | y :: tl' -> (x, y) :: (combine tl0 tl'))

(** val firstn : int -> 'a1 list -> 'a1 list **)

let rec firstn n l =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> [])
    (fun n0 -> match l with
               | [] -> []
               | a :: l0 -> a :: (firstn n0 l0))
    n

(** val seq : int -> int -> int list **)

let rec seq start len =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> [])
    (fun len0 -> start :: (seq (Stdlib.Int.succ start) len0))
    len

module Pos =
 struct
  (** val succ : int -> int **)

  let rec succ = Pervasives.succ

  (** val add : int -> int -> int **)

  let rec add = (+)

  (** val add_carry : int -> int -> int **)

  and add_carry x y =
    (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
      (fun p ->
      (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
        (fun q0 -> (fun p->1+2*p) (add_carry p q0))
        (fun q0 -> (fun p->2*p) (add_carry p q0))
        (fun _ -> (fun p->1+2*p) (succ p))
        y)
      (fun p ->
      (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
        (fun q0 -> (fun p->2*p) (add_carry p q0))
        (fun q0 -> (fun p->1+2*p) (add p q0))
        (fun _ -> (fun p->2*p) (succ p))
        y)
      (fun _ ->
      (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
        (fun q0 -> (fun p->1+2*p) (succ q0))
        (fun q0 -> (fun p->2*p) (succ q0))
        (fun _ -> (fun p->1+2*p) 1)
        y)
      x

  (** val mul : int -> int -> int **)

  let rec mul = ( * )

  (** val compare_cont : comparison -> int -> int -> comparison **)

  let rec compare_cont = fun c x y -> if x=y then c else if x<y then Lt else Gt

  (** val compare : int -> int -> comparison **)

  let compare = fun x y -> if x=y then Eq else if x<y then Lt else Gt

  (** val eqb : int -> int -> bool **)

  let rec eqb p q0 =
    (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
      (fun p0 ->
      (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
        (fun q1 -> eqb p0 q1)
        (fun _ -> false)
        (fun _ -> false)
        q0)
      (fun p0 ->
      (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
        (fun _ -> false)
        (fun q1 -> eqb p0 q1)
        (fun _ -> false)
        q0)
      (fun _ ->
      (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
        (fun _ -> false)
        (fun _ -> false)
        (fun _ -> true)
        q0)
      p

  (** val iter_op : ('a1 -> 'a1 -> 'a1) -> int -> 'a1 -> 'a1 **)

  let rec iter_op op p a =
    (fun f2p1 f2p f1 p ->
  if p<=1 then f1 () else if p mod 2 = 0 then f2p (p/2) else f2p1 (p/2))
      (fun p0 -> op a (iter_op op p0 (op a a)))
      (fun p0 -> iter_op op p0 (op a a))
      (fun _ -> a)
      p

  (** val to_nat : int -> int **)

  let to_nat x =
    iter_op Coq__1.add x (Stdlib.Int.succ 0)
 end

module Z =
 struct
  (** val mul : int -> int -> int **)

  let mul = ( * )

  (** val compare : int -> int -> comparison **)

  let compare = fun x y -> if x=y then Eq else if x<y then Lt else Gt

  (** val ltb : int -> int -> bool **)

  let ltb x y =
    match compare x y with
    | Lt -> true
    | _ -> false

  (** val to_nat : int -> int **)

  let to_nat z0 =
    (fun f0 fp fn z -> if z=0 then f0 () else if z>0 then fp z else fn (-z))
      (fun _ -> 0)
      (fun p -> Pos.to_nat p)
      (fun _ -> 0)
      z0
 end

(** val zeq_bool : int -> int -> bool **)

let zeq_bool x y =
  match Z.compare x y with
  | Eq -> true
  | _ -> false

type q = { qnum : int; qden : int }

(** val qeq_bool : q -> q -> bool **)

let qeq_bool x y =
  zeq_bool (Z.mul x.qnum y.qden) (Z.mul y.qnum x.qden)

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

(** val plain : con -> con **)

let plain c = match c with
| CArgs (_, fs) -> CRec fs
| _ -> c

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

(** val permits : (axis -> bool) -> term -> bool **)

let rec permits pol = function
| ELam e0 -> permits pol e0
| EApp (e1, e2) -> (&&) (permits pol e1) (permits pol e2)
| ECon (_, es) -> forallb (permits pol) es
| EGet (e1, e2) -> (&&) (permits pol e1) (permits pol e2)
| ESet (e1, e2, e3) ->
  (&&) (permits pol e1) ((&&) (permits pol e2) (permits pol e3))
| EPrim (_, e0) -> permits pol e0
| ECase (e0, bs, d) ->
  (&&) (permits pol e0)
    ((&&) (forallb (fun b -> permits pol (snd b)) bs)
      (match d with
       | Some e' -> permits pol e'
       | None -> true))
| EGuard (e1, e2, _) -> (&&) (permits pol e1) (permits pol e2)
| EChoose (_, e1, e2) -> (&&) (permits pol e1) (permits pol e2)
| ECall (_, e0) -> permits pol e0
| ERemember (_, e0) -> permits pol e0
| ESend e0 -> permits pol e0
| EFork e0 -> permits pol e0
| EFresh e0 -> permits pol e0
| ELab (e1, e2) -> (&&) (permits pol e1) (permits pol e2)
| ETest (e1, e2) -> (&&) (permits pol e1) (permits pol e2)
| EAssert (e1, e2) -> (&&) (permits pol e1) (permits pol e2)
| EReclass (ax, e1, e2) ->
  (&&) (pol ax) ((&&) (permits pol e1) (permits pol e2))
| ETry (_, e1, e2, e3) ->
  (&&) (permits pol e1) ((&&) (permits pol e2) (permits pol e3))
| EWithin (_, e0) -> permits pol e0
| EFail e0 -> permits pol e0
| ECheck (_, e0) -> permits pol e0
| EPar es -> forallb (permits pol) es
| EEach (e1, e2) -> (&&) (permits pol e1) (permits pol e2)
| _ -> true

(** val free : int -> term -> bool **)

let rec free i = function
| EVar j -> (=) i j
| ELam e0 -> free (Stdlib.Int.succ i) e0
| EApp (e1, e2) -> (||) (free i e1) (free i e2)
| ECon (_, es) -> existsb (free i) es
| EGet (e1, e2) -> (||) (free i e1) (free i e2)
| ESet (e1, e2, e3) -> (||) (free i e1) ((||) (free i e2) (free i e3))
| EPrim (_, e0) -> free i e0
| ECase (e0, bs, d) ->
  (||) (free i e0)
    ((||) (existsb (fun b -> free i (snd b)) bs)
      (match d with
       | Some e' -> free i e'
       | None -> false))
| EGuard (e1, e2, _) -> (||) (free i e1) (free i e2)
| EChoose (_, e1, e2) -> (||) (free i e1) (free i e2)
| ECall (_, e0) -> free i e0
| ERemember (_, e0) -> free i e0
| ESend e0 -> free i e0
| EFork e0 -> free i e0
| EFresh e0 -> free i e0
| ELab (e1, e2) -> (||) (free i e1) (free i e2)
| ETest (e1, e2) -> (||) (free i e1) (free i e2)
| EAssert (e1, e2) -> (||) (free i e1) (free i e2)
| EReclass (_, e1, e2) -> (||) (free i e1) (free i e2)
| ETry (_, e1, e2, e3) ->
  (||) (free i e1) ((||) (free i e2) (free (Stdlib.Int.succ i) e3))
| EWithin (_, e0) -> free i e0
| EFail e0 -> free i e0
| ECheck (_, e0) -> free i e0
| EPar es -> existsb (free i) es
| EEach (e1, e2) -> (||) (free i e1) (free i e2)
| _ -> false

type data =
| DK of scalar
| DCon of con * data list
| DClo of data list * term

(** val data_permits : (axis -> bool) -> data -> bool **)

let rec data_permits pol = function
| DK _ -> true
| DCon (_, ds) -> forallb (data_permits pol) ds
| DClo (env, e) -> (&&) (forallb (data_permits pol) env) (permits pol e)

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

(** val given_permits : (axis -> bool) -> given -> bool **)

let rec given_permits pol = function
| GData d -> data_permits pol d
| GPart _ -> true
| GCon (_, gs) -> forallb (given_permits pol) gs

type lval =
| Lab of label * val0
and val0 =
| VK of scalar
| VCon of con * lval list
| VClo of lval list * term

(** val label_of : lattice -> lval -> label **)

let label_of _ = function
| Lab (l, _) -> l

(** val raise : lattice -> label -> lval -> lval **)

let raise l l0 = function
| Lab (l', v0) -> Lab ((l.join l0 l'), v0)

(** val joins : lattice -> label list -> label **)

let joins l ls =
  fold_right l.join l.bot ls

(** val deep_label : lattice -> lval -> label **)

let rec deep_label l = function
| Lab (l0, v0) ->
  l.join l0
    (match v0 with
     | VK _ -> l.bot
     | VCon (_, vs) -> joins l (map (deep_label l) vs)
     | VClo (env, _) -> joins l (map (deep_label l) env))

(** val strip : lattice -> lval -> data **)

let rec strip l = function
| Lab (_, v0) ->
  (match v0 with
   | VK k -> DK k
   | VCon (c, vs) -> DCon ((plain c), (map (strip l) vs))
   | VClo (env, e) -> DClo ((map (strip l) env), e))

(** val wrap : lattice -> data -> val0 **)

let rec wrap l = function
| DK k -> VK k
| DCon (c, ds) ->
  VCon ((plain c), (map (fun d0 -> Lab (l.bot, (wrap l d0))) ds))
| DClo (env, e) -> VClo ((map (fun d0 -> Lab (l.bot, (wrap l d0))) env), e)

(** val capture_from : lattice -> int -> lval list -> term -> lval list **)

let rec capture_from l i env body =
  match env with
  | [] -> []
  | v :: env' ->
    (if free i body then v else Lab (l.bot, (VK KNull))) :: (capture_from l
                                                              (Stdlib.Int.succ
                                                              i) env' body)

(** val capture : lattice -> lval list -> term -> lval list **)

let capture l env body =
  capture_from l (Stdlib.Int.succ 0) env body

(** val way : lattice -> int list -> lval -> label * lval option **)

let rec way l path v =
  match path with
  | [] -> (l.bot, (Some v))
  | i :: path' ->
    let Lab (l0, v0) = v in
    (match v0 with
     | VCon (_, vs) ->
       (match nth_error vs i with
        | Some w -> let (m, r) = way l path' w in ((l.join l0 m), r)
        | None -> (l0, None))
     | _ -> (l0, None))

(** val head_of : lattice -> lval -> head **)

let head_of _ = function
| Lab (_, v0) ->
  (match v0 with
   | VK k -> HK k
   | VCon (c, vs) -> HCon ((plain c), (length vs))
   | VClo (_, _) -> HClo)

(** val see :
    lattice -> label -> look -> lval -> label * (given, string) sum **)

let rec see l l0 k v =
  match k with
  | Gives g -> (l0, (Inl g))
  | Fails m -> (l0, (Inr m))
  | Looks (path, k0) ->
    let (m, o) = way l path v in
    (match o with
     | Some w ->
       see l (l.join l0 (l.join m (label_of l w))) (k0 (Some (head_of l w))) v
     | None -> see l (l.join l0 m) (k0 None) v)
  | Reads (path, k0) ->
    let (m, o) = way l path v in
    (match o with
     | Some w ->
       see l (l.join l0 (l.join m (deep_label l w))) (k0 (Some (strip l w))) v
     | None -> see l (l.join l0 m) (k0 None) v)

(** val give : lattice -> given -> lval -> lval **)

let rec give l g v =
  match g with
  | GData d -> Lab (l.bot, (wrap l d))
  | GPart path ->
    (match snd (way l path v) with
     | Some w -> w
     | None -> Lab (l.bot, (VK KNull)))
  | GCon (c, gs) ->
    Lab (l.bot, (VCon ((plain c), (map (fun g0 -> give l g0 v) gs))))

(** val ways : lattice -> given -> lval -> label **)

let rec ways l g v =
  match g with
  | GData _ -> l.bot
  | GPart path -> fst (way l path v)
  | GCon (_, gs) -> joins l (map (fun g0 -> ways l g0 v) gs)

(** val scalar_eqb : scalar -> scalar -> bool **)

let scalar_eqb a b =
  match a with
  | KNull -> (match b with
              | KNull -> true
              | _ -> false)
  | KBool x -> (match b with
                | KBool y -> eqb x y
                | _ -> false)
  | KNum x -> (match b with
               | KNum y -> qeq_bool x y
               | _ -> false)
  | KStr x -> (match b with
               | KStr y -> (=) x y
               | _ -> false)
  | KTag x -> (match b with
               | KTag y -> (=) x y
               | _ -> false)

(** val index_of_num : q -> int option **)

let index_of_num q0 =
  if Z.ltb q0.qnum 0
  then None
  else if Pos.eqb q0.qden 1 then Some (Z.to_nat q0.qnum) else None

(** val position : string -> string list -> int option **)

let rec position f = function
| [] -> None
| g :: fs' ->
  if (=) f g
  then Some 0
  else option_map (fun x -> Stdlib.Int.succ x) (position f fs')

(** val select : con -> scalar -> int option **)

let select c k =
  match c with
  | CPair ->
    (match k with
     | KTag t ->
       if (=) t "fst"
       then Some 0
       else if (=) t "snd" then Some (Stdlib.Int.succ 0) else None
     | _ -> None)
  | CList -> (match k with
              | KNum q0 -> index_of_num q0
              | _ -> None)
  | CRec fs -> (match k with
                | KStr f -> position f fs
                | _ -> None)
  | CVariant _ ->
    (match k with
     | KTag t -> if (=) t "payload" then Some 0 else None
     | _ -> None)
  | _ -> None

(** val set_nth : int -> 'a1 -> 'a1 list -> 'a1 list option **)

let rec set_nth i x xs =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ ->
    match xs with
    | [] -> None
    | _ :: xs' -> Some (x :: xs'))
    (fun i' ->
    match xs with
    | [] -> None
    | y :: xs' -> option_map (fun x0 -> y :: x0) (set_nth i' x xs'))
    i

(** val no_payload : scalar -> scalar -> bool **)

let no_payload k1 k2 =
  match k1 with
  | KStr _ -> (match k2 with
               | KTag t -> (=) t "payload"
               | _ -> false)
  | _ -> false

(** val update :
    con -> scalar -> 'a1 -> 'a1 list -> (con * 'a1 list) option **)

let update c k x xs =
  match select c k with
  | Some i -> option_map (fun x0 -> (c, x0)) (set_nth i x xs)
  | None ->
    (match c with
     | CRec fs ->
       (match k with
        | KStr f -> Some ((CRec (app fs (f :: []))), (app xs (x :: [])))
        | _ -> None)
     | _ -> None)

(** val branch :
    scalar -> (scalar * term) list -> term option -> term option **)

let rec branch k bs d =
  match bs with
  | [] -> d
  | p :: bs' ->
    let (k', e) = p in if scalar_eqb k k' then Some e else branch k bs' d

(** val dispatch : lattice -> val0 -> scalar option **)

let dispatch _ = function
| VK k -> (match k with
           | KStr t -> Some (KTag t)
           | _ -> Some k)
| VCon (c, _) -> (match c with
                  | CVariant t -> Some (KTag t)
                  | _ -> None)
| VClo (_, _) -> None

(** val chosen :
    lattice -> val0 -> (scalar * term) list -> term option -> term option **)

let chosen l v bs d =
  match dispatch l v with
  | Some k -> branch k bs d
  | None -> d

(** val eLet : term -> term -> term **)

let eLet e1 e2 =
  EApp ((ELam e2), e1)

(** val eFst : term -> term **)

let eFst e =
  EGet (e, (EK (KTag "fst")))

(** val eSnd : term -> term **)

let eSnd e =
  EGet (e, (EK (KTag "snd")))

(** val ePayload : term -> term **)

let ePayload e =
  EGet (e, (EK (KTag "payload")))

(** val eSeq : term -> term -> term **)

let eSeq e1 e2 =
  eSnd (ECon (CPair, (e1 :: (e2 :: []))))

(** val eIf : term -> term -> term -> term **)

let eIf e e1 e2 =
  ECase (e, (((KBool true), e1) :: (((KBool false), e2) :: [])), None)

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

(** val visible : lattice -> label -> event list -> event list **)

let visible l z0 t =
  filter (fun ev -> l.flows ev.channel z0) t

type account = (name * (int * data)) list

(** val entry : name -> account -> (int * data) option **)

let entry k a =
  option_map snd (find (fun e -> (=) k (fst e)) a)

(** val without : name -> account -> account **)

let without k a =
  filter (fun e -> negb ((=) k (fst e))) a

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

(** val bind : lattice -> result -> (lval -> state -> result) -> result **)

let bind _ r k =
  let (o, s) = r in (match o with
                     | Val v -> k v s
                     | x -> (x, s))

(** val set_conv : lattice -> conv -> state -> state **)

let set_conv _ c s =
  { cv = c; store = s.store; tr = s.tr; remarks = s.remarks; fixed = s.fixed }

(** val same : lattice -> label -> label -> bool **)

let same l a b =
  (&&) (l.flows a b) (l.flows b a)

(** val set_account : lattice -> label -> account -> state -> state **)

let set_account l l0 a s =
  { cv = s.cv; store = (fun l' -> if same l l0 l' then a else s.store l');
    tr = s.tr; remarks = s.remarks; fixed = s.fixed }

(** val present : lattice -> host -> label -> state -> account **)

let present l h l0 s =
  h.keep l0 (h.now l0 (visible l l0 s.tr))
    (h.others l0 (visible l l0 s.tr) (s.store l0))

(** val log : lattice -> label -> request -> state -> state **)

let log _ l r s =
  { cv = s.cv; store = s.store; tr = ({ channel = l; what = r } :: s.tr);
    remarks = s.remarks; fixed = s.fixed }

(** val logs : lattice -> event list -> state -> state **)

let logs _ t s =
  { cv = s.cv; store = s.store; tr = (app t s.tr); remarks = s.remarks;
    fixed = s.fixed }

(** val set_remarks : lattice -> string list -> state -> state **)

let set_remarks _ ms s =
  { cv = s.cv; store = s.store; tr = s.tr; remarks = ms; fixed = s.fixed }

(** val masks : int -> bool list list **)

let rec masks n =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> [] :: [])
    (fun n' ->
    app (map (fun x -> true :: x) (masks n'))
      (map (fun x -> false :: x) (masks n')))
    n

(** val select_by : bool list -> 'a1 list -> 'a1 list **)

let rec select_by m xs =
  match m with
  | [] -> []
  | b :: m' ->
    (match xs with
     | [] -> []
     | x :: xs' -> if b then x :: (select_by m' xs') else select_by m' xs')

(** val made :
    lattice -> label -> name -> string list -> lval list -> bool list -> event **)

let made l l0 f fs vs m =
  { channel = (l.join l0 (joins l (map (deep_label l) (select_by m vs))));
    what = (RArgs (f, (firstn (length vs) fs),
    (combine (select_by m fs) (map (strip l) (select_by m vs))))) }

(** val prepare : lattice -> con -> lval -> state -> state **)

let prepare l c v s =
  match c with
  | CArgs (f, fs) ->
    let Lab (l0, v0) = v in
    (match v0 with
     | VCon (_, vs) -> logs l (map (made l l0 f fs vs) (masks (length vs))) s
     | _ -> s)
  | _ -> s

(** val restore : lattice -> conv -> result -> result **)

let restore l c r =
  ((fst r), (set_conv l c (snd r)))

(** val unit_val : lattice -> val0 **)

let unit_val _ =
  VCon ((CRec []), [])

(** val accept : lattice -> host -> label -> data -> state -> result **)

let accept l h l0 d s =
  if data_permits h.policy d
  then ((Val (Lab (l0, (wrap l d)))), s)
  else ((Err (l0, "generated code may not reclassify")), s)

(** val primitive :
    lattice -> host -> label -> name -> lval -> state -> result **)

let primitive l h pc p v s =
  let (l0, s0) = see l pc (h.prim p) v in
  (match s0 with
   | Inl g ->
     let l1 = l.join l0 (ways l g v) in
     if given_permits h.policy g
     then ((Val (raise l l1 (give l g v))), s)
     else ((Err (l1, "generated code may not reclassify")), s)
   | Inr m -> ((Err (l0, m)), s))

(** val do_get : lattice -> host -> label -> lval -> lval -> outcome **)

let do_get l h pc v1 v2 =
  let wrong = fun m -> Err
    ((l.join pc (l.join (deep_label l v1) (deep_label l v2))), m)
  in
  let Lab (l1, v) = v1 in
  (match v with
   | VK k1 ->
     (match k1 with
      | KStr t ->
        let Lab (l2, v0) = v2 in
        (match v0 with
         | VK k2 ->
           (match k2 with
            | KNum q0 ->
              (match h.char_at t q0 with
               | Some c ->
                 Val (Lab ((l.join pc (l.join l1 l2)), (VK (KStr c))))
               | None -> wrong "index out of range")
            | _ ->
              if no_payload k1 k2
              then Val (Lab ((l.join pc (l.join l1 l2)), (VK KNull)))
              else wrong "not a structure")
         | _ -> wrong "not a structure")
      | _ ->
        let Lab (l2, v0) = v2 in
        (match v0 with
         | VK k2 ->
           if no_payload k1 k2
           then Val (Lab ((l.join pc (l.join l1 l2)), (VK KNull)))
           else wrong "not a structure"
         | _ -> wrong "not a structure"))
   | VCon (c, vs) ->
     let Lab (l2, v0) = v2 in
     (match v0 with
      | VK k ->
        (match select c k with
         | Some i ->
           (match nth_error vs i with
            | Some v3 -> Val (raise l (l.join pc (l.join l1 l2)) v3)
            | None -> wrong "index out of range")
         | None -> wrong "no such field")
      | _ -> wrong "not a structure")
   | VClo (_, _) -> wrong "not a structure")

(** val do_set : lattice -> label -> lval -> lval -> lval -> outcome **)

let do_set l pc v1 v2 v3 =
  let wrong = fun m -> Err
    ((l.join pc (l.join (deep_label l v1) (deep_label l v2))), m)
  in
  let Lab (l1, v) = v1 in
  (match v with
   | VCon (c, vs) ->
     let Lab (l2, v0) = v2 in
     (match v0 with
      | VK k ->
        (match update c k v3 vs with
         | Some p ->
           let (c', vs') = p in
           Val (Lab ((l.join pc (l.join l1 l2)), (VCon (c', vs'))))
         | None -> wrong "no such field")
      | _ -> wrong "not a structure")
   | _ -> wrong "not a structure")

(** val evals :
    lattice -> (label -> lval list -> state -> term -> result) -> label ->
    lval list -> con -> lval list -> state -> term list -> result **)

let rec evals l ev pc env c acc s = function
| [] -> ((Val (Lab (pc, (VCon (c, (rev acc)))))), s)
| e :: es' ->
  bind l (ev pc env s e) (fun v s' -> evals l ev pc env c (v :: acc) s' es')

(** val with_label :
    lattice -> host -> (label -> lval list -> state -> term -> result) ->
    label -> lval list -> state -> term -> (label -> label -> state ->
    result) -> result **)

let with_label l h ev pc env s e k =
  bind l (ev pc env s e) (fun v s' ->
    let n = deep_label l v in
    (match h.to_label (strip l v) with
     | Some l0 -> k n l0 s'
     | None -> ((Err ((l.join pc n), "not a label")), s')))

(** val admits :
    lattice -> factoring -> host -> name -> label -> label -> bool **)

let admits l f h f0 l0 b =
  l.flows (if h.approve f0 then mix l f Endorse b l0 else l0) b

(** val bound_at : lattice -> label list -> int -> label **)

let bound_at l bounds i =
  nth i bounds l.bot

(** val argument_at : lattice -> lval list -> int -> lval **)

let argument_at l ws i =
  nth i ws (Lab (l.bot, (VK KNull)))

(** val may_choose : lattice -> chooser -> lval -> label -> bool **)

let may_choose l c w b =
  match c.chosen_by with
  | Some l0 -> l.flows (deep_label l w) (l.join b l0)
  | None -> true

(** val admitted :
    lattice -> factoring -> state -> label list -> lval list -> chooser ->
    bool **)

let admitted l f s bounds ws c =
  let a = s.fixed.sets c.from in
  (&&)
    (forallb (fun i ->
      (&&)
        ((&&)
          (l.flows
            (mix l f Endorse (bound_at l bounds i)
              (deep_label l (argument_at l ws i))) (bound_at l bounds i))
          (l.flows (fst a) (bound_at l bounds i)))
        (may_choose l c (argument_at l ws i) (bound_at l bounds i)))
      c.chosen_for)
    (c.holds (snd a)
      (map (fun i -> strip l (argument_at l ws i)) c.chosen_for))

(** val about : lattice -> int -> chooser -> bool **)

let about _ i c =
  existsb (fun j -> (=) j i) c.chosen_for

(** val chosen_from :
    lattice -> factoring -> host -> name -> state -> label list -> lval list
    -> int -> bool **)

let chosen_from l f h f0 s bounds ws i =
  existsb (fun c -> (&&) (about l i c) (admitted l f s bounds ws c))
    (h.among f0)

(** val accepted :
    lattice -> factoring -> host -> name -> state -> label list -> lval list
    -> int -> bool **)

let accepted l f h f0 s bounds ws i =
  (||)
    (admits l f h f0 (deep_label l (argument_at l ws i))
      (bound_at l bounds i)) (chosen_from l f h f0 s bounds ws i)

(** val bounds_of : lattice -> host -> name -> label list -> int -> label **)

let bounds_of l h f bounds i =
  l.join (bound_at l bounds i)
    (joins l
      (map (fun c ->
        if about l i c
        then joins l (map (bound_at l bounds) c.chosen_for)
        else l.bot) (h.among f)))

(** val refused :
    lattice -> factoring -> host -> name -> state -> label list -> lval list
    -> label option **)

let refused l f h f0 s bounds ws =
  option_map (bounds_of l h f0 bounds)
    (find (fun i -> negb (accepted l f h f0 s bounds ws i))
      (seq 0 (length ws)))

(** val looked : lattice -> form -> lval list -> label list **)

let looked l fm ws =
  map (fun i -> deep_label l (argument_at l ws i)) fm.looks_at

(** val found_unfit :
    lattice -> form -> state -> (int -> bool) -> lval list -> string option **)

let found_unfit l fm s chosen0 ws =
  if fm.applies (looked l fm ws)
  then fm.unfit
         (match fm.beside with
          | Some k ->
            if l.flows (fst (s.fixed.sets k)) fm.tells
            then snd (s.fixed.sets k)
            else []
          | None -> []) (combine (looked l fm ws) (map chosen0 fm.looks_at))
         (map (fun i -> strip l (argument_at l ws i)) fm.looks_at)
  else None

(** val told_by : lattice -> form -> lval list -> label **)

let told_by l fm ws =
  if fm.applies (looked l fm ws) then fm.tells else l.bot

(** val misformed :
    lattice -> state -> lval list -> form list -> (label * string) option **)

let rec misformed l s ws = function
| [] -> None
| fm :: rest ->
  (match found_unfit l fm s (fun _ -> false) ws with
   | Some m -> Some ((l.join (joins l (looked l fm ws)) fm.tells), m)
   | None -> misformed l s ws rest)

(** val told_of : lattice -> form list -> lval list -> label **)

let told_of l fms ws =
  joins l (map (fun fm -> told_by l fm ws) fms)

(** val channel_of : lattice -> label list -> lval list -> label **)

let rec channel_of l bounds = function
| [] -> l.bot
| _ :: vs' -> l.join (hd l.bot bounds) (channel_of l (tl bounds) vs')

(** val argument :
    lattice -> label -> label -> string list -> lval list -> string -> lval **)

let argument l m l0 fs vs p =
  match position p fs with
  | Some i ->
    (match nth_error vs i with
     | Some v -> raise l m v
     | None -> Lab (l0, (VK KNull)))
  | None -> Lab (l0, (VK KNull))

(** val arguments : lattice -> label -> string list -> lval -> lval list **)

let arguments l m ps v = match v with
| Lab (l0, v0) ->
  (match v0 with
   | VCon (c, vs) ->
     (match c with
      | CRec fs ->
        (match ps with
         | [] -> map (argument l l0 l0 fs vs) ps
         | p :: l1 ->
           (match l1 with
            | [] ->
              (match position p fs with
               | Some _ -> (argument l l0 l0 fs vs p) :: []
               | None -> v :: [])
            | _ :: _ -> map (argument l l0 l0 fs vs) ps))
      | CArgs (_, fs) -> map (argument l m l0 fs vs) ps
      | _ ->
        (match ps with
         | [] -> map (fun _ -> Lab (l0, (VK KNull))) ps
         | _ :: l1 ->
           (match l1 with
            | [] -> v :: []
            | _ :: _ -> map (fun _ -> Lab (l0, (VK KNull))) ps)))
   | _ ->
     (match ps with
      | [] -> map (fun _ -> Lab (l0, (VK KNull))) ps
      | _ :: l1 ->
        (match l1 with
         | [] -> v :: []
         | _ :: _ -> map (fun _ -> Lab (l0, (VK KNull))) ps)))

(** val refusal :
    lattice -> host -> label -> label -> request -> state -> string option **)

let refusal l h ch l0 r s =
  h.refuses r (visible l ch (visible l l0 s.tr))

(** val stamp : lattice -> label -> lval list -> part_label -> label **)

let stamp l l0 before p =
  let ws = map (argument_at l before) p.named in
  l.join l0
    (l.join (joins l (map (deep_label l) ws)) (p.says (map (strip l) ws)))

(** val filled :
    lattice -> (int list -> label -> lval) -> int list -> label -> lval list
    -> part_label list -> lval list **)

let rec filled l fl path l0 before = function
| [] -> before
| p :: rest ->
  filled l fl path l0
    (app before
      ((fl (app path ((length before) :: [])) (stamp l l0 before p)) :: []))
    rest

(** val fill :
    lattice -> host -> int -> name -> data list -> string -> event list ->
    int list -> label -> lval **)

let rec fill l h n f args k t path l0 =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> Lab (l0, (VK KNull)))
    (fun n' ->
    match h.content f args k path (visible l l0 t) with
    | AScalar x -> Lab (l0, (VK x))
    | AParts (c, labels, order) ->
      Lab (l0, (VCon ((plain c),
        (map
          (argument_at l
            (filled l (fill l h n' f args k t) path l0 [] labels)) order)))))
    n

(** val lasting : lattice -> host -> name -> 'a1 list -> 'a1 list **)

let lasting _ h f xs =
  map snd
    (filter (fun p -> negb (existsb ((=) (fst p)) (h.completes f)))
      (combine (seq 0 (length xs)) xs))

(** val perform :
    lattice -> host -> label -> label -> label -> name -> data list -> data
    list -> string -> label -> state -> result **)

let perform l h u d e f args kept k ch s =
  let r = h.tool_res f in
  let s' =
    log l ch (RTool (f, args, k)) (log l (l.join ch u) (RDecided (f, u)) s)
  in
  (match refusal l h ch (l.join d r) (RTool (f, args, k)) s with
   | Some m -> ((Err ((l.join d r), m)), s')
   | None ->
     let own = h.states f kept k (visible l r s.tr) in
     let l0 = l.join (l.join d r) own in
     (match if h.completed f args k (visible l (l.join r own) s.tr)
            then h.tool f kept k (visible l (l.join r own) s.tr)
            else None with
      | Some n ->
        let v = fill l h n f kept k s.tr [] (l.join (l.join e r) own) in
        (match h.misfit f (strip l v) with
         | Some m -> ((Err ((l.join l0 (deep_label l v)), m)), s')
         | None -> ((Val v), s'))
      | None ->
        let m = h.most f args in
        ((Err ((l.join l0 m),
        (h.failure f args k (visible l (l.join (l.join r own) m) s.tr)))), s')))

(** val confirmed :
    lattice -> factoring -> host -> label -> label -> label -> name -> bool
    -> data list -> state -> result **)

let confirmed l f h pc u d f0 asked args s =
  let l0 = l.join d (h.tool_res f0) in
  accept l h (if asked then l.join pc (mix l f Endorse l.bot l0) else l0)
    (nth 0 args (DK KNull)) (log l u (RDecided (f0, u)) s)

(** val approval :
    lattice -> host -> label -> label -> name -> bool -> data list -> label
    list -> label -> state -> (state -> result) -> result **)

let approval l h d l0 f asked args labels ch s k =
  if asked
  then let q0 = RApprove (f, args, labels) in
       (match refusal l h (l.join ch d) l0 q0 s with
        | Some m -> ((Err (l0, m)), (log l (l.join ch d) q0 s))
        | None -> k (log l (l.join ch d) q0 s))
  else k s

(** val shown : lattice -> host -> label -> label -> lval -> label -> lval **)

let shown l h pc l0 v lw =
  Lab (pc, (VCon ((CRec ("value" :: ("label" :: []))), (v :: ((Lab
    ((l.join l0 lw), (wrap l (h.from_label lw)))) :: [])))))

(** val all_shown :
    lattice -> host -> label -> label -> lval list -> label list -> lval list **)

let rec all_shown l h pc l0 vs lws =
  match vs with
  | [] -> []
  | v :: vs' ->
    (shown l h pc l0 v (hd l.bot lws)) :: (all_shown l h pc l0 vs' (tl lws))

(** val described :
    lattice -> host -> label -> label -> name -> lval list -> label list ->
    lval **)

let described l h pc l0 f vs lws =
  Lab (pc, (VCon ((CRec (h.tool_params f)), (all_shown l h pc l0 vs lws))))

(** val decide :
    lattice -> factoring -> host -> (label -> lval list -> state -> term ->
    result) -> label -> label -> name -> lval list -> label list -> label ->
    state -> (label -> state -> result) -> result **)

let decide l f h ev pc l0 f0 vs lws ch s k =
  match h.tool_policy f0 with
  | Some p ->
    bind l
      (restore l s.cv
        (ev pc ((described l h pc l0 f0 vs lws) :: [])
          (set_conv l { clab = pc; msgs = []; later = []; told = 0 } s) (EApp
          (p, (EVar 0))))) (fun w s1 ->
      let d = l.join pc (deep_label l w) in
      if admits l f h f0 d ch
      then (match strip l w with
            | DK k0 ->
              (match k0 with
               | KBool b ->
                 if b
                 then k d s1
                 else ((Err (d, "the tool's policy refuses the call")), s1)
               | _ -> ((Err (d, "the tool's policy refuses the call")), s1))
            | _ -> ((Err (d, "the tool's policy refuses the call")), s1))
      else ((Err (d, "what the tool's policy says is seen by too many")), s1))
  | None -> k pc s

(** val counted :
    lattice -> label -> name -> data list -> state -> (state -> result) ->
    result **)

let counted _ u f args s k =
  if s.fixed.stops f u args s.tr then (Out, s) else k s

(** val endorses : lattice -> host -> name -> bool **)

let endorses _ h f =
  (||) (h.approve f) (match h.among f with
                      | [] -> false
                      | _ :: _ -> true)

(** val clean :
    lattice -> factoring -> host -> name -> state -> label list -> lval list
    -> bool **)

let clean l f h f0 s bounds ws =
  forallb (fun i ->
    (||) (l.flows (deep_label l (argument_at l ws i)) (bound_at l bounds i))
      (chosen_from l f h f0 s bounds ws i)) (seq 0 (length ws))

(** val taken_from :
    lattice -> factoring -> host -> name -> state -> label list -> lval list
    -> int -> chooser option **)

let taken_from l f h f0 s bounds ws i =
  find (fun c -> (&&) (about l i c) (admitted l f s bounds ws c)) (h.among f0)

(** val noted :
    lattice -> factoring -> host -> name -> state -> label list -> lval list
    -> int -> bool **)

let noted l f h f0 s bounds ws i =
  existsb (fun j ->
    (&&)
      (negb
        (l.flows (deep_label l (argument_at l ws j)) (bound_at l bounds j)))
      (match taken_from l f h f0 s bounds ws j with
       | Some c -> about l i c
       | None -> false)) (seq 0 (length ws))

(** val formed :
    lattice -> factoring -> host -> name -> state -> label list -> lval list
    -> lval list -> bool **)

let formed l f h f0 s bounds ns ws =
  forallb (fun fm ->
    match found_unfit l fm s (noted l f h f0 s bounds ns) ws with
    | Some _ -> false
    | None -> true) (h.asking f0)

(** val sets_label : lattice -> host -> name -> state -> label **)

let sets_label l h f s =
  joins l (map (fun c -> fst (s.fixed.sets c.from)) (h.among f))

(** val named_parts : lattice -> host -> name -> lval -> bool **)

let named_parts _ h f = function
| Lab (_, v0) ->
  (match v0 with
   | VCon (c, _) ->
     (match c with
      | CRec fs ->
        (match h.tool_params f with
         | [] -> true
         | p :: l ->
           (match l with
            | [] -> (match position p fs with
                     | Some _ -> true
                     | None -> false)
            | _ :: _ -> true))
      | CArgs (_, _) -> true
      | _ -> false)
   | _ -> false)

(** val lasts : lattice -> host -> name -> lval -> bool **)

let lasts l h f v =
  match h.completes f with
  | [] -> false
  | _ :: _ -> named_parts l h f v

(** val kept_label :
    lattice -> host -> name -> label -> lval -> lval list -> label **)

let kept_label l h f d v ws =
  if lasts l h f v
  then l.join (label_of l v)
         (l.join (joins l (map (deep_label l) (lasting l h f ws)))
           (told_of l
             (filter (fun fm ->
               negb
                 (existsb (fun i -> existsb ((=) i) (h.completes f))
                   fm.looks_at)) (app (h.forms f) (h.asking f))) ws))
  else d

(** val foreign : lattice -> name -> lval -> bool **)

let foreign _ f = function
| Lab (_, v0) ->
  (match v0 with
   | VCon (c, _) -> (match c with
                     | CArgs (g, _) -> negb ((=) f g)
                     | _ -> false)
   | _ -> false)

(** val called :
    lattice -> factoring -> host -> (label -> lval list -> state -> term ->
    result) -> label -> name -> lval -> string -> state -> result **)

let called l f h ev pc f0 v k s =
  let l0 = label_of l v in
  let planned = admits l f h f0 l0 (h.tool_pc f0) in
  let m = if planned then l0 else h.tool_pc f0 in
  let vs = arguments l l0 (h.tool_params f0) v in
  let ws = arguments l (if planned then l.bot else l0) (h.tool_params f0) v in
  let ns =
    arguments l (if l.flows l0 (h.tool_pc f0) then l.bot else l0)
      (h.tool_params f0) v
  in
  let ch = l.join (h.tool_pc f0) (channel_of l (h.tool_args f0) vs) in
  let u = l.join pc l0 in
  if admits l f h f0 pc (h.tool_pc f0)
  then if foreign l f0 v
       then ((Err ((l.join pc (deep_label l v)),
              "the arguments of another tool")), s)
       else (match refused l f h f0 s (h.tool_args f0) ws with
             | Some b ->
               ((Err
                 ((l.join pc
                    (l.join m
                      (l.join b (if endorses l h f0 then h.anyone else l.bot)))),
                 "argument refused by the tool's bound")), s)
             | None ->
               (match h.tool_accepts f0 (strip l v) with
                | Some m0 -> ((Err ((l.join pc (deep_label l v)), m0)), s)
                | None ->
                  (match misformed l s ws (h.forms f0) with
                   | Some p ->
                     let (b, m0) = p in
                     ((Err ((l.join pc (l.join l0 b)), m0)), s)
                   | None ->
                     decide l f h ev pc l0 f0 vs (map (deep_label l) ws) ch s
                       (fun v0 s1 ->
                       let q0 =
                         if h.if_refused f0
                         then sets_label l h f0 s1
                         else l.bot
                       in
                       let g =
                         l.join (deep_label l v)
                           (told_of l (app (h.forms f0) (h.asking f0)) ws)
                       in
                       let d =
                         l.join (l.join v0 g)
                           (if h.confirms f0 then q0 else l.bot)
                       in
                       let asked =
                         (&&) (h.approve f0)
                           (negb
                             ((&&)
                               ((&&)
                                 ((&&) (h.if_refused f0)
                                   (l.flows pc (h.tool_pc f0)))
                                 (clean l f h f0 s1 (h.tool_args f0) ns))
                               (formed l f h f0 s1 (h.tool_args f0) ns ws)))
                       in
                       let args = map (strip l) vs in
                       counted l u f0 args s1 (fun s2 ->
                         approval l h d
                           (l.join (l.join d (h.tool_res f0)) q0) f0 asked
                           args
                           (map (fun w -> l.join l0 (deep_label l w)) ws)
                           (if h.confirms f0 then l.bot else ch) s2
                           (fun s3 ->
                           counted l u f0 args s3 (fun s4 ->
                             if h.confirms f0
                             then confirmed l f h pc u d f0 asked args s4
                             else perform l h u d
                                    (l.join v0 (kept_label l h f0 g v ws)) f0
                                    args
                                    (if lasts l h f0 v
                                     then lasting l h f0 args
                                     else args) k ch s4)))))))
  else ((Err (pc, "call refused by the tool's bound")), s)

(** val call :
    lattice -> factoring -> host -> (label -> lval list -> state -> term ->
    result) -> label -> name -> lval -> state -> result **)

let call l f h ev pc f0 v s =
  called l f h ev pc f0 v (h.tool_key f0 pc (visible l pc s.tr))
    (log l pc (RKey f0) s)

(** val apply :
    lattice -> factoring -> host -> (label -> lval list -> state -> term ->
    result) -> lval -> lval -> state -> result **)

let apply l f h ev v1 v2 s =
  let Lab (l0, v) = v1 in
  (match v with
   | VK _ -> ((Err ((deep_label l v1), "not a function")), s)
   | VCon (c, vs) ->
     (match c with
      | CFix n ->
        (match vs with
         | [] -> ((Err ((deep_label l v1), "not a function")), s)
         | vf :: l1 ->
           (match l1 with
            | [] ->
              (match n with
               | Some n0 ->
                 ((fun fO fS n -> if n=0 then fO () else fS (n-1))
                    (fun _ -> ((Val (raise l l0 v2)), s))
                    (fun n' ->
                    ev l0 (vf :: ((Lab (l0, (VCon ((CFix (Some n')),
                      (vf :: []))))) :: (v2 :: []))) s (EApp ((EApp ((EVar
                      0), (EVar (Stdlib.Int.succ 0)))), (EVar
                      (Stdlib.Int.succ (Stdlib.Int.succ 0))))))
                    n0)
               | None ->
                 ev l0 (vf :: ((Lab (l0, (VCon ((CFix None),
                   (vf :: []))))) :: (v2 :: []))) s (EApp ((EApp ((EVar 0),
                   (EVar (Stdlib.Int.succ 0)))), (EVar (Stdlib.Int.succ
                   (Stdlib.Int.succ 0))))))
            | _ :: _ -> ((Err ((deep_label l v1), "not a function")), s)))
      | CTool f0 -> call l f h ev l0 f0 (raise l l0 v2) s
      | _ -> ((Err ((deep_label l v1), "not a function")), s))
   | VClo (env, e) -> ev l0 (v2 :: env) s e)

(** val do_send : lattice -> host -> label -> lval -> state -> result **)

let do_send l h pc v s =
  let lc = s.cv.clab in
  if l.flows pc lc
  then ((Val (Lab (pc, (unit_val l)))),
         (set_conv l { clab = (l.join lc (deep_label l v)); msgs =
           (app s.cv.msgs ((h.serialize (strip l v)) :: [])); later =
           s.cv.later; told = s.cv.told } s))
  else ((Err ((l.join pc lc), "send refused")), s)

(** val say : lattice -> string -> state -> state **)

let say l m s =
  set_conv l { clab = s.cv.clab; msgs = (app s.cv.msgs (m :: [])); later =
    s.cv.later; told = s.cv.told } s

(** val expect : lattice -> string list -> state -> state **)

let expect l ms s =
  set_conv l { clab = s.cv.clab; msgs = s.cv.msgs; later = ms; told =
    s.cv.told } s

(** val tell : lattice -> state -> state **)

let tell l s =
  match s.remarks with
  | [] -> s
  | m :: _ ->
    let c = s.cv in
    let n = length s.remarks in
    if (=) c.told n
    then s
    else set_conv l { clab = c.clab; msgs = (app c.msgs (m :: [])); later =
           c.later; told = n } s

(** val question :
    lattice -> host -> label -> name -> state -> (string -> state -> result)
    -> result **)

let question l h pc m s k =
  let lc = s.cv.clab in
  let s1 = expect l [] (log l lc (RModel (m, s.cv.msgs)) s) in
  (match refusal l h lc (l.join pc lc) (RModel (m, s.cv.msgs)) s with
   | Some e -> ((Err ((l.join pc lc), e)), s1)
   | None ->
     (match h.model m s.cv.msgs (visible l lc s.tr) with
      | Inl reply -> k reply (expect l (h.further m reply) (say l reply s1))
      | Inr e -> ((Err ((l.join pc lc), e)), s1)))

(** val ask :
    lattice -> host -> label -> name -> state -> (string -> state -> result)
    -> result **)

let ask l h pc m s k =
  question l h pc m (tell l s) k

(** val listen :
    lattice -> host -> label -> name -> state -> (string -> state -> result)
    -> result **)

let listen l h pc m s k =
  match if h.offers m then s.cv.later else [] with
  | [] ->
    (match h.unasked m with
     | Some nothing -> k nothing s
     | None -> ask l h pc m s k)
  | reply :: rest -> k reply (expect l rest (say l reply s))

(** val run_reply :
    lattice -> host -> (label -> lval list -> state -> term -> result) ->
    label -> string -> state -> result **)

let run_reply l h ev lc reply s =
  let failed = fun m -> ((Val (Lab (lc, (VCon (CList, ((Lab (lc, (VK (KBool
    false)))) :: ((Lab (lc, (VK (KStr m)))) :: []))))))), s)
  in
  (match h.parse reply with
   | Inl e ->
     if permits h.policy e
     then bind l (ev lc h.prelude s e) (fun v s' -> ((Val (Lab (lc, (VCon
            (CList, ((Lab (lc, (VK (KBool true)))) :: (v :: []))))))), s'))
     else failed "generated code may not reclassify"
   | Inr m -> failed m)

(** val recv_data :
    lattice -> host -> label -> name -> int -> state -> result **)

let rec recv_data l h pc m n s =
  listen l h pc m s (fun reply s1 ->
    let lc = s.cv.clab in
    (match h.decode m reply with
     | Inl d -> accept l h (l.join pc lc) d s1
     | Inr e ->
       ((fun fO fS n -> if n=0 then fO () else fS (n-1))
          (fun _ -> ((Err ((l.join pc lc), e)), (expect l [] s1)))
          (fun n' -> recv_data l h pc m n' (say l e (expect l [] s1)))
          n)))

(** val do_recv :
    lattice -> host -> (label -> lval list -> state -> term -> result) ->
    label -> name -> mode -> state -> result **)

let do_recv l h ev pc m md s =
  let lc = s.cv.clab in
  if l.flows pc lc
  then if l.flows lc (h.clearance m)
       then (match md with
             | AsCode ->
               ask l h pc m s (fun reply s1 -> run_reply l h ev lc reply s1)
             | AsData n -> recv_data l h pc m n s)
       else ((Err ((l.join pc lc),
              "the model is not cleared for this conversation")), s)
  else ((Err ((l.join pc lc), "recv refused")), s)

(** val do_clear : lattice -> label -> state -> result **)

let do_clear l pc s =
  if l.flows pc s.cv.clab
  then ((Val (Lab (pc, (unit_val l)))),
         (set_conv l { clab = pc; msgs = []; later = []; told = 0 } s))
  else ((Err ((l.join pc s.cv.clab), "clear refused")), s)

(** val do_fork :
    lattice -> (label -> lval list -> state -> term -> result) -> label ->
    lval list -> state -> term -> result **)

let do_fork l ev pc env s e =
  let c = s.cv in
  restore l c
    (ev pc env
      (set_conv l { clab = (l.join c.clab pc); msgs = c.msgs; later =
        c.later; told = c.told } s) e)

(** val do_fresh :
    lattice -> (label -> lval list -> state -> term -> result) -> label ->
    lval list -> state -> term -> result **)

let do_fresh l ev pc env s e =
  restore l s.cv
    (ev pc env (set_conv l { clab = pc; msgs = []; later = []; told = 0 } s)
      e)

(** val do_remember :
    lattice -> host -> label -> name -> lval -> state -> result **)

let do_remember l h pc k v s =
  let lk = h.key_label k in
  if l.flows (l.join pc (deep_label l v)) lk
  then if h.has_type (h.key_type k) (strip l v)
       then (match refusal l h lk lk (RRemember (k, (strip l v))) s with
             | Some m ->
               ((Err (lk, m)), (log l lk (RRemember (k, (strip l v))) s))
             | None ->
               let s' = log l lk (RRemember (k, (strip l v))) s in
               let time = h.now lk (visible l lk s.tr) in
               ((Val (Lab (pc, (unit_val l)))),
               (set_account l lk
                 (h.keep lk time ((k, (time,
                   (strip l v))) :: (without k (present l h lk s)))) s')))
       else ((Err ((l.join pc (deep_label l v)), "not of the key's type")), s)
  else ((Err ((l.join pc lk), "remember refused")), s)

(** val do_recall : lattice -> host -> label -> name -> state -> result **)

let do_recall l h pc k s =
  let lk = h.key_label k in
  let l0 = l.join pc lk in
  let s' = log l l0 (RRecall k) s in
  (match refusal l h l0 l0 (RRecall k) s with
   | Some m -> ((Err (l0, m)), s')
   | None ->
     (match entry k (present l h lk s) with
      | Some p ->
        let (t, d) = p in
        accept l h l0 d
          (if l.flows pc lk
           then set_account l lk ((k, (t,
                  d)) :: (without k (present l h lk s))) s'
           else s')
      | None -> ((Val (Lab (l0, (VK KNull)))), s')))

(** val do_try :
    lattice -> host -> (label -> lval list -> state -> term -> result) ->
    bool -> label -> lval list -> state -> term -> term -> result **)

let do_try l h ev all pc env s e1 e2 =
  let (o, s') = ev pc env s e1 in
  (match o with
   | Err (l0, m) ->
     if (&&) (l.flows l0 pc) ((||) all (negb (h.is_timeout m)))
     then ev pc ((Lab (l0, (VK (KStr m)))) :: env) s' e2
     else ((Err (l0, m)), s')
   | x -> (x, s'))

(** val close : lattice -> label -> result -> result **)

let close l pc = function
| (o, s) ->
  (match o with
   | Val v -> ((Val v), (log l pc REnd s))
   | Err (l0, m) ->
     ((Err (l0, m)), (if l.flows l0 pc then log l pc REnd s else s))
   | Out -> (Out, s))

(** val do_within :
    lattice -> (label -> lval list -> state -> term -> result) -> q -> label
    -> lval list -> state -> term -> result **)

let do_within l ev n pc env s e =
  close l pc (ev pc env (log l pc (RWithin n) s) e)

(** val pars :
    lattice -> (label -> lval list -> state -> term -> result) -> label ->
    lval list -> lval list -> state -> term list -> result **)

let rec pars l ev pc env acc s = function
| [] -> ((Val (Lab (pc, (VCon (CList, (rev acc)))))), s)
| e :: es' ->
  let (o, s') = do_fork l ev pc env s e in
  (match o with
   | Val v -> pars l ev pc env (v :: acc) s' es'
   | Err (l0, m) ->
     if l.flows l0 pc
     then let (o0, s'') = pars l ev pc env acc s' es' in
          (match o0 with
           | Val _ -> ((Err (l0, m)), s'')
           | Err (l', m') ->
             if l.flows l' pc
             then ((Err (l0, m)), s'')
             else ((Err (l', m')), s'')
           | Out -> (Out, s''))
     else ((Err (l0, m)), s')
   | Out -> (Out, s'))

(** val applications : int -> term list **)

let applications n =
  map (fun i -> EApp ((EVar 0), (EVar (Stdlib.Int.succ i)))) (seq 0 n)

(** val do_each :
    lattice -> (label -> lval list -> state -> term -> result) -> label ->
    lval -> lval -> state -> result **)

let do_each l ev pc v1 v2 s =
  let Lab (l0, v) = v2 in
  (match v with
   | VCon (c, ws) ->
     (match c with
      | CList ->
        pars l ev (l.join pc l0) (v1 :: ws) [] s (applications (length ws))
      | _ -> ((Err ((l.join pc (deep_label l v2)), "not a list")), s))
   | _ -> ((Err ((l.join pc (deep_label l v2)), "not a list")), s))

(** val verdict :
    lattice -> label -> lval -> lval -> state -> (label -> result) -> result **)

let verdict l pc v vb s again =
  let pc' = l.join pc (label_of l vb) in
  let Lab (_, v0) = vb in
  (match v0 with
   | VK k ->
     (match k with
      | KBool b -> if b then ((Val (raise l pc' v)), s) else again pc'
      | _ -> ((Err (pc', "the predicate of a guard must give a boolean")), s))
   | _ -> ((Err (pc', "the predicate of a guard must give a boolean")), s))

(** val is_function : lattice -> val0 -> bool **)

let is_function _ = function
| VK _ -> false
| VCon (c, _) -> (match c with
                  | CFix _ -> true
                  | CTool _ -> true
                  | _ -> false)
| VClo (_, _) -> true

(** val guarded : lattice -> label -> lval -> lval -> int -> lval **)

let guarded _ l v vp k =
  Lab (l, (VClo ((v :: (vp :: [])), (EGuard ((EApp ((EVar (Stdlib.Int.succ
    0)), (EVar 0))), (EVar (Stdlib.Int.succ (Stdlib.Int.succ 0))), k)))))

(** val reason : lattice -> host -> label -> lval -> lval -> string **)

let reason l h pc vp v =
  if l.flows (l.join (deep_label l vp) (deep_label l v)) pc
  then h.remark (strip l vp) (strip l v)
  else ""

(** val forgotten : lattice -> label -> string list -> state -> state **)

let forgotten l pc ms s =
  let c = s.cv in
  set_remarks l ms
    (if (&&) (l.flows pc c.clab) (negb ((<=) c.told (length ms)))
     then set_conv l { clab = c.clab; msgs = c.msgs; later = c.later; told =
            0 } s
     else s)

(** val forget : lattice -> label -> string list -> result -> result **)

let forget l pc ms r =
  ((fst r), (forgotten l pc ms (snd r)))

(** val retry :
    lattice -> label -> string -> state -> (state -> result) -> result **)

let retry l pc m s attempt =
  forget l pc s.remarks (attempt (set_remarks l (m :: s.remarks) s))

(** val judge :
    lattice -> host -> (label -> lval list -> state -> term -> result) ->
    lval list -> term -> int -> label -> lval -> state -> (label -> string ->
    state -> result) -> result **)

let judge l h ev env p k pc v s again =
  bind l (ev pc env s p) (fun vp s2 ->
    if is_function l (let Lab (_, v0) = v in v0)
    then ((Val (guarded l pc v vp k)), s2)
    else bind l
           (ev pc (vp :: (v :: [])) s2 (EApp ((EVar 0), (EVar
             (Stdlib.Int.succ 0))))) (fun vb s3 ->
           verdict l pc v vb s3 (fun pc' ->
             again pc' (reason l h pc' vp v) s3)))

(** val guard :
    lattice -> host -> (label -> lval list -> state -> term -> result) ->
    lval list -> term -> term -> int -> int -> label -> state -> result **)

let rec guard l h ev env e p k n pc s =
  bind l (ev pc env s e) (fun v s1 ->
    judge l h ev env p k (l.join pc (label_of l v)) v s1 (fun pc' m s3 ->
      (fun fO fS n -> if n=0 then fO () else fS (n-1))
        (fun _ -> ((Err ((l.join pc' (deep_label l v)), "guard failed")),
        s3))
        (fun n' -> retry l pc' m s3 (guard l h ev env e p k n' pc'))
        n))

(** val eval :
    lattice -> factoring -> host -> int -> label -> lval list -> state ->
    term -> result **)

let rec eval l f h n pc env s e =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> (Out, s))
    (fun n' ->
    let ev = eval l f h n' in
    (match e with
     | EVar i ->
       (match nth_error env i with
        | Some v -> ((Val (raise l pc v)), s)
        | None -> ((Err (pc, "unbound variable")), s))
     | ELam b -> ((Val (Lab (pc, (VClo ((capture l env b), b))))), s)
     | EApp (e1, e2) ->
       bind l (ev pc env s e1) (fun v1 s1 ->
         bind l (ev pc env s1 e2) (fun v2 s2 -> apply l f h ev v1 v2 s2))
     | EK k -> ((Val (Lab (pc, (VK k)))), s)
     | ECon (c, es) ->
       bind l (evals l ev pc env c [] s es) (fun v s' -> ((Val v),
         (prepare l c v s')))
     | EGet (e1, e2) ->
       bind l (ev pc env s e1) (fun v1 s1 ->
         bind l (ev pc env s1 e2) (fun v2 s2 -> ((do_get l h pc v1 v2), s2)))
     | ESet (e1, e2, e3) ->
       bind l (ev pc env s e1) (fun v1 s1 ->
         bind l (ev pc env s1 e2) (fun v2 s2 ->
           bind l (ev pc env s2 e3) (fun v3 s3 -> ((do_set l pc v1 v2 v3),
             s3))))
     | EPrim (p, e1) ->
       bind l (ev pc env s e1) (fun v s1 -> primitive l h pc p v s1)
     | ECase (e1, bs, d) ->
       bind l (ev pc env s e1) (fun v s1 ->
         let Lab (l0, v0) = v in
         (match chosen l v0 bs d with
          | Some e2 -> ev (l.join pc l0) env s1 e2
          | None ->
            ((Err ((l.join pc (deep_label l v)), "no branch matches")), s1)))
     | EGuard (e1, p, k) -> guard l h ev env e1 p k k pc s
     | EChoose (p, e1, e2) ->
       let s' = log l pc (RSample p) s in
       (match refusal l h pc pc (RSample p) s with
        | Some m -> ((Err (pc, m)), s')
        | None ->
          if h.sample p (visible l pc s.tr)
          then ev pc env s' e1
          else ev pc env s' e2)
     | ECall (f0, e1) ->
       bind l (ev pc env s e1) (fun v s1 -> call l f h ev pc f0 v s1)
     | ERecall k -> do_recall l h pc k s
     | ERemember (k, e1) ->
       bind l (ev pc env s e1) (fun v s1 -> do_remember l h pc k v s1)
     | ESend e1 -> bind l (ev pc env s e1) (fun v s1 -> do_send l h pc v s1)
     | ERecv (m, md) -> do_recv l h ev pc m md s
     | EFork e1 -> do_fork l ev pc env s e1
     | EFresh e1 -> do_fresh l ev pc env s e1
     | EClear -> do_clear l pc s
     | ELab (e1, e2) ->
       with_label l h ev pc env s e1 (fun n0 l0 s1 ->
         ev (l.join pc (l.join n0 l0)) env s1 e2)
     | ETest (e1, e2) ->
       with_label l h ev pc env s e1 (fun n0 l0 s1 ->
         bind l (ev (l.join pc n0) env s1 e2) (fun v s2 -> ((Val (Lab
           ((l.join pc (l.join n0 l0)), (VK (KBool
           (l.flows (label_of l v) l0)))))), s2)))
     | EAssert (e1, e2) ->
       with_label l h ev pc env s e1 (fun n0 l0 s1 ->
         bind l (ev pc env s1 e2) (fun v s2 ->
           if (&&) (l.flows n0 pc) (l.flows (label_of l v) l0)
           then ((Val (Lab (pc, (unit_val l)))), s2)
           else ((Err ((l.join pc (l.join n0 l0)), "assertion failed")), s2)))
     | EReclass (ax, e1, e2) ->
       with_label l h ev pc env s e1 (fun n0 l0 s1 ->
         bind l (ev (l.join pc n0) env s1 e2) (fun v s2 ->
           let Lab (l2, v0) = v in
           ((Val (Lab ((l.join pc (l.join n0 (mix l f ax l0 l2))), v0))), s2)))
     | ETry (all, e1, e2, e3) ->
       with_label l h ev pc env s e1 (fun n0 l0 s1 ->
         do_try l h ev all (l.join pc (l.join n0 l0)) env s1 e2 e3)
     | EWithin (q0, e1) -> do_within l ev q0 pc env s e1
     | EFail e1 ->
       bind l (ev pc env s e1) (fun v s1 -> ((Err
         ((l.join pc (deep_label l v)), (h.serialize (strip l v)))), s1))
     | ECheck (t, e1) ->
       bind l (ev pc env s e1) (fun v s1 ->
         if h.has_type t (strip l v)
         then ((Val v), s1)
         else ((Err ((l.join pc (deep_label l v)), "not of the type")), s1))
     | EPar es -> pars l ev pc env [] s es
     | EEach (e1, e2) ->
       bind l (ev pc env s e1) (fun v1 s1 ->
         bind l (ev pc env s1 e2) (fun v2 s2 -> do_each l ev pc v1 v2 s2))))
    n

(** val initial : lattice -> frame -> (label -> account) -> state **)

let initial l fr st =
  { cv = { clab = l.bot; msgs = []; later = []; told = 0 }; store = st; tr =
    []; remarks = []; fixed = fr }

type step =
| SField of string
| SEach
| SKeys

(** val values_at : data -> step list -> data list **)

let rec values_at d path =
  match d with
  | DCon (c, ds) ->
    (match c with
     | CList -> flat_map (fun d0 -> values_at d0 path) ds
     | CRec fs ->
       (match path with
        | [] -> d :: []
        | s :: rest ->
          (match s with
           | SField f ->
             let rec at_field fs0 = function
             | [] -> []
             | x :: ds' ->
               (match fs0 with
                | [] -> []
                | g :: fs' ->
                  if (=) f g then values_at x rest else at_field fs' ds')
             in at_field fs ds
           | SEach -> flat_map (fun d0 -> values_at d0 rest) ds
           | SKeys -> map (fun f -> DK (KStr f)) fs))
     | _ -> (match path with
             | [] -> d :: []
             | _ :: _ -> []))
  | _ -> (match path with
          | [] -> d :: []
          | _ :: _ -> [])

(** val each_of : int -> (data -> bool) -> data -> bool **)

let each_of longest good d =
  (||) (good d)
    (match d with
     | DCon (c, ds) ->
       (match c with
        | CList ->
          (&&)
            ((&&) ((<=) (Stdlib.Int.succ 0) (length ds))
              ((<=) (length ds) longest)) (forallb good ds)
        | _ -> false)
     | _ -> false)

(** val one_of :
    (data -> data -> bool) -> int -> data list -> data -> bool **)

let one_of equal longest vs d =
  each_of longest (fun d0 -> existsb (equal d0) vs) d

(** val of_items :
    (data -> data -> bool) -> int -> (data -> data list) list -> data list ->
    data list -> bool **)

let of_items equal longest paths items ds =
  match paths with
  | [] ->
    existsb (fun item ->
      forallb (fun p -> one_of equal longest (fst p item) (snd p))
        (combine paths ds)) items
  | path :: l ->
    (match l with
     | [] ->
       (match ds with
        | [] ->
          existsb (fun item ->
            forallb (fun p -> one_of equal longest (fst p item) (snd p))
              (combine paths ds)) items
        | d :: l0 ->
          (match l0 with
           | [] -> one_of equal longest (flat_map path items) d
           | _ :: _ ->
             existsb (fun item ->
               forallb (fun p -> one_of equal longest (fst p item) (snd p))
                 (combine paths ds)) items))
     | _ :: _ ->
       existsb (fun item ->
         forallb (fun p -> one_of equal longest (fst p item) (snd p))
           (combine paths ds)) items)

(** val from_items :
    lattice -> (data -> data -> bool) -> int -> name -> label option ->
    (int * (data -> data list)) list -> chooser **)

let from_items _ equal longest set who ps =
  { from = set; chosen_by = who; chosen_for = (map fst ps); holds =
    (of_items equal longest (map snd ps)) }

(** val closed_form : lattice -> int -> (data -> string option) -> form **)

let closed_form l i ok =
  { looks_at = (i :: []); beside = None; tells = l.bot; applies =
    (existsb (fun l0 -> negb (l.flows l0 l.bot))); unfit = (fun _ _ ds ->
    match ds with
    | [] -> None
    | d :: l0 -> (match l0 with
                  | [] -> ok d
                  | _ :: _ -> None)) }

(** val run : host -> int -> lval list -> state -> term -> result **)

let run h fuel env s e =
  eval two_by_two two_by_two_factoring h fuel two_by_two.bot env s e
