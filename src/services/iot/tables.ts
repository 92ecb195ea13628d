import type { TableOwner } from "../../database/schema.ts";

/** The tables of devices and challenges: see store.ts, device-state.ts and challenge-store.ts. */
export const iotTables: TableOwner = {
  tables: { iot_devices: ["position"], iot_challenges: ["challenge_hash"] },
  steps: {
    "0001-iot": ({ bytes, integer }) => [
      `create table iot_devices (
        position ${integer} not null primary key,
        device_id text not null unique,
        device_name text not null,
        device_type text not null,
        public_key ${bytes} not null,
        is_simulated ${integer} not null,
        vendor_public_key ${bytes} not null,
        signing_contexts ${integer} not null,
        owner text not null,
        registered_at_ms ${integer} not null,
        record_tag text not null,
        last_seen_at_ms ${integer},
        last_sequence ${integer},
        firmware_version ${integer},
        firmware_hash text,
        reading_form text,
        former_images text not null,
        state_tag text not null
      )`,
      "create index iot_devices_by_owner_position on iot_devices (owner, position)",
      `create table iot_challenges (
        challenge_hash text not null primary key,
        device_id text not null,
        issued_to text not null,
        expires_at_ms ${integer} not null,
        used_at_ms ${integer}
      )`,
      "create index iot_challenges_by_expires_at_ms on iot_challenges (expires_at_ms)",
      `create index iot_challenges_open on iot_challenges (issued_to, expires_at_ms)
        where used_at_ms is null`,
    ],
  },
};
