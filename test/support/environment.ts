/**
 * The variables of this process, without those of the person who runs the tests. Programs have one event loop, or as many
 * as QSP_TEST_WORKERS says, whatever the machine has, and let calls wait where a busy machine would have them refused.
 */
export function inheritedEnvironment(): Record<string, string> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("QSP_"));
  const workers = process.env.QSP_TEST_WORKERS ?? "1";
  return Object.fromEntries(
    [...inherited, ["QSP_WORKERS", workers], ["QSP_MAX_QUEUE_MS", "60000"]].map(([name, value = ""]) => [
      name,
      value,
    ]),
  );
}
