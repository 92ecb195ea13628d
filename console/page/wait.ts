/** Waits for something that the server does in its own time. */
import { Failure } from "./failure.ts";

const pollMs = 500;
const maxPolls = 20;

/**
 * Asks again until the answer is yes, for ten seconds.
 *
 * @throws Failure
 */
export async function waitUntil(
  isReady: () => boolean | Promise<boolean>,
  reason: string,
  message: string,
): Promise<void> {
  for (let polls = 0; polls < maxPolls; polls += 1) {
    if (await isReady()) return;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  throw new Failure(reason, "UNAVAILABLE", message);
}
