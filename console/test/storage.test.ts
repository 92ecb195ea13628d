import { expect, it, vi } from "vitest";
import { readStored, store } from "../page/storage.ts";

it("blocked browser storage appears empty, and forgets what is stored", () => {
  // A browser that blocks its storage throws at each access.
  const blocked = vi.spyOn(globalThis, "localStorage", "get").mockImplementation(() => {
    throw new DOMException("Access is denied for this document.", "SecurityError");
  });
  store("localStorage", "qsp-theme", "Dark");
  expect(readStored("localStorage", "qsp-theme")).toBeUndefined();
  blocked.mockRestore();
});
