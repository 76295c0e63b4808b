(* Runs a program in the exchange form (docs/exchange.md) with the extracted
   interpreter, and prints how the run ends.

   Input, one JSON object on standard input:
     program  the code
     fuel     depth of evaluation (default 10000)
     answers  what the world answers, in the order of the requests:
              {"text": s} from a model; with "code" (a program) where the reply
              is read as code and parses, with "decoded" (data) or
              "undecoded" (a message) where it is read as data;
              "call" and "args" (data) where it calls a tool, or "refused" (a
              message) where it is code that may not be there;
              {"calls": [[tool, text, data], ...]} where it calls several;
              {"data": d} from a tool, with "label" where it states one;
              {"approved": true}; {"drawn": b}; {"failed": message};
              {"late": true}: a time limit has passed; from stores, which the
              interpreter keeps itself, nothing, {"found": false} where an entry
              is gone or never was, {"found": ..}, {"kept": ..},
              {"store_failed": message} or {"store_late": true}
     prelude  [[name, program], ...], each closed but for those before it
     evict    stores evict by the capacity of their declarations themselves, the
              entry used longest ago first; an answer {"found": b} that says
              otherwise ends the run (default false: an entry is gone where
              the answers say so)
     endorse, declassify   what generated code may do (default false)
     clearance  what models may see (default: everything)
     cut      the run is that of a record: it is followed as far as the answers
              are for what it asks.  Then all later requests fail, the trace is cut
              behind the first request without an answer, and the result is "open".
              The interpreter's own words in texts, those of errors, are printed as
              one character U+0005 (default false)

   Output, one JSON object: result, conversation_label, conversation, trace; in
   the trace a request has "within", the time limits around it, if there are any,
   and "names": what names those, and the draw if it is one.  A name is the way
   to the branch that it is in, and the label there with how many of its kind
   came before it at that label in that branch.
   A result "otherwise: .." says that the interpreter asks for something that
   the answers are not for.
   Exit status 3: the program uses something that this driver does not
   translate (the message says what); it is not a disagreement.

   With the argument --lines: an object on each line, an answer on each line;
   what is not translated is answered with {"unsupported": what}.
   With the argument --version: the version of this protocol, and which
   interpreter it is. *)

open Interp

let raise = Stdlib.raise                (* [Interp.raise] is about labels *)

exception Unsupported of string
let unsupported what = raise (Unsupported what)

(* The interpreter asks for something else than what was answered. *)
exception Otherwise of string
let otherwise what = raise (Otherwise what)

(* JSON *)

type json =
  | Null | Bool of bool | Number of string | String of string
  | Array of json list | Object of (string * json) list

exception Bad_json of string

let parse_json (s : string) : json =
  let n = String.length s in
  let pos = ref 0 in
  let fail what = raise (Bad_json (Printf.sprintf "%s at %d" what !pos)) in
  let peek () = if !pos < n then s.[!pos] else '\000' in
  let rec blank () =
    match peek () with ' ' | '\n' | '\t' | '\r' -> incr pos; blank () | _ -> () in
  let expect c = blank (); if peek () = c then incr pos else fail (Printf.sprintf "no `%c`" c) in
  let word w v =
    let l = String.length w in
    if !pos + l <= n && String.sub s !pos l = w then (pos := !pos + l; v) else fail "not JSON" in
  let text () =
    expect '"';
    let b = Buffer.create 16 in
    let rec go () =
      if !pos >= n then fail "unfinished text";
      match s.[!pos] with
      | '"' -> incr pos
      | '\\' ->
          incr pos;
          (match peek () with
           | 'n' -> Buffer.add_char b '\n' | 't' -> Buffer.add_char b '\t'
           | 'r' -> Buffer.add_char b '\r' | 'b' -> Buffer.add_char b '\b'
           | 'f' -> Buffer.add_char b '\012'
           | 'u' ->
               if !pos + 4 >= n then fail "unfinished escape";
               let hex at = match int_of_string_opt ("0x" ^ String.sub s at 4) with
                 | Some u -> u | None -> fail "no code point" in
               let u = hex (!pos + 1) in
               pos := !pos + 4;
               let u =
                 if u >= 0xD800 && u < 0xDC00 && !pos + 6 < n && s.[!pos + 1] = '\\' && s.[!pos + 2] = 'u' then begin
                   let low = hex (!pos + 3) in
                   pos := !pos + 6;
                   0x10000 + ((u - 0xD800) lsl 10) + (low - 0xDC00)
                 end else u in
               if Uchar.is_valid u then Buffer.add_utf_8_uchar b (Uchar.of_int u) else fail "no code point"
           | c -> Buffer.add_char b c);
          incr pos; go ()
      | c -> Buffer.add_char b c; incr pos; go () in
    go (); Buffer.contents b in
  let rec items close item =
    blank ();
    if peek () = close then (incr pos; []) else
      let x = item () in
      blank ();
      if peek () = ',' then (incr pos; x :: more close item)
      else (expect close; [ x ])
  and more close item =
    let x = item () in
    blank ();
    if peek () = ',' then (incr pos; x :: more close item) else (expect close; [ x ]) in
  let rec value () =
    blank ();
    match peek () with
    | '{' -> incr pos; Object (items '}' (fun () -> blank (); let k = text () in expect ':'; (k, value ())))
    | '[' -> incr pos; Array (items ']' value)
    | '"' -> String (text ())
    | 't' -> word "true" (Bool true)
    | 'f' -> word "false" (Bool false)
    | 'n' -> word "null" Null
    | '-' | '0' .. '9' ->
        let from = !pos in
        while (match peek () with '-' | '+' | '.' | 'e' | 'E' | '0' .. '9' -> true | _ -> false) do incr pos done;
        Number (String.sub s from (!pos - from))
    | _ -> fail "not JSON" in
  let v = value () in
  blank ();
  if !pos <> n then fail "text after the end";
  v

let quote s =
  let b = Buffer.create (String.length s + 2) in
  Buffer.add_char b '"';
  String.iter (function
    | '"' -> Buffer.add_string b "\\\"" | '\\' -> Buffer.add_string b "\\\\"
    | '\n' -> Buffer.add_string b "\\n" | '\r' -> Buffer.add_string b "\\r" | '\t' -> Buffer.add_string b "\\t"
    | c when Char.code c < 32 -> Buffer.add_string b (Printf.sprintf "\\u%04x" (Char.code c))
    | c -> Buffer.add_char b c) s;
  Buffer.add_char b '"';
  Buffer.contents b

let rec print_json = function
  | Null -> "null" | Bool b -> string_of_bool b | Number n -> n | String s -> quote s
  | Array l -> "[" ^ String.concat "," (List.map print_json l) ^ "]"
  | Object l -> "{" ^ String.concat "," (List.map (fun (k, v) -> quote k ^ ":" ^ print_json v) l) ^ "}"

let field k = function Object l -> List.assoc_opt k l | _ -> None
let need k j = match field k j with Some v -> v | None -> raise (Bad_json ("no " ^ k))
let text_of = function String s -> s | _ -> raise (Bad_json "not a text")
let list_of = function Array l -> l | _ -> raise (Bad_json "not a list")
let int_of = function
  | Number n -> (match int_of_string_opt n with Some i -> i | None -> unsupported ("number " ^ n))
  | _ -> raise (Bad_json "not a whole number")
let flag k j = match field k j with Some (Bool b) -> b | _ -> false

(* Numbers: exact, within OCaml's int. *)

let small = 1 lsl 30
let rec gcd a b = if b = 0 then a else gcd b (a mod b)
let within n = if n = min_int then unsupported "large number" else n
let ( *! ) a b =
  if (abs a < small && abs b < small) || a = 0 then a * b
  else if abs b > max_int / abs a then unsupported "large number"
  else a * b
let ( +! ) a b =
  let n = a + b in
  if (a >= 0) = (b >= 0) && (n >= 0) <> (a >= 0) then unsupported "large number" else within n
let ( -! ) a b = a +! - (within b)
let make n d =
  let n = within n and d = within d in
  let g = max 1 (gcd (abs n) (abs d)) in
  let n, d = if d < 0 then (-n, -d) else (n, d) in
  { qnum = n / g; qden = d / g }
let number_of (s : string) =
  let whole t = match int_of_string_opt t with Some i -> i | None -> unsupported ("number " ^ s) in
  match String.index_opt s '/', String.index_opt s '.' with
  | Some i, _ -> make (whole (String.sub s 0 i)) (whole (String.sub s (i + 1) (String.length s - i - 1)))
  | None, Some i ->
      let frac = String.sub s (i + 1) (String.length s - i - 1) in
      if String.length frac > 15 then unsupported ("number " ^ s);
      let scale = int_of_float (10. ** float (String.length frac)) in
      make (whole (String.sub s 0 i ^ frac)) scale
  | None, None -> make (whole s) 1
(* As docs/calculus.md writes numbers: a decimal where one is exact. *)
let number_text q =
  if q.qden = 1 then string_of_int q.qnum
  else begin
    let rec count d p n = if d mod p = 0 then count (d / p) p (n + 1) else (d, n) in
    let d, twos = count q.qden 2 0 in
    let d, fives = count d 5 0 in
    if d <> 1 then Printf.sprintf "%d/%d" q.qnum q.qden
    else begin
      let places = max twos fives in
      let rec power n = if n = 0 then 1 else 10 * power (n - 1) in
      if places > 18 then unsupported "large number";
      let scaled = abs q.qnum *! (power places / q.qden) in
      Printf.sprintf "%s%d.%0*d" (if q.qnum < 0 then "-" else "") (scaled / power places) places (scaled mod power places)
    end
  end

let number_json q =
  if q.qden = 1 && abs q.qnum <= 1 lsl 53 then Number (string_of_int q.qnum)
  else Object [ ("$num", String (number_text q)) ]

(* Data *)

let rec data_of (j : json) : data =
  match j with
  | Null -> DK KNull
  | Bool b -> DK (KBool b)
  | Number n -> DK (KNum (number_of n))
  | String s -> DK (KStr s)
  | Array l -> DCon (CList, List.map data_of l)
  | Object [ ("$num", String n) ] -> DK (KNum (number_of n))
  | Object [ ("$pair", Array [ a; b ]) ] -> DCon (CPair, [ data_of a; data_of b ])
  | Object [ ("$tag", Array [ String t; v ]) ] -> DCon (CVariant t, [ data_of v ])
  | Object [ ("$record", Array fs) ] ->
      let fs = List.map (function Array [ String k; v ] -> (k, v) | _ -> raise (Bad_json "record")) fs in
      DCon (CRec (List.map fst fs), List.map (fun (_, v) -> data_of v) fs)
  | Object fs -> DCon (CRec (List.map fst fs), List.map (fun (_, v) -> data_of v) fs)

let rec data_json (d : data) : json =
  match d with
  | DK KNull -> Null
  | DK (KBool b) -> Bool b
  | DK (KNum q) -> number_json q
  | DK (KStr s) -> String s
  | DK (KTag t) -> Object [ ("$tag", Array [ String t; Null ]) ]
  | DCon (CList, ds) -> Array (List.map data_json ds)
  | DCon (CPair, ds) -> Object [ ("$pair", Array (List.map data_json ds)) ]
  | DCon ((CRec fs | CArgs (_, fs)), ds) -> Object (List.map2 (fun k d -> (k, data_json d)) fs ds)
  | DCon (CVariant t, ds) -> Object [ ("$tag", Array (String t :: List.map data_json ds)) ]
  | DCon ((CFix _ | CTool _), _) | DClo _ -> String "<function>"

let rec serialize (d : data) : string =
  match d with DK (KStr s) -> s | d -> inner d
and inner d =
  match d with
  | DK KNull -> "null"
  | DK (KBool b) -> string_of_bool b
  | DK (KNum q) -> number_text q
  | DK (KStr s) -> quote s
  | DK (KTag t) -> "`" ^ t
  | DCon (CList, ds) -> "[" ^ String.concat "," (List.map inner ds) ^ "]"
  | DCon (CPair, ds) -> "(" ^ String.concat ", " (List.map inner ds) ^ ")"
  | DCon ((CRec fs | CArgs (_, fs)), ds) -> "{" ^ String.concat "," (List.map2 (fun k d -> quote k ^ ":" ^ inner d) fs ds) ^ "}"
  | DCon (CVariant t, [ DK KNull ]) -> "`" ^ t
  | DCon (CVariant t, ds) -> "`" ^ t ^ " " ^ String.concat " " (List.map inner ds)
  | DCon ((CFix _ | CTool _), _) | DClo _ -> "<function>"

(* Labels: (untrusted, secret). *)

let lab (u : bool) (s : bool) : label = Obj.magic (u, s)
let label_json (l : label) : json =
  let u, s = (Obj.magic l : bool * bool) in
  Array ((if u then [ String "U" ] else []) @ if s then [ String "S" ] else [])
let to_label (d : data) : label option =
  match d with
  | DCon (CList, ds) when List.for_all (function DK (KStr ("U" | "S")) -> true | _ -> false) ds ->
      let has x = List.exists (fun d -> d = DK (KStr x)) ds in
      Some (lab (has "U") (has "S"))
  | _ -> None
let label_of j =
  match field "exact" j with
  | Some d -> (match to_label (data_of d) with Some l -> l | None -> unsupported "label")
  | None -> lab (flag "untrusted" j) (flag "secret" j)

(* Primitives: the operands come as a list. *)

(* Whether a function is inside that has captured something. *)
let rec captures = function
  | DClo (env, _) -> List.exists (function DK KNull -> false | _ -> true) env
  | DCon (_, ds) -> List.exists captures ds
  | DK _ -> false

let rec has_function = function DClo _ | DCon ((CFix _ | CTool _), _) -> true | DCon (_, ds) -> List.exists has_function ds | DK _ -> false
let num q = Inl (DK (KNum q))
let truth b = Inl (DK (KBool b))
let compare_q a b = compare (a.qnum *! b.qden) (b.qnum *! a.qden)
let wrong_operands = "wrong operands of "
let wrong p = Inr (wrong_operands ^ p)
let floor_div a b = if (a mod b <> 0) && ((a < 0) <> (b < 0)) then a / b - 1 else a / b

(* Characters of a text in UTF-8. *)
let chars (s : string) : string list =
  let n = String.length s in
  let rec go i =
    if i >= n then []
    else
      let c = Char.code s.[i] in
      let l = min (n - i) (if c < 0x80 then 1 else if c < 0xE0 then 2 else if c < 0xF0 then 3 else 4) in
      String.sub s i l :: go (i + l) in
  go 0

let occurs part s =
  let n = String.length part in
  let rec at i = if i + n > String.length s then None else if String.sub s i n = part then Some i else at (i + 1) in
  at

(* Equality; the order of the fields of a record does not count. *)
let rec same a b =
  match a, b with
  | DCon (CRec fs, ds), DCon (CRec gs, es) ->
      List.length fs = List.length gs
      && List.for_all2 (fun f d -> match List.assoc_opt f (List.combine gs es) with Some e -> same d e | None -> false) fs ds
  | DCon (c, ds), DCon (d, es) -> c = d && List.length ds = List.length es && List.for_all2 same ds es
  | DK (KTag s), DCon (CVariant t, [ DK KNull ]) | DCon (CVariant s, [ DK KNull ]), DK (KTag t) -> s = t
  | _ -> a = b

let blank c = List.mem c [ ' '; '\n'; '\t'; '\r'; '\011'; '\012' ]
let trim_with such s =
  let n = String.length s in
  let i = ref 0 and j = ref n in
  while !i < n && such s.[!i] do incr i done;
  while !j > !i && such s.[!j - 1] do decr j done;
  String.sub s !i (!j - !i)

(* Predicates of guards; an operand of the wrong kind does not satisfy them. *)
let rec satisfies (p : json) (d : data) : bool =
  match p, d with
  | String "any", _ -> true
  | Object [ ("compare", Array [ String measure; String op; limit ]) ], _ ->
      let found = match measure, d with
        | "length", DK (KStr s) -> Some (make (List.length (chars s)) 1)
        | "length", DCon ((CList | CRec _), ds) -> Some (make (List.length ds) 1)
        | "words", DK (KStr s) ->
            let words = List.filter (( <> ) "") (String.split_on_char ' '
              (String.map (fun c -> if blank c then ' ' else c) s)) in
            Some (make (List.length words) 1)
        | "value", DK (KNum q) -> Some q
        | _ -> None in
      let limit = match limit with Number n | String n -> number_of n | _ -> raise (Bad_json "limit") in
      (match found with
       | None -> false
       | Some q ->
           let c = compare_q q limit in
           (match op with
            | "<" | "lt" -> c < 0 | "<=" | "le" -> c <= 0 | ">" | "gt" -> c > 0
            | ">=" | "ge" -> c >= 0 | "==" | "eq" -> c = 0 | _ -> c <> 0))
  | Object [ ("contains", String part) ], DK (KStr s) ->
      occurs part s 0 <> None
  | Object [ ("contains", _) ], _ -> false
  | Object [ ("matches", String "^[a-z]+$") ], DK (KStr s) -> s <> "" && String.for_all (fun c -> c >= 'a' && c <= 'z') s
  | Object [ ("matches", String _) ], DK (KStr _) -> unsupported "regular expression"
  | Object [ ("matches", _) ], _ -> false
  | Object [ ("in", Array items) ], _ -> List.exists (fun i -> same (data_of i) d) items
  | Object [ ("field", Array [ String f; p ]) ], DCon (CRec fs, ds) ->
      (match List.find_opt (fun (g, _) -> g = f) (List.combine fs ds) with
       | Some (_, d) -> satisfies p d
       | None -> false)
  | Object [ ("field", _) ], _ -> false
  | Object [ ("every", p) ], DCon (CList, ds) -> List.for_all (satisfies p) ds
  | Object [ ("every", _) ], _ -> false
  | Object [ ("some", p) ], DCon (CList, ds) -> List.exists (satisfies p) ds
  | Object [ ("some", _) ], _ -> false
  | Object [ ("and", Array [ a; b ]) ], _ -> satisfies a d && satisfies b d
  | Object [ ("or", Array [ a; b ]) ], _ -> satisfies a d || satisfies b d
  | Object [ ("not", p) ], _ -> not (satisfies p d)
  | Object [ ("schema", s) ], _ ->
      (match data_of s with
       | DCon (CRec keys, rules) -> List.for_all2 (fun key rule -> schema key rule d) keys rules
       | _ -> unsupported "schema")
  | _ -> unsupported "predicate"

(* One keyword of a JSON Schema. What it does not speak of satisfies it. *)
and schema (key : string) (rule : data) (d : data) : bool =
  let least q c = compare_q q c >= 0 and most q c = compare_q q c <= 0 in
  match key, rule, d with
  | "type", DK (KStr kind), _ ->
      (match kind, d with
       | "number", DK (KNum _) | "string", DK (KStr _) | "array", DCon (CList, _) | "object", DCon (CRec _, _) -> true
       | "integer", DK (KNum q) -> q.qden = 1
       | ("number" | "integer" | "string" | "array" | "object"), _ -> false
       | _ -> unsupported "schema")
  | "minimum", DK (KNum n), DK (KNum q) -> least q n
  | "minLength", DK (KNum n), DK (KStr s) -> least (make (List.length (chars s)) 1) n
  | "minItems", DK (KNum n), DCon (CList, ds) -> least (make (List.length ds) 1) n
  | "maxProperties", DK (KNum n), DCon (CRec _, ds) -> most (make (List.length ds) 1) n
  | ("minimum" | "minLength" | "minItems" | "maxProperties"), DK (KNum _), _ -> true
  | _ -> unsupported "schema"

(* Types, in the exchange form. *)

let pairs_of j = List.map (function Array [ String k; v ] -> (k, v) | _ -> raise (Bad_json "pairs")) (list_of j)

(* A recursive type with closed types in place of its variables, one level deep. *)
let rec closed (bodies : json) (t : json) : json =
  match t with
  | Object [ ("var", String n) ] -> Object [ ("rec", Array [ String n; bodies ]) ]
  | Object [ (("rec" | "enum"), _) ] -> t
  | Object [ ("refined", Array [ t; p ]) ] -> Object [ ("refined", Array [ closed bodies t; p ]) ]
  | Object [ (kind, Array parts) ] -> Object [ (kind, Array (List.map (closed_part bodies) parts)) ]
  | Object [ (kind, t) ] -> Object [ (kind, closed bodies t) ]
  | t -> t

and closed_part bodies = function
  | Array [ String n; t ] -> Array [ String n; closed bodies t ]
  | t -> closed bodies t

let unfold n bodies = closed bodies (List.assoc n (pairs_of bodies))

let rec fits (t : json) (d : data) : bool =
  match t, d with
  | Object [ ("rec", Array [ String n; bodies ]) ], _ -> fits (unfold n bodies) d
  | String "Dyn", _ | String "Str", DK (KStr _) | String "Num", DK (KNum _) | String "Bool", DK (KBool _)
  | (String "Null" | Object [ ("option", _) ]), DK KNull -> true
  | Object [ ("option", t) ], _ -> fits t d
  | Object [ ("enum", Array (_ :: Array variants :: _)) ], DK (KStr s) -> List.mem (String s) variants
  | Object [ ("list", t) ], DCon (CList, ds) -> List.for_all (fits t) ds
  | Object [ ("record", ts) ], DCon (CRec fs, ds) ->
      List.for_all (fun (f, t) ->
        match List.assoc_opt f (List.combine fs ds), t with
        | Some d, _ -> fits t d
        | None, Object [ ("option", _) ] -> true
        | None, _ -> false) (pairs_of ts)
  | Object [ ("variant", ts) ], DCon (CVariant n, [ d ]) ->
      (match List.assoc_opt n (pairs_of ts) with Some t -> fits t d | None -> false)
  | Object [ ("variant", ts) ], DK (KTag n) ->
      (match List.assoc_opt n (pairs_of ts) with Some t -> fits t (DK KNull) | None -> false)
  | Object [ ("map", Array [ k; v ]) ], DCon (CRec fs, ds) ->
      List.for_all (fun f -> fits k (DK (KStr f))) fs && List.for_all (fits v) ds
  | Object [ ("pair", Array [ a; b ]) ], DCon (CPair, [ x; y ]) -> fits a x && fits b y
  | Object [ ("refined", Array [ t; p ]) ], _ -> fits t d && satisfies p d
  | _ -> false

(* Data of a type: no function is inside. *)
let is_of (t : json) (d : data) : bool = not (has_function d) && fits t d

(* JSON as data of a type: pairs and tags where the type has them. *)
let rec plain (j : json) : data =
  match j with
  | Array l -> DCon (CList, List.map plain l)
  | Object fs -> DCon (CRec (List.map fst fs), List.map (fun (_, v) -> plain v) fs)
  | j -> data_of j

let rec shape (t : json) (d : data) : data =
  match t, d with
  | Object [ ("rec", Array [ String n; bodies ]) ], _ -> shape (unfold n bodies) d
  | Object [ ("list", t) ], DCon (CList, ds) -> DCon (CList, List.map (shape t) ds)
  | Object [ ("option", _) ], DK KNull -> d
  | Object [ ("option", t) ], _ -> shape t d
  | Object [ ("refined", Array [ t; _ ]) ], _ -> shape t d
  | Object [ ("record", ts) ], DCon (CRec fs, ds) ->
      DCon (CRec fs, List.map2 (fun f d -> match List.assoc_opt f (pairs_of ts) with Some t -> shape t d | None -> d) fs ds)
  | Object [ ("map", Array [ _; v ]) ], DCon (CRec fs, ds) -> DCon (CRec fs, List.map (shape v) ds)
  | Object [ ("pair", Array [ a; b ]) ], DCon (CList, [ x; y ]) -> DCon (CPair, [ shape a x; shape b y ])
  | Object [ ("variant", ts) ], DK (KStr s) when List.mem_assoc s (pairs_of ts) -> DCon (CVariant s, [ DK KNull ])
  | Object [ ("variant", ts) ], DCon (CRec [ f ], [ d ]) when List.mem_assoc f (pairs_of ts) ->
      DCon (CVariant f, [ shape (List.assoc f (pairs_of ts)) d ])
  | _ -> d

(* What is said where a reply cannot be used; its wording is nobody's business. *)
let repair = "user\001That reply cannot be used"
let unfit_arguments = "arguments that the tool does not take"

let rec base = function Object [ ("refined", Array [ t; _ ]) ] -> base t | t -> t

(* A reply as data of a type (docs/calculus.md section 10, `recv` as data). *)
let decode_text (t : json option) (text : string) : (data, string) sum =
  match t with
  | None -> Inl (DK (KStr text))
  | Some t ->
      let checked d = if is_of t d then Inl d else Inr repair in
      match base t with
      | String "Str" -> checked (DK (KStr text))
      | Object [ ("enum", _) ] ->
          checked (DK (KStr (trim_with (fun c -> List.mem c [ '"'; '`'; '\'' ]) (trim_with blank text))))
      | _ ->
          let text = trim_with blank text in
          let fenced = match occurs "```" text 0 with
            | None -> None
            | Some i ->
                let rest = String.sub text (i + 3) (String.length text - i - 3) in
                let rest = match String.index_opt rest '\n' with
                  | Some k -> String.sub rest (k + 1) (String.length rest - k - 1)
                  | None -> rest in
                Option.map (fun k -> trim_with blank (String.sub rest 0 k)) (occurs "```" rest 0) in
          let embedded =
            let first = List.filter_map (String.index_opt text) [ '{'; '[' ] in
            let last = List.filter_map (String.rindex_opt text) [ '}'; ']' ] in
            match List.sort compare first, List.rev (List.sort compare last) with
            | a :: _, b :: _ when a < b -> Some (String.sub text a (b - a + 1))
            | _ -> None in
          let read c = match parse_json c with
            | j -> let d = shape t (plain j) in if is_of t d then Some d else None
            | exception Bad_json _ -> None in
          match List.find_map (fun c -> Option.bind c read) [ Some text; fenced; embedded ] with
          | Some d -> Inl d
          | None -> Inr repair

(* A call of a tool that was offered. *)
let decode_call (tools : json list) (name : string) (args : data) : (data, string) sum =
  match List.find_opt (fun t -> field "name" t = Some (String name)) tools with
  | None -> Inr repair
  | Some t ->
      let given = match args with DCon (CRec fs, ds) -> List.combine fs ds | _ -> [] in
      let fine p =
        let t = need "type" p in
        match List.assoc_opt (text_of (need "name" p)) given, t with
        | Some d, _ -> is_of t d
        | None, Object [ ("option", _) ] -> true
        | None, _ -> false in
      if List.for_all fine (list_of (need "params" t)) then Inl (DCon (CVariant name, [ args ])) else Inr repair

(* A call as a reply: one of several, which are received one after the other. *)
let encode_call f text args = String.concat "\003" [ ""; f; text; print_json args ]
let decoded_call reply =
  match String.split_on_char '\003' reply with [ ""; f; text; args ] -> Some (f, text, args) | _ -> None

(* What is received, without asking, if no call waits. *)
let nothing_waits = "\003none"

(* Whether a tool takes this: missing, unknown and ill-typed arguments are refused. *)
let takes (tool : json) (d : data) : bool =
  let params = List.map (fun p -> (text_of (need "name" p), need "type" p)) (list_of (need "params" tool)) in
  let optional = function Object [ ("option", _) ] -> true | _ -> false in
  let record fs ds =
    List.for_all (fun f -> List.mem_assoc f params) fs
    && List.for_all (fun (p, t) ->
        match List.assoc_opt p (List.combine fs ds) with Some d -> is_of t d | None -> optional t) params in
  match params, d with
  | [ (p, t) ], DCon (CRec fs, ds) -> if List.mem p fs then record fs ds else is_of t d
  | [ (_, t) ], _ -> is_of t d
  | [], DK KNull -> true
  | _, DCon (CRec fs, ds) -> record fs ds
  | _ -> false

(* Names of primitives that stand for an operation with a constant operand. *)
let with_prefix prefix p =
  let n = String.length prefix in
  if String.length p >= n && String.sub p 0 n = prefix then Some (String.sub p n (String.length p - n)) else None

let change_case up s =
  String.concat "" (List.map (fun c ->
    if String.length c = 1 then (if up then String.uppercase_ascii c else String.lowercase_ascii c)
    else match c with
      | "\xc3\xa9" -> if up then "\xc3\x89" else c
      | "\xc3\x89" -> if up then c else "\xc3\xa9"
      | _ -> unsupported "letter case beyond ASCII") (chars s))

let rec split_on by s =
  match occurs by s 0 with
  | None -> [ s ]
  | Some i -> String.sub s 0 i :: split_on by (String.sub s (i + String.length by) (String.length s - i - String.length by))

let is_digits s = s <> "" && String.for_all (fun c -> c >= '0' && c <= '9') s

let to_number s : scalar option =
  let whole s =
    let digits = if String.length s > 0 && s.[0] = '-' then String.sub s 1 (String.length s - 1) else s in
    match String.index_opt digits '.' with
    | None -> is_digits digits
    | Some i -> is_digits (String.sub digits 0 i) && is_digits (String.sub digits (i + 1) (String.length digits - i - 1)) in
  if whole s then Some (KNum (number_of s))
  else match String.split_on_char '/' s with
    | [ a; b ] when whole a && whole b ->
        let a = number_of a and b = number_of b in
        if b.qnum = 0 then None else Some (KNum (make (a.qnum *! b.qden) (a.qden *! b.qnum)))
    | _ -> if String.exists (fun c -> c >= '0' && c <= '9') s && String.exists (fun c -> c = 'e' || c = 'E') s
        then unsupported "a number with an exponent" else None

(* As `to_json`: a pair is a list, a tag its name or an object of one field. *)
let rec plain_json (d : data) : json =
  match d with
  | DK (KNum q) ->
      let text = number_text q in
      if String.contains text '/' then unsupported "JSON of a fraction" else Number text
  | DCon ((CList | CPair), ds) -> Array (List.map plain_json ds)
  | DCon ((CRec fs | CArgs (_, fs)), ds) -> Object (List.map2 (fun f d -> (f, plain_json d)) fs ds)
  | DCon (CVariant t, [ DK KNull ]) | DK (KTag t) -> String t
  | DCon (CVariant t, ds) -> Object [ (t, plain_json (List.hd ds)) ]
  | d -> data_json d

let prim (policy : axis -> bool) (p : string) (d : data) : (data, string) sum =
  let args = match d with DCon (CList, ds) -> ds | d -> [ d ] in
  match with_prefix "$send:" p, with_prefix "$classify:" p, with_prefix "$pred:" p with
  | Some role, _, _ -> Inl (DK (KStr (role ^ "\001" ^ serialize (List.hd args))))
  | _, Some tags, _ ->
      (match args with
       | [ DK (KStr s) ] ->
           let tags = String.split_on_char '\001' tags in
           let bare = String.lowercase_ascii (trim_with (fun c -> blank c || List.mem c [ '"'; '\''; '`'; '.' ]) s) in
           (match List.mem s tags, List.find_opt (fun t -> String.lowercase_ascii t = bare) tags with
            | true, _ -> Inl (DCon (CVariant s, [ DK KNull ]))
            | false, Some t -> Inl (DCon (CVariant t, [ DK KNull ]))
            | false, None -> Inr "none of the tags")
       | [ DK (KTag s) ] | [ DCon (CVariant s, _) ] when List.mem s (String.split_on_char '\001' tags) ->
           Inl (DCon (CVariant s, [ DK KNull ]))
       | _ -> Inr "nothing to classify")
  | _, _, Some pred ->
      (* What is no data satisfies nothing. *)
      truth (not (has_function (List.hd args)) && satisfies (parse_json pred) (List.hd args))
  | _ ->
  (* What a primitive hands on is checked like parsed code there, because the proofs know nothing of primitives, and what its functions
     have captured loses its labels: the calculus keeps them, so that a primitive after a `declassify` still sees them. *)
  if List.mem p [ "flatten"; "append"; "add"; "slice" ]
     && not (List.for_all (data_permits policy) args && not (List.exists captures args)) then
    unsupported ("functions handed on by " ^ p);
  match p, args with
  | "neg", [ DK (KNum a) ] -> num (make (-a.qnum) a.qden)
  | "not", [ DK (KBool b) ] -> truth (not b)
  | "add", [ DK (KNum a); DK (KNum b) ] -> num (make (a.qnum *! b.qden +! b.qnum *! a.qden) (a.qden *! b.qden))
  | "add", [ DK (KStr a); DK (KStr b) ] -> Inl (DK (KStr (a ^ b)))
  | "add", [ DCon (CList, a); DCon (CList, b) ] -> Inl (DCon (CList, a @ b))
  | "sub", [ DK (KNum a); DK (KNum b) ] -> num (make (a.qnum *! b.qden -! b.qnum *! a.qden) (a.qden *! b.qden))
  | "mul", [ DK (KNum a); DK (KNum b) ] -> num (make (a.qnum *! b.qnum) (a.qden *! b.qden))
  | ("div" | "rem"), [ DK (KNum _); DK (KNum b) ] when b.qnum = 0 -> Inr "division by zero"
  | "div", [ DK (KNum a); DK (KNum b) ] -> num (make (a.qnum *! b.qden) (a.qden *! b.qnum))
  | "rem", [ DK (KNum a); DK (KNum b) ] ->
      let n = a.qnum *! b.qden and d = a.qden *! b.qnum in
      let q = floor_div n d in
      num (make (a.qnum *! b.qden -! q *! b.qnum *! a.qden) (a.qden *! b.qden))
  | ("eq" | "ne"), [ a; b ] ->
      if has_function a || has_function b then wrong p else truth (same a b = (p = "eq"))
  | ("lt" | "le" | "gt" | "ge"), [ a; b ] ->
      let c = match a, b with
        | DK (KNum a), DK (KNum b) -> Some (compare_q a b)
        | DK (KStr a), DK (KStr b) -> Some (compare a b)
        | _ -> None in
      (match c with
       | None -> wrong p
       | Some c -> truth (match p with "lt" -> c < 0 | "le" -> c <= 0 | "gt" -> c > 0 | _ -> c >= 0))
  | "format", ds -> Inl (DK (KStr (String.concat "" (List.map serialize ds))))
  | "to_str", [ d ] -> Inl (DK (KStr (serialize d)))
  | "length", [ DK (KStr s) ] -> num (make (List.length (chars s)) 1)
  | "lower", [ DK (KStr s) ] -> Inl (DK (KStr (change_case false s)))
  | "upper", [ DK (KStr s) ] -> Inl (DK (KStr (change_case true s)))
  | "trim", [ DK (KStr s) ] -> Inl (DK (KStr (trim_with blank s)))
  | "split", [ DK (KStr s); DK (KStr "") ] -> Inl (DCon (CList, List.map (fun c -> DK (KStr c)) (chars s)))
  | "split", [ DK (KStr s); DK (KStr by) ] -> Inl (DCon (CList, List.map (fun c -> DK (KStr c)) (split_on by s)))
  | "slice", [ of_; DK (KNum a); DK (KNum b) ] ->
      if a.qden <> 1 || b.qden <> 1 || a.qnum < 0 || b.qnum < 0 then wrong p
      else
        let part l = List.filteri (fun i _ -> i >= a.qnum && i < b.qnum) l in
        (match of_ with
         | DK (KStr s) -> Inl (DK (KStr (String.concat "" (part (chars s)))))
         | DCon (CList, ds) -> Inl (DCon (CList, part ds))
         | _ -> wrong p)
  | "to_num", [ DK (KStr s) ] ->
      (match to_number (trim_with blank s) with Some k -> Inl (DK k) | None -> wrong p)
  | "to_json", [ d ] -> if has_function d then wrong p else Inl (DK (KStr (print_json (plain_json d))))
  | "from_json", [ DK (KStr s) ] -> (match parse_json s with j -> Inl (plain j) | exception Bad_json _ -> wrong p)
  | "contains", [ DCon (CList, ds); d ] ->
      if List.exists has_function args then wrong p else truth (List.exists (same d) ds)
  | "range", [ DK (KNum a); DK (KNum b) ] when a.qden = 1 && b.qden = 1 && b.qnum - a.qnum < 100_000 ->
      Inl (DCon (CList, List.init (max 0 (b.qnum - a.qnum)) (fun i -> DK (KNum (make (a.qnum + i) 1)))))
  | "join", [ DCon (CList, ds); DK (KStr sep) ] when List.for_all (function DK (KStr _) -> true | _ -> false) ds ->
      Inl (DK (KStr (String.concat sep (List.map serialize ds))))
  | "contains", [ DK (KStr s); DK (KStr part) ] -> truth (satisfies (Object [ ("contains", String part) ]) (DK (KStr s)))
  | "append", [ DCon (CList, ds); d ] -> Inl (DCon (CList, ds @ [ d ]))
  | "flatten", [ d ] -> Inl d
  | "is_fn", [ d ] -> truth (match d with DClo _ | DCon ((CFix _ | CTool _), _) -> true | _ -> false)
  | "is_array", [ d ] -> truth (match d with DCon (CList, _) -> true | _ -> false)
  | "is_record", [ d ] -> truth (match d with DCon (CRec _, _) -> true | _ -> false)
  | "is_str", [ d ] -> truth (match d with DK (KStr _) -> true | _ -> false)
  | "is_num", [ d ] -> truth (match d with DK (KNum _) -> true | _ -> false)
  | "is_bool", [ d ] -> truth (match d with DK (KBool _) -> true | _ -> false)
  | "is_null", [ d ] -> truth (d = DK KNull)
  | "range", [ DK (KNum a); DK (KNum b) ] when a.qden = 1 && b.qden = 1 -> unsupported "a long range"
  | ( "neg" | "not" | "add" | "sub" | "mul" | "div" | "rem" | "keys" | "has" | "append" | "length" | "lower" | "upper"
    | "trim" | "split" | "slice" | "to_num" | "from_json" | "contains" | "range" | "join" ), _ -> wrong p
  | _ -> unsupported ("primitive " ^ p)

(* Primitives look at all of their operands, but for these, which look at a constructor. *)
let look (policy : axis -> bool) (p : string) : look =
  let data d = Gives (GData d) in
  let all =
    Reads ([], function
      | Some d -> (match prim policy p d with Inl d -> data d | Inr m -> Fails m)
      | None -> Fails "no operands") in
  match p with
  | "length" ->
      Looks ([ 0 ], function Some (HCon ((CList | CRec _), n)) -> data (DK (KNum (make n 1))) | _ -> all)
  | "keys" ->
      Looks ([ 0 ], function
        | Some (HCon (CRec fs, _)) -> data (DCon (CList, List.map (fun f -> DK (KStr f)) fs))
        | _ -> all)
  | "has" ->
      Looks ([ 0 ], function
        | Some (HCon (CRec fs, _)) ->
            Reads ([ 1 ], function Some (DK (KStr f)) -> data (DK (KBool (List.mem f fs))) | _ -> all)
        | _ -> all)
  | _ -> all

(* From the exchange form. *)

(* The branches of a [par] are marked: an event, as of a time limit that nobody has
   set, says where one begins and ends.  So the trace tells what is in which.
   The items of an [each] are numbered by their order within its own mark. *)
let mark n e = EWithin ({ qnum = -n; qden = 1 }, e)
let of_each = 1
let item = 2
let branch i = 3 + i

type tool = { tname : string; decl : json; params : (string * label) list; control : label; result : label }
(* The types of keys, by their full names. *)
let key_types : (string * json) list ref = ref []

type names = { vars : string list; keys : (string * string) list }

let rec literal (d : data) : term =
  match d with
  | DK k -> EK k
  | DCon (c, ds) -> ECon (c, List.map literal ds)
  | DClo _ -> unsupported "literal"

let translate (globals : string list) (program : json) (stores : (string * label * data option) list ref)
    : term * tool list =
  let tools =
    List.map (fun t ->
      { tname = text_of (need "name" t); decl = t;
        params = List.map (fun p -> (text_of (need "name" p), label_of (need "bound" p))) (list_of (need "params" t));
        control = label_of (need "control" t); result = label_of (need "label" t) })
      (list_of (need "tools" program)) in
  let declared = Array.of_list (list_of (need "stores" program)) in
  let terms = Array.of_list (list_of (need "terms" program)) in
  let str s = EK (KStr s) in
  let rec term (env : names) (i : int) : term =
    let j = terms.(i) in
    let of_ = match field "of" j with Some l -> List.map int_of (list_of l) | None -> [] in
    let sub k = term env (List.nth of_ k) in
    let index k = int_of (need k j) in
    let bind x = { env with vars = x :: env.vars } in
    let rec position x n = function
      | [] -> unsupported ("variable " ^ x)
      | y :: _ when y = x -> n
      | _ :: l -> position x (n + 1) l in
    match text_of (need "op" j) with
    | "var" -> EVar (position (text_of (need "name" j)) 0 env.vars)
    | "lit" -> literal (data_of (need "value" j))
    | "record" ->
        let fs = List.map (function Array [ String k; t ] -> (k, int_of t) | _ -> raise (Bad_json "fields")) (list_of (need "fields" j)) in
        ECon (CRec (List.map fst fs), List.map (fun (_, t) -> term env t) fs)
    | "args" ->
        let t = List.nth tools (index "tool") in
        let fs = List.map (function Array [ String k; t ] -> (k, int_of t) | _ -> raise (Bad_json "fields")) (list_of (need "fields" j)) in
        (match t.params with
         | [ (only, _) ] when not (List.mem_assoc only fs) ->
             (* `tool_accepts` sees data, in which this is a record like any other: the bare value of the only
                parameter. The calculus refuses it. *)
             unsupported "planned arguments without the only one"
         | _ -> ());
        ECon (CArgs (t.tname, List.map fst fs), List.map (fun (_, t) -> term env t) fs)
    | "list" -> ECon (CList, List.map (term env) of_)
    | "abs" -> ELam (term (bind (text_of (need "param" j))) (index "body"))
    | "app" -> EApp (sub 0, sub 1)
    | "let" ->
        let rec go env = function
          | [] -> term env (index "body")
          | Array [ String x; t ] :: rest -> eLet (term env (int_of t)) (go { env with vars = x :: env.vars } rest)
          | _ -> raise (Bad_json "bindings") in
        go env (list_of (need "bindings" j))
    | "field" -> EGet (sub 0, str (text_of (need "name" j)))
    | "index" -> EGet (sub 0, sub 1)
    | "with" -> ESet (sub 0, str (text_of (need "name" j)), sub 1)
    | "prim" -> EPrim (text_of (need "prim" j), ECon (CList, List.map (term env) of_))
    | "pair" -> ECon (CPair, [ sub 0; sub 1 ])
    | "fst" -> eFst (sub 0)
    | "snd" -> eSnd (sub 0)
    | "tag" -> ECon (CVariant (text_of (need "name" j)), [ (match of_ with [] -> EK KNull | t :: _ -> term env t) ])
    | "if" -> eIf (sub 0) (sub 1) (sub 2)
    | "case" ->
        (* the scrutinee gets a name, so that a branch can read its payload *)
        let inner = bind "" in
        let branch b =
          let body e = term e (int_of (need "body" b)) in
          ( KTag (text_of (need "tag" b)),
            match field "binder" b with
            | Some (String x) ->
                eLet (ePayload (EVar 0)) (body { inner with vars = x :: inner.vars })
            | _ -> body inner ) in
        let default = match field "default" j with Some (Number _ as t) -> Some (term inner (int_of t)) | _ -> None in
        eLet (sub 0) (ECase (EVar 0, List.map branch (list_of (need "branches" j)), default))
    | "classify" ->
        let tags = List.map text_of (list_of (need "tags" j)) in
        EPrim ("$classify:" ^ String.concat "\001" tags, ECon (CList, [ sub 0 ]))
    | "fix" ->
        let bound = match need "bound" j with String _ -> None | n -> Some (int_of n) in
        ECon (CFix bound, [ sub 0 ])
    | "guard" ->
        let pred = "$pred:" ^ print_json (need "pred" j) in
        EGuard (sub 0, ELam (EPrim (pred, ECon (CList, [ EVar 0 ]))), int_of (need "retry" j))
    | "mem" ->
        let number = int_of (need "store" j) in
        let store = declared.(number) in
        let name = text_of (need "name" store) in
        let keys = List.map (fun k ->
          let key = text_of (need "name" k) in
          let full = Printf.sprintf "%d.%s.%s" number name key in
          let initial = match field "initial" k with Some Null | None -> None | Some d -> Some (data_of d) in
          stores := (full, label_of (need "label" k), initial) :: !stores;
          key_types := (full, need "type" k) :: !key_types;
          (key, full)) (list_of (need "keys" store)) in
        term { env with keys = keys @ env.keys } (List.hd of_)
    | "recall" -> ERecall (key env j)
    | "remember" -> ERemember (key env j, sub 0)
    | "choose" ->
        let p = match need "p" j with Number n | String n -> number_of n | _ -> raise (Bad_json "p") in
        EChoose (p, sub 0, sub 1)
    | "tool" ->
        let t = List.nth tools (index "tool") in
        ECon (CTool t.tname, [])
    | "send" -> send (text_of (need "role" j)) (sub 0)
    | "ask" -> eSeq (send "user" (sub 0)) (ERecv ("", AsCode))
    | "recv" -> recv j
    | "llm" ->
        let params = need "params" j in
        (match terms.(List.hd of_) with
         | Object _ as p when field "value" p = Some (String "") ->
             ELam (EFresh (eSeq (send "user" (EVar 0)) (recv (Object [ ("params", params) ]))))
         | _ ->
             eLet (ECheck (print_json (String "Str"), sub 0)) (ELam (EFresh (eSeq (send "system" (EVar 1))
               (eSeq (send "user" (EVar 0)) (recv (Object [ ("params", params) ])))))))
    | "fork" -> EFork (sub 0)
    | "fresh" -> EFresh (sub 0)
    | "fail" -> EFail (sub 0)
    | "clear" -> EClear
    | "relabel" -> ELab (sub 0, sub 1)
    | "test" -> ETest (sub 0, sub 1)
    | "assert" -> EAssert (sub 0, sub 1)
    | "endorse" -> EReclass (Endorse, sub 0, sub 1)
    | "declassify" -> EReclass (Declassify, sub 0, sub 1)
    | "check" -> ECheck (print_json (need "type" j), sub 0)
    | "unknown" -> EVar 1_000_000
    | "within" ->
        let n = match need "seconds" j with Number n | String n -> number_of n | _ -> raise (Bad_json "seconds") in
        EWithin (n, sub 0)
    (* No answer here is a permanent error. *)
    | ("try" | "try_not_timeout" | "try_not_permanent" | "try_transient") as op ->
        ETry (op = "try" || op = "try_not_permanent", sub 0, sub 1, term (bind (text_of (need "name" j))) (List.nth of_ 2))
    | "each" ->
        let each = EEach (eLet (sub 0) (ELam (mark item (EApp (EVar 1, EVar 0)))), sub 1) in
        mark of_each each
    | "par" -> EPar (List.mapi (fun i t -> mark (branch i) (term env t)) of_)
    | "compose" ->
        let env = bind "" in
        ELam (List.fold_left (fun x t -> EApp (term env t, x)) (EVar 0) of_)
    | "par_pair" ->
        let env = bind "" in
        let side k = mark (branch k) (EApp (term env (List.nth of_ k), EVar 0)) in
        let part k = EGet (EVar 0, EK (KNum (make k 1))) in
        ELam (eLet (EPar [ side 0; side 1 ]) (ECon (CPair, [ part 0; part 1 ])))
    | op -> unsupported ("op " ^ op)
  and key env j =
    let k = text_of (need "key" j) in
    match List.assoc_opt k env.keys with Some full -> full | None -> unsupported ("key " ^ k)
  and send role e = ESend (EPrim ("$send:" ^ role, ECon (CList, [ e ])))
  and recv j =
    match field "params" j with
    | None -> ERecv ("", AsCode)
    | Some p ->
        let offered = match field "tools" p with
          | Some (Array l) -> List.map (fun i -> (List.nth tools (int_of i)).decl) l | _ -> [] in
        let result = match field "result" p with Some t -> [ ("result", t) ] | None -> [] in
        (* The model's name says how its reply is read. *)
        let waiting = match field "waiting" p with Some (Bool true) -> [ ("waiting", Bool true) ] | _ -> [] in
        ERecv (print_json (Object (("tools", Array offered) :: result @ waiting)), AsData (match field "repair" p with Some n -> int_of n | None -> 0)) in
  (term { vars = globals; keys = [] } (int_of (need "root" program)), tools)

let read_all channel =
  let b = Buffer.create 4096 in
  (try while true do Buffer.add_channel b channel 1 done with End_of_file -> ());
  Buffer.contents b

(* What the trace says is around an event, the innermost first: branches (the run
   itself is one), each with its way, with how many of what it named, by kind and
   label, and with its last [par]; the items of an [each]; time limits. *)
type strand = { way : string; mutable counts : (string * int) list; mutable par : string }
type each = { mutable items : int; mutable of_par : string }
type around = Strand of strand | Each of each | Limit of q * string

let axes (l : label) : bool * bool = Obj.magic l
let join2 a b = let u, s = axes a and v, t = axes b in lab (u || v) (s || t)
let untrusted l = fst (axes l)

(* A tool whose result can be a set: a read that needs no arguments, and that nothing but bounds can refuse. *)
let can_be_a_set (t : tool) =
  let absent k = match field k t.decl with None | Some Null | Some (Bool false) -> true | _ -> false in
  field "effect" t.decl <> Some (String "write") && absent "approve" && absent "policy"
  && List.for_all (fun p -> match need "type" p with Object [ ("option", _) ] -> true | _ -> false) (list_of (need "params" t.decl))

(* Sets of [among]: sources, and the parameters with their paths. *)
let of_request = "\000"
let stated = "\001"
let sets_of (t : tool) : (string * (string * string list) list) list =
  let path = function DCon (CList, ds) -> List.map (function DK (KStr f) -> f | _ -> raise (Bad_json "path")) ds | _ -> raise (Bad_json "path") in
  List.map (fun a ->
      match data_of a with
      | DCon (CRec fs, ds) ->
          let given = List.combine fs ds in
          if List.mem_assoc "below" given || List.mem_assoc "sites" given then unsupported "a set of places";
          let source = match List.assoc_opt "tool" given, field "values" a with
            | Some (DK (KStr f)), _ -> f
            | _, Some values -> stated ^ print_json values
            | _ -> of_request in
          (match List.assoc_opt "params" given with
           | Some (DCon (CRec ps, paths)) -> (source, List.map2 (fun p d -> (p, path d)) ps paths)
           | _ -> raise (Bad_json "among"))
      | _ -> raise (Bad_json "among"))
    (match field "among" t.decl with Some l -> list_of l | None -> [])

(* A step of a path. *)
let step = function "{*}" -> SEach | "{keys}" -> SKeys | f -> if f = "" || f.[0] = '"' then unsupported "a quoted step" else SField f

(* The closed form that is known: a word of small letters. *)
let is_word = function DK (KStr s) -> s <> "" && String.for_all (fun c -> 'a' <= c && c <= 'z') s | _ -> false

(* The words of errors, of the interpreter and of this driver.  A test compares
   the first part with the extracted text. *)
let own_words = [
  "generated code may not reclassify"; "index out of range"; "not a structure"; "no such field"; "not a label";
  "the tool's policy refuses the call"; "what the tool's policy says is seen by too many";
  "the arguments of another tool"; "argument refused by the tool's bound"; "call refused by the tool's bound";
  "not a function"; "send refused"; "the model is not cleared for this conversation"; "recv refused"; "clear refused";
  "not of the key's type"; "remember refused"; "not a list"; "the predicate of a guard must give a boolean";
  "guard failed"; "unbound variable"; "no branch matches"; "assertion failed"; "not of the type";

  repair; unfit_arguments; "\002timeout"; "result of another type"; "division by zero"; "none of the tags";
  "nothing to classify"; "no operands"; "does not parse"; wrong_operands ]

(* Texts with U+0005 for each of these. *)
let rec unworded (j : json) : json =
  match j with
  | String s ->
      let rec replaced s words =
        match occurs words s 0 with
        | None -> s
        | Some i ->
            (* The name of the primitive follows. *)
            let rec upto k =
              if words = wrong_operands && k < String.length s
                 && (match s.[k] with 'a' .. 'z' | '_' -> true | _ -> false) then upto (k + 1) else k in
            let rest = upto (i + String.length words) in
            String.sub s 0 i ^ "\005" ^ replaced (String.sub s rest (String.length s - rest)) words in
      String (List.fold_left replaced s own_words)
  | Array l -> Array (List.map unworded l)
  | Object l -> Object (List.map (fun (k, v) -> (k, if k = "message" || k = "names" then v else unworded v)) l)
  | j -> j

(* The world: answers in the order of the requests.  The interpreter calls
   each of these functions once for a request, in the order of evaluation. *)

let answer_to (input : json) : json =
  key_types := [];
  try
    let stores = ref [] in
    let prelude = match field "prelude" input with
      | Some (Array l) -> List.map (function Array [ String x; e ] -> (x, e) | _ -> raise (Bad_json "prelude")) l
      | _ -> [] in
    let globals = List.rev_map fst prelude in
    let program, tools = translate globals (need "program" input) stores in
    let answers = ref (match field "answers" input with Some (Array l) -> l | _ -> []) in
    let last = ref Null in
    let present = ref true in
    let evict = flag "evict" input in
    (* What the answers say of the entry that is looked up. *)
    let said = ref None in
    (* A key is named by the number of its declaration first. *)
    let declaration k = int_of_string (String.sub k 0 (String.index k '.')) in
    let declared = Array.of_list (list_of (need "stores" (need "program" input))) in
    let capacity k = match field "capacity" declared.(declaration k) with
      | None | Some Null -> max_int
      | Some n -> int_of n in
    let keeps a =
      List.fold_left (fun (kept, counts) (k, e) ->
          let d = declaration k in
          let n = 1 + Option.value ~default:0 (List.assoc_opt d counts) in
          ((if n <= capacity k then (k, e) :: kept else kept), (d, n) :: counts)) ([], []) a
      |> fst |> List.rev in
    let timeout = "\002timeout" in
    let cut = flag "cut" input in
    (* Requests that were answered, and whether the answers are at an end. *)
    let answered = ref 0 in
    let ended = ref false in
    let is_for r a =
      let has k = field k a <> None in
      match r with
      | RRecall _ -> has "found" || has "store_failed" || has "store_late"
      | RRemember _ -> has "kept" || has "store_failed" || has "store_late"
      | _ when has "failed" || has "late" || has "unsupported" -> true
      | RModel _ -> has "text" || has "calls"
      | RTool _ -> has "data"
      | RApprove _ -> has "approved"
      | RSample _ -> has "drawn"
      | _ -> true in
    let is_told r =
      match r with
      | RModel _ | RTool _ | RApprove _ | RSample _ | RRecall _ | RRemember _ -> true
      | _ -> false in
    (* Called first for every request. *)
    let rec refuses r =
      if not (cut && is_told r) then refuses_as_answered r
      else if !ended then Some "\006"
      else match !answers with
        | a :: _ when is_for r a -> incr answered; refuses_as_answered r
        | _ -> ended := true; Some "\006"
    and refuses_as_answered r =
      (match r with RRemember _ -> present := true | _ -> ());
      match r, !answers with
      | (RRecall _ | RRemember _), a :: rest when field "found" a <> None || field "kept" a <> None ->
          answers := rest;
          present := field "found" a <> Some (Bool false);
          (match r, field "found" a with
           | RRecall k, Some (Bool b) -> said := Some (k, b)
           | _ -> said := None);
          None
      | (RRecall _ | RRemember _), a :: rest when field "store_failed" a <> None ->
          answers := rest; Option.map text_of (field "store_failed" a)
      | (RRecall _ | RRemember _), a :: rest when field "store_late" a <> None -> answers := rest; Some timeout
      | (RRecall _ | RRemember _), _ -> None
      | _, [] -> otherwise "more requests than answers"
      | _, a :: rest ->
          answers := rest;
          last := a;
          Option.iter (fun what -> unsupported (text_of what)) (field "unsupported" a);
          if field "late" a <> None then Some timeout else Option.map text_of (field "failed" a) in
    let answer kind =
      match field kind !last with Some v -> v | None -> otherwise ("the answer is no " ^ kind) in
    let policy ax = flag (match ax with Endorse -> "endorse" | Declassify -> "declassify") input in
    let returned = ref (DK KNull) in
    let rec depth = function DCon (_, ds) -> 1 + List.fold_left (fun n d -> max n (depth d)) 1 ds | _ -> 1 in
    let tool_named f = List.find (fun t -> t.tname = f) tools in
    let calls () = match field "calls" !last with
      | Some l -> List.map (function
          | Array [ String f; String text; args ] -> encode_call f text args
          | _ -> raise (Bad_json "calls")) (list_of l)
      | None -> [] in
    let h = {
      model = (fun _ _ _ -> Inl (match calls () with call :: _ -> call | [] -> text_of (answer "text")));
      further = (fun _ _ -> match calls () with _ :: rest -> rest | [] -> []);
      offers = (fun m -> m <> "" && list_of (need "tools" (parse_json m)) <> []);
      unasked = (fun m -> if m <> "" && field "waiting" (parse_json m) <> None then Some nothing_waits else None);
      parse = (fun _ ->
        match field "code" !last, field "refused" !last with
        | Some code, _ -> Inl (fst (translate globals code stores))
        | None, Some m -> Inr (text_of m)
        | None, None -> Inr "does not parse");
      decode = (fun m reply ->
        if reply = nothing_waits then Inl (DCon (CVariant "none", [ DK KNull ])) else
        match field "undecoded" !last, field "decoded" !last with
        | Some m, _ -> Inr ("user\001" ^ text_of m)
        | None, Some d -> Inl (data_of d)
        | None, None ->
            let how = parse_json m in
            let offered = list_of (need "tools" how) in
            (match decoded_call reply, field "call" !last with
             | Some (name, _, args), _ -> decode_call offered name (data_of (parse_json args))
             | None, Some name -> decode_call offered (text_of name) (data_of (answer "args"))
             | None, None ->
                 match decode_text (field "result" how) reply with
                 | Inl d when offered <> [] -> Inl (DCon (CVariant "final", [ d ]))
                 | r -> r));
      tool_params = (fun f -> List.map fst (tool_named f).params);
      tool_accepts = (fun f d -> if takes (tool_named f).decl d then None else Some unfit_arguments);
      tool_key = (fun f _ _ -> f);
      completes = (fun f ->
        let t = tool_named f in
        let only = match field "completes" t.decl with
          | Some names -> List.map (function String s -> s | _ -> raise (Bad_json "completes")) (list_of names) | None -> [] in
        List.concat (List.mapi (fun i (n, _) -> if List.mem n only then [ i ] else []) t.params));
      completed = (fun _ _ _ _ -> true);
      tool = (fun _ _ _ _ ->
        let d = data_of (answer "data") in
        returned := d;
        Some (depth d));
      content = (fun _ _ _ path _ ->
        match List.fold_left (fun d i -> match d with DCon (_, ds) -> List.nth ds i | _ -> raise Not_found) !returned path with
        | DK k -> AScalar k
        | DCon (c, ds) ->
            AParts (c, List.map (fun _ -> { named = []; says = (fun _ -> lab false false) }) ds, List.mapi (fun i _ -> i) ds)
        | DClo _ -> unsupported "a function that a tool returns");
      misfit = (fun f d -> if is_of (need "result" (tool_named f).decl) d then None else Some "result of another type");
      (* Failures are refusals of the world. *)
      most = (fun _ _ -> lab false false);
      failure = (fun _ _ _ _ -> "");
      states = (fun _ _ _ _ -> match field "label" !last with Some l -> label_of l | None -> lab false false);
      tool_policy = (fun f ->
        match field "policy" (tool_named f).decl with
        | None | Some Null -> None
        | Some code ->
            let code = Object [ ("tools", Array []); ("stores", Array []); ("terms", need "terms" code); ("root", need "root" code) ] in
            Some (fst (translate [] code (ref []))));
      approve = (fun f -> match field "approve" (tool_named f).decl with
        | Some (Bool b) -> b | Some (String "if-refused") -> true | _ -> false);
      if_refused = (fun f -> field "approve" (tool_named f).decl = Some (String "if-refused"));
      confirms = (fun f -> field "confirm" (tool_named f).decl = Some (Bool true));
      among = (fun f ->
        let t = tool_named f in
        let place p =
          let rec at i = function (n, _) :: rest -> if n = p then i else at (i + 1) rest | [] -> raise (Bad_json "among") in
          at 0 t.params in
        List.map (fun (source, params) ->
            from_items (Obj.magic two_by_two) same 1000 source None (List.map (fun (p, path) -> (place p, fun d -> values_at d (List.map step path))) params))
          (sets_of t));
      forms = (fun f ->
        let t = tool_named f in
        (match field "plain" t.decl, field "includes" t.decl with
         | None, None -> () | _ -> unsupported "forms of texts and readers");
        match field "pattern" t.decl with
        | None -> []
        | Some (Object patterns) ->
            List.concat (List.mapi (fun i (n, _) ->
              match List.assoc_opt n patterns with
              | None -> []
              | Some (String "[a-z]+") -> [ closed_form (Obj.magic two_by_two) i (fun d -> if is_word d then None else Some "pattern") ]
              | Some _ -> unsupported "regular expression") t.params)
        | Some _ -> raise (Bad_json "pattern"));
      asking = (fun _ -> []);
      anyone = lab true false;
      from_label = (fun l -> data_of (label_json l));
      sample = (fun _ _ -> match answer "drawn" with Bool b -> b | _ -> otherwise "the answer is no sample");
      refuses = (fun r _ -> refuses r);
      is_timeout = (fun m -> m = timeout);
      remark = (fun _ _ -> "user\001The last result was refused:");
      char_at = (fun s q -> if q.qden = 1 && q.qnum >= 0 then List.nth_opt (chars s) q.qnum else None);
      prim = look policy; serialize; to_label;
      tool_pc = (fun f -> (tool_named f).control);
      tool_args = (fun f -> List.map snd (tool_named f).params);
      tool_res = (fun f -> (tool_named f).result);
      key_label = (fun k -> let _, l, _ = List.find (fun (n, _, _) -> n = k) !stores in l);
      has_type = (fun t d -> is_of (parse_json t) d);
      key_type = (fun k -> let _, t = List.find (fun (n, _) -> n = k) !key_types in print_json t);
      now = (fun _ _ -> 0);
      keep = (fun _ _ a ->
        if not evict then (if !present then a else []) else
        let kept = keeps a in
        (match !said with
         | Some (k, b) when List.mem_assoc k kept <> b -> otherwise ("the answer is wrong about the entry " ^ k)
         | _ -> said := None);
        kept);
      others = (fun _ _ a -> a);
      clearance = (fun _ -> match field "clearance" input with Some l -> label_of l | None -> lab true true);
      policy;
      prelude = [];
    } in
    (* Initial values, in the order of the declarations. *)
    (* The sets of [among]: the tokens of the request, and what the tools give that are called before the first
       step, each once, in the order in which they are named. *)
    let before = ref [] in
    let no_set = (lab false false, []) in
    let sets = ref [ (of_request, match field "request" input with
      | Some r -> (label_of (need "label" r), List.map data_of (list_of (need "tokens" r)))
      | None -> no_set) ] in
    List.iter (fun (source, _) ->
        if source <> "" && source.[0] = stated.[0] && not (List.mem_assoc source !sets) then
          sets := (source, (lab false false, List.map data_of (list_of (parse_json (String.sub source 1 (String.length source - 1)))))) :: !sets;
        let can_be_read = List.exists (fun t -> t.tname = source && can_be_a_set t) tools in
        if not (List.mem_assoc source !sets) && can_be_read then begin
          let t = tool_named source in
          let channel = List.fold_left (fun l (_, b) -> join2 l b) t.control t.params in
          before := { channel; what = RTool (source, List.map (fun _ -> DK KNull) t.params, source) } :: !before;
          let own, items =
            match refuses (RTool (source, [], source)) with
            | Some _ -> (lab false false, [])
            | None ->
                ((match field "label" !last with Some l -> label_of l | None -> lab false false),
                 match field "data" !last with
                 | Some d when is_of (need "result" t.decl) (data_of d) ->
                     (match data_of d with DCon (CList, ds) -> ds | DK KNull -> [] | d -> [ d ])
                 | _ -> []) in
          sets := (source, (join2 t.result own, items)) :: !sets
        end)
      (List.concat_map sets_of tools);
    (* Too many calls that untrusted data decided: the run ends. *)
    let decided f t =
      List.length (List.filter (fun e -> match e.what with RDecided (g, u) -> f = g && untrusted u | _ -> false) t) in
    let stopped = ref false in
    let stops f u _ t = match field "at_most" (tool_named f).decl with
      | Some n when untrusted u && decided f t >= int_of n -> stopped := true; true
      | _ -> false in
    let frame = { sets = (fun k -> Option.value ~default:no_set (List.assoc_opt k !sets)); stops } in
    let start = initial (Obj.magic two_by_two) frame (fun l ->
      List.filter_map (fun (n, l', d) -> if l' = Obj.magic l then Option.map (fun d -> (n, (0, d))) d else None)
        (List.stable_sort (fun (a, _, _) (b, _, _) -> compare (declaration a) (declaration b)) (List.rev !stores))) in
    let fuel = match field "fuel" input with Some n -> int_of n | None -> 10000 in
    (* The definitions of the prelude, the last one first. *)
    let env = List.fold_left (fun (names, env) (x, e) ->
        match run h fuel env start (fst (translate names e stores)) with
        | Val v, _ -> (x :: names, v :: env)
        | _ -> unsupported ("prelude definition " ^ x)) ([], []) prelude |> snd in
    let outcome, state = run { h with prelude = env } fuel env start program in
    let rec tree (Lab (l, v)) : json =
      Object (("label", label_json l) :: (match v with
        | VK k -> [ ("scalar", data_json (DK k)) ]
        | VCon (CList, vs) -> [ ("list", Array (List.map tree vs)) ]
        | VCon (CPair, vs) -> [ ("pair", Array (List.map tree vs)) ]
        | VCon (CArgs (_, fs), vs) -> [ ("args", Array (List.map2 (fun k v -> Array [ String k; tree v ]) fs vs)) ]
        | VCon (CRec fs, vs) -> [ ("record", Array (List.map2 (fun k v -> Array [ String k; tree v ]) fs vs)) ]
        | VCon (CVariant t, vs) -> [ ("tag", String t); ("payload", Array (List.map tree vs)) ]
        | VCon ((CFix _ | CTool _), _) | VClo _ -> [ ("function", label_json (deep_label two_by_two (Lab (l, v)))) ])) in
    let message m =
      match decoded_call m with Some (_, text, _) -> Array [ String "assistant"; String text ] | None ->
      match String.index_opt m '\001' with
      | Some i -> Array [ String (String.sub m 0 i); String (String.sub m (i + 1) (String.length m - i - 1)) ]
      | None -> Array [ String "assistant"; String m ] in
    let plain m = match message m with Array [ _; s ] -> s | _ -> String m in
    let rec first n = function x :: l when n > 0 -> x :: first (n - 1) l | _ -> [] in
    (* Each request with the time limits around it, innermost first: those that were told and whose end was not. *)
    let around = ref [ Strand { way = ""; counts = []; par = "" } ] in
    let strand () = List.find_map (function Strand s -> Some s | _ -> None) !around |> Option.get in
    (* What is named next of a kind at a label. *)
    let count kind l =
      let s = strand () in
      let at = kind ^ print_json (label_json l) in
      let n = Option.value ~default:0 (List.assoc_opt at s.counts) in
      s.counts <- (at, n + 1) :: s.counts;
      Printf.sprintf "%s/%s%d" s.way at n in
    let enter par i = around := Strand { way = Printf.sprintf "%s.%d" par i; counts = []; par = "" } :: !around in
    let opens l n =
      if n >= 0 then ()
      else if n = - of_each then around := Each { items = 0; of_par = "" } :: !around
      else if n = - item then (match !around with
        | Each e :: _ ->
            if e.items = 0 then e.of_par <- count "par" l;
            e.items <- e.items + 1;
            enter e.of_par (e.items - 1)
        | _ -> raise (Bad_json "an item of nothing"))
      else begin
        let i = - n - branch 0 in
        let s = strand () in
        if i = 0 then s.par <- count "par" l;
        enter s.par i
      end in
    let event e =
      let limits = List.filter_map (function Limit (q, name) -> Some (q, name) | _ -> None) !around in
      let what, draw = match e.what with
        | RModel (_, ms) -> ([ ("model", Array (List.map message ms)) ], [])
        | RKey _ -> ([], [])
        | RTool (f, ds, _) -> ([ ("tool", String f); ("args", Array (List.map data_json ds)) ], [])
        | RApprove (f, ds, _) -> ([ ("approve", String f); ("args", Array (List.map data_json ds)) ], [])
        | RSample p -> ([ ("sample", number_json p) ], [ String (count "draw" e.channel) ])
        | RRecall k -> ([ ("recall", String k) ], [])
        | RRemember (k, d) -> ([ ("remember", String k); ("value", data_json d) ], [])
        | RWithin q when q.qnum < 0 -> opens e.channel q.qnum; ([], [])
        | RWithin q -> around := Limit (q, count "scope" e.channel) :: !around; ([], [])
        | RArgs _ | RDecided _ -> ([], [])
        | REnd -> around := List.tl !around; ([], []) in
      let within = match limits with [] -> [] | l -> [ ("within", Array (List.map (fun (q, _) -> number_json q) l)) ] in
      let names = match draw @ List.map (fun (_, name) -> String name) limits with
        | [] -> [] | l -> [ ("names", Array l) ] in
      if what = [] then None else Some (Object (("channel", label_json e.channel) :: what @ within @ names)) in
    let result = match outcome with
      | Val v -> Object [ ("value", tree v) ]
      | Err (l, m) -> Object [ ("error", Object [ ("label", label_json l);
          ("message", if String.contains m '\001' then plain m else String m) ]) ]
      | Out when !stopped -> Object [ ("stopped", String "at_most") ]
      | Out -> String "out of fuel" in
    let trace = List.filter_map event (List.rev_append !before (List.rev state.tr)) in
    let result, trace =
      if not !ended then (result, trace)
      else ((match outcome with Out when not !stopped -> result | _ -> String "open"), first (!answered + 1) trace) in
    (if cut then unworded else fun j -> j) (Object [
      ("result", result);
      ("conversation_label", label_json state.cv.clab);
      ("conversation", Array (List.map message state.cv.msgs));
      ("trace", Array trace) ])
  with Otherwise what -> Object [ ("result", String ("otherwise: " ^ what)) ]

let () =
  let unsupported_of = function
    | Unsupported what -> Some what
    | Stack_overflow -> Some "evaluation deeper than the stack"
    | Out_of_memory -> Some "more memory than there is"
    | Not_found | Failure _ | Invalid_argument _ | Bad_json _ -> Some "something that the driver does not translate"
    | _ -> None in
  match Array.to_list Sys.argv with
  | [ _; "--version" ] ->
      print_endline (print_json (Object [ ("protocol", Number "1"); ("interpreter", String Version.digest) ]))
  | [ _; "--lines" ] ->
      (try
         while true do
           let answer = try answer_to (parse_json (input_line stdin)) with e ->
             (match unsupported_of e with
              | Some what -> Object [ ("unsupported", String what) ]
              | None -> raise e) in
           print_endline (print_json answer)
         done
       with End_of_file -> ())
  | _ ->
    try print_endline (print_json (answer_to (parse_json (read_all stdin)))) with
    | Unsupported what -> prerr_endline ("unsupported: " ^ what); exit 3
    | Bad_json what -> prerr_endline ("not the exchange form: " ^ what); exit 2
