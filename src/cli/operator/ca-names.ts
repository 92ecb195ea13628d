/** Validates the names in a server certificate. */
import { ConfigError } from "../../config.ts";
import { readAddress } from "../../crypto/alternative-names.ts";
import { isHostName } from "../../crypto/host-name.ts";

/** Maximum characters of the first name, which becomes the subject (RFC 5280, appendix A.1: ub-common-name). */
const maxFirstCharacters = 64;
const maxNames = 100;

/**
 * Reads host names, wildcards such as `*.example.com`, and IP addresses.
 *
 * @returns each name once, in the given order, in lower case, with IPv6 in its shortest form
 * @throws ConfigError that quotes the first invalid name
 */
export function readServerNames(given: readonly string[]): readonly string[] {
  const names = [...new Set(given.map(readServerName))];
  const [first = ""] = names;
  if (names.length > maxNames)
    throw new ConfigError(`${names.length} names are too many for a certificate; the limit is ${maxNames}`);
  if (first.length > maxFirstCharacters)
    throw new ConfigError(
      `${first} cannot be the first name; put a name of at most ${maxFirstCharacters} characters before it`,
    );
  return names;
}

function readServerName(given: string): string {
  const name = given.toLowerCase();
  const address = readAddress(name);
  if (address !== undefined || isHostName(name)) return address ?? name;
  throw new ConfigError(
    `${JSON.stringify(given)} is neither a host name, nor a wildcard such as *.example.com, nor an IP address`,
  );
}
