// Calls that took too long, on the page of `entail ui`: a server that does not answer, and a tool that sleeps.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { began, begin, end, folder, listed, open, pictures, ui } from "./ui-support.mjs";

const PROGRAM = `agent reader { tools: [], model: "slow", prompt: "You extract." }
agent hasty { tools: [], model: "hasty", prompt: "You extract." }
tool nap(seconds: Number) -> String reads {}
task extract(text: String) -> String by agent { prompt "{text}" }
pipeline main(text: String) -> List[String] {
    let first = run extract with { text: text } by reader retries 1 timeout 1;
    let second = run extract with { text: text } by hasty on_fail use "nothing";
    let third = run nap with { seconds: 30 } on_fail use "no rest";
    return [first, second, third];
}
`;

before(begin);
after(end);

/** A model that leaves its first caller waiting, and one that leaves all of them. */
async function stallingModel() {
  let asked = 0;
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    if (JSON.parse(body).model === "hasty" || ++asked === 1) return;
    const choices = [{ index: 0, delta: { content: "a hobbit" }, finish_reason: "stop" }];
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`data: ${JSON.stringify({ choices })}\n\ndata: [DONE]\n\n`);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

test("a call that took too long says so, in the list and in the timeline", async (t) => {
  const dir = folder();
  const server = await stallingModel();
  t.after(() => (server.closeAllConnections(), server.close()));
  writeFileSync(join(dir, "late.agent"), PROGRAM);
  const model = (name, more) => `[models.${name}]\nmodel = "${name}"\nbase_url = "http://127.0.0.1:${server.address().port}/v1"\n${more}`;
  const settings = `retry_timeouts = true\n${readFileSync(join(dir, "entail.toml"), "utf8")}`;
  const nap = `[handlers]\nnap = { exec = ["sleep", "30"], timeout = 1 }\n`;
  writeFileSync(join(dir, "entail.toml"), `${settings}\n${model("slow", "")}${model("hasty", "timeout = 1\n")}${nap}`);
  writeFileSync(join(dir, "policy.toml"), `[tools.nap]\neffect = "read"\n`);
  const run = await began(dir, ["run", "late.agent", "--journal", "j", "a book"]);
  const ended = new Promise((resolve) => run.once("exit", resolve));
  assert.equal(await ended, 0);
  const { link } = await ui(dir);
  const { page, faults } = await open(link);
  await listed(page);
  await page.getByRole("link", { name: "late.agent main" }).click();
  await page.getByRole("heading", { name: "Result" }).waitFor();
  const steps = page.locator("li.step");
  const says = async (n) => (await steps.nth(n - 1).textContent()) ?? "";
  assert.match(await says(1), /Ask model slow for extract.*too late: a time limit of the program had passed.*took 1\.\d s/);
  assert.match(await says(2), /Ask model slow for extract.*Reply: a hobbit/);
  assert.match(await says(3), /failed: .*no answer within 1 s.*took 1\.\d s/);
  assert.match(await says(4), /Call tool nap.*failed: .*it took longer than 1 s.*took 1\.\d s/);
  assert.deepEqual(await steps.evaluateAll((all) => all.map((step) => step.classList.contains("refused"))), [true, false, true, true]);
  await page.locator("summary", { hasText: "Timeline" }).click();
  const bars = page.locator("svg.timeline rect.bar");
  await bars.nth(3).waitFor({ state: "attached" });
  assert.deepEqual(await bars.evaluateAll((all) => all.map((bar) => [bar.classList.contains("bad"), bar.getBoundingClientRect().width > 50])), [[true, true], [false, false], [true, true], [true, true]]);
  // It is marked by more than a color.
  assert.deepEqual((await page.locator("svg.timeline .bar-name").allTextContents()).map((name) => name.startsWith("✖")), [true, false, true, true]);
  await pictures(page, "limits");
  assert.deepEqual(faults, []);
});
