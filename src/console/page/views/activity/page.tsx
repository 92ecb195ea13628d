export function Page() {
  return <h1>soon</h1>;
}
