export interface Person {
  id: string;
  name: string;
  token: string;
}

/** What the server told the page. */
export const settings: { people?: Person[]; token?: string } = JSON.parse(document.getElementById('settings')?.textContent ?? '{}');
