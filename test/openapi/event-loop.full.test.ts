import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import type { TurnReport } from "./measure-turns.ts";

const atEnd = endAfterAll();

/** The pages and descriptions that a fresh server sends, each for the first time. */
const targets = [
  ["/openapi.json", "application/json"],
  ["/openapi.yaml", "application/yaml"],
  ["/reference", "text/html"],
  ["/", "text/html"],
] as const;

/** Maximum time that one turn may keep others waiting. */
const maxTurnMs = 50;

describe("the first request for the description and for each page", { timeout: 120_000 }, () => {
  it(`blocks the event loop for less than ${maxTurnMs} ms of CPU time at once`, async () => {
    const dataDir = makeTemporaryDirectory(atEnd);
    const child = fork(join(import.meta.dirname, "measure-turns.ts"), [dataDir], { execArgv: [] });
    atEnd(() => void child.kill("SIGKILL"));
    const [{ url }] = (await once(child, "message")) as [TurnReport];
    const answers = await Promise.all(
      targets.map(async ([path, accept]) => {
        const answer = await fetch(`${url}${path}`, { headers: { accept } });
        return [path, answer.status, (await answer.text()).length > 0];
      }),
    );
    expect(answers).toEqual(targets.map(([path]) => [path, 200, true]));
    const measured = once(child, "message");
    child.send("report");
    const [{ longestTurnMs }] = (await measured) as [TurnReport];
    expect(longestTurnMs).toBeGreaterThan(0);
    expect(longestTurnMs).toBeLessThan(maxTurnMs);
  });
});
