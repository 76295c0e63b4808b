//! Lists of MCP servers: `mcp.json`, `.mcp.json`, `claude_desktop_config.json`, `.vscode/mcp.json` and what
//! else holds `mcpServers`.
//!
//! Nothing in such a file runs by itself: the agents that use the tools of the servers are elsewhere. What
//! can be said of the servers is what starts them, where they are, and which of their tools are called
//! without asking anybody ([`servers`](frontend_kit::servers())).
//!
//! Source: code.visualstudio.com, "MCP configuration reference" (`servers`, `inputs`); gofastmcp.com, "MCP
//! JSON configuration" (`mcpServers`); docs of Gemini CLI (`httpUrl`), Windsurf (`serverUrl`), Cline
//! (`autoApprove`) and Roo Code (`alwaysAllow`).

use frontend_kit::kit::{Units, mark};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project};
use frontend_kit::servers::is_server_list;

/// The front end.
pub struct McpServers;

impl Frontend for McpServers {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn detect(&self, file: &File) -> u8 {
        // Whatever else a file is, it is that first.
        if mark::any(file, is_server_list) { 50 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let units = Units::new(self.name(), Facts::default(), project);
        let at = project.files.get(main).and_then(|f| f.documents.first()).map(|d| d.root().head());
        units.done(at, "the file lists servers; the agents that use their tools are elsewhere")
    }
}
