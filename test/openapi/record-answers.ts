/**
 * Records a real server's answers to the examples in docs/answers.json and in the extensions' answers.json:
 * `npm run answers`.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { extensions } from "../../extensions/index.ts";
import type { Json } from "../../src/calls/example.ts";
import { type ServicePackage, servicePackages } from "../../src/services/registry.ts";
import { startApi } from "./api-server.ts";
import { callExamples, loadExamples } from "./call-examples.ts";
import { readAnswers } from "./read-answers.ts";

const root = join(import.meta.dirname, "../..");

async function record(folder: string, packages: readonly ServicePackage[], answers: Record<string, Json>) {
  const modules = await Promise.all(packages.map(({ load }) => load()));
  const names = modules.flatMap(({ examples }) => examples.map(({ name }) => name));
  if (names.length === 0) return;
  const own = Object.fromEntries(names.map((name) => [name, answers[name]]));
  writeFileSync(join(root, folder, "answers.json"), `${JSON.stringify(own, null, 2)}\n`);
}

const ends: (() => void | Promise<void>)[] = [];
try {
  const api = await startApi("open", (end) => void ends.push(end));
  const answers = readAnswers(await callExamples(api, await loadExamples()));
  await record("docs", servicePackages, answers);
  for (const { name, packages } of extensions)
    await record(`extensions/${name}`, (await packages?.()) ?? [], answers);
} finally {
  for (const end of ends.reverse()) await end();
}
