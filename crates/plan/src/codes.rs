//! Explanations of what is wrong with a plan, each with a wrong and a right plan.
//!
//! The examples are tests, for the tools `send_money(recipient, amount)` and `read_file(path)`.

pub use diagnostics::Explanation;

/// A text that is not Python.
pub const SYNTAX: &str = "P000";
/// Python that is not part of the plan language.
pub const SUBSET: &str = "P001";
/// A name that nothing defines.
pub const UNKNOWN_NAME: &str = "P002";
/// A call with wrong arguments.
pub const ARGUMENTS: &str = "P003";
/// A mutation of a value with two names.
pub const SHARED: &str = "P010";
/// A mutation of a collection under iteration.
pub const ITERATED: &str = "P011";
/// A delegation that the policy does not admit.
pub const DELEGATION: &str = "P012";
/// A plan that is too large or nested too deep.
pub const TOO_LARGE: &str = "P020";

/// Every code of plans, in order.
pub const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        code: SYNTAX,
        title: "plan that is not Python",
        text: "A plan is a program in Python. The message is that of the parser.",
        wrong: "x = = 1",
        right: "x = 1",
    },
    Explanation {
        code: SUBSET,
        title: "Python that is not part of the plan language",
        text: "Plans have no heap, no modules of their own and no reflection. The help line names what to write \
               instead.",
        wrong: "class A:\n    def f(self):\n        return 1",
        right: "def f():\n    return 1\nprint(f())",
    },
    Explanation {
        code: UNKNOWN_NAME,
        title: "name that nothing defines",
        text: "The name is no variable, tool or builtin function of plans. Tools come from the \
               declarations in `tools.agent` beside the plan.",
        wrong: "print(read_fil(\"a\"))",
        right: "print(read_file(\"a\"))",
    },
    Explanation {
        code: ARGUMENTS,
        title: "call with wrong arguments",
        text: "The call lacks an argument, or has one that the function or tool does not take.",
        wrong: "send_money(recipient=\"a\")",
        right: "send_money(recipient=\"a\", amount=3)",
    },
    Explanation {
        code: SHARED,
        title: "mutation of a value with two names",
        text: "A plan has no heap: a value that is mutated has one owner. If it may have a second name or be part \
               of something else, a mutation would be seen there, too. Copy it first: `list(xs)`, `dict(d)`.",
        wrong: "a = [1]\nb = a\nb.append(2)\nprint(a)",
        right: "a = [1]\nb = list(a)\nb.append(2)\nprint(a)",
    },
    Explanation {
        code: ITERATED,
        title: "mutation of a collection under iteration",
        text: "A loop must not change what it iterates over. Iterate over a copy.",
        wrong: "xs = [1, 2]\nfor x in xs:\n    xs.append(x)",
        right: "xs = [1, 2]\nfor x in list(xs):\n    xs.append(x)",
    },
    Explanation {
        code: DELEGATION,
        title: "delegation that the policy does not admit",
        text: "`delegate(text, to=…, tools=[…])` lets the data of somebody choose among calls. The policy says whose data \
               may, and among which tools, in a table `[[delegate]]`. Without one the plan makes its calls itself.",
        wrong: "text = read_file(path=\"a\")\ndelegate(text, to=\"bob@example.org\", tools=[send_money])",
        right: "send_money(recipient=\"DE12\", amount=5)",
    },
    Explanation {
        code: TOO_LARGE,
        title: "plan that is too large",
        text: "A plan has at most 2 MiB, 4,000 statements and 200 levels of nesting. Calls of functions are \
               expanded, and the result is bounded, too. Divide long plans.",
        wrong: concat!(
            "def a(x):\n",
            "    return [x, x, x, x, x, x, x, x, x, x]\n",
            "def b(x):\n",
            "    return [a(x), a(x), a(x), a(x), a(x), a(x), a(x), a(x), a(x), a(x)]\n",
            "def c(x):\n",
            "    return [b(x), b(x), b(x), b(x), b(x), b(x), b(x), b(x), b(x), b(x)]\n",
            "def d(x):\n",
            "    return [c(x), c(x), c(x), c(x), c(x), c(x), c(x), c(x), c(x), c(x)]\n",
            "def e(x):\n",
            "    return [d(x), d(x), d(x), d(x), d(x), d(x), d(x), d(x), d(x), d(x)]\n",
            "def f(x):\n",
            "    return [e(x), e(x), e(x), e(x), e(x), e(x), e(x), e(x), e(x), e(x)]\n",
            "def g(x):\n",
            "    return [f(x), f(x), f(x), f(x), f(x), f(x), f(x), f(x), f(x), f(x)]\n",
            "print(g(1))"
        ),
        right: "x = 1\nfor _ in range(7):\n    x = [x] * 10\nprint(x)",
    },
];
