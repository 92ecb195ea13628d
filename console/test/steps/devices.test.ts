import { ml_dsa44, ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it, onTestFinished } from "vitest";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { settings } from "../../page/settings.ts";
import {
  authenticating,
  making,
  pretending,
  reading,
  registering,
} from "../../page/stories/devices/enrolment-steps.tsx";
import { alteringReading, measuring, repeatingReading } from "../../page/stories/devices/page.tsx";
import { createFakeCaller, runStep } from "./fake-caller.ts";

const issuer = ml_dsa65.keygen();
const [header, payload] = [{ alg: "ML-DSA-65", kid: "issuer" }, { sub: "device-1" }].map((part) =>
  Buffer.from(JSON.stringify(part)).toString("base64url"),
);
const tokenSignature = ml_dsa65.sign(Buffer.from(`${header}.${payload}`), issuer.secretKey);
const token = `${header}.${payload}.${Buffer.from(tokenSignature).toString("base64url")}`;
const pub = Buffer.from(issuer.publicKey).toString("base64url");

const isSent = (header: Headers, token: string) => header.get("authorization") === token;

/**
 * A server that believes everybody with the right token: none before the log-in, then the device's own.
 *
 * @param privateKey included in the answer to a registration
 */
function startServer({ privateKey }: { readonly privateKey?: Uint8Array } = {}) {
  return createFakeCaller(({ service }) => {
    service(IotService, {
      registerDevice({ publicKey = new Uint8Array(), signingContexts }) {
        expect(signingContexts).toBe(true);
        return { deviceId: "device-1", publicKey, ...(privateKey && { privateKey }) };
      },
      issueChallenge: () => ({ challenge: new Uint8Array(32) }),
      authenticate: (_request, { requestHeader }) => ({ authenticated: isSent(requestHeader, ""), token }),
      sendTelemetry: (_request, { requestHeader }) => ({ verified: isSent(requestHeader, token) }),
    });
    service(TokenService, {
      getJwks: () => ({ keys: [{ kid: "issuer", kty: "AKP", alg: "ML-DSA-65", pub }] }),
    });
  });
}

const caller = startServer();
const keys = await runStep(making, caller, {});
const registered = await runStep(registering, caller, { making: keys, name: "Pump" });
const authenticated = await runStep(authenticating, caller, { registering: registered });
const given = { registering: registered, authenticating: authenticated };
const sent = await runStep(measuring, caller, { ...given, text: "grüße" }, { current: 0 });

describe("registering", () => {
  it("finds the device's own key, and no secret key", () => {
    expect(registered).toMatchObject({ isSameKey: true, hasNoSecret: true });
  });

  it("detects a secret key in the answer", async () => {
    const leaking = startServer({ privateKey: new Uint8Array(32) });
    const found = await runStep(registering, leaking, { making: keys, name: "Pump" });
    expect(found).toMatchObject({ hasNoSecret: false });
  });
});

describe("authenticating", () => {
  it("signs the challenge with its own context", () => {
    expect(authenticated.verdicts).toEqual({ server: true, browser: true });
    const { challenge, signature } = authenticated;
    expect(ml_dsa44.verify(signature, challenge, keys.device.publicKey)).toBe(false);
  });

  it("detects that a different device signed", async () => {
    const { verdicts } = await runStep(pretending, caller, given);
    expect(verdicts).toEqual({ server: true, browser: false });
  });
});

describe("reading", () => {
  it("verifies the token with the published key", async () => {
    settings.services.add(TokenService.typeName);
    onTestFinished(() => void settings.services.delete(TokenService.typeName));
    const found = await runStep(reading, caller, given);
    expect(found).toMatchObject({ isSubject: true, isSigned: true });
  });

  it("leaves the signature unchecked if no keys are published", async () => {
    const found = await runStep(reading, caller, given);
    expect(found.isSigned).toBeUndefined();
  });

  it("detects that the token is for a different device", async () => {
    const other = { ...registered, deviceId: "device-2" };
    const found = await runStep(reading, caller, { ...given, registering: other });
    expect(found).toMatchObject({ isSubject: false });
  });
});

describe("readings", () => {
  it.each([0, 1])(
    "are numbered consecutively, and signed after their 8-byte number: after %i",
    async (current) => {
      const { signed, verdicts } = await runStep(measuring, caller, { ...given, text: "grüße" }, { current });
      expect(Buffer.from(signed)).toEqual(
        Buffer.from(`\0\0\0\0\0\0\0${String.fromCharCode(current + 1)}grüße`),
      );
      expect(verdicts).toEqual({ server: true, browser: true });
    },
  );

  it("are found changed, even if the server disagrees", async () => {
    const { verdicts } = await runStep(alteringReading, caller, { ...given, measuring: sent });
    expect(verdicts).toEqual({ server: true, browser: false });
  });

  it("stay signed when replayed", async () => {
    const repeated = await runStep(repeatingReading, caller, { ...given, measuring: sent });
    const { sequence, verdicts } = repeated;
    expect({ sequence, ...verdicts }).toEqual({ sequence: 1, server: true, browser: true });
  });
});
