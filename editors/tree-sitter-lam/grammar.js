/// <reference types="tree-sitter-cli/dsl" />
// The grammar of `.lam` files, as docs/lam.md states it.
//
// A word between single quotes is a word of the calculus, reserved or known in its place; a test compares
// them with the parser's. Punctuation stands between double quotes. `src/scanner.c` knows the margin.

const PREC = {
  binding: -1,
  relabel: 1,
  compose: 2,
  pair: 3,
  or: 4,
  and: 5,
  comparison: 6,
  sum: 7,
  product: 8,
  prefix: 9,
  application: 10,
  field: 11,
};

const OPERATORS = [
  [PREC.compose, [">>", "≫"]],
  [PREC.pair, ["|"]],
  [PREC.or, ["||", "∨"]],
  [PREC.and, ["&&", "∧"]],
  [PREC.comparison, ["==", "!=", "≠", "<", "<=", "≤", ">", ">=", "≥"]],
  [PREC.sum, ["+", "-"]],
  [PREC.product, ["*", "×", "/", "%"]],
];

/** Elements between commas, of which one may follow the last. */
const list = (element) => optional(seq(element, repeat(seq(",", element)), optional(",")));

/** A bracket that belongs to the word before it: nothing stands between them. */
const tight = () => alias(token.immediate(prec(2, "[")), "[");

/** Characters of a string that mean nothing else. White space and comments are text there. */
const text = (pattern) => token.immediate(prec(1, pattern));

module.exports = grammar({
  name: "lam",

  word: ($) => $.word,

  externals: ($) => [$._start, $._margin, $._error],

  extras: ($) => [/[ \t\r\n]/, $.comment],

  rules: {
    source_file: ($) => seq($._start, repeat(choice(seq($._item, choice($._margin, ";")), ";"))),

    comment: () => token(/#[^\n]*/),

    _item: ($) => choice($.tool_declaration, $.store_declaration, $.definition, $._expression),

    // ----- declarations -----

    definition: ($) => seq('let', field("name", $._binder), "=", field("value", $._expression)),

    tool_declaration: ($) =>
      seq(
        'tool',
        field("name", $._name),
        "(",
        list($.parameter),
        ")",
        optional(seq($._arrow, field("result", $._type))),
        optional($._at_label),
        repeat($.option),
      ),

    parameter: ($) =>
      seq(field("name", $._name), optional(seq(":", field("type", $._type))), optional($._at_label)),

    option: ($) =>
      choice(
        'pure',
        'read',
        'reads',
        'write',
        'writes',
        'confirm',
        seq('control', $._label),
        seq('approve', optional('if_refused')),
        seq(
          choice('by', 'fields', 'delegated', 'among', 'plain', 'pattern', 'completes', 'includes'),
          $._data,
        ),
        seq('at_most', $.number),
        seq('policy', $._argument),
        $.string,
      ),

    store_declaration: ($) => seq('store', field("name", $._name), $._store_body),

    _store_body: ($) => prec.right(seq("{", list($.store_key), "}", repeat($.store_option))),

    store_key: ($) =>
      seq(
        field("name", $._name),
        optional(seq(":", field("type", $._type))),
        optional($._at_label),
        optional(seq("=", field("value", $._data))),
      ),

    store_option: ($) => choice(seq(choice('capacity', 'ttl'), $.number), seq('backend', $.string)),

    _at_label: ($) => seq("@", $._label),

    _label: ($) => choice($.label, seq(optional('const'), $._data)),

    label: () => prec.right(repeat1(choice('trusted', 'public', 'untrusted', 'secret'))),

    // ----- types -----

    _type: ($) => choice($.function_type, $._pair_type),

    function_type: ($) =>
      prec.right(seq($._pair_type, choice($._arrow, seq("-", $.effects, ">")), $._type)),

    effects: ($) => seq("[", list($.effect), "]"),

    effect: ($) =>
      choice(
        'sample',
        'conversation',
        'any',
        'pure',
        seq(choice('llm', 'tool', 'state'), "(", optional($._name), ")"),
      ),

    _pair_type: ($) => choice($.pair_type, $._atomic_type),

    pair_type: ($) => prec.left(seq($._pair_type, choice("*", "×"), $._atomic_type)),

    _atomic_type: ($) =>
      choice(
        $.builtin_type,
        $.generic_type,
        $.map_type,
        $.recursive_type,
        $.type_variable,
        $.enum_type,
        $.record_type,
        $.refined_type,
        $.variant_type,
        seq("(", $._type, ")"),
      ),

    builtin_type: () => choice('Str', 'Num', 'Bool', 'Null', 'Dyn'),

    generic_type: ($) => seq(choice('List', 'Option'), $._atomic_type),

    map_type: ($) => seq('Map', field("key", $._atomic_type), field("value", $._atomic_type)),

    recursive_type: ($) => seq('Rec', field("name", $._name), "{", list($.type_field), "}"),

    type_variable: ($) => seq('Var', field("name", $._name)),

    // A text behind a variant describes it.
    enum_type: ($) =>
      seq('Enum', field("name", $._name), "(", list(seq(alias($._name, $.tag), optional($.string))), ")"),

    record_type: ($) => seq("{", list($.type_field), "}"),

    type_field: ($) => seq(field("name", $._type_key), ":", field("type", $._type)),

    refined_type: ($) => seq("{", $._type, "|", $._predicate, "}"),

    variant_type: ($) => seq("<", list($.type_field), ">"),

    _type_key: ($) =>
      choice(
        $._name,
        alias(choice('Str', 'Num', 'Bool', 'Null', 'Dyn', 'List', 'Option', 'Map', 'Rec', 'Var', 'Enum'), $.key),
      ),

    // ----- predicates -----

    _predicate: ($) =>
      choice(
        alias($.or_predicate, $.predicate),
        alias($.and_predicate, $.predicate),
        $._atomic_predicate,
      ),

    or_predicate: ($) => prec.left(1, seq($._predicate, choice("||", "∨"), $._predicate)),

    and_predicate: ($) => prec.left(2, seq($._predicate, choice("&&", "∧"), $._predicate)),

    _atomic_predicate: ($) => choice($.predicate, seq("(", $._predicate, ")")),

    predicate: ($) =>
      choice(
        seq(choice("!", "¬"), $._atomic_predicate),
        seq(".", field("field", $._name), $._atomic_predicate),
        seq(choice('every', 'some'), $._atomic_predicate),
        'any',
        seq('schema', $._data),
        seq(choice('matches', 'contains'), $.string),
        seq('in', "[", list($._data), "]"),
        seq(
          choice('length', 'words', 'value'),
          choice("<", "<=", "≤", ">", ">=", "≥", "==", "!=", "≠"),
          $._signed,
        ),
      ),

    // ----- data -----

    _data: ($) =>
      choice(
        $._signed,
        $.string,
        $.constant,
        alias($.data_list, $.list),
        alias($.data_record, $.record),
        alias($.data_round, $.parenthesized),
        $.data_tag,
      ),

    data_list: ($) => seq("[", list($._data), "]"),

    data_record: ($) => seq("{", list(alias($.data_field, $.field)), "}"),

    data_field: ($) => seq(field("name", $._name), ":", field("value", $._data)),

    data_round: ($) =>
      choice(seq("(", $._data, optional(seq(",", $._data)), ")"), seq("⟨", $._data, ",", $._data, "⟩")),

    data_tag: ($) => prec.right(seq($.tag_name, optional($._data))),

    _signed: ($) => prec.right(seq(optional("-"), $.number, optional(seq("/", $.number)))),

    // ----- terms -----

    _expression: ($) =>
      choice(
        $.relabel,
        $.update,
        $.binary,
        $.random_choice,
        $.unary,
        $.prefix,
        $.choose,
        $.each,
        $.guard,
        $.mem,
        $.const,
        $._binding,
        $._applied,
      ),

    relabel: ($) =>
      prec.right(PREC.relabel, seq(field("left", $._expression), choice(":", "?"), field("right", $._expression))),

    update: ($) =>
      prec.right(PREC.relabel, seq(field("left", $._expression), ":=", field("right", $._expression))),

    binary: ($) =>
      choice(
        ...OPERATORS.map(([level, operators]) =>
          prec.left(
            level,
            seq(
              field("left", $._expression),
              operators.length === 1 ? operators[0] : choice(...operators),
              field("right", $._expression),
            ),
          ),
        ),
      ),

    random_choice: ($) =>
      prec.left(
        PREC.pair,
        seq($._expression, "⊕", optional(seq(tight(), $._signed, "]")), $._expression),
      ),

    unary: ($) => prec(PREC.prefix, seq(choice("-", "!", "¬", "@"), $._expression)),

    prefix: ($) =>
      prec(
        PREC.prefix,
        seq(
          choice(
            seq('send', optional(seq(tight(), choice('system', 'user', 'assistant', 'tool'), "]"))),
            'fork',
            'fresh',
            'fail',
            seq('within', "[", $._signed, "]"),
            seq(choice('assert', 'endorse', 'declassify'), $._argument),
            seq('classify', "[", list($._tag), "]"),
            seq('check', "[", optional(seq($._type_key, ":")), $._type, "]"),
            seq('remember', $._name),
          ),
          $._expression,
        ),
      ),

    choose: ($) => prec(PREC.prefix, seq('choose', $._signed, $._argument, $._argument)),

    each: ($) =>
      prec(PREC.prefix, seq('each', optional(seq(tight(), $.number, "]")), $._argument, $._argument)),

    guard: ($) =>
      prec.right(PREC.prefix, seq('guard', $._argument, $._predicate, optional(seq('retry', $.number)))),

    mem: ($) =>
      prec(PREC.prefix, seq('mem', $._argument, choice($._name, seq('store', "[", $.number, "]"), $._store_body))),

    const: ($) => prec(PREC.prefix, seq('const', $._data)),

    // Forms that extend as far to the right as possible.
    _binding: ($) => choice($.lambda, $.let, $.if, $.try),

    lambda: ($) =>
      prec.right(
        PREC.binding,
        seq(
          choice("\\", "λ"),
          repeat1(seq(field("parameter", $._binder), optional(seq(":", field("type", $._type))))),
          ".",
          field("body", $._expression),
        ),
      ),

    let: ($) =>
      prec.right(
        PREC.binding,
        seq(
          'let',
          field("name", $._binder),
          "=",
          field("value", $._expression),
          'in',
          field("body", $._expression),
        ),
      ),

    if: ($) =>
      prec.right(
        PREC.binding,
        seq(
          'if',
          field("condition", $._expression),
          'then',
          $._expression,
          'else',
          $._expression,
        ),
      ),

    try: ($) =>
      prec.right(
        PREC.binding,
        seq(
          'try',
          "[",
          field("label", $._expression),
          "]",
          field("body", $._expression),
          'catch',
          optional(choice(seq('not', choice('timeout', 'permanent')), 'transient', 'error', 'refusal')),
          field("name", choice($._binder, alias(choice('not', 'transient', 'error', 'refusal'), $.variable))),
          ".",
          field("handler", $._expression),
        ),
      ),

    _applied: ($) =>
      choice($.application, $.projection, $.fixpoint, $.llm, $.par, $.unknown, $._atom),

    application: ($) =>
      prec.left(PREC.application, seq(field("function", $._applied), field("argument", $._argument))),

    projection: ($) => prec(PREC.application, seq(choice('fst', 'snd'), $._argument)),

    fixpoint: ($) =>
      prec(
        PREC.application,
        seq('fix', tight(), choice($.number, 'inf', "∞"), optional($.string), "]", $._argument),
      ),

    llm: ($) => prec.right(PREC.application, seq('llm', $._argument, optional($.settings))),

    // `par[2] [a, b]` runs two at a time.
    par: ($) => prec.right(PREC.application, seq('par', $.list, optional($.list))),

    unknown: ($) => seq('unknown', $.string),

    _argument: ($) => choice($._binding, $._atom),

    _atom: ($) =>
      choice(
        $.variable,
        $.number,
        $.string,
        $.constant,
        $.tag_name,
        $.list,
        $.record,
        $.parenthesized,
        $.recv,
        $.recall,
        $.clear,
        $.tool,
        $.args,
        $.primitive,
        $.case,
        $.field_access,
        $.index,
      ),

    field_access: ($) => prec(PREC.field, seq($._atom, ".", field("field", $._name))),

    index: ($) => prec(PREC.field, seq($._atom, ".", "[", field("index", $._expression), "]")),

    list: ($) => seq("[", list($._expression), "]"),

    record: ($) => seq("{", list($.field), "}"),

    field: ($) => seq(field("name", $._name), ":", field("value", $._expression)),

    parenthesized: ($) =>
      choice(
        seq("(", $._expression, optional(seq(",", $._expression)), ")"),
        seq("⟨", $._expression, ",", $._expression, "⟩"),
        seq("(", choice(">>", "≫"), optional($._expression), ")"),
      ),

    recv: ($) => prec.right(PREC.application, seq('recv', optional($.settings))),

    recall: ($) => seq('recall', $._name),

    clear: () => 'clear',

    tool: ($) => seq('tool', "[", field("name", $._name), "]"),

    args: ($) => seq('args', tight(), field("name", $._name), "]", "{", list($.field), "}"),

    primitive: ($) => seq('prim', "[", field("name", $._name), "]", "(", list($._expression), ")"),

    case: ($) => seq('case', field("value", $._expression), 'of', "{", list($.branch), "}"),

    branch: ($) =>
      seq($._tag, optional(field("payload", $._binder)), choice("=>", "⇒"), field("body", $._expression)),

    // What a model is given: types, tools and literals by their keys.
    settings: ($) => seq("{", list($.setting), "}"),

    setting: ($) =>
      choice(
        seq(field("key", alias('result', $.key)), ":", $._type),
        seq(field("key", alias('tools', $.key)), ":", "[", list($._name), "]"),
        seq(field("key", $._name), ":", $._data),
      ),

    constant: () => choice('true', 'false', 'null'),

    // ----- names -----

    // Words that have a meaning elsewhere: before a bracket that touches them, in a predicate, after one.
    variable: ($) =>
      choice(
        $.word,
        $._invented,
        alias(
          choice(
            'fix',
            'args',
            'any',
            'every',
            'some',
            'schema',
            'matches',
            'contains',
            'length',
            'words',
            'value',
            'retry',
          ),
          $.word,
        ),
      ),

    _binder: ($) => alias(choice($.word, $._invented), $.variable),

    _invented: () => token(choice(/\$[\p{Alphabetic}\p{N}_]+/, /\$"([^"\\{]|\\[^\n]|\\\n)*"/)),

    _name: ($) => choice(alias($.word, $.key), $.string),

    _tag: ($) => choice(alias($._name, $.tag), alias($.tag_name, $.tag)),

    tag_name: ($) => seq("`", $._name),

    _arrow: () => choice("->", "→"),

    word: () => /[[\p{Alphabetic}_]--λ][[\p{Alphabetic}\p{N}_]--λ]*/,

    number: () => /[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?/,

    string: ($) =>
      choice(
        seq('"', repeat(choice(alias($._text, $.text), $.escape, $.hole)), token.immediate(prec(1, '"'))),
        token(/'[^']*'/),
      ),

    hole: ($) => seq(token.immediate(prec(1, "{")), $._expression, "}"),

    escape: () => text(/\\(.|\r|\n)/),

    _text: () => text(/[^"\\{]+/),
  },
});
