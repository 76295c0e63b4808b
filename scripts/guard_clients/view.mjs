// What a client made with the official TypeScript SDK sees of a server, as JSON.
//
//   node view.mjs SCENARIO.json COMMAND ARGUMENT…
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

const [scenarioFile, command, ...args] = process.argv.slice(2);
const scenario = JSON.parse(readFileSync(scenarioFile, "utf8"));
const asked = [];
const told = [];
const client = new Client(
    { name: "conformance", version: "1" },
    { capabilities: { sampling: {}, elicitation: { form: {} }, roots: { listChanged: true } } },
);
client.setRequestHandler(types.CreateMessageRequestSchema, (request) => {
    asked.push(["sampling", request.params]);
    return { model: "none", role: "assistant", content: { type: "text", text: "an answer" }, stopReason: "endTurn" };
});
client.setRequestHandler(types.ElicitRequestSchema, (request) => {
    asked.push(["elicitation", request.params]);
    return { action: "accept", content: { name: "Ann", firstLine: "A line", interpretation: "x" } };
});
client.setRequestHandler(types.ListRootsRequestSchema, () => {
    asked.push(["roots", {}]);
    return { roots: [{ uri: "file:///tmp", name: "tmp" }] };
});
client.fallbackNotificationHandler = async (notification) => {
    told.push([notification.method, notification.params ?? null]);
};

const view = {};
// The answer of a request, or its error as a client sees it.
async function see(what, ask) {
    try {
        view[what] = await ask();
    } catch (error) {
        view[what] = { error: { code: error.code ?? null, message: String(error.message) } };
    }
}
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

const transport = new StdioClientTransport({ command, args, stderr: "ignore", cwd: scenario.cwd, env: process.env });
await client.connect(transport, { timeout: 60000 });
const has = client.getServerCapabilities();
view.start = { capabilities: has, server: client.getServerVersion(), instructions: client.getInstructions() ?? null };
await see("ping", () => client.ping());
await see("tools", () => client.listTools());
if (has.resources) {
    await see("resources", () => client.listResources());
    await see("templates", () => client.listResourceTemplates());
}
if (has.prompts) await see("prompts", () => client.listPrompts());
for (const [name, given] of scenario.calls) {
    const progress = [];
    await see(`call ${name} ${JSON.stringify(given)}`, async () => {
        const result = await client.callTool({ name, arguments: given }, undefined, {
            onprogress: (p) => progress.push([p.progress, p.total ?? null, p.message ?? null]),
        });
        // The SDK drops what comes in one piece with the answer, so the last one may be missing.
        return { result, progress: progress.slice(0, scenario.progress ?? 0) };
    });
}
for (const uri of scenario.resources ?? []) {
    await see(`read ${uri}`, () => client.readResource({ uri }));
    if (has.resources?.subscribe) {
        await see(`subscribe ${uri}`, () => client.subscribeResource({ uri }));
        await see(`unsubscribe ${uri}`, () => client.unsubscribeResource({ uri }));
    }
}
for (const [name, given] of scenario.prompts ?? [])
    await see(`prompt ${name} ${JSON.stringify(given)}`, () => client.getPrompt({ name, arguments: given }));
for (const params of scenario.completions ?? [])
    await see(`complete ${JSON.stringify(params)}`, () => client.complete(params));
if (has.logging) await see("level", () => client.setLoggingLevel("debug"));
if (scenario.slow) {
    const [name, given] = scenario.slow;
    const stop = new AbortController();
    setTimeout(() => stop.abort("enough"), 700);
    await see(`cancel ${name}`, () => client.callTool({ name, arguments: given }, undefined, { signal: stop.signal }));
    await see("after the cancellation", () => client.ping());
}
await see("unknown method", () => client.request({ method: "no/such", params: {} }, types.EmptyResultSchema));
await client.sendRootsListChanged();
await pause(1000);
view.asked = asked;
view.told = told.map((t) => JSON.stringify(t)).sort();
await client.close();
console.log(JSON.stringify(view));
process.exit(0);
