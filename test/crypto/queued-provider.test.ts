import { expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { queueProvider } from "../../src/crypto/queued-provider.ts";
import { WorkQueue } from "../../src/crypto/work-queue.ts";

const algorithm = "SLH-DSA-SHA2-128s";

async function createProvider(maxWaitMs: number) {
  const queue = new WorkQueue({ threads: 2, maxWaitMs });
  const provider = queueProvider(await createCryptoProvider("openssl"), queue);
  onTestFinished(() => provider.close());
  return { provider, queue };
}

it("signs what a message was when it was asked, though the caller overwrites it while it waits", async () => {
  const { provider } = await createProvider(60_000);
  const { publicKey, secretKey } = await provider.generateKeyPair(algorithm);
  const first = provider.sign(secretKey, new Uint8Array(8));
  const message = new Uint8Array(8).fill(1);
  const context = new Uint8Array(8).fill(2);
  const second = provider.sign(secretKey, message, { context });
  message.fill(3);
  context.fill(3);
  await first;
  const asked = { message: new Uint8Array(8).fill(1), context: new Uint8Array(8).fill(2) };
  expect(await provider.verify(publicKey, asked.message, await second, { context: asked.context })).toBe(
    true,
  );
});

it("opens a key in the lane of slow work, and never refuses to", async () => {
  const { provider, queue } = await createProvider(0);
  const { secretKey } = await provider.generateKeyPair(algorithm);
  const raw = secretKey.exportRaw();
  const open = () => provider.importSecretKey(algorithm, { raw });
  const opening = [open(), open(), open()];
  expect(queue.expectedSlowWaitMs).toBeGreaterThan(0);
  const opened = await Promise.all(opening);
  expect(opened.map((key) => key.exportRaw())).toEqual([raw, raw, raw]);
  expect(queue.depth).toBe(0);
});
