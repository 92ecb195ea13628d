/**
 * The environment of this process, without the variables of the person who runs the tests. Tested programs queue
 * calls where, on a busy machine, they would refuse them.
 */
export function inheritedEnvironment(): Record<string, string> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("QSP_"));
  return Object.fromEntries(
    [...inherited, ["QSP_MAX_QUEUE_MS", "60000"]].map(([name, value = ""]) => [name, value]),
  );
}
