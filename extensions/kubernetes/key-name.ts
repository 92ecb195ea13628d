/** The name of the encryption key. */
import { usageError } from "../../src/cli/exit-codes.ts";

/**
 * Validates --key.
 *
 * @returns the key in the key service's form: "name/<name>" or "user/<user>/name/<name>"
 * @throws CliError
 */
export function checkKeyName(text: string): string {
  const [, name = ""] = /^(?:user\/[^/]{1,255}\/)?name\/([\w./-]{1,255})$/.exec(text) ?? [];
  if (name === "")
    throw usageError(
      `--key "${text}" is not a key name; use name/etcd, for example, or user/ada/name/etcd for another user's key`,
    );
  if (/\/[1-9]\d*$/.test(name))
    throw usageError(
      `--key "${text}" names a single version; leave out the version, so that rotations take effect`,
    );
  return text;
}
