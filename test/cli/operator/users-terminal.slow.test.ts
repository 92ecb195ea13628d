import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { isMissing } from "../../interop/tools.ts";
import { password } from "../../support/passwords.ts";
import { main } from "../../support/program.ts";
import { countUsers, makeSettings, runAtTerminal, runCommandAtTerminal } from "./command-line.ts";

const timeout = 180_000;
const otherPassword = "incorrect horse battery";

const terminal = isMissing("python3") ? "a terminal (python3 is not installed)" : "a terminal";

describe.skipIf(isMissing("python3"))(`at ${terminal}, qsp user`, { timeout }, () => {
  it("add asks for the password twice, accepts corrections and never shows it", async () => {
    const place = await makeSettings();
    const terminal = runCommandAtTerminal(place, "user", "add", "ada");
    await terminal.typeAfter("Password for ada: ", `${password}x\x7f\r`);
    await terminal.typeAfter("Once more: ", `${password}\r`);
    expect(await terminal.ended).toBe(0);
    expect(terminal.shown()).toContain("Added ada with the role user.");
    expect(terminal.shown()).not.toContain(password.slice(0, 3));
    expect(terminal.shown()).not.toMatch(/\*|•/);
  });

  it.each([
    { what: "the two differ", first: `${password}\r`, second: `${otherPassword}\r` },
    { what: "the first is too short", first: "short\r" },
    { what: "Ctrl-C is pressed", first: "correct\x03" },
    { what: "Ctrl-D is pressed", first: "\x04" },
    { what: "Ctrl-C is pressed at the second", first: `${password}\r`, second: "\x03" },
    { what: "Ctrl-D is pressed at the second", first: `${password}\r`, second: "\x04" },
  ])("add adds nobody if $what", async ({ first, second }) => {
    const place = await makeSettings();
    const terminal = runCommandAtTerminal(place, "user", "add", "ada");
    await terminal.typeAfter("Password for ada: ", first);
    if (second !== undefined) await terminal.typeAfter("Once more: ", second);
    expect(await terminal.ended).toBe([first, second].some((typed) => typed?.includes("\x03")) ? 130 : 2);
    // Terminal output has colours.
    expect(stripVTControlCharacters(terminal.shown())).toMatch(/qsp: /);
    expect(terminal.shown()).not.toContain(password.slice(0, 3));
    expect(countUsers(place)).toBe(0);
  });

  it("restores the terminal: typed text is shown again", async () => {
    const place = await makeSettings();
    const command = `'${process.execPath}' '${main}' user add ada ${place.settings.join(" ")}; echo done; cat`;
    const terminal = runAtTerminal("sh", ["-c", command]);
    await terminal.typeAfter("Password for ada: ", "correct\x03");
    await terminal.typeAfter("done", "is it seen?\r");
    await terminal.typeAfter("is it seen?", "\x04");
    expect(await terminal.ended).toBe(0);
    // Once echoed as typed, once printed by cat.
    expect(terminal.shown().split("is it seen?")).toHaveLength(3);
    expect(terminal.shown()).not.toContain("correct");
  });

  it("reads a password from a pipe without asking if only the output is a terminal", async () => {
    const place = await makeSettings();
    const command = `echo '${password}' | '${process.execPath}' '${main}' user add ada ${place.settings.join(" ")}`;
    const terminal = runAtTerminal("sh", ["-c", command]);
    expect(await terminal.ended).toBe(0);
    expect(terminal.shown().trim()).toBe("Added ada with the role user.");
  });
});
