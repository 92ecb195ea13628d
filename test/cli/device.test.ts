import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { qsp, qspDone, qspJson, type RunOptions, timeout, useServer } from "./qsp.ts";

const server = useServer();

async function registered(...options: string[]) {
  const place = server.place();
  const { deviceId } = await qspJson(["device", "register", "thermometer", ...options], place);
  return { ...place, deviceId: String(deviceId) };
}

const stateOf = ({ cwd }: RunOptions) => JSON.parse(readFileSync(join(cwd, "device.json"), "utf8"));

function changeState(place: RunOptions, change: Record<string, unknown>): void {
  writeFileSync(join(place.cwd, "device.json"), JSON.stringify({ ...stateOf(place), ...change }));
}

describe("qsp device register", { timeout }, () => {
  it("makes a key that stays here, in a file for its owner alone", async () => {
    const place = await registered();
    expect(statSync(join(place.cwd, "device.json")).mode & 0o777).toBe(0o600);
    expect(stateOf(place)).toMatchObject({ deviceId: place.deviceId, nextSequence: 1 });
    const { devices } = await server.client(IotService).listDevices({});
    const device = devices.find(({ deviceId }) => deviceId === place.deviceId);
    expect(device).toMatchObject({ deviceName: "thermometer", simulated: false, algorithm: "ML-DSA-44" });
  });

  it("leaves a device that is there, and registers no other", async () => {
    const place = await registered();
    const before = stateOf(place);
    const { totalSize } = await server.client(IotService).listDevices({ pageSize: 1 });
    expect(await qsp(["device", "register"], place)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("device.json already exists"),
    });
    expect(stateOf(place)).toEqual(before);
    expect((await server.client(IotService).listDevices({ pageSize: 1 })).totalSize).toBe(totalSize);
  });

  it("leaves no file behind where the server refuses", async () => {
    const place = server.place();
    const { code } = await qsp(["device", "register", "x".repeat(256)], place);
    expect(code).toBe(3);
    expect(() => statSync(join(place.cwd, "device.json"))).toThrow();
  });
});

describe("qsp device authenticate", { timeout }, () => {
  it("signs a challenge, and keeps the token with the key without printing it", async () => {
    const place = await registered();
    const stdout = await qspDone(["device", "authenticate", "--json"], place);
    expect(JSON.parse(stdout)).toMatchObject({ authenticated: true, reason: "" });
    const { token } = stateOf(place);
    expect(token).toMatch(/^eyJ/);
    expect(stdout).not.toContain(token);
  });

  it("answers no for a device with another key", async () => {
    const [place, other] = [await registered(), await registered()];
    changeState(place, { secretKeyPem: stateOf(other).secretKeyPem });
    const { code, stdout } = await qsp(["device", "authenticate"], place);
    expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining("SIGNATURE_INVALID") });
  });
});

describe("qsp device send", { timeout }, () => {
  it("signs readings with numbers that go up", async () => {
    const place = await registered();
    for (const sequence of [1, 2]) {
      expect(await qspDone(["device", "send", "21.5"], place)).toBe(`reading ${sequence} is verified\n`);
    }
    expect(stateOf(place).nextSequence).toBe(3);
  });

  it("uses a number up before it sends, so that a lost answer makes no number go out twice", async () => {
    const place = await registered();
    const nowhere = "http://127.0.0.1:1";
    changeState(place, { url: nowhere });
    expect((await qsp(["device", "send", "21.5"], { ...place, url: nowhere })).code).toBe(4);
    expect(stateOf(place).nextSequence).toBe(2);
  });

  it("answers no to a number that was accepted before", async () => {
    const place = await registered();
    await qspDone(["device", "send", "21.5"], place);
    changeState(place, { nextSequence: 1 });
    expect(await qsp(["device", "send", "21.5"], place)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("SEQUENCE_OLD"),
    });
  });

  it("refuses a device of another server, and one that is none", async () => {
    const place = await registered();
    changeState(place, { url: "http://127.0.0.1:1" });
    expect(await qsp(["device", "send", "x"], place)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("http://127.0.0.1:1"),
    });
    writeFileSync(join(place.cwd, "device.json"), "{}");
    expect(await qsp(["device", "send", "x"], place)).toMatchObject({ code: 2 });
  });
});

describe("qsp device stream", { timeout }, () => {
  it("sends each line as a reading, also a last one without an end, and prints an answer each", async () => {
    const place = await registered();
    const stdout = await qspDone(["device", "stream"], { ...place, stdin: "21.5\r\n\n21.6\n21.7" });
    expect(stdout.trimEnd().split("\n")).toEqual(
      [1, 2, 3].map((sequence) => `reading ${sequence} is verified`),
    );
    expect(await qspDone(["device", "send", "21.8"], place)).toMatch(/is verified/);
  });

  it("answers no if one reading is not verified, and goes on", async () => {
    const place = await registered();
    for (let i = 0; i < 2; i += 1) await qspDone(["device", "send", "21.5"], place);
    changeState(place, { nextSequence: 2 });
    const { code, stdout } = await qsp(["device", "stream"], { ...place, stdin: "a\nb\n" });
    expect(code).toBe(1);
    expect(stdout).toBe("reading 2 is NOT verified: SEQUENCE_OLD\nreading 3 is verified\n");
  });
});

describe("qsp device firmware", { timeout }, () => {
  async function withImage() {
    const place = server.place();
    writeFileSync(join(place.cwd, "image"), Buffer.alloc(1_500_000, "image"));
    await qspDone(["keygen", "vendor", "--algorithm", "ML-DSA-87"], place);
    await qspDone(["sign", "image", "--sha256", "--key-file", "vendor.key"], place);
    return place;
  }
  const line = ["device", "firmware", "image", "--signature", "image.sig"];

  it("has an image checked without a device", async () => {
    const place = await withImage();
    expect(await qspJson([...line, "--vendor-key", "vendor.pub"], place)).toMatchObject({
      result: "FIRMWARE_ACCEPTED",
    });
  });

  it("answers no to an image that was changed", async () => {
    const place = await withImage();
    writeFileSync(join(place.cwd, "image"), "another");
    expect(await qsp([...line, "--vendor-key", "vendor.pub"], place)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("SIGNATURE_INVALID"),
    });
  });

  it("takes the vendor that was pinned when the device was registered, and no older version", async () => {
    const place = await withImage();
    await qspDone(["device", "register", "--vendor-key", "vendor.pub"], place);
    await qspDone([...line, "--version", "2"], place);
    expect(await qsp([...line, "--version", "1"], place)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("VERSION_ROLLBACK"),
    });
  });

  it("needs a vendor's key where there is no device", async () => {
    const place = await withImage();
    expect(await qsp(line, place)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--vendor-key"),
    });
  });
});
