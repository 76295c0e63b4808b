"""Runs plans in CPython with scripted tools. One JSON string a line in, one JSON object a line out."""
import ast, dataclasses, datetime, enum, json, re, signal, sys, unicodedata, warnings

# The time of every run.
NOW = 1_764_000_000

# Generated plans misuse types on purpose.
warnings.simplefilter("ignore")


class ToolError(Exception):
    pass


class PolicyError(Exception):
    pass


class Endless(BaseException):
    """A plan has run for long: a loop has more rounds than a run of a plan has."""


# Seconds that a plan may take.
LONG = 5


def stop(signum, frame):
    global deviates
    deviates = True
    # Again, should a handler of the plan catch it.
    signal.alarm(1)
    raise Endless


signal.signal(signal.SIGALRM, stop)


def rank(x):
    if x is None:
        return (0, 0)
    if isinstance(x, (bool, int, float)):
        return (1, x)
    if isinstance(x, str):
        return (2, x)
    if isinstance(x, tuple):
        return (3, tuple(rank(i) for i in x))
    return (4, 0)


class Sorted(set):
    """A set that iterates sorted."""

    def __iter__(self):
        return iter(sorted(set.__iter__(self), key=rank))

    def __repr__(self):
        return "{" + ", ".join(repr(i) for i in self) + "}" if self else "set()"

    def __or__(self, o):
        return Sorted(set.__or__(set(set.__iter__(self)), o)) if isinstance(o, set) else NotImplemented

    def __and__(self, o):
        return Sorted(set.__and__(set(set.__iter__(self)), o)) if isinstance(o, set) else NotImplemented

    def __sub__(self, o):
        return Sorted(set.__sub__(set(set.__iter__(self)), o)) if isinstance(o, set) else NotImplemented

    def __xor__(self, o):
        return Sorted(set.__xor__(set(set.__iter__(self)), o)) if isinstance(o, set) else NotImplemented

    def union(self, *o):
        return Sorted(set.union(set(set.__iter__(self)), *o))

    def intersection(self, *o):
        return Sorted(set.intersection(set(set.__iter__(self)), *o))

    def difference(self, *o):
        return Sorted(set.difference(set(set.__iter__(self)), *o))

    def symmetric_difference(self, o):
        return Sorted(set.symmetric_difference(set(set.__iter__(self)), o))

    def copy(self):
        return Sorted(set.copy(self))


# Set where CPython rounded: numbers of plans are exact.
rounded = False


# Items of a value that plans can't have: it is larger than a run admits.
HUGE = 1 << 20


def norm(x):
    """A whole number is an `int` in plans."""
    global rounded, deviates
    deviates |= isinstance(x, (str, list, tuple)) and len(x) > HUGE
    if type(x) is float and abs(x) >= 2.0**53:
        rounded = True
    return int(x) if type(x) is float and x == x and abs(x) != float("inf") and x == int(x) else x


# `json.loads` makes numbers, too.
loads = json.loads
json.loads = lambda text, **more: loads(text, parse_float=lambda n: norm(float(n)), **more)


# Set where plans deviate as the page of the language says: a word boundary was looked for at characters that
# belong to a word for plans or for CPython only, an iterator was shown, a `StopIteration` came out of a generator or of a function that
# `map` or `filter` calls, or Pydantic converted a value.
deviates = False
# The texts that are written in a plan.
written = []


def alike(c):
    """Whether the character belongs to a word for both or for neither."""
    category = unicodedata.category(c)
    enclosed = "\u24b6" <= c <= "\u24e9" or "\U0001f130" <= c <= "\U0001f189"
    ours = category[0] in "LM" or category in ("Nd", "Nl", "Pc") or c in "\u200c\u200d" or enclosed
    return ours == (c.isalnum() or c == "_")


def noting(function, search=re.search):
    """A function of `re` that notes where the page of the language says that plans deviate."""

    def matches(pattern, *args, **named):
        global deviates
        boundary = search(r"\\[bB]", pattern) if isinstance(pattern, str) else None
        if boundary:
            # What a compiled pattern is matched with comes from these.
            texts = written if function.__name__ == "compile" else [*args, *named.values()]
            texts = [t for t in texts if isinstance(t, str)]
            deviates |= not all(alike(c) for t in texts for c in t) or boundary.group() == r"\B" and "" in texts
        return function(pattern, *args, **named)

    return matches


for name in ("search", "match", "fullmatch", "findall", "finditer", "sub", "split", "compile"):
    setattr(re, name, noting(getattr(re, name)))


def now(kind, *args):
    """`datetime.now()` and the like; the local time is UTC."""
    utc = datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc)
    if kind == "date":
        return utc.date()
    return utc.astimezone(args[0]) if args else utc.replace(tzinfo=None)


def sized(x):
    """A number that is shown as a fraction: CPython rounds large ones first."""
    global rounded
    rounded |= isinstance(x, int) and abs(x) > 2**53
    return x


def of_model(init):
    """The constructor of a model, which notes what Pydantic converts."""

    def make(self, **given):
        global deviates
        init(self, **given)
        deviates |= any(type(getattr(self, k, v)) is not type(v) for k, v in given.items())

    return make


try:
    import pydantic

    pydantic.BaseModel.__init__ = of_model(pydantic.BaseModel.__init__)
except ImportError:
    pass


def stopping(items):
    """The items of a generator."""
    global deviates
    try:
        yield from items
    except RuntimeError as e:
        deviates |= isinstance(e.__cause__, StopIteration)
        raise


def calling(maker):
    """`map` or `filter`."""

    def noted(function):
        def call(*args):
            global deviates
            try:
                return function(*args)
            except StopIteration:
                deviates = True
                raise

        return call if callable(function) else function

    return lambda function, *items: maker(noted(function), *items)


# Nodes that are made here have no place of their own; to look for one takes a quarter of the time.
for kind in (ast.expr, ast.stmt):
    kind.lineno = kind.end_lineno = 1
    kind.col_offset = kind.end_col_offset = 0


class Sets(ast.NodeTransformer):
    def visit_Call(self, node):
        self.generic_visit(node)
        of = node.func
        if isinstance(of, ast.Attribute) and of.attr in ("now", "today", "utcnow"):
            base = of.value.attr if isinstance(of.value, ast.Attribute) else getattr(of.value, "id", "")
            args = node.args + [k.value for k in node.keywords]
            return ast.Call(ast.Name("now", ast.Load()), [ast.Constant(base), *args], [])
        return self.norm(node)

    def norm(self, node):
        return ast.Call(ast.Name("norm", ast.Load()), [node], [])

    def visit_BinOp(self, node):
        self.generic_visit(node)
        return self.norm(node)

    visit_UnaryOp = visit_BinOp

    def visit_Subscript(self, node):
        self.generic_visit(node)
        return self.norm(node) if isinstance(node.ctx, ast.Load) and not self.types else node

    def visit_Constant(self, node):
        written.append(node.value)
        return ast.copy_location(ast.Constant(norm(node.value)), node)

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        of = node.target
        if isinstance(of, ast.Subscript) and isinstance(of.value, ast.Name) and isinstance(of.slice, (ast.Constant, ast.Name)):
            part = ast.Subscript(of.value, of.slice, ast.Load())
            return [node, ast.Assign([ast.Subscript(of.value, of.slice, ast.Store())], self.norm(part))]
        if not isinstance(of, ast.Name):
            return node
        name = of.id
        value = self.norm(ast.Name(name, ast.Load()))
        return [node, ast.Assign([ast.Name(name, ast.Store())], value)]

    def visit_ClassDef(self, node):
        # The types of fields are no values.
        self.types = True
        self.generic_visit(node)
        self.types = False
        return node

    def visit_AnnAssign(self, node):
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    types = False

    def visit_Set(self, node):
        self.generic_visit(node)
        return ast.Call(ast.Name("Sorted", ast.Load()), [ast.List(node.elts, ast.Load())], [])

    def visit_FormattedValue(self, node):
        self.generic_visit(node)
        specs = ast.walk(node.format_spec) if node.format_spec else []
        if any(isinstance(s, ast.Constant) and set(str(s.value)) & set("eEfFgG%") for s in specs):
            node.value = ast.Call(ast.Name("sized", ast.Load()), [node.value], [])
        return node

    def visit_GeneratorExp(self, node):
        self.generic_visit(node)
        return ast.Call(ast.Name("stopping", ast.Load()), [node], [])

    def visit_SetComp(self, node):
        self.generic_visit(node)
        return ast.Call(ast.Name("Sorted", ast.Load()), [ast.ListComp(node.elt, node.generators)], [])


def plain(x):
    if isinstance(x, enum.Enum):
        return plain(x.value)
    if isinstance(x, bool) or x is None or isinstance(x, str):
        return x
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return {f.name: plain(getattr(x, f.name)) for f in dataclasses.fields(x)}
    if isinstance(x, (datetime.date, datetime.time)):
        return x.isoformat()
    if isinstance(x, datetime.timedelta):
        return plain(x.total_seconds())
    if isinstance(x, re.Match):
        return x.group()
    if isinstance(x, re.Pattern):
        return x.pattern
    if isinstance(x, float) and x == int(x):
        return int(x)
    if isinstance(x, (int, float)):
        return x
    if isinstance(x, set):
        return [plain(i) for i in Sorted(x)]
    # `reversed`, `enumerate`, `zip` and the like give lists.
    if isinstance(x, (list, tuple)) or hasattr(x, "__next__"):
        return [plain(i) for i in x]
    if isinstance(x, dict):
        key = lambda k: "null" if k is None else str(k).lower() if isinstance(k, bool) else str(k)
        return {key(k): plain(v) for k, v in x.items()}
    return str(x)


# What the imports and classes of plans bind, by their text: most plans have the same ones.
preludes = {}


def made(outer, source):
    """The names that imports and classes bind. No plan changes a class."""
    lines = source.split("\n")
    first = lambda s: min([s.lineno, *(d.lineno for d in getattr(s, "decorator_list", []))])
    text = "\n".join(line for s in outer for line in lines[first(s) - 1:s.end_lineno])
    if text not in preludes:
        names = dict(Sorted=Sorted, now=now, norm=norm, set=Sorted, ToolError=ToolError, PolicyError=PolicyError,
                     __name__="plan")
        tree = ast.Module(outer, [])
        exec(compile(Sets().visit(tree), "plan", "exec"), names)
        preludes[text] = names
    return {k: v for k, v in preludes[text].items() if k != "__builtins__"}


def run(source):
    trace, out = [], []

    def call(name, *args):
        trace.append([name, [plain(a) for a in args]])

    def echo(x=None):
        call("echo", x)
        return plain(x)

    def add(a=None, b=None):
        call("add", a, b)
        number = lambda v: isinstance(v, (int, float)) and not isinstance(v, bool)
        if number(a) and number(b):
            return a + b
        raise ToolError("`add`: no numbers")

    def fail(x=None):
        call("fail", x)
        raise ToolError("`fail`: it failed")

    def items(n=None):
        call("items", n)
        if isinstance(n, (int, float)) and not isinstance(n, bool) and 0 <= n < 10 and n == int(n):
            return [{"id": i, "name": f"n{i}"} for i in range(int(n))]
        raise ToolError("`items`: a bad number")

    def printing(*a, sep=None):
        if not isinstance(sep, (str, type(None))):
            raise TypeError(f"sep must be None or a string, not {type(sep).__name__}")
        out.append((" " if sep is None else sep).join(str(i) for i in a))

    names = dict(echo=echo, add=add, fail=fail, items=items, ToolError=ToolError, PolicyError=PolicyError,
                 set=Sorted, frozenset=Sorted, Sorted=Sorted, now=now, norm=norm,
                 stopping=stopping, sized=sized, map=calling(map), filter=calling(filter),
                 print=printing)
    try:
        tree = ast.parse(source)
    except SyntaxError as e:
        return {"error": "SyntaxError", "message": str(e), "trace": trace}
    written.clear()
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr) and not (isinstance(last.value, ast.Call) and isinstance(last.value.func, ast.Name)
                                           and last.value.func.id == "print"):
        tree.body[-1] = ast.copy_location(ast.Return(last.value), last)
    # Classes keep their names if they are those of a module.
    outer = [s for s in tree.body if isinstance(s, (ast.ClassDef, ast.Import, ast.ImportFrom))]
    wrapper = ast.parse("def plan():\n    pass")
    wrapper.body[0].body = [s for s in tree.body if s not in outer] or wrapper.body[0].body
    names["__name__"] = "plan"
    try:
        names |= made(outer, source)
        exec(compile(Sets().visit(wrapper), "plan", "exec"), names)
        value = names["plan"]()
        if value is None and "print(" in source:
            value = "\n".join(out)
        return {"result": plain(value), "trace": trace}
    except RecursionError:
        return {"error": "RecursionError", "trace": trace}
    except Exception as e:
        name = type(e).__name__
        at = e.__traceback__
        while at.tb_next:
            at = at.tb_next
        # The plan is the body of a function here; its variables are global ones.
        if name == "UnboundLocalError" and at.tb_frame.f_code.co_name == "plan":
            name = "NameError"
        return {"error": name, "message": str(e), "trace": trace}


for line in sys.stdin:
    rounded = deviates = False
    try:
        signal.alarm(LONG)
        answer = run(json.loads(line))
    except Endless:
        answer = {"error": "Endless", "trace": []}
    finally:
        signal.alarm(0)
    shown = json.dumps(answer)
    # An iterator was shown; plans have lists.
    deviates |= " object at 0x" in shown
    # Sums of fractions that are no binary ones.
    rounded |= re.search(r"\.\d{15}", shown) is not None
    print(json.dumps({**answer, "rounded": rounded, "deviates": deviates}), flush=True)
