/** Decides whether other servers may listen on the same port. */
import { type Config, ConfigError } from "../config.ts";

/**
 * Platforms where several programs can listen on one port (Node's documentation of server.listen,
 * `reusePort`).
 */
const platforms: readonly NodeJS.Platform[] = ["aix", "freebsd", "linux", "sunos"];

/**
 * Checks that servers can share a port if --reuse-port is set: the system assigns each connection to any of
 * them.
 *
 * @throws ConfigError if this system cannot do it, or if a package keeps state in the memory of its server
 */
export function requireReusablePort(
  { reusePort }: Config,
  packages: readonly { readonly name: string; readonly hasState?: boolean }[],
  platform: NodeJS.Platform = process.platform,
): void {
  if (!reusePort) return;
  if (!platforms.includes(platform))
    throw new ConfigError(
      "--reuse-port: servers cannot share a port on this system; give each its own --port, behind a proxy",
    );
  const stateful = packages.find(({ hasState }) => hasState);
  if (stateful === undefined) return;
  const others = packages.filter(({ hasState }) => hasState !== true).map(({ name }) => name);
  throw new ConfigError(
    `--reuse-port: sessions of ${stateful.name} belong to one server, and their calls could reach a different one; ` +
      `exclude it with --services ${others.join(",")}`,
  );
}
