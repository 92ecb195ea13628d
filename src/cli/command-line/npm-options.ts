/** Detects options that npm consumed: `npm start --port 1` does not pass --port to the program. */

/** An option that the program accepts. */
interface NpmOption {
  /** Without leading dashes. */
  readonly name: string;
  /** The placeholder for the value; undefined for a flag. */
  readonly valueName?: string;
}

/** Values that are safe to repeat in a message: others may be secret or need quoting. */
const plainValue = /^[\w.:-]{1,60}$/;

/**
 * Explains that npm consumed options meant for the script. npm passes them as environment variables: npm_config_port
 * is "1" for `--port=1`, and "true" for `--port 1`, whose value becomes an operand of the program.
 * @param script the name of the npm script, such as "start"
 * @param args the program's arguments
 * @returns a sentence; undefined if npm consumed no options or did not start the program
 */
export function explainTakenOptions(
  script: string,
  options: readonly NpmOption[],
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (env.npm_lifecycle_event !== script) return undefined;
  const taken = options.filter(
    ({ name }) =>
      ![undefined, ""].includes(env[nameVariable(name)]) &&
      !args.some((arg) => arg === `--${name}` || arg.startsWith(`--${name}=`)),
  );
  if (taken.length === 0) return undefined;
  const operands = args.filter((arg) => !arg.startsWith("-"));
  // npm does not report which operand belongs to which option.
  const isSingle = taken.length === 1 && operands.length === 1;
  const line = taken.map(({ name, valueName }) => {
    if (valueName === undefined) return `--${name}`;
    const given = env[nameVariable(name)] ?? "";
    const value = given !== "true" ? given : isSingle ? (operands[0] ?? "") : "";
    return `--${name} ${plainValue.test(value) ? value : valueName.toUpperCase().replace(/\|.*/, "")}`;
  });
  const npm = script === "start" ? "npm start" : `npm run ${script}`;
  const names = taken.map(({ name }) => `--${name}`).join(", ");
  return `npm consumed ${names} itself; put -- before the program's options: ${npm} -- ${line.join(" ")}`;
}

/** "npm_config_data_dir" for "data-dir". */
function nameVariable(name: string): string {
  return `npm_config_${name.replaceAll("-", "_")}`;
}
