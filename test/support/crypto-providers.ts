/** The providers that tests go through. */
import { describe } from "vitest";
import { loadNative } from "../../src/crypto/native/load.ts";
import type { ProviderName } from "../../src/crypto/provider.ts";

/**
 * Whether tests of the native provider are to be skipped because it is not built; with QSP_TEST_REQUIRE_ALL=1 they run,
 * and fail.
 */
export const isNativeSkipped = process.env.QSP_TEST_REQUIRE_ALL !== "1" && loadNative().kind === "absent";

/** Ends the title of tests that need the native provider. */
export const nativeNeed = isNativeSkipped ? " (needs npm run native)" : "";

/** Makes a group of tests for each provider. @param title with %s for its name */
export function describeProviders(title: string, tests: (name: ProviderName) => void): void {
  describe(title.replace("%s", "openssl"), () => tests("openssl"));
  describe.skipIf(isNativeSkipped)(title.replace("%s", "native") + nativeNeed, () => tests("native"));
}
