import { expect, it, onTestFinished, vi } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { queueProvider } from "../../src/crypto/queued-provider.ts";
import { WorkQueue } from "../../src/crypto/work-queue.ts";

/** Signatures and imports take the slow lane, and a few milliseconds; key generation takes the quick lane. */
const algorithm = "SLH-DSA-SHA2-128f";

async function createProvider(maxWaitMs: number) {
  const queue = new WorkQueue({ threads: 2, maxWaitMs, maxBacklogMs: 60_000 });
  const provider = queueProvider(await createCryptoProvider("openssl"), queue, { callerOf: () => "ada" });
  onTestFinished(() => provider.close());
  return { provider, queue };
}

it("signs the message as it was when called, even if the caller overwrites it while it waits", async () => {
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

it("imports a key in the slow lane, and lets it wait as long as a batch", async () => {
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

it("charges the current caller, except for the system variant, which is never rejected", async () => {
  const queue = new WorkQueue({ threads: 1, maxWaitMs: 1, maxBacklogMs: 1 });
  let caller = "mallory";
  const provider = queueProvider(await createCryptoProvider("openssl"), queue, { callerOf: () => caller });
  onTestFinished(() => provider.close());
  const made = ["mallory", "mallory", "ada"].map((name) => {
    caller = name;
    return provider.unbounded.generateKeyPair("SLH-DSA-SHA2-128s").then(
      () => `${name} made one`,
      (error: Error) => `${name}: ${error.name}`,
    );
  });
  const checked = [provider.system, provider.system].map((system) =>
    system.generateKeyPair("SLH-DSA-SHA2-128s"),
  );
  expect(queue.slow.callers + queue.quick.callers).toBe(3);
  expect(await Promise.all(made)).toEqual(["mallory made one", "mallory: CryptoBusy", "ada made one"]);
  expect(await Promise.all(checked)).toHaveLength(2);
});

it("charges shared work to one caller of its own, and does not end it with the call that began it", async () => {
  const queue = new WorkQueue({ threads: 1, maxWaitMs: 60_000, maxBacklogMs: 60_000 });
  let caller = "ada";
  const provider = queueProvider(await createCryptoProvider("openssl"), queue, {
    callerOf: () => caller,
    signalOf: () => AbortSignal.abort(),
  });
  onTestFinished(() => provider.close());
  const made = ["ada", "bob", "eve"].map((name) => {
    caller = name;
    return provider.shared.generateKeyPair("SLH-DSA-SHA2-128s");
  });
  expect(queue.slow.callers + queue.quick.callers).toBe(1);
  expect(await Promise.all(made)).toHaveLength(3);
});

it("skips work that nobody waits for, and starts the caller's next work", async () => {
  const queue = new WorkQueue({ threads: 1, maxWaitMs: 60_000, maxBacklogMs: 60_000 });
  let signal = new AbortController().signal;
  const inner = await createCryptoProvider("openssl");
  const sign = vi.spyOn(inner, "sign");
  const provider = queueProvider(inner, queue, { callerOf: () => "ada", signalOf: () => signal });
  onTestFinished(() => provider.close());
  const { secretKey } = await provider.generateKeyPair(algorithm);
  const first = provider.sign(secretKey, new Uint8Array(1));
  const leaving = new AbortController();
  signal = leaving.signal;
  const left = [2, 3, 4].map((length) => provider.sign(secretKey, new Uint8Array(length)));
  leaving.abort(new Error("the caller left"));
  const outcomes = await Promise.allSettled(left);
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  expect(queue.depth).toBe(1);
  signal = new AbortController().signal;
  await Promise.all([first, provider.sign(secretKey, new Uint8Array(5))]);
  expect(sign.mock.calls.map(([, message]) => message.length)).toEqual([1, 5]);
});

it("charges more for signing and verifying μ, which OpenSSL leaves to JavaScript", async () => {
  const { provider, queue } = await createProvider(60_000);
  const { publicKey, secretKey } = await provider.generateKeyPair("ML-DSA-65");
  const mu = new Uint8Array(64);
  const charge = async (start: () => Promise<unknown>): Promise<number> => {
    const running = start();
    const ms = queue.quick.totalMs;
    await running;
    return ms;
  };
  const signature = await provider.signRepresentative(secretKey, mu);
  const pairs = [
    [() => provider.signRepresentative(secretKey, mu), () => provider.sign(secretKey, mu)],
    [
      () => provider.verifyRepresentative(publicKey, mu, signature),
      () => provider.verify(publicKey, mu, signature),
    ],
  ] as const;
  for (const [byJavaScript, byOpenSsl] of pairs)
    expect(await charge(byJavaScript)).toBeGreaterThan(10 * (await charge(byOpenSsl)));
});
