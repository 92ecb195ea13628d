/** Writes src/openapi/answers.json: the answers of a real server to the examples. `npm run answers`. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startApi } from "./api-server.ts";
import { callExamples, loadExamples } from "./call-examples.ts";
import { readAnswers } from "./read-answers.ts";

const ends: (() => void | Promise<void>)[] = [];
try {
  const api = await startApi("open", (end) => void ends.push(end));
  const answers = readAnswers(await callExamples(api, await loadExamples()));
  const path = join(import.meta.dirname, "../../src/openapi/answers.json");
  writeFileSync(path, `${JSON.stringify(answers, null, 2)}\n`);
} finally {
  for (const end of ends.reverse()) await end();
}
