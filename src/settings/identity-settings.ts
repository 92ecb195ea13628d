/** Converts settings to identity options. */
import type { Config } from "../config.ts";

/** The identity options that depend on settings. */
export function identitySettings(config: Config) {
  const { auth, maxFailedLogins, accessTokenAlgorithm } = config;
  const accessTokens = { issuerUrl: findIssuerUrl(config), algorithm: accessTokenAlgorithm };
  return { mode: auth, maxFailedLogins, accessTokens };
}

/**
 * Returns the issuer URL: by default, as seen by a browser on the same machine. A server with a random port
 * has none, because the issuer in a token must stay the same after a restart.
 */
function findIssuerUrl({ issuerUrl, port, tlsCert }: Config): string | undefined {
  if (issuerUrl !== "") return issuerUrl;
  return port === 0 ? undefined : `${tlsCert === "" ? "http" : "https"}://localhost:${port}`;
}
