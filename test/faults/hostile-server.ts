/** A client verb that connects to an unexpected server. */
import { expect } from "vitest";
import { runQsp } from "../cli/qsp.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { type Behaviour, maxTakenBytes, startHostilePeer, waitUntilClosed } from "./hostile-peer.ts";

/** Runs a verb, which must report the problem in one line. */
export async function requireSentence(
  args: readonly string[],
  { scheme, behaviour, atEnd }: { scheme: string; behaviour: Behaviour; atEnd: (end: () => void) => void },
): Promise<void> {
  const peer = await startHostilePeer(behaviour, atEnd);
  const cwd = makeTemporaryDirectory(atEnd);
  const run = await runQsp([...args, "--timeout", "2"], { cwd, url: `${scheme}://127.0.0.1:${peer.port}` });
  expect({ ...run, code: run.code === 3 ? 4 : run.code }).toEqual({
    code: 4,
    stdout: "",
    stderr: expect.stringMatching(/^qsp: [^\n]+\n$/),
  });
  await waitUntilClosed(peer);
  expect(peer.sentBytes()).toBeLessThan(maxTakenBytes);
}
