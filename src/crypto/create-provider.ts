import { CheckedProvider } from "./checked-provider.ts";
import { CryptoError } from "./crypto-error.ts";
import type { Engine } from "./engine.ts";
import type { NativeAddon } from "./native/addon.ts";
import { createNativeEngine } from "./native/engine.ts";
import { testKnownAnswers } from "./native/known-answers.ts";
import { loadNative } from "./native/load.ts";
import { createOpenSslEngine } from "./openssl/engine.ts";
import type { CryptoProvider, ProviderName } from "./provider.ts";
import { testProvider } from "./self-test.ts";

/** The named provider, or the fastest one available. */
export type ProviderChoice = ProviderName | "auto";

export interface CreateProviderOptions {
  /** Folder of the native library. */
  readonly nativeFolder?: string | undefined;
  /**
   * Called with a one-sentence reason if "auto" does not use a native library that is present. Not called if
   * none was built.
   */
  readonly onFallback?: (reason: string) => void;
}

/**
 * Creates a provider and runs its self-test. The caller closes it.
 *
 * "auto" selects "native" if it is built and passes its tests, otherwise "openssl".
 *
 * @throws SELF_TEST_FAILED; UNAVAILABLE for "native" if its library does not load
 */
export async function createCryptoProvider(
  choice: ProviderChoice,
  options: CreateProviderOptions = {},
): Promise<CryptoProvider> {
  if (choice === "native") return createNative(options.nativeFolder);
  const native = choice === "auto" ? await createIfUsable(options) : undefined;
  return native ?? createTested(createOpenSslEngine());
}

/** Creates the native provider, or returns undefined if it is missing or does not work. */
async function createIfUsable({ nativeFolder, onFallback }: CreateProviderOptions) {
  const build = loadNative(nativeFolder);
  if (build.kind === "absent") return undefined;
  try {
    if (build.kind === "loaded") return await testNative(build.addon);
    onFallback?.(describeFallback(build.reason));
  } catch (error) {
    onFallback?.(describeFallback(error instanceof Error ? error.message : String(error)));
  }
  return undefined;
}

function describeFallback(reason: string): string {
  return `using OpenSSL instead of the native provider: ${reason}; rebuild it with npm run native`;
}

async function createNative(folder: string | undefined): Promise<CryptoProvider> {
  const build = loadNative(folder);
  if (build.kind === "loaded") return testNative(build.addon);
  const problem = build.kind === "absent" ? "it is not built" : build.reason;
  throw new CryptoError("UNAVAILABLE", `the native provider cannot be used: ${problem}; run: npm run native`);
}

async function testNative(addon: NativeAddon): Promise<CryptoProvider> {
  await testKnownAnswers(addon);
  return createTested(createNativeEngine(addon));
}

async function createTested(engine: Engine): Promise<CryptoProvider> {
  const provider = new CheckedProvider(engine);
  try {
    await testProvider(provider);
    return provider;
  } catch (error) {
    await provider.close();
    throw error;
  }
}
