/** The crypto providers that tests run on. */
import { afterAll, describe } from "vitest";
import type { Algorithm } from "../../src/crypto/algorithms.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { loadNative } from "../../src/crypto/native/load.ts";
import type { CryptoProvider, KeyPair, ProviderName } from "../../src/crypto/provider.ts";

/**
 * Whether tests of the native provider are skipped because it is not built; with QSP_TEST_REQUIRE_ALL=1, they run and
 * fail.
 */
export const isNativeSkipped = process.env.QSP_TEST_REQUIRE_ALL !== "1" && loadNative().kind === "absent";

/** Suffix for the titles of tests that need the native provider. */
export const nativeNeed = isNativeSkipped ? " (needs npm run native)" : "";

/** Defines tests with a provider, which is closed afterwards. */
type ProviderTests = (provider: CryptoProvider, name: ProviderName) => void | Promise<void>;

/**
 * Defines a group of tests for each provider.
 *
 * @param title with %s for the provider's name
 */
export function describeProviders(title: string, tests: ProviderTests): void {
  describe(title.replace("%s", "openssl"), () => testWith("openssl", tests));
  describe.skipIf(isNativeSkipped)(title.replace("%s", "native") + nativeNeed, () =>
    testWith("native", tests),
  );
}

async function testWith(name: ProviderName, tests: ProviderTests): Promise<void> {
  // Skipped tests are listed by name, but create no provider.
  const provider = await createCryptoProvider(isNativeSkipped ? "openssl" : name);
  afterAll(() => provider.close());
  await tests(provider, name);
}

/** Generates a key pair for each algorithm, and returns a function that finds them. */
export async function makeKeyPairs(provider: CryptoProvider, algorithms: readonly Algorithm[]) {
  const made = await Promise.all(
    algorithms.map(async (algorithm) => [algorithm, await provider.generateKeyPair(algorithm)] as const),
  );
  const pairs = new Map<Algorithm, KeyPair>(made);
  return (algorithm: Algorithm): KeyPair => {
    const pair = pairs.get(algorithm);
    if (pair === undefined) throw new Error(`no key pair of ${algorithm}`);
    return pair;
  };
}
