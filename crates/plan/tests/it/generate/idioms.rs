//! Templates of what planners write besides, in the notation of [`super::wide`].
//!
//! Names that shadow builtin functions, arguments by name, aliases of imports, literals and layout in all
//! their forms, paths into nested values, functions that call functions, and errors inside of handlers and
//! `finally`.

use super::Kind;
use super::wide::Statements;

/// Imports and classes that these templates name, after those of [`super::wide`].
pub(super) const PRELUDE: &str = "import collections\n\
    import datetime as dt\n\
    import math as mm\n\
    import re as rx\n\
    from enum import StrEnum\n\
    from json import dumps, loads as parse\n\
    from math import floor, sqrt\n\
    from re import findall as found\n\
    from typing import Any, Literal, Optional\n\
    class Mood(StrEnum):\n    GOOD = 'good'\n    BAD = 'bad'\n\
    @dataclass\nclass Box:\n    row: Row\n    tags: dict = field(default_factory=dict)\n    kind: Kind = Kind.A\n    \
    n: Optional[int] = None\n";

/// Classes of Pydantic, after the one of [`super::wide`].
pub(super) const MODELS: &str = "class Order(BaseModel):\n    item: Model\n    n: Optional[int] = None\n    \
    kind: Literal['a', 'b'] = 'a'\n";

pub(super) const EXPRESSIONS: &[(Kind, &str)] = &[
    // Generators as the only argument, with and without keywords.
    (Kind::Num, "sum(q * r for q in @L for r in @L if q != r)"),
    (Kind::Num, "«min¦max»((q % 3 for q in @L), default=@n)"),
    (Kind::Num, "«any¦all»(q == r for q in @L for r in [1, @n] if q)"),
    (Kind::Num, "len({q for d in [@D, @D] for q in d})"),
    (Kind::List, "sorted((q % 3 for q in @L), «reverse=True¦key=lambda q: -q»)"),
    (Kind::List, "list(tuple(q for q in @L if q))"),
    (Kind::List, "[[q, r][1] for q in @L if q if q > 1 for r in [q, 5]]"),
    (Kind::Set, "«set¦frozenset»(q % 2 for q in @L)"),
    (Kind::Dict, "dict((q, q + 1) for q in @L)"),
    (Kind::Dict, "{q: [r, s] for (q, r), s in zip(zip(@u, @L), @L)}"),
    (Kind::Str, "', '.join(f'{q}' for q in @L if q for _ in [1, 2])"),
    // Methods and functions of sequences.
    (Kind::Num, "(@n, 2, @n).«count(@n)¦index(2)¦index(9)»"),
    (Kind::Num, "@L.«index(@n)¦index(@n, 1)¦index(1, 0, 2)¦count(@n)»"),
    (Kind::Num, "len(frozenset(@L) | {1})"),
    (Kind::Num, "len(list(zip(@L, @u, @L)))"),
    (Kind::Num, "(«int¦float¦str¦bool¦list¦dict¦set¦tuple»() == @A) + 1"),
    (Kind::Num, "int(@n «in¦not in» «range(5)¦range(1, 9, 2)¦{@n: 1}¦(1, @n)¦{1, @n}¦@L¦@D»)"),
    (Kind::Num, "int('«a¦é¦»' «in¦not in» @u)"),
    (Kind::Num, "(@A is not None) + (@A is None)"),
    (
        Kind::Num,
        "int(isinstance(«Row(1)¦Kind.A¦Word.X¦date(2024, 1, 1)¦datetime(2024, 1, 1)¦timedelta(1)»,\
         «Row¦Kind¦str¦date¦datetime¦(int, timedelta)»))",
    ),
    (Kind::Str, "'{!r:>6}|{:%Y}|{:>{}}'.format(@u, date(2024, 1, 1), @n, 5)"),
    (Kind::Str, "'{!r:>6}|{:%d %b}|{!s:^5}'.format(@u, date(2024, 1, @n), @n)"),
    (Kind::Str, "'{a}{b!r}'.format_map({'a': @n, 'b': @u})"),
    (Kind::Str, "«min¦max»(@u or 'z')"),
    (Kind::Str, "[c for c, _ in Counter(@u + 'q').most_common(2)][0]"),
    (Kind::Str, "str({q: c for q, c in Counter(@L).items() if c > 1})"),
    // Modules by other names, and their functions by name.
    (Kind::Num, "floor(@x) + mm.ceil(@x) + int(sqrt(16))"),
    (Kind::Num, "collections.Counter(@L)[1]"),
    (Kind::Str, "str(found(r'\\w', @u))"),
    (Kind::Str, "str(rx.split(pattern=r'\\s+', string=@u, maxsplit=1))"),
    (Kind::Str, "rx.sub(r'a(b)?', '-', string=@u«, count=1¦», flags=rx.I)"),
    (Kind::Str, "dumps(@D) + str(parse('[1, {}]'))"),
    (Kind::Str, "json.dumps([date(2024, 1, 2), @n, {'t': timedelta(1)}], default=str)"),
    (Kind::Str, "str(dt.date(2024, 1, «1¦31») + dt.timedelta(days=@n))"),
    // Precedence, and truth values as numbers.
    (Kind::Num, "(@n if @n > 1 else @n if @T else -1)"),
    (Kind::Num, "(-@n ** 2 + +@n - -@n)"),
    (Kind::Num, "(@n - @n - @n // 2 * 2 + @n % 2)"),
    (Kind::Num, "(2 ** 3 ** «1¦2» - @n)"),
    (Kind::Num, "int(not @n == @n)"),
    (Kind::Num, "int(not @T and @n or @n and not @n)"),
    (Kind::Num, "[@n, 5][@n > 1]"),
    (Kind::Num, "({True: @n, 1: 2}[1] + {1: @n}[1.0])"),
    (Kind::Num, "(lambda: @n)()"),
    (Kind::Num, "(lambda q, r: (lambda s: s - q)(r))(@n, 2)"),
    (Kind::Num, "(round(@x) + round(-@x) + round(@n / 4, 2))"),
];

pub(super) const STATEMENTS: &[Statements] = &[
    // Arguments of tools by name, and left out.
    (
        "@1 = add(b=echo(@n), a=@n)\n@2 = echo(x=@A)\n@3 = [r['id'] for r in items(n=«2¦@i»)]",
        &[(Kind::Num, "@1"), (Kind::Any, "@2"), (Kind::List, "@3")],
    ),
    ("@1 = «echo()¦add(@n)¦add(b=@n)¦add(@n, b=echo(1))¦items()»", &[(Kind::Any, "@1")]),
    // Names of builtin functions, tools and what the lowering makes.
    (
        "def f@1(id, input='é', type=None, *, max=3):\n    sum = 0\n    for item in [id, max]:\n        sum += item\n    \
         return [sum, input, type]\n@2 = f@1(«@n¦@n, 'x'¦id=2, max=@n»)",
        &[(Kind::Any, "@2")],
    ),
    (
        "def f@1(add, list):\n    len = add + 1\n    return [len, list]\n@2 = f@1(@n, list=@u)",
        &[(Kind::Any, "@2")],
    ),
    ("_ = @n\nfor _ in range(@i):\n    pass\n@1 = [_ for _ in @L] + [_]", &[(Kind::List, "@1")]),
    ("id, vars, größe = @n, @u, @x\nid += 1\n@1 = [id, vars, größe]", &[(Kind::Any, "@1")]),
    (
        "state = acc = @n\nfor again in @L:\n    acc += again\n    value = error = again\n@1 = [state, acc]",
        &[(Kind::List, "@1")],
    ),
    // Literals and layout.
    (
        "@1 = ('a' \"b\" f'{@n}' r'\\d' '''q\n r''' f\"\"\"{@n}\n\"\"\")\n@2 = '\\N{BULLET}\\x41\\u00e9\\101\\\nb'",
        &[(Kind::Str, "@1"), (Kind::Str, "@2")],
    ),
    (
        "@1 = (1 +\n    @n\n    - 2)  # a comment\nif @n: @2 = 1; @3 = @n\nelse: @2, @3 = 3, \\\n    4\n@4 = [\n    @n,\n\n    2,\n]",
        &[(Kind::Num, "@1"), (Kind::Num, "@2"), (Kind::Num, "@3"), (Kind::List, "@4")],
    ),
    ("@1 = [1., .5, 1e3, 25E-2, 1_000.5, 0b1_0, 0xFf, 0o7, 1e+2, 00, -0]", &[(Kind::List, "@1")]),
    // Paths into nested values.
    (
        "@1 = [[0] * 3 for _ in range(2)]\n@1[«0¦-1¦@i»][«1¦@i»] = @n\n@1[0][0] += «1¦@n»\n@2 = [row[:] for row in @1]\n\
         @2[0].append(@n)\n@3 = [sum(row) for row in @1] + @2[0]",
        &[(Kind::List, "@3")],
    ),
    (
        "@1 = {'a': {'xs': [1, 2, 3]}}\n@1['a']['xs'][@i:@i] = [@n]\n@1['a']['xs'][-1] *= 2\n@1['a']['y'] = \
         @1['a']['xs'][«0¦1¦9»]\n@2 = [@1['a'].get('xs'), @1.get('a', {}).get('q', @n)]",
        &[(Kind::Any, "@1"), (Kind::Any, "@2")],
    ),
    (
        "@1 = [Row(q) for q in [1, @n]]\n@1[0].x += @n\n@1[«1¦-1¦@i»].z.append(5)\n@1[1].y = 'w'\n@2 = [r.x for r in @1]\n\
         @3 = [len(r.z) for r in @1]",
        &[(Kind::List, "@2"), (Kind::List, "@3")],
    ),
    (
        "@1 = {'r': Row(1), 's': Row(2, z=[1])}\n@1['r'].x = @n\n@1['s'].z[«0¦1»] += @n\n@2 = [asdict(v) for v in @1.values()]",
        &[(Kind::Any, "@2")],
    ),
    (
        "@1 = Box(Row(@n)«¦, {'a': 1}¦, kind=Kind.B¦, n=4»)\n@1.row.x += 1\n@1.row.z.append(@n)\n@1.tags['k'] = @u\n\
         @2 = [str(@1), asdict(@1)['row']['x'], @1 == Box(Row(@n)), replace(@1, n=3).n, @1.kind.value, @1.n is None]",
        &[(Kind::Any, "@2")],
    ),
    // Functions that call functions, and the forms of parameters.
    (
        "def f@1(q):\n    echo(q)\n    return q + 1\ndef f@2(q, r):\n    f@1(q)\n    s = f@1(r)\n    if s > @n:\n        \
         return f@1(s)\n    return [f@1(t) for t in [q, r]]\nf@1(@n)\n@3 = [f@2(1, @n), f@2(r=2, q=@n)]",
        &[(Kind::Any, "@3")],
    ),
    (
        "def f@1(q, /, r, *, s=1):\n    return [q, r, s]\n@2 = «f@1(1, @n)¦f@1(1, r=@n, s=2)¦f@1(@n, 2, s=3)»",
        &[(Kind::List, "@2")],
    ),
    (
        "def f@1(xs):\n    ys = list(xs)\n    ys.append(@n)\n    return ys\n@2 = f@1(@L)\n@2.append(1)\n@3 = f@1(f@1(@2))",
        &[(Kind::List, "@2"), (Kind::List, "@3")],
    ),
    (
        "def f@1(x: int, y: 'str' = 'a', *, z: list[int] | None = None) -> list:\n    \"\"\"Documented.\"\"\"\n    \
         return [x, y, z]\n@2 = f@1(@n, z=[1])",
        &[(Kind::Any, "@2")],
    ),
    (
        "def f@1(g):\n    return [g(q) for q in @L]\n@2 = [f@1(lambda q: q + @n), f@1(str), f@1(abs), f@1(lambda q: [q, @n][0])]",
        &[(Kind::Any, "@2")],
    ),
    ("def f@1():\n    pass\ndef f@2(): return f@1()\n@3 = [f@1(), f@2() is None]", &[(Kind::Any, "@3")]),
    (
        "def f@1(q):\n    def g(r):\n        return r + q\n    def h(r):\n        return g(r) * 2\n    return [h(1), g(@n)]\n\
         @2 = [f@1(@n), f@1(0)]",
        &[(Kind::Any, "@2")],
    ),
    // Errors inside of handlers, of `else` and of `finally`.
    (
        "try:\n    raise E1(@u)\nexcept E1 as e:\n    try:\n        raise e\n    except Exception as g:\n        @1 = [str(g), str(e)]",
        &[(Kind::Any, "@1")],
    ),
    (
        "@1 = []\ntry:\n    try:\n        «fail(1)¦{}['k']¦@1.append(1)¦raise E2('a')»\n    except KeyError:\n        \
         @1.append('k')\n        raise ValueError('v')\n    else:\n        @1.append('else')\n        «raise KeyError('z')¦pass»\n    \
         finally:\n        @1.append('f')\n        try:\n            «fail(2)¦@1.append(2)¦1 // 0»\n        \
         except (ToolError, ZeroDivisionError):\n            @1.append('inner')\nexcept Exception as e:\n    @1.append(f'{e}')",
        &[(Kind::Any, "@1")],
    ),
    (
        "for @1 in [0, 1, 2]:\n    try:\n        if @1 == «1¦7»:\n            «fail(@1)¦raise KeyError(@1)»\n    finally:\n        \
         «fail(5)¦echo(@1)¦add('a', 1)¦{}['f']»",
        &[(Kind::Num, "@1")],
    ),
    (
        "def f@1(q):\n    try:\n        return q[0]\n    except (TypeError, IndexError):\n        return None\n    \
         finally:\n        «echo('done')¦fail(q)»\n@2 = [f@1([@n]), f@1([]), f@1(@n)]",
        &[(Kind::Any, "@2")],
    ),
    (
        "try:\n    try:\n        «fail(1)¦{}['k']¦pass»\n    finally:\n        @1 = 'f'\n        «fail(2)¦int('x')¦echo(3)»\nexcept \
         «ToolError¦ValueError¦Exception» as e:\n    @1 = str(e)",
        &[(Kind::Str, "@1")],
    ),
    ("try:\n    @1 = int(@u)\nexcept ValueError as e:\n    @1 = len(e.args)", &[(Kind::Num, "@1")]),
    (
        "try:\n    raise «TimeoutError¦OSError¦PermissionError¦NotImplementedError¦ArithmeticError»(@u)\nexcept \
         «OSError¦RuntimeError¦ArithmeticError¦Exception» as e:\n    @1 = str(e)",
        &[(Kind::Str, "@1")],
    ),
    ("assert isinstance(@n, «int¦str¦(int, float)»), f'bad {@n}'", &[]),
    // Loops.
    (
        "@1 = [1]\nwhile len(@1) < 4 and @1[-1] < @n:\n    @1.append(@1[-1] * 2)\n    if @1[-1] == 4: continue\nelse:\n    \
         @1.append(-1)",
        &[(Kind::List, "@1")],
    ),
    (
        "@1 = @2 = 0\nwhile @1 < 3:\n    @1 += 1\n    while True:\n        @2 += 1\n        if @2 % «2¦3» == 0:\n            \
         break\n    if @2 > @n:\n        break",
        &[(Kind::Num, "@1"), (Kind::Num, "@2")],
    ),
    (
        "for @1, @2, @3 in zip(@L, @L, @u):\n    echo(@1)\nfor @4 in reversed(@L):\n    pass\nfor @5 in range(5, 0, -2):\n    \
         echo(@5)\nfor @6, @7 in enumerate(@u, start=«1¦@n»):\n    pass\nfor @8 in @D.keys():\n    pass\n\
         for @9 in sorted(@D.values(), key=str):\n    pass",
        &[(Kind::Num, "@5")],
    ),
    ("for (@1, @2), @3 in [((1, 2), 3), ((@n, 5), 6)]:\n    echo([@1, @2, @3])", &[(Kind::Num, "@1")]),
    (
        "for @1 in «Kind¦Level¦Word»:\n    echo(@1.value)\n@2 = [k.name for k in Level if k.value > 1]",
        &[(Kind::Any, "@2")],
    ),
    (
        "@1 = {'a': 1, 'b': @n}\nfor @2, @3 in list(@1.items()):\n    @1[@2 + 'x'] = @3\n    @1.pop(@2)",
        &[(Kind::Dict, "@1")],
    ),
    ("@1 = {}\nfor @2 in @L:\n    @1.setdefault(@2 % 2, 0)\n    @1[@2 % 2] += 1", &[(Kind::Dict, "@1")]),
    (
        "@1 = {1, 2}\n@1 «|=¦&=¦-=¦^=» {2, @n}\n@2 = [q for q in @1 if q]",
        &[(Kind::Set, "@1"), (Kind::List, "@2")],
    ),
    // Annotations that hold.
    (
        "@1: Optional[int] = «None¦3»\n@2: int | None = «None¦4»\n@3: Literal['a', 'b'] = «'a'¦'b'»\n\
         @4: dict[str, list[int]] = {'a': [1]}\n@4['a'].append(5)\n@5: tuple = (1, 2)\n@6: float = «1¦0.5»\n\
         @7: list[Row] = [Row(1)]\n@7[0].x = @n\n@8: Any = @A\n@9: bool",
        &[(Kind::Any, "@1"), (Kind::Any, "@8"), (Kind::Dict, "@4")],
    ),
    // Dates.
    (
        "@1 = datetime.now()\n@2 = [@1.year, @1.date() == date.today(), (datetime.now() - @1).total_seconds(), \
         f'{@1:%Y-%m-%d}', datetime.now(timezone.utc).isoformat(), @1.replace(hour=0, minute=@n).isoformat(), \
         str(date.today() - timedelta(days=@n)), (date(2026, 1, 1) - date.today()).days]",
        &[(Kind::Any, "@2")],
    ),
    (
        "@1 = datetime.fromtimestamp(«0¦86400¦@n * 1000», tz=timezone.utc)\n@2 = [str(@1), @1.timestamp(), @1.tzname(), \
         str(@1.utcoffset())]",
        &[(Kind::Any, "@2")],
    ),
    (
        "@1 = date.fromordinal(738886 + @n)\n@2 = @1.isocalendar()\n@3 = [@2[0], @2[1], @2[2], str(@1)]",
        &[(Kind::Any, "@3")],
    ),
    (
        "@1 = [timedelta(hours=q) for q in @L]\n@2 = sum(@1, timedelta())\n@3 = [str(@2), max(@1, default=timedelta()) >= \
         timedelta(), sorted(@1)[:1] == @1[:1]]",
        &[(Kind::Any, "@3")],
    ),
    (
        "@1 = [datetime(2024, 5, 1, 9, 30), datetime(2024, 5, 1, 9, @n)]\n@2 = [(a - b).total_seconds() / 60 for a, b in \
         zip(@1, @1[1:])]\n@3 = min(@1) < datetime.combine(date(2024, 5, 1), time(9, 31))",
        &[(Kind::List, "@2"), (Kind::Any, "@3")],
    ),
    (
        "@1 = time.fromisoformat('«09:30¦09:30:15¦25:00¦x»')\n@2 = [@1.hour, @1 < time(10), str(@1)]",
        &[(Kind::Any, "@2")],
    ),
    // Classes.
    (
        "@1 = Mood(«'good'¦'bad'¦'q'»)\n@2 = [@1 == 'good', @1.upper(), f'{@1:>6}', {'good': 1}.get(@1), @1.name, @1 + '!', \
         isinstance(@1, str), [m.value for m in Mood], @1 is Mood.GOOD, str(@1), repr(@1), @1 in ['bad']]",
        &[(Kind::Any, "@2")],
    ),
    (
        "try:\n    @1 = Order(item=Model(n=«1¦@n»), kind=«'a'¦'z'»«¦, n=2»)\n    @2 = [@1.item.n, @1.kind, @1.n, \
         @1.model_dump()]\nexcept ValueError:\n    @2 = 'invalid'",
        &[(Kind::Any, "@2")],
    ),
    // Printing.
    ("print()\nprint(@A, @u, sep=«''¦', '¦@u»)\nprint(*@L)", &[]),
];
