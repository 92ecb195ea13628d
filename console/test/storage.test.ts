import { afterEach, describe, expect, it, vi } from "vitest";
import { readStored, store } from "../page/storage.ts";

/** A browser that blocks its storage throws at each access. */
function blockStorage(): void {
  vi.spyOn(globalThis, "localStorage", "get").mockImplementation(() => {
    throw new DOMException("Access is denied for this document.", "SecurityError");
  });
}

afterEach(() => void vi.restoreAllMocks());

describe("blocked browser storage", () => {
  it("appears empty, and forgets what is stored", () => {
    blockStorage();
    store("localStorage", "qsp-theme", "Dark");
    expect(readStored("localStorage", "qsp-theme")).toBeUndefined();
  });
});
