// Logging in again without anybody: after a restart the service knows no cookie of before, but the hub still does.

/** The hub is asked again for a login that it has refused after so long at the earliest. */
const PAUSE_MS = 15_000;

let renewing: Promise<boolean> | undefined;
let notBeforeMs = 0;

/** Go to the hub and back as the browser would for this page, and take over the page's new token. What is typed stays. */
export function renewLogin(): Promise<boolean> {
  if (!renewing && performance.now() < notBeforeMs) return Promise.resolve(false);
  renewing ??= goToTheHub().finally(() => {
    renewing = undefined;
  });
  return renewing;
}

async function goToTheHub(): Promise<boolean> {
  notBeforeMs = performance.now() + PAUSE_MS;
  const shown = document.body.dataset;
  let text: string;
  try {
    // Such a request may follow the hub's redirects within this site as a visit does; it changes nothing.
    const answer = await fetch(location.href, { mode: "no-cors", credentials: "same-origin", cache: "no-store" });
    text = await answer.text();
  } catch {
    return false; // the hub is elsewhere, or sends people elsewhere to log in: they do that themselves
  }
  const found = new DOMParser().parseFromString(text, "text/html").body.dataset;
  if (!found["xsrf"] || found["page"] !== shown["page"]) return false; // it is the hub's page for a login
  if (found["user"] !== shown["user"]) {
    location.reload(); // what is shown is another person's
    return false;
  }
  shown["xsrf"] = found["xsrf"];
  return true;
}
