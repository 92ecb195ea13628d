/**
 * The variables of this process, without those of the person who runs the tests. Programs let calls wait where a busy
 * machine would have them refused.
 */
export function inheritedEnvironment(): Record<string, string> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("QSP_"));
  return Object.fromEntries(
    [...inherited, ["QSP_MAX_QUEUE_MS", "60000"]].map(([name, value = ""]) => [name, value]),
  );
}
