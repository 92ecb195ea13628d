/** A filter over a list longer than one call reads. */
import { expect, it } from "vitest";
import { describeGoogle, google, idsOf } from "./google-server.ts";

describeGoogle("a filter over 1,002 key rings", () => {
  it("reads 1,000 rows in one call and continues where it stopped", async () => {
    const parent = "projects/many/locations/global";
    await google.createKeyRing({ parent, keyRingId: "wanted-1" });
    const others = Array.from({ length: 1000 }, (_, i) => `other-${i}`);
    for (let i = 0; i < others.length; i += 100)
      await Promise.all(
        others.slice(i, i + 100).map((keyRingId) => google.createKeyRing({ parent, keyRingId })),
      );
    await google.createKeyRing({ parent, keyRingId: "wanted-2" });
    const filter = "name:keyRings/wanted";
    const first = await google.listKeyRings({ parent, filter });
    expect(idsOf(first.keyRings)).toEqual(["wanted-1"]);
    const second = await google.listKeyRings({ parent, filter, pageToken: first.nextPageToken });
    expect([idsOf(second.keyRings), second.nextPageToken]).toEqual([["wanted-2"], ""]);
    const none = { parent, filter: "name:nowhere", orderBy: "create_time desc" };
    const empty = await google.listKeyRings(none);
    expect(empty.keyRings).toEqual([]);
    const rest = await google.listKeyRings({ ...none, pageToken: empty.nextPageToken });
    expect([rest.keyRings, rest.nextPageToken]).toEqual([[], ""]);
    expect(empty.nextPageToken).not.toBe("");
  }, 300_000);
});
