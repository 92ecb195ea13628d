/** Finds options that npm took for its own: `npm start --port 1` gives the program no --port. */

/** An option of the program. */
export interface NpmOption {
  /** Without the dashes. */
  readonly name: string;
  /** The placeholder for its value; a switch has none. */
  readonly valueName?: string;
}

/** A value that can be repeated in a message; others may be secret, or need quotes. */
const plainValue = /^[\w.:-]{1,60}$/;

/**
 * Explains that npm took options of a script for its own. npm hands them over as variables: npm_config_port is "1" for
 * `--port=1`, and "true" for `--port 1`, whose value it gives to the program as an operand.
 *
 * @param script the name of the npm script, such as "start"
 * @param args what the program got
 * @returns a sentence; undefined if npm took none, or does not run the script
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
  // npm does not tell which operand belongs to which of several options.
  const isSingle = taken.length === 1 && operands.length === 1;
  const line = taken.map(({ name, valueName }) => {
    if (valueName === undefined) return `--${name}`;
    const given = env[nameVariable(name)] ?? "";
    const value = given !== "true" ? given : isSingle ? (operands[0] ?? "") : "";
    return `--${name} ${plainValue.test(value) ? value : valueName.toUpperCase().replace(/\|.*/, "")}`;
  });
  const npm = script === "start" ? "npm start" : `npm run ${script}`;
  const names = taken.map(({ name }) => `--${name}`).join(", ");
  return `npm took ${names} for its own; put -- before the options of the program: ${npm} -- ${line.join(" ")}`;
}

/** "npm_config_data_dir" for "data-dir". */
function nameVariable(name: string): string {
  return `npm_config_${name.replaceAll("-", "_")}`;
}
