/** The chapter of a story in which devices prove who they are; a challenge that dies of age is left to a clock. */
import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from "jose";
import { describe, expect, it } from "vitest";
import { AuthenticateResponseSchema } from "#gen/iot/iot_service_pb.ts";
import { flipBit } from "../support/bytes.ts";
import type { Stage } from "./iot-story.ts";

const lifeMs = 60_000;
const tokenLifeSeconds = 3600;

export function tellOfAuthentication({ iot, nextUrl, past, idOf, meter, camera }: Stage): void {
  /** All of the answer: no token is among it. */
  const no = (reason: string) => create(AuthenticateResponseSchema, { status: "success", reason });
  const challengeFor = async (name: string) => (await iot.issueChallenge({ deviceId: idOf(name) })).challenge;
  /** What a device makes of a challenge. */
  const answer = (challenge: Uint8Array) => ({
    deviceId: idOf("meter"),
    challenge,
    signature: meter.sign(challenge),
  });

  describe("IssueChallenge", () => {
    it("gives 32 bytes that live for 60 seconds, others each time", async () => {
      const deviceId = idOf("meter");
      const { challenge, expiresAt } = await iot.issueChallenge({ deviceId });
      const issuedMs = (expiresAt ? timestampMs(expiresAt) : 0) - lifeMs;
      expect(challenge).toHaveLength(32);
      expect(issuedMs).toBeGreaterThanOrEqual(past().beganMs);
      expect(issuedMs).toBeLessThanOrEqual(Date.now());
      expect((await iot.issueChallenge({ deviceId })).challenge).not.toEqual(challenge);
    });
  });

  describe("Authenticate", () => {
    let used: Uint8Array;

    it("gives a device that signed its challenge a token that jose verifies", async () => {
      used = await challengeFor("meter");
      const { token = "", expiresAt, ...verdict } = await iot.authenticate(answer(used));
      expect(verdict).toMatchObject({ status: "success", authenticated: true, reason: "" });
      const response = await fetch(`${nextUrl()}/api/grpc/auth/jwks`);
      const jwks = (await response.json()) as JSONWebKeySet;
      const { payload, protectedHeader } = await jwtVerify(token, createLocalJWKSet(jwks));
      const { iat = 0, exp = 0 } = payload;
      expect(protectedHeader).toMatchObject({ alg: "ML-DSA-65", typ: "JWT", use: "iot" });
      expect(payload).toEqual({ sub: idOf("meter"), iat, exp: iat + tokenLifeSeconds });
      expect(expiresAt && timestampMs(expiresAt)).toBe(exp * 1000);
    });

    it("does not take a challenge again", async () => {
      expect(await iot.authenticate(answer(used))).toEqual(no("CHALLENGE_USED"));
    });

    it("takes a challenge once if it comes twice at one moment", async () => {
      const signed = answer(await challengeFor("meter"));
      const verdicts = await Promise.all([iot.authenticate(signed), iot.authenticate(signed)]);
      expect(verdicts.map(({ reason }) => reason).sort()).toEqual(["", "CHALLENGE_USED"]);
      expect(verdicts.filter(({ authenticated }) => authenticated)).toHaveLength(1);
    });

    it("does not take another device's challenge, which stays that device's to use", async () => {
      const challenge = await challengeFor("camera");
      expect(await iot.authenticate(answer(challenge))).toEqual(no("CHALLENGE_FOREIGN"));
      const byOwner = { deviceId: idOf("camera"), challenge, signature: camera.sign(challenge) };
      expect(await iot.authenticate(byOwner)).toMatchObject({ authenticated: true, reason: "" });
    });

    it("does not take a challenge that was never issued", async () => {
      expect(await iot.authenticate(answer(flipBit(used)))).toEqual(no("CHALLENGE_UNKNOWN"));
    });

    it("does not take another's signature, and uses the challenge up with it", async () => {
      const signed = answer(await challengeFor("meter"));
      const signature = camera.sign(signed.challenge);
      const verdict = await iot.authenticate({ ...signed, signature });
      expect(verdict).toEqual(no("SIGNATURE_INVALID"));
      expect(await iot.authenticate(signed)).toEqual(no("CHALLENGE_USED"));
    });
  });
}
