import { createHash, createHmac, hkdfSync } from "node:crypto";
import { ml_kem1024 } from "@noble/post-quantum/ml-kem.js";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { checksOf, lacksBrowser, needsBrowser, stepOf, textOf } from "./browser.ts";
import { meddle, openStory, recordCalls, runSteps, setUpStage, tellStory } from "./telling.ts";

const meeting = "Get the gateway's public keys";
const registering = "Register your end";
const shaking = "Agree on a key";
const sending = "Send a packet";
const receiving = "Receive a packet";
const altering = "A packet with one bit changed";
const rekeying = "Replace the key";
const swapping = "An attacker in the middle swaps the keys";
const catching = "The attack is detected";
const toSession = [meeting, registering, shaking];
const distrust = "This handshake is not valid. Your browser does not use its key.";

const mallory = ml_kem1024.keygen();

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}

/** Registers Mallory's key in place of the page's, and lets the page see its own. */
async function swapKeys(page: Page): Promise<void> {
  let own: unknown;
  await meddle(page, "RegisterPeer", {
    request: (peer) => {
      own = peer.publicKey;
      return { ...peer, publicKey: toBase64(mallory.publicKey) };
    },
    answer: (peer) => ({ ...peer, publicKey: own }),
  });
}

/** What Mallory can make of a handshake for a key of the page's: all but the gateway's signature. */
function forgeHandshake(tunnelId: unknown, publicKey: string): Record<string, unknown> {
  const { cipherText, sharedSecret } = ml_kem1024.encapsulate(Buffer.from(publicKey, "base64"));
  const keyHash = createHash("sha256").update(Buffer.from(publicKey, "base64")).digest("hex");
  const transcript = `${tunnelId}:${toBase64(cipherText)}:${keyHash}`;
  const info = "quantum-safe-playground vpn key confirmation per direction";
  const salt = createHash("sha256").update(transcript).digest();
  const confirmationKey = new Uint8Array(hkdfSync("sha256", sharedSecret, salt, info, 32));
  const keyConfirmation = createHmac("sha256", confirmationKey).update(transcript).digest("base64");
  return { ciphertext: toBase64(cipherText), transcript, keyConfirmation };
}

const title = `the story of a tunnel, in a real browser${needsBrowser}`;
describe.skipIf(lacksBrowser)(title, { timeout: 180_000 }, () => {
  const stage = setUpStage();

  describe("told to its end", () => {
    const told = tellStory(stage, "tunnel");

    it("says what came of each step", () => {
      expect(told().outcomes).toEqual([
        "A key to encapsulate to, 1,568 bytes, and an identity, 1,952 bytes.",
        expect.stringMatching(/^Your address is 10\.8\.\d+\.\d+, in tunnel-[\w-]+\.$/),
        "Both ends have the same key, and the gateway is authentic.",
        "20 bytes became a packet of 48 bytes, and the gateway opened it.",
        "Your browser opened a packet of 43 bytes.",
        "The gateway refuses it: PACKET_REPLAYED.",
        "Neither end opens it. The gateway answers PACKET_INVALID.",
        "Key 2 is in use. A packet under the previous key is refused: PACKET_INVALID.",
        "She shares one key with the gateway and another with you, and could read everything.",
        "Your browser uses the key in none of her attempts.",
        "The tunnel is REMOVED. A packet for it is refused: TUNNEL_NOT_FOUND.",
      ]);
    });

    it("says which side checked what", () => {
      const trusted = ["browser: equal", "browser: valid", "browser: equal"];
      expect(told().checks).toEqual({
        [meeting]: ["browser: valid"],
        [registering]: ["browser: none"],
        [shaking]: [...trusted, "server: valid"],
        [sending]: ["server: valid", "browser: equal"],
        [receiving]: ["browser: valid"],
        [altering]: ["browser: not valid", "server: not valid"],
        [rekeying]: [...trusted, "browser: does not open", "browser: opens", "server: opens"],
        [catching]: [
          // The gateway's transcript, passed on.
          ...["browser: different", "browser: valid", "browser: equal"],
          // Another one, under the same signature.
          ...["browser: equal", "browser: not valid", "browser: equal", "server: not valid"],
          // The other one, signed by Mallory.
          ...[
            "browser: equal",
            "browser: not valid",
            "browser: equal",
            "server: not valid",
            "browser: valid",
          ],
        ],
      });
    });
  });

  describe("step by step", () => {
    const page = openStory(stage, "tunnel");

    it("does the next step from its diagram, which fills in and names the refusal of a replay", async () => {
      const diagram = page().getByRole("region", { name: "Who sends what" });
      const rows = diagram.locator(".act-row[data-status=done]");
      for (const at of [1, 2, 3, 4, 5, 6]) {
        await diagram.getByRole("button", { name: `Step ${at} of 11` }).click();
        await rows.nth(at - 1).waitFor();
      }
      const replay = rows.last().locator(".row[data-attack=true][data-verdict=bad]");
      expect(await textOf(replay)).toContain("refused: PACKET_REPLAYED");
      expect(await replay.textContent()).toContain("Mallory (attacker) to Gateway");
    });

    it("leads from its diagram to the step", async () => {
      await page().getByRole("button", { name: shaking }).first().click();
      const focused = "document.activeElement.closest('li.step')?.querySelector('h2').textContent";
      expect(await page().evaluate(focused)).toBe(shaking);
    });

    it("registers the public key and keeps the secret one", async () => {
      const calls = recordCalls(page(), "RegisterPeer");
      await page().getByLabel("Name of your end").fill("Phone");
      await runSteps(page(), meeting, registering);
      expect(calls.map((call) => call.postDataJSON())).toEqual([
        { peerName: "Phone", publicKey: expect.stringMatching(/^[\w+/=]{2092}$/) },
      ]);
    });

    it("asks for one key per direction", async () => {
      const calls = recordCalls(page(), "Handshake");
      await runSteps(page(), ...toSession);
      expect(calls.map((call) => call.postDataJSON())).toEqual([
        { tunnelId: expect.any(String), keyForm: "PER_DIRECTION" },
      ]);
    });

    it("carries what the reader wants, both ways, and never in the clear", async () => {
      const calls = recordCalls(page(), "ReceivePacket");
      await page().getByLabel("Payload, to the gateway").fill("grüße");
      await page().getByLabel("Payload, to you").fill("zurück");
      await runSteps(page(), ...toSession, sending, receiving);
      expect(await textOf(stepOf(page(), sending).locator(".facts-list"))).toContain("grüße");
      expect(await textOf(stepOf(page(), receiving).locator(".facts-list"))).toContain("zurück");
      const packets = calls.map((call) => Buffer.from(call.postDataJSON().packet, "base64"));
      expect(packets.map((packet) => packet.length)).toEqual([Buffer.byteLength("grüße") + 28]);
      expect(packets[0]?.includes("grüße")).toBe(false);
    });

    it("goes on with the newest key after a rekey, and after another", async () => {
      await runSteps(page(), ...toSession, rekeying, sending, receiving);
      expect(await checksOf(page(), receiving)).toEqual(["browser: valid"]);
      expect(await runSteps(page(), rekeying)).toContain("Key 3 is in use.");
      expect(await runSteps(page(), sending)).toContain("the gateway opened it");
    });

    it("uses no key of a handshake whose peer key was swapped on the way", async () => {
      await swapKeys(page());
      expect(await runSteps(page(), ...toSession)).toBe(distrust);
      expect(await checksOf(page(), shaking)).toEqual([
        "browser: different",
        "browser: valid",
        "browser: different",
        "server: valid",
      ]);
      expect(await runSteps(page(), sending)).toContain("SESSION_MISSING");
    });

    it("uses no key of an intermediary who forges all but the gateway's signature", async () => {
      const registered = page().waitForRequest(/\/RegisterPeer$/);
      await runSteps(page(), meeting, registering);
      const { publicKey } = (await registered).postDataJSON();
      let tunnelId: unknown;
      await meddle(page(), "Handshake", {
        request: (it) => {
          ({ tunnelId } = it);
          return it;
        },
        answer: (half) => ({ ...half, ...forgeHandshake(tunnelId, publicKey) }),
      });
      expect(await runSteps(page(), shaking)).toBe(distrust);
      expect(await checksOf(page(), shaking)).toEqual([
        "browser: equal",
        "browser: not valid",
        "browser: equal",
        "server: not valid",
      ]);
      expect(await runSteps(page(), receiving)).toContain("SESSION_MISSING");
    });

    it("uses no key of a rekey that the gateway did not sign", async () => {
      const signature = toBase64(Buffer.alloc(3309));
      await meddle(page(), "Rekey", { answer: (half) => ({ ...half, signature }) });
      expect(await runSteps(page(), ...toSession, rekeying)).toBe(distrust);
      expect(await runSteps(page(), sending)).toContain("SESSION_MISSING");
    });

    it("believes no server that calls Mallory's signature the gateway's", async () => {
      await meddle(page(), "VerifyHandshake", { answer: (verdict) => ({ ...verdict, valid: true }) });
      expect(await runSteps(page(), meeting, swapping, catching)).toBe(
        "Your browser uses the key in none of her attempts.",
      );
      const checks = await checksOf(page(), catching);
      expect(checks.filter((check) => check === "server: valid")).toHaveLength(2);
      expect(checks.filter((check) => check === "browser: not valid")).toHaveLength(2);
    });

    it("finds that the gateway read something else", async () => {
      const data = toBase64(Buffer.from("something else"));
      await meddle(page(), "ReceivePacket", { answer: (it) => ({ ...it, data }) });
      await runSteps(page(), ...toSession, sending);
      expect(await checksOf(page(), sending)).toEqual(["server: valid", "browser: different"]);
    });

    it("opens no packet that was changed on its way from the gateway", async () => {
      const packet = toBase64(Buffer.alloc(43));
      await meddle(page(), "SendPacket", { answer: (it) => ({ ...it, packet }) });
      await runSteps(page(), ...toSession, receiving);
      expect(await checksOf(page(), receiving)).toEqual(["browser: not valid"]);
    });
  });

  // A script that runs before the page does stays in its tab.
  describe("over an insecure line", () => {
    const page = openStory(stage, "tunnel");

    it("tells the reader that the browser does not encrypt there", async () => {
      await page().addInitScript("Object.defineProperty(Crypto.prototype, 'subtle', { value: undefined })");
      await page().reload();
      expect(await runSteps(page(), ...toSession)).toContain("ORIGIN_INSECURE");
    });
  });
});
