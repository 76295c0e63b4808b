# Installs the frameworks into target/faithful, each into an environment of its own. Sourced with `here` set to the root.
venvs="$here/target/faithful"
install() {
    [ -x "$venvs/$1/bin/python" ] && return
    python3 -m venv "$venvs/$1"
    name="$1"
    shift
    "$venvs/$name/bin/pip" --quiet install "$@"
}
install openai_agents "openai-agents==0.24.0"
install crewai "crewai==1.15.30"
install autogen "autogen-agentchat==0.7.5" "autogen-ext[openai]==0.7.5"
install autogen_classic "autogen-agentchat==0.2.40"
install langgraph "langgraph==1.2.22" "langgraph-prebuilt==1.1.2" "langchain==1.4.7" "langchain-classic==1.0.8" "langchain-core==1.7.2" "langchain-openai==1.7.3" "langgraph-supervisor==0.0.31"
install langchain "langchain-classic==1.0.8" "langchain-community==0.4.2" "langchain-core==1.7.2" "langchain-openai==1.7.3"
