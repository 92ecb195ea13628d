/** The providers that tests go through. */
import { afterAll, describe } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { loadNative } from "../../src/crypto/native/load.ts";
import type { CryptoProvider, ProviderName } from "../../src/crypto/provider.ts";

/**
 * Whether tests of the native provider are to be skipped because it is not built; with QSP_TEST_REQUIRE_ALL=1 they run,
 * and fail.
 */
export const isNativeSkipped = process.env.QSP_TEST_REQUIRE_ALL !== "1" && loadNative().kind === "absent";

/** Ends the title of tests that need the native provider. */
export const nativeNeed = isNativeSkipped ? " (needs npm run native)" : "";

/** Makes tests with a provider, which is closed after them. */
type ProviderTests = (provider: CryptoProvider, name: ProviderName) => void | Promise<void>;

/** Makes a group of tests for each provider. @param title with %s for its name */
export function describeProviders(title: string, tests: ProviderTests): void {
  describe(title.replace("%s", "openssl"), () => testWith("openssl", tests));
  describe.skipIf(isNativeSkipped)(title.replace("%s", "native") + nativeNeed, () =>
    testWith("native", tests),
  );
}

async function testWith(name: ProviderName, tests: ProviderTests): Promise<void> {
  // Tests that are skipped are named, and use nothing.
  const provider = await createCryptoProvider(isNativeSkipped ? "openssl" : name);
  afterAll(() => provider.close());
  await tests(provider, name);
}
