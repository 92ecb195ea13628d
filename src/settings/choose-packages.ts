import { ConfigError } from "../config.ts";

/**
 * Finds packages by the names in `--services`; "all" stands for every package.
 *
 * @throws ConfigError for an unknown name
 */
export function choosePackages<Package extends { readonly name: string }>(
  packages: readonly Package[],
  names: readonly string[],
): Package[] {
  if (names.includes("all")) return [...packages];
  return names.map((name) => {
    const found = packages.find((one) => one.name === name);
    if (found) return found;
    const known = packages.map((one) => one.name).join(", ");
    throw new ConfigError(`--services: "${name}" is unknown; use all, or names from ${known}`);
  });
}
