/** The variables of this process, without those of the person who runs the tests. */
export function inheritedEnvironment(): Record<string, string> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("QSP_"));
  return Object.fromEntries(inherited.map(([name, value = ""]) => [name, value]));
}
