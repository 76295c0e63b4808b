; Colors of `.agent` files. A test compares the lists of words with the table of keywords.

(comment) @comment

[ "use" "const" "type" "enum" "agent" "tool" "task" "pipeline" "fn" "workflow" "test" "stage" "review" "let" ] @keyword.storage.type

[
  "if" "while" "break" "continue" "try" "assert" "return" "parallel" "for" "match" "guard" "mock" "attack"
  "expect" "else" "in" "catch" "ensure" "join" "where" "fails"
] @keyword.control

[
  "run" "endorse" "quarantine" "by" "retries" "timeout" "on_fail" "with" "retry" "abort" "max"
  "max_concurrency" "max_rounds" "does" "checks" "revise" "using" "as" "each" "of" "samples" "pass" "when"
  "system" "examples" "prompt" "exec" "builtin" "http" "mcp" "python"
] @keyword

[ "pure" "reads" "writes" "untrusted" "secret" "trusted" "public" "requires" "policy" ] @keyword.storage.modifier

[ "String" "Number" "Bool" "List" "Option" "Map" "Obj" "Any" "Int" "Decimal" "Date" "Time" "Duration" "Url" "Email" ] @type.builtin

[ "true" "false" "null" ] @constant.builtin

[ "call" "no" "refused" "snapshot" ] @keyword

(field_name) @property
(key) @property
(type_identifier) @type
(variant) @constant

(policy_rule key: _ @property)
(constant_declaration name: (identifier) @constant)
(agent name: (identifier) @type)
(tool name: (identifier) @function)
(task name: (identifier) @function)
(pipeline name: (identifier) @function)
(function name: (identifier) @function)
(method_call function: (key) @function)
(workflow name: (identifier) @function)
(import name: (identifier) @function)
(call function: (identifier) @function)
(run target: (identifier) @function)
(path import: (identifier) @module)
(path_type import: (identifier) @module)
(use name: (identifier) @module)
(try kind: (identifier) @keyword)
(parameter name: (identifier) @variable.parameter)

[ (string) (template) (template_expression) ] @string
(hole) @embedded
[ (escape) (brace) ] @string.escape
(hole [ "{" "}" ] @punctuation.special)
(number) @number

[ "||" "&&" "??" "==" "!=" "<" "<=" ">" ">=" "+" "-" "*" "/" "%" "!" "=" "->" "=>" "|" ] @operator
[ "," ";" ":" "." "?." ] @punctuation.delimiter
[ "{" "}" "[" "]" "(" ")" ] @punctuation.bracket
