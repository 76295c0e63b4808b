// The commands of the lenses above pipelines and tests: they run in a terminal of the editor, without a shell.
"use strict";

const path = require("node:path");

/** The arguments that run a pipeline of a file; `input` is `null` for one without parameters. */
function runArguments(file, pipeline, input) {
  return ["run", file, "--pipeline", pipeline, ...(input === null ? [] : ["--", input])];
}

/** The arguments that run the tests of a file whose names contain a text. */
function testArguments(file, name) {
  return ["test", file, `--filter=${name}`];
}

/** Registers the commands. `vscode` is the interface of the editor. */
function register(vscode, context) {
  const command = (name, run) => context.subscriptions.push(vscode.commands.registerCommand(name, run));

  function execute(file, title, args) {
    const settings = vscode.workspace.getConfiguration("entail");
    const cwd = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(file))?.uri.fsPath ?? path.dirname(file);
    const execution = new vscode.ProcessExecution(settings.get("path", "entail"), args, { cwd });
    const task = new vscode.Task({ type: "entail", title }, vscode.TaskScope.Workspace, title, "entail", execution);
    return vscode.tasks.executeTask(task);
  }

  command("entail.runPipeline", async (uri, pipeline, takesInput) => {
    const file = vscode.Uri.parse(uri).fsPath;
    let input = null;
    if (takesInput) {
      const prompt = `Input of ${pipeline}: a text, or JSON such as {"name": "value"}`;
      input = await vscode.window.showInputBox({ prompt });
      if (input === undefined) return;
    }
    await execute(file, `run ${pipeline}`, runArguments(file, pipeline, input));
  });
  command("entail.runTest", (uri, name) => {
    const file = vscode.Uri.parse(uri).fsPath;
    return execute(file, `test ${name}`, testArguments(file, name));
  });
}

module.exports = { register, runArguments, testArguments };
