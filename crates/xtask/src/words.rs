//! Phrases that messages, help texts and pages don't use, each with the usual term.

/// Phrase in lower case with the term to use in its place. A phrase matches whole words.
pub const BANNED: &[(&str, &str)] = &[
    ("talk", "group chat, conversation"),
    ("talks", "group chats, conversations"),
    ("circle", "cycle"),
    ("circles", "cycles"),
    ("goes round", "runs the cycle again, never reaches END"),
    ("go round", "run the cycle again"),
    ("what is asked", "the input, the question"),
    ("stands for", "represents, replaces"),
    ("stand for", "represent, replace"),
    ("comes to", "reaches, results in"),
    ("come to", "reach, result in"),
    ("as many as", "the number of, up to"),
    ("hand over", "hand off"),
    ("hands over", "hands off"),
    ("handed over", "handed off"),
    ("handover", "handoff"),
    ("handovers", "handoffs"),
    ("in the open", "unsandboxed"),
    ("there is nothing that", "nothing"),
    ("so that which", "so that"),
    ("how-manieth", "number"),
    ("lawful", "allowed"),
    ("go on with", "continue, resume"),
    ("goes on with", "continues, resumes"),
    ("gone on with", "continued, resumed"),
    ("are none of", "are not among"),
    ("so many", "the number of, up to"),
    ("stands alone", "is the only one"),
    ("as it likes", "without a limit"),
];

/// Further phrases that the pages of the book don't use: a page says what is, in usual words.
pub const BANNED_IN_PAGES: &[(&str, &str)] = &[
    ("no longer", "what is, without its history"),
    ("any more", "what is, without its history"),
    ("used to be", "what is, without its history"),
    ("anew", "again"),
    ("gone on with", "resumed, continued"),
    ("goes on with", "resumes, continues"),
    ("go on with", "resume, continue"),
    ("hands on", "passes on"),
    ("hand on", "pass on"),
    ("so it is with", "the same holds for"),
    ("of one's own", "of your own"),
    ("all the same", "nevertheless"),
];

/// Returns the banned phrases of a text, each with the term to use. Case and the kind of white space don't
/// matter.
pub fn banned(text: &str) -> Vec<(&'static str, &'static str)> {
    found_in(text, BANNED)
}

/// Returns the phrases of a text that pages of the book don't use, each with the term to use.
pub fn banned_in_pages(text: &str) -> Vec<(&'static str, &'static str)> {
    [found_in(text, BANNED), found_in(text, BANNED_IN_PAGES)].concat()
}

fn found_in(text: &str, phrases: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    let words: Vec<String> = text
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '\'' | '_')))
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect();
    let is_in = |phrase: &str| {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        words.windows(phrase.len()).any(|found| found.iter().zip(&phrase).all(|(a, b)| a == b))
    };
    phrases.iter().copied().filter(|(phrase, _)| is_in(phrase)).collect()
}

/// Parts of words in British spelling, each with the American one.
pub const BRITISH: &[(&str, &str)] = &[
    ("modelled", "modeled"),
    ("modelling", "modeling"),
    ("cancelled", "canceled"),
    ("cancelling", "canceling"),
    ("cancellable", "cancelable"),
    ("labelled", "labeled"),
    ("labelling", "labeling"),
    ("signalled", "signaled"),
    ("signalling", "signaling"),
    ("traveller", "traveler"),
    ("travelled", "traveled"),
    ("harbour", "harbor"),
    ("behaviour", "behavior"),
    ("neighbour", "neighbor"),
    ("colour", "color"),
    ("favour", "favor"),
    ("honour", "honor"),
    ("judgement", "judgment"),
    ("artefact", "artifact"),
    ("catalogue", "catalog"),
    ("licence", "license"),
    ("misspelt", "misspelled"),
    ("learnt", "learned"),
    ("towards", "toward"),
];

/// Whole words in British spelling, each with the American one. As parts of words they mean something else.
pub const BRITISH_WORDS: &[(&str, &str)] = &[
    ("analyse", "analyze"),
    ("analysed", "analyzed"),
    ("analysing", "analyzing"),
    ("analyser", "analyzer"),
    ("centre", "center"),
    ("defence", "defense"),
    ("offence", "offense"),
    ("fulfil", "fulfill"),
    ("grey", "gray"),
    ("labour", "labor"),
    ("maths", "math"),
    ("practise", "practice"),
    ("programme", "program"),
    ("whilst", "while"),
    ("amongst", "among"),
];

/// Beginnings of verbs in British spelling before `-e`, `-ing`, `-ation`; with `z` in American.
pub const BRITISH_VERBS: &[&str] = &[
    "recognis",
    "serialis",
    "normalis",
    "summaris",
    "minimis",
    "maximis",
    "initialis",
    "generalis",
    "specialis",
    "synchronis",
    "tokenis",
    "vectoris",
    "authoris",
    "categoris",
    "organis",
    "prioritis",
    "customis",
    "criticis",
    "visualis",
    "materialis",
    "optimis",
    "mechanis",
    "synthesis",
    "polaris",
    "parenthesis",
    "realis",
    "utilis",
    "emphasis",
    "finalis",
    "formalis",
    "standardis",
    "capitalis",
    "characteris",
    "randomis",
    "sanitis",
    "stabilis",
    "canonicalis",
];

/// Published names in British spelling: keys of a foreign format, methods and exceptions of dependencies, and
/// the code `cancelled` of an error, which journals and clients know; the former name of an option.
const PUBLISHED: &[&str] = &[
    "behavioural_contract",
    "behavioural_flags",
    "is_cancelled",
    "on_cancelled",
    "cancelled(",
    "cancelled_owned",
    "cancellederror",
    "cancellednotification",
    "notifications/cancelled",
    "serviceerror::cancelled",
    "errorcode::cancelled",
    "runerror::cancelled",
    "`cancelled`",
    "\"cancelled\"",
    "[cancelled]",
    "alias = \"optimise\"",
    "--optimise",
];

/// Returns the words of a text in British spelling, each with the American one. Parts of identifiers count.
pub fn british(text: &str) -> Vec<(String, String)> {
    let lower = PUBLISHED.iter().fold(text.to_lowercase(), |text, name| text.replace(name, ""));
    let words = lower.split(|c: char| !c.is_alphabetic()).filter(|w| !w.is_empty());
    let american = |word: &str| {
        if let Some((british, usual)) = BRITISH.iter().find(|(british, _)| word.contains(british)) {
            return Some(word.replace(british, usual));
        }
        if let Some((_, usual)) = BRITISH_WORDS.iter().find(|(british, _)| word == *british) {
            return Some((*usual).to_string());
        }
        let is_verb = |rest: &str| ["e", "ing", "ation"].iter().any(|end| rest.starts_with(end));
        let verb =
            BRITISH_VERBS.iter().find(|v| word.split_once(**v).is_some_and(|(_, rest)| is_verb(rest)))?;
        let stem = &verb[..verb.len() - 1];
        Some(word.replace(verb, &format!("{stem}z")))
    };
    words.filter_map(|word| Some((word.to_string(), american(word)?))).collect()
}

/// Beginnings of doc comments that say neither what an item is nor what it does.
pub const VAGUE_BEGINNINGS: &[&str] = &["What ", "Whether ", "Something that "];

/// Names of frameworks, which no rule of lint may mention: a rule reads terms and facts.
pub const FRAMEWORKS: &[&str] = &[
    "adk",
    "agno",
    "aiwaves",
    "autogen",
    "cagent",
    "chatdev",
    "crewai",
    "dify",
    "flowise",
    "goose",
    "kagent",
    "langchain",
    "langflow",
    "langgraph",
    "letta",
    "lobechat",
    "metagpt",
    "n8n",
    "nemo",
    "openai",
    "praisonai",
    "promptflow",
    "ragflow",
    "semantic_kernel",
    "solace",
    "swe_agent",
    "watsonx",
];

/// Returns the names of frameworks in a line of code: whole words, or parts of an identifier.
pub fn frameworks(code: &str) -> Vec<&'static str> {
    let lower = code.to_lowercase();
    let ends = |at: usize, name: &str| {
        let before = lower[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        let after = lower[at + name.len()..].chars().next().is_some_and(char::is_alphanumeric);
        !before && !after
    };
    let names = FRAMEWORKS.iter().copied();
    names.filter(|name| lower.match_indices(name).any(|(at, _)| ends(at, name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_match_whole_words_only() {
        assert_eq!(banned("Nothing ends this talk.")[0].0, "talk");
        assert_eq!(banned("it goes\nround until")[0].0, "goes round");
        assert!(banned("stalks, `talked`, encircled, income tops").is_empty());
    }

    #[test]
    fn british_spelling_is_found_in_words_and_identifiers() {
        let found = |text: &str| british(text).into_iter().map(|(_, usual)| usual).collect::<Vec<_>>();
        assert_eq!(found("an Initialised neighbour_value"), ["initialized", "neighbor"]);
        assert_eq!(found("fn serialisation() {}"), ["serialization"]);
        assert_eq!(found("an unlabelled run was cancelled"), ["unlabeled", "canceled"]);
        assert_eq!(found("fn analyse_all() {}"), ["analyze"]);
        assert!(found("optimistic criticism of two analyses by a specialist, a synthesis").is_empty());
        assert!(found("error[cancelled]: `cancelled`, token.is_cancelled()").is_empty());
    }

    #[test]
    fn names_of_frameworks_are_words() {
        assert_eq!(frameworks("if unit.framework == \"crewai\""), ["crewai"]);
        assert_eq!(frameworks("Framework::LangGraph"), ["langgraph"]);
        assert!(frameworks("let openaire = task_adkins;").is_empty());
    }
}
