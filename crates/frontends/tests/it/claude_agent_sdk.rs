//! The Claude Agent SDK: which tools an agent has, and whose calls wait for a person.
//!
//! The meaning of the options is that of claude-agent-sdk 0.2.189, tried with a scripted model.

use core_ir::Approve;
use diagnostics::{FileId, Level};
use frontend_kit::doc::Limits;
use frontend_kit::{Compiled, File, Project, Recognized, Versions};
use frontends::recognize;

const HEAD: &str = "import requests
from claude_agent_sdk import (AgentDefinition, ClaudeAgentOptions, ClaudeSDKClient, HookMatcher,
    PermissionResultAllow, PermissionResultDeny, create_sdk_mcp_server, query, tool)

@tool('page', 'Gets a page.', {'url': str})
async def page(args):
    return {'content': [{'type': 'text', 'text': requests.get(args['url']).text}]}
web = create_sdk_mcp_server('pages', tools=[page])\n";

fn file(id: u32, path: &str, text: &str) -> File {
    File::read(FileId(id), path, &text.into(), &Limits::default())
}

fn compiled(files: Vec<File>) -> Compiled {
    let Recognized::Frontend(frontend) = recognize(&files[0]) else { panic!("not recognized") };
    assert_eq!(frontend.name(), "claude_agent_sdk");
    frontend.lower(&Project { files, versions: Versions::default(), modules: None }, 0)
}

fn of(text: &str) -> Compiled {
    compiled(vec![file(0, "main.py", &format!("{HEAD}{text}\n"))])
}

/// The tools of the first agent; those that a person allows each time have a question mark.
fn tools(compiled: &Compiled) -> String {
    let tool = |t: &core_ir::ToolDecl| match t.approve {
        Approve::Never => t.name.to_string(),
        _ => format!("{}?", t.name),
    };
    let all: Vec<String> = compiled.units[0].code.tools.iter().map(|t| tool(t)).collect();
    all.join(" ")
}

/// The tools that options give.
fn with(options: &str) -> String {
    tools(&of(&format!("options = ClaudeAgentOptions({options})")))
}

#[test]
fn rules_allow_and_do_not_restrict() {
    // Reading within the folder and starting agents needs no permission; nobody can give the others one.
    assert_eq!(with(""), "Read Glob Grep Task");
    assert_eq!(with("allowed_tools=['Bash']"), "Read Glob Grep Task Bash");
    assert_eq!(with("allowed_tools=['bash', '*']"), "Read Glob Grep Task");
    assert_eq!(with("tools=['Read', 'Bash', 'Agent']"), "Read Task");
    assert_eq!(with("tools=['Read', 'Bash'], allowed_tools=['Bash(npm:*)']"), "Read Bash");
    // A rule for commands that only read gives no more than `Read`, and a whole command leaves no choice.
    assert_eq!(with("tools=['Read', 'Bash'], allowed_tools=['Bash(git log:*)', 'Bash(make)']"), "Read");
    assert_eq!(with("disallowed_tools=['Agent', 'Grep', 'Read(./.env)']"), "Read Glob");
    assert_eq!(with("tools={'type': 'preset', 'preset': 'claude_code'}"), "Read Glob Grep Task");
}

#[test]
fn modes_allow_more() {
    assert_eq!(with("permission_mode='acceptEdits'"), "Read Glob Grep Task Write Edit NotebookEdit");
    assert_eq!(with("permission_mode='dontAsk', tools=['Read', 'Bash']"), "Read");
    let all = "Read Glob Grep Task Skill Bash Write Edit NotebookEdit WebFetch WebSearch";
    assert_eq!(with("permission_mode='bypassPermissions'"), all);
    assert_eq!(with("permission_mode='bypassPermissions', tools=['Bash'], disallowed_tools=['Bash']"), "");
    // What is not known may allow more, and is said.
    for options in ["permission_mode=input(), tools=['Read', 'Bash']", "tools=[input(), 'Read']"] {
        let compiled = of(&format!("o = ClaudeAgentOptions({options}, max_turns=3)"));
        assert_eq!(tools(&compiled), "Read");
        let unknown = compiled.diagnostics.iter().any(|d| d.level == Level::Unknown);
        assert!(unknown && core_ir::print_code(&compiled.units[0].code).contains("not counted"), "{options}");
    }
}

#[test]
fn code_that_decides_is_evaluated() {
    let ask = "async def ask(name, given, context):
    if input(f'{name}? ') == 'y':
        return PermissionResultAllow()
    return PermissionResultDeny(message='no')\n";
    let filter = "async def ask(name, given, context):
    if name == 'Bash':
        return PermissionResultDeny(message='no')
    return PermissionResultAllow()\n";
    let never = "async def ask(name, given, context):
    return {'behavior': 'deny', 'message': 'no'}\n";
    let two = |code: &str, more: &str| {
        tools(&of(&format!("{code}o = ClaudeAgentOptions(tools=['Bash', 'Write'], can_use_tool=ask{more})")))
    };
    assert_eq!(two(ask, ""), "Bash? Write?");
    assert_eq!(two(ask, ", allowed_tools=['Write']"), "Bash? Write");
    assert_eq!(two(ask, ", permission_mode='dontAsk', allowed_tools=['Write']"), "Write");
    assert_eq!(two(filter, ""), "Write");
    assert_eq!(two(never, ", allowed_tools=['Bash']"), "Bash");
    // Code that is not known may ask somebody.
    assert_eq!(two("from elsewhere import ask\n", ", allowed_tools=['Write']"), "Bash? Write");
    // A model that is refused everything still has turns.
    assert_eq!(two(never, ""), "Bash?");
}

#[test]
fn hooks_run_before_the_rules() {
    let hook = |body: &str, matcher: &str| {
        let text = format!(
            "async def hook(given, number, context):\n    {body}
o = ClaudeAgentOptions(tools=['Bash', 'Write'], allowed_tools=['Bash'],
    hooks={{'PreToolUse': [HookMatcher(matcher={matcher}, hooks=[hook])]}})"
        );
        tools(&of(&text))
    };
    let says = |word: &str| {
        format!(
            "return {{'hookSpecificOutput': {{'hookEventName': 'PreToolUse', 'permissionDecision': '{word}'}}}}"
        )
    };
    assert_eq!(hook(&says("deny"), "None"), "Bash?");
    assert_eq!(hook(&says("deny"), "'Write|Edit'"), "Bash");
    assert_eq!(hook(&says("allow"), "'Write'"), "Bash Write");
    assert_eq!(hook(&says("allow"), "'Edit'"), "Bash");
    assert_eq!(hook("return {}", "None"), "Bash");
    let some =
        format!("if 'rm' in given['tool_input']['command']:\n        {}\n    return {{}}", says("deny"));
    assert_eq!(hook(&some, "'Bash'"), "Bash");
}

#[test]
fn tools_of_servers_have_the_key_in_their_names() {
    let with = |options: &str| with(&format!("tools=[], mcp_servers={{'web': web}}, {options}"));
    assert_eq!(with("allowed_tools=['mcp__web__page']"), "mcp__web__page");
    assert_eq!(with("allowed_tools=['mcp__web']"), "mcp__web__page");
    assert_eq!(with("allowed_tools=['mcp__web__*']"), "mcp__web__page");
    // The name that the server gives itself counts for nothing.
    assert_eq!(with("allowed_tools=['mcp__pages__page']"), "mcp__pages__page");
    assert_eq!(with("permission_mode='bypassPermissions', disallowed_tools=['mcp__web']"), "");
    let other = "tools=[], mcp_servers={'git hub': {'command': 'npx', 'args': ['server-github']}}";
    let other = |rules: &str| tools(&of(&format!("o = ClaudeAgentOptions({other}, {rules})")));
    assert_eq!(other("allowed_tools=['mcp__git_hub__get_issue']"), "mcp__git_hub__get_issue");
    assert_eq!(other("permission_mode='bypassPermissions'"), "mcp__git_hub");
    assert_eq!(other("max_turns=2"), "mcp__git_hub?");
    // Servers that files of settings list: their tools have one place.
    let listed = of(
        "o = ClaudeAgentOptions(tools=[], allowed_tools=['mcp__files__read', 'mcp__files__write', 'mcp__web'])",
    );
    assert_eq!(tools(&listed), "mcp__files__read mcp__files__write mcp__web");
    let places: Vec<_> = listed.units[0].code.tools.iter().map(|t| t.span).collect();
    assert!(places[0] == places[1] && places[1] != places[2], "{places:?}");
}

#[test]
fn a_path_names_the_servers_of_a_file() {
    let text = "from claude_agent_sdk import ClaudeAgentOptions
o = ClaudeAgentOptions(tools=[], mcp_servers='./servers.json', allowed_tools=['mcp__files__*'])\n";
    let list = r#"{"mcpServers": {"files": {"command": "npx", "args": ["x"]}, "web": {"url": "https://x.example"}}}"#;
    let read = compiled(vec![file(0, "main.py", text), file(1, "app/servers.json", list)]);
    assert_eq!(tools(&read), "mcp__files");
    let missing = compiled(vec![file(0, "main.py", text)]);
    assert_eq!(tools(&missing), "mcp__files");
    assert!(
        missing.diagnostics.iter().any(|d| d.level == Level::Unknown && d.message.contains("servers.json"))
    );
}

#[test]
fn runs_belong_to_their_options() {
    let term = |text: &str| {
        let compiled = of(text);
        assert_eq!(compiled.units.len(), 1, "{text}\n{:?}", compiled.diagnostics);
        core_ir::print_code(&compiled.units[0].code)
    };
    let options = "o = ClaudeAgentOptions(tools=[], system_prompt='Do it.')\n";
    let once = term(&format!(
        "{options}async def main():\n    async for m in query(prompt='a', options=o):\n        pass"
    ));
    assert!(once.contains("llm \"Do it.\"") && !once.contains("fix["), "{once}");
    let twice = term(&format!(
        "{options}async def main():\n    async for m in query(prompt='a', options=o):\n        pass\n    async for m in query(prompt='b', options=o):\n        pass"
    ));
    assert!(twice.contains("fix[2 "), "{twice}");
    // A client that is asked again continues its conversation.
    let talk = term(&format!(
        "{options}async def main():\n    async with ClaudeSDKClient(options=o) as c:\n        await c.query('a')\n        await c.query('b')"
    ));
    assert!(talk.contains("fix[inf ") && talk.contains("run again"), "{talk}");
    let chat = term(&format!(
        "{options}async def main():\n    async with ClaudeSDKClient(o) as c:\n        while True:\n            await c.query(input())"
    ));
    assert!(chat.contains("fix[inf "), "{chat}");
}

#[test]
fn turns_count_no_agents_that_a_tool_starts() {
    let bound = |options: &str| {
        let compiled = of(&format!("o = ClaudeAgentOptions({options})"));
        core_ir::print_code(&compiled.units[0].code)
    };
    assert!(bound("tools=['Read']").contains("the Claude Agent SDK sets no limit of turns"));
    let counted = bound("tools=['Read'], max_turns=3");
    assert!(
        counted.contains("fix[3]") && counted.contains("fix[2 \"repeated: before each turn"),
        "{counted}"
    );
    assert!(bound("max_turns=3").contains("not counted: `Task` starts agents"));
    assert!(
        bound("tools=['WebFetch'], allowed_tools=['WebFetch'], max_turns=3")
            .contains("not counted: `WebFetch`")
    );
    assert!(bound("**given").contains("arguments that are not known"));
}

#[test]
fn hostile_options_end() {
    let many: String = (0..3_000).map(|i| format!("'mcp__s{i}__t',")).collect();
    let long = format!("'{}'", "(*".repeat(20_000));
    for options in [
        format!("allowed_tools=[{many}]"),
        format!("allowed_tools=[{long}, 'mcp__', 'mcp____', '', '(', ')', '*']"),
        "mcp_servers={1: 2, None: web, '': {}}, agents={1: 2, 'a': 3}, hooks={'PreToolUse': 3}".into(),
        "tools=3, allowed_tools=4, disallowed_tools='x', permission_mode=5, can_use_tool=6".into(),
        "agents={'a': AgentDefinition(description='', prompt='', tools=['a', 'Task'])}".into(),
    ] {
        of(&format!("o = ClaudeAgentOptions({options})"));
    }
    // A callback that calls itself.
    of("async def f(a, b, c):\n    return await f(a, b, c)\no = ClaudeAgentOptions(can_use_tool=f)");
}
