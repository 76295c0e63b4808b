//! Templates of statements and expressions: a row of the language's table each, with its edges.
//!
//! In a template, `«a¦b»` is one of its alternatives. `@N @S @L @D @E @T` are expressions: number, text,
//! list, dictionary, set, condition. `@n @s @A` are a number, a text and a variable of any kind without
//! quotation marks. `@x` is a fraction that a `float` holds exactly, `@u` a text out of many alphabets, `@i`
//! a small number, `@C` a class of exceptions, and `@1` to `@9` are new variables.

use super::{Kind, Plans, idioms};

/// A template of statements, and the variables that are bound after it.
pub(super) type Statements = (&'static str, &'static [(Kind, &'static str)]);

/// Texts of many alphabets and of every kind of character that methods tell apart.
const TEXTS: &[&str] = &[
    "''",
    "'a'",
    "'aXb'",
    "'ab ab'",
    "'Straße'",
    "'ǅungla'",
    "'İstanbul'",
    "'ΑΣ ΟΔΟΣ'",
    "'ﬁn ﬂ'",
    "'日本x語y'",
    "'it\\'s \"q\"'",
    "'they\\'re'",
    "'x²½٣'",
    "'1_0'",
    "' 12 '",
    "'٣٤'",
    "'a\\tb\\x0bc\\x0c\\x1cd\\x85e\\u2028f\\r\\ng\\rh\\n'",
    "'\\u3000a\\xa0b\\u200bc '",
    "'e\\u0301\\u0345'",
    "'\\x00\\x7f\\xad\\u200b\\u2066'",
    "'😀👍🏽'",
    "'ʼn ŉ ǰ'",
    "'a-b--c'",
    "'k=v;k2=v2;'",
    "'ABC'",
    "'{x}'",
    "'ªº'",
    "'ⅷⓐ'",
    "'_a1'",
];

/// Patterns without look-around and references.
const PATTERNS: &[&str] = &[
    "r'a*'",
    "r'a*?'",
    "r'b|'",
    "r'|b'",
    "r'(a)|(b)'",
    "r'(a)?b'",
    "r'(?P<x>\\w)(?P<y>\\d)?'",
    "r'\\b'",
    "r'\\B'",
    "r'^'",
    "r'$'",
    "r'\\Z'",
    "r'\\A\\w'",
    "r'(?m)^\\w'",
    "r'(?m)$'",
    "r'(?s).'",
    "r'.'",
    "r'\\w+'",
    "r'\\W+'",
    "r'\\d+'",
    "r'\\s'",
    "r'\\S+'",
    "r'[^a-c]'",
    "r'[\\w-]+'",
    "r'a{2}'",
    "r'a{,2}'",
    "r'(?:ab)+'",
    "r'(a|ab)(c|bcd)?'",
    "r'(?i)STRASSE|straße'",
    "r'(?i)k'",
    "r'[àé]'",
    "r'(\\w)-(\\w)'",
    "r'x*?y'",
    "r'()'",
    "r'(a+)(b*)'",
    "r'[ab]+?'",
    "r'(\\d+)-?(\\d*)'",
    "r'\\.'",
    "r'a{1,2}b{0,1}'",
];

const EXPRESSIONS: &[(Kind, &str)] = &[
    // Formats.
    (Kind::Str, "f'{@s:«¦<¦>¦^¦*^¦é>¦0<¦=»«¦0¦1¦7¦13»«¦.0¦.2¦.9»«¦s»}'"),
    (Kind::Str, "f'{@n:«¦<¦>¦^¦*^¦é=¦0=»«¦+¦-¦ »«¦#»«¦0¦04¦1¦7¦013»«¦,¦_»«¦d¦b¦x¦X¦o¦c¦n¦s»}'"),
    (Kind::Str, "f'{@n:«¦<¦^¦*=»«¦+¦ »«¦0¦09¦3¦12»«¦,¦_»«¦.0¦.1¦.3»«¦f¦F¦e¦E¦g¦G¦%»}'"),
    (Kind::Str, "f'{(@x):«¦<¦^¦*=»«¦+¦ »«¦0¦09¦3¦12»«¦,¦_»«¦.0¦.1¦.2¦.3¦.6»«¦f¦e¦g¦%¦G»}'"),
    (Kind::Str, "f'{@A!«r¦s¦a»:«¦>9¦^3¦.2»}'"),
    (Kind::Str, "f'{@A=}|{@n = }|{{}}'"),
    (Kind::Str, "f'{@s:{«<¦>¦^»}{«@i¦5»}}'"),
    (Kind::Str, "f\"{f'{@n:>{4}}':*<{6}}\""),
    (Kind::Str, "f'{@A:«¦d¦s¦.1f»}'"),
    (Kind::Str, "f\"{'a' if @n else 'b'}{@n * 2 if @n > 1 else -1}\""),
    (Kind::Str, "'{0}{1:>4}{0!r}'.format(@s, @n)"),
    (Kind::Str, "'{a[0]}{b[k]}{{}}'.format(a=@u or 'z', b={'k': @n})"),
    (Kind::Str, "'{}{}'.format(@s)"),
    (Kind::Str, "format(@n, '«>5¦05¦x¦,¦.2f¦»')"),
    (Kind::Str, "str(@x) + repr(@x)"),
    (Kind::Str, "repr(@u) + repr([@u, (@n,), {@u: None}])"),
    // Texts.
    (Kind::Str, "@u.«upper¦lower¦title¦capitalize¦swapcase¦casefold¦strip¦lstrip¦rstrip»()"),
    (Kind::Str, "(@u + @u).«upper¦lower¦title¦capitalize¦swapcase¦casefold»()"),
    (
        Kind::Str,
        "str([w.«isdigit¦isdecimal¦isnumeric¦isalpha¦isalnum¦isspace¦isupper¦islower¦istitle¦isascii\
         ¦isidentifier»() for w in [@u, @u, 'ǅ', '²', 'Σ']])",
    ),
    (Kind::Str, "str(@u.«splitlines()¦splitlines(keepends=True)¦split()¦split(None, 1)¦rsplit(None, 1)»)"),
    (Kind::Str, "str(@u.«split¦rsplit»('«a¦-¦;¦ab¦ »'«¦, 1¦, maxsplit=2¦, -1»))"),
    (Kind::Str, "str(@u.«partition¦rpartition»('«a¦-¦;¦=»'))"),
    (Kind::Str, "@u.«strip¦lstrip¦rstrip»('«a¦ab ¦\\n\\t ¦é'»')"),
    (Kind::Str, "@u.«center¦ljust¦rjust»(@i«¦, 'é'¦, '*'¦, 'ab'»)"),
    (Kind::Str, "@u.zfill(@i)"),
    (Kind::Str, "('-' + @u).zfill(6)"),
    (Kind::Str, "@u.replace(@u, '«¦é¦xx»'«¦, 1¦, -1¦, 0»)"),
    (Kind::Str, "@u.«removeprefix¦removesuffix»(@u)"),
    (Kind::Str, "@u[@i:@i«¦:2¦:-1¦:-3¦:0»]"),
    (Kind::Str, "@u[@i]"),
    (Kind::Str, "@u * @i"),
    (Kind::Str, "'«¦, ¦é»'.join(«@L¦@u¦[@u, @u]¦(str(q) for q in @L)¦{@u}¦{@u: 1}»)"),
    (Kind::Str, "''.join(reversed(@u))"),
    (Kind::Str, "chr(«97¦233¦128512¦-1¦1114112¦@n»)"),
    (Kind::Str, "«bin¦hex¦oct»(@n)"),
    (Kind::Str, "str(@A)"),
    (Kind::Str, "repr(@A)"),
    (Kind::Num, "@u.«find¦rfind¦index¦rindex¦count»(@u«¦, 1¦, -2¦, 0, 2»)"),
    (Kind::Num, "int(@u.«startswith¦endswith»(«@u¦('a', 'é')¦@u, 1»))"),
    (Kind::Num, "len(@u)"),
    (Kind::Num, "ord(@u[@i])"),
    (Kind::Num, "int(@u)"),
    (Kind::Num, "int(float(«@u¦'1e2'¦' 2.5 '¦'.5'¦'1_0.5'¦'x'¦'+3'¦'-0'»))"),
    (Kind::Num, "int('«12¦-0x1f¦0b11¦0o17¦zz¦ 7 ¦¦+5»', «0¦2¦8¦10¦16¦36»)"),
    (Kind::Num, "int(@u < @u)"),
    (Kind::Num, "int(@u in @u)"),
    // Numbers.
    (Kind::Num, "@n ** «0¦1¦2¦5¦20¦@i»"),
    (Kind::Num, "«2¦-3¦10»** «31¦63¦64¦100» «+¦-¦*¦//¦%» (@n * «1¦1000000007¦-98765432109876543210»)"),
    (Kind::Num, "pow(@n, «3¦200», «7¦1000000007¦-5»)"),
    (Kind::Num, "round(@x«¦, 1¦, 0¦, -1¦, None»)"),
    (Kind::Num, "round(@n«¦, -1¦, -2¦, 3»)"),
    (Kind::Num, "(@x «+¦-¦*» @x)"),
    (Kind::Num, "(@x «//¦%» «@x¦2¦-3¦0.5»)"),
    (Kind::Num, "(@n / «1¦2¦4¦-8»)"),
    (Kind::Num, "divmod(«@n¦@x¦-7», «2¦-3¦0.5¦0»)[«0¦1»]"),
    (Kind::Num, "math.«floor¦ceil¦trunc¦fabs»(@x)"),
    (Kind::Num, "math.«gcd(@n, 12)¦prod(@L)¦sqrt(«0¦1¦16¦0.25¦-1»)¦pow(«2¦-2¦@n», «2¦3¦0»)»"),
    (Kind::Num, "(@n «&¦|¦^» «@n¦6¦-1»)"),
    (Kind::Num, "(@n «&¦^» True)"),
    (Kind::Num, "«~¦-¦+»@n"),
    (Kind::Num, "abs(@x)"),
    (Kind::Num, "int(@x)"),
    (Kind::Num, "«1_000¦0x1F¦0b101¦0o17¦1e3¦12345678901234567890»"),
    (Kind::Num, "sum(@L, start=«10¦@n»)"),
    (Kind::Num, "«min¦max»(@L, default=«0¦None and 1 or 2»)"),
    (Kind::Num, "«min¦max»(@n, @x, @n)"),
    (Kind::Num, "«min¦max»(@u, 'ab', key=len) and 1"),
    (Kind::Num, "len(«range(@i, @i, «1¦2¦-1¦0»)¦range(@i)¦set(@u)¦dict.fromkeys(@u)»)"),
    (Kind::Num, "sum(range(@i, 5, «1¦2¦-1»))"),
    (Kind::Num, "len(list(zip(@L, @u«¦, strict=True»)))"),
    (Kind::Num, "bool(@A) + bool(@E) * 2"),
    (Kind::Num, "next((q for q in @L if q «>¦==¦<» @n), «@n¦-1¦None»)"),
    (Kind::Num, "next(q for q in @L if q > @n)"),
    (Kind::Num, "«any¦all»(q «>¦<» @n for q in @L)"),
    (Kind::Num, "isinstance(@A, «int¦str¦(int, str)¦list | dict¦bool¦float¦tuple¦set»)"),
    (Kind::Num, "(@n if @T else @n) + (@n and @n) + (@n or @n)"),
    (Kind::Num, "(@A == @A) + (@A is None) + (@A in [@A, 1])"),
    (Kind::Num, "int(@n < @n <= @n != @n)"),
    (Kind::Num, "int([@n, @u] < [@n, 'é'])"),
    (Kind::Num, "int((@n, @x) «<¦>=¦==» (@n, 0.5))"),
    (Kind::Num, "len({@n, @x, True, 1, 'a', (1, 2)})"),
    // Lists, dictionaries, sets.
    (Kind::List, "@L[@i:@i:«1¦2¦-1¦-2¦3¦0»]"),
    (Kind::List, "@L[::«-1¦2¦-2»]"),
    (Kind::List, "@L * @i"),
    (Kind::List, "list(«range(@i, @i, «1¦2¦-1»)¦reversed(@L)¦set(@L)¦tuple(@L)¦filter(None, @L)»)"),
    (Kind::List, "list(map(lambda q: «-q¦q % 3¦len(str(q))», @L))"),
    (Kind::List, "list(filter(lambda q: q «>¦!=» @n, @L))"),
    (Kind::List, "list(map(int, «'123'¦['1', ' 2']¦[0.5, True]»))"),
    (Kind::List, "sorted(@L, key=«lambda q: (q % 2, -q)¦lambda q: -q¦abs¦str¦None», reverse=«True¦False»)"),
    (Kind::List, "[q for q, _ in sorted(zip(@L, @u), key=lambda p: p[1])]"),
    (Kind::List, "[i for i, q in sorted(enumerate(@L), key=lambda p: p[1] % 2, reverse=«True¦False»)]"),
    (Kind::List, "[q + r for q in @L for r in range(q % 3) if q != r]"),
    (Kind::List, "[*@L, *@E, @n, *(1, 2)]"),
    (Kind::List, "[len(w) for w in sorted([@u, @u, @u])]"),
    (Kind::List, "[ord(c) for c in sorted(@u, reverse=«True¦False»)]"),
    (Kind::List, "sum([@L, [@n]], [])"),
    (Kind::List, "[a for a, *b in [(@n, 1, 2), [3], 'xy'] if b == b]"),
    (Kind::List, "list(@D.values())"),
    (Kind::List, "[v for _, v in sorted(@D.items(), key=lambda kv: str(kv[0]))]"),
    (Kind::List, "list(map(len, [@u, @u]))"),
    (Kind::List, "[d['a'] for d in [{'a': @n, 'b': 1}, {'a': @n}]]"),
    (Kind::Dict, "{**@D, «'a': @n¦**{'z': 1}¦1: 2, 1.0: 3, True: 4»}"),
    (Kind::Dict, "dict(«a=@n, b=2¦[('a', 1), ('b', @n)]¦@D, c=3¦zip(@u, @L)»)"),
    (Kind::Dict, "dict.fromkeys(«@L¦@u», @n)"),
    (Kind::Dict, "{q: q * 2 for q in sorted(@D, key=str)}"),
    (Kind::Dict, "{k: v for k, v in sorted(@D.items(), key=lambda kv: str(kv), reverse=True)}"),
    (Kind::Dict, "(@D | {'k': @n})"),
    (Kind::Set, "(@E «|¦&¦-¦^» @E)"),
    (Kind::Set, "@E.«union¦intersection¦difference¦symmetric_difference»(@L)"),
    (Kind::Set, "{«@n, @u, None¦@x, 1, True¦(1, 'a'), (0,)»}"),
    (Kind::Num, "int(@E «<¦<=¦>¦>=¦==» @E)"),
    (Kind::Num, "int(@E.«issubset¦issuperset¦isdisjoint»(@L))"),
    // Regular expressions.
    (Kind::Str, "str(re.findall(@P, @u))"),
    (Kind::Str, "str(re.split(@P, @u«¦, 1¦, maxsplit=2»))"),
    (Kind::Str, "re.sub(@P, «'-'¦''¦r'<\\g<0>>'», @u«¦, count=1¦, 2»)"),
    (Kind::Str, "str([(m.group(), m.span(), m.groups(), m.start(0)) for m in re.finditer(@P, @u)])"),
    (Kind::Str, "str(«re.search¦re.match¦re.fullmatch»(@P, @u) is None)"),
    (Kind::Str, "next((m.group() for m in re.finditer(@P, @u) if m.end() > 1), 'none')"),
    (Kind::Str, "str(re.findall(@Q, @u, re.«I¦M¦S¦I | re.M»))"),
    // Dates.
    (
        Kind::Str,
        "date(«1900¦2000¦2023¦2024¦2025¦9999», «1¦2¦3¦12», «1¦28¦29¦31»)\
         .«isoformat()¦strftime('%d.%m.%y %a %b %j %U %W %V %G %u %w %%')¦strftime('%A, %B %-d')»",
    ),
    (Kind::Str, "str(date(«1¦2024¦9999», «1¦12», «1¦31») + timedelta(days=@n * «1¦30¦-400»))"),
    (Kind::Str, "str(date(2024, 2, 29).replace(«year=2023¦month=4, day=30¦day=1¦day=31»))"),
    (
        Kind::Str,
        "str(date(2024, «1¦12», «1¦29¦30¦31»).«isocalendar()[1]¦isoweekday()¦toordinal()¦weekday()»)",
    ),
    (
        Kind::Str,
        "str(datetime(2024, «2¦12», 28, «0¦23», 59, «0¦59») + timedelta(«seconds=@n¦minutes=-@n¦hours=25\
         ¦days=1, hours=-1¦microseconds=@n¦weeks=1»))",
    ),
    (
        Kind::Str,
        "str(datetime.fromisoformat('«2024-02-29¦2024-02-29T10:30¦2024-02-29 10:30:15.5\
         ¦2024-02-29T10:30:15Z¦2024-02-29T24:00¦2023-02-29¦20240229¦2024-W09-4¦2024-02-29T10:30+05:30\
         ¦2024-2-9¦»'))",
    ),
    (
        Kind::Str,
        "str(datetime.strptime('«29/02/2024¦29/2/24¦2024-02-29 7:05 PM¦Feb 29, 2024¦29 February 2024¦x»', \
         '«%d/%m/%Y¦%d/%m/%y¦%Y-%m-%d %I:%M %p¦%b %d, %Y¦%d %B %Y»'))",
    ),
    (Kind::Str, "str(timedelta(«days=@n¦hours=-@n¦minutes=1.5, seconds=@n¦days=-1, seconds=1¦weeks=@n»))"),
    (Kind::Str, "repr(timedelta(«days=1, seconds=@n¦microseconds=-1¦0»))"),
    (
        Kind::Str,
        "str(timedelta(hours=@n) «* 2¦/ 2¦// 3¦% timedelta(minutes=7)¦- timedelta(1)¦< timedelta(1)\
         ¦// timedelta(minutes=50)»)",
    ),
    (Kind::Num, "(date(2024, 3, 1) - date(«2023¦2024», 2, «28¦29»)).days"),
    (Kind::Num, "timedelta(days=@n, minutes=«1¦-1»).total_seconds()"),
    (Kind::Num, "timedelta(hours=@n).«days¦seconds¦microseconds»"),
    (Kind::Num, "int(date(2024, 1, 1) «<¦==¦>=» «date(2024, 1, @n)¦datetime(2024, 1, 1)»)"),
    (Kind::Str, "str(datetime.combine(date(2024, 1, 2), time(«0¦23», «0¦59»)))"),
    (Kind::Str, "datetime(2024, 1, 2, 3, 4, 5).strftime('«%H:%M:%S¦%I %p¦%x %X¦%c¦%f¦%y%m%d»')"),
    (
        Kind::Str,
        "datetime(2024, 7, 1, @n, tzinfo=timezone.utc).astimezone(timezone(timedelta(hours=«-5¦9»))).isoformat()",
    ),
    (Kind::Str, "time(«0¦12», «0¦5»).«isoformat()¦strftime('%I:%M %p')¦replace(hour=3).isoformat()»"),
    // JSON.
    (Kind::Str, "json.dumps(«@D¦@L¦[@u, @x, None, True]¦{'b': @n, 'a': {'é': [@u]}}¦@A»)"),
    (
        Kind::Str,
        "json.dumps({'b': [@n, {}], 'a': [], @u: (1, 2)}«¦, indent=«0¦2»¦, sort_keys=True¦, ensure_ascii=False\
         ¦, indent=1, sort_keys=True»)",
    ),
    (
        Kind::Str,
        "str(json.loads('«[1, 2.5, -0, 1e2]¦{\"a\": {\"b\": [null, true]}}¦\"\\\\u00e9\\\\n\"¦ [ ] ¦{\"a\": 1, \"a\": 2}\
         ¦[1,]¦nul¦¦{\"a\" 1}¦\"\\\\ud83d\\\\ude00\"¦01¦1.¦-¦[1] x»'))",
    ),
    (Kind::Str, "str(json.loads(json.dumps(@D)))"),
    // What misuses types: the classes of exceptions are compared.
    (
        Kind::Num,
        "@A.«upper()¦append¦count(1)¦index(1)¦get('a')¦strip()¦x¦days¦copy()¦split()¦year\
         ¦find('a')¦union([1])»",
    ),
    (
        Kind::Num,
        "@«A¦s¦u».«upper¦count¦get¦find¦union¦intersection¦index¦copy¦split¦days¦join»(«echo(@n)¦@A¦echo(@u)¦@n, echo(1)»)",
    ),
    (
        Kind::Num,
        "«str¦list¦dict¦set».«upper¦count¦get¦union¦copy¦join¦startswith»(«@A¦@u¦@L», echo(«@n¦@u»))",
    ),
    (Kind::List, "list(map(«str.lower¦str.strip¦dict.copy¦set.copy», [@A, @A]))"),
    (Kind::Num, "len(sorted(«@L¦@A¦[@u, @A]», key=«str.lower¦@A.get¦@A.upper¦@A.count»))"),
    // Arguments with effects, in order.
    (Kind::List, "sorted(@L, key=lambda q: «echo(q % 3)¦add(q, 1)», reverse=«echo(@n)¦True»)"),
    (Kind::Num, "«max¦min»(@L, key=lambda q: echo(-q), default=echo(@n))"),
    (Kind::Str, "json.dumps([echo(@n), @u], indent=«echo(1)¦echo(@n)¦None»)"),
    (Kind::Str, "'{a}{}{b}'.format(echo(@n), b=echo(@u), a=add(1, @n))"),
    (Kind::Num, "len(@u.«split¦rsplit»(sep=echo(' '), maxsplit=echo(@i)))"),
    (Kind::Num, "len(@A)"),
    (Kind::Num, "(@A «+¦-¦*¦//¦%¦<¦>=¦in¦not in¦==¦!=¦|¦&» @A)"),
    (Kind::Num, "@A[«0¦'a'¦-1¦None¦0.5¦1:2¦(1, 2)»]"),
    (
        Kind::Num,
        "«int¦float¦abs¦sum¦min¦max¦sorted¦list¦tuple¦set¦dict¦len¦ord¦chr¦round¦any¦all¦reversed»(@A)",
    ),
    (Kind::Num, "«sum¦min¦max¦sorted»([@A, @A])"),
    (Kind::Num, "'a'.«join¦replace¦split¦startswith¦zfill¦center¦find»(@A)"),
    (Kind::Num, "{@A: 1}[@A]"),
    (Kind::Num, "{**@A, 'k': 2}['k']"),
    (Kind::Num, "[*@A][0]"),
];

const STATEMENTS: &[Statements] = &[
    // Targets.
    (
        "@1, (@2, *@3) = @n, (1, @n, 3)\n[@4, @5] = «'ab'¦[1, 2]¦{1: 2, 3: 4}¦(1,)¦{5, 4}»",
        &[(Kind::Num, "@1"), (Kind::List, "@3"), (Kind::Any, "@4")],
    ),
    ("@1 = @2 = @n\n@1 «+=¦-=¦*=¦//=¦%=¦**=¦|=¦&=¦^=» «@n¦2¦True»", &[(Kind::Num, "@1"), (Kind::Num, "@2")]),
    ("@1 = [0, @n, 2]\n@1[0], @1[@i] = @1[1], @1[0]\n@1[«0¦-1¦5»] «+=¦*=» 2", &[(Kind::List, "@1")]),
    ("@1, @2 = 0, [1, 2, 3]\n@1, @2[@1] = 2, @n", &[(Kind::Num, "@1"), (Kind::List, "@2")]),
    ("@1 = [5, 6, 7, 8]\n@1[@i:@i] = «[]¦[1]¦(1, 2)¦'ab'¦@L¦{3: 4}¦5»", &[(Kind::List, "@1")]),
    (
        "@1: int = «1¦-2¦True¦len(@s)»\n@2: list[int] = [1, «3¦False¦@1»]\n@3: str = 'é'\n@4: dict = {}\n@4[@3] = @1",
        &[(Kind::Num, "@1"), (Kind::List, "@2"), (Kind::Str, "@3")],
    ),
    (
        "@1 = {'a': {'b': [1, {'c': 2}]}}\n@1['a']['b'][1]['c'] += @n\n@1['a']['b'].append(@n)\n@1['a']['x'] = @L",
        &[(Kind::Any, "@1")],
    ),
    ("@1 = @u\n@1 += @u\n@1 *= @i", &[(Kind::Str, "@1")]),
    ("@1 = (1, @n)\n@1 += (@n,)\n@2 = @1[«-1¦::2¦5»]", &[(Kind::Any, "@1")]),
    // A second name for a value, and a mutation: refused, or a copy in both.
    (
        "@1 = [[@n, 1], [2, 3]]\n@2 = «@1[0]¦list(@1)[0]¦@1[:][0]¦max(@1)¦next(q for q in @1)¦[*@1][0]¦sorted(@1)[0]\
         ¦(@1 or [])[0]¦@1[0] if @n else [1]¦[q for q in @1][0]¦list(reversed(@1))[0]¦(@1 + [])[0]¦(@1 * 1)[1]\
         ¦tuple(@1)[0]¦list(zip(@1, @1))[0][0]¦list(enumerate(@1))[0][1]¦dict(enumerate(@1))[0]¦@1[0][:]¦list(@1[0])\
         ¦sum(@1, [])¦list(filter(None, @1))[0]¦list(map(lambda q: q, @1))[0]¦tuple(filter(lambda q: q[0] > 1, @1))[0]¦[@1[0], 5][0]¦{'k': @1[0]}['k']¦{'k': @1[0]}.get('k')¦@1.copy()[0]»\n\
         @2.«append(9)¦sort()¦pop()¦reverse()¦clear()»",
        &[(Kind::Any, "@1")],
    ),
    (
        "@1 = {'a': [@n], 'b': [2]}\n@2 = «dict(@1)¦@1.copy()¦{**@1}¦(@1 | {})¦{k: v for k, v in @1.items()}¦@1\
         ¦dict(@1.items())¦json.loads(json.dumps(@1))»\n@2['a']«.append(9)¦ = [7]¦[0] = 8¦ += [6]»",
        &[(Kind::Any, "@1"), (Kind::Any, "@2")],
    ),
    ("@1 = [@n]\n@2 = [@1«¦[:]¦ + [1]», [5]]\n@1«.append(7)¦ += [8]¦[0] = 9¦ = [1]»", &[(Kind::Any, "@2")]),
    (
        "@1 = [1]\ndef f@2(q):\n    return «q¦[q, 1]¦q + [2]¦list(q)¦q[:]¦(q or [3])»\n@3 = f@2(@1)\n@3.append(@n)",
        &[(Kind::Any, "@1"), (Kind::Any, "@3")],
    ),
    (
        "@1 = [1, 2]\ndef f@2(q=@1):\n    return len(q) + len(@1)\n@1«.append(@n)¦ = [5]¦ = @1 + [1]»\n@3 = f@2()",
        &[(Kind::Num, "@3")],
    ),
    (
        "@1 = [[1], [2]]\nfor @2 in «@1¦list(@1)¦@1[:]¦[list(q) for q in @1]¦(@1[0], @1[1])»:\n    @2.append(@n)",
        &[(Kind::Any, "@1")],
    ),
    (
        "@1 = {'a': 1, 'b': @n}\nfor @2 in «@1¦list(@1)¦@1.items()¦@1.copy()¦sorted(@1)»:\n    «@1['c'] = 1¦@1.pop('a', None)¦@1[@2] = 5»",
        &[(Kind::Dict, "@1")],
    ),
    (
        "@1 = [1, @n, 3]\nfor @2 in «@1¦@1[:]¦list(@1)¦reversed(@1)»:\n    «@1.remove(@2)¦@1.append(0)¦@1 = @1 + [1]¦@1 = [2]»",
        &[(Kind::List, "@1")],
    ),
    ("@1 = @L\n@2 = @1\n@1 = @1 + [@n]\n@2 = [@n, *@2]", &[(Kind::List, "@1"), (Kind::List, "@2")]),
    (
        "@1 = {1, 2}\n@2 = «@1¦set(@1)¦@1 | {5}»\n@2.«add(@n)¦discard(1)¦update([7])¦clear()»",
        &[(Kind::Set, "@1"), (Kind::Set, "@2")],
    ),
    // Methods that change.
    (
        "@1 = [3, @n, 1]\n@1.«insert(@i, 5)¦extend('ab')¦extend({7: 8})¦remove(@n)¦sort(key=str)¦clear()¦extend(@1)»",
        &[(Kind::Any, "@1")],
    ),
    (
        "@1 = {'a': 1}\n@2 = @1.setdefault('«a¦b»', @n)\n@1.«update(c=3)¦update([('a', 2)])¦update({'d': 4}, e=5)¦clear()»",
        &[(Kind::Dict, "@1"), (Kind::Any, "@2")],
    ),
    (
        "@1 = {'a': echo(@n)}\n@1.update({'b': echo(1)«¦, @u: fail(1)»}, c=add(@n, 2))\n@2 = list(@1.values())",
        &[(Kind::Dict, "@1"), (Kind::List, "@2")],
    ),
    ("@1 = [3, @n, 1]\n@1.sort(key=lambda q: add(q, 0), reverse=«echo(@n)¦echo(0)»)", &[(Kind::List, "@1")]),
    (
        "@1 = {'a': 1, 'z': @n}\n@2 = @1.«popitem()¦pop('a')¦pop('q', None)¦pop('q')»",
        &[(Kind::Dict, "@1"), (Kind::Any, "@2")],
    ),
    (
        "@1 = {@n, 2, 'x'}\n@1.«add((1, 2))¦discard('x')¦remove('q')¦update([@n], 'ab')¦add([1])»",
        &[(Kind::Set, "@1")],
    ),
    ("@1 = [@n, 2]\n@2 = @1.pop(«¦0¦-1¦5»)\n@1 *= 2", &[(Kind::List, "@1"), (Kind::Num, "@2")]),
    // What a round assigns before `continue`.
    (
        "@1 = «1¦'t'¦[@n]¦None¦@L»\n@2 = []\nfor @3 in [0, 1, 2]:\n    if @3 == «0¦1¦@n»:\n        @1 = «'a'¦@n¦[1]¦None¦@2¦echo('x')¦@D»\n        «continue¦continue¦@4 = @3\n        continue»\n    «@2.append(@1)¦@2.append(str(@1))¦@2 = [@1]¦@2.append(@1 * 2)¦@2.append(int(@1))¦@2 += [@1]¦@2.append(not @1)»\n«else:\n    @2 = [@1]¦»\n@5 = [@1, @2, «@3¦@4¦0»]",
        &[(Kind::Any, "@1"), (Kind::List, "@2"), (Kind::List, "@5")],
    ),
    (
        "@1 = 0\nfor @2 in ['1', 'x', echo('3')]:\n    try:\n        @3 = int(@2)\n    except ValueError:\n        @4 = @2\n        «@1 = @2¦@1 = [@2]¦@1 = {'k': @2}¦pass»\n        continue\n    «finally:\n        echo(@1)\n    ¦»«@1 = @3¦pass¦@5 = @1¦@1 = str(@1)»\n@6 = [@1, «@4¦@3¦@5»]",
        &[(Kind::Any, "@1"), (Kind::List, "@6")],
    ),
    (
        "@1 = 0\n@2 = {'a': «1¦[]¦'x'»}\nwhile @1 < 3:\n    @1 += 1\n    if @1 == «1¦2¦@n»:\n        «@2 = {'b': 2}¦@2['c'] = @1¦@2 = [0]¦@3 = @2»\n        continue\n    try:\n        @4 = @2[«'a'¦'b'¦0»]\n    except «KeyError¦TypeError¦@C»:\n        @4 = 'none'\n@5 = [@2, @4]",
        &[(Kind::List, "@5")],
    ),
    // Lists that are repeated have one part under several names.
    (
        "@1 = «[[@n]] * 2¦2 * [[0], @L]¦[{}] * 2¦dict.fromkeys('ab', [])¦dict.fromkeys('ab', 0)¦[0] * 3¦[[0] * 2 for @2 in range(2)]¦[@2 for @2 in [[]] * 2]¦[*[[]] * 2]»\n«@1[0] = 5¦@1[0].append(1)¦@1['a'] = @n¦@1 *= 2\n@1[0].append(1)¦@1.extend([[]] * 2)\n@1[-1].append(2)¦@3 = @1.pop()\n@3.append(1)¦for @3 in @1:\n    @3.append(1)¦pass»",
        &[(Kind::Any, "@1")],
    ),
    // A chain of variables.
    (
        "@1 = @2 = @3 = @4 = @5 = @6 = @7 = «0¦'a'¦[1]»\n@8 = []\nfor @9 in range(«9¦@i»):\n    try:\n        @8.append(«int(@7)¦@7 * 2¦@7 + 1¦str(@7)»)\n    except «ValueError¦TypeError¦@C»:\n        @8.append('v')\n    @7 = @6\n    @6 = @5\n    @5 = @4\n    @4 = @3\n    @3 = @2\n    @2 = @1\n    «@1 = echo('x')¦@1 = @9¦@1 = None¦@1 = [@9]¦if @9 == 1:\n        @1 = 'y'\n        continue»",
        &[(Kind::List, "@8")],
    ),
    // Loops.
    (
        "@1 = []\nfor @2 in range(«3¦@i»):\n    for @3 in «'ab'¦[1, @n]¦{'k': 1}»:\n        if @2 == @n:\n            «break¦continue»\n        @1.append(@2)\n    else:\n        @1.append(-1)\nelse:\n    @1.append(-2)",
        &[(Kind::List, "@1")],
    ),
    (
        "@1 = 0\nwhile @1 < «3¦@n»:\n    @1 += 1\n    if @1 == «2¦5»:\n        «break¦continue¦pass»\nelse:\n    @1 = @1 * 10",
        &[(Kind::Num, "@1")],
    ),
    (
        "@1 = @2 = 7\nfor @1 in @L:\n    pass\nfor @2, @3 in «zip(@L, @u)¦enumerate(@u)¦@D.items()¦[(1, 2)]¦[]»:\n    pass",
        &[(Kind::Num, "@1"), (Kind::Num, "@2")],
    ),
    ("@1 = [0, 0]\nfor @1[0] in @L:\n    @1[1] += @1[0]", &[(Kind::List, "@1")]),
    (
        "@1 = ''\nfor @2, (@3, *@4) in enumerate(['ab', 'c', [1, @n]]):\n    @1 += f'{@2}{@3}{@4}'",
        &[(Kind::Str, "@1")],
    ),
    (
        "@1 = []\nfor @2 in list(map(lambda q: q * 2, @L)):\n    @1.append(@2)\nfor @2 in list(filter(None, @L)):\n    @1.append(@2)",
        &[(Kind::List, "@1")],
    ),
    (
        "@1 = [@2 for @2 in @L if «@2¦@2 > 1¦not @2»]\n@2 = [[@3 for @3 in range(@2 % 3)] for @2 in @L]\n@3 = {@4 for @5 in @2 for @4 in @5}",
        &[(Kind::List, "@1"), (Kind::Set, "@3")],
    ),
    // Functions.
    (
        "@1 = @n\ndef f@2(q, r=@1, *, s=«2¦[1]¦@u»):\n    def g(t, u=q):\n        return [t, u, q, r, @1]\n    q = q + 1\n    return [g(r), g(s, 5), q]\n@1 = @n\n@3 = f@2(«1¦@n, 2¦r=1, q=@n¦1, s=3»)",
        &[(Kind::Any, "@3")],
    ),
    (
        "@2 = 0\nf@4 = lambda q: [q, @2]\n@1 = []\nfor @2 in range(3):\n    @1.append(f@4(@n))\n@2 = 9\n@1.append(f@4(0))",
        &[(Kind::Any, "@1")],
    ),
    (
        "@2 = 1\ndef f@3(q, r=@2):\n    return q + r * @2\n@1 = []\nfor @2 in [1, @n]:\n    @1.append(f@3(1))\n@1.append(f@3(@n))",
        &[(Kind::List, "@1")],
    ),
    (
        "def f@1(q):\n    if q «>¦==¦<» @n:\n        return\n    for r in [1, 2, q]:\n        if r == @n:\n            return r\n    else:\n        return 'end'\n@2 = [f@1(0), f@1(1), f@1(@n)]",
        &[(Kind::Any, "@2")],
    ),
    (
        "def f@1(g, q):\n    return g(q) if q else g(1)\n@2 = [f@1(lambda r: r + @n, 1), f@1(str, 2), f@1(echo, @n), f@1(abs, -1)]",
        &[(Kind::Any, "@2")],
    ),
    (
        "@1 = 1\ndef f@2():\n    return @1\ndef f@3():\n    @1 = f@2() + 1\n    return [@1, f@2()]\n@1 = @n\n@4 = f@3()",
        &[(Kind::Any, "@4")],
    ),
    (
        "def f@1(q):\n    r = [q]\n    for s in @L:\n        r.append(s)\n        if len(r) > «1¦2»:\n            «break¦return r¦continue»\n    r.reverse()\n    return r\n@2 = f@1(@n)\n@2.append(1)",
        &[(Kind::List, "@2")],
    ),
    (
        "def f@1(q):\n    echo(q)\n    return q\n@2 = [f@1(1) and f@1(0) or f@1(@n), f@1(1) if f@1(0) else f@1(2), f@1(0) < f@1(1) < f@1(1) < f@1(5)]",
        &[(Kind::List, "@2")],
    ),
    (
        "@1 = {}\ndef f@2(k):\n    return @1.get(k, @n)\n@1[f@2('a')] = f@2('b')\n@3 = f@2(@n)",
        &[(Kind::Num, "@3")],
    ),
    // Exceptions.
    (
        "@1 = []\nfor @2 in [0, 1, 2]:\n    try:\n        @1.append(@n // @2)\n        if @2 == 1:\n            «continue¦break¦pass¦raise E1('q')»\n    except «ZeroDivisionError¦@C¦Exception¦(E1, KeyError)» as e:\n        @1.append(«str(e)¦f'{e}'¦0»)\n        «continue¦break¦pass¦raise»\n    else:\n        @1.append('else')\n    finally:\n        @1.append('f')\n        «pass¦continue¦break¦echo(@2)»\n    @1.append('after')",
        &[(Kind::Any, "@1")],
    ),
    (
        "def f@1(q):\n    for r in range(3):\n        try:\n            «return q // r¦return echo(r)¦raise E2(r)¦fail(q)¦q = q[r]»\n        except «ZeroDivisionError¦@C¦E1¦ToolError»:\n            «return 'x'¦continue¦break¦raise¦pass»\n        finally:\n            «return r¦break¦continue¦pass¦echo('f')¦q = 5»\n    return q\n@2 = [f@1(@n), f@1(2)]",
        &[(Kind::Any, "@2")],
    ),
    (
        "def f@1():\n    try:\n        try:\n            «raise E1('a')¦{}['k']¦[][0]¦return 1¦fail(1)»\n        finally:\n            «raise E2('b')¦echo(1)¦return 2¦1 // 0¦pass»\n    except «E1¦E2¦Exception¦KeyError» as e:\n        return «str(e)¦f'<{e}>'¦1»\n    return 'end'\n@2 = f@1()",
        &[(Kind::Any, "@2")],
    ),
    (
        "try:\n    try:\n        «raise @C(@u)¦int(@u)¦{}[@u]¦[][@n]¦@A.q¦fail(@n)»\n    except @C as e:\n        «raise E2('again') from e¦raise¦raise E1¦pass»\nexcept Exception as e:\n    @1 = «str(e)¦f'{e}'»\nelse:\n    @1 = 'none'",
        &[(Kind::Str, "@1")],
    ),
    (
        "@1 = 'e'\ntry:\n    «1 // 0¦pass¦fail(0)»\nexcept «Exception¦ZeroDivisionError» as @1:\n    pass\n@2 = @1",
        &[(Kind::Any, "@2")],
    ),
    (
        "try:\n    @1 = @n\n    assert @T«¦, @u¦, f'{@n}'»\n    @1 = 5\nexcept AssertionError as e:\n    @1 = str(e)",
        &[(Kind::Any, "@1")],
    ),
    (
        "@1 = 0\nwhile True:\n    @1 += 1\n    try:\n        if @1 < «2¦3»:\n            «fail(@1)¦raise E1¦continue»\n        break\n    except (ToolError, E1):\n        «echo(@1)¦pass¦continue»\n    finally:\n        echo(['f', @1])",
        &[(Kind::Num, "@1")],
    ),
    (
        "try:\n    @1 = [1, 2]\n    @1.append(@n)\n    @1[«0¦9»] = 5\n    @1.extend(«[1]¦@A»)\nexcept «IndexError¦TypeError¦LookupError»:\n    @1 = @1 + [0]",
        &[(Kind::List, "@1")],
    ),
    (
        "try:\n    raise @C\nexcept «LookupError¦ArithmeticError¦ValueError¦(E1, E2)¦Exception» as e:\n    @1 = «repr(e)¦len(str(e))»\n    @2 = 1\nelse:\n    @2 = 2",
        &[(Kind::Any, "@2")],
    ),
    (
        "try:\n    @1 = json.loads(@u)\nexcept «json.JSONDecodeError¦ValueError» as e:\n    @1 = 'bad'",
        &[(Kind::Any, "@1")],
    ),
    (
        "try:\n    @1 = next(q for q in @L if q > @n)\nexcept StopIteration:\n    @1 = -1",
        &[(Kind::Num, "@1")],
    ),
    (
        "def f@1(q):\n    if q > @n:\n        r = 1\n    try:\n        return r\n    except «UnboundLocalError¦NameError»:\n        return 0\n@2 = [f@1(0), f@1(9)]",
        &[(Kind::List, "@2")],
    ),
    ("try:\n    @1 = Model(n=@n, s=@u).n\nexcept ValidationError:\n    @1 = -1", &[(Kind::Num, "@1")]),
    // Collections.
    (
        "@1 = Counter(«@u¦@L¦{'a': 2}»)\n@1[«'a'¦@n»] += @n\n@1.update(«'aé'¦{'a': 3}¦[1, 1]»)\n@2 = [@1.most_common(«¦1¦2»), @1['zz'], len(@1), sorted(@1.values()), 'a' in @1, sum(@1.values())]",
        &[(Kind::Any, "@1"), (Kind::Any, "@2")],
    ),
    (
        "@1 = Counter(q % 3 for q in @L)\n@2 = [str(@1), dict(@1), @1 == {0: 1}, list(@1), max(@1, key=@1.get, default=None)]",
        &[(Kind::Any, "@2")],
    ),
    (
        "@1 = defaultdict(«int¦list¦str»)\nfor @2 in «'aba'¦@L»:\n    @1[@2] += «1¦[1]¦'x'»\n@3 = [dict(@1), len(@1), list(@1), 'q' in @1, @1.get('q'), sorted(@1, key=str)]",
        &[(Kind::Any, "@3")],
    ),
    (
        "@1 = defaultdict(list)\nfor @2, @3 in [('a', 1), ('b', @n), ('a', 3)]:\n    @1[@2].append(@3)\n@1['c'].extend(@L)\n@4 = [@1['a'], str(@1), @1 == {'a': [1, 3]}, {k: len(v) for k, v in @1.items()}]",
        &[(Kind::Any, "@4")],
    ),
    (
        "@1 = OrderedDict([('b', 1), ('a', @n)])\n@1['c'] = 3\n@2 = [list(@1), list(@1.items()), len(@1)]",
        &[(Kind::Any, "@2")],
    ),
    (
        "@1 = {'n': 0, 'xs': []}\nfor @2 in @L:\n    @1['n'] += @2\n    @1['xs'].append(@1['n'])\n@3 = @1['xs'][-1:] + list(@1['xs'])",
        &[(Kind::List, "@3")],
    ),
    (
        "@1 = [{'id': q, 'tag': 'ab'[q % 2]} for q in @L]\n@1.sort(key=lambda r: r['tag']«¦, reverse=True»)\n@2 = [r['id'] for r in @1]",
        &[(Kind::List, "@2")],
    ),
    // Classes of the prelude.
    (
        "@1 = Kind(«'a'¦'b'¦'q'¦@u»)\n@2 = [@1.name, @1.value, @1 == Kind.A, @1 is None, str(@1), repr(@1), f'{@1}', @1 in list(Kind), [k.value for k in Kind]]",
        &[(Kind::Any, "@2")],
    ),
    (
        "@1 = Kind['«A¦B¦Q»']\n@2 = {@1: @n, Kind.B: 2}\n@3 = [@2[@1], len(@2), len(Kind), @1 != Kind.B]",
        &[(Kind::Any, "@3")],
    ),
    (
        "@1 = Word(«'x'¦'q'»)\n@2 = [@1 == 'x', @1.upper(), f'{@1:>3}', {'x': 1}[@1], @1 + 'z', sorted([w for w in Word]), isinstance(@1, str)]",
        &[(Kind::Any, "@2")],
    ),
    (
        "@1 = Level(«1¦2¦3»)\n@2 = [@1.value + @n, @1 is Level.LOW, @1.name, [l.name for l in Level]]",
        &[(Kind::Any, "@2")],
    ),
    (
        "@1 = Row(@n«¦, y='q'¦, 'é', [1]»)\n@1.«x += 1¦y += 'é'¦z.append(@n)¦x, @1.y = 3, 'w'¦z = @L»\n@2 = [str(@1), @1 == Row(@n), asdict(@1), replace(@1, x=0), @1.z«[0]¦[-1:]¦»]",
        &[(Kind::Any, "@1"), (Kind::Any, "@2")],
    ),
    (
        "@1 = [Row(q, str(q)) for q in @L]\n@1.sort(key=lambda r: «(-r.x, r.y)¦r.y¦r.x % 2»)\n@2 = [r.x for r in @1]\n@3 = max(@1, key=lambda r: r.x)\n@4 = @3.y",
        &[(Kind::List, "@2")],
    ),
    (
        "@1 = Row(1)\n@2 = «Row(2)¦@1¦replace(@1)¦replace(@1, z=[5])»\n@2.«x = 9¦z.append(@n)¦z = [3]»\n@3 = [@1 == @2, @1.x, @2.x, @1.z]",
        &[(Kind::Any, "@3")],
    ),
    ("@1 = Row(«x=1, y=2¦¦1, 2, 3, 4¦q=1¦@A»)\n@2 = @1.«x¦y¦nothing»", &[(Kind::Any, "@2")]),
    (
        "@1 = Pair(a=@n, b=@u)\n@1['a'] += 1\n@2 = [@1, @1.get('c'), {**@1, 'c': 1}, list(@1)]",
        &[(Kind::Any, "@2")],
    ),
    (
        "try:\n    @1 = Model(n=«1¦5¦@n¦99¦-1», s=«'ab'¦@u¦''»«¦, t=['x']»)\n    @2 = [@1.n, @1.s, @1.t, @1.model_dump(), @1 == @1.model_copy()]\nexcept ValueError:\n    @2 = 'invalid'",
        &[(Kind::Any, "@2")],
    ),
    // Matches of patterns.
    (
        "@1 = re.«search¦match¦fullmatch»(@P, @u)\n@2 = [@1.group(), @1.groups(), @1.start(), @1.span(), @1.groupdict()] if @1 else None",
        &[(Kind::Any, "@2")],
    ),
    (
        "@1 = re.compile(@Q«¦, re.I»)\n@2 = [@1.findall(@u), @1.sub('_', @u), @1.split(@u), bool(@1.search(@u)), [m.end() for m in @1.finditer(@u)]]",
        &[(Kind::Any, "@2")],
    ),
    (
        "@1 = re.search(r'(\\d+)(?:-(?P<b>\\d+))?', «'a1-2'¦@u¦'7'»)\nif @1:\n    @2 = [@1[0], @1.group(1), @1['b'], @1.group('b', 1), @1.groups('-')]\nelse:\n    @2 = []",
        &[(Kind::Any, "@2")],
    ),
    // Dates.
    (
        "@1 = [date(2024, 5, 3), date(2023, 12, 31), date(2024, 1, @n)]\n@1.sort(«¦reverse=True¦key=lambda q: q.day»)\n@2 = [str(q) for q in @1]\n@3 = (max(@1) - min(@1)).days",
        &[(Kind::Num, "@3")],
    ),
    (
        "@1 = datetime(2024, 1, 31, 23, 30)\nfor @2 in range(3):\n    @1 += timedelta(hours=@n, minutes=@2)\n@3 = [@1.isoformat(), @1.date() == date(2024, 2, 1), @1.time().hour, f'{@1:%d/%m %H:%M}']",
        &[(Kind::Any, "@3")],
    ),
    // Printing and tools.
    ("echo(«[@n, @u]¦{'k': @A}¦(1, @n)¦{3, @n}¦Kind.A¦date(2024, 1, 2)¦None¦@x¦{1: 2}»)", &[]),
    ("@1 = items(@i)\n@2 = [r['name'] for r in @1«¦[1:]¦[::-1]»]", &[(Kind::Any, "@2")]),
    ("@1 = add(@n, add(echo(@n), 1)) if @T else echo(@A)\n@2 = [@1, @1 == @n]", &[(Kind::Any, "@1")]),
    ("@1 = sorted(items(«3¦@i»), key=lambda r: -r['id'])[0]['name']", &[(Kind::Any, "@1")]),
];

impl Plans {
    /// Imports and classes that templates name.
    pub(super) fn wide_prelude(&mut self) {
        let text = "import math\n\
                    from collections import Counter, OrderedDict, defaultdict\n\
                    from dataclasses import asdict, dataclass, field, replace\n\
                    from datetime import datetime, time, timezone\n\
                    from enum import Enum\n\
                    from typing import TypedDict\n\
                    class Kind(Enum):\n    B = 'b'\n    A = 'a'\n\
                    class Word(str, Enum):\n    X = 'x'\n    W = 'w'\n\
                    class Level(Enum):\n    HIGH = 2\n    LOW = 1\n\
                    class Pair(TypedDict):\n    a: int\n    b: str\n\
                    @dataclass\nclass Row:\n    x: int\n    y: str = 'é'\n    z: list = field(default_factory=list)\n";
        for line in text.lines().chain(idioms::PRELUDE.lines()) {
            self.line(0, line);
        }
        if self.models {
            self.line(0, "from pydantic import BaseModel, Field, ValidationError");
            self.line(0, "class Model(BaseModel):");
            self.line(1, "n: int = Field(ge=0, lt=50)");
            self.line(1, "s: str = Field(default='d', min_length=1, max_length=9)");
            self.line(1, "t: list[str] = []");
            for line in idioms::MODELS.lines() {
                self.line(0, line);
            }
        }
    }

    /// One template.
    pub(super) fn alone(&mut self) {
        self.filling = 1;
        if self.rng.chance(35) {
            self.template(0);
        } else {
            let kind =
                [Kind::Num, Kind::Str, Kind::Str, Kind::List, Kind::Dict, Kind::Set][self.rng.below(6)];
            let (name, value) = (self.fresh(), self.templated(kind).unwrap_or_default());
            self.line(0, &format!("{name} = {value}"));
            self.vars.push((kind, name));
        }
    }

    /// Statements of a template.
    pub(super) fn template(&mut self, depth: usize) {
        let at = self.rng.below(STATEMENTS.len() + idioms::STATEMENTS.len());
        let (template, bound) = STATEMENTS.iter().chain(idioms::STATEMENTS).nth(at).expect("a template");
        if template.contains("Model(") && !self.models
            || template.contains("print(") && self.in_function
            || template.contains("def ") && depth > 0
            || self.loops > 0 && template.contains("for ") && self.loops > 1
        {
            return self.line(depth, "pass");
        }
        let mut names: Vec<Option<String>> = vec![None; 10];
        let text = self.filled(template, &mut names);
        for line in text.lines() {
            self.line(depth, line);
        }
        for (kind, name) in *bound {
            let at = name[1..].parse::<usize>().unwrap_or(0);
            if let Some(Some(name)) = names.get(at) {
                self.vars.push((*kind, name.clone()));
            }
        }
    }

    /// An expression of a template, of a kind that has some.
    pub(super) fn templated(&mut self, kind: Kind) -> Option<String> {
        let all = EXPRESSIONS.iter().chain(idioms::EXPRESSIONS);
        let of: Vec<&str> = all.filter(|(k, _)| *k == kind).map(|(_, t)| *t).collect();
        if of.is_empty() {
            return None;
        }
        let template = of[self.rng.below(of.len())];
        let mut names = vec![None; 10];
        Some(self.filled(template, &mut names))
    }

    pub(super) fn filled(&mut self, template: &str, names: &mut [Option<String>]) -> String {
        let chosen = self.chosen(template);
        let depth = usize::from(self.filling < 2);
        self.filling += 1;
        let mut out = String::new();
        let mut chars = chosen.chars();
        while let Some(c) = chars.next() {
            if c != '@' {
                out.push(c);
                continue;
            }
            let mark = chars.next().unwrap_or('@');
            let text = match mark {
                'N' => self.expr(Kind::Num, depth),
                'S' => self.expr(Kind::Str, depth),
                'L' => self.expr(Kind::List, depth),
                'D' => self.expr(Kind::Dict, depth),
                'E' => self.expr(Kind::Set, depth),
                'T' => self.test(depth),
                'n' if self.rng.chance(50) => self.rng.one(&["0", "1", "2", "3", "5", "7", "12"]).to_string(),
                'n' => self.simple_num(),
                // A literal would need quotation marks.
                's' => self.var(Kind::Str).or_else(|| self.var(Kind::Any)).unwrap_or("1".into()),
                'A' => self.var(Kind::Any).unwrap_or_else(|| "0".into()),
                'x' => self.rng.one(&["0.5", "2.5", "-0.125", "1.75", "-3.5", "12.375", "1024.0625"]).into(),
                'u' => match self.var(Kind::Str) {
                    Some(name) if self.rng.chance(30) => name,
                    _ => TEXTS[self.rng.below(TEXTS.len())].into(),
                },
                'i' => (self.rng.below(9) as i64 - 3).to_string(),
                'C' => self.class().to_string(),
                'P' => PATTERNS[self.rng.below(PATTERNS.len())].into(),
                'Q' => {
                    // Flags stand at the beginning of a pattern once.
                    let plain: Vec<&&str> = PATTERNS.iter().filter(|p| !p.contains("(?")).collect();
                    (**plain[self.rng.below(plain.len())]).into()
                }
                '1'..='9' => {
                    let at = mark as usize - '0' as usize;
                    match &names[at] {
                        Some(name) => name.clone(),
                        None => {
                            let name = self.fresh();
                            names[at] = Some(name.clone());
                            name
                        }
                    }
                }
                other => format!("@{other}"),
            };
            out.push_str(&text);
        }
        self.filling -= 1;
        out
    }

    /// A template without alternatives. They nest.
    fn chosen(&mut self, template: &str) -> String {
        let mut out = String::new();
        let mut rest = template;
        while let Some(open) = rest.find('«') {
            out.push_str(&rest[..open]);
            let body = &rest[open + '«'.len_utf8()..];
            let (mut depth, mut parts, mut start, mut end) = (0, Vec::new(), 0, body.len());
            for (at, c) in body.char_indices() {
                match c {
                    '«' => depth += 1,
                    '»' if depth == 0 => {
                        end = at;
                        break;
                    }
                    '»' => depth -= 1,
                    '¦' if depth == 0 => {
                        parts.push(&body[start..at]);
                        start = at + c.len_utf8();
                    }
                    _ => {}
                }
            }
            parts.push(&body[start..end]);
            let part = parts[self.rng.below(parts.len())];
            let part = self.chosen(part);
            out.push_str(&part);
            rest = &body[(end + '»'.len_utf8()).min(body.len())..];
        }
        out + rest
    }
}
