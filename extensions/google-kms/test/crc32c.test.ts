import { describe, expect, it } from "vitest";
import { bytesOf } from "../../../test/support/bytes.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { invalidArgument } from "../../../test/support/refusals.ts";
import { checkCrc32c, computeCrc32c, packCrc32c } from "../crc32c.ts";

const ascending = Uint8Array.from({ length: 32 }, (_, index) => index);

describe("computeCrc32c", () => {
  // RFC 3720, appendix B.4, which prints each CRC's bytes in wire order.
  const rows: [what: string, bytes: Uint8Array, crc: number][] = [
    ["32 bytes of zeroes", new Uint8Array(32), 0x8a9136aa],
    ["32 bytes of ones", new Uint8Array(32).fill(0xff), 0x62a8ab43],
    ["32 bytes of incrementing 00..1f", ascending, 0x46dd794e],
    ["32 bytes of decrementing 1f..00", ascending.toReversed(), 0x113fdb5c],
    // The check value for CRC-32/ISCSI in the catalogue of parametrised CRC algorithms.
    ["123456789", bytesOf("123456789"), 0xe3069283],
    ["nothing", new Uint8Array(), 0],
  ];
  it.each(rows)("of %s", (_what, bytes, crc) => {
    expect(computeCrc32c(bytes)).toBe(crc);
  });
});

describe("checkCrc32c", () => {
  const data = bytesOf("hello");

  it("accepts the right checksum, and verifies nothing without one", () => {
    expect(checkCrc32c("dataCrc32c", data, packCrc32c(data))).toBe(true);
    expect(checkCrc32c("dataCrc32c", data, undefined)).toBe(false);
  });

  it.each([0n, -1n, packCrc32c(data) + 2n ** 32n, packCrc32c(data) ^ 1n])("rejects %i", async (crc) => {
    const checking = Promise.try(() => checkCrc32c("dataCrc32c", data, crc));
    expect(await refusal(checking)).toEqual(invalidArgument("CHECKSUM_MISMATCH", "dataCrc32c"));
  });
});
