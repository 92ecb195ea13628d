import { describe, expect, it } from "vitest";
import { checksOf, lacksBrowser, needsBrowser, runStory, stepOf, textOf } from "./browser.ts";
import { meddle, openStory, runSteps, setUpStage } from "./telling.ts";

const growing = "Add entries";
const reading = "Read the signed root";
const proving = "Prove that an entry is in the log";
const breaking = "Flip one bit";

const title = `the story of a verifiable log, in a real browser${needsBrowser}`;
describe.skipIf(lacksBrowser)(title, { timeout: 180_000 }, () => {
  const stage = setUpStage();
  const page = openStory(stage, "log");

  it("verifies the signed root, follows a proof to it, and finds a flipped bit", async () => {
    const outcomes = await runStory(page());
    expect(outcomes.slice(1)).toEqual([
      expect.stringMatching(/^The log has \d+ entries, and its root is signed with ML-DSA-65\.$/),
      expect.stringMatching(/^With \d hashes, your browser gets from leaf 1 to the signed root\.$/),
      "The computed root is not the signed one. Every hash above the bit is another one.",
    ]);
    expect(await checksOf(page(), proving)).toEqual(["browser: equal"]);
    expect(await checksOf(page(), breaking)).toEqual(["browser: different"]);
    expect(await page().locator(".node[data-state=wrong]").count()).toBeGreaterThan(2);
  });

  it("proves the leaf that the reader presses", async () => {
    await runSteps(page(), growing, reading);
    await page().getByRole("button", { name: "Leaf 0" }).click();
    expect(await textOf(stepOf(page(), proving).locator(".outcome:not(:empty)"))).toContain("from leaf 0");
    expect(await page().getByRole("button", { name: "Leaf 0" }).getAttribute("aria-pressed")).toBe("true");
  });

  it("believes no proof of a server that lies", async () => {
    await meddle(page(), "GetInclusionProof", {
      answer: (it) => ({ ...it, leaf: Buffer.alloc(32, 7).toString("base64") }),
    });
    expect(await runSteps(page(), growing, reading, proving)).toBe(
      "The proof does not lead to the signed root, which should not happen.",
    );
  });

  it("believes no root that the log did not sign", async () => {
    await meddle(page(), "GetCheckpoint", {
      answer: (it) => {
        const note = Buffer.from(
          String(it.data ?? (it.checkpoint as { data?: string }).data),
          "base64",
        ).toString();
        const [origin, size, , ...rest] = note.split("\n");
        const forged = [origin, size, Buffer.alloc(32, 7).toString("base64"), ...rest].join("\n");
        const checkpoint = { contentType: "text/plain", data: Buffer.from(forged).toString("base64") };
        return { ...it, checkpoint };
      },
    });
    expect(await runSteps(page(), reading)).toBe(
      "The signature of the checkpoint is not valid, which should not happen.",
    );
    expect(await checksOf(page(), reading)).toEqual(["browser: not valid"]);
  });
});
