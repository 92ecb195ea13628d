/** What happens to output that cannot be written. */
import { describe, expect, it } from "vitest";
import { main } from "../support/program.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { launch, qspDone, type RunOptions, timeout, useServer } from "./qsp.ts";

const server = useServer();

/** Runs qsp in a shell, which redirects its output. */
function inShell(words: string, connected: string, place: RunOptions) {
  return launch("bash", ["-c", `'${process.execPath}' '${main}' ${words} ${connected}`], place).end;
}

// Every write to /dev/full fails like on a full disk.
describe.runIf(process.platform === "linux")("a standard output on a full disk", { timeout }, () => {
  // One of each way to print: help, an answer, a script, and a verb that works on a store.
  it.each(["help", "kms list", "completion bash", "store verify --data-dir data"])(
    "ends %s with 4 and one line",
    async (words) => {
      const place = server.place();
      if (words.includes("data")) await qspDone(["store", "init", "--data-dir", "data"], place);
      const { code, stderr } = await inShell(words, ">/dev/full", place);
      // Verification progress is on standard error as well.
      const lines = stderr
        .split("\n")
        .filter((line) => !line.endsWith("verified") && !line.endsWith("opened"));
      expect({ code, lines }).toEqual({
        code: 4,
        lines: ["qsp: standard output cannot be written: its disk is full", ""],
      });
    },
  );

  it("does not hide a more severe exit code", async () => {
    const run = await inShell("kms get key-none", ">/dev/full 2>/dev/null", server.place());
    expect(run.code).toBe(3);
  });

  it("for standard error changes nothing, because the error cannot be reported", async () => {
    expect((await inShell("kms get key-none", "2>/dev/full", server.place())).code).toBe(3);
  });
});

it("a reader that leaves early causes no error", { timeout }, async () => {
  const place = { cwd: makeTemporaryDirectory() };
  const { code, stderr } = await inShell("help all", `| head -n 1; exit "\${PIPESTATUS[0]}"`, place);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
});
