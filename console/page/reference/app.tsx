/** The API reference: search and the list of calls in the menu, and the call that the address names. */
import { useMemo, useState } from "preact/hooks";
import { Frame } from "../frame.tsx";
import { useAddress } from "../use-address.ts";
import { CallList, searchGroups } from "./call-list.tsx";
import { Conventions } from "./conventions.tsx";
import { type ApiDocument, nameOperation } from "./document.ts";
import { findCommonReasons } from "./failures.ts";
import { OperationView } from "./operation.tsx";
import { SearchField } from "./search-field.tsx";

const siteName = "API reference";

export function Reference({ api }: { readonly api: ApiDocument }) {
  const { path } = useAddress();
  const [query, setQuery] = useState("");
  const common = useMemo(() => findCommonReasons(api), [api]);
  const groups = useMemo(() => searchGroups(api.groups, query), [api, query]);
  const found = api.operations.find(({ operationId }) => operationId === path);
  const openFirst = (): void => {
    const [first] = groups.flatMap(({ operations }) => operations);
    if (query !== "" && first !== undefined) location.hash = `#/${first.operationId}`;
  };
  return (
    <Frame
      site={siteName}
      title={found === undefined ? siteName : `${nameOperation(found)} – ${siteName}`}
      page={path}
      logIn={`/#/log-in?call=${path}`}
      label="Calls"
      menu={
        <>
          <SearchField value={query} onChange={setQuery} onEnter={openFirst} />
          <CallList groups={groups} current={found} isSearch={query.trim() !== ""} />
        </>
      }
      links={
        <p>
          <a href="/">Console</a>
        </p>
      }
    >
      {found === undefined ? (
        <Conventions api={api} common={common} isMissing={path !== ""} />
      ) : (
        <OperationView key={found.operationId} api={api} operation={found} common={common} />
      )}
    </Frame>
  );
}
