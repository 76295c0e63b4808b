/// <reference types="tree-sitter-cli/dsl" />
// The grammar of `.agent` files, as docs/agentlang.md states it.
//
// A word between single quotes is a keyword of `crates/syntax/src/agent/keywords.rs`; a test compares both.
// Punctuation stands between double quotes.

const OPERATORS = [
  ["||"],
  ["&&"],
  ["==", "!="],
  ["<", "<=", ">", ">="],
  ["??"],
  ["+", "-"],
  ["*", "/", "%"],
];
const UNARY = OPERATORS.length + 1;
const POSTFIX = UNARY + 1;

/** Elements between commas, of which one may follow the last. */
const list = (element) => optional(seq(element, repeat(seq(",", element)), optional(",")));

/** At least one element. */
const list1 = (element) => seq(element, repeat(seq(",", element)), optional(","));

/** One of some tokens. */
const one_of = (tokens) => (tokens.length === 1 ? tokens[0] : choice(...tokens));

/** Characters of a string that mean nothing else. White space and comments are text there. */
const text = (pattern) => token.immediate(prec(1, pattern));

/** A string between quotes of one kind. */
const quoted = (open, close, part) => seq(open, repeat(part), token.immediate(prec(1, close)));

/** A word that begins an expression or a statement, where it is a name. */
const word_as_name = ($) => alias(choice('run', 'endorse', 'quarantine', 'match'), $.identifier);

/** A word that begins a clause, where it is a name. */
const word_of_clause = ($) => alias(choice('by', 'retries', 'timeout', 'on_fail'), $.identifier);

module.exports = grammar({
  name: "agent",

  word: ($) => $.identifier,

  extras: ($) => [/[\s\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]/, $.comment],

  // `endorse` and `quarantine` are names where no operand follows.
  // The last value of a `fn` may begin like a statement, and a branch with a value like a block.
  conflicts: ($) => [
    [$._name, $.endorse_expression],
    [$._name, $.lambda],
    [$.parameters_of_lambda, $._name],
    [$.if, $.if_expression],
    [$.match, $.match_expression],
    [$._name, $.match_expression],
    [$._statement, $.value_block],
    [$.block, $.value_block],
    [$.block, $.record],
    [$._name, $._key],
    [$.match, $._name, $.match_expression],
    [$._name, $.construct],
    // A case behind the name of an import, or a field.
    [$._name, $.path],
    // A type behind one, or a field of what is quarantined.
    [$._type_name, $.path_type],
    // `as` after a condition of a type may be that of the tool.
    [$.call, $.quarantine_expression],
  ],

  rules: {
    source_file: ($) => repeat($._item),

    comment: () => token(choice(/--[^\r\n]*/, /\/\/[^\r\n]*/)),

    // ----- declarations -----

    _item: ($) =>
      choice(
        $.use,
        $.import,
        $.constant_declaration,
        $.alias,
        $.sum,
        $.enum,
        $.agent,
        $.tool,
        $.task,
        $.pipeline,
        $.function,
        $.workflow,
        $.test,
        $.policy,
      ),

    policy: ($) => seq('policy', $.policy_rules),

    policy_rules: ($) => seq("{", repeat($.policy_rule), "}"),

    policy_rule: ($) =>
      choice(
        seq(
          field("key", 'allow'),
          field("condition", $._expression),
          optional(seq('else', $.string)),
          ";",
        ),
        seq(
          field("key", choice('tool', 'unknown_tools', 'output')),
          optional(choice($._path, $.string)),
          choice(seq($.policy_rules, optional(";")), ";"),
        ),
        seq(
          field(
            "key",
            choice(
              'lattice', 'principal', 'readers', 'sources', 'place', 'model', 'control', 'arguments', 'bound',
              'result', 'among', 'plain', 'pattern', 'completes', 'approve', 'at_most', 'clearance', 'pure',
              'reads', 'writes',
              // The checker says that there is no such rule.
              $.identifier,
            ),
          ),
          repeat(choice($.identifier, 'below', $.string, $.number, $.list, $.record)),
          optional(seq('when', field("condition", $._expression))),
          ";",
        ),
      ),

    use: ($) =>
      seq(
        'use',
        optional(field("kind", choice('mcp', 'python'))),
        field("path", $.string),
        optional(choice(seq('as', field("name", $.identifier)), seq("{", list($.used_name), "}"))),
        ";",
      ),

    used_name: ($) => seq(field("name", $.identifier), optional(seq('as', field("renamed", $.identifier)))),

    // A name, perhaps behind that of an import.
    _path: ($) => choice($.identifier, $.path),

    path: ($) => seq(field("import", $.identifier), ".", field("name", $.identifier)),

    import: ($) =>
      seq(
        'use',
        field("kind", $.identifier),
        field("path", $.string),
        field("unit", optional($.string)),
        'as',
        $._signature,
        ";",
      ),

    constant_declaration: ($) =>
      seq(
        'const',
        field("name", $.identifier),
        optional(seq(":", field("type", $._type))),
        "=",
        field("value", $._expression),
        ";",
      ),

    alias: ($) => seq('type', field("name", $._type_name), "=", field("type", $._type), ";"),

    sum: ($) =>
      seq('type', field("name", $._type_name), "=", $.sum_case, repeat(seq("|", $.sum_case)), ";"),

    // A name alone is an alias.
    sum_case: ($) =>
      choice(
        prec(-1, field("name", alias($.identifier, $.variant))),
        // The checker says that these are types; so it is one place that is wrong, not the declaration.
        prec(-1, field("name", alias($._builtin_word, $.variant))),
        seq(
          field("name", alias(choice($.identifier, $._builtin_word), $.variant)),
          "{",
          list($.type_field),
          "}",
        ),
      ),

    enum: ($) =>
      seq('enum', field("name", $._type_name), "{", list(alias($.identifier, $.variant)), "}", optional(";")),

    agent: ($) => seq('agent', field("name", $.identifier), "{", list($.agent_field), "}", optional(";")),

    agent_field: ($) =>
      choice(
        pair($, 'model', choice($.string, seq("[", list($.string), "]"))),
        pair($, 'prompt', $.template),
        pair($, choice('max_steps', 'temperature', 'max_tokens'), choice($.number, $.identifier)),
        pair($, 'talk', $.identifier),
        pair($, choice('tools', 'final_tools'), seq("[", list($._path), "]")),
        pair($, choice('helpers', 'handoffs'), seq("[", list($.offered), "]")),
        pair($, 'settings', seq("{", list($.setting), "}")),
        pair($, 'memory', seq("{", list($.memory_setting), "}")),
        pair($, 'budget', seq("{", list($.setting), "}")),
      ),

    offered: ($) => seq($._path, optional(seq('as', $.string))),

    setting: ($) => seq(field("key", choice($._key, $.string)), ":", field("value", $._expression)),

    memory_setting: ($) =>
      seq(
        field("key", $._key),
        ":",
        field("value", choice($.string, $.number, seq("{", list($.memory_key), "}"))),
      ),

    memory_key: ($) => seq(field("name", $._key), ":", field("type", $._type), repeat($.flow)),

    tool: ($) =>
      seq('tool', $._signature, optional(seq('as', field("called", $.string))), repeat($.flow), $.body),

    task: ($) => seq('task', $._signature, repeat($.flow), optional(seq($.by_agent, repeat($.flow))), $.body),

    by_agent: () => seq('by', 'agent'),

    pipeline: ($) => seq('pipeline', $._signature, $.block),

    function: ($) => seq('fn', $._generic_signature, alias($.function_block, $.block)),

    function_block: ($) => seq("{", repeat($._statement), optional($._expression), "}"),

    workflow: ($) => seq('workflow', $._signature, "{", repeat(choice($.stage, $.review, $.return)), "}"),

    test: ($) =>
      seq('test', field("name", $.string), optional($.test_rows), optional($.test_samples), $.block),

    test_rows: ($) =>
      seq(
        'for',
        'each',
        field("name", $.identifier),
        optional(seq(":", field("type", $._type))),
        'of',
        field("path", $.string),
      ),

    test_samples: ($) =>
      seq('samples', field("count", $.number), 'pass', ">=", field("rate", $.number)),

    _signature: ($) =>
      seq(field("name", $.identifier), $.parameters, "->", field("result", $._type)),

    _generic_signature: ($) =>
      seq(
        field("name", $.identifier),
        optional($.type_parameters),
        $.parameters,
        "->",
        field("result", $._type),
      ),

    type_parameters: ($) => seq("[", list($._type_name), "]"),

    parameters: ($) => seq("(", list($.parameter), ")"),

    parameter: ($) =>
      seq(
        field("name", $.identifier),
        ":",
        field("type", $._type),
        repeat($.flow),
        optional(seq("=", field("default", $._expression))),
      ),

    flow: ($) =>
      choice(
        'pure',
        'reads',
        'writes',
        'untrusted',
        'secret',
        seq('requires', choice('trusted', 'public')),
        seq('policy', $.identifier),
      ),

    body: ($) =>
      seq(
        "{",
        optional(seq('system', $.template, optional(";"))),
        optional(seq('examples', $._expression, optional(";"))),
        optional(
          seq(
            choice(
              seq('prompt', $.template),
              seq('exec', repeat1($.template)),
              seq('builtin', $.string),
              seq('http', field("method", $.identifier), $.template),
              seq('mcp', $.string, optional($.string)),
              seq('python', $.string, $.string),
            ),
            optional(";"),
          ),
        ),
        "}",
      ),

    stage: ($) =>
      seq(
        'stage',
        field("name", $.identifier),
        "=",
        field("agent", $._path),
        'does',
        field("task", $._path),
        $.arguments,
        ";",
      ),

    review: ($) =>
      seq(
        'review',
        field("name", $.identifier),
        "=",
        field("reviewer", $._path),
        'checks',
        field("subject", $.identifier),
        'revise',
        'with',
        field("reviser", $._path),
        'using',
        field("task", $._path),
        'max_rounds',
        $.number,
        ";",
      ),

    // ----- types -----

    _type: ($) =>
      choice($.builtin_type, $.generic_type, $.map_type, $.object_type, $.literal_type, $.refined_type, $._type_name, $.path_type),

    path_type: ($) => seq(field("import", $.identifier), ".", field("name", $._type_name)),

    // The checker says that strings and numbers are not mixed.
    literal_type: ($) => prec.right(seq($._literal, repeat(seq("|", $._literal)))),

    _literal: ($) => choice($.string, $.number),

    refined_type: ($) => prec.right(seq($._type, 'where', field("condition", $._expression))),

    builtin_type: ($) => $._builtin_word,

    _builtin_word: () =>
      choice('String', 'Number', 'Bool', 'Any', 'Int', 'Decimal', 'Date', 'Time', 'Duration', 'Url', 'Email'),

    generic_type: ($) => seq(choice('List', 'Option'), "[", $._type, "]"),

    // Without brackets it is a type that the program declares.
    map_type: ($) =>
      prec.right(seq('Map', optional(seq("[", field("key", $._type), ",", field("value", $._type), "]")))),

    object_type: ($) => seq('Obj', "{", list($.type_field), "}"),

    type_field: ($) => seq(field("name", $._key), ":", field("type", $._type)),

    _type_name: ($) => alias($.identifier, $.type_identifier),

    // ----- statements -----

    block: ($) => seq("{", repeat($._statement), "}"),

    _statement: ($) =>
      choice(
        $.let,
        $.if,
        $.while,
        $.for,
        $.parallel,
        $.parallel_for,
        $.match,
        $.try,
        $.assert,
        $.guard,
        $.return,
        $.break,
        $.continue,
        $.mock,
        $.attack,
        $.expect,
      ),

    let: ($) =>
      seq(
        'let',
        field("name", $.identifier),
        optional(seq(":", field("type", $._type))),
        "=",
        field("value", choice($.run, $._expression)),
        repeat($.clause),
        ";",
      ),

    // A word that could begin a clause after a variable called `run` is the name of what is run.
    run: ($) =>
      prec(
        1,
        seq(
          'run',
          field("target", $._target),
          'with',
          $.record,
        ),
      ),

    _target: ($) => choice($._path, word_of_clause($)),

    clause: ($) =>
      choice(
        seq('by', $._path),
        seq('retries', $.number),
        seq('timeout', $.number),
        seq('on_fail', choice('abort', seq('use', $._expression))),
      ),

    if: ($) =>
      seq(
        'if',
        optional($._bound),
        field("condition", $._expression),
        $.block,
        optional(seq('else', choice($.block, $.if))),
      ),

    // An option is bound to a name, and a case to a pattern.
    _bound: ($) =>
      seq('let', choice(field("name", $.identifier), seq($._pattern, $.pattern_fields)), "="),

    while: ($) => seq('while', field("condition", $._expression), optional(seq('max', $.number)), $.block),

    for: ($) => seq('for', field("name", $.identifier), 'in', field("list", $._expression), $.block),

    parallel: ($) => seq('parallel', optional(seq('max_concurrency', $.number)), $.block, 'join', ";"),

    parallel_for: ($) =>
      seq(
        'parallel',
        'for',
        field("name", $.identifier),
        'in',
        field("list", $._expression),
        optional(seq('max_concurrency', $.number)),
        $.block,
      ),

    match: ($) => seq('match', field("value", $._expression), "{", repeat($.case), "}"),

    case: ($) => seq($._patterns, "=>", $.block, optional(",")),

    _patterns: ($) => choice(seq($._pattern, repeat(seq("|", $._pattern))), seq($._pattern, $.pattern_fields)),

    _pattern: ($) => choice(alias($.identifier, $.variant), alias($.path, $.variant), $.string, $.number),

    pattern_fields: ($) => seq("{", list($.pattern_field), "}"),

    pattern_field: ($) => seq(field("field", $._key), optional(seq(":", field("name", $.identifier)))),

    try: ($) =>
      seq(
        'try',
        $.block,
        choice(
          seq(
            'catch',
            optional(field("kind", $.identifier)),
            field("name", $.identifier),
            $.block,
            optional(seq('ensure', field("cleanup", $.block))),
          ),
          seq('ensure', field("cleanup", $.block)),
        ),
      ),

    assert: ($) => seq('assert', $._expression, optional(seq(",", field("message", choice($.string, $.template_expression)))), ";"),

    guard: ($) =>
      seq(
        'guard',
        field("name", $.identifier),
        'where',
        field("condition", $._expression),
        optional(seq('retry', $.number)),
        ";",
      ),

    return: ($) => seq('return', $._expression, ";"),

    break: () => seq('break', ";"),

    continue: () => seq('continue', ";"),

    attack: ($) =>
      seq('attack', field("text", $.string), 'in', 'tool', field("tool", $._path), ";"),

    mock: ($) => seq('mock', $._called, choice(seq("=>", $._expression), seq('fails', $.string)), ";"),

    expect: ($) =>
      seq(
        'expect',
        choice(
          seq(choice('call', seq('no', 'call'), 'refused'), $._called),
          seq('snapshot', field("value", $._expression)),
        ),
        ";",
      ),

    _called: ($) => seq(field("tool", $._path), optional($.arguments)),

    // ----- expressions -----

    _expression: ($) =>
      choice(
        $._name,
        $.string,
        $.template_expression,
        $.number,
        $.constant,
        $.parenthesized,
        $.list,
        $.record,
        $.construct,
        $.call,
        $.quarantine_expression,
        $.endorse_expression,
        $.if_expression,
        $.match_expression,
        $.method_call,
        $.field_access,
        $.index,
        $.unary,
        $.binary,
      ),

    _name: ($) => choice($.identifier, word_as_name($)),

    constant: () => choice('true', 'false', 'null'),

    parenthesized: ($) => seq("(", $._expression, ")"),

    list: ($) => seq("[", list($._expression), "]"),

    record: ($) =>
      choice(
        seq("{", list(choice($.pair, $.short_pair)), "}"),
        seq("{", $.spread, optional(seq(",", list(choice($.pair, $.short_pair)))), "}"),
      ),

    spread: ($) => seq("...", $._expression),

    // A value of a case with fields. No block begins with a key.
    construct: ($) =>
      seq(
        field("case", choice(alias($.identifier, $.variant), alias($.path, $.variant))),
        "{",
        optional(list1(choice($.pair, $.short_pair))),
        "}",
      ),

    if_expression: ($) =>
      seq(
        'if',
        optional($._bound),
        field("condition", $._expression),
        $.value_block,
        'else',
        choice($.value_block, $.if_expression),
      ),

    match_expression: ($) =>
      seq('match', field("value", choice($._expression, word_of_clause($), alias('where', $.identifier))), "{", repeat($.value_case), "}"),

    value_case: ($) =>
      seq(
        $._patterns,
        "=>",
        choice(seq($._expression, optional(",")), seq($.value_block, optional(","))),
      ),

    // A block that has a value.
    value_block: ($) => prec.dynamic(1, seq("{", repeat($.let), $._expression, "}")),

    lambda: ($) =>
      seq(
        choice($.identifier, word_as_name($), $.parameters_of_lambda),
        "=>",
        choice($._expression, $.value_block),
      ),

    parameters_of_lambda: ($) => seq("(", list(choice($.identifier, word_as_name($))), ")"),

    // A field that is named as the variable whose value it has.
    short_pair: ($) => field("key", $._key),

    // The key of a map is a string.
    pair: ($) => seq(field("key", choice($._key, $.string)), ":", field("value", $._expression)),

    // Of `quarantine(…)` only the word after it tells whether it is a call.
    call: ($) =>
      prec(
        POSTFIX,
        seq(field("function", choice($._name, alias('quarantine', $.identifier))), $.arguments),
      ),

    method_call: ($) =>
      prec(POSTFIX, seq($._expression, ".", field("function", $._key), $.arguments)),

    arguments: ($) => seq("(", list(choice($._expression, $.lambda)), ")"),

    quarantine_expression: ($) => prec(POSTFIX, seq('quarantine', $.arguments, 'as', $._type)),

    endorse_expression: ($) =>
      prec.right(
        seq('endorse', field("value", $._expression), 'in', $.list, optional(seq('else', $._expression))),
      ),

    field_access: ($) =>
      prec(POSTFIX, seq($._expression, choice(".", "?."), field("field", $._key))),

    index: ($) => prec(POSTFIX, seq($._expression, "[", $._expression, "]")),

    unary: ($) => prec(UNARY, seq(choice("!", "-"), $._expression)),

    binary: ($) =>
      choice(
        ...OPERATORS.map((operators, i) =>
          prec.left(
            i + 1,
            seq(field("left", $._expression), one_of(operators), field("right", $._expression)),
          ),
        ),
      ),

    // ----- tokens -----

    _key: ($) => alias($.identifier, $.key),

    identifier: () => /[\p{Alphabetic}_][\p{Alphabetic}\p{N}_]*/,

    number: () => /[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?/,

    // A string whose braces are text.
    string: ($) =>
      choice(
        quoted('"', '"', choice(alias($._text, $.text), $.escape)),
        quoted('"""', '"""', choice(alias($._long_text, $.text), alias($._long_escape, $.escape))),
      ),

    // A prompt and its like: the `f` is optional, braces begin holes.
    template: ($) =>
      choice(
        quoted(choice('"', 'f"'), '"', $._template_part),
        quoted(choice('"""', 'f"""'), '"""', $._long_template_part),
      ),

    template_expression: ($) =>
      choice(quoted('f"', '"', $._template_part), quoted('f"""', '"""', $._long_template_part)),

    _template_part: ($) => choice(alias($._template_text, $.text), $.escape, $.brace, $.hole),

    _long_template_part: ($) =>
      choice(alias($._long_template_text, $.text), alias($._long_escape, $.escape), $.brace, $.hole),

    hole: ($) => seq(token.immediate(prec(1, "{")), $._expression, "}"),

    brace: () => token.immediate(prec(2, choice("{{", "}}"))),

    escape: () => text(/\\[^\r\n]/),
    _long_escape: () => text(/\\(.|\r|\n)/),
    _text: () => text(/[^"\\\r\n]+/),
    _long_text: () => text(/[^"\\]+|"{1,2}/),
    _template_text: () => text(/[^"\\{}\r\n]+/),
    _long_template_text: () => text(/[^"\\{}]+|"{1,2}/),
  },
});

/** A field of an agent: its name, which is no keyword there, and its value. */
function pair($, name, value) {
  return seq(field("name", alias(name, $.field_name)), ":", field("value", value));
}
