/** The settings of verifiable logs, as an operator gives them. */
import {
  type AddedSettings,
  ConfigError,
  defineSwitch,
  defineText,
  type Setting,
} from "../../src/config/setting.ts";

/** c2sp.org/tlog-checkpoint allows no space and no plus in it. */
export const logOrigin: Setting<string> = {
  name: "log-origin",
  fallback: "",
  valueName: "name",
  meaning:
    "Name of the verifiable logs in their checkpoints, such as logs.example.com/api/logs: the URL of the logs without https://; by default made from the key of the store. All servers of a store need the same.",
  read(value) {
    if (value === "" || /^[a-z0-9]([a-z0-9./:_-]{0,126}[a-z0-9])?$/i.test(value)) return value;
    throw new ConfigError(
      `"${value}" is not a name such as logs.example.com/api/logs: up to 128 letters, digits and ./:_-`,
    );
  },
};

export const auditLogPublic = defineSwitch(
  "audit-log-public",
  "Lets anyone read all audit entries, with the names of users and keys, over the verifiable log; otherwise only their hashes.",
);

export const witnesses = defineText(
  "witnesses",
  "",
  "file",
  "File with the verifier keys of witnesses (c2sp.org/signed-note), one in each line, whose cosignatures the verifiable logs accept.",
);

/** In the order in which the help shows them. */
export const settings: AddedSettings = {
  after: "cors-origins",
  settings: [logOrigin, auditLogPublic, witnesses],
};
