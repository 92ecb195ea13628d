/** Rotates the master key of a place in this process. */
import { openDatabase } from "../../src/open-store.ts";
import { rewrapStore } from "../../src/secrets/rewrap.ts";
import type { Place } from "./on-both.ts";

export async function rewrap(
  place: Place,
  masterKey = place.masterKey,
  onProgress: (moved: number, total: number) => void = () => {},
) {
  const database = await openDatabase(place.location, "existing");
  try {
    return await rewrapStore(database, masterKey, onProgress);
  } finally {
    await database.close();
  }
}
