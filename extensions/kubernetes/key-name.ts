/** The name of the key that encrypts. */
import { usageError } from "../../src/cli/exit-codes.ts";

/**
 * Checks the value of --key.
 *
 * @returns it as the key service takes it: "name/<name>" or "user/<user>/name/<name>"
 * @throws CliError
 */
export function checkKeyName(text: string): string {
  const [, name = ""] = /^(?:user\/[^/]{1,255}\/)?name\/([\w./-]{1,255})$/.exec(text) ?? [];
  if (name === "")
    throw usageError(
      `--key "${text}" is not the name of a key such as name/etcd, or user/ada/name/etcd for a key of another user`,
    );
  if (/\/[1-9]\d*$/.test(name))
    throw usageError(`--key "${text}" is one version; name the key itself, so that a rotation takes effect`);
  return text;
}
