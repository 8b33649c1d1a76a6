// Runs emulate's Slack until it is killed: `node slack_emulator.mjs FOLDER OPTIONS`; prints its address.
// emulate has no setting for the address that events are sent to, so it is added when the service is made.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, options] = process.argv.slice(2);
const { events, seed } = JSON.parse(options);
const load = (name) => import(pathToFileURL(join(folder, name)));
const exportsSlack = (name) => /^export \{[^}]*\bslackPlugin\b/m.test(readFileSync(join(folder, name), "utf8"));
const { slackPlugin } = await load(readdirSync(folder).find((name) => name.endsWith(".js") && exportsSlack(name)));
const register = slackPlugin.register;
slackPlugin.register = (app, store, webhooks, ...rest) => {
  webhooks.register({ url: events, events: ["*"], active: true, owner: "slack" });
  register(app, store, webhooks, ...rest);
};
const { createEmulator } = await load("api.js");
const emulator = await createEmulator({ service: "slack", port: 0, seed: { slack: seed } });
console.log(emulator.url);
