import { createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { isMissing, run } from "../../test/interop/tools.ts";
import { useRunningServer } from "../../test/support/running-server.ts";
import { loadPackages } from "../../test/support/whole-program.ts";
import { runStep, runStory, stepOf, textOf, visit, visitIn } from "./browser.ts";
import { findBarriers, unfold, viewports } from "./expect-fits.ts";
import { describeInBrowser, readStory } from "./telling.ts";

/** Maximum compressed bytes of the whole console. */
const maxTransferBytes = 300_000;

const root = join(import.meta.dirname, "../..");

const services = (await loadPackages()).flatMap(({ files }) => files.flatMap((file) => file.services));
const served = new Set(services.map(({ typeName }) => typeName));

/** Page addresses from their table, except pages whose service no package has. */
function readPaths(group: string): string[] {
  const source = readFileSync(join(root, "console/page/pages.ts"), "utf8");
  const [, entries = ""] = new RegExp(`^ {2}${group}: \\[$([\\s\\S]*?)^ {2}\\],$`, "m").exec(source) ?? [];
  return entries.split(/^ {4}\{$/m).flatMap((entry) => {
    const [, path] = /^ {6}path: "([\w/-]+)",$/m.exec(entry) ?? [];
    const [, service] = /^ {6}service: "([\w.]+)",$/m.exec(entry) ?? [];
    return path === undefined || (service !== undefined && !served.has(service)) ? [] : path;
  });
}
const storyPaths = readPaths("stories");
const toolPaths = readPaths("tools");
const viewPaths = readPaths("views");
// The stories create the keys and entries that the tools show.
const paths = ["", ...storyPaths, ...toolPaths, ...viewPaths];

const { desk, phone } = viewports;

/** What to do on the pages that are not stories, until they show everything. */
const openers: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  "": (page) => breakSignature(page),
  algorithms: (page) => page.locator(".algorithms tbody tr").first().waitFor(),
  activity: (page) => page.getByText("Calls per second").waitFor(),
  async handshake(page) {
    await page.getByRole("button", { name: "Flip a bit of it" }).click();
    await page.getByText("The client sends the alert bad_record_mac").waitFor();
  },
  async "tokens/inspect"(page) {
    await page.getByRole("button", { name: "Issue a token" }).click();
    await page.getByText(/^Valid for key /).waitFor();
  },
  "keys/audit": (page) => firstRecord(page).waitFor(),
  inventory: (page) => firstRecord(page).waitFor(),
  async "keys/manage"(page) {
    await firstRecord(page).getByRole("link").first().click();
    await page.locator(".panel .facts-list").waitFor();
  },
};

const firstRecord = (page: Page) => page.locator(".records tbody tr").first();

/** Waits until both sides have found the home page's signature valid or invalid. */
const waitForVerdicts = (page: Page, found: "valid" | "invalid") =>
  page.locator(`.verdicts [data-found="${found}"]`).nth(1).waitFor();

async function breakSignature(page: Page): Promise<void> {
  await waitForVerdicts(page, "valid");
  await page.getByRole("button", { name: "Flip one bit" }).click();
  await waitForVerdicts(page, "invalid");
}

/** Expects that nothing is wider than the page after a change of width. */
function expectNoScrolling(page: Page, width: number): Promise<void> {
  return expect.poll(() => page.evaluate("document.documentElement.scrollWidth")).toBe(width);
}

function focusedText(page: Page): Promise<string> {
  return page.evaluate<string>("document.activeElement.innerText ?? ''");
}

/** Presses Tab until an element with this text has the focus. */
async function tabTo(page: Page, text: string): Promise<void> {
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press("Tab");
    if ((await focusedText(page)).trim() === text) return;
  }
  throw new Error(`the keyboard does not reach "${text}"`);
}

/**
 * Copies the commands for all of a story's calls, and the tokens that they need, with the page's own buttons.
 */
async function copyCommands(page: Page): Promise<string[]> {
  await page.setViewportSize(desk);
  await unfold(page);
  const commands: string[] = [];
  for (const call of await page.locator("details.call").all()) {
    const copy = async (name: string): Promise<string> => {
      await call.getByRole("button", { name }).click();
      await call.getByText("Copied").waitFor();
      const text = await page.evaluate<string>("navigator.clipboard.readText()");
      await page.keyboard.press("Tab");
      return text;
    };
    await call.getByRole("button", { name: "curl", exact: true }).click();
    const command = await copy("Copy curl command");
    const hasToken = (await call.getByRole("button", { name: "Copy token" }).count()) > 0;
    const token = hasToken ? await copy("Copy token") : "none";
    expect(command).not.toContain(token);
    commands.push(`export QSP_TOKEN=${token}\n${command}`);
  }
  return commands;
}

/** Masks values that differ from run to run. */
function maskVarying(text: string): string {
  return text
    .replace(/0x[0-9a-f]*…[0-9a-f]*/g, "0x…")
    .replace(/\b(\w+)-[0-9a-f]{8}-[0-9a-f-]{27}/g, "$1-…")
    .replace(/\b10\.8\.[\d.]*\d/g, "10.8.…")
    .replace(/\d+(?:\.\d+)?\u00a0ms/g, "… ms")
    .replace(
      /(log has|read|With|chain has|from block|checked|browser the|token has|ECDSA signature has|One signature of) \d[\d,]*/g,
      "$1 …",
    )
    .replace(/chain has … block\b/g, "chain has … blocks")
    .replace(/(Blocks|block|Block) \d[\d, ]*(?=[ :,])/g, "$1 …");
}

/** A refusal's reason; undefined for an answer. */
function readOutcome(output: string): string | undefined {
  if (/"status":\s*"success"/.test(output)) return undefined;
  return /"reason":\s*"(\w+)"/.exec(output)?.[1] ?? `neither answer nor refusal: ${output.slice(0, 200)}`;
}

describeInBrowser("the console", (stage) => {
  /** For tests that leave nothing in it. */
  let sharedContext: BrowserContext;
  beforeAll(async () => {
    sharedContext = await stage().browser.newContext();
  });

  /** Opens a tab for one test that shares a profile with others. */
  async function open(path: string, { url = stage().server.url } = {}): Promise<Page> {
    const { page } = await visitIn(sharedContext, url, path);
    onTestFinished(() => page.close());
    return page;
  }

  /** Opens a page for one test, like a first-time visitor. */
  async function openFirst(path: string, options: BrowserContextOptions = {}): Promise<Page> {
    const { page } = await visit(stage().browser, stage().server.url, path, options);
    onTestFinished(() => page.context().close());
    return page;
  }

  // Stories create what tools show.
  describe("with every story played, in one tab,", { shuffle: false }, () => {
    let page: Page;
    /** Compressed bytes of each file that the tab has loaded. */
    const sizes = new Map<string, number>();
    const played = new Map<string, unknown>();

    beforeAll(async () => {
      const context = await stage().browser.newContext();
      await context.grantPermissions(["clipboard-read", "clipboard-write"]);
      page = await context.newPage();
      page.on("response", (response) => {
        const { pathname } = new URL(response.url());
        const { "content-encoding": encoding, "content-length": length } = response.headers();
        // Uncompressed files count in full.
        sizes.set(
          pathname,
          encoding === "br" || pathname === "/" ? Number(length) : Number.POSITIVE_INFINITY,
        );
      });
      await page.goto(stage().server.url);
    }, 180_000);
    afterAll(() => page?.context().close());

    async function play(path: string): Promise<void> {
      // A tool shows records that the stories created.
      if (toolPaths.includes(path) && !played.has("keys")) await play("keys");
      await page.goto(`${stage().server.url}/#/${path}`);
      const opener = openers[path];
      played.set(path, await (opener?.(page) ?? readStory(page)));
      await unfold(page);
    }

    for (const path of paths) {
      describe(`#/${path}`, () => {
        beforeAll(() => play(path), 60_000);

        if (storyPaths.includes(path)) {
          it("states each step's outcome, and which side checked what", async () => {
            const story = maskVarying(String(played.get(path)));
            await expect(`${story}\n`).toMatchFileSnapshot(`story-texts/${path}.txt`);
          });
        }

        for (const colorScheme of ["light", "dark"] as const) {
          // Without reduced motion, colours of one theme fade into the other's during the check.
          it(`has no accessibility violations, ${colorScheme}`, async () => {
            await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
            await page.setViewportSize(desk);
            await unfold(page);
            expect(await findBarriers(page, colorScheme === "dark")).toEqual([]);
          });
        }

        it("does not scroll sideways on a phone", async () => {
          await page.setViewportSize(phone);
          await unfold(page);
          await expectNoScrolling(page, phone.width);
        });

        if (path === "sign" || path === "tokens")
          it.skipIf(isMissing("curl"))(
            "offers commands that return what the page got (needs curl)",
            async () => {
              const shown = await page.locator("details.call > summary").allInnerTexts();
              const refused = shown.map((text) => /refused with (\w+)/.exec(text)?.[1]);
              const answers = [];
              for (const command of await copyCommands(page)) answers.push(await run("sh", ["-c", command]));
              expect(answers.map(({ stdout }) => readOutcome(stdout))).toEqual(refused);
            },
          );
      });
    }

    it(`loads less than ${maxTransferBytes} bytes, compressed`, async () => {
      for (const path of paths) if (!played.has(path)) await play(path);
      const files = [...sizes].filter(([path]) => path === "/" || path.startsWith("/console/"));
      expect(storyPaths.length).toBeGreaterThanOrEqual(4);
      expect(files.length).toBeGreaterThan(8);
      expect(files.reduce((sum, [, size]) => sum + size, 0)).toBeLessThan(maxTransferBytes);
    });
  });

  it("finds an accessibility violation where one exists", async () => {
    const page = await open("sign");
    await page.evaluate("document.querySelector('label').remove()");
    expect(await findBarriers(page)).not.toEqual([]);
  });

  it("runs the signature story by keyboard alone, from a skip link on, and shows what has the focus", async () => {
    const page = await open("sign");
    await tabTo(page, "Skip to content");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.closest('main') !== null")).toBe(true);
    for (const [button, title] of [
      ["Sign", "Sign a message"],
      ["Verify", "Verify it on both sides"],
      ["Break and verify", "Break one bit of the signature"],
      ["Change and verify", "Or change the message"],
      ["Cut and verify", "Cut the signature short"],
    ] as const) {
      await tabTo(page, button);
      expect(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")).toBe("solid");
      await page.keyboard.press("Enter");
      await stepOf(page, title).locator(".outcome:not(:empty)").waitFor();
    }
  });

  it("moves the focus to the story that a reader opens, updates the title, and reports an unknown address", async () => {
    const page = await open("");
    await page.getByRole("navigation").getByRole("link", { name: "Key exchange" }).click();
    await page.getByRole("heading", { level: 1, name: "Key exchange" }).waitFor();
    await expect.poll(() => page.evaluate("document.activeElement.tagName")).toBe("MAIN");
    await expect.poll(() => page.title()).toBe("Key exchange – Quantum-Safe Playground");
    expect(await textOf(page.locator("nav [aria-current=page]"))).toBe("Key exchange");
    await page.goto(`${stage().server.url}/#/nothing`);
    await page.getByRole("heading", { level: 1, name: "Page not found" }).waitFor();
  });

  it("keeps a story's state, with secret keys in memory only, until the page is reloaded", async () => {
    const page = await openFirst("key-exchange");
    const goTo = async (title: string): Promise<void> => {
      await page.getByRole("navigation").getByRole("link", { name: title, exact: true }).click();
      await page.getByRole("heading", { level: 1, name: title }).waitFor();
    };
    await page.getByLabel("Algorithm").selectOption("ML-KEM-512");
    await runStep(page, "Your browser generates a key pair");
    await goTo("Sign and verify");
    await goTo("Key exchange");
    expect(await page.getByLabel("Algorithm").inputValue()).toBe("ML-KEM-512");
    await runStep(page, "The server encapsulates a secret");
    expect(await runStep(page, "Your browser opens the ciphertext")).toBe("Both sides have the same secret.");
    expect(await page.locator(".outcome:not(:empty)").count()).toBe(3);
    const stored = await page.evaluate("[Object.keys(localStorage), Object.keys(sessionStorage)]");
    expect(stored).toEqual([[], []]);
    await page.reload();
    await stepOf(page, "Your browser generates a key pair").waitFor();
    expect(await page.locator(".outcome:not(:empty)").count()).toBe(0);
  });

  it("reports an unreachable server, and resets a story on demand", async () => {
    const page = await open("sign");
    await page.route("**/pqc.PqcService/SignData", (route) => route.abort(), { times: 1 });
    expect(await runStep(page, "Sign a message")).toContain("UNREACHABLE");
    await page.getByLabel("Message", { exact: true }).fill("mine");
    await runStep(page, "Sign a message");
    await page.getByRole("button", { name: "Restart this story" }).click();
    await expect.poll(() => page.locator("li.step[data-status=done]").count()).toBe(0);
    expect(await page.getByLabel("Message", { exact: true }).inputValue()).toBe("Pay 100 to Ada");
    expect(await page.evaluate("document.activeElement.tagName")).toBe("MAIN");
  });

  it("has a link to each step that leads there", async () => {
    const page = await open("keys");
    await page.getByRole("link", { name: "Link to the step “Rotate it”" }).click();
    await expect.poll(() => new URL(page.url()).hash).toBe("#/keys/steps/rotate");
    const other = await open("keys/steps/rotate");
    await expect.poll(() => focusedText(other)).toBe("Rotate it");
    const top = () => other.evaluate<number>("document.activeElement.getBoundingClientRect().top");
    await expect.poll(top).toBeLessThan(200);
    await expect.poll(() => other.title()).toBe("Managed keys – Quantum-Safe Playground");
  });

  it("has a menu on a phone that opens, and closes after a choice", async () => {
    const page = await openFirst("", { viewport: phone });
    const link = page.getByRole("navigation").getByRole("link", { name: "Tokens" });
    expect(await link.isVisible()).toBe(false);
    await page.getByRole("button", { name: "Menu" }).click();
    await link.click();
    await page.getByRole("heading", { level: 1, name: "Tokens" }).waitFor();
    await expect.poll(() => link.isVisible()).toBe(false);
  });

  it("remembers the byte format and the programming language that the reader chooses", async () => {
    const page = await openFirst("sign", { permissions: ["clipboard-read", "clipboard-write"] });
    await runStep(page, "Sign a message");
    await runStep(page, "Verify it on both sides");
    await unfold(page);
    const step = stepOf(page, "Sign a message");
    await step.getByLabel("Format of Public key").selectOption("PEM");
    await step.getByRole("button", { name: "Copy Public key as PEM" }).click();
    await step.getByText("Copied").waitFor();
    const pem = await page.evaluate<string>("navigator.clipboard.readText()");
    expect(createPublicKey(pem).asymmetricKeyType).toBe("ml-dsa-65");
    expect(await textOf(step.locator(".bytes .hex").first())).toBe("UGF5IDEwMCB0byBBZGE=");
    const chosen = page.getByRole("button", { name: "TypeScript", exact: true, pressed: true });
    await page.getByRole("button", { name: "TypeScript", exact: true }).first().click();
    await expect.poll(() => chosen.count()).toBe(2);
    const calls = ["/api/grpc/sign", "/api/grpc/verify"].map((path) => expect.stringContaining(path));
    expect(await page.locator(".program").allInnerTexts()).toEqual(calls);
    await page.reload();
    await runStep(page, "Sign a message");
    expect(await step.getByLabel("Format of Public key").inputValue()).toBe("PEM");
    await unfold(page);
    await chosen.first().waitFor();
  });

  it("does not scroll sideways with values of 50,000 bytes, on a phone or a screen", async () => {
    const page = await open("sign");
    await page.getByLabel("Message", { exact: true }).fill("x".repeat(50_000));
    await runStory(page);
    await page.goto(`${stage().server.url}/#/contracts`);
    await page.locator("li.step").first().waitFor();
    for (const field of await page.locator("main input[type=text], main textarea").all())
      await field.fill("x".repeat(50_000));
    // The error message for an overlong name must fit as well.
    const outcomes = page.locator(".outcome:not(:empty), [role=alert]");
    for (const step of await page.locator("li.step:has(.fields)").all())
      await step.locator(".act button").click();
    await expect.poll(() => outcomes.count()).toBeGreaterThan(1);
    for (const path of ["contracts", "sign"]) {
      await page.goto(`${stage().server.url}/#/${path}`);
      await page.locator("li.step").first().waitFor();
      await unfold(page);
      for (const width of [390, 1440]) {
        await page.setViewportSize({ width, height: 900 });
        await expectNoScrolling(page, width);
      }
    }
  });

  it("takes apart only tokens of two JSON objects, whatever is pasted or typed", async () => {
    const path = "tokens/inspect?token=e30.bnVsbA.";
    const { page, complaints } = await visitIn(sharedContext, stage().server.url, path);
    onTestFinished(() => page.close());
    await page.getByText("This is not a token: the payload is not a JSON object.").waitFor();
    await openers["tokens/inspect"]?.(page);
    await page.getByLabel("Payload").fill("null");
    await expect.poll(() => textOf(page.locator(".outcome"))).toMatch(/^Not verified/);
    await page.getByText("Not JSON yet: it is not a JSON object.").waitFor();
    const unsigned = [{}, { sub: "grace" }].map((part) => btoa(JSON.stringify(part)).replaceAll("=", ""));
    await page.getByLabel("Token", { exact: true }).fill(`${unsigned.join(".")}.`);
    await expect.poll(() => page.getByLabel("Payload").inputValue()).toContain('"sub": "grace"');
    expect(complaints).toEqual([]);
  });

  it("shows a story anew when its reader logs out of an open server", async () => {
    const page = await open("log-in");
    await page.getByLabel("User").fill("ada");
    await page.getByRole("button", { name: "Log in" }).click();
    const logOut = page.getByRole("button", { name: "Log out" });
    await logOut.waitFor();
    await page.getByRole("navigation").getByRole("link", { name: "Sign and verify" }).click();
    await runStep(page, "Sign a message");
    await logOut.click();
    await page.locator("li.step[data-status=ready]").first().waitFor();
    expect(await page.locator("li.step[data-status=done]").count()).toBe(0);
  });

  it("compares algorithms: sorted, filtered, to scale, and measured on this server", async () => {
    const page = await open("algorithms");
    const rows = page.getByRole("region", { name: "Algorithms" }).locator("tbody tr");
    await rows.first().waitFor();
    const readNames = async () =>
      (await rows.locator("th").allInnerTexts()).map((text) => text.split("\n")[0]);
    await page.getByLabel("Family").selectOption("ML-KEM");
    for (const _press of [1, 2]) await page.getByRole("button", { name: "Public key" }).click();
    expect(await readNames()).toEqual(["ML-KEM-1024", "ML-KEM-768", "ML-KEM-512"]);
    const widths = await rows
      .locator("td:nth-child(3) .family")
      .evaluateAll((bars) => bars.map((bar) => Number.parseFloat(bar.getAttribute("width") ?? "")));
    // Logarithms of 156.8, 118.4 and 80, over 4 decades.
    expect(widths.map((width) => width.toFixed(1))).toEqual(["54.9", "51.8", "47.6"]);
    await page.getByRole("button", { name: "Measure on this server" }).click();
    await expect
      .poll(() => rows.locator("td:nth-child(6), td:nth-child(7)").allInnerTexts())
      .toEqual(Array(6).fill(expect.stringMatching(/^\d+(\.\d)?\u00a0ms$/)));
  });

  it("shows the server's activity live", async () => {
    const page = await open("activity");
    await page.getByText("No calls in this time.").waitFor();
    await page.getByRole("button", { name: "Sign 50 messages" }).click();
    const row = page
      .getByRole("region", { name: "Calls" })
      .locator("tr", { hasText: "pqc.PqcService/SignData" });
    await expect.poll(() => textOf(row.locator("td").first())).toBe("50");
    expect(await textOf(page.locator(".facts-list > div").first())).toMatch(/^Calls per second\s+[1-9]/);
  });

  it("starts with a signature that pointer and keyboard break and restore, without moving the page", async () => {
    const page = await openFirst("");
    await waitForVerdicts(page, "valid");
    const shift = await page.evaluate<number>(
      `new Promise((resolve) => {
        let sum = 0;
        new PerformanceObserver((list) => { for (const { value } of list.getEntries()) sum += value; })
          .observe({ type: "layout-shift", buffered: true });
        requestAnimationFrame(() => requestAnimationFrame(() => resolve(sum)));
      })`,
    );
    expect(shift).toBeLessThan(0.02);
    const corner = { position: { x: 2, y: 2 } };
    await page.locator(".area").click(corner);
    await expect
      .poll(() => textOf(page.locator(".telling")))
      .toBe("You flipped one of 26,472 bits, in byte 0. Both sides reject the whole signature.");
    expect(await page.locator(".verdicts").innerText()).toBe("Server invalid\nBrowser invalid");
    await page.locator(".area").click(corner);
    await waitForVerdicts(page, "valid");
    await page.getByRole("slider").focus();
    for (const key of ["ArrowRight", "ArrowRight", "Enter"]) await page.keyboard.press(key);
    await expect.poll(() => textOf(page.locator(".telling"))).toContain("in byte 2. Both sides reject");
  });

  describe("on a new server with one service", () => {
    const small = useRunningServer(["--services", "kms"]);
    const openSmall = (path: string) => open(path, { url: small().url });

    it("hides the stories of services that are not running", async () => {
      const page = await openSmall("");
      await page.locator("main").getByRole("heading", { name: "See it at work" }).waitFor();
      const others = ["Activity", "Key manager", "Audit log", "Inventory"];
      const stories = ["Managed keys", "Encryption"];
      expect(await page.locator("nav ul a").allInnerTexts()).toEqual(["Home", ...stories, ...others]);
      expect(await page.locator(".cards a").allInnerTexts()).toEqual([...stories, ...others]);
    });

    it("lists the newest records first in one inventory", async () => {
      const page = await openSmall("inventory");
      const kinds = page.getByRole("group", { name: "Kind" }).getByRole("button");
      await expect
        .poll(() => kinds.allInnerTexts())
        .toEqual([expect.stringMatching(/^All \d/), expect.stringMatching(/^Keys \d/)]);
      await page.getByRole("navigation").getByRole("link", { name: "Managed keys" }).click();
      await runStep(page, "Create a key");
      await page.getByRole("navigation").getByRole("link", { name: "Inventory" }).click();
      const first = page.getByRole("region", { name: "Records" }).locator("tbody tr").first();
      expect(await textOf(first)).toMatch(/^release-signing\s+key\s/);
      await page.getByRole("button", { name: /^Keys/ }).click();
      await first.getByRole("link", { name: "release-signing" }).click();
      await page.getByRole("heading", { level: 2, name: "release-signing" }).waitFor();
    });
  });
});
