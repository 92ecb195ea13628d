import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { main } from "../../test/support/program.ts";
import { lacksBrowser, needsBrowser } from "./browser.ts";
import { setUpStage, tellStory } from "./telling.ts";

const user = { username: "ada", password: "correct horse battery" };

async function addUser(dataDir: string): Promise<void> {
  execFileSync(process.execPath, [main, "store", "init", "--data-dir", dataDir], { stdio: "ignore" });
  const child = spawn(process.execPath, [main, "user", "add", user.username, "--data-dir", dataDir], {
    stdio: ["pipe", "ignore", "inherit"],
  });
  child.stdin.end(`${user.password}\n`);
  expect((await once(child, "exit"))[0]).toBe(0);
}

const title = `stories of a server with users, in a real browser${needsBrowser}`;
describe.skipIf(lacksBrowser)(title, { timeout: 180_000 }, () => {
  const stage = setUpStage({ args: ["--auth", "token"], prepare: addUser });

  describe.each([
    // Uses its own token, so the user who registered it need not share theirs.
    ["devices", "The server accepts reading 1: 17 bytes, with a signature of 2,420 bytes."],
    ["tunnel", "The tunnel is REMOVED. A packet for it is refused: TUNNEL_NOT_FOUND."],
    ["governance", "The proposal is EXECUTED. A second attempt is refused: PROPOSAL_EXECUTED."],
  ])("the story %s", (path, outcome) => {
    const played = tellStory(stage, path, { logIn: user });

    it("ends as expected for a logged-in user", () => {
      expect(played().outcomes).toContain(outcome);
    });
  });
});

describe.skipIf(lacksBrowser)(`governance without a key service${needsBrowser}`, { timeout: 180_000 }, () => {
  const played = tellStory(setUpStage({ args: ["--services", "defi"] }), "governance");

  it("creates all keys in the browser, and ends the same way", () => {
    expect(played().outcomes[0]).toBe(
      "Your key is in your browser, Grace's in your browser, Alan's in your browser.",
    );
    expect(played().outcomes.at(-1)).toBe(
      "The proposal is EXECUTED. A second attempt is refused: PROPOSAL_EXECUTED.",
    );
  });
});
