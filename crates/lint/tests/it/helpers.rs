//! Requests of functions that a program imports from its own modules.

use analysis::cost;
use diagnostics::FileId;
use frontend_kit::doc::Limits;
use frontend_kit::{File, Project};
use std::sync::Arc;

/// The requests of a function count wherever it stands: in the module itself or in one that it imports.
#[test]
fn a_tool_of_another_module_that_asks_a_model_has_no_bound() {
    let tool = "from openai import OpenAI\ndef translate(text: str) -> str:\n    reply = OpenAI().chat.completions.create(model='m', messages=[])\n    return reply\n";
    let rest = "from autogen import AssistantAgent, ConversableAgent, register_function\n\
                a = AssistantAgent('a', llm_config={'model': 'm'})\nu = ConversableAgent('u', llm_config=False, human_input_mode='NEVER')\n\
                register_function(translate, caller=a, executor=u, description='Translates.')\nu.initiate_chat(a, message='x', max_turns=3)\n";
    let read =
        |id: u32, path: &str, text: &str| File::read(FileId(id), path, &Arc::from(text), &Limits::default());
    let calls = |files: Vec<File>| {
        let compiled = frontends::compile(&Project { files, ..Project::default() }, 0).unwrap();
        compiled.units.iter().map(|u| cost::bound(&u.code, true).model_calls.most).collect::<Vec<_>>()
    };
    assert_eq!(calls(vec![read(0, "main.py", &format!("{tool}{rest}"))]), [None]);
    let main = format!("from helper import translate\n{rest}");
    assert_eq!(calls(vec![read(0, "main.py", &main), read(1, "helper.py", tool)]), [None]);
}
