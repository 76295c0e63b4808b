//! Templates for a world with a policy: parts with labels, places, sets, forms, confirmations, delegation.

use super::Plans;

/// Numbers, mostly, that a part of an answer or a model gives.
const SOURCES: &[&str] = &[
    "read()",
    "vault()",
    "known()",
    "mails()[«0¦0¦1¦-1»]['«body¦body¦subject¦pin»']",
    "mails()[«0¦1»].«body¦pin¦subject»",
    "len(mails())",
    "len([m for m in mails() if m['«body¦pin¦from¦subject»']])",
    "sum(len(str(m['«body¦pin¦from»'])) for m in mails())",
    "len(drafts()[0]['«to¦text»'])",
    "file('«/home/a¦/home/keys/k¦/in/a¦/tmp/x¦/home/../in/a»')",
    "file(f'/in/{@n}')",
    "file(str(read()))",
    "len(book()[«0¦1»]['email'])",
    "pages()[«'home'¦'news'¦str(read())»]['«title¦title¦pin»']",
    "len(pages())",
    "code(otp=str(read()))",
    "visit('https://shop.example/a')",
    "ask(f'a number: {@n}', int)",
    "(1 if ask(f'yes or no: {@n}', bool) else 2)",
    "len(ask(f'a word: {@n}', Literal['a', 'bb']) or '')",
    "(ask(f'parts: {@n}', Answer) or Answer(0)).n",
];

const RECIPIENTS: &str = "«'bob@post.example'¦'ann@post.example'¦book()[«0¦1»]['email']¦mails()[0]['from']\
                          ¦str(mails()[0]['subject'])¦str(read())¦f'{ask(str(read()), str)}'\
                          ¦confirm(str(mails()[0]['body']), 'who')»";

/// A file or a link.
const PLACES: &str = "«'/downloads/a'¦'/tmp/x'¦str(read())¦str(mails()[0]['body'])¦str(mails()[0]['subject'])\
                      ¦'https://shop.example/cart'¦'https://docs.example/x'¦f'/downloads/{str(read())}'\
                      ¦f'https://shop.example/{ask(str(read()), str)}'¦str(pages()['home']['title'])\
                      ¦confirm(str(mails()[0]['body']), 'where')»";

/// Statements with a sink. `@R` is a recipient, `@P` a place.
const SINKS: &[&str] = &[
    "pay(@R, «1¦2¦@n»)",
    "pay(@R, 1, str(@N))",
    "pay('bob@post.example', 1, «'at evil.example'¦str(read())¦f'hi {mails()[0][\"body\"]}'¦str(vault())»)",
    "pair(to=@R, iban=book()[«0¦1»]['iban'])",
    "@1 = book()[«0¦1»]\npair(to=@1['email'], iban=@1['iban'])",
    "save(@P, 'x')",
    "save(@P, str(@N))",
    "save(f'/downloads/{«@n¦read()¦mails()[0].body¦vault()¦str(read()).strip()»}', 'x')",
    "visit(@P)",
    "visit(f'https://«shop¦docs¦shop.example.x».example/{«@n¦read()¦mails()[0].body¦vault()»}')",
    "share(who=@R, folder=«'home'¦list(pages())[0]¦str(read())¦@P»)",
    "share(who='bob@post.example', folder=«list(pages())[«0¦-1»]¦sorted(pages())[0]¦str(read())»)",
    "share(who=book()[1]['email'], folder=«'home'¦'news'¦str(mails()[0]['body'])»)",
    "code(otp=«'12'¦str(@N)¦str(read())¦str(vault())»)",
    "@1 = code(otp=str(«read()¦mails()[0].body»))\n«post¦note¦keep»(@1)",
    "for @1 in mails():\n    if @1['«body¦subject¦from»']:\n        «save(str(@1['body']), 'x')¦visit(@P)¦save('/downloads/a', str(@1['body']))¦code(otp='1')»",
    "try:\n    «save¦visit»(@P)\n    @1 = 1\nexcept PolicyError:\n    @1 = 2\n«post¦note¦keep»(@1)",
    "@1 = @P\nif @N:\n    «save(@1, 'x')¦visit(@1)»",
    "for @1 in pages():\n    «note(pages()[@1]['title'])¦post(@1)¦share(who='bob@post.example', folder=@1)¦few(1)»",
    "few(@N)",
    "few(«1¦@R»)",
    "sign(@N)",
    "post(@N)",
    "keep(@N)",
    "note(@N)",
    "for @1 in mails():\n    if @1['«body¦subject¦pin¦from»'] == @N:\n        «pay('bob@post.example', 1)¦few(@1['from'])¦note(@1['pin'])\
     ¦post(1)¦keep(@1['body'])¦break¦continue»\n    @2 = 1",
    "for @1 in mails():\n    few(@1['from'])",
    "for @1 in drafts():\n    «note(@1['text'])¦post(@1['to'])¦keep(@1['text'])»",
    "try:\n    pay(@R, 1)\n    @1 = 1\nexcept «PolicyError¦ToolError¦Exception» as e:\n    @1 = «2¦str(e)»\n«post¦note¦keep»(@1)",
    "try:\n    «few(@N)¦post(@N)¦sign(@N)¦keep(@N)¦file(@R)»\nexcept PolicyError:\n    «post(1)¦note(1)¦pass»",
    "@1 = confirm(@N, 'why')\n«post¦note¦keep¦few»(@1)",
    "try:\n    @1 = confirm({'a': @N, 'b': [@N]}, 'both')['«a¦b»']\nexcept PolicyError:\n    @1 = 0\n«post¦note¦keep»(@1)",
    "@1 = 'bob@post.example'\nif @N:\n    «pay(@1, 2)¦@1 = 'ann@post.example'¦@1 = confirm(str(@N), 'who')»\npay(@1, 1)",
    "@1 = delegate(str(@N), to='untrusted', tools=[«few¦pay¦few, pay¦pay, pair»])\n«note(len(@1))¦post(len(@1))¦keep(1)¦note(@1)»",
    "try:\n    @1 = delegate(f'{@n} {@n}', to='untrusted', tools=[few, pay])\nexcept PolicyError:\n    @1 = [0]\n«note¦post»(len(@1))",
    "@1 = {'to': «'ann@post.example'¦@R», 'n': «1¦@n»}\nif @T:\n    pay(@1['to'], @1['n'])",
    "@1 = Answer(n=@N, to=@R)\nif read():\n    pay(@1.to, 1)\n«post¦note»(@1.n)",
    "for @1, @2 in [('bob@post.example', 1), (@R, 2)]:\n    if @N:\n        pay(@1, @2)",
    "@1 = [m['from'] for m in mails()]\nfor @2 in @1:\n    pay(@2, 1)",
    "post(sorted(mails(), key=lambda m: m['«body¦pin¦from»'])[0]['from'])",
    "post(«max¦min»([m['«body¦from¦pin»'] for m in mails()], default=0))",
];

impl Plans {
    /// A class that models answer, and types.
    pub(super) fn policed_prelude(&mut self) {
        for line in [
            "from typing import Literal",
            "from dataclasses import dataclass",
            "@dataclass",
            "class Answer:",
            "    n: int",
            "    to: str = 'ann@post.example'",
        ] {
            self.line(0, line);
        }
    }

    pub(super) fn policed_source(&mut self) -> String {
        let template = SOURCES[self.rng.below(SOURCES.len())];
        self.filled(template, &mut vec![None; 10])
    }

    pub(super) fn policed_sink(&mut self, depth: usize) {
        let depth = if self.rng.chance(25) {
            let test = self.test(1);
            self.line(depth, &format!("if {test}:"));
            depth + 1
        } else {
            depth
        };
        let template = SINKS[self.rng.below(SINKS.len())];
        if self.in_function && template.contains("delegate(") || self.loops > 1 && template.contains("for ") {
            return self.line(depth, "pass");
        }
        let template = template.replace("@R", RECIPIENTS).replace("@P", PLACES);
        let text = self.filled(&template, &mut vec![None; 10]);
        for line in text.lines() {
            self.line(depth, line);
        }
    }
}
