import { CheckedProvider } from "./checked-provider.ts";
import { createNobleEngine } from "./noble/engine.ts";
import { createOpenSslEngine } from "./openssl/engine.ts";
import type { CryptoProvider, ProviderName } from "./provider.ts";
import { testProvider } from "./self-test.ts";

/**
 * Creates the provider with this name and tests it once. The caller closes it.
 *
 * @throws SELF_TEST_FAILED
 */
export async function createCryptoProvider(name: ProviderName): Promise<CryptoProvider> {
  const provider =
    name === "openssl"
      ? new CheckedProvider(createOpenSslEngine())
      : new CheckedProvider(createNobleEngine());
  try {
    await testProvider(provider);
    return provider;
  } catch (error) {
    await provider.close();
    throw error;
  }
}
