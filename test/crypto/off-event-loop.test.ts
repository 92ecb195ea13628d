import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { type MlDsaAlgorithm, mlDsaNames } from "../../src/crypto/algorithms.ts";
import { mlDsa } from "../../src/crypto/noble.ts";
import { type MuRequest, MuWorkers } from "../../src/crypto/openssl/mu-workers.ts";
import { describeProviders } from "../support/crypto-providers.ts";
import { refusal } from "./refusal.ts";

const message = new Uint8Array(64);
/** A synchronous call allows at most two turns of the event loop, however long it takes. */
const manyTurns = 10;
/** The work may finish before a busy machine schedules the event loop; then the test repeats it. */
const attempts = 50;

describeProviders("%s works off the event loop", (provider, name) => {
  // A faster provider gets more done in ten turns of the event loop.
  const count = { openssl: 64, native: 1000 }[name];
  /** Number of signatures over mu, which noble creates for OpenSSL. */
  const muCount = name === "native" ? count : 16;

  const repeat = (times: number, start: (i: number) => Promise<unknown>) => () =>
    Array.from({ length: times }, (_, i) => start(i));
  const work: Readonly<Record<string, () => Promise<() => Promise<unknown>[]>>> = {
    signing: async () => {
      const { secretKey } = await provider.generateKeyPair("ML-DSA-65");
      return repeat(count, () => provider.sign(secretKey, message));
    },
    "signing external mus": async () => {
      const { secretKey } = await provider.generateKeyPair("ML-DSA-65");
      return repeat(muCount, () => provider.signRepresentative(secretKey, message));
    },
    "X-Wing encapsulates and decapsulates": async () => {
      const { publicKey, secretKey } = await provider.generateKeyPair("X-Wing");
      const { ciphertext } = await provider.encapsulate(publicKey);
      return repeat(64, (i) =>
        i % 2 === 0 ? provider.encapsulate(publicKey) : provider.decapsulate(secretKey, ciphertext),
      );
    },
    "generating key pairs": async () => repeat(count, () => provider.generateKeyPair("ML-DSA-87")),
    "checking an SLH-DSA key": async () => {
      const raw = (await provider.generateKeyPair("SLH-DSA-SHA2-192f")).secretKey.exportRaw();
      return repeat(1, () => provider.importSecretKey("SLH-DSA-SHA2-192f", { raw }));
    },
  };

  it.each(Object.entries(work))("while %s", async (_what, prepare) => {
    expect(await countTurns(await prepare())).toBeGreaterThan(manyTurns);
  });

  /** Counts the turns of the event loop until all work is done, at most as many times as `attempts`; see `manyTurns`. */
  async function countTurns(start: () => Promise<unknown>[]): Promise<number> {
    let most = 0;
    for (let attempt = 0; attempt < attempts && most <= manyTurns; attempt += 1) {
      let turns = 0;
      const turn = () => {
        turns += 1;
        next = setImmediate(turn);
      };
      let next = setImmediate(turn);
      await Promise.all(start());
      clearImmediate(next);
      most = Math.max(most, turns);
    }
    return most;
  }
});

describeProviders("the threads of %s", (_provider, name) => {
  it("do not keep a process alive that forgets to close the provider", async () => {
    const source = new URL("../../src/crypto/create-provider.ts", import.meta.url);
    const script = `import { createCryptoProvider } from "${source}";
      const provider = await createCryptoProvider("${name}");
      const { secretKey } = await provider.generateKeyPair("ML-DSA-44");
      await provider.signRepresentative(secretKey, new Uint8Array(64));
      console.log("done");`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script]);
    expect(stdout).toBe("done\n");
  });
});

describe("the mu-signing workers", () => {
  const mu = new Uint8Array(64).fill(7);
  /** A separate request for each call, because workers wipe their requests. */
  const request = (algorithm: MlDsaAlgorithm, fill = 1): MuRequest => ({
    algorithm,
    secretKey: { kind: "seed", seed: new Uint8Array(32).fill(fill) },
    mu: Uint8Array.from(mu),
  });

  it("answer more calls than there are workers, each with its own result", async () => {
    const workers = new MuWorkers(2);
    onTestFinished(() => workers.close());
    const jobs = mlDsaNames.flatMap((algorithm) => [1, 2].map((fill) => ({ algorithm, fill })));
    const signatures = await Promise.all(
      jobs.map(({ algorithm, fill }) => workers.sign(request(algorithm, fill))),
    );
    const verdicts = jobs.map(({ algorithm, fill }, i) => {
      const { publicKey } = mlDsa[algorithm].keygen(new Uint8Array(32).fill(fill));
      return mlDsa[algorithm].internal.verify(signatures[i] ?? mu, mu, publicKey, { externalMu: true });
    });
    expect(verdicts).toEqual(jobs.map(() => true));
  });

  it("wipe the secret key and mu that they receive, even if they do not sign", async () => {
    const workers = new MuWorkers(1);
    const requests = [1, 2].map((fill) => request("ML-DSA-44", fill));
    const jobs = requests.map((each) => refusal(() => workers.sign(each)));
    await workers.close();
    await Promise.all(jobs);
    const left = requests.flatMap(({ secretKey, mu }) => [
      ...(secretKey.kind === "seed" ? secretKey.seed : secretKey.raw),
      ...mu,
    ]);
    expect(left.every((byte) => byte === 0)).toBe(true);
  });

  it("reject unfinished and later requests once they are closed", async () => {
    const workers = new MuWorkers(1);
    const unfinished = [1, 2, 3].map(() => refusal(() => workers.sign(request("ML-DSA-65"))));
    await workers.close();
    expect(await Promise.all(unfinished)).toEqual(["CLOSED", "CLOSED", "CLOSED"]);
    expect(await refusal(() => workers.sign(request("ML-DSA-65")))).toBe("CLOSED");
  });
});
