/** Command-line settings for verifiable logs. */
import {
  type AddedSettings,
  ConfigError,
  defineSwitch,
  defineText,
  type Setting,
} from "../../src/config/setting.ts";

/** c2sp.org/tlog-checkpoint allows neither spaces nor plus signs in it. */
export const logOrigin: Setting<string> = {
  name: "log-origin",
  fallback: "",
  valueName: "name",
  meaning:
    "Name of the verifiable logs in checkpoints: their URL without https://, such as logs.example.com/api/logs. Default: derived from the store's key. All servers that share a store need the same name.",
  read(value) {
    if (value === "" || /^[a-z0-9]([a-z0-9./:_-]{0,126}[a-z0-9])?$/i.test(value)) return value;
    throw new ConfigError(
      `"${value}" is not a name such as logs.example.com/api/logs: up to 128 letters, digits and ./:_-`,
    );
  },
};

export const auditLogPublic = defineSwitch(
  "audit-log-public",
  "Publishes all audit entries, including user and key names, in the verifiable log; by default only their hashes.",
);

export const witnesses = defineText(
  "witnesses",
  "",
  "file",
  "File with the verifier keys (c2sp.org/signed-note) of trusted witnesses, one per line; the verifiable logs accept their cosignatures.",
);

/** In the order of the help text. */
export const settings: AddedSettings = {
  after: "cors-origins",
  settings: [logOrigin, auditLogPublic, witnesses],
};
