; Colors of `.lam` files. A test compares the lists of words with those of the calculus.

(comment) @comment

[ "let" "tool" "store" ] @keyword.storage.type

[
  "in" "if" "then" "else" "case" "of" "try" "catch" "fix" "par" "each" "fork" "fresh" "within" "assert" "check"
  "guard" "fail" "retry" "not" "timeout" "permanent" "transient" "error" "refusal"
] @keyword.control

[
  "send" "recv" "fst" "snd" "llm" "mem" "recall" "remember" "choose" "classify" "endorse" "declassify" "prim"
  "unknown" "const" "args" "system" "user" "assistant"
] @keyword

(clear) @keyword

[
  "pure" "read" "reads" "write" "writes" "confirm" "control" "approve" "if_refused" "by" "fields" "delegated" "among"
  "plain" "pattern" "completes" "includes" "at_most" "policy" "capacity" "ttl" "backend" "trusted" "public"
  "untrusted" "secret"
] @keyword.storage.modifier

[ "Str" "Num" "Bool" "Null" "Dyn" "List" "Option" "Map" "Rec" "Var" "Enum" ] @type.builtin

[ "sample" "conversation" "state" ] @type

[ "any" "every" "some" "schema" "matches" "contains" "length" "words" "value" ] @keyword.operator

[ "true" "false" "null" "inf" "∞" ] @constant.builtin

(key) @property
(tag_name) @constant
(tag) @constant

(definition name: (variable) @variable)
(tool_declaration name: (key) @function)
(store_declaration name: (key) @function)
(primitive name: (key) @function.builtin)
(tool name: (key) @function)
(args name: (key) @function)
(lambda parameter: (variable) @variable.parameter)

(string) @string
(hole) @embedded
(escape) @string.escape
(hole [ "{" "}" ] @punctuation.special)
(number) @number

[
  "||" "∨" "&&" "∧" "==" "!=" "≠" "<" "<=" "≤" ">" ">=" "≥" "+" "-" "*" "×" "/" "%" "!" "¬" "=" ":=" "->" "→" "=>" "⇒"
  "|" "⊕" ">>" "≫" "?" "@" "\\" "λ" "`"
] @operator
[ "," ";" ":" "." ] @punctuation.delimiter
[ "{" "}" "[" "]" "(" ")" "⟨" "⟩" ] @punctuation.bracket
