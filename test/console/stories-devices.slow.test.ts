import type { Request } from "playwright-core";
import { describe, expect, it } from "vitest";
import { checksOf, lacksBrowser, needsBrowser } from "./browser.ts";
import { meddle, openStory, recordCalls, runSteps, setUpStage, tellStory } from "./telling.ts";

const making = "The device and its vendor generate their keys";
const registering = "Register the device";
const authenticating = "The device authenticates";
const pretending = "Another device uses its ID";
const sending = "The device sends a reading";
const altering = "An attacker changes the reading in transit";
const installing = "The vendor sends firmware";

function authorizationOf(calls: readonly Request[]): (string | undefined)[] {
  return calls.map((call) => call.headers().authorization);
}

const title = `the story of a device, in a real browser${needsBrowser}`;
describe.skipIf(lacksBrowser)(title, { timeout: 180_000 }, () => {
  const stage = setUpStage();

  describe("told to its end", () => {
    const told = tellStory(stage, "devices");

    it("says what came of each step", () => {
      expect(told().outcomes).toEqual([
        "The device's public key has 1,312 bytes, the vendor's 2,592 bytes.",
        expect.stringMatching(/^REGISTERED: the device ID is device-[\w-]+\.$/),
        "The server authenticated the device and issued a token.",
        "Not authenticated: CHALLENGE_USED.",
        "Not authenticated: SIGNATURE_INVALID.",
        expect.stringMatching(/^The token has [\d,]+ characters, for device-[\w-]+\.$/),
        "The server accepts reading 1: 17 bytes, and a signature of 2,420 bytes.",
        "The server rejects it: SIGNATURE_INVALID.",
        "The server rejects reading 1 again: SEQUENCE_OLD.",
        "FIRMWARE_ACCEPTED: 4,096 bytes, and a signature of 4,627 bytes.",
        "FIRMWARE_REJECTED: VERSION_ROLLBACK.",
        "FIRMWARE_REJECTED: VENDOR_MISMATCH.",
        "FIRMWARE_REJECTED: SIGNATURE_INVALID.",
      ]);
    });

    it("says which side checked what", () => {
      expect(told().checks).toEqual({
        [registering]: ["browser: equal", "browser: none"],
        [authenticating]: ["server: valid", "browser: valid"],
        "The same answer again": ["server: refused"],
        [pretending]: ["server: not valid", "browser: not valid"],
        "Decode its token": ["browser: equal", "browser: valid"],
        [sending]: ["server: valid", "browser: valid"],
        [altering]: ["server: not valid", "browser: not valid"],
        "An attacker repeats an old reading": ["browser: valid", "server: old"],
        [installing]: ["browser: equal", "browser: valid", "server: accepted"],
        "Older firmware with a valid signature": [
          "browser: equal",
          "browser: valid",
          "server: VERSION_ROLLBACK",
        ],
        "Firmware of another vendor": [
          "browser: valid",
          "browser: equal",
          "browser: not valid",
          "server: VENDOR_MISMATCH",
        ],
        "Firmware with one bit changed": [
          "browser: equal",
          "browser: not valid",
          "server: SIGNATURE_INVALID",
        ],
      });
    });
  });

  describe("step by step", () => {
    const page = openStory(stage, "devices");

    it("registers the public keys and nothing else of them", async () => {
      const calls = recordCalls(page(), "RegisterDevice");
      await page().getByLabel("Name of the device").fill("Pump 7");
      await runSteps(page(), making, registering);
      expect(calls.map((call) => call.postDataJSON())).toEqual([
        {
          deviceName: "Pump 7",
          deviceType: "thermometer",
          publicKey: expect.stringMatching(/^[\w+/=]{1752}$/),
          vendorPublicKey: expect.stringMatching(/^[\w+/=]{3456}$/),
          signingContexts: true,
        },
      ]);
    });

    it("finds that the server registered another key", async () => {
      const publicKey = Buffer.alloc(1312).toString("base64");
      await meddle(page(), "RegisterDevice", { answer: (device) => ({ ...device, publicKey }) });
      await runSteps(page(), making, registering);
      expect(await checksOf(page(), registering)).toEqual(["browser: different", "browser: none"]);
    });

    it("finds that the server made a secret key for the device", async () => {
      const privateKey = Buffer.alloc(32).toString("base64");
      await meddle(page(), "RegisterDevice", { answer: (device) => ({ ...device, privateKey }) });
      await runSteps(page(), making, registering);
      expect(await checksOf(page(), registering)).toEqual(["browser: equal", "browser: there is one"]);
    });

    it("believes no server that calls another device authenticated", async () => {
      await meddle(page(), "Authenticate", { answer: (verdict) => ({ ...verdict, authenticated: true }) });
      await runSteps(page(), making, registering, pretending);
      expect(await checksOf(page(), pretending)).toEqual(["server: valid", "browser: not valid"]);
    });

    it("sends readings with the token that the device got, and answers challenges without any", async () => {
      const answered = page().waitForResponse(/\/Authenticate$/);
      const calls = ["IssueChallenge", "Authenticate", "SendTelemetry"].map((rpc) =>
        recordCalls(page(), rpc),
      );
      await runSteps(page(), making, registering, authenticating, sending);
      const { token } = await (await answered).json();
      expect(calls.map(authorizationOf)).toEqual([[undefined], [undefined], [`Bearer ${token}`]]);
    });

    it("sends the reader's own readings, each with a number one higher", async () => {
      const calls = recordCalls(page(), "SendTelemetry");
      await page().getByLabel("Reading").fill("grüße");
      await runSteps(page(), making, registering, authenticating, sending, sending);
      const readings = calls.map((call) => call.postDataJSON());
      expect(readings.map(({ telemetry, sequence }) => [telemetry, sequence])).toEqual([
        [Buffer.from("grüße").toString("base64"), 1],
        [Buffer.from("grüße").toString("base64"), 2],
      ]);
    });

    it("believes no server that takes a changed reading", async () => {
      await meddle(page(), "SendTelemetry", { answer: (verdict) => ({ ...verdict, verified: true }) });
      await runSteps(page(), making, registering, authenticating, sending, altering);
      expect(await checksOf(page(), altering)).toEqual(["server: valid", "browser: not valid"]);
    });

    it("finds that the server got another image than was sent", async () => {
      const firmware = Buffer.alloc(4096).toString("base64");
      await meddle(page(), "UpdateFirmware", { request: (update) => ({ ...update, firmware }) });
      await runSteps(page(), making, registering, installing);
      expect(await checksOf(page(), installing)).toEqual([
        "browser: different",
        "browser: valid",
        "server: SIGNATURE_INVALID",
      ]);
    });
  });
});
