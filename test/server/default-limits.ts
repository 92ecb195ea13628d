/** Default server limits, for tests that start a server of their own. */
import { readConfig } from "../../src/config.ts";
import type { ServerLimits } from "../../src/server/limits.ts";
import { toBodyLimits } from "../../src/server/limits.ts";
import { serverSettings } from "../../src/settings/server-settings.ts";
import type { BodyLimits } from "../../src/transcoding/body.ts";

export const defaultLimits: ServerLimits = serverSettings(readConfig([], {})).limits;

/** The same for a transcoder without a server. */
export const defaultBodyLimits: BodyLimits = toBodyLimits(defaultLimits);
