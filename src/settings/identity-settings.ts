/** Converts settings to the options of identity, and to the limits of challenges. */
import type { Config } from "../config.ts";

/** The options of identity that depend on settings. */
export function identitySettings(config: Config) {
  const { auth, maxFailedLogins, accessTokenAlgorithm } = config;
  const accessTokens = { issuerUrl: findIssuerUrl(config), algorithm: accessTokenAlgorithm };
  return { mode: auth, maxFailedLogins, accessTokens };
}

/**
 * Finds the URL of the issuer: by default that of a browser on the same machine. A server that picks its port has none,
 * because a token must name the same issuer after the next start.
 */
function findIssuerUrl({ issuerUrl, port, tlsCert }: Config): string | undefined {
  if (issuerUrl !== "") return issuerUrl;
  return port === 0 ? undefined : `${tlsCert === "" ? "http" : "https"}://localhost:${port}`;
}

/** The most open challenges of one device and of one client. */
export function challengeSettings({ maxChallengesPerDevice, maxChallengesPerClient }: Config) {
  return { perDevice: maxChallengesPerDevice, perClient: maxChallengesPerClient };
}
