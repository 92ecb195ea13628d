/**
 * The records that the reader has created since the page was loaded, and the reader's records on the server.
 */
import { settings } from "../../settings.ts";
import { CreatedTable } from "./created-table.tsx";
import { listedKinds } from "./load-records.ts";
import { ServerList } from "./server-list.tsx";

export function Page() {
  return (
    <div class="tool">
      <header class="lead">
        <h1 tabIndex={-1}>Inventory</h1>
        <p>
          What you created in this tab, and your records on the server. The page forgets its own list when you
          reload it or log out; the records on the server remain.
        </p>
      </header>
      <h2>Created in this tab</h2>
      <CreatedTable />
      <h2>On the server</h2>
      <p class="text">
        {settings.wantsToken
          ? "Records that belong to you. Administrators see the records of all users."
          : "This server has no users, so it lists the records of everyone who has used it."}
      </p>
      {listedKinds.map((kind) => (
        <ServerList key={kind.kind} kind={kind} />
      ))}
      {listedKinds.length === 0 && <p class="note">None of the running services has records.</p>}
    </div>
  );
}
