"""The public interface of one release of a package, read from its sources with `ast`. Nothing is imported.

`summary` reads one file by itself, `interface` links the files of a release. What a file makes dynamically is
marked open, and nothing is ever said about what is open.
"""

import ast
import re

# Decorators that keep the signature of what they decorate.
KEEPS = {
    "property", "staticmethod", "classmethod", "abstractmethod", "override", "overload", "final", "deprecated",
    "beta", "experimental", "deprecate_kwarg", "deprecated_parameter", "asynccontextmanager", "contextmanager", "wraps", "lru_cache", "cache",
    "cached_property", "runtime_checkable", "working_in_progress", "a2a_experimental", "no_type_check",
    "computed_field", "typing_extensions", "internal", "feature_decorator", "release_candidate",
}
# Decorators of methods that pydantic calls by itself.
HOOKS = {"model_validator", "root_validator", "field_validator", "validator", "field_serializer",
         "model_serializer", "pre_init"}
PYDANTIC_DATACLASS = "pydantic.dataclasses.dataclass"
DATACLASS = {"dataclass", "dataclasses.dataclass", PYDANTIC_DATACLASS}
# Bases that add neither parameters nor attributes that programs use.
NEUTRAL = {"object", "builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol",
           "typing_extensions.Protocol", "typing_extensions.Generic", "collections.abc.Hashable"}
CLASS_VARS = {"typing.ClassVar", "typing_extensions.ClassVar"}


def summary(text, module, is_package):
    """What a file defines, as plain data; `None` if this Python cannot parse it."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return Module(tree, module, is_package).read()


def dotted(node):
    """`a.b.c` of an expression of names, without subscripts."""
    parts = []
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Name):
            parts.append(node.id)
            return ".".join(reversed(parts))
        else:
            return None


def constant(node):
    return node.value if isinstance(node, ast.Constant) else None


def text_of(node):
    """The text of a literal, an f-string or a sum of them, with `…` for what is not written."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = text_of(node.left), text_of(node.right)
        return "".join(sides) if None not in sides else None
    return None


def short(message):
    """A message on one line, short enough for a table."""
    message = re.sub(r"\s+", " ", message or "").strip().replace("\n", " ")
    return message if len(message) <= 160 else message[:159].rstrip() + "…"


def is_deprecation(node):
    """Returns true if a warning's category says that something is deprecated."""
    name = dotted(node) or ""
    return "Deprecat" in name.rsplit(".", 1)[-1] or name.endswith("PendingRemoval")


def warning(stmt):
    """The message of a statement that warns of a deprecation."""
    if not (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call)):
        return None
    call = stmt.value
    name = (dotted(call.func) or "").rsplit(".", 1)[-1]
    if name == "warn_deprecated":
        words = {k.arg: text_of(k.value) for k in call.keywords}
        return words.get("message") or (f"use {words['alternative']}" if words.get("alternative") else "deprecated")
    if name not in ("warn", "warn_once"):
        return None
    kinds = call.args[1:2] + [k.value for k in call.keywords if k.arg == "category"]
    return (text_of(call.args[0]) if call.args else None) or "deprecated" if any(map(is_deprecation, kinds)) else None


class Module:
    def __init__(self, tree, module, is_package):
        self.tree = tree
        self.module = module
        self.package = module if is_package else module.rpartition(".")[0]
        self.names = {}
        self.stars = []
        self.all = None
        self.open = False
        self.literals = {}
        self.imported = set()

    def read(self):
        self.scan(self.tree.body, ImportScope(self))
        self.block(self.tree.body)
        getattr_def = [n for n in self.tree.body if isinstance(n, ast.FunctionDef) and n.name == "__getattr__"]
        lazy = {}
        made = self.literals.get("__getattr__")
        if made is not None:
            # `__getattr__, __dir__ = accessors(globals(), TABLE)`: the names are those of the tables.
            tables = [self.literals[a.id] for a in getattr(made, "args", [])
                      if isinstance(a, ast.Name) and isinstance(self.literals.get(a.id), ast.Dict)]
            self.open |= not tables
            for node in tables:
                for key, value in zip(node.keys, node.values):
                    if not isinstance(constant(key) if key else None, str):
                        self.open = True
                        continue
                    parts = [constant(e) for e in value.elts] if isinstance(value, (ast.Tuple, ast.List)) else [constant(value)]
                    lazy[constant(key)] = [p for p in parts if isinstance(p, str)][:2] or None
        if getattr_def:
            lazy, closed = self.lazy(getattr_def[-1])
            self.open |= not closed
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                name = dotted(node.func) or ""
                if name == "setattr" and node.args and "sys.modules" in ast.unparse(node.args[0]):
                    self.open = True
                if name == "globals().update" or (isinstance(node.func, ast.Attribute)
                                                  and ast.unparse(node.func) == "globals().update"):
                    self.open = True
            if isinstance(node, (ast.Assign, ast.AugAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    written = ast.unparse(target)
                    if written.startswith("sys.modules["):
                        self.open = True
                    if written.startswith("globals()[") and not self.in_getattr(node, getattr_def):
                        self.open = True
        return {"names": self.names, "stars": self.stars, "all": self.all, "open": self.open, "lazy": lazy,
                "submodules": sorted(self.imported)}

    def in_getattr(self, node, defs):
        return any(d.lineno <= node.lineno <= d.end_lineno for d in defs)

    # Imports and names, first, so that decorators and bases can be qualified.
    def scan(self, body, scope):
        self.scope = scope
        for node in ast.walk(ast.Module(body=body, type_ignores=[])):
            if isinstance(node, ast.Import):
                for a in node.names:
                    if a.asname:
                        scope.known[a.asname] = a.name
                    else:
                        scope.known[a.name.split(".")[0]] = a.name.split(".")[0]
            elif isinstance(node, ast.ImportFrom):
                base = self.absolute(node)
                for a in node.names:
                    scope.known.setdefault(a.asname or a.name, f"{base}.{a.name}")
        for node in body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                scope.known[node.name] = f"{self.module}.{node.name}"

    def absolute(self, node):
        if not node.level:
            return node.module or ""
        base = self.package.split(".")
        base = base[: len(base) - (node.level - 1)]
        return ".".join(base + ([node.module] if node.module else []))

    def qualified(self, node):
        name = dotted(node)
        if name is None:
            return None
        first, _, rest = name.partition(".")
        if first in self.scope.known:
            first = self.scope.known[first]
        elif first in BUILTINS:
            first = "builtins." + first
        else:
            first = f"{self.module}.{first}"
        return f"{first}.{rest}" if rest else first

    def bind(self, name, what):
        old = self.names.get(name)
        if old is None or self.exclusive == 0 or old == what:
            # The later binding holds, unless it is made in another branch.
            self.names[name] = what
        elif old[0] == "fn" and what[0] == "fn" and self.overloading:
            self.names[name] = what
        else:
            self.names[name] = ["val"]

    exclusive = 0
    overloading = False

    def block(self, body):
        for node in body:
            self.statement(node)

    def statement(self, node):
        if isinstance(node, ast.Import):
            for a in node.names:
                if a.asname:
                    self.bind(a.asname, ["imp", a.name, None])
                else:
                    self.bind(a.name.split(".")[0], ["imp", a.name.split(".")[0], None])
                    self.imported.add(a.name)
        elif isinstance(node, ast.ImportFrom):
            base = self.absolute(node)
            if base == "__future__":
                return
            for a in node.names:
                if a.name == "*":
                    self.stars.append(base)
                else:
                    self.bind(a.asname or a.name, ["imp", base, a.name])
                    self.imported.add(base)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if not any(self.last(d) == "overload" for d in node.decorator_list):
                self.bind(node.name, ["fn", *self.function(node, None)])
        elif isinstance(node, ast.ClassDef):
            self.bind(node.name, ["cls", self.klass(node)])
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self.assigned(target, node.value)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.assigned(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name) and node.target.id == "__all__":
                more = self.strings(node.value)
                self.all = None if more is None or self.all is None else self.all + more
                if more is None:
                    self.all = []
        elif isinstance(node, ast.If):
            test = ast.unparse(node.test)
            if test.rsplit(".", 1)[-1] == "TYPE_CHECKING":
                self.block(node.orelse)
            elif test.startswith("not ") and test.rsplit(".", 1)[-1].endswith("TYPE_CHECKING"):
                self.block(node.body)
            else:
                self.branches(node.body, node.orelse)
        elif isinstance(node, ast.Try):
            self.block(node.body)
            self.branches(*[h.body for h in node.handlers], node.orelse)
            self.block(node.finalbody)
        elif isinstance(node, (ast.For, ast.While, ast.With)):
            if isinstance(node, ast.For):
                self.assigned(node.target, None)
            if isinstance(node, ast.With):
                for item in node.items:
                    if item.optional_vars is not None:
                        self.assigned(item.optional_vars, None)
            self.branches(node.body)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.names.pop(target.id, None)
        elif type(node).__name__ == "TypeAlias" or type(node).__name__ == "Match":
            self.open = True
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = ast.unparse(node.value.func)
            if call == "__all__.extend" or call == "__all__.append":
                self.all = None
            elif call in ("exec", "globals().update"):
                self.open = True

    def branches(self, *bodies):
        Module.exclusive = self.exclusive
        self.exclusive += 1
        for body in bodies:
            self.block(body)
        self.exclusive -= 1

    def assigned(self, target, value):
        if isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                if isinstance(element, ast.Name) and element.id == "__getattr__" and value is not None:
                    self.literals["__getattr__"] = value
                self.assigned(element, None)
        elif isinstance(target, ast.Starred):
            self.assigned(target.value, None)
        elif isinstance(target, ast.Name):
            if target.id == "__all__":
                self.all = self.strings(value)
                return
            if isinstance(value, (ast.Dict, ast.Set, ast.List, ast.Tuple, ast.Call)):
                self.literals[target.id] = value
            elif target.id == "__getattr__" and value is not None:
                self.literals[target.id] = value
            if value is not None and isinstance(value, (ast.Name, ast.Attribute)):
                self.bind(target.id, ["ali", self.qualified(value)])
                self.scope.known.setdefault(target.id, self.qualified(value))
            else:
                self.bind(target.id, ["val"])

    def strings(self, node):
        """The texts of a list, or of a sum of lists; `None` if they are not all written."""
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            out = [constant(e) for e in node.elts]
            return out if all(isinstance(e, str) for e in out) else None
        if isinstance(node, ast.Call) and dotted(node.func) in ("sorted", "list", "tuple", "set", "frozenset") and len(node.args) == 1:
            return self.strings(node.args[0])
        return None

    def last(self, decorator):
        node = decorator.func if isinstance(decorator, ast.Call) else decorator
        return (dotted(node) or "?").rsplit(".", 1)[-1]

    def lazy(self, node):
        """The names that a module's `__getattr__` gives, and whether it gives no others."""
        name = node.args.args[0].arg if node.args.args else "name"
        found = {}

        def table(expr, seen=()):
            """The entries of a table: name to where it is, where that is written."""
            if isinstance(expr, ast.Name) and expr.id not in seen:
                literal = self.literals.get(expr.id)
                return table(literal, (*seen, expr.id)) if literal is not None else None
            if isinstance(expr, ast.Dict):
                out = {}
                for key, value in zip(expr.keys, expr.values):
                    if key is None:
                        inner = table(value, seen)
                        if inner is None:
                            return None
                        out.update(inner)
                    elif isinstance(constant(key), str):
                        out[constant(key)] = place(value)
                    else:
                        return None
                return out
            if isinstance(expr, (ast.Set, ast.List, ast.Tuple)):
                keys = [constant(e) for e in expr.elts]
                return {k: None for k in keys} if all(isinstance(k, str) for k in keys) else None
            if isinstance(expr, ast.Call) and dotted(expr.func) in ("frozenset", "set", "dict", "tuple") and len(expr.args) == 1:
                return table(expr.args[0], seen)
            return None

        def place(value):
            if isinstance(constant(value), str):
                return [constant(value)]
            if isinstance(value, (ast.Tuple, ast.List)):
                parts = [constant(e) for e in value.elts]
                return [p for p in parts if isinstance(p, str)][:2] or None
            return None

        def mentions(expr):
            return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(expr))

        closed = any(isinstance(n, ast.Raise) and n.exc is not None
                     and (dotted(n.exc.func if isinstance(n.exc, ast.Call) else n.exc) or "").endswith(("AttributeError", "ImportError"))
                     for n in ast.walk(node))
        looked_up = False
        # Tables that are used: `T[name]`, `T.get(name)`, `name in T`.
        for n in ast.walk(node):
            used = None
            if isinstance(n, ast.Subscript) and mentions(n.slice):
                used = n.value
            elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "get" and n.args and mentions(n.args[0]):
                used = n.func.value
            elif isinstance(n, ast.Compare) and isinstance(n.left, ast.Name) and n.left.id == name:
                if isinstance(n.ops[0], (ast.Eq, ast.NotEq)) and isinstance(constant(n.comparators[0]), str):
                    found.setdefault(constant(n.comparators[0]), None)
                    continue
                if isinstance(n.ops[0], (ast.In, ast.NotIn)):
                    used = n.comparators[0]
            if used is None or ast.unparse(used) in ("globals()", "sys.modules"):
                continue
            entries = table(used)
            if ast.unparse(used) == "__all__":
                entries = {k: None for k in self.all or []} if self.all else None
            if not entries:
                closed = False
                continue
            looked_up = True
            for key, value in entries.items():
                if found.get(key) is None:
                    found[key] = value
        # A helper does it: `_import_attribute = create_importer(...)`, `import_attr(name, module, ...)`.
        for n in ast.walk(node):
            if not (isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and any(mentions(a) for a in n.args)):
                continue
            maker = self.literals.get(n.func.id)
            if isinstance(maker, ast.Call):
                closed = True
                for k in maker.keywords:
                    if k.arg in ("module_lookup", "deprecated_lookups"):
                        entries = table(k.value)
                        if entries is None:
                            closed = False
                        for key, value in (entries or {}).items():
                            found[key] = value if k.arg == "module_lookup" or value is None else ["!", *value]
                    elif k.arg == "fallback_module":
                        if isinstance(constant(k.value), str):
                            self.stars.append(constant(k.value))
                        else:
                            closed = False
                    elif k.arg != "package":
                        closed = False
            elif n.func.id == "import_attr":
                closed = True
            elif n.func.id not in ("getattr", "repr", "KeyError", "AttributeError", "ImportError", "import_module", "str"):
                closed = closed and looked_up
        # Whatever another module has under the name.
        if not looked_up:
            for stmt in node.body:
                if isinstance(stmt, ast.If) and mentions(stmt.test):
                    continue
                if any(isinstance(n, ast.Call) and dotted(n.func) == "getattr" and any(mentions(a) for a in n.args)
                       for n in ast.walk(stmt)):
                    closed = False
        # `if name == "X": from y import X; return X`
        for n in ast.walk(node):
            if not (isinstance(n, ast.If) and mentions(n.test)):
                continue
            names = [constant(c) for c in ast.walk(n.test) if isinstance(constant(c), str)]
            inside = ast.Module(body=n.body, type_ignores=[])
            imports = {}
            for i in ast.walk(inside):
                if isinstance(i, ast.ImportFrom):
                    for a in i.names:
                        imports[a.asname or a.name] = (self.absolute(i), a.name)
            returns = [r.value for r in ast.walk(inside) if isinstance(r, ast.Return)]
            message = next((m for s in n.body for m in [warning(s)] if m), None)
            for key in names:
                if key not in found:
                    continue
                where = found[key]
                if where is None and len(returns) == 1 and isinstance(returns[0], ast.Name) and returns[0].id in imports:
                    base, attr = imports[returns[0].id]
                    where = [base, attr]
                if message:
                    where = ["!" + message, *(where or [])]
                found[key] = where
        return found, closed

    # Functions.
    def function(self, node, kind):
        """Signature and deprecation. `kind` is the way a method is bound, `None` for a function."""
        deprecated, opaque = None, False
        bound = kind
        for d in node.decorator_list:
            last = self.last(d)
            if last == "staticmethod":
                bound = "static"
            if last == "deprecated":
                deprecated = self.deprecated_by(d)
            if last in HOOKS or last not in KEEPS and not last.endswith(("_experimental", "_deprecated")) and last != "experimental_telemetry":
                opaque = True
        for stmt in node.body[:8]:
            if isinstance(stmt, ast.If) and "TYPE_CHECKING" not in ast.unparse(stmt.test):
                continue
            deprecated = deprecated or warning(stmt)
        doc = ast.get_docstring(node) or ""
        match = re.match(r"\s*(\[?\(?Deprecated\b[^\n]*|DEPRECATED\b[^\n]*|\.\. deprecated::[^\n]*)", doc)
        if match and deprecated is None:
            deprecated = match.group(1)
        signature = "?" if opaque else self.signature(node, bound)
        return [signature, short(deprecated) if deprecated else None]

    def deprecated_by(self, d):
        if not isinstance(d, ast.Call):
            return "deprecated"
        words = {k.arg: text_of(k.value) for k in d.keywords}
        first = text_of(d.args[0]) if d.args else None
        if words.get("alternative") or words.get("alternative_import"):
            return f"use {words.get('alternative') or words.get('alternative_import')}"
        if words.get("message"):
            return words["message"]
        # The first argument is a version in one dialect and the message in the other.
        return first if first and " " in first else "deprecated"

    def signature(self, node, bound):
        args = node.args
        out = []
        positional = args.posonlyargs + args.args
        defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
        skip = 1 if bound in ("method", "class") and positional else 0
        for i, (a, default) in enumerate(zip(positional, defaults)):
            if i >= skip:
                out.append(a.arg + ("?" if default is not None else ""))
            if args.posonlyargs and i == len(args.posonlyargs) - 1 and i >= skip:
                out.append("/")
        if args.vararg:
            out.append("*" + args.vararg.arg)
        elif args.kwonlyargs:
            out.append("*")
        for a, default in zip(args.kwonlyargs, args.kw_defaults):
            out.append(a.arg + ("?" if default is not None else ""))
        if args.kwarg:
            out.append("**" + self.rest(node, args.kwarg))
        return ",".join(out)

    def rest(self, node, kwarg):
        """How a function takes keywords that are no parameters: `` takes all, `!a,b` raises on others than these,
        `~a,b` ignores others, `>a,b` hands others to the constructor above."""
        name = kwarg.arg
        known, forwarded, raises, other = set(), False, False, False
        parents = {}
        for n in ast.walk(node):
            for child in ast.iter_child_nodes(n):
                parents[child] = n
        for n in ast.walk(node):
            if not (isinstance(n, ast.Name) and n.id == name):
                continue
            up = parents.get(n)
            if isinstance(up, ast.Attribute) and up.attr in ("get", "pop") and isinstance(parents.get(up), ast.Call) and parents[up].args:
                key = constant(parents[up].args[0])
                if isinstance(key, str):
                    known.add(key)
                    continue
            if isinstance(up, ast.Subscript) and isinstance(constant(up.slice), str):
                known.add(constant(up.slice))
                continue
            if isinstance(up, ast.Compare) and up.left is not n and isinstance(constant(up.left), str):
                known.add(constant(up.left))
                continue
            if isinstance(up, ast.keyword) and up.arg is None:
                call = parents[up]
                if ast.unparse(call.func) == "super().__init__":
                    forwarded = True
                    known.update(k.arg for k in call.keywords if k.arg and False)
                    continue
            test = n
            # `if kwargs`, `if len(kwargs) > 0`; not `if name in kwargs`.
            while True:
                above = parents.get(test)
                if isinstance(above, ast.UnaryOp) or isinstance(above, ast.Compare) and above.left is test \
                        or isinstance(above, ast.Call) and dotted(above.func) in ("len", "bool", "set", "list"):
                    test = above
                else:
                    break
            holder = parents.get(test)
            if isinstance(holder, ast.If) and holder.test is test and holder.body and isinstance(holder.body[-1], ast.Raise) \
                    and "TypeError" in ast.unparse(holder.body[-1]):
                raises = True
                continue
            if raises and self.within_raise(n, parents):
                continue
            other = True
        if other and not raises:
            return ""
        mark = "!" if raises else ">" if forwarded else "~"
        if mark == "~" and not known:
            # A hook's unused keywords, or an abstract method.
            return ""
        return mark + "|".join(sorted(known))

    def within_raise(self, n, parents):
        while n in parents:
            n = parents[n]
            if isinstance(n, ast.Raise):
                return True
        return False

    # Classes.
    def klass(self, node):
        out = {"bases": [], "kind": "", "open": False, "dynamic": False, "init": None, "fields": {}, "order": None,
               "members": {}, "extra": None, "by_name": False, "before": None, "deprecated": None}
        for d in node.decorator_list:
            last = self.last(d)
            qualified = self.qualified(d.func if isinstance(d, ast.Call) else d) or "?"
            if qualified in DATACLASS:
                words = {k.arg: constant(k.value) for k in d.keywords} if isinstance(d, ast.Call) else {}
                out["kind"] = "data-kw" if words.get("kw_only") else "data"
                if words.get("init") is False:
                    out["kind"] = ""
                elif qualified == PYDANTIC_DATACLASS:
                    # Unknown keywords are dropped, unless the configuration says otherwise.
                    out["extra"] = "ignore"
                    for k in d.keywords if isinstance(d, ast.Call) else []:
                        if k.arg == "config":
                            self.config(k.value, out)
            elif last == "deprecated":
                out["deprecated"] = short(self.deprecated_by(d))
            elif last not in KEEPS and last not in ("total_ordering",):
                out["open"] = True
        for base in node.bases:
            out["bases"].append(self.qualified(base) or "?")
        for k in node.keywords:
            if k.arg == "metaclass":
                if (dotted(k.value) or "").rsplit(".", 1)[-1] not in ("ABCMeta",):
                    out["open"] = True
            elif k.arg == "extra" and isinstance(constant(k.value), str):
                out["extra"] = constant(k.value)
            elif k.arg is None:
                out["open"] = True
        out["order"] = []
        self.members(node, node.body, out)
        doc = ast.get_docstring(node) or ""
        match = re.match(r"\s*(\[?\(?Deprecated\b[^\n]*|DEPRECATED\b[^\n]*|\.\. deprecated::[^\n]*)", doc)
        if match and not out["deprecated"]:
            out["deprecated"] = short(match.group(1))
        return out

    def members(self, node, body, out):
        for stmt in body:
            if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.method(node, stmt, out)
            elif isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name):
                self.field(stmt, out)
            elif isinstance(stmt, ast.Assign):
                for target in stmt.targets:
                    if not isinstance(target, ast.Name):
                        continue
                    if target.id == "model_config":
                        self.config(stmt.value, out)
                    else:
                        out["members"].setdefault(target.id, ["v"])
            elif isinstance(stmt, ast.ClassDef):
                if stmt.name == "Config":
                    for s in stmt.body:
                        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name):
                            self.configured(s.targets[0].id, s.value, out)
                else:
                    out["members"][stmt.name] = ["v"]
            elif isinstance(stmt, ast.If):
                test = ast.unparse(stmt.test)
                if "TYPE_CHECKING" in test:
                    self.members(node, stmt.body if test.startswith("not") else stmt.orelse, out)
                    if not test.startswith("not"):
                        # Declared for type checkers: something else makes them.
                        for s in stmt.body:
                            if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)) and s.name != "__init__":
                                out["members"].setdefault(s.name, ["v"])
                            elif isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)):
                                out["open"] = True
                else:
                    self.members(node, stmt.body, out)
                    self.members(node, stmt.orelse, out)
            elif isinstance(stmt, ast.Try):
                self.members(node, stmt.body, out)

    def config(self, value, out):
        if isinstance(value, ast.Call) and (dotted(value.func) or "").endswith("ConfigDict") and not value.args:
            for k in value.keywords:
                if k.arg is None:
                    out["open"] = True
                else:
                    self.configured(k.arg, k.value, out)
        elif isinstance(value, ast.Dict) and all(isinstance(constant(k), str) for k in value.keys):
            for k, v in zip(value.keys, value.values):
                self.configured(constant(k), v, out)
        else:
            out["open"] = True

    def configured(self, key, value, out):
        if key == "extra":
            text = constant(value)
            if text is None and (dotted(value) or "").startswith("Extra."):
                text = dotted(value).split(".")[1]
            out["extra"] = text if text in ("forbid", "ignore", "allow") else "allow"
        elif key in ("populate_by_name", "allow_population_by_field_name", "validate_by_name"):
            out["by_name"] = constant(value) is not False
        elif key == "alias_generator":
            out["open"] = True

    def field(self, stmt, out):
        name = stmt.target.id
        annotation = ast.unparse(stmt.annotation)
        if re.match(r"^['\"]?(\w+\.)?(ClassVar|Final)\b", annotation):
            out["members"][name] = ["v"]
            return
        if re.match(r"^(\w+\.)?KW_ONLY$", annotation):
            out["order"].append("*")
            return
        if name == "model_config":
            if stmt.value is not None:
                self.config(stmt.value, out)
            return
        calls = [stmt.value] if isinstance(stmt.value, ast.Call) else []
        inner = stmt.annotation
        if isinstance(inner, ast.Subscript) and (dotted(inner.value) or "").endswith("Annotated") and isinstance(inner.slice, ast.Tuple):
            calls += [e for e in inner.slice.elts[1:] if isinstance(e, ast.Call)]
        required = stmt.value is None
        aliases, deprecated, init, keyword = [], None, True, False
        for call in calls:
            function = (dotted(call.func) or "").rsplit(".", 1)[-1]
            if function == "PrivateAttr":
                out["members"][name] = ["v"]
                return
            if function not in ("Field", "field"):
                continue
            words = {k.arg: k.value for k in call.keywords}
            if None in words:
                out["open"] = True
            has_default = "default" in words or "default_factory" in words or "factory" in words
            first = call.args[0] if call.args else words.get("default")
            if call is stmt.value:
                required = not (has_default or call.args)
            elif has_default:
                required = False
            if first is not None and constant(first) is Ellipsis:
                required = True
            for key in ("alias", "validation_alias"):
                if key in words:
                    if isinstance(constant(words[key]), str):
                        aliases.append(constant(words[key]))
                    elif isinstance(words[key], ast.Call):
                        texts = [constant(a) for a in words[key].args]
                        if all(isinstance(t, str) for t in texts):
                            aliases += texts
                        else:
                            out["open"] = True
                    elif constant(words[key]) is not None or not isinstance(words[key], ast.Constant):
                        out["open"] = True
            if "init" in words and constant(words["init"]) is False:
                init = False
            if "kw_only" in words and constant(words["kw_only"]) is True:
                keyword = True
            if "deprecated" in words and constant(words["deprecated"]) not in (None, False):
                deprecated = text_of(words["deprecated"]) or "deprecated"
            description = text_of(words["description"]) if "description" in words else None
            if description and re.match(r"\s*\[?\(?deprecated\b", description, re.I):
                deprecated = deprecated or description
        out["members"].setdefault(name, ["v"])
        if not init:
            return
        out["fields"][name] = [required, sorted(set(aliases)), short(deprecated) if deprecated else None]
        if not name.startswith("__"):
            if keyword:
                out["fields"][name].append("kw")
            if name in out["order"]:
                out["order"].remove(name)
            out["order"].append(name)

    def method(self, node, stmt, out):
        names = {self.last(d) for d in stmt.decorator_list}
        if "overload" in names:
            return
        # Attributes that methods set.
        own = stmt.args.args[0].arg if stmt.args.args else None
        for n in ast.walk(stmt):
            if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name) and n.value.id == own:
                out["members"].setdefault(n.attr, ["v"])
            if isinstance(n, ast.Call) and dotted(n.func) in ("setattr", "object.__setattr__") and n.args \
                    and isinstance(n.args[0], ast.Name) and n.args[0].id == own:
                key = constant(n.args[1]) if len(n.args) > 1 else None
                if isinstance(key, str):
                    out["members"].setdefault(key, ["v"])
                else:
                    out["dynamic"] = True
            if isinstance(n, ast.Attribute) and n.attr == "__dict__" and isinstance(n.value, ast.Name) and n.value.id == own:
                out["dynamic"] = True
        for d in stmt.decorator_list:
            if self.last(d) in ("model_validator", "root_validator", "pre_init"):
                words = {k.arg: constant(k.value) for k in d.keywords} if isinstance(d, ast.Call) else {}
                if words.get("mode") in ("before", "wrap") or self.last(d) == "pre_init" or self.last(d) == "root_validator":
                    self.before(stmt, out)
        if stmt.name in ("__getattr__", "__getattribute__"):
            out["dynamic"] = True
        if stmt.name in ("__init__", "__new__"):
            if stmt.name == "__new__" and out["init"] is not None:
                return
            if stmt.name == "__new__":
                signature, deprecated = self.function(stmt, "method")
                # It is called with the same arguments as `__init__`, which tells more.
                out["new"] = signature
                return
            signature, deprecated = self.function(stmt, "method")
            out["init"] = signature
            if deprecated and not out["deprecated"]:
                out["deprecated"] = deprecated
            return
        if stmt.name == "__init_subclass__" or stmt.name.startswith("__"):
            if stmt.name == "__call__":
                out["members"]["__call__"] = ["f", *self.function(stmt, "method")]
            return
        if names & HOOKS:
            out["members"].setdefault(stmt.name, ["v"])
            return
        if names & {"property", "cached_property", "computed_field", "setter", "getter", "deleter"}:
            old = out["members"].get(stmt.name)
            deprecated = self.function(stmt, "method")[1]
            out["members"][stmt.name] = ["v", deprecated] if deprecated and not old else old or ["v"]
            return
        out["members"][stmt.name] = ["f", *self.function(stmt, "method")]

    def before(self, stmt, out):
        """What a validator that sees the arguments first takes from them; `*` if that is not known."""
        args = [a.arg for a in stmt.args.args]
        values = args[1] if len(args) > 1 and args[0] in ("cls", "self") else args[0] if args else None
        known = set()
        parents = {}
        for n in ast.walk(stmt):
            for child in ast.iter_child_nodes(n):
                parents[child] = n
        for n in ast.walk(stmt):
            if not (isinstance(n, ast.Name) and n.id == values):
                continue
            if isinstance(n.ctx, ast.Store):
                continue
            up = parents.get(n)
            if isinstance(up, ast.Return) or isinstance(up, ast.Attribute) and up.attr in ("get", "pop", "setdefault"):
                continue
            if isinstance(up, ast.Subscript) or isinstance(up, ast.Compare) and up.left is not n:
                continue
            if isinstance(up, ast.Call) and dotted(up.func) in ("isinstance", "cls._validate_dict"):
                continue
            if isinstance(up, ast.UnaryOp):
                continue
            if isinstance(up, ast.Call) and (dotted(up.func) or "").rsplit(".", 1)[-1] == "process_config":
                known.add("config")
                continue
            known.add("*")
        for n in ast.walk(stmt):
            if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.isidentifier():
                known.add(n.value)
        out["before"] = sorted(set(out["before"] or []) | known)


class ImportScope:
    def __init__(self, module):
        self.known = {}


BUILTINS = {n for n in dir(__builtins__ if not isinstance(__builtins__, dict) else object)} | set(
    __builtins__ if isinstance(__builtins__, dict) else dir(__builtins__))


# Linking.

def interface(files, shallow=False):
    """The interface of a release: key to content. `files` maps a module's name to its summary and whether it is
    a package. Keys are `(module,)`, `(module, name)` and `(module, name, member)`."""
    modules = {m: s for m, (s, _) in files.items()}
    packages = {m for m, (_, p) in files.items() if p}
    every = set(modules)
    for m in list(every):
        while "." in m:
            m = m.rpartition(".")[0]
            every.add(m)

    def is_private(name):
        return any(p.startswith("_") and p != "__init__" for p in name.split("."))

    memo = {}

    def bound(module, name, seen=()):
        """What a name of a module is: `(module, name)` of its definition, a submodule, or what another package has."""
        key = (module, name)
        if key in memo:
            return memo[key]
        if key in seen or len(seen) > 40:
            return None
        result = bound_now(module, name, (*seen, key))
        memo[key] = result
        return result

    def bound_now(module, name, seen):
        s = modules.get(module)
        if s is None:
            return ("mod", f"{module}.{name}") if f"{module}.{name}" in every else ("out", f"{module}.{name}")
        what = s["names"].get(name)
        if what is None and name in s["lazy"]:
            return lazily(module, name, s["lazy"][name], seen)
        if what is None:
            for star in s["stars"]:
                if star in modules:
                    target = modules[star]
                    if (target["all"] is None and name.startswith("_")) or (target["all"] and name not in target["all"]):
                        continue
                    found = bound(star, name, seen)
                    if found is not None:
                        return found
            return ("mod", f"{module}.{name}") if f"{module}.{name}" in every else None
        if what[0] == "imp":
            if what[2] is None:
                return ("mod", what[1])
            if what[1] not in every:
                return ("out", f"{what[1]}.{what[2]}")
            if what[1] == module and what[2] == name:
                return ("mod", f"{module}.{name}") if f"{module}.{name}" in every else None
            return bound(what[1], what[2], seen) or ("val", module, name)
        if what[0] == "ali":
            return follow(what[1], seen) or ("val", module, name)
        return ("def", module, name)

    def lazily(module, name, where, seen):
        where = [w for w in where or [] if not w.startswith("!")]
        if not where:
            return ("val", module, name)
        path, attr = where[0], where[1] if len(where) > 1 else name
        parent = module if module in packages else module.rpartition(".")[0]
        if path == "__module__":
            return ("mod", f"{parent}.{name}")
        if path.startswith("."):
            path = parent + path if path != "." else parent
        for candidate in (path, f"{parent}.{path}", f"{module}.{path}"):
            if candidate in modules:
                return bound(candidate, attr, seen) or ("val", module, name)
        if f"{path}.{attr}" in modules:
            return ("mod", f"{path}.{attr}")
        if "." in path or path.isidentifier() and path not in (parent,):
            return ("out", f"{path}.{attr}") if path.split(".")[0] not in {m.split(".")[0] for m in modules} else ("val", module, name)
        return ("val", module, name)

    def follow(qualified, seen=()):
        """The definition that a qualified name leads to."""
        if qualified is None:
            return None
        parts = qualified.split(".")
        for i in range(len(parts) - 1, 0, -1):
            module = ".".join(parts[:i])
            if module in modules:
                if i == len(parts) - 1:
                    return bound(module, parts[i], seen)
                return ("val", module, parts[i])
        return ("out", qualified)

    def base_name(qualified):
        """The name of a base class as the tables have it."""
        found = follow(qualified)
        if found is None or found[0] in ("val", "mod"):
            return "?"
        if found[0] == "out":
            return found[1]
        return f"{found[1]}.{found[2]}"

    def exported(module):
        """All names of a module, those of star imports included; `None` in place of names that are not known."""
        s = modules[module]
        names = dict.fromkeys(n for n in s["names"])
        names.update(dict.fromkeys(s["lazy"]))
        is_open = s["open"]
        todo, done = list(s["stars"]), {module}
        while todo:
            star = todo.pop()
            if star in done:
                continue
            done.add(star)
            t = modules.get(star)
            if t is None:
                is_open = True
                continue
            is_open |= t["open"]
            more = t["all"] if t["all"] is not None else [n for n in t["names"] if not n.startswith("_")]
            names.update(dict.fromkeys(more))
            if t["all"] is None:
                todo += t["stars"]
        return names, is_open

    out = {}
    wanted = set()

    def emit_definition(module, name):
        """The definition of a function or class, also of a private module that a public one gives out."""
        if (module, name) in wanted:
            return
        wanted.add((module, name))
        what = modules[module]["names"][name]
        if what[0] == "val":
            out[(module, name)] = "v"
            return
        if what[0] == "fn":
            out[(module, name)] = f"f {what[1]}" + (f" !{what[2]}" if what[2] else "")
            return
        c = what[1]
        bases = []
        for b in c["bases"]:
            if b in NEUTRAL:
                continue
            b = base_name(b)
            if b in NEUTRAL:
                continue
            bases.append(b)
            found = follow(b)
            if found and found[0] == "def":
                emit_definition(found[1], found[2])
        flags = []
        if c["open"] or shallow:
            flags.append("open")
        if c["dynamic"]:
            flags.append("dynamic")
        if c["kind"]:
            flags.append(c["kind"])
        if c["extra"]:
            flags.append(c["extra"])
        if c["by_name"]:
            flags.append("by-name")
        if c["before"] is not None:
            flags.append("before=" + "|".join(["*"] if "*" in c["before"] else c["before"]))
        header = "c " + (",".join(bases) or "-") + (" " + " ".join(flags) if flags else "")
        out[(module, name)] = header + (f" !{c['deprecated']}" if c["deprecated"] else "")
        if shallow:
            return
        signature = c["init"] if c["init"] is not None else c.get("new")
        if signature is not None:
            out[(module, name, "__init__")] = f"f {signature}"
        if c["kind"]:
            fields = []
            star = c["kind"] == "data-kw"
            if star:
                fields.append("*")
            late = []
            for n in c["order"]:
                if n == "*":
                    star = True
                    fields.append("*")
                elif not star and len(c["fields"][n]) > 3:
                    late.append(n)
                else:
                    fields.append(n + ("" if c["fields"][n][0] else "?"))
            if late:
                fields += ([] if star else ["*"]) + [n + ("" if c["fields"][n][0] else "?") for n in late]
            out[(module, name, "__fields__")] = "d " + ",".join(fields)
        else:
            for n, (required, aliases, deprecated, *_) in c["fields"].items():
                if n.startswith("_"):
                    continue
                spec = "p" + (" required" if required else "") + (" =" + "|".join(aliases) if aliases else "")
                out[(module, name, n)] = spec + (f" !{deprecated}" if deprecated else "")
        for n, m in c["members"].items():
            if n.startswith("_") and n != "__call__":
                continue
            if (module, name, n) in out and not c["kind"]:
                continue
            if m[0] == "f":
                out[(module, name, n)] = f"f {m[1]}" + (f" !{m[2]}" if m[2] else "")
            else:
                out[(module, name, n)] = "v" + (f" !{m[1]}" if len(m) > 1 and m[1] else "")

    for module in sorted(every):
        if is_private(module):
            continue
        s = modules.get(module)
        if s is None:
            out[(module,)] = "namespace" if module not in modules else ""
            continue
        names, is_open = exported(module)
        flags = ["package"] if module in packages else []
        if is_open:
            flags.append("open")
        out[(module,)] = " ".join(flags)
        for name in names:
            if name.startswith("_") and not (name == "__version__"):
                continue
            found = bound(module, name)
            where = s["lazy"].get(name) if name not in s["names"] else None
            message = next((w[1:] for w in where or [] if w.startswith("!")), None)
            note = f" !{short(message) or 'deprecated'}" if message is not None else ""
            if found is None:
                # A star import, or an entry of `__all__`, that leads nowhere that can be seen.
                out[(module, name)] = "v" + note
            elif found[0] == "def":
                if (found[1], found[2]) == (module, name):
                    emit_definition(module, name)
                else:
                    out[(module, name)] = f"a {found[1]}.{found[2]}" + note
                    if not found[2].startswith("__"):
                        emit_definition(found[1], found[2])
            elif found[0] == "val":
                out[(module, name)] = "v" + note
            elif found[0] == "mod":
                if found[1] == f"{module}.{name}" or found[1] not in every:
                    out[(module, name)] = "v" + note
                else:
                    out[(module, name)] = f"a {found[1]}" + note
            else:
                # Only what may be of a package with a table is worth a target.
                root = found[1].split(".")[0]
                out[(module, name)] = (f"a {found[1]}" if root in TABLED else "v") + note
    # Modules of definitions that private modules hold.
    for module, _ in wanted:
        out.setdefault((module,), "open" if is_private(module) else "")
    return out


# Packages at the top of what the tables describe.
TABLED = {"langgraph", "langchain", "langchain_core", "langchain_openai", "langchain_anthropic",
          "langchain_community", "langgraph_supervisor", "langgraph_swarm", "crewai", "crewai_tools", "agents",
          "autogen", "ag2", "autogen_agentchat", "autogen_core", "autogen_ext", "google", "pydantic_ai", "pydantic_graph",
          "agent_framework", "langchain_text_splitters", "langchain_classic"}
